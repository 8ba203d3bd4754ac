/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* Messages built and read in place: loans in packets and in areas, in parts, given back; held
 * messages, many at once and in any order. Both ends lie in one context. */
#include <string.h>

#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define ANY SLMPM_ANY_STREAM

static slmpm_ctx ctx;
static slmpm_peer a, b;
static size_t packet, large; /* in a packet; in an area */
static bool in_packets;      /* not so where each packet has its checksum */

static unsigned char *lend(uint32_t stream, size_t n)
{
	void *buf;

	OK(slmpm_loan(a, stream, n, &buf, PATIENCE));
	CHECK((uintptr_t)buf % 32 == 0, "a loan of %zu bytes at %p", n, buf);
	return buf;
}

static int commit(void *buf, uint64_t seed, size_t n, uint32_t flags)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = message_imm(seed), .flags = flags};

	actor_fill(buf, seed, n);
	return slmpm_commit(a, buf, n, &how);
}

static const void *hold(uint32_t stream, uint64_t seed, size_t n)
{
	struct slmpm_done done;
	const void *held;

	EXPECT(slmpm_hold(b, stream, &held, &done, PATIENCE), n);
	CHECK(!(done.flags & SLMPM_PART), "message %llu still grows", (unsigned long long)seed);
	message_check(held, &done, seed, n);
	return held;
}

/* ---- loans ---------------------------------------------------------------------------------- */

static void loans_arrive_as_committed(void)
{
	size_t lengths[] = {0, 1, 100, packet - 1, packet, packet + 1, large};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i], part[] = {n, n / 2, 0};

		for (uint64_t k = 0; k < 3; k++) {
			OK(commit(lend(1, n), 256 + k, part[k], 0));
			message_take(b, k % 2 ? 1 : ANY, 256 + k, part[k]);
			OK(commit(lend(1, n), 512 + k, part[k], 0));
			OK(slmpm_release(b, hold(k % 2 ? 1 : ANY, 512 + k, part[k])));
		}
	}
	message_none(b, ANY);
}

static void one_loan_at_a_time(size_t n)
{
	unsigned char *buf = lend(1, n), byte = 1;
	struct message m;
	void *other;

	REFUSED(slmpm_loan(a, 1, 8, &other, 0), SLMPM_EBUSY, "open");
	REFUSED(slmpm_commit(a, buf + 1, 1, NULL), SLMPM_ESTATE, "no such loan");
	REFUSED(slmpm_commit(a, buf, n + 1, NULL), SLMPM_EINVAL, "bytes");
	REFUSED(slmpm_commit(b, buf, n, NULL), SLMPM_ESTATE, "no such loan");
	REFUSED(slmpm_abort(a, &byte), SLMPM_ESTATE, "no such loan");
	if (in_packets && n <= packet)
		REFUSED(slmpm_send(a, 1, &byte, 1, 0), SLMPM_EBUSY, "open");
	/* A request waits for the loan, or goes by it; it arrives in any case. */
	message_start(&m, a, 2, 4, 100);
	OK(commit(buf, 3, n, 0));
	message_take(b, 1, 3, n);
	message_take(b, 2, 4, 100);
	message_end(&m, 0);
	REFUSED(slmpm_commit(a, buf, n, NULL), SLMPM_ESTATE, "no such loan");
	REFUSED(slmpm_abort(a, buf), SLMPM_ESTATE, "no such loan");
}

static void a_loan_given_back_was_never_there(size_t n)
{
	for (int i = 0; i < 50; i++) {
		unsigned char *buf = lend(1, n);

		memset(buf, 0xff, n);
		OK(slmpm_abort(a, buf));
		message_none(b, ANY);
		message_send(a, 1, 1, 8, SLMPM_MORE);
		message_take(b, 1, 1, 8);
	}
}

