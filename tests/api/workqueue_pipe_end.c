/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * PIPE entries that end before their last message: cancelled at any moment, by a message that is
 * too long, by the end of either peer; what had come has gone on or is there for others.
 */
#include "tests/api/workqueue_pipe.h"

/* ---- cancelled ------------------------------------------------------------------------------- */

/* Of so many; what it has posted is taken back, and the buffers are the caller's. */
static void cancelled(void)
{
	size_t most;
	struct message held;
	struct slmpm_wr wr;
	struct slmpm_done done;

	begin(0);
	most = message_eager(source) * 2;
	wr = piping(4, most, UINT64_C(1) << 32);
	post(wr);
	wr.cookie = 10;
	post(wr);
	for (uint64_t i = 0; i < 10; i++) {
		message_send(source, IN, i, 77, 0);
		(void)message_take(target, OUT, i, 77);
	}
	nothing_ended();
	OK(slmpm_wq_cancel(wq, 1));
	piped(-SLMPM_ECANCELED, 10, down);
	done = ended(10, -SLMPM_ECANCELED);
	CHECK(done.len == 1, "the one behind it names %llu", (unsigned long long)done.len);
	message_send(source, IN, 10, 77, 0);
	(void)message_take(up, IN, 10, 77);
	message_none(target, OUT);

	/* While one waits for its receive at the target. */
	OK(slmpm_wq_reset(wq));
	post(piping(2, most, UINT64_C(1) << 32));
	message_start(&held, source, IN, 11, most);
	settle();
	OK(slmpm_wq_reset(wq));
	piped(-SLMPM_ECANCELED, 0, down);
	message_end(&held, 0);
	message_send(down, OUT, 12, 5, 0);
	(void)message_take(target, OUT, 12, 5);
	end();
}

static void stop(const struct slmpm_am *am, void *rc)
{
	(void)am;
	*(int *)rc = slmpm_wq_cancel(wq, 0);
}

/* By a handler that runs while the entry goes on; nothing is left under way, and it runs again. */
static void cancelled_by_handler(void)
{
	int rc = 1;

	begin(SLMPM_WQ_KEPT);
	OK(slmpm_am_handler(ctx, 5, stop, &rc));
	for (int run = 0; run < 3; run++) {
		post(piping(3, PIECE, 100));
		for (uint64_t i = 0; i < 5; i++) {
			message_send(source, IN, i, 200, 0);
			(void)message_take(target, OUT, i, 200);
		}
		OK(slmpm_am(source, 5, NULL, 0, NULL, 0, NULL, NULL));
		piped(-SLMPM_ECANCELED, 5, down);
		EXPECT(rc, 0);
		message_send(source, IN, 6, 200, 0);
		(void)message_take(up, IN, 6, 200);
		OK(slmpm_wq_reset(wq));
	}
	end();
}

/* What is there at PEER: the one behind *LAST, by its imm. False: nothing. */
static bool take_any(slmpm_peer peer, uint32_t stream, unsigned char *room, size_t most,
		     uint64_t *last)
{
	struct slmpm_done done;

	if (slmpm_probe(peer, stream, NULL, 0) != 1)
		return false;
	EXPECT(slmpm_recv(peer, stream, room, most, &done, PATIENCE), done.len);
	CHECK(done.imm > *last, "%u behind %llu", done.imm, (unsigned long long)*last);
	message_check(room, &done, (uint64_t)done.imm << 8, done.len);
	*last = done.imm;
	return true;
}

/* Of N sent the pipe has forwarded as many as it says, up to one in each buffer is lost, and all
 * others are there for others, in order. */
