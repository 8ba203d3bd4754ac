/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of slmpm.h on a peer or context that it cannot use: zero, stale, forged and inherited
 * handles, peers that closed or died, another thread's context. Each ends in a definite error whose
 * text names the cause.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "tests/lib/bad_call.h"
#include "tests/lib/child.h"

static char byte;

/* ---- calls on a peer ------------------------------------------------------------------------ */

static const struct slmpm_iov piece = {&byte, 1};
static const struct slmpm_how at_once = {.size = sizeof(at_once), .timeout_ms = 0};

static int64_t with_send(slmpm_peer p)
{
	return slmpm_send(p, 0, &byte, 1, 0);
}

static int64_t with_sendv(slmpm_peer p)
{
	return slmpm_sendv(p, 0, &piece, 1, &at_once, NULL);
}

static int64_t with_sendv_request(slmpm_peer p)
{
	slmpm_req req = {0};
	int rc = slmpm_sendv(p, 0, &piece, 1, NULL, &req);

	CHECK(rc < 0 && !req.id, "a request of nothing");
	return rc;
}

static int64_t with_recv(slmpm_peer p)
{
	return slmpm_recv(p, 0, &byte, 1, NULL, 0);
}

static int64_t with_recvv(slmpm_peer p)
{
	return slmpm_recvv(p, 0, &piece, 1, &at_once, NULL);
}

static int64_t with_recvv_request(slmpm_peer p)
{
	slmpm_req req = {0};
	int64_t rc = slmpm_recvv(p, 0, &piece, 1, NULL, &req);

	CHECK(rc < 0 && !req.id, "a request of nothing");
	return rc;
}

static int64_t with_probe(slmpm_peer p)
{
	return slmpm_probe(p, 0, NULL, 0);
}

static int64_t with_loan(slmpm_peer p)
{
	void *buf = &byte;
	int rc = slmpm_loan(p, 0, 1, &buf, 0);

	CHECK(buf == &byte, "a loan of nothing");
	return rc;
}

static int64_t with_commit(slmpm_peer p)
{
	return slmpm_commit(p, &byte, 1, NULL);
}

static int64_t with_abort(slmpm_peer p)
{
	return slmpm_abort(p, &byte);
}

static int64_t with_hold(slmpm_peer p)
{
	const void *buf = &byte;
	int64_t rc = slmpm_hold(p, 0, &buf, NULL, 0);

	CHECK(buf == &byte, "a message of nobody");
	return rc;
}

static int64_t with_more(slmpm_peer p)
{
	return slmpm_more(p, &byte, 0, NULL, 0);
}

static int64_t with_release(slmpm_peer p)
{
	return slmpm_release(p, &byte);
}

static int64_t with_query(slmpm_peer p)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	return slmpm_peer_query(p, &info);
}

static int64_t with_link_query(slmpm_peer p)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	return slmpm_link_query(p, 0, &info);
}

static int64_t with_link_use(slmpm_peer p)
{
	return slmpm_link_use(p, 0);
}

static int64_t with_stats(slmpm_peer p)
{
	struct slmpm_stats stats;

	return slmpm_peer_stats(p, &stats, sizeof(stats));
}

static int64_t with_kill(slmpm_peer p)
{
	return slmpm_kill(p, 0);
}

static int64_t with_join(slmpm_peer p)
{
	return slmpm_join(p, NULL, 0);
}

static int64_t with_close(slmpm_peer p)
{
	return slmpm_close(p, 0);
}

