/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Messages both ways between peers with links over shared memory and TCP: short ones, those that go
 * in packets, and those that are fetched, each by any link, by the one that it asks for, or by none
 * but that, while the TCP link is cut again and again. Each comes once, whole and in order.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/proxy.h"
#include "tests/lib/random.h"

#define LONGEST  (200u << 10)
#define SENDS    4
#define RECEIVES 3
#define MESSAGES 300 /* each way, at least; so many until the last cut */
#define CUTS     3

struct post {
	slmpm_req req;
	uint64_t number; /* 0: none */
	unsigned char bytes[LONGEST];
};

struct way { /* from one end to the other */
	slmpm_peer from, to;
	uint64_t posted, sent;       /* messages; SENT: not refused */
	uint64_t waited, came, last; /* receives; that have ended; the last one's message */
	struct post out[SENDS], in[RECEIVES];
};

static slmpm_ctx ctx;
static struct way ways[PROXY_WAYS];
static unsigned cuts;

static uint32_t length_of(uint64_t number)
{
	struct rng g = {number * 77};

	switch (rng_below(&g, 3)) {
	case 0: return 8 + rng_below(&g, 100);
	case 1: return 8 + rng_below(&g, 12000);
	default: return LONGEST - rng_below(&g, LONGEST - 20000);
	}
}

static bool all_sent(const struct way *w)
{
	return w->posted >= MESSAGES && cuts == CUTS;
}

static void send_one(struct way *w, struct rng *chance)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_iov iov;
	struct post *p = w->out;

	while (p < w->out + SENDS && p->number)
		p++;
	if (p == w->out + SENDS || all_sent(w))
		return;
	if (rng_one_in(chance, 3))
		how.flags = SLMPM_ON_LINK(rng_below(chance, 2));
	if (how.flags && rng_one_in(chance, 2))
		how.flags |= SLMPM_STRICT;
	p->number = ++w->posted;
	iov = (struct slmpm_iov){p->bytes, length_of(p->number)};
	memcpy(p->bytes, &p->number, sizeof(p->number));
	actor_fill(p->bytes + 8, p->number, iov.len - 8);
	OK(slmpm_sendv(w->from, 1, &iov, 1, &how, &p->req));
}

/* One that goes by no other link than TCP is refused while that does not stand. */
static void inspect_sends(struct way *w)
{
	for (struct post *p = w->out; p < w->out + SENDS; p++) {
		struct slmpm_done done;
		int rc = p->number ? slmpm_test(&p->req, &done) : 0;

		CHECK(rc >= 0, "send: %d (%s)", rc, slmpm_error_detail());
		if (!rc)
			continue;
		CHECK(done.status == 0 || done.status == -SLMPM_ESTATE, "message %llu: %d",
		      (unsigned long long)p->number, done.status);
		w->sent += done.status == 0;
		memset(p->bytes, 0xee, sizeof(p->bytes));
		p->number = 0;
	}
}

static void receive_one(struct way *w)
{
	for (struct post *p = w->in; p < w->in + RECEIVES; p++) {
		struct slmpm_iov iov = {p->bytes, LONGEST};

		if (p->number)
			continue;
		p->number = ++w->waited;
		OK(slmpm_recvv(w->to, 1, &iov, 1, NULL, &p->req));
		return;
	}
}

/* The one that was posted first has the next message. */
static bool inspect_receive(struct way *w)
{
	struct post *p = w->in;
	struct slmpm_done done;
	uint64_t number;
	int rc;

	while (p < w->in + RECEIVES && p->number != w->came + 1)
		p++;
	rc = p < w->in + RECEIVES ? slmpm_test(&p->req, &done) : 0;
	CHECK(rc >= 0, "receive: %d (%s)", rc, slmpm_error_detail());
	if (!rc)
		return false;
	CHECK(done.status == 0, "receive: %d", done.status);
	memcpy(&number, p->bytes, sizeof(number));
	CHECK(number > w->last && number <= w->posted && done.len == length_of(number),
	      "message %llu of %llu bytes behind %llu", (unsigned long long)number,
	      (unsigned long long)done.len, (unsigned long long)w->last);
	CHECK(actor_filled(p->bytes + 8, number, done.len - 8), "message %llu is torn",
	      (unsigned long long)number);
	w->last = number;
	w->came++;
	p->number = 0;
	return true;
}

