/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * A bit turns over on the way, in each byte of a message and of a handshake. With SLMPM_CHECK=1 no
 * wrong byte is taken for right: the damage is detected, counted and reported. Without it nobody
 * crashes or hangs. Peers of others notice nothing. SLMPM_TEST_SEED repeats a run's bits.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/net_pair.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define LONG     3000u
#define PATIENT  1500 /* ms that damage may take to be noticed */
#define SHAKE_MS 200  /* for a handshake */

enum outcome { RIGHT, DAMAGED, ENDED, OUTCOMES };

static struct net net;
static struct net_pair *pair; /* under test */
static unsigned char out[LONG], in[LONG];
static struct rng bits;
static unsigned seen[OUTCOMES];
static bool checked; /* under SLMPM_CHECK=1 */
static char where[80];

static struct proxy_rule turn_over(uint64_t at)
{
	uint32_t bit = rng_below(&bits, 8);

	snprintf(where, sizeof(where), "bit %u of byte %llu", bit, (unsigned long long)at);
	return (struct proxy_rule){PROXY_CORRUPT, at, 1u << bit};
}

static uint64_t errors_of(slmpm_peer peer)
{
	struct slmpm_stats s = {.size = sizeof(s)};

	OK(slmpm_peer_stats(peer, &s, sizeof(s)));
	return s.checksum_errors + s.violations;
}

/* What RC says became of the message to PEER. */
static enum outcome judge(slmpm_peer peer, size_t size, int64_t rc)
{
	if (rc == (int64_t)size && memcmp(in, out, size) == 0)
		return RIGHT;
	if (!checked)
		return rc >= 0 ? DAMAGED : ENDED;
	CHECK(rc < 0, "%s of %zu: wrong bytes are taken for right", where, size);
	CHECK(rc != -SLMPM_ETIMEOUT, "%s of %zu: damage is not noticed", where, size);
	if (rc == -SLMPM_ECHECKSUM || rc == -SLMPM_EPROTO)
		CHECK(errors_of(peer) > 0, "%s, and it is not counted", slmpm_strerror((int)rc));
	else
		CHECK(rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED, "%lld (%s)", (long long)rc,
		      slmpm_error_detail());
	return rc == -SLMPM_ECHECKSUM ? DAMAGED : ENDED;
}

/* A message, and what became of it. */
static enum outcome talk(enum proxy_way way, size_t size)
{
	int patience = checked ? PATIENCE : 30;
	int rc = slmpm_send(pair->end[way], 1, out, size, patience);

	memset(in, 0, size);
	if (rc == 0)
		return judge(pair->end[!way], size,
			     slmpm_recv(pair->end[!way], 1, in, size, NULL, patience));
	CHECK(!checked || rc != -SLMPM_ETIMEOUT, "%s of %zu: the sender does not notice", where,
	      size);
	return ENDED;
}

static void damage(enum proxy_way way, size_t size, uint64_t at)
{
	int64_t begun;
	enum outcome o;

	pair = net_join(&net, NULL);
	net_rule(pair, NET_DATA, way, turn_over(at));
	begun = actor_now_ms();
	o = talk(way, size);
	seen[o]++;
	if (o != ENDED) { /* it goes on, and what it did not harm is right */
		(void)talk(way, size);
		(void)talk(!way, size);
	}
	CHECK(actor_now_ms() - begun < PATIENT * actor_slow(), "byte %llu: it took %lld ms",
	      (unsigned long long)at, (long long)(actor_now_ms() - begun));
	net_check_others(&net);
	net_part(&net);
}

static uint64_t extent(enum proxy_way way, size_t size)
{
	uint64_t before;

	pair = net_join(&net, NULL);
	before = net_passed(pair, NET_DATA, way);
	CHECK(talk(way, size) == RIGHT, "without damage it is not right either");
	before = net_passed(pair, NET_DATA, way) - before;
	net_part(&net);
	return before;
}

static void messages(enum proxy_way way, size_t size, size_t step)
{
	uint64_t most = extent(way, size);

	actor_fill(out, size, size);
	for (uint64_t at = 0; at < most; at += step)
		damage(way, size, at);
}

/* ---- while connecting ---- */

static void shake(unsigned connection, enum proxy_way way, uint64_t at)
{
	struct net_rules rules = {0};
	int64_t begun = actor_now_ms();

	rules.rule[connection][way] = turn_over(at);
	pair = &net.pair[net.pairs];
	if (net_try(&net, &rules, SHAKE_MS) == 0) {
		(void)talk(way, 8);
		(void)talk(!way, 8);
	}
	CHECK(actor_now_ms() - begun < PATIENT * actor_slow(), "byte %llu of %u: it took %lld ms",
	      (unsigned long long)at, connection, (long long)(actor_now_ms() - begun));
	net_check_others(&net);
	net_part(&net);
}

static void handshakes(unsigned connection, enum proxy_way way, unsigned times)
{
	uint64_t most;

	pair = net_join(&net, NULL);
	most = net_passed(pair, connection, way);
	net_part(&net);
	for (unsigned i = 0; i < times; i++)
		shake(connection, way, most * i / times);
}

static int run(void *arg)
{
	checked = arg != NULL;
	setenv("SLMPM_CHECK", checked ? "1" : "0", 1);
	setenv("SLMPM_LOG_LEVEL", "error", 1); /* who is refused is warned of */
	net_open(&net);
	for (int way = 0; way < PROXY_WAYS; way++) {
		messages((enum proxy_way)way, 8, 1);
		messages((enum proxy_way)way, 100, checked ? 1 : 7);
		messages((enum proxy_way)way, LONG, 67);
		for (unsigned connection = 0; connection < 2; connection++)
			handshakes(connection, (enum proxy_way)way, 40);
	}
	printf("SLMPM_CHECK=%d: %u right, %u damaged, %u ended\n", checked, seen[RIGHT],
	       seen[DAMAGED], seen[ENDED]);
	CHECK(!checked || (seen[DAMAGED] && seen[ENDED]), "nothing was ever damaged");
	net_shut(&net);
	return 0;
}

int main(void)
{
	settings_one_link("tcp");
	bits.state = rng_run_seed((uint64_t)actor_now_ms());
	CHECK(child_run(run, &bits, 40u * (unsigned)actor_slow()) == 0, "with checksums");
	CHECK(child_run(run, NULL, 40u * (unsigned)actor_slow()) == 0, "without checksums");
	return 0;
}
