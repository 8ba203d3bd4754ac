/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * What the statistics call remote reads is what loads from the peer's memory: a process whose views
 * of its peer's ring, region and loan areas are trapped counts as many gets and atomic operations
 * as it has trapped, and for messages in packets, puts and mirrors nothing, where nothing has been.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"
#include "tests/lib/trap.h"
#include "tests/lib/way.h"

#define SIZE                                                                                       \
	((size_t)68                                                                                \
	 << 10) /* more than what is fetched or shared otherwise; each byte's store is trapped */
#define TIMES  500
#define EIGHT  2 /* loads of a copy of 8 bytes: two, of the same */
#define KEY    1
#define STREAM 2

/* ---- the side that operates ------------------------------------------------------------------ */

static slmpm_peer host;
static slmpm_rmem region;
static unsigned char bytes[SIZE];

/* Its own ring is mapped for reading, and it has no regions. */
static int trap_peers_memory(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from[8], to[8];
	char line[512], access[8];
	int n = 0;

	CHECK(f, "no maps");
	while (fgets(line, sizeof(line), f) && n < 8)
		if ((strstr(line, "memfd:slmpm-ring") || strstr(line, "memfd:slmpm-region")) &&
		    sscanf(line, "%lx-%lx %7s", &from[n], &to[n], access) == 3 && access[1] == 'w')
			n++;
	fclose(f);
	for (int i = 0; i < n; i++)
		trap_loads((void *)from[i], to[i] - from[i]);
	return n;
}

struct seen {
	uint64_t loads, stores, counted;
};

static struct seen seen(void)
{
	struct trap_counts c = trap_seen();

	return (struct seen){c.loads, c.stores, actor_stats(host).remote_reads};
}

/* Since BEFORE: N more by the statistics, and so many loads. */
static void expect(const char *what, struct seen before, uint64_t n, uint64_t loads)
{
	struct seen now = seen();

	CHECK(now.counted - before.counted == n && now.loads - before.loads == loads,
	      "%s: %llu counted and %llu loads, not %llu and %llu", what,
	      (unsigned long long)(now.counted - before.counted),
	      (unsigned long long)(now.loads - before.loads), (unsigned long long)n,
	      (unsigned long long)loads);
	printf("%-22s %llu counted, %llu loads, %llu stores\n", what, (unsigned long long)n,
	       (unsigned long long)loads, (unsigned long long)(now.stores - before.stores));
}

static void operations(void)
{
	struct slmpm_how remote = {.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	struct slmpm_span spans[2] = {{0, 8}, {64, 8}};
	struct slmpm_iov pieces[2] = {{bytes, 8}, {bytes + 8, 8}};
	struct seen before = seen();

	for (int i = 0; i < TIMES; i++)
		OK(slmpm_get(region, (uint64_t)i % 64 * 8, bytes, 8, NULL, NULL));
	expect("gets", before, TIMES, TIMES * EIGHT);
	before = seen();
	for (int i = 0; i < TIMES; i++)
		OK(slmpm_getv(region, spans, 2, pieces, 2, NULL, NULL));
	expect("gets of lists", before, TIMES, TIMES * EIGHT * 2);
	before = seen();
	for (int i = 0; i < TIMES; i++)
		OK(slmpm_atomic(region, 0, SLMPM_FETCH_ADD, 64, 1, 0, bytes, NULL, NULL));
	expect("fetch-and-adds", before, TIMES, TIMES);
	before = seen();
	for (int i = 0; i < TIMES; i++)
		OK(slmpm_put(region, (uint64_t)i % 64 * 8, bytes, 8, i % 2 ? &remote : NULL, NULL));
	OK(slmpm_putv(region, spans, 2, pieces, 2, NULL, NULL));
	expect("puts", before, 0, 0);
}

static void messages(void)
{
	static const size_t lengths[] = {0, 8, 64, 500, 4000};
	struct seen before = seen();

	for (size_t i = 0; i < 20; i++) {
		size_t n = lengths[i % 5];

		OK(slmpm_send(host, STREAM, bytes, n, PATIENCE));
		EXPECT(slmpm_recv(host, STREAM, bytes, sizeof(bytes), NULL, PATIENCE), n);
	}
	expect("messages", before, 0, 0);
}

static void large_ones(void)
{
	struct seen before = seen();

	OK(slmpm_put(region, 0, bytes, SIZE, NULL, NULL));
	expect("a large put", before, 0, 0);
	before = seen();
	OK(slmpm_send(host, STREAM, bytes, SIZE, PATIENCE));
	EXPECT(slmpm_recv(host, STREAM, bytes, SIZE, NULL, PATIENCE), SIZE);
	expect("a large message", before, 0, 0);
}

static void mirrors(void)
{
	static uint64_t words[64];
	struct seen before = seen();
	slmpm_ctx none = {0};
	slmpm_mirror m;

	OK(slmpm_mirror_create(none, words, sizeof(words), NULL, &m));
	OK(slmpm_mirror_attach(m, host, 1, SLMPM_MIRROR_LEAD, PATIENCE));
	for (uint64_t i = 0; i < TIMES; i++) {
		OK(slmpm_mirror_store64(m, &words[i % 64], i));
		OK(slmpm_mirror_flush(m, PATIENCE));
	}
	OK(slmpm_send(host, STREAM, bytes, 1, PATIENCE));
	EXPECT(slmpm_recv(host, STREAM, bytes, SIZE, NULL, PATIENCE), 1);
	OK(slmpm_mirror_destroy(m));
	expect("mirror stores", before, 0, 0);
}

static int operator(slmpm_peer peer, char **words)
{
	(void)words;
	host = peer;
	region = way_open(host, KEY);
	EXPECT(trap_peers_memory(), 2);
	operations();
	messages();
	large_ones();
	mirrors();
	(void)trap_end();
	fflush(stdout);
	return 0;
}

/* ---- the other ------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"operator", operator}, {NULL, NULL}};
	static uint64_t words[64];
	int64_t n;
	slmpm_mirror mirror;
	slmpm_peer peer;
	slmpm_ctx ctx;
	slmpm_mem mem;
	void *base;

	if (!trap_possible())
		test_skip("no trap that tells loads from stores on this machine");
	settings_one_link("shm");
	setenv("SLMPM_FETCH", "never", 1);
	setenv("SLMPM_SHARE", "never", 1);
	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	peer = actor_spawn("operator", NULL, NULL);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	way_give(mem, peer, KEY);
	OK(slmpm_mirror_create(ctx, words, sizeof(words), NULL, &mirror));
	while ((n = slmpm_recv(peer, STREAM, bytes, SIZE, NULL, PATIENCE)) >= 0) {
		OK(slmpm_send(peer, STREAM, bytes, (size_t)n, PATIENCE));
		if (n == (int64_t)SIZE)
			OK(slmpm_mirror_attach(mirror, peer, 1, SLMPM_MIRROR_FOLLOW, PATIENCE));
	}
	EXPECT(n, -SLMPM_ECLOSED);
	EXPECT(actor_stats(peer).remote_reads, 0);
	actor_join(peer, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
