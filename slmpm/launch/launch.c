/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting a program. The child finds its host by SLMPM_PARENT=FD:INODE; the inode tells a descriptor
 * that was really inherited from another that came to have its number.
 */
#include "slmpm/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/launch/job.h"

#define BUSY_ATTEMPTS 100
#define BUSY_PAUSE_MS 2

/* NAME, made absolute: it is meant from here, not from the child's working directory. Links stay,
 * for they may mean something to the program. */
static int make_absolute(const char *name, char out[PATH_MAX])
{
	size_t here = 0, n = strlen(name);

	if (name[0] != '/') {
		if (!getcwd(out, PATH_MAX - 1))
			return -errno;
		here = strlen(out);
		out[here++] = '/';
	}
	if (n >= PATH_MAX - here)
		return -ENAMETOOLONG;
	memcpy(out + here, name, n + 1);
	return 0;
}

int launch_find(const char *prog, char out[PATH_MAX])
{
	const char *path = secure_getenv("PATH");
	char name[PATH_MAX];

	if (strchr(prog, '/'))
		return eaccess(prog, X_OK) == 0 ? make_absolute(prog, out) : -errno;
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*path) {
		size_t n = strcspn(path, ":");
		struct stat st;

		if (n && n < PATH_MAX &&
		    snprintf(name, sizeof(name), "%.*s/%s", (int)n, path, prog) < PATH_MAX &&
		    eaccess(name, X_OK) == 0 && stat(name, &st) == 0 && S_ISREG(st.st_mode))
			return make_absolute(name, out);
		path += n;
		path += *path == ':';
	}
	return -ENOENT;
}

static size_t launch_count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* A copy behind the others. A missing one would be the list's end: no program starts without it. */
static bool add_word(struct launch *l, size_t *used, const char *word)
{
	l->argv[*used] = strdup(word);
	return l->argv[(*used)++];
}

static bool add_words(struct launch *l, size_t *used, char *const words[])
{
	for (size_t i = 0; i < launch_count(words); i++)
		if (!add_word(l, used, words[i]))
			return false;
	return true;
}

/* The wrapper's words with %e as the program and %a as its arguments. */
static int wrap(struct launch *l, const char *wrapper, char *const argv[])
{
	size_t words = 2, used = 0;
	char *save = NULL;
	bool all = true;

	l->wrapped = strdup(wrapper);
	for (const char *at = wrapper; *at; at++)
		words += *at == ' ' ? 1 : *at == '%' ? launch_count(argv) : 0;
	l->argv = calloc(words + 2, sizeof(char *));
	if (!l->wrapped || !l->argv)
		return -ENOMEM;
	for (char *word = strtok_r(l->wrapped, " ", &save); word && all;
	     word = strtok_r(NULL, " ", &save)) {
		if (!strcmp(word, "%a"))
			all = add_words(l, &used, argv);
		else
			all = add_word(l, &used, strcmp(word, "%e") ? word : l->program);
	}
	if (!all)
		return -ENOMEM;
	return used ? launch_find(l->argv[0], l->program) : -EINVAL;
}

static int make_argv(struct launch *l, const char *prog, char *const argv[], const char *wrapper)
{
	size_t used = 0;
	int rc = launch_find(prog, l->program);

	if (rc < 0)
		return rc;
	if (wrapper && *wrapper)
		return wrap(l, wrapper, argv);
	l->argv = calloc(launch_count(argv) + 2, sizeof(char *));
	if (!l->argv || !add_word(l, &used, prog) || !add_words(l, &used, argv))
		return -ENOMEM;
	return 0;
}

static void launch_free(struct launch *l)
{
	for (size_t i = 0; l->argv && l->argv[i]; i++)
		free(l->argv[i]);
	free(l->argv);
	free(l->envp);
	free(l->wrapped);
	for (int i = 0; i < 2; i++)
		if (l->moved[i] > STDERR_FILENO)
			close(l->moved[i]);
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return !strncmp(a, b, n + 1);
}

static bool overridden(const char *entry, char *const *by)
{
	for (; by && *by; by++)
		if (same_name(entry, *by))
			return true;
	return false;
}

/* What the child finds in its environment of its own, whoever says otherwise. */
static bool is_the_childs(const char *entry)
{
	return same_name(entry, PARENT_VARIABLE "=") || same_name(entry, DEATH_PIPE_VARIABLE "=");
}

