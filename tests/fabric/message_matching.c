/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/* Which message a receive gets: streams, peers, posting order, probes, bursts; which request a wait
 * reports. Both ends lie in one context, so that every step is in the test's hand. */
#include <string.h>

#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define ANY SLMPM_ANY_STREAM

static slmpm_ctx ctx;
static slmpm_peer a, b; /* each is the other's */

/* One of each path: empty, bundled, of one packet, of several, asked for first. */
static size_t length_of(int way)
{
	size_t packet = message_packet(a), eager = message_eager(a);

	switch (way) {
	case 0: return 0;
	case 1: return 8;
	case 2: return packet;
	case 3: return eager > packet ? packet + 1 : packet - 1;
	default: return eager + 1 + packet;
	}
}
#define WAYS 5

/* ---- streams -------------------------------------------------------------------------------- */

static void any_stream_takes_them_as_sent(void)
{
	for (uint32_t i = 0; i < 40; i++)
		message_send(a, i * 7 % 5, i, i * 3, 0);
	for (uint32_t i = 0; i < 40; i++)
		EXPECT(message_take(b, ANY, i, i * 3).stream, i * 7 % 5);
	message_none(b, ANY);
}

static void a_stream_takes_its_own_first(void)
{
	for (int way = 0; way < WAYS - 1; way++) {
		size_t n = length_of(way);

		message_send(a, 1, 10, n, 0);
		message_send(a, 2, 11, 8, 0);
		message_send(a, 1, 12, n, 0);
		message_send(a, SLMPM_STREAM_MAX, 13, n, 0);
		message_take(b, SLMPM_STREAM_MAX, 13, n);
		message_take(b, 2, 11, 8);
		message_none(b, 2);
		message_take(b, 1, 10, n);
		message_take(b, ANY, 12, n);
		message_none(b, ANY);
	}
}

/* Those beyond the eager limit keep their place in the order of those that are not. */
static void long_and_short_keep_their_order(void)
{
	struct message m[8];

	for (int i = 0; i < 8; i++)
		message_start(&m[i], a, 4, (uint64_t)i, length_of(i % 2 ? 1 : 4));
	for (int i = 0; i < 8; i++)
		message_take(b, i % 3 ? 4 : ANY, (uint64_t)i, length_of(i % 2 ? 1 : 4));
	for (int i = 0; i < 8; i++)
		message_end(&m[i], 0);
	message_none(b, ANY);
}

/* ---- posted receives ------------------------------------------------------------------------ */

static slmpm_req post(slmpm_peer from, uint32_t stream, void *data, size_t cap)
{
	struct slmpm_iov iov = {data, cap};
	slmpm_req req = {0};

	OK(slmpm_recvv(from, stream, &iov, 1, NULL, &req));
	return req;
}

static void reported(slmpm_req *req, const void *data, uint64_t seed, size_t n)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	message_check(data, &done, seed, n);
	CHECK(done.peer.id == b.id, "it came from somewhere else");
}

static void receives_match_as_posted(void)
{
	for (int way = 0; way < WAYS; way++) {
		static unsigned char data[4][1 << 20];
		struct message m[4];
		size_t n = length_of(way);
		slmpm_req req[4] = {post(b, 6, data[0], n), post(slmpm_any(ctx), ANY, data[1], n),
				    post(slmpm_any(ctx), 6, data[2], n), post(b, ANY, data[3], n)};

		CHECK(n <= sizeof(data[0]) || way == WAYS - 1, "the test's buffers are short");
		if (n > sizeof(data[0]))
			n = sizeof(data[0]);
		message_start(&m[0], a, 5, 20, n);
		message_start(&m[1], a, 6, 21, n);
		message_start(&m[2], a, 7, 22, n);
		message_start(&m[3], a, 6, 23, n);
		reported(&req[0], data[0], 21, n);
		reported(&req[1], data[1], 20, n);
		reported(&req[2], data[2], 23, n);
		reported(&req[3], data[3], 22, n);
		for (int i = 0; i < 4; i++)
			message_end(&m[i], 0);
	}
	message_none(b, ANY);
}

