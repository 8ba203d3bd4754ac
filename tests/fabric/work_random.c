/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Random work requests on every way, against the plainest model: one after the other. Each get must
 * bring, each atomic operation find, each message tell what those posted before it have left; the
 * completions come as posted. Both ends in one context.
 */
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/way.h"

#define SIZE  65536
#define DEPTH 48

struct work {
	uint32_t op;
	unsigned char *data; /* what goes, or where it comes to */
	unsigned char *want; /* get, atomic: what must be there in the end */
	size_t n;
	bool silent;
};

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_cq cq;
static slmpm_wq wq;
static slmpm_rmem far;
static unsigned char *there, model[SIZE];
static struct work work[4096];
static uint64_t posted, notified, sent, received, handled;
static struct rng rng;

static void *room(size_t n)
{
	void *data = malloc(n + 1);

	CHECK(data, "out of memory");
	return data;
}

/* ---- what is posted ------------------------------------------------------------------------- */

static struct slmpm_wr one_sided(struct work *w, struct slmpm_iov *iov, uint32_t op)
{
	uint32_t most = way_current()->slow ? 1500 : rng_one_in(&rng, 10) ? 30000 : 3000;
	struct slmpm_wr wr = {
		.size = sizeof(wr), .op = op, .rmem = far, .iov = iov, .iov_count = 2};

	w->n = rng_below(&rng, most);
	wr.offset = rng_below(&rng, SIZE - (uint32_t)w->n);
	w->data = room(w->n);
	iov[0] = (struct slmpm_iov){w->data, w->n / 3};
	iov[1] = (struct slmpm_iov){w->data + w->n / 3, w->n - w->n / 3};
	if (op == SLMPM_OP_PUT) {
		actor_fill(w->data, rng_next(&rng), w->n);
		memcpy(model + wr.offset, w->data, w->n);
	} else {
		w->want = room(w->n);
		memcpy(w->want, model + wr.offset, w->n);
	}
	return wr;
}

static struct slmpm_wr atomic(struct work *w)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_ATOMIC, .bits = 64, .rmem = far};
	uint64_t now, old;

	wr.atomic = 1 + rng_below(&rng, 3);
	wr.offset = 8 * rng_below(&rng, SIZE / 8);
	wr.operand = rng_next(&rng);
	memcpy(&old, model + wr.offset, 8);
	wr.compare = rng_one_in(&rng, 2) ? old : wr.operand;
	now = wr.atomic == SLMPM_FETCH_ADD ? old + wr.operand :
	      wr.atomic == SLMPM_SWAP      ? wr.operand :
	      wr.compare == old            ? wr.operand :
					     old;
	memcpy(model + wr.offset, &now, 8);
	w->n = 8;
	w->data = room(8);
	w->want = room(8);
	memcpy(w->want, &old, 8);
	wr.old = w->data;
	return wr;
}

/* It tells a range of the region, as it must be by then. */
struct tale {
	uint64_t number, at;
	unsigned char bytes[16];
};

static struct slmpm_wr message(struct work *w, struct slmpm_iov *iov)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_SEND, .peer = a, .stream = 1};
	struct tale *tale = room(sizeof(*tale));

	w->data = (void *)tale;
	w->n = sizeof(*tale);
	tale->number = sent++;
	tale->at = rng_below(&rng, SIZE - 16);
	memcpy(tale->bytes, model + tale->at, 16);
	*iov = (struct slmpm_iov){tale, sizeof(*tale)};
	wr.iov = iov;
	wr.iov_count = 1;
	wr.flags = rng_one_in(&rng, 4) ? SLMPM_MORE : 0;
	return wr;
}

static void count(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	CHECK(am->head_len == 8 && !memcmp(am->head, &handled, 8), "an active message too early");
	handled++;
}

static void post_one(void)
{
	static uint64_t number;
	struct work *w = &work[posted % DEPTH];
	struct slmpm_iov iov[2];
	struct slmpm_wr wr;

	*w = (struct work){.op = 0};
	switch (rng_below(&rng, 6)) {
	case 0: wr = one_sided(w, iov, SLMPM_OP_GET); break;
	case 1: wr = atomic(w); break;
	case 2: wr = message(w, iov); break;
	case 3:
		wr = (struct slmpm_wr){
			.size = sizeof(wr), .op = SLMPM_OP_AM, .stream = 3, .head_len = 8};
		wr.peer = a;
		wr.head = &number;
		break;
	default: wr = one_sided(w, iov, SLMPM_OP_PUT);
	}
	w->op = wr.op;
	w->silent = rng_one_in(&rng, 5);
	wr.cookie = posted;
	wr.flags |= w->silent ? SLMPM_SILENT : 0;
	if (wr.op != SLMPM_OP_SEND && rng_one_in(&rng, 12))
		wr.flags |= rng_one_in(&rng, 2) ? SLMPM_FENCE : SLMPM_BARRIER;
	if (wr.op == SLMPM_OP_PUT && rng_one_in(&rng, 3))
		wr.flags |= SLMPM_REMOTE;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
	number += wr.op == SLMPM_OP_AM;
	posted++;
}

