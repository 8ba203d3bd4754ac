/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of a start elsewhere: the remote command, its agent's hello, files, the program's start. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"
#include "apps/slmpm_run/ship.h"

#define PATIENCE_MS 600000 /* who waits for the start gives up before */
#define END_MS      5000

static const char *value(const struct delivery *d, const char *key)
{
	const char *text = records_value(&d->request, key);

	return text ? text : "";
}

__attribute__((format(printf, 3, 4))) static int fail(struct delivery *d, int error,
						      const char *format, ...)
{
	int n = snprintf(d->why, sizeof(d->why), "%.64s: ", value(d, "host"));
	va_list args;

	va_start(args, format);
	vsnprintf(d->why + n, sizeof(d->why) - (size_t)n, format, args);
	va_end(args);
	return error;
}

/* ---- the remote command --------------------------------------------------------------------- */

/* WORD with each %h as the host. */
static char *expand(const char *word, const char *host)
{
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size);

	for (; to && *word; word++) {
		if (word[0] == '%' && (word[1] == 'h' || word[1] == '%'))
			fputs(*++word == 'h' ? host : "%", to);
		else
			fputc(*word, to);
	}
	if (!to || fclose(to) != 0)
		return NULL;
	return out;
}

/* Its words, then the agent's, for posix_spawnp; words separated by blanks, nothing quoted. */
static char **make_command(const struct delivery *d)
{
	const char *agent = *value(d, "agent") ? value(d, "agent") : NAME;
	char *line, *save = NULL, **words;
	size_t n = 0, room;

	if (asprintf(&line, "%s %s --agent", value(d, "remote"), agent) < 0)
		return NULL;
	room = strlen(line) / 2 + 2;
	words = calloc(room, sizeof(*words));
	for (char *w = strtok_r(line, " \t", &save); words && w; w = strtok_r(NULL, " \t", &save))
		words[n++] = expand(w, value(d, "host"));
	free(line);
	return words;
}

/* In a process group of its own: an interrupt from a terminal is passed on, not lived through. One
 * that does not look at its input ends with this process all the same. */
static void become(char **words, int fd, int report, pid_t parent)
{
	char path[PATH_MAX];
	const char *file = program_search(words[0], path);
	int error = ENOENT;

	(void)setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(fd, 0) >= 0 && dup2(fd, 1) >= 0)
		error = file ? (execv(file, words), errno) : ENOENT;
	(void)!write(report, &error, sizeof(error));
	_exit(127);
}

