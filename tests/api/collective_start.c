/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Collective operations that are started: of each kind, several outstanding in several groups, in
 * another order of the groups at each member; they end by requests, counters and queues, and are
 * collected in any order, or a call that blocks comes behind them. By boards, and by TCP.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/random.h"

#define GROUPS 3
#define BATCH  40 /* outstanding ones */
#define LONG   9000
#define ROUNDS 12

enum way { BY_REQUEST, BY_COUNTER, BY_QUEUE, WAYS };

struct job {
	struct slmpm_coll c;
	uint64_t seed;
	int group, rank, n;
	enum way way;
	int64_t *from, *to;
	slmpm_req req;
	bool done;
};

static int64_t value(const struct job *j, int rank, uint64_t i)
{
	return (int64_t)((j->seed + i * 7) % 1000) + 1000 * (int64_t)rank;
}

static int64_t sum(const struct job *j, int hi, uint64_t i)
{
	int64_t s = 0;

	for (int r = 0; r < hi; r++)
		s += value(j, r, i);
	return s;
}

static uint64_t elements(const struct job *j)
{
	return j->c.count *
	       (j->c.kind >= SLMPM_COLL_SCATTER && j->c.kind <= SLMPM_COLL_REDUCE_SCATTER ?
			(uint64_t)j->n :
			1);
}

/* The same at all members but for what is RANK's own. */
static void make(struct job *j, struct rng *g, int groups, int n, int rank)
{
	memset(j, 0, sizeof(*j));
	j->rank = rank;
	j->n = n;
	j->seed = rng_next(g) % 1000;
	j->group = (int)rng_below(g, (uint32_t)groups);
	j->c.size = sizeof(j->c);
	j->c.kind = 1 + rng_below(g, SLMPM_COLL_EXSCAN);
	j->c.type = SLMPM_INT64;
	j->c.op = SLMPM_CALC_SUM;
	j->c.root = (int)rng_below(g, (uint32_t)n);
	j->c.count = rng_one_in(g, 8) ? rng_below(g, LONG) : rng_below(g, 9);
	j->from = malloc((elements(j) + 1) * sizeof(int64_t));
	j->to = malloc((elements(j) + 1) * sizeof(int64_t));
	CHECK(j->from && j->to, "no memory");
	for (uint64_t i = 0; i < elements(j); i++)
		j->from[i] = value(j, rank, i);
	memset(j->to, 0x55, elements(j) * sizeof(int64_t));
	j->c.from = j->from;
	j->c.to = j->to;
}

static void is(const struct job *j, uint64_t i, int64_t want)
{
	CHECK(j->to[i] == want, "kind %u of %llu, root %d, rank %d, element %llu: %lld, not %lld",
	      j->c.kind, (unsigned long long)j->c.count, j->c.root, j->rank, (unsigned long long)i,
	      (long long)j->to[i], (long long)want);
}

static void check(const struct job *j)
{
	uint64_t count = j->c.count, own = (uint64_t)j->rank * count;
	bool root = j->rank == j->c.root;

	for (uint64_t i = 0; i < count; i++)
		switch (j->c.kind) {
		case SLMPM_COLL_BROADCAST:
			if (!root)
				is(j, i, value(j, j->c.root, i));
			break;
		case SLMPM_COLL_REDUCE:
			if (root)
				is(j, i, sum(j, j->n, i));
			break;
		case SLMPM_COLL_ALLREDUCE: is(j, i, sum(j, j->n, i)); break;
		case SLMPM_COLL_SCATTER: is(j, i, value(j, j->c.root, own + i)); break;
		case SLMPM_COLL_GATHER:
		case SLMPM_COLL_ALLGATHER:
			for (int r = 0; r < j->n && (root || j->c.kind == SLMPM_COLL_ALLGATHER);
			     r++)
				is(j, (uint64_t)r * count + i, value(j, r, i));
			break;
		case SLMPM_COLL_ALLTOALL:
			for (int r = 0; r < j->n; r++)
				is(j, (uint64_t)r * count + i, value(j, r, own + i));
			break;
		case SLMPM_COLL_REDUCE_SCATTER: is(j, i, sum(j, j->n, own + i)); break;
		case SLMPM_COLL_SCAN: is(j, i, sum(j, j->rank + 1, i)); break;
		case SLMPM_COLL_EXSCAN:
			if (j->rank)
				is(j, i, sum(j, j->rank, i));
			break;
		default: break;
		}
}

static void finish(struct job *j)
{
	CHECK(!j->done, "ended twice");
	j->done = true;
	check(j);
	free(j->from);
	free(j->to);
}

