/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Receive queues: a message for an entry that is disabled is refused at its sender, whichever way
 * it was to go, and no byte of the entry's buffer changes; what is enabled is taken in order.
 */
#include "tests/api/workqueue.h"

#define STREAM 9

static slmpm_wq receives; /* B's, of A's STREAM */
static bool of_any;       /* or of any peer's: entries are claimed */

static void receives_on(uint32_t stream, uint32_t flags)
{
	receives = receive_queue_of(of_any ? slmpm_any(ctx) : b, stream, flags);
	settle();
}

static void receive_queue(uint32_t flags)
{
	receives_on(STREAM, flags);
}

static void post_receive(void *at, size_t n, uint64_t cookie)
{
	struct slmpm_iov place = {at, n};
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = SLMPM_OP_RECV,
			      .iov = &place,
			      .iov_count = 1,
			      .cookie = cookie};

	EXPECT(slmpm_post(receives, &wr, 1), 1);
}

static void enable(uint64_t index)
{
	OK(slmpm_wq_enable(receives, index));
	settle();
}

static struct slmpm_done early_one; /* came before the one that was waited for */

static void expect(uint64_t cookie, int status, uint64_t len)
{
	struct slmpm_done done = early_one;

	if (!done.op)
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	early_one.op = 0;
	CHECK(done.cookie == cookie && done.status == status && (status || done.len == len),
	      "cookie %llu, status %d, %llu instead of %llu, %d, %llu",
	      (unsigned long long)done.cookie, done.status, (unsigned long long)done.len,
	      (unsigned long long)cookie, status, (unsigned long long)len);
}

/* ---- each way of sending ------------------------------------------------------------------- */

enum way { PLAIN, PIECES, STAGED, BY_REQUEST, BURST, LOANED, QUEUED, WAYS };

/* What the call returns, or the request's end. */
static int send_by(enum way way, void *data, size_t n)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_done done;
	struct slmpm_iov whole = {data, n},
			 pieces[2] = {{data, n / 2}, {(char *)data + n / 2, n - n / 2}};
	slmpm_req req;
	void *loan;
	int rc;

	switch (way) {
	case PLAIN: return slmpm_send(a, STREAM, data, n, PATIENCE);
	case PIECES: return slmpm_sendv(a, STREAM, pieces, 2, &how, NULL);
	case STAGED: how.flags = SLMPM_MORE; return slmpm_sendv(a, STREAM, &whole, 1, &how, NULL);
	case BY_REQUEST:
		rc = slmpm_sendv(a, STREAM, &whole, 1, NULL, &req);
		rc = rc < 0 ? rc : slmpm_wait(&req, 1, &done, PATIENCE);
		return rc < 0 ? rc : done.status;
	case BURST: rc = slmpm_send_burst(a, STREAM, &whole, 1, PATIENCE); return rc < 0 ? rc : 0;
	case LOANED:
		OK(slmpm_loan(a, STREAM, n, &loan, PATIENCE));
		memcpy(loan, data, n);
		rc = slmpm_commit(a, loan, n, NULL);
		if (rc < 0)
			OK(slmpm_abort(a, loan));
		return rc;
	default: {
		struct slmpm_wr wr = message(STREAM, &whole, 1000);

		rc = slmpm_post(wq, &wr, 1);
		if (rc < 0)
			return rc;
		for (;;) {
			EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
			if (done.cookie == 1000)
				break;
			early_one = done;
		}
		if (done.status < 0)
			OK(slmpm_wq_reset(wq));
		return done.status;
	}
	}
}

