/* SPDX-License-Identifier: BSD-3-Clause */
/* A program on this side of an agent: its words, environment and folder, and the end of all it
 * started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"

extern char **environ;

/* ---- words ---------------------------------------------------------------------------------- */

static size_t count(char **list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* The wrapper's words, with %e as the program and %a as its arguments. WRAPPER is taken apart. */
static char **wrap(char *wrapper, char *program, char **args)
{
	char **words = calloc(strlen(wrapper) + 2 + count(args) * (strlen(wrapper) / 2 + 1),
			      sizeof(*words));
	char *save = NULL;
	size_t n = 0;

	for (char *w = strtok_r(wrapper, " ", &save); words && w; w = strtok_r(NULL, " ", &save)) {
		if (!strcmp(w, "%e"))
			words[n++] = program;
		else if (!strcmp(w, "%a"))
			for (size_t i = 0; i < count(args); i++)
				words[n++] = args[i];
		else
			words[n++] = w;
	}
	return words;
}

static char **plain(char *name, char **args)
{
	char **words = calloc(count(args) + 2, sizeof(*words));

	if (!words)
		return NULL;
	words[0] = name;
	memcpy(words + 1, args, count(args) * sizeof(*words));
	return words;
}

/* ---- environment ---------------------------------------------------------------------------- */

/* VALUE with the folder FROM as TO, wherever it is a whole path or the beginning of one. */
static char *replace(const char *value, const char *from, const char *to)
{
	size_t n = strlen(from), room = strlen(value) + 1, at = 0;
	char *out;

	for (const char *hit = strstr(value, from); hit; hit = strstr(hit + 1, from))
		room += strlen(to);
	out = malloc(room);
	for (const char *p = value; out && *p;) {
		bool whole = !strncmp(p, from, n) && (p == value || strchr(":=;", p[-1])) &&
			     strchr("/:;", p[n]);

		if (whole)
			at = (size_t)(stpcpy(out + at, to) - out);
		else
			out[at++] = *p;
		p += whole ? n : 1;
	}
	if (out)
		out[at] = 0;
	return out;
}

/* Of the host's machine and start, where a remote command has let them through. */
static void forget_foreign(void)
{
	static const char *const names[] = {"SLMPM_TOPOLOGY", "SLMPM_JOB",    "SLMPM_RUN_DIR",
					    "SLMPM_RUNNER",   "SLMPM_EXPORT", "SLMPM_ELEMENTS",
					    "SLMPM_PARENT",   "SLMPM_SECRET", "SLMPM_DEATH_PIPE",
					    "SLMPM_CPUS"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
}

static bool set_given(const struct program *p)
{
	char **given = records_all(&p->start, "env"), cwd[PATH_MAX + 8];
	const char *from = records_value(&p->start, "carry");
	bool good = given != NULL;

	snprintf(cwd, sizeof(cwd), "%s/cwd", p->folder->path);
	for (size_t i = 0; good && given[i]; i++) {
		char *entry = from ? replace(given[i], from, cwd) : strdup(given[i]);
		char *equals = entry ? strchr(entry, '=') : NULL;

		good = equals && equals != entry;
		if (good) {
			*equals = 0;
			good = setenv(entry, equals + 1, 1) == 0;
		}
		free(entry);
	}
	free(given);
	return good;
}

static bool set_libraries(const struct program *p)
{
	const char *now = secure_getenv("LD_LIBRARY_PATH");
	char *path;
	bool good;

	if (!p->libraries)
		return true;
	if (asprintf(&path, "%s/lib%s%s", p->folder->path, now && *now ? ":" : "", now ? now : "") <
	    0)
		return false;
	good = setenv("LD_LIBRARY_PATH", path, 1) == 0;
	free(path);
	return good;
}

/* ---- the process ---------------------------------------------------------------------------- */

static int code_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR: return SLMPM_ENOENT;
	case EACCES:
	case EPERM: return SLMPM_EACCES;
	case ENOMEM: return SLMPM_ENOMEM;
	default: return SLMPM_ENOEXEC;
	}
}

/* What the new process says of a step that failed; its parent reads it. */
static void give_up(int report, const char *what)
{
	char text[256];
	int error = errno;

	snprintf(text, sizeof(text), "%c%.180s: %s", error, what, strerror(error));
	(void)!write(report, text, strlen(text) + 1);
	_exit(127);
}

static void enter_folder(const struct program *p, int report)
{
	const char *cwd = records_value(&p->start, "cwd"),
		   *carry = records_value(&p->start, "carry");
	const char *here = records_value(&p->start, "here");

	if (carry && (chdir(p->folder->path) != 0 || (mkdir("cwd", 0700) != 0 && errno != EEXIST) ||
		      chdir("cwd") != 0))
		give_up(report, p->folder->path);
	if (!carry && cwd && chdir(cwd) != 0)
		give_up(report, cwd);
	if (!carry && !cwd && here)
		(void)!chdir(here); /* the host's own, where there is one of that name */
}

