/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -lcrypto */
/*
 * slmpm_demo: hashes real files on accelerator processes, streamed to them and answered by them
 * over the rings. This file reads the command line.
 */
#include "apps/slmpm_demo/demo.h"

#include <argp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

#define DEFAULT_PATH "/usr/share/doc"

enum { OPT_ACCELERATOR = 256, OPT_FABRIC, OPT_MODE, OPT_REDUCE, OPT_STRESS };

static const struct argp_option options[] = {
	{"accelerators", 'n', "N", 0, "Accelerator processes, 1 to 64 [2]", 0},
	{"window", 'w', "FILES", 0, "Files on their way to each at once, 1 to 64 [4]", 0},
	{"protocol", 'p', "P", 0,
	 "How files go: loan (read where the host has built them), auto (as messages, the library "
	 "chooses), and those from 1 MiB on smt (in packets), rget (the accelerator fetches them) or "
	 "put [loan where it maps them, else auto]",
	 0},
	{"fabric", OPT_FABRIC, "FABRIC", 0, "Over shm, tcp, or both at once [both]", 0},
	{"mode", OPT_MODE, "MODE", 0,
	 "What the selector is to prefer, auto, smt or dma, and its thresholds: ring=50,queue=4 "
	 "[auto]",
	 0},
	{"reduce", OPT_REDUCE, NULL, 0,
	 "Have the accelerators count files by size, and add that up by a reduction", 0},
	{"stress", OPT_STRESS, "WHAT", 0,
	 "Now and then fill the ring (of stopped accelerators), the queue (of the engine that puts) "
	 "or the first link, and show how the selector moves",
	 0},
	{"quiet", 'q', NULL, 0, "Print no digests, only the table", 0},
	{"accelerator", OPT_ACCELERATOR, "SLOTS", OPTION_HIDDEN | OPTION_ARG_OPTIONAL, NULL, 0},
	{0},
};

struct command {
	struct options options;
	struct files files;
	char **paths;   /* to hash, up to a NULL; of argv */
	unsigned slots; /* of an accelerator's region */
	bool accelerator;
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

/* Which of the COUNT names TEXT is, the empty ones left out. */
static unsigned parse_word(struct argp_state *state, const char *option, const char *text,
			   const char *const *names, unsigned count)
{
	char all[64] = "";
	size_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		if (!*names[i])
			continue;
		if (!strcmp(text, names[i]))
			return i;
		if (at < sizeof(all))
			at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", at ? ", " : "",
					       names[i]);
	}
	argp_failure(state, 2, 0, "%s %s: one of %s", option, text, all);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const ways[WAYS] = {"", "auto", "smt", "rget", "put", "loan"};
	static const char *const fabrics[FABRICS] = {"", "shm", "tcp", "both"};
	static const char *const stresses[STRESSES] = {"", "ring", "queue", "link"};
	struct command *c = state->input;
	const char *wrong;

	switch (key) {
	case 'n': c->options.accelerators = parse_number(state, key, arg, ACCELERATORS_MAX); break;
	case 'w': c->options.window = parse_number(state, key, arg, WINDOW_MAX); break;
	case 'q': c->options.quiet = true; break;
	case OPT_REDUCE: c->options.reduce = true; break;
	case 'p': c->options.way = parse_word(state, "-p", arg, ways, WAYS); break;
	case OPT_FABRIC:
		c->options.fabric = parse_word(state, "--fabric", arg, fabrics, FABRICS);
		break;
	case OPT_STRESS:
		c->options.stress = parse_word(state, "--stress", arg, stresses, STRESSES);
		break;
	case OPT_MODE:
		c->options.tuned = true;
		wrong = settings_mode(arg);
		if (wrong)
			argp_failure(state, 2, 0, "--mode %s: %s", arg, wrong);
		break;
	case OPT_ACCELERATOR:
		c->accelerator = true;
		c->slots = arg ? (unsigned)strtoul(arg, NULL, 10) : 0;
		if (c->slots > WINDOW_MAX)
			argp_failure(state, 2, 0, "%u slots", c->slots);
		break;
	case ARGP_KEY_ARGS:
		c->paths = state->argv + state->next;
		state->next = state->argc;
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int hash(struct command *c)
{
	static char *usual[] = {(char *)(uintptr_t)DEFAULT_PATH, NULL};
	static struct tally tally;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0); /* an interrupted write leaves no half digest */
	ending_await();
	failed = host_run(&c->options, c->paths ? c->paths : usual, &c->files, &tally);
	if (!failed || tally.interrupted)
		failed |= table_print(&c->options, &c->files, &tally);
	failed |= c->files.failed > 0;
	output_flush();
	if (output_error()) {
		fprintf(stderr, "slmpm_demo: standard output: %s\n", strerror(output_error()));
		failed = 1;
	}
	files_free(&c->files);
	if (tally.interrupted) {
		signal(ending(), SIG_DFL);
		raise(ending());
	}
	return failed;
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
	const char *wrong;

	options_begin("slmpm_demo");
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	if (c.accelerator)
		return accelerator_run(c.slots, c.options.reduce);
	wrong = settings_apply(&c.options);
	if (wrong) {
		fprintf(stderr, "slmpm_demo: %s\n", wrong);
		return 2;
	}
	return hash(&c);
}
