/* SPDX-License-Identifier: BSD-3-Clause */
/* What the options of all programs have in common: wrong ones end with 2 and one line where argp
 * takes two. */
#ifndef APPS_LIB_OPTIONS_H
#define APPS_LIB_OPTIONS_H

#include <argp.h>
#include <errno.h>
#include <slmpm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_SPECIAL 0x1000000 /* argp's own keys from here on */

/* argp exits by 0 behind help and the version, written or not. */
static inline void options_check_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return;
	fprintf(stderr, "%s: standard output could not be written\n",
		program_invocation_short_name);
	_exit(1);
}

/* First of all: what --version tells, and the status of wrong usage. */
static inline void options_begin(const char *program)
{
	static char version[64];

	snprintf(version, sizeof(version), "%s %s", program, slmpm_version());
	argp_program_version = version;
	argp_err_exit_status = 2;
}

/* Notes how far all is well. */
static inline error_t options_accept(int key, char *arg, struct argp_state *state)
{
	int *well = state->input;

	(void)arg;
	if (key == ARGP_KEY_ARG || (key > 0 && key < OPTIONS_SPECIAL))
		*well = state->next;
	return 0;
}

/* Help and version end the first reading as they do the second: leave them to that one. */
static inline bool options_ask_for_help(int argc, char **argv)
{
	static const char *const ends[] = {"-h", "--help", "--usage", "--version", "-?", "-V"};

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(ends) / sizeof(ends[0]); k++)
			if (!strcmp(argv[i], ends[k]))
				return true;
	return false;
}

/* The same, up to the first word that is no option: what follows is another program's. */
static inline error_t options_accept_before(int key, char *arg, struct argp_state *state)
{
	error_t rc = options_accept(key, arg, state);

	if (key == ARGP_KEY_ARG)
		state->next = state->argc;
	return rc;
}

/* -h is --help; argp has -? for it. */
static inline error_t options_help(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != 'h')
		return ARGP_ERR_UNKNOWN;
	argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
	return 0;
}

/* The one that WORD, the last of all, spells without its argument; NULL: it is none. */
static inline const struct argp_option *options_without_argument(const struct argp *argp,
								 const char *word)
{
	const struct argp_option *o = argp->options;
	const size_t n = strlen(word);

	for (; o && (o->name || o->key || o->doc); o++) {
		if (!o->arg || o->flags & OPTION_ARG_OPTIONAL)
			continue;
		if (n > 2 && word[1] == '-' ? o->name && !strcmp(word + 2, o->name) :
					      n > 1 && word[n - 1] == o->key)
			return o;
	}
	return NULL;
}

static inline void options_complain(const struct argp *argp, const char *word, bool last)
{
	const struct argp_option *o = last ? options_without_argument(argp, word) : NULL;

	fprintf(stderr, "%s: %s: ", program_invocation_short_name, word);
	if (o)
		fprintf(stderr, "without its %s; see --help\n", o->arg);
	else
		fprintf(stderr, "no such option; see --help\n");
}

/* argp_parse, whose PARSER sees only options that are spelt right. */
static inline error_t options_parse_as(const struct argp *argp, int argc, char **argv, void *input,
				       bool before)
{
	static const struct argp_option option[] = {{NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0}, {0}};
	static const struct argp help = {.options = option, .parser = options_help};
	const struct argp_child with[] = {{&help, 0, NULL, 0}, {0}};
	struct argp whole = *argp, spelling;
	int well = 1; /* the word that follows what was understood, or a group that is half so */

	whole.children = with;
	spelling = whole;
	spelling.parser = before ? options_accept_before : options_accept;
	if (options_ask_for_help(argc, argv))
		atexit(options_check_output);
	else if (argp_parse(&spelling, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_IN_ORDER,
			    NULL, &well)) {
		well = well < argc ? well : argc - 1;
		options_complain(argp, argv[well], well == argc - 1);
		exit(argp_err_exit_status);
	}
	return argp_parse(&whole, argc, argv, before ? ARGP_IN_ORDER : 0, NULL, input);
}

static inline error_t options_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	return options_parse_as(argp, argc, argv, input, false);
}

/* Options stand before the first other word, with which PARSER takes all the rest. */
static inline error_t options_parse_before(const struct argp *argp, int argc, char **argv,
					   void *input)
{
	return options_parse_as(argp, argc, argv, input, true);
}

#endif
