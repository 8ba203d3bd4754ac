/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters: what is counted when, waiting for some and for all, failures told once, ends of peers,
 * threads. Both ends lie in one context, so that every step is in the test's hand.
 */
#include <pthread.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define MANY 300

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_ctr ctr;
static char room[MANY][16];

static void begin(uint32_t flags)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = flags};

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_ctr_create(ctx, &ctr));
}

static void end(void)
{
	OK(slmpm_shut(ctx, PATIENCE));
	REFUSED(slmpm_ctr_wait(ctr, 1, 0), SLMPM_EHANDLE, "no such counter");
}

static struct slmpm_how counted(uint32_t imm)
{
	return (struct slmpm_how){.size = sizeof(struct slmpm_how), .imm = imm, .ctr = ctr};
}

static void send_counted(uint32_t stream, const void *data, size_t n)
{
	struct slmpm_how how = counted(7);
	struct slmpm_iov iov = {(void *)(uintptr_t)data, n};

	OK(slmpm_sendv(a, stream, &iov, 1, &how, NULL));
}

static void recv_counted(uint32_t stream, void *data, size_t n)
{
	struct slmpm_how how = counted(0);
	struct slmpm_iov iov = {data, n};

	OK(slmpm_recvv(b, stream, &iov, 1, &how, NULL));
}

static void counts(uint64_t posted, uint64_t done, uint64_t failed, int status)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(ctr, &info));
	CHECK(info.posted == posted && info.done == done && info.failed == failed &&
		      info.status == status,
	      "posted %llu, done %llu, failed %llu, status %d", (unsigned long long)info.posted,
	      (unsigned long long)info.done, (unsigned long long)info.failed, info.status);
}

/* ---- counting ------------------------------------------------------------------------------- */

static void messages(void)
{
	begin(0);
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, 0));
	OK(slmpm_ctr_wait(ctr, 0, 0));
	for (int i = 0; i < MANY; i++)
		recv_counted(1, room[i], sizeof(room[i]));
	counts(MANY, 0, 0, 0);
	REFUSED(slmpm_ctr_wait(ctr, 1, 10), SLMPM_ETIMEOUT, "0 of 1");
	REFUSED(slmpm_ctr_wait(ctr, SLMPM_ALL, 0), SLMPM_EAGAIN, "0 of 300");
	REFUSED(slmpm_ctr_destroy(ctr), SLMPM_EBUSY, "under way");
	for (int i = 0; i < MANY; i++) {
		char text[16];

		send_counted(1, text, (size_t)snprintf(text, sizeof(text), "%d", i) + 1);
	}
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	counts(2 * MANY, 2 * MANY, 0, 0);
	for (int i = 0; i < MANY; i++)
		CHECK(atoi(room[i]) == i, "receive %d has \"%s\"", i, room[i]);
	OK(slmpm_ctr_wait(ctr, 2 * MANY, 0));
	OK(slmpm_ctr_destroy(ctr));
	REFUSED(slmpm_ctr_destroy(ctr), SLMPM_EHANDLE, "no such counter");
	end();
}

/* Later ones do not stand for an earlier one that is still under way. */
static void all(void)
{
	begin(0);
	recv_counted(1, room[0], 16);
	for (int i = 0; i < 5; i++)
		send_counted(2, "later", 6);
	counts(6, 5, 0, 0);
	OK(slmpm_ctr_wait(ctr, 5, 0));
	REFUSED(slmpm_ctr_wait(ctr, SLMPM_ALL, 10), SLMPM_ETIMEOUT, "5 of 6");
	send_counted(1, "first", 6);
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	counts(7, 7, 0, 0);
	end();
}

/* Longer than goes unasked, in several pieces and in a burst. */
static void longer(void)
{
	size_t n = message_eager(a) * 3;
	unsigned char *out = malloc(n), *in = malloc(n);
	struct slmpm_iov pieces[6];
	struct slmpm_how how = counted(0), more = counted(0);

	CHECK(out && in, "out of memory");
	actor_fill(out, 5, n);
	for (size_t i = 0; i < 6; i++)
		pieces[i] = (struct slmpm_iov){out + i * n / 6, (i + 1) * n / 6 - i * n / 6};
	OK(slmpm_sendv(a, 3, pieces, 6, &how, NULL));
	REFUSED(slmpm_ctr_wait(ctr, 1, 10), SLMPM_ETIMEOUT, "0 of 1");
	recv_counted(3, in, n);
	OK(slmpm_ctr_wait(ctr, 2, PATIENCE));
	CHECK(actor_filled(in, 5, n), "other bytes");
	more.flags = SLMPM_MORE;
	for (int i = 0; i < 100; i++)
		OK(slmpm_sendv(a, 4, &(struct slmpm_iov){out, 8}, 1, i < 99 ? &more : &how, NULL));
	OK(slmpm_ctr_wait(ctr, 102, PATIENCE));
	for (int i = 0; i < 100; i++)
		EXPECT(slmpm_recv(b, 4, in, n, NULL, PATIENCE), 8);
	counts(102, 102, 0, 0);
	free(out);
	free(in);
}

