/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: every completion once, in order, with its cookie; growth, waiting, the
 * descriptor, ends of peers, threads. Both ends lie in one context.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define MANY 1000

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_cq cq;
static char room[MANY][16];

static void begin(uint32_t flags)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = flags};

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_cq_create(ctx, &cq));
}

static void end(void)
{
	struct slmpm_done done;

	OK(slmpm_shut(ctx, PATIENCE));
	REFUSED(slmpm_cq_poll(cq, &done, 1), SLMPM_EHANDLE, "no such completion queue");
}

static struct slmpm_how queued(uint64_t cookie)
{
	return (struct slmpm_how){.size = sizeof(struct slmpm_how), .cq = cq, .cookie = cookie};
}

static void send_queued(uint32_t stream, const void *data, size_t n, uint64_t cookie)
{
	struct slmpm_how how = queued(cookie);
	struct slmpm_iov iov = {(void *)(uintptr_t)data, n};

	how.imm = (uint32_t)cookie + 1;
	OK(slmpm_sendv(a, stream, &iov, 1, &how, NULL));
}

static void recv_queued(uint32_t stream, void *data, size_t n, uint64_t cookie)
{
	struct slmpm_how how = queued(cookie);
	struct slmpm_iov iov = {data, n};

	OK(slmpm_recvv(b, stream, &iov, 1, &how, NULL));
}

/* The next completion is exactly this one. */
static void next(uint32_t op, uint64_t cookie, int status, uint64_t len, uint32_t stream)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.op == op && done.cookie == cookie && done.status == status,
	      "op %u, cookie %llu, status %d", done.op, (unsigned long long)done.cookie,
	      done.status);
	CHECK(status < 0 || (done.len == len && done.stream == stream &&
			     done.peer.id == (op == SLMPM_OP_SEND ? a.id : b.id)),
	      "len %llu, stream %u", (unsigned long long)done.len, done.stream);
}

static void empty(void)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

/* ---- what is queued ------------------------------------------------------------------------- */

static void messages(void)
{
	begin(0);
	empty();
	for (uint64_t i = 0; i < MANY; i++)
		recv_queued(1, room[i], 16, i);
	for (uint64_t i = 0; i < MANY; i++)
		send_queued(1, &i, sizeof(i), MANY + i);
	for (uint64_t i = 0, sent = 0; i + sent < 2 * MANY;) { /* each kind in its order */
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		if (done.op == SLMPM_OP_SEND) {
			CHECK(done.cookie == MANY + sent && done.status == 0 && done.len == 8 &&
				      done.stream == 1 && done.peer.id == a.id,
			      "send %llu", (unsigned long long)done.cookie);
			sent++;
			continue;
		}
		CHECK(done.cookie == i && done.imm == (uint32_t)(MANY + i) + 1 && done.len == 8 &&
			      done.op == SLMPM_OP_RECV && done.peer.id == b.id,
		      "cookie %llu, imm %u", (unsigned long long)done.cookie, done.imm);
		CHECK(!memcmp(room[i], &i, 8), "other bytes in receive %llu",
		      (unsigned long long)i);
		i++;
	}
	empty();
	end();
}

/* A loan that is committed has gone: in a packet, and in an area. */
static void loans(void)
{
	static const size_t lengths[] = {8, 300000};
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	slmpm_ctr ctr;
	void *loan;

	begin(0);
	OK(slmpm_ctr_create(ctx, &ctr));
	for (uint64_t i = 0; i < 4; i++) {
		size_t n = lengths[i % 2];
		char *got = malloc(n);

		OK(slmpm_loan(a, 5, n, &loan, PATIENCE));
		memset(loan, (int)i + 1, n);
		how.cookie = i;
		how.imm = (uint32_t)i;
		how.ctr = i < 2 ? (slmpm_ctr){0} : ctr;
		how.cq = i < 2 ? cq : (slmpm_cq){0};
		OK(slmpm_commit(a, loan, n, &how));
		if (i < 2)
			next(SLMPM_OP_SEND, i, 0, n, 5);
		EXPECT(slmpm_recv(b, 5, got, n, NULL, PATIENCE), (int64_t)n);
		CHECK(got[0] == (char)(i + 1) && got[n - 1] == (char)(i + 1), "loan %llu",
		      (unsigned long long)i);
		free(got);
	}
	OK(slmpm_ctr_query(ctr, &info));
	CHECK(info.posted == 2 && info.done == 2, "%llu of %llu", (unsigned long long)info.done,
	      (unsigned long long)info.posted);
	OK(slmpm_ctr_destroy(ctr));
	empty();
	end();
}

