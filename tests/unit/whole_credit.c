/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message of a stream that lacks credit takes what has come of it, and no more packets at once
 * than a pass does: a peer that sends credit of nothing, again and again, keeps no try from ending.
 */
#include "slmpm/link/link.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LENGTH ((size_t)64 << 10)
#define MOST   100
#define FLOOD  4096 /* a try makes up to 64 passes, each for 16 */

static unsigned char bytes[LENGTH];

static int try_one(slmpm_peer peer)
{
	return slmpm_send(peer, 1, bytes, LENGTH, 0);
}

static void give_nothing(struct endpoint *ep)
{
	struct packet credit = {.opcode = WIRE_CREDIT,
				.extent = ep->returned_charge & WIRE_LENGTH_MASK};

	EXPECT(link_post_request(ep, &credit, NULL), 1);
}

int main(void)
{
	const uint64_t *received;
	struct endpoint *other;
	uint64_t before;
	slmpm_peer a, b;
	slmpm_ctx handle;
	int rc = 0, taken;

	settings_one_link("shm");
	settings_set("SLMPM_FETCH", "never");
	OK(slmpm_open(&handle, NULL));
	actor_pair(handle, &a, &b);
	received = &endpoint_of(a)->stats->received_packets;
	other = endpoint_of(b);
	for (int i = 0; i < MOST && rc == 0; i++)
		rc = try_one(a);
	EXPECT(rc, -SLMPM_EAGAIN);
	for (int i = 0; i < FLOOD; i++)
		give_nothing(other);
	before = *received;
	EXPECT(try_one(a), -SLMPM_EAGAIN);
	taken = (int)(*received - before);
	CHECK(taken > 0 && taken <= FLOOD / 2, "%d packets at once", taken);
	OK(slmpm_shut(handle, PATIENCE));
	return 0;
}
