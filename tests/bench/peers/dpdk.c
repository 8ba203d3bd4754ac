/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's ring between a primary and a secondary process: what is queued points at buffers that the
 * payload is copied into and out of; they go back through a second ring. BENCH_HUGE names a mounted
 * hugetlbfs, as a secondary process can share nothing else.
 */
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memcpy.h>
#include <rte_memzone.h>
#include <rte_ring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/peers/pair.h"

#define BUFS  64
#define BURST 32
#define MOST  ((size_t)1 << 20) /* larger ones would take half a gigabyte of huge pages */
#define SLOTS 128               /* of a ring: more than there are buffers */

static const char *const NAMES[2][3] = {{"ab", "ab-free", "ab-memory"},
					{"ba", "ba-free", "ba-memory"}};
static struct rte_ring *tx, *tx_free, *rx, *rx_free;
static char *tx_memory, *rx_memory;

static void need(int ok, const char *what)
{
	if (!ok)
		pair_die(what, rte_strerror(rte_errno));
}

/* Small messages lie close together; buffers never share the same cache sets. */
static size_t stride(size_t len)
{
	return (len > 65536 ? MOST : 65536) + 64;
}

static void create(void)
{
	for (int d = 0; d < 2; d++) {
		struct rte_ring *full = rte_ring_create(NAMES[d][0], SLOTS, SOCKET_ID_ANY,
							RING_F_SP_ENQ | RING_F_SC_DEQ);
		struct rte_ring *empty = rte_ring_create(NAMES[d][1], SLOTS, SOCKET_ID_ANY,
							 RING_F_SP_ENQ | RING_F_SC_DEQ);

		need(full && empty, "ring");
		need(rte_memzone_reserve_aligned(NAMES[d][2], BUFS * stride(MOST), SOCKET_ID_ANY, 0,
						 4096) != NULL,
		     "memzone");
		for (uintptr_t i = 1; i <= BUFS; i++)
			rte_ring_enqueue(empty, (void *)i);
	}
}

static void start_eal(int side, const char *id)
{
	char prefix[64], dir[256], cpu[16], *argv[16];
	int argc = 0;

	snprintf(prefix, sizeof prefix, "--file-prefix=bench%s", id);
	snprintf(dir, sizeof dir, "--huge-dir=%s", getenv("BENCH_HUGE"));
	snprintf(cpu, sizeof cpu, "%d", sched_getcpu()); /* pinned before */
	for (const char *const *a =
		     (const char *const[]){"dpdk", "--no-pci", "--iova-mode=va", "-m", "160",
					   "--no-telemetry", "--log-level=1", prefix, dir, "-l",
					   cpu, NULL};
	     *a; a++)
		argv[argc++] = (char *)(uintptr_t)*a;
	argv[argc++] = (char *)(uintptr_t)(side ? "--proc-type=secondary" : "--proc-type=primary");
	need(rte_eal_init(argc, argv) >= 0, "rte_eal_init");
}

static void open_side(int side)
{
	char mine[16], theirs[16];

	if (!getenv("BENCH_HUGE"))
		pair_die("BENCH_HUGE", "not set");
	snprintf(mine, sizeof mine, "%d", (int)getpid());
	if (side == 0) {
		start_eal(side, mine);
		create();
	}
	pair_exchange(side, mine, theirs, sizeof mine);
	if (side == 1)
		start_eal(side, theirs);
	tx = rte_ring_lookup(NAMES[side][0]);
	tx_free = rte_ring_lookup(NAMES[side][1]);
	rx = rte_ring_lookup(NAMES[!side][0]);
	rx_free = rte_ring_lookup(NAMES[!side][1]);
	need(tx && tx_free && rx && rx_free, "lookup");
	tx_memory = rte_memzone_lookup(NAMES[side][2])->addr;
	rx_memory = rte_memzone_lookup(NAMES[!side][2])->addr;
}

static char *at(char *memory, const void *number, size_t len)
{
	return memory + ((uintptr_t)number - 1) * stride(len);
}

/* Large messages go one by one: while one is copied out, the next is copied in. */
static unsigned burst(size_t len, uint64_t n)
{
	unsigned most = len > 65536 ? 1 : BURST;

	return n < most ? (unsigned)n : most;
}

static void stream_send(void *buf, size_t len, uint64_t n, int touch)
{
	void *b[BURST];

	while (n) {
		unsigned k = rte_ring_sc_dequeue_burst(tx_free, b, burst(len, n), NULL);

		for (unsigned i = 0; i < k; i++) {
			if (touch)
				pair_produce(buf, len, n - i);
			rte_memcpy(at(tx_memory, b[i], len), buf, len);
		}
		while (k && rte_ring_sp_enqueue_bulk(tx, b, k, NULL) == 0)
			;
		n -= k;
	}
}

static void stream_recv(void *buf, size_t len, uint64_t n, int touch)
{
	void *b[BURST];

	while (n) {
		unsigned k = rte_ring_sc_dequeue_burst(rx, b, burst(len, n), NULL);

		for (unsigned i = 0; i < k; i++) {
			rte_memcpy(buf, at(rx_memory, b[i], len), len);
			if (touch)
				pair_consume(buf, len);
		}
		while (k && rte_ring_sp_enqueue_bulk(rx_free, b, k, NULL) == 0)
			;
		n -= k;
	}
}

static void d_send(const void *buf, size_t len)
{
	stream_send((void *)(uintptr_t)buf, len, 1, 0);
}

static void d_recv(void *buf, size_t len)
{
	stream_recv(buf, len, 1, 0);
}

static void close_side(int side)
{
	char none = 0;

	pair_exchange(side, &none, &none, 1); /* the secondary needs the primary until here */
	rte_eal_cleanup();
}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "ring",
		 .open = open_side,
		 .send = d_send,
		 .recv = d_recv,
		 .stream_send = stream_send,
		 .stream_recv = stream_recv,
		 .close = close_side,
		 .flags = PAIR_TOUCHES,
		 .most = MOST},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
