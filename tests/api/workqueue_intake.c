/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * CALCs and PIPEs take messages of managed receive queues, of one peer and of any: as their entries
 * are enabled, in their order, and no more.
 */
#include "tests/api/workqueue.h"

#define STREAM 9
#define OUT    10
#define MANY   50000

static slmpm_wq receives;
static bool of_any;
static uint32_t channel; /* of what is posted to the other queue */
static struct slmpm_operand args[2], target;
static struct slmpm_calc sum;

static void start(uint32_t flags)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, .stream = STREAM};

	begin(0, flags);
	o.cq = cq;
	o.peer = of_any ? slmpm_any(ctx) : b;
	OK(slmpm_wq_create(ctx, &o, &receives));
	settle();
}

static void enable(uint64_t index)
{
	OK(slmpm_wq_enable(receives, index));
	settle();
}

static int send(uint64_t value)
{
	return slmpm_send(a, STREAM, &value, sizeof(value), PATIENCE);
}

static void is_refused(void)
{
	REFUSED(send(1), SLMPM_EDISABLED, "disabled");
}

static void post_receive(uint64_t at)
{
	const struct slmpm_iov place = {&here[at], 8};
	const struct slmpm_wr wr = {.size = sizeof(wr),
				    .op = SLMPM_OP_RECV,
				    .iov = &place,
				    .iov_count = 1,
				    .cookie = at};

	here[at] = 0;
	EXPECT(slmpm_post(receives, &wr, 1), 1);
}

/* Two messages of the queue (N), or one and what lies at OWN, of COUNT elements, are added. */
static void post_sum(int n, uint64_t *own, uint64_t count, uint64_t *to, uint64_t cookie)
{
	struct slmpm_wr wr = {
		.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &sum, .channel = channel};

	args[0] = (struct slmpm_operand){.wq = receives};
	args[1] = n == 2 ? args[0] : (struct slmpm_operand){.at = own};
	target = (struct slmpm_operand){.at = to};
	sum = (struct slmpm_calc){.size = sizeof(sum),
				  .op = SLMPM_CALC_SUM,
				  .type = SLMPM_UINT64,
				  .count = {count},
				  .args = args,
				  .targets = &target,
				  .arg_count = 2,
				  .target_count = 1};
	wr.cookie = cookie;
	post(wr);
	settle();
}

static void expect(uint64_t cookie, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.status == status, "%llu: %d, not %llu: %d",
	      (unsigned long long)done.cookie, done.status, (unsigned long long)cookie, status);
}

static void expect_totals(uint64_t posted, uint64_t begun, uint64_t done, uint64_t failed)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(receives, &info));
	CHECK(info.posted == posted && info.begun == begun && info.done == done &&
		      info.failed == failed,
	      "%llu posted, %llu begun, %llu done, %llu failed", (unsigned long long)info.posted,
	      (unsigned long long)info.begun, (unsigned long long)info.done,
	      (unsigned long long)info.failed);
}

/* ---- CALC ------------------------------------------------------------------------------------ */

static void one_argument(void)
{
	uint64_t own = 100;

	start(0);
	post_sum(1, &own, 1, &here[0], 7);
	expect_totals(1, 0, 0, 0);
	is_refused();
	empty();
	enable(1);
	expect_totals(1, 1, 0, 0);
	OK(send(5));
	expect(7, 0);
	CHECK(here[0] == 105, "%llu", (unsigned long long)here[0]);
	expect_totals(1, 1, 1, 0);
	is_refused();
	enable(2);
	OK(send(6)); /* there before it is posted */
	post_sum(1, &own, 1, &here[0], 8);
	expect(8, 0);
	CHECK(here[0] == 106, "%llu", (unsigned long long)here[0]);
	is_refused();
	end();
}

static void two_of_one_queue(void)
{
	start(0);
	post_sum(2, NULL, 1, &here[0], 7);
	enable(1);
	expect_totals(2, 1, 0, 0);
	OK(send(5));
	is_refused();
	empty();
	enable(2);
	OK(send(6));
	expect(7, 0);
	CHECK(here[0] == 11, "%llu", (unsigned long long)here[0]);
	expect_totals(2, 2, 2, 0);
	end();
}

