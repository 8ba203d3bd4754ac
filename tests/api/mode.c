/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the selector does to real operations: a peer that does not read fills its ring, a busy engine
 * sends others through it, and each time the choice moves, but for strict ones; what completions,
 * requests and peers say about it; wishes; settings that decide for all.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define KIB(n) ((size_t)(n) << 10)
#define MANY   64

static unsigned char bytes[KIB(1024)];

/* ---- what is said of a request -------------------------------------------------------------- */

struct sent {
	slmpm_req req;
	int protocol;
	enum slmpm_reason reason;
};

static void expect_mode(const struct slmpm_mode *mode, const char *what, int protocol,
			enum slmpm_reason reason)
{
	CHECK(mode->protocol == protocol && mode->reason == reason, "%s: %s (%s), not %s (%s)",
	      what, slmpm_reason_name((int)mode->reason), "chosen", slmpm_reason_name((int)reason),
	      "expected");
}

static void send_it(slmpm_peer peer, size_t len, uint32_t flags, struct sent *sent)
{
	static uint32_t number;
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = flags, .imm = number + 1, .timeout_ms = -1};
	const struct slmpm_iov iov = {bytes, len};

	OK(slmpm_sendv(peer, 1, &iov, 1, &how, &sent->req));
	number++;
}

/* The request has begun, and goes so. */
static void send_so(slmpm_peer peer, size_t len, uint32_t flags, int protocol,
		    enum slmpm_reason reason, struct sent *sent)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	send_it(peer, len, flags, sent);
	OK(slmpm_req_mode(sent->req, &mode));
	CHECK(mode.op == SLMPM_OP_SEND && mode.fabric[0], "a message over a fabric");
	expect_mode(&mode, "under way", protocol, reason);
	sent->protocol = protocol;
	sent->reason = reason;
}

static void end_so(struct sent *sent)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	struct slmpm_done done;

	EXPECT(slmpm_wait(&sent->req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0, "ended with %d", done.status);
	mode.protocol = done.protocol;
	mode.reason = done.reason;
	expect_mode(&mode, "done", sent->protocol, sent->reason);
}

/* ---- a slow reader -------------------------------------------------------------------------- */

#define PAUSE 2 /* a stream */

/* Takes what comes, in its order and whole; stops for a while when told to. */
static int read_slowly(slmpm_peer host, char **words)
{
	static unsigned char got[KIB(64)];
	struct slmpm_done done;

	(void)words;
	for (uint32_t next = 0;;) {
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE);

		if (n == -SLMPM_ECLOSED)
			return 0;
		CHECK(n >= 0, "%s", slmpm_error_detail());
		if (done.stream == PAUSE)
			CHECK(raise(SIGSTOP) == 0, "not stopped");
		else if (done.imm) /* some may have been refused */
			CHECK(done.imm > next && actor_filled(got, 7, (size_t)n),
			      "message %u behind number %u", done.imm, next);
		next = done.imm ? done.imm : next;
	}
}

static void pause_reader(slmpm_peer reader, int pid)
{
	OK(slmpm_send(reader, PAUSE, "p", 1, PATIENCE));
	actor_await_state(pid, "T");
}

/* Is there fetching at all? A strict wish for it says so. */
static bool can_fetch(slmpm_peer reader)
{
	struct slmpm_done done;
	struct sent s;

	send_it(reader, 100, SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_STRICT, &s);
	EXPECT(slmpm_wait(&s.req, 1, &done, PATIENCE), 0);
	if (done.status == 0)
		CHECK(done.protocol == SLMPM_BY_RGET && done.reason == SLMPM_REASON_STRICT,
		      "strict");
	else
		CHECK(done.status == -SLMPM_ENOTSUP && strstr(slmpm_error_detail(), "protocol"),
		      "%d: %s", done.status, slmpm_error_detail());
	return done.status == 0;
}

static slmpm_peer begin_reader(int *pid)
{
	slmpm_peer reader = actor_spawn("reader", NULL, NULL);
	struct slmpm_peer_info info = {.size = sizeof(info)};

	actor_fill(bytes, 7, sizeof(bytes));
	OK(slmpm_send(reader, 1, bytes, 8, PATIENCE));
	OK(slmpm_peer_query(reader, &info));
	*pid = info.pid;
	return reader;
}

