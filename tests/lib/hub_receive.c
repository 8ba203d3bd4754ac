/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hub and its leaves receive, hold and no longer want. */
#include "tests/lib/hub.h"

#include <stdlib.h>

static slmpm_peer source(int side, const struct mail_channel **c)
{
	int leaf = (int)hub_below(LEAVES);

	*c = side < LEAVES ? &hub.channels[side] :
	     hub.any_peer  ? NULL :
			     &hub.channels[LEAVES + leaf];
	if (side == LEAVES)
		return hub.any_peer ? slmpm_any(hub.contexts[side]) : hub.to_leaf[leaf];
	return hub_below(2) ? slmpm_any(hub.contexts[side]) : hub.to_hub[side];
}

static long predict(const struct mail_channel *c, size_t at)
{
	return c && c->order == MAIL_EXACT ? mail_predict(c, hub.wants, WANTS, at) : -1;
}

/* Wants stand in the order of their posting; the last place is for a call that does not wait. */
static size_t place(void)
{
	size_t to = 0;

	for (size_t i = 0; i < WANTS - 1; i++) {
		if (!hub.wants[i].used)
			continue;
		if (i != to) {
			hub.wants[to] = hub.wants[i];
			hub.receives[to] = hub.receives[i];
			hub.wants[i].used = false;
			hub.receives[i].buf = NULL;
		}
		to++;
	}
	return to;
}

static void taken(size_t at, int side, const struct slmpm_done *done, const void *buf, size_t cap)
{
	struct mail_channel *c = &hub.channels[hub_channel(side, done->peer)];
	struct mail_got got = {.stream = done->stream,
			       .imm = done->imm,
			       .len = done->len,
			       .n = done->len < cap ? done->len : cap,
			       .data = buf,
			       .part = done->flags & SLMPM_PART};

	CHECK(!hub.wants[at].channel || hub.wants[at].channel == c, "from another peer");
	CHECK(hub.wants[at].stream == SLMPM_ANY_STREAM || hub.wants[at].stream == done->stream,
	      "from stream %u", done->stream);
	(void)mail_take(c, predict(hub.wants[at].channel, at), hub.wants[at].order, &got);
	hub.wants[at].used = false;
	hub.total.taken++;
}

static void post_receive(int side)
{
	struct hub_receive *r;
	struct slmpm_iov iov[5];
	slmpm_peer from;
	size_t at = place();
	int pieces;

	if (at == WANTS - 1)
		return;
	r = &hub.receives[at];
	/* Of a message cut off it must be known which it is. */
	r->cap = hub_below(6) || hub.any_peer || hub.take_back ? LONGEST : hub_length();
	r->side = side;
	r->buf = malloc(r->cap + 1);
	CHECK(r->buf, "memory");
	from = source(side, &hub.wants[at].channel);
	hub.wants[at].stream = hub_stream(true);
	hub.wants[at].order = ++hub.orders;
	hub.wants[at].used = true;
	pieces = hub_cut(iov, r->buf, r->cap);
	OK(slmpm_recvv(from, hub.wants[at].stream, iov, pieces, NULL, &r->req));
}

void hub_finish_receive(size_t at, bool taken_back)
{
	struct hub_receive *r = &hub.receives[at];
	struct slmpm_done done;
	int rc = slmpm_test(&r->req, &done);

	CHECK(rc >= 0, "%s", slmpm_error_detail());
	if (!rc) {
		CHECK(!taken_back, "taken back and not finished");
		return;
	}
	if (taken_back) {
		CHECK(done.status == -SLMPM_ECANCELED, "status %d", done.status);
		hub.wants[at].used = false;
		hub.total.canceled++;
	} else {
		bool cut_off = done.len > r->cap;

		CHECK(done.status == (cut_off ? -SLMPM_ETRUNC : 0), "status %d", done.status);
		hub.total.truncated += cut_off;
		taken(at, r->side, &done, r->buf, r->cap);
	}
	free(r->buf);
	r->buf = NULL;
}