/* ---- what comes of it ----------------------------------------------------------------------- */

static void finish(struct work *w)
{
	CHECK(!w->want || !memcmp(w->data, w->want, w->n), "work %llu, operation %u: other bytes",
	      (unsigned long long)notified, w->op);
	free(w->data);
	free(w->want);
	notified++;
}

static void take_completions(void)
{
	struct slmpm_done done[8];
	int n = slmpm_cq_poll(cq, done, 1 + (int)rng_below(&rng, 8));

	CHECK(n >= 0, "%s", slmpm_error_detail());
	for (int i = 0; i < n; i++) {
		while (notified < done[i].cookie) { /* those that keep silent */
			CHECK(work[notified % DEPTH].silent, "work %llu was not told",
			      (unsigned long long)notified);
			finish(&work[notified % DEPTH]);
		}
		CHECK(done[i].cookie == notified && done[i].status == 0 &&
			      done[i].op == work[notified % DEPTH].op,
		      "cookie %llu of %llu, status %d, op %u", (unsigned long long)done[i].cookie,
		      (unsigned long long)notified, done[i].status, done[i].op);
		finish(&work[notified % DEPTH]);
	}
}

/* Of a range that later puts may have changed since, only what no put was posted for is sure: so
 * the receiver keeps up with the sender before more is posted. */
static void take_messages(bool sure)
{
	struct tale tale;
	int64_t n;

	while ((n = slmpm_recv(b, 1, &tale, sizeof(tale), NULL, 0)) != -SLMPM_EAGAIN) {
		CHECK(n == sizeof(tale), "%lld: %s", (long long)n, slmpm_error_detail());
		CHECK(tale.number == received, "message %llu instead of %llu",
		      (unsigned long long)tale.number, (unsigned long long)received);
		CHECK(!sure || !memcmp(there + tale.at, tale.bytes, 16),
		      "message %llu came before what it tells of", (unsigned long long)received);
		received++;
	}
}

static void rounds(void)
{
	int count_of = way_current()->slow ? 200 : 1000;

	for (int round = 0; round < count_of; round++) {
		/* With a message at the end: what it tells is what is there, when it comes. */
		for (uint32_t n = rng_below(&rng, 6); n-- && posted - notified < DEPTH - 1;)
			post_one();
		if (rng_one_in(&rng, 3))
			(void)slmpm_progress(ctx);
		take_completions();
		take_messages(false);
		if (rng_one_in(&rng, 4) && posted - notified < DEPTH) {
			struct slmpm_iov iov;
			struct work *w = &work[posted % DEPTH];
			struct slmpm_wr wr;

			*w = (struct work){.op = SLMPM_OP_SEND};
			wr = message(w, &iov);
			wr.flags = 0;
			wr.cookie = posted++;
			EXPECT(slmpm_post(wq, &wr, 1), 1);
			while (received < sent) {
				bool last = received + 1 == sent;

				(void)slmpm_progress(ctx);
				take_messages(last);
			}
			while (notified < posted)
				take_completions();
			CHECK(!memcmp(there, model, SIZE), "the region in round %d", round);
		}
	}
}

static int body(const struct way *w)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = DEPTH};
	slmpm_mem mem;

	rng.state = rng_run_seed(20261121);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	there = way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	far = way_reach(mem, b, a, SLMPM_READ_WRITE);
	way_check(far);
	OK(slmpm_cq_create(ctx, &cq));
	o.cq = cq;
	o.flags = rng_one_in(&rng, 2) ? SLMPM_WQ_UNACKNOWLEDGED : 0;
	OK(slmpm_wq_create(ctx, &o, &wq));
	OK(slmpm_am_handler(ctx, 3, count, NULL));
	rounds();
	OK(slmpm_shut(ctx, PATIENCE));
	(void)w;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor none[] = {{NULL, NULL}};

	actor_begin(argc, argv, none);
	return way_each(body, 20);
}
