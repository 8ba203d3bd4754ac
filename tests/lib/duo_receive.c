/* SPDX-License-Identifier: BSD-3-Clause */
/* What one of the two receives, looks at and holds. */
#include "tests/lib/duo.h"

#include <stdlib.h>
#include <string.h>

#define TOGETHER 6

static void compare(const void *data, size_t room, const struct slmpm_done *done,
		    const struct duo_sent *m)
{
	size_t n = m->length < room ? m->length : room;
	int status = m->length > room ? -SLMPM_ETRUNC : 0;

	CHECK(done->len == m->length && done->status == status && done->stream == m->stream &&
		      done->imm == duo_imm(m) && actor_filled(data, m->seed, n),
	      "message %llu of %zu bytes on %u for %zu: %llu on %u, imm %u, status %d",
	      (unsigned long long)m->seed, m->length, m->stream, room,
	      (unsigned long long)done->len, done->stream, done->imm, done->status);
}

static size_t some_room(void)
{
	return duo_below(4) ? 400000 : duo_length();
}

void duo_receive_later(struct duo_side *s)
{
	struct duo_posted *r = &s->posted[s->posteds];
	struct slmpm_iov iov[2];

	if (s->posteds == POST)
		return;
	r->room = some_room();
	r->stream = duo_below(3) ? duo_below(4) : ANY;
	r->data = malloc(r->room + 1);
	CHECK(r->data, "out of memory");
	iov[0] = (struct slmpm_iov){r->data, r->room / 3};
	iov[1] = (struct slmpm_iov){r->data + r->room / 3, r->room - r->room / 3};
	OK(slmpm_recvv(s->peer, r->stream, iov, 2, NULL, &r->req));
	SAY(s, "posts a receive %llx on %u for %zu", (unsigned long long)r->req.id, r->stream,
	    r->room);
	s->posteds++;
}

static void drop_posted(struct duo_side *s, int i)
{
	free(s->posted[i].data);
	s->posteds--;
	memmove(&s->posted[i], &s->posted[i + 1], (size_t)(s->posteds - i) * sizeof(s->posted[0]));
}

void duo_look_at_receive(struct duo_side *s)
{
	int of[LIVE], i = (int)duo_below((size_t)s->posteds + 1), m = 0;
	struct slmpm_done done;
	uint64_t id;

	if (i == s->posteds)
		return;
	id = s->posted[i].req.id;
	if (slmpm_test(&s->posted[i].req, &done) != 1)
		return;
	SAY(s, "receive %llx gets %llu on %u", (unsigned long long)id, (unsigned long long)done.len,
	    done.stream);
	duo_match(s, of);
	while (m < duo_other(s)->sents && of[m] != i)
		m++;
	CHECK(m < duo_other(s)->sents, "a receive got message imm %u of %llu bytes: of whom?",
	      done.imm, (unsigned long long)done.len);
	compare(s->posted[i].data, s->posted[i].room, &done, &duo_other(s)->sent[m]);
	duo_forget(duo_other(s), m);
	drop_posted(s, i);
}

void duo_take_receive_back(struct duo_side *s)
{
	int of[LIVE], i = (int)duo_below((size_t)s->posteds + 1);
	struct slmpm_done done;

	if (i == s->posteds)
		return;
	duo_match(s, of);
	for (int m = 0; m < duo_other(s)->sents; m++)
		if (of[m] == i)
			return;
	SAY(s, "takes receive %llx back", (unsigned long long)s->posted[i].req.id);
	OK(slmpm_cancel(s->posted[i].req));
	EXPECT(slmpm_test(&s->posted[i].req, &done), 1);
	CHECK(done.status == -SLMPM_ECANCELED, "a receive taken back says %d", done.status);
	drop_posted(s, i);
}

/* May a receive wait for it? Only for the first, which nothing holds up: no loan that lies open in
 * the ring, no held message that keeps its place there. */
static int patience_for(struct duo_side *s, int m)
{
	bool held_up = duo_lending() || duo.sides[0].helds || duo.sides[1].helds || s->posteds;

	return m == 0 && !held_up && duo_below(3) ? PATIENCE : 0;
}

void duo_receive_now(struct duo_side *s, uint32_t stream)
{
	int m = duo_first_free(s, stream);
	int patience = patience_for(s, m);
	struct slmpm_done done;
	size_t room = some_room();
	unsigned char *data = malloc(room + 1);
	int64_t n;

	CHECK(data, "out of memory");
	n = slmpm_recv(s->peer, stream, data, room, &done, patience);
	SAY(s, "receives %lld on %u within %d for %zu", (long long)n, stream, patience, room);
	if (n == -SLMPM_EAGAIN) {
		CHECK(!patience, "message %llu does not come",
		      (unsigned long long)duo_other(s)->sent[m].seed);
	} else {
		CHECK(m >= 0, "%lld: a message of %llu bytes on %u that nobody sent", (long long)n,
		      (unsigned long long)done.len, done.stream);
		EXPECT(n, done.status < 0 ? done.status : (int64_t)done.len);
		compare(data, room, &done, &duo_other(s)->sent[m]);
		duo_forget(duo_other(s), m);
	}
	free(data);
}

