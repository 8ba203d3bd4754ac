/* SPDX-License-Identifier: BSD-3-Clause */
/* helper */
/*
 * trace_script PART: a scripted exchange between both ends of a connection in one context. What
 * SLMPM_TRACE then has is the same on every machine, but for the parts "both", in which two threads
 * copy at once, "echo" and "aggregate". All parts together show every opcode.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/lib/message.h"

#define LONG 600 /* bytes: three packets of SLMPM_PACKET_MAX=256 */

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char here[8192], there[8192];

static void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

static void take(uint32_t stream, size_t n)
{
	EXPECT(slmpm_recv(b, stream, there, sizeof(there), NULL, PATIENCE), (int64_t)n);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void short_ones(void)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = 0xabcdef, .timeout_ms = PATIENCE};
	struct slmpm_iov iov = {here, 24};

	OK(slmpm_send(a, 1, here, 5, PATIENCE));
	take(1, 5);
	OK(slmpm_sendv(a, 0xfffffffe, &iov, 1, &how, NULL));
	take(0xfffffffe, 24);
	OK(slmpm_send(a, 2, here, 0, PATIENCE));
	take(2, 0);
	how.flags = SLMPM_MORE;
	for (int i = 0; i < 4; i++) {
		how.flags = i < 3 ? SLMPM_MORE : 0;
		OK(slmpm_sendv(a, 3, &iov, 1, &how, NULL));
	}
	for (int i = 0; i < 4; i++)
		take(3, 24);
}

static void long_ones(void)
{
	struct slmpm_iov iov = {here, 3000};
	slmpm_req req = {0};
	struct slmpm_done done;

	OK(slmpm_send(a, 4, here, LONG, PATIENCE));
	take(4, LONG);
	OK(slmpm_sendv(a, 5, &iov, 1, NULL, &req)); /* announced */
	take(5, 3000);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(slmpm_sendv(a, 6, &iov, 1, NULL, &req)); /* and taken back */
	settle();
	OK(slmpm_cancel(req));
	EXPECT(slmpm_test(&req, &done), 1);
	settle();
	message_none(b, 6);
	for (int i = 0; i < 60; i++) { /* credit comes back */
		OK(slmpm_send(a, 7, here, 250, PATIENCE));
		take(7, 250);
	}
	settle();
}

static void loans(void)
{
	struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART};
	const void *in;
	void *buf;

	OK(slmpm_loan(a, 8, 100, &buf, PATIENCE));
	memcpy(buf, here, 100);
	OK(slmpm_commit(a, buf, 100, NULL));
	take(8, 100);
	OK(slmpm_loan(a, 9, 5000, &buf, PATIENCE));
	memcpy(buf, here, 5000);
	OK(slmpm_commit(a, buf, 2000, &part));
	OK(slmpm_commit(a, buf, 5000, NULL));
	EXPECT(slmpm_hold(b, 9, &in, NULL, PATIENCE), 2000);
	EXPECT(slmpm_more(b, in, 2000, NULL, PATIENCE), 5000);
	OK(slmpm_release(b, in));
	settle();
}

static void answer(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	OK(slmpm_am_reply(am, 12, am->head, am->head_len, am->data, 3));
}

static void count(const struct slmpm_am *am, void *arg)
{
	(void)am;
	++*(int *)arg;
}

static void active_messages(void)
{
	int answers = 0;

	OK(slmpm_am_handler(ctx, 11, answer, NULL));
	OK(slmpm_am_handler(ctx, 12, count, &answers));
	OK(slmpm_am(a, 11, "head", 4, here, 16, NULL, NULL));
	settle();
	OK(slmpm_am(a, 11, "head", 4, here, LONG, NULL, NULL));
	settle();
	CHECK(answers == 2, "%d answers", answers);
}

/* ---- regions -------------------------------------------------------------------------------- */

