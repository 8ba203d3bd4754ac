/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * SIGKILL amidst puts, gets and atomic operations, of who asks and of who is asked, on every way.
 * Of those that were killed the counter holds what was acknowledged and at most the one that is in
 * doubt; others go on; who is left waits for nothing. SLMPM_TEST_KILLS sets another number.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/death.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"
#include "tests/lib/way.h"

#define KILLS   3
#define BLOCK   60000
#define SIZE    (4096 + 3 * BLOCK)
#define LATEST  15 /* ms of a storm */
#define PENDING 24
#define PLACE   (3 * BLOCK / (PENDING + 1)) /* of each that is under way */

enum { KEY = 1, STOP, COUNT };

static unsigned char out[BLOCK], in[PENDING + 1][BLOCK];

/* ---- who asks is killed ---------------------------------------------------------------------- */

/* Counts, says how far, and makes a noise; until it is told to stop, or killed. */
static int count(slmpm_peer host, char **words)
{
	uint64_t index = strtoull(words[0], NULL, 10), n = 0, at = 4096 + index * BLOCK;
	slmpm_rmem rmem = way_open(host, KEY);
	struct slmpm_done done;

	actor_fill(out, index, BLOCK);
	while (slmpm_probe(host, STOP, &done, 0) != 1) {
		OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, NULL, NULL, NULL));
		n++;
		OK(slmpm_put(rmem, 8 + 8 * index, &n, 8, NULL, NULL));
		if (n % 3 == 0)
			OK(slmpm_put(rmem, at, out, n * 1013 % BLOCK, NULL, NULL));
		if (n % 4 == 0)
			OK(slmpm_get(rmem, at, in[0], n * 517 % BLOCK, NULL, NULL));
	}
	OK(slmpm_flush(host, PATIENCE));
	OK(slmpm_send(host, COUNT, &n, sizeof(n), PATIENCE));
	return 0;
}

static uint64_t word_at(const unsigned char *base, int i)
{
	uint64_t word;

	memcpy(&word, base + 8 * i, 8);
	return word;
}

static void storm_until(slmpm_ctx ctx, int64_t ms)
{
	int64_t until = actor_now_ms() + ms;

	while (actor_now_ms() < until)
		(void)slmpm_progress(ctx);
}

