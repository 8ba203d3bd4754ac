/* SPDX-License-Identifier: BSD-3-Clause */
/* What one of the two sends, lends and takes back. */
#include "tests/lib/duo.h"

#include <stdlib.h>
#include <string.h>

void duo_send_later(struct duo_side *s)
{
	struct duo_sent *m;

	if (s->sents == LIVE || s->outgoings == LIVE)
		return;
	if (s->loan && !s->part)
		return; /* before the loan or behind it: the model does not know */
	m = duo_record(s, duo_below(3), duo_length());
	s->seeds[s->outgoings] = m->seed;
	SAY(s, "sends %llu of %zu on %u", NUMBER(m), m->length, m->stream);
	message_start(&s->outgoing[s->outgoings++], s->peer, m->stream, m->seed, m->length);
}

/* It might have to wait, and for this thread. */
static bool may_wait(struct duo_side *s)
{
	return s->outgoings || duo_lending() || duo_other(s)->helds ||
	       duo_unread(s) > message_credit() / 4;
}

void duo_send_together(struct duo_side *s)
{
	static unsigned char data[LIVE][256];
	uint32_t stream = duo_below(2);
	size_t length = duo_below(2) ? 8 : duo_below(140);
	struct slmpm_iov all[LIVE];
	int n = 0;

	if (may_wait(s))
		return;
	for (int left = (int)duo_below(10); left >= 0 && s->sents < LIVE; left--, n++) {
		struct duo_sent *m = duo_record(s, stream, duo_below(5) ? length : duo_below(140));

		m->burst = true;
		all[n] = (struct slmpm_iov){data[n], m->length};
		actor_fill(data[n], m->seed, m->length);
		SAY(s, "sends %llu of %zu on %u together with others", NUMBER(m), m->length,
		    stream);
	}
	EXPECT(slmpm_send_burst(s->peer, stream, all, n, PATIENCE), n);
	memset(data, 0xee, sizeof(data));
}

void duo_send_burst(struct duo_side *s)
{
	uint32_t stream = duo_below(2);
	size_t n = duo_below(2) ? 8 : duo_below(140);

	if (may_wait(s))
		return;
	for (int left = (int)duo_below(10); left >= 0 && s->sents < LIVE; left--) {
		struct duo_sent *m = duo_record(s, stream, n);

		SAY(s, "bursts %llu of %zu on %u%s", NUMBER(m), n, stream, left ? ", more" : "");
		message_send(s->peer, stream, m->seed, n, left ? SLMPM_MORE : 0);
	}
}

void duo_report(struct duo_side *s, int i, int status)
{
	message_end(&s->outgoing[i], status);
	s->outgoings--;
	s->outgoing[i] = s->outgoing[s->outgoings];
	s->seeds[i] = s->seeds[s->outgoings];
}

void duo_look_at_send(struct duo_side *s)
{
	struct slmpm_done done;
	int i = (int)duo_below((size_t)s->outgoings + 1);

	if (i == s->outgoings || slmpm_test(&s->outgoing[i].req, &done) != 1)
		return;
	CHECK(done.status == 0, "a send ended with %d", done.status);
	free(s->outgoing[i].data);
	s->outgoings--;
	s->outgoing[i] = s->outgoing[s->outgoings];
	s->seeds[i] = s->seeds[s->outgoings];
}

/* All packets that S has posted are with the other side. */
static bool is_heard(struct duo_side *s)
{
	struct slmpm_stats ours, theirs;

	OK(slmpm_peer_stats(s->peer, &ours, sizeof(ours)));
	OK(slmpm_peer_stats(duo_other(s)->peer, &theirs, sizeof(theirs)));
	return ours.sent_packets == theirs.received_packets;
}

/* Behind that a pass that finds nothing: nor was any in the other side's hands, or waited for
 * room. */
static void await_hearing(struct duo_side *s)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();
	bool heard;

	do {
		CHECK(actor_now_ms() < until, "it is never heard");
		heard = is_heard(s);
	} while (slmpm_progress(duo.ctx) > 0 || !heard);
}

void duo_take_send_back(struct duo_side *s)
{
	int of[LIVE], i = (int)duo_below((size_t)s->outgoings + 1), m = 0;

	if (i == s->outgoings || duo_lending() ||
	    duo_other(s)->helds) /* it would not hear of it yet */
		return;
	duo_match(duo_other(s), of);
	while (m < s->sents && s->sent[m].seed != s->seeds[i])
		m++;
	if (m == s->sents || of[m] >= 0)
		return;
	if (slmpm_cancel(s->outgoing[i].req) == 0) {
		SAY(s, "takes %llu back", NUMBER(&s->sent[m]));
		duo_report(s, i, -SLMPM_ECANCELED);
		duo_forget(s, m);
		await_hearing(s);
	}
}

void duo_borrow(struct duo_side *s)
{
	size_t n = duo_length();
	void *buf;
	int rc;

	if (s->loan || s->sents == LIVE)
		return;
	s->lent = (struct duo_sent){.seed = ++duo.seed, .length = n, .stream = duo_below(3)};
	rc = slmpm_loan(s->peer, s->lent.stream, n, &buf, 0);
	if (rc == -SLMPM_ELIMIT || rc == -SLMPM_EAGAIN)
		return;
	OK(rc);
	SAY(s, "borrows %llu of %zu on %u", NUMBER(&s->lent), n, s->lent.stream);
	s->loan = buf;
	s->ready = 0;
	s->part = false;
	EXPECT(slmpm_loan(s->peer, 0, 1, &buf, 0), -SLMPM_EBUSY);
}

void duo_give_back(struct duo_side *s)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = message_imm(s->lent.seed)};
	size_t n = s->ready + duo_below(s->lent.length - s->ready + 1);
	int rc;

	if (!s->loan)
		return;
	if (!s->part && !duo_below(4)) {
		SAY(s, "aborts %llu", NUMBER(&s->lent));
		OK(slmpm_abort(s->peer, s->loan));
		s->loan = NULL;
		return;
	}
	actor_fill(s->loan, s->lent.seed, s->lent.length);
	if (duo_below(2)) {
		how.flags = SLMPM_PART;
		rc = slmpm_commit(s->peer, s->loan, n, &how);
		SAY(s, "commits %zu of %llu: %d", n, NUMBER(&s->lent), rc);
		if (rc == -SLMPM_ENOTSUP || rc == -SLMPM_EAGAIN)
			return;
		OK(rc);
		if (!s->part)
			s->sent[s->sents++] = s->lent;
		s->part = true;
		s->ready = n;
		EXPECT(slmpm_abort(s->peer, s->loan), -SLMPM_ESTATE);
		return;
	}
	n = s->part || duo_below(2) ? s->lent.length : n; /* the model knows one length only */
	SAY(s, "commits %llu with %zu", NUMBER(&s->lent), n);
	rc = slmpm_commit(s->peer, s->loan, n, &how);
	if (rc == -SLMPM_EAGAIN) /* what was sent before it has not gone */
		return;
	OK(rc);
	s->lent.length = n;
	if (!s->part)
		s->sent[s->sents++] = s->lent;
	s->loan = NULL;
}
