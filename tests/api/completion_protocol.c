/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * What completions say of how an operation went, and why: of every operation, at both ends of it,
 * over both fabrics, with one-sided operations done directly, by packets, by active messages and by
 * tag, and with messages that are fetched.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LONG   (1u << 20)
#define NUMBER 3
#define BLANK  UINT64_C(0xaaaaaaaaaaaaaaaa)

static slmpm_ctx ctx;
static slmpm_peer a, b;
static unsigned char from[LONG], to[LONG], *there;
static slmpm_mem mem;
static slmpm_rmem rmem;
static slmpm_cq cq, landed;

struct ways {
	const char *fabric, *rma, *fetch;
	int put, get, atomic; /* enum slmpm_protocol */
	enum slmpm_reason one_sided, sent;
	int message; /* a long one's */
};

static const struct ways *now;

static void said(const struct slmpm_done *done, const char *what, uint32_t op, int protocol,
		 enum slmpm_reason reason)
{
	CHECK(done->status == 0 && done->op == op && done->protocol == protocol &&
		      done->reason == reason,
	      "%s, %s, %s: op %u (%d) by %s, %s", now->fabric, now->rma, what, done->op,
	      done->status, slmpm_protocol_name(done->protocol), slmpm_reason_name(done->reason));
	CHECK(done->reserved[0] == BLANK && done->reserved[1] == BLANK,
	      "%s: what is reserved is lost", what);
}

static void notified(slmpm_cq queue, const char *what, uint32_t op, int protocol,
		     enum slmpm_reason reason)
{
	struct slmpm_done done;

	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_cq_wait(queue, &done, 1, PATIENCE), 1);
	said(&done, what, op, protocol, reason);
}

static struct slmpm_how how_with(uint32_t flags)
{
	return (struct slmpm_how){
		.size = sizeof(struct slmpm_how), .flags = flags, .timeout_ms = PATIENCE, .cq = cq};
}

/* ---- messages ------------------------------------------------------------------------------- */

static void send_one(size_t len, uint32_t flags, enum slmpm_reason reason)
{
	const struct slmpm_how how = how_with(flags);
	const struct slmpm_iov piece = {from, len};

	OK(slmpm_sendv(a, 1, &piece, 1, &how, NULL));
	if (len < LONG && !(flags & SLMPM_MORE))
		notified(cq, "a send", SLMPM_OP_SEND, SLMPM_BY_SMT, reason);
}

static void receive(size_t len, int protocol)
{
	struct slmpm_done done;

	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_recv(b, 1, to, sizeof(to), &done, PATIENCE), len);
	said(&done, "a receive", SLMPM_OP_RECV, protocol, SLMPM_REASON_NONE);
}

static void short_ones(void)
{
	struct slmpm_iov room = {to, 64};
	const struct slmpm_how how = how_with(0);
	struct slmpm_done done;
	const void *held;

	send_one(8, 0, SLMPM_REASON_SHORT);
	receive(8, SLMPM_BY_SMT);
	send_one(8, 0, SLMPM_REASON_SHORT);
	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_probe(b, 1, &done, PATIENCE), 1);
	said(&done, "a probe", SLMPM_OP_RECV, SLMPM_BY_SMT, SLMPM_REASON_NONE);
	receive(8, SLMPM_BY_SMT);
	send_one(8, 0, SLMPM_REASON_SHORT);
	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_hold(b, 1, &held, &done, PATIENCE), 8);
	said(&done, "a hold", SLMPM_OP_RECV, SLMPM_BY_SMT, SLMPM_REASON_NONE);
	OK(slmpm_release(b, held));
	OK(slmpm_recvv(b, 1, &room, 1, &how, NULL));
	OK(slmpm_send(a, 1, from, 8, PATIENCE));
	notified(cq, "a posted receive", SLMPM_OP_RECV, SLMPM_BY_SMT, SLMPM_REASON_NONE);
	OK(slmpm_send(a, 1, from, 8, PATIENCE));
	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_recv_burst(b, 1, &room, 1, &done, PATIENCE), 1);
	said(&done, "a burst", SLMPM_OP_RECV, SLMPM_BY_SMT, SLMPM_REASON_NONE);
	memset(&done, 0xaa, sizeof(done)); /* what did not fit has come likewise */
	OK(slmpm_send(a, 1, from, 8, PATIENCE));
	EXPECT(slmpm_recv(b, 1, to, 3, &done, PATIENCE), -SLMPM_ETRUNC);
	done.status = 0;
	said(&done, "a short receive", SLMPM_OP_RECV, SLMPM_BY_SMT, SLMPM_REASON_NONE);
}

