/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions and their keys: made, given, opened, looked at, released, ended; and what is refused.
 * Both ends in one context, so that each step can be told apart.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE 100000

static slmpm_ctx ctx;
static slmpm_peer owner, other; /* the acceptor as the owner sees it; the owner as it is seen */

/* A receive that always finds its message looks at no socket, where keys go on one machine. */
static void settle(void)
{
	actor_settle(owner, other);
	while (slmpm_progress(ctx) > 0)
		;
}

static struct slmpm_mem_info region_info(slmpm_mem mem)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};

	OK(slmpm_mem_query(mem, &info));
	return info;
}

static struct slmpm_mem_info far_info(slmpm_rmem rmem)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};

	OK(slmpm_rmem_query(rmem, &info));
	return info;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void allocated(void)
{
	static const unsigned char zeros[SIZE];
	struct slmpm_mem_info info;
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	CHECK((uintptr_t)base % 4096 == 0 && !memcmp(base, zeros, SIZE), "new memory");
	info = region_info(mem);
	CHECK(info.access == SLMPM_READ_WRITE && info.kind == SLMPM_MEM_HOST && info.mapped == 1 &&
		      info.length == SIZE && info.address == (uintptr_t)base && !info.acceptors,
	      "what the region tells");
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(owner, &key, &rmem));
	info = far_info(rmem);
	CHECK(info.access == SLMPM_READ_WRITE && info.length == SIZE && info.mapped == way_maps() &&
		      info.address == (uintptr_t)base && !strcmp(info.path, way_mapped()),
	      "what the peer's region tells: %s", info.path);
	settle();
	EXPECT(region_info(mem).acceptors, 1);
	REFUSED(slmpm_mem_destroy(mem, 0), SLMPM_EAGAIN, "1 acceptors");
	memset(base, 1, SIZE); /* it stays as it was */
	OK(slmpm_mem_release(rmem));
	REFUSED(slmpm_mem_release(rmem), SLMPM_EHANDLE, "stale");
	settle();
	EXPECT(region_info(mem).acceptors, 0);
	OK(slmpm_mem_destroy(mem, 0));
	REFUSED(slmpm_mem_destroy(mem, 0), SLMPM_EHANDLE, "stale");
}

