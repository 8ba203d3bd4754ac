/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of slmpm.h with what it cannot use: NULL, zero, stale, forged and inherited handles,
 * sizes over the limits, peers that closed or died. Each ends in a definite error whose text names
 * the cause. tests/api/bad_input.sh looks that no call of the header is missing from the table.
 */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <slmpm.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define MS                      5000
#define SECONDS                 30
#define OK(call)                CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())
#define SAYS(call, error, word) says(__LINE__, #call, (call), error, word)

static const slmpm_ctx none = {0};
static slmpm_ctx mine, stale_ctx;
static slmpm_peer live, stale, closed, dead;
static char byte;

/* The code, its text first in the detail, and the word that names the cause. */
static void says(int line, const char *what, int64_t rc, int error, const char *word)
{
	const char *text = slmpm_strerror(error), *detail = slmpm_error_detail();

	CHECK(rc == -error, "line %d: %s: %lld instead of -%d (%s)", line, what, (long long)rc,
	      error, detail);
	CHECK(!strncmp(detail, text, strlen(text)), "line %d: %s: \"%s\"", line, what, detail);
	CHECK(strstr(detail, word), "line %d: %s: \"%s\" does not say \"%s\"", line, what, detail,
	      word);
}

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
	const slmpm_peer forged[] = {{live.id ^ UINT64_C(1) << 40},
				     {live.id + 1000000},
				     {UINT64_MAX & ~UINT64_C(0x80000000)},
				     {1},
				     stale};
	const slmpm_peer zero = {0};

	each_on(zero, SLMPM_EHANDLE, "a zero peer handle");
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
		each_on(forged[i], SLMPM_EHANDLE, "no such peer");
	/* Any peer is somebody to receive from, nobody to do anything else with. */
	for (size_t i = 0; i < ON_PEER; i++)
		if (!strstr(on_peer[i].name, "recv") && on_peer[i].call != with_probe &&
		    on_peer[i].call != with_hold)
			says((int)i, on_peer[i].name, on_peer[i].call(slmpm_any(mine)),
			     SLMPM_EHANDLE, "peer");
}

static void ended_peers(void)
{
	const struct {
		slmpm_peer peer;
		int error;
		const char *word;
	} ends[] = {{closed, SLMPM_ECLOSED, "accelerator"}, {dead, SLMPM_EDEAD, "signal 9"}};

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
	each_on(closed, SLMPM_EHANDLE, "no such peer");
	each_on(dead, SLMPM_EHANDLE, "no such peer");
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
	const slmpm_ctx forged = {mine.id ^ UINT64_C(1) << 50}, far = {UINT64_C(1) << 32 | 999999};

	each_on_context(stale_ctx, SLMPM_EHANDLE, "no such context");
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
	each_on(live, SLMPM_EFORKED, "belongs to the parent process");
	each_on_context(mine, SLMPM_EFORKED, "belongs to the parent process");
	SAYS(slmpm_test(&req, NULL), SLMPM_EFORKED, "request");
	SAYS(slmpm_wait(&req, 1, NULL, 0), SLMPM_EFORKED, "request");
	SAYS(slmpm_cancel(req), SLMPM_EFORKED, "request");
	SAYS(slmpm_accept(listening, &got, 0), SLMPM_EFORKED, "listener");
	SAYS(slmpm_unlisten(listening), SLMPM_EFORKED, "listener");
	CHECK(req.id == pending.id, "the request is gone");
	/* Its own default context works. */
	CHECK(slmpm_progress(none) == 0, "%s", slmpm_error_detail());
	SAYS(slmpm_recv(slmpm_any(none), 0, &byte, 1, NULL, -1), SLMPM_ECLOSED, "no peer is left");
	return 0;
}

static void forked(void)
{
	OK(slmpm_recvv(live, 99, &piece, 1, NULL, &pending));
	OK(slmpm_listen(&listening, mine, "shm:bad-input-fork"));
	CHECK(child_run(in_the_child, NULL, SECONDS) == 0, "child");
	OK(slmpm_unlisten(listening));
	OK(slmpm_cancel(pending));
	CHECK(slmpm_test(&pending, NULL) == 1, "canceled");
}