void duo_receive_together(struct duo_side *s, uint32_t stream)
{
	int m = duo_first_free(s, stream), patience = patience_for(s, m),
	    n = 1 + (int)duo_below(TOGETHER), got;
	struct slmpm_iov all[TOGETHER];
	struct slmpm_done done[TOGETHER];
	size_t room = some_room();

	for (int i = 0; i < n; i++) {
		all[i] = (struct slmpm_iov){malloc(room + 1), room};
		CHECK(all[i].base, "out of memory");
	}
	got = slmpm_recv_burst(s->peer, stream, all, n, done, patience);
	SAY(s, "receives %d of %d on %u within %d for %zu", got, n, stream, patience, room);
	CHECK(got > 0 || got == -SLMPM_ETRUNC || (got == -SLMPM_EAGAIN && !patience),
	      "%d of %d: %s", got, n, slmpm_error_detail());
	for (int i = 0; i < got || (i == 0 && got == -SLMPM_ETRUNC); i++) {
		m = duo_first_free(s, stream);
		CHECK(m >= 0 && (got < 0 || all[i].len == duo_other(s)->sent[m].length),
		      "message %d of a burst that nobody sent", i);
		CHECK((done[i].status == 0) == (got > 0), "status %d", done[i].status);
		compare(all[i].base, room, &done[i], &duo_other(s)->sent[m]);
		duo_forget(duo_other(s), m);
	}
	for (int i = 0; i < n; i++)
		free(all[i].base);
}

void duo_look(struct duo_side *s, uint32_t stream)
{
	int m = duo_first_free(s, stream);
	struct slmpm_done done;
	int rc = slmpm_probe(s->peer, stream, &done, patience_for(s, m));

	SAY(s, "probes %u: %d", stream, rc);
	CHECK(rc == 0 || (rc == 1 && m >= 0), "a probe says %d: %s", rc, slmpm_error_detail());
	if (rc && done.flags & SLMPM_PART)
		done.len = duo_other(s)->sent[m].length; /* it still grows */
	CHECK(!rc || (done.imm == duo_imm(&duo_other(s)->sent[m]) &&
		      done.len == duo_other(s)->sent[m].length),
	      "a probe sees imm %u of %llu bytes on %u, not message %llu of %zu", done.imm,
	      (unsigned long long)done.len, done.stream, NUMBER(&duo_other(s)->sent[m]),
	      duo_other(s)->sent[m].length);
}

void duo_hold(struct duo_side *s, uint32_t stream)
{
	int m = duo_first_free(s, stream);
	int patience = patience_for(s, m);
	struct slmpm_done done;
	const void *data;
	int64_t n;

	if (s->helds == HOLD)
		return;
	n = slmpm_hold(s->peer, stream, &data, &done, patience);
	SAY(s, "holds %lld on %u within %d", (long long)n, stream, patience);
	if (n < 0) {
		EXPECT(n, -SLMPM_EAGAIN);
		CHECK(!patience, "no message to hold");
		return;
	}
	CHECK(m >= 0, "a message that nobody sent is held");
	for (int64_t more; done.flags & SLMPM_PART; n = more) {
		more = slmpm_more(s->peer, data, (uint64_t)n, &done, 0);
		if (more < 0) { /* it still grows: give it back in the middle */
			EXPECT(more, -SLMPM_EAGAIN);
			duo_forget(duo_other(s), m);
			OK(slmpm_release(s->peer, data));
			return;
		}
	}
	done.len = (uint64_t)n;
	compare(data, SIZE_MAX, &done, &duo_other(s)->sent[m]);
	s->held[s->helds++] = (struct duo_held){data, duo_forget(duo_other(s), m)};
}

void duo_let_go(struct duo_side *s)
{
	struct duo_held *h;

	if (!s->helds)
		return;
	h = &s->held[duo_below((size_t)s->helds)];
	CHECK(actor_filled(h->data, h->message.seed, h->message.length),
	      "message %llu of %zu bytes changed while it was held",
	      (unsigned long long)h->message.seed, h->message.length);
	SAY(s, "lets %llu go", NUMBER(&h->message));
	OK(slmpm_release(s->peer, h->data));
	*h = s->held[--s->helds];
}
