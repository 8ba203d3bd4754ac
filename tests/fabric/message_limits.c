/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/* Where messages meet a limit: buffers too short, deadlines, credit, requests taken back by either
 * side at any stage. Both ends lie in one context, so that every step is in the test's hand. */
#include <string.h>

#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define ANY SLMPM_ANY_STREAM

static slmpm_ctx ctx;
static slmpm_peer a, b;
static size_t packet, eager, announced; /* longest of one packet, unasked; one that asks */

static unsigned char *room(size_t n)
{
	unsigned char *data = malloc(n + 1);

	CHECK(data, "out of memory");
	return memset(data, 0x55, n + 1);
}

static slmpm_req post(uint32_t stream, void *data, size_t cap)
{
	struct slmpm_iov iov = {data, cap};
	slmpm_req req = {0};

	OK(slmpm_recvv(b, stream, &iov, 1, NULL, &req));
	return req;
}

static void ended(slmpm_req *req, const void *data, uint64_t seed, size_t n)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	message_check(data, &done, seed, n);
}

static void canceled(slmpm_req *req)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	CHECK(done.status == -SLMPM_ECANCELED, "canceled: %d", done.status);
}

static void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

/* Nothing that a has sent is on its way, over links that take their time, too. */
static void arrive(void)
{
	message_send(a, 9, 1, 8, 0);
	message_take(b, 9, 1, 8);
}

/* ---- buffers too short ---------------------------------------------------------------------- */

/* POSTED: the receive is there first. What it says, what it leaves, and what comes behind. */
static void cut(size_t n, size_t cap, bool posted)
{
	unsigned char *data = room(cap);
	struct slmpm_done done;
	struct message m, next;
	slmpm_req req;

	if (posted)
		req = post(1, data, cap);
	message_start(&m, a, 1, n, n);
	message_start(&next, a, 1, 77, 8);
	if (posted) {
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	} else {
		settle();
		EXPECT(slmpm_recv(b, 1, data, cap, &done, PATIENCE), -SLMPM_ETRUNC);
		CHECK(strstr(slmpm_error_detail(), "buffer"), "%s", slmpm_error_detail());
	}
	CHECK(done.status == -SLMPM_ETRUNC && done.len == n && done.imm == message_imm(n) &&
		      done.stream == 1,
	      "%zu bytes for %zu: status %d, %llu bytes", n, cap, done.status,
	      (unsigned long long)done.len);
	CHECK(actor_filled(data, n, cap), "%zu bytes for %zu: the first are not there", n, cap);
	CHECK(data[cap] == 0x55, "%zu bytes for %zu: one too many", n, cap);
	message_take(b, 1, 77, 8);
	message_end(&m, 0);
	message_end(&next, 0);
	free(data);
}

static void short_buffers_get_the_beginning(void)
{
	size_t lengths[] = {1, 8, 200, packet, eager, announced, 3 * announced};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i], caps[] = {0, 1, n / 2, n - 1, packet, packet + 1};

		for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k++) {
			if (caps[k] >= n)
				continue;
			cut(n, caps[k], false);
			cut(n, caps[k], true);
		}
	}
}

/* ---- deadlines ------------------------------------------------------------------------------ */

static void deadlines_are_kept(void)
{
	int64_t begin = actor_now_ms(), late;
	struct slmpm_event event = {.size = sizeof(event)};
	struct slmpm_done done;
	unsigned char byte;
	slmpm_req req;

	REFUSED(slmpm_recv(b, 3, &byte, 1, &done, 20), SLMPM_ETIMEOUT, "nothing from");
	late = actor_now_ms() - begin;
	CHECK(late >= 20 && late < PATIENCE / 2, "20 ms took %lld", (long long)late);
	CHECK(done.status == -SLMPM_ETIMEOUT, "status %d", done.status);
	REFUSED(slmpm_recv(slmpm_any(ctx), ANY, &byte, 1, NULL, 5), SLMPM_ETIMEOUT, "any peer");
	req = post(3, &byte, 1);
	REFUSED(slmpm_wait(&req, 1, &done, 5), SLMPM_ETIMEOUT, "waiting");
	OK(slmpm_cancel(req));
	canceled(&req);
	EXPECT(slmpm_hold(b, 3, &(const void *){NULL}, &done, 5), -SLMPM_ETIMEOUT);
	while (slmpm_next_event(ctx, &event, 0) == 1)
		;
	EXPECT(slmpm_next_event(ctx, &event, 5), 0);
}

/* A message that waits for its receive: after the deadline nothing of it is left. */
static void late_sends_leave_nothing(void)
{
	unsigned char *data = room(announced);

	for (int i = 0; i < 3; i++) {
		REFUSED(slmpm_send(a, 2, data, announced, 5 * i), i ? SLMPM_ETIMEOUT : SLMPM_EAGAIN,
			"not sent");
		arrive();
		message_none(b, ANY);
		message_send(a, 2, 5, 8, 0);
		message_take(b, 2, 5, 8);
	}
	free(data);
}

