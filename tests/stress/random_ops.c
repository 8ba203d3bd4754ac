/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random calls between a hub and three leaves, held against a model of what must arrive where.
 * All four contexts are driven by one thread, so that a seed gives the same run again.
 * SLMPM_TEST_SEED and SLMPM_TEST_SECONDS say which and for how long.
 */
#include <pthread.h>
#include <slmpm.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/mail_model.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define LEAVES   3
#define CHANNELS (2 * LEAVES) /* 0.. from the hub to leaf i, LEAVES.. from it to the hub */
#define WANTS    24
#define SENDS    24
#define HELD     6
#define LONGEST  ((size_t)200000)
#define OPS      1500
#define MS       10000
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

struct receive {
	slmpm_req req;
	unsigned char *buf;
	size_t cap;
	int side; /* who posted it: LEAVES is the hub */
};

struct send {
	slmpm_req req;
	unsigned char *buf;
	int channel;
	size_t number;
};

struct hold {
	const void *data;
	slmpm_peer peer;
	int channel;
	size_t number, len;
	bool growing;
};

struct loan { /* at most one open a channel */
	void *buf;
	size_t len;
	uint64_t seed;
	uint32_t stream, imm;
	size_t ready, number; /* once a part of it is out */
	bool begun;
};

static struct rng rng;
static slmpm_ctx contexts[LEAVES + 1];
static slmpm_peer to_leaf[LEAVES], to_hub[LEAVES];
static struct mail_channel channels[CHANNELS];
static struct mail_want wants[WANTS];
static struct receive receives[WANTS];
static struct send sends[SENDS];
static struct hold holds[HELD];
static struct loan loans[CHANNELS];
static uint64_t orders;
static bool any_peer, take_back, ghosts[CHANNELS];
static uint32_t packet_max[CHANNELS];
static unsigned char *scratch;
static struct {
	uint64_t sent, taken, truncated, canceled, timeouts, probed, held, loaned;
} total;

static uint32_t below(uint32_t n)
{
	return rng_below(&rng, n);
}

static slmpm_peer sender_of(int channel)
{
	return channel < LEAVES ? to_leaf[channel] : to_hub[channel - LEAVES];
}

/* The channel on which SIDE hears from PEER. */
static int channel_from(int side, slmpm_peer peer)
{
	if (side < LEAVES)
		return side;
	for (int i = 0; i < LEAVES; i++)
		if (to_leaf[i].id == peer.id)
			return LEAVES + i;
	CHECK(0, "a message of nobody");
}

static size_t some_length(void)
{
	switch (below(8)) {
	case 0: return 0;
	case 1: return below(20000);
	case 2: return below(4) ? below(9000) : below((uint32_t)LONGEST);
	default: return below(300);
	}
}

static uint32_t some_stream(bool receiving)
{
	return receiving && !below(4) ? SLMPM_ANY_STREAM : below(3);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void note(int channel, uint32_t stream, uint32_t imm, uint64_t seed, size_t len)
{
	(void)mail_send(&channels[channel], stream, imm, seed, len);
	total.sent++;
}

/* The announcement of a long message came and is withdrawn: it can be seen for a while, and a
 * receive of any peer be busy with it while another peer's message goes to the next one. */
static void in_vain(int channel)
{
	ghosts[channel] = true;
	total.timeouts++;
	for (int i = LEAVES; i < CHANNELS && any_peer && channel >= LEAVES; i++)
		channels[i].order = MAIL_ANYHOW;
}

static void send_now(int channel)
{
	uint64_t seed = rng_next(&rng);
	uint32_t stream = some_stream(false);
	size_t n = some_length();
	int rc;

	mail_fill(seed, scratch, n);
	rc = slmpm_send(sender_of(channel), stream, scratch, n, 0);
	CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	if (rc == 0)
		note(channel, stream, 0, seed, n);
	else
		in_vain(channel);
}

/* Cuts N bytes at BUF into up to five pieces. */
static int cut(struct slmpm_iov iov[5], void *buf, size_t n)
{
	int pieces = 1 + (int)below(5);
	unsigned char *at = buf;

	for (int i = 0; i < pieces; i++) {
		size_t take = i == pieces - 1 ? n : below((uint32_t)n + 1);

		iov[i] = (struct slmpm_iov){at, take};
		at += take;
		n -= take;
	}
	return pieces;
}

static void send_later(int channel)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = (uint32_t)rng_next(&rng)};
	uint64_t seed = rng_next(&rng);
	uint32_t stream = some_stream(false);
	size_t n = some_length();
	struct slmpm_iov iov[5];
	struct send *s = NULL;
	int pieces;

	for (int i = 0; i < SENDS && !s; i++)
		if (!sends[i].buf)
			s = &sends[i];
	if (!s)
		return;
	s->buf = malloc(n + 1);
	CHECK(s->buf, "memory");
	mail_fill(seed, s->buf, n);
	pieces = cut(iov, s->buf, n);
	OK(slmpm_sendv(sender_of(channel), stream, iov, pieces, &how, &s->req));
	s->channel = channel;
	s->number = mail_send(&channels[channel], stream, how.imm, seed, n);
	total.sent++;
}

