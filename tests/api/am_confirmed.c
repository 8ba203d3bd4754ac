/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * Active messages with SLMPM_REMOTE: done when the handler has run and its replies have come;
 * without handler, too long, given up or cut off by the peer's end their sender learns that, by
 * every way in which an end is told.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LONGEST (8u << 20)
#define NUMBER  9
#define REPLY   10
#define NOBODYS 0x4711

static const slmpm_ctx none;
static slmpm_ctx ctx;
static slmpm_peer a, b;
static unsigned char data[LONGEST], head[SLMPM_AM_HEAD_MAX];

enum way { BLOCKING, BY_REQUEST, BY_COUNTER, BY_QUEUE, BY_WORK, WAYS };

/* What a message of HEAD_LEN and LEN bytes ends with. */
static int by_completion(slmpm_cq cq, uint16_t id, size_t len)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.op == SLMPM_OP_AM && done.len == len && done.stream == id &&
		      done.peer.id == a.id && done.protocol == SLMPM_BY_SMT,
	      "op %u, %llu bytes for %u by %u", done.op, (unsigned long long)done.len, done.stream,
	      done.protocol);
	OK(slmpm_cq_destroy(cq));
	return done.status;
}

static int by_work(uint16_t id, size_t head_len, size_t len)
{
	struct slmpm_wq_options options = {.size = sizeof(options)};
	struct slmpm_iov piece = {data, len};
	struct slmpm_wr wr = {
		.size = sizeof(wr),
		.op = SLMPM_OP_AM,
		.peer = a,
		.flags = SLMPM_REMOTE,
		.stream = id,
		.iov = &piece,
		.iov_count = 1,
		.head = head,
		.head_len = (uint32_t)head_len,
	};
	struct slmpm_done done;
	slmpm_wq wq;

	OK(slmpm_cq_create(ctx, &options.cq));
	OK(slmpm_wq_create(ctx, &options, &wq));
	EXPECT(slmpm_post(wq, &wr, 1), 1);
	EXPECT(slmpm_cq_wait(options.cq, &done, 1, PATIENCE), 1);
	CHECK(done.len == len && done.stream == id, "%llu bytes for %u",
	      (unsigned long long)done.len, done.stream);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_cq_destroy(options.cq));
	return done.status;
}

static int confirmed(enum way way, uint16_t id, size_t head_len, size_t len)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};
	struct slmpm_done done;
	slmpm_req req;
	int rc;

	switch (way) {
	case BY_REQUEST:
		OK(slmpm_am(a, id, head, head_len, data, len, &how, &req));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.len == len && done.stream == id, "%llu bytes for %u",
		      (unsigned long long)done.len, done.stream);
		return done.status;
	case BY_COUNTER:
		OK(slmpm_ctr_create(ctx, &how.ctr));
		OK(slmpm_am(a, id, head, head_len, data, len, &how, NULL));
		rc = slmpm_ctr_wait(how.ctr, SLMPM_ALL, PATIENCE);
		OK(slmpm_ctr_destroy(how.ctr));
		return rc;
	case BY_QUEUE:
		OK(slmpm_cq_create(ctx, &how.cq));
		OK(slmpm_am(a, id, head, head_len, data, len, &how, NULL));
		return by_completion(how.cq, id, len);
	case BY_WORK: return by_work(id, head_len, len);
	default: return slmpm_am(a, id, head, head_len, data, len, &how, NULL);
	}
}

/* ---- what arrives --------------------------------------------------------------------------- */

struct seen {
	uint64_t count;
	size_t head_len, data_len;
	bool right;
};

static void inspect(const struct slmpm_am *am, void *arg)
{
	struct seen *s = arg;

	s->count++;
	s->head_len = am->head_len;
	s->data_len = am->data_len;
	s->right =
		actor_filled(am->head, 1, am->head_len) && actor_filled(am->data, 2, am->data_len);
}

static void reply(const struct slmpm_am *am, void *arg)
{
	inspect(am, arg);
	OK(slmpm_am_reply(am, REPLY, NULL, 0, NULL, 0));
}

static void count(const struct slmpm_am *am, void *arg)
{
	(void)am;
	++*(uint64_t *)arg;
}