static void long_messages(void)
{
	begin(0);
	longer();
	end();
}

/* ---- failures ------------------------------------------------------------------------------- */

static void failures(void)
{
	begin(0);
	recv_counted(1, room[0], 4);
	recv_counted(1, room[1], 16);
	send_counted(1, "too long", 9);
	send_counted(1, "not", 4);
	REFUSED(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE), SLMPM_ETRUNC, "first that failed");
	counts(4, 4, 1, 0);
	CHECK(!memcmp(room[0], "too ", 4) && !strcmp(room[1], "not"), "other bytes");
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, 0)); /* told once */
	end();
}

/* What is refused is not counted. */
static void refusals(void)
{
	struct slmpm_ctr_info info = {.size = sizeof(info) - 1};
	struct slmpm_how how = counted(0), two = counted(0);
	struct slmpm_iov null = {NULL, 1}, one = {room, 1};
	slmpm_ctr other, stale = ctr;
	slmpm_ctx elsewhere;
	slmpm_req req = {0};

	begin(0);
	how.ctr = two.ctr = ctr;
	REFUSED(slmpm_sendv(a, 0, &null, 1, &how, NULL), SLMPM_EINVAL, "NULL");
	REFUSED(slmpm_recvv(b, 0, &null, 1, &how, NULL), SLMPM_EINVAL, "NULL");
	REFUSED(slmpm_sendv(a, 0, &one, 1, &how, &req), SLMPM_EINVAL, "only one");
	REFUSED(slmpm_recvv(b, 0, &one, 1, &how, &req), SLMPM_EINVAL, "only one");
	OK(slmpm_cq_create(ctx, &two.cq));
	REFUSED(slmpm_sendv(a, 0, &one, 1, &two, NULL), SLMPM_EINVAL, "only one");
	how.ctr = stale;
	REFUSED(slmpm_sendv(a, 0, &one, 1, &how, NULL), SLMPM_EHANDLE, "no such counter");
	REFUSED(slmpm_recvv(b, 0, &one, 1, &how, NULL), SLMPM_EHANDLE, "no such counter");
	OK(slmpm_open(&elsewhere, NULL));
	OK(slmpm_ctr_create(elsewhere, &other));
	how.ctr = other;
	REFUSED(slmpm_sendv(a, 0, &one, 1, &how, NULL), SLMPM_EINVAL, "another context");
	REFUSED(slmpm_recvv(b, 0, &one, 1, &how, NULL), SLMPM_EINVAL, "another context");
	/* With nobody who could, nothing comes. */
	REFUSED(slmpm_ctr_wait(other, 1, -1), SLMPM_ECLOSED, "no peer is left");
	OK(slmpm_shut(elsewhere, 0));
	REFUSED(slmpm_ctr_query(ctr, NULL), SLMPM_EINVAL, "size");
	REFUSED(slmpm_ctr_query(ctr, &info), SLMPM_EINVAL, "size");
	REFUSED(slmpm_ctr_create(ctx, NULL), SLMPM_EINVAL, "no place");
	counts(0, 0, 0, 0);
	end();
}

/* Regions notify counters and queues of their own context; while they do, these stay. */
static void regions(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	slmpm_ctr other;
	slmpm_ctx elsewhere;
	slmpm_mem mem;
	slmpm_cq cq;

	begin(0);
	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_mem_register(ctx, room, sizeof(room), SLMPM_WRITE, &mem));
	OK(slmpm_open(&elsewhere, NULL));
	OK(slmpm_ctr_create(elsewhere, &other));
	REFUSED(slmpm_mem_notify(mem, other, cq), SLMPM_EINVAL, "another context");
	OK(slmpm_shut(elsewhere, 0));
	REFUSED(slmpm_mem_notify(mem, other, cq), SLMPM_EHANDLE, "no such counter");
	OK(slmpm_mem_notify(mem, ctr, cq));
	REFUSED(slmpm_ctr_destroy(ctr), SLMPM_EBUSY, "region");
	REFUSED(slmpm_cq_destroy(cq), SLMPM_EBUSY, "region");
	OK(slmpm_mem_notify(mem, (slmpm_ctr){0}, cq));
	OK(slmpm_ctr_destroy(ctr));
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_cq_destroy(cq));
	REFUSED(slmpm_rmem_query((slmpm_rmem){0}, &info), SLMPM_EHANDLE, "zero");
	end();
}

