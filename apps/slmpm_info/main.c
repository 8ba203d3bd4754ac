/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -ljansson */
/*
 * slmpm_info: version, fabrics, settings, what the machine offers, thresholds as it would have
 * them, and another process's counters, for people or as JSON. Each part builds a JSON value
 * (parts.c, calibrate.c); printing it is the second step.
 */
#include <slmpm.h>

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

#include "apps/slmpm_info/collect.h"
#include "apps/slmpm_info/info.h"
#include "apps/slmpm_info/trial.h"

#define CALIBRATE_S 15

enum { OPT_CHECK = 256, OPT_JSON, OPT_CALIBRATE, OPT_PROTOCOLS };

static const struct argp_option options[] = {
	{"version", 'V', NULL, 0, "The library's version", 0},
	{"build", 'v', NULL, 0,
	 "How the library was built: commit, version of what travels, compiler, flags", 0},
	{"devices", 'd', NULL, 0, "Fabrics and what they can do", 0},
	{"config", 'c', NULL, 0, "Settings: value, where it comes from, meaning", 0},
	{"check", OPT_CHECK, NULL, 0,
	 "What this machine offers, by real tries; status 1 when something needed is missing", 0},
	{"calibrate", OPT_CALIBRATE, "SECONDS", OPTION_ARG_OPTIONAL,
	 "Thresholds of the selector as this machine would have them, measured for some 15 seconds",
	 0},
	{"protocols", OPT_PROTOCOLS, NULL, 0,
	 "By which protocol messages, puts and gets of each size go with the present settings, and why",
	 0},
	{"memory", 'm', "PEERS", 0, "Memory for so many peers with the present settings", 0},
	{"stats", 's', "PID", 0, "Counters of another process of this user", 0},
	{"json", OPT_JSON, NULL, 0, "All of it as one JSON object", 0},
	{0},
};

struct command {
	bool version, build, fabrics, config, check, json, protocols;
	long peers, pid, calibrate;
};

static long parse_number(struct argp_state *state, const char *text, long most, const char *what)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1 || value > most)
		argp_failure(state, 2, 0, "%s: %s is wanted", text, what);
	return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 'v': c->build = true; break;
	case 'V': c->version = true; break;
	case 'd': c->fabrics = true; break;
	case 'c': c->config = true; break;
	case 'm': c->peers = parse_number(state, arg, INT32_MAX, "a number of peers"); break;
	case 's': c->pid = parse_number(state, arg, INT32_MAX, "a process id"); break;
	case OPT_CHECK: c->check = true; break;
	case OPT_CALIBRATE:
		c->calibrate =
			arg ? parse_number(state, arg, 600, "a number of seconds up to 600") :
			      CALIBRATE_S;
		break;
	case OPT_PROTOCOLS: c->protocols = true; break;
	case OPT_JSON: c->json = true; break;
	case ARGP_KEY_ARG: argp_failure(state, 2, 0, "what is \"%s\"? See --help", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* A context reads the settings, warns of unknown ones and refuses what it cannot read. */
static bool settings_are_good(void)
{
	slmpm_ctx ctx;
	int rc = slmpm_open(&ctx, NULL);

	if (rc >= 0)
		slmpm_shut(ctx, 0);
	else
		slmpm_perror("slmpm_info: settings");
	return rc >= 0;
}

/* slmpm_build's lines as members. */
static json_t *info_build(void)
{
	json_t *build = json_object();
	const char *line = slmpm_build(), *colon, *end;

	for (; *line; line = end + 1) {
		char what[64];

		colon = strstr(line, ": ");
		end = strchr(line, '\n');
		snprintf(what, sizeof(what), "%.*s", (int)(colon - line), line);
		json_object_set_new(build, what,
				    json_stringn(colon + 2, (size_t)(end - colon - 2)));
	}
	return build;
}

/* What was asked for; *GOOD: all of it is as it should be. */
static json_t *gather(const struct command *c, bool *good)
{
	json_t *all = json_object(), *part;

	*good = true;
	if (c->calibrate) { /* first: its processes read the settings again */
		part = info_calibration((int)c->calibrate);
		if (part)
			json_object_set_new(all, "calibration", part);
		*good = part;
	}
	if (c->version || c->json)
		json_object_set_new(all, "version", json_string(slmpm_version()));
	if (c->build || c->json)
		json_object_set_new(all, "build", info_build());
	if (c->fabrics)
		json_object_set_new(all, "fabrics", info_fabrics());
	if (c->config) {
		*good = settings_are_good() && *good;
		json_object_set_new(all, "settings", info_settings());
	}
	if (c->peers)
		json_object_set_new(all, "memory", info_memory(c->peers));
	if (c->check)
		json_object_set_new(all, "checks", info_checks(good));
	if (c->protocols) {
		part = info_protocols();
		if (part)
			json_object_set_new(all, "protocols", part);
		*good = *good && part;
	}
	if (c->pid) {
		part = info_stats(c->pid);
		if (part) {
			json_object_set_new(all, "stats", part);
			json_object_set_new(all, "queues", info_queues(c->pid));
		}
		*good = *good && part;
	}
	return all;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options,
					 parse,
					 NULL,
					 "Tells what this library is, can and sees here. Without "
					 "options: -V -d.",
					 NULL,
					 NULL,
					 NULL};
	struct command c = {0};
	json_t *all;
	bool good;

	argp_err_exit_status = 2;
	if (argc == 2 && !strcmp(argv[1], TRIAL_FOLLOW))
		return trial_follow();
	if (argc == 2 && !strcmp(argv[1], COLLECT_FOLLOW))
		return collect_follow();
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	if (!c.calibrate && !c.config && !c.check && !c.peers && !c.pid && !c.protocols &&
	    !c.fabrics && !c.build)
		c.fabrics = !c.version, c.version = true;
	all = gather(&c, &good);
	if (c.json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		info_print(all);
	}
	json_decref(all);
	return fflush(stdout) || ferror(stdout) || !good;
}
