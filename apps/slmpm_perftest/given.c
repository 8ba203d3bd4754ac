/* SPDX-License-Identifier: BSD-3-Clause */
/* Which options of a command line its tests use. */
#include <string.h>

#include "apps/slmpm_perftest/command.h"

static const struct {
	enum takes takes;
	const char *option;
} options[] = {
	{TAKES_BURST, "--burst"},     {TAKES_MORE, "--more"},           {TAKES_IDLE, "--idle-us"},
	{TAKES_STEP, "--step"},       {TAKES_WORK, "--work-us"},        {TAKES_TRACK, "--track"},
	{TAKES_MEMBERS, "--members"}, {TAKES_SHARED, "--group-memory"}, {TAKES_MODES, "--modes"},
	{TAKES_TOUCH, "--touch"},     {TAKES_MODE, "--mode"},           {TAKES_TO, "--to"},
	{TAKES_HEADER, "--header"},   {TAKES_WAIT, "--wait"},
};

static unsigned takes_of(const struct test *t)
{
	unsigned takes = t->takes;

	if (t->by != BY_NOTHING || t->kind == KIND_MAILBOX)
		takes |= TAKES_TO | TAKES_HEADER | TAKES_WAIT;
	switch (t->by) {
	case BY_MESSAGE:
	case BY_LOAN:
	case BY_AM:
	case BY_NOTHING: return takes;
	default: return takes | TAKES_MODE;
	}
}

static unsigned taken(const char *list)
{
	char all[NAMES_MAX], *rest, *name;
	unsigned takes = 0;

	snprintf(all, sizeof(all), "%s", list);
	for (name = strtok_r(all, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		takes |= takes_of(test_find(name));
	return takes;
}

static void list_takers(char *why, size_t size, enum takes takes)
{
	for (const struct test *t = tests; t->name; t++)
		if (takes_of(t) & takes && strlen(why) + strlen(t->name) + 2 < size)
			snprintf(why + strlen(why), size - strlen(why), " %s", t->name);
}

int given_check(const struct command *c, char *why, size_t size)
{
	const unsigned takes = taken(c->names), unused = c->given & ~takes;

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!(unused & options[i].takes))
			continue;
		snprintf(why, size, "%s: %s does not use it; these do:", options[i].option,
			 c->names);
		list_takers(why, size, options[i].takes);
		return -1;
	}
	if (c->job.more && !(c->given & TAKES_BURST)) {
		snprintf(why, size, "--more: with --burst N alone, of whose messages it is said");
		return -1;
	}
	if (c->job.burst <= BURST_MAX || c->job.more || (takes & TAKES_FEW) != TAKES_FEW)
		return 0;
	snprintf(why, size, "--burst %llu: at most %d messages, puts or gets go at once",
		 (unsigned long long)c->job.burst, BURST_MAX);
	return -1;
}
