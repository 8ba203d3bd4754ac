/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hub and its leaves send, lend and take back. */
#include "tests/lib/hub.h"

#include <stdlib.h>

static void note(int channel, uint32_t stream, uint32_t imm, uint64_t seed, size_t len)
{
	(void)mail_send(&hub.channels[channel], stream, imm, seed, len);
	hub.total.sent++;
}

/* The announcement of a long message came and is withdrawn: it can be seen for a while, and a
 * receive of any peer be busy with it while another peer's message goes to the next one. */
static void in_vain(int channel)
{
	hub.ghosts[channel] = true;
	hub.total.timeouts++;
	for (int i = LEAVES; i < CHANNELS && hub.any_peer && channel >= LEAVES; i++)
		hub.channels[i].order = MAIL_ANYHOW;
}

static void send_now(int channel)
{
	uint64_t seed = rng_next(&hub.rng);
	uint32_t stream = hub_stream(false);
	size_t n = hub_length();
	int rc;

	mail_fill(seed, hub.scratch, n);
	rc = slmpm_send(hub_sender(channel), stream, hub.scratch, n, 0);
	CHECK(rc == 0 || rc == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
	if (rc == 0)
		note(channel, stream, 0, seed, n);
	else
		in_vain(channel);
}

static void send_later(int channel)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = (uint32_t)rng_next(&hub.rng)};
	uint64_t seed = rng_next(&hub.rng);
	uint32_t stream = hub_stream(false);
	size_t n = hub_length();
	struct slmpm_iov iov[5];
	struct hub_send *s = NULL;
	int pieces;

	for (int i = 0; i < SENDS && !s; i++)
		if (!hub.sends[i].buf)
			s = &hub.sends[i];
	if (!s)
		return;
	s->buf = malloc(n + 1);
	CHECK(s->buf, "memory");
	mail_fill(seed, s->buf, n);
	pieces = hub_cut(iov, s->buf, n);
	OK(slmpm_sendv(hub_sender(channel), stream, iov, pieces, &how, &s->req));
	s->channel = channel;
	s->number = mail_send(&hub.channels[channel], stream, how.imm, seed, n);
	hub.total.sent++;
}

static void send_burst(int channel)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = hub_below(3)};
	uint32_t stream = hub_stream(false), n = 1 + hub_below(40), len = hub_below(200);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t seed = rng_next(&hub.rng);
		struct slmpm_iov iov = {hub.scratch, hub_below(10) ? len : hub_below(3000)};
		int rc;

		how.flags = i == n - 1 && hub_below(4) ? 0 : SLMPM_MORE;
		mail_fill(seed, hub.scratch, iov.len);
		rc = slmpm_sendv(hub_sender(channel), stream, &iov, 1, &how, NULL);
		CHECK(rc == 0 || rc == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
		if (rc < 0)
			break;
		note(channel, stream, how.imm, seed, iov.len);
	}
}

void hub_finish_send(struct hub_send *s, bool taken_back)
{
	struct mail_channel *c = &hub.channels[s->channel];
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
		hub.total.canceled++;
	}
	free(s->buf);
	*s = (struct hub_send){.buf = NULL};
}

void hub_cancel_send(struct hub_send *s)
{
	int rc = slmpm_cancel(s->req);

	CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%s", slmpm_error_detail());
	hub_finish_send(s, rc == 0);
}

static void open_loan(int channel)
{
	struct hub_loan *l = &hub.loans[channel];
	int rc;

	l->len = hub_below(3) ? hub_length() : hub_below((uint32_t)LONGEST);
	l->stream = hub_stream(false);
	l->seed = rng_next(&hub.rng);
	l->imm = (uint32_t)rng_next(&hub.rng);
	l->ready = 0;
	l->begun = false;
	rc = slmpm_loan(hub_sender(channel), l->stream, l->len, &l->buf, 0);
	CHECK(rc == 0 || rc == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
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
	struct hub_loan *l = &hub.loans[channel];
	struct slmpm_how how = {.size = sizeof(how), .imm = l->imm, .flags = part ? SLMPM_PART : 0};
	int rc = slmpm_commit(hub_sender(channel), l->buf, n, &how);
	struct mail *m;

	CHECK(rc == 0 || rc == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
	if (rc < 0)
		return false;
	if (!l->begun) {
		l->number = mail_send(&hub.channels[channel], l->stream, l->imm, l->seed, l->len);
		hub.total.sent++;
		l->begun = true;
	}
	l->ready = n;
	m = &hub.channels[channel].mails[l->number];
	m->growing = part;
	m->len = part ? l->len : n;
	return true;
}

bool hub_settle_loan(int channel)
{
	struct hub_loan *l = &hub.loans[channel];
	size_t n = l->ready + (hub_below(2) ? l->len - l->ready :
					      hub_below((uint32_t)(l->len - l->ready) + 1));

	if (!l->begun && !hub_below(4))
		OK(slmpm_abort(hub_sender(channel), l->buf));
	else if (!commit(channel, n, false))
		return false;
	hub.total.loaned++;
	l->buf = NULL;
	return true;
}

/* A part of a large one, while it stays open. */
static void grow_loan(int channel)
{
	struct hub_loan *l = &hub.loans[channel];

	if (l->len > hub.packet_max[channel])
		(void)commit(channel, l->ready + hub_below((uint32_t)(l->len - l->ready) + 1),
			     true);
}

void hub_send_some(int channel)
{
	if (hub.loans[channel].buf) {
		/* A large one has its place where it is committed, and keeps nothing waiting; a
		 * short one goes before what is queued behind it. */
		if (!hub_below(3))
			(void)hub_settle_loan(channel);
		else if (hub_below(2))
			grow_loan(channel);
		else if (hub.loans[channel].len > hub.packet_max[channel])
			(hub_below(2) ? send_later : send_now)(channel);
		return;
	}
	switch (hub_below(6)) {
	case 0: open_loan(channel); break;
	case 1: send_burst(channel); break;
	case 2:
	case 3: send_later(channel); break;
	default: send_now(channel); break;
	}
}
