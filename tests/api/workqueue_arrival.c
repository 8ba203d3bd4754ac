/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * Arguments of CALC entries that are messages: of whatever length, however they come, before the
 * entry and after it; of a wrong length, of a peer that leaves, of an entry that is cancelled.
 */
#include <string.h>

#include "tests/api/workqueue_calc.h"
#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define MOST  200000 /* elements */
#define BYTES (MOST * sizeof(uint64_t))

static slmpm_ctx ctx;
static slmpm_peer a, b, c, d; /* a to b, c to d */
static slmpm_mem mem;
static slmpm_rmem far; /* at a, who sends: by b */
static uint64_t *there, own[MOST], out[2][MOST], z[MOST];
static struct slmpm_operand args[4], targets[2];

/* ---- allocations are counted ----------------------------------------------------------------- */

static long allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t n)
{
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, size);
}

#endif

/* ---- what all of them have ------------------------------------------------------------------- */

static void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

static void begin(uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags};
	struct slmpm_key key;
	void *base;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	actor_pair(ctx, &c, &d);
	OK(slmpm_cq_create(ctx, &cq));
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	OK(slmpm_mem_alloc(ctx, BYTES, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, a, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(b, &key, &far));
	for (uint64_t i = 0; i < MOST; i++) {
		own[i] = i << 32;
		out[0][i] = i + 1;
		out[1][i] = i * i;
	}
	memset(z, 0, sizeof(z));
}

static void end(void)
{
	OK(slmpm_shut(ctx, PATIENCE));
}

static void describe(uint64_t n)
{
	memset(args, 0, sizeof(args));
	memset(targets, 0, sizeof(targets));
	calc = (struct slmpm_calc){.size = sizeof(calc),
				   .op = SLMPM_CALC_SUM,
				   .type = SLMPM_UINT64,
				   .count = {n},
				   .args = args,
				   .targets = targets,
				   .target_count = 1};
	targets[0].at = z;
}

static void of_own(void)
{
	args[calc.arg_count++].at = own;
}

static struct slmpm_operand *of_message(slmpm_peer from, uint32_t stream)
{
	struct slmpm_operand *o = &args[calc.arg_count++];

	o->peer = from;
	o->stream = stream;
	return o;
}

static void to_sender(void)
{
	targets[calc.target_count++].rmem = far;
}

static void not_ended(void)
{
	struct slmpm_done done;

	settle();
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

static slmpm_req sent;

static void start(slmpm_peer to, uint32_t stream, const void *words, size_t bytes)
{
	const struct slmpm_iov piece = {(void *)(uintptr_t)words, bytes};

	OK(slmpm_sendv(to, stream, &piece, 1, NULL, &sent));
}

static void finish(void)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&sent, 1, &done, PATIENCE), 0);
	EXPECT(done.status, 0);
}

static void sums(const uint64_t *at, uint64_t n, uint64_t own_ones, uint64_t firsts,
		 uint64_t seconds)
{
	for (uint64_t i = 0; i < n; i++)
		CHECK(at[i] == own_ones * own[i] + firsts * out[0][i] + seconds * out[1][i],
		      "element %llu of %llu", (unsigned long long)i, (unsigned long long)n);
}

/* ---- however they come ----------------------------------------------------------------------- */

/* It is there already, or is waited for. */
static void once(uint64_t n, bool late)
{
	describe(n);
	of_own();
	(void)of_message(b, 1);
	to_sender();
	memset(there, 0, BYTES);
	if (!late) {
		post(n);
		not_ended();
	}
	start(a, 1, out[0], n * 8);
	if (late) {
		settle();
		post(n);
	}
	memset(args, 0, sizeof(args)); /* they were copied */
	(void)ended(n, 0);
	finish();
	sums(z, n, 1, 1, 0);
	sums(there, n, 1, 1, 0);
}

static void of_each_length(void)
{
	uint64_t eager = message_eager(a) / 8, packet = message_packet(a) / 8;
	const uint64_t lengths[] = {1, 100, packet, packet + 1, 20000, eager, eager + 1, MOST};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int late = 0; late < 2; late++)
			if (lengths[i] <= MOST)
				once(lengths[i], late);
}

static void bundled(void)
{
	const struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE};
	const struct slmpm_iov piece = {out[0], 80};

	describe(10);
	of_own();
	(void)of_message(b, 1);
	for (uint64_t i = 0; i < 5; i++)
		post(i);
	for (int i = 0; i < 5; i++)
		OK(slmpm_sendv(a, 1, &piece, 1, i < 4 ? &more : NULL, NULL));
	for (uint64_t i = 0; i < 5; i++) {
		(void)ended(i, 0);
		sums(z, 10, 1, 1, 0);
	}
}