/* {0} is another context in each thread: it has none of the first one's peers. */
static void *another_thread(void *arg)
{
	slmpm_ctx own;

	(void)arg;
	SAYS(slmpm_recv(slmpm_any(none), 0, &byte, 1, NULL, -1), SLMPM_ECLOSED, "no peer is left");
	OK(slmpm_default(&own));
	CHECK(own.id != mine.id, "the first thread's context");
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

/* ---- each call's own arguments -------------------------------------------------------------- */

static void of_open(void)
{
	struct slmpm_options o = {.size = sizeof(o)};
	const struct {
		struct slmpm_options o;
		const char *word;
	} bad[] = {
		{{.size = 0}, ".size"},
		{{.size = sizeof(o) - 1}, ".size"},
		{{.size = sizeof(o), .flags = 2}, "flags 0x2"},
		{{.size = sizeof(o), .wait = 3}, "wait 3"},
		{{.size = sizeof(o), .ring_segments = 1}, "1 segments"},
		{{.size = sizeof(o), .ring_segments = 3}, "3 segments"},
		{{.size = sizeof(o), .ring_segments = 1U << 31}, "segments"},
		{{.size = sizeof(o), .ring_segment_size = 32}, "32 bytes"},
		{{.size = sizeof(o), .ring_segment_size = 65}, "65 bytes"},
		{{.size = sizeof(o), .ring_segment_size = 1U << 31}, "bytes"},
		{{.size = sizeof(o), .ring_segments = 4, .ring_segment_size = 64}, "8 KiB"},
	};
	slmpm_ctx ctx = {7};

	SAYS(slmpm_open(NULL, NULL), SLMPM_EINVAL, "no context");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SAYS(slmpm_open(&ctx, &bad[i].o), SLMPM_EINVAL, bad[i].word);
	CHECK(ctx.id == 7, "a handle of nothing");
	SAYS(slmpm_default(NULL), SLMPM_EINVAL, "no context");
}

static void of_events(void)
{
	struct slmpm_event small = {.size = sizeof(small) - 1};
	struct slmpm_peer_info info = {.size = 1};
	struct slmpm_stats stats;

	SAYS(slmpm_next_event(mine, NULL, 0), SLMPM_EINVAL, ".size");
	SAYS(slmpm_next_event(mine, &small, 0), SLMPM_EINVAL, ".size");
	SAYS(slmpm_peer_query(live, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_peer_query(live, &info), SLMPM_EINVAL, ".size");
	SAYS(slmpm_peer_stats(live, NULL, sizeof(stats)), SLMPM_EINVAL, "nowhere");
	SAYS(slmpm_peer_stats(live, &stats, 3), SLMPM_EINVAL, "nowhere");
}

static void of_elements(void)
{
	uint32_t id = 0;

	SAYS(slmpm_element_count(mine, 77), SLMPM_EINVAL, "type 77");
	SAYS(slmpm_element_reserve(mine, 0, 1, &id), SLMPM_EINVAL, "type 0");
	SAYS(slmpm_element_reserve(mine, SLMPM_ELEMENT_ACCELERATOR, -1, &id), SLMPM_EINVAL, "-1");
	SAYS(slmpm_element_reserve(mine, SLMPM_ELEMENT_ACCELERATOR, 1, NULL), SLMPM_EINVAL, "1");
	SAYS(slmpm_element_release(mine, 1, NULL), SLMPM_EINVAL, "1 elements");
	SAYS(slmpm_element_release(mine, 1, &id), SLMPM_EINVAL, "element 0");
}

static void of_spawn(void)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .flags = 4};
	slmpm_peer peer;

	SAYS(slmpm_spawn(NULL, "true", NULL, NULL), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_spawn(&peer, NULL, NULL, NULL), SLMPM_EINVAL, "no program");
	SAYS(slmpm_spawn(&peer, "", NULL, NULL), SLMPM_EINVAL, "no program");
	SAYS(slmpm_spawn(&peer, "true", NULL, &o), SLMPM_EINVAL, "flags 0x4");
	o.size = 8;
	SAYS(slmpm_spawn(&peer, "true", NULL, &o), SLMPM_EINVAL, ".size");
	SAYS(slmpm_spawn(&peer, "/no/such", NULL, NULL), SLMPM_ENOENT, "/no/such");
	SAYS(slmpm_parent(NULL), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_parent(&peer), SLMPM_ESTATE, "not started by slmpm_spawn");
	SAYS(slmpm_parent_in(mine, NULL), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_parent_in(mine, &peer), SLMPM_ESTATE, "not started by slmpm_spawn");
	SAYS(slmpm_kill(live, -1), SLMPM_EINVAL, "-1 ms");
}

