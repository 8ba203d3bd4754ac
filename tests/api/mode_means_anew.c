/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMPM_AGGREGATE: who decides by what others measure decides again when they measure something
 * else. What goes one way is received late, until the means say so; then what goes the other way.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/lib/actor.h"

#define LENGTH ((size_t)128 << 10)
#define LATE   20 /* ms */

static unsigned char bytes[LENGTH];

/* A message for each word, by the protocol that it says; an empty one where there is no such
 * way. */
static int teach(slmpm_peer host, char **words)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	const struct slmpm_iov piece = {bytes, LENGTH};
	int64_t n;

	(void)words;
	while ((n = slmpm_recv(host, SLMPM_ANY_STREAM, bytes, LENGTH, NULL, PATIENCE)) > 0) {
		if (n != 1)
			continue;
		how.flags = SLMPM_VIA(bytes[0]) | SLMPM_STRICT;
		if (slmpm_sendv(host, 1, &piece, 1, &how, NULL) == -SLMPM_ENOTSUP)
			OK(slmpm_send(host, 1, "", 0, PATIENCE));
	}
	return 0;
}

/* Bytes that came. */
static int64_t take(slmpm_peer teacher, int protocol, bool late)
{
	const struct timespec pause = {0, LATE * 1000000};
	unsigned char word = (unsigned char)protocol;
	int64_t n;

	OK(slmpm_send(teacher, 2, &word, 1, PATIENCE));
	if (late)
		nanosleep(&pause, NULL);
	n = slmpm_recv(teacher, 1, bytes, LENGTH, NULL, PATIENCE);
	CHECK(n >= 0, "%s", slmpm_error_detail());
	return n;
}

static bool is_longer(int one, int other)
{
	uint32_t class = (uint32_t)slmpm_size_class(LENGTH);
	struct slmpm_aggregate m;

	OK(slmpm_aggregate(&m, sizeof(m)));
	return m.latency_ns[other][class] &&
	       m.latency_ns[one][class] > 2 * (uint64_t)m.latency_ns[other][class];
}

/* False: nothing is fetched here. */
static bool make_longer(slmpm_peer teacher, int one, int other)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (!is_longer(one, other)) {
		CHECK(actor_now_ms() < until, "the means do not come");
		if (take(teacher, one, true) != LENGTH || take(teacher, other, false) != LENGTH)
			return false;
	}
	return true;
}

static void decides(slmpm_peer teacher, int protocol)
{
	const struct slmpm_iov piece = {bytes, LENGTH};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_sendv(teacher, 3, &piece, 1, &how, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
	CHECK(done.reason == SLMPM_REASON_AGGREGATE || done.reason == SLMPM_REASON_FASTER,
	      "reason: %s", slmpm_reason_name(done.reason));
	CHECK(done.protocol == protocol, "by protocol %d, though %d takes less", done.protocol,
	      protocol);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"teacher", teach}, {NULL, NULL}};
	slmpm_peer teacher;

	CHECK(setenv("SLMPM_AGGREGATE", "y", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_MONITOR_MS", "5", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_FABRIC", "shm", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_EAGER_MAX", "64k", 1) == 0, "setenv"); /* both wait for a receive */
	actor_begin(argc, argv, roles);
	teacher = actor_spawn("teacher", NULL, NULL);
	if (!make_longer(teacher, SLMPM_BY_RGET, SLMPM_BY_SMT)) {
		printf("nothing is fetched here\n");
	} else {
		decides(teacher, SLMPM_BY_SMT);
		(void)make_longer(teacher, SLMPM_BY_SMT, SLMPM_BY_RGET);
		decides(teacher, SLMPM_BY_RGET);
	}
	OK(slmpm_close(teacher, PATIENCE));
	actor_join(teacher, 0);
	return 0;
}