/* Receives and arguments in the order in which they were posted, however they are enabled. */
static void in_order(bool together)
{
	uint64_t own = 100;

	start(0);
	post_receive(1);
	post_sum(1, &own, 1, &here[2], 2);
	post_receive(3);
	for (uint64_t i = 1; i <= 3; i++) {
		if (together && i == 1)
			enable(3);
		else if (!together)
			enable(i);
		OK(send(i));
	}
	for (int i = 0; i < 3; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		EXPECT(done.status, 0);
	}
	CHECK(here[1] == 1 && here[2] == 102 && here[3] == 3, "%llu %llu %llu",
	      (unsigned long long)here[1], (unsigned long long)here[2],
	      (unsigned long long)here[3]);
	expect_totals(3, 3, 3, 0);
	end();
}

/* Nor does one behind them that is cancelled let anything pass. */
static void cancelled_behind(void)
{
	uint64_t own = 100;

	start(0);
	post_receive(1);
	post_sum(1, &own, 1, &here[2], 2);
	channel = 1;
	post_sum(1, &own, 1, &here[4], 4);
	channel = 0;
	OK(slmpm_wq_cancel(wq, 2));
	expect(4, -SLMPM_ECANCELED);
	settle();
	enable(3);
	OK(send(1));
	expect(1, 0);
	OK(send(2));
	expect(2, 0);
	CHECK(here[1] == 1 && here[2] == 102, "%llu %llu", (unsigned long long)here[1],
	      (unsigned long long)here[2]);
	expect_totals(3, 2, 2, 1);
	end();
}

/* Its sender tries all the time while a long one is calculated. */
static void flooded(void)
{
	static uint64_t data[MANY], own[MANY], to[MANY];
	struct slmpm_done done;
	int rc;

	for (uint64_t i = 0; i < MANY; i++) {
		data[i] = i * 3;
		own[i] = i;
	}
	start(0);
	enable(1);
	post_sum(1, own, MANY, to, 7);
	OK(slmpm_send(a, STREAM, data, sizeof(data), PATIENCE));
	memset(data, 0xee, sizeof(data));
	do {
		for (int i = 0; i < 3; i++)
			REFUSED(slmpm_send(a, STREAM, data, i % 2 ? sizeof(data) : 8, PATIENCE),
				SLMPM_EDISABLED, "disabled");
		rc = slmpm_cq_poll(cq, &done, 1);
	} while (rc == 0);
	CHECK(rc == 1 && done.status == 0, "%d, %d", rc, done.status);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK(to[i] == i * 4, "%llu at %llu", (unsigned long long)to[i],
		      (unsigned long long)i);
	end();
}

/* One that is cancelled is an entry that has ended without a message. */
static void cancelled(void)
{
	uint64_t own = 1;

	start(0);
	post_sum(1, &own, 1, &here[0], 7);
	REFUSED(slmpm_wq_destroy(receives), SLMPM_EBUSY, "a CALC or PIPE of another queue takes 1");
	REFUSED(slmpm_wq_reset(receives), SLMPM_EBUSY, "a CALC or PIPE of another queue takes 1");
	(void)slmpm_wq_cancel(wq, 0);
	expect(7, -SLMPM_ECANCELED);
	expect_totals(1, 0, 0, 1);
	OK(slmpm_wq_reset(wq));
	enable(1);
	is_refused();
	enable(2);
	post_sum(1, &own, 1, &here[0], 8);
	expect_totals(2, 1, 0, 1);
	(void)slmpm_wq_cancel(wq, 0);
	expect(8, -SLMPM_ECANCELED);
	OK(slmpm_wq_reset(wq));
	settle();
	is_refused();
	enable(3);
	OK(send(9));
	post_receive(1);
	expect(1, 0);
	CHECK(here[1] == 9, "%llu", (unsigned long long)here[1]);
	OK(slmpm_wq_destroy(receives));
	end();
}