static const struct {
	const char *name;
	int64_t (*call)(slmpm_peer p);
	int ended; /* of a peer that ended: -1 its own error, 0 success, else this one */
} on_peer[] = {
	{"slmpm_send", with_send, -1},
	{"slmpm_sendv", with_sendv, -1},
	{"slmpm_sendv", with_sendv_request, -1},
	{"slmpm_recv", with_recv, -1},
	{"slmpm_recvv", with_recvv, -1},
	{"slmpm_recvv", with_recvv_request, -1},
	{"slmpm_probe", with_probe, -1},
	{"slmpm_loan", with_loan, -1},
	{"slmpm_hold", with_hold, -1},
	{"slmpm_commit", with_commit, SLMPM_ESTATE},
	{"slmpm_abort", with_abort, SLMPM_ESTATE},
	{"slmpm_more", with_more, SLMPM_ESTATE},
	{"slmpm_release", with_release, SLMPM_ESTATE},
	{"slmpm_peer_query", with_query, 0},
	{"slmpm_link_query", with_link_query, 0},
	{"slmpm_link_use", with_link_use, SLMPM_ESTATE},
	{"slmpm_peer_stats", with_stats, 0},
	{"slmpm_kill", with_kill, 0},
	/* these two last: they take the handle away */
	{"slmpm_close", with_close, 0},
	{"slmpm_join", with_join, 0},
};
#define ON_PEER (sizeof(on_peer) / sizeof(on_peer[0]))

static void each_on(slmpm_peer p, int error, const char *word)
{
	for (size_t i = 0; i < ON_PEER; i++)
		says((int)i, on_peer[i].name, on_peer[i].call(p), error, word);
}

static void bad_peers(void)
{
	const slmpm_peer forged[] = {{with.live.id ^ UINT64_C(1) << 40},
				     {with.live.id + 1000000},
				     {UINT64_MAX & ~UINT64_C(0x80000000)},
				     {1},
				     with.stale};
	const slmpm_peer zero = {0};

	each_on(zero, SLMPM_EHANDLE, "a zero peer handle");
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
		each_on(forged[i], SLMPM_EHANDLE, "no such peer");
	/* Any peer is somebody to receive from, nobody to do anything else with. */
	for (size_t i = 0; i < ON_PEER; i++)
		if (!strstr(on_peer[i].name, "recv") && on_peer[i].call != with_probe &&
		    on_peer[i].call != with_hold)
			says((int)i, on_peer[i].name, on_peer[i].call(slmpm_any(with.mine)),
			     SLMPM_EHANDLE, "peer");
}

static void ended_peers(void)
{
	const struct {
		slmpm_peer peer;
		int error;
		const char *word;
	} ends[] = {{with.closed, SLMPM_ECLOSED, "accelerator"},
		    {with.dead, SLMPM_EDEAD, "signal 9"}};

	for (int e = 0; e < 2; e++)
		for (size_t i = 0; i < ON_PEER; i++) {
			int64_t rc = on_peer[i].call(ends[e].peer);
			int want = on_peer[i].ended;

			if (!want && on_peer[i].call == with_join && e)
				CHECK(rc == 128 + SIGKILL, "joined: %lld", (long long)rc);
			else if (!want)
				CHECK(rc == 0, "%s of an ended peer: %s", on_peer[i].name,
				      slmpm_error_detail());
			else
				says((int)i, on_peer[i].name, rc, want > 0 ? want : ends[e].error,
				     want > 0 ? "accelerator" : ends[e].word);
		}
	each_on(with.closed, SLMPM_EHANDLE, "no such peer");
	each_on(with.dead, SLMPM_EHANDLE, "no such peer");
}

/* ---- calls on a context --------------------------------------------------------------------- */

static void each_on_context(slmpm_ctx ctx, int error, const char *word)
{
	struct slmpm_event event = {.size = sizeof(event)};
	struct slmpm_spawn_options o = {.size = sizeof(o), .ctx = ctx};
	slmpm_listener listener = {7};
	slmpm_peer peer = {7};
	uint32_t id = 1;

	SAYS(slmpm_progress(ctx), error, word);
	SAYS(slmpm_fd(ctx), error, word);
	SAYS(slmpm_arm(ctx), error, word);
	SAYS(slmpm_spin(ctx, 0), error, word);
	SAYS(slmpm_spin(ctx, 1), error, word);
	SAYS(slmpm_next_event(ctx, &event, 0), error, word);
	SAYS(slmpm_element_count(ctx, SLMPM_ELEMENT_ACCELERATOR), error, word);
	SAYS(slmpm_element_reserve(ctx, SLMPM_ELEMENT_ACCELERATOR, 1, &id), error, word);
	SAYS(slmpm_element_release(ctx, 1, &id), error, word);
	SAYS(slmpm_spawn(&peer, "true", NULL, &o), error, word);
	SAYS(slmpm_listen(&listener, ctx, "shm:bad-input"), error, word);
	SAYS(slmpm_connect(&peer, ctx, "shm:bad-input", 0), error, word);
	SAYS(slmpm_recv(slmpm_any(ctx), 0, &byte, 1, NULL, 0), error, word);
	SAYS(slmpm_recvv(slmpm_any(ctx), 0, &piece, 1, &at_once, NULL), error, word);
	SAYS(slmpm_probe(slmpm_any(ctx), 0, NULL, 0), error, word);
	SAYS(slmpm_hold(slmpm_any(ctx), 0, &(const void *){NULL}, NULL, 0), error, word);
	SAYS(slmpm_shut(ctx, 0), error, word);
	CHECK(peer.id == 7 && listener.id == 7, "handles of nothing");
}