/* The order of what was sent before and is sent after. */
static void loans_keep_the_order(size_t n)
{
	for (uint64_t i = 0; i < 40; i += 4) {
		message_send(a, 1, i, 8, SLMPM_MORE);
		OK(commit(lend(1, n), i + 1, n, 0));
		message_send(a, 1, i + 2, 100, 0);
		message_send(a, 1, i + 3, 8, SLMPM_MORE);
		for (uint64_t k = 0; k < 4; k++)
			message_take(b, 1, i + k, k == 1 ? n : k == 2 ? 100 : 8);
	}
}

/* ---- parts ---------------------------------------------------------------------------------- */

static void parts_are_read_while_it_grows(void)
{
	unsigned char *buf = lend(1, large);
	struct slmpm_done done;
	const void *held;
	size_t ready = 0;

	actor_fill(buf, 5, large);
	for (size_t n = large / 8; n < large; n += large / 8) {
		OK(commit(buf, 5, n, SLMPM_PART));
		REFUSED(slmpm_abort(a, buf), SLMPM_ESTATE, "already");
		REFUSED(slmpm_commit(a, buf, n - 1, NULL), SLMPM_EINVAL, "are out");
		if (!ready) {
			EXPECT(slmpm_probe(b, 1, &done, PATIENCE), 1);
			CHECK(done.len == n && done.flags & SLMPM_PART, "a probe: %llu bytes",
			      (unsigned long long)done.len);
			EXPECT(slmpm_hold(b, 1, &held, &done, PATIENCE), n);
		} else {
			EXPECT(slmpm_more(b, held, ready, &done, PATIENCE), n);
		}
		CHECK(done.flags & SLMPM_PART, "it grows, and says that it does not");
		CHECK(actor_filled(held, 5, n), "the first %zu bytes are not there", n);
		ready = n;
		REFUSED(slmpm_more(b, held, n, &done, 2), SLMPM_ETIMEOUT, "no more");
		/* Others pass by. */
		message_send(a, 2, 6, 30, 0);
		message_take(b, 2, 6, 30);
	}
	OK(commit(buf, 5, large, 0));
	EXPECT(slmpm_more(b, held, ready, &done, PATIENCE), large);
	CHECK(!(done.flags & SLMPM_PART), "it is complete, and says that it grows");
	EXPECT(slmpm_more(b, held, large, &done, -1), large);
	CHECK(actor_filled(held, 5, large), "altered");
	OK(slmpm_release(b, held));
	REFUSED(slmpm_more(b, held, 0, NULL, 0), SLMPM_ESTATE, "held");
}

/* Received, posted before and after; release in the middle. */
static void parts_need_not_be_held(void)
{
	unsigned char *data = malloc(large);
	struct slmpm_iov iov = {data, large};
	struct slmpm_done done;
	slmpm_req req;

	CHECK(data, "out of memory");
	for (int before = 0; before < 2; before++) {
		unsigned char *buf = lend(1, large);

		if (before)
			OK(slmpm_recvv(b, 1, &iov, 1, NULL, &req));
		OK(commit(buf, 7, large / 3, SLMPM_PART));
		if (!before)
			OK(slmpm_recvv(b, 1, &iov, 1, NULL, &req));
		EXPECT(slmpm_wait(&req, 1, &done, 2), -SLMPM_ETIMEOUT);
		OK(commit(buf, 7, large / 2, SLMPM_PART));
		OK(commit(buf, 7, large - 1, 0));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		message_check(data, &done, 7, large - 1);
	}
	for (int i = 0; i < 5; i++) { /* its area comes back only at the end */
		unsigned char *buf = lend(1, large);
		const void *held;

		OK(commit(buf, 8, 10, SLMPM_PART));
		EXPECT(slmpm_hold(b, 1, &held, NULL, PATIENCE), 10);
		OK(slmpm_release(b, held));
		OK(commit(buf, 8, large, SLMPM_PART));
		OK(commit(buf, 8, large, 0));
	}
	message_none(b, ANY);
	free(data);
}

static void parts_are_for_areas(void)
{
	unsigned char *buf = lend(1, 64);

	if (in_packets) {
		REFUSED(commit(buf, 1, 10, SLMPM_PART), SLMPM_ENOTSUP, "packet");
		OK(commit(buf, 1, 64, 0));
		message_take(b, 1, 1, 64);
	} else {
		OK(slmpm_abort(a, buf));
	}
}

