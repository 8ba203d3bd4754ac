/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that waits for a message and meanwhile serves its peer's requests learns from them how
 * long to poll: whoever slept between requests would have to be woken for each. Its sleeps are
 * counted.
 */
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define REQUESTS 200  /* of a batch, one a few microseconds behind the other */
#define TRIES    1000 /* batches: one has to do, for others may compute here */
#define MOST     (REQUESTS / 4)
#define PAUSE_US 2000 /* before a batch: its server sleeps by then */
#define END      0

static long blocked_so_far(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
	return u.ru_nvcsw;
}

/* Answers each word with how often it has slept so far. */
static int role_serves(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_mem region;
	long sleeps;
	void *base;
	int word;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, 4096, SLMPM_READ_WRITE, &region, &base));
	OK(slmpm_mem_key(region, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 0, &key, sizeof(key), PATIENCE));
	do {
		EXPECT(slmpm_recv(host, 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		sleeps = blocked_so_far();
		OK(slmpm_send(host, 0, &sleeps, sizeof(sleeps), PATIENCE));
	} while (word != END);
	OK(slmpm_mem_destroy(region, PATIENCE));
	return 0;
}

static long ask(slmpm_peer peer, int word)
{
	long sleeps;

	OK(slmpm_send(peer, 0, &word, sizeof(word), PATIENCE));
	EXPECT(slmpm_recv(peer, 0, &sleeps, sizeof(sleeps), NULL, PATIENCE), sizeof(sleeps));
	return sleeps;
}

static void compute(void)
{
	volatile unsigned work = 0;

	for (unsigned i = 0; i < 10000; i++)
		work = work + i;
}

static long batch(slmpm_peer peer, slmpm_rmem memory, bool adds)
{
	long before = ask(peer, 1);
	uint64_t old;

	usleep(PAUSE_US);
	for (int i = 0; i < REQUESTS; i++) {
		compute();
		if (adds)
			OK(slmpm_atomic(memory, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, NULL, NULL));
		else
			OK(slmpm_get(memory, 0, &old, sizeof(old), NULL, NULL));
	}
	return ask(peer, 1) - before;
}

static int learns(void *arg)
{
	slmpm_peer peer = actor_spawn("serves", NULL, NULL);
	struct slmpm_key key;
	slmpm_rmem memory;

	(void)arg;
	EXPECT(slmpm_recv(peer, 0, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &memory));
	for (int adds = 0; adds < 2; adds++) {
		long least = LONG_MAX;

		for (int i = 0; i < TRIES && least > MOST; i++) {
			long sleeps = batch(peer, memory, adds);

			least = sleeps < least ? sleeps : least;
		}
		CHECK(least <= MOST, "%s: %ld sleeps in %d requests", adds ? "adds" : "gets", least,
		      REQUESTS);
	}
	OK(slmpm_mem_release(memory));
	(void)ask(peer, END);
	actor_join(peer, 0);
	return 0;
}

static void run(const char *fabric, const char *way)
{
	settings_set("SLMPM_FABRIC", fabric);
	settings_set("SLMPM_RMA", way);
	CHECK(child_run(learns, NULL, 30 * (unsigned)actor_slow()) == 0, "%s, %s: see above",
	      fabric, way);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"serves", role_serves}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	run("shm", "ring");
	run("shm", "am");
	run("shm", "tag");
	run("tcp", "ring");
	return 0;
}