static void open_region(void)
{
	struct slmpm_key key;
	void *base;

	OK(slmpm_mem_alloc(ctx, 16384, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	settle();
}

static void puts_and_gets(void)
{
	struct slmpm_how remote = {
		.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};
	uint64_t old;
	uint32_t half;

	OK(slmpm_put(rmem, 64, here, 8, NULL, NULL));
	OK(slmpm_put(rmem, 1024, here, LONG, &remote, NULL));
	OK(slmpm_get(rmem, 64, there, 8, NULL, NULL));
	OK(slmpm_get(rmem, 1024, there, LONG, NULL, NULL));
	CHECK(!memcmp(here, there, LONG), "other bytes");
	OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
	OK(slmpm_atomic(rmem, 0, SLMPM_COMPARE_SWAP, 64, 7, 5, &old, NULL, NULL));
	CHECK(old == 5, "was %llu", (unsigned long long)old);
	OK(slmpm_atomic(rmem, 8, SLMPM_SWAP, 32, 9, 0, &half, NULL, NULL));
	OK(slmpm_flush(a, PATIENCE));
	settle();
}

static void notified(void)
{
	struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_NOTIFY, .imm = 33, .timeout_ms = PATIENCE};
	struct slmpm_done done;
	slmpm_cq cq;

	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_mem_notify(mem, (slmpm_ctr){0}, cq));
	OK(slmpm_put(rmem, 128, here, 8, &how, NULL));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.imm == 33 && done.cookie == 128, "imm %u", done.imm);
}

static void taken_back(void)
{
	OK(slmpm_mem_release(rmem));
	settle();
	EXPECT(slmpm_mem_share(mem, b, SLMPM_READ, 0), -SLMPM_EAGAIN);
	settle();
	OK(slmpm_mem_destroy(mem, PATIENCE));
	open_region();
	OK(slmpm_mem_revoke(mem, b, PATIENCE));
	settle();
}

/* ---- parts ---------------------------------------------------------------------------------- */

static void part_messages(void)
{
	short_ones();
	long_ones();
	loans();
	active_messages();
}

static void part_one_sided(void)
{
	open_region();
	puts_and_gets();
	notified();
	taken_back();
}

static void part_checked(void)
{
	OK(slmpm_send(a, 1, here, 5, PATIENCE));
	take(1, 5);
	OK(slmpm_send(a, 1, here, LONG, PATIENCE));
	take(1, LONG);
}

static void part_fetched(void)
{
	static unsigned char out[1 << 18], in[1 << 18];
	struct slmpm_iov iov = {out, sizeof(out)};
	struct slmpm_done done;
	slmpm_req req = {0};

	OK(slmpm_sendv(a, 1, &iov, 1, NULL, &req));
	EXPECT(slmpm_recv(b, 1, in, sizeof(in), NULL, PATIENCE), sizeof(in));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	settle();
}

/* No receive comes for it: in packets, then. */
static void part_fetched_or_not(void)
{
	struct slmpm_iov iov = {here, sizeof(here)};
	struct slmpm_done done;
	slmpm_req req = {0};

	OK(slmpm_sendv(a, 1, &iov, 1, NULL, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	take(1, sizeof(here));
	settle();
}

static void part_fifo(void)
{
	struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_FIFO, .imm = 44, .timeout_ms = PATIENCE};
	struct slmpm_iov iov = {here, 300};
	struct slmpm_span span = {64, 300};
	struct slmpm_done done;
	slmpm_req req = {0};
	struct slmpm_fifo e;

	open_region();
	OK(slmpm_put(rmem, 8, here, 16, &how, NULL));
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_fifo_drop(&e));
	how.flags |= SLMPM_REMOTE;
	OK(slmpm_putv(rmem, &span, 1, &iov, 1, &how, &req));
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_fifo_store(&e, e.mem, e.offset, NULL, NULL));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	settle();
}

/* ---- receive queues -------------------------------------------------------------------------- */

