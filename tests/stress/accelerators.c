/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sixty-four accelerators that all send to one host as fast as it takes: nothing is lost, damaged
 * or out of order, and none is forgotten. SLMPM_TEST_SECONDS says for how long.
 */
#include <slmpm.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define ACCELERATORS 64
#define MS           30000
#define LONG         ((size_t)40000) /* beyond the eager limit: waits for its receive */
#define STREAM_STOP  7
#define STREAM_COUNT 8
#define OK(call)     CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

struct message {
	uint64_t index, seq;
	unsigned char rest[LONG - 16];
};

static struct message buffer;

static size_t length_of(uint64_t index, uint64_t seq)
{
	struct rng g = {index << 32 ^ seq};

	return rng_one_in(&g, 500) ? LONG : 16 + rng_below(&g, rng_one_in(&g, 20) ? 9000 : 500);
}

static unsigned char filling(uint64_t index, uint64_t seq, size_t at)
{
	return (unsigned char)(index * 7 + seq * 13 + at);
}

/* ---- an accelerator ------------------------------------------------------------------------- */

static void send_next(slmpm_peer host, uint64_t index, uint64_t seq)
{
	size_t n = length_of(index, seq);

	buffer.index = index;
	buffer.seq = seq;
	/* Its ends tell enough, and the test is to keep the ring busy. */
	if (n > 16)
		buffer.rest[0] = filling(index, seq, 0);
	if (n > 17)
		buffer.rest[n - 17] = filling(index, seq, n - 17);
	OK(slmpm_send(host, (uint32_t)(seq % 5), &buffer, n, MS));
}

static int accelerate(uint64_t index)
{
	uint64_t seq = 0;
	slmpm_peer host;
	int64_t stop;

	OK(slmpm_parent(&host));
	do {
		for (int i = 0; i < 64; i++)
			send_next(host, index, seq++);
		stop = slmpm_recv(host, STREAM_STOP, NULL, 0, NULL, 0);
		CHECK(stop == 0 || stop == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
	} while (stop);
	OK(slmpm_send(host, STREAM_COUNT, &seq, sizeof(seq), MS));
	CHECK(slmpm_recv(host, 0, NULL, 0, NULL, MS) == -SLMPM_ECLOSED, "no end of stream");
	return 0;
}

/* ---- the host ------------------------------------------------------------------------------- */

static slmpm_peer peers[ACCELERATORS];
static uint64_t next_seq[ACCELERATORS], before[ACCELERATORS];
static int counted;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int number_of(slmpm_peer peer)
{
	for (int i = 0; i < ACCELERATORS; i++)
		if (peers[i].id == peer.id)
			return i;
	CHECK(0, "a message of nobody");
}

static void take_one(void)
{
	struct slmpm_done done;
	int64_t n = slmpm_recv(slmpm_any((slmpm_ctx){0}), SLMPM_ANY_STREAM, &buffer, sizeof(buffer),
			       &done, MS);
	uint64_t index, seq;

	CHECK(n >= 0, "%s", slmpm_error_detail());
	index = (uint64_t)number_of(done.peer);
	if (done.stream == STREAM_COUNT) {
		CHECK(buffer.index == next_seq[index], "%llu sent, %llu came",
		      (unsigned long long)buffer.index, (unsigned long long)next_seq[index]);
		counted++;
		return;
	}
	seq = next_seq[index]++;
	CHECK(buffer.index == index && buffer.seq == seq, "%llu's %llu instead of %llu's %llu",
	      (unsigned long long)buffer.index, (unsigned long long)buffer.seq,
	      (unsigned long long)index, (unsigned long long)seq);
	CHECK((size_t)n == length_of(index, seq) && done.stream == seq % 5, "length or stream");
	CHECK(n <= 16 || (buffer.rest[0] == filling(index, seq, 0) &&
			  buffer.rest[n - 17] == filling(index, seq, (size_t)n - 17)),
	      "damaged");
}

static void start_all(void)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	char text[16], *argv[] = {text, NULL};

	for (int i = 0; i < ACCELERATORS; i++) {
		snprintf(text, sizeof(text), "%d", i);
		o.element = (uint32_t)i + 1;
		OK(slmpm_spawn(&peers[i], "/proc/self/exe", argv, &o));
	}
	for (int i = 0; i < ACCELERATORS; i++)
		while (!next_seq[i])
			take_one();
}

/* In messages since all were up. */
static void tell_shares(void)
{
	uint64_t least = UINT64_MAX, most = 0, sum = 0;

	for (int i = 0; i < ACCELERATORS; i++) {
		uint64_t got = next_seq[i] - before[i];

		sum += got;
		least = got < least ? got : least;
		most = got > most ? got : most;
	}
	printf("%llu messages; of %llu on average the slowest sent %llu, the fastest %llu\n",
	       (unsigned long long)sum, (unsigned long long)(sum / ACCELERATORS),
	       (unsigned long long)least, (unsigned long long)most);
	/* Their exact shares are the benchmark's matter; here none may be left behind. */
	CHECK(least > 0 && least >= sum / ACCELERATORS / 4, "one has been forgotten");
}

int main(int argc, char **argv)
{
	const char *seconds = getenv("SLMPM_TEST_SECONDS");
	uint64_t end;

	if (argc > 1)
		return accelerate(strtoull(argv[1], NULL, 10));
	/* So many at once, perhaps slowed down by a sanitizer, are long on their way. */
	setenv("SLMPM_HANDSHAKE_MS", "60000", 0);
	start_all();
	memcpy(before, next_seq, sizeof(before));
	end = now_ms() + 1000 * (seconds ? strtoull(seconds, NULL, 10) : 2);
	while (now_ms() < end)
		for (int i = 0; i < 100; i++)
			take_one();
	tell_shares();
	for (int i = 0; i < ACCELERATORS; i++)
		OK(slmpm_send(peers[i], STREAM_STOP, NULL, 0, MS));
	while (counted < ACCELERATORS)
		take_one();
	for (int i = 0; i < ACCELERATORS; i++) {
		struct slmpm_stats stats;

		OK(slmpm_peer_stats(peers[i], &stats, sizeof(stats)));
		CHECK(stats.received_messages == next_seq[i] + 1 && !stats.violations &&
			      !stats.remote_reads,
		      "statistics");
		CHECK(slmpm_join(peers[i], NULL, MS) == 0, "%s", slmpm_error_detail());
	}
	return 0;
}
