/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: who waits for entries that cannot come learns of it, whichever way they ended;
 * totals that are never reached; what stands behind a barrier, or beside an entry that has failed.
 */
#include "tests/api/workqueue.h"

static struct slmpm_wr entry(uint32_t op, uint32_t channel, uint64_t value, uint64_t cookie)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = op,
				 .channel = channel,
				 .value = value,
				 .cookie = cookie};
}

static struct slmpm_wr with(struct slmpm_wr wr, slmpm_ctr ctr)
{
	wr.ctr = ctr;
	return wr;
}

static slmpm_ctr counter(void)
{
	slmpm_ctr ctr;

	OK(slmpm_ctr_create(ctx, &ctr));
	return ctr;
}

static slmpm_wq another(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .cq = cq};
	slmpm_wq made;

	OK(slmpm_wq_create(ctx, &o, &made));
	return made;
}

static struct slmpm_wq_info look(void)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(wq, &info));
	return info;
}

static void expect(uint64_t cookie, int status, uint64_t len)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, 2000), 1);
	CHECK(done.cookie == cookie && done.status == status && (!status || done.len == len),
	      "cookie %llu, status %d, %llu instead of %llu, %d, %llu",
	      (unsigned long long)done.cookie, done.status, (unsigned long long)done.len,
	      (unsigned long long)cookie, status, (unsigned long long)len);
}

/* In a second queue, for a total of the first. */
static slmpm_wq watch(uint32_t index, uint64_t value, uint64_t cookie)
{
	struct slmpm_wr wr = entry(SLMPM_OP_WAIT, 0, value, cookie);
	slmpm_wq second = another();

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

/* One that fails in its turn has never begun. */
static void turn_to_blame(void)
{
	slmpm_ctr go;

	begin(0, 0);
	go = counter();
	post(with(entry(SLMPM_OP_WAIT, 0, 1, 1), go));
	post(with(entry(SLMPM_OP_COUNT, 0, 7, 2), go));
	(void)watch(SLMPM_WQ_BEGUN, 3, 5);
	OK(slmpm_wq_cancel(wq, 2));
	post(with(entry(SLMPM_OP_COUNT, 1, 1, 3), go));
	expect(3, 0, 0);
	expect(1, 0, 0);
	expect(2, -SLMPM_ECANCELED, 0);
	expect(5, -SLMPM_ECANCELED, 2);
	CHECK(look().begun == 2, "%llu have begun", (unsigned long long)look().begun);
	end();
}

/* ---- never --------------------------------------------------------------------------------- */

static void never(void)
{
	slmpm_ctr ctr;
	struct slmpm_wr wr;

	begin(0, 0);
	ctr = counter();
	post(with(entry(SLMPM_OP_WAIT, 0, UINT64_MAX, 1), ctr));
	wr = with(entry(SLMPM_OP_WAIT, 1, UINT64_MAX, 2), ctr);
	wr.flags = SLMPM_RELATIVE;
	post(wr);
	wr.channel = 2; /* as much again */
	post(wr);
	wr = entry(SLMPM_OP_WAIT, 3, UINT64_MAX, 3);
	wr.cq = cq;
	post(wr);
	wr = entry(SLMPM_OP_WAIT, 4, UINT64_MAX, 4);
	wr.wq = wq;
	wr.index = SLMPM_WQ_DONE;
	post(wr);
	empty();
	CHECK(look().waiting == 5, "%u wait", look().waiting);
	post(with(entry(SLMPM_OP_COUNT, 5, UINT64_C(1) << 63, 5), ctr));
	expect(5, 0, 0);
	post(with(entry(SLMPM_OP_WAIT, 5, 3, 6), ctr)); /* it is far beyond */
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
	CHECK(look().begun == 1, "a receive has passed a barrier");
	EXPECT(slmpm_recv(b, 1, whole.base, whole.len, NULL, PATIENCE), whole.len);
	expect(1, 0, 0);
	CHECK(look().begun == 2, "%llu have begun", (unsigned long long)look().begun);
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
	wr = with(entry(SLMPM_OP_WAIT, 0, 1, 3), counter());
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
	wr = with(entry(SLMPM_OP_WAIT, 0, 1, 1), counter());
	wr.iov_count = 1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "pieces");
	wr.iov_count = 0;
	wr.head_len = 8;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "head");
	wr.head_len = 0;
	post(wr);
	wr = message(1, &place, 2); /* behind it, so that it is kept */
	wr.head_len = 8;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "head");
	end();
}

static int everything(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	receive_to_blame();
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
