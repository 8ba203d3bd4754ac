/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregates over a job: a host, a leaf and a branch with a leaf of its own come to know of all
 * four, by the links that they have; and of three, when one has gone.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"

#define ROUNDS 50

static uint32_t instances(void)
{
	struct slmpm_aggregate m;

	OK(slmpm_aggregate(&m, sizeof(m)));
	EXPECT(m.size, sizeof(m));
	return m.instances;
}

/* Answers with what it knows, until the link ends. */
static int leaf(slmpm_peer host, char **words)
{
	uint32_t n;

	(void)words;
	while (slmpm_recv(host, 1, &n, sizeof(n), NULL, PATIENCE) == sizeof(n)) {
		n = instances();
		if (slmpm_send(host, 1, &n, sizeof(n), PATIENCE) < 0)
			break;
	}
	return 0;
}

/* What PEER, and who answers for it, knows. */
static uint32_t ask(slmpm_peer peer)
{
	uint32_t n = 0;

	for (int i = 0; i < ROUNDS; i++) {
		OK(slmpm_send(peer, 1, &n, sizeof(n), PATIENCE));
		EXPECT(slmpm_recv(peer, 1, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	}
	return n;
}

/* The least that it and its leaf know of. */
static int branch(slmpm_peer host, char **words)
{
	slmpm_peer mine = actor_spawn("leaf", NULL, NULL);
	uint32_t n, there;

	(void)words;
	while (slmpm_recv(host, 1, &n, sizeof(n), NULL, PATIENCE) == sizeof(n)) {
		there = ask(mine);
		n = instances();
		n = n < there ? n : there;
		if (slmpm_send(host, 1, &n, sizeof(n), PATIENCE) < 0)
			break;
	}
	OK(slmpm_close(mine, PATIENCE));
	actor_join(mine, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"leaf", leaf}, {"branch", branch}, {NULL, NULL}};
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_aggregate m;
	slmpm_peer near, far;
	uint64_t requests = 0;
	uint32_t known;

	CHECK(!setenv("SLMPM_MONITOR_MS", "5", 1), "environment");
	actor_begin(argc, argv, roles);
	REFUSED(slmpm_aggregate(NULL, sizeof(m)), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_aggregate(&m, 3), SLMPM_EINVAL, ".size");
	EXPECT(instances(), 1);
	near = actor_spawn("leaf", NULL, NULL);
	far = actor_spawn("branch", NULL, NULL);
	do {
		known = ask(near) + ask(far) + instances();
	} while (known != 12 && actor_now_ms() < until);
	EXPECT(known, 12);
	OK(slmpm_aggregate(&m, sizeof(m)));
	EXPECT(m.links, 6);
	for (int i = 0; i < SLMPM_AGGREGATE_FABRICS; i++)
		requests += m.fabrics[i].requests;
	CHECK(requests >= 4 * ROUNDS, "%llu requests", (unsigned long long)requests);
	CHECK(m.out_permille <= 1000 && m.in_permille <= 1000, "%u %u", m.out_permille,
	      m.in_permille);
	OK(slmpm_close(near, PATIENCE));
	actor_join(near, 0);
	EXPECT(instances(), 3);
	while (ask(far) != 3 && actor_now_ms() < until)
		;
	EXPECT(ask(far), 3);
	OK(slmpm_close(far, PATIENCE));
	actor_join(far, 0);
	EXPECT(instances(), 1);
	memset(&m, 0x5a, sizeof(m));
	OK(slmpm_aggregate(&m, 8));
	EXPECT(m.size, 8);
	EXPECT(m.links, UINT64_C(0x5a5a5a5a5a5a5a5a));
	return 0;
}
