/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * How a Write by request is cut: all packets but the last carry exactly the packet maximum, and
 * what says where it goes takes none of that. With 4096: 0 to 4096 bytes go as an Only, up to 8192
 * as First and Last, 1 MiB as First, 254 Middles and Last.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE   ((size_t)1 << 20)
#define PACKET 4096

static slmpm_ctx ctx;
static slmpm_peer near, far;
static slmpm_rmem rmem;
static unsigned char *base, bytes[SIZE];

static uint64_t put(size_t n)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};
	uint64_t before;

	actor_settle(near, far);
	before = actor_stats(far).sent_packets;
	actor_fill(bytes, n, n);
	OK(slmpm_put(rmem, 0, bytes, n, &how, NULL));
	CHECK(actor_filled(base, n, n), "%zu bytes are damaged", n);
	return actor_stats(far).sent_packets - before;
}

static int body(void *arg)
{
	static const size_t edges[] = {
		0,        1,          PACKET - 41,     PACKET - 40, PACKET - 1,
		PACKET,   PACKET + 1, 2 * PACKET - 40, 2 * PACKET,  2 * PACKET + 1,
		SIZE - 1, SIZE};
	const char *const *set = arg;
	slmpm_mem mem;
	void *at;

	setenv("SLMPM_PACKET_MAX", "4k", 1);
	setenv("SLMPM_FABRIC", set[0], 1);
	setenv("SLMPM_RMA", "ring", 1);
	setenv("SLMPM_CHECK", set[1], 1);
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &near, &far);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &at));
	base = at;
	rmem = way_reach(mem, near, far, SLMPM_READ_WRITE);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		size_t n = edges[i], want = n ? (n + PACKET - 1) / PACKET : 1;

		EXPECT(put(n), want);
	}
	EXPECT(put(SIZE), 1 + 254 + 1);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static const char *const kinds[][2] = {
		{"shm", "0"}, {"shm", "1"}, {"tcp", "0"}, {"tcp", "1"}};
	int failed = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		int status =
			child_run(body, (void *)(uintptr_t)kinds[i], 10 * (unsigned)actor_slow());

		printf("%s, checksums %s: %s\n", kinds[i][0], kinds[i][1],
		       status ? "FAILED" : "ok");
		failed |= status;
	}
	return failed ? 1 : 0;
}
