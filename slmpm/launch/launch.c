/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a program. The child finds its host by SLMPM_PARENT=FD:INODE: another descriptor
 * that came to have the number has another inode. */
#include "slmpm/launch/launch.h"

#include <argz.h>
#include <envz.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

const char *launch_own_program(const char *prog, char path[PATH_MAX])
{
	ssize_t n = strncmp(prog, "/proc/self/", 11) ? -1 : readlink(prog, path, PATH_MAX - 1);

	if (n <= 0)
		return prog;
	path[n] = 0;
	return path;
}

static int add_word(struct launch_list *words, const char *word)
{
	return -argz_add(&words->text, &words->length, word);
}

static int add_words(struct launch_list *words, char *const list[])
{
	int rc = 0;

	for (; list && *list && rc == 0; list++)
		rc = add_word(words, *list);
	return rc;
}

static int make_vector(struct launch_list *l)
{
	l->vector = calloc(argz_count(l->text, l->length) + 1, sizeof(char *));
	if (!l->vector)
		return -ENOMEM;
	argz_extract(l->text, l->length, l->vector);
	return 0;
}

/* The wrapper's words with %e as the program and %a as its arguments. */
static int wrap(struct launch *l, const char *wrapper, char *const argv[])
{
	char *copy = strdup(wrapper), *save = NULL;
	int rc = copy ? 0 : -ENOMEM;

	for (char *word = copy ? strtok_r(copy, " ", &save) : NULL; word && rc == 0;
	     word = strtok_r(NULL, " ", &save)) {
		if (!strcmp(word, "%a"))
			rc = add_words(&l->argv, argv);
		else
			rc = add_word(&l->argv, strcmp(word, "%e") ? word : l->program);
	}
	free(copy);
	if (rc < 0)
		return rc;
	return l->argv.text ? launch_find(l->argv.text, l->program) : -EINVAL;
}

static int make_argv(struct launch *l, const char *prog, char *const argv[], const char *wrapper)
{
	int rc = launch_find(prog, l->program);

	if (rc < 0)
		return rc;
	if (wrapper && *wrapper) {
		rc = wrap(l, wrapper, argv);
	} else {
		rc = add_word(&l->argv, prog);
		rc = rc < 0 ? rc : add_words(&l->argv, argv);
	}
	return rc < 0 ? rc : make_vector(&l->argv);
}

static void launch_free(struct launch *l)
{
	free(l->argv.text);
	free(l->argv.vector);
	free(l->envp.text);
	free(l->envp.vector);
	for (int i = 0; i < 2; i++)
		if (l->moved[i] > STDERR_FILENO)
			close(l->moved[i]);
}

/* Variables that are not there yet; of one that comes twice the first counts, as for getenv. */
static int add_variables(struct launch_list *env, char *const list[])
{
	size_t before = env->length;
	int rc = 0;

	for (; list && *list && rc == 0; list++)
		if (!envz_entry(env->text, before, *list))
			rc = add_word(env, *list);
	return rc;
}

/* The child's own, whoever says otherwise, then the caller's additions and this process's. */
static int make_environment(struct launch *l, const struct slmpm_spawn_options *o)
{
	extern char **environ;
	struct launch_list *env = &l->envp;
	char parent[64], death_pipe[16];
	struct stat st;
	int rc;

	if (fstat(l->fd, &st) != 0)
		return -errno;
	snprintf(parent, sizeof(parent), "%d:%llu", l->fd, (unsigned long long)st.st_ino);
	snprintf(death_pipe, sizeof(death_pipe), "%d", l->death_pipe_fd);
	rc = -envz_add(&env->text, &env->length, PARENT_VARIABLE, parent);
	if (rc == 0)
		rc = -envz_add(&env->text, &env->length, DEATH_PIPE_VARIABLE, death_pipe);
	if (rc == 0)
		rc = add_variables(env, o->envp);
	if (rc == 0 && !(o->flags & SLMPM_SPAWN_CLEAN_ENV))
		rc = add_variables(env, environ);
	if (l->death_pipe_fd < 0)
		envz_remove(&env->text, &env->length, DEATH_PIPE_VARIABLE);
	return rc < 0 ? rc : make_vector(env);
}

/* A descriptor of a closed standard stream would be the child's output. */
static int moved_up(int fd, int *copy)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	return *copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
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
	while ((rc = posix_spawn(pid, l->program, actions, attributes, l->argv.vector,
				 l->envp.vector)) == ETXTBSY &&
	       ++tries < BUSY_ATTEMPTS)
		nanosleep(&pause, NULL);
	if (l->cpus)
		cpus_leave(l->cpus);
	return rc;
}

static int launch_start(struct launch *l, pid_t *pid)
{
	/* Onto itself: only the child's copy loses close-on-exec. */
	const int from[] = {l->fd, l->death_pipe_fd, l->out, l->err};
	const int to[] = {l->fd, l->death_pipe_fd, STDOUT_FILENO, STDERR_FILENO};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc = 0;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]) && rc == 0; i++)
		if (from[i] >= 0)
			rc = posix_spawn_file_actions_adddup2(&actions, from[i], to[i]);
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

	if (o->flags & SLMPM_SPAWN_DIE_WITH_HOST && pipe2(death_pipe, O_CLOEXEC) != 0)
		return -errno;
	rc = make_argv(l, prog, argv, o->wrapper);
	l->cwd = o->cwd;
	l->fd = moved_up(l->fd, &l->moved[0]);
	l->death_pipe_fd = moved_up(death_pipe[0], &l->moved[1]);
	if (rc == 0 && (l->fd < 0 || (death_pipe[0] >= 0 && l->death_pipe_fd < 0)))
		rc = -EMFILE;
	if (rc == 0)
		rc = make_environment(l, o);
	job_prepare(&job);
	l->out = job.out[1];
	l->err = job.err[1];
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
