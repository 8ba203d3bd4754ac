/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Writer and reader as two threads on one mapping, so that a race detector sees both: every byte
 * and the order are checked while both spin, and while both sleep by either kind of doorbell.
 */
#include <pthread.h>
#include <sys/socket.h>

#include "tests/lib/random.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/ring_traffic.h"
#include "tests/lib/test.h"

enum waiting { SPIN, SLEEP_FENCE, SLEEP_MEMBARRIER };

static const char *const waiting_names[] = {"spinning", "sleeping, fences", "sleeping, membarrier"};

static uint64_t slept[SLEEP_MEMBARRIER + 1];

struct run {
	struct ring_pair pair;
	struct ring_traffic traffic;
	struct doorbell writer_bell, reader_bell;
	struct ring_tally sent, received;
};

static void *send_thread(void *arg)
{
	struct run *run = arg;

	ring_send_traffic(&run->pair.w, &run->writer_bell, &run->traffic, &run->sent);
	return NULL;
}

static void *receive_thread(void *arg)
{
	struct run *run = arg;

	ring_receive_traffic(&run->pair.r, &run->reader_bell, &run->traffic, &run->received);
	return NULL;
}

static void join_bells(struct run *run, const atomic_int *fds, bool fence)
{
	_Atomic uint64_t *in_ring = &ring_words_of(run->pair.inbound)->asleep;
	_Atomic uint64_t *in_back = &ring_words_of(run->pair.back)->asleep;

	run->writer_bell = (struct doorbell){.asleep_in = in_back,
					     .asleep_out = in_ring,
					     .fd = &fds[0],
					     .no_membarrier = fence,
					     .fence = fence};
	run->reader_bell = (struct doorbell){.asleep_in = in_ring,
					     .asleep_out = in_back,
					     .fd = &fds[1],
					     .no_membarrier = fence,
					     .fence = fence};
}

static void one_run(struct rng *g, uint32_t segments, uint32_t segment_size, enum waiting waiting)
{
	struct ring_setup setup = {
		.shape = {segments, segment_size},
		.epoch = (uint32_t)rng_next(g),
		.start = (uint64_t)0 - rng_below(g, 4096),
		.threshold = rng_below(g, segments),
		.batch = 1 + rng_below(g, segments / 2),
	};
	struct run run = {
		.traffic =
			{
				.seed = rng_next(g),
				.milliseconds = 300,
				.hold_most = rng_below(g, segments < 8 ? 2 : 8),
				.spins = rng_below(g, 3),
				.sleep = waiting != SPIN,
			},
	};
	pthread_t sender, receiver;
	static atomic_int bells[2];
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0, "no sockets");
	ring_pair_open(&run.pair, &setup);
	bells[0] = fds[0];
	bells[1] = fds[1];
	join_bells(&run, bells, waiting != SLEEP_MEMBARRIER);
	CHECK(pthread_create(&receiver, NULL, receive_thread, &run) == 0 &&
		      pthread_create(&sender, NULL, send_thread, &run) == 0,
	      "no threads");
	pthread_join(sender, NULL);
	pthread_join(receiver, NULL);
	CHECK(run.sent.packets == run.received.packets && run.sent.bytes == run.received.bytes,
	      "%llu packets sent, %llu received", (unsigned long long)run.sent.packets,
	      (unsigned long long)run.received.packets);
	CHECK(run.pair.r.consumed == run.pair.w.produced, "totals differ at the end");
	slept[waiting] += run.sent.sleeps + run.received.sleeps;
	printf("%4u x %4u, %-20s %8llu packets, %6llu + %6llu sleeps, %6llu + %6llu bells\n",
	       segments, segment_size, waiting_names[waiting], (unsigned long long)run.sent.packets,
	       (unsigned long long)run.sent.sleeps, (unsigned long long)run.received.sleeps,
	       (unsigned long long)run.writer_bell.bells,
	       (unsigned long long)run.reader_bell.bells);
	fflush(stdout);
	ring_pair_close(&run.pair);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	static const struct ring_shape shapes[] = {
		{2, 64}, {4, 64}, {8, 128}, {64, 64}, {1024, 64}};
	struct rng g = {rng_run_seed(0x7468726561647321)};
	bool membarrier = barrier_works();

	if (!membarrier)
		printf("without membarrier: that variant is skipped\n");
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (enum waiting waiting = SPIN; waiting <= SLEEP_MEMBARRIER; waiting++)
			if (waiting != SLEEP_MEMBARRIER || membarrier)
				one_run(&g, shapes[i].segments, shapes[i].segment_size, waiting);
	CHECK(slept[SLEEP_FENCE] && (slept[SLEEP_MEMBARRIER] || !membarrier), "nobody slept");
	return 0;
}
