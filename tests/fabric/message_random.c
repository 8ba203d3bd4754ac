/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Every call on messages in random order, both ways at once, beside a model that knows which
 * receive each message belongs to. SLMPM_TEST_SEED repeats a run, SLMPM_TEST_MS lengthens each
 * setting's share.
 */
#include <string.h>

#include "tests/lib/message.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define LIVE     24 /* messages under way, a direction */
#define POST     6
#define HOLD     12
#define TOGETHER 6
#define ANY      SLMPM_ANY_STREAM

struct sent {
	uint64_t seed;
	size_t length;
	uint32_t stream;
	bool burst; /* in one call with others: without an immediate */
};

struct posted {
	slmpm_req req;
	unsigned char *data;
	size_t room;
	uint32_t stream;
};

struct held {
	const void *data;
	struct sent message;
};

struct side {
	slmpm_peer peer;
	struct sent sent[LIVE]; /* to the other side, not yet received */
	int sents;
	struct message outgoing[LIVE]; /* sends not yet reported */
	uint64_t seeds[LIVE];
	int outgoings;
	struct posted posted[POST];
	int posteds;
	struct held held[HOLD];
	int helds;
	unsigned char *loan;
	struct sent lent;
	size_t ready;
	bool part;
};

static struct side sides[2];
static struct rng chance;
static slmpm_ctx ctx;
static size_t packet, eager;
static uint64_t seed, operations;

static bool aloud; /* SLMPM_TEST_TRACE */
#define SAY(s, ...)                                                                                \
	(aloud ? (printf("%c ", (s) == sides ? 'a' : 'b'), printf(__VA_ARGS__), puts("")) : 0)
#define NUMBER(m) (unsigned long long)(m)->seed

static uint32_t below(size_t n)
{
	return rng_below(&chance, (uint32_t)n);
}

/* ---- the model ------------------------------------------------------------------------------ */

static bool fits(uint32_t wanted, uint32_t stream)
{
	return wanted == ANY || wanted == stream;
}

/* For each message to S the posted receive it belongs to, or -1: the first that wants it. */
static void match(const struct side *s, int of[LIVE])
{
	const struct side *from = s == sides ? &sides[1] : &sides[0];
	bool taken[POST] = {false};

	for (int m = 0; m < from->sents; m++) {
		of[m] = -1;
		for (int r = 0; r < s->posteds && of[m] < 0; r++)
			if (!taken[r] && fits(s->posted[r].stream, from->sent[m].stream))
				of[m] = r;
		if (of[m] >= 0)
			taken[of[m]] = true;
	}
}

static struct side *other(struct side *s)
{
	return s == sides ? &sides[1] : &sides[0];
}

/* The first message to S on STREAM that no posted receive gets, or -1. */
static int first_free(struct side *s, uint32_t stream)
{
	int of[LIVE];

	match(s, of);
	for (int m = 0; m < other(s)->sents; m++)
		if (of[m] < 0 && fits(stream, other(s)->sent[m].stream))
			return m;
	return -1;
}

static struct sent forget(struct side *from, int m)
{
	struct sent was = from->sent[m];

	from->sents--;
	memmove(&from->sent[m], &from->sent[m + 1],
		(size_t)(from->sents - m) * sizeof(from->sent[0]));
	return was;
}

static struct sent *record(struct side *s, uint32_t stream, size_t n)
{
	struct sent *m = &s->sent[s->sents++];

	*m = (struct sent){.seed = ++seed, .length = n, .stream = stream};
	return m;
}

static uint32_t imm_of(const struct sent *m)
{
	return m->burst ? 0 : message_imm(m->seed);
}

static uint64_t unread(const struct side *s)
{
	uint64_t n = 0;

	for (int i = 0; i < s->sents; i++)
		n += 64 + s->sent[i].length;
	return n;
}

static bool lending(void)
{
	return sides[0].loan || sides[1].loan;
}

/* ---- sending -------------------------------------------------------------------------------- */

static size_t some_length(void)
{
	static const size_t edges[] = {0, 1, 8, 8, 8, 64, 128, 129, 2048};

	switch (below(8)) {
	case 0: return below(packet + 1);
	case 1: return packet - 1 + below(3);
	case 2: return below(4 * packet);
	case 3: return eager - 1 + below(3);
	case 4: return below(3 * eager < 100000 ? 3 * eager : 100000);
	default: return edges[below(sizeof(edges) / sizeof(edges[0]))];
	}
}

