/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* Bursts: what single calls in turn would send and receive, whatever stands between, under each
 * setting. */
#include "tests/api/burst.h"
#include "tests/lib/message.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define ROUNDS  60
#define STREAMS 2

static struct rng chance;

static uint32_t below(uint32_t n)
{
	return rng_below(&chance, n);
}

static struct {
	size_t len;
	uint32_t stream;
	bool taken;
} sent[64];
static int sents;

/* Not so long that it waits for its receive. */
static size_t some_length(void)
{
	static const size_t edges[] = {0, 1, 8, 8, 8, 16, 32, 64, 64, 255, 256, 257};
	size_t len = below(4) ? edges[below(12)] : below(SHORT), eager = message_eager(a);

	return len < eager ? len : eager;
}

/* A few messages, mostly alike: together, each alone, or each alone with MORE. */
static void send_some(uint32_t stream)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	int n = 1 + (int)below(12);
	unsigned way = below(4);
	size_t len = some_length();

	lay_out(from, n, out, SHORT, 0);
	if (below(2))
		lay_out(from, n, out, len, 0);
	for (int i = 0; i < n; i++) {
		from[i].len = below(12) ? len : below((uint32_t)len + 1);
		sent[sents].len = from[i].len;
		sent[sents].stream = stream;
		sent[sents].taken = false;
		actor_fill(from[i].base, (uint64_t)sents++, from[i].len);
	}
	if (way < 2)
		EXPECT(slmpm_send_burst(a, stream, from, n, PATIENCE), n);
	for (int i = 0; i < n && way > 1; i++) {
		how.flags = way == 2 && i + 1 < n ? SLMPM_MORE : 0;
		OK(slmpm_sendv(a, stream, &from[i], 1, &how, NULL));
	}
	memset(out, 0xee, sizeof(out)); /* it is ours again */
}

static int next_on(uint32_t stream)
{
	int i = 0;

	while (i < sents && (sent[i].taken || (stream != ANY && sent[i].stream != stream)))
		i++;
	return i;
}

static void take_one(slmpm_peer peer, uint32_t stream)
{
	struct slmpm_done done;
	int i = next_on(stream);
	int64_t len = slmpm_recv(peer, stream, in, sizeof(in), &done, PATIENCE);

	EXPECT(len, sent[i].len);
	CHECK(done.stream == sent[i].stream && actor_filled(in, (uint64_t)i, (size_t)len),
	      "message %d, taken alone", i);
	sent[i].taken = true;
}

static void take_some(slmpm_peer peer, uint32_t stream)
{
	struct slmpm_done done[16];
	int n = 1 + (int)below(16), k;
	bool notified = below(4);

	make_room(n, SHORT);
	k = slmpm_recv_burst(peer, stream, into, n, notified ? done : NULL, PATIENCE);
	CHECK(k > 0 && k <= n, "%d: %s", k, slmpm_error_detail());
	for (int j = 0; j < k; j++) {
		int i = next_on(stream);

		CHECK(i < sents && into[j].len == sent[i].len &&
			      actor_filled(into[j].base, (uint64_t)i, sent[i].len),
		      "message %d is not what came: %zu bytes", i, into[j].len);
		CHECK(!notified ||
			      (done[j].len == sent[i].len && done[j].stream == sent[i].stream &&
			       !done[j].status && !done[j].imm && done[j].peer.id == b.id &&
			       done[j].op == SLMPM_OP_RECV),
		      "message %d is described as another", i);
		sent[i].taken = true;
	}
}

static int mixed(const struct setting *s)
{
	(void)s;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	for (int i = 0; i < ROUNDS; i++) {
		sents = 0;
		for (int j = 0; j < 4; j++)
			send_some(below(STREAMS));
		while (next_on(ANY) < sents) {
			uint32_t stream = below(2) ? ANY : sent[next_on(ANY)].stream;
			slmpm_peer peer = below(2) ? b : slmpm_any(ctx);

			if (below(4))
				take_some(peer, stream);
			else
				take_one(peer, stream);
		}
		nothing_there(b);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	chance.state = rng_run_seed((uint64_t)actor_now_ms());
	return settings_each(mixed, 20);
}
