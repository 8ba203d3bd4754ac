/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: who waits for entries that cannot come learns of it, whichever way they ended;
 * totals that are never reached; what stands behind a barrier, or beside an entry that has failed.
 */
#include "tests/api/workqueue_entry.h"

/* In a second queue, for a total of the first. */
static slmpm_wq watch(uint32_t index, uint64_t value, uint64_t cookie)
{
	struct slmpm_wr wr = known(entry(SLMPM_OP_WAIT, 0, value, 0), cookie);
	slmpm_wq second = another(0);

	wr.wq = wq;
	wr.index = index;
	EXPECT(slmpm_post(second, &wr, 1), 1);
	return second;
}

/* ---- to blame ------------------------------------------------------------------------------ */

static void receive_to_blame(void)
{
	struct slmpm_iov place = {here, 8};

	begin(0, 0);
	post(receive(1, &place, 1));
	(void)watch(SLMPM_WQ_DONE, 1, 2);
	OK(slmpm_wq_cancel(wq, 1));
	expect(1, -SLMPM_ECANCELED, 0);
	expect(2, -SLMPM_ECANCELED, 1);
	OK(slmpm_wq_reset(wq));
	post(receive(1, &place, 3));
	(void)watch(SLMPM_WQ_DONE, 2, 4);
	OK(slmpm_send(b, 1, "too long for it", 16, PATIENCE));
	expect(3, -SLMPM_ETRUNC, 16);
	expect(4, -SLMPM_ETRUNC, 2);
	end();
}

/* Amidst its way: its length is no entry's number. */
static void send_to_blame(void)
{
	struct slmpm_iov whole;

	begin(0, 0);
	whole = long_one();
	post(message(1, &whole, 1));
	(void)watch(SLMPM_WQ_DONE, 1, 2);
	OK(slmpm_wq_cancel(wq, 1));
	expect(1, -SLMPM_ECANCELED, 0);
	expect(2, -SLMPM_ECANCELED, 1);
	free(whole.base);
	end();
}

/* One that fails in its turn has never begun. */
static void turn_to_blame(void)
{
	slmpm_ctr go;

	begin(0, 0);
	go = counter();
	post(known(wait_for(go, 0, 1, 0), 1));
	post(known(count(go, 0, 7, 0), 2));
	(void)watch(SLMPM_WQ_BEGUN, 3, 5);
	OK(slmpm_wq_cancel(wq, 2));
	post(known(count(go, 1, 1, 0), 3));
	expect(3, 0, 0);
	expect(1, 0, 0);
	expect(2, -SLMPM_ECANCELED, 0);
	expect(5, -SLMPM_ECANCELED, 2);
	CHECK(look(wq).begun == 2, "%llu have begun", (unsigned long long)look(wq).begun);
	end();
}

/* ---- never --------------------------------------------------------------------------------- */

static void never(void)
{
	slmpm_ctr ctr;
	struct slmpm_wr wr;

	begin(0, 0);
	ctr = counter();
	post(known(wait_for(ctr, 0, UINT64_MAX, 0), 1));
	wr = known(wait_for(ctr, 1, UINT64_MAX, 0), 2);
	wr.flags = SLMPM_RELATIVE;
	post(wr);
	wr.channel = 2; /* as much again */
	post(wr);
	wr = known(entry(SLMPM_OP_WAIT, 3, UINT64_MAX, 0), 3);
	wr.cq = cq;
	post(wr);
	wr = known(entry(SLMPM_OP_WAIT, 4, UINT64_MAX, 0), 4);
	wr.wq = wq;
	wr.index = SLMPM_WQ_DONE;
	post(wr);
	empty();
	CHECK(look(wq).waiting == 5, "%u wait", look(wq).waiting);
	post(known(count(ctr, 5, UINT64_C(1) << 63, 0), 5));
	expect(5, 0, 0);
	post(known(wait_for(ctr, 5, 3, 0), 6)); /* it is far beyond */
	expect(6, 0, 0);
	empty();
	end();
}

/* ---- order --------------------------------------------------------------------------------- */

static void barrier(void)
{
	struct slmpm_iov place = {here, 8}, whole;
	struct slmpm_wr wr;

	begin(0, 0);
	whole = long_one();
	wr = message(1, &whole, 1);
	wr.flags = SLMPM_BARRIER;
	post(wr);
	post(receive(2, &place, 2));
	settle();
	CHECK(look(wq).begun == 1, "a receive has passed a barrier");
	EXPECT(slmpm_recv(b, 1, whole.base, whole.len, NULL, PATIENCE), whole.len);
	expect(1, 0, 0);
	CHECK(look(wq).begun == 2, "%llu have begun", (unsigned long long)look(wq).begun);
	free(whole.base);
	end();
}

/* A deadline that passes in a channel that has stopped keeps nobody awake. */
static void late(void)
{
	struct slmpm_iov place = {here, 8}, whole;
	struct slmpm_wr wr;
	int news = 1;

	begin(0, 0);
	whole = long_one();
	post(receive(2, &place, 1));
	post(message(1, &whole, 2));
	wr = known(wait_for(counter(), 0, 1, 0), 3);
	wr.timeout_ms = 10;
	post(wr);
	OK(slmpm_wq_cancel(wq, 1));
	expect(1, -SLMPM_ECANCELED, 0);
	usleep(20000);
	for (int i = 0; i < 100 && news; i++) {
		usleep(1000);
		news = slmpm_arm(ctx);
	}
	CHECK(!news, "news without end");
	EXPECT(slmpm_recv(b, 1, whole.base, whole.len, NULL, PATIENCE), whole.len);
	expect(2, 0, 0);
	expect(3, -SLMPM_ECANCELED, 1);
	free(whole.base);
	end();
}

/* ---- what no entry has --------------------------------------------------------------------- */

static void unused(void)
{
	struct slmpm_iov place = {here, 8};
	struct slmpm_wr wr;

	begin(0, 0);
	wr = known(wait_for(counter(), 0, 1, 0), 1);
	wr.iov_count = 1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".iov_count of a WAIT is 1");
	wr.iov_count = 0;
	wr.head_len = 8;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".head_len of");
	wr.head_len = 0;
	post(wr);
	wr = message(1, &place, 2); /* behind it, so that it is kept */
	wr.head_len = 8;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".head_len of");
	end();
}

static int everything(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	receive_to_blame();
	send_to_blame();
	turn_to_blame();
	never();
	barrier();
	late();
	unused();
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp"};

	for (int i = 0; i < 2; i++) {
		int rc = child_run(everything, fabrics[i], 40);

		CHECK(rc == 0, "SLMPM_FABRIC=%s: %d", fabrics[i], rc);
	}
	return 0;
}
