/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Puts that both sides copy: the bytes are right whoever copied them, also under a target that is
 * busy, that takes its region back, that is killed, and of an origin that is killed or takes the
 * source away. The source is overwritten as soon as the put is done.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"
#include "tests/lib/share_pair.h"

#define SIZE   (3u << 20)
#define ROUNDS 40
#define KILLS  4

enum { ORDER = 1, DONE };

enum what { CHECK_IT, BE_BUSY, REVOKE, STOP };

struct order {
	uint32_t what;
	uint64_t seed, offset, length;
};

static void set_up(struct share_side *s, slmpm_peer peer)
{
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	share_side_open(s, ctx, peer, SIZE);
}

static void tell(struct share_side *s, uint32_t what, uint64_t seed, uint64_t offset,
		 uint64_t length)
{
	struct order o = {what, seed, offset, length};

	OK(slmpm_send(s->peer, ORDER, &o, sizeof(o), PATIENCE));
}

/* ---- the target ------------------------------------------------------------------------------ */

static int target(slmpm_peer host, char **words)
{
	struct order o = {.what = CHECK_IT};
	struct share_side s;

	(void)words;
	set_up(&s, host);
	while (o.what != STOP) {
		if (slmpm_recv(host, ORDER, &o, sizeof(o), NULL, -1) != sizeof(o))
			return 1;
		if (o.what == BE_BUSY) {
			for (int64_t until = actor_now_ms() + 1; actor_now_ms() <= until;)
				;
		} else if (o.what == CHECK_IT) {
			CHECK(actor_filled(s.landed + o.offset, o.seed, o.length), "%d bytes at %d",
			      (int)o.length, (int)o.offset);
			/* And one that way. */
			actor_fill(s.from, o.seed + 1, o.length);
			OK(slmpm_put(s.to, o.offset, s.from, o.length, NULL, NULL));
			memset(s.from, 0xee, o.length);
			OK(slmpm_send(host, DONE, NULL, 0, PATIENCE));
		} else if (o.what == REVOKE) {
			for (int64_t until = actor_now_ms() + (int64_t)o.seed;
			     actor_now_ms() <= until;)
				(void)slmpm_progress(s.ctx);
			OK(slmpm_mem_revoke(s.landing, host, PATIENCE));
		}
	}
	share_side_close(&s);
	return 0;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static void one(struct share_side *s, struct rng *g, uint64_t seed)
{
	uint32_t length = 32768 + rng_below(g, SIZE - 32768), offset = rng_below(g, SIZE - length);
	uint32_t at = rng_below(g, SIZE - length + 1);
	bool busy = rng_one_in(g, 4);

	actor_fill(s->from + at, seed, length);
	if (busy)
		tell(s, BE_BUSY, 0, 0, 0);
	OK(slmpm_put(s->to, offset, s->from + at, length, NULL, NULL));
	memset(s->from + at, 0xdd, length);
	tell(s, CHECK_IT, seed, offset, length);
	EXPECT(slmpm_recv(s->peer, DONE, NULL, 0, NULL, PATIENCE), 0);
	CHECK(actor_filled(s->landed + offset, seed + 1, length), "%d bytes back", (int)length);
}

static void storm(const char *how)
{
	struct rng g = {rng_run_seed(UINT64_C(0x5ba2e))};
	struct slmpm_stats before, stats;
	struct share_side s;

	set_up(&s, actor_spawn("target", NULL, NULL));
	OK(slmpm_peer_stats(s.peer, &before, sizeof(before)));
	for (uint64_t i = 0; i < ROUNDS / (uint64_t)actor_slow(); i++)
		one(&s, &g, 2 * i);
	OK(slmpm_peer_stats(s.peer, &stats, sizeof(stats)));
	CHECK(stats.shared_bytes <= stats.put_bytes, "%d of the bytes", (int)stats.shared_bytes);
	/* On one processor nobody comes in time. */
	if (!strcmp(how, "always"))
		printf("%d of %d puts shared\n", (int)(stats.shared_puts - before.shared_puts),
		       (int)(stats.puts - before.puts));
	if (!strcmp(how, "never"))
		EXPECT(stats.shared_puts, 0);
	/* What was offered to a busy target is gone when it looks. */
	tell(&s, BE_BUSY, 0, 0, 0);
	OK(slmpm_put(s.to, 0, s.from, SIZE, NULL, NULL));
	share_side_renew(&s);
	tell(&s, STOP, 0, 0, 0);
	actor_join(s.peer, 0);
	share_side_close(&s);
}

static void take_back(struct rng *g)
{
	struct share_side s;
	int rc = 0;

	set_up(&s, actor_spawn("target", NULL, NULL));
	tell(&s, REVOKE, 1 + rng_below(g, 5), 0, 0);
	while (rc == 0)
		rc = slmpm_put(s.to, rng_below(g, 4096), s.from, SIZE - 4096, NULL, NULL);
	EXPECT(rc, -SLMPM_EACCES);
	share_side_renew(&s);
	tell(&s, STOP, 0, 0, 0);
	actor_join(s.peer, 0);
	share_side_close(&s);
}

static int put_for_ever(slmpm_peer host, char **words)
{
	struct share_side s;

	(void)words;
	set_up(&s, host);
	while (slmpm_put(s.to, 0, s.from, SIZE, NULL, NULL) == 0)
		;
	return 0;
}

static void kill_target(struct rng *g)
{
	int64_t until = actor_now_ms() + 5 + (int64_t)rng_below(g, 20), late;
	bool killed = false;
	struct share_side s;
	int rc = 0;

	set_up(&s, actor_spawn("target", NULL, NULL));
	for (late = 0; rc == 0;) {
		rc = slmpm_put(s.to, 0, s.from, SIZE / 4, NULL, NULL);
		if (rc == 0)
			rc = slmpm_flush(s.peer, PATIENCE);
		if (!killed && actor_now_ms() >= until) {
			OK(kill(pid_of(s.peer), SIGKILL));
			killed = true;
			late = actor_now_ms();
		}
	}
	CHECK(killed && rc == -SLMPM_EDEAD, "%d: %s", rc, slmpm_error_detail());
	CHECK(actor_now_ms() - late < 1000 * actor_slow(), "known after %d ms",
	      (int)(actor_now_ms() - late));
	EXPECT(slmpm_join(s.peer, NULL, PATIENCE), 128 + SIGKILL);
	share_side_close(&s);
}

static void kill_origin(struct rng *g)
{
	struct share_side s;
	int64_t until;
	char byte;

	set_up(&s, actor_spawn("put_for_ever", NULL, NULL));
	for (until = actor_now_ms() + 5 + (int64_t)rng_below(g, 20); actor_now_ms() < until;)
		(void)slmpm_progress(s.ctx);
	OK(kill(pid_of(s.peer), SIGKILL));
	EXPECT(slmpm_recv(s.peer, DONE, &byte, 1, NULL, PATIENCE), -SLMPM_EDEAD);
	EXPECT(slmpm_join(s.peer, NULL, PATIENCE), 128 + SIGKILL);
	share_side_close(&s);
}

/* ---- a ring full of what nobody reads -------------------------------------------------------- */

/* Fills the ring of a target that is stopped, but for LEAVE segments. */
static void fill_ring(const struct share_side *s, uint64_t leave)
{
	const struct slmpm_how at_once = {.size = sizeof(at_once)};
	struct slmpm_stats stats;
	uint64_t room;

	do {
		OK(slmpm_peer_stats(s->peer, &stats, sizeof(stats)));
		room = stats.out_segments - (stats.out_produced - stats.out_consumed);
	} while (room > leave && slmpm_am(s->peer, 1, NULL, 0, "8 bytes", 8, &at_once, NULL) == 0);
	EXPECT(room, leave);
}

/* There is room to offer a share, and perhaps none to ask for it back: who is stopped before it has
 * taken anything is not waited for, and takes nothing when it goes on. */
static void put_past_full_ring(uint64_t leave)
{
	struct share_side s;

	set_up(&s, actor_spawn("target", NULL, NULL));
	tell(&s, CHECK_IT, 0, 0, 0);
	share_side_await(&s, DONE);
	OK(kill(pid_of(s.peer), SIGSTOP));
	actor_await_state(pid_of(s.peer), "T");
	fill_ring(&s, leave);
	actor_fill(s.from, leave, SIZE);
	OK(slmpm_put(s.to, 0, s.from, SIZE, NULL, NULL));
	memset(s.from, 0xdd, SIZE);
	OK(kill(pid_of(s.peer), SIGCONT));
	tell(&s, CHECK_IT, leave, 0, SIZE);
	EXPECT(slmpm_recv(s.peer, DONE, NULL, 0, NULL, PATIENCE), 0);
	tell(&s, STOP, 0, 0, 0);
	actor_join(s.peer, 0);
	share_side_close(&s);
}

static int full_ring(void *unused)
{
	(void)unused;
	setenv("SLMPM_SHARE", "always", 1);
	setenv("SLMPM_SHARE_MIN", "32k", 1);
	setenv("SLMPM_RING_SEGMENTS", "256", 1);
	setenv("SLMPM_EAGER_CREDIT", "64m", 1);
	for (uint64_t leave = 0; leave <= 6; leave++)
		put_past_full_ring(leave);
	return 0;
}

/* ---- a source that nobody maps --------------------------------------------------------------- */

/* Where the target could only attach to the source it copies nothing: there is no offer. */
static int own_source(void *unused)
{
	static unsigned char memory[SIZE];
	struct slmpm_stats before, after;
	struct slmpm_key key;
	slmpm_mem mem;
	struct share_side s;

	(void)unused;
	setenv("SLMPM_SHARE", "always", 1);
	setenv("SLMPM_WAIT", "spin", 1);
	set_up(&s, actor_spawn("target", NULL, NULL));
	OK(slmpm_mem_register(s.ctx, memory, SIZE, SLMPM_READ, &mem));
	OK(slmpm_mem_key(mem, s.peer, SLMPM_READ, &key));
	OK(slmpm_peer_stats(s.peer, &before, sizeof(before)));
	for (uint64_t i = 0; i < ROUNDS; i += 2) {
		actor_fill(memory, i, SIZE);
		OK(slmpm_put(s.to, 0, memory, SIZE, NULL, NULL));
		memset(memory, 0xdd, SIZE);
		tell(&s, CHECK_IT, i, 0, SIZE);
		EXPECT(slmpm_recv(s.peer, DONE, NULL, 0, NULL, PATIENCE), 0);
	}
	OK(slmpm_peer_stats(s.peer, &after, sizeof(after)));
	EXPECT(after.puts - before.puts, ROUNDS / 2);
	EXPECT(after.shared_puts, before.shared_puts);
	tell(&s, STOP, 0, 0, 0);
	actor_join(s.peer, 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	share_side_close(&s);
	return 0;
}

static int body(void *arg)
{
	struct rng g = {rng_run_seed(UINT64_C(0xdead))};
	struct holdings before;
	slmpm_ctx ctx;

	setenv("SLMPM_SHARE", arg, 1);
	setenv("SLMPM_SHARE_MIN", "32k", 1);
	setenv("SLMPM_WAIT", "spin", 1); /* the target is there in time, if it has a processor */
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	OK(slmpm_default(&ctx));
	before = holdings_now();
	storm(arg);
	for (int i = 0; i < KILLS; i++) {
		take_back(&g);
		kill_target(&g);
		kill_origin(&g);
	}
	holdings_expect(before, "shared puts");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"target", target}, {"put_for_ever", put_for_ever}, {NULL, NULL}};
	static const char *const ways[] = {"always", "auto", "never"};
	int failed = 0;

	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	for (int i = 0; i < 3; i++) {
		int status =
			child_run(body, (void *)(uintptr_t)ways[i], 20 * (unsigned)actor_slow());

		printf("%-8s %s\n", ways[i], status ? "FAILED" : "ok");
		failed |= status;
	}
	CHECK(child_run(full_ring, NULL, 5 * (unsigned)actor_slow()) == 0, "see above");
	CHECK(child_run(own_source, NULL, 5 * (unsigned)actor_slow()) == 0, "see above");
	return failed ? 1 : 0;
}
