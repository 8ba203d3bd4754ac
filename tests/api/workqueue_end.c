/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Work queues: receives, depth and silence; what fails, ends with a peer or a context, is refused;
 * acknowledged or not. By each way that one-sided operations can go.
 */
#include <pthread.h>

#include "tests/api/workqueue.h"

/* ---- receives, depth, silence --------------------------------------------------------------- */

static void receives(void)
{
	struct slmpm_iov iov[8];
	struct slmpm_wr wr[8];

	begin(6, 0);
	for (int i = 0; i < 8; i++) {
		iov[i] = (struct slmpm_iov){&here[i], 8};
		wr[i] = receive((uint32_t)i, &iov[i], (uint64_t)i);
	}
	EXPECT(slmpm_post(wq, wr, 8), 6);
	REFUSED(slmpm_post(wq, wr + 6, 2), SLMPM_EAGAIN, "as its depth, 6");
	for (uint64_t i = 6; i-- > 0;) { /* each by its stream, and told as they come */
		OK(slmpm_send(b, (uint32_t)i, &i, 8, PATIENCE));
		CHECK(next(i, SLMPM_OP_RECV, 0).len == 8 && here[i] == i, "receive %llu",
		      (unsigned long long)i);
	}
	EXPECT(slmpm_post(wq, wr + 6, 2), 2);
	/* They hold nothing up. */
	post(message(1, &iov[0], 20));
	next(20, SLMPM_OP_SEND, 0);
	OK(slmpm_send(b, 7, "too long for it", 16, PATIENCE));
	CHECK(next(7, SLMPM_OP_RECV, -SLMPM_ETRUNC).len == 16, "length");
	end();
}

static void silent(void)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_wr wr;

	begin(0, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		wr = i % 2 ? one_sided(SLMPM_OP_PUT, i % WORDS, &value, i) : message(1, &value, i);
		if (i % 100 != 99)
			wr.flags |= SLMPM_SILENT;
		while (slmpm_post(wq, &wr, 1) == -SLMPM_EAGAIN)
			settle();
		while (slmpm_recv(b, 1, here, 8, NULL, 0) == 8)
			;
	}
	for (uint64_t i = 99; i < 1000; i += 100)
		next(i, SLMPM_OP_PUT, 0);
	empty();
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_cq_destroy(cq));
	end();
}

/* ---- errors --------------------------------------------------------------------------------- */

/* One that cannot begin when it is its turn is told, silent or not, and those behind it go on. */
static void failing(void)
{
	struct slmpm_iov value = {here, 8}, whole;
	struct slmpm_wr wr;

	begin(0, 0);
	whole = long_one();
	post(message(1, &whole, 1));
	wr = one_sided(SLMPM_OP_PUT, WORDS, &value, 2); /* outside */
	wr.flags = SLMPM_SILENT;
	post(wr);
	post(one_sided(SLMPM_OP_PUT, WORDS - 1, &value, 3));
	EXPECT(slmpm_recv(b, 1, whole.base, whole.len, NULL, PATIENCE), whole.len);
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_PUT, -SLMPM_EINVAL);
	CHECK(next(3, SLMPM_OP_PUT, -SLMPM_ECANCELED).len == 2, "to blame");
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "stopped at entry 2");
	OK(slmpm_wq_reset(wq));
	/* With nothing in front of it the call says so. */
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "");
	free(whole.base);
	end();
}

/* Both that have begun and that wait, in order. */
static void closing(void)
{
	struct slmpm_iov value = {here, 8}, whole;
	struct slmpm_wr wr;

	begin(0, 0);
	whole = long_one();
	post(receive(9, &value, 0));
	post(message(1, &whole, 1));
	for (uint64_t i = 2; i < 50; i++)
		post(one_sided(SLMPM_OP_PUT, i, &value, i));
	settle();
	OK(slmpm_close(b, PATIENCE));
	settle();
	for (uint64_t i = 0, begun = 0; i < 50; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == (done.cookie < 2 ? -SLMPM_ECLOSED : -SLMPM_ECANCELED),
		      "status %d", done.status);
		if (done.op == SLMPM_OP_RECV)
			continue;
		CHECK(done.cookie == ++begun, "cookie %llu", (unsigned long long)done.cookie);
	}
	wr = message(1, &value, 0);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_ECLOSED, "peer");
	OK(slmpm_wq_destroy(wq));
	free(whole.base);
	end();
}

static void shutting(void)
{
	struct slmpm_iov value = {here, 8}, whole;

	begin(0, 0);
	whole = long_one();
	post(message(1, &whole, 1));
	post(one_sided(SLMPM_OP_PUT, 1, &value, 2));
	post(receive(2, &value, 3));
	settle();
	(void)slmpm_shut(ctx, 10);
	free(whole.base);
}