static void by(enum way way, size_t n)
{
	unsigned char *data = malloc(n), *places = calloc(3, n);

	CHECK(data && places, "out of memory");
	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	for (uint64_t i = 0; i < 3; i++)
		post_receive(places + i * n, n, i);
	actor_fill(data, 5, n);
	for (int i = 0; i < 20; i++) { /* a flood of them */
		REFUSED(send_by(way, data, n), SLMPM_EDISABLED,
			of_any && way == QUEUED ? "" : "stream 9");
		settle();
	}
	CHECK(!places[0] && !memcmp(places, places + 1, 3 * n - 1), "way %d wrote there", way);
	for (uint64_t i = 1; i <= 3; i++) {
		enable(i);
		actor_fill(data, i, n);
		OK(send_by(way, data, n));
		REFUSED(send_by(way, data, n), SLMPM_EDISABLED,
			of_any && way == QUEUED ? "" : "disabled");
		expect(i - 1, 0, n);
		CHECK(actor_filled(places + (i - 1) * n, i, n), "way %d: other bytes", way);
	}
	enable(5); /* they are yet to be posted: what comes is kept */
	if (n < 4096) {
		actor_fill(data, 77, n);
		OK(send_by(way, data, n));
		settle();
		memset(places, 0, n);
		post_receive(places, n, 50);
		expect(50, 0, n);
		CHECK(actor_filled(places, 77, n), "way %d: what was kept", way);
	}
	OK(slmpm_wq_destroy(receives));
	settle();
	if (n < 4096) { /* a stream like others again */
		OK(send_by(way, data, n));
		EXPECT(slmpm_recv(b, STREAM, places, n, NULL, PATIENCE), (int64_t)n);
	}
	free(data);
	free(places);
	end();
}

/* ---- order, waiting ------------------------------------------------------------------------ */

/* Nothing that was sent later takes the place of what was refused. */
static void in_order(void)
{
	uint64_t values[4] = {1, 2, 3, 4};
	struct slmpm_wr wr[4];
	struct slmpm_iov pieces[4];

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	enable(2);
	for (uint64_t i = 0; i < 4; i++) {
		post_receive(&here[i], 8, 100 + i);
		pieces[i] = (struct slmpm_iov){&values[i], 8};
		wr[i] = message(STREAM, &pieces[i], i);
	}
	EXPECT(slmpm_post(wq, wr, 2), 2);
	OK(slmpm_wq_drain(wq, PATIENCE));
	expect(0, 0, 8);
	expect(1, 0, 8);
	expect(100, 0, 8);
	expect(101, 0, 8);
	REFUSED(slmpm_post(wq, wr + 2, 2), SLMPM_EDISABLED, "disabled");
	/* Behind another entry it is refused in its turn, and what is behind it does not go. */
	wr[0].flags = SLMPM_SILENT;
	wr[0].stream = 1;
	OK(slmpm_wq_enable(receives, 2));
	{
		struct slmpm_iov whole = long_one();
		struct slmpm_wr first = message(1, &whole, 60);

		post(first);
		wr[2].flags = wr[3].flags = SLMPM_FENCE;
		EXPECT(slmpm_post(wq, wr + 2, 2), 2);
		EXPECT(slmpm_recv(b, 1, whole.base, whole.len, NULL, PATIENCE), (int64_t)whole.len);
		expect(60, 0, whole.len);
		expect(2, -SLMPM_EDISABLED, 0);
		expect(3, -SLMPM_ECANCELED, 0);
		enable(4);
		REFUSED(slmpm_post(wq, wr + 3, 1), SLMPM_EDISABLED, "reset");
		free(whole.base);
	}
	OK(slmpm_wq_reset(wq));
	EXPECT(slmpm_post(wq, wr + 2, 2), 2);
	for (uint64_t seen = 0; seen < 4; seen++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		EXPECT(done.status, 0);
	}
	for (uint64_t i = 0; i < 4; i++)
		CHECK(here[i] == i + 1, "place %llu has %llu", (unsigned long long)i,
		      (unsigned long long)here[i]);
	end();
}