/* What the sender had sent by then, an entry that is enabled, one that is not; and the end. */
static void part_receive_queue(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
				     .peer = b,
				     .stream = 6};
	slmpm_wq queue;

	OK(slmpm_send(a, 6, here, 8, PATIENCE));
	settle();
	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &queue));
	settle();
	OK(slmpm_wq_enable(queue, 2));
	settle();
	OK(slmpm_send(a, 6, here, 16, PATIENCE));
	REFUSED(slmpm_send(a, 6, here, 24, PATIENCE), SLMPM_EDISABLED, "stream 6");
	settle();
	OK(slmpm_wq_destroy(queue));
	settle();
	o.peer = slmpm_any(ctx); /* claimed: refused; granted */
	OK(slmpm_wq_create(ctx, &o, &queue));
	settle();
	REFUSED(slmpm_send(a, 6, here, 32, PATIENCE), SLMPM_EDISABLED, "stream 6");
	OK(slmpm_wq_enable(queue, 3)); /* two are for what came before */
	OK(slmpm_send(a, 6, here, 40, PATIENCE));
	settle();
	OK(slmpm_wq_destroy(queue));
	settle();
}

/* ---- puts and messages that both sides copy -------------------------------------------------- */

#define LARGE ((size_t)4 << 20)

/* The source lies in a region that the target has mapped. */
static unsigned char *open_source(slmpm_peer own, slmpm_peer others, slmpm_rmem *seen)
{
	struct slmpm_key key;
	slmpm_mem source;
	void *base;

	OK(slmpm_mem_alloc(ctx, LARGE, SLMPM_READ, &source, &base));
	OK(slmpm_mem_key(source, own, SLMPM_READ, &key));
	if (others.id)
		OK(slmpm_mem_open(others, &key, seen));
	else
		OK(slmpm_send(own, 1, &key, sizeof(key), PATIENCE));
	return base;
}

/* The target looks when all is over. */
static void part_shared(void)
{
	unsigned char *source;
	slmpm_rmem seen;

	open_region();
	source = open_source(a, b, &seen);
	settle();
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	{
		struct slmpm_key key;
		void *base;

		OK(slmpm_mem_alloc(ctx, LARGE, SLMPM_WRITE, &mem, &base));
		OK(slmpm_mem_key(mem, b, SLMPM_WRITE, &key));
		OK(slmpm_mem_open(a, &key, &rmem));
	}
	settle();
	OK(slmpm_put(rmem, 4096, source, 65536, NULL, NULL));
	settle();
}

static struct {
	char url[64];
	_Atomic bool over;
} other;

static void *look_always(void *arg)
{
	static unsigned char in[LARGE];
	slmpm_rmem source;
	struct slmpm_key key;
	slmpm_ctx own;
	slmpm_peer peer;
	slmpm_mem landing;
	void *base;

	(void)arg;
	OK(slmpm_open(&own, NULL));
	OK(slmpm_connect(&peer, own, other.url, PATIENCE));
	OK(slmpm_mem_alloc(own, LARGE, SLMPM_WRITE, &landing, &base));
	OK(slmpm_mem_key(landing, peer, SLMPM_WRITE, &key));
	OK(slmpm_send(peer, 1, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &source));
	OK(slmpm_send(peer, 1, NULL, 0, PATIENCE));
	while (!atomic_load(&other.over)) {
		int64_t n = slmpm_recv(peer, 2, in, sizeof(in), NULL, 0);

		CHECK(n == (int64_t)LARGE || n == -SLMPM_EAGAIN || n == -SLMPM_ECLOSED, "%s",
		      slmpm_error_detail());
	}
	OK(slmpm_shut(own, PATIENCE));
	return NULL;
}

/* Asked for, filled, changed in one place, in many, by the follower, and left. */
static void part_mirrored(void)
{
	static uint64_t leads[1024], follows[1024];
	slmpm_mirror m, n;

	OK(slmpm_mirror_create(ctx, leads, sizeof(leads), NULL, &m));
	OK(slmpm_mirror_create(ctx, follows, sizeof(follows), NULL, &n));
	EXPECT(slmpm_mirror_attach(m, a, 5, SLMPM_MIRROR_LEAD | SLMPM_MIRROR_BOTH, 0),
	       -SLMPM_EAGAIN);
	OK(slmpm_mirror_attach(n, b, 5, SLMPM_MIRROR_FOLLOW | SLMPM_MIRROR_BOTH, PATIENCE));
	settle();
	OK(slmpm_mirror_store64(m, &leads[100], 7));
	OK(slmpm_mirror_flush(m, PATIENCE));
	settle();
	for (int i = 0; i < 1024; i++)
		OK(slmpm_mirror_store32(n, &follows[i], 3));
	OK(slmpm_mirror_flush(n, PATIENCE));
	settle();
	OK(slmpm_mirror_destroy(n));
	settle();
	OK(slmpm_mirror_destroy(m));
}

