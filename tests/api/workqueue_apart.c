/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues of two processes, perhaps of different byte orders, each in either part: messages to
 * a managed receive queue are taken, refused, and wait; numbers of the other's order are calculated
 * with as they come, and the result goes back in that order.
 */
#include <endian.h>
#include <slmpm_queue.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define MESSAGES 3
#define NUMBERS  1000

enum { BOUND = 1, RAW, RESULT };
enum { READY = 1, REFUSED_ONE, OVER };

static slmpm_cq cq;

static slmpm_wq create(uint32_t flags, slmpm_peer from, uint32_t stream)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags, .cq = cq};
	slmpm_wq wq;

	if (flags & SLMPM_WQ_RECEIVE) {
		o.peer = from;
		o.stream = stream;
	}
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	return wq;
}

static void post(slmpm_wq wq, struct slmpm_wr wr, const struct slmpm_iov *iov)
{
	wr.size = sizeof(wr);
	wr.iov = iov;
	wr.iov_count = iov != NULL;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void expect(uint64_t cookie, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.status == status, "%llu: %d instead of %llu: %d",
	      (unsigned long long)done.cookie, done.status, (unsigned long long)cookie, status);
}

/* ---- a managed receive queue ----------------------------------------------------------------- */

static void own(slmpm_peer peer)
{
	slmpm_wq wq = create(SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, peer, BOUND);
	uint64_t got[MESSAGES] = {0};

	for (uint64_t i = 0; i < MESSAGES; i++)
		post(wq, (struct slmpm_wr){.op = SLMPM_OP_RECV, .cookie = i},
		     &(struct slmpm_iov){&got[i], sizeof(got[i])});
	OK(slmpm_wq_enable(wq, 1));
	actor_tell(peer, READY);
	expect(0, 0);
	actor_hear(peer, REFUSED_ONE);
	OK(slmpm_wq_enable(wq, 2));
	expect(1, 0);
	CHECK(le64toh(got[0]) == 100 && le64toh(got[1]) == 102 && !got[2], "other messages");
	actor_tell(peer, OVER);
	OK(slmpm_wq_cancel(wq, 0));
	expect(2, -SLMPM_ECANCELED);
	OK(slmpm_wq_destroy(wq));
}

/* The first is taken, the second refused by the call, the third waits. */
static void address(slmpm_peer peer)
{
	slmpm_wq wq = create(0, peer, 0);
	struct slmpm_done done;

	actor_hear(peer, READY);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint64_t word = htole64(100 + i);
		const struct slmpm_iov iov = {&word, sizeof(word)};
		struct slmpm_wr wr = {.size = sizeof(wr),
				      .op = SLMPM_OP_SEND,
				      .channel = i,
				      .cookie = i,
				      .peer = peer,
				      .stream = BOUND,
				      .timeout_ms = i < 2 ? 0 : -1,
				      .iov = &iov,
				      .iov_count = 1};

		EXPECT(slmpm_post(wq, &wr, 1), i == 1 ? -SLMPM_EDISABLED : 1);
		if (i == 0)
			expect(0, 0);
		if (i < 2)
			continue;
		EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
		actor_tell(peer, REFUSED_ONE);
		expect(2, 0);
	}
	actor_hear(peer, OVER);
	OK(slmpm_wq_destroy(wq));
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint32_t order_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.big_endian ? SLMPM_OPERAND_BIG_ENDIAN : SLMPM_OPERAND_LITTLE_ENDIAN;
}

/* Those that come and one's own, added and sent back: all of it a program. */
static void calculate(slmpm_peer peer)
{
	static double theirs[NUMBERS], own_ones[NUMBERS], sums[NUMBERS];
	const struct slmpm_operand args[] = {{.at = theirs, .flags = order_of(peer)},
					     {.at = own_ones}};
	const struct slmpm_operand target = {.at = sums, .flags = order_of(peer)};
	const struct slmpm_calc calc = {.size = sizeof(calc),
					.op = SLMPM_CALC_SUM,
					.type = SLMPM_DOUBLE,
					.count = {NUMBERS},
					.args = args,
					.targets = &target,
					.arg_count = 2,
					.target_count = 1};
	slmpm_wq comes = create(SLMPM_WQ_RECEIVE, peer, RAW), wq = create(0, peer, 0);

	for (int i = 0; i < NUMBERS; i++)
		own_ones[i] = 0.5 * i;
	post(comes, (struct slmpm_wr){.op = SLMPM_OP_RECV},
	     &(struct slmpm_iov){theirs, sizeof(theirs)});
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_WAIT,
			       .cookie = 1,
			       .wq = comes,
			       .index = SLMPM_WQ_DONE,
			       .value = 1},
	     NULL);
	post(wq, (struct slmpm_wr){.op = SLMPM_OP_CALC, .cookie = 2, .calc = &calc}, NULL);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_SEND, .cookie = 3, .peer = peer, .stream = RESULT},
	     &(struct slmpm_iov){sums, sizeof(sums)});
	actor_tell(peer, READY);
	for (uint64_t i = 0; i <= 3; i++)
		expect(i, 0);
	actor_hear(peer, OVER);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_wq_destroy(comes));
}

/* Knows nothing of orders. */
static void ask(slmpm_peer peer)
{
	static double mine[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		mine[i] = 100 * i;
	actor_hear(peer, READY);
	OK(slmpm_send(peer, RAW, mine, sizeof(mine), PATIENCE));
	EXPECT(slmpm_recv(peer, RESULT, mine, sizeof(mine), NULL, PATIENCE), sizeof(mine));
	for (int i = 0; i < NUMBERS; i++)
		CHECK(mine[i] == 100.5 * i, "number %d is %g", i, mine[i]);
	actor_tell(peer, OVER);
}

/* ---- both ------------------------------------------------------------------------------------ */

static int role_plays(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	own(host);
	address(host);
	calculate(host);
	ask(host);
	return 0;
}

static int everything(void *fabric)
{
	slmpm_peer peer;

	settings_set("SLMPM_FABRIC", fabric);
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	peer = actor_spawn("plays", NULL, NULL);
	address(peer);
	own(peer);
	ask(peer);
	calculate(peer);
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"plays", role_plays}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(everything, fabrics[i], 25) == 0, "%s: see above", fabrics[i]);
	return 0;
}
