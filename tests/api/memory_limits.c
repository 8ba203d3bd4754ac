/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions and keys at a limit: more bytes than the machine has, no descriptors left, what settings
 * allow and forbid, a peer that never connects.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE 100000

static slmpm_ctx ctx;
static slmpm_peer owner, other; /* the acceptor as the owner sees it; the owner as it is seen */

#define PIECE  ((size_t)1 << 20)
#define PIECES ((size_t)8192)

/* 8 GiB of addresses: one mebibyte of SEED, many times over. */
static unsigned char *repeated(uint64_t seed)
{
	int fd = memfd_create("slmpm-test", MFD_CLOEXEC);
	unsigned char *base;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)PIECE) == 0, "memory");
	base = mmap(NULL, PIECE * PIECES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	CHECK(base != MAP_FAILED, "8 GiB of addresses");
	for (size_t i = 0; i < PIECES; i++)
		CHECK(mmap(base + i * PIECE, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   fd, 0) != MAP_FAILED,
		      "piece %zu", i);
	close(fd);
	actor_fill(base, seed, PIECE);
	return base;
}

/* A piece of its own in place of one. */
static void replace(unsigned char *at, uint64_t seed)
{
	CHECK(mmap(at, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == at,
	      "a piece");
	actor_fill(at, seed, PIECE);
}

/* A region of more bytes than the machine may have; over 2 GiB of it, and with SLMPM_TEST_HUGE=1
 * all, in one transfer. */
static void larger_than_memory(void)
{
	unsigned char *near = repeated(1), *base = repeated(2);
	struct slmpm_mem_info info = {.size = sizeof(info)};
	size_t n = getenv("SLMPM_TEST_HUGE") ? PIECE * PIECES : 2200 * PIECE;
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;

	OK(slmpm_mem_register(ctx, base, PIECE * PIECES, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(owner, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	EXPECT(info.length, PIECE * PIECES);
	if (!strcmp(way_path(rmem), "attach") && actor_slow() == 1) {
		replace(base + n - PIECE, 3);
		replace(near + n - PIECE, 4);
		OK(slmpm_put(rmem, 0, near, n, NULL, NULL));
		CHECK(actor_filled(base, 1, PIECE), "what was put first");
		CHECK(actor_filled(base + n - PIECE, 4, PIECE), "what was put last");
	}
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	munmap(base, PIECE * PIECES);
	munmap(near, PIECE * PIECES);
}

/* ---- shortage -------------------------------------------------------------------------------- */

/* At the limit of descriptors, of mappings and of their bytes a region is reached by requests. */
static void short_of_descriptors(void)
{
	struct rlimit was, none;
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	EXPECT(slmpm_mem_alloc(ctx, (size_t)1 << 46, SLMPM_READ, &mem, &base), -SLMPM_ENOMEM);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key));
	CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0, "limits");
	none = was;
	none.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "limits");
	EXPECT(slmpm_mem_open(owner, &key, &rmem), 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0, "limits");
	CHECK(!strcmp(way_path(rmem), "ring"), "%s", way_path(rmem));
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static int limited(void *arg)
{
	const char *const *setting = arg;
	struct slmpm_key key[4];
	slmpm_rmem rmem[4];
	slmpm_mem mem;
	void *base;

	setenv(setting[0], setting[1], 1);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &owner, &other);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	for (int i = 0; i < 3; i++) {
		OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key[i]));
		OK(slmpm_mem_open(owner, &key[i], &rmem[i]));
		CHECK(!strcmp(way_path(rmem[i]), setting[2 + i]), "%s: region %d by %s", setting[0],
		      i, way_path(rmem[i]));
	}
	if (setting[5])
		REFUSED(slmpm_mem_key(mem, other, SLMPM_READ, &key[3]), SLMPM_ELIMIT, setting[5]);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int forbidden(void *arg)
{
	static char memory[64];
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;
	char byte = 1;

	(void)arg;
	setenv("SLMPM_ATTACH", "n", 1);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &owner, &other);
	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(owner, &key, &rmem));
	CHECK(!strcmp(way_path(rmem), "ring"), "%s", way_path(rmem));
	OK(slmpm_put(rmem, 63, &byte, 1, NULL, NULL));
	actor_settle(owner, other);
	EXPECT(memory[63], 1);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* A program that knows nothing of us never connects. */
static int silent(void *arg)
{
	char *const args[] = {"60", NULL};
	struct slmpm_key key;
	slmpm_peer peer;
	slmpm_mem mem;
	void *base;

	(void)arg;
	setenv("SLMPM_HANDSHAKE_MS", "50", 1);
	OK(slmpm_default(&ctx));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_spawn(&peer, "sleep", args, NULL));
	REFUSED(slmpm_mem_key(mem, peer, SLMPM_READ, &key), SLMPM_ETIMEOUT, "within 50 ms");
	OK(slmpm_kill(peer, 0));
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static void limits(void)
{
	const int late = child_run(silent, NULL, 20); /* nobody has read the settings yet */
	const char *map = way_mapped();
	const char *const settings[][6] = {
		{"SLMPM_MAP_MAX", "200000", map, map, "ring", NULL},
		{"SLMPM_MAP_MAX", "0", "ring", "ring", "ring", NULL},
		{"SLMPM_KEYS", "3", map, map, map, strcmp(map, "map") ? NULL : "3 keys"},
	};

	for (int i = 0; i < 3; i++)
		EXPECT(child_run(limited, (void *)(uintptr_t)settings[i], 20), 0);
	EXPECT(child_run(forbidden, NULL, 20), 0);
	EXPECT(late, 0);
}

int main(int argc, char **argv)
{
	actor_begin(argc, argv, NULL);
	limits(); /* in children, before anything else is read */
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &owner, &other);
	larger_than_memory();
	short_of_descriptors();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
