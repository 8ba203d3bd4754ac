/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shortcuts of one-sided operations beside mirrors: what goes past the slow path, what must not,
 * for it is to be noted for the mirror's peers, and that all do once there is no mirror any more.
 */
#include <string.h>

#include "slmpm/rma/direct.h"
#include "tests/lib/mirror_ends.h"

#define REGION 4096

static slmpm_peer from, at;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *base;

static bool is_short(unsigned op)
{
	return direct_is_short(remote_get(rmem), op);
}

static bool misses(const void *to, uint64_t n)
{
	const struct remote *remote = remote_get(rmem);
	bool guarded = direct_is_guarded(remote, FABRIC_READ);

	EXPECT(direct_is_guarded(remote, FABRIC_ATOMIC), guarded);
	return guarded && !parts.mirrored(remote->ctx, to, n);
}

static void get(void *to, uint64_t offset, size_t n)
{
	memset(to, 0xee, n);
	OK(slmpm_get(rmem, offset, to, n, NULL, NULL));
	CHECK(memcmp(to, base + offset, n) == 0, "%zu bytes got of %d", n, (int)offset);
}

static void open_region(void)
{
	struct slmpm_key key;
	uint64_t value;

	OK(slmpm_mem_key(mem, from, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(at, &key, &rmem));
	get(&value, 0, sizeof(value)); /* the first one is measured */
}

/* All three, for no mirror is there. */
static void all_short(void)
{
	CHECK(is_short(FABRIC_READ) && is_short(FABRIC_WRITE) && is_short(FABRIC_ATOMIC),
	      "an operation without its shortcut");
	CHECK(!misses(ends.room[3], 8), "mirrors are looked at where there are none");
}

static void beside_one(void)
{
	unsigned char *room = (unsigned char *)ends.room[2];
	slmpm_mirror m = ends_new(room + 64, 128, NULL), secondary;
	uint64_t value;

	get(&value, 0, sizeof(value));
	CHECK(is_short(FABRIC_WRITE), "a put has lost its shortcut");
	CHECK(!is_short(FABRIC_READ) && !is_short(FABRIC_ATOMIC), "nobody looks at the mirror");
	CHECK(misses(room, 64) && misses(room + 192, 8) && misses(NULL, 8), "beside it");
	CHECK(!misses(room, 65) && !misses(room + 191, 1) && !misses(room + 100, 8), "in it");
	secondary = ends_new(room + 1024, 8, NULL);
	CHECK(!misses(room + 1024, 8) && misses(room + 512, 8), "the second one");
	OK(slmpm_mirror_destroy(m));
	CHECK(misses(room + 100, 8) && !misses(room + 1024, 8), "the first one has ended");
	/* Each so many are measured on the slow path; the way past comes back each time. */
	for (int i = 0; i < 3 * RMA_INSPECT_EVERY; i++)
		OK(slmpm_get(rmem, 0, &value, sizeof(value), NULL, NULL));
	get(&value, 8, sizeof(value));
	CHECK(misses(room, 8) && is_short(FABRIC_WRITE), "measured, and no way past any more");
	OK(slmpm_mirror_destroy(secondary));
	get(&value, 0, sizeof(value));
	all_short();
}

/* What has come past the calls that change a mirror is at its follower. */
static void into_one(void)
{
	uint64_t value, word;

	ends_mirror(NULL, 0);
	get(&value, 0, sizeof(value));
	get(ends.leads + 8, 16, 8);
	ends_same("got");
	get(ends.leads + ends.bytes - 4, 24, 8);
	ends_same("got across the end");
	memcpy(&word, base + 32, sizeof(word));
	OK(slmpm_atomic(rmem, 32, SLMPM_FETCH_ADD, 64, 1, 0, ends.leads + 64, NULL, NULL));
	CHECK(memcmp(ends.leads + 64, &word, 8) == 0, "what was there before");
	OK(slmpm_atomic(rmem, 32, SLMPM_SWAP, 32, 1, 0, ends.leads + 128, NULL, NULL));
	ends_same("what atomic operations have found");
	OK(slmpm_atomic(rmem, 40, SLMPM_SWAP, 64, 5, 0, &value, NULL, NULL));
	OK(slmpm_atomic(rmem, 40, SLMPM_FETCH_ADD, 64, 7, 0, &word, NULL, NULL));
	memcpy(&value, base + 40, sizeof(value));
	CHECK(word == 5 && value == 12, "atomic operations past the mirror: %d, %d", (int)word,
	      (int)value);
	ends_unmirror();
	get(&value, 0, sizeof(value));
	all_short();
}

int main(void)
{
	void *memory;

	settings_one_link("shm");
	ends_open(&(struct setting){.name = NULL});
	actor_pair(ends.ctx, &from, &at);
	OK(slmpm_mem_alloc(ends.ctx, REGION, SLMPM_READ_WRITE, &mem, &memory));
	base = memory;
	actor_fill(base, 5, REGION);
	open_region();
	all_short();
	beside_one();
	into_one();
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(from, PATIENCE));
	OK(slmpm_close(at, PATIENCE));
	return ends_close();
}
