/* SPDX-License-Identifier: BSD-3-Clause */
/* pkg-config: libpng */
/*
 * jacobi: how heat spreads over a plate, by accelerators that each have a tile of it. This file
 * reads the command line and prints what came of it.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/jacobi/jacobi.h"
#include "apps/lib/options.h"

#define MOST       64
#define SIDE_LEAST 8
#define SIDE_MOST  16384

enum { OPT_ACCELERATOR = 256, OPT_VERIFY };

static struct {
	struct run run;
	const char *output;
	bool verify, accelerator;
} my = {.run = {.task = {.side = 1024, .iterations = 2000, .tolerance = 0.001}}};

static const struct argp_option options[] = {
	{"accelerators", 'n', "N", 0, "1 to 64 of them (one a processor)", 0},
	{"size", 's', "N", 0, "Of the plate: N x N cells, 8 to 16384 (1024)", 0},
	{"iterations", 'i', "N", 0, "At most (2000)", 0},
	{"tolerance", 't', "T", 0, "The end: no cell has changed by more (0.001)", 0},
	{"output", 'o', "FILE", 0, "Draw the plate as a PNG", 0},
	{"verify", OPT_VERIFY, NULL, 0, "Compute it by one process, too, and compare", 0},
	{"accelerator", OPT_ACCELERATOR, NULL, OPTION_HIDDEN, NULL, 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

static uint64_t number(struct argp_state *state, int key, const char *text, uint64_t least,
		       uint64_t most)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
		argp_failure(state, 2, 0, "-%c %s: a number from %llu to %llu is wanted", key, text,
			     (unsigned long long)least, (unsigned long long)most);
	return value;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct task *task = &my.run.task;
	char *end;

	switch (key) {
	case 'n': my.run.accelerators = (unsigned)number(state, key, text, 1, MOST); return 0;
	case 's': task->side = (uint32_t)number(state, key, text, SIDE_LEAST, SIDE_MOST); return 0;
	case 'i': task->iterations = number(state, key, text, 1, UINT32_MAX); return 0;
	case 't':
		task->tolerance = strtod(text, &end);
		if (end == text || *end || !(task->tolerance >= 0 && task->tolerance < 1e300))
			argp_failure(state, 2, 0, "-t %s: a number from 0 on is wanted", text);
		return 0;
	case 'o': my.output = text; return 0;
	case OPT_VERIFY: my.verify = true; return 0;
	case OPT_ACCELERATOR: my.accelerator = true; return 0;
	case ARGP_KEY_ARG: argp_failure(state, 2, 0, "what is \"%s\"? See --help", text); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* How the accelerators lie on the plate, as they will find out themselves. */
static bool lay_out(struct run *run)
{
	const uint32_t flat[3] = {0, 0, 1};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (!run->accelerators)
		run->accelerators = processors < 1    ? 1 :
				    processors > MOST ? MOST :
							(unsigned)processors;
	run->net.size = sizeof(run->net);
	slmpm_network_make(&run->net, SLMPM_NETWORK_TORUS, run->accelerators, flat, 0);
	if (run->net.extent[0] <= run->task.side)
		return true;
	fprintf(stderr, "jacobi: -s %u: fewer cells than the %u accelerators in a row\n",
		run->task.side, run->net.extent[0]);
	return false;
}

static void line(const char *name, const struct overlap *o, double operations)
{
	double each = operations > 0 ? o->under_way / operations : 0;

	printf("  %-10s %.1f us under way, %.0f %% of it hidden by computing\n", name, each * 1e6,
	       o->under_way > 0 ? 100 * o->hidden / o->under_way : 0);
}

static void print(const struct run *run)
{
	const struct result *r = &run->result;
	const double iterations = (double)r->end.iteration, all = iterations * run->accelerators;

	printf("jacobi: %u x %u cells, %u x %u accelerators\n", run->task.side, run->task.side,
	       run->net.extent[0], run->net.extent[1]);
	printf("  %-10s %llu, residual %.6g\n", "iterations", (unsigned long long)r->end.iteration,
	       r->end.residual);
	printf("  %-10s %.3g cell updates/s, %.3f s\n", "speed",
	       iterations * run->task.side * run->task.side / r->seconds, r->seconds);
	if (run->accelerators > 1)
		line("halo", &r->halo, all);
	line("residual", &r->residual, all);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Lets heat spread over a plate, on accelerators that each have a tile of it.",
	};
	FILE *file = NULL;
	int failed;

	options_begin("jacobi");
	if (options_parse(&argp, argc, argv, NULL))
		return 2;
	if (my.accelerator)
		return accelerator();
	if (!lay_out(&my.run))
		return 2;
	if (my.output && !(file = fopen(my.output, "wb"))) {
		fprintf(stderr, "jacobi: %s: %s\n", my.output, strerror(errno));
		return 1;
	}
	my.run.task.shows_progress = isatty(STDERR_FILENO) != 0;
	failed = host(&my.run);
	if (!failed)
		print(&my.run);
	if (!failed && my.verify)
		failed = verify(&my.run);
	if (!failed && file)
		failed = picture(&my.run, file, my.output);
	if (file && fclose(file) != 0 && !failed) {
		fprintf(stderr, "jacobi: %s: %s\n", my.output, strerror(errno));
		failed = 1;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "jacobi: standard output: %s\n", strerror(errno));
		failed = 1;
	}
	return failed;
}
