/* SPDX-License-Identifier: BSD-3-Clause */
/* pkg-config: jansson ncurses */
/*
 * slmpm_stat: how busy the links of running processes are and how long things take on them; once,
 * as a screen that follows them, as JSON, or for Prometheus.
 */
#include "apps/slmpm_stat/stat.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

enum { OPT_JSON = 256, OPT_PROMETHEUS, OPT_SCREEN };

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0, "Links that have ended, too", 0},
	{"detail", 'd', NULL, 0, "Timings by protocol, size and warmth, and reasons", 0},
	{"totals", 't', NULL, 0, "By peer what all its connections have carried, closed ones too",
	 0},
	{"sort", 's', "BY", 0, "pid, queue, ring, latency, rate or bytes [pid]", 0},
	{"watch", 'w', "SECONDS", OPTION_ARG_OPTIONAL,
	 "A screen that follows them; q ends it, p u r l m b sort", 1},
	{"rounds", 'n', "N", 0, "The screen of --watch ends after N rounds", 1},
	{"json", OPT_JSON, NULL, 0, "One JSON object", 2},
	{"prometheus", OPT_PROMETHEUS, NULL, 0, "Prometheus's text format", 2},
	{0},
};

enum form { FORM_TEXT, FORM_JSON, FORM_PROMETHEUS, FORM_SCREEN };

struct command {
	int pid;
	bool all, detail, totals;
	enum form form;
	enum sort sort;
	double interval;
	unsigned rounds;
};

static long parse_number(struct argp_state *state, const char *text, const char *what)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1 || value > INT32_MAX)
		argp_failure(state, 2, 0, "\"%s\": %s is wanted", text, what);
	return value;
}

static double parse_interval(struct argp_state *state, const char *text)
{
	char *end;
	double value = text ? strtod(text, &end) : 1;

	if (text && (end == text || *end || !(value >= 0.05) || value > 3600))
		argp_failure(state, 2, 0, "\"%s\": from 0.05 to 3600 seconds", text);
	return value;
}

static enum sort parse_sort(struct argp_state *state, const char *text)
{
	static const char *const names[] = {"pid", "queue", "ring", "latency", "rate", "bytes"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i]))
			return (enum sort)i;
	argp_failure(state, 2, 0, "--sort %s: by pid, queue, ring, latency, rate or bytes", text);
	return SORT_PID;
}

static void set_form(struct argp_state *state, struct command *c, enum form form)
{
	if (c->form != FORM_TEXT && c->form != form)
		argp_failure(state, 2, 0, "only one of --watch, --json and --prometheus");
	c->form = form;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 'a': c->all = true; break;
	case 'd': c->detail = true; break;
	case 't': c->totals = true; break;
	case 's': c->sort = parse_sort(state, arg); break;
	case 'n': c->rounds = (unsigned)parse_number(state, arg, "a number of rounds"); break;
	case 'w':
		set_form(state, c, FORM_SCREEN);
		c->interval = parse_interval(state, arg);
		break;
	case ARGP_KEY_END:
		if (c->rounds && c->form != FORM_SCREEN)
			argp_failure(state, 2, 0, "-n is for --watch");
		if (c->totals && c->form != FORM_TEXT)
			argp_failure(state, 2, 0,
				     "-t is for the plain form: --json and --prometheus tell all, "
				     "--watch does not");
		if (c->detail && c->form != FORM_TEXT)
			argp_failure(state, 2, 0,
				     "-d is for the plain form: --json and --prometheus tell all, "
				     "--watch does not");
		break;
	case OPT_JSON: set_form(state, c, FORM_JSON); break;
	case OPT_PROMETHEUS: set_form(state, c, FORM_PROMETHEUS); break;
	case ARGP_KEY_ARG:
		if (c->pid)
			argp_failure(state, 2, 0, "only one process");
		c->pid = (int)parse_number(state, arg, "a process id");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int print(const struct command *c, const struct gathered *g)
{
	switch (c->form) {
	case FORM_JSON: return json_print(g);
	case FORM_PROMETHEUS: prometheus_print(g); return 0;
	default:
		if (c->totals)
			totals_text(g);
		else
			text_print(g, c->detail);
		return 0;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"[PID]",
		"Shows the links of process PID, or of every process of yours that uses slmpm: "
		"requests queued, rings, latencies, rates.",
		NULL,
		NULL,
		NULL};
	struct command c = {.interval = 1};
	struct gathered g = {.links = NULL};
	int rc = 0;

	options_begin("slmpm_stat");
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	if (c.form == FORM_SCREEN)
		return screen_run(c.pid, c.all, c.sort, c.interval, c.rounds);
	g.all = c.all;
	if (c.pid)
		rc = gather_process(&g, c.pid);
	else
		gather_all(&g);
	if (rc < 0)
		return slmpm_perror("slmpm_stat");
	gather_sort(&g, c.sort);
	rc = print(&c, &g);
	gather_drop(&g);
	return fflush(stdout) || ferror(stdout) || rc;
}