static bool is_through(const struct way *w)
{
	bool waits = false;

	for (const struct post *p = w->out; p < w->out + SENDS; p++)
		waits |= p->number != 0;
	return all_sent(w) && !waits && w->came == w->sent;
}

static void cut(struct rng *chance)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	OK(slmpm_link_query(ways[0].from, 1, &info));
	if (info.state != SLMPM_LINK_UP || cuts + 1 != info.made || cuts == CUTS)
		return;
	for (int way = 0; way < PROXY_WAYS; way++) {
		struct proxy_rule rule = {.fate = PROXY_RESET};

		rule.at = proxy_passed(cuts, (enum proxy_way)way) + rng_below(chance, 20000);
		proxy_rule(cuts, (enum proxy_way)way, rule);
	}
	cuts++;
}

static void step(struct way *w, struct rng *chance)
{
	inspect_sends(w);
	while (inspect_receive(w))
		;
	if (rng_one_in(chance, 3))
		send_one(w, chance);
	if (rng_one_in(chance, 3))
		receive_one(w);
}

static void run(struct rng *chance)
{
	int64_t end = actor_now_ms() + PATIENCE;

	while (!is_through(&ways[0]) || !is_through(&ways[1])) {
		for (int i = 0; i < PROXY_WAYS; i++)
			step(&ways[i], chance);
		if (rng_one_in(chance, 20))
			cut(chance);
		CHECK(slmpm_progress(ctx) >= 0, "progress: %s", slmpm_error_detail());
		CHECK(actor_now_ms() < end, "%llu, %llu of %llu, %llu messages have come",
		      (unsigned long long)ways[0].came, (unsigned long long)ways[1].came,
		      (unsigned long long)ways[0].sent, (unsigned long long)ways[1].sent);
	}
}

static void progress_for(int ms)
{
	int64_t end = actor_now_ms() + ms;

	while (actor_now_ms() < end)
		CHECK(slmpm_progress(ctx) >= 0, "progress: %s", slmpm_error_detail());
}

/* A message that its sender wants back comes whole, or not at all, although what the sender sent
 * before by the other link is late. */
static void take_back_behind_what_is_late(void)
{
	const struct proxy_rule late = {PROXY_DELAY, PROXY_NOW, 60000};
	struct way *w = &ways[0];
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_iov out = {w->out[0].bytes, LONGEST}, in = {w->out[1].bytes, LONGEST},
			 aside = {w->out[2].bytes, 5};
	struct slmpm_link_info info = {.size = sizeof(info)};
	struct slmpm_done done;
	slmpm_req sent, received;

	do {
		progress_for(1);
		OK(slmpm_link_query(w->from, 1, &info));
	} while (info.state != SLMPM_LINK_UP);
	for (int way = 0; way < PROXY_WAYS; way++)
		proxy_rule(cuts, (enum proxy_way)way, late);
	actor_fill(out.base, 7, LONGEST);
	how.flags = SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_ON_LINK(0) | SLMPM_STRICT;
	OK(slmpm_sendv(w->from, 2, &out, 1, &how, &sent));
	progress_for(150);
	how.flags = SLMPM_ON_LINK(1) | SLMPM_STRICT;
	OK(slmpm_sendv(w->from, 3, &aside, 1, &how, NULL));
	if (slmpm_cancel(sent) == 0)
		memset(out.base, 0xee, LONGEST);
	OK(slmpm_recvv(w->to, 2, &in, 1, NULL, &received));
	progress_for(150);
	if (slmpm_test(&received, &done) == 1)
		CHECK(actor_filled(in.base, 7, LONGEST), "a message is torn");
	EXPECT(slmpm_recv(w->to, 3, in.base, LONGEST, NULL, PATIENCE), 5);
}

/* ---- one side leaves ------------------------------------------------------------------------ */