static void ended_well(const struct slmpm_done *d, uint32_t kind)
{
	CHECK(d->op == SLMPM_OP_COLLECTIVE && d->status == 0 && d->stream == kind && !d->peer.id,
	      "op %u, status %d, stream %u", d->op, d->status, d->stream);
}

static void start(const struct crew *crew, struct job *j, slmpm_ctr ctr, slmpm_cq cq, int index)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_coll copy = j->c;

	if (j->way == BY_COUNTER)
		how.ctr = ctr;
	else if (j->way == BY_QUEUE)
		how.cq = cq;
	how.cookie = (uint64_t)index;
	OK(slmpm_collective_start(crew->group[j->group], &copy, &how,
				  j->way == BY_REQUEST ? &j->req : NULL));
	memset(&copy, 0xff, sizeof(copy)); /* it has been copied */
}

/* One more of the queue's has ended, by one way or another. */
static void take_one(struct job *jobs, slmpm_cq cq, struct rng *g)
{
	struct slmpm_done d;

	if (rng_one_in(g, 2)) {
		EXPECT(slmpm_cq_wait(cq, &d, 1, PATIENCE), 1);
	} else {
		int n;

		while ((n = slmpm_cq_poll(cq, &d, 1)) == 0)
			;
		EXPECT(n, 1);
	}
	CHECK(d.cookie < BATCH, "cookie %llu", (unsigned long long)d.cookie);
	ended_well(&d, jobs[d.cookie].c.kind);
	finish(&jobs[d.cookie]);
}

static void await(struct job *j, struct rng *g)
{
	struct slmpm_done d;

	if (rng_one_in(g, 2))
		EXPECT(slmpm_wait(&j->req, 1, &d, PATIENCE), 0);
	else
		while (slmpm_test(&j->req, &d) == 0)
			;
	ended_well(&d, j->c.kind);
	finish(j);
}

static void collect(struct job *jobs, const int *counts, slmpm_ctr ctr, uint64_t total, slmpm_cq cq,
		    struct rng *g)
{
	int queued = counts[BY_QUEUE], first = (int)rng_below(g, BATCH);

	for (int i = 0; i < BATCH; i++) {
		struct job *j = &jobs[(first + i * 7) % BATCH];

		if (j->way == BY_REQUEST)
			await(j, g);
		if (queued && rng_one_in(g, 2)) {
			take_one(jobs, cq, g);
			queued--;
		}
	}
	while (queued--)
		take_one(jobs, cq, g);
	OK(slmpm_ctr_wait(ctr, total, PATIENCE));
	for (int i = 0; i < BATCH; i++)
		if (jobs[i].way == BY_COUNTER)
			finish(&jobs[i]);
}

/* The order of one group is the same at all members; which group has its turn is this one's. */
static void start_all(const struct crew *crew, struct job *jobs, slmpm_ctr ctr, slmpm_cq cq,
		      struct rng *g, int *counts)
{
	int at[GROUPS] = {0}, left = BATCH;

	while (left) {
		int group = (int)rng_below(g, GROUPS);

		while (at[group] < BATCH && jobs[at[group]].group != group)
			at[group]++;
		if (at[group] == BATCH)
			continue;
		jobs[at[group]].way = (enum way)rng_below(g, WAYS);
		counts[jobs[at[group]].way]++;
		start(crew, &jobs[at[group]], ctr, cq, at[group]);
		at[group]++;
		left--;
	}
}

static void mixed(const struct crew *crew, int rank)
{
	struct rng same = {*(const uint64_t *)crew->arg}, own = {same.state + 1 + (uint64_t)rank};
	struct job *jobs = calloc(BATCH, sizeof(*jobs));
	uint64_t counted = 0;
	slmpm_ctr ctr;
	slmpm_cq cq;

	CHECK(jobs, "no memory");
	OK(slmpm_ctr_create(crew->ctx, &ctr));
	OK(slmpm_cq_create(crew->ctx, &cq));
	for (int k = 0; k < ROUNDS; k++) {
		int counts[WAYS] = {0};

		if (rng_one_in(&own, 4))
			usleep(1000);
		for (int i = 0; i < BATCH; i++)
			make(&jobs[i], &same, GROUPS, crew->members, rank);
		start_all(crew, jobs, ctr, cq, &own, counts);
		if (k % 3 == 0) /* all of that group have ended then */
			OK(slmpm_barrier(crew->group[k % GROUPS], PATIENCE));
		counted += (uint64_t)counts[BY_COUNTER];
		collect(jobs, counts, ctr, counted, cq, &own);
	}
	for (int i = 0; i < GROUPS; i++) {
		struct slmpm_group_info info = circle_query(crew->group[i]);

		CHECK(info.begun == info.done && info.begun, "%llu of %llu",
		      (unsigned long long)info.done, (unsigned long long)info.begun);
	}
	OK(slmpm_ctr_destroy(ctr));
	OK(slmpm_cq_destroy(cq));
	free(jobs);
}

