/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means told by a process of the same job that lies: counts of everything, times of no clock, sums
 * that would run over, jobs without end. Sums hold, what cannot be counts for nothing, and a word
 * of no shape ends the channel.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

/* Of all that is told, in words (doc/wire.md), so many a part. */
enum { TIMES = 12, FABRICS = 112, FABRIC = 20, FABRIC_TIMES = 8, WORDS = 192, PART = 8 };

#define ALL  0xffffffffu
#define VERY UINT64_C(0xffffffffffff) /* 48 bits */

/* ---- the liar, started by slmpm_spawn -------------------------------------------------------- */

/* A part; of the first one all others are said to follow. */
static void say(struct raw_peer *p, uint64_t part, uint64_t job, uint64_t age,
		const uint64_t *words)
{
	uint64_t bytes[PART];

	for (int i = 0; i < PART; i++)
		bytes[i] = LITTLE_64(words[i]);
	raw_post(p, WIRE_AGGREGATE, part ? part : UINT64_C(0xfffffe) << 8, job, age, bytes,
		 sizeof(bytes));
}

static void counts(struct raw_peer *p, uint64_t job, uint32_t instances, uint32_t links,
		   uint32_t other)
{
	say(p, 0, job, 0, (uint64_t[PART]){instances, links, other, other, other, other});
}

/* All but the counts: of every protocol, class and fabric. */
static void times(struct raw_peer *p, uint64_t job, uint64_t ns, uint64_t count)
{
	uint64_t words[WORDS];

	memset(words, 0xff, sizeof(words)); /* names, requests, links and all that */
	for (int at = TIMES; at < WORDS; at += 2) {
		if (at >= FABRICS && (at - FABRICS) % FABRIC < FABRIC_TIMES)
			continue;
		words[at] = ns * count;
		words[at + 1] = count;
	}
	for (uint64_t part = 1; part < WORDS / PART; part++)
		say(p, part, job, 0, words + part * PART);
}

/* Step I is told, and the host has looked at what it came to. */
static void inspect(struct raw_peer *p, char i)
{
	raw_send(p, 1, &i, 1);
	raw_ring_bell(p);
	raw_await_packet(p);
}

static int lie(slmpm_peer none, char **words)
{
	struct raw_peer p;
	char reason[112];

	(void)none, (void)words;
	raw_begin(&p, raw_inherited());
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	counts(&p, 0, ALL, ALL, ALL);
	times(&p, 0, ALL, 0xffff);
	inspect(&p, 0);
	counts(&p, 0, 0, 0, ALL); /* fewer instances than have measured */
	times(&p, 0, 1000, 0xffff);
	inspect(&p, 1);
	counts(&p, 0, 1, 1, 0);
	times(&p, 0, 1000, 0xffff);
	inspect(&p, 2);
	for (uint64_t job = 1; job <= 1000; job++) {
		counts(&p, job, ALL, ALL, ALL);
		times(&p, job, 1000, 1);
	}
	times(&p, 1, 4000000000u, 0xffff);
	say(&p, 0, 2000, VERY, (uint64_t[PART]){ALL, ALL, ALL, ALL, ALL, ALL});
	inspect(&p, 3);
	say(&p, 0, VERY + 1, 0, (uint64_t[PART]){0});
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, "aggregate"), "the answer was \"%s\"", reason);
	raw_end(&p);
	return 0;
}

/* ---- who is lied to -------------------------------------------------------------------------- */

static struct slmpm_aggregate now(void)
{
	struct slmpm_aggregate m;

	OK(slmpm_aggregate(&m, sizeof(m)));
	CHECK(m.out_permille <= 1000 && m.in_permille <= 1000, "%u, %u of a thousand",
	      m.out_permille, m.in_permille);
	for (int i = 0; i < SLMPM_AGGREGATE_FABRICS; i++) {
		const char *name = m.fabrics[i].name;

		CHECK(memchr(name, 0, sizeof(m.fabrics[i].name)), "a name without end");
		for (; *name; name++)
			CHECK(*name > ' ' && *name <= '~', "a name with byte %d", *name);
		CHECK(m.fabrics[i].out_permille <= 1000 && m.fabrics[i].in_permille <= 1000,
		      "%u, %u of a thousand", m.fabrics[i].out_permille, m.fabrics[i].in_permille);
	}
	return m;
}

/* Of what this process has not measured itself. */
static uint32_t latency(const struct slmpm_aggregate *m)
{
	return m->latency_ns[SLMPM_BY_GET][3];
}

static void step(slmpm_peer peer, int i)
{
	signed char heard = -1;

	EXPECT(slmpm_recv(peer, 1, &heard, 1, NULL, PATIENCE), 1);
	EXPECT(heard, i);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-lie", lie}, {NULL, NULL}};
	struct slmpm_aggregate m;
	uint64_t requests = 0;
	slmpm_peer liar;
	char word;

	settings_one_link("shm"); /* as the raw peer\'s */
	CHECK(!setenv("SLMPM_MONITOR_MS", "3600000", 1), "environment");
	actor_begin(argc, argv, roles);
	liar = actor_spawn("-lie", NULL, NULL);
	step(liar, 0);
	m = now();
	EXPECT(m.jobs, 1);
	CHECK(m.instances > 1 && m.instances <= 1 + 65536, "%u instances", m.instances);
	EXPECT(latency(&m), 0); /* no such time */
	for (int i = 0; i < SLMPM_AGGREGATE_FABRICS; i++)
		requests = requests < m.fabrics[i].requests ? m.fabrics[i].requests : requests;
	EXPECT(requests, UINT64_MAX); /* a sum of four such, and it does not run over */
	OK(slmpm_send(liar, 1, &word, 0, PATIENCE));
	step(liar, 1);
	m = now();
	EXPECT(m.instances, 1);
	EXPECT(latency(&m), 0); /* of nobody */
	EXPECT(m.out_permille, 0);
	OK(slmpm_send(liar, 1, &word, 0, PATIENCE));
	step(liar, 2);
	m = now();
	EXPECT(m.instances, 2);
	EXPECT(latency(&m), 1000);
	EXPECT(m.fabrics[0].echo_ns, 1000);
	OK(slmpm_send(liar, 1, &word, 0, PATIENCE));
	step(liar, 3);
	m = now();
	EXPECT(m.jobs, 1 + 16);
	CHECK(m.instances <= 2 + 16 * 65536, "%u instances", m.instances);
	CHECK(latency(&m) <= 4000000000u, "%u ns", latency(&m));
	OK(slmpm_send(liar, 1, &word, 0, PATIENCE));
	EXPECT(slmpm_recv(liar, 1, &word, 1, NULL, PATIENCE), -SLMPM_EPROTO);
	m = now();
	CHECK(m.instances <= 1 + 16 * 65536, "%u instances", m.instances);
	OK(slmpm_close(liar, 0));
	actor_join(liar, 0);
	return 0;
}
