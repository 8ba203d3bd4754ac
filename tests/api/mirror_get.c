/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A get that the kernel carries out, out of memory that the peer's program has registered, into a
 * buffer of which a tracked mirror is a part: protected pages are opened, and the rest is moved all
 * the same.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"

#define MOST ((size_t)4 << 20)

static const slmpm_ctx none;

/* Registers memory and hands out its key. */
static int role_owner(slmpm_peer host, char **words)
{
	unsigned char *memory = malloc(MOST);
	struct slmpm_key key;
	slmpm_mem mem;

	(void)words;
	CHECK(memory, "memory");
	actor_fill(memory, 7, MOST);
	OK(slmpm_mem_register(none, memory, MOST, SLMPM_READ, &mem));
	OK(slmpm_mem_key(mem, host, SLMPM_READ, &key));
	OK(slmpm_send(host, 0, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	free(memory);
	return 0;
}

/* N bytes, of which those from ASIDE on, and up to as many before the end, are a mirror's. */
static void get_into(slmpm_rmem from, uint32_t how, size_t n, size_t aside)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	unsigned char *to =
		mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	slmpm_mirror mirror;

	CHECK(to != MAP_FAILED, "memory");
	OK(slmpm_mirror_create(none, to + aside, n - 2 * aside, &o, &mirror));
	for (int i = 0; i < 3; i++) {
		memset(to + aside, i, n - 2 * aside);
		(void)slmpm_mirror_scan(mirror); /* what is written next is watched for again */
		OK(slmpm_get(from, 0, to, n, NULL, NULL));
		CHECK(actor_filled(to, 7, n), "%u: %zu bytes, %zu aside", how, n, aside);
	}
	OK(slmpm_mirror_destroy(mirror));
	OK(munmap(to, n));
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"owner", role_owner}, {NULL, NULL}};
	struct slmpm_key key;
	slmpm_peer owner;
	slmpm_rmem from;

	actor_begin(argc, argv, roles);
	owner = actor_spawn("owner", NULL, NULL);
	EXPECT(slmpm_recv(owner, 0, &key, sizeof(key), NULL, PATIENCE), (int64_t)sizeof(key));
	OK(slmpm_mem_open(owner, &key, &from));
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++) {
		if (slmpm_mirror_track_works((int)how) < 0)
			continue;
		get_into(from, how, 200 << 10, 0);
		get_into(from, how, (1 << 20) + 104, 0); /* no page is watched for the last bytes */
		get_into(from, how, MOST, 1 << 20);
	}
	OK(slmpm_mem_release(from));
	OK(slmpm_send(owner, 0, NULL, 0, PATIENCE));
	actor_join(owner, 0);
	return 0;
}