/* It stays at the head until the entry is enabled, without a packet; or until its deadline. */
static void waiting(void)
{
	uint64_t value = 7;
	struct slmpm_iov piece = {&value, 8};
	struct slmpm_wr wr;
	struct slmpm_stats before, after;

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	here[0] = 0;
	post_receive(&here[0], 8, 1);
	wr = message(STREAM, &piece, 2);
	wr.timeout_ms = -1;
	post(wr);
	settle();
	OK(slmpm_peer_stats(a, &before, sizeof(before)));
	for (int i = 0; i < 1000; i++)
		(void)slmpm_progress(ctx);
	OK(slmpm_peer_stats(a, &after, sizeof(after)));
	CHECK(after.sent_messages == before.sent_messages && here[0] == 0, "it was sent");
	OK(slmpm_wq_enable(receives, 1));
	OK(slmpm_wq_drain(receives, PATIENCE));
	CHECK(here[0] == 7, "%llu", (unsigned long long)here[0]);
	OK(slmpm_wq_drain(wq, PATIENCE));
	for (int i = 0; i < 2; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		EXPECT(done.status, 0);
	}
	wr.timeout_ms = 20;
	post(wr);
	expect(2, -SLMPM_EDISABLED, 0);
	OK(slmpm_wq_reset(wq));
	wr.timeout_ms = -1;
	post(wr);
	OK(slmpm_wq_cancel(wq, 0));
	expect(2, -SLMPM_ECANCELED, 0);
	OK(slmpm_wq_reset(wq));
	/* The queue goes while it waits: the stream is like others. */
	post(wr);
	OK(slmpm_wq_destroy(receives));
	expect(2, 0, 8);
	EXPECT(slmpm_recv(b, STREAM, &value, 8, NULL, PATIENCE), 8);
	end();
}

/* What was sent before the sender knew takes the first entries; what was taken back takes none. */
static void early(void)
{
	uint64_t value;
	struct slmpm_iov whole;
	slmpm_req req;

	begin(0, 0);
	for (value = 1; value <= 3; value++)
		OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	receive_queue(SLMPM_WQ_MANAGED);
	for (uint64_t i = 0; i < 6; i++)
		post_receive(&here[i], 8, i);
	value = 4;
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	enable(2);
	expect(0, 0, 8);
	expect(1, 0, 8);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	enable(3);
	expect(2, 0, 8);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	enable(4);
	whole = long_one();
	if (!of_any) /* in its turn: it takes no message */
		OK(slmpm_wq_cancel(receives, 5));
	/* Longer than the entry takes: it is announced, and can be taken back. */
	OK(slmpm_sendv(a, STREAM, &whole, 1, NULL, &req));
	OK(slmpm_cancel(req));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	free(whole.base);
	end();
}

/* The same where a queue of any peer, of another stream, has come and gone before. */
static void early_after_another(void)
{
	bool before = of_any;
	uint64_t value = 1;

	begin(0, 0);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	of_any = true;
	receives_on(STREAM + 1, SLMPM_WQ_MANAGED);
	OK(slmpm_wq_destroy(receives));
	settle();
	of_any = before;
	receive_queue(SLMPM_WQ_MANAGED);
	post_receive(&here[0], 8, 0);
	enable(1);
	expect(0, 0, 8);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	end();
}

/* An entry that is cancelled lets no message more. */
static void cancelled(void)
{
	uint64_t value = 5;

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	enable(2);
	post_receive(&here[0], 8, 0);
	post_receive(&here[1], 8, 1);
	OK(slmpm_wq_cancel(receives, 2));
	settle();
	expect(1, -SLMPM_ECANCELED, 0);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	expect(0, 0, 8);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	OK(slmpm_wq_reset(receives));
	enable(3);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	post_receive(&here[2], 8, 2);
	expect(2, 0, 8);
	end();
}

/* Nor one less, of those that are enabled, where it is not itself. */
static void cancelled_ahead(void)
{
	uint64_t value = 5;

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	enable(2);
	for (uint64_t i = 0; i < 4; i++)
		post_receive(&here[i], 8, i);
	OK(slmpm_wq_cancel(receives, 3));
	settle();
	expect(2, -SLMPM_ECANCELED, 0);
	expect(3, -SLMPM_ECANCELED, 0);
	for (uint64_t i = 0; i < 2; i++) {
		OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
		expect(i, 0, 8);
	}
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	OK(slmpm_wq_reset(receives));
	post_receive(&here[4], 8, 4);
	for (uint64_t i = 3; i < 5; i++) {
		enable(i);
		REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	}
	enable(5);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	expect(4, 0, 8);
	end();
}