/* Several at a time, fewer than there are; the queue wraps and grows meanwhile. */
static void batches(void)
{
	struct slmpm_done done[7];
	uint64_t sent = 0, taken = 0;

	begin(0);
	for (int round = 0; round < 200; round++) {
		int n;

		for (int i = 0; i < round % 13; i++)
			send_queued(1, &sent, 8, sent), sent++;
		n = slmpm_cq_poll(cq, done, 7);
		CHECK(n >= 0 && n <= 7, "polled %d", n);
		for (int i = 0; i < n; i++, taken++)
			CHECK(done[i].cookie == taken, "cookie %llu instead of %llu",
			      (unsigned long long)done[i].cookie, (unsigned long long)taken);
		while (slmpm_recv(b, 1, room, 8, NULL, 0) == 8)
			;
	}
	while (taken < sent) {
		int n = slmpm_cq_wait(cq, done, 7, PATIENCE);

		CHECK(n > 0, "%s", slmpm_error_detail());
		for (int i = 0; i < n; i++, taken++)
			CHECK(done[i].cookie == taken, "cookie %llu",
			      (unsigned long long)done[i].cookie);
	}
	empty();
	end();
}

/* In the order in which they end, not in that in which they began. */
static void order(void)
{
	unsigned char *out, *in;
	size_t n;

	begin(0);
	n = message_eager(a) * 2;
	out = malloc(n);
	in = malloc(n);
	CHECK(out && in, "out of memory");
	actor_fill(out, 3, n);
	recv_queued(9, room[0], 16, 1);
	send_queued(8, out, n, 2);
	send_queued(9, "short", 6, 3);
	next(SLMPM_OP_SEND, 3, 0, 6, 9);
	next(SLMPM_OP_RECV, 1, 0, 6, 9);
	REFUSED(slmpm_cq_destroy(cq), SLMPM_EBUSY, "under way");
	recv_queued(8, in, n, 4);
	for (int i = 0, sum = 0; i < 2; i++) { /* either end may learn of it first */
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && done.len == n && done.stream == 8, "status %d, len %llu",
		      done.status, (unsigned long long)done.len);
		sum += (int)done.cookie;
		CHECK(i == 0 || sum == 6, "cookies that add up to %d", sum);
	}
	CHECK(actor_filled(in, 3, n), "other bytes");
	recv_queued(8, in, 2, 5);
	send_queued(8, "abc", 3, 6);
	next(SLMPM_OP_SEND, 6, 0, 3, 8);
	next(SLMPM_OP_RECV, 5, -SLMPM_ETRUNC, 3, 8);
	free(out);
	free(in);
	end();
}

/* ---- waiting -------------------------------------------------------------------------------- */

static int role_talk(slmpm_peer host, char **words)
{
	(void)words;
	while (slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE) == 0)
		OK(slmpm_send(host, 1, "word", 5, PATIENCE));
	return 0;
}

static slmpm_peer talker(void)
{
	struct slmpm_spawn_options o = {.size = sizeof(o)};

	o.ctx = ctx;
	return actor_spawn_with(&o, "talk", NULL, NULL);
}

/* Arming tells of what is queued, also of what was done at once and nobody has looked at. */
static void arming(void)
{
	slmpm_peer child;

	begin(0);
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	a = child = talker();
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(child, 1, room, 16, NULL, PATIENCE), 5);
	while (slmpm_arm(ctx) == 1)
		empty();
	empty();
	send_queued(3, "x", 1, 1);
	EXPECT(slmpm_arm(ctx), 1);
	next(SLMPM_OP_SEND, 1, 0, 1, 3);
	OK(slmpm_close(child, PATIENCE));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 0);
	end();
}

/* From another process, through epoll's descriptor alone. */
static void sleeping(void)
{
	struct pollfd p = {.events = POLLIN};
	struct slmpm_done done;
	slmpm_peer child;

	begin(0);
	b = child = talker();
	p.fd = slmpm_fd(ctx);
	for (uint64_t i = 0; i < 20; i++) {
		recv_queued(1, room[0], 16, i);
		OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
		while (slmpm_cq_poll(cq, &done, 1) == 0)
			if (slmpm_arm(ctx) == 0)
				EXPECT(poll(&p, 1, PATIENCE), 1);
		CHECK(done.cookie == i && done.len == 5, "cookie %llu",
		      (unsigned long long)done.cookie);
	}
	recv_queued(1, room[0], 16, 99);
	OK(slmpm_kill(child, 0));
	next(SLMPM_OP_RECV, 99, -SLMPM_EDEAD, 0, 0);
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + 9);
	end();
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void closing(void)
{
	struct slmpm_done done;

	begin(0);
	for (uint64_t i = 0; i < 40; i++)
		recv_queued((uint32_t)i, room[i], 16, i);
	OK(slmpm_close(a, PATIENCE));
	for (uint64_t i = 0; i < 40; i++)
		next(SLMPM_OP_RECV, i, -SLMPM_ECLOSED, 0, 0);
	REFUSED(slmpm_cq_wait(cq, &done, 1, -1), SLMPM_ECLOSED, "no peer is left");
	OK(slmpm_cq_destroy(cq));
	end();
}

