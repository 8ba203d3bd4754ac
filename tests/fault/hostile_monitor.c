/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Echoes that nobody sent, and means of a shape that none has: each ends the channel by its name.
 * What a stranger says of a job that it does not belong to is heard, and counts for nothing.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"

static unsigned char noise[64];

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

static void means_of_no_part(struct raw_peer *p)
{
	raw_post(p, WIRE_MEANS, 2 + SLMPM_PROTOCOLS, 0, 0, noise, 60);
}

static void means_far_off(struct raw_peer *p)
{
	raw_post(p, WIRE_MEANS, UINT64_MAX, 0, 0, noise, 60);
}

static void means_cut(struct raw_peer *p)
{
	raw_post(p, WIRE_MEANS, 0, 0, 0, noise, 23);
}

static void means_too_long(struct raw_peer *p)
{
	raw_post(p, WIRE_MEANS, 2, 0, 0, noise, 64);
}

/* All parts, and then something that ends it: none of them did. */
static void means_of_a_stranger(struct raw_peer *p)
{
	memset(noise, 0xff, sizeof(noise));
	raw_post(p, WIRE_MEANS, 0, 0, 0, noise, 24);
	raw_post(p, WIRE_MEANS, 1, 0, 0, noise, 64);
	for (uint64_t part = 2; part < 2 + SLMPM_PROTOCOLS; part++)
		raw_post(p, WIRE_MEANS, part, 0, 0, noise, 60);
	answer_to_nothing(p);
}

static const struct offence offences[] = {
	{"R5", "an echo with bytes", echo_with_bytes, "echo", 0},
	{"R8", "an answer to no echo", answer_to_nothing, "echo", 0},
	{"R8", "an answer to echo 0", answer_zero, "echo", 0},
	{"R5", "means of no part", means_of_no_part, "means", 0},
	{"R5", "means far from any", means_far_off, "means", 0},
	{"R5", "means cut short", means_cut, "means", 0},
	{"R5", "means too long", means_too_long, "means", 0},
	{"R9", "means of a stranger", means_of_a_stranger, "echo", 0},
};

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_means means;

	(void)peer;
	OK(slmpm_means(&means, sizeof(means)));
	CHECK(means.instances == 1 && means.latency_ns[0][0] != UINT32_MAX, "%s: %u instances",
	      o->name, means.instances);
}

int main(void)
{
	static const struct trial trial = {.see = see};
	struct victim v;

	victim_begin(&v, "hostile-monitor");
	offence_survive(&v, &trial, offences, sizeof(offences) / sizeof(*offences));
	victim_end(&v);
	return 0;
}
