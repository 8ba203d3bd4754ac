/* SPDX-License-Identifier: BSD-3-Clause */
/* Two mirrors in one context, joined, compared and parted. */
#include "tests/lib/mirror_ends.h"

#include <string.h>

struct mirror_ends ends;

static _Alignas(65536) uint64_t memory[4][ENDS_SIZE / 8]; /* tracked ones share no page */

void ends_open(const struct setting *s)
{
	for (int i = 0; i < 4; i++)
		ends.room[i] = memory[i];
	ends.leads = (unsigned char *)memory[0];
	ends.follows = (unsigned char *)memory[1];
	ends.bytes = s->bytes < ENDS_SIZE ? 16384 : ENDS_SIZE;
	OK(slmpm_open(&ends.ctx, NULL));
	actor_pair(ends.ctx, &ends.near, &ends.far);
}

int ends_close(void)
{
	return slmpm_shut(ends.ctx, PATIENCE) == 0 ? 0 : 1;
}

slmpm_mirror ends_new(void *base, size_t n, const struct slmpm_mirror_options *o)
{
	slmpm_mirror m;

	OK(slmpm_mirror_create(ends.ctx, base, n, o, &m));
	return m;
}

struct slmpm_mirror_info ends_info(slmpm_mirror m, slmpm_peer peer)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	OK(slmpm_mirror_query(m, peer, &info));
	return info;
}

/* One that was detached just before has its end on the way. */
void ends_ask(slmpm_mirror m, slmpm_peer peer, uint32_t tag, uint32_t how)
{
	int rc;

	while ((rc = slmpm_mirror_attach(m, peer, tag, how, 0)) == -SLMPM_EBUSY)
		(void)slmpm_progress(ends.ctx);
	EXPECT(rc, -SLMPM_EAGAIN);
}

void ends_join(slmpm_mirror a, slmpm_peer to_b, slmpm_mirror b, slmpm_peer to_a, uint32_t tag,
	       uint32_t both)
{
	ends_ask(a, to_b, tag, LEADS | both);
	OK(slmpm_mirror_attach(b, to_a, tag, FOLLOWS | both, PATIENCE));
	OK(slmpm_mirror_attach(a, to_b, tag, LEADS | both, PATIENCE));
}

void ends_mirror(const struct slmpm_mirror_options *o, uint32_t both)
{
	actor_fill(ends.leads, 1, ends.bytes);
	memset(ends.follows, 0, ends.bytes);
	ends.leader = ends_new(ends.leads, ends.bytes, o);
	ends.follower = ends_new(ends.follows, ends.bytes, o);
	ends_join(ends.leader, ends.near, ends.follower, ends.far, 7, both);
}

void ends_unmirror(void)
{
	OK(slmpm_mirror_destroy(ends.leader));
	OK(slmpm_mirror_destroy(ends.follower));
}

/* What FROM has sent is all at TO. */
void ends_settle(slmpm_mirror from, slmpm_peer to, slmpm_mirror at, slmpm_peer peer)
{
	OK(slmpm_mirror_flush(from, PATIENCE));
	for (unsigned idle = 0; ends_info(at, peer).sequence < ends_info(from, to).sent;) {
		if (slmpm_progress(ends.ctx))
			idle = 0;
		else
			actor_idle(ends.ctx, &idle);
	}
}

void ends_same(const char *what)
{
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	for (size_t i = 0; i < ends.bytes; i++)
		CHECK(ends.leads[i] == ends.follows[i], "%s: byte %zu is %u, not %u", what, i,
		      ends.follows[i], ends.leads[i]);
}

void ends_settle_both(void)
{
	for (int i = 0; i < 2; i++) {
		ends_settle(ends.follower, ends.far, ends.leader, ends.near);
		ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	}
}