/* Also one that becomes readable in parts. */
static void loaned(bool in_parts)
{
	const struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART};
	size_t bytes = 20000 * 8;
	void *loan;

	describe(20000);
	of_own();
	(void)of_message(b, 1);
	post(1);
	OK(slmpm_loan(a, 1, bytes, &loan, PATIENCE));
	memcpy(loan, out[0], bytes);
	if (in_parts) {
		int rc = slmpm_commit(a, loan, bytes / 2, &part);

		CHECK(rc == 0 || rc == -SLMPM_ENOTSUP, "%d", rc);
		not_ended();
	}
	OK(slmpm_commit(a, loan, bytes, NULL));
	(void)ended(1, 0);
	sums(z, 20000, 1, 1, 0);
}

/* ---- of whom --------------------------------------------------------------------------------- */

static uint64_t big(uint64_t value)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap64(value);
}

static void several(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE, .cq = cq};
	static uint64_t turned[1000];
	slmpm_wq rq;

	o.peer = d;
	o.stream = 4;
	OK(slmpm_wq_create(ctx, &o, &rq));
	for (int i = 0; i < 1000; i++)
		turned[i] = big(out[0][i]);
	/* Two of a stream, in their order; one of any; one of a receive queue. */
	describe(1000);
	(void)of_message(b, 1);
	(void)of_message(b, 1);
	(void)of_message(slmpm_any(ctx), 3);
	args[calc.arg_count++].wq = rq;
	post(1);
	OK(slmpm_send(c, 4, out[1], 8000, PATIENCE));
	OK(slmpm_send(c, 3, out[1], 8000, PATIENCE));
	OK(slmpm_send(a, 1, out[0], 8000, PATIENCE));
	not_ended();
	OK(slmpm_send(a, 1, out[1], 8000, PATIENCE));
	(void)ended(1, 0);
	sums(z, 1000, 0, 1, 3);
	/* Alone, and in the other order of bytes. */
	describe(1000);
	of_message(b, 1)->flags = SLMPM_OPERAND_BIG_ENDIAN;
	post(2);
	OK(slmpm_send(a, 1, turned, 8000, PATIENCE));
	(void)ended(2, 0);
	sums(z, 1000, 0, 1, 0);
	/* The greater, and whose it is. */
	describe(1000);
	calc.op = SLMPM_CALC_MAX;
	of_message(b, 1)->index = 5;
	of_message(d, 1)->index = 6;
	targets[0].indices = there;
	post(3);
	OK(slmpm_send(c, 1, out[0], 8000, PATIENCE));
	OK(slmpm_send(a, 1, out[1], 8000, PATIENCE));
	(void)ended(3, 0);
	CHECK(z[0] == 1 && there[0] == 6 && z[999] == 999 * 999 && there[999] == 5, "winners");
	OK(slmpm_wq_destroy(rq));
}

/* Where it lies, no memory is needed for it. */
static void in_place(void)
{
	struct slmpm_stats stats = actor_stats(a);
	long before = 0;

	describe(100);
	of_own();
	(void)of_message(b, 1);
	for (uint64_t i = 0; i < 4; i++) {
		post(i);
		before = allocations;
		OK(slmpm_send(a, 1, out[0], 800, PATIENCE));
		settle();
		before = allocations - before;
		(void)ended(i, 0);
		sums(z, 100, 1, 1, 0);
	}
	CHECK(before == 0 || strcmp(stats.link, "shm") != 0, "%ld allocations", before);
}

/* ---- those that fail ------------------------------------------------------------------------- */

static void wrong_length(uint64_t bytes, int status)
{
	struct slmpm_done done;

	describe(100);
	(void)of_message(b, 1);
	post(1);
	start(a, 1, out[0], bytes);
	done = ended(1, status);
	CHECK(done.peer.id == b.id && done.stream == 1 && done.len == bytes,
	      "peer %llx, stream %u, %llu bytes", (unsigned long long)done.peer.id, done.stream,
	      (unsigned long long)done.len);
	finish();
	OK(slmpm_wq_reset(wq));
}

