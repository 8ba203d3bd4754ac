/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another has run on this processor, so messages are not fetched for a while. A side that only
 * sends does not wait, and yet that while has its end: by what the peer reads, not by what finds
 * room.
 */
#include "slmpm/choice/pick.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LENGTH ((size_t)128 << 10)
#define MOST   64 /* messages: longer than any ring */

static unsigned char bytes[LENGTH], got[LENGTH];

static void carry(slmpm_peer from, slmpm_peer to)
{
	OK(slmpm_send(from, 1, bytes, LENGTH, PATIENCE));
	EXPECT(slmpm_recv(to, 1, got, LENGTH, NULL, PATIENCE), LENGTH);
}

static void share(struct endpoint *ep)
{
	ep->ctx->oversubscribed = 1000000; /* no yield of the test's brings that down */
	ep->ctx->switches++;
	CHECK(pick_is_shared(ep), "one that is switched is not shared");
}

int main(void)
{
	struct endpoint *ep;
	slmpm_peer a, b;
	slmpm_ctx handle;
	int n = 0;

	settings_one_link("shm");
	settings_set("SLMPM_ATTACH", "y");
	settings_set("SLMPM_ENGINE", "none");
	OK(slmpm_open(&handle, NULL));
	actor_pair(handle, &a, &b);
	ep = endpoint_of(a);
	CHECK(ep->fetch_min < LENGTH, "nothing is fetched");
	share(ep);
	OK(slmpm_send(a, 1, bytes, LENGTH, PATIENCE));
	CHECK(pick_is_shared(ep), "bytes that lie unread show that the peer runs");
	EXPECT(slmpm_recv(b, 1, got, LENGTH, NULL, PATIENCE), LENGTH);
	for (; pick_is_shared(ep) && n < MOST; n++)
		carry(a, b);
	CHECK(n > 1 && n < MOST, "shared until %d messages were read", n);
	share(ep); /* again */
	OK(slmpm_shut(handle, PATIENCE));
	return 0;
}