/* As many as there are. */
static void all_enabled(void)
{
	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	enable(UINT64_MAX);
	post_receive(&here[0], 8, 0);
	OK(slmpm_send(a, STREAM, "any time", 8, PATIENCE));
	expect(0, 0, 8);
	end();
}

/* Who waits behind a message that is taken back has that one's entry. */
static void waits_behind(void)
{
	uint64_t value = 6;
	struct slmpm_iov whole, piece = {&value, 8};
	struct slmpm_wr wr;
	slmpm_req req;

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	enable(1);
	whole = long_one();
	OK(slmpm_sendv(a, STREAM, &whole, 1, NULL, &req));
	wr = message(STREAM, &piece, 2);
	wr.timeout_ms = -1;
	post(wr);
	settle();
	OK(slmpm_cancel(req));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	expect(2, 0, 8);
	post_receive(&here[0], 8, 3);
	expect(3, 0, 8);
	free(whole.base);
	end();
}

/* What was sent before the sender knew counts no more when it is taken back. */
static void early_taken_back(void)
{
	struct slmpm_iov whole;
	uint64_t value = 6;
	slmpm_req req;

	begin(0, 0);
	whole = long_one();
	OK(slmpm_sendv(a, STREAM, &whole, 1, NULL, &req));
	settle();
	receive_queue(SLMPM_WQ_MANAGED);
	OK(slmpm_cancel(req));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	settle();
	enable(1);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	post_receive(&here[0], 8, 3);
	expect(3, 0, 8);
	free(whole.base);
	end();
}

/* A loan's first part waits to leave when the sender learns of the queue: it has the first
 * entry. */
static void loan_that_waits(void)
{
	const size_t n = (size_t)16 << 20;
	struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART};
	unsigned char *place = calloc(1, n);
	void *loan;
	uint64_t value = 5;

	CHECK(place, "out of memory");
	begin(0, 0);
	OK(slmpm_loan(a, STREAM, n, &loan, PATIENCE));
	memset(loan, 7, n);
	OK(slmpm_commit(a, loan, n / 2, &part)); /* over TCP more than goes at once */
	receive_queue(SLMPM_WQ_MANAGED);
	post_receive(place, n, 1);
	post_receive(&here[0], 8, 2);
	enable(1);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "disabled");
	OK(slmpm_commit(a, loan, n, NULL));
	expect(1, 0, n);
	CHECK(place[0] == 7 && place[n - 1] == 7, "other bytes");
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "disabled");
	enable(2);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	expect(2, 0, 8);
	free(place);
	end();
}

/* Of a burst that was staged when the word came, which goes before the answer. */
static void early_burst(void)
{
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = PATIENCE};
	uint64_t value = 6;
	const struct slmpm_iov piece = {&value, 8};

	begin(0, 0);
	OK(slmpm_sendv(a, STREAM, &piece, 1, &more, NULL));
	receive_queue(SLMPM_WQ_MANAGED);
	enable(2);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	post_receive(&here[0], 8, 1);
	post_receive(&here[1], 8, 2);
	expect(1, 0, 8);
	expect(2, 0, 8);
	end();
}

/* One that cannot go by the link that it asks for takes no entry. */
static void impossible(void)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	uint64_t value = 6;
	struct slmpm_iov piece = {&value, 8};

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED);
	enable(1);
	how.flags = SLMPM_ON_LINK(3) | SLMPM_STRICT;
	for (int i = 0; i < 3; i++)
		CHECK(slmpm_sendv(a, STREAM, &piece, 1, &how, NULL) < 0, "by a link of none");
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	end();
}

/* Its entry has the message, but not all of it, when the sender's answer comes. */
static void half_way(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
				     .cq = cq,
				     .stream = STREAM};
	struct slmpm_iov whole;
	void *place;
	slmpm_req req;

	begin(0, 0);
	o.cq = cq;
	o.peer = of_any ? slmpm_any(ctx) : b;
	whole = long_one();
	place = malloc(whole.len);
	CHECK(place, "out of memory");
	OK(slmpm_sendv(a, STREAM, &whole, 1, NULL, &req));
	OK(slmpm_wq_create(ctx, &o, &receives));
	post_receive(place, whole.len, 1);
	OK(slmpm_wq_enable(receives, 1));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	expect(1, 0, whole.len);
	settle();
	REFUSED(slmpm_send(a, STREAM, &o, 8, PATIENCE), SLMPM_EDISABLED, "");
	free(place);
	free(whole.base);
	end();
}

