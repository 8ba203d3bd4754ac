/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror_demo: a host reads the particles of its accelerators' simulations, from mirrored memory and
 * by remote reads, over each fabric; then a table of both.
 */
#include "apps/mirror_demo/demo.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPT_SIMULATE = 256, OPT_DRAW };

static struct {
	struct run run;
	const char *simulate;
} my = {.run = {.accelerators = 1, .seconds = 1}};

static const struct argp_option options[] = {
	{"accelerators", 'n', "N", 0, "1 to 16 of them (1)", 0},
	{"seconds", 's', "S", 0, "For each line of the table (1)", 0},
	{"draw", OPT_DRAW, NULL, 0, "Draw the particles meanwhile", 0},
	{"simulate", OPT_SIMULATE, "BY", OPTION_HIDDEN, NULL, 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
	char *end = text;

	switch (key) {
	case 'n':
		my.run.accelerators = (unsigned)strtoul(text, &end, 10);
		if (*end || my.run.accelerators < 1 || my.run.accelerators > 16)
			argp_failure(state, 2, 0, "-n %s: 1 to 16", text);
		return 0;
	case 's':
		my.run.seconds = strtod(text, &end);
		if (*end || !(my.run.seconds > 0 && my.run.seconds <= 3600))
			argp_failure(state, 2, 0, "-s %s: up to 3600", text);
		return 0;
	case OPT_DRAW: my.run.draw = true; return 0;
	case OPT_SIMULATE: my.simulate = text; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* Settings are read but once: each line has a process of its own. */
static int line(const char *fabric, bool get)
{
	struct run run = my.run;
	struct figures f;
	pid_t child = fork();
	int status = 1;

	if (child < 0) {
		perror("mirror_demo: fork");
		return 1;
	}
	if (child) {
		waitpid(child, &status, 0);
		return status != 0;
	}
	setenv("SLMPM_FABRIC", fabric, 1);
	run.get = get;
	status = watch(&run, &f);
	if (status == 0)
		printf("%-6s %-6s %14.0f %12.4f %14llu %12.0f\n", fabric, get ? "get" : "mirror",
		       f.reads / f.seconds, f.seconds / f.reads * 1e6, (unsigned long long)f.remote,
		       f.steps);
	fflush(stdout);
	_exit(status);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Reads accelerators' live state from mirrored memory, and by remote reads.",
	};
	int failed = 0;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (my.simulate)
		return simulate(strcmp(my.simulate, "get") == 0);
	printf("%-6s %-6s %14s %12s %14s %12s\n", "fabric", "by", "reads/s", "us each",
	       "remote ops", "steps seen");
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		failed |= line(i < 2 ? "shm" : "tcp", i % 2);
	return failed;
}