static void add_entries(char **to, size_t *used, char *const *from, char *const *but)
{
	for (; from && *from; from++)
		if (!is_the_childs(*from) && !overridden(*from, but))
			to[(*used)++] = *from;
}

/* Ours, then what is in force of the caller's additions and of this process's environment. */
static int make_environment(struct launch *l, const struct slmpm_spawn_options *o)
{
	extern char **environ;
	char *const *given = o ? o->envp : NULL;
	struct stat st;
	size_t used = 0;

	l->envp = calloc(launch_count(environ) + launch_count(given) + 3, sizeof(char *));
	if (!l->envp || fstat(l->fd, &st) != 0)
		return -ENOMEM;
	snprintf(l->parent, sizeof(l->parent), PARENT_VARIABLE "=%d:%llu", l->fd,
		 (unsigned long long)st.st_ino);
	snprintf(l->death_pipe, sizeof(l->death_pipe), DEATH_PIPE_VARIABLE "=%d", l->death_pipe_fd);
	l->envp[used++] = l->parent;
	if (l->death_pipe_fd >= 0)
		l->envp[used++] = l->death_pipe;
	if (!o || !(o->flags & SLMPM_SPAWN_CLEAN_ENV))
		add_entries(l->envp, &used, environ, given);
	add_entries(l->envp, &used, given, NULL);
	return 0;
}

/* Where this process has closed its standard descriptors: they are not to be the child's, who prints. */
static int moved_up(int fd, int *copy)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	return *copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int launch_prepare(struct launch *l, const char *prog, char *const argv[],
			  const struct slmpm_spawn_options *o, int death_pipe)
{
	int rc = make_argv(l, prog, argv, o ? o->wrapper : NULL);

	l->fd = moved_up(l->fd, &l->moved[0]);
	l->death_pipe_fd = moved_up(death_pipe, &l->moved[1]);
	if (rc == 0 && (l->fd < 0 || (death_pipe >= 0 && l->death_pipe_fd < 0)))
		rc = -EMFILE;
	l->cwd = o ? o->cwd : NULL;
	return rc == 0 ? make_environment(l, o) : rc;
}

/*
 * A program that has just been written may be busy for a moment: another thread's child holds its
 * copy of the descriptor until it executes something.
 */
static int launch_own_start(const struct launch *l, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attributes, pid_t *pid)
{
	const struct timespec pause = {0, BUSY_PAUSE_MS * 1000000};
	int tries = 0, rc = l->cpus ? -cpus_enter(l->cpus) : 0;

	if (rc)
		return rc;
	do {
		if (tries)
			nanosleep(&pause, NULL);
		rc = posix_spawn(pid, l->program, actions, attributes, l->argv, l->envp);
	} while (rc == ETXTBSY && ++tries < BUSY_ATTEMPTS);
	if (l->cpus)
		cpus_leave(l->cpus);
	return rc;
}

static int launch_start(struct launch *l, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	/* Onto itself: only the child's copy loses close-on-exec. */
	rc = posix_spawn_file_actions_adddup2(&actions, l->fd, l->fd);
	if (rc == 0 && l->death_pipe_fd >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, l->death_pipe_fd, l->death_pipe_fd);
	if (rc == 0 && l->out >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, l->out, STDOUT_FILENO);
	if (rc == 0 && l->err >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, l->err, STDERR_FILENO);
	if (rc == 0 && l->cwd)
		rc = posix_spawn_file_actions_addchdir_np(&actions, l->cwd);
	if (rc == 0)
		rc = launch_own_start(l, &actions, &attributes, pid);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -rc;
}

int launch_run(struct launch *l, struct process *p, const char *prog, char *const argv[],
	       const struct slmpm_spawn_options *o)
{
	struct job_start job;
	int death_pipe[2] = {-1, -1}, rc;

	if (l->dies_with_host && pipe2(death_pipe, O_CLOEXEC) != 0)
		return -errno;
	rc = launch_prepare(l, prog, argv, o, death_pipe[0]);
	job_prepare(&job);
	l->out = job.out;
	l->err = job.err;
	if (rc == 0)
		rc = launch_start(l, &p->pid);
	job_started(&job, l->element, rc == 0 ? p->pid : 0, l->host, l->name);
	launch_free(l);
	if (death_pipe[0] >= 0)
		close(death_pipe[0]);
	p->death_pipe = death_pipe[1];
	if (rc == 0)
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	return rc;
}
