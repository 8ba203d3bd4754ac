/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 180 */
/*
 * One work queue and one completion queue for a thousand addresses of four processes, eight
 * connections at a time: all arrives once and in order, and what is not connected costs little.
 */
#include <malloc.h>

#include "tests/api/peer_at.h"

#define LIMIT   8
#define ROUNDS  2
#define BURST   2 /* messages of an address in a round */
#define ENTRIES (ADDRESSES * ROUNDS * BURST)
#define CHEAP   4096

static slmpm_peer peers[ADDRESSES];
static struct word words[ENTRIES];
static struct slmpm_iov pieces[ENTRIES];

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static size_t resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%*d %ld", &pages) == 1, "statm");
	fclose(f);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static uint32_t connected(void)
{
	struct slmpm_peer_at_info info = {.size = sizeof(info)};
	uint32_t n = 0;

	for (int i = 0; i < ADDRESSES; i++) {
		OK(slmpm_peer_at_query(peers[i], &info));
		n += info.peer.id != 0;
	}
	return n;
}

static void disconnect(void)
{
	struct slmpm_peer_at_info info = {.size = sizeof(info)};

	for (int i = 0; i < ADDRESSES; i++) {
		OK(slmpm_peer_at_query(peers[i], &info));
		if (info.peer.id)
			OK(slmpm_close(info.peer, PATIENCE));
	}
}

/* Each round's addresses in another order. */
static void post_all(slmpm_wq wq)
{
	int n = 0;

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < ADDRESSES; i++)
			for (uint32_t k = 0; k < BURST; k++, n++) {
				uint32_t to = i * (round ? 7u : 1u) % ADDRESSES;
				struct slmpm_wr wr;

				words[n] = (struct word){to, round * BURST + k};
				pieces[n] = (struct slmpm_iov){&words[n], sizeof(words[n])};
				wr = word_to(peers[to], to, &pieces[n]);
				EXPECT(slmpm_post(wq, &wr, 1), 1);
			}
}

static void take_all(slmpm_cq cq)
{
	uint32_t ended[ADDRESSES] = {0};
	struct slmpm_done done;

	for (int i = 0; i < ENTRIES; i++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE * 4), 1);
		CHECK(done.status == 0, "%s", slmpm_strerror(done.status));
		ended[done.cookie]++;
		if (i % 64 == 0)
			CHECK(connected() <= LIMIT, "%u are connected", connected());
	}
	for (int i = 0; i < ADDRESSES; i++)
		EXPECT(ended[i], ROUNDS * BURST);
}

static int play(void *arg)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = ENTRIES, .channels = ADDRESSES};
	size_t before, each;
	slmpm_ctx ctx;
	slmpm_wq wq;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &wq));
	before = heap();
	each = resident();
	for (int i = 0; i < ADDRESSES; i++)
		OK(slmpm_peer_at(&peers[i], ctx, world->urls[i]));
	each = (resident() - each) / ADDRESSES;
	CHECK(actor_slow() > 1 || each <= CHEAP, "%zu bytes each", each);
	CHECK((heap() - before) / ADDRESSES <= CHEAP, "%zu bytes of the heap each",
	      (heap() - before) / ADDRESSES);
	EXPECT(connected(), 0);
	before = heap();
	post_all(wq);
	take_all(o.cq);
	await_total(ctx, ENTRIES);
	EXPECT(world->wrong, 0);
	EXPECT(connected(), LIMIT);
	disconnect();
	EXPECT(connected(), 0);
	CHECK(heap() < before || (heap() - before) / ADDRESSES <= CHEAP,
	      "%zu bytes of the heap each", (heap() - before) / ADDRESSES);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int all(void *fabric)
{
	pid_t servers[SERVERS];
	uint32_t seen = 0;

	settings_one_link(fabric);
	by_tcp = !strcmp(fabric, "tcp");
	for (int i = 0; i < SERVERS; i++)
		servers[i] = server_start(i, i * EACH, EACH);
	settings_set("SLMPM_CONNECTIONS", "8");
	EXPECT(child_run(play, NULL, 80), 0);
	world->over = true;
	for (int i = 0; i < SERVERS; i++) {
		EXPECT(child_wait(servers[i]), 0);
		CHECK(world->most[i] <= LIMIT, "%u connections at server %d", world->most[i], i);
		seen += world->most[i];
	}
	CHECK(seen, "no server has seen one before its end");
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp"};

	settings_set("SLMPM_RING_SEGMENTS", "128"); /* each connection makes two */
	for (int i = 0; i < 2; i++) {
		world = child_common(sizeof(*world));
		CHECK(child_run(all, fabrics[i], 85) == 0, "%s: see above", fabrics[i]);
	}
	return 0;
}
