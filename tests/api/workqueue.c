/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Work queues: what begins when, ends in order, waits, is silent, fails and is refused; by each way
 * that one-sided operations can go. Both ends lie in one context: A posts, B has the region.
 */
#include <pthread.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define WORDS 1024
#define MANY  200

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_cq cq;
static slmpm_wq wq;
static slmpm_mem mem;
static slmpm_rmem far;
static uint64_t *there; /* B's region */
static uint64_t here[WORDS];

/* ---- tools ---------------------------------------------------------------------------------- */

static void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

static void create(uint32_t depth, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = depth, .flags = flags};

	o.cq = cq;
	OK(slmpm_wq_create(a, &o, &wq));
}

static void begin_in(uint32_t context_flags, uint32_t depth, uint32_t flags)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = context_flags};
	struct slmpm_key key;
	void *base;

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, WORDS * 8, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &far));
	settle();
	OK(slmpm_cq_create(ctx, &cq));
	create(depth, flags);
}

static void begin(uint32_t depth, uint32_t flags)
{
	begin_in(0, depth, flags);
}

static void end(void)
{
	OK(slmpm_shut(ctx, PATIENCE));
	REFUSED(slmpm_wq_destroy(wq), SLMPM_EHANDLE, "no such work queue");
}

static void post(struct slmpm_wr wr)
{
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static struct slmpm_wr message(uint32_t stream, const struct slmpm_iov *iov, uint64_t cookie)
{
	return (struct slmpm_wr){.op = SLMPM_OP_SEND,
				 .stream = stream,
				 .iov = iov,
				 .iov_count = 1,
				 .cookie = cookie,
				 .imm = (uint32_t)cookie + 1};
}

static struct slmpm_wr one_sided(uint32_t op, uint64_t word, const struct slmpm_iov *iov,
				 uint64_t cookie)
{
	return (struct slmpm_wr){.op = op,
				 .rmem = far,
				 .offset = word * 8,
				 .iov = iov,
				 .iov_count = 1,
				 .cookie = cookie};
}

static struct slmpm_wr add(uint64_t word, uint64_t n, uint64_t *old, uint64_t cookie)
{
	return (struct slmpm_wr){.op = SLMPM_OP_ATOMIC,
				 .atomic = SLMPM_FETCH_ADD,
				 .bits = 64,
				 .rmem = far,
				 .offset = word * 8,
				 .operand = n,
				 .old = old,
				 .cookie = cookie};
}

static struct slmpm_wr receive(uint32_t stream, const struct slmpm_iov *iov, uint64_t cookie)
{
	struct slmpm_wr wr = message(stream, iov, cookie);

	wr.op = SLMPM_OP_RECV;
	wr.imm = 0;
	return wr;
}

static struct slmpm_done next(uint64_t cookie, uint32_t op, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.op == op && done.status == status &&
		      done.peer.id == a.id,
	      "cookie %llu, op %u, status %d instead of %llu, %u, %d",
	      (unsigned long long)done.cookie, done.op, done.status, (unsigned long long)cookie, op,
	      status);
	return done;
}

