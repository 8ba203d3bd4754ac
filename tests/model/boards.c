/* SPDX-License-Identifier: BSD-3-Clause */
/* The model checker of boards: every scene, as the code is (README.md). */
/* native-only */
/* has-time */
/* timeout: 300 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/model/board/members.h"
#include "tests/model/coroutine.h"
#include "tests/model/explore.h"

#define STATES_MAX 30000000

static const struct scene scenes[] = {
	{"two members", 2, 1, 1, MEMBERS, true},     {"two members, twice", 2, 1, 2, MEMBERS, true},
	{"one dies", 3, 1, 1, MEMBERS, false},       {"two die", 3, 2, 1, MEMBERS, false},
	{"one leaves, one dies", 3, 1, 1, 2, false}, {"two of three, twice", 3, 0, 2, 2, false},
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* None can go on: all that live have come to the end. */
static const char *all_over(const struct search *s)
{
	(void)s;
	if (!model_stands())
		return NULL;
	for (unsigned m = 0; m < model_scene->members; m++)
		if (!model.members[m].dead && !model.members[m].over)
			return "one sleeps for ever";
	return NULL;
}

static const char *nothing_wrong(void)
{
	return NULL; /* all_over has judged */
}

/* The shortest way to the fault that is found by asking for ever shorter ones. */
static void show_fault(struct search search, struct outcome outcome)
{
	while (outcome.fault && outcome.depth > 1) {
		struct outcome shorter;

		search.limit = outcome.depth - 1;
		shorter = explore(&search);
		if (!shorter.fault) {
			search.limit = outcome.depth;
			outcome = explore(&search);
			break;
		}
		outcome = shorter;
	}
	explore_print_trace(&search);
}

static bool run_scene(const struct scene *of, bool brief)
{
	struct search search = {
		.settled = nothing_wrong, .fresh = all_over, .states_max = STATES_MAX};
	double began = now();
	struct outcome o;

	model_scene = of;
	o = explore(&search);
	printf("%-32s %9llu %11llu %10.2g %6u %6.2f  %s\n", of->name, (unsigned long long)o.states,
	       (unsigned long long)o.transitions, o.executions, o.depth, now() - began,
	       o.fault ? o.fault : "ok");
	fflush(stdout);
	if (o.fault && !brief)
		show_fault(search, o);
	return !o.fault;
}

static bool is_wanted(const struct scene *of, char **wanted)
{
	if (!*wanted)
		return true;
	while (*wanted)
		if (!strcmp(of->name, *wanted++))
			return true;
	return false;
}

/* boards [-b] [SCENE...]: these, or all. -b: without the way to a fault. */
int main(int argc, char **argv)
{
	bool brief = argc > 1 && !strcmp(argv[1], "-b");
	unsigned run = 0, faults = 0;

	if (!COROUTINE_AVAILABLE) {
		puts("no coroutines for this processor");
		return 77;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%-32s %9s %11s %10s %6s %6s\n", "scene", "states", "transitions", "executions",
	       "steps", "s");
	for (unsigned i = 0; i < SCENES; i++) {
		if (!is_wanted(&scenes[i], argv + 1 + brief))
			continue;
		faults += !run_scene(&scenes[i], brief);
		run++;
	}
	printf("%u scenes, %u with a fault\n", run, faults);
	return !run || faults;
}
