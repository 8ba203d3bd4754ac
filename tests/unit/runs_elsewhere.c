/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another has run on this processor, so messages are not fetched for a while. A side that only
 * sends does not wait, and yet that while has its end: by the packets that go out.
 */
#include "slmpm/endpoint.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LENGTH  ((size_t)128 << 10)
#define PACKETS 8 /* at least, of a message */

static unsigned char bytes[LENGTH], got[LENGTH];

int main(void)
{
	struct endpoint *ep;
	slmpm_peer a, b;
	slmpm_ctx handle;

	settings_one_link("shm");
	settings_set("SLMPM_ATTACH", "y");
	settings_set("SLMPM_ENGINE", "none");
	OK(slmpm_open(&handle, NULL));
	actor_pair(handle, &a, &b);
	ep = endpoint_of(a);
	CHECK(ep->fetch_min < LENGTH, "nothing is fetched");
	actor_fill(bytes, 1, LENGTH);
	for (uint32_t left = 2 * PACKETS; left; left -= PACKETS) {
		ep->ctx->oversubscribed = left;
		OK(slmpm_send(a, 1, bytes, LENGTH, PATIENCE));
		CHECK(ep->ctx->oversubscribed <= left - PACKETS, "%u of %u are left",
		      ep->ctx->oversubscribed, left);
		EXPECT(slmpm_recv(b, 1, got, LENGTH, NULL, PATIENCE), LENGTH);
		CHECK(actor_filled(got, 1, LENGTH), "a message is torn");
	}
	OK(slmpm_shut(handle, PATIENCE));
	return 0;
}