static void empty(void)
{
	struct slmpm_done done;

	settle();
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

/* ---- order ---------------------------------------------------------------------------------- */

/* The message behind a put finds it there; the put behind a message does not come before it. */
static void put_and_tell(void)
{
	begin(0, 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		struct slmpm_iov value = {&here[i], 8}, word = {&here[i], 8};

		here[i] = i;
		post(one_sided(SLMPM_OP_PUT, 0, &value, 2 * i));
		post(message(1, &word, 2 * i + 1));
		if (i % 3 == 0)
			settle();
		if (i % 20)
			continue;
		for (uint64_t k = i - 19; k <= i; k++) {
			uint64_t told;

			EXPECT(slmpm_recv(b, 1, &told, 8, NULL, PATIENCE), 8);
			CHECK(told == k && there[0] >= k, "told %llu, there %llu",
			      (unsigned long long)told, (unsigned long long)there[0]);
		}
	}
	for (uint64_t i = 1; i <= MANY; i++) {
		next(2 * i, SLMPM_OP_PUT, 0);
		CHECK(next(2 * i + 1, SLMPM_OP_SEND, 0).len == 8, "length");
	}
	empty();
	OK(slmpm_wq_destroy(wq));
	end();
}

static unsigned handled;

static void count(const struct slmpm_am *am, void *arg)
{
	unsigned number;

	(void)arg;
	CHECK(am->head_len == sizeof(number) && am->data_len == 8, "%zu and %zu bytes",
	      am->head_len, am->data_len);
	memcpy(&number, am->head, sizeof(number));
	CHECK(number == handled && !memcmp(am->data, "message", 8), "number %u behind %u", number,
	      handled);
	handled++;
}

/* Everything at once: the ends come as posted, each operation sees those before it. */
static void mixed(void)
{
	static uint64_t got[MANY], old[MANY];
	struct slmpm_iov text = {"message", 8};

	begin(MANY, 0);
	OK(slmpm_am_handler(ctx, 7, count, NULL));
	handled = 0;
	for (unsigned i = 0; i < MANY; i++) {
		struct slmpm_iov value = {&here[i], 8}, result = {&got[i], 8};
		unsigned head = i / 5;
		struct slmpm_wr am = {.op = SLMPM_OP_AM, .stream = 7, .cookie = i};

		here[i] = 1000 + i;
		am.head = &head;
		am.head_len = sizeof(head);
		am.iov = &text;
		am.iov_count = 1;
		switch (i % 5) {
		case 0: post(one_sided(SLMPM_OP_PUT, 3, &value, i)); break;
		case 1: post(one_sided(SLMPM_OP_GET, 3, &result, i)); break;
		case 2: post(add(4, 1, &old[i], i)); break;
		case 3: post(message(5, &text, i)); break;
		default: post(am); break;
		}
	}
	for (unsigned i = 0; i < MANY; i++) {
		static const uint32_t ops[] = {SLMPM_OP_PUT, SLMPM_OP_GET, SLMPM_OP_ATOMIC,
					       SLMPM_OP_SEND, SLMPM_OP_AM};

		next(i, ops[i % 5], 0);
		CHECK(i % 5 != 1 || got[i] == here[i - 1], "get %u: %llu", i,
		      (unsigned long long)got[i]);
		CHECK(i % 5 != 2 || old[i] == i / 5, "atomic %u: %llu", i,
		      (unsigned long long)old[i]);
	}
	for (unsigned i = 0; i < MANY / 5; i++)
		EXPECT(slmpm_recv(b, 5, here, 8, NULL, PATIENCE), 8);
	settle();
	CHECK(handled == MANY / 5, "%u handled", handled);
	empty();
	end();
}

/* A long message waits for its receive, and the put behind it for the message; what waits was
 * copied. Blocking calls to the peer go on meanwhile. */
static void behind_a_long_one(void)
{
	size_t n;
	unsigned char *out, *in;
	struct slmpm_iov whole, value = {here, 8}, pieces[2] = {{"mess", 4}, {"age", 4}};
	struct slmpm_wr am = {.op = SLMPM_OP_AM, .stream = 7, .cookie = 4};
	unsigned head = 0;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = malloc(n);
	in = malloc(n);
	CHECK(out && in, "out of memory");
	actor_fill(out, 9, n);
	OK(slmpm_am_handler(ctx, 7, count, NULL));
	handled = 0;
	there[0] = 1;
	here[0] = 2;
	whole = (struct slmpm_iov){out, n};
	am.head = &head;
	am.head_len = sizeof(head);
	am.iov = pieces;
	am.iov_count = 2;
	post(message(1, &whole, 1));
	post(message(2, &value, 2));
	post(one_sided(SLMPM_OP_PUT, 0, &value, 3));
	post(am);
	memset(pieces, 0, sizeof(pieces));
	head = 77;
	settle();
	EXPECT(slmpm_recv(b, 2, here + 1, 8, NULL, PATIENCE), 8);
	CHECK(there[0] == 1 && !handled, "the put did not wait");
	OK(slmpm_send(a, 3, "beside", 7, PATIENCE));
	EXPECT(slmpm_recv(b, 3, here + 2, 8, NULL, PATIENCE), 7);
	REFUSED(slmpm_wq_destroy(wq), SLMPM_EBUSY, "4 work requests");
	REFUSED(slmpm_cq_destroy(cq), SLMPM_EBUSY, "work queue");
	EXPECT(slmpm_recv(b, 1, in, n, NULL, PATIENCE), (int64_t)n);
	CHECK(actor_filled(in, 9, n), "other bytes");
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_SEND, 0);
	next(3, SLMPM_OP_PUT, 0);
	CHECK(there[0] == 2, "there %llu", (unsigned long long)there[0]);
	next(4, SLMPM_OP_AM, 0);
	settle();
	CHECK(handled == 1, "%u handled", handled);
	free(out);
	free(in);
	end();
}