#define MUCH   ((size_t)12 << 20) /* more than is fetched in one pass */
#define LITTLE ((size_t)4 << 10)  /* is read without a look at whether its owner is there */
#define PIECES (MUCH / 3 / LITTLE)

/* Each has a context of its own: it goes on when the test says so. */
static struct end {
	slmpm_ctx ctx;
	slmpm_peer peer;
	unsigned char *bytes;
	slmpm_req req;
} sender, receiver;

static char url[64];

static void *call(void *unused)
{
	EXPECT(slmpm_connect(&sender.peer, sender.ctx, url, PATIENCE), 0);
	return unused;
}

static void pass(struct end *e)
{
	CHECK(slmpm_progress(e->ctx) >= 0, "progress: %s", slmpm_error_detail());
}

static bool is_joined(struct end *e)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	return slmpm_link_query(e->peer, 1, &info) == 0 && info.state == SLMPM_LINK_UP;
}

static void open_ends(void)
{
	slmpm_listener listener;
	pthread_t caller;

	OK(slmpm_open(&sender.ctx, NULL));
	OK(slmpm_open(&receiver.ctx, NULL));
	OK(slmpm_listen(&listener, receiver.ctx, url));
	CHECK(pthread_create(&caller, NULL, call, NULL) == 0, "a thread");
	OK(slmpm_accept(listener, &receiver.peer, PATIENCE));
	pthread_join(caller, NULL);
	do {
		pass(&sender);
		pass(&receiver);
	} while (!is_joined(&sender) || !is_joined(&receiver));
	sender.bytes = malloc(MUCH);
	receiver.bytes = calloc(1, MUCH);
	CHECK(sender.bytes && receiver.bytes, "no memory");
	actor_fill(sender.bytes, 9, MUCH);
}

static bool is_begun(void)
{
	unsigned char want[64];

	actor_fill(want, 9, sizeof(want));
	return memcmp(receiver.bytes, want, sizeof(want)) == 0;
}

/* The message is announced, and the receiver amidst reading, into IN; the sender has not seen
 * that. */
static void begin_to_fetch(const struct slmpm_iov *in, int pieces)
{
	struct slmpm_how how = {.size = sizeof(how),
				.flags = SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_ON_LINK(0) | SLMPM_STRICT,
				.timeout_ms = PATIENCE};
	struct slmpm_iov out = {sender.bytes, MUCH};
	int64_t end = actor_now_ms() + PATIENCE;

	OK(slmpm_sendv(sender.peer, 2, &out, 1, &how, &sender.req));
	for (int i = 0; i < 20; i++)
		pass(&sender);
	OK(slmpm_recvv(receiver.peer, 2, in, pieces, NULL, &receiver.req));
	while (!is_begun()) {
		pass(&receiver);
		CHECK(actor_now_ms() < end, "nothing is fetched");
	}
}

/* By the link on which all is late. */
static void go_by_tcp(struct end *e)
{
	const struct proxy_rule late = {PROXY_DELAY, PROXY_NOW, 100000};
	struct slmpm_how how = {.size = sizeof(how),
				.flags = SLMPM_ON_LINK(1) | SLMPM_STRICT,
				.timeout_ms = PATIENCE};
	struct slmpm_iov aside = {"aside", 5};

	for (int way = 0; way < PROXY_WAYS; way++)
		proxy_rule(proxy_connections() - 1, (enum proxy_way)way, late);
	OK(slmpm_sendv(e->peer, 3, &aside, 1, &how, NULL));
}

/* And its memory is used again. */
static void leave_and_reuse(struct end *e)
{
	EXPECT(slmpm_close(e->peer, 0), -SLMPM_ETIMEOUT);
	memset(e->bytes, 0xee, MUCH);
}

static int end_of(struct end *e)
{
	int64_t end = actor_now_ms() + PATIENCE;
	struct slmpm_done done;

	while (slmpm_test(&e->req, &done) == 0) {
		pass(e);
		CHECK(actor_now_ms() < end, "neither an end nor a message");
	}
	return done.status;
}

