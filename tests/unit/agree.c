/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Members of which some are killed, or leave, at any moment, several of them: those that are left
 * agree each time on who is gone, and what they do together afterwards is right.
 * SLMPM_TEST_KILLS sets another number of rounds.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/board/agree.h"
#include "tests/lib/actor.h"
#include "tests/lib/random.h"
#include "tests/unit/members.h"

#define ROUNDS    600
#define LONG      (300u * 1024 / sizeof(uint64_t)) /* longer than a ring */
#define BLOCK     3000u
#define EXIT_LEFT 3

/* What those that have come to generation G have agreed on: the same. */
struct record {
	_Atomic uint64_t members; /* by number at first; 0: none has come so far */
	_Atomic uint64_t base;
};

struct round {
	struct members all;
	struct record of[MEMBERS_MAX + 1];
	_Atomic bool stop;
	uint64_t seed;
};

struct player {
	struct round *round;
	uint32_t rank;
};

struct play {
	struct round *round;
	struct boards b;
	struct agreement a;
	struct rng rng;
	int process[MEMBERS_MAX]; /* by number at first */
	uint64_t done;
};

static uint64_t *from, *to;

/* ---- who is dead ----------------------------------------------------------------------------- */

static bool is_dead(void *arg, uint32_t rank)
{
	struct play *p = arg;
	struct pollfd f = {.fd = p->process[p->b.seats[rank]], .events = POLLIN};

	return f.fd >= 0 && poll(&f, 1, 0) > 0;
}

static void leaves(void *arg, uint32_t rank)
{
	CHECK(boards_left(&((struct play *)arg)->b, rank) || is_dead(arg, rank), "one that lives");
}

static void open_processes(struct play *p)
{
	for (uint32_t r = 0; r < p->b.size; r++) {
		pid_t pid = p->round->all.at[r].pid;

		p->process[r] = r == p->b.rank ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
		CHECK(r == p->b.rank || p->process[r] >= 0, "no process %d", (int)pid);
		p->b.watched[r] = p->process[r];
	}
}

/* ---- what they do ---------------------------------------------------------------------------- */

static int do_it(struct play *p, const struct slmpm_coll *c)
{
	struct flat f;
	int rc = flat_check(c, p->b.size, p->b.rank);

	CHECK(rc == 0 && flat_begin(&f, &p->b, c) == 0, "%s", slmpm_error_detail());
	for (uint32_t i = 1; (rc = flat_step(&f)) == 0; i++) {
		bool dead = false;

		if (i % 8 == 0)
			for (uint32_t r = 0; r < p->b.size; r++)
				dead |= flat_waits_for(&f, r) && is_dead(p, r);
		if (dead && (rc = flat_step(&f)) != 0)
			break;
		if (dead) {
			f.culprit = BOARD_NONE;
			rc = -SLMPM_EDEAD;
			break;
		}
		sched_yield();
	}
	if (rc < 0) {
		flat_drop(&f);
		boards_end(&p->b, rc, f.culprit, NULL);
	}
	return rc < 0 ? rc : 0;
}

/* A sum of few, which says as well whether all are to end; *STOP. */
static int sum_few(struct play *p, bool *stop)
{
	uint64_t own[2] = {p->round->stop, p->b.seats[p->b.rank] + p->done}, sum[2], want = 0;
	struct slmpm_coll c = {.kind = SLMPM_COLL_ALLREDUCE,
			       .type = SLMPM_UINT64,
			       .op = SLMPM_CALC_SUM,
			       .from = own,
			       .to = sum,
			       .count = 2};
	int rc = do_it(p, &c);

	for (uint32_t r = 0; r < p->b.size; r++)
		want += p->b.seats[r] + p->done;
	CHECK(rc < 0 || sum[1] == want, "sum %llu, not %llu", (unsigned long long)sum[1],
	      (unsigned long long)want);
	*stop = rc == 0 && sum[0];
	return rc;
}

static int hand_out(struct play *p)
{
	uint32_t root = (uint32_t)(p->done % p->b.size);
	struct slmpm_coll c = {.kind = SLMPM_COLL_BROADCAST,
			       .type = SLMPM_UINT64,
			       .root = (int32_t)root,
			       .from = to,
			       .to = to,
			       .count = LONG};
	int rc;

	for (uint32_t i = 0; i < LONG; i++)
		to[i] = root == p->b.rank ? p->done * LONG + i : 0;
	rc = do_it(p, &c);
	for (uint32_t i = 0; i < LONG && rc == 0; i++)
		CHECK(to[i] == p->done * LONG + i, "element %u is another", i);
	return rc;
}

static int exchange(struct play *p)
{
	struct slmpm_coll c = {.kind = SLMPM_COLL_ALLTOALL,
			       .type = SLMPM_UINT64,
			       .from = from,
			       .to = to,
			       .count = BLOCK};
	int rc;

	for (uint32_t r = 0; r < p->b.size; r++)
		for (uint32_t i = 0; i < BLOCK; i++)
			from[r * BLOCK + i] = (p->b.rank * 64 + r) * BLOCK + i + p->done;
	rc = do_it(p, &c);
	for (uint32_t r = 0; r < p->b.size && rc == 0; r++)
		for (uint32_t i = 0; i < BLOCK; i++)
			CHECK(to[r * BLOCK + i] == (r * 64 + p->b.rank) * BLOCK + i + p->done,
			      "element %u of %u is another", i, r);
	return rc;
}