/* A queue follows another of the same stream before its owner has read the answer to that one's
 * word, behind which a message is on its way. */
static void anew(void)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, .stream = STREAM};
	uint64_t value = 6;

	begin(0, 0);
	o.cq = cq;
	o.peer = a;
	OK(slmpm_wq_create(ctx, &o, &receives));
	OK(slmpm_wq_enable(receives, 1));
	(void)slmpm_progress(ctx); /* A first, then B, which answers */
	OK(slmpm_wq_destroy(receives));
	OK(slmpm_wq_create(ctx, &o, &receives));
	OK(slmpm_send(b, STREAM, &value, 8, PATIENCE));
	settle();
	post_receive(&here[0], 8, 1);
	enable(1);
	expect(1, 0, 8);
	REFUSED(slmpm_send(b, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	end();
}

/* What one has sent that has ended takes an entry, too. */
static void left_behind(void)
{
	uint64_t value = 5;
	slmpm_peer c, d;

	begin(0, 0);
	actor_pair(ctx, &c, &d);
	OK(slmpm_send(c, STREAM, &value, 8, PATIENCE));
	settle();
	OK(slmpm_close(c, PATIENCE));
	settle();
	receive_queue(SLMPM_WQ_MANAGED);
	enable(1);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	post_receive(&here[0], 8, 1);
	expect(1, 0, 8);
	CHECK(here[0] == 5, "%llu", (unsigned long long)here[0]);
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	OK(slmpm_close(d, PATIENCE));
	REFUSED(slmpm_send(a, STREAM, &value, 8, PATIENCE), SLMPM_EDISABLED, "");
	enable(2);
	OK(slmpm_send(a, STREAM, &value, 8, PATIENCE));
	end();
}

/* By an ENABLE of another queue, and as a program that runs again. */
static void enabled_by_entries(void)
{
	struct slmpm_wr on = {.size = sizeof(on),
			      .op = SLMPM_OP_ENABLE,
			      .flags = SLMPM_RELATIVE | SLMPM_SILENT,
			      .value = 1};

	begin(0, 0);
	receive_queue(SLMPM_WQ_MANAGED | SLMPM_WQ_KEPT);
	post_receive(&here[0], 8, 0);
	on.wq = receives;
	for (uint64_t i = 1; i < 500; i++) {
		REFUSED(slmpm_send(a, STREAM, &i, 8, PATIENCE), SLMPM_EDISABLED, "");
		post(on);
		settle();
		OK(slmpm_send(a, STREAM, &i, 8, PATIENCE));
		expect(0, 0, 8);
		CHECK(here[0] == i, "%llu", (unsigned long long)here[0]);
		OK(slmpm_wq_arm(receives));
	}
	end();
}

/* Queues that name one counter; of any peer, and not managed. */
static void group(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE, .cq = cq};
	struct slmpm_wr wait = {.size = sizeof(wait), .op = SLMPM_OP_WAIT, .value = 3, .cookie = 9};
	slmpm_wq any;

	begin(0, 0);
	OK(slmpm_ctr_create(ctx, &o.ctr));
	o.cq = cq;
	o.peer = b;
	o.stream = STREAM;
	OK(slmpm_wq_create(ctx, &o, &receives));
	o.peer = slmpm_any(ctx);
	o.stream = 10;
	OK(slmpm_wq_create(ctx, &o, &any));
	wait.ctr = o.ctr;
	post(wait);
	post_receive(&here[0], 8, 0);
	post_receive(&here[1], 8, 1);
	{
		slmpm_wq first = receives;

		receives = any;
		post_receive(&here[2], 8, 2);
		receives = first;
	}
	OK(slmpm_send(a, STREAM, "message1", 8, PATIENCE));
	expect(0, 0, 8);
	OK(slmpm_send(b, 10, "message2", 8, PATIENCE)); /* which A receives */
	expect(2, 0, 8);
	empty();
	OK(slmpm_send(a, STREAM, "message3", 8, PATIENCE));
	expect(1, 0, 8);
	expect(9, 0, 3);
	REFUSED(slmpm_ctr_destroy(o.ctr), SLMPM_EBUSY, "work queue");
	OK(slmpm_wq_destroy(any));
	end();
}