/* Not execvp: that takes any script for a shell's, and what it may not look at for what is
 * there. */
const char *program_search(const char *file, char out[PATH_MAX])
{
	const char *path = secure_getenv("PATH");

	if (strchr(file, '/'))
		return file;
	for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
		size_t n = strcspn(path, ":");
		struct stat st;

		if (n && snprintf(out, PATH_MAX, "%.*s/%s", (int)n, path, file) < PATH_MAX &&
		    access(out, X_OK) == 0 && stat(out, &st) == 0 && S_ISREG(st.st_mode))
			return out;
		path += n;
		path += *path == ':';
	}
	return NULL;
}

static void become(const struct program *p, char **words, const char *file, int out, int err,
		   int report)
{
	int none = open("/dev/null", O_RDONLY);
	char path[PATH_MAX];
	const char *found = program_search(file, path); /* by this side's PATH, not the program's */
	sigset_t nothing;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	sigemptyset(&nothing);
	sigprocmask(SIG_SETMASK, &nothing, NULL);
	for (int s = 1; s < SIGRTMIN; s++)
		(void)signal(s, SIG_DFL);
	if (none < 0 || dup2(none, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		give_up(report, "standard input and output");
	enter_folder(p, report);
	if (records_value(&p->start, "clean") && clearenv() != 0)
		give_up(report, "the environment");
	forget_foreign();
	if (!set_given(p) || !set_libraries(p)) {
		errno = ENOMEM;
		give_up(report, "the environment");
	}
	if (found)
		execv(found, words);
	else
		errno = ENOENT;
	give_up(report, file);
}

static char **make_words(const struct program *p, char *copies[2], char **args)
{
	const char *wrapper = records_value(&p->start, "wrapper");
	const char *name = records_value(&p->start, "name");

	if (wrapper && *wrapper) {
		copies[0] = strdup(wrapper);
		return copies[0] && args ? wrap(copies[0], p->path, args) : NULL;
	}
	copies[0] = strdup(name ? name : p->path);
	return copies[0] && args ? plain(copies[0], args) : NULL;
}

static int open_pipes(int fds[6])
{
	for (int i = 0; i < 6; i++)
		fds[i] = -1;
	for (int i = 0; i < 6; i += 2)
		if (pipe2(fds + i, O_CLOEXEC) != 0)
			return -errno;
	return 0;
}

/* The write ends are closed: then the report pipe ends when the program runs. */
static int await_report(int report, char why[256])
{
	char text[256];
	ssize_t n;

	do
		n = read(report, text, sizeof(text) - 1);
	while (n < 0 && errno == EINTR);
	if (n <= 1)
		return 0;
	text[n] = 0;
	snprintf(why, 256, "%s", text + 1);
	return -code_of((unsigned char)text[0]);
}

int program_execute(const struct program *p, struct running *r, char why[256])
{
	char **args = records_all(&p->start, "arg"), *copies[2] = {NULL, NULL};
	char **words = make_words(p, copies, args);
	const char *wrapper = records_value(&p->start, "wrapper");
	int fds[6], rc = words && words[0] ? open_pipes(fds) : -EINVAL;

	if (rc == 0) {
		const char *file = wrapper && *wrapper ? words[0] : p->path;

		r->pid = fork();
		if (r->pid == 0)
			become(p, words, file, fds[1], fds[3], fds[5]);
		rc = r->pid < 0 ? -errno : 0;
	}
	if (rc == 0) {
		close(fds[1]);
		close(fds[3]);
		close(fds[5]);
		rc = await_report(fds[4], why);
		close(fds[4]);
		r->out = fds[0];
		r->err = fds[2];
		if (rc < 0)
			(void)waitpid(r->pid, NULL, 0);
	} else {
		snprintf(why, 256, "the program cannot be prepared: %s", strerror(-rc));
		rc = -SLMPM_ESYSTEM;
	}
	free(words);
	free(args);
	free(copies[0]);
	return rc;
}

/* ---- the end of it and of all it started ---------------------------------------------------- */

/* Orphans become children of this process (PR_SET_CHILD_SUBREAPER), so that in the end all of them
 * are seen here. */
void signal_children(int number)
{
	char path[64];
	FILE *list;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	list = fopen(path, "re");
	if (!list)
		return;
	while (fscanf(list, "%d", &pid) == 1)
		(void)kill(pid, number);
	fclose(list);
}

void kill_children(void)
{
	signal_children(SIGKILL);
}

void kill_below(void)
{
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}
