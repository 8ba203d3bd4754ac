/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means told by a process of the same job that lies: counts of everything, times of no clock, sums that
 * would run over, jobs without end. Sums hold, what cannot be counts for nothing, and a word of no
 * shape ends the channel.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

enum { COUNTS, NAMES, TIMES, FABRICS = TIMES + SLMPM_PROTOCOLS, PARTS = FABRICS + 4 };

#define ALL  0xffffffffu
#define VERY UINT64_C(0xffffffffffff) /* 48 bits */

/* ---- the liar, started by slmpm_spawn --------------------------------------------------------- */

static void say(struct raw_peer *p, uint64_t part, uint64_t job, uint64_t age, const void *data,
		uint32_t length)
{
	raw_post(p, WIRE_AGGREGATE, part, job, age, data, length);
}

static void counts(struct raw_peer *p, uint64_t job, uint32_t instances, uint32_t links,
		   uint32_t other)
{
	const uint32_t words[] = {LITTLE_32(instances), LITTLE_32(links), LITTLE_32(other),
				  LITTLE_32(other),     LITTLE_32(other), LITTLE_32(ALL)};

	say(p, COUNTS, job, 0, words, sizeof(words));
}

/* Of every protocol, class and fabric. */
static void times(struct raw_peer *p, uint64_t job, uint32_t ns, uint16_t count)
{
	struct {
		uint32_t ns[SLMPM_SIZE_CLASSES];
		uint16_t count[SLMPM_SIZE_CLASSES];
	} by_class;
	struct {
		uint32_t words[6], ns[SLMPM_PROTOCOLS + 1];
		uint16_t count[SLMPM_PROTOCOLS + 1];
	} of_fabric = {.words = {ALL, ALL, ALL, ALL, ALL, ALL}};

	for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
		by_class.ns[s] = LITTLE_32(ns);
		by_class.count[s] = LITTLE_16(count);
	}
	for (int k = 0; k <= SLMPM_PROTOCOLS; k++) {
		of_fabric.ns[k] = LITTLE_32(ns);
		of_fabric.count[k] = LITTLE_16(count);
	}
	for (uint64_t part = TIMES; part < FABRICS; part++)
		say(p, part, job, 0, &by_class, 60);
	for (uint64_t part = FABRICS; part < PARTS; part++)
		say(p, part, job, 0, &of_fabric, 60);
}

static void names(struct raw_peer *p, uint64_t job)
{
	unsigned char lie[64];

	memset(lie, 0xff, sizeof(lie));
	say(p, NAMES, job, 0, lie, sizeof(lie));
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
	names(&p, 0);
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
		names(&p, job);
	}
	times(&p, 1, 4000000000u, 0xffff);
	say(&p, COUNTS, 2000, VERY, (uint32_t[6]){ALL, ALL, ALL, ALL, ALL, ALL}, 24);
	inspect(&p, 3);
	say(&p, COUNTS, VERY + 1, 0, (uint32_t[6]){0}, 24);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, "aggregate"), "the answer was \"%s\"", reason);
	raw_end(&p);
	return 0;
}

/* ---- who is lied to --------------------------------------------------------------------------- */

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