/* Built in place: in a packet, and in an area. */
static void loans(void)
{
	static const size_t lengths[] = {8, 300000};
	const struct slmpm_how how = how_with(0);
	void *loan;

	for (int i = 0; i < 2; i++) {
		OK(slmpm_loan(a, 1, lengths[i], &loan, PATIENCE));
		memset(loan, 1, lengths[i]);
		OK(slmpm_commit(a, loan, lengths[i], &how));
		notified(cq, "a loan", SLMPM_OP_SEND, SLMPM_BY_SMT, SLMPM_REASON_SHORT);
		receive(lengths[i], SLMPM_BY_SMT);
	}
}

/* Staged, and received one by one and together. */
static void bundled(void)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_MORE, .timeout_ms = PATIENCE};
	struct slmpm_iov piece = {from, 8}, rooms[2] = {{to, 64}, {to + 64, 64}};
	struct slmpm_done done[2];

	for (int i = 0; i < 4; i++) {
		how.flags = i < 3 ? SLMPM_MORE : 0;
		OK(slmpm_sendv(a, 1, &piece, 1, &how, NULL));
	}
	receive(8, SLMPM_BY_SMT);
	receive(8, SLMPM_BY_SMT);
	memset(done, 0xaa, sizeof(done));
	EXPECT(slmpm_recv_burst(b, 1, rooms, 2, done, PATIENCE), 2);
	for (int i = 0; i < 2; i++)
		said(&done[i], "one of a burst", SLMPM_OP_RECV, SLMPM_BY_SMT, SLMPM_REASON_NONE);
}

static void long_ones(void)
{
	const struct slmpm_iov room = {to, sizeof(to)};
	struct slmpm_done done;
	const void *held;
	slmpm_req req;

	send_one(LONG, 0, now->sent);
	receive(LONG, now->message);
	notified(cq, "a long send", SLMPM_OP_SEND, now->message, now->sent);
	OK(slmpm_recvv(b, 1, &room, 1, NULL, &req));
	send_one(LONG, 0, now->sent);
	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	said(&done, "a long posted receive", SLMPM_OP_RECV, now->message, SLMPM_REASON_NONE);
	notified(cq, "a long send", SLMPM_OP_SEND, now->message, now->sent);
	send_one(LONG, 0, now->sent);
	memset(&done, 0xaa, sizeof(done));
	EXPECT(slmpm_hold(b, 1, &held, &done, PATIENCE), LONG);
	said(&done, "a long hold", SLMPM_OP_RECV, now->message, SLMPM_REASON_NONE);
	OK(slmpm_release(b, held));
	notified(cq, "a long send", SLMPM_OP_SEND, now->message, now->sent);
}

static void count(const struct slmpm_am *am, void *arg)
{
	(void)am;
	++*(int *)arg;
}

static void active(void)
{
	struct slmpm_how how = how_with(0);
	int handled = 0;

	OK(slmpm_am_handler(ctx, NUMBER, count, &handled));
	OK(slmpm_am(a, NUMBER, NULL, 0, from, 8, &how, NULL));
	notified(cq, "an active message", SLMPM_OP_AM, SLMPM_BY_SMT, SLMPM_REASON_SHORT);
	OK(slmpm_am(a, NUMBER, NULL, 0, from, LONG, &how, NULL));
	notified(cq, "a long active message", SLMPM_OP_AM, SLMPM_BY_SMT, SLMPM_REASON_CALL);
	how = how_with(SLMPM_REMOTE);
	OK(slmpm_am(a, NUMBER, NULL, 0, from, 8, &how, NULL));
	notified(cq, "a confirmed active message", SLMPM_OP_AM, SLMPM_BY_SMT, SLMPM_REASON_CALL);
	EXPECT(handled, 3);
}

/* ---- one-sided ------------------------------------------------------------------------------ */

