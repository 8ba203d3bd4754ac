/* SPDX-License-Identifier: BSD-3-Clause */
/* Which options of a command line the tests use, each of which is known to some of them alone. */
#include "apps/slmpm_perftest/command.h"

#include <string.h>

static bool is_stream_of_messages(const struct test *t)
{
	return t->loop == loop_bursts || t->loop == loop_slow_reader || t->loop == loop_tide ||
	       t->loop == loop_duplex;
}

/* At most BURST_MAX. */
static bool goes_at_once(const struct test *t)
{
	return is_stream_of_messages(t) || t->loop == loop_put_stream || t->loop == loop_get_stream;
}

static bool goes_in_bursts(const struct test *t)
{
	return goes_at_once(t) || t->loop == loop_am_stream || t->loop == loop_mirror_stream ||
	       t->kind == KIND_PAUSE;
}

static bool is_idle(const struct test *t)
{
	return t->loop == loop_send_lat || t->kind == KIND_PAUSE;
}

static bool is_loan(const struct test *t)
{
	return t->by == BY_LOAN;
}

static bool computes(const struct test *t)
{
	return t->loop == loop_slow_reader || t->loop == loop_tide;
}

static bool is_mirror(const struct test *t)
{
	return t->by == BY_MIRROR;
}

static bool says_more(const struct test *t)
{
	return t->loop == loop_bursts;
}

static bool is_in_group(const struct test *t)
{
	return t->by == BY_GROUP || t->loop == loop_offload;
}

static bool is_load(const struct test *t)
{
	return t->loop == loop_mixed || t->loop == loop_slow_reader || t->loop == loop_tide ||
	       t->loop == loop_duplex;
}

static bool has_bytes_to_touch(const struct test *t)
{
	return t->by == BY_LOAN || t->by == BY_FIFO || t->by == BY_GROUP || t->by == BY_AM ||
	       t->loop == loop_wq_pipe || t->loop == loop_mixed || t->loop == loop_send_lat ||
	       is_stream_of_messages(t) || t->loop == loop_put_lat || t->loop == loop_put_stream ||
	       t->loop == loop_get_lat || t->loop == loop_get_stream ||
	       t->loop == loop_mirror_lat || t->loop == loop_copy;
}

static const struct {
	enum given given;
	const char *option;
	bool (*takes)(const struct test *t);
} takers[] = {
	{GIVEN_BURST, "--burst", goes_in_bursts},  {GIVEN_MORE, "--more", says_more},
	{GIVEN_IDLE, "--idle-us", is_idle},        {GIVEN_STEP, "--step", is_loan},
	{GIVEN_WORK, "--work-us", computes},       {GIVEN_TRACK, "--track", is_mirror},
	{GIVEN_MEMBERS, "--members", is_in_group}, {GIVEN_SHARED, "--group-memory", is_in_group},
	{GIVEN_MODES, "--modes", is_load},         {GIVEN_TOUCH, "--touch", has_bytes_to_touch},
};

static bool any_takes(const char *names, bool (*takes)(const struct test *t))
{
	char all[NAMES_MAX], *rest, *name;

	snprintf(all, sizeof(all), "%s", names);
	for (name = strtok_r(all, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (takes(test_find(name)))
			return true;
	return false;
}

static void list_takers(char *why, size_t size, bool (*takes)(const struct test *t))
{
	for (const struct test *t = tests; t->name; t++)
		if (takes(t) && strlen(why) + strlen(t->name) + 2 < size)
			snprintf(why + strlen(why), size - strlen(why), " %s", t->name);
}

/* Of more at once some tests do fewer. */
static bool is_too_many(const struct command *c)
{
	return c->job.burst > BURST_MAX && !c->job.more && any_takes(c->names, goes_at_once);
}

int given_check(const struct command *c, char *why, size_t size)
{
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++) {
		if (!(c->given & 1u << takers[i].given) || any_takes(c->names, takers[i].takes))
			continue;
		snprintf(why, size, "%s: %s does not use it; these do:", takers[i].option,
			 c->names);
		list_takers(why, size, takers[i].takes);
		return -1;
	}
	if (!is_too_many(c))
		return 0;
	snprintf(why, size, "--burst %llu: at most %d messages, puts or gets go at once",
		 (unsigned long long)c->job.burst, BURST_MAX);
	return -1;
}
