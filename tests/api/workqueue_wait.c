/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Entries of work queues that wait for totals, enable one another and count: what came before a
 * WAIT is reached is neither lost nor waited for twice, and each holds back its own channel alone.
 */
#include "tests/api/workqueue_entry.h"
#include "tests/lib/settings.h"

#define CHAINS 64

/* ---- counters ------------------------------------------------------------------------------ */

static void absolute(void)
{
	slmpm_ctr in, out;

	begin(0, 0);
	in = counter();
	out = counter();
	post(count(in, 1, 3, SLMPM_SILENT));
	post(wait_for(in, 0, 3, SLMPM_SILENT)); /* it is there */
	post(count(out, 0, 7, SLMPM_SILENT));
	CHECK(counted(out) == 7, "%llu", (unsigned long long)counted(out));
	post(wait_for(in, 0, 5, SLMPM_SILENT));
	post(count(out, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	settle();
	CHECK(counted(out) == 7 && look(wq).waiting == 1, "it did not wait");
	post(count(in, 1, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	CHECK(counted(out) == 7, "4 are not 5");
	REFUSED(slmpm_ctr_destroy(in), SLMPM_EBUSY, "work queue names it");
	post(count(in, 1, 9, SLMPM_SILENT));
	CHECK(counted(out) == 8 && look(wq).waiting == 0, "9 are 5");
	CHECK(look(wq).done == 7 && look(wq).begun == 7 && look(wq).posted == 7, "totals");
	OK(slmpm_ctr_destroy(in));
	empty();
	end();
}

/* The event before, at and after the WAIT is reached. */
static void again_and_again(void)
{
	const uint64_t rounds = 1000000 / (uint64_t)actor_slow();
	slmpm_ctr in, out;
	slmpm_wq signals;

	begin(0, SLMPM_WQ_KEPT);
	signals = another(0);
	in = counter();
	out = counter();
	post(wait_for(in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	post(count(out, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	post_to(signals, count(in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	for (uint64_t i = 1; i < rounds; i++) {
		struct slmpm_wr event = count(in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);

		CHECK(counted(out) == i, "%llu of %llu", (unsigned long long)counted(out),
		      (unsigned long long)i);
		if (i % 2)
			post_to(signals, event);
		OK(slmpm_wq_arm(wq));
		if (i % 2)
			continue;
		CHECK(counted(out) == i, "nothing has come");
		REFUSED(slmpm_wq_arm(wq), SLMPM_EBUSY, "entries that have not ended: 2");
		post_to(signals, event);
	}
	CHECK(look(wq).done == 2 * rounds && look(wq).posted == 2 * rounds, "totals");
	empty();
	end();
}

/* Several of one total: each takes its share, in the order of posting. */
static void shares(void)
{
	slmpm_ctr in, out;

	begin(0, 0);
	in = counter();
	out = counter();
	for (uint32_t i = 0; i < 8; i++) {
		post(wait_for(in, i, 2, SLMPM_SILENT | SLMPM_RELATIVE));
		post(count(out, i, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	}
	for (uint64_t i = 1; i <= 16; i++) {
		post(count(in, 20, 1, SLMPM_SILENT | SLMPM_RELATIVE));
		CHECK(counted(out) == i / 2, "%llu behind %llu", (unsigned long long)counted(out),
		      (unsigned long long)i);
	}
	end();
}

/* ---- completions, channels, queues ---------------------------------------------------------- */

/* A message that has arrived goes on by itself, and the next reaches the next buffer. */
static void forwards(void)
{
	uint64_t value = 0, back;

	begin(0, 0);
	for (uint64_t i = 0; i < 50; i++) {
		struct slmpm_iov place = {&here[i], 8};
		struct slmpm_wr wr = receive(3, &place, 3 * i),
				send = message(4, &place, 3 * i + 2);

		wr.channel = 1;
		post(wr);
		wr = entry(SLMPM_OP_WAIT, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
		wr.cq = cq;
		post(wr);
		send.flags = SLMPM_SILENT;
		post(send);
	}
	for (uint64_t i = 0; i < 50; i++) {
		value = i * i;
		OK(slmpm_send(b, 3, &value, 8, PATIENCE));
		EXPECT(slmpm_recv(b, 4, &back, 8, NULL, PATIENCE), 8);
		CHECK(back == value, "%llu", (unsigned long long)back);
		next(3 * i, SLMPM_OP_RECV, 0);
	}
	REFUSED(slmpm_cq_destroy(cq), SLMPM_EBUSY, "work queue");
	end();
}

/* A counter that is set back has its operations under way as before: who waits for all waits. */
static void set_back(void)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_iov place = {here, 8};

	begin(0, 0);
	how.ctr = counter();
	post(known(count(how.ctr, 0, 5, 0), 1));
	expect(1, 0, 0);
	OK(slmpm_recvv(b, 3, &place, 1, &how, NULL));
	post(known(count(how.ctr, 0, 0, 0), 2));
	expect(2, 0, 0);
	EXPECT(slmpm_ctr_wait(how.ctr, SLMPM_ALL, 0), -SLMPM_EAGAIN);
	OK(slmpm_send(a, 3, here, 8, PATIENCE));
	OK(slmpm_ctr_wait(how.ctr, SLMPM_ALL, PATIENCE));
	EXPECT(counted(how.ctr), 1);
	end();
}

/* Ends that are counted, silent or not. */
static void counts_ends(void)
{
	struct slmpm_iov place = {here, 8}, none = {NULL, 0};
	slmpm_ctr ends;
	struct slmpm_wr wr;

	begin(0, 0);
	ends = counter();
	wr = receive(3, &place, 1);
	wr.ctr = ends;
	wr.flags = SLMPM_SILENT;
	post(wr);
	post(wait_for(ends, 0, 1, SLMPM_SILENT));
	wr = message(4, &place, 2);
	wr.ctr = ends;
	post(wr);
	OK(slmpm_send(b, 3, "so it is", 8, PATIENCE));
	EXPECT(slmpm_recv(b, 4, here + 1, 8, NULL, PATIENCE), 8);
	next(2, SLMPM_OP_SEND, 0);
	CHECK(counted(ends) == 2 && !memcmp(here + 1, "so it is", 8), "what was counted");
	wr = receive(3, &none, 3);
	wr.ctr = ends;
	post(wr);
	OK(slmpm_send(b, 3, "too long", 8, PATIENCE));
	next(3, SLMPM_OP_RECV, -SLMPM_ETRUNC);
	REFUSED(slmpm_ctr_wait(ends, 3, PATIENCE), SLMPM_ETRUNC, "counter");
	end();
}

/* One chain whose peer does not take its message holds up no other. */
static void chains(void)
{
	struct slmpm_iov whole;
	slmpm_ctr go, out;

	begin(4 * CHAINS, 0);
	go = counter();
	out = counter();
	whole = long_one();
	for (uint32_t i = 0; i < CHAINS; i++) {
		struct slmpm_wr wr = message(i, &whole, i);

		wr.channel = i;
		wr.flags = SLMPM_SILENT;
		post(wait_for(go, i, 1, SLMPM_SILENT));
		post(wr);
		post(count(out, i, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	}
	CHECK(look(wq).waiting == CHAINS, "%u wait", look(wq).waiting);
	post(count(go, 3, 1, 0)); /* behind the WAIT of a channel: it waits itself */
	settle();
	CHECK(counted(out) == 0, "order within a channel");
	OK(slmpm_wq_cancel(wq, 3 * CHAINS + 1));
	post_to(another(0), count(go, 0, 1, SLMPM_SILENT));
	for (uint32_t i = 1; i < CHAINS; i++)
		EXPECT(slmpm_recv(b, i, whole.base, whole.len, NULL, PATIENCE), whole.len);
	settle();
	CHECK(counted(out) == CHAINS - 1, "%llu have ended", (unsigned long long)counted(out));
	REFUSED(slmpm_wq_drain(wq, 1), SLMPM_ETIMEOUT, "191 of 193");
	EXPECT(slmpm_recv(b, 0, whole.base, whole.len, NULL, PATIENCE), whole.len);
	REFUSED(slmpm_wq_drain(wq, PATIENCE), SLMPM_ECANCELED, "channel 3");
	CHECK(counted(out) == CHAINS, "%llu have ended", (unsigned long long)counted(out));
	free(whole.base);
	end();
}

/* What is relative ends there, and does not begin again. */
static void greatest(void)
{
	const uint64_t greatest = UINT64_MAX;
	struct slmpm_wr enable = entry(SLMPM_OP_ENABLE, 0, 10, SLMPM_SILENT | SLMPM_RELATIVE);
	slmpm_ctr ctr;

	begin(0, 0);
	ctr = counter();
	enable.wq = another(SLMPM_WQ_MANAGED);
	OK(slmpm_wq_enable(enable.wq, greatest - 4));
	post(enable);
	post(count(ctr, 0, greatest - 4, SLMPM_SILENT));
	post(count(ctr, 0, 10, SLMPM_SILENT | SLMPM_RELATIVE));
	post(wait_for(ctr, 0, greatest, SLMPM_SILENT));
	OK(slmpm_wq_drain(wq, PATIENCE));
	CHECK(counted(ctr) == greatest && look(enable.wq).enabled == greatest, "it wraps around");
	end();
}

static void enabling(void)
{
	slmpm_wq managed;
	slmpm_ctr out;
	struct slmpm_wr enable = entry(SLMPM_OP_ENABLE, 0, 2, SLMPM_SILENT), on;

	begin(0, 0);
	out = counter();
	managed = another(SLMPM_WQ_MANAGED);
	for (int i = 0; i < 6; i++)
		post_to(managed, count(out, (uint32_t)i % 2, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	settle();
	CHECK(counted(out) == 0 && look(managed).begun == 0, "none is enabled");
	enable.wq = managed;
	post(enable);
	CHECK(counted(out) == 2 && look(managed).enabled == 2, "%llu",
	      (unsigned long long)counted(out));
	post(enable); /* they are already */
	enable.flags |= SLMPM_RELATIVE;
	enable.value = 1;
	post(enable);
	CHECK(counted(out) == 3, "by one");
	OK(slmpm_wq_enable(managed, 8)); /* of which two are yet to be posted */
	CHECK(counted(out) == 6, "all");
	on = entry(SLMPM_OP_WAIT, 0, 8, 0);
	on.wq = managed;
	on.index = SLMPM_WQ_DONE;
	on.cookie = 77;
	post(on);
	post_to(managed, count(out, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	empty();
	post_to(managed, count(out, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	{
		struct slmpm_done done;

		EXPECT(slmpm_cq_poll(cq, &done, 1), 1);
		CHECK(done.cookie == 77 && done.op == SLMPM_OP_WAIT && done.len == 8, "%llu",
		      (unsigned long long)done.len);
	}
	post_to(managed, count(out, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	CHECK(counted(out) == 8, "the ninth is not enabled");
	REFUSED(slmpm_wq_enable(wq, 1), SLMPM_EINVAL, "MANAGED");
	OK(slmpm_wq_destroy(managed));
	end();
}

/* ---- ends ---------------------------------------------------------------------------------- */

/* It sleeps until then; what is behind it is told, and who waits for that in another queue. */
static void deadline(void)
{
	slmpm_ctr never;
	struct slmpm_wr late, behind, further = entry(SLMPM_OP_WAIT, 5, 1, 0);
	slmpm_wq second;

	begin(0, 0);
	never = counter();
	second = another(0);
	late = wait_for(never, 2, 1, 0);
	late.timeout_ms = 30;
	late.cookie = 1;
	behind = count(never, 2, 1, 0);
	behind.cookie = 2;
	further.wq = wq;
	further.index = SLMPM_WQ_DONE;
	further.cookie = 3;
	post(late);
	post(behind);
	post_to(second, further);
	expect(1, -SLMPM_ETIMEOUT, 0);
	expect(2, -SLMPM_ECANCELED, 1);
	expect(3, -SLMPM_ETIMEOUT, 1);
	CHECK(look(wq).status == -SLMPM_ETIMEOUT && look(wq).first_failed == 1 &&
		      look(wq).channel == 2 && look(wq).failed == 2,
	      "what failed");
	post(count(never, 0, 1, SLMPM_SILENT)); /* another channel goes on */
	REFUSED(slmpm_post(wq, &behind, 1), SLMPM_ETIMEOUT, "channel 2 has stopped at entry 1");
	REFUSED(slmpm_wq_drain(wq, 0), SLMPM_ETIMEOUT, "entry 1");
	OK(slmpm_wq_reset(wq));
	post(behind);
	expect(2, 0, 0);
	CHECK(look(wq).posted == 4 && look(wq).done == 2, "totals go on");
	late = wait_for(never, 7, 100, 0);
	late.timeout_ms = -1; /* as 0: none */
	late.cookie = 4;
	post(late);
	REFUSED(slmpm_wq_drain(wq, 20), SLMPM_ETIMEOUT, "have ended");
	CHECK(look(wq).waiting == 1, "it waits for ever");
	OK(slmpm_wq_cancel(wq, 5));
	expect(4, -SLMPM_ECANCELED, 0);
	end();
}

static void cancelling(void)
{
	struct slmpm_iov place = {here, 8};
	slmpm_ctr never;
	struct slmpm_wr wr;

	begin(0, 0);
	never = counter();
	here[0] = 0;
	post(receive(1, &place, 1)); /* 1 */
	wr = wait_for(never, 1, 1, 0);
	wr.cookie = 2;
	post(wr); /* 2 */
	wr = count(never, 1, 1, 0);
	wr.cookie = 3;
	post(wr); /* 3 */
	wr = count(never, 1, 1, 0);
	wr.cookie = 4;
	post(wr);                   /* 4 */
	OK(slmpm_wq_cancel(wq, 3)); /* in its turn */
	empty();
	OK(slmpm_wq_cancel(wq, 1));
	expect(1, -SLMPM_ECANCELED, 0);
	OK(slmpm_wq_cancel(wq, 2));
	expect(2, -SLMPM_ECANCELED, 0);
	expect(3, -SLMPM_ECANCELED, 2);
	expect(4, -SLMPM_ECANCELED, 2);
	REFUSED(slmpm_wq_cancel(wq, 2), SLMPM_EINVAL, "no entry 2");
	REFUSED(slmpm_wq_cancel(wq, 99), SLMPM_EINVAL, "no entry 99");
	OK(slmpm_wq_cancel(wq, 0));
	OK(slmpm_send(b, 1, "later", 5, PATIENCE)); /* nobody's buffer any more */
	settle();
	CHECK(here[0] == 0, "the buffer is the caller's");
	OK(slmpm_wq_reset(wq));
	post(receive(1, &place, 5));
	expect(5, 0, 0);
	end();
}

/* With everything pending. */
static void destroying(void)
{
	struct slmpm_iov place = {here, 8}, whole;
	slmpm_ctr never;
	struct slmpm_wr wr;

	begin(0, SLMPM_WQ_MANAGED | SLMPM_WQ_KEPT);
	never = counter();
	whole = long_one();
	OK(slmpm_wq_enable(wq, 3));
	post(receive(1, &place, 1));
	post(message(2, &whole, 2));
	wr = wait_for(never, 1, 1, 0);
	wr.cookie = 3;
	post(wr);
	wr.cookie = 4;
	post(wr);
	settle();
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_ctr_destroy(never));
	expect(1, -SLMPM_ECANCELED, 0);
	for (int i = 0; i < 3; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_poll(cq, &done, 1), 1);
		EXPECT(done.status, -SLMPM_ECANCELED);
	}
	OK(slmpm_cq_destroy(cq));
	free(whole.base);
	OK(slmpm_shut(ctx, PATIENCE));
}

static void refusals(void)
{
	slmpm_ctr ctr;
	struct slmpm_wr wr;

	begin(0, 0);
	ctr = counter();
	wr = entry(SLMPM_OP_WAIT, 0, 1, 0);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "a WAIT names one");
	wr.timeout_ms = -2;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".timeout_ms of a WAIT is -2");
	wr.timeout_ms = 0;
	wr.ctr = ctr;
	wr.wq = wq;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "a WAIT names one");
	wr.ctr.id = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "index 0");
	wr.op = SLMPM_OP_ENABLE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "MANAGED");
	wr.op = SLMPM_OP_COUNT;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		".wq of a COUNT is set: it is for WAIT, ENABLE and PIPE");
	wr = wait_for(ctr, 64, 1, 0);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "channel 64 of 64");
	wr = wait_for((slmpm_ctr){UINT64_C(7) << 32}, 0, 1, 0);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EHANDLE, "counter");
	wr = wait_for(ctr, 0, 1, SLMPM_FENCE);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "flags 0x4");
	wr = message(1, NULL, 0);
	wr.iov_count = 0;
	wr.timeout_ms = INT32_MIN;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".timeout_ms of a SEND is -2147483648");
	wr.timeout_ms = 0;
	wr.flags = SLMPM_RELATIVE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "flags 0x10000");
	OK(slmpm_ctr_destroy(ctr));
	REFUSED(slmpm_wq_query(wq, NULL), SLMPM_EINVAL, "size");
	REFUSED(slmpm_cq_query(cq, NULL), SLMPM_EINVAL, "size");
	REFUSED(slmpm_wq_reset((slmpm_wq){0}), SLMPM_EHANDLE, "zero work queue");
	REFUSED(slmpm_wq_arm(wq), SLMPM_EINVAL, "KEPT");
	end();
}

static int everything(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	absolute();
	again_and_again();
	shares();
	forwards();
	set_back();
	counts_ends();
	chains();
	greatest();
	enabling();
	deadline();
	cancelling();
	destroying();
	refusals();
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