static const size_t sizes[] = {0, 8, 4096, 16368, 16384, 70000, 262144, 400000, LONGEST};
static const size_t heads[] = {0, 1, 16, SLMPM_AM_HEAD_MAX};
#define EACH(i, all) for (size_t i = 0; i < sizeof(all) / sizeof(*(all)); i++)

/* Its handler has run, and what that replied has come, when it is done. */
static void handled(void)
{
	struct seen seen = {0, 0, 0, false};
	uint64_t replies = 0, n = 0;

	OK(slmpm_am_handler(ctx, NUMBER, reply, &seen));
	OK(slmpm_am_handler(ctx, REPLY, count, &replies));
	EACH(i, sizes)
	EACH(j, heads)
	{
		OK(confirmed(n % WAYS, NUMBER, heads[j], sizes[i]));
		CHECK(seen.count == ++n && replies == n, "%llu handled, %llu replies of %llu",
		      (unsigned long long)seen.count, (unsigned long long)replies,
		      (unsigned long long)n);
		CHECK(seen.right && seen.head_len == heads[j] && seen.data_len == sizes[i],
		      "%zu and %zu bytes are not what came", heads[j], sizes[i]);
	}
	OK(slmpm_am_handler(ctx, REPLY, NULL, NULL));
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

static void unhandled(void)
{
	uint64_t n = 0;

	EACH(i, sizes)
	for (enum way way = BLOCKING; way < WAYS; way++, n++)
		EXPECT(confirmed(way, NOBODYS, heads[n % 4], sizes[i]), -SLMPM_ENOENT);
	REFUSED(confirmed(BLOCKING, NOBODYS, 0, 8), SLMPM_ENOENT, "handler 0x4711");
	CHECK(strncmp(slmpm_error_detail(), "peer ", 5) == 0 ||
		      strstr(slmpm_error_detail(), " has no"),
	      "who? \"%s\"", slmpm_error_detail());
	EXPECT(actor_stats(a).am_refused, n + 1);
	EXPECT(actor_stats(b).am_unhandled, n + 1);
	/* Who does not ask hears nothing. */
	OK(slmpm_am(a, NOBODYS, NULL, 0, data, 8, NULL, NULL));
	actor_settle(a, b);
	EXPECT(actor_stats(a).am_refused, n + 1);
	EXPECT(actor_stats(b).am_unhandled, n + 2);
}

/* Taken away while a long one is on its way; one that comes too late does not have it either. */
static void removed(bool comes)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};
	uint64_t before = actor_stats(b).received_packets;
	struct seen seen = {0, 0, 0, false};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_am_handler(ctx, NUMBER, comes ? NULL : inspect, &seen));
	OK(slmpm_am(a, NUMBER, head, 5, data, LONGEST, &how, &req));
	while (actor_stats(b).received_packets == before)
		CHECK(slmpm_progress(ctx) >= 0, "%s", slmpm_error_detail());
	EXPECT(slmpm_test(&req, &done), 0);
	OK(slmpm_am_handler(ctx, NUMBER, comes ? inspect : NULL, &seen));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_ENOENT);
	EXPECT(seen.count, 0);
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

/* What would block is refused inside a handler, and has not gone; what does not, goes. */
static slmpm_req inner;

static void ask_back(const struct slmpm_am *am, void *arg)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};

	(void)arg;
	REFUSED(slmpm_am(am->peer, REPLY, NULL, 0, "x", 1, &how, NULL), SLMPM_ESTATE, "handler");
	OK(slmpm_am(am->peer, REPLY, NULL, 0, "x", 1, &how, &inner));
}