/* Until all are to end, or something breaks. */
static int work(struct play *p)
{
	bool stop = false;
	int rc = 0;

	while (rc == 0 && !stop) {
		rc = sum_few(p, &stop);
		if (rc == 0 && !stop)
			rc = p->done % 2 ? hand_out(p) : exchange(p);
		p->done++;
	}
	return rc;
}

/* ---- agreeing -------------------------------------------------------------------------------- */

static void record(struct play *p)
{
	struct record *of = &p->round->of[p->b.generation];
	uint64_t members = 0, before = 0;

	for (uint32_t r = 0; r < p->b.size; r++)
		members |= UINT64_C(1) << p->b.seats[r];
	if (!atomic_compare_exchange_strong(&of->members, &before, members))
		CHECK(before == members, "generation %u: %llx and %llx", p->b.generation,
		      (unsigned long long)before, (unsigned long long)members);
	before = 0;
	if (!atomic_compare_exchange_strong(&of->base, &before, p->b.posted + 1))
		CHECK(before == p->b.posted + 1, "generation %u: it begins with %llu and %llu",
		      p->b.generation, (unsigned long long)before,
		      (unsigned long long)p->b.posted + 1);
}

static void die_perhaps(struct play *p, uint32_t n)
{
	if (rng_one_in(&p->rng, n))
		(void)raise(SIGKILL);
}

/* Of others' ends it learns sooner or later. */
static void agree(struct play *p)
{
	uint32_t passes = 0;
	int rc;

	agree_begin(&p->a, &p->b, is_dead, leaves, p);
	do {
		for (uint32_t r = 0; r < p->b.size; r++)
			if (rng_one_in(&p->rng, 4) && is_dead(p, r))
				agree_mark(&p->a, r);
		die_perhaps(p, 200);
		rc = agree_step(&p->a);
		CHECK(rc >= 0, "%s", slmpm_error_detail());
		if (!rc)
			sched_yield();
		CHECK(++passes < 20000000, "for ever");
	} while (!rc);
	agree_end(&p->a);
	p->done = p->b.posted;
	record(p);
	die_perhaps(p, 8);
}

static int play(void *arg)
{
	struct player *me = arg;
	struct play p = {.round = me->round, .rng = {me->round->seed + me->rank}};
	bool leaves = rng_one_in(&p.rng, 8);
	uint64_t leave_at = 1 + rng_below(&p.rng, 10);
	struct board *own;
	int fd, rc;

	CHECK(board_make(&own, &fd) == 0, "no board");
	CHECK(boards_open(&p.b, own, me->round->all.size, me->rank) == 0, "no boards");
	members_find(&me->round->all, &p.b, fd);
	open_processes(&p);
	members_wait(&me->round->all);
	from = calloc(MEMBERS_MAX * BLOCK + LONG, sizeof(*from));
	to = calloc(MEMBERS_MAX * BLOCK + LONG, sizeof(*to));
	CHECK(from && to, "no memory");
	record(&p);
	while ((rc = work(&p)) < 0) {
		if (leaves && p.done > leave_at)
			break;
		agree(&p);
	}
	boards_end(&p.b, 0, BOARD_NONE, NULL);
	return rc < 0 ? EXIT_LEFT : 0;
}

/* ---- a round --------------------------------------------------------------------------------- */

static void nap(uint32_t ns)
{
	struct timespec t = {.tv_nsec = ns};

	(void)nanosleep(&t, NULL);
}

static uint32_t play_round(struct rng *g, uint32_t *generations)
{
	struct round *round = child_common(sizeof(*round));
	struct player players[MEMBERS_MAX];
	uint32_t size = 2 + rng_below(g, 5), kills = 1 + rng_below(g, size - 1), left = 0;
	pid_t pids[MEMBERS_MAX];

	round->all.size = size;
	round->seed = rng_next(g);
	for (uint32_t r = 0; r < size; r++) {
		players[r] = (struct player){round, r};
		pids[r] = child_start(play, &players[r], 60);
	}
	while (round->all.met < size)
		members_nap();
	for (uint32_t k = 0; k < kills; k++) {
		uint32_t victim = rng_below(g, size);

		nap(rng_below(g, k && rng_one_in(g, 2) ? 100000 : 2500000));
		(void)kill(pids[victim], SIGKILL);
	}
	nap(rng_below(g, 4000000));
	round->stop = true;
	for (uint32_t r = 0; r < size; r++) {
		int rc = child_wait(pids[r]);

		CHECK(rc == 0 || rc == EXIT_LEFT || rc == -SIGKILL, "member %u of %u: %d", r, size,
		      rc);
		left += rc == 0;
	}
	for (*generations = 0; round->of[*generations + 1].members; ++*generations)
		;
	return left;
}

int main(void)
{
	const char *text = getenv("SLMPM_TEST_KILLS");
	uint32_t rounds =
		text ? (uint32_t)strtoul(text, NULL, 0) : (uint32_t)(ROUNDS / actor_slow());
	struct rng g = {rng_run_seed((uint64_t)getpid())};
	uint32_t left = 0, several = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t generations;

		left += play_round(&g, &generations);
		several += generations > 1;
	}
	printf("%u have come to the end, %u rounds of several generations\n", left, several);
	return 0;
}