void hub_receive_now(int side)
{
	size_t at = WANTS - 1;
	struct slmpm_done done;
	slmpm_peer from = source(side, &hub.wants[at].channel);
	int64_t n;

	hub.wants[at].stream = hub_stream(true);
	hub.wants[at].order = ++hub.orders;
	n = slmpm_recv(from, hub.wants[at].stream, hub.scratch, LONGEST, &done, 0);
	CHECK(n >= 0 || n == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
	if (n < 0)
		return;
	CHECK((uint64_t)n == done.len && done.status == 0, "length");
	hub.wants[at].used = true;
	taken(at, side, &done, hub.scratch, LONGEST);
}

static void probe(int side)
{
	size_t at = WANTS - 1;
	struct slmpm_done done;
	slmpm_peer from = source(side, &hub.wants[at].channel);
	int rc = slmpm_probe(from, hub.wants[at].stream = hub_stream(true), &done, 0);
	long number;

	CHECK(rc >= 0, "%s", slmpm_error_detail());
	if (!rc)
		return;
	hub.wants[at].used = true;
	number = predict(hub.wants[at].channel, at);
	hub.wants[at].used = false;
	hub.total.probed++;
	if (hub.wants[at].channel && hub.ghosts[hub.wants[at].channel - hub.channels])
		return;
	if (number >= 0) {
		const struct mail *m = &hub.wants[at].channel->mails[number];

		CHECK((m->growing || done.flags & SLMPM_PART ? done.len <= m->len :
							       m->len == done.len) &&
			      m->stream == done.stream && m->imm == done.imm,
		      "probed %llu bytes on %u, due are %zu on %u", (unsigned long long)done.len,
		      done.stream, m->len, m->stream);
	} else {
		CHECK(hub.any_peer || !hub.wants[at].channel ||
			      hub.wants[at].channel->order != MAIL_EXACT,
		      "a message that is not due");
	}
}

static void hold(int side)
{
	size_t at = WANTS - 1;
	struct hub_hold *h = NULL;
	struct slmpm_done done;
	slmpm_peer from = source(side, &hub.wants[at].channel);
	const void *data;
	int64_t n;

	for (int i = 0; i < HELD && !h; i++)
		if (!hub.holds[i].data)
			h = &hub.holds[i];
	if (!h)
		return;
	hub.wants[at].stream = hub_stream(true);
	hub.wants[at].order = ++hub.orders;
	n = slmpm_hold(from, hub.wants[at].stream, &data, &done, 0);
	CHECK(n >= 0 || n == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
	if (n < 0)
		return;
	hub.wants[at].used = true;
	h->data = data;
	h->peer = done.peer;
	h->channel = hub_channel(side, done.peer);
	CHECK((uint64_t)n == done.len, "length");
	h->growing = done.flags & SLMPM_PART;
	h->len = done.len;
	taken(at, side, &done, data, LONGEST);
	for (h->number = hub.channels[h->channel].count; h->number-- > 0;)
		if (hub.channels[h->channel].mails[h->number].taker == hub.wants[at].order)
			break;
	hub.total.held++;
}

void hub_look_again(struct hub_hold *h)
{
	const struct mail *m = &hub.channels[h->channel].mails[h->number];
	struct slmpm_done done = {.flags = 0};
	int64_t n;

	if (h->growing) {
		n = slmpm_more(h->peer, h->data, h->len, &done, 0);
		CHECK(n >= (int64_t)h->len || n == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
		if (n >= 0) {
			h->len = (size_t)n;
			h->growing = done.flags & SLMPM_PART;
		}
	}
	CHECK(h->growing ? h->len <= m->len : !m->growing && h->len == m->len, "%zu of %zu bytes",
	      h->len, m->len);
	CHECK(mail_same(&hub.channels[h->channel], h->number, h->data, h->len),
	      "a held message changed");
}

void hub_let_go(struct hub_hold *h)
{
	hub_look_again(h);
	OK(slmpm_release(h->peer, h->data));
	h->data = NULL;
}

void hub_cancel_receive(size_t at)
{
	struct mail_channel *c = (struct mail_channel *)(uintptr_t)hub.wants[at].channel;
	bool had_one = predict(c, at) >= 0;
	int rc = slmpm_cancel(hub.receives[at].req);

	CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%s", slmpm_error_detail());
	hub_finish_receive(at, rc == 0);
	/* Others may have gone past the message it had. */
	if (rc == 0 && had_one)
		c->order = MAIL_ANYHOW;
	for (int i = 0; rc == 0 && !c && i < CHANNELS; i++)
		hub.channels[i].order = MAIL_ANYHOW;
}

void hub_receive_some(int side)
{
	switch (hub_below(7)) {
	case 0: probe(side); break;
	case 1: hold(side); break;
	case 2:
	case 3: hub_receive_now(side); break;
	default: post_receive(side); break;
	}
}