static void end_reader(slmpm_peer reader)
{
	OK(slmpm_close(reader, PATIENCE));
	actor_join(reader, 0);
}

/* Messages of 16 KiB, below the eager limit, fill the ring beyond its half; those of 32 KiB show what
 * is chosen then. */
static int fill_ring(void *unused)
{
	uint32_t smt = SLMPM_VIA(SLMPM_BY_SMT);
	struct sent fill[MANY], s[6];
	slmpm_peer reader;
	bool fetches;
	int pid, past, full, wished;

	(void)unused;
	reader = begin_reader(&pid);
	fetches = can_fetch(reader);
	past = fetches ? SLMPM_BY_RGET : SLMPM_BY_SMT;
	full = fetches ? SLMPM_REASON_RING : SLMPM_REASON_CALL;
	wished = fetches ? SLMPM_REASON_RING : SLMPM_REASON_WISH;
	pause_reader(reader, pid);
	send_so(reader, KIB(32), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[0]);
	for (int i = 0; i < 40; i++)
		send_so(reader, KIB(16), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &fill[i]);
	send_so(reader, KIB(32), 0, past, (enum slmpm_reason)full, &s[1]);
	send_so(reader, KIB(32), smt, past, (enum slmpm_reason)wished, &s[2]);
	send_so(reader, KIB(32), smt | SLMPM_STRICT, SLMPM_BY_SMT, SLMPM_REASON_STRICT, &s[3]);
	send_so(reader, KIB(32), SLMPM_STRICT, SLMPM_BY_SMT, SLMPM_REASON_STRICT, &s[4]);
	send_so(reader, KIB(16), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[5]); /* too short */
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < 6; i++)
		end_so(&s[i]);
	for (int i = 0; i < 40; i++)
		end_so(&fill[i]);
	send_so(reader, KIB(32), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[0]);
	end_so(&s[0]);
	end_reader(reader);
	return 0;
}

/* Credit for few: the others queue up, and when it comes back some go past the ring. */
static int fill_queue(void *unused)
{
	struct sent s[MANY];
	struct slmpm_done done;
	slmpm_peer reader;
	int pid, past = 0;
	bool fetches;

	(void)unused;
	reader = begin_reader(&pid);
	fetches = can_fetch(reader);
	pause_reader(reader, pid);
	for (int i = 0; i < MANY; i++)
		send_it(reader, KIB(16) + (size_t)(i % 2) * KIB(8), 0, &s[i]);
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < MANY; i++) {
		EXPECT(slmpm_wait(&s[i].req, 1, &done, PATIENCE), 0);
		CHECK(done.status == 0, "ended with %d", done.status);
		past += done.reason == SLMPM_REASON_QUEUE && done.protocol == SLMPM_BY_RGET;
	}
	CHECK(!fetches || past, "none has gone past the queue");
	end_reader(reader);
	return 0;
}

/* ---- links ---------------------------------------------------------------------------------- */

static bool mixed;    /* link 0 is over shared memory, link 1 over TCP */
static bool over_tcp; /* both: what is long fills no ring then */

static void await_link(void)
{
	struct slmpm_event event = {.size = sizeof(event)};

	do
		EXPECT(slmpm_next_event((slmpm_ctx){0}, &event, PATIENCE), 1);
	while (event.type != SLMPM_EVENT_LINK_UP);
}

static void expect_link(const struct sent *sent, uint32_t link)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_req_mode(sent->req, &mode));
	CHECK(mode.link == link, "by link %u, not %u", mode.link, link);
	if (mixed)
		CHECK(!strcmp(mode.fabric, link ? "tcp" : "shm"), "over %s", mode.fabric);
}

/* Once the reader has told what it has read: with each lap of the ring at the latest. */
static void come_back(slmpm_peer reader)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	int64_t until = actor_now_ms() + PATIENCE;
	struct sent s;

	do {
		send_it(reader, KIB(24), 0, &s);
		OK(slmpm_req_mode(s.req, &mode));
		s.protocol = mode.protocol;
		s.reason = (enum slmpm_reason)mode.reason;
		end_so(&s);
	} while (mode.link && actor_now_ms() < until);
	CHECK(!mode.link, "it stays on link %u", mode.link);
}