/* Until each side has copied a part of a put, and of a message where that is possible; on a crowded
 * machine that may not come. */
static void part_both(void)
{
	int64_t until = actor_now_ms() + 3000;
	slmpm_listener listener;
	unsigned char *source;
	struct slmpm_stats s;
	struct slmpm_key key;
	pthread_t thread;
	slmpm_peer peer;

	snprintf(other.url, sizeof(other.url), "shm:trace-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, other.url));
	OK(pthread_create(&thread, NULL, look_always, NULL));
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	source = open_source(peer, (slmpm_peer){0}, NULL);
	EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
	do {
		OK(slmpm_put(rmem, 0, source, LARGE, NULL, NULL));
		OK(slmpm_send(peer, 2, source, LARGE, PATIENCE));
		s = actor_stats(peer);
	} while ((!s.shared_puts || (s.rget_messages && !s.push_messages)) &&
		 actor_now_ms() < until);
	atomic_store(&other.over, true);
	OK(slmpm_close(peer, PATIENCE));
	OK(pthread_join(thread, NULL));
}

/* Where nobody maps the other's memory. */
static void part_copied(void)
{
	loans();
	open_region();
	OK(slmpm_put(rmem, 64, here, 8, NULL, NULL));
	OK(slmpm_flush(a, PATIENCE));
	settle();
}

/* When they come is the clock's to say. */
static void part_echo(void)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_monitor m;

	do {
		OK(slmpm_send(a, 1, here, 5, PATIENCE));
		take(1, 5);
		settle();
		OK(slmpm_monitor(a, &m, sizeof(m)));
	} while (!m.echoes && actor_now_ms() < until);
	EXPECT(m.echoes, 1);
}

/* With a process of this one's job. */
static void part_means(void)
{
	char *words[] = {(char *)"child", NULL}, *quiet[] = {(char *)"SLMPM_TRACE=", NULL};
	struct slmpm_spawn_options options = {.size = sizeof(options), .envp = quiet};
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_aggregate aggregate;
	slmpm_peer child;

	options.ctx = ctx;
	OK(slmpm_spawn(&child, actor_self(), words, &options));
	do {
		OK(slmpm_send(child, 1, here, 5, PATIENCE));
		EXPECT(slmpm_recv(child, 1, there, sizeof(there), NULL, PATIENCE), 5);
		OK(slmpm_aggregate(&aggregate, sizeof(aggregate)));
	} while (aggregate.instances < 2 && actor_now_ms() < until);
	EXPECT(aggregate.instances, 2);
	OK(slmpm_close(child, PATIENCE));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 0);
}

static int be_child(void)
{
	slmpm_peer host;

	OK(slmpm_parent(&host));
	while (slmpm_recv(host, 1, there, 5, NULL, PATIENCE) == 5)
		if (slmpm_send(host, 1, there, 5, PATIENCE) < 0)
			break;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} parts[] = {{"messages", part_messages},
		     {"one-sided", part_one_sided},
		     {"checked", part_checked},
		     {"fetched", part_fetched},
		     {"fetched-or-not", part_fetched_or_not},
		     {"fifo", part_fifo},
		     {"receive-queue", part_receive_queue},
		     {"shared", part_shared},
		     {"copied", part_copied},
		     {"mirrored", part_mirrored},
		     {"echo", part_echo},
		     {"aggregate", part_means},
		     {"both", part_both}};

	bool known = false;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return be_child();
	actor_fill(here, 1, sizeof(here));
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	settle();
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (argc > 1 && !strcmp(argv[1], parts[i].name)) {
			parts[i].play();
			known = true;
		}
	}
	CHECK(argc < 2 || known, "no part is called %s", argv[1]);
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