/* 0, or the errno of what could not be. */
static int spawn(struct delivery *d, char **words, int fd)
{
	pid_t self = getpid();
	int report[2], error = 0;

	if (pipe2(report, O_CLOEXEC) != 0)
		return errno;
	d->pid = fork();
	if (d->pid == 0)
		become(words, fd, report[1], self);
	close(report[1]);
	if (d->pid < 0 || read(report[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
		error = d->pid < 0 ? errno : 0;
	else
		(void)waitpid(d->pid, NULL, 0);
	if (error)
		d->pid = 0;
	close(report[0]);
	return error;
}

static int start_command(struct delivery *d)
{
	char **words = make_command(d);
	int fds[2] = {-1, -1}, rc = 0;

	if (!words || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		rc = fail(d, SLMPM_ESYSTEM, "no connection to a remote command: %s",
			  strerror(errno));
	if (rc == 0) {
		int error = spawn(d, words, fds[1]);

		if (error)
			rc = fail(d, error == ENOENT ? SLMPM_ENOENT : SLMPM_ENOEXEC,
				  "the remote command \"%s\" cannot be started: %s", words[0],
				  strerror(error));
		close(fds[1]);
		d->fd = fds[0];
		d->in.fd = fds[0];
	}
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
	return rc;
}

/* Why nobody answers any more. */
static int gone(struct delivery *d, const char *when)
{
	const char *agent = *value(d, "agent") ? value(d, "agent") : NAME;
	int status = 0;

	(void)shutdown(d->fd, SHUT_RDWR);
	(void)waitpid(d->pid, &status, 0);
	d->pid = 0;
	if (WIFSIGNALED(status))
		return fail(d, SLMPM_ESYSTEM, "the remote command was ended by signal %d %s",
			    WTERMSIG(status), when);
	if (WEXITSTATUS(status) == 127)
		return fail(d, SLMPM_ENOENT,
			    "exit status 127 %s: no \"%.60s\" there? (topology: agent)", when,
			    agent);
	return fail(d, SLMPM_ENOENT, "the remote command \"%.80s\" ended with status %d %s",
		    value(d, "remote"), WEXITSTATUS(status), when);
}

static int await_hello(struct delivery *d)
{
	static const char hello[] = FRAME_MAGIC " ";
	struct pollfd p = {.fd = d->fd, .events = POLLIN};
	char begin[33];
	struct frame f;
	ssize_t rest;
	int rc = inlet_next(&d->in, &f, PATIENCE_MS);

	if (rc == -EPIPE && !d->in.have)
		return gone(d, "before an agent answered");
	if (rc == 1 && f.type == FRAME_HELLO && f.length > sizeof(hello) - 1 &&
	    !memcmp(f.data, hello, sizeof(hello) - 1)) {
		int version = atoi((const char *)f.data + sizeof(hello) - 1);

		if (version == FRAME_VERSION)
			return 0;
		return fail(d, SLMPM_EVERSION, "its agent speaks version %d, this one %d", version,
			    FRAME_VERSION);
	}
	rest = poll(&p, 1, 100) == 1 && d->in.have < sizeof(begin) ?
		       read(d->fd, d->in.bytes + d->in.have, sizeof(begin) - d->in.have) :
		       0;
	d->in.have += rest > 0 ? (size_t)rest : 0;
	snprintf(begin, sizeof(begin), "%.*s", (int)(d->in.have < 32 ? d->in.have : 32),
		 (const char *)d->in.bytes);
	for (char *c = begin; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return fail(d, SLMPM_EPROTO, "it says \"%s\" where an agent's hello should be", begin);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int sent(struct delivery *d, int rc, const char *why)
{
	if (rc >= 0)
		return 0;
	if (rc == -EPIPE || rc == -ECONNRESET)
		return gone(d, "while files were sent");
	return fail(d, SLMPM_EACCES, "%s", why);
}

/* The private folder, with all its files. */
static int send_folder(struct delivery *d, const char *folder)
{
	DIR *list = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	if (!list)
		return fail(d, SLMPM_EACCES, "%.120s: %s", folder, strerror(errno));
	while (rc == 0 && (entry = readdir(list))) {
		char path[PATH_MAX], name[SHIP_NAME], why[256];
		struct stat st;

		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		snprintf(name, sizeof(name), "cwd/%s", entry->d_name);
		rc = sent(d, ship_file(d->fd, &d->in, path, name, OFFER_ALWAYS, why), why);
	}
	closedir(list);
	return rc;
}

struct libraries {
	struct delivery *d;
	uint32_t flags;
	int rc;
};

static int send_library(const char *path, const char *name, void *arg)
{
	struct libraries *l = arg;
	char as[SHIP_NAME], why[256];

	if (snprintf(as, sizeof(as), "lib/%s", name) >= (int)sizeof(as))
		return 0;
	l->rc = sent(l->d, ship_file(l->d->fd, &l->d->in, path, as, l->flags, why), why);
	return l->rc ? -1 : 0;
}

static const char *library_path(const struct delivery *d)
{
	char **env = records_all(&d->request, "env");
	const char *path = getenv("LD_LIBRARY_PATH");

	for (size_t i = 0; env && env[i]; i++)
		if (!strncmp(env[i], "LD_LIBRARY_PATH=", 16))
			path = env[i] + 16;
	free(env);
	return path;
}

static const char *last_name(const char *path)
{
	return strrchr(path, '/') + 1; /* it is absolute */
}

/* Does PATH lie right in the folder that is carried? */
static bool is_carried(const char *path, const char *carry)
{
	size_t n = strlen(carry);

	return n && !strncmp(path, carry, n) && path[n] == '/' && !strchr(path + n + 1, '/');
}

static int send_files(struct delivery *d)
{
	const char *program = value(d, "program"), *carry = value(d, "carry");
	struct libraries l = {.d = d};
	char name[SHIP_NAME], why[256];
	int rc = *carry ? send_folder(d, carry) : 0;

	if (rc || !*program || !strcmp(value(d, "ship"), "never"))
		return rc;
	l.flags = !strcmp(value(d, "ship"), "always") ? OFFER_ALWAYS : 0;
	if (!is_carried(program, carry)) {
		snprintf(name, sizeof(name), "program/%s", last_name(program));
		rc = ship_file(d->fd, &d->in, program, name, l.flags, why);
		if (rc > 0) /* where it lies now it does not find its libraries */
			l.flags = OFFER_ALWAYS;
		rc = sent(d, rc, why);
	}
	if (rc == 0 && needed_each(program, library_path(d), send_library, &l) < 0)
		rc = l.rc;
	return rc;
}

/* ---- what is to be run ---------------------------------------------------------------------- */

static int send_start(struct delivery *d)
{
	static const char *const ours[] = {"host=", "remote=", "agent=", "ship=", "program="};
	const char *program = value(d, "program"), *carry = value(d, "carry");
	struct records r = {NULL, 0};
	bool good = true;
	int rc;

	for (size_t at = 0; at < d->request.length; at += strlen(d->request.text + at) + 1) {
		const char *text = d->request.text + at;
		bool mine = false;
		char key[16];

		for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
			mine |= !strncmp(text, ours[i], strlen(ours[i]));
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(text, "="), text);
		if (!mine)
			good &= records_add(&r, key, strchr(text, '=') + 1);
	}
	if (*program && !strcmp(value(d, "ship"), "never") && !is_carried(program, carry)) {
		good &= records_add(&r, "command", program);
	} else if (*program) {
		char name[SHIP_NAME];

		snprintf(name, sizeof(name), "%s/%s",
			 is_carried(program, carry) ? "cwd" : "program", last_name(program));
		good &= records_add(&r, "image", name);
	}
	if (!good || r.length > FRAME_MAX)
		rc = fail(d, SLMPM_ENOMEM, "its arguments and environment are too long");
	else if (frame_send(d->fd, FRAME_START, r.text, r.length, PATIENCE_MS) < 0)
		rc = gone(d, "before it was told what to run");
	else
		rc = 0;
	free(r.text);
	return rc;
}

static int await_start(struct delivery *d)
{
	struct frame f;
	int rc = inlet_next(&d->in, &f, PATIENCE_MS);

	if (rc == 1 && f.type == FRAME_STARTED && f.length == 4)
		return 0;
	if (rc == 1 && f.type == FRAME_FAILED && f.length >= 4) {
		uint32_t error = get_32(f.data);

		return fail(d, error && error < SLMPM_ERROR_COUNT ? (int)error : SLMPM_ESYSTEM,
			    "%s", (const char *)f.data + 4);
	}
	if (rc == -EPIPE)
		return gone(d, "before the program ran");
	return fail(d, SLMPM_EPROTO, "its agent does not keep to the rules");
}

int deliver(struct delivery *d)
{
	int rc = start_command(d);

	if (rc == 0)
		rc = await_hello(d);
	if (rc == 0)
		rc = send_start(d);
	if (rc == 0)
		rc = send_files(d);
	if (rc == 0 && frame_send(d->fd, FRAME_GO, NULL, 0, PATIENCE_MS) < 0)
		rc = gone(d, "before the program ran");
	return rc == 0 ? await_start(d) : rc;
}