static void send_later(struct side *s)
{
	struct sent *m;

	if (s->sents == LIVE || s->outgoings == LIVE)
		return;
	if (s->loan && !s->part)
		return; /* before the loan or behind it: the model does not know */
	m = record(s, below(3), some_length());
	s->seeds[s->outgoings] = m->seed;
	SAY(s, "sends %llu of %zu on %u", NUMBER(m), m->length, m->stream);
	message_start(&s->outgoing[s->outgoings++], s->peer, m->stream, m->seed, m->length);
}

/* It might have to wait, and for this thread. */
static bool may_wait(struct side *s)
{
	return s->outgoings || lending() || other(s)->helds || unread(s) > message_credit() / 4;
}

static void send_together(struct side *s)
{
	static unsigned char data[LIVE][256];
	uint32_t stream = below(2);
	size_t length = below(2) ? 8 : below(140);
	struct slmpm_iov all[LIVE];
	int n = 0;

	if (may_wait(s))
		return;
	for (int left = (int)below(10); left >= 0 && s->sents < LIVE; left--, n++) {
		struct sent *m = record(s, stream, below(5) ? length : below(140));

		m->burst = true;
		all[n] = (struct slmpm_iov){data[n], m->length};
		actor_fill(data[n], m->seed, m->length);
		SAY(s, "sends %llu of %zu on %u together with others", NUMBER(m), m->length,
		    stream);
	}
	EXPECT(slmpm_send_burst(s->peer, stream, all, n, PATIENCE), n);
	memset(data, 0xee, sizeof(data));
}

static void send_burst(struct side *s)
{
	uint32_t stream = below(2);
	size_t n = below(2) ? 8 : below(140);

	if (may_wait(s))
		return;
	for (int left = (int)below(10); left >= 0 && s->sents < LIVE; left--) {
		struct sent *m = record(s, stream, n);

		SAY(s, "bursts %llu of %zu on %u%s", NUMBER(m), n, stream, left ? ", more" : "");
		message_send(s->peer, stream, m->seed, n, left ? SLMPM_MORE : 0);
	}
}

static void report(struct side *s, int i, int status)
{
	message_end(&s->outgoing[i], status);
	s->outgoings--;
	s->outgoing[i] = s->outgoing[s->outgoings];
	s->seeds[i] = s->seeds[s->outgoings];
}

static void look_at_send(struct side *s)
{
	struct slmpm_done done;
	int i = (int)below((size_t)s->outgoings + 1);

	if (i == s->outgoings || slmpm_test(&s->outgoing[i].req, &done) != 1)
		return;
	CHECK(done.status == 0, "a send ended with %d", done.status);
	free(s->outgoing[i].data);
	s->outgoings--;
	s->outgoing[i] = s->outgoing[s->outgoings];
	s->seeds[i] = s->seeds[s->outgoings];
}