/* With a fence even what is of one kind waits. */
static void fenced(void)
{
	struct slmpm_iov value = {here, 8}, whole;
	struct slmpm_wr wr;
	unsigned char *out;
	size_t n;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = calloc(1, n);
	CHECK(out, "out of memory");
	whole = (struct slmpm_iov){out, n};
	post(message(1, &whole, 1));
	wr = message(2, &value, 2);
	wr.flags = SLMPM_FENCE;
	post(wr);
	settle();
	message_none(b, 2);
	EXPECT(slmpm_recv(b, 1, out, n, NULL, PATIENCE), (int64_t)n);
	EXPECT(slmpm_recv(b, 2, here, 8, NULL, PATIENCE), 8);
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_SEND, 0);
	free(out);
	end();
}

/* A put is not to overtake a message that is staged for the next. */
static void behind_a_burst(void)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_stats s;
	struct slmpm_wr wr;
	uint64_t told;

	begin(0, 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		here[0] = i;
		wr = message(1, &value, 2 * i);
		wr.flags = SLMPM_MORE;
		post(wr);
		post(one_sided(SLMPM_OP_PUT, 0, &value, 2 * i + 1));
		next(2 * i, SLMPM_OP_SEND, 0);
		next(2 * i + 1, SLMPM_OP_PUT, 0);
		OK(slmpm_peer_stats(a, &s, sizeof(s)));
		CHECK(s.sent_messages >= i, "%llu messages have left",
		      (unsigned long long)s.sent_messages);
		EXPECT(slmpm_recv(b, 1, &told, 8, NULL, 0), 8);
		CHECK(told == i && there[0] == i, "told %llu", (unsigned long long)told);
	}
	end();
}

/* From inside a handler, while others begin and end. */
static void post_again(const struct slmpm_am *am, void *arg)
{
	static const struct slmpm_iov text = {"handled", 8};
	unsigned *posted = arg;

	(void)am;
	post(message(6, &text, 1000 + (*posted)++));
}

static void from_a_handler(void)
{
	struct slmpm_iov value = {here, 8};
	unsigned posted = 0;
	uint64_t again = 0, at = 0;

	begin(0, 0);
	OK(slmpm_am_handler(ctx, 7, post_again, &posted));
	for (uint64_t i = 0; i < 50; i++) {
		OK(slmpm_am(b, 7, NULL, 0, NULL, 0, NULL, NULL));
		post(one_sided(i % 2 ? SLMPM_OP_PUT : SLMPM_OP_GET, i, &value, i));
	}
	while (again + at < 100) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && done.cookie == (done.cookie < 1000 ? at : 1000 + again),
		      "status %d, cookie %llu", done.status, (unsigned long long)done.cookie);
		at += done.cookie < 1000;
		again += done.cookie >= 1000;
	}
	CHECK(at == 50 && again == 50, "%llu and %llu", (unsigned long long)at,
	      (unsigned long long)again);
	for (int i = 0; i < 50; i++)
		EXPECT(slmpm_recv(b, 6, here, 8, NULL, PATIENCE), 8);
	end();
}