static void kill_who_asks(slmpm_ctx ctx, struct rng *g)
{
	slmpm_peer victim = actor_spawn("count", "0", NULL),
		   other = actor_spawn("count", "1", NULL);
	unsigned char *base, byte;
	uint64_t sum, n;
	slmpm_mem mem;
	int64_t begin;

	base = way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	way_give(mem, victim, KEY);
	way_give(mem, other, KEY);
	storm_until(ctx, 2 + rng_below(g, LATEST));
	OK(kill(pid_of(victim), SIGKILL));
	begin = actor_now_ms();
	EXPECT(slmpm_recv(victim, COUNT, &byte, 1, NULL, PATIENCE), -SLMPM_EDEAD);
	CHECK(actor_now_ms() - begin < 1500 * actor_slow(), "its death was known after %d ms",
	      (int)(actor_now_ms() - begin));
	storm_until(ctx, 2);
	OK(slmpm_send(other, STOP, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(other, COUNT, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	sum = word_at(base, 1) + word_at(base, 2);
	CHECK(n == word_at(base, 2), "the other counted %d and said %d", (int)n,
	      (int)word_at(base, 2));
	CHECK(word_at(base, 0) == sum || word_at(base, 0) == sum + 1,
	      "%d counted, %d and %d acknowledged", (int)word_at(base, 0), (int)word_at(base, 1),
	      (int)n);
	EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
	actor_join(other, 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* ---- who is asked is killed ------------------------------------------------------------------ */

static int own(slmpm_peer host, char **words)
{
	slmpm_ctx ctx;
	slmpm_mem mem;
	char byte;

	(void)words;
	OK(slmpm_default(&ctx));
	(void)way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	way_give(mem, host, KEY);
	(void)slmpm_recv(host, STOP, &byte, 1, NULL, -1);
	return 0;
}

/* What is under way at once needs a place each, here and there. */
static int ask(slmpm_rmem rmem, struct rng *g, slmpm_req *req, int place)
{
	static uint64_t old[PENDING + 1];
	uint64_t n = rng_below(g, PLACE), at = 4096 + (uint64_t)place * PLACE;

	switch (rng_below(g, 4)) {
	case 0: return slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old[place], NULL, req);
	case 1: return slmpm_get(rmem, at, in[place], n, NULL, req);
	default: return slmpm_put(rmem, at, out, n, NULL, req);
	}
}

static bool is_end(int rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

/* What goes directly needs no answer; that nobody is there any more shows all the same, soon. */
static void notice_soon(void)
{
	slmpm_peer victim = actor_spawn("own", NULL, NULL);
	slmpm_rmem rmem = way_open(victim, KEY);
	int rc = 0, n = 0;

	OK(kill(pid_of(victim), SIGKILL));
	actor_await_state(pid_of(victim), "ZX");
	while (rc == 0 && n++ < 16 * 1024)
		rc = slmpm_put(rmem, 4096, out, 8, NULL, NULL);
	CHECK(is_end(rc), "%d after %d puts to who is dead", rc, n);
	EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
}

static void kill_who_is_asked(struct rng *g)
{
	slmpm_peer victim = actor_spawn("own", NULL, NULL);
	slmpm_rmem rmem = way_open(victim, KEY);
	int64_t until = actor_now_ms() + 2 + rng_below(g, LATEST), late;
	slmpm_req req[PENDING] = {{0}};
	struct slmpm_done done;
	bool killed = false;
	int rc = 0, n = 0;

	while (rc == 0) {
		int turn = n++ % PENDING, place = rng_one_in(g, 3) ? PENDING : turn;
		slmpm_req *r = &req[turn];

		if (r->id) {
			rc = slmpm_wait(r, 1, &done, PATIENCE);
			CHECK(rc == 0, "a request has no end: %s", slmpm_error_detail());
			rc = done.status;
		}
		if (rc == 0)
			rc = ask(rmem, g, place == PENDING ? NULL : r, place);
		if (!killed && actor_now_ms() >= until) {
			OK(kill(pid_of(victim), SIGKILL));
			killed = true;
			until += PATIENCE;
		}
		CHECK(!killed || actor_now_ms() < until, "who is dead is asked for ever");
	}
	CHECK(is_end(rc) && killed, "an operation ended with %d: %s", rc, slmpm_error_detail());
	late = actor_now_ms();
	for (int i = 0; i < PENDING; i++)
		if (req[i].id) {
			EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
			CHECK(!done.status || is_end(done.status), "one ended with %d",
			      done.status);
		}
	CHECK(actor_now_ms() - late < 1500 * actor_slow(), "the others took %d ms",
	      (int)(actor_now_ms() - late));
	/* Its process may be known to be gone before the connection is. */
	while ((rc = slmpm_flush(victim, PATIENCE)) == 0)
		CHECK(actor_now_ms() - late < 2000 * actor_slow(), "who is dead is flushed");
	CHECK(is_end(rc), "flush: %s", slmpm_error_detail());
	EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
}

static int body(const struct way *w)
{
	struct rng g = {rng_run_seed(UINT64_C(0xdead))};
	const char *given = getenv("SLMPM_TEST_KILLS");
	int kills = given ? atoi(given) : KILLS;
	struct holdings before;
	slmpm_ctx ctx;

	(void)w;
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	OK(slmpm_default(&ctx));
	before = holdings_now();
	for (int i = 0; i < kills; i++) {
		kill_who_asks(ctx, &g);
		kill_who_is_asked(&g);
	}
	notice_soon();
	holdings_expect(before, "one-sided operations");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"count", count}, {"own", own}, {NULL, NULL}};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	return way_each(body, 20);
}
