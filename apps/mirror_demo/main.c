/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror_demo: a host reads the particles of its accelerators' simulations, from mirrored memory
 * and by remote reads, over each fabric; then a table of both.
 */
#include "apps/mirror_demo/demo.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/lib/options.h"

#define FABRICS 2

enum { OPT_SIMULATE = 256, OPT_DRAW, OPT_FABRIC, OPT_PLAIN };

static const char *const fabrics[FABRICS] = {"shm", "tcp"};

static struct {
	struct run run;
	const char *fabric; /* NULL: each */
	const char *simulate;
	bool plain;
} my = {.run = {.accelerators = 1, .seconds = 1}};

static const struct argp_option options[] = {
	{"accelerators", 'n', "N", 0, "1 to 16 of them (1)", 0},
	{"draw", OPT_DRAW, NULL, 0, "Draw also where there is no terminal", 0},
	{"fabric", OPT_FABRIC, "F", 0, "shm or tcp alone (both)", 0},
	{"plain", OPT_PLAIN, NULL, 0, "The table alone, also in a terminal", 0},
	{"seconds", 's', "S", 0, "For each line of the table (1)", 0},
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
	case OPT_FABRIC:
		for (int i = 0; i < FABRICS; i++)
			if (strcmp(text, fabrics[i]) == 0)
				my.fabric = fabrics[i];
		if (!my.fabric)
			argp_failure(state, 2, 0, "--fabric %s: shm or tcp", text);
		return 0;
	case OPT_DRAW: my.run.draw = true; return 0;
	case OPT_PLAIN: my.plain = true; return 0;
	case OPT_SIMULATE: my.simulate = text; return 0;
	case ARGP_KEY_ARG: argp_failure(state, 2, 0, "what is \"%s\"? See --help", text); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int run_here(const char *fabric, const struct run *run, int tell)
{
	struct figures f;
	int status;

	setenv("SLMPM_FABRIC", fabric, 1);
	status = watch(run, &f);
	if (status == 0 && write(tell, &f, sizeof(f)) != sizeof(f))
		status = 1;
	return status;
}

/* Settings are read but once: each line has a process of its own. */
static int measure(const char *fabric, bool get, struct figures *f)
{
	struct run run = my.run;
	int tell[2], status = 1;
	bool notified;
	pid_t child;

	run.get = get;
	run.fabric = fabric;
	if (pipe(tell) != 0 || (child = fork()) < 0) {
		perror("mirror_demo");
		return 1;
	}
	if (!child) {
		close(tell[0]);
		_exit(run_here(fabric, &run, tell[1]));
	}
	close(tell[1]);
	notified = read(tell[0], f, sizeof(*f)) == sizeof(*f);
	close(tell[0]);
	waitpid(child, &status, 0);
	return status != 0 || !notified;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void heading(void)
{
	printf("%-6s %-6s %14s %12s %14s %12s\n", "fabric", "by", "reads/s", "ns each",
	       "remote ops", "steps seen");
	fflush(stdout);
}

/* Reads a second; 0: none has finished. */
static double rate(const struct figures *f)
{
	return f->reads > 0 && f->seconds > 0 ? f->reads / f->seconds : 0;
}

static void row(const char *fabric, bool get, const struct figures *f)
{
	printf("%-6s %-6s %14.0f ", fabric, get ? "get" : "mirror", rate(f));
	if (rate(f) > 0)
		printf("%12.2f ", 1e9 / rate(f));
	else
		printf("%12s ", "-");
	printf("%14llu %12.0f\n", (unsigned long long)f->remote, f->steps);
	fflush(stdout);
}

static void compare(const char *fabric, const struct figures f[2])
{
	if (rate(&f[0]) > 0 && rate(&f[1]) > 0)
		printf("%s: %.3g reads of mirrored memory in the time of a get\n", fabric,
		       rate(&f[0]) / rate(&f[1]));
	else
		printf("%s: no %s has finished\n", fabric, rate(&f[0]) > 0 ? "get" : "read");
}

static bool is_wanted(int fabric)
{
	return !my.fabric || my.fabric == fabrics[fabric];
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Reads accelerators' live state from mirrored memory, and by remote reads.",
	};
	static struct figures f[FABRICS][2];
	int failed[FABRICS][2] = {{0}};

	options_begin("mirror_demo");
	if (options_parse(&argp, argc, argv, NULL))
		return 2;
	if (my.simulate)
		return simulate(strcmp(my.simulate, "get") == 0);
	my.run.draw = !my.plain && (my.run.draw || isatty(STDOUT_FILENO));
	if (!my.run.draw)
		heading();
	for (int i = 0; i < FABRICS; i++)
		for (int get = 0; get < 2 && is_wanted(i); get++) {
			failed[i][get] = measure(fabrics[i], get, &f[i][get]);
			if (!my.run.draw && !failed[i][get])
				row(fabrics[i], get, &f[i][get]);
		}
	if (my.run.draw) { /* where the drawing was */
		printf("\033[H\033[J");
		heading();
	}
	for (int i = 0; i < FABRICS && my.run.draw; i++)
		for (int get = 0; get < 2; get++)
			if (is_wanted(i) && !failed[i][get])
				row(fabrics[i], get, &f[i][get]);
	for (int i = 0; i < FABRICS; i++)
		if (is_wanted(i) && !failed[i][0] && !failed[i][1])
			compare(fabrics[i], f[i]);
	return fflush(stdout) || ferror(stdout) || failed[0][0] || failed[0][1] || failed[1][0] ||
	       failed[1][1];
}
