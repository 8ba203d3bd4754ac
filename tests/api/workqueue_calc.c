/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * CALC entries of work queues: behind what their channel did before, in pieces between which others
 * have their turn, again in kept programs; a reduction over messages that arrive.
 */
#include <math.h>

#include "tests/api/workqueue_entry.h"

#define MANY 100000 /* elements: many pieces */

static struct slmpm_wr calc(const struct slmpm_calc *c, uint64_t cookie)
{
	return (struct slmpm_wr){
		.size = sizeof(struct slmpm_wr), .op = SLMPM_OP_CALC, .calc = c, .cookie = cookie};
}

static struct slmpm_calc sum_of(const struct slmpm_operand *args, int n,
				const struct slmpm_operand *target, uint64_t count)
{
	return (struct slmpm_calc){.size = sizeof(struct slmpm_calc),
				   .op = SLMPM_CALC_SUM,
				   .type = SLMPM_UINT64,
				   .count = {count},
				   .args = args,
				   .targets = target,
				   .arg_count = n,
				   .target_count = 1};
}

static struct slmpm_done told(uint64_t cookie, uint32_t op, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.op == op && done.status == status,
	      "cookie %llu, op %u, status %d instead of %llu, %u, %d",
	      (unsigned long long)done.cookie, done.op, done.status, (unsigned long long)cookie, op,
	      status);
	return done;
}

/* What two messages brought is added up, and goes on; by a program that runs again. */
static void reduction(void)
{
	static uint64_t a_part[64], b_part[64], sum[64], got[64];
	struct slmpm_operand args[2] = {{.at = a_part}, {.at = b_part}}, target = {.at = sum};
	struct slmpm_calc c = sum_of(args, 2, &target, 64);
	struct slmpm_iov first = {a_part, sizeof(a_part)}, second = {b_part, sizeof(b_part)};
	struct slmpm_iov result = {sum, sizeof(sum)};
	struct slmpm_wr wr, wait = {.size = sizeof(wait), .op = SLMPM_OP_WAIT};
	slmpm_ctr came;

	begin(0, SLMPM_WQ_KEPT);
	OK(slmpm_ctr_create(ctx, &came));
	wr = receive(1, &first, 0);
	wr.channel = 1;
	wr.ctr = came;
	wr.flags = SLMPM_SILENT;
	post(wr);
	wr.iov = &second;
	wr.stream = 2;
	post(wr);
	wait.ctr = came;
	wait.value = 2;
	wait.flags = SLMPM_SILENT | SLMPM_RELATIVE;
	post(wait);
	wr = calc(&c, 1);
	wr.flags = SLMPM_SILENT;
	post(wr);
	memset(&c, 0, sizeof(c)); /* it was copied */
	memset(args, 0, sizeof(args));
	wr = message(3, &result, 2);
	wr.flags = SLMPM_SILENT;
	post(wr);
	for (uint64_t round = 1; round <= 20; round++) {
		uint64_t parts[2][64];

		for (uint64_t i = 0; i < 64; i++) {
			parts[0][i] = round * i;
			parts[1][i] = i + 1;
		}
		OK(slmpm_send(b, round % 2 ? 1 : 2, parts[0], sizeof(parts[0]), PATIENCE));
		OK(slmpm_send(b, round % 2 ? 2 : 1, parts[1], sizeof(parts[1]), PATIENCE));
		EXPECT(slmpm_recv(b, 3, got, sizeof(got), NULL, PATIENCE), sizeof(got));
		for (uint64_t i = 0; i < 64; i++)
			CHECK(got[i] == round * i + i + 1, "%llu", (unsigned long long)got[i]);
		OK(slmpm_wq_drain(wq, PATIENCE));
		OK(slmpm_wq_arm(wq));
	}
	end();
}

/* A put behind it carries what it made; a long one goes in pieces, and others go on meanwhile. */
static void long_one_in_pieces(void)
{
	static uint64_t x[MANY], y[MANY], z[MANY];
	struct slmpm_operand args[2] = {{.at = x}, {.at = y}}, target = {.at = z};
	struct slmpm_calc c = sum_of(args, 2, &target, MANY);
	struct slmpm_iov last = {&z[MANY - 1], 8};
	struct slmpm_wr wr;
	int passes = 0;

	begin(0, 0);
	for (uint64_t i = 0; i < MANY; i++) {
		x[i] = i;
		y[i] = 2 * i;
	}
	post(calc(&c, 1));
	wr = one_sided(SLMPM_OP_PUT, 5, &last, 2);
	post(wr);
	wr = message(1, &last, 3);
	wr.channel = 1;
	post(wr);
	EXPECT(slmpm_recv(b, 1, here, 8, NULL, PATIENCE), 8);
	told(3, SLMPM_OP_SEND, 0);
	CHECK(there[5] == 0, "it is done already");
	while (slmpm_progress(ctx) > 0)
		passes++;
	CHECK(passes > 10, "%d passes", passes);
	told(1, SLMPM_OP_CALC, 0);
	told(2, SLMPM_OP_PUT, 0);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK(z[i] == 3 * i, "element %llu", (unsigned long long)i);
	CHECK(there[5] == 3 * (MANY - 1), "%llu", (unsigned long long)there[5]);
	/* Taken back amidst. */
	post(calc(&c, 4));
	OK(slmpm_wq_cancel(wq, 0));
	told(4, SLMPM_OP_CALC, -SLMPM_ECANCELED);
	OK(slmpm_wq_reset(wq));
	post(calc(&c, 5));
	OK(slmpm_wq_drain(wq, PATIENCE));
	told(5, SLMPM_OP_CALC, 0);
	post(calc(&c, 6));
	OK(slmpm_wq_destroy(wq));
	end();
}

