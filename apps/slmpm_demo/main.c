/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -lcrypto */
/*
 * slmpm_demo: hashes real files on accelerator processes, streamed to them and answered by them
 * over the rings. This file reads the command line.
 */
#include "apps/slmpm_demo/demo.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

#define DEFAULT_PATH "/usr/share/doc"

enum { OPT_ACCELERATOR = 256 };

static const struct argp_option options[] = {
	{"accelerators", 'n', "N", 0, "Accelerator processes, 1 to 64 [2]", 0},
	{"window", 'w', "FILES", 0, "Files on their way to each at once, 1 to 64 [4]", 0},
	{"protocol", 'p', "P", 0,
	 "How files from 1 MiB on go: smt (in packets), rget (the accelerator fetches them), put, or "
	 "auto: as the library chooses [auto]",
	 0},
	{"quiet", 'q', NULL, 0, "Print no digests, only the table", 0},
	{"accelerator", OPT_ACCELERATOR, "SLOTS", OPTION_HIDDEN | OPTION_ARG_OPTIONAL, NULL, 0},
	{0},
};

struct command {
	struct options options;
	struct files files;
	unsigned slots; /* of an accelerator's region */
	bool accelerator, any;
};

static unsigned parse_number(struct argp_state *state, int key, const char *text, unsigned most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1 || value > (long)most)
		argp_failure(state, 2, 0, "-%c %s: a number from 1 to %u is wanted", key, text,
			     most);
	return (unsigned)value;
}

/* Messages are the library's to send: what it does is a setting, for the accelerators as well. */
static enum way parse_way(struct argp_state *state, const char *text)
{
	static const char *const names[WAYS] = {"auto", "smt", "rget", "put"};
	static const char *const fetch[WAYS] = {[WAY_SMT] = "never", [WAY_RGET] = "always"};

	for (enum way w = WAY_AUTO; w < WAYS; w++)
		if (!strcmp(text, names[w])) {
			if (fetch[w])
				setenv("SLMPM_FETCH", fetch[w], 1);
			return w;
		}
	argp_failure(state, 2, 0, "-p %s: one of auto, smt, rget, put", text);
	return WAY_AUTO;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 'n': c->options.accelerators = parse_number(state, key, arg, ACCELERATORS_MAX); break;
	case 'w': c->options.window = parse_number(state, key, arg, WINDOW_MAX); break;
	case 'q': c->options.quiet = true; break;
	case 'p': c->options.way = parse_way(state, arg); break;
	case OPT_ACCELERATOR:
		c->accelerator = true;
		c->slots = arg ? (unsigned)strtoul(arg, NULL, 10) : 0;
		if (c->slots > WINDOW_MAX)
			argp_failure(state, 2, 0, "%u slots", c->slots);
		break;
	case ARGP_KEY_ARG:
		c->any = true;
		if (files_walk(&c->files, arg))
			argp_failure(state, 1, 0, "out of memory");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"[PATH...]",
		"Hashes files (SHA-256) on accelerator processes and prints digests for "
		"sha256sum -c.\vFolders are walked; without PATH: " DEFAULT_PATH
		". A table of what happened goes to standard error. "
		"Exit status: 0 all done, 1 something could not be read or done, 2 usage.",
		NULL,
		NULL,
		NULL};
	struct command c = {.options = {.accelerators = 2, .window = WINDOW}};
	static struct tally tally;
	char version[64];
	int failed;

	snprintf(version, sizeof(version), "slmpm_demo %s", slmpm_version());
	argp_program_version = version;
	argp_err_exit_status = 2;
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	if (c.accelerator)
		return accelerator_run(c.slots);
	if (!c.any && files_walk(&c.files, DEFAULT_PATH))
		return 1;
	failed = host_run(&c.options, &c.files, &tally);
	if (!failed)
		screen_table(&c.files, &tally);
	failed |= c.files.failed > 0;
	if (fflush(stdout) || ferror(stdout)) {
		perror("slmpm_demo: standard output");
		failed = 1;
	}
	files_free(&c.files);
	return failed;
}
