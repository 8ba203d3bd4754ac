/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of slmpm_perftest: its options, what they may say, and how it is all checked. */
#include "apps/slmpm_perftest/command.h"

#include <argp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

enum {
	OPT_FABRIC = 256,
	OPT_MODE,
	OPT_HEADER,
	OPT_WAIT,
	OPT_TOUCH,
	OPT_JSON,
	OPT_DECISIONS,
	OPT_HIST,
	OPT_BURST,
	OPT_MORE,
	OPT_IDLE,
	OPT_STEP,
	OPT_WORK,
	OPT_BUSY,
	OPT_TRACK,
	OPT_MEMBERS,
	OPT_SHARED,
	OPT_MODES,
	OPT_SAMPLES,
	OPT_SERVE,
	OPT_LISTEN,
	OPT_CONNECT,
	OPT_TO,
	OPT_FAR,
	OPT_SINK,
	OPT_CREW,
	OPT_MAILBOX,
	OPT_TRACE,
	OPT_DUMP,
	OPT_CPU,
	OPT_ON_CPU
};

static const struct argp_option options[] = {
	{"test", 't', "TEST[,TEST]", 0, "What to measure; see the list below", 1},
	{"size", 's', "SIZE[:MAX[:TIMES]]", 0,
	 "Bytes of a message, or up to MAX, each TIMES the one before [2] (k, m, g)", 1},
	{"count", 'n', "COUNT", 0, "Messages of a sample [as many as fill 20 ms]", 1},
	{"warm", 'w', "WARM", 0, "Messages before the first sample [an eighth of COUNT]", 1},
	{"samples", OPT_SAMPLES, "N", 0, "Samples of which the median is told [5; 1 with --serve]",
	 1},
	{"touch", OPT_TOUCH, NULL, 0, "Write every byte before and read it after, time included",
	 1},
	{"burst", OPT_BURST, "N", 0, "Streams of N messages a call, of N puts at once [1]", 1},
	{"more", OPT_MORE, NULL, 0, "With --burst: a call each, all but the last say MORE", 1},
	{"idle-us", OPT_IDLE, "US", 0,
	 "send_lat: leave the receiver idle so long before each message", 1},
	{"step", OPT_STEP, "BYTES", 0, "Touched loans become readable so by so [32768]", 1},
	{"work-us", OPT_WORK, "US", 0, "slow_reader, tide: compute so long after each message [20]",
	 1},
	{"busy", OPT_BUSY, "N", 0,
	 "Something else computes on the second side's CPU (1), and on the first's (2) [0]", 1},
	{"track", OPT_TRACK, "WAY", 0,
	 "Mirrors find plain stores by themselves: auto, pagemap, fault, signal, twin [none]", 1},
	{"members", OPT_MEMBERS, "N", 0,
	 "Processes of the group of which barrier, bcast and so on are, 2 to 64 [2]", 1},
	{"group-memory", OPT_SHARED, NULL, 0,
	 "barrier, bcast and so on are of memory that the members share (slmpm_group_alloc)", 1},
	{"cpus", 'c', "CPU,CPU[,CPU]", 0,
	 "Where the two sides run, and in turns all --members [the first allowed]", 2},
	{"fabric", OPT_FABRIC, "F", 0,
	 "Use this fabric only; slmpm_info -d lists them. Groups on one machine go by memory", 2},
	{"mode", OPT_MODE, "M", 0,
	 "How payload travels: auto, smt (through the ring); put, get and atomics: map, attach, "
	 "ring, am, tag [auto]",
	 2},
	{"header", OPT_HEADER, "WHAT", 0,
	 "Packets say whom they are for: none, ids, address (and where it goes) [none]", 2},
	{"wait", OPT_WAIT, "MODE", 0, "adaptive, spin or block", 2},
	{"listen", OPT_LISTEN, "URL", 0, "Be the second side of a --connect in another terminal",
	 2},
	{"connect", OPT_CONNECT, "URL", 0,
	 "Measure with the side that listens there (shm:NAME, tcp://HOST:PORT)", 2},
	{"to", OPT_TO, "ADDRESS", 0,
	 "By the link that this address of the second side stands for (pci:, mac:, ip:, id:)", 2},
	{"serve", OPT_SERVE, NULL, 0,
	 "Jobs from standard input, one a line, answered as JSON; with --listen: one --connect after another",
	 2},
	{"json", OPT_JSON, NULL, 0, "One JSON object a line", 3},
	{"trace", OPT_TRACE, "FILE", 0, "Record the heads of all packets in FILE, slowly", 3},
	{"dump", OPT_DUMP, "FILE", 0, "Print what --trace or SLMPM_TRACE recorded; measure nothing",
	 3},
	{"modes", OPT_MODES, "FILE", 0,
	 "mixed, slow_reader, tide, duplex: write what was chosen for each operation, and how full "
	 "queue and ring were, in FILE",
	 3},
	{"decisions", OPT_DECISIONS, NULL, 0,
	 "At the end, how all that this side sent and put went, and why", 3},
	{"hist", OPT_HIST, NULL, 0,
	 "The spread of single messages too; few long ones bring a mean above the p99", 3},
	{"cpu", OPT_CPU, NULL, 0,
	 "The processor time of a message and of a byte, of each side, too", 3},
	{"far", OPT_FAR, NULL, OPTION_HIDDEN, NULL, 4},
	{"sink", OPT_SINK, NULL, OPTION_HIDDEN, NULL, 4},
	{"crew", OPT_CREW, NULL, OPTION_HIDDEN, NULL, 4},
	{"mailbox", OPT_MAILBOX, "BOARD", OPTION_HIDDEN, NULL, 4},
	{"on-cpu", OPT_ON_CPU, "CPU", OPTION_HIDDEN, NULL, 4},
	{0},
};

