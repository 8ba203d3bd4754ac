/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/*
 * A connection between two peers is cut, at every byte of a message and either way: a reset, one
 * way's end, silence. What arrives is a prefix of what was sent, whole messages; then both sides
 * have the definite error, in bounded time; silence alone is no end, and passes.
 */
#include <string.h>

#include "tests/lib/net_pair.h"
#include "tests/lib/settings.h"

#define LONG  3000u
#define BOUND 3000 /* ms */

struct trial {
	enum proxy_fate fate;
	unsigned connection;
	enum proxy_way way;
	size_t size;
	uint64_t extent; /* on the wire */
};

static struct net net;
static unsigned char out[LONG], in[LONG];

static int64_t receive(slmpm_peer from, size_t size, int timeout_ms)
{
	int64_t got = slmpm_recv(from, 1, in, sizeof(in), NULL, timeout_ms);

	if (got >= 0)
		CHECK(got == (int64_t)size && memcmp(in, out, size) == 0,
		      "a message of %zu bytes is damaged: %lld", size, (long long)got);
	return got;
}

static bool is_end(int64_t rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

static uint64_t extent(const struct trial *t)
{
	struct net_pair *p = net_join(&net, NULL);
	uint64_t before = net_passed(p, t->connection, t->way);

	actor_fill(out, t->size, t->size);
	OK(slmpm_send(p->end[t->way], 1, out, t->size, PATIENCE));
	EXPECT(receive(p->end[!t->way], t->size, PATIENCE), t->size);
	before = net_passed(p, t->connection, t->way) - before;
	net_part(&net);
	return before;
}

/* ---- resets and ends ---- */

static void expect_end(const struct trial *t, const struct net_pair *p, uint64_t at)
{
	unsigned whole = 0;
	int64_t rc;

	while ((rc = receive(p->end[!t->way], t->size, PATIENCE)) >= 0)
		whole++;
	CHECK(is_end(rc), "cut at %llu: %lld (%s)", (unsigned long long)at, (long long)rc,
	      slmpm_error_detail());
	CHECK(whole <= 1 && (t->connection != NET_DATA || whole == (at >= t->extent)),
	      "cut at %llu of %llu: %u whole messages", (unsigned long long)at,
	      (unsigned long long)t->extent, whole);
	rc = slmpm_recv(p->end[t->way], 1, in, sizeof(in), NULL, PATIENCE);
	CHECK(is_end(rc), "the sender, cut at %llu: %lld (%s)", (unsigned long long)at,
	      (long long)rc, slmpm_error_detail());
}

/* N pairs at once, each cut at its own place. */
static void cut(const struct trial t[], const uint64_t at[], unsigned n)
{
	int64_t begun;
	int rc;

	for (unsigned i = 0; i < n; i++)
		net_join(&net, NULL);
	begun = actor_now_ms();
	for (unsigned i = 0; i < n; i++) {
		net_rule(&net.pair[i], t[i].connection, t[i].way,
			 (struct proxy_rule){.fate = t[i].fate, .at = at[i]});
		rc = slmpm_send(net.pair[i].end[t[i].way], 1, out, t[i].size, PATIENCE);
		CHECK(rc == 0 || is_end(rc), "send: %d (%s)", rc, slmpm_error_detail());
	}
	for (unsigned i = 0; i < n; i++)
		expect_end(&t[i], &net.pair[i], at[i]);
	CHECK(actor_now_ms() - begun < BOUND * actor_slow(), "fate %d, way %d: it took %lld ms",
	      (int)t->fate, (int)t->way, (long long)(actor_now_ms() - begun));
	net_check_others(&net);
	net_part(&net);
}

/* At each STEP-th byte of a message. */
static void sweep(struct trial t, size_t size, uint64_t step)
{
	struct trial trials[NET_PAIRS];
	uint64_t at[NET_PAIRS], next = 0;

	t.size = size;
	t.extent = extent(&t);
	for (unsigned i = 0; i < NET_PAIRS; i++)
		trials[i] = t;
	while (next <= t.extent) {
		unsigned n = 0;

		for (; n < NET_PAIRS && next <= t.extent; next += step)
			at[n++] = next;
		cut(trials, at, n);
	}
}

static void every_byte(void)
{
	for (int fate = PROXY_RESET; fate <= PROXY_HALF_CLOSE; fate++)
		for (int way = 0; way < PROXY_WAYS; way++) {
			struct trial t = {.fate = (enum proxy_fate)fate,
					  .connection = NET_DATA,
					  .way = (enum proxy_way)way};

			sweep(t, 8, 1);
			sweep(t, 100, fate == PROXY_RESET ? 3 : 7);
			sweep(t, LONG, 211);
		}
}

/* The data connection is whole, but who has the other end of it is gone. */
static void control_alone(void)
{
	static const uint64_t at[4];
	struct trial t[4];

	for (unsigned i = 0; i < 4; i++)
		t[i] = (struct trial){.fate = i & 1 ? PROXY_RESET : PROXY_HALF_CLOSE,
				      .connection = NET_CONTROL,
				      .way = (enum proxy_way)(i >> 1),
				      .size = 8};
	actor_fill(out, 8, 8);
	cut(t, at, 4);
}

/* ---- silence ---- */

static void fall_silent(enum proxy_way way, size_t size, uint64_t at)
{
	struct net_pair *p = net_join(&net, NULL);
	int64_t begun;

	net_rule(p, NET_DATA, way, (struct proxy_rule){.fate = PROXY_SILENCE, .at = at});
	OK(slmpm_send(p->end[way], 1, out, size, PATIENCE));
	begun = actor_now_ms();
	EXPECT(receive(p->end[!way], size, 20), -SLMPM_ETIMEOUT);
	CHECK(actor_now_ms() - begun < 2000 * actor_slow(), "a deadline of 20 ms took longer");
	net_check_others(&net);
	net_rule(p, NET_DATA, way, (struct proxy_rule){.fate = PROXY_PASS});
	EXPECT(receive(p->end[!way], size, PATIENCE), size);
	net_part(&net);
}

/* Much is on the way, and nobody answers: both can be closed nevertheless. */
static void close_in_silence(enum proxy_way way)
{
	struct net_pair *p = net_join(&net, NULL);
	int64_t begun;
	int rc = 0;

	net_rule(p, NET_DATA, way, (struct proxy_rule){.fate = PROXY_SILENCE});
	for (int i = 0; i < 100000 && rc == 0; i++)
		rc = slmpm_send(p->end[way], 1, out, LONG, 20);
	EXPECT(rc, -SLMPM_ETIMEOUT);
	begun = actor_now_ms();
	for (int i = 0; i < PROXY_WAYS; i++)
		(void)slmpm_close(p->end[i], 50); /* the kernel may have taken all that is left */
	CHECK(actor_now_ms() - begun < 1000 * actor_slow(), "closing took %lld ms",
	      (long long)(actor_now_ms() - begun));
	net_check_others(&net);
	net.pairs = 0;
	net_part(&net);
}

static void silence(void)
{
	static const uint64_t AT[] = {0, 1, 7, 8, 31, 32, 63, 64, 65, 100};

	actor_fill(out, 100, 100);
	for (int way = 0; way < PROXY_WAYS; way++) {
		for (size_t i = 0; i < sizeof(AT) / sizeof(*AT); i++)
			fall_silent((enum proxy_way)way, 100, AT[i]);
		close_in_silence((enum proxy_way)way);
	}
}

int main(void)
{
	settings_one_link("tcp");
	net_open(&net);
	every_byte();
	control_alone();
	silence();
	net_shut(&net);
	return 0;
}