static void cancelled_amidst(struct rng *rng, uint64_t *number, size_t most, unsigned char *room)
{
	int count = 1 + (int)rng_below(rng, 4), n = 1 + (int)rng_below(rng, 12), busy, left = n;
	struct message all[12];
	uint64_t last = *number, forwarded = 0, direct = 0;
	struct slmpm_done done = {.op = 0};
	int rc, cancels = (int)rng_below(rng, 60);

	post(piping(count, most, (uint64_t)n + rng_below(rng, 2)));
	for (int i = 0; i < n; i++) {
		size_t size = rng_one_in(rng, 4) ? most - (size_t)i : rng_below(rng, PIECE);

		message_start(&all[i], source, IN, ++*number << 8, size);
	}
	for (int i = 0; left || !done.op; i++) {
		if (i == cancels) {
			rc = slmpm_wq_cancel(wq, 0);
			CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%d", rc);
			actor_settle(down, target); /* a send that is taken back is gone */
		}
		busy = 0;
		if (rng_one_in(rng, 2) && take_any(target, OUT, room, most, &last))
			forwarded++;
		else if (done.op && done.len == forwarded && take_any(up, IN, room, most, &last))
			direct++;
		if (!done.op)
			(void)slmpm_cq_poll(cq, &done, 1);
		for (int k = 0; k < n; k++) {
			if (all[k].req.id && slmpm_test(&all[k].req, NULL) == 1)
				free(all[k].data);
			busy += all[k].req.id != 0;
		}
		left = busy;
	}
	actor_settle(source, up);
	actor_settle(down, target);
	while (take_any(target, OUT, room, most, &last))
		forwarded++;
	while (take_any(up, IN, room, most, &last))
		direct++;
	CHECK(done.op == SLMPM_OP_PIPE && done.len == forwarded, "%llu are not %llu",
	      (unsigned long long)done.len, (unsigned long long)forwarded);
	CHECK(forwarded + direct <= (uint64_t)n &&
		      forwarded + direct + (uint64_t)(done.status ? count : 0) >= (uint64_t)n,
	      "%llu and %llu of %d", (unsigned long long)forwarded, (unsigned long long)direct, n);
	OK(slmpm_wq_reset(wq));
}

static void at_any_moment(void)
{
	struct rng rng = {rng_run_seed(81)};
	uint64_t number = 0;
	unsigned char *room;
	size_t most;

	begin(0);
	most = message_eager(source) * 2;
	room = malloc(most);
	CHECK(room, "out of memory");
	for (int i = 0; i < 300 / actor_slow(); i++)
		cancelled_amidst(&rng, &number, most, room);
	free(room);
	end();
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void truncated(void)
{
	struct slmpm_wr wr;

	begin(0);
	wr = piping(4, 100, 10);
	post(wr);
	wr.channel = 1;
	wr.cookie = 8;
	message_send(source, IN, 0, 100, 0);
	message_send(source, IN, 1, 3, 0);
	message_send(source, IN, 2, 101, 0);
	(void)message_take(target, OUT, 0, 100);
	(void)message_take(target, OUT, 1, 3);
	piped(-SLMPM_ETRUNC, 2, up);
	message_none(target, OUT);
	wr.channel = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_ETRUNC,
		"channel 0 has stopped at entry 1 (SLMPM_ETRUNC, peer");
	message_send(source, IN, 3, 50, 0); /* its receives are taken back */
	(void)message_take(up, IN, 3, 50);
	end();
}

/* What is under way before it is seen through. */
static void truncated_behind(void)
{
	struct message all[3];
	size_t most;

	begin(0);
	most = message_eager(source) * 2;
	post(piping(4, most, 10));
	for (uint64_t i = 0; i < 3; i++)
		message_start(&all[i], source, IN, i, most + i / 2);
	for (int i = 0; i < 3; i++)
		message_end(&all[i], 0);
	nothing_ended();
	(void)message_take(target, OUT, 0, most);
	nothing_ended();
	(void)message_take(target, OUT, 1, most);
	piped(-SLMPM_ETRUNC, 2, up);
	end();
}

/* What had come before the source closed still goes on. */
static void closed(bool source_closes)
{
	begin(0);
	post(piping(4, PIECE, 100));
	for (uint64_t i = 0; i < 3; i++)
		message_send(source, IN, i, 500, 0);
	if (source_closes) {
		OK(slmpm_close(source, PATIENCE));
		for (uint64_t i = 0; i < 3; i++)
			(void)message_take(target, OUT, i, 500);
		piped(-SLMPM_ECLOSED, 3, up);
	} else {
		for (uint64_t i = 0; i < 3; i++)
			(void)message_take(target, OUT, i, 500);
		settle();
		OK(slmpm_close(target, PATIENCE)); /* nothing is under way */
		piped(-SLMPM_ECLOSED, 3, down);
		message_send(source, IN, 4, 50, 0);
		(void)message_take(up, IN, 4, 50);
	}
	end();
}

/* This process closes one itself. */
static void closed_here(bool towards_target)
{
	begin(0);
	post(piping(4, PIECE, 100));
	message_send(source, IN, 0, 500, 0);
	(void)message_take(target, OUT, 0, 500);
	settle();
	OK(slmpm_close(towards_target ? down : up, PATIENCE));
	piped(-SLMPM_ECLOSED, 1, towards_target ? down : up);
	end();
}

static int everything(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	cancelled();
	cancelled_by_handler();
	at_any_moment();
	truncated();
	truncated_behind();
	for (int i = 0; i < 2; i++) {
		closed(i);
		closed_here(i);
	}
	return 0;
}

int main(void)
{
	over_both(everything);
	return 0;
}
