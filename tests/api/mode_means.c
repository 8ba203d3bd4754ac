/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMPM_AGGREGATE: a process that has sent nothing yet decides by what another one of its job has
 * measured; without the setting it finds out for itself.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define LENGTH  ((size_t)128 << 10)
#define LESSONS 20

static unsigned char bytes[LENGTH];

/* Both ways, again and again, until it is told that that was enough. */
static int teach(slmpm_peer host, char **words)
{
	const uint32_t ways[] = {SLMPM_VIA(SLMPM_BY_SMT), SLMPM_VIA(SLMPM_BY_RGET)};
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	const struct slmpm_iov piece = {bytes, LENGTH};
	char more = 1;

	(void)words;
	while (more) {
		for (int i = 0; i < LESSONS; i++) {
			how.flags = ways[i % 2] | SLMPM_STRICT;
			if (slmpm_sendv(host, 1, &piece, 1, &how, NULL) == -SLMPM_ENOTSUP)
				OK(slmpm_send(host, 1, "", 0, PATIENCE));
		}
		EXPECT(slmpm_recv(host, 2, &more, 1, NULL, PATIENCE), 1);
	}
	while (slmpm_recv(host, SLMPM_ANY_STREAM, bytes, LENGTH, NULL, PATIENCE) > 0)
		;
	return 0;
}

/* False: there is no fetching here. */
static bool take_lessons(slmpm_peer teacher)
{
	int64_t n = 0, least = LENGTH;

	for (int i = 0; i < LESSONS; i++) {
		n = slmpm_recv(teacher, 1, bytes, LENGTH, NULL, PATIENCE);
		CHECK(n >= 0, "%s", slmpm_error_detail());
		least = n < least ? n : least;
	}
	return least;
}

static bool knows(void)
{
	uint32_t class = (uint32_t)slmpm_size_class(LENGTH);
	struct slmpm_aggregate m;

	OK(slmpm_aggregate(&m, sizeof(m)));
	return m.latency_ns[SLMPM_BY_SMT][class] && m.latency_ns[SLMPM_BY_RGET][class];
}

static int decide(void *expected)
{
	const struct slmpm_iov piece = {bytes, LENGTH};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	slmpm_peer teacher = actor_spawn("teacher", NULL, NULL);
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_done done;
	bool fetches;
	slmpm_req req;
	char more;

	do {
		fetches = take_lessons(teacher);
		more = fetches && !knows() && actor_now_ms() < until;
		OK(slmpm_send(teacher, 2, &more, 1, PATIENCE));
	} while (more);
	if (!fetches)
		printf("nothing is fetched here\n");
	CHECK(!fetches || knows(), "the means do not come");
	OK(slmpm_sendv(teacher, 3, &piece, 1, &how, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
	CHECK(!fetches || done.reason == *(enum slmpm_reason *)expected, "reason: %s",
	      slmpm_reason_name(done.reason));
	OK(slmpm_close(teacher, PATIENCE));
	actor_join(teacher, 0);
	return 0;
}

static void run(const char *aggregate, enum slmpm_reason expected)
{
	printf("SLMPM_AGGREGATE=%s\n", aggregate);
	CHECK(setenv("SLMPM_AGGREGATE", aggregate, 1) == 0, "setenv");
	CHECK(child_run(decide, &expected, 60 * (unsigned)actor_slow()) == 0, "see above");
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"teacher", teach}, {NULL, NULL}};

	CHECK(setenv("SLMPM_MONITOR_MS", "5", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_FABRIC", "shm", 1) == 0, "setenv");
	CHECK(setenv("SLMPM_EAGER_MAX", "64k", 1) == 0,
	      "setenv"); /* nobody waits in vain for a receive */
	actor_begin(argc, argv, roles);
	run("n", SLMPM_REASON_TRIAL);
	run("y", SLMPM_REASON_AGGREGATE);
	return 0;
}