/* In a loop of the application's own, which sleeps on the descriptor. */
static void own_loop(const struct crew *crew, int rank)
{
	struct pollfd at = {.fd = slmpm_fd(crew->ctx), .events = POLLIN};
	int64_t word = 1, sums[4];
	slmpm_req req[4];

	for (int k = 0; k < 20; k++) {
		int n = 0;

		if (k % crew->members == rank)
			usleep(5000); /* the others sleep by then */
		for (int i = 0; i < 4; i++) {
			struct slmpm_coll c = {.size = sizeof(c),
					       .kind = SLMPM_COLL_ALLREDUCE,
					       .type = SLMPM_INT64,
					       .op = SLMPM_CALC_SUM,
					       .from = &word,
					       .to = &sums[i],
					       .count = 1};

			OK(slmpm_collective_start(crew->group[0], &c, NULL, &req[i]));
		}
		while (n < 4) {
			while (n < 4 && slmpm_test(&req[n], NULL) == 1)
				n++;
			if (n < 4 && slmpm_arm(crew->ctx) == 0)
				CHECK(poll(&at, 1, PATIENCE) == 1, "nothing rings");
		}
		for (int i = 0; i < 4; i++)
			CHECK(sums[i] == crew->members, "%lld", (long long)sums[i]);
	}
}

static void refused(const struct crew *crew, int rank)
{
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	struct slmpm_how how = {.size = sizeof(how)};
	slmpm_group none = {0}, g = crew->group[0];
	struct slmpm_done d;
	slmpm_req req;

	OK(slmpm_ctr_create(crew->ctx, &how.ctr));
	REFUSED(slmpm_collective_start(g, NULL, NULL, &req), SLMPM_EINVAL,
		"slmpm_collective_start");
	REFUSED(slmpm_collective_start(none, &c, NULL, &req), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_collective_start(g, &c, &how, &req), SLMPM_EINVAL, "only one of");
	how.flags = SLMPM_MORE;
	REFUSED(slmpm_collective_start(g, &c, &how, NULL), SLMPM_EINVAL, "flags 0x1");
	how.flags = 0;
	how.ctr.id = 0;
	REFUSED(slmpm_collective_start(g, &c, &how, NULL), SLMPM_EAGAIN, "timeout of 0");
	c.kind = SLMPM_COLL_BROADCAST;
	REFUSED(slmpm_collective_start(g, &c, NULL, &req), SLMPM_EINVAL, "no type 0");
	c.kind = SLMPM_COLL_BARRIER;
	if (!rank) {
		OK(slmpm_collective_start(g, &c, NULL, &req));
		REFUSED(slmpm_cancel(req), SLMPM_EBUSY, "is not taken back");
		REFUSED(slmpm_group_destroy(g), SLMPM_EBUSY, "under way");
		OK(slmpm_barrier(crew->group[1], PATIENCE));
		EXPECT(slmpm_wait(&req, 1, &d, PATIENCE), 0);
		ended_well(&d, SLMPM_COLL_BARRIER);
	} else {
		OK(slmpm_barrier(crew->group[1], PATIENCE));
		OK(slmpm_collective_start(g, &c, NULL, NULL)); /* blocks */
	}
}

static void run(struct crew *crew, const char *how)
{
	int64_t before = actor_now_ms();

	crew->flags = crew->members % 2 ? SLMPM_THREADS : 0;
	crew->body = mixed;
	crew_run(crew, 40);
	if (crew->members > 1) {
		crew->body = own_loop;
		crew_run(crew, 40);
		crew->body = refused;
		crew_run(crew, 40);
	}
	printf("%d processes, %s: %lld ms\n", crew->members, how,
	       (long long)(actor_now_ms() - before));
	fflush(stdout);
}

int main(void)
{
	static const char *const ways[] = {"adaptive", "block"};
	uint64_t seed = rng_run_seed(19);
	struct crew crew = {.groups = GROUPS, .arg = &seed};

	for (int w = 0; w < 2; w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		setenv("SLMPM_ATTACH", w ? "y" : "n", 1);
		for (crew.members = 1; crew.members <= 5; crew.members += 1 + crew.members / 3)
			run(&crew, ways[w]);
	}
	crew.members = 3; /* one and two are on this machine */
	crew.apart = 2;
	run(&crew, "block, TCP");
	unsetenv("SLMPM_WAIT");
	crew.members = 4;
	crew.apart = 7;
	run(&crew, "TCP");
	return 0;
}
