/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several pairs of a program that serves, as one: "crowd COPIES CPU COMMAND..." gives each order to all copies at once and
 * answers with the mean of their times. Meanwhile a process computes on CPU, unless that is "-".
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/child.h"

enum { MOST = 16, PATIENCE_MS = 25000 };

static struct child copy[MOST];
static int copies;

/* Stopped until there is an order. */
static pid_t neighbour(const char *cpu)
{
	volatile unsigned long sum = 1;
	cpu_set_t set;
	pid_t pid;

	if (strcmp(cpu, "-") == 0)
		return 0;
	pid = fork();
	if (pid) {
		waitpid(pid, NULL, WUNTRACED);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET((unsigned)atoi(cpu), &set);
	if (sched_setaffinity(0, sizeof set, &set))
		_exit(1);
	raise(SIGSTOP);
	for (;;)
		sum = sum * 3 + 1;
}

static int start(int n, char **words)
{
	char command[1024] = "exec";

	for (; *words; words++)
		snprintf(command + strlen(command), sizeof command - strlen(command), " %s",
			 *words);
	for (copies = 0; copies < n; copies++)
		if (child_start(&copy[copies], command, STDERR_FILENO))
			return -1;
	return 0;
}

/* NULL, or what to answer instead of a mean. */
static const char *ask_all(const char *order, double *mean)
{
	static char other[2048];
	const char *answer, *why;
	int silent = 0;

	*other = 0;
	*mean = 0;
	for (int i = 0; i < copies; i++)
		if (child_tell(&copy[i], order))
			return "{\"error\":\"a copy has ended\"}";
	for (int i = 0; i < copies; i++) {
		answer = child_hear(&copy[i], PATIENCE_MS, &why);
		silent |= !answer;
		if (!answer)
			continue;
		if (answer_number(answer, "lat_us") <= 0)
			snprintf(other, sizeof other, "%s", answer);
		*mean += answer_number(answer, "lat_us") / copies;
	}
	return silent ? "{\"error\":\"a copy does not answer\"}" : *other ? other : NULL;
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;
	double mean;
	pid_t busy;

	if (argc < 4 || atoi(argv[1]) < 1 || atoi(argv[1]) > MOST ||
	    start(atoi(argv[1]), argv + 3)) {
		fprintf(stderr, "usage: %s COPIES CPU|- COMMAND...\n", argv[0]);
		return 2;
	}
	busy = neighbour(argv[2]);
	while (getline(&line, &room, stdin) > 0) {
		const char *instead;

		if (busy)
			kill(busy, SIGCONT);
		instead = ask_all(line, &mean);
		if (busy)
			kill(busy, SIGSTOP);
		if (instead)
			puts(instead);
		else
			printf("{\"lat_us\":%.6g,\"line_ns\":null}\n", mean);
		fflush(stdout);
	}
	free(line);
	for (int i = 0; i < copies; i++)
		child_stop(&copy[i]);
	if (busy)
		kill(busy, SIGKILL);
	return 0;
}
