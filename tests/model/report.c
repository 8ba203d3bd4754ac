/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches, their table, and ways to faults. */
#include "tests/model/report.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

double report_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void report_head(const char *what)
{
	printf("%-32s %9s %11s %10s %6s %6s\n", what, "states", "transitions", "executions",
	       "steps", "s");
	fflush(stdout);
}

void report_row(const char *name, const struct outcome *o, double seconds)
{
	printf("%-32s %9llu %11llu %10.2g %6u %6.2f  %s\n", name, (unsigned long long)o->states,
	       (unsigned long long)o->transitions, o->executions, o->depth, seconds,
	       o->fault ? o->fault : "ok");
	fflush(stdout);
}

/* Found by asking for ever shorter ones. */
void report_fault(struct search search, struct outcome outcome)
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

bool report_search(const char *name, const struct search *search, bool brief)
{
	double began = report_now();
	struct outcome o = explore(search);

	report_row(name, &o, report_now() - began);
	if (o.fault && !brief)
		report_fault(*search, o);
	return !o.fault;
}

bool report_is_wanted(const char *name, char **wanted)
{
	if (!*wanted)
		return true;
	while (*wanted)
		if (!strcmp(name, *wanted++))
			return true;
	return false;
}
