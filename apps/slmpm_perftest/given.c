/* SPDX-License-Identifier: BSD-3-Clause */
/* Which options of a command line its tests use. */
#include <string.h>

#include "apps/slmpm_perftest/command.h"

static const struct {
	enum takes takes;
	const char *option, *word; /* of the command line, of a line of --serve */
} options[] = {
	{TAKES_BURST, "--burst", "burst"},
	{TAKES_MORE, "--more", "more"},
	{TAKES_IDLE, "--idle-us", "idle"},
	{TAKES_STEP, "--step", "step"},
	{TAKES_WORK, "--work-us", "work"},
	{TAKES_TRACK, "--track", "track"},
	{TAKES_MEMBERS, "--members", "members"},
	{TAKES_SHARED, "--group-memory", "shared"},
	{TAKES_MODES, "--modes", NULL},
	{TAKES_TOUCH, "--touch", "touch"},
	{TAKES_MODE, "--mode", NULL},
	{TAKES_TO, "--to", "link"},
	{TAKES_HEADER, "--header", NULL},
	{TAKES_WAIT, "--wait", "wait"},
	{TAKES_FABRIC, "--fabric", NULL},
	{TAKES_CPU, "--cpu", NULL},
	{TAKES_DECISIONS, "--decisions", NULL},
};

static unsigned takes_of(const struct test *t)
{
	unsigned takes = t->takes | TAKES_ANYHOW;

	if (t->by != BY_NOTHING || t->kind == KIND_MAILBOX)
		takes |= TAKES_HEADER | TAKES_WAIT | TAKES_FABRIC;
	if ((t->by != BY_NOTHING && t->by != BY_GROUP) || t->kind == KIND_MAILBOX)
		takes |= TAKES_TO;
	if (t->kind != KIND_LINE && t->kind != KIND_MAILBOX)
		takes |= TAKES_CPU;
	if (t->by != BY_NOTHING)
		takes |= TAKES_DECISIONS;
	switch (t->by) {
	case BY_MESSAGE:
	case BY_LOAN:
	case BY_AM:
	case BY_GROUP:
	case BY_NOTHING: return takes;
	default: return takes | TAKES_MODE;
	}
}

/* As it is where members of a group are said, or not. */
static unsigned takes_here(const struct test *t, const struct job *j)
{
	return takes_of(j->grouped ? test_in_group(t) : t);
}

static void list_takers(char *why, size_t size, const struct job *j, enum takes takes)
{
	for (const struct test *t = tests; t->name; t++)
		if (takes_here(t, j) & takes && strlen(why) + strlen(t->name) + 2 < size)
			snprintf(why + strlen(why), size - strlen(why), " %s", t->name);
}

/* What NAMES take between them, against what J says, on the command line or in a LINE. */
static int check_given(unsigned takes, const char *names, const struct job *j, bool line, char *why,
		       size_t size)
{
	const unsigned unused = j->given & ~takes;
	const char *dashes = line ? "" : "--";

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!(unused & options[i].takes))
			continue;
		snprintf(why, size, "%s: %s does not use it; these do:",
			 line ? options[i].word : options[i].option, names);
		list_takers(why, size, j, options[i].takes);
		return -1;
	}
	if (j->more && (!(j->given & TAKES_BURST) || j->burst < 2)) {
		snprintf(why, size,
			 "%smore: with %sburst N alone, N from 2, of whose messages it is said",
			 dashes, dashes);
		return -1;
	}
	if (j->burst <= BURST_MAX || j->more || (takes & TAKES_FEW) != TAKES_FEW)
		return 0;
	snprintf(why, size, "%sburst %llu: at most %d messages, puts or gets go at once", dashes,
		 (unsigned long long)j->burst, BURST_MAX);
	return -1;
}

int job_check(const struct job *job, char *why, size_t size)
{
	return check_given(takes_of(job->test), job->test->name, job, true, why, size);
}

int given_check(const struct command *c, char *why, size_t size)
{
	char all[NAMES_MAX], *rest, *name;
	unsigned takes = 0;

	snprintf(all, sizeof(all), "%s", c->names);
	for (name = strtok_r(all, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		takes |= takes_here(test_find(name), &c->job);
	if (c->setup.cpus > (takes & TAKES_MEMBERS && c->job.members > 2 ? c->job.members : 2)) {
		snprintf(why, size, "-c: %u CPUs for %s; more than two are for --members",
			 c->setup.cpus, c->names);
		return -1;
	}
	return check_given(takes, c->names, &c->job, false, why, size);
}