static void send_burst(int channel)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = below(3)};
	uint32_t stream = some_stream(false), n = 1 + below(40), len = below(200);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t seed = rng_next(&rng);
		struct slmpm_iov iov = {scratch, below(10) ? len : below(3000)};
		int rc;

		how.flags = i == n - 1 && below(4) ? 0 : SLMPM_MORE;
		mail_fill(seed, scratch, iov.len);
		rc = slmpm_sendv(sender_of(channel), stream, &iov, 1, &how, NULL);
		CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
		if (rc < 0)
			break;
		note(channel, stream, how.imm, seed, iov.len);
	}
}

static void finish_send(struct send *s, bool taken_back)
{
	struct mail_channel *c = &channels[s->channel];
	struct slmpm_done done;
	int rc = slmpm_test(&s->req, &done);

	CHECK(rc >= 0, "%s", slmpm_error_detail());
	if (!rc) {
		CHECK(!taken_back, "taken back and not finished");
		return;
	}
	CHECK(done.status == (taken_back ? -SLMPM_ECANCELED : 0), "status %d", done.status);
	if (taken_back) {
		CHECK(c->mails[s->number].state == MAIL_LIVE, "taken back, and received");
		c->mails[s->number].state = MAIL_GONE;
		c->order = MAIL_ANYHOW; /* a receive may have had it for a while */
		total.canceled++;
	}
	free(s->buf);
	*s = (struct send){.buf = NULL};
}

/* ---- loans ---------------------------------------------------------------------------------- */

static void open_loan(int channel)
{
	struct loan *l = &loans[channel];
	int rc;

	l->len = below(3) ? some_length() : below((uint32_t)LONGEST);
	l->stream = some_stream(false);
	l->seed = rng_next(&rng);
	l->imm = (uint32_t)rng_next(&rng);
	l->ready = 0;
	l->begun = false;
	rc = slmpm_loan(sender_of(channel), l->stream, l->len, &l->buf, 0);
	CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	if (rc < 0) {
		l->buf = NULL;
		return;
	}
	CHECK(l->buf && (uintptr_t)l->buf % 32 == 0, "alignment of a loan");
	mail_fill(l->seed, l->buf, l->len);
}

/* False: what was sent before it has not gone yet. */
static bool commit(int channel, size_t n, bool part)
{
	struct loan *l = &loans[channel];
	struct slmpm_how how = {.size = sizeof(how), .imm = l->imm, .flags = part ? SLMPM_PART : 0};
	int rc = slmpm_commit(sender_of(channel), l->buf, n, &how);
	struct mail *m;

	CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	if (rc < 0)
		return false;
	if (!l->begun) {
		l->number = mail_send(&channels[channel], l->stream, l->imm, l->seed, l->len);
		total.sent++;
		l->begun = true;
	}
	l->ready = n;
	m = &channels[channel].mails[l->number];
	m->growing = part;
	m->len = part ? l->len : n;
	return true;
}

static bool settle_loan(int channel)
{
	struct loan *l = &loans[channel];
	size_t n = l->ready +
		   (below(2) ? l->len - l->ready : below((uint32_t)(l->len - l->ready) + 1));

	if (!l->begun && !below(4))
		OK(slmpm_abort(sender_of(channel), l->buf));
	else if (!commit(channel, n, false))
		return false;
	total.loaned++;
	l->buf = NULL;
	return true;
}

