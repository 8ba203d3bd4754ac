/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * SIGKILL of who leads a mirror, at each page of a publication and at any moment; of one who
 * follows, beside another; and of one whose changes count, too. What is left is a publication as a
 * whole, or a definite error and the front of one before the rest of the last.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define TAG    7u
#define PAGE   4096
#define PAGES  24
#define WORDS  (PAGES * PAGE / 8)
#define PLACES 64 /* that a follower changes in turns, at the end */
#define KILLS  5
#define LATEST 6 /* ms of a storm */

enum { GO = 1, STOP };

static _Alignas(65536) uint64_t room[WORDS];
static slmpm_ctx ctx;

static slmpm_mirror mirror_with(slmpm_peer peer, uint64_t *words, uint32_t how)
{
	slmpm_mirror m;

	OK(slmpm_mirror_create(ctx, words, WORDS * sizeof(*words), NULL, &m));
	OK(slmpm_mirror_attach(m, peer, TAG, how, PATIENCE));
	return m;
}

static int publish(slmpm_mirror m, uint64_t *words, uint64_t value, size_t n)
{
	int rc = slmpm_mirror_begin(m, PATIENCE);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++)
		words[i] = value;
	OK(slmpm_mirror_changed(m, words, n * sizeof(*words)));
	return slmpm_mirror_end(m);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void on_touch(int unused)
{
	(void)unused;
	death_now();
}

/* The second publication meets its end at a page. */
static int lead_to(slmpm_peer host, char **words)
{
	size_t safe = strtoull(words[0], NULL, 10) * PAGE;
	slmpm_mirror m = mirror_with(host, room, SLMPM_MIRROR_LEAD);
	char byte;

	OK(publish(m, room, 1, WORDS));
	OK(slmpm_mirror_flush(m, PATIENCE));
	EXPECT(slmpm_recv(host, GO, &byte, 1, NULL, PATIENCE), 1);
	OK(slmpm_mirror_begin(m, PATIENCE));
	for (size_t i = 0; i < WORDS; i++)
		room[i] = 2;
	OK(slmpm_mirror_changed(m, room, sizeof(room)));
	(void)signal(SIGSEGV, on_touch);
	if (safe < sizeof(room))
		OK(mprotect((char *)room + safe, sizeof(room) - safe, PROT_NONE));
	OK(slmpm_mirror_end(m));
	OK(slmpm_mirror_flush(m, PATIENCE));
	(void)slmpm_recv(host, STOP, &byte, 1, NULL, -1);
	return 0;
}

static int lead(slmpm_peer host, char **words)
{
	slmpm_mirror m = mirror_with(host, room, SLMPM_MIRROR_LEAD);

	(void)words;
	for (uint64_t n = 1;; n++)
		OK(publish(m, room, n, WORDS));
}

/* Until it is told how far the leader came. */
static int follow(slmpm_peer host, char **words)
{
	static uint64_t copy[WORDS];
	const struct slmpm_span all = {0, sizeof(copy)};
	slmpm_mirror m = mirror_with(host, room, SLMPM_MIRROR_FOLLOW);
	uint64_t last;

	(void)words;
	EXPECT(slmpm_recv(host, STOP, &last, sizeof(last), NULL, PATIENCE), sizeof(last));
	OK(slmpm_mirror_snapshot(m, host, &all, 1, copy, NULL, PATIENCE));
	for (size_t i = 0; i < WORDS; i++)
		CHECK(copy[i] == last, "word %zu is %d, not %d", i, (int)copy[i], (int)last);
	return 0;
}

static int change(slmpm_peer host, char **words)
{
	slmpm_mirror m = mirror_with(host, room, SLMPM_MIRROR_FOLLOW | SLMPM_MIRROR_BOTH);

	(void)words;
	for (uint64_t n = 1;; n++) {
		OK(slmpm_mirror_store64(m, &room[WORDS - PLACES + n % PLACES], n));
		OK(slmpm_mirror_flush(m, PATIENCE));
	}
}

/* ---- what is left ---------------------------------------------------------------------------- */

static void storm(slmpm_peer peer, slmpm_mirror m, int64_t ms)
{
	static uint64_t copy[WORDS];
	const struct slmpm_span all = {0, sizeof(copy)};

	for (int64_t until = actor_now_ms() + ms; actor_now_ms() < until;) {
		OK(slmpm_mirror_snapshot(m, peer, &all, 1, copy, NULL, PATIENCE));
		for (size_t i = 1; i < WORDS; i++)
			CHECK(copy[i] == copy[0], "a snapshot has %d and %d", (int)copy[0],
			      (int)copy[i]);
	}
}

/* Its end is known, and all that had come before. */
static struct slmpm_mirror_info end_of(slmpm_peer peer, slmpm_mirror m)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};
	uint64_t sequence = UINT64_MAX;

	EXPECT(slmpm_mirror_wait(m, peer, &sequence, PATIENCE), -SLMPM_EDEAD);
	OK(slmpm_mirror_query(m, peer, &info));
	CHECK(info.state == SLMPM_MIRROR_STALE && info.error == -SLMPM_EDEAD, "state %u, error %d",
	      info.state, info.error);
	return info;
}