/* ---- threads -------------------------------------------------------------------------------- */

#define EACH 300

static void *post_many(void *arg)
{
	uint64_t first = *(uint64_t *)arg;
	struct slmpm_iov value = {&here[first ? 1 : 0], 8};

	for (uint64_t i = 0; i < EACH; i++) {
		struct slmpm_wr wr =
			i % 3 ? one_sided(SLMPM_OP_PUT, first ? 1 : 0, &value, first + i) :
				add(2, 1, NULL, first + i);
		int rc;

		while ((rc = slmpm_post(wq, &wr, 1)) == -SLMPM_EAGAIN)
			sched_yield();
		EXPECT(rc, 1);
	}
	return NULL;
}

/* Two post, one polls: the order of each is kept. */
static void threads(void)
{
	uint64_t first[2] = {0, EACH}, at[2] = {0, EACH};
	pthread_t posters[2];

	begin_in(SLMPM_THREADS, 16, 0);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&posters[i], NULL, post_many, &first[i]), "a thread");
	for (int i = 0; i < 2 * EACH; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && done.cookie == at[done.cookie >= EACH],
		      "status %d, cookie %llu", done.status, (unsigned long long)done.cookie);
		at[done.cookie >= EACH]++;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(posters[i], NULL);
	OK(slmpm_flush(a, PATIENCE));
	CHECK(there[2] == 2 * EACH / 3, "%llu added", (unsigned long long)there[2]);
	end();
}

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
	REFUSED(slmpm_post(wq, wr + 6, 2), SLMPM_EAGAIN, "6 work requests");
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
	unsigned char *out;
	size_t n;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = calloc(1, n);
	CHECK(out, "out of memory");
	whole = (struct slmpm_iov){out, n};
	post(message(1, &whole, 1));
	wr = one_sided(SLMPM_OP_PUT, WORDS, &value, 2); /* outside */
	wr.flags = SLMPM_SILENT;
	post(wr);
	post(one_sided(SLMPM_OP_PUT, WORDS - 1, &value, 3));
	EXPECT(slmpm_recv(b, 1, out, n, NULL, PATIENCE), (int64_t)n);
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_PUT, -SLMPM_EINVAL);
	next(3, SLMPM_OP_PUT, 0);
	/* With nothing in front of it the call says so. */
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "");
	free(out);
	end();
}

/* Both that have begun and that wait, in order. */
static void closing(void)
{
	struct slmpm_iov value = {here, 8}, whole;
	unsigned char *out;
	size_t n;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = calloc(1, n);
	CHECK(out, "out of memory");
	whole = (struct slmpm_iov){out, n};
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
		CHECK(done.status == -SLMPM_ECLOSED, "status %d", done.status);
		if (done.op == SLMPM_OP_RECV)
			continue;
		CHECK(done.cookie == ++begun, "cookie %llu", (unsigned long long)done.cookie);
	}
	REFUSED(slmpm_post(wq, &(struct slmpm_wr){.op = SLMPM_OP_SEND}, 1), SLMPM_ECLOSED, "peer");
	OK(slmpm_wq_destroy(wq));
	free(out);
	end();
}

static void shutting(void)
{
	struct slmpm_iov value = {here, 8}, whole;
	unsigned char *out;
	size_t n;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = calloc(1, n);
	CHECK(out, "out of memory");
	whole = (struct slmpm_iov){out, n};
	post(message(1, &whole, 1));
	post(one_sided(SLMPM_OP_PUT, 1, &value, 2));
	post(receive(2, &value, 3));
	settle();
	(void)slmpm_shut(ctx, 10);
	free(out);
}

