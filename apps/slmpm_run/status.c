/* SPDX-License-Identifier: BSD-3-Clause */
/* --status and --kill: jobs of this user that run, from their folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/slmpm_run/job.h"
#include "apps/slmpm_run/run.h"

/* Its slmpm_run holds the lock as long as it lives. */
static bool is_alive(int folder)
{
	if (flock(folder, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK;
	(void)flock(folder, LOCK_UN);
	return false;
}

static void describe(char text[32], int ended, int known, int status)
{
	if (!ended)
		snprintf(text, 32, "running");
	else if (!known)
		snprintf(text, 32, "ended");
	else if (WIFEXITED(status))
		snprintf(text, 32, "exited %d", WEXITSTATUS(status));
	else
		snprintf(text, 32, "signal %d", WTERMSIG(status));
}

static void show_member(const char *line)
{
	int pid, ended, known, status;
	char host[65], program[65], state[32], number[16] = "host";
	unsigned element;

	if (sscanf(line, "member %u %d %64s %d %d %d %64[^\n]", &element, &pid, host, &ended,
		   &known, &status, program) != 7)
		return;
	if (element)
		snprintf(number, sizeof(number), "%u", element);
	else if (strcmp(host, "local") != 0)
		snprintf(number, sizeof(number), "-");
	describe(state, ended, known, status);
	printf("  %-8s %-20s %-8d %-12s %s\n", number, host, pid, state, program);
}

/* PID of the job whose state FILE is, 0: it cannot be read. */
static pid_t show(FILE *file, const char *name, bool quiet)
{
	char *line = NULL, word[16] = "", when[32] = "";
	size_t size = 0;
	long long started = 0;
	int pid = 0;

	while (getline(&line, &size, file) > 0) {
		time_t t;

		if (sscanf(line, "job %d %lld %15s", &pid, &started, word) == 3) {
			t = (time_t)started;
			strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime(&t));
		} else if (!quiet && !strncmp(line, "command ", 8)) {
			printf("%s  pid %d  since %s  %s  %s", name, pid, when, word, line + 8);
			printf("  %-8s %-20s %-8s %-12s %s\n", "element", "host", "pid", "state",
			       "program");
		} else if (!quiet) {
			show_member(line);
		}
	}
	free(line);
	return pid;
}

typedef void each_fn(const char *name, pid_t pid, void *arg);

/* Each job that lives; how many, or negative. */
static int each_job(bool quiet, each_fn *each, void *arg)
{
	char root[PATH_MAX];
	int rc = job_root(root), n = 0;
	struct dirent *entry;
	DIR *list = rc < 0 ? NULL : opendir(root);

	if (!list) {
		fprintf(stderr, NAME ": %s: %s\n", root, strerror(rc < 0 ? -rc : errno));
		return -1;
	}
	while ((entry = readdir(list))) {
		int folder, fd;
		FILE *file;
		pid_t pid;

		if (strncmp(entry->d_name, "job-", 4) != 0)
			continue;
		folder = openat(dirfd(list), entry->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (folder < 0)
			continue;
		fd = is_alive(folder) ? openat(folder, "state", O_RDONLY | O_CLOEXEC) : -1;
		file = fd < 0 ? NULL : fdopen(fd, "r");
		if (file) {
			pid = show(file, entry->d_name, quiet);
			if (pid > 0 && each)
				each(entry->d_name, pid, arg);
			n += pid > 0;
			fclose(file);
		}
		close(folder);
	}
	closedir(list);
	return n;
}

int status_show(void)
{
	int n = each_job(false, NULL, NULL);

	if (n == 0)
		puts("no job runs");
	return n < 0 ? 1 : 0;
}

struct killing {
	const char *job;
	int killed, refused;
};

static void kill_one(const char *name, pid_t pid, void *arg)
{
	struct killing *k = arg;

	if (k->job && strcmp(k->job, name) != 0)
		return;
	if (kill(pid, SIGTERM) == 0) {
		k->killed++;
	} else {
		k->refused++;
		fprintf(stderr, NAME ": %s (pid %d): %s\n", name, (int)pid, strerror(errno));
	}
}

int status_kill(const char *job)
{
	struct killing k = {.job = job && strcmp(job, "all") != 0 ? job : NULL};

	if (each_job(true, kill_one, &k) < 0)
		return 1;
	if (!k.killed && !k.refused) {
		fprintf(stderr, NAME ": %s\n",
			k.job ? "no such job runs; see --status" : "no job runs");
		return 1;
	}
	return k.refused > 0;
}