static void totals_are(uint64_t posted, uint64_t begun, uint64_t done)
{
	struct slmpm_wq_info info = look(wq);

	CHECK(info.posted == posted && info.begun == begun && info.done == done,
	      "posted %llu, begun %llu, done %llu", (unsigned long long)info.posted,
	      (unsigned long long)info.begun, (unsigned long long)info.done);
}

static uint64_t short_args[2] = {3, 4}, short_sum;

static void sum_is(uint64_t sum)
{
	CHECK(short_sum == sum, "%llu instead of %llu", (unsigned long long)short_sum,
	      (unsigned long long)sum);
}

static struct slmpm_wr on_queue(uint32_t index, uint64_t value, uint32_t flags)
{
	struct slmpm_wr wr = entry(SLMPM_OP_WAIT, 1, value, flags);

	wr.wq = wq;
	wr.index = index;
	return wr;
}

/* It is an entry like any other: its number, what it says, who waits for it. */
static void short_alone(struct slmpm_wr wr)
{
	struct slmpm_wr both[2] = {wr};
	struct slmpm_done done;

	begin(0, 0);
	post(wr);
	done = told(1, SLMPM_OP_CALC, 0);
	CHECK(done.len == 0 && done.stream == 0 && done.peer.id == 0 && done.imm == 0 &&
		      done.flags == 0 && done.protocol == 0 && done.reason == 0,
	      "what its completion says");
	totals_are(1, 1, 1);
	sum_is(7);
	post(known(on_queue(SLMPM_WQ_POSTED, 3, 0), 9));
	totals_are(2, 2, 1);
	short_args[0] = 10;
	wr.flags = SLMPM_SILENT;
	post(wr);
	sum_is(14);
	totals_are(3, 3, 3);
	told(9, SLMPM_OP_WAIT, 0);
	/* What comes with it is posted before it is done. */
	both[1] = on_queue(SLMPM_WQ_DONE, 1, SLMPM_RELATIVE);
	EXPECT(slmpm_post(wq, both, 2), 2);
	told(1, SLMPM_OP_CALC, 0);
	told(0, SLMPM_OP_WAIT, 0);
	wr.ctr = counter();
	post(wr);
	OK(slmpm_wq_drain(wq, PATIENCE));
	CHECK(counted(wr.ctr) == 1, "%llu", (unsigned long long)counted(wr.ctr));
	totals_are(6, 6, 6);
	end();
}

/* Behind a WAIT, in a managed queue, again and again; and not where there is no room. */
static void short_in_its_turn(struct slmpm_wr wr)
{
	slmpm_ctr ctr;
	slmpm_wq managed, kept;

	begin(2, 0);
	ctr = counter();
	short_args[0] = 1;
	post(known(wait_for(ctr, 0, 1, 0), 2));
	post(wr);
	EXPECT(slmpm_post(wq, &wr, 1), -SLMPM_EAGAIN);
	wr.channel = 1;
	EXPECT(slmpm_post(wq, &wr, 1), -SLMPM_EAGAIN);
	wr.channel = 0;
	sum_is(14);
	totals_are(2, 1, 0);
	managed = another(SLMPM_WQ_MANAGED);
	post_to(managed, count(ctr, 0, 1, 0));
	post_to(managed, wr);
	OK(slmpm_wq_enable(managed, 1));
	told(0, SLMPM_OP_COUNT, 0);
	told(2, SLMPM_OP_WAIT, 0);
	told(1, SLMPM_OP_CALC, 0);
	sum_is(5);
	short_args[0] = 2;
	OK(slmpm_wq_enable(managed, 2));
	told(1, SLMPM_OP_CALC, 0);
	sum_is(6);
	kept = another(SLMPM_WQ_KEPT);
	post_to(kept, wr);
	told(1, SLMPM_OP_CALC, 0);
	short_args[0] = 3;
	OK(slmpm_wq_arm(kept));
	told(1, SLMPM_OP_CALC, 0);
	sum_is(7);
	end();
}

static void short_ones(void)
{
	struct slmpm_operand args[2] = {{.at = &short_args[0]}, {.at = &short_args[1]}};
	struct slmpm_operand target = {.at = &short_sum};
	struct slmpm_calc c = sum_of(args, 2, &target, 0);

	short_args[0] = 3;
	short_alone(calc(&c, 1));
	short_in_its_turn(calc(&c, 1));
}

