/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Many large messages under way at once, some in packets, some fetched, short ones and tries
 * between them: whole and in order. And one that waits for its receive lets others past.
 */
#include <stdlib.h>
#include <string.h>

#include <slmpm_mode.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define WINDOW 16
#define LARGE  ((size_t)1 << 20)
#define KIB    ((size_t)1024)
#define FILLS  7
#define HUGE   ((size_t)24 << 20) /* more than is read of one before others have their turn */
#define HUGES  8

static unsigned char out[LARGE], in[WINDOW][LARGE];

static const size_t LENGTHS[] = {8, 20 * KIB, 64 * KIB, 64 * KIB, 200 * KIB, 256 * KIB, LARGE};

static size_t length_of(uint64_t seed, uint64_t i)
{
	struct rng g = {seed + i};

	return LENGTHS[rng_below(&g, sizeof(LENGTHS) / sizeof(*LENGTHS))];
}

/* Message I begins at byte I of what is sent, so that none is like its neighbours. */
static void check(const unsigned char *got, size_t length, uint64_t i)
{
	for (size_t k = 0; k < length; k += k + 4096 < length ? 4093 : 1)
		CHECK(got[k] == (unsigned char)((k + i) * 37 >> 3), "message %d, byte %zu", (int)i,
		      k);
}

static void *huge(void)
{
	void *at = calloc(1, HUGE);

	CHECK(at, "no memory");
	return at;
}

static void receive_next(slmpm_peer host, slmpm_req *req, unsigned char *room)
{
	const struct slmpm_iov piece = {room, LARGE};

	EXPECT(slmpm_recvv(host, 1, &piece, 1, NULL, req), 0);
}

/* ---- the other side ------------------------------------------------------------------------- */

static int take(slmpm_peer host, char **words)
{
	uint64_t seed = strtoull(words[0], NULL, 10), count = strtoull(words[1], NULL, 10);
	slmpm_req reqs[WINDOW] = {{0}};

	for (uint64_t i = 0; i < WINDOW; i++)
		receive_next(host, &reqs[i], in[i]);
	for (uint64_t i = 0; i < count; i++) {
		struct slmpm_done done;
		uint64_t at = i % WINDOW;

		EXPECT(slmpm_wait(&reqs[at], 1, &done, PATIENCE), 0);
		CHECK(done.status == 0 && done.imm == i && done.len == length_of(seed, i),
		      "message %d: %d, imm %u, %llu bytes", (int)i, done.status, done.imm,
		      (unsigned long long)done.len);
		check(in[at], done.len, i);
		if (i + WINDOW < count)
			receive_next(host, &reqs[at], in[at]);
	}
	OK(slmpm_send(host, 2, NULL, 0, PATIENCE));
	return 0;
}

static int take_second_first(slmpm_peer host, char **words)
{
	(void)words;
	EXPECT(slmpm_recv(host, 2, in[0], LARGE, NULL, PATIENCE), (int64_t)(48 * KIB));
	for (int i = 0; i < FILLS; i++)
		EXPECT(slmpm_recv(host, 3, in[0], LARGE, NULL, PATIENCE), (int64_t)(32 * KIB));
	EXPECT(slmpm_recv(host, 1, in[0], LARGE, NULL, PATIENCE), (int64_t)(100 * KIB));
	return 0;
}

/* Its ring has room for more announcements than this side has for what it says of each. */
static int take_huge(slmpm_peer host, char **words)
{
	const struct slmpm_iov piece = {huge(), HUGE};
	slmpm_req reqs[HUGES];

	(void)words;
	for (int i = 0; i < HUGES; i++)
		EXPECT(slmpm_recvv(host, 1, &piece, 1, NULL, &reqs[i]), 0);
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	for (int i = 0; i < HUGES; i++)
		EXPECT(slmpm_wait(&reqs[i], 1, NULL, PATIENCE), 0);
	return 0;
}

/* ---- scenes --------------------------------------------------------------------------------- */

struct scene {
	const char *fetch;
	uint64_t seed, count;
};

