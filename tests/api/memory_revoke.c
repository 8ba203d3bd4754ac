/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions taken back from one peer while others go on, and the memory behind them exchanged:
 * nothing that the one does reaches it afterwards, nothing of the others is lost.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/way.h"

#define SIZE 65536
#define SOON 100

static slmpm_ctx ctx;

/* Puts the next number into its own word until it is told otherwise; says how many were done. */
static int role_writer(slmpm_peer host, char **words)
{
	uint64_t place = (uint64_t)atoi(words[0]) * 64, n = 0, last = 0;
	bool revoked = words[1] && !strcmp(words[1], "revoked");
	slmpm_rmem rmem;
	int rc;

	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	actor_tell(host, 1);
	for (;;) {
		uint64_t next = n + 1;
		struct slmpm_how how = {
			.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};

		rc = slmpm_put(rmem, place, &next, sizeof(next), &how, NULL);
		if (rc < 0)
			break;
		n = next;
		rc = slmpm_get(rmem, place, &last, sizeof(last), NULL, NULL);
		if (rc < 0)
			break;
		CHECK(last == n, "%llu written, %llu read", (unsigned long long)n,
		      (unsigned long long)last);
		if (slmpm_recv(host, ACTOR_WORDS, &last, sizeof(last), NULL, 0) > 0)
			break;
	}
	if (revoked) {
		CHECK(rc == -SLMPM_EACCES, "%s", slmpm_error_detail());
		CHECK(!strcmp(way_path(rmem), "none"), "%s", way_path(rmem));
		REFUSED(slmpm_get(rmem, 0, &last, 8, NULL, NULL), SLMPM_EACCES, "");
	} else {
		OK(rc);
		CHECK(!strcmp(way_path(rmem), words[1]), "%s, not %s", way_path(rmem), words[1]);
	}
	OK(slmpm_send(host, 1, &n, sizeof(n), PATIENCE));
	OK(slmpm_mem_release(rmem));
	EXPECT(slmpm_recv(host, ACTOR_WORDS, &last, sizeof(last), NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static uint64_t word(const void *base, int place)
{
	return *(const volatile uint64_t *)(const void *)((const char *)base + place * 64);
}

/* Until it has gone on for a while. */
static void await_progress(const void *base, int place)
{
	uint64_t from = word(base, place);

	for (int64_t end = actor_now_ms() + PATIENCE; word(base, place) < from + 20;) {
		CHECK(actor_now_ms() < end, "the writer stands still");
		(void)slmpm_progress(ctx);
	}
}

static void one_of_two_revoked(bool allocated)
{
	slmpm_peer bad = actor_spawn("writer", "0", "revoked");
	bool by_ring = allocated || !strcmp(way_mapped(), "ring");
	slmpm_peer good = actor_spawn("writer", "1", by_ring ? "ring" : "attach");
	struct slmpm_key key;
	uint64_t n, stopped;
	slmpm_mem mem;
	void *base;

	if (allocated) {
		OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	} else {
		base = calloc(1, SIZE);
		OK(slmpm_mem_register(ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	}
	OK(slmpm_mem_share(mem, bad, SLMPM_READ_WRITE, PATIENCE));
	OK(slmpm_mem_share(mem, good, SLMPM_READ_WRITE, PATIENCE));
	actor_hear(bad, 1);
	actor_hear(good, 1);
	await_progress(base, 0);
	await_progress(base, 1);
	OK(slmpm_mem_revoke(mem, bad, PATIENCE));
	stopped = word(base, 0);
	EXPECT(way_acceptors(mem), 1);
	await_progress(base, 1); /* the other goes on */
	CHECK(word(base, 0) == stopped, "what was revoked still writes");
	OK(slmpm_mem_revoke(mem, bad, 0)); /* again: nothing to do */
	actor_tell(good, 2);
	EXPECT(slmpm_recv(good, 1, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	CHECK(word(base, 1) == n, "%llu puts were done, %llu are there", (unsigned long long)n,
	      (unsigned long long)word(base, 1));
	EXPECT(slmpm_recv(bad, 1, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	CHECK(n >= stopped && n <= stopped + 1, "%llu were done, %llu are there",
	      (unsigned long long)n, (unsigned long long)stopped);
	/* The region is as good as new: who is given a key now maps it. */
	OK(slmpm_mem_key(mem, bad, SLMPM_READ, &key));
	OK(slmpm_close(bad, PATIENCE));
	OK(slmpm_close(good, PATIENCE));
	actor_join(bad, 0);
	actor_join(good, 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	if (!allocated)
		free(base);
}

/* Both in one context: unopened keys, those of a read-only region, the pages afterwards. */
static void revoked_before_it_was_opened(void)
{
	struct slmpm_key first, second, third;
	slmpm_peer a, b, c, d;
	slmpm_rmem rmem, more;
	unsigned char byte = 0;
	slmpm_mem mem;
	char *base;

	actor_pair(ctx, &a, &b);
	actor_pair(ctx, &c, &d);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &mem, (void **)&base));
	memset(base, 1, SIZE);
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &first));
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &second));
	OK(slmpm_mem_key(mem, d, SLMPM_READ, &third));
	OK(slmpm_mem_open(a, &first, &rmem));
	OK(slmpm_mem_open(c, &third, &more));
	OK(slmpm_mem_revoke(mem, b, PATIENCE));
	actor_settle(a, b);
	REFUSED(slmpm_mem_open(a, &second, &rmem), SLMPM_EACCES, "");
	REFUSED(slmpm_get(rmem, 0, &byte, 1, NULL, NULL), SLMPM_EACCES, "");
	OK(slmpm_mem_release(rmem));
	CHECK(base[0] == 1 && base[SIZE - 1] == 1, "the bytes stay");
	memset(base, 2, SIZE);
	CHECK(!strcmp(way_path(more), "ring"), "%s", way_path(more));
	/* New pages for new keys. */
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &first));
	OK(slmpm_mem_open(a, &first, &rmem));
	CHECK(!strcmp(way_path(rmem), way_mapped()), "%s", way_path(rmem));
	OK(slmpm_get(rmem, SIZE - 1, &byte, 1, NULL, NULL));
	EXPECT(byte, 2);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_release(more));
	actor_settle(a, b);
	actor_settle(c, d);
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_close(c, PATIENCE));
	OK(slmpm_close(d, PATIENCE));
}