static void refusals(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_iov one = {here, 8}, null = {NULL, 8};
	struct slmpm_wr wr;
	slmpm_wq no, zero = {0};

	begin(0, 0);
	wr = message(1, &one, 1);
	o.cq = cq;
	REFUSED(slmpm_wq_create(ctx, NULL, &no), SLMPM_EINVAL, "size");
	REFUSED(slmpm_wq_create(ctx, &o, NULL), SLMPM_EINVAL, "no place");
	o.size--;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "size");
	o.size++;
	o.flags = 32;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "there is no 0x20");
	o.flags = 0;
	o.depth = 65537;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_ELIMIT, "65537");
	o.depth = 0;
	o.cq.id = 0;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "no completion queue");
	o.cq.id = UINT64_C(7) << 32;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EHANDLE, "completion queue");
	REFUSED(slmpm_post(zero, &wr, 1), SLMPM_EHANDLE, "zero work queue");
	REFUSED(slmpm_post(wq, NULL, 1), SLMPM_EINVAL, "the work requests are NULL");
	REFUSED(slmpm_post(wq, &wr, 0), SLMPM_EINVAL, "0 work requests");
	REFUSED(slmpm_post(wq, &wr, -1), SLMPM_EINVAL, "-1 work requests");
	wr.op = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "operation 0 is none of a work queue's");
	wr.op = SLMPM_OP_NOTIFY;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "operation 7 (NOTIFY) is none");
	wr.op = SLMPM_OP_SEND;
	wr.flags = SLMPM_REMOTE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		"flags 0x10: a SEND has no REMOTE, only MORE, FENCE, "
		"BARRIER, SILENT, VIA, ON_LINK and STRICT");
	wr.flags = 0;
	wr.stream = SLMPM_ANY_STREAM;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "stream");
	wr.stream = 0;
	wr.iov_count = -1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".iov_count is -1");
	wr.iov_count = 1;
	wr.iov = &null;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "piece 0 is NULL, and of 8 bytes");
	wr.iov = NULL;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".iov is NULL, .iov_count 1");
	wr = one_sided(SLMPM_OP_PUT, 0, &one, 0);
	wr.rmem.id = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EHANDLE, "zero");
	wr = (struct slmpm_wr){
		.size = sizeof(wr), .op = SLMPM_OP_AM, .peer = a, .stream = SLMPM_AM_ID_MAX + 1};
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "handler 65280, at most 65279");
	wr.stream = 1;
	wr.head_len = SLMPM_AM_HEAD_MAX + 1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "257 bytes, at most 256");
	wr = add(0, 1, NULL, 0);
	wr.bits = 16;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "16");
	wr = one_sided(SLMPM_OP_PUT, 0, &one, 0);
	wr.peer = b;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".rmem is a region of");
	empty();
	end();
}

static int in_child(void *arg)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_SEND};

	(void)arg;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EFORKED, "parent");
	REFUSED(slmpm_wq_destroy(wq), SLMPM_EFORKED, "parent");
	return 0;
}

static void forking(void)
{
	begin(0, 0);
	EXPECT(child_run(in_child, NULL, 20), 0);
	end();
}

/* ---- acknowledged or not -------------------------------------------------------------------- */

static char url[64];

static void *connect_from(void *arg)
{
	(void)arg;
	OK(slmpm_connect(&a, ctx, url, PATIENCE));
	return NULL;
}

/* B in a context of its own: what it does A learns by its own calls only. */
static slmpm_ctx apart(uint32_t flags)
{
	slmpm_listener listener;
	struct slmpm_key key;
	pthread_t thread;
	slmpm_ctx owner;
	void *base;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_open(&owner, NULL));
	snprintf(url, sizeof(url), "shm:workqueue-%d", (int)getpid());
	OK(slmpm_listen(&listener, owner, url));
	CHECK(!pthread_create(&thread, NULL, connect_from, NULL), "a thread");
	OK(slmpm_accept(listener, &b, PATIENCE));
	pthread_join(thread, NULL);
	OK(slmpm_mem_alloc(owner, WORDS * 8, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(b, 0, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(a, 0, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(a, &key, &far));
	while (slmpm_progress(owner) > 0)
		;
	OK(slmpm_cq_create(ctx, &cq));
	create(0, flags);
	return owner;
}

/* What only the target can refuse: told where puts are answered, else counted there. */
static void refused_there(uint32_t flags)
{
	struct slmpm_iov value = {here, 8};
	slmpm_ctx owner = apart(flags);
	struct slmpm_stats s;
	struct slmpm_done done;

	there[0] = 6;
	here[0] = 7;
	OK(slmpm_mem_revoke(mem, b, 0)); /* without a mapping there is nothing to wait for */
	post(one_sided(SLMPM_OP_PUT, 0, &value, 2));
	for (int n = 0; n == 0; n = slmpm_cq_poll(cq, &done, 1))
		(void)slmpm_progress(owner);
	CHECK(done.status == (flags ? 0 : -SLMPM_EACCES), "flags %u: %d", flags, done.status);
	while (slmpm_progress(owner) > 0 || slmpm_progress(ctx) > 0)
		;
	OK(slmpm_peer_stats(b, &s, sizeof(s)));
	CHECK(s.refused == 1 && there[0] == 6, "refused %llu, there %llu",
	      (unsigned long long)s.refused, (unsigned long long)there[0]);
	OK(slmpm_shut(owner, PATIENCE));
	end();
}

static int everything(void *way)
{
	setenv("SLMPM_RMA", way, 1);
	receives();
	silent();
	failing();
	closing();
	shutting();
	refusals();
	forking();
	if (!strcmp(way, "ring")) {
		refused_there(0);
		refused_there(SLMPM_WQ_UNACKNOWLEDGED);
	}
	return 0;
}

int main(void)
{
	by_each_way(everything);
	return 0;
}