static void registered(void)
{
	static unsigned char memory[SIZE];
	struct slmpm_mem_info info;
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;

	OK(slmpm_mem_register(ctx, memory + 1, SIZE - 3, SLMPM_READ, &mem));
	info = region_info(mem);
	CHECK(info.access == SLMPM_READ && !info.mapped && info.length == SIZE - 3 &&
		      info.address == (uintptr_t)memory + 1,
	      "what the region tells");
	OK(slmpm_mem_key(mem, other, SLMPM_READ, &key));
	OK(slmpm_mem_open(owner, &key, &rmem));
	info = far_info(rmem);
	CHECK(!info.mapped && (!strcmp(info.path, "attach") || !strcmp(info.path, "ring")), "%s",
	      info.path);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static void refused(void)
{
	static char memory[64];
	slmpm_mem mem = {1}, reading;
	struct slmpm_key key;
	slmpm_ctx elsewhere;
	slmpm_peer a, b;
	void *base;

	REFUSED(slmpm_mem_alloc(ctx, 0, SLMPM_READ, &mem, &base), SLMPM_EINVAL, "no bytes");
	REFUSED(slmpm_mem_alloc(ctx, 8, 0, &mem, &base), SLMPM_EINVAL, "access 0");
	REFUSED(slmpm_mem_alloc(ctx, 8, 4, &mem, &base), SLMPM_EINVAL, "access 4");
	REFUSED(slmpm_mem_alloc(ctx, 8, 1, NULL, &base), SLMPM_EINVAL, "handle");
	REFUSED(slmpm_mem_alloc(ctx, 8, 1, &mem, NULL), SLMPM_EINVAL, "handle");
	CHECK(slmpm_mem_alloc(ctx, SIZE_MAX, 1, &mem, &base) == -SLMPM_ENOMEM, "all memory");
	CHECK(slmpm_mem_alloc(ctx, (size_t)1 << 60, 1, &mem, &base) < 0, "too much memory");
	REFUSED(slmpm_mem_register(ctx, NULL, 8, 1, &mem), SLMPM_EINVAL, "8 bytes at");
	REFUSED(slmpm_mem_register(ctx, memory, SIZE_MAX, 1, &mem), SLMPM_EINVAL, "bytes at");
	REFUSED(slmpm_mem_register(ctx, memory, 0, 1, &mem), SLMPM_EINVAL, "no bytes");
	REFUSED(slmpm_mem_register(ctx, memory, 8, 8, &mem), SLMPM_EINVAL, "access 8");
	REFUSED(slmpm_mem_register(ctx, memory, 8, 1, NULL), SLMPM_EINVAL, "handle");
	REFUSED(slmpm_mem_query(mem, NULL), SLMPM_EINVAL, ".size");

	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ, &reading));
	REFUSED(slmpm_mem_key(reading, other, 0, &key), SLMPM_EINVAL, "access 0");
	REFUSED(slmpm_mem_key(reading, other, 9, &key), SLMPM_EINVAL, "access 9");
	REFUSED(slmpm_mem_key(reading, other, SLMPM_WRITE, &key), SLMPM_EACCES, "gives 1");
	REFUSED(slmpm_mem_key(reading, other, SLMPM_READ_WRITE, &key), SLMPM_EACCES, "gives 1");
	REFUSED(slmpm_mem_key(reading, other, SLMPM_READ, NULL), SLMPM_EINVAL, "the key");
	mem.id = 0;
	REFUSED(slmpm_mem_key(mem, other, SLMPM_READ, &key), SLMPM_EHANDLE, "zero");
	REFUSED(slmpm_mem_destroy(mem, 0), SLMPM_EHANDLE, "zero");
	REFUSED(slmpm_mem_revoke(mem, other, 0), SLMPM_EHANDLE, "zero");
	REFUSED(slmpm_mem_share(mem, other, SLMPM_READ, 0), SLMPM_EHANDLE, "zero");
	a.id = 0;
	REFUSED(slmpm_mem_key(reading, a, SLMPM_READ, &key), SLMPM_EHANDLE, "zero");
	REFUSED(slmpm_mem_revoke(reading, a, 0), SLMPM_EHANDLE, "zero");
	/* Regions and peers of one context belong together. */
	OK(slmpm_open(&elsewhere, NULL));
	actor_pair(elsewhere, &a, &b);
	REFUSED(slmpm_mem_key(reading, a, SLMPM_READ, &key), SLMPM_EINVAL, "another context");
	REFUSED(slmpm_mem_revoke(reading, a, 0), SLMPM_EINVAL, "another context");
	OK(slmpm_shut(elsewhere, PATIENCE));
	OK(slmpm_mem_destroy(reading, 0));
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void keys_fit_one_peer_once(void)
{
	struct slmpm_key key, second, bad;
	slmpm_peer a, b;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &second));
	CHECK(memcmp(&key, &second, sizeof(key)) != 0, "the same key twice");
	REFUSED(slmpm_mem_open(other, &key, &rmem), SLMPM_EACCES, "no such key");
	REFUSED(slmpm_mem_open(a, &key, &rmem), SLMPM_EACCES, "no such key");
	REFUSED(slmpm_mem_open(owner, NULL, &rmem), SLMPM_EINVAL, "key");
	REFUSED(slmpm_mem_open(owner, &key, NULL), SLMPM_EINVAL, "key");
	memset(&bad, 0, sizeof(bad));
	REFUSED(slmpm_mem_open(owner, &bad, &rmem), SLMPM_EINVAL, "no key");
	/* Any bit of it. Over a network a key may be ahead of what it opens, which is waited for: a
	 * second for each bit of its number. */
	for (int bit = 0; bit < SLMPM_KEY_SIZE * 8; bit += way_maps() ? 1 : 13) {
		int rc;

		bad = key;
		bad.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		rc = slmpm_mem_open(owner, &bad, &rmem);
		CHECK(rc == -SLMPM_EACCES || rc == -SLMPM_EINVAL, "bit %d: %d", bit, rc);
	}
	OK(slmpm_mem_open(owner, &key, &rmem));
	REFUSED(slmpm_mem_open(owner, &key, &rmem), SLMPM_EBUSY, "open already");
	OK(slmpm_mem_release(rmem));
	REFUSED(slmpm_mem_open(owner, &key, &rmem), SLMPM_EACCES, "no such key");
	settle();
	OK(slmpm_mem_destroy(mem, 0)); /* and the second with it */
	settle();
	REFUSED(slmpm_mem_open(owner, &second, &rmem), SLMPM_EACCES, "no such key");
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
}