/* A part of a large one, while it stays open. */
static void grow_loan(int channel)
{
	struct loan *l = &loans[channel];

	if (l->len > packet_max[channel])
		(void)commit(channel, l->ready + below((uint32_t)(l->len - l->ready) + 1), true);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static slmpm_peer source(int side, const struct mail_channel **c)
{
	int leaf = (int)below(LEAVES);

	*c = side < LEAVES ? &channels[side] : any_peer ? NULL : &channels[LEAVES + leaf];
	if (side == LEAVES)
		return any_peer ? slmpm_any(contexts[side]) : to_leaf[leaf];
	return below(2) ? slmpm_any(contexts[side]) : to_hub[side];
}

static long predict(const struct mail_channel *c, size_t at)
{
	return c && c->order == MAIL_EXACT ? mail_predict(c, wants, WANTS, at) : -1;
}

/* Wants stand in the order of their posting; the last place is for a call that does not wait. */
static size_t place(void)
{
	size_t to = 0;

	for (size_t i = 0; i < WANTS - 1; i++) {
		if (!wants[i].used)
			continue;
		if (i != to) {
			wants[to] = wants[i];
			receives[to] = receives[i];
			wants[i].used = false;
			receives[i].buf = NULL;
		}
		to++;
	}
	return to;
}

static void taken(size_t at, int side, const struct slmpm_done *done, const void *buf, size_t cap)
{
	struct mail_channel *c = &channels[channel_from(side, done->peer)];
	struct mail_got got = {.stream = done->stream,
			       .imm = done->imm,
			       .len = done->len,
			       .n = done->len < cap ? done->len : cap,
			       .data = buf,
			       .part = done->flags & SLMPM_PART};

	CHECK(!wants[at].channel || wants[at].channel == c, "from another peer");
	CHECK(wants[at].stream == SLMPM_ANY_STREAM || wants[at].stream == done->stream,
	      "from stream %u", done->stream);
	(void)mail_take(c, predict(wants[at].channel, at), wants[at].order, &got);
	wants[at].used = false;
	total.taken++;
}

static void post_receive(int side)
{
	struct receive *r;
	struct slmpm_iov iov[5];
	slmpm_peer from;
	size_t at = place();
	int pieces;

	if (at == WANTS - 1)
		return;
	r = &receives[at];
	/* Of a message cut off it must be known which it is. */
	r->cap = below(6) || any_peer || take_back ? LONGEST : some_length();
	r->side = side;
	r->buf = malloc(r->cap + 1);
	CHECK(r->buf, "memory");
	from = source(side, &wants[at].channel);
	wants[at].stream = some_stream(true);
	wants[at].order = ++orders;
	wants[at].used = true;
	pieces = cut(iov, r->buf, r->cap);
	OK(slmpm_recvv(from, wants[at].stream, iov, pieces, NULL, &r->req));
}

static void finish_receive(size_t at, bool taken_back)
{
	struct receive *r = &receives[at];
	struct slmpm_done done;
	int rc = slmpm_test(&r->req, &done);

	CHECK(rc >= 0, "%s", slmpm_error_detail());
	if (!rc) {
		CHECK(!taken_back, "taken back and not finished");
		return;
	}
	if (taken_back) {
		CHECK(done.status == -SLMPM_ECANCELED, "status %d", done.status);
		wants[at].used = false;
		total.canceled++;
	} else {
		bool cut_off = done.len > r->cap;

		CHECK(done.status == (cut_off ? -SLMPM_ETRUNC : 0), "status %d", done.status);
		total.truncated += cut_off;
		taken(at, r->side, &done, r->buf, r->cap);
	}
	free(r->buf);
	r->buf = NULL;
}

static void receive_now(int side)
{
	size_t at = WANTS - 1;
	struct slmpm_done done;
	slmpm_peer from = source(side, &wants[at].channel);
	int64_t n;

	wants[at].stream = some_stream(true);
	wants[at].order = ++orders;
	n = slmpm_recv(from, wants[at].stream, scratch, LONGEST, &done, 0);
	CHECK(n >= 0 || n == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	if (n < 0)
		return;
	CHECK((uint64_t)n == done.len && done.status == 0, "length");
	wants[at].used = true;
	taken(at, side, &done, scratch, LONGEST);
}

static void probe(int side)
{
	size_t at = WANTS - 1;
	struct slmpm_done done;
	slmpm_peer from = source(side, &wants[at].channel);
	int rc = slmpm_probe(from, wants[at].stream = some_stream(true), &done, 0);
	long number;

	CHECK(rc >= 0, "%s", slmpm_error_detail());
	if (!rc)
		return;
	wants[at].used = true;
	number = predict(wants[at].channel, at);
	wants[at].used = false;
	total.probed++;
	if (wants[at].channel && ghosts[wants[at].channel - channels])
		return;
	if (number >= 0) {
		const struct mail *m = &wants[at].channel->mails[number];

		CHECK((m->growing || done.flags & SLMPM_PART ? done.len <= m->len :
							       m->len == done.len) &&
			      m->stream == done.stream && m->imm == done.imm,
		      "probed %llu bytes on %u, due are %zu on %u", (unsigned long long)done.len,
		      done.stream, m->len, m->stream);
	} else {
		CHECK(any_peer || !wants[at].channel || wants[at].channel->order != MAIL_EXACT,
		      "a message that is not due");
	}
}

static void hold(int side)
{
	size_t at = WANTS - 1;
	struct hold *h = NULL;
	struct slmpm_done done;
	slmpm_peer from = source(side, &wants[at].channel);
	const void *data;
	int64_t n;

	for (int i = 0; i < HELD && !h; i++)
		if (!holds[i].data)
			h = &holds[i];
	if (!h)
		return;
	wants[at].stream = some_stream(true);
	wants[at].order = ++orders;
	n = slmpm_hold(from, wants[at].stream, &data, &done, 0);
	CHECK(n >= 0 || n == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	if (n < 0)
		return;
	wants[at].used = true;
	h->data = data;
	h->peer = done.peer;
	h->channel = channel_from(side, done.peer);
	CHECK((uint64_t)n == done.len, "length");
	h->growing = done.flags & SLMPM_PART;
	h->len = done.len;
	taken(at, side, &done, data, LONGEST);
	for (h->number = channels[h->channel].count; h->number-- > 0;)
		if (channels[h->channel].mails[h->number].taker == wants[at].order)
			break;
	total.held++;
}

/* As far as it is known to have come. */
static void look_again(struct hold *h)
{
	const struct mail *m = &channels[h->channel].mails[h->number];
	struct slmpm_done done = {.flags = 0};
	int64_t n;

	if (h->growing) {
		n = slmpm_more(h->peer, h->data, h->len, &done, 0);
		CHECK(n >= (int64_t)h->len || n == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
		if (n >= 0) {
			h->len = (size_t)n;
			h->growing = done.flags & SLMPM_PART;
		}
	}
	CHECK(h->growing ? h->len <= m->len : !m->growing && h->len == m->len, "%zu of %zu bytes",
	      h->len, m->len);
	CHECK(mail_same(&channels[h->channel], h->number, h->data, h->len),
	      "a held message changed");
}

static void let_go(struct hold *h)
{
	look_again(h);
	OK(slmpm_release(h->peer, h->data));
	h->data = NULL;
}

/* ---- taking back ---------------------------------------------------------------------------- */

static void cancel_receive(size_t at)
{
	struct mail_channel *c = (struct mail_channel *)(uintptr_t)wants[at].channel;
	bool had_one = predict(c, at) >= 0;
	int rc = slmpm_cancel(receives[at].req);

	CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%s", slmpm_error_detail());
	finish_receive(at, rc == 0);
	/* Others may have gone past the message it had. */
	if (rc == 0 && had_one)
		c->order = MAIL_ANYHOW;
	for (int i = 0; rc == 0 && !c && i < CHANNELS; i++)
		channels[i].order = MAIL_ANYHOW;
}

static void cancel_send(struct send *s)
{
	int rc = slmpm_cancel(s->req);

	CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%s", slmpm_error_detail());
	finish_send(s, rc == 0);
}

/* ---- an episode ----------------------------------------------------------------------------- */

static void *connect_leaves(void *arg)
{
	for (int i = 0; i < LEAVES; i++)
		OK(slmpm_connect(&to_hub[i], contexts[i], arg, MS));
	return NULL;
}

static void begin(void)
{
	static const uint32_t segments[] = {0, 128, 256, 1024};
	char url[64];
	slmpm_listener listener;
	pthread_t thread;

	any_peer = below(2);
	take_back = below(2);
	for (int i = 0; i <= LEAVES; i++) {
		struct slmpm_options o = {.size = sizeof(o), .ring_segments = segments[below(4)]};

		OK(slmpm_open(&contexts[i], &o));
	}
	memset(ghosts, 0, sizeof(ghosts));
	for (int i = 0; i < CHANNELS; i++)
		mail_reset(&channels[i], i >= LEAVES && any_peer ? MAIL_MONOTONE : MAIL_EXACT);
	snprintf(url, sizeof(url), "shm:random-%d", (int)getpid());
	OK(slmpm_listen(&listener, contexts[LEAVES], url));
	CHECK(pthread_create(&thread, NULL, connect_leaves, url) == 0, "thread");
	for (int i = 0; i < LEAVES; i++)
		OK(slmpm_accept(listener, &to_leaf[i], MS));
	pthread_join(thread, NULL);
	OK(slmpm_unlisten(listener));
	for (int i = 0; i < CHANNELS; i++) {
		struct slmpm_peer_info info = {.size = sizeof(info)};

		OK(slmpm_peer_query(sender_of(i), &info));
		packet_max[i] = info.packet_max;
	}
}

static void one_send(int channel)
{
	if (loans[channel].buf) {
		/* A large one has its place where it is committed, and keeps nothing waiting; a
		 * short one goes before what is queued behind it. */
		if (!below(3))
			(void)settle_loan(channel);
		else if (below(2))
			grow_loan(channel);
		else if (loans[channel].len > packet_max[channel])
			(below(2) ? send_later : send_now)(channel);
		return;
	}
	switch (below(6)) {
	case 0: open_loan(channel); break;
	case 1: send_burst(channel); break;
	case 2:
	case 3: send_later(channel); break;
	default: send_now(channel); break;
	}
}

static void one_receive(int side)
{
	switch (below(7)) {
	case 0: probe(side); break;
	case 1: hold(side); break;
	case 2:
	case 3: receive_now(side); break;
	default: post_receive(side); break;
	}
}

static void one_end(void)
{
	size_t at = below(WANTS - 1);
	struct send *s = &sends[below(SENDS)];
	struct hold *h = &holds[below(HELD)];

	if (wants[at].used && take_back && !below(3))
		cancel_receive(at);
	else if (wants[at].used)
		finish_receive(at, false);
	if (s->buf && take_back && !below(6))
		cancel_send(s);
	else if (s->buf)
		finish_send(s, false);
	if (h->data && below(2))
		(below(2) ? look_again : let_go)(h);
}

static void progress_all(void)
{
	for (int i = 0; i <= LEAVES; i++)
		CHECK(slmpm_progress(contexts[i]) >= 0, "%s", slmpm_error_detail());
}

static void finish_all(void)
{
	progress_all();
	for (size_t i = 0; i < WANTS - 1; i++)
		if (wants[i].used)
			finish_receive(i, false);
	for (int i = 0; i < SENDS; i++)
		if (sends[i].buf)
			finish_send(&sends[i], false);
}

/* Is so little under way on the channel that all of it has come by itself? */
static bool is_small(int channel)
{
	const struct mail_channel *c = &channels[channel];
	size_t bytes = 0;

	for (int i = 0; i < SENDS; i++)
		if (sends[i].buf && sends[i].channel == channel)
			return false;
	for (size_t i = c->first; i < c->count; i++)
		bytes += c->mails[i].state == MAIL_LIVE ? c->mails[i].len + 64 : 0;
	return bytes < 50000;
}

/* Nobody waits for what is there. */
static void check_nobody_waits(void)
{
	for (int turn = 0; turn < 100; turn++)
		finish_all();
	for (size_t at = 0; at < WANTS - 1; at++)
		for (int i = 0; i < CHANNELS; i++) {
			const struct mail_channel *c = wants[at].channel;

			if (!wants[at].used || !is_small(i))
				continue;
			if (c == &channels[i] || (!c && i >= LEAVES))
				CHECK(!mail_wanted(&channels[i], wants[at].stream),
				      "a message and a receive for it did not meet");
		}
}

/* Nothing more is sent; all that was comes. */
static void drain(void)
{
	size_t left = 1;

	for (int i = 0; i < CHANNELS; i++)
		for (int turn = 0; loans[i].buf && !settle_loan(i); turn++) {
			CHECK(turn < 100000, "a loan's turn never comes");
			finish_all();
			for (int side = 0; side <= LEAVES; side++)
				receive_now(side);
		}
	for (int i = 0; i < HELD; i++)
		if (holds[i].data)
			let_go(&holds[i]);
	check_nobody_waits();
	for (int turn = 0; left; turn++) {
		CHECK(turn < 200000, "%zu messages or requests never end", left);
		finish_all();
		for (int side = 0; side <= LEAVES; side++)
			receive_now(side);
		left = 0;
		for (int i = 0; i < CHANNELS; i++)
			left += mail_left(&channels[i]);
		for (int i = 0; i < SENDS; i++)
			left += sends[i].buf != NULL;
	}
	for (size_t i = 0; i < WANTS - 1; i++)
		if (wants[i].used) {
			OK(slmpm_cancel(receives[i].req));
			finish_receive(i, true);
		}
}

static void end(void)
{
	struct slmpm_stats stats;
	char byte;

	for (int i = 0; i < CHANNELS; i++) {
		mail_check_order(&channels[i]);
		OK(slmpm_peer_stats(sender_of(i), &stats, sizeof(stats)));
		CHECK(!stats.violations && !stats.remote_reads && !stats.queue_depth, "statistics");
	}
	for (int i = 0; i < LEAVES; i++) {
		bool hub_first = below(2);
		slmpm_peer first = hub_first ? to_leaf[i] : to_hub[i];
		slmpm_peer second = hub_first ? to_hub[i] : to_leaf[i];

		OK(slmpm_close(first, MS));
		CHECK(slmpm_recv(second, SLMPM_ANY_STREAM, &byte, 1, NULL, MS) == -SLMPM_ECLOSED,
		      "%s", slmpm_error_detail());
		OK(slmpm_close(second, MS));
	}
	for (int i = 0; i <= LEAVES; i++)
		OK(slmpm_shut(contexts[i], 0));
}

static void episode(uint64_t seed)
{
	uint32_t receiving = 0;

	rng.state = seed;
	begin();
	for (int i = 0; i < OPS; i++) {
		if (i % 100 == 0) /* now the one side is faster, now the other */
			receiving = 1 + below(5);
		if (below(6) >= receiving)
			one_send((int)below(CHANNELS));
		else
			one_receive((int)below(LEAVES + 1));
		one_end();
		if (!below(3))
			(void)slmpm_progress(contexts[below(LEAVES + 1)]);
	}
	drain();
	end();
}

/* Some happen in every fourth episode only. */
static bool all_tried(void)
{
	return total.truncated && total.canceled && total.timeouts && total.probed && total.held &&
	       total.loaned;
}

int main(void)
{
	const char *seconds = getenv("SLMPM_TEST_SECONDS");
	time_t until = time(NULL) + (seconds ? atol(seconds) : 4);
	uint64_t seed = rng_run_seed(1), episodes = 0;

	scratch = malloc(LONGEST);
	CHECK(scratch, "memory");
	do {
		printf("%#llx ", (unsigned long long)(seed + episodes)); /* repeats it at once */
		episode(seed + episodes++);
	} while (time(NULL) < until || !all_tried());
	printf("\n%llu episodes: %llu sent, %llu received, %llu cut off, %llu taken back, %llu in "
	       "vain, %llu probed, %llu held, %llu loans\n",
	       (unsigned long long)episodes, (unsigned long long)total.sent,
	       (unsigned long long)total.taken, (unsigned long long)total.truncated,
	       (unsigned long long)total.canceled, (unsigned long long)total.timeouts,
	       (unsigned long long)total.probed, (unsigned long long)total.held,
	       (unsigned long long)total.loaned);
	for (int i = 0; i < CHANNELS; i++)
		mail_reset(&channels[i], MAIL_EXACT);
	free(scratch);
	return 0;
}