/* The queue has stopped: what waits for one of its entries fails with it. */
static void source_stops(void)
{
	uint64_t own = 1;

	start(0);
	post_receive(1);
	post_sum(1, &own, 1, &here[0], 7);
	OK(slmpm_wq_cancel(receives, 1));
	expect(1, -SLMPM_ECANCELED);
	expect(7, -SLMPM_ECANCELED);
	OK(slmpm_wq_reset(receives));
	OK(slmpm_wq_reset(wq));
	post_sum(1, &own, 1, &here[0], 8);
	OK(slmpm_shut(ctx, PATIENCE)); /* it waits */
}

/* A program that runs again takes an entry each time. */
static void again(void)
{
	uint64_t own = 50;

	start(SLMPM_WQ_KEPT);
	post_sum(1, &own, 1, &here[0], 7);
	for (uint64_t i = 1; i <= 20; i++) {
		is_refused();
		enable(i);
		OK(send(i));
		expect(7, 0);
		CHECK(here[0] == 50 + i, "%llu", (unsigned long long)here[0]);
		OK(slmpm_wq_arm(wq));
	}
	expect_totals(21, 20, 20, 0);
	end();
}

/* ---- PIPE ------------------------------------------------------------------------------------ */

/* Of five messages, which come from A and go to it, by two buffers. */
static void post_pipe(uint64_t buffers[2])
{
	const struct slmpm_iov rooms[] = {{&buffers[0], 8}, {&buffers[1], 8}};

	post((struct slmpm_wr){.size = sizeof(struct slmpm_wr),
			       .op = SLMPM_OP_PIPE,
			       .wq = receives,
			       .peer = b,
			       .stream = OUT,
			       .iov = rooms,
			       .iov_count = 2,
			       .value = 5,
			       .cookie = 7});
}

static void piped(void)
{
	static uint64_t buffers[2];
	uint64_t value;

	start(0);
	post_pipe(buffers);
	settle();
	expect_totals(1, 0, 0, 0);
	for (uint64_t i = 1; i <= 3; i++) {
		is_refused();
		enable(i);
		expect_totals(i + 1, i, i - 1, 0);
		OK(send(i));
		EXPECT(slmpm_recv(a, OUT, &value, 8, NULL, PATIENCE), 8);
		CHECK(value == i, "%llu", (unsigned long long)value);
		settle();
	}
	post_receive(1); /* the PIPE has taken number 4 already */
	enable(UINT64_C(1) << 63);
	for (uint64_t i = 4; i <= 6; i++)
		OK(send(i));
	expect(1, 0);
	EXPECT(here[1], 5);
	for (uint64_t i = 4; i <= 6; i += 2) {
		EXPECT(slmpm_recv(a, OUT, &value, 8, NULL, PATIENCE), 8);
		EXPECT(value, i);
	}
	expect(7, 0);
	expect_totals(6, 6, 6, 0);
	end();
}

static void pipe_cancelled(void)
{
	static uint64_t buffers[2];

	start(0);
	post_pipe(buffers);
	enable(1);
	expect_totals(2, 1, 0, 0);
	(void)slmpm_wq_cancel(wq, 0);
	settle();
	expect(7, -SLMPM_ECANCELED);
	expect_totals(2, 1, 0, 2);
	is_refused();
	enable(3);
	OK(send(4));
	post_receive(1);
	expect(1, 0);
	end();
}