/* One that no receive has taken: it goes as if it had never been, or has gone already. */
static void take_send_back(struct side *s)
{
	int of[LIVE], i = (int)below((size_t)s->outgoings + 1), m = 0;

	if (i == s->outgoings || lending() || other(s)->helds) /* it would not hear of it yet */
		return;
	match(other(s), of);
	while (m < s->sents && s->sent[m].seed != s->seeds[i])
		m++;
	if (m == s->sents || of[m] >= 0)
		return;
	if (slmpm_cancel(s->outgoing[i].req) == 0) {
		SAY(s, "takes %llu back", NUMBER(&s->sent[m]));
		report(s, i, -SLMPM_ECANCELED);
		forget(s, m);
		while (slmpm_progress(ctx) > 0)
			;
	}
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void compare(const void *data, size_t room, const struct slmpm_done *done,
		    const struct sent *m)
{
	size_t n = m->length < room ? m->length : room;
	int status = m->length > room ? -SLMPM_ETRUNC : 0;

	CHECK(done->len == m->length && done->status == status && done->stream == m->stream &&
		      done->imm == imm_of(m) && actor_filled(data, m->seed, n),
	      "message %llu of %zu bytes on %u for %zu: %llu on %u, imm %u, status %d",
	      (unsigned long long)m->seed, m->length, m->stream, room,
	      (unsigned long long)done->len, done->stream, done->imm, done->status);
}

static size_t some_room(void)
{
	return below(4) ? 400000 : some_length();
}

static void receive_later(struct side *s)
{
	struct posted *r = &s->posted[s->posteds];
	struct slmpm_iov iov[2];

	if (s->posteds == POST)
		return;
	r->room = some_room();
	r->stream = below(3) ? below(4) : ANY;
	r->data = malloc(r->room + 1);
	CHECK(r->data, "out of memory");
	iov[0] = (struct slmpm_iov){r->data, r->room / 3};
	iov[1] = (struct slmpm_iov){r->data + r->room / 3, r->room - r->room / 3};
	OK(slmpm_recvv(s->peer, r->stream, iov, 2, NULL, &r->req));
	SAY(s, "posts a receive %llx on %u for %zu", (unsigned long long)r->req.id, r->stream,
	    r->room);
	s->posteds++;
}

static void drop_posted(struct side *s, int i)
{
	free(s->posted[i].data);
	s->posteds--;
	memmove(&s->posted[i], &s->posted[i + 1], (size_t)(s->posteds - i) * sizeof(s->posted[0]));
}

static void look_at_receive(struct side *s)
{
	int of[LIVE], i = (int)below((size_t)s->posteds + 1), m = 0;
	struct slmpm_done done;
	uint64_t id;

	if (i == s->posteds)
		return;
	id = s->posted[i].req.id;
	if (slmpm_test(&s->posted[i].req, &done) != 1)
		return;
	SAY(s, "receive %llx gets %llu on %u", (unsigned long long)id, (unsigned long long)done.len,
	    done.stream);
	match(s, of);
	while (m < other(s)->sents && of[m] != i)
		m++;
	CHECK(m < other(s)->sents, "a receive got message imm %u of %llu bytes: of whom?", done.imm,
	      (unsigned long long)done.len);
	compare(s->posted[i].data, s->posted[i].room, &done, &other(s)->sent[m]);
	forget(other(s), m);
	drop_posted(s, i);
}

static void take_receive_back(struct side *s)
{
	int of[LIVE], i = (int)below((size_t)s->posteds + 1);
	struct slmpm_done done;

	if (i == s->posteds)
		return;
	match(s, of);
	for (int m = 0; m < other(s)->sents; m++)
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
static int patience_for(struct side *s, int m)
{
	bool held_up = lending() || sides[0].helds || sides[1].helds || s->posteds;

	return m == 0 && !held_up && below(3) ? PATIENCE : 0;
}

static void receive_now(struct side *s, uint32_t stream)
{
	int m = first_free(s, stream);
	int patience = patience_for(s, m);
	struct slmpm_done done;
	size_t room = some_room();
	unsigned char *data = malloc(room + 1);
	int64_t n;

	CHECK(data, "out of memory");
	n = slmpm_recv(s->peer, stream, data, room, &done, patience);
	SAY(s, "receives %lld on %u within %d for %zu", (long long)n, stream, patience, room);
	if (n == -SLMPM_ETIMEOUT) {
		CHECK(!patience, "message %llu does not come",
		      (unsigned long long)other(s)->sent[m].seed);
	} else {
		CHECK(m >= 0, "%lld: a message of %llu bytes on %u that nobody sent", (long long)n,
		      (unsigned long long)done.len, done.stream);
		EXPECT(n, done.status < 0 ? done.status : (int64_t)done.len);
		compare(data, room, &done, &other(s)->sent[m]);
		forget(other(s), m);
	}
	free(data);
}

/* Several at once: each is the first then, and fits; only the first may have been too long. */
static void receive_together(struct side *s, uint32_t stream)
{
	int m = first_free(s, stream), patience = patience_for(s, m), n = 1 + (int)below(TOGETHER),
	    got;
	struct slmpm_iov all[TOGETHER];
	struct slmpm_done done[TOGETHER];
	size_t room = some_room();

	for (int i = 0; i < n; i++) {
		all[i] = (struct slmpm_iov){malloc(room + 1), room};
		CHECK(all[i].base, "out of memory");
	}
	got = slmpm_recv_burst(s->peer, stream, all, n, done, patience);
	SAY(s, "receives %d of %d on %u within %d for %zu", got, n, stream, patience, room);
	CHECK(got > 0 || got == -SLMPM_ETRUNC || (got == -SLMPM_ETIMEOUT && !patience),
	      "%d of %d: %s", got, n, slmpm_error_detail());
	for (int i = 0; i < got || (i == 0 && got == -SLMPM_ETRUNC); i++) {
		m = first_free(s, stream);
		CHECK(m >= 0 && (got < 0 || all[i].len == other(s)->sent[m].length),
		      "message %d of a burst that nobody sent", i);
		CHECK((done[i].status == 0) == (got > 0), "status %d", done[i].status);
		compare(all[i].base, room, &done[i], &other(s)->sent[m]);
		forget(other(s), m);
	}
	for (int i = 0; i < n; i++)
		free(all[i].base);
}

static void look(struct side *s, uint32_t stream)
{
	int m = first_free(s, stream);
	struct slmpm_done done;
	int rc = slmpm_probe(s->peer, stream, &done, patience_for(s, m));

	SAY(s, "probes %u: %d", stream, rc);
	CHECK(rc == 0 || (rc == 1 && m >= 0), "a probe says %d: %s", rc, slmpm_error_detail());
	if (rc && done.flags & SLMPM_PART)
		done.len = other(s)->sent[m].length; /* it still grows */
	CHECK(!rc || (done.imm == imm_of(&other(s)->sent[m]) &&
		      done.len == other(s)->sent[m].length),
	      "a probe sees imm %u of %llu bytes on %u, not message %llu of %zu", done.imm,
	      (unsigned long long)done.len, done.stream, NUMBER(&other(s)->sent[m]),
	      other(s)->sent[m].length);
}

/* ---- in place ------------------------------------------------------------------------------- */

static void hold(struct side *s, uint32_t stream)
{
	int m = first_free(s, stream);
	int patience = patience_for(s, m);
	struct slmpm_done done;
	const void *data;
	int64_t n;

	if (s->helds == HOLD)
		return;
	n = slmpm_hold(s->peer, stream, &data, &done, patience);
	SAY(s, "holds %lld on %u within %d", (long long)n, stream, patience);
	if (n < 0) {
		EXPECT(n, -SLMPM_ETIMEOUT);
		CHECK(!patience, "no message to hold");
		return;
	}
	CHECK(m >= 0, "a message that nobody sent is held");
	for (int64_t more; done.flags & SLMPM_PART; n = more) {
		more = slmpm_more(s->peer, data, (uint64_t)n, &done, 0);
		if (more < 0) { /* it still grows: give it back in the middle */
			EXPECT(more, -SLMPM_ETIMEOUT);
			forget(other(s), m);
			OK(slmpm_release(s->peer, data));
			return;
		}
	}
	done.len = (uint64_t)n;
	compare(data, SIZE_MAX, &done, &other(s)->sent[m]);
	s->held[s->helds++] = (struct held){data, forget(other(s), m)};
}

static void let_go(struct side *s)
{
	struct held *h;

	if (!s->helds)
		return;
	h = &s->held[below((size_t)s->helds)];
	CHECK(actor_filled(h->data, h->message.seed, h->message.length),
	      "message %llu of %zu bytes changed while it was held",
	      (unsigned long long)h->message.seed, h->message.length);
	SAY(s, "lets %llu go", NUMBER(&h->message));
	OK(slmpm_release(s->peer, h->data));
	*h = s->held[--s->helds];
}

static void borrow(struct side *s)
{
	size_t n = some_length();
	void *buf;
	int rc;

	if (s->loan || s->sents == LIVE)
		return;
	s->lent = (struct sent){.seed = ++seed, .length = n, .stream = below(3)};
	rc = slmpm_loan(s->peer, s->lent.stream, n, &buf, 0);
	if (rc == -SLMPM_ELIMIT || rc == -SLMPM_ETIMEOUT)
		return;
	OK(rc);
	SAY(s, "borrows %llu of %zu on %u", NUMBER(&s->lent), n, s->lent.stream);
	s->loan = buf;
	s->ready = 0;
	s->part = false;
	EXPECT(slmpm_loan(s->peer, 0, 1, &buf, 0), -SLMPM_EBUSY);
}

/* More of it, all of it, or nothing. */
static void give_back(struct side *s)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = message_imm(s->lent.seed)};
	size_t n = s->ready + below(s->lent.length - s->ready + 1);
	int rc;

	if (!s->loan)
		return;
	if (!s->part && !below(4)) {
		SAY(s, "aborts %llu", NUMBER(&s->lent));
		OK(slmpm_abort(s->peer, s->loan));
		s->loan = NULL;
		return;
	}
	actor_fill(s->loan, s->lent.seed, s->lent.length);
	if (below(2)) {
		how.flags = SLMPM_PART;
		rc = slmpm_commit(s->peer, s->loan, n, &how);
		SAY(s, "commits %zu of %llu: %d", n, NUMBER(&s->lent), rc);
		if (rc == -SLMPM_ENOTSUP || rc == -SLMPM_ETIMEOUT)
			return;
		OK(rc);
		if (!s->part)
			s->sent[s->sents++] = s->lent;
		s->part = true;
		s->ready = n;
		EXPECT(slmpm_abort(s->peer, s->loan), -SLMPM_ESTATE);
		return;
	}
	n = s->part || below(2) ? s->lent.length : n; /* the model knows one length only */
	SAY(s, "commits %llu with %zu", NUMBER(&s->lent), n);
	rc = slmpm_commit(s->peer, s->loan, n, &how);
	if (rc == -SLMPM_ETIMEOUT) /* what was sent before it has not gone */
		return;
	OK(rc);
	s->lent.length = n;
	if (!s->part)
		s->sent[s->sents++] = s->lent;
	s->loan = NULL;
}