static void of_listen(void)
{
	slmpm_listener listener, bad = {UINT64_C(9) << 32};
	slmpm_peer peer;

	SAYS(slmpm_listen(NULL, mine, "shm:x"), SLMPM_EINVAL, "no listener");
	SAYS(slmpm_listen(&listener, mine, NULL), SLMPM_EADDRESS, "shm:NAME");
	SAYS(slmpm_listen(&listener, mine, "carrier:pigeon"), SLMPM_EADDRESS, "carrier:pigeon");
	SAYS(slmpm_listen(&listener, mine, "shm:/no/such/x"), SLMPM_ENOENT, "/no/such/x");
	SAYS(slmpm_connect(NULL, mine, "shm:x", 0), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_connect(&peer, mine, NULL, 0), SLMPM_EADDRESS, "shm:NAME");
	SAYS(slmpm_connect(&peer, mine, "carrier:pigeon", 0), SLMPM_EADDRESS, "carrier:pigeon");
	SAYS(slmpm_connect(&peer, mine, "shm:bad-input-nobody", 0), SLMPM_ENOENT, "nobody listens");
	SAYS(slmpm_accept(bad, &peer, 0), SLMPM_EHANDLE, "no such listener");
	SAYS(slmpm_accept((slmpm_listener){0}, &peer, 0), SLMPM_EHANDLE, "zero listener");
	SAYS(slmpm_unlisten(bad), SLMPM_EHANDLE, "no such listener");
	SAYS(slmpm_unlisten((slmpm_listener){0}), SLMPM_EHANDLE, "zero listener");
	OK(slmpm_listen(&listener, mine, "shm:bad-input"));
	SAYS(slmpm_accept(listener, NULL, 0), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_accept(listener, &peer, 0), SLMPM_ETIMEOUT, "shm:bad-input");
	OK(slmpm_unlisten(listener));
}