static int windows(void *arg)
{
	static unsigned char bytes[2 * LARGE];
	const struct scene *s = arg;
	slmpm_req reqs[WINDOW] = {{0}};
	char seed[24], count[24];
	slmpm_peer peer;

	CHECK(setenv("SLMPM_FETCH", s->fetch, 1) == 0, "setenv");
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)s->seed);
	snprintf(count, sizeof(count), "%llu", (unsigned long long)s->count);
	for (size_t k = 0; k < sizeof(bytes); k++)
		bytes[k] = (unsigned char)(k * 37 >> 3);
	peer = actor_spawn("take", seed, count);
	for (uint64_t i = 0; i < s->count; i++) {
		struct slmpm_how how = {.size = sizeof(how), .imm = (uint32_t)i};
		struct slmpm_iov piece = {bytes + i, length_of(s->seed, i)};
		slmpm_req *req = &reqs[i % WINDOW];

		if (req->id)
			EXPECT(slmpm_wait(req, 1, NULL, PATIENCE), 0);
		/* A try that comes to nothing is made again as a request. */
		if (i % 5 == 4 && slmpm_sendv(peer, 1, &piece, 1, &how, NULL) == 0)
			*req = (slmpm_req){0};
		else
			OK(slmpm_sendv(peer, 1, &piece, 1, &how, req));
	}
	EXPECT(slmpm_recv(peer, 2, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* There is no credit for it to go in packets: what has room does. */
static int past_one_that_waits(void *unused)
{
	static const size_t FIRST = 100 * KIB, THEN = 48 * KIB, FILL = 32 * KIB;
	const struct slmpm_how packets = {
		.size = sizeof(packets), .flags = SLMPM_VIA(SLMPM_BY_SMT), .timeout_ms = PATIENCE};
	struct slmpm_iov piece = {out, FIRST}, then = {out, THEN};
	slmpm_req req;
	slmpm_peer peer;

	(void)unused;
	CHECK(setenv("SLMPM_FETCH", "always", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_EAGER_CREDIT", "320k", 1) == 0, "setenv");
	peer = actor_spawn("second first", NULL, NULL);
	for (int i = 0; i < FILLS; i++)
		OK(slmpm_send(peer, 3, out, FILL, PATIENCE));
	OK(slmpm_sendv(peer, 1, &piece, 1, NULL, &req));
	OK(slmpm_sendv(peer, 2, &then, 1, &packets, NULL));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int huge_ones(void *unused)
{
	struct slmpm_iov piece = {huge(), HUGE};
	slmpm_req reqs[HUGES];
	slmpm_peer peer;

	(void)unused;
	CHECK(setenv("SLMPM_FETCH", "always", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_RING_SEGMENTS", "128", 1) == 0, "setenv");
	peer = actor_spawn("huge", NULL, NULL);
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	for (int i = 0; i < HUGES; i++)
		OK(slmpm_sendv(peer, 1, &piece, 1, NULL, &reqs[i]));
	for (int i = 0; i < HUGES; i++)
		EXPECT(slmpm_wait(&reqs[i], 1, NULL, PATIENCE), 0);
	free(piece.base);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"take", take},
					     {"second first", take_second_first},
					     {"huge", take_huge},
					     {NULL, NULL}};
	static const char *const ways[] = {"always", "auto"};
	unsigned slow = (unsigned)actor_slow();

	CHECK(setenv("SLMPM_FETCH_MIN", "40k", 1) == 0, "setenv");
	if (argc > 1)
		CHECK(setenv("SLMPM_RING_SEGMENTS", "16384", 1) == 0, "setenv");
	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++) {
		struct scene s = {ways[i], rng_run_seed(7), 400};

		CHECK(child_run(windows, &s, 20 * slow) == 0, "SLMPM_FETCH=%s", ways[i]);
	}
	CHECK(child_run(past_one_that_waits, NULL, 20 * slow) == 0, "see above");
	CHECK(child_run(huge_ones, NULL, 20 * slow) == 0, "see above");
	return 0;
}
