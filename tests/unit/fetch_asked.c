/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender asks for its message back while the end of that lies unread: none was missed. */
#include <unistd.h>

#include "slmpm/message/fetch.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LENGTH  ((size_t)16 << 10) /* so short that the receiver reads it alone */
#define LATE_US 1000               /* longer than the sender waits for a receive */
#define ROUNDS  100

static unsigned char bytes[LENGTH], got[LENGTH];

/* False: others held this process up, so it has asked before, or is over. */
static bool waits_unasked(const struct endpoint *ep)
{
	return fetch_is_out(ep) &&
	       !LIST_ENTRY(ep->rooms->fetch->waiting.next, struct fetch_out, node)->asked;
}

static void asks(struct endpoint *ep)
{
	const struct choice *c =
		LIST_ENTRY(ep->rooms->fetch->waiting.next, struct fetch_out, node)->of;
	uint32_t before = c->missed;

	usleep(LATE_US);
	CHECK(fetch_step(ep) > 0 && !fetch_is_out(ep), "it did not ask");
	CHECK(c->missed <= before, "its receiver has missed it");
}

int main(void)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_iov iov = {bytes, LENGTH};
	struct slmpm_done done;
	bool asked = false;
	slmpm_peer a, b;
	slmpm_ctx handle;
	slmpm_req req;

	settings_one_link("shm");
	settings_set("SLMPM_ATTACH", "y");
	settings_set("SLMPM_ENGINE", "none");
	settings_set("SLMPM_FETCH", "always");
	settings_set("SLMPM_FETCH_MIN", "1k");
	OK(slmpm_open(&handle, NULL));
	actor_pair(handle, &a, &b);
	for (unsigned i = 0; i < ROUNDS && !asked; i++) {
		actor_fill(bytes, i, LENGTH);
		OK(slmpm_sendv(a, 1, &iov, 1, &how, &req));
		EXPECT(slmpm_recv(b, 1, got, LENGTH, NULL, PATIENCE), LENGTH);
		CHECK(actor_filled(got, i, LENGTH), "a message is torn");
		asked = waits_unasked(endpoint_of(a));
		if (asked)
			asks(endpoint_of(a));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		EXPECT(done.status, 0);
	}
	if (!asked && !endpoint_of(b)->rooms->fetch->peer.ops)
		test_skip("another process's memory is not read here");
	CHECK(asked, "no end lay unread");
	OK(slmpm_shut(handle, PATIENCE));
	return 0;
}
