/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: what a handler sees, of every size and way; in which order handlers run, also
 * among messages; what one may do and what it may not; what the calls refuse.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define LONGEST (3u << 20) /* announced, many packets */
#define ECHO    7
#define ECHOED  8
#define NUMBER  9

static const slmpm_ctx none;
static slmpm_ctx ctx;
static slmpm_peer a, b;

static void progress_until(const uint64_t *counted, uint64_t want)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (*counted < want) {
		CHECK(actor_now_ms() < until, "%llu of %llu came", (unsigned long long)*counted,
		      (unsigned long long)want);
		CHECK(slmpm_progress(ctx) >= 0, "%s", slmpm_error_detail());
	}
}

static uint64_t stat_of(slmpm_peer peer, bool unhandled)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	return unhandled ? stats.am_unhandled : stats.ams;
}

/* ---- every size ---- */

struct seen {
	uint64_t count;
	size_t head_len, data_len;
	unsigned char head[SLMPM_AM_HEAD_MAX], data[LONGEST];
	slmpm_peer peer;
};

static struct seen seen;

static void inspect(const struct slmpm_am *am, void *arg)
{
	struct seen *s = arg;

	s->count++;
	s->peer = am->peer;
	s->head_len = am->head_len;
	s->data_len = am->data_len;
	memcpy(s->head, am->head, am->head_len);
	memcpy(s->data, am->data, am->data_len);
}

enum way { BLOCKING, BY_REQUEST, BY_COUNTER, BY_QUEUE, WAYS };

static void send_by(enum way way, const void *head, size_t head_len, const void *data, size_t len)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE, .cookie = len};
	struct slmpm_done done;
	slmpm_req req;

	switch (way) {
	case BY_REQUEST:
		OK(slmpm_am(a, NUMBER, head, head_len, data, len, &how, &req));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.op == SLMPM_OP_AM && done.len == len && done.stream == NUMBER &&
			      done.status == 0,
		      "op %u, %llu bytes for %u", done.op, (unsigned long long)done.len,
		      done.stream);
		break;
	case BY_COUNTER:
		OK(slmpm_ctr_create(ctx, &how.ctr));
		OK(slmpm_am(a, NUMBER, head, head_len, data, len, &how, NULL));
		OK(slmpm_ctr_wait(how.ctr, SLMPM_ALL, PATIENCE));
		OK(slmpm_ctr_destroy(how.ctr));
		break;
	case BY_QUEUE:
		OK(slmpm_cq_create(ctx, &how.cq));
		OK(slmpm_am(a, NUMBER, head, head_len, data, len, &how, NULL));
		EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
		CHECK(done.op == SLMPM_OP_AM && done.len == len && done.cookie == len &&
			      done.stream == NUMBER,
		      "op %u, %llu bytes", done.op, (unsigned long long)done.len);
		OK(slmpm_cq_destroy(how.cq));
		break;
	default: OK(slmpm_am(a, NUMBER, head, head_len, data, len, &how, NULL));
	}
}

static void every_size(void)
{
	static const size_t sizes[] = {0,     1,     8,     31,    100,    4096,   16127,
				       16128, 16384, 16385, 70000, 262144, 262145, LONGEST};
	static const size_t heads[] = {0, 1, 40, SLMPM_AM_HEAD_MAX};
	static unsigned char data[LONGEST], head[SLMPM_AM_HEAD_MAX];
	uint64_t n = 0;

	OK(slmpm_am_handler(ctx, NUMBER, inspect, &seen));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t j = 0; j < sizeof(heads) / sizeof(*heads); j++) {
			actor_fill(data, n, sizes[i]);
			actor_fill(head, n + 1, heads[j]);
			send_by(n % WAYS, head, heads[j], data, sizes[i]);
			progress_until(&seen.count, ++n);
			CHECK(seen.count == n && seen.peer.id == b.id &&
				      seen.head_len == heads[j] && seen.data_len == sizes[i] &&
				      actor_filled(seen.head, n, heads[j]) &&
				      actor_filled(seen.data, n - 1, sizes[i]),
			      "%zu and %zu bytes are not what came", heads[j], sizes[i]);
		}
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
	EXPECT(stat_of(b, false), n);
}

