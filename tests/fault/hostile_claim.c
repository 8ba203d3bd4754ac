/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer of a managed receive queue of any peer that claims entries against the rules, or takes
 * them without a claim. Its channel ends, and what it had reserved is others'.
 */
#include <slmpm_queue.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"

#define STREAM  20
#define ENABLED 8
#define ENDLESS (STREAM + 2)

static slmpm_wq queue, endless;

static void claim(struct raw_peer *p, uint64_t total, uint64_t how)
{
	raw_post(p, WIRE_CLAIM, total, STREAM, how, NULL, 0);
}

static void bound(struct raw_peer *p, uint64_t waiting)
{
	raw_post(p, WIRE_BOUND, waiting, STREAM, 0, NULL, 0);
}

/* Once more than it has been told of. What comes before is not to be taken for wrong: the first
 * that waits, behind very many that did not. */
static void late_in_life(struct raw_peer *p)
{
	const uint64_t many = UINT64_C(1) << 32;

	bound(p, 0);
	bound(p, 0);
	raw_post(p, WIRE_CLAIM, many, ENDLESS, CLAIM_NOW, NULL, 0);
	raw_post(p, WIRE_CLAIM, 2 * many, ENDLESS, CLAIM_NOW, NULL, 0);
	raw_post(p, WIRE_CLAIM, 2 * many, ENDLESS, CLAIM_BACK, NULL, 0);
	raw_post(p, WIRE_CLAIM, 2 * many + 1, ENDLESS, CLAIM_WAIT, NULL, 0);
	bound(p, 0);
}

/* Whatever follows: it has all of them. */
static void hoard(struct raw_peer *p)
{
	bound(p, 0);
	claim(p, ENABLED, CLAIM_NOW);
}

static void too_many_waiting(struct raw_peer *p)
{
	bound(p, (UINT64_C(1) << 32) + 1);
}

static void before_it_knows(struct raw_peer *p)
{
	claim(p, 1, CLAIM_NOW);
}

static void on_other_stream(struct raw_peer *p)
{
	hoard(p);
	raw_post(p, WIRE_CLAIM, 1, STREAM + 1, CLAIM_NOW, NULL, 0);
}

static void too_much(struct raw_peer *p)
{
	hoard(p);
	claim(p, ENABLED + 1 + (UINT64_C(1) << 32), CLAIM_NOW);
}

static void too_much_later(struct raw_peer *p)
{
	hoard(p);
	claim(p, ENABLED + 1 + (UINT64_C(1) << 32), CLAIM_WAIT);
}

static void the_same_later(struct raw_peer *p)
{
	hoard(p);
	claim(p, ENABLED + 5, CLAIM_WAIT);
	claim(p, ENABLED + 5, CLAIM_WAIT);
}

static void less_later(struct raw_peer *p)
{
	hoard(p);
	claim(p, ENABLED + 5, CLAIM_WAIT);
	claim(p, ENABLED + 4, CLAIM_WAIT);
}

static void more_back(struct raw_peer *p)
{
	hoard(p);
	claim(p, ENABLED + 1, CLAIM_BACK);
}

static void back_again(struct raw_peer *p)
{
	hoard(p);
	claim(p, 2, CLAIM_BACK);
	claim(p, 1, CLAIM_BACK);
}

static void otherwise(struct raw_peer *p)
{
	hoard(p);
	claim(p, 1, CLAIM_BACK + 1);
}

static void with_payload(struct raw_peer *p)
{
	hoard(p);
	raw_post(p, WIRE_CLAIM, 1, STREAM, CLAIM_NOW, "payload", 8);
}

/* Nothing is read of what is answered. */
static void for_ever(struct raw_peer *p)
{
	hoard(p);
	for (int i = 0; i < 40000; i++)
		claim(p, ENABLED + 1, CLAIM_NOW);
}

/* The same, with something else to be answered between. */
static void by_turns(struct raw_peer *p)
{
	hoard(p);
	for (uint64_t i = 1; i < 20000; i++) {
		claim(p, i, CLAIM_BACK);
		claim(p, ENABLED + i, CLAIM_WAIT);
		claim(p, ENABLED + i + 1, CLAIM_NOW);
	}
}

/* More than what it may; and then it is to be noticed. */
static void unasked(struct raw_peer *p)
{
	bound(p, 0);
	for (uint64_t i = 0; i < ENABLED / 2; i++)
		raw_send(p, STREAM, &i, sizeof(i));
	claim(p, 1, CLAIM_BACK);
}

static const struct offence offences[] = {
	{"R8", "too many are on their way", too_many_waiting, "receive queue", 0},
	{"R8", "knows of too many", late_in_life, "word of", 0},
	{"R8", "claims before it knows", before_it_knows, "claim", 0},
	{"R8", "claims on another stream", on_other_stream, "claim", 0},
	{"R10", "claims too much", too_much, "claim", 0},
	{"R10", "claims too much for later", too_much_later, "claim", 0},
	{"R8", "claims the same for later", the_same_later, "claim", 0},
	{"R8", "claims less for later", less_later, "claim", 0},
	{"R8", "gives more back", more_back, "claim", 0},
	{"R8", "gives less back", back_again, "claim", 0},
	{"R8", "claims, how?", otherwise, "claim", 0},
	{"R8", "a claim with payload", with_payload, "claim", 0},
	{"R10", "claims for ever", for_ever, "claim", 0},
	{"R10", "claims by turns", by_turns, "claim", 0},
	{"R8", "sends without a claim", unasked, "claim", 0},
};

/* All but those that the last has taken are there. */
static void all_are_free(slmpm_ctx ctx)
{
	slmpm_peer a, b;
	uint64_t value = 1;

	actor_pair(ctx, &a, &b);
	while (slmpm_progress(ctx) > 0)
		;
	for (int i = 0; i < ENABLED / 2; i++)
		OK(slmpm_send(a, STREAM, &value, sizeof(value), PATIENCE));
	REFUSED(slmpm_send(a, STREAM, &value, sizeof(value), PATIENCE), SLMPM_EDISABLED, "");
}

int main(void)
{
	static uint64_t places[ENABLED];
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, .stream = STREAM};
	struct victim v;

	setenv("SLMPM_RING_SEGMENTS", "8192", 1);
	victim_begin(&v, "hostile-claim");
	OK(slmpm_cq_create(v.ctx, &o.cq));
	o.peer = slmpm_any(v.ctx);
	OK(slmpm_wq_create(v.ctx, &o, &queue));
	o.stream = ENDLESS;
	OK(slmpm_wq_create(v.ctx, &o, &endless));
	OK(slmpm_wq_enable(endless, UINT64_MAX));
	for (int i = 0; i < ENABLED; i++) {
		const struct slmpm_iov place = {&places[i], sizeof(places[i])};
		const struct slmpm_wr wr = {
			.size = sizeof(wr), .op = SLMPM_OP_RECV, .iov = &place, .iov_count = 1};

		EXPECT(slmpm_post(queue, &wr, 1), 1);
	}
	OK(slmpm_wq_enable(queue, ENABLED));
	SURVIVE(&v, &trial_legal, offences);
	all_are_free(v.ctx);
	victim_end(&v);
	return 0;
}