/* ---- memory mapped again --------------------------------------------------------------------- */

/* What lies at the address now is what is written, never pages that were there before. */
static void mapped_anew(void)
{
	int protection = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned char *at = mmap(NULL, SIZE, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0), byte;
	unsigned char *old = at == MAP_FAILED ? at : mremap(at, 0, SIZE, MREMAP_MAYMOVE);
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = SOON};
	struct slmpm_key key;
	slmpm_peer a, b;
	slmpm_rmem rmem;
	slmpm_mem mem;
	int rc;

	CHECK(at != MAP_FAILED && old != MAP_FAILED, "memory");
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_register(ctx, at, SIZE, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_put(rmem, 5, "x", 1, &how, NULL));
	CHECK(at[5] == 'x' && old[5] == 'x', "one memory, twice");
	if (!strcmp(way_path(rmem), "attach")) { /* by requests it would be this process's fault */
		munmap(at, SIZE);
		rc = slmpm_put(rmem, 5, "y", 1, &how, NULL);
		CHECK(rc < 0, "a put to no memory: %d", rc);
	}
	CHECK(mmap(at, SIZE, protection, private | MAP_FIXED, -1, 0) == at, "the same address");
	OK(slmpm_put(rmem, 5, "z", 1, &how, NULL));
	CHECK(at[5] == 'z' && old[5] == 'x', "old pages were written");
	at[6] = 9;
	OK(slmpm_get(rmem, 6, &byte, 1, NULL, NULL));
	EXPECT(byte, 9);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	munmap(at, SIZE);
	munmap(old, SIZE);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"writer", role_writer}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	revoked_before_it_was_opened();
	mapped_anew();
	one_of_two_revoked(true);
	one_of_two_revoked(false);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
