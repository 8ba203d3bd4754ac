/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that follows a tracked mirror is closed as soon as it has been sent what was stored
 * before. */
#include <string.h>

#include "tests/lib/mirror_ends.h"

static void by(uint32_t how)
{
	static const struct setting small = {.name = "small"};
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	int64_t until = actor_now_ms() + PATIENCE;
	slmpm_mirror left;

	ends_open(&small);
	ends.leader = ends_new(ends.leads, ends.bytes, &o);
	ends.follower = ends_new(ends.follows, ends.bytes, NULL);
	ends_join(ends.leader, ends.near, ends.follower, ends.far, 1, 0);
	left = ends_new(ends.room[2], ENDS_SIZE, NULL);
	ends_ask(left, ends.near, 2, LEADS);
	OK(slmpm_mirror_destroy(left)); /* and the peer has not answered that yet */
	for (size_t i = 0; i < ends.bytes; i++)
		ends.leads[i] = (unsigned char)(how + i);
	OK(slmpm_close(ends.near, PATIENCE)); /* ETIMEOUT: it still waits for something */
	while (memcmp(ends.leads, ends.follows, ends.bytes) != 0) {
		CHECK(actor_now_ms() < until, "what was stored last has not been sent");
		(void)slmpm_progress(ends.ctx);
	}
	(void)slmpm_close(ends.far, PATIENCE);
	OK(slmpm_mirror_destroy(ends.leader));
	OK(slmpm_mirror_destroy(ends.follower));
	EXPECT(ends_close(), 0);
}

int main(void)
{
	by(SLMPM_TRACK_TWIN);
	by(SLMPM_TRACK_AUTO);
	return 0;
}
