/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Receivers that lie about a message announced to them: shares out of bounds, that shrink, or of a
 * turn that is over; its end before it was begun. The sender ends the channel, and its send with
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"

#define LENGTH 200000

static unsigned char bytes[LENGTH];

/* ---- who takes ------------------------------------------------------------------------------ */

static void await_announcement(struct raw_peer *p)
{
	struct ring_packet packet;
	int rc;

	do {
		while ((rc = ring_peek(&p->r, &packet)) == 0)
			;
		CHECK(rc == 1, "the ring is broken");
		ring_release(&p->r, &packet);
	} while (packet.kind != WIRE_FETCH);
}

static void take(struct raw_peer *p, uint32_t turn, uint64_t limit, uint64_t upto)
{
	struct wire_take t = {
		.limit = LITTLE_64(limit),
		.upto = LITTLE_64(upto),
		.turn = LITTLE_32(turn),
	};

	raw_post(p, WIRE_FETCH_TAKE, 1, 0, 0, &t, sizeof(t));
}

static void more_than_there_is(struct raw_peer *p)
{
	take(p, 1, LENGTH + 1, 0);
}

static void more_than_is_wanted(struct raw_peer *p)
{
	take(p, 1, 4096, 4097);
}

static void without_a_turn(struct raw_peer *p)
{
	take(p, 0, LENGTH, 0);
}

static void going_back(struct raw_peer *p)
{
	take(p, 1, LENGTH, 8192);
	take(p, 1, LENGTH, 8191);
}

static void of_another_limit(struct raw_peer *p)
{
	take(p, 1, LENGTH, 4096);
	take(p, 1, LENGTH - 1, 8192);
}

static void of_a_past_turn(struct raw_peer *p)
{
	take(p, 2, LENGTH, 4096);
	take(p, 1, LENGTH, 8192);
}

static void half(struct raw_peer *p)
{
	raw_post(p, WIRE_FETCH_TAKE, 1, 0, 0, bytes, sizeof(struct wire_take) - 1);
}

static void introduced_by_noise(struct raw_peer *p)
{
	unsigned char t[sizeof(struct wire_take) + 40];

	memset(t, 0x77, sizeof(t));
	raw_post(p, WIRE_FETCH_TAKE, 1, 0, 0, t, sizeof(t));
}

static void end_with_bytes(struct raw_peer *p)
{
	take(p, 1, LENGTH, LENGTH);
	raw_post(p, WIRE_FETCH_DONE, 1, 0, 0, bytes, 1);
}

static const struct offence offences[] = {
	{"R5", "more than there is", more_than_there_is, "share of a message", 0},
	{"R5", "more than is wanted", more_than_is_wanted, "share of a message", 0},
	{"R8", "a share without a turn", without_a_turn, "share of a message", 0},
	{"R8", "a share that shrinks", going_back, "share of a message", 0},
	{"R8", "a share of another limit", of_another_limit, "share of a message", 0},
	{"R8", "a share of a past turn", of_a_past_turn, "share of a message", 0},
	{"R5", "half a share", half, "taking of a message", 0},
	{"R5", "an introduction of noise", introduced_by_noise, "taking of a message", 0},
	{"R5", "an end with bytes", end_with_bytes, "end of fetching", 0},
};

static void come(struct raw_peer *p, const char *address)
{
	raw_begin(p, raw_connect(address));
	p->hello.features = LITTLE_64(WIRE_FEATURES | WIRE_FEATURE_ATTACH);
	raw_steps(p, RAW_HELLO, RAW_UP);
	await_announcement(p);
}

/* ---- who sends ------------------------------------------------------------------------------ */

static slmpm_req sent; /* to the peer that is looked at now */

static int64_t inspect(slmpm_peer peer, const struct offence *o)
{
	const struct slmpm_iov iov = {bytes, LENGTH};

	(void)o;
	if (!sent.id)
		OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &sent));
	return slmpm_recv(peer, 2, NULL, 0, NULL, 5);
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_done done;

	(void)peer;
	EXPECT(slmpm_test(&sent, &done), 1);
	CHECK(done.status == -SLMPM_EPROTO, "%s: its send ended with %d", o->name, done.status);
	sent.id = 0;
}

int main(void)
{
	static const struct trial trial = {.come = come, .inspect = inspect, .see = see};
	struct victim v;

	setenv("SLMPM_FETCH", "always", 1);
	setenv("SLMPM_ATTACH", "y", 1);
	setenv("SLMPM_FETCH_MIN", "1", 1);
	setenv("SLMPM_EAGER_MAX", "32k", 1);
	victim_begin(&v, "hostile-take");
	SURVIVE(&v, &trial, offences);
	victim_end(&v);
	return 0;
}
