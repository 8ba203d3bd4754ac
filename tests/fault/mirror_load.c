/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Accelerators publish state longer than a ring as fast as they can, until they are killed: what is
 * read belongs together all the time, by snapshots, and by a thread without the lock; afterwards
 * the last state stays, and says that it is old. Over shared memory and TCP.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define PUBLISHERS 3
#define WORDS      (100 << 10) /* 800 KiB */
#define LOOKS      300

static slmpm_ctx ctx;
static uint64_t state[PUBLISHERS][WORDS];

/* ---- an accelerator -------------------------------------------------------------------------- */

static int role_publish(slmpm_peer host, char **words)
{
	slmpm_mirror m;

	(void)words;
	OK(slmpm_mirror_create((slmpm_ctx){0}, state[0], sizeof(state[0]), NULL, &m));
	OK(slmpm_mirror_attach(m, host, 1, SLMPM_MIRROR_LEAD, PATIENCE));
	for (uint64_t i = 1;; i++) {
		OK(slmpm_mirror_begin(m, -1));
		/* Few, far from each other, or all of it. */
		for (size_t at = 0; at < WORDS; at += i % 4 ? 1000 : 1)
			if (i % 4)
				OK(slmpm_mirror_store64(m, &state[0][at], i));
			else
				state[0][at] = i;
		if (i % 4 == 0)
			OK(slmpm_mirror_changed(m, state[0], sizeof(state[0])));
		OK(slmpm_mirror_end(m));
	}
}

static const struct actor roles[] = {{"publish", role_publish}, {NULL, NULL}};

/* ---- a thread that reads without the lock ---------------------------------------------------- */

struct reader {
	slmpm_mirror mirror;
	const uint64_t *words;
	atomic_bool stop;
	unsigned whole, again;
};

/* Words that every publication has; between the rest may be as of an earlier one. */
static bool read_once(struct reader *r, uint64_t *value)
{
	uint64_t turn, first, word;
	bool same = true;

	if (slmpm_mirror_enter(r->mirror, &turn) != 0)
		return false;
	first = __atomic_load_n(&r->words[0], __ATOMIC_RELAXED);
	for (size_t at = 0; at < WORDS; at += 1000) {
		word = __atomic_load_n(&r->words[at], __ATOMIC_RELAXED);
		same &= word == first;
	}
	if (slmpm_mirror_leave(r->mirror, turn) != 0)
		return false;
	CHECK(same, "without the lock: words of several publications");
	*value = first;
	return true;
}

static void *read_on(void *arg)
{
	struct reader *r = arg;
	uint64_t last = 0, value;

	while (!atomic_load(&r->stop)) {
		if (!read_once(r, &value)) {
			r->again++;
			continue;
		}
		CHECK(value >= last, "back to an earlier publication");
		last = value;
		r->whole++;
	}
	return NULL;
}

/* ---- the host -------------------------------------------------------------------------------- */

static void inspect(slmpm_mirror m, slmpm_peer peer, uint64_t *last)
{
	static uint64_t copy[WORDS];
	const struct slmpm_span all = {0, sizeof(copy)};
	uint64_t sequence;

	OK(slmpm_mirror_snapshot(m, peer, &all, 1, copy, &sequence, PATIENCE));
	CHECK(sequence >= *last, "publication %llu behind %llu", (unsigned long long)sequence,
	      (unsigned long long)*last);
	*last = sequence;
	for (size_t at = 0; at < WORDS; at++)
		CHECK(copy[at] == (at % 1000 ? copy[0] & ~UINT64_C(3) : copy[0]),
		      "publication %llu: word %zu is %llu beside %llu",
		      (unsigned long long)sequence, at, (unsigned long long)copy[at],
		      (unsigned long long)copy[0]);
}

/* Killed wherever it is. */
static void end(slmpm_mirror m, slmpm_peer peer, const uint64_t *words)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};
	struct slmpm_peer_info who = {.size = sizeof(who)};
	struct slmpm_span all = {0, 8};
	uint64_t sequence = 0, kept = 0;
	int status, rc;

	OK(slmpm_peer_query(peer, &who));
	CHECK(kill(who.pid, SIGKILL) == 0, "kill");
	while ((rc = slmpm_mirror_wait(m, peer, &sequence, PATIENCE)) == 0)
		;
	EXPECT(rc, -SLMPM_EDEAD);
	OK(slmpm_mirror_query(m, peer, &info));
	EXPECT(info.state, SLMPM_MIRROR_STALE);
	EXPECT(info.error, -SLMPM_EDEAD);
	EXPECT(info.sequence, sequence);
	rc = slmpm_mirror_snapshot(m, peer, &all, 1, &kept, NULL, 0);
	EXPECT(rc, info.whole ? 0 : -SLMPM_EDEAD);
	CHECK(!info.whole || kept == words[0], "what stays");
	OK(slmpm_join(peer, &status, PATIENCE));
	OK(slmpm_mirror_query(m, peer, &info)); /* its handle is gone, its mirror is not */
	EXPECT(info.state, SLMPM_MIRROR_STALE);
	OK(slmpm_mirror_detach(m, peer));
}

static int host(void *arg)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	struct slmpm_spawn_options spawn = {.size = sizeof(spawn)};
	slmpm_peer peer[PUBLISHERS];
	slmpm_mirror m[PUBLISHERS];
	uint64_t last[PUBLISHERS] = {0};
	struct reader r = {.words = state[0]};
	pthread_t thread;

	if (arg)
		setenv("SLMPM_FABRIC", arg, 1);
	OK(slmpm_open(&ctx, &o));
	spawn.ctx = ctx;
	for (int i = 0; i < PUBLISHERS; i++) {
		peer[i] = actor_spawn_with(&spawn, "publish", NULL, NULL);
		OK(slmpm_mirror_create(ctx, state[i], sizeof(state[i]), NULL, &m[i]));
		OK(slmpm_mirror_attach(m[i], peer[i], 1, SLMPM_MIRROR_FOLLOW, PATIENCE));
	}
	r.mirror = m[0];
	CHECK(pthread_create(&thread, NULL, read_on, &r) == 0, "a thread");
	for (int k = 0; k < LOOKS; k++)
		inspect(m[k % PUBLISHERS], peer[k % PUBLISHERS], &last[k % PUBLISHERS]);
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	for (int i = 0; i < PUBLISHERS; i++) {
		inspect(m[i], peer[i], &last[i]);
		end(m[i], peer[i], state[i]);
	}
	for (int i = 0; i < PUBLISHERS; i++)
		OK(slmpm_mirror_destroy(m[i]));
	OK(slmpm_shut(ctx, PATIENCE));
	printf("%s: %u times whole without the lock, %u times again\n", arg ? (char *)arg : "shm",
	       r.whole, r.again);
	return 0;
}

int main(int argc, char **argv)
{
	static char tcp[] = "tcp";

	actor_begin(argc, argv, roles);
	CHECK(child_run(host, NULL, 20 * (unsigned)actor_slow()) == 0, "over shared memory");
	CHECK(child_run(host, tcp, 20 * (unsigned)actor_slow()) == 0, "over TCP");
	return 0;
}