/* Past one whose ring is full. */
static void leave_full_link(slmpm_peer reader, int pid)
{
	struct sent fill[MANY], s[2];

	pause_reader(reader, pid);
	for (int i = 0; i < 40; i++) {
		send_so(reader, KIB(16), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &fill[i]);
		expect_link(&fill[i], 0);
	}
	send_so(reader, KIB(24), 0, SLMPM_BY_SMT, SLMPM_REASON_LINK, &s[0]);
	expect_link(&s[0], 1);
	send_so(reader, KIB(24), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[1]); /* it stays there */
	expect_link(&s[1], 1);
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < 40; i++)
		end_so(&fill[i]);
	end_so(&s[0]);
	end_so(&s[1]);
	come_back(reader);
}

/* By the link that is asked for, and by the default one; always in order. */
static int change_link(void *unused)
{
	const uint32_t strict = SLMPM_STRICT;
	struct slmpm_done done;
	struct sent s[6];
	slmpm_peer reader;
	int pid;

	(void)unused;
	reader = begin_reader(&pid);
	await_link();
	for (uint32_t i = 0; i < 6; i++) {
		send_so(reader, 100, SLMPM_ON_LINK(i % 2), SLMPM_BY_SMT, SLMPM_REASON_WISH, &s[i]);
		expect_link(&s[i], i % 2);
		end_so(&s[i]);
	}
	for (uint32_t i = 0; i < 6; i++) {
		send_it(reader, 100, SLMPM_ON_LINK(i / 2) | strict, &s[i]);
		EXPECT(slmpm_wait(&s[i].req, 1, &done, PATIENCE), 0);
		CHECK(done.status == (i / 2 < 2 ? 0 : -SLMPM_ENOTSUP), "%d", done.status);
	}
	send_so(reader, 8, SLMPM_ON_LINK(0) | strict, SLMPM_BY_SMT, SLMPM_REASON_STRICT, &s[0]);
	end_so(&s[0]);
	OK(slmpm_link_use(reader, 1));
	send_so(reader, 100, SLMPM_VIA(SLMPM_BY_SMT), SLMPM_BY_SMT, SLMPM_REASON_WISH, &s[0]);
	expect_link(&s[0], 1); /* the default one now */
	end_so(&s[0]);
	OK(slmpm_link_use(reader, 0));
	send_so(reader, 100, SLMPM_VIA(SLMPM_BY_SMT), SLMPM_BY_SMT, SLMPM_REASON_WISH, &s[0]);
	expect_link(&s[0], 0);
	end_so(&s[0]);
	OK(slmpm_link_use(reader, SLMPM_LINK_ANY));
	if (!over_tcp)
		leave_full_link(reader, pid);
	end_reader(reader);
	return 0;
}

/* ---- one-sided ------------------------------------------------------------------------------ */

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *there;

/* False: nothing is mapped over this fabric. */
static bool open_pair(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	void *base;

	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, sizeof(bytes), SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	actor_fill(bytes, 5, sizeof(bytes));
	return info.mapped;
}

static void close_pair(void)
{
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

static void put_it(size_t len, uint32_t flags, slmpm_req *req)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};

	OK(slmpm_put(rmem, 0, bytes, len, &how, req));
}

static void put_so(size_t len, uint32_t flags, int protocol, enum slmpm_reason reason,
		   struct sent *sent)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	put_it(len, flags, &sent->req);
	OK(slmpm_req_mode(sent->req, &mode));
	CHECK(mode.op == SLMPM_OP_PUT, "a put");
	expect_mode(&mode, "under way", protocol, reason);
	sent->protocol = protocol;
	sent->reason = reason;
}

