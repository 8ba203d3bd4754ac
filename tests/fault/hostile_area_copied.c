/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Loans over TCP, whose areas are copied piece by piece: pieces of no area, beyond one, or with a
 * gap, areas that are none, and messages that are ahead of their bytes. Each ends the channel by
 * its name.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/raw_net_trial.h"

#define LOANS  (1u << 20)
#define AREA   65536u
#define PACKET 100000u /* the longest, as agreed: it lands */
#define BYTES  "bytes of a loan"
#define OF     "area of a loan"

static unsigned char noise[PACKET];

static void say(uint8_t kind, uint64_t seq, uint64_t extent, const void *data, uint32_t length)
{
	const uint64_t head[3] = {seq, wire_route(1, 0), wire_extent(extent, 0)};

	raw_net_post(&net, kind, head, data, length);
}

static void area(uint64_t id, uint64_t size)
{
	say(WIRE_LOAN_AREA, id, size, "", 0);
}

static void piece(uint64_t id, uint64_t offset, uint32_t length)
{
	say(WIRE_LOAN_BYTES, id, offset, noise, length);
}

/* Of the area 0. */
static void loan(uint8_t kind, uint64_t seq, uint64_t ready)
{
	const struct wire_loan l = {.ready = LITTLE_64(ready), .capacity = LITTLE_64(AREA)};

	say(kind, seq, 0, &l, sizeof(l));
}

#define OFFENCE(name, what)                                                                        \
	static void name(struct raw_peer *p)                                                       \
	{                                                                                          \
		(void)p;                                                                           \
		what;                                                                              \
	}

OFFENCE(of_no_area, piece(9, 0, 64))
OFFENCE(of_a_far_area, (area(0, AREA), piece(UINT64_C(1) << 32, 0, 64)))
OFFENCE(beyond, (area(0, AREA), piece(0, 0, AREA - 32), piece(0, AREA - 32, 64)))
OFFENCE(beyond_and_long, (area(0, AREA), piece(0, 0, PACKET)))
OFFENCE(behind, (area(0, AREA), piece(0, 0, AREA), piece(0, AREA, 64)))
OFFENCE(with_a_gap, (area(0, AREA), piece(0, 64, 64)))
OFFENCE(again, (area(0, AREA), piece(0, 0, 64), piece(0, 0, 64)))
OFFENCE(of_no_bytes, (area(0, AREA), piece(0, 0, 0)))
OFFENCE(without_room, area(0, 0))
OFFENCE(too_large, area(0, 2 * LOANS))
OFFENCE(too_many, (area(0, LOANS / 2), area(1, LOANS / 2), area(2, AREA)))
OFFENCE(area_again, (area(4, AREA), area(4, AREA)))
OFFENCE(too_far, area(UINT64_C(1) << 32, AREA))
OFFENCE(with_bytes, say(WIRE_LOAN_AREA, 0, AREA, noise, 8))
OFFENCE(ahead, (area(0, AREA), piece(0, 0, 100), loan(WIRE_LOAN, 2, 200)))
OFFENCE(more_ahead,
	(area(0, AREA), piece(0, 0, 100), loan(WIRE_LOAN, 2, 100), loan(WIRE_LOAN_MORE, 2, 200)))

/* clang-format off */
static const struct offence offences[] = {
	{"R8", "bytes of no area", of_no_area, BYTES, 0},
	{"R8", "bytes of an area far away", of_a_far_area, BYTES, 0},
	{"R5", "bytes beyond it", beyond, BYTES, 0},
	{"R5", "bytes beyond it, at once", beyond_and_long, BYTES, 0},
	{"R5", "bytes behind it", behind, BYTES, 0},
	{"R5", "bytes with a gap", with_a_gap, BYTES, 0},
	{"R5", "bytes again", again, BYTES, 0},
	{"R5", "no bytes", of_no_bytes, BYTES, 0},
	{"R5", "an area of no bytes", without_room, OF, 0},
	{"R10", "an area too large", too_large, OF, 0},
	{"R10", "areas too many", too_many, OF, 0},
	{"R10", "an area again", area_again, OF, 0},
	{"R5", "a number too far", too_far, OF, 0},
	{"R5", "an area with bytes", with_bytes, OF, 0},
	{"R5", "a loan ahead of its bytes", ahead, OF, 0},
	{"R5", "more, ahead of its bytes", more_ahead, "continuation of a loan", 0},
};
/* clang-format on */

/* ---- how they meet --------------------------------------------------------------------------- */

static void come(struct raw_peer *p, const char *at)
{
	net_trial_connect(p, at, 1);
	net.control.hello.packet_max = LITTLE_64(PACKET);
	net_trial_greet();
	raw_net_send(&net, "legal", 5);
}

int main(void)
{
	static const struct trial trial = {
		.come = come, .hear_end = net_trial_hear_end, .leave = net_trial_leave};
	struct victim v;

	net_trial_one_link();
	setenv("SLMPM_LOAN_MAX", "1m", 1);
	victim_open(&v, "tcp:");
	SURVIVE(&v, &trial, offences);
	victim_end(&v);
	return 0;
}
