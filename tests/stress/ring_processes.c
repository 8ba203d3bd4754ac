/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Writer and reader as two processes over sealed, nameless memory, each on mappings of its own,
 * awake and asleep; then a writer killed at any time, and what its reader is left with.
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "shm/mapping.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/ring_traffic.h"
#include "tests/lib/test.h"

struct run {
	struct ring_setup setup;
	struct ring_traffic traffic;
	struct mapping inbound, back; /* the reader's object and the writer's */
	int fds[2];
	atomic_int bells[2];
	bool fence;
	struct ring_reader r;
	struct ring_writer w;
	struct ring_tally tally;
};

static struct doorbell bell_of(struct run *run, void *own, void *peer, const atomic_int *fd)
{
	return (struct doorbell){.asleep_in = &ring_words_of(own)->asleep,
				 .asleep_out = &ring_words_of(peer)->asleep,
				 .fd = fd,
				 .no_membarrier = run->fence,
				 .fence = run->fence};
}

static int write_stream(void *arg)
{
	struct run *run = arg;
	struct doorbell bell;
	struct mapping peer, own;
	struct ring_setup setup = run->setup;

	CHECK(run->fence || barrier_works(), "the child has no membarrier");
	CHECK(mapping_attach(&peer, run->inbound.fd, ring_size(&setup.shape), MAPPING_WRITE) == 0,
	      "cannot attach the ring");
	CHECK(mapping_attach(&own, run->back.fd, sizeof(struct ring_words), MAPPING_WRITE) == 0,
	      "cannot attach the way back");
	setup.bits = calloc(1, ring_bits_size(&setup.shape));
	ring_lay_writer(&run->w, setup, peer.base, own.base);
	bell = bell_of(run, own.base, peer.base, &run->bells[1]);
	CHECK(send(run->fds[1], "r", 1, 0) == 1, "cannot report");
	ring_send_traffic(&run->w, &bell, &run->traffic, &run->tally);
	CHECK(!run->traffic.sleep || run->tally.packets > 0, "nothing was sent");
	return 0;
}

static void set_up(struct run *run, struct rng *g, uint32_t segments, bool sleep, bool fence)
{
	*run = (struct run){
		.setup =
			{
				.shape = {segments, 64},
				.epoch = (uint32_t)rng_next(g),
				.start = (uint64_t)0 - rng_below(g, 4096),
				.threshold = rng_below(g, segments),
				.batch = 1 + rng_below(g, segments / 2),
			},
		.traffic =
			{
				.seed = rng_next(g),
				.milliseconds = 300,
				.hold_most = rng_below(g, segments < 8 ? 2 : 8),
				.spins = rng_below(g, 3),
				.sleep = sleep,
			},
		.fence = fence,
	};
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, run->fds) == 0, "no sockets");
	for (int i = 0; i < 2; i++)
		run->bells[i] = run->fds[i];
	CHECK(mapping_create(&run->inbound, "ring_processes", ring_size(&run->setup.shape)) == 0 &&
		      mapping_create(&run->back, "ring_processes", sizeof(struct ring_words)) == 0,
	      "no shared memory");
	run->setup.bits = calloc(1, ring_bits_size(&run->setup.shape));
	ring_lay_reader(&run->r, run->setup, run->inbound.base, run->back.base);
}

/* Starts the writer and waits until it is there. */
static pid_t start_writer(struct run *run)
{
	pid_t pid = child_start(write_stream, run, 40);
	char ready;

	close(run->fds[1]);
	CHECK(recv(run->fds[0], &ready, 1, 0) == 1, "the writer did not start");
	return pid;
}

static void clean_up(struct run *run)
{
	free(run->setup.bits);
	mapping_destroy(&run->inbound);
	mapping_destroy(&run->back);
	close(run->fds[0]);
}

static void whole_stream(struct rng *g, uint32_t segments, bool sleep, bool fence)
{
	struct doorbell bell;
	struct run run;
	pid_t pid;

	set_up(&run, g, segments, sleep, fence);
	bell = bell_of(&run, run.inbound.base, run.back.base, &run.bells[0]);
	pid = start_writer(&run);
	ring_receive_traffic(&run.r, &bell, &run.traffic, &run.tally);
	CHECK(child_wait(pid) == 0, "the writer failed");
	CHECK(ring_unread(&run.r) == 0 && !run.r.violation, "totals differ at the end");
	printf("%4u segments, %-20s %8llu packets, %6llu sleeps of the reader\n", segments,
	       !sleep ? "spinning" :
	       fence  ? "sleeping, fences" :
			"sleeping, membarrier",
	       (unsigned long long)run.tally.packets, (unsigned long long)run.tally.sleeps);
	fflush(stdout);
	clean_up(&run);
}

/* Takes up to MOST packets while there are any: each the stream's next, and whole. */
static uint64_t drain(struct run *run, struct rng *stream, uint64_t most)
{
	struct ring_packet p;
	uint64_t count = 0;
	int rc = 0;

	while (count < most && (rc = ring_peek(&run->r, &p)) == 1) {
		CHECK(ring_traffic_next(stream, &run->r, &p), "a torn packet, or another one");
		ring_release(&run->r, &p);
		count++;
	}
	CHECK(rc >= 0, "the dead writer left violation %d", run->r.violation);
	return count;
}

static void killed_writer(struct rng *g)
{
	uint64_t wanted = rng_below(g, 3000);
	struct rng stream;
	struct run run;
	pid_t pid;

	set_up(&run, g, 64, false, true);
	run.traffic.milliseconds = 20000; /* far longer than it lives */
	pid = start_writer(&run);
	stream = (struct rng){run.traffic.seed};
	while (wanted)
		wanted -= drain(&run, &stream, wanted);
	CHECK(kill(pid, SIGKILL) == 0, "the writer was gone already");
	CHECK(child_wait(pid) == -SIGKILL, "the writer was not killed");
	(void)drain(&run, &stream, UINT64_MAX);
	CHECK(drain(&run, &stream, 1) == 0, "packets from the dead");
	CHECK(ring_unread(&run.r) == 0 && !run.r.violation, "the total counts what never came");
	clean_up(&run);
}

int main(void)
{
	static const uint32_t sizes[] = {2, 8, 64, 1024};
	struct rng g = {rng_run_seed(0x70726f6365737321)};
	bool membarrier = barrier_works();

	if (!membarrier)
		printf("without membarrier: that variant is skipped\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		whole_stream(&g, sizes[i], false, true);
		whole_stream(&g, sizes[i], true, true);
		if (membarrier)
			whole_stream(&g, sizes[i], true, false);
	}
	for (int i = 0; i < 50; i++)
		killed_writer(&g);
	printf("50 writers killed, their readers sound\n");
	return 0;
}