/* True: a part of another publication is there. */
static bool look_at_rest(slmpm_peer peer, slmpm_mirror m)
{
	static uint64_t copy[WORDS];
	const struct slmpm_span all = {0, sizeof(copy)};
	struct slmpm_mirror_info info = end_of(peer, m);
	uint64_t sequence = 0;
	size_t front = 0;

	while (front < WORDS && room[front] == room[0])
		front++;
	for (size_t i = front; i < WORDS; i++)
		CHECK(room[i] + 1 == room[0], "word %zu is %d behind %zu of %d", i, (int)room[i],
		      front, (int)room[0]);
	if (!info.whole) {
		CHECK(front < WORDS, "%d is there as a whole", (int)room[0]);
		EXPECT(slmpm_mirror_snapshot(m, peer, &all, 1, copy, NULL, PATIENCE), -SLMPM_EDEAD);
		return true;
	}
	CHECK(front == WORDS, "%d is there up to %zu", (int)room[0], front);
	OK(slmpm_mirror_snapshot(m, peer, &all, 1, copy, &sequence, 0));
	CHECK(sequence == info.sequence && !memcmp(copy, room, sizeof(copy)), "another snapshot");
	return false;
}

/* ---- kills ----------------------------------------------------------------------------------- */

static slmpm_mirror follow_new(const char *role, const char *word, slmpm_peer *victim)
{
	memset(room, 0, sizeof(room));
	*victim = actor_spawn(role, word, NULL);
	return mirror_with(*victim, room, SLMPM_MIRROR_FOLLOW);
}

static void leader_at_each_page(void)
{
	unsigned cut = 0;

	for (unsigned at = 0; at < PAGES; at += 3) {
		slmpm_peer victim;
		slmpm_mirror m;
		char word[8];

		snprintf(word, sizeof(word), "%u", at);
		m = follow_new("lead to", word, &victim);
		for (uint64_t seen = 0; room[WORDS - 1] != 1;)
			OK(slmpm_mirror_wait(m, victim, &seen, PATIENCE));
		OK(slmpm_send(victim, GO, "", 1, PATIENCE));
		cut += look_at_rest(victim, m);
		CHECK(room[WORDS - 1] == 1, "the end of what was never sent is %d",
		      (int)room[WORDS - 1]);
		OK(slmpm_mirror_destroy(m));
		EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
	}
	CHECK(cut, "nothing was ever there in part");
}

static void leader_at_any_time(struct rng *g)
{
	slmpm_peer victim;
	slmpm_mirror m = follow_new("lead", NULL, &victim);

	storm(victim, m, rng_below(g, LATEST));
	OK(kill(pid_of(victim), SIGKILL));
	(void)look_at_rest(victim, m);
	OK(slmpm_mirror_destroy(m));
	EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
}

static void one_of_two_followers(struct rng *g)
{
	slmpm_peer victim = actor_spawn("follow", NULL, NULL);
	slmpm_peer other = actor_spawn("follow", NULL, NULL);
	slmpm_mirror m = mirror_with(victim, room, SLMPM_MIRROR_LEAD);
	uint64_t n = 1, end = rng_below(g, 40);
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	OK(slmpm_mirror_attach(m, other, TAG, SLMPM_MIRROR_LEAD, PATIENCE));
	for (; n < end; n++)
		OK(publish(m, room, n, WORDS));
	OK(kill(pid_of(victim), SIGKILL));
	for (info.state = 0; info.state != SLMPM_MIRROR_STALE; n++) {
		OK(publish(m, room, n, WORDS));
		OK(slmpm_mirror_query(m, victim, &info));
	}
	EXPECT(info.error, -SLMPM_EDEAD);
	OK(publish(m, room, n, WORDS));
	OK(slmpm_mirror_flush(m, PATIENCE));
	OK(slmpm_send(other, STOP, &n, sizeof(n), PATIENCE));
	actor_join(other, 0);
	OK(slmpm_mirror_destroy(m));
	EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
}

/* Of words that were changed one after the other all are there up to some. */
static void one_who_changes(struct rng *g)
{
	slmpm_peer victim = actor_spawn("change", NULL, NULL);
	const uint64_t *places = room + WORDS - PLACES;
	uint64_t most = 0, n = 0;
	slmpm_mirror m;

	memset(room, 0, sizeof(room));
	m = mirror_with(victim, room, SLMPM_MIRROR_LEAD | SLMPM_MIRROR_BOTH);
	for (int64_t until = actor_now_ms() + (int64_t)rng_below(g, LATEST);
	     actor_now_ms() < until;)
		OK(publish(m, room, ++n, WORDS - PLACES));
	OK(kill(pid_of(victim), SIGKILL));
	(void)end_of(victim, m);
	for (int i = 0; i < PLACES; i++)
		most = places[i] > most ? places[i] : most;
	for (uint64_t i = 0; i < PLACES && i < most; i++)
		CHECK(places[(most - i) % PLACES] == most - i, "%d of %d is lost", (int)(most - i),
		      (int)most);
	for (size_t i = 0; i < WORDS - PLACES; i++)
		CHECK(room[i] == n, "word %zu of the leader's is %d", i, (int)room[i]);
	OK(slmpm_mirror_destroy(m));
	EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
}

static int body(void *fabric)
{
	struct rng g = {rng_run_seed(UINT64_C(0x0317))};
	const char *given = getenv("SLMPM_TEST_KILLS");
	struct holdings before;

	settings_one_link(fabric);
	OK(slmpm_default(&ctx));
	before = holdings_now();
	leader_at_each_page();
	for (int i = given ? atoi(given) : KILLS; i > 0; i--) {
		leader_at_any_time(&g);
		one_of_two_followers(&g);
		one_who_changes(&g);
	}
	holdings_expect(before, "mirrors");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"lead to", lead_to},
					     {"lead", lead},
					     {"follow", follow},
					     {"change", change},
					     {NULL, NULL}};
	static char fabrics[][4] = {"shm", "tcp"};
	int failed = 0, rc;

	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_PACKET_MAX", "4k", 1);
	for (int i = 0; i < 2; i++) {
		rc = child_run(body, fabrics[i], 25);
		if (rc)
			printf("over %s: %d\n", fabrics[i], rc);
		failed |= rc != 0;
	}
	return failed;
}