static void bad_contexts(void)
{
	const slmpm_ctx forged = {with.mine.id ^ UINT64_C(1) << 50},
			far = {UINT64_C(1) << 32 | 999999};

	each_on_context(with.stale_ctx, SLMPM_EHANDLE, "no such context");
	each_on_context(forged, SLMPM_EHANDLE, "no such context");
	each_on_context(far, SLMPM_EHANDLE, "no such context");
}

/* ---- fork, other threads -------------------------------------------------------------------- */

static slmpm_req pending;
static slmpm_listener listening;

static int in_the_child(void *arg)
{
	slmpm_peer got;
	slmpm_req req = pending;

	(void)arg;
	each_on(with.live, SLMPM_EFORKED, "belongs to the parent process");
	each_on_context(with.mine, SLMPM_EFORKED, "belongs to the parent process");
	SAYS(slmpm_test(&req, NULL), SLMPM_EFORKED, "request");
	SAYS(slmpm_wait(&req, 1, NULL, 0), SLMPM_EFORKED, "request");
	SAYS(slmpm_cancel(req), SLMPM_EFORKED, "request");
	SAYS(slmpm_accept(listening, &got, 0), SLMPM_EFORKED, "listener");
	SAYS(slmpm_unlisten(listening), SLMPM_EFORKED, "listener");
	CHECK(req.id == pending.id, "the request is gone");
	/* Its own default context works. */
	CHECK(slmpm_progress(with.none) == 0, "%s", slmpm_error_detail());
	SAYS(slmpm_recv(slmpm_any(with.none), 0, &byte, 1, NULL, -1), SLMPM_ECLOSED,
	     "no peer is left");
	return 0;
}

static void forked(void)
{
	OK(slmpm_recvv(with.live, 99, &piece, 1, NULL, &pending));
	OK(slmpm_listen(&listening, with.mine, "shm:bad-input-fork"));
	CHECK(child_run(in_the_child, NULL, 30) == 0, "child");
	OK(slmpm_unlisten(listening));
	OK(slmpm_cancel(pending));
	CHECK(slmpm_test(&pending, NULL) == 1, "canceled");
}

/* {0} is another context in each thread: it has none of the first one's peers. */
static void *another_thread(void *arg)
{
	slmpm_ctx own;

	(void)arg;
	SAYS(slmpm_recv(slmpm_any(with.none), 0, &byte, 1, NULL, -1), SLMPM_ECLOSED,
	     "no peer is left");
	OK(slmpm_default(&own));
	CHECK(own.id != with.mine.id, "the first thread's context");
	OK(slmpm_shut(own, 0));
	each_on_context(own, SLMPM_EHANDLE, "no such context");
	return NULL;
}

static void threads(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, another_thread, NULL) == 0, "thread");
	pthread_join(thread, NULL);
}

static const struct bad_case cases[] = {
	CASE(slmpm_shut, bad_contexts), CASE(slmpm_progress, bad_contexts),
	CASE(slmpm_fd, bad_contexts),   CASE(slmpm_arm, bad_contexts),
	CASE(slmpm_spin, bad_contexts), CASE(slmpm_close, bad_peers),
	CASE(slmpm_join, bad_peers),
};

int main(void)
{
	bad_begin();
	bad_try(cases, sizeof(cases) / sizeof(*cases));
	forked();
	threads();
	ended_peers();
	bad_end();
	printf("%zu calls on a peer\n", ON_PEER);
	return 0;
}
