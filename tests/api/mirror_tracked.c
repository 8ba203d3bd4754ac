/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 90 */
/* Plain stores in mirrors that are tracked: found by each way and told to the other end. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/mirror_ends.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

static void any_stores(unsigned char *memory, struct rng *g, int n)
{
	for (int i = 0; i < n; i++) {
		uint32_t len = 1 + rng_below(g, 300),
			 at = rng_below(g, (uint32_t)(ends.bytes - len));

		memset(memory + at, (int)rng_below(g, 256), len);
	}
}

static void tracked(uint32_t how, const char *name)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	struct rng g = {how};
	unsigned idle = 0;

	if (slmpm_mirror_track_works((int)how) < 0) {
		REFUSED(slmpm_mirror_create(ends.ctx, ends.leads, ends.bytes, &o, &ends.leader),
			SLMPM_ENOTSUP, "tracked by");
		return;
	}
	ends_mirror(&o, BOTH);
	ends_same("tracked, filled");
	CHECK(!name || !strcmp(ends_info(ends.leader, ends.near).track, name), "tracked by %s",
	      ends_info(ends.leader, ends.near).track);
	EXPECT(slmpm_mirror_scan(ends.leader), 0);
	ends.leads[100] ^= 1;
	ends.leads[ends.bytes - 1] ^= 1;
	EXPECT(slmpm_mirror_scan(ends.leader), 2);
	EXPECT(slmpm_mirror_scan(ends.leader), 0);
	ends.leads[100] = ends.leads[100];
	for (int round = 0; round < 10; round++) {
		any_stores(ends.leads, &g, 20);
		ends_same("plain stores");
		any_stores(ends.leads, &g, 3);
		OK(slmpm_mirror_flush(ends.leader, PATIENCE));
		any_stores(ends.follows, &g, 3);
		OK(slmpm_mirror_flush(ends.follower, PATIENCE));
		ends_settle_both();
		ends_same("plain stores of both");
	}
	ends.leads[4711] ^= 0x55; /* progress alone finds it, in its time */
	while (ends.follows[4711] != ends.leads[4711])
		if (!slmpm_progress(ends.ctx))
			actor_idle(ends.ctx, &idle);
	ends_unmirror();
}

/* A word of which some bytes have changed goes as a whole, where the peer changes none of it. */
static void tracked_words(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	uint64_t *word = (uint64_t *)(void *)(ends.leads + 512);
	struct slmpm_mirror_info before;

	ends_mirror(&o, 0);
	*word = 0xffff;
	ends_same("a word");
	before = ends_info(ends.leader, ends.near);
	*word += 1;
	EXPECT(slmpm_mirror_scan(ends.leader), 3);
	EXPECT(ends_info(ends.leader, ends.near).waiting, sizeof(*word));
	ends_same("its next value");
	EXPECT(ends_info(ends.leader, ends.near).sent_bytes - before.sent_bytes, sizeof(*word));
	ends_unmirror();
}

static int stay(void *socket)
{
	char byte = 0;
	int fd = *(int *)socket;

	return write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1;
}

/* A child that goes on does not keep its parent's pages watched. */
static void tracked_forked(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	slmpm_mirror m;
	int sockets[2];
	pid_t pid;
	char byte;

	if (slmpm_mirror_track_works((int)how) < 0)
		return;
	m = ends_new(ends.leads, ends.bytes, &o);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = child_start(stay, &sockets[0], 20);
	CHECK(read(sockets[1], &byte, 1) == 1, "the child is not there");
	OK(slmpm_mirror_destroy(m));
	m = ends_new(ends.leads, ends.bytes, &o);
	OK(slmpm_mirror_destroy(m));
	CHECK(write(sockets[1], &byte, 1) == 1, "the child has gone");
	OK(child_wait(pid));
	close(sockets[0]);
	close(sockets[1]);
}

static int under(const struct setting *s)
{
	ends_open(s);
	tracked(SLMPM_TRACK_AUTO, NULL);
	tracked(SLMPM_TRACK_PAGEMAP, "pagemap");
	tracked(SLMPM_TRACK_FAULT, "fault");
	tracked(SLMPM_TRACK_SIGNAL, "signal");
	tracked(SLMPM_TRACK_TWIN, "twin");
	tracked_words(SLMPM_TRACK_AUTO);
	tracked_words(SLMPM_TRACK_TWIN);
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++)
		tracked_forked(how);
	return ends_close();
}

int main(void)
{
	return settings_each(under, 20);
}
