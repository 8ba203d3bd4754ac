/* SPDX-License-Identifier: BSD-3-Clause */
/* pkg-config: jansson */
/*
 * slmpm_sim: how long a collective would take on more nodes than there are, by the very programs
 * that its members' work queues do, under a simulated clock.
 */
#include "apps/slmpm_sim/sim.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

#define NODES_MAX 65536
#define BYTES_MAX (1u << 30)

enum { OPT_FOLD = 256, OPT_COPY, OPT_EAGER, OPT_ROOT, OPT_PIECE, OPT_PLAN, OPT_JSON };

static const struct argp_option options[] = {
	{"collective", 'c', "KIND", 0, "Which, as in slmpm_plan(3) [allreduce]", 0},
	{"algorithm", 'a', "NAME", 0, "By which algorithm; auto: the library's choice [auto]", 0},
	{"size", 's', "BYTES", 0, "Of a contribution or a block [8]", 0},
	{"root", OPT_ROOT, "RANK", 0, "Of those that have one [0]", 0},
	{"plan", OPT_PLAN, "FILE", 0, "By the text of a plan, as in slmpm_plan(3)", 0},
	{"piece", OPT_PIECE, "BYTES", 0, "Of a message, of algorithms that cut", 0},
	{"nodes", 'n', "N", 0, "From 1 to 65536 [64]", 1},
	{"network", 'w', "KIND", 0, "full, torus, mesh or tree [full]", 1},
	{"extent", 'x', "XxYxZ", 0, "Of a torus or mesh; 0: chosen [0x0x0]", 1},
	{"latency", 'l', "TIME", 0, "Of a link, ns, us, ms or s [1us]", 2},
	{"bandwidth", 'b', "BYTES", 0, "Of a link, a second [10g]", 2},
	{"rate", 'r', "MESSAGES", 0, "That a node begins, a second [10m]", 2},
	{"packet", 'p', "BYTES", 0, "Of a torus, mesh or tree, or as --eager says, at most [4096]",
	 2},
	{"eager", OPT_EAGER, "BYTES", 0, "A message of up to so many is sent as it begins [0]", 2},
	{"fold", OPT_FOLD, "BYTES", 0, "That a node combines, a second; 0: in no time [0]", 2},
	{"copy", OPT_COPY, "BYTES", 0, "That a node copies, a second; 0: in no time [0]", 2},
	{"json", OPT_JSON, NULL, 0, "One JSON object", 3},
	{0},
};

/* ---- values ---------------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double value;
};
static const struct unit binary[] = {{"", 1}, {"k", 1024}, {"m", 1 << 20}, {"g", 1 << 30}, {0}};
static const struct unit decimal[] = {{"", 1},    {"k", 1e3},  {"m", 1e6},
				      {"g", 1e9}, {"t", 1e12}, {0}};
static const struct unit times[] = {{"", 1e3},   {"ps", 1},   {"ns", 1e3}, {"us", 1e6},
				    {"ms", 1e9}, {"s", 1e12}, {0}};

/* WHAT is said of what is none. */
static double value_of(struct argp_state *state, const char *text, const struct unit *units,
		       double most, const char *what)
{
	char *end;
	double value = strtod(text, &end);

	while (units->name && strcmp(units->name, end))
		units++;
	if (end == text || !units->name || !(value >= 0) || !(value * units->value <= most))
		argp_failure(state, 2, 0, "\"%s\": %s is wanted", text, what);
	return value * units->value;
}

static uint64_t size_of(struct argp_state *state, const char *text, double least)
{
	double value = value_of(state, text, binary, BYTES_MAX, "a number of bytes, up to 1g,");

	if (value < least || value != (double)(uint64_t)value)
		argp_failure(state, 2, 0, "\"%s\": a number of bytes, from %g up, is wanted", text,
			     least);
	return (uint64_t)value;
}

/* How many picoseconds each takes. */
static double pace_of(struct argp_state *state, const char *text)
{
	double rate =
		value_of(state, text, decimal, 1e15, "a number a second, k, m, g or t behind,");

	if (rate > 0 && rate < 1)
		argp_failure(state, 2, 0, "\"%s\": at least 1 a second, or 0 for no limit", text);
	return rate > 0 ? 1e12 / rate : 0;
}

static uint32_t whole_of(struct argp_state *state, const char *text, long least, long most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < least || value > most)
		argp_failure(state, 2, 0, "\"%s\": from %ld to %ld", text, least, most);
	return (uint32_t)value;
}

static void read_extent(struct argp_state *state, const char *text, uint32_t extent[3])
{
	int end = 0;

	if (sscanf(text, "%5ux%5ux%5u%n", &extent[0], &extent[1], &extent[2], &end) != 3 ||
	    text[end])
		argp_failure(state, 2, 0, "\"%s\": three numbers are wanted, as in 4x4x2", text);
}