static void keys_are_bounded(void)
{
	static struct slmpm_key keys[1024];
	struct slmpm_key more;
	slmpm_rmem rmem[2];
	slmpm_mem mem;
	char byte;

	OK(slmpm_mem_register(ctx, &byte, 1, SLMPM_READ_WRITE, &mem));
	for (int i = 0; i < 1024; i++) {
		int rc;

		/* The peer takes them as it makes progress. */
		while ((rc = slmpm_mem_key(mem, other, SLMPM_READ, &keys[i])) == -SLMPM_EAGAIN)
			settle();
		OK(rc);
	}
	REFUSED(slmpm_mem_key(mem, other, SLMPM_READ, &more), SLMPM_ELIMIT, "1024 keys");
	OK(slmpm_mem_open(owner, &keys[0], &rmem[0]));
	OK(slmpm_mem_open(owner, &keys[1023], &rmem[1]));
	OK(slmpm_mem_release(rmem[0]));
	settle();
	OK(slmpm_mem_key(mem, other, SLMPM_READ, &more));
	REFUSED(slmpm_mem_key(mem, other, SLMPM_READ, &more), SLMPM_ELIMIT, "1024 keys");
	OK(slmpm_mem_release(rmem[1]));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	settle();
}

/* ---- fork ------------------------------------------------------------------------------------ */

struct inherited {
	slmpm_mem mem;
	slmpm_rmem rmem;
	int descriptors;
};

static int forked(void *arg)
{
	const struct inherited *i = arg;
	struct slmpm_mem_info info = {.size = sizeof(info)};
	slmpm_mem mem;
	void *base;

	EXPECT(slmpm_mem_destroy(i->mem, 0), -SLMPM_EFORKED);
	EXPECT(slmpm_mem_query(i->mem, &info), -SLMPM_EFORKED);
	EXPECT(slmpm_mem_release(i->rmem), -SLMPM_EFORKED);
	EXPECT(slmpm_rmem_query(i->rmem, &info), -SLMPM_EFORKED);
	CHECK(actor_mappings() == 0, "%d mappings came along", actor_mappings());
	CHECK(actor_descriptors() < i->descriptors, "its descriptors came along");
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &mem, &base));
	memset(base, 1, SIZE);
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_shut(ctx, 0));
	return 0;
}

static void left_behind_by_fork(void)
{
	struct inherited i;
	struct slmpm_key key;
	void *base;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &i.mem, &base));
	OK(slmpm_mem_key(i.mem, other, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(owner, &key, &i.rmem));
	i.descriptors = actor_descriptors();
	EXPECT(child_run(forked, &i, 20), 0);
	memset(base, 1, SIZE);
	OK(slmpm_mem_release(i.rmem));
	OK(slmpm_mem_destroy(i.mem, PATIENCE));
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void ends_with_the_peer(void)
{
	struct slmpm_key key, unopened;
	slmpm_peer a, b;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &unopened));
	OK(slmpm_mem_open(a, &key, &rmem));
	actor_settle(a, b);
	EXPECT(region_info(mem).acceptors, 1);
	OK(slmpm_close(b, PATIENCE));
	EXPECT(region_info(mem).acceptors, 0);
	EXPECT(slmpm_recv(a, 1, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	CHECK(!strcmp(far_info(rmem).path, "none"), "still reached");
	REFUSED(slmpm_mem_open(a, &unopened, &rmem), SLMPM_ECLOSED, "closed");
	OK(slmpm_close(a, PATIENCE));
	REFUSED(slmpm_mem_release(rmem), SLMPM_EHANDLE, "stale");
	memset(base, 3, SIZE); /* the region does not end with its acceptors */
	OK(slmpm_mem_destroy(mem, 0));
}

static void ends_with_the_context(void)
{
	int descriptors = actor_descriptors(), mappings = actor_mappings();
	slmpm_ctx own;
	slmpm_peer a, b;
	struct slmpm_key key[2];
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	OK(slmpm_open(&own, NULL));
	actor_pair(own, &a, &b);
	OK(slmpm_mem_alloc(own, SIZE, SLMPM_READ, &mem, &base));
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &key[0]));
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &key[1]));
	OK(slmpm_mem_open(a, &key[0], &rmem));
	OK(slmpm_shut(own, PATIENCE));
	REFUSED(slmpm_mem_destroy(mem, 0), SLMPM_EHANDLE, "stale");
	REFUSED(slmpm_mem_release(rmem), SLMPM_EHANDLE, "stale");
	EXPECT(actor_descriptors(), descriptors);
	EXPECT(actor_mappings(), mappings);
}

int main(int argc, char **argv)
{
	actor_begin(argc, argv, NULL);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &owner, &other);
	allocated();
	registered();
	refused();
	keys_fit_one_peer_once();
	keys_are_bounded();
	left_behind_by_fork();
	ends_with_the_peer();
	ends_with_the_context();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