/* Read from text, written as the same text, and run. */
static void as_text(void)
{
	static const char text[] =
		"calc cookie=7 does=sum from=own+0,<in to=here+0 type=uint64 count=1\n"
		"pipe cookie=8 peer=next stream=10 through=room+0:8 wq=in "
		"value=1\n";
	static uint64_t own, room;
	struct slmpm_name names[] = {
		{.name = "in", .kind = SLMPM_NAME_WQ},
		{.name = "next", .kind = SLMPM_NAME_PEER},
		{.name = "own", .kind = SLMPM_NAME_MEMORY, .base = &own, .len = 8},
		{.name = "here", .kind = SLMPM_NAME_MEMORY, .base = here, .len = sizeof(here)},
		{.name = "room", .kind = SLMPM_NAME_MEMORY, .base = &room, .len = 8},
	};
	uint64_t value;
	char written[512];

	own = 100;
	start(SLMPM_WQ_KEPT);
	names[0].id = receives.id;
	names[1].id = b.id;
	EXPECT(slmpm_wq_load(wq, text, names, 5, 0), 2);
	CHECK(slmpm_wq_dump(&wq, 1, names, 5, 0, written, sizeof(written)) > 0, "no text");
	CHECK(strstr(written, ",<in ") && strstr(written, " wq=in"), "%s", written);
	CHECK(!strstr(written, "source") && !strchr(written, '?'), "%s", written);
	OK(slmpm_wq_cancel(wq, 0));
	expect(7, -SLMPM_ECANCELED);
	expect(8, -SLMPM_ECANCELED);
	OK(slmpm_wq_reset(wq));
	EXPECT(slmpm_wq_load(wq, written, names, 5, 0), 2);
	enable(3); /* one was cancelled */
	OK(send(1));
	expect(7, 0);
	EXPECT(here[0], 101);
	OK(send(2));
	expect(8, 0);
	EXPECT(slmpm_recv(a, OUT, &value, 8, NULL, PATIENCE), 8);
	EXPECT(value, 2);
	end();
}

/* Its counter is there as long as it is. */
static void pipe_counted(void)
{
	static uint64_t buffer;
	const struct slmpm_iov room = {&buffer, 8};
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	slmpm_ctr ctr;

	start(0);
	OK(slmpm_ctr_create(ctx, &ctr));
	post((struct slmpm_wr){.size = sizeof(struct slmpm_wr),
			       .op = SLMPM_OP_PIPE,
			       .wq = receives,
			       .peer = b,
			       .stream = OUT,
			       .iov = &room,
			       .iov_count = 1,
			       .value = 1,
			       .ctr = ctr,
			       .cookie = 7});
	settle();
	REFUSED(slmpm_ctr_destroy(ctr), SLMPM_EBUSY, "work queue");
	enable(1);
	OK(send(5));
	expect(7, 0);
	OK(slmpm_ctr_query(ctr, &info));
	EXPECT(info.done, 1);
	OK(slmpm_ctr_destroy(ctr));
	end();
}

static void refusals(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED | SLMPM_WQ_KEPT,
				     .stream = STREAM + 1};
	struct slmpm_iov room = {here, 8};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &sum};
	slmpm_wq kept;
	uint64_t own = 1;

	start(0);
	o.cq = cq;
	o.peer = b;
	OK(slmpm_wq_create(ctx, &o, &kept));
	post_sum(1, &own, 1, &here[0], 7);
	args[0].wq = kept;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "SLMPM_WQ_KEPT");
	wr = (struct slmpm_wr){.size = sizeof(wr),
			       .op = SLMPM_OP_PIPE,
			       .wq = kept,
			       .peer = b,
			       .iov = &room,
			       .iov_count = 1,
			       .value = 1};
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "SLMPM_WQ_KEPT");
	wr.wq = receives;
	wr.from = b;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "stands for .from");
	end();
}

static int everything(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	for (int i = 0; i < 2; i++) {
		of_any = i;
		one_argument();
		two_of_one_queue();
		in_order(false);
		in_order(true);
		cancelled_behind();
		flooded();
		cancelled();
		source_stops();
		again();
		piped();
		pipe_counted();
		pipe_cancelled();
		as_text();
		refusals();
	}
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp"};

	for (int i = 0; i < 2; i++) {
		int rc = child_run(everything, fabrics[i], 50);

		CHECK(rc == 0, "SLMPM_FABRIC=%s: %d", fabrics[i], rc);
	}
	return 0;
}