static void any_peer_takes_from_all(void)
{
	slmpm_peer from[3], to[3];
	int taken[3] = {0};

	for (int i = 0; i < 3; i++)
		actor_pair(ctx, &from[i], &to[i]);
	for (uint64_t k = 0; k < 20; k++)
		for (int i = 0; i < 3; i++)
			message_send(from[i], 8, 100 * (uint64_t)i + k, 16, 0);
	for (int k = 0; k < 60; k++) {
		unsigned char data[16];
		struct slmpm_done done;
		int i = 0;

		EXPECT(slmpm_recv(slmpm_any(ctx), 8, data, 16, &done, PATIENCE), 16);
		while (i < 3 && to[i].id != done.peer.id)
			i++;
		CHECK(i < 3, "a peer that nobody knows");
		message_check(data, &done, 100 * (uint64_t)i + (uint64_t)taken[i], 16);
		taken[i]++;
		/* None of them waits for the others to fall silent. */
		CHECK(taken[i] <= k / 3 + 1 + 16, "peer %d starves the others", i);
	}
	for (int i = 0; i < 3; i++) {
		OK(slmpm_close(from[i], PATIENCE));
		OK(slmpm_close(to[i], PATIENCE));
	}
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void probe_tells_and_leaves(void)
{
	for (int way = 0; way < WAYS; way++) {
		size_t n = length_of(way);
		struct slmpm_done done;
		struct message m;

		EXPECT(slmpm_probe(b, ANY, &done, 0), 0);
		EXPECT(slmpm_probe(slmpm_any(ctx), ANY, &done, 5), 0);
		message_start(&m, a, 9, UINT64_C(0xfffffffff0) + (unsigned)way, n);
		EXPECT(slmpm_probe(b, 8, &done, 5), 0);
		for (int i = 0; i < 4; i++) {
			slmpm_peer from = i % 2 ? b : slmpm_any(ctx);

			EXPECT(slmpm_probe(from, i < 2 ? 9 : ANY, &done, PATIENCE), 1);
			CHECK(done.len == n && done.stream == 9 && done.peer.id == b.id &&
				      done.imm == UINT32_MAX,
			      "probe of %zu bytes: %llu on %u", n, (unsigned long long)done.len,
			      done.stream);
		}
		message_take(b, 9, UINT64_C(0xfffffffff0) + (unsigned)way, n);
		message_end(&m, 0);
	}
}

/* ---- bursts --------------------------------------------------------------------------------- */

/* All that can share a packet, and all that cannot, in every order. */
static void bursts_come_as_they_were(void)
{
	static const size_t lengths[] = {8, 8, 8, 128, 128, 129, 0, 1, 128, 8, 4000, 8, 8};
	uint64_t sent = 0, taken = 0;

	for (int burst = 1; burst < 60; burst++) {
		for (int i = 0; i < burst; i++, sent++)
			message_send(a, (uint32_t)(sent / 9 % 2), sent,
				     lengths[sent / 4 % 13] < message_eager(a) ?
					     lengths[sent / 4 % 13] :
					     8,
				     i < burst - 1 ? SLMPM_MORE : 0);
		for (; taken < sent; taken++)
			message_take(b, burst % 2 ? (uint32_t)(taken / 9 % 2) : ANY, taken,
				     lengths[taken / 4 % 13] < message_eager(a) ?
					     lengths[taken / 4 % 13] :
					     8);
	}
	message_none(b, ANY);
}

/* One that nobody ends goes out once its sender waits for something. */
static void burst_without_end_arrives(void)
{
	for (size_t n = 8; n <= 128; n *= 2) {
		for (uint64_t i = 0; i < 100; i++)
			message_send(a, 1, i, n, SLMPM_MORE);
		for (uint64_t i = 0; i < 100; i++)
			message_take(b, 1, i, n);
	}
	message_none(b, ANY);
}

static uint64_t packets(void)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(a, &stats, sizeof(stats)));
	return stats.sent_packets;
}

/* Full bundles of each length, to the last byte that fits. */
static void bundles_of_each_length(bool shared)
{
	uint64_t before = packets();

	for (uint64_t i = 0; i < 200; i++)
		message_send(a, 1, i, 8, i < 199 ? SLMPM_MORE : 0);
	for (uint64_t i = 0; i < 200; i++)
		message_take(b, 1, i, 8);
	CHECK(!shared || packets() - before < 20, "they share no packets");
	for (size_t n = 1; n <= 130; n++) {
		uint64_t count = 2048 / n + 3;

		if (count * (n + 64) > message_credit() / 2)
			count = message_credit() / 2 / (n + 64);
		for (uint64_t i = 0; i < count; i++)
			message_send(a, 1, i + n, n, i < count - 1 ? SLMPM_MORE : 0);
		for (uint64_t i = 0; i < count; i++)
			message_take(b, 1, i + n, n);
	}
}

/* ---- waiting for one of several ------------------------------------------------------------- */

static void wait_tells_which(void)
{
	unsigned char data[4][64];
	struct slmpm_done done;
	slmpm_req req[4], none[2] = {{0}, {0}};

	for (uint32_t i = 0; i < 4; i++)
		req[i] = post(b, i, data[i], 64);
	REFUSED(slmpm_wait(req, 4, &done, 5), SLMPM_ETIMEOUT, "none of 4 requests has ended");
	EXPECT(slmpm_test(&req[0], &done), 0);
	message_send(a, 2, 5, 64, 0);
	EXPECT(slmpm_wait(req, 4, &done, PATIENCE), 2);
	message_check(data[2], &done, 5, 64);
	CHECK(!req[2].id, "a reported request keeps its handle");
	message_send(a, 0, 6, 64, 0);
	EXPECT(slmpm_wait(req, 4, &done, PATIENCE), 0);
	message_send(a, 3, 7, 63, 0);
	while (!slmpm_test(&req[3], &done))
		;
	message_check(data[3], &done, 7, 63);
	REFUSED(slmpm_test(&req[3], &done), SLMPM_EHANDLE, "");
	OK(slmpm_cancel(req[1]));
	EXPECT(slmpm_wait(req, 4, &done, 0), 1);
	CHECK(done.status == -SLMPM_ECANCELED, "canceled: %d", done.status);
	REFUSED(slmpm_wait(none, 2, &done, 0), SLMPM_EINVAL, "zero");
	REFUSED(slmpm_wait(none, 0, &done, 0), SLMPM_EINVAL, "");
}

static int test(const struct setting *s)
{
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	any_stream_takes_them_as_sent();
	a_stream_takes_its_own_first();
	long_and_short_keep_their_order();
	receives_match_as_posted();
	any_peer_takes_from_all();
	probe_tells_and_leaves();
	bursts_come_as_they_were();
	burst_without_end_arrives();
	bundles_of_each_length(s == settings);
	wait_tells_which();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	return settings_each(test, 20);
}