/* What was not polled is dropped; what is under way ends with the context. */
static void dropping(void)
{
	begin(0);
	for (uint64_t i = 0; i < 40; i++)
		send_queued(1, "x", 1, i);
	OK(slmpm_cq_destroy(cq));
	OK(slmpm_cq_create(ctx, &cq));
	for (uint64_t i = 0; i < 40; i++) {
		send_queued(1, "x", 1, i);
		recv_queued(2, room[i], 16, i);
	}
	end();
}

static void refusals(void)
{
	struct slmpm_how how = queued(0);
	struct slmpm_iov one = {room, 1};
	slmpm_cq other, stale = cq;
	struct slmpm_done done;
	void *loan;
	slmpm_ctx elsewhere;
	slmpm_req req = {0};

	begin(0);
	REFUSED(slmpm_cq_poll(cq, NULL, 1), SLMPM_EINVAL, "room for 1");
	REFUSED(slmpm_cq_poll(cq, &done, 0), SLMPM_EINVAL, "room for 0");
	REFUSED(slmpm_cq_poll(cq, &done, -1), SLMPM_EINVAL, "room for -1");
	REFUSED(slmpm_cq_wait(cq, NULL, 1, 0), SLMPM_EINVAL, "room for 1");
	REFUSED(slmpm_cq_wait(cq, &done, 0, 0), SLMPM_EINVAL, "room for 0");
	REFUSED(slmpm_cq_wait(cq, &done, 1, 10), SLMPM_ETIMEOUT, "no completion");
	how.cq = stale;
	REFUSED(slmpm_sendv(a, 0, &one, 1, &how, NULL), SLMPM_EHANDLE, "no such completion queue");
	how.cq = cq;
	REFUSED(slmpm_sendv(a, 0, &one, 1, &how, &req), SLMPM_EINVAL, "only one");
	OK(slmpm_open(&elsewhere, NULL));
	OK(slmpm_cq_create(elsewhere, &other));
	how.cq = other;
	REFUSED(slmpm_recvv(b, 0, &one, 1, &how, NULL), SLMPM_EINVAL, "another context");
	OK(slmpm_shut(elsewhere, 0));
	REFUSED(slmpm_cq_create(ctx, NULL), SLMPM_EINVAL, "no place");
	how.cq = cq;
	OK(slmpm_loan(a, 0, 8, &loan, PATIENCE));
	how.flags = SLMPM_PART;
	REFUSED(slmpm_commit(a, loan, 8, &how), SLMPM_EINVAL, "no end");
	how.flags = 0;
	how.cq = stale;
	REFUSED(slmpm_commit(a, loan, 8, &how), SLMPM_EHANDLE, "no such completion queue");
	OK(slmpm_abort(a, loan));
	how.cq = cq;
	empty();
	end();
}

static int in_child(void *arg)
{
	struct slmpm_done done;

	(void)arg;
	REFUSED(slmpm_cq_poll(cq, &done, 1), SLMPM_EFORKED, "parent");
	REFUSED(slmpm_cq_wait(cq, &done, 1, 0), SLMPM_EFORKED, "parent");
	REFUSED(slmpm_cq_destroy(cq), SLMPM_EFORKED, "parent");
	return 0;
}

static void forking(void)
{
	begin(0);
	send_queued(1, "x", 1, 5);
	EXPECT(child_run(in_child, NULL, 20), 0);
	next(SLMPM_OP_SEND, 5, 0, 1, 1);
	end();
}

/* ---- threads -------------------------------------------------------------------------------- */

static unsigned char seen[MANY];

/* Each completion goes to one of those who wait. */
static void *take(void *arg)
{
	struct slmpm_done done[3];

	for (;;) {
		int n = slmpm_cq_wait(cq, done, 3, -1);

		if (n == -SLMPM_EHANDLE)
			return arg;
		CHECK(n > 0, "%s", slmpm_error_detail());
		for (int i = 0; i < n; i++)
			__atomic_add_fetch(&seen[done[i].cookie], 1, __ATOMIC_RELAXED);
	}
}

static void threads(void)
{
	pthread_t takers[3];
	int64_t until = actor_now_ms() + PATIENCE;

	begin(SLMPM_THREADS);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&takers[i], NULL, take, NULL), "a thread");
	for (uint64_t i = 0; i < MANY; i += 2) {
		recv_queued(1, room[i], 16, i);
		send_queued(1, "x", 1, i + 1);
	}
	for (int i = 0; i < MANY; i++)
		while (!__atomic_load_n(&seen[i], __ATOMIC_RELAXED)) {
			CHECK(actor_now_ms() < until, "nobody got completion %d", i);
			sched_yield();
		}
	OK(slmpm_cq_destroy(cq));
	for (int i = 0; i < 3; i++)
		pthread_join(takers[i], NULL);
	for (int i = 0; i < MANY; i++)
		CHECK(seen[i] == 1, "completion %d came %d times", i, seen[i]);
	end();
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"talk", role_talk}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	messages();
	loans();
	batches();
	order();
	arming();
	sleeping();
	closing();
	dropping();
	refusals();
	forking();
	threads();
	return 0;
}