static enum topology topology_of(struct argp_state *state, const char *text)
{
	static const char *const names[] = {"full", "torus", "mesh", "tree"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(text, names[i]))
			return (enum topology)i;
	argp_failure(state, 2, 0, "\"%s\": full, torus, mesh or tree", text);
	return TOPOLOGY_FULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* What is called TEXT among those that NAME knows. */
static uint32_t number_of(struct argp_state *state, const char *text,
			  const char *(*name)(uint32_t number), const char *what)
{
	char all[512] = "";
	uint32_t i;

	for (i = 1; name(i); i++) {
		if (!strcmp(name(i), text))
			return i;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), " %s", name(i));
	}
	argp_failure(state, 2, 0, "no %s \"%s\"; there are:%s", what, text, all);
	return 0;
}

static void check_algorithm(struct argp_state *state, const struct setting *set)
{
	char all[512] = "";
	int algorithm;

	if (!set->algorithm)
		return;
	for (uint32_t i = 0; (algorithm = slmpm_plan_algorithm_at(set->kind, i)) > 0; i++) {
		if ((uint32_t)algorithm == set->algorithm)
			return;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), " %s",
			 slmpm_plan_algorithm((uint32_t)algorithm));
	}
	argp_failure(state, 2, 0, "%s is not done by %s, but by:%s", slmpm_plan_kind(set->kind),
		     slmpm_plan_algorithm(set->algorithm), all);
}

static void check_network(struct argp_state *state, const struct setting *set)
{
	struct slmpm_network net = {.size = sizeof(net)};

	if (slmpm_network_make(&net, SLMPM_NETWORK_TORUS, set->nodes, set->extent, 0) < 0)
		argp_failure(state, 2, 0, "--extent: %s", slmpm_error_detail());
}

/* What is in the file; it stays. */
static char *read_plan(struct argp_state *state, const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;
	char *text = NULL;

	if (!file || getdelim(&text, &size, 0, file) < 0)
		argp_failure(state, 2, 0, "--plan %s: it cannot be read, or is empty", path);
	if (file)
		(void)fclose(file);
	return text;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void check(struct argp_state *state, const struct setting *set)
{
	if (set->root >= set->nodes)
		argp_failure(state, 2, 0, "--root %u: from 0 to %u, of %u %s", set->root,
			     set->nodes - 1, set->nodes, nodes_word(set->nodes));
	if ((set->extent[0] || set->extent[1] || set->extent[2]) &&
	    set->topology != TOPOLOGY_TORUS && set->topology != TOPOLOGY_MESH)
		argp_failure(state, 2, 0, "--extent is for a torus or a mesh");
	check_network(state, set);
	check_algorithm(state, set);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct setting *set = state->input;

	switch (key) {
	case 'c': set->kind = number_of(state, arg, slmpm_plan_kind, "collective"); break;
	case 'a':
		set->algorithm = strcmp(arg, "auto") ?
					 number_of(state, arg, slmpm_plan_algorithm, "algorithm") :
					 0;
		break;
	case 's': set->bytes = size_of(state, arg, 0); break;
	case 'n': set->nodes = whole_of(state, arg, 1, NODES_MAX); break;
	case 'w': set->topology = topology_of(state, arg); break;
	case 'x': read_extent(state, arg, set->extent); break;
	case 'l': set->latency = value_of(state, arg, times, 1e12, "a time, up to 1 s,"); break;
	case 'b': set->byte = pace_of(state, arg); break;
	case 'r': set->gap = pace_of(state, arg); break;
	case 'p': set->packet = size_of(state, arg, 1); break;
	case OPT_FOLD: set->fold = pace_of(state, arg); break;
	case OPT_EAGER: set->eager = size_of(state, arg, 0); break;
	case OPT_COPY: set->copy = pace_of(state, arg); break;
	case OPT_ROOT: set->root = whole_of(state, arg, 0, NODES_MAX - 1); break;
	case OPT_PLAN: set->text = read_plan(state, arg); break;
	case OPT_PIECE: set->piece = size_of(state, arg, 1); break;
	case OPT_JSON: set->json = true; break;
	case ARGP_KEY_ARG: argp_failure(state, 2, 0, "\"%s\": see --help", arg); break;
	case ARGP_KEY_END: check(state, set); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static uint32_t allreduce(void)
{
	uint32_t i = 1;

	while (slmpm_plan_kind(i) && strcmp(slmpm_plan_kind(i), "allreduce"))
		i++;
	return i;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		NULL,
		"Simulates a collective of up to 65536 nodes, entry by entry: how long it takes, what "
		"is sent, and which link has the most to carry.",
		NULL,
		NULL,
		NULL};
	struct setting set = {.kind = allreduce(),
			      .bytes = 8,
			      .nodes = 64,
			      .latency = 1e6,
			      .byte = 100,
			      .gap = 1e5,
			      .packet = 4096};
	struct result result;

	options_begin("slmpm_sim");
	if (options_parse(&argp, argc, argv, &set))
		return 2;
	if (simulate(&set, &result))
		return 1;
	return print_result(&set, &result);
}
