/* SPDX-License-Identifier: BSD-3-Clause */
/* The model checker of boards: every scene, as the code is (README.md). */
/* native-only */
/* has-time */
/* timeout: 300 */
#include <stdio.h>
#include <string.h>

#include "tests/model/board/members.h"
#include "tests/model/coroutine.h"
#include "tests/model/report.h"

#define STATES_MAX 30000000

static const struct scene scenes[] = {
	{"two members", 2, 1, 1, MEMBERS, false, true},
	{"two members, twice", 2, 1, 2, MEMBERS, false, true},
	{"one dies", 3, 1, 1, MEMBERS, false, false},
	{"two die", 3, 2, 1, MEMBERS, false, false},
	{"one leaves, one dies", 3, 1, 1, 2, false, false},
	{"two of three, twice", 3, 0, 2, 2, false, false},
	{"one writes", 2, 1, 0, MEMBERS, true, true},
	{"two write", 3, 1, 0, MEMBERS, true, true},
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

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

static bool run_scene(const struct scene *of, bool brief)
{
	const struct search search = {
		.settled = nothing_wrong, .fresh = all_over, .states_max = STATES_MAX};

	model_scene = of;
	return report_search(of->name, &search, brief);
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
	report_head("scene");
	for (unsigned i = 0; i < SCENES; i++) {
		if (!report_is_wanted(scenes[i].name, argv + 1 + brief))
			continue;
		faults += !run_scene(&scenes[i], brief);
		run++;
	}
	printf("%u scenes, %u with a fault\n", run, faults);
	return !run || faults;
}