/* The greatest, and whose it was. */
static void winners(void)
{
	double values[3][4] = {{1, -5, 7, 2}, {3, -6, 7, NAN}, {2, -4, 1, 1}}, best[4];
	uint64_t whose[4];
	struct slmpm_operand args[3], target = {.at = best, .indices = whose};
	struct slmpm_calc c = {.size = sizeof(c),
			       .op = SLMPM_CALC_MAX,
			       .type = SLMPM_DOUBLE,
			       .count = {4},
			       .args = args,
			       .targets = &target,
			       .arg_count = 3,
			       .target_count = 1};

	memset(args, 0, sizeof(args));
	for (int i = 0; i < 3; i++)
		args[i] = (struct slmpm_operand){.at = values[i], .index = (uint64_t)i + 10};
	begin(0, 0);
	post(calc(&c, 1));
	told(1, SLMPM_OP_CALC, 0);
	CHECK(best[0] == 3 && best[1] == -4 && best[2] == 7 && best[3] == 2, "values");
	CHECK(whose[0] == 11 && whose[1] == 12 && whose[2] == 10 && whose[3] == 10, "indices");
	end();
}

/* ---- a flood of messages for a disabled entry ---- */

static uint64_t came[MANY]; /* where both messages go */

static slmpm_wq receive_queue(slmpm_ctr done)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
				     .cq = cq,
				     .ctr = done,
				     .peer = b,
				     .stream = 1};
	struct slmpm_iov room = {came, sizeof(came)};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_RECV, .flags = SLMPM_SILENT};
	slmpm_wq rq;

	OK(slmpm_wq_create(ctx, &o, &rq));
	wr.iov = &room;
	wr.iov_count = 1;
	for (int i = 0; i < 2; i++)
		EXPECT(slmpm_post(rq, &wr, 1), 1);
	OK(slmpm_wq_enable(rq, 1));
	actor_settle(a, b);
	return rq;
}

/* The first message's calculation; then the next one may come. */
static void post_flooded(slmpm_wq rq, const struct slmpm_calc *c)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_WAIT, .flags = SLMPM_SILENT};

	wr.wq = rq;
	wr.index = SLMPM_WQ_DONE;
	wr.value = 1;
	post(wr);
	post(calc(c, 1));
	wr.op = SLMPM_OP_ENABLE;
	wr.index = 0;
	wr.value = 2;
	post(wr);
}

/* Until it gets through, which is when the calculation has ended: how often it was refused. */
static int flood(const uint64_t *words)
{
	int refused = 0, rc;

	while ((rc = slmpm_send(a, 1, words, refused % 2 ? 8 : sizeof(came), PATIENCE)) < 0) {
		EXPECT(rc, -SLMPM_EDISABLED);
		refused++;
		(void)slmpm_progress(ctx);
	}
	return refused;
}

/* The sender floods the stream all through a long calculation whose receive entry is disabled: its
 * arguments never change. */
static void flooded(bool by_thread)
{
	static uint64_t first[MANY], others[MANY], sum[MANY];
	struct slmpm_operand args[3] = {{.at = came}, {.at = came}, {.at = first}};
	struct slmpm_operand target = {.at = sum};
	struct slmpm_calc c = sum_of(args, 3, &target, MANY);
	slmpm_ctr done;
	slmpm_wq rq;
	int refused;

	begin(0, 0);
	OK(slmpm_ctr_create(ctx, &done));
	rq = receive_queue(done);
	for (uint64_t i = 0; i < MANY; i++) {
		first[i] = i * 3 + 1;
		others[i] = ~i;
	}
	memset(sum, 0, sizeof(sum));
	post_flooded(rq, &c);
	OK(slmpm_send(a, 1, first, sizeof(first), PATIENCE));
	refused = flood(others);
	CHECK(by_thread || refused > 20, "%d were refused", refused);
	told(1, SLMPM_OP_CALC, 0);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK(sum[i] == 3 * first[i], "element %llu", (unsigned long long)i);
	OK(slmpm_ctr_wait(done, 2, PATIENCE));
	CHECK(came[0] == others[0], "what got through is not there");
	end();
}

static void refusals(void)
{
	uint64_t words[8];
	struct slmpm_operand arg = {.at = words}, target = {.at = words + 1};
	struct slmpm_calc c = sum_of(&arg, 1, &target, 4);
	struct slmpm_wr wr;

	begin(0, 0);
	wr = calc(NULL, 0);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "without .calc");
	wr = calc(&c, 0);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "overlap");
	c.op = 77;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "77");
	wr.op = SLMPM_OP_COUNT;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".calc of a COUNT is set: it is for CALC");
	end();
}

static int everything(void *engine)
{
	setenv("SLMPM_ENGINE", engine, 1);
	reduction();
	if (strcmp(engine, "thread") != 0)
		long_one_in_pieces();
	short_ones();
	winners();
	flooded(!strcmp(engine, "thread"));
	refusals();
	return 0;
}

int main(void)
{
	static char *const engines[] = {"none", "thread"};

	for (int i = 0; i < 2; i++)
		CHECK(child_run(everything, engines[i], 25) == 0, "%s: see above", engines[i]);
	return 0;
}