/* ---- a run ---------------------------------------------------------------------------------- */

static void step(struct side *s)
{
	uint32_t stream = below(4) ? below(4) : ANY;

	operations++;
	switch (below(20)) {
	case 0:
	case 1:
	case 2: send_later(s); break;
	case 3: below(2) ? send_burst(s) : send_together(s); break;
	case 4: receive_later(s); break;
	case 5:
	case 6: look_at_receive(s); break;
	case 7: look_at_send(s); break;
	case 8:
	case 9: receive_now(s, stream); break;
	case 10: receive_together(s, stream); break;
	case 11: look(s, stream); break;
	case 12: hold(s, stream); break;
	case 13: let_go(s); break;
	case 14: borrow(s); break;
	case 15:
	case 16: give_back(s); break;
	case 17: take_send_back(s); break;
	case 18: take_receive_back(s); break;
	default: (void)slmpm_progress(ctx); break;
	}
}

/* Everything comes to its end: what is lent is given, what was sent is received. */
static void settle(void)
{
	for (struct side *s = sides; s < sides + 2; s++)
		while (s->helds)
			let_go(s);
	while (lending() || sides[0].sents || sides[1].sents || sides[0].posteds ||
	       sides[1].posteds) {
		for (struct side *s = sides; s < sides + 2; s++) {
			int before = s->posteds;

			give_back(s);
			for (int i = 0; i < 2 * before; i++) {
				look_at_receive(s);
				take_receive_back(s);
			}
			if (first_free(s, ANY) >= 0)
				receive_now(s, ANY);
		}
	}
	for (struct side *s = sides; s < sides + 2; s++) {
		while (s->outgoings)
			report(s, s->outgoings - 1, 0);
		message_none(s->peer, ANY);
	}
}