/* A receive too short for a message whose sender does not go on: the deadline holds, the message
 * stays. */
static void short_receive_keeps_its_deadline(void)
{
	void *loan;
	struct message m;
	unsigned char few[8];

	if (getenv("SLMPM_CHECK"))
		return; /* no loan lies in the ring then, and b can answer at once */
	message_start(&m, a, 4, 9, announced);
	settle();
	OK(slmpm_loan(b, 1, packet, &loan, PATIENCE)); /* what b says waits behind it */
	REFUSED(slmpm_recv(b, 4, few, sizeof(few), NULL, 5), SLMPM_ETIMEOUT, "nothing from");
	OK(slmpm_abort(b, loan));
	message_take(b, 4, 9, announced);
	message_end(&m, 0);
}

/* ---- credit --------------------------------------------------------------------------------- */

static void credit_bounds_what_waits(void)
{
	size_t n = packet < 8000 ? packet : 8000;
	uint64_t sent = 0;
	unsigned char *data = room(n);
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 20};

	for (;; sent++) {
		struct slmpm_iov iov = {data, n};

		actor_fill(data, sent, n);
		how.imm = message_imm(sent);
		if (slmpm_sendv(a, 6, &iov, 1, &how, NULL) < 0)
			break;
		CHECK(sent * n <= message_credit(), "more than the credit waits unread");
	}
	CHECK(strstr(slmpm_error_detail(), "not sent"), "%s", slmpm_error_detail());
	CHECK((sent + 2) * (n + 64) * 4 >= message_credit() * 3, "%llu bytes only: %zu are allowed",
	      (unsigned long long)(sent * n), message_credit());
	for (uint64_t i = 0; i < sent; i++)
		message_take(b, 6, i, n);
	arrive(); /* the last may have been announced, and taken back */
	message_none(b, ANY);
	message_send(a, 6, 1, n, 0);
	message_take(b, 6, 1, n);
	free(data);
}

/* A long message under way is not held up by those behind it that lack credit. */
static void what_is_under_way_goes_on(void)
{
	size_t n = packet < 8000 ? packet : 8000, count = message_credit() / n + 8;
	struct message first, *more = calloc(count, sizeof(*more));

	CHECK(more, "out of memory");
	message_start(&first, a, 7, 500, 4 * announced);
	for (size_t i = 0; i < count; i++)
		message_start(&more[i], a, 7, i, n);
	settle();
	message_take(b, 7, 500, 4 * announced);
	message_end(&first, 0);
	for (size_t i = 0; i < count; i++)
		message_take(b, 7, i, n);
	for (size_t i = 0; i < count; i++)
		message_end(&more[i], 0);
	free(more);
}

/* ---- taken back ----------------------------------------------------------------------------- */

static void receives_are_taken_back(void)
{
	unsigned char data[2][8];
	slmpm_req req[2] = {post(8, data[0], 8), post(ANY, data[1], 8)}, gone;

	OK(slmpm_cancel(req[0]));
	message_send(a, 8, 1, 8, 0);
	ended(&req[1], data[1], 1, 8);
	gone = req[0];
	canceled(&req[0]);
	REFUSED(slmpm_cancel(gone), SLMPM_EHANDLE, "");
	req[0] = post(8, data[0], 8);
	message_send(a, 8, 2, 8, 0);
	arrive();
	REFUSED(slmpm_cancel(req[0]), SLMPM_EBUSY, "too far");
	ended(&req[0], data[0], 2, 8);
}

/* Half a message is in a receive's buffer; the next receive gets it whole, before later ones. */
static void half_a_message_is_handed_on(void)
{
	unsigned char *data[2] = {room(announced), room(announced)};
	slmpm_req req[2];
	struct message m[2];
	void *loan;

	message_start(&m[0], a, 1, 10, announced);
	settle();
	OK(slmpm_loan(b, 1, packet, &loan, PATIENCE)); /* so that b's clear to send waits */
	req[0] = post(1, data[0], announced);
	req[1] = post(1, data[1], announced);
	OK(slmpm_cancel(req[0]));
	canceled(&req[0]);
	OK(slmpm_abort(b, loan));
	message_start(&m[1], a, 1, 11, announced);
	ended(&req[1], data[1], 10, announced);
	message_take(b, 1, 11, announced);
	for (int i = 0; i < 2; i++) {
		message_end(&m[i], 0);
		free(data[i]);
	}
}

/* A send is taken back when its receive has begun: the receive gets what came after it, or the next
 * that comes, in its old place. */
