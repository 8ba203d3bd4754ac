/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader's own figures: what has been received counts as read at once, also what is released
 * later. */
#include <string.h>

#include "tests/lib/actor.h"

#define MESSAGES 40

int main(void)
{
	struct slmpm_stats stats;
	slmpm_peer a, b;
	slmpm_ctx ctx;
	uint64_t before;
	char word[8] = "message";

	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	before = actor_stats(b).in_consumed;
	for (int i = 0; i < MESSAGES; i++)
		OK(slmpm_send(a, 1, word, sizeof(word), PATIENCE));
	for (uint64_t i = 1; i <= MESSAGES; i++) {
		EXPECT(slmpm_recv(b, 1, word, sizeof(word), NULL, PATIENCE), sizeof(word));
		OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
		CHECK(stats.in_consumed - before >= i, "%llu segments of %llu messages",
		      (unsigned long long)(stats.in_consumed - before), (unsigned long long)i);
		CHECK(stats.in_unread <= MESSAGES, "%llu unread",
		      (unsigned long long)stats.in_unread);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