/* Transfers wait in the engine, which progress alone moves; beyond four others go by the ring. */
static int busy_engine(void *unused)
{
	uint32_t strict = SLMPM_STRICT;
	struct sent s[10];

	(void)unused;
	if (!open_pair()) {
		close_pair();
		return 0;
	}
	for (int i = 0; i < 5; i++)
		put_so(KIB(100), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE, &s[i]);
	put_so(KIB(100), 0, SLMPM_BY_REQUEST, SLMPM_REASON_DMA, &s[5]);
	put_so(KIB(300), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE, &s[6]); /* too long for the ring */
	put_so(KIB(100), strict, SLMPM_BY_PUT, SLMPM_REASON_STRICT, &s[7]);
	put_so(KIB(100), SLMPM_VIA(SLMPM_BY_PUT), SLMPM_BY_REQUEST, SLMPM_REASON_DMA, &s[8]);
	put_so(8, 0, SLMPM_BY_PUT, SLMPM_REASON_SHORT, &s[9]); /* the engine is not asked */
	for (int i = 0; i < 10; i++)
		end_so(&s[i]);
	OK(slmpm_flush(a, PATIENCE));
	CHECK(actor_filled(there, 5, KIB(300)), "what was put");
	put_so(KIB(100), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE, &s[0]);
	end_so(&s[0]);
	close_pair();
	return 0;
}

/* What the flags ask for, of puts, gets and atomic operations; and what they cannot have. */
static int wish(void *unused)
{
	const uint32_t ring = SLMPM_VIA(SLMPM_BY_REQUEST), strict = SLMPM_STRICT;
	struct slmpm_how how = {.size = sizeof(how), .flags = ring, .timeout_ms = PATIENCE};
	struct slmpm_mode mode = {.size = sizeof(mode)};
	bool maps = open_pair();
	uint64_t old = 0, was;
	struct slmpm_done done;
	slmpm_cq cq;

	(void)unused;
	OK(slmpm_peer_mode(a, &mode));
	CHECK(mode.protocol == -1 && mode.op == 0 && mode.reason == SLMPM_REASON_NONE, "none yet");
	put_it(8, ring | SLMPM_REMOTE, NULL);
	OK(slmpm_peer_mode(a, &mode));
	CHECK(mode.op == SLMPM_OP_PUT, "operation %u", mode.op);
	expect_mode(&mode, "put", SLMPM_BY_REQUEST, SLMPM_REASON_WISH);
	CHECK(!memcmp(there, bytes, 8), "bytes");
	put_it(8, SLMPM_VIA(SLMPM_BY_SMT) | strict, NULL);
	OK(slmpm_peer_mode(a, &mode));
	expect_mode(&mode, "strict", SLMPM_BY_REQUEST, SLMPM_REASON_STRICT);
	memcpy(&was, there, sizeof(was));
	OK(slmpm_get(rmem, 0, &old, sizeof(old), &how, NULL));
	CHECK(old == was, "got");
	OK(slmpm_peer_mode(a, &mode));
	CHECK(mode.op == SLMPM_OP_GET, "operation %u", mode.op);
	expect_mode(&mode, "get", SLMPM_BY_REQUEST, SLMPM_REASON_WISH);
	OK(slmpm_atomic(rmem, 0, SLMPM_SWAP, 64, 77, 0, &old, &how, NULL));
	CHECK(old == was, "swapped");
	OK(slmpm_get(rmem, 0, &old, sizeof(old), NULL, NULL));
	CHECK(old == 77, "in its place");

	OK(slmpm_cq_create(ctx, &cq));
	how = (struct slmpm_how){.size = sizeof(how), .flags = ring, .cq = cq};
	OK(slmpm_put(rmem, 0, bytes, 8, &how, NULL));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.protocol == SLMPM_BY_REQUEST && done.reason == SLMPM_REASON_WISH, "queued");
	OK(slmpm_cq_destroy(cq));

	how = (struct slmpm_how){.size = sizeof(how), .timeout_ms = PATIENCE};
	how.flags = SLMPM_VIA(SLMPM_BY_RGET) | strict; /* what no put can have */
	REFUSED(slmpm_put(rmem, 0, bytes, 8, &how, NULL), SLMPM_ENOTSUP, "protocol");
	how.flags = SLMPM_VIA(SLMPM_BY_PUT) | strict;
	if (maps)
		OK(slmpm_put(rmem, 0, bytes, 8, &how, NULL));
	else
		REFUSED(slmpm_put(rmem, 0, bytes, 8, &how, NULL), SLMPM_ENOTSUP, "protocol");
	how.flags = SLMPM_VIA(SLMPM_PROTOCOLS);
	REFUSED(slmpm_put(rmem, 0, bytes, 8, &how, NULL), SLMPM_EINVAL, "flags");
	REFUSED(slmpm_sendv(a, 1, &(struct slmpm_iov){bytes, 8}, 1, &how, NULL), SLMPM_EINVAL,
		"flags");
	how.flags = SLMPM_FIFO | ring;
	REFUSED(slmpm_put(rmem, 0, bytes, 8, &how, NULL), SLMPM_EINVAL, "flags");
	how.flags = SLMPM_VIA(SLMPM_BY_GET) | strict; /* nor a message */
	REFUSED(slmpm_sendv(a, 1, &(struct slmpm_iov){bytes, 8}, 1, &how, NULL), SLMPM_ENOTSUP,
		"protocol");
	mode.size = 4;
	REFUSED(slmpm_peer_mode(a, &mode), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_peer_mode(a, NULL), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_req_mode((slmpm_req){0}, &mode), SLMPM_EINVAL, ".size");
	mode.size = sizeof(mode);
	EXPECT(slmpm_req_mode((slmpm_req){0}, &mode), -SLMPM_EHANDLE);
	EXPECT(slmpm_peer_mode((slmpm_peer){12345}, &mode), -SLMPM_EHANDLE);
	close_pair();
	return 0;
}

