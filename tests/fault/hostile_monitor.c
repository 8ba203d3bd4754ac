/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Echoes that nobody sent, packets that cannot be timed, and means of a shape that none has: each
 * ends the channel by its name.
 * What a stranger says of a job that it does not belong to is heard, and counts for nothing.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"

#define PARTS 24 /* of an aggregate */

static unsigned char noise[72];

static void echo_with_bytes(struct raw_peer *p)
{
	raw_post(p, WIRE_ECHO, 1, 0, 0, noise, 1);
}

static void answer_to_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_ECHO_ANSWER, 1, 0, 0, NULL, 0);
}

static void answer_zero(struct raw_peer *p)
{
	raw_post(p, WIRE_ECHO_ANSWER, 0, 0, 0, NULL, 0);
}

static void answer_to_no_message(struct raw_peer *p)
{
	raw_post(p, WIRE_ECHO_ANSWER, 1, 0, 1, noise, 8);
}

static void answer_of_no_kind(struct raw_peer *p)
{
	raw_post(p, WIRE_ECHO_ANSWER, 1, 0, 2, noise, 8);
}

static void timed_first(struct raw_peer *p)
{
	raw_post(p, WIRE_SEND_FIRST, 1, 0, wire_extent(8000, WIRE_FLAG_TIMED), noise, 64);
}

static void timed_echo(struct raw_peer *p)
{
	raw_post(p, WIRE_ECHO, 1, 0, wire_extent(0, WIRE_FLAG_TIMED), NULL, 0);
}

static void timed_active(struct raw_peer *p)
{
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_ACTIVE | WIRE_FLAG_TIMED, 1, 0, 8, noise, 8);
}

/* As many as it likes, with no word read: one answer is deferred, and that is all. */
static void timed_without_end(struct raw_peer *p)
{
	for (int i = 0; i < 2000; i++)
		raw_post(p, WIRE_SEND_ONLY, ++p->sent, 5, wire_extent(8, WIRE_FLAG_TIMED), noise,
			 8);
	answer_to_nothing(p);
}

static void means_of_no_part(struct raw_peer *p)
{
	raw_post(p, WIRE_AGGREGATE, PARTS, 0, 0, noise, 64);
}

static void means_far_off(struct raw_peer *p)
{
	raw_post(p, WIRE_AGGREGATE, UINT64_MAX, 0, 0, noise, 64);
}

static void means_cut(struct raw_peer *p)
{
	raw_post(p, WIRE_AGGREGATE, 0, 0, 0, noise, 63);
}

static void means_too_long(struct raw_peer *p)
{
	raw_post(p, WIRE_AGGREGATE, 2, 0, 0, noise, 72);
}

static void means_of_more_parts(struct raw_peer *p)
{
	raw_post(p, WIRE_AGGREGATE, UINT64_C(1) << (8 + PARTS), 0, 0, noise, 64);
}

static void means_with_parts_behind(struct raw_peer *p)
{
	raw_post(p, WIRE_AGGREGATE, 2 << 8 | 1, 0, 0, noise, 64);
}

/* All parts, and then something that ends it: none of them did. */
static void means_of_a_stranger(struct raw_peer *p)
{
	memset(noise, 0xff, sizeof(noise));
	for (uint64_t part = 0; part < PARTS; part++)
		raw_post(p, WIRE_AGGREGATE, part, 0, 0, noise, 64);
	answer_to_nothing(p);
}

static const struct offence offences[] = {
	{"R5", "an echo with bytes", echo_with_bytes, "echo", 0},
	{"R8", "an answer to no echo", answer_to_nothing, "echo", 0},
	{"R8", "an answer to echo 0", answer_zero, "echo", 0},
	{"R8", "an answer to no message", answer_to_no_message, "echo", 0},
	{"R5", "an answer of no kind", answer_of_no_kind, "echo", 0},
	{"R5", "a First to be timed", timed_first, "unknown flag", 0},
	{"R5", "an echo to be timed", timed_echo, "unknown flag", 0},
	{"R5", "an active message to be timed", timed_active, "unknown flag", 0},
	{"R9", "messages to be timed without end", timed_without_end, "echo", 0},
	{"R5", "means of no part", means_of_no_part, "aggregate", 0},
	{"R5", "means far from any", means_far_off, "aggregate", 0},
	{"R5", "means cut short", means_cut, "aggregate", 0},
	{"R5", "means too long", means_too_long, "aggregate", 0},
	{"R5", "means of more parts than there are", means_of_more_parts, "aggregate", 0},
	{"R5", "means with others behind a later part", means_with_parts_behind, "aggregate", 0},
	{"R9", "means of a stranger", means_of_a_stranger, "echo", 0},
};

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_aggregate aggregate;

	(void)peer;
	OK(slmpm_aggregate(&aggregate, sizeof(aggregate)));
	CHECK(aggregate.instances == 1 && aggregate.latency_ns[0][0] != UINT32_MAX,
	      "%s: %u instances", o->name, aggregate.instances);
}

int main(void)
{
	static const struct trial trial = {.see = see};
	struct victim v;

	victim_begin(&v, "hostile-monitor");
	SURVIVE(&v, &trial, offences);
	victim_end(&v);
	return 0;
}
