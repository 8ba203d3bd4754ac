/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* native-only */
/*
 * Kills and restarts for as long as one likes: build/tests/stress/soak [--minutes M] [--seed S].
 *
 * A hub on each fabric, and talkers that connect to it, send numbered messages whose bytes follow
 * from their numbers, and leave. Now and then any of them is killed, or stopped for a while, at any
 * moment, and started again; some talkers write over the hub's ring. Whoever is not killed has to
 * find every message there, once, in order and whole; of who is killed what slmpm_send had taken
 * (over TCP a part of it, in order). 4 seconds without --minutes.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/soak.h"

#define TALKERS 5 /* of each fabric */
#define ROLES   (SOAK_FABRICS * (1 + TALKERS))

struct part {
	struct soak_role role;
	pid_t pid;
	bool hub, killed;
	int64_t wakes_at; /* ms; 0: it is not stopped */
};

static struct soak_board *board;
static struct part parts[ROLES];
static unsigned kills, stops;

static int play(void *arg)
{
	struct part *p = arg;

	setenv("SLMPM_FABRIC", p->role.fabric == SOAK_TCP ? "tcp" : "shm", 1);
	return p->hub ? soak_hub(&p->role) : soak_talker(&p->role);
}

static void start(struct part *p, unsigned seconds)
{
	p->role.seed += UINT64_C(0x632be59bd9b4e019);
	p->killed = false;
	p->wakes_at = 0;
	p->pid = child_start(play, p, seconds);
}

/* Its end is what was done to it, or success where everybody was told to end. */
static void account(const struct part *p, int status)
{
	bool as_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && p->killed;

	CHECK(as_killed || status == 0, "a %s over %s ended with status %x",
	      p->hub ? "hub" : "talker", p->role.fabric == SOAK_TCP ? "tcp" : "shm",
	      (unsigned)status);
}

static void reap(bool anew, unsigned seconds)
{
	for (struct part *p = parts; p < parts + ROLES; p++) {
		int status;

		if (!p->pid || waitpid(p->pid, &status, WNOHANG) != p->pid)
			continue;
		account(p, status);
		p->pid = 0;
		if (anew)
			start(p, seconds);
	}
}

static void kill_one(struct part *p)
{
	if (!p->pid || p->killed)
		return;
	p->killed = true;
	if (p->hub) /* first: who sees its end knows why */
		atomic_fetch_add(&board->hub[p->role.fabric].life, 1);
	(void)kill(p->pid, SIGKILL);
	kills++;
}

static void stop_one(struct part *p, uint32_t ms)
{
	if (!p->pid || p->killed || p->wakes_at)
		return;
	p->wakes_at = actor_now_ms() + ms;
	(void)kill(p->pid, SIGSTOP);
	stops++;
}

static void wake(bool all)
{
	for (struct part *p = parts; p < parts + ROLES; p++)
		if (p->pid && p->wakes_at && (all || actor_now_ms() >= p->wakes_at)) {
			(void)kill(p->pid, SIGCONT);
			p->wakes_at = 0;
		}
}

static void disturb(struct rng *g)
{
	struct part *p = &parts[rng_below(g, ROLES)];

	if (p->hub ? rng_one_in(g, 40) : rng_one_in(g, 4))
		kill_one(p);
	else if (rng_one_in(g, 10))
		stop_one(p, rng_below(g, 60));
}

static void tell(const char *when)
{
	uint64_t n[SOAK_COUNTS];

	for (int i = 0; i < SOAK_COUNTS; i++)
		n[i] = atomic_load(&board->count[i]);
	printf("%s: %llu messages, %.1f GB; talks: %llu to their end, %llu cut, %llu without a hub, %llu "
	       "forged; %u kills, %u stops\n",
	       when, (unsigned long long)n[SOAK_MESSAGES], (double)n[SOAK_BYTES] / 1e9,
	       (unsigned long long)n[SOAK_ENDED], (unsigned long long)n[SOAK_CUT],
	       (unsigned long long)n[SOAK_ORPHANED], (unsigned long long)n[SOAK_FORGED], kills,
	       stops);
	fflush(stdout);
}

/* Until nobody of them is left. */
static void await_end(bool hubs, int64_t until)
{
	bool left;

	do {
		CHECK(actor_now_ms() < until, "a %s does not end", hubs ? "hub" : "talker");
		(void)poll(NULL, 0, 5);
		reap(false, 0);
		left = false;
		for (int i = 0; i < ROLES; i++)
			left = left || (parts[i].pid && parts[i].hub == hubs);
	} while (left);
}

static void soak(double seconds, uint64_t seed)
{
	struct rng g = {seed};
	int64_t begin = actor_now_ms(), end = begin + (int64_t)(seconds * 1000), next = begin;
	unsigned limit = (unsigned)seconds + 3 * SOAK_MS / 1000;

	for (int i = 0; i < SOAK_FABRICS; i++)
		atomic_store(&board->hub[i].life, 1); /* and none is ready */
	for (int i = 0; i < ROLES; i++) {
		parts[i].hub = i < SOAK_FABRICS;
		parts[i].role.board = board;
		parts[i].role.fabric = (enum soak_fabric)(i % SOAK_FABRICS);
		parts[i].role.seed = rng_next(&g);
		start(&parts[i], limit);
	}
	while (actor_now_ms() < end) {
		if (actor_now_ms() >= next + 10000) {
			char when[32];

			next += 10000;
			snprintf(when, sizeof(when), "%lld s", (long long)(next - begin) / 1000);
			tell(when);
		}
		(void)poll(NULL, 0, 1);
		wake(false);
		disturb(&g);
		reap(true, limit);
	}
	atomic_store(&board->talkers_end, true);
	wake(true);
	for (int i = 0; i < SOAK_FABRICS; i++) /* who ends in order needs a hub */
		if (!parts[i].pid || parts[i].killed) {
			int status;

			if (parts[i].pid && waitpid(parts[i].pid, &status, 0) == parts[i].pid)
				account(&parts[i], status);
			start(&parts[i], limit);
		}
	await_end(false, actor_now_ms() + 2 * SOAK_MS);
	atomic_store(&board->hubs_end, true);
	await_end(true, actor_now_ms() + 2 * SOAK_MS);
}

int main(int argc, char **argv)
{
	const char *seconds_said = getenv("SLMPM_TEST_SECONDS");
	double seconds = seconds_said ? strtod(seconds_said, NULL) : 4;
	uint64_t seed = 0;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && !strcmp(argv[i], "--minutes"))
			seconds = 60 * strtod(argv[i + 1], NULL);
		else if (i + 1 < argc && !strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else
			seconds = -1;
	}
	if (!(seconds > 0 && seconds < 1e6)) {
		fprintf(stderr, "usage: soak [--minutes M] [--seed S]\n");
		return 2;
	}
	seed = rng_run_seed(seed ? seed : (uint64_t)time(NULL));
	setenv("SLMPM_SECRET", "00112233445566778899aabbccddeeff", 1);
	unsetenv("SLMPM_LINKS");
	board = child_common(sizeof(*board));
	soak(seconds, seed);
	tell("in all");
	for (int i = 0; i < SOAK_COUNTS; i++)
		CHECK(atomic_load(&board->count[i]), "nothing of kind %d", i);
	printf("nothing was lost, doubled or damaged\n");
	return 0;
}