static void of_messages(void)
{
	const struct slmpm_iov null = {NULL, 1}, huge[2] = {{&byte, SLMPM_MESSAGE_MAX}, {&byte, 1}};
	struct slmpm_how small = {.size = 15}, part = {.size = sizeof(part)};
	slmpm_req req;

	SAYS(slmpm_send(live, 0, NULL, 1, 0), SLMPM_EINVAL, "NULL");
	SAYS(slmpm_send(live, SLMPM_ANY_STREAM, &byte, 1, 0), SLMPM_EINVAL, "stream");
	SAYS(slmpm_send(live, 0, &byte, SLMPM_MESSAGE_MAX + 1, 0), SLMPM_ELIMIT, "8589934593");
	SAYS(slmpm_send(live, 0, &byte, SIZE_MAX, 0), SLMPM_ELIMIT, "at most");
	SAYS(slmpm_recv(live, 0, NULL, 1, NULL, 0), SLMPM_EINVAL, "NULL");
	SAYS(slmpm_recv(live, 0, &byte, 1, NULL, 0), SLMPM_ETIMEOUT, "accelerator");
	SAYS(slmpm_recv(slmpm_any(mine), 0, &byte, 1, NULL, 0), SLMPM_ETIMEOUT, "any peer");
	for (int i = 0; i < 2; i++) {
		slmpm_req *r = i ? &req : NULL;

		SAYS(slmpm_sendv(live, 0, NULL, 1, NULL, r), SLMPM_EINVAL, "1 pieces");
		SAYS(slmpm_sendv(live, 0, &piece, -1, NULL, r), SLMPM_EINVAL, "-1 pieces");
		SAYS(slmpm_sendv(live, 0, &null, 1, NULL, r), SLMPM_EINVAL, "piece 0 is NULL");
		SAYS(slmpm_sendv(live, 0, huge, 2, NULL, r), SLMPM_ELIMIT, "8589934592");
		SAYS(slmpm_sendv(live, SLMPM_ANY_STREAM, &piece, 1, NULL, r), SLMPM_EINVAL,
		     "stream");
		SAYS(slmpm_sendv(live, 0, &piece, 1, &small, r), SLMPM_EINVAL, "size");
		SAYS(slmpm_recvv(live, 0, NULL, 1, NULL, r), SLMPM_EINVAL, "1 pieces");
		SAYS(slmpm_recvv(live, 0, &piece, -1, NULL, r), SLMPM_EINVAL, "-1 pieces");
		SAYS(slmpm_recvv(live, 0, &null, 1, NULL, r), SLMPM_EINVAL, "piece 0 is NULL");
		SAYS(slmpm_recvv(live, 0, &piece, 1, &small, r), SLMPM_EINVAL, "size");
		part.flags = SLMPM_PART;
		SAYS(slmpm_sendv(live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x2");
		SAYS(slmpm_recvv(live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x2");
		part.flags = 0x80;
		SAYS(slmpm_sendv(live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x80");
		SAYS(slmpm_recvv(live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x80");
	}
	CHECK(slmpm_probe(live, 0, NULL, 0) == 0, "something there");
}

static void of_requests(void)
{
	slmpm_req zero[3] = {{0}, {0}, {0}}, bad = {UINT64_C(3) << 33}, two[2];
	const struct slmpm_iov iov = {&byte, 1};
	slmpm_ctx other;
	slmpm_listener listener;

	SAYS(slmpm_test(NULL, NULL), SLMPM_EINVAL, "no request");
	SAYS(slmpm_test(&zero[0], NULL), SLMPM_EHANDLE, "zero request");
	SAYS(slmpm_test(&bad, NULL), SLMPM_EHANDLE, "no such request");
	SAYS(slmpm_wait(NULL, 1, NULL, 0), SLMPM_EINVAL, "no requests");
	SAYS(slmpm_wait(zero, 0, NULL, 0), SLMPM_EINVAL, "no requests");
	SAYS(slmpm_wait(zero, -1, NULL, 0), SLMPM_EINVAL, "no requests");
	SAYS(slmpm_wait(zero, 3, NULL, 0), SLMPM_EINVAL, "every request is zero");
	SAYS(slmpm_wait(&bad, 1, NULL, 0), SLMPM_EHANDLE, "no such request");
	SAYS(slmpm_cancel(zero[0]), SLMPM_EHANDLE, "zero request");
	SAYS(slmpm_cancel(bad), SLMPM_EHANDLE, "no such request");
	/* Requests of two contexts cannot be waited for together. */
	OK(slmpm_open(&other, NULL));
	OK(slmpm_listen(&listener, other, "shm:bad-input-wait"));
	OK(slmpm_recvv(live, 98, &iov, 1, NULL, &two[0]));
	OK(slmpm_recvv(slmpm_any(other), 98, &iov, 1, NULL, &two[1]));
	SAYS(slmpm_wait(two, 2, NULL, 0), SLMPM_EINVAL, "two contexts");
	SAYS(slmpm_wait(two, 1, NULL, 0), SLMPM_ETIMEOUT, "accelerator");
	bad = two[0];
	OK(slmpm_cancel(two[0]));
	SAYS(slmpm_cancel(two[0]), SLMPM_EBUSY, "too far");
	CHECK(slmpm_test(&two[0], NULL) == 1 && !two[0].id, "canceled");
	SAYS(slmpm_test(&bad, NULL), SLMPM_EHANDLE, "no such request");
	OK(slmpm_cancel(two[1]));
	CHECK(slmpm_wait(two, 2, NULL, 0) == 1, "canceled");
	OK(slmpm_shut(other, 0));
}

static void of_loans(void)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_PART}, small = {.size = 4},
			 odd = {.size = sizeof(odd), .flags = 0x10};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	void *buf, *another = &byte;

	OK(slmpm_peer_query(live, &info));
	SAYS(slmpm_loan(live, 0, 8, NULL, 0), SLMPM_EINVAL, "no place");
	SAYS(slmpm_loan(live, SLMPM_ANY_STREAM, 8, &buf, 0), SLMPM_EINVAL, "stream");
	SAYS(slmpm_loan(live, 0, info.loan_max + 1, &buf, 0), SLMPM_ELIMIT, "at most");
	SAYS(slmpm_loan(live, 0, SLMPM_MESSAGE_MAX + 1, &buf, 0), SLMPM_ELIMIT, "at most");
	SAYS(slmpm_loan(live, 0, SIZE_MAX, &buf, 0), SLMPM_ELIMIT, "at most");
	for (int large = 0; large < 2; large++) {
		OK(slmpm_loan(live, 0, large ? 100000 : 8, &buf, MS));
		SAYS(slmpm_loan(live, 0, 8, &another, 0), SLMPM_EBUSY, "accelerator");
		if (!large)
			SAYS(slmpm_send(live, 0, &byte, 1, 0), SLMPM_EBUSY, "commit or abort");
		else
			OK(slmpm_send(live, 0, &byte, 1, 0));
		SAYS(slmpm_commit(live, NULL, 1, NULL), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_commit(live, &byte, 1, NULL), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_abort(live, NULL), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_abort(live, &byte), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_commit(live, buf, 100001, NULL), SLMPM_EINVAL, "100001 bytes");
		SAYS(slmpm_commit(live, buf, 1, &small), SLMPM_EINVAL, ".size");
		SAYS(slmpm_commit(live, buf, 1, &odd), SLMPM_EINVAL, "flags 0x10");
		if (large) {
			OK(slmpm_commit(live, buf, 50000, &how));
			SAYS(slmpm_commit(live, buf, 49999, NULL), SLMPM_EINVAL, "49999 bytes");
			SAYS(slmpm_abort(live, buf), SLMPM_ESTATE, "already");
			OK(slmpm_commit(live, buf, 100000, NULL));
		} else {
			SAYS(slmpm_commit(live, buf, 1, &how), SLMPM_ENOTSUP, "inside a packet");
			OK(slmpm_abort(live, buf));
		}
		SAYS(slmpm_commit(live, buf, 8, NULL), SLMPM_ESTATE, "no such loan");
	}
	SAYS(slmpm_hold(live, 0, NULL, NULL, 0), SLMPM_EINVAL, "no place");
	SAYS(slmpm_hold(live, 0, &(const void *){NULL}, NULL, 0), SLMPM_ETIMEOUT, "accelerator");
	SAYS(slmpm_more(live, NULL, 0, NULL, 0), SLMPM_ESTATE, "no such message");
	SAYS(slmpm_more(live, &byte, 0, NULL, 0), SLMPM_ESTATE, "no such message");
	SAYS(slmpm_release(live, NULL), SLMPM_ESTATE, "no such message");
	SAYS(slmpm_release(live, &byte), SLMPM_ESTATE, "no such message");
}

static void of_looking(void)
{
	const struct slmpm_stats_page *page = NULL;
	struct slmpm_setting setting = {.size = 1};
	struct slmpm_check check = {.size = 1};
	struct slmpm_fabric_info fabric = {.size = 1};
	uint64_t count;

	SAYS(slmpm_stats_attach(getpid(), 0, NULL), SLMPM_EINVAL, "page");
	SAYS(slmpm_stats_attach(getpid(), -1, &page), SLMPM_EINVAL, "index -1");
	SAYS(slmpm_stats_attach(getpid(), 999, &page), SLMPM_ENOENT, "999");
	SAYS(slmpm_stats_attach(INT_MAX, 0, &page), SLMPM_ENOENT, "2147483647");
	SAYS(slmpm_stats_attach(-1, 0, &page), SLMPM_ENOENT, "process -1");
	CHECK(!page && !slmpm_stats_of(NULL, 0), "a page of nothing");
	OK(slmpm_stats_attach(getpid(), 0, &page));
	CHECK(!slmpm_stats_of(page, page->peers) && !slmpm_stats_of(page, UINT32_MAX), "behind it");
	slmpm_stats_detach(page);
	slmpm_stats_detach(NULL);
	SAYS(slmpm_violation_at(-1, NULL, NULL), SLMPM_ENOENT, "-1");
	SAYS(slmpm_violation_at(INT_MAX, NULL, &count), SLMPM_ENOENT, "2147483647");
	for (int i = -1; i < INT_MAX / 2 + 1; i += INT_MAX / 2 + 1) {
		SAYS(slmpm_setting_at(i, &setting), i ? SLMPM_ENOENT : SLMPM_EINVAL, "");
		SAYS(slmpm_check_at(i, &check), i ? SLMPM_ENOENT : SLMPM_EINVAL, "");
		SAYS(slmpm_fabric_at(i, &fabric), i ? SLMPM_ENOENT : SLMPM_EINVAL, "");
	}
	SAYS(slmpm_setting_at(0, &setting), SLMPM_EINVAL, ".size");
	SAYS(slmpm_setting_at(0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_check_at(0, &check), SLMPM_EINVAL, ".size");
	SAYS(slmpm_check_at(0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_fabric_at(0, &fabric), SLMPM_EINVAL, ".size");
	SAYS(slmpm_fabric_at(0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_setting_at(1000, &setting), SLMPM_ENOENT, "1000");
	SAYS(slmpm_check_at(1000, &check), SLMPM_ENOENT, "1000");
	SAYS(slmpm_fabric_at(1000, &fabric), SLMPM_ENOENT, "1000");
}

static void log_nothing(int level, const char *text, void *arg)
{
	(void)level, (void)text, (void)arg;
}

static void of_texts(void)
{
	static const int numbers[] = {INT_MIN, -SLMPM_ERROR_COUNT, SLMPM_ERROR_COUNT, INT_MAX};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK(!strcmp(slmpm_strerror(numbers[i]), "unknown error"), "%d", numbers[i]);
	for (int e = 0; e < SLMPM_ERROR_COUNT; e++) {
		CHECK(!strcmp(slmpm_strerror(e), slmpm_strerror(-e)), "%d", e);
		CHECK(strlen(slmpm_strerror(e)) > 2, "%d", e);
	}
	CHECK(slmpm_perror(NULL) == 1 && slmpm_perror("") == 1, "perror");
	CHECK(slmpm_error_detail(), "NULL");
	slmpm_log(INT_MAX, log_nothing, NULL);
	slmpm_log(INT_MIN, NULL, NULL);
	slmpm_log(SLMPM_LOG_WARN, NULL, NULL);
	CHECK(slmpm_memory_per_peer() > 0 && strlen(slmpm_version()) >= 5, "constants");
}

/* ---- which case tries which call ------------------------------------------------------------ */

#define CASE(name, body)                                                                           \
	{                                                                                          \
#name, (void (*)(void))(name), body                                                \
	}

/* Each name must exist, each case runs once, in the order of its first name. */
static const struct {
	const char *name;
	void (*exists)(void);
	void (*body)(void);
} cases[] = {
	CASE(slmpm_strerror, of_texts),
	CASE(slmpm_error_detail, of_texts),
	CASE(slmpm_perror, of_texts),
	CASE(slmpm_log, of_texts),
	CASE(slmpm_version, of_texts),
	CASE(slmpm_memory_per_peer, of_texts),
	CASE(slmpm_open, of_open),
	CASE(slmpm_default, of_open),
	CASE(slmpm_shut, bad_contexts),
	CASE(slmpm_progress, bad_contexts),
	CASE(slmpm_fd, bad_contexts),
	CASE(slmpm_arm, bad_contexts),
	CASE(slmpm_next_event, of_events),
	CASE(slmpm_peer_query, of_events),
	CASE(slmpm_peer_stats, of_events),
	CASE(slmpm_element_count, of_elements),
	CASE(slmpm_element_reserve, of_elements),
	CASE(slmpm_element_release, of_elements),
	CASE(slmpm_spawn, of_spawn),
	CASE(slmpm_parent, of_spawn),
	CASE(slmpm_parent_in, of_spawn),
	CASE(slmpm_kill, of_spawn),
	CASE(slmpm_listen, of_listen),
	CASE(slmpm_accept, of_listen),
	CASE(slmpm_unlisten, of_listen),
	CASE(slmpm_connect, of_listen),
	CASE(slmpm_send, of_messages),
	CASE(slmpm_recv, of_messages),
	CASE(slmpm_sendv, of_messages),
	CASE(slmpm_recvv, of_messages),
	CASE(slmpm_probe, of_messages),
	CASE(slmpm_test, of_requests),
	CASE(slmpm_wait, of_requests),
	CASE(slmpm_cancel, of_requests),
	CASE(slmpm_loan, of_loans),
	CASE(slmpm_commit, of_loans),
	CASE(slmpm_abort, of_loans),
	CASE(slmpm_hold, of_loans),
	CASE(slmpm_more, of_loans),
	CASE(slmpm_release, of_loans),
	CASE(slmpm_stats_of, of_looking),
	CASE(slmpm_stats_attach, of_looking),
	CASE(slmpm_stats_detach, of_looking),
	CASE(slmpm_violation_at, of_looking),
	CASE(slmpm_setting_at, of_looking),
	CASE(slmpm_check_at, of_looking),
	CASE(slmpm_fabric_at, of_looking),
	CASE(slmpm_close, bad_peers),
	CASE(slmpm_join, bad_peers),
};

/* ---- the other side ------------------------------------------------------------------------- */

/* Holds the connection, or closes it when it is told to. */
static int accelerator(void)
{
	const slmpm_ctx bad = {UINT64_C(5) << 32};
	slmpm_peer host;
	char text[8];
	int64_t n;

	SAYS(slmpm_parent_in(bad, &host), SLMPM_EHANDLE, "no such context");
	OK(slmpm_parent(&host));
	SAYS(slmpm_join(host, NULL, 0), SLMPM_ESTATE, "not started by slmpm_spawn");
	SAYS(slmpm_kill(host, 0), SLMPM_ESTATE, "not started by slmpm_spawn");
	OK(slmpm_send(host, 1, "up", 2, -1));
	n = slmpm_recv(host, 7, text, sizeof(text), NULL, -1);
	if (n < 0)
		return n == -SLMPM_ECLOSED ? 0 : 1;
	OK(slmpm_close(host, MS));
	return 0;
}

static slmpm_peer start(void)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .ctx = mine};
	slmpm_peer peer;
	char text[8];

	OK(slmpm_spawn(&peer, "/proc/self/exe", NULL, &o));
	CHECK(slmpm_recv(peer, 1, text, sizeof(text), NULL, MS) == 2, "%s", slmpm_error_detail());
	return peer;
}

static void set_up(void)
{
	OK(slmpm_default(&mine));
	OK(slmpm_open(&stale_ctx, NULL));
	OK(slmpm_shut(stale_ctx, 0));
	live = start();
	stale = start();
	OK(slmpm_close(stale, MS));
	CHECK(slmpm_join(stale, NULL, MS) == 0, "%s", slmpm_error_detail());
	closed = start();
	OK(slmpm_send(closed, 7, "close", 5, MS));
	SAYS(slmpm_recv(closed, 0, &byte, 1, NULL, MS), SLMPM_ECLOSED, "accelerator");
	dead = start();
	OK(slmpm_kill(dead, 0));
	SAYS(slmpm_recv(dead, 0, &byte, 1, NULL, MS), SLMPM_EDEAD, "signal 9");
}

/* join(0) must not find it running. */
static void await_end(slmpm_peer ending)
{
	struct slmpm_peer_info peer = {.size = sizeof(peer)};
	siginfo_t info;

	OK(slmpm_peer_query(ending, &peer));
	CHECK(waitid(P_PID, (id_t)peer.pid, &info, WEXITED | WNOWAIT) == 0, "waitid");
}

int main(void)
{
	if (getenv("SLMPM_PARENT"))
		return accelerator();
	alarm(SECONDS);
	set_up();
	await_end(closed);
	await_end(dead);
	bad_peers();
	bad_contexts();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool first = cases[i].exists != NULL;

		for (size_t k = 0; k < i; k++)
			first &= cases[k].body != cases[i].body;
		if (first)
			cases[i].body();
	}
	forked();
	threads();
	ended_peers();
	/* After all that the live one still is. */
	OK(slmpm_send(live, 7, "close", 5, MS));
	CHECK(slmpm_join(live, NULL, MS) == 0, "%s", slmpm_error_detail());
	OK(slmpm_shut(mine, MS));
	printf("%zu calls, %zu of them on a peer\n", sizeof(cases) / sizeof(cases[0]), ON_PEER);
	return 0;
}