static void refusals(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_iov one = {here, 8}, null = {NULL, 8};
	struct slmpm_wr wr = message(1, &one, 1);
	slmpm_wq no, zero = {0};

	begin(0, 0);
	o.cq = cq;
	REFUSED(slmpm_wq_create(a, NULL, &no), SLMPM_EINVAL, "size");
	REFUSED(slmpm_wq_create(a, &o, NULL), SLMPM_EINVAL, "no place");
	o.size--;
	REFUSED(slmpm_wq_create(a, &o, &no), SLMPM_EINVAL, "size");
	o.size++;
	o.flags = 2;
	REFUSED(slmpm_wq_create(a, &o, &no), SLMPM_EINVAL, "flags 0x2");
	o.flags = 0;
	o.depth = 65537;
	REFUSED(slmpm_wq_create(a, &o, &no), SLMPM_ELIMIT, "65537");
	o.depth = 0;
	o.cq.id = 0;
	REFUSED(slmpm_wq_create(a, &o, &no), SLMPM_EINVAL, "no completion queue");
	o.cq.id = UINT64_C(7) << 32;
	REFUSED(slmpm_wq_create(a, &o, &no), SLMPM_EHANDLE, "completion queue");
	REFUSED(slmpm_post(zero, &wr, 1), SLMPM_EHANDLE, "zero work queue");
	REFUSED(slmpm_post(wq, NULL, 1), SLMPM_EINVAL, "1 work requests");
	REFUSED(slmpm_post(wq, &wr, 0), SLMPM_EINVAL, "0 work requests");
	REFUSED(slmpm_post(wq, &wr, -1), SLMPM_EINVAL, "-1 work requests");
	wr.op = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "operation 0");
	wr.op = SLMPM_OP_NOTIFY;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "operation 7");
	wr.op = SLMPM_OP_SEND;
	wr.flags = SLMPM_REMOTE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "flags 0x10");
	wr.flags = 0;
	wr.stream = SLMPM_ANY_STREAM;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "stream");
	wr.stream = 0;
	wr.iov_count = -1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "-1 pieces");
	wr.iov_count = 1;
	wr.iov = &null;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "piece 0 is NULL");
	wr.iov = NULL;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "1 pieces");
	wr = one_sided(SLMPM_OP_PUT, 0, &one, 0);
	wr.rmem.id = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EHANDLE, "zero");
	wr = (struct slmpm_wr){.op = SLMPM_OP_AM, .stream = SLMPM_AM_ID_MAX + 1};
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "handler 65280");
	wr.stream = 1;
	wr.head_len = SLMPM_AM_HEAD_MAX + 1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "257 bytes");
	wr = add(0, 1, NULL, 0);
	wr.bits = 16;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "16");
	create(0, 0); /* a region of another peer */
	o.cq = cq;
	OK(slmpm_wq_create(b, &o, &no));
	wr = one_sided(SLMPM_OP_PUT, 0, &one, 0);
	REFUSED(slmpm_post(no, &wr, 1), SLMPM_EINVAL, "another peer");
	empty();
	end();
}

static int in_child(void *arg)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_SEND};

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

static void *connect_from(void *arg)
{
	(void)arg;
	OK(slmpm_connect(&a, ctx, "shm:workqueue-apart", PATIENCE));
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
	OK(slmpm_listen(&listener, owner, "shm:workqueue-apart"));
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

static int everything(void *arg)
{
	const char *way = arg;

	setenv("SLMPM_RMA", way, 1);
	put_and_tell();
	mixed();
	behind_a_long_one();
	fenced();
	behind_a_burst();
	from_a_handler();
	threads();
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

int main(int argc, char **argv)
{
	static const struct actor none[] = {{NULL, NULL}};
	static char *const ways[] = {"auto", "ring", "am", "tag"};

	actor_begin(argc, argv, none);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int rc = child_run(everything, ways[i], 25);

		CHECK(rc == 0, "SLMPM_RMA=%s: %d", ways[i], rc);
	}
	return 0;
}
