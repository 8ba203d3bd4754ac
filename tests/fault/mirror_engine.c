/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only: sanitizers have handlers and masks of their own */
/*
 * The library's own thread copies into a mirror that is tracked by signal: the fault is its own,
 * and its page is opened as for any other thread. What has come is the mirror's next change.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/mirror_ends.h"

#define SIZE ((size_t)1 << 20)

static void get_into(slmpm_rmem rmem, const unsigned char *from, size_t at, size_t n)
{
	struct slmpm_done done;
	unsigned idle = 0;
	slmpm_req req;

	OK(slmpm_get(rmem, at, ends.leads + at, n, NULL, &req));
	while (!slmpm_test(&req, &done)) /* who waits would move a part of it himself */
		actor_idle(ends.ctx, &idle);
	EXPECT(done.status, 0);
	EXPECT(done.reason, SLMPM_REASON_SIZE); /* by the thread */
	CHECK(memcmp(ends.leads + at, from + at, n) == 0, "what has been got");
	ends_same("got by the thread");
}

int main(void)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = SLMPM_TRACK_SIGNAL};
	struct slmpm_key key;
	slmpm_peer from, at;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	settings_one_link("shm");
	setenv("SLMPM_ENGINE", "thread", 1);
	setenv("SLMPM_ENGINE_MIN", "4k", 1);
	if (slmpm_mirror_track_works(SLMPM_TRACK_SIGNAL) < 0) {
		puts(slmpm_error_detail());
		return 77;
	}
	ends_open(&(struct setting){.bytes = SIZE});
	actor_pair(ends.ctx, &from, &at);
	OK(slmpm_mem_alloc(ends.ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, from, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(at, &key, &rmem));
	ends_mirror(&o, 0);
	for (unsigned i = 1; i < 6; i++) {
		actor_fill(base, i, SIZE);
		EXPECT(slmpm_mirror_scan(ends.leader), 0); /* its pages are closed again */
		get_into(rmem, base, i * 8192, ends.bytes / 2);
	}
	ends_unmirror();
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(from, PATIENCE));
	OK(slmpm_close(at, PATIENCE));
	return ends_close();
}
