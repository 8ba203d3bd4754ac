/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hint is of one operation: where it asks for another link, what follows without one goes where
 * it went before, of every kind, near and over TCP, between spawned and connected processes.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define LONG   200000 /* a message of several packets, a loan in an area */
#define ROUNDS 8
#define BURST  20 /* operations without a hint behind one that has it */
#define OWN    15 /* segments of a bond's own packets, at the most; a burst has more */
#define ASK    7  /* handler */

static slmpm_peer peer,
	other;               /* OTHER: the connection's other end, of this process, too; or none */
static slmpm_rmem region[2]; /* opened without a hint, and with */
static unsigned char bytes[LONG];
static unsigned handled;

/* ---- who receives --------------------------------------------------------------------------- */

static void handle(const struct slmpm_am *am, void *arg)
{
	(void)am;
	(void)arg;
	handled++;
}

static void give_keys(slmpm_peer to)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	OK(slmpm_am_handler((slmpm_ctx){0}, ASK, handle, NULL));
	OK(slmpm_mem_alloc((slmpm_ctx){0}, LONG, SLMPM_READ_WRITE, &mem, &base));
	for (int i = 0; i < 2; i++) {
		OK(slmpm_mem_key(mem, to, SLMPM_READ_WRITE, &key));
		OK(slmpm_send(to, 1, &key, sizeof(key), PATIENCE));
	}
}

/* Answers each message with an empty one. */
static int answer(slmpm_peer host, char **words)
{
	static unsigned char got[LONG];
	int64_t n;

	(void)words;
	give_keys(host);
	while ((n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), NULL, PATIENCE)) >= 0)
		OK(slmpm_send(host, 1, NULL, 0, PATIENCE));
	return 0;
}

static void await_answer(void)
{
	static unsigned char got[LONG];

	if (other.id)
		CHECK(slmpm_recv(other, SLMPM_ANY_STREAM, got, sizeof(got), NULL, PATIENCE) >= 0,
		      "%s", slmpm_error_detail());
	else
		EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
}

/* ---- every operation ------------------------------------------------------------------------ */

static void await(slmpm_req req)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
}

static void send_it(slmpm_peer by, size_t len, uint32_t flags)
{
	const struct slmpm_iov piece = {bytes, len};
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};
	slmpm_req req;

	if (flags || len == LONG) {
		OK(slmpm_sendv(by, 2, &piece, 1, flags ? &how : NULL, &req));
		await_answer();
		await(req);
		return;
	}
	OK(slmpm_send(by, 2, bytes, len, PATIENCE));
	await_answer();
}

static void lend(slmpm_peer by, size_t len)
{
	void *buf;

	OK(slmpm_loan(by, 3, len, &buf, PATIENCE));
	memset(buf, 1, len);
	OK(slmpm_commit(by, buf, len, NULL));
	await_answer();
}

static void call(slmpm_peer by)
{
	unsigned before = handled;

	OK(slmpm_am(by, ASK, NULL, 0, bytes, 4000, NULL, NULL));
	OK(slmpm_send(by, 2, bytes, 8, PATIENCE)); /* behind it */
	await_answer();
	CHECK(!other.id || handled == before + 1, "not handled");
}

enum { SHORT, SEND, LARGE, CALL, LOAN, AREA, PUT, GET, ATOMIC, KINDS };

static void operate(int kind, bool hinted, slmpm_peer by, uint32_t flags)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = flags | SLMPM_REMOTE, .timeout_ms = PATIENCE};
	slmpm_rmem r = region[hinted && !flags];
	slmpm_req req;
	uint64_t old;

	switch (kind) {
	case SHORT: send_it(by, 8, flags); return;
	case SEND: send_it(by, 4000, flags); return;
	case LARGE: send_it(by, LONG, flags); return;
	case CALL: call(by); return;
	case LOAN: lend(by, 4000); return;
	case AREA: lend(by, LONG); return;
	case PUT: OK(slmpm_put(r, 0, bytes, 4000, &how, &req)); break;
	case GET: OK(slmpm_get(r, 0, bytes, 4000, &how, &req)); break;
	default: OK(slmpm_atomic(r, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, &how, &req));
	}
	await(req);
}

/* ---- where they go -------------------------------------------------------------------------- */

static uint64_t written(uint32_t link)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	OK(slmpm_link_query(peer, link, &info));
	CHECK(info.state == SLMPM_LINK_UP, "link %u does not stand", link);
	CHECK(info.used == (link == 0), "link %u is %sused", link, info.used ? "" : "not ");
	return info.written;
}

/* One with a hint, then some without. */
static void follow(int kind, int then, bool flags)
{
	slmpm_peer net = {peer.id | UINT64_C(2) << 24}; /* as found by the address of link 1 */
	uint64_t before, after;

	before = written(1);
	operate(kind, true, flags ? peer : net, flags ? SLMPM_ON_LINK(1) : 0);
	CHECK(written(1) > before, "kind %d did not follow its hint", kind);
	before = written(1);
	for (int i = 0; i < BURST; i++)
		operate(then, false, peer, 0);
	after = written(1);
	CHECK(after - before < OWN, "%llu segments by link 1 for kind %d behind a hint of kind %d",
	      (unsigned long long)(after - before), then, kind);
}

static bool takes_flags(int kind)
{
	return kind != CALL && kind != LOAN && kind != AREA;
}

static void open_regions(slmpm_peer from)
{
	struct slmpm_key key;

	for (uint64_t i = 0; i < 2; i++) {
		EXPECT(slmpm_recv(from, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
		OK(slmpm_mem_open((slmpm_peer){peer.id | 2 * i << 24}, &key, &region[i]));
	}
}

static void all_kinds(void)
{
	for (int kind = 0; kind < KINDS; kind++)
		for (int then = SEND; then < PUT; then++) {
			follow(kind, then, false);
			if (takes_flags(kind))
				follow(kind, then, true);
		}
}

static int spawned(void *unused)
{
	(void)unused;
	other.id = 0;
	peer = actor_spawn("answer", NULL, NULL);
	links_await();
	open_regions(peer);
	all_kinds();
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int connected(void *unused)
{
	(void)unused;
	actor_pair((slmpm_ctx){0}, &peer, &other);
	links_await();
	give_keys(other);
	open_regions(peer);
	all_kinds();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"answer", answer}, {NULL, NULL}};
	static const char *const both[][2] = {{"shm", "shm,tcp"}, {"tcp", "tcp,shm"}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_MODE_SPREAD", "60000000");
	for (size_t i = 0; i < 2; i++) {
		settings_set("SLMPM_FABRIC", both[i][0]);
		settings_set("SLMPM_LINKS", both[i][1]);
		settings_run("spawned", spawned, NULL);
		if (!i) /* who listens at shm: is connected over that first */
			settings_run("connected", connected, NULL);
	}
	return 0;
}