#define GIVEN(what) (c->job.given |= TAKES_##what)
#define TEXT_AT     14 /* columns of help before the texts of tests, and for these */
#define TEXT_WIDTH  64
#define REFUSE(...) argp_failure(state, 2, 0, __VA_ARGS__)

static void parse_sizes(struct argp_state *state, struct command *c, char *text)
{
	char *colon = strchr(text, ':'), *times = colon ? strchr(colon + 1, ':') : NULL;

	if (colon && (!colon[1] || (times && (times == colon + 1 || !times[1]))))
		REFUSE("-s %s: a number is wanted before and behind each colon, as in -s 8:1m:4",
		       text);
	if (colon)
		*colon++ = '\0';
	if (times)
		*times++ = '\0';
	if (parse_number(text, &c->size) || c->size > SLMPM_MESSAGE_MAX)
		REFUSE("-s %s: a size is 0 to 8g, as in -s 64 or -s 8:1m", text);
	c->max = c->size;
	if (colon &&
	    (parse_number(colon, &c->max) || c->max < c->size || c->max > SLMPM_MESSAGE_MAX))
		REFUSE("-s %s:%s: the second size is from the first to 8g", text, colon);
	c->times = 2;
	if (times && (parse_number(times, &c->times) || c->times < 2))
		REFUSE("-s %s:%s:%s: a size is twice the one before, or more", text, colon, times);
	c->sized = true;
}

/* The next number of a list, behind which NEXT is then; -1: there is none. */
static int parse_cpu(const char **next)
{
	int cpu, used = 0;

	if (sscanf(*next, "%d%n", &cpu, &used) != 1 || cpu < 0)
		return -1;
	*next += used;
	if (**next == ',' && (*next)[1])
		++*next;
	else if (**next)
		return -1;
	return cpu;
}

static void parse_cpus(struct argp_state *state, struct command *c, const char *text)
{
	struct setup *setup = &c->setup;
	const char *next = text;
	cpu_set_t allowed;

	setup->chosen = true;
	for (setup->cpus = 0; *next && setup->cpus < MEMBERS_MAX; setup->cpus++)
		if ((setup->cpu[setup->cpus] = parse_cpu(&next)) < 0)
			break;
	if (*next || setup->cpus < 2)
		REFUSE("-c %s: name two CPUs, as in -c 0,1, or more for --members", text);
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (unsigned i = 0; i < setup->cpus; i++) {
		int cpu = setup->cpu[i];

		if (cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &allowed))
			REFUSE("-c %s: CPU %d is not allowed here; taskset -cp $$ shows which are",
			       text, cpu);
	}
}

static uint64_t parse_count(struct argp_state *state, const char *option, const char *text,
			    uint64_t least)
{
	uint64_t value;

	if (parse_number(text, &value) || value < least)
		REFUSE("%s %s: a number from %llu is wanted", option, text,
		       (unsigned long long)least);
	return value;
}