/* ---- held messages -------------------------------------------------------------------------- */

#define MANY 24

/* Of B's links: its rings are counted together, and all may come by one. */
static uint32_t links(void)
{
	struct slmpm_link_info info = {.size = sizeof(info)};
	uint32_t n = 0;

	while (slmpm_link_query(b, n, &info) == 0)
		n++;
	return n;
}

/* Up to half of the ring, of which more than a quarter are copies. None changes while others come
 * and go, whatever their order. */
static void many_are_held(size_t n, int step)
{
	const void *held[MANY];
	struct slmpm_stats stats;
	size_t count = message_credit() / 2 / (n + 64), half;

	OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
	half = stats.in_segments / links() * 64 / 2 / (n + 96);
	if (count > half)
		count = half ? half : 1;
	if (count > MANY)
		count = MANY;
	for (uint64_t i = 0; i < count; i++) {
		message_send(a, 1, i, n, 0);
		held[i] = hold(i % 2 ? 1 : ANY, i, n);
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (i * (uint64_t)step + 3) % MANY;

		if (at >= count)
			continue;
		CHECK(actor_filled(held[at], at, n), "held message %llu changed",
		      (unsigned long long)at);
		OK(slmpm_release(b, held[at]));
		REFUSED(slmpm_release(b, held[at]), SLMPM_ESTATE, "held");
		held[at] = NULL;
	}
	for (uint64_t i = 0; i < count; i++)
		if (held[i])
			OK(slmpm_release(b, held[i]));
	/* The ring is whole again. */
	for (uint64_t i = 0; i < (n < 100000 ? 200 : 3); i++) {
		message_send(a, 1, i, n, 0);
		message_take(b, 1, i, n);
	}
}

static void held_messages_stay(void)
{
	size_t lengths[] = {0, 8, 200, packet, message_eager(a)};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int step = 1; step < 24; step += 6 * actor_slow())
			many_are_held(lengths[i], step);
}

/* All areas lent: the next loan waits for one to come back. */
static void areas_come_back(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	const void *held[4] = {NULL};
	void *buf;

	OK(slmpm_peer_query(a, &info));
	if (info.loan_max > ((size_t)4 << 20))
		return; /* much memory for little insight: settings with small loans do it */
	REFUSED(slmpm_loan(a, 1, info.loan_max + 1, &buf, 0), SLMPM_ELIMIT, "at most");
	for (uint64_t i = 0; slmpm_loan(a, 1, packet + 1, &buf, 5) == 0; i++) {
		CHECK(i < 4, "more areas than the limit allows");
		OK(commit(buf, i, packet + 1, 0));
		held[i] = hold(1, i, packet + 1);
	}
	CHECK(strstr(slmpm_error_detail(), "no room"), "%s", slmpm_error_detail());
	for (int i = 0; i < 4 && held[i]; i++)
		OK(slmpm_release(b, held[i]));
	OK(commit(lend(1, packet + 1), 1, packet + 1, 0));
	message_take(b, 1, 1, packet + 1);
}

static int test(const struct setting *s)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_stats stats;

	(void)s;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_peer_query(a, &info));
	packet = info.packet_max;
	large = packet + 40000 < info.loan_max ? packet + 40000 : info.loan_max;
	in_packets = !getenv("SLMPM_CHECK");
	loans_arrive_as_committed();
	one_loan_at_a_time(64);
	one_loan_at_a_time(large);
	a_loan_given_back_was_never_there(packet);
	a_loan_given_back_was_never_there(large);
	loans_keep_the_order(packet);
	loans_keep_the_order(large);
	parts_are_read_while_it_grows();
	parts_need_not_be_held();
	parts_are_for_areas();
	held_messages_stay();
	areas_come_back();
	OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
	CHECK(!stats.violations && !stats.checksum_errors, "violations");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	return settings_each(test, 30);
}