/* Of a peer that is not yet there they are counted and told apart, too. */
static void of_one_to_come(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED};
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	char *argv[] = {(char *)(uintptr_t) "60", NULL};
	slmpm_wq queue, last = {0};
	int status;

	begin(0, 0);
	how.ctx = ctx;
	OK(slmpm_spawn(&o.peer, "sleep", argv, &how));
	o.cq = cq;
	for (o.stream = 0; o.stream < 256; o.stream++)
		OK(slmpm_wq_create(ctx, &o, &last));
	o.stream = 3;
	REFUSED(slmpm_wq_create(ctx, &o, &queue), SLMPM_EBUSY, "stream 3");
	o.stream = 256;
	REFUSED(slmpm_wq_create(ctx, &o, &queue), SLMPM_ELIMIT, "256");
	OK(slmpm_wq_destroy(last));
	OK(slmpm_wq_create(ctx, &o, &queue));
	OK(slmpm_kill(o.peer, 0));
	(void)slmpm_join(o.peer, &status, PATIENCE);
	end();
}

static void refusals(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_wr wr;
	slmpm_wq no;

	begin(0, 0);
	o.cq = cq;
	o.peer = b;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "RECEIVE");
	o.flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED;
	o.channels = 2;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "one channel");
	o.channels = 0;
	o.peer.id = 0;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EHANDLE, "");
	o.peer = b;
	o.stream = SLMPM_ANY_STREAM;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "one stream");
	o.stream = STREAM;
	OK(slmpm_wq_create(ctx, &o, &receives));
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EBUSY, "stream 9");
	o.flags = SLMPM_WQ_RECEIVE;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EBUSY, "stream 9");
	wr = message(1, NULL, 0);
	wr.iov_count = 0;
	REFUSED(slmpm_post(receives, &wr, 1), SLMPM_EINVAL, "is a RECV, not a SEND");
	o.reserved = 1;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "reserved");
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_wq_destroy(receives));
	end();
}

static int claimed(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	of_any = true;
	for (enum way way = 0; way < WAYS; way++) {
		by(way, 8);
		by(way, 3000);
	}
	waiting();
	early();
	early_after_another();
	cancelled();
	cancelled_ahead();
	all_enabled();
	waits_behind();
	impossible();
	early_taken_back();
	loan_that_waits();
	early_burst();
	half_way();
	enabled_by_entries();
	left_behind();
	return 0;
}

static int everything(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	for (enum way way = 0; way < WAYS; way++) {
		by(way, 8);
		by(way, 3000);
	}
	in_order();
	waiting();
	early();
	early_after_another();
	cancelled();
	cancelled_ahead();
	all_enabled();
	waits_behind();
	impossible();
	early_taken_back();
	loan_that_waits();
	early_burst();
	half_way();
	anew();
	enabled_by_entries();
	group();
	refusals();
	of_one_to_come();
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp"};

	for (int i = 0; i < 2; i++) {
		int rc = child_run(everything, fabrics[i], 50);

		CHECK(rc == 0, "SLMPM_FABRIC=%s: %d", fabrics[i], rc);
		rc = child_run(claimed, fabrics[i], 50);
		CHECK(rc == 0, "SLMPM_FABRIC=%s, of any: %d", fabrics[i], rc);
	}
	setenv("SLMPM_CHECK", "1", 1);
	EXPECT(child_run(everything, fabrics[0], 50), 0);
	EXPECT(child_run(claimed, fabrics[0], 50), 0);
	return 0;
}