static void withdrawn_messages_were_never_there(void)
{
	unsigned char *data[3] = {room(announced), room(announced), room(8)};

	for (int came = 0; came < 2; came++) {
		slmpm_req req[3];
		struct message m;

		message_start(&m, a, 1, 20, announced);
		settle();
		if (came)
			message_send(a, 1, 21, 8, 0);
		settle();
		req[0] = post(2, data[0], announced);
		req[1] = post(ANY, data[1], announced);
		req[2] = post(1, data[2], 8);
		OK(slmpm_cancel(m.req));
		message_end(&m, -SLMPM_ECANCELED);
		settle();
		if (!came)
			message_send(a, 1, 21, 8, 0);
		ended(&req[came ? 2 : 1], data[came ? 2 : 1], 21, 8);
		message_send(a, 2, 22, 8, 0);
		ended(&req[0], data[0], 22, 8);
		message_send(a, 1, 23, 8, 0);
		ended(&req[came ? 1 : 2], data[came ? 1 : 2], 23, 8);
	}
	for (int i = 0; i < 3; i++)
		free(data[i]);
	message_none(b, ANY);
}

/* Those that take no credit, for they are to be fetched. */
static size_t fetched(const struct message *m, size_t count)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		OK(slmpm_req_mode(m[i].req, &mode));
		n += mode.protocol == SLMPM_BY_RGET;
	}
	return n;
}

/* Not begun, for want of credit; begun, and in the middle of many packets. */
static void sends_are_taken_back_at_any_stage(void)
{
	size_t n = eager, count = message_credit() / n + 3, last;
	struct message *m = calloc(count, sizeof(*m));
	bool *gone = calloc(count, sizeof(*gone));
	struct slmpm_stats stats;

	CHECK(m && gone, "out of memory");
	for (int after = 0; after < 3; after++) {
		for (size_t i = 0; i < count; i++)
			message_start(&m[i], a, 3, i, n);
		for (int i = 0; i < after; i++)
			(void)slmpm_progress(ctx);
		last = count - 3 + fetched(m, count);
		for (size_t i = 0; i < count; i += 2) {
			gone[i] = slmpm_cancel(m[i].req) == 0;
			/* One that has been announced is taken back by a packet, which needs room. */
			OK(slmpm_peer_stats(a, &stats, sizeof(stats)));
			CHECK(gone[i] || i < last || stats.out_room == 0,
			      "the last cannot have gone");
		}
		for (size_t i = 0; i < count; i++)
			if (!gone[i])
				message_take(b, 3, i, n);
		for (size_t i = 0; i < count; i++)
			message_end(&m[i], gone[i] ? -SLMPM_ECANCELED : 0);
		arrive();
		message_none(b, ANY);
	}
	free(m);
	free(gone);
}

/* A receive too short for its message is taken back after so many STEPS, and then the message, if
 * it is to be TAKEN: it is received cut, later whole, or by neither side. */
static void taken_back_in_the_middle(size_t n, size_t cap, int steps, bool taken)
{
	unsigned char *data = room(n);
	struct slmpm_done end = {.status = 0};
	slmpm_req req = post(1, data, cap);
	struct message m;
	bool gone, back;

	message_start(&m, a, 1, 30, n);
	for (int i = 0; i < steps; i++)
		(void)slmpm_progress(ctx);
	gone = slmpm_cancel(req) == 0;
	back = taken && slmpm_cancel(m.req) == 0;
	if (back) {
		message_end(&m, -SLMPM_ECANCELED);
		arrive();
		if (!gone) /* it waits for another one */
			OK(slmpm_cancel(req));
	}
	EXPECT(slmpm_wait(&req, 1, &end, PATIENCE), 0);
	CHECK((end.status == -SLMPM_ETRUNC) == (!gone && !back),
	      "after %d steps: taken back %d, %d: status %d", steps, gone, back, end.status);
	CHECK(data[cap] == 0x55, "more than it has room for");
	if (gone && !back)
		message_take(b, 1, 30, n);
	if (!back)
		message_end(&m, 0);
	message_none(b, ANY);
	free(data);
}

static void short_receives_are_taken_back_at_any_stage(void)
{
	for (int steps = 0; steps < 60; steps++) {
		taken_back_in_the_middle(4 * announced, 100, steps / 2, steps % 2);
		taken_back_in_the_middle(announced, packet + 1, steps / 2, steps % 2);
	}
}

static int test(const struct setting *s)
{
	struct slmpm_stats stats;

	(void)s;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	packet = message_packet(a);
	eager = message_eager(a);
	announced = eager + packet;
	short_buffers_get_the_beginning();
	deadlines_are_kept();
	late_sends_leave_nothing();
	short_receive_keeps_its_deadline();
	credit_bounds_what_waits();
	what_is_under_way_goes_on();
	receives_are_taken_back();
	half_a_message_is_handed_on();
	withdrawn_messages_were_never_there();
	sends_are_taken_back_at_any_stage();
	short_receives_are_taken_back_at_any_stage();
	OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
	CHECK(!stats.violations && !stats.checksum_errors, "violations");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	return settings_each(test, 30);
}