static void figures_add_up(void)
{
	struct slmpm_stats stats[2];

	for (int i = 0; i < 2; i++) {
		OK(slmpm_peer_stats(sides[i].peer, &stats[i], sizeof(stats[i])));
		CHECK(!stats[i].violations && !stats[i].checksum_errors && !stats[i].remote_reads,
		      "violations, damage or reads of the peer's memory");
	}
	for (int i = 0; i < 2; i++)
		CHECK(stats[i].sent_messages == stats[!i].received_messages &&
			      stats[i].sent_packets == stats[!i].received_packets,
		      "%llu messages in %llu packets sent, %llu in %llu received",
		      (unsigned long long)stats[i].sent_messages,
		      (unsigned long long)stats[i].sent_packets,
		      (unsigned long long)stats[!i].received_messages,
		      (unsigned long long)stats[!i].received_packets);
}

static int test(const struct setting *s)
{
	const char *ms = getenv("SLMPM_TEST_MS");
	int64_t until = actor_now_ms() + (ms ? atoll(ms) : 250);

	(void)s;
	aloud = getenv("SLMPM_TEST_TRACE");
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &sides[0].peer, &sides[1].peer);
	packet = message_packet(sides[0].peer);
	eager = message_eager(sides[0].peer);
	do {
		for (int i = 0; i < 1000; i++)
			step(&sides[below(2)]);
		settle();
		figures_add_up();
	} while (actor_now_ms() < until);
	OK(slmpm_shut(ctx, PATIENCE));
	printf("%llu operations\n", (unsigned long long)operations);
	return 0;
}

int main(void)
{
	chance.state = rng_run_seed((uint64_t)actor_now_ms());
	return settings_each(test, 60);
}