/* SLMPM_MODE decides for all that asks for nothing. */
static int forced(void *way)
{
	bool smt = !strcmp(way, "smt"), maps = open_pair();
	struct slmpm_mode mode = {.size = sizeof(mode)};

	put_it(KIB(64), 0, NULL);
	OK(slmpm_flush(a, PATIENCE));
	CHECK(actor_filled(there, 5, KIB(64)), "bytes");
	OK(slmpm_peer_mode(a, &mode));
	if (smt)
		expect_mode(&mode, "put", SLMPM_BY_REQUEST, SLMPM_REASON_SETTING);
	put_it(8, SLMPM_VIA(SLMPM_BY_PUT), NULL);
	OK(slmpm_peer_mode(a, &mode));
	expect_mode(&mode, "wish", maps ? SLMPM_BY_PUT : SLMPM_BY_REQUEST,
		    maps ? SLMPM_REASON_WISH : SLMPM_REASON_ONLY);
	close_pair();
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void run(const char *what, int (*body)(void *), void *arg)
{
	printf("%s\n", what);
	CHECK(child_run(body, arg, 10 * (unsigned)actor_slow()) == 0, "%s: see above", what);
}

static void set(const char *name, const char *value)
{
	CHECK(setenv(name, value, 1) == 0, "setenv");
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", read_slowly}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	set("SLMPM_MODE_BULK", "20k");
	set("SLMPM_EAGER_MAX", "16k");
	set("SLMPM_MODE_RING", "50");
	run("a full ring", fill_ring, NULL);
	set("SLMPM_FETCH", "never");
	set("SLMPM_LINKS", "2");
	set("SLMPM_LINKS_AFTER", "0");
	set("SLMPM_MODE_LINK", "any");
	over_tcp = getenv("SLMPM_FABRIC") && !strcmp(getenv("SLMPM_FABRIC"), "tcp");
	run("links", change_link, NULL);
	set("SLMPM_LINKS", "shm,tcp");
	mixed = true;
	if (!over_tcp)
		run("links of two fabrics", change_link, NULL);
	set("SLMPM_FETCH", "auto");
	set("SLMPM_LINKS", "1");
	set("SLMPM_MODE_RING", "101");
	set("SLMPM_MODE_QUEUE", "4");
	set("SLMPM_EAGER_CREDIT", "64k");
	run("a long queue", fill_queue, NULL);
	set("SLMPM_MODE_DMA", "4");
	set("SLMPM_ENGINE", "inline");
	set("SLMPM_ENGINE_MIN", "64k");
	run("a busy engine", busy_engine, NULL);
	set("SLMPM_ENGINE", "none");
	run("wishes", wish, NULL);
	set("SLMPM_MODE", "smt");
	run("all by SMT", forced, (void *)(uintptr_t) "smt");
	set("SLMPM_MODE", "dma");
	run("all by DMA", forced, (void *)(uintptr_t) "dma");
	return 0;
}