static void check_tests(struct argp_state *state, struct command *c)
{
	char names[NAMES_MAX], known[NAMES_MAX] = "", *rest, *name;

	for (const struct test *t = tests; t->name; t++) {
		strncat(known, " ", sizeof(known) - strlen(known) - 1);
		strncat(known, t->name, sizeof(known) - strlen(known) - 1);
	}
	if (!*c->names)
		REFUSE("say what to measure; there are:%s", known);
	if (strlen(c->names) + 1 >= sizeof(names)) /* cut off */
		REFUSE("-t: that many tests are more than a call can take");
	snprintf(names, sizeof(names), "%s", c->names);
	if (*names == ',' || strstr(names, ",,") || names[strlen(names) - 1] == ',')
		REFUSE("-t %s: no test before or behind a comma; there are:%s", names, known);
	for (name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (!test_find(name))
			REFUSE("unknown test \"%s\"; there are:%s", name, known);
	if (given_check(c, known, sizeof(known)))
		REFUSE("%s", known);
}

static bool mode_known(const char *name)
{
	static const char *const modes[] = {"auto", "smt", "map", "attach", "ring", "am", "tag"};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(modes[i], name) == 0)
			return true;
	return false;
}

static void parse_header(struct argp_state *state, const char *text)
{
	if (strcmp(text, "none") && strcmp(text, "ids") && strcmp(text, "address"))
		REFUSE("unknown header \"%s\"; there are: none ids address", text);
	setenv("SLMPM_HEADER", text, 1); /* as SLMPM_FABRIC; who is started has it, too */
}

static void check(struct argp_state *state, struct command *c)
{
	const unsigned of_all = TAKES_WAIT | TAKES_HEADER | TAKES_MODE | TAKES_FABRIC | TAKES_CPU;

	if (c->far || c->mailbox)
		return;
	if (c->dump && (*c->names || c->sized || c->job.given || c->serve || c->listen ||
			c->connect || c->trace))
		REFUSE("--dump prints what has been recorded: tests and their options do not go with it");
	if (c->dump)
		return;
	if (c->listen && c->connect)
		REFUSE("--listen here and --connect there, not both");
	if (c->serve && c->connect)
		REFUSE("--serve starts its own second side, or with --listen is one; --connect URL goes "
		       "with tests");
	if (c->listen && !c->serve && (*c->names || c->sized))
		REFUSE("--listen: who connects says tests and sizes");
	if (c->to && (c->listen || c->serve))
		REFUSE("--to is said by the first side, with -t; a line of --serve says link N");
	if (c->serve && (*c->names || c->sized || c->job.given & ~of_all))
		REFUSE("--serve: tests, sizes and how they go stand in its lines, as in send_bw 64 1000 "
		       "burst 32");
	if (c->setup.mode && !mode_known(c->setup.mode))
		REFUSE("unknown mode \"%s\"; there are: auto smt map attach ring am tag",
		       c->setup.mode);
	if (!c->serve && !c->listen)
		check_tests(state, c);
}

static void add_names(struct command *c, const char *names)
{
	size_t used = strlen(c->names);

	snprintf(c->names + used, sizeof(c->names) - used, "%s%s", used ? "," : "", names);
}

/* Another one, behind those of -t. */
static void add_test(struct argp_state *state, struct command *c, const char *name)
{
	uint64_t number;

	if (parse_number(name, &number) == 0)
		REFUSE("\"%s\" is no test; sizes go with -s: -s 64, or -s 8:64k, each twice the one "
		       "before",
		       name);
	add_names(c, name);
}