/* What is read of a message whose sender has left is no message, if its memory is another's. */
static int sender_leaves(void *unused)
{
	static struct slmpm_iov in[1 + PIECES];
	int rc;

	(void)unused;
	open_ends();
	in[0] = (struct slmpm_iov){receiver.bytes, MUCH - PIECES * LITTLE};
	for (size_t i = 0; i < PIECES; i++)
		in[1 + i] = (struct slmpm_iov){receiver.bytes + in[0].len + i * LITTLE, LITTLE};
	begin_to_fetch(in, 1 + PIECES);
	go_by_tcp(&sender);
	leave_and_reuse(&sender);
	rc = end_of(&receiver);
	CHECK(rc == 0 || rc == -SLMPM_ECLOSED, "receive: %d", rc);
	CHECK(rc < 0 || actor_filled(receiver.bytes, 9, MUCH), "a message is torn");
	return 0;
}

/* Nor does a sender begin to write into the memory of a receiver that may have. */
static int receiver_leaves(void *unused)
{
	struct slmpm_iov in;
	struct slmpm_stats stats;

	(void)unused;
	open_ends();
	in = (struct slmpm_iov){receiver.bytes, MUCH};
	begin_to_fetch(&in, 1);
	go_by_tcp(&receiver);
	for (int i = 0; i < 50; i++)
		pass(&sender);
	OK(slmpm_peer_stats(sender.peer, &stats, sizeof(stats)));
	/* All that may have made it sure is what went by TCP. */
	CHECK(!stats.push_bytes || slmpm_probe(sender.peer, 3, NULL, 0) == 1,
	      "%llu bytes were written", (unsigned long long)stats.push_bytes);
	leave_and_reuse(&receiver);
	(void)end_of(&sender);
	for (size_t i = 0; i < MUCH; i++)
		CHECK(receiver.bytes[i] == 0xee, "byte %zu of memory given back was written", i);
	return 0;
}

static int usual_by_memory(void *body)
{
	CHECK(setenv("SLMPM_LINK", "0", 1) == 0, "setenv");
	return (*(int (**)(void *))body)(NULL);
}

static void one_side_leaves(void)
{
	int (*const bodies[])(void *) = {sender_leaves, receiver_leaves};

	for (int i = 0; i < 2; i++) {
		int (*body)(void *) = bodies[i];

		CHECK(child_run(usual_by_memory, &body, 30) == 0, "see above");
		proxy_forget();
	}
}

int main(void)
{
	struct rng chance = {rng_run_seed(0x2b)};
	struct slmpm_stats stats;
	slmpm_listener listener;

	setenv("SLMPM_FABRIC", "shm", 1);
	setenv("SLMPM_LINKS", "shm,tcp", 1);
	setenv("SLMPM_LINK", rng_one_in(&chance, 3) ? "1" : "0", 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	setenv("SLMPM_LINKS_LOG", rng_one_in(&chance, 2) ? "64k" : "4m", 1);
	setenv("SLMPM_EAGER_MAX", "64k", 1);
	setenv("SLMPM_ATTACH", "y", 1);
	setenv("SLMPM_FETCH", "always", 1);
	setenv("SLMPM_FETCH_MIN", "20k", 1);
	proxy_start();
	snprintf(url, sizeof(url), "shm:slmpm-net-fetch-%d", (int)getpid());
	one_side_leaves();
	EXPECT(slmpm_open(&ctx, NULL), 0);
	EXPECT(slmpm_listen(&listener, ctx, url), 0);
	EXPECT(slmpm_connect(&ways[0].from, ctx, url, PATIENCE), 0);
	EXPECT(slmpm_accept(listener, &ways[0].to, PATIENCE), 0);
	ways[1].from = ways[0].to;
	ways[1].to = ways[0].from;
	run(&chance);
	OK(slmpm_peer_stats(ways[0].from, &stats, sizeof(stats)));
	printf("%llu messages were fetched, %u cuts\n", (unsigned long long)stats.rget_messages,
	       cuts);
	take_back_behind_what_is_late();
	proxy_stop();
	for (int i = 0; i < PROXY_WAYS; i++)
		OK(slmpm_close(ways[i].from, 1000));
	OK(slmpm_unlisten(listener));
	OK(slmpm_shut(ctx, 1000));
	return 0;
}