/* ---- order ---- */

#define MANY 400

struct order {
	uint64_t count;
	bool right;
};

static void count_up(const struct slmpm_am *am, void *arg)
{
	struct order *o = arg;
	uint64_t number;

	memcpy(&number, am->head, sizeof(number));
	o->right &= am->head_len == sizeof(number) && number == o->count;
	o->count++;
}

/* Short, long and announced ones, without waiting for one before the next. */
static void in_order(void)
{
	static unsigned char data[LONGEST];
	static const size_t sizes[] = {8, 40000, 0, 300000, 8, 8, 100, LONGEST, 16384, 5};
	struct order o = {0, true};
	slmpm_req req[MANY];

	OK(slmpm_am_handler(ctx, NUMBER, count_up, &o));
	for (uint64_t i = 0; i < MANY / 4; i++)
		OK(slmpm_am(a, NUMBER, &i, sizeof(i), data, sizes[i % 10], NULL, &req[i]));
	progress_until(&o.count, MANY / 4);
	for (int i = 0; i < MANY / 4; i++)
		EXPECT(slmpm_wait(&req[i], 1, NULL, PATIENCE), 0);
	CHECK(o.right, "handlers did not run in the order of sending");
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

struct among {
	uint64_t count, next;
	bool right;
};

/* Number N is sent behind message N: the message must be there, without waiting. */
static void take_message(const struct slmpm_am *am, void *arg)
{
	struct among *x = arg;
	uint64_t number = 0;

	x->right &= am->data_len >= sizeof(number) &&
		    slmpm_recv(am->peer, 5, &number, sizeof(number), NULL, 0) == sizeof(number) &&
		    number == x->count;
	x->count++;
}

static void among_messages(void)
{
	static unsigned char data[40000];
	struct among x = {0, 0, true};
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1, .flags = SLMPM_MORE};
	slmpm_req req[2 * MANY];

	OK(slmpm_am_handler(ctx, NUMBER, take_message, &x));
	for (uint64_t i = 0; i < MANY; i++) {
		struct slmpm_iov iov = {&i, sizeof(i)};

		if (i % 3) { /* in a bundle, too */
			OK(slmpm_sendv(a, 5, &iov, 1, &how, NULL));
			OK(slmpm_am(a, NUMBER, NULL, 0, &i, sizeof(i), NULL, NULL));
			continue;
		}
		OK(slmpm_send(a, 5, &i, sizeof(i), PATIENCE));
		OK(slmpm_am(a, NUMBER, NULL, 0, data, i % 2 ? sizeof(data) : 8, NULL, &req[0]));
		EXPECT(slmpm_wait(&req[0], 1, NULL, PATIENCE), 0);
	}
	progress_until(&x.count, MANY);
	CHECK(x.right, "a message that was sent before was not there");
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

/* What is sent behind an active message arrives when its handler has run, be it never so long. */
static void before_message(void)
{
	static unsigned char data[LONGEST];
	slmpm_req am, message;
	uint64_t before = seen.count;

	OK(slmpm_am_handler(ctx, NUMBER, inspect, &seen));
	OK(slmpm_am(a, NUMBER, NULL, 0, data, LONGEST, NULL, &am));
	OK(slmpm_sendv(a, 6, NULL, 0, NULL, &message));
	EXPECT(slmpm_recv(b, 6, NULL, 0, NULL, PATIENCE), 0);
	CHECK(seen.count == before + 1, "the message overtook it");
	EXPECT(slmpm_wait(&am, 1, NULL, PATIENCE), 0);
	EXPECT(slmpm_wait(&message, 1, NULL, PATIENCE), 0);
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

/* ---- answers ---- */

static void echo(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	OK(slmpm_am_reply(am, ECHOED, am->head, am->head_len, am->data, am->data_len));
}

static void replies(void)
{
	static unsigned char data[LONGEST];
	static const size_t sizes[] = {0, 8, 300, 16384, 50000, 400000, LONGEST};
	uint64_t n = seen.count;

	OK(slmpm_am_handler(ctx, ECHO, echo, NULL));
	OK(slmpm_am_handler(ctx, ECHOED, inspect, &seen));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		slmpm_req req;

		actor_fill(data, i, sizes[i]);
		OK(slmpm_am(a, ECHO, "head", 4, data, sizes[i], NULL, &req));
		progress_until(&seen.count, ++n);
		CHECK(seen.peer.id == a.id && seen.head_len == 4 && seen.data_len == sizes[i] &&
			      actor_filled(seen.data, i, sizes[i]),
		      "the answer of %zu bytes is another", sizes[i]);
		EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	}
	OK(slmpm_am_handler(ctx, ECHO, NULL, NULL));
	OK(slmpm_am_handler(ctx, ECHOED, NULL, NULL));
}

/* ---- inside a handler ---- */

static void do_much(const struct slmpm_am *am, void *arg)
{
	static unsigned char big[LONGEST];
	uint64_t *count = arg;
	struct slmpm_event e = {.size = sizeof(e)};
	slmpm_listener listener;
	struct slmpm_am other = *am;
	slmpm_peer peer = am->peer;
	const void *held;
	slmpm_req req, also;
	slmpm_ctx own;

	/* What cannot be done at once would block. */
	REFUSED(slmpm_recv(peer, 77, NULL, 0, NULL, -1), SLMPM_ESTATE, "handler");
	REFUSED(slmpm_send(peer, 1, big, LONGEST, -1), SLMPM_ESTATE, "handler");
	REFUSED(slmpm_am(peer, NUMBER, NULL, 0, big, LONGEST, NULL, NULL), SLMPM_ESTATE, "handler");
	REFUSED(slmpm_hold(peer, 77, &held, NULL, -1), SLMPM_ESTATE, "handler");
	REFUSED(slmpm_close(peer, 0), SLMPM_ESTATE, "handler");
	REFUSED(slmpm_shut(ctx, 0), SLMPM_ESTATE, "handler");
	REFUSED(slmpm_connect(&peer, ctx, "shm:nobody-there", -1), SLMPM_ESTATE, "handler");
	OK(slmpm_listen(&listener, ctx, "shm:am-handler-listens"));
	REFUSED(slmpm_accept(listener, &peer, -1), SLMPM_ESTATE, "handler");
	OK(slmpm_unlisten(listener));
	EXPECT(slmpm_probe(peer, 77, NULL, -1), 0);
	EXPECT(slmpm_progress(ctx), 0);
	EXPECT(slmpm_next_event(ctx, &e, 0) >= 0, 1);
	/* The rest goes. */
	OK(slmpm_send(peer, 2, "direct", 6, -1));
	OK(slmpm_sendv(peer, 3, NULL, 0, NULL, &req));
	OK(slmpm_recvv(peer, 77, NULL, 0, NULL, &also));
	EXPECT(slmpm_test(&also, NULL), 0);
	REFUSED(slmpm_wait(&also, 1, NULL, -1), SLMPM_ESTATE, "handler");
	OK(slmpm_cancel(also));
	EXPECT(slmpm_test(&also, NULL), 1);
	OK(slmpm_am(peer, ECHOED, NULL, 0, "am", 2, NULL, NULL));
	OK(slmpm_am_reply(am, ECHOED, NULL, 0, NULL, 0));
	/* Another context is free. */
	OK(slmpm_open(&own, NULL));
	EXPECT(slmpm_progress(own), 0);
	OK(slmpm_shut(own, 0));
	/* Nor does a handler change its own for this time. */
	OK(slmpm_am_handler(ctx, am->id, NULL, NULL));
	other.peer.id = 12345;
	EXPECT(slmpm_am_reply(&other, ECHOED, NULL, 0, NULL, 0), -SLMPM_EHANDLE);
	(void)slmpm_wait(&req, 1, NULL, 0);
	++*count;
}

static struct slmpm_am kept;

static void keep(const struct slmpm_am *am, void *arg)
{
	kept = *am;
	++*(uint64_t *)arg;
}

static void inside(void)
{
	uint64_t count = 0, echoes = seen.count;
	char got[8];

	OK(slmpm_am_handler(ctx, NUMBER, do_much, &count));
	OK(slmpm_am_handler(ctx, ECHOED, inspect, &seen));
	OK(slmpm_am(a, NUMBER, NULL, 0, NULL, 0, NULL, NULL));
	progress_until(&count, 1);
	progress_until(&seen.count, echoes + 2);
	EXPECT(slmpm_recv(a, 2, got, sizeof(got), NULL, PATIENCE), 6);
	EXPECT(slmpm_recv(a, 3, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_am_handler(ctx, NUMBER, keep, &count));
	OK(slmpm_am(a, NUMBER, NULL, 0, NULL, 0, NULL, NULL));
	progress_until(&count, 2);
	REFUSED(slmpm_am_reply(&kept, ECHOED, NULL, 0, NULL, 0), SLMPM_ESTATE, "outside");
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
	OK(slmpm_am_handler(ctx, ECHOED, NULL, NULL));
}

/* A receive that waits is where handlers run, too. */
static void inside_receive(void)
{
	uint64_t before = seen.count;
	int i;

	OK(slmpm_am_handler(ctx, NUMBER, inspect, &seen));
	for (i = 0; i < 100; i++)
		OK(slmpm_am(a, NUMBER, NULL, 0, &i, sizeof(i), NULL, NULL));
	OK(slmpm_send(a, 1, &i, sizeof(i), PATIENCE));
	EXPECT(slmpm_recv(b, 1, &i, sizeof(i), NULL, PATIENCE), sizeof(i));
	CHECK(seen.count == before + 100, "%llu handlers ran",
	      (unsigned long long)(seen.count - before));
	OK(slmpm_am_handler(ctx, NUMBER, NULL, NULL));
}

/* ---- nobody there, nothing to be had ---- */

static void unhandled(void)
{
	static unsigned char data[LONGEST];
	uint64_t before = stat_of(b, true);
	slmpm_req req;

	OK(slmpm_am(a, 4711, "head", 4, data, 100, NULL, NULL));
	OK(slmpm_am(a, SLMPM_AM_ID_MAX, NULL, 0, data, 100000, NULL, NULL));
	OK(slmpm_am(a, 0, NULL, 0, data, LONGEST, NULL, &req));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	OK(slmpm_send(a, 1, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(b, 1, NULL, 0, NULL, PATIENCE), 0);
	EXPECT(stat_of(b, true), before + 3);
}

/* Nobody makes progress over there: the call ends, and what follows is none the worse. */
static int role_deaf(slmpm_peer host, char **words)
{
	char word[8];

	(void)words;
	OK(slmpm_am_handler(none, NUMBER, inspect, &seen));
	EXPECT(slmpm_recv(host, 1, word, sizeof(word), NULL, PATIENCE), 2);
	OK(slmpm_send(host, 1, NULL, 0, PATIENCE));
	for (char c; read(0, &c, 1) > 0;) /* until the host closes its end */
		;
	EXPECT(slmpm_recv(host, 2, word, sizeof(word), NULL, PATIENCE), 3);
	CHECK(seen.count == 1 && seen.data_len == 5, "%llu came", (unsigned long long)seen.count);
	return 0;
}

static void given_up(void)
{
	static unsigned char data[LONGEST];
	const struct slmpm_how soon = {.size = sizeof(soon), .timeout_ms = 20};
	slmpm_peer child;
	slmpm_req req;
	int ends[2];

	CHECK(pipe(ends) == 0 && dup2(ends[0], 0) == 0, "no pipe");
	CHECK(close(ends[0]) == 0, "no pipe");
	/* The child must not hold the writing end. */
	CHECK(fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0, "no pipe");
	child = actor_spawn("deaf", NULL, NULL);
	OK(slmpm_send(child, 1, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, PATIENCE), 0);
	EXPECT(slmpm_am(child, NUMBER, NULL, 0, data, LONGEST, &soon, NULL), -SLMPM_ETIMEOUT);
	OK(slmpm_am(child, NUMBER, NULL, 0, data, LONGEST, NULL, &req));
	OK(slmpm_cancel(req));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	OK(slmpm_am(child, NUMBER, NULL, 0, data, 5, NULL, NULL));
	OK(slmpm_send(child, 2, "end", 3, PATIENCE));
	close(ends[1]);
	actor_join(child, 0);
}

static void bad_calls(void)
{
	static unsigned char head[SLMPM_AM_HEAD_MAX + 1];
	struct slmpm_how how = {.size = 3};
	slmpm_peer stale = {12345};
	slmpm_req req;

	REFUSED(slmpm_am_handler(ctx, SLMPM_AM_ID_MAX + 1, inspect, NULL), SLMPM_EINVAL, "0xff00");
	EXPECT(slmpm_am_handler((slmpm_ctx){1}, 1, inspect, NULL), -SLMPM_EHANDLE);
	OK(slmpm_am_handler(ctx, 1234, NULL, NULL));
	REFUSED(slmpm_am(a, SLMPM_AM_ID_MAX + 1, NULL, 0, NULL, 0, NULL, NULL), SLMPM_EINVAL,
		"highest");
	REFUSED(slmpm_am(a, 1, head, sizeof(head), NULL, 0, NULL, NULL), SLMPM_ELIMIT, "257");
	REFUSED(slmpm_am(a, 1, NULL, 1, NULL, 0, NULL, NULL), SLMPM_EINVAL, "NULL");
	REFUSED(slmpm_am(a, 1, head, 1, NULL, 1, NULL, NULL), SLMPM_EINVAL, "NULL");
	REFUSED(slmpm_am(a, 1, NULL, 0, head, SIZE_MAX, NULL, NULL), SLMPM_ELIMIT, "at most");
	REFUSED(slmpm_am(a, 1, head, 1, head, SLMPM_MESSAGE_MAX, NULL, &req), SLMPM_ELIMIT,
		"at most");
	EXPECT(slmpm_am(stale, 1, NULL, 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
	REFUSED(slmpm_am(a, 1, NULL, 0, NULL, 0, &how, NULL), SLMPM_EINVAL, "size");
	how = (struct slmpm_how){.size = sizeof(how), .flags = SLMPM_NOTIFY};
	REFUSED(slmpm_am(a, 1, NULL, 0, NULL, 0, &how, NULL), SLMPM_EINVAL, "flags");
	EXPECT(slmpm_am_reply(NULL, 1, NULL, 0, NULL, 0), -SLMPM_EINVAL);
	OK(slmpm_close(a, PATIENCE));
	EXPECT(slmpm_am(a, 1, NULL, 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
	EXPECT(slmpm_recv(b, 1, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	EXPECT(slmpm_am(b, 1, NULL, 0, NULL, 0, NULL, NULL), -SLMPM_ECLOSED);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"deaf", role_deaf}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	every_size();
	in_order();
	among_messages();
	before_message();
	replies();
	inside();
	inside_receive();
	unhandled();
	given_up();
	bad_calls();
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}