/* A how of the first version: what lies behind it is not looked at, and the call blocks. */
static void older_how(void)
{
	struct slmpm_how how = {.size = 16, .imm = 77, .timeout_ms = PATIENCE};
	struct slmpm_done done;
	struct slmpm_iov iov = {room, 8};

	begin(0);
	how.ctr.id = how.cq.id = UINT64_MAX;
	OK(slmpm_sendv(a, 0, &iov, 1, &how, NULL));
	EXPECT(slmpm_recv(b, 0, room, 8, &done, PATIENCE), 8);
	CHECK(done.imm == 77 && done.op == SLMPM_OP_RECV && !done.cookie, "imm %u, op %u", done.imm,
	      done.op);
	how.flags = SLMPM_MORE;
	for (int i = 0; i < 10; i++)
		OK(slmpm_sendv(a, 0, &iov, 1, &how, NULL));
	for (int i = 0; i < 10; i++)
		EXPECT(slmpm_recvv(b, 0, &iov, 1, &how, NULL), 8);
	how.size = 15;
	REFUSED(slmpm_sendv(a, 0, &iov, 1, &how, NULL), SLMPM_EINVAL, "size");
	REFUSED(slmpm_recvv(b, 0, &iov, 1, &how, NULL), SLMPM_EINVAL, "size");
	end();
}

/* A request that is counted has no handle: none that could be guessed is taken for it. */
static void no_handle(void)
{
	begin(0);
	recv_counted(1, room[0], 16);
	for (uint64_t generation = 1; generation < 2 * MANY; generation += 2)
		for (uint64_t i = 0; i < 64; i++) {
			slmpm_req guess = {generation << 32 | i};

			EXPECT(slmpm_cancel(guess), -SLMPM_EHANDLE);
			EXPECT(slmpm_test(&guess, NULL), -SLMPM_EHANDLE);
		}
	send_counted(1, "still", 6);
	OK(slmpm_ctr_wait(ctr, 2, PATIENCE));
	end();
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void closing(void)
{
	begin(0);
	recv_counted(1, room[0], 16);
	recv_counted(2, room[1], 16);
	OK(slmpm_close(a, PATIENCE));
	REFUSED(slmpm_ctr_wait(ctr, SLMPM_ALL, -1), SLMPM_ECLOSED, "first that failed");
	counts(2, 2, 2, 0);
	REFUSED(slmpm_ctr_wait(ctr, 3, -1), SLMPM_ECLOSED, "no peer is left");
	end();
}

/* Everything under way at the end of the context. */
static void shutting(void)
{
	begin(0);
	for (int i = 0; i < MANY; i++)
		recv_counted((uint32_t)i, room[i], 16);
	end();
}

static int in_child(void *arg)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	slmpm_ctr own;

	(void)arg;
	REFUSED(slmpm_ctr_wait(ctr, 1, 0), SLMPM_EFORKED, "parent");
	REFUSED(slmpm_ctr_query(ctr, &info), SLMPM_EFORKED, "parent");
	REFUSED(slmpm_ctr_destroy(ctr), SLMPM_EFORKED, "parent");
	OK(slmpm_ctr_create((slmpm_ctx){0}, &own));
	OK(slmpm_ctr_destroy(own));
	return 0;
}

static void forking(void)
{
	begin(0);
	recv_counted(1, room[0], 16);
	EXPECT(child_run(in_child, NULL, 20), 0);
	send_counted(1, "ours", 5);
	OK(slmpm_ctr_wait(ctr, 2, PATIENCE));
	end();
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *wait_for_half(void *arg)
{
	(void)arg;
	OK(slmpm_ctr_wait(ctr, MANY, PATIENCE));
	return NULL;
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	REFUSED(slmpm_ctr_wait(ctr, 100000, -1), SLMPM_EHANDLE, "no such counter");
	return NULL;
}

static void *send_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < MANY; i++)
		send_counted(1, "12345678", 8);
	return NULL;
}

static void threads(void)
{
	pthread_t waiters[2], sender, last;

	begin(SLMPM_THREADS);
	for (int i = 0; i < MANY; i++)
		recv_counted(1, room[i], 16);
	CHECK(!pthread_create(&waiters[0], NULL, wait_for_half, NULL), "a thread");
	CHECK(!pthread_create(&waiters[1], NULL, wait_for_half, NULL), "a thread");
	CHECK(!pthread_create(&last, NULL, wait_for_ever, NULL), "a thread");
	CHECK(!pthread_create(&sender, NULL, send_all, NULL), "a thread");
	pthread_join(sender, NULL);
	pthread_join(waiters[0], NULL);
	pthread_join(waiters[1], NULL);
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	counts(2 * MANY, 2 * MANY, 0, 0);
	OK(slmpm_ctr_destroy(ctr));
	pthread_join(last, NULL);
	end();
}

int main(int argc, char **argv)
{
	static const struct actor none[] = {{NULL, NULL}};

	actor_begin(argc, argv, none);
	messages();
	all();
	long_messages();
	failures();
	refusals();
	regions();
	older_how();
	no_handle();
	closing();
	shutting();
	forking();
	threads();
	return 0;
}