/* What it has waited for in vain is another's. */
static void cancelled(void)
{
	describe(100);
	(void)of_message(b, 1);
	(void)of_message(b, 2);
	post(1);
	not_ended();
	OK(slmpm_send(a, 1, out[0], 800, PATIENCE));
	not_ended();
	OK(slmpm_wq_cancel(wq, 0));
	(void)ended(1, -SLMPM_ECANCELED);
	OK(slmpm_send(a, 2, out[0], 800, PATIENCE));
	EXPECT(slmpm_recv(b, 2, z, sizeof(z), NULL, PATIENCE), 800);
	OK(slmpm_wq_reset(wq));
	once(100, false);
}

static void again(void)
{
	begin(SLMPM_WQ_KEPT);
	describe(3000);
	of_own();
	(void)of_message(b, 1);
	to_sender();
	post(1);
	for (int run = 0; run < 20; run++) {
		if (run)
			OK(slmpm_wq_arm(wq));
		OK(slmpm_send(a, 1, out[run % 2], 24000, PATIENCE));
		(void)ended(1, 0);
		sums(there, 3000, 1, run % 2 == 0, run % 2 == 1);
	}
	end();
}

/* Its peer is closed: while it is waited for; while the message is read. */
static void closed(bool amidst)
{
	struct slmpm_done done;
	uint64_t n = amidst ? 20000 : 100;
	int64_t rc;

	begin(0);
	describe(n);
	of_own();
	(void)of_message(b, 1);
	if (amidst) {
		start(a, 1, out[0], n * 8);
		settle();
		post(1); /* some of it is calculated; all, where the engine's thread was faster */
		if (strcmp(getenv("SLMPM_ENGINE"), "none") == 0)
			EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
	} else {
		post(1);
		not_ended();
	}
	rc = slmpm_close(b, PATIENCE);
	CHECK(rc == 0 || amidst, "slmpm_close: %lld", (long long)rc);
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == -SLMPM_ECLOSED || (amidst && !done.status), "status %d", done.status);
	CHECK(done.status == 0 || done.peer.id == b.id, "peer %llx",
	      (unsigned long long)done.peer.id);
	end();
}

/* The context ends while one waits, has a part, has all but the other one. */
static void shut_meanwhile(uint64_t bytes)
{
	static unsigned char lost[BYTES];

	begin(0);
	describe(MOST);
	(void)of_message(b, 1);
	(void)of_message(b, 2);
	to_sender();
	post(1);
	if (bytes)
		start(a, 1, lost, bytes);
	not_ended();
	end();
}

static void refused(const char *why)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &calc};

	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, why);
	describe(4);
	(void)of_message(b, 1);
}

static void refusals(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .cq = cq, .peer = b, .stream = 9};
	slmpm_wq rq;

	o.flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED;
	OK(slmpm_wq_create(ctx, &o, &rq));
	describe(4);
	of_message(b, 1)->at = own;
	refused("argument 0 is here and a message");
	args[0].stride[0] = 8;
	refused("argument 0, a message, has strides");
	args[0].rmem = far;
	refused("argument 0, a message, has a region or an offset: .rmem");
	args[0].wq = rq;
	refused("argument 0 is of a receive queue: .peer is set");
	args[0].reserved[1] = 1;
	refused(".reserved of argument 0");
	args[0].index = 1;
	refused("an index of argument 0");
	args[0].stream = 9;
	refused("ends in a managed receive queue");
	args[0] = (struct slmpm_operand){.wq = wq};
	refused("no receive queue");
	args[0] = (struct slmpm_operand){.at = own, .stream = 1};
	refused("argument 0 is no message");
	targets[0].peer = b;
	refused("target 0 is no message");
	targets[0] = (struct slmpm_operand){.rmem = far, .stream = 1};
	refused("target 0 is a message");
	OK(slmpm_wq_destroy(rq));
	settle();
}

static int everything(void *engine)
{
	setenv("SLMPM_ENGINE", engine, 1);
	begin(0);
	of_each_length();
	bundled();
	loaned(false);
	loaned(true);
	several();
	if (strcmp(engine, "thread") != 0)
		in_place();
	wrong_length(792, -SLMPM_EINVAL);
	wrong_length(0, -SLMPM_EINVAL);
	wrong_length(801, -SLMPM_ETRUNC);
	wrong_length(BYTES, -SLMPM_ETRUNC);
	cancelled();
	refusals();
	end();
	again();
	closed(false);
	closed(true);
	shut_meanwhile(0);
	shut_meanwhile(BYTES);
	return 0;
}

int main(void)
{
	static char *const engines[] = {"none", "thread"};

	for (int i = 0; i < 2; i++)
		CHECK(child_run(everything, engines[i], 60) == 0, "%s: see above", engines[i]);
	return 0;
}