static void inside(void)
{
	struct slmpm_done done;
	uint64_t replies = 0;

	OK(slmpm_am_handler(ctx, NUMBER, ask_back, NULL));
	OK(slmpm_am_handler(ctx, REPLY, count, &replies));
	OK(confirmed(BLOCKING, NUMBER, 0, 8));
	EXPECT(slmpm_wait(&inner, 1, &done, PATIENCE), 0);
	OK(done.status);
	EXPECT(replies, 1);
	OK(slmpm_am_handler(ctx, REPLY, NULL, NULL));
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

/* ---- a peer that does not go on -------------------------------------------------------------- */

static int pid_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

static int role_stopped(slmpm_peer host, char **words)
{
	uint64_t n = 0;

	(void)words;
	OK(slmpm_am_handler(none, NUMBER, count, &n));
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	actor_hear(host, 1);
	OK(slmpm_send(host, 3, &n, sizeof(n), PATIENCE));
	actor_hear(host, 2);
	return 0;
}

/* However much of it has gone; the answers to those that were given up harm nobody. */
static void given_up(int times, size_t len)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = 5};
	slmpm_peer child = actor_spawn_ready("stopped");
	uint64_t ran = 0, sent = 0;
	struct slmpm_done done;
	slmpm_req req;

	kill(pid_of(child), SIGSTOP);
	actor_await_state(pid_of(child), "T");
	for (int i = 0; i < times; i++)
		EXPECT(slmpm_am(child, NUMBER, head, 3, data, i % 2 ? len : 100, &how, NULL),
		       -SLMPM_ETIMEOUT);
	OK(slmpm_am(child, NUMBER, NULL, 0, data, 8, &how, &req));
	(void)slmpm_cancel(req);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_ECANCELED);
	sent = actor_stats(child).sent_messages;
	kill(pid_of(child), SIGCONT);
	how.timeout_ms = PATIENCE;
	for (int i = 0; i < 20; i++, sent++)
		OK(slmpm_am(child, NUMBER, NULL, 0, data, 8, &how, NULL));
	actor_tell(child, 1);
	EXPECT(slmpm_recv(child, 3, &ran, sizeof(ran), NULL, PATIENCE), sizeof(ran));
	CHECK(ran == sent, "%llu handled, %llu sent", (unsigned long long)ran,
	      (unsigned long long)sent);
	EXPECT(actor_stats(child).violations, 0);
	actor_tell(child, 2);
	actor_join(child, 0);
}

static void dead(void)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};
	slmpm_peer child = actor_spawn_ready("stopped");
	struct slmpm_done done;
	slmpm_req req[2];

	kill(pid_of(child), SIGSTOP);
	actor_await_state(pid_of(child), "T");
	OK(slmpm_am(child, NUMBER, NULL, 0, data, 8, &how, &req[0]));
	OK(slmpm_am(child, NUMBER, NULL, 0, data, LONGEST, &how, &req[1]));
	kill(pid_of(child), SIGKILL);
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		EXPECT(done.status, -SLMPM_EDEAD);
	}
	(void)slmpm_close(child, PATIENCE);
}

/* ---- limits --------------------------------------------------------------------------------- */

static int limited(void *unused)
{
	struct seen seen = {0, 0, 0, false};

	(void)unused;
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	OK(slmpm_am_handler(ctx, NUMBER, inspect, &seen));
	OK(confirmed(BLOCKING, NUMBER, 0, 1 << 20));
	EXPECT(seen.count, 1);
	for (enum way way = BLOCKING; way < WAYS; way++)
		EXPECT(confirmed(way, NUMBER, 0, (1 << 20) + 1), -SLMPM_ELIMIT);
	REFUSED(confirmed(BLOCKING, NUMBER, 7, 1 << 20), SLMPM_ELIMIT, "1048576");
	EXPECT(seen.count, 1);
	EXPECT(actor_stats(a).am_refused, WAYS + 1);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* More than the machine takes in: what has gone waits in this process. */
static int behind(void *unused)
{
	(void)unused;
	OK(slmpm_default(&ctx));
	given_up(200, 200000);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int all(void *unused)
{
	(void)unused;
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	actor_fill(head, 1, sizeof(head));
	actor_fill(data, 2, sizeof(data));
	handled();
	unhandled();
	removed(false);
	removed(true);
	inside();
	handled();
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	given_up(60, 120000);
	dead();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"stopped", role_stopped}, {NULL, NULL}};
	static const char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	EACH(i, fabrics)
	{
		if (!getenv("SLMPM_LINKS"))
			settings_set("SLMPM_FABRIC", fabrics[i]);
		settings_run(fabrics[i], all, NULL);
	}
	settings_set("SLMPM_RING_SEGMENTS", "1048576");
	settings_set("SLMPM_EAGER_CREDIT", "64m");
	settings_run("far behind", behind, NULL);
	settings_set("SLMPM_RING_SEGMENTS", "auto");
	settings_set("SLMPM_EAGER_CREDIT", "auto");
	settings_set("SLMPM_CHECK", "1");
	settings_run("checked", all, NULL);
	settings_set("SLMPM_CHECK", "0");
	settings_set("SLMPM_AM_MAX", "1m");
	settings_run("limited", limited, NULL);
	return 0;
}