static int parse_how(int key, char *arg, struct argp_state *state, struct command *c)
{
	switch (key) {
	case 'n': GIVEN(ANYHOW), c->job.count = parse_count(state, "-n", arg, 1); break;
	case 'w': GIVEN(ANYHOW), c->job.warm = parse_count(state, "-w", arg, 0); break;
	case OPT_BURST: GIVEN(BURST), c->job.burst = parse_count(state, "--burst", arg, 1); break;
	case OPT_IDLE: GIVEN(IDLE), c->job.idle_us = parse_count(state, "--idle-us", arg, 0); break;
	case OPT_STEP: GIVEN(STEP), c->job.step = parse_count(state, "--step", arg, 1); break;
	case OPT_WORK: GIVEN(WORK), c->job.work_us = parse_count(state, "--work-us", arg, 1); break;
	case OPT_BUSY:
		GIVEN(ANYHOW);
		if (parse_busy(arg, &c->job.busy))
			REFUSE("--busy %s: 0, 1 or 2 of the two CPUs", arg);
		break;
	case OPT_TRACK:
		GIVEN(TRACK);
		if (parse_track(arg, &c->job.track))
			REFUSE("unknown way \"%s\"; there are: none auto pagemap fault signal twin",
			       arg);
		break;
	case OPT_MEMBERS:
		GIVEN(MEMBERS);
		c->job.grouped = true;
		if (parse_members(arg, &c->job.members))
			REFUSE("--members %s: a group has 2 to %d", arg, MEMBERS_MAX);
		break;
	case OPT_SAMPLES:
		c->setup.samples = (unsigned)parse_count(state, "--samples", arg, 1);
		break;
	case OPT_MORE: GIVEN(MORE), c->job.more = true; break;
	case OPT_SHARED: GIVEN(SHARED), c->job.shared = true; break;
	case OPT_TOUCH: GIVEN(TOUCH), c->job.touch = true; break;
	case OPT_WAIT:
		GIVEN(WAIT);
		if (parse_wait(arg, &c->job.wait))
			REFUSE("unknown wait mode \"%s\"; there are: adaptive spin block", arg);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 't': add_names(c, arg); break;
	case 's': parse_sizes(state, c, arg); break;
	case 'c': parse_cpus(state, c, arg); break;
	case OPT_FABRIC:
		GIVEN(FABRIC);
		c->fabric = arg;
		setenv("SLMPM_FABRIC", arg, 1); /* read once, at the library's first use */
		break;
	case OPT_MODE:
		GIVEN(MODE);
		c->setup.mode = arg;
		break;
	case OPT_HEADER:
		GIVEN(HEADER);
		parse_header(state, arg);
		break;
	case OPT_LISTEN: c->listen = arg; break;
	case OPT_CONNECT: c->connect = arg; break;
	case OPT_TO:
		GIVEN(TO);
		c->to = arg;
		break;
	case OPT_SERVE: c->serve = c->setup.json = true; break;
	case OPT_JSON: c->setup.json = true; break;
	case OPT_DECISIONS: GIVEN(DECISIONS), c->decisions = true; break;
	case OPT_HIST: c->setup.hist = true; break;
	case OPT_TRACE:
		c->trace = arg;
		setenv("SLMPM_TRACE", arg, 1);
		break;
	case OPT_DUMP: c->dump = arg; break;
	case OPT_MODES:
		GIVEN(MODES);
		c->modes = arg;
		break;
	case OPT_FAR: c->far = true; break;
	case OPT_SINK: c->far = c->sink = true; break;
	case OPT_CREW: c->far = c->crew = true; break;
	case OPT_MAILBOX: c->mailbox = arg; break;
	case OPT_CPU: GIVEN(CPU), c->setup.processor_time = true; break;
	case OPT_ON_CPU: c->setup.cpu[1] = atoi(arg); break;
	case ARGP_KEY_ARG: add_test(state, c, arg); break;
	case ARGP_KEY_END: check(state, c); break;
	default: return parse_how(key, arg, state, c);
	}
	return 0;
}

/* Long lines are broken here: argp would go on in the first column. */
static void list_test(FILE *out, const struct test *t)
{
	const char *text = t->text;
	size_t used = 0;

	fprintf(out, "  %-12s", t->name);
	while (*text) {
		const size_t n = strcspn(text, " ");

		if (used + 1 + n > TEXT_WIDTH)
			used = (size_t)fprintf(out, "\n%*s", TEXT_AT, "") - TEXT_AT - 1;
		used += (size_t)fprintf(out, " %.*s", (int)n, text);
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

/* The tests' own line of help, from their table. */
static char *help(int key, const char *text, void *input)
{
	char *all = NULL;
	size_t size;
	FILE *out;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC || !(out = open_memstream(&all, &size)))
		return (char *)(uintptr_t)text;
	fputs("Tests:\n", out);
	for (const struct test *t = tests; t->name; t++)
		list_test(out, t);
	fclose(out);
	return all;
}

int command_read(struct command *c, int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"[TEST...]",
		"Measures messages between two processes, and the machine's "
		"limits beside them.\v",
		NULL,
		help,
		NULL};

	*c = (struct command){.setup = {.cpu = {-1, -1}}};
	job_init(&c->job);
	options_begin("slmpm_perftest");
	return options_parse(&argp, argc, argv, c) ? -1 : 0;
}

int command_check_fabric(const struct command *c)
{
	struct slmpm_fabric_info info = {.size = sizeof(info)};
	char known[256] = "";

	if (!c->fabric || c->far || c->mailbox)
		return 0;
	for (int i = 0; slmpm_fabric_at(i, &info) >= 0; i++) {
		if (strcmp(info.name, c->fabric) == 0 && info.available)
			return 0;
		if (strcmp(info.name, c->fabric) == 0) {
			fprintf(stderr, "slmpm_perftest: fabric %s is not available: %s\n",
				c->fabric, info.detail);
			return -1;
		}
		strncat(known, " ", sizeof(known) - strlen(known) - 1);
		strncat(known, info.name, sizeof(known) - strlen(known) - 1);
	}
	fprintf(stderr, "slmpm_perftest: unknown fabric \"%s\"; there are:%s\n", c->fabric, known);
	return -1;
}
