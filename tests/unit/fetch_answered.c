/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is learned of messages in a row is apart from what is learned of one that follows a message
 * of the peer's.
 */
#include "slmpm/message/fetch.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LENGTH ((size_t)128 << 10)

static unsigned char bytes[LENGTH], got[LENGTH];

static void carry(slmpm_peer from, slmpm_peer to, size_t length)
{
	OK(slmpm_send(from, 1, bytes, length, PATIENCE));
	EXPECT(slmpm_recv(to, 1, got, length, NULL, PATIENCE), length);
}

int main(void)
{
	const struct choice *row, *answer;
	struct endpoint *ep;
	slmpm_peer a, b;
	slmpm_ctx handle;

	settings_one_link("shm");
	settings_set("SLMPM_ATTACH", "y");
	OK(slmpm_open(&handle, NULL));
	actor_pair(handle, &a, &b);
	ep = endpoint_of(a);
	CHECK(ep->fetch_min < LENGTH, "nothing is fetched");
	carry(a, b, LENGTH);
	row = fetch_choice(ep, LENGTH);
	carry(a, b, LENGTH);
	CHECK(fetch_choice(ep, LENGTH) == row, "in a row");
	carry(b, a, 8);
	answer = fetch_choice(ep, LENGTH);
	CHECK(answer != row, "behind a message of the peer's");
	carry(a, b, LENGTH);
	CHECK(fetch_choice(ep, LENGTH) == row, "in a row again");
	carry(a, b, LENGTH); /* what the last one cost is known behind it */
	CHECK(answer->cost[0] || answer->cost[1], "it was not learned from");
	OK(slmpm_shut(handle, PATIENCE));
	return 0;
}