static void one_sided(size_t len)
{
	struct slmpm_how how = how_with(0);
	uint64_t old;

	OK(slmpm_put(rmem, 0, from, len, &how, NULL));
	notified(cq, "a put", SLMPM_OP_PUT, now->put, now->one_sided);
	OK(slmpm_get(rmem, 0, to, len, &how, NULL));
	notified(cq, "a get", SLMPM_OP_GET, now->get, now->one_sided);
	OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, &how, NULL));
	notified(cq, "an atomic operation", SLMPM_OP_ATOMIC, now->atomic, now->one_sided);
	how = how_with(SLMPM_REMOTE);
	OK(slmpm_put(rmem, 0, from, len, &how, NULL));
	notified(cq, "a remote put", SLMPM_OP_PUT, now->put, now->one_sided);
	how = how_with(SLMPM_NOTIFY);
	OK(slmpm_put(rmem, 0, from, len, &how, NULL));
	notified(cq, "a notified put", SLMPM_OP_PUT, now->put, now->one_sided);
	notified(landed, "a notification", SLMPM_OP_NOTIFY, now->put, SLMPM_REASON_NONE);
}

static void work(void)
{
	struct slmpm_wq_options options = {.size = sizeof(options), .cq = cq};
	struct slmpm_iov piece = {from, 8}, back = {to, 8};
	const struct slmpm_wr all[] = {
		{.size = sizeof(all[0]),
		 .op = SLMPM_OP_PUT,
		 .rmem = rmem,
		 .iov = &piece,
		 .iov_count = 1},
		{.size = sizeof(all[0]),
		 .op = SLMPM_OP_GET,
		 .rmem = rmem,
		 .iov = &back,
		 .iov_count = 1},
	};
	slmpm_wq wq;

	OK(slmpm_wq_create(ctx, &options, &wq));
	EXPECT(slmpm_post(wq, all, 2), 2);
	notified(cq, "a queue's put", SLMPM_OP_PUT, now->put, now->one_sided);
	notified(cq, "a queue's get", SLMPM_OP_GET, now->get, now->one_sided);
	OK(slmpm_wq_destroy(wq));
}

/* Its bytes come as a message; its store is a copy here. */
static void fifo(size_t len)
{
	const struct slmpm_how put = how_with(SLMPM_FIFO | SLMPM_REMOTE), store = how_with(0);
	struct slmpm_fifo e;

	OK(slmpm_put(rmem, 0, from, len, &put, NULL));
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_fifo_store(&e, e.mem, e.offset, &store, NULL));
	notified(cq, "a store", SLMPM_OP_STORE, SLMPM_BY_SMT, SLMPM_REASON_NONE);
	notified(cq, "a put into a FIFO", SLMPM_OP_PUT, SLMPM_BY_SMT, SLMPM_REASON_CALL);
}

static int all_of_them(void *arg)
{
	struct slmpm_key key;
	const slmpm_ctr no = {0};
	void *base;

	now = arg;
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_cq_create(ctx, &landed));
	OK(slmpm_mem_alloc(ctx, LONG, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_notify(mem, no, landed));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	short_ones();
	loans();
	bundled();
	long_ones();
	active();
	one_sided(8);
	one_sided(LONG);
	work();
	fifo(8);
	fifo(LONG);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

#define PUT     SLMPM_BY_PUT
#define GET     SLMPM_BY_GET
#define REQUEST SLMPM_BY_REQUEST
#define SMT     SLMPM_BY_SMT
#define WHY(w)  SLMPM_REASON_##w

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};
	static const struct ways all[] = {
		{"shm", "auto", "never", PUT, GET, PUT, WHY(SHORT), WHY(CALL), SMT},
		{"shm", "auto", "always", PUT, GET, PUT, WHY(SHORT), WHY(SETTING), SLMPM_BY_RGET},
		{"shm", "ring", "never", REQUEST, REQUEST, REQUEST, WHY(SETTING), WHY(CALL), SMT},
		{"shm", "am", "never", REQUEST, REQUEST, REQUEST, WHY(SETTING), WHY(CALL), SMT},
		{"shm", "tag", "never", REQUEST, REQUEST, REQUEST, WHY(SETTING), WHY(CALL), SMT},
		{"tcp", "auto", "always", REQUEST, REQUEST, REQUEST, WHY(ONLY), WHY(CALL), SMT},
		{"tcp", "am", "never", REQUEST, REQUEST, REQUEST, WHY(SETTING), WHY(CALL), SMT},
		{"tcp", "tag", "never", REQUEST, REQUEST, REQUEST, WHY(SETTING), WHY(CALL), SMT},
	};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	settings_set("SLMPM_ATTACH", "y");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		settings_set("SLMPM_FABRIC", all[i].fabric);
		settings_set("SLMPM_RMA", all[i].rma);
		settings_set("SLMPM_FETCH", all[i].fetch);
		settings_run(all[i].fabric, all_of_them, &all[i]);
	}
	return 0;
}
