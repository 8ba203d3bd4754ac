/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Two processes storm each other with active messages of every size, each answered, some answers
 * answered in turn, messages in between that nobody takes for a while: nothing is lost, damaged or
 * out of order, nobody waits for ever, and no side keeps more for the other than its bound.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define ASK     1
#define ANSWER  2
#define BACK    3
#define END     4
#define LONGEST (300u << 10)
#define LETTERS 4 /* stream */
#define UNTAKEN 60

struct head { /* as it travels: little-endian */
	uint64_t number, seed, length;
	uint64_t turns; /* answers still to come to and fro */
};

/* Its other form: as it is used, or as it travels. */
static struct head turned(struct head h)
{
	return (struct head){htole64(h.number), htole64(h.seed), htole64(h.length),
			     htole64(h.turns)};
}

static void reply(const struct slmpm_am *am, uint16_t id, struct head h, const void *data)
{
	struct head out = turned(h);

	OK(slmpm_am_reply(am, id, &out, sizeof(out), data, h.length));
}

static struct storm {
	slmpm_peer peer;
	uint64_t asked, served, answered, back;
	bool over; /* over there */
	unsigned char data[LONGEST];
} storm;

static void check(const struct slmpm_am *am, struct head *h)
{
	CHECK(am->head_len == sizeof(*h), "a head of %zu bytes", am->head_len);
	memcpy(h, am->head, sizeof(*h));
	*h = turned(*h);
	CHECK(am->data_len == h->length && actor_filled(am->data, h->seed, h->length),
	      "%llu bytes came as %zu others", (unsigned long long)h->length, am->data_len);
}

static void ask(const struct slmpm_am *am, void *arg)
{
	struct head h;

	(void)arg;
	check(am, &h);
	CHECK(h.number == storm.served, "number %llu instead of %llu", (unsigned long long)h.number,
	      (unsigned long long)storm.served);
	storm.served++;
	reply(am, ANSWER, h, am->data);
}

static void answer(const struct slmpm_am *am, void *arg)
{
	struct head h;

	(void)arg;
	check(am, &h);
	CHECK(h.number == storm.answered, "answer %llu instead of %llu",
	      (unsigned long long)h.number, (unsigned long long)storm.answered);
	storm.answered++;
	if (!h.turns)
		return;
	h.length = h.turns; /* the chains get short soon */
	actor_fill(storm.data, h.seed, h.length);
	h.turns--;
	reply(am, BACK, h, storm.data);
}

static void back(const struct slmpm_am *am, void *arg)
{
	struct head h;

	(void)arg;
	check(am, &h);
	storm.back++;
	if (h.turns--)
		reply(am, BACK, h, am->data);
}

static void end(const struct slmpm_am *am, void *arg)
{
	(void)am;
	(void)arg;
	storm.over = true;
}

static void one(struct rng *r, uint64_t longest)
{
	static unsigned char data[LONGEST];
	struct head out, h = {
				 .number = storm.asked++,
				 .seed = rng_below(r, 1 << 20),
				 .length = rng_below(r, 8) ? rng_below(r, 200) :
							     rng_below(r, (uint32_t)longest),
				 .turns = rng_below(r, 4),
			 };

	actor_fill(data, h.seed, h.length);
	out = turned(h);
	OK(slmpm_am(storm.peer, ASK, &out, sizeof(out), data, h.length, NULL, NULL));
}

static void pass(slmpm_ctx ctx)
{
	static unsigned idle;
	int n = slmpm_progress(ctx);

	CHECK(n >= 0, "%s", slmpm_error_detail());
	if (n)
		idle = 0;
	else /* the other side may be waiting for this processor */
		actor_idle(ctx, &idle);
}

/* Room for what follows a number: UNTAKEN of these are within the least credit. */
static int play(slmpm_peer peer, uint64_t seed, size_t bytes)
{
	uint64_t longest = bytes >> 6 < LONGEST ? bytes >> 6 : LONGEST;
	uint64_t count = bytes >= 16u << 20 ? 800 : 300;
	struct rng r = {seed};
	struct slmpm_stats stats;
	slmpm_ctx ctx;
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	OK(slmpm_default(&ctx));
	storm.peer = peer;
	OK(slmpm_am_handler(ctx, ASK, ask, NULL));
	OK(slmpm_am_handler(ctx, ANSWER, answer, NULL));
	OK(slmpm_am_handler(ctx, BACK, back, NULL));
	OK(slmpm_am_handler(ctx, END, end, NULL));
	OK(slmpm_send(peer, 0, NULL, 0, PATIENCE)); /* the handlers are there */
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	for (uint64_t i = 0; i < UNTAKEN; i++)
		OK(slmpm_send(peer, LETTERS, &(uint64_t){htole64(i)}, sizeof(i), PATIENCE));
	while (storm.asked < count)
		one(&r, longest);
	while (storm.answered < count) {
		CHECK(actor_now_ms() < until, "%llu of %llu answers",
		      (unsigned long long)storm.answered, (unsigned long long)count);
		pass(ctx);
	}
	OK(slmpm_am(peer, END, NULL, 0, NULL, 0, NULL, NULL));
	while (!storm.over || storm.served < count) {
		CHECK(actor_now_ms() < until, "%llu served", (unsigned long long)storm.served);
		pass(ctx);
	}
	for (uint64_t i = 0, got; i < UNTAKEN; i++) {
		EXPECT(slmpm_recv(peer, LETTERS, &got, sizeof(got), NULL, PATIENCE), sizeof(got));
		EXPECT(le64toh(got), i);
	}
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(stats.ams >= 2 * count && !stats.am_unhandled && !stats.violations &&
		      !stats.checksum_errors,
	      "%llu handled, %llu not", (unsigned long long)stats.ams,
	      (unsigned long long)stats.am_unhandled);
	OK(slmpm_send(peer, 0, NULL, 0, PATIENCE)); /* chains may still be going */
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	return 0;
}

static int role_storm(slmpm_peer host, char **words)
{
	return play(host, 1, strtoull(words[0], NULL, 10));
}

static int test(const struct setting *s)
{
	char bytes[32];
	slmpm_peer child;

	snprintf(bytes, sizeof(bytes), "%zu", s->bytes);
	child = actor_spawn("storm", bytes, NULL);
	CHECK(play(child, 2, s->bytes) == 0, "see above");
	actor_join(child, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"storm", role_storm}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return settings_each(test, 20);
}
