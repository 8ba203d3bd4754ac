/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/* libs: -Wl,--wrap=slmpm_wq_reset */
/*
 * Operations with tags: members start those of a group in different orders, in between others that
 * go by call order, over both fabrics, asleep, prepared, with functions of their own; and what ends
 * them: who has not started one, disagrees in it, dies, leaves; the group goes on without those.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/random.h"

#define MEMBERS 4
#define TAGS    8
#define ROUNDS  30
#define LONG    20000 /* elements: on no ring at once */
#define VICTIM  2
#define SHORT   200 /* ms: what never comes */

static int64_t long_from[LONG], long_to[LONG];

struct job {
	struct slmpm_coll coll;
	int64_t from[MEMBERS], to[MEMBERS];
	uint64_t many;
	slmpm_req req;
	bool started;
};

static struct slmpm_coll allreduce(const int64_t *from, int64_t *to, uint32_t tag)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = SLMPM_COLL_ALLREDUCE,
				   .type = SLMPM_INT64,
				   .op = SLMPM_CALC_SUM,
				   .from = from,
				   .to = to,
				   .count = 1,
				   .tag = tag};
}

static slmpm_req begin(slmpm_group g, const struct slmpm_coll *c)
{
	slmpm_req req;

	OK(slmpm_collective_start(g, c, NULL, &req));
	return req;
}

static void await(slmpm_req req)
{
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
}

/* ---- any order ------------------------------------------------------------------------------- */

/* Of all members; the long one's tag is TAGS. */
static void make_job(struct job *j, struct rng *same, int rank, uint32_t tag)
{
	static const uint32_t kinds[] = {SLMPM_COLL_BARRIER, SLMPM_COLL_ALLREDUCE,
					 SLMPM_COLL_BROADCAST, SLMPM_COLL_REDUCE,
					 SLMPM_COLL_ALLGATHER};

	*j = (struct job){.coll = allreduce(j->from, j->to, tag)};
	j->coll.kind = kinds[rng_below(same, 5)];
	j->coll.root = (int)rng_below(same, MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		j->from[i] = (int64_t)tag * 100 + rank;
	if (tag != TAGS)
		return;
	j->coll.kind = SLMPM_COLL_ALLREDUCE;
	j->coll.count = LONG;
	j->coll.from = long_from;
	j->coll.to = long_to;
	for (int i = 0; i < LONG; i++)
		long_from[i] = i + rank;
}

static int64_t sum_of(uint32_t tag)
{
	return (int64_t)tag * 100 * MEMBERS + MEMBERS * (MEMBERS - 1) / 2;
}

static void check_job(const struct job *j, int rank)
{
	const struct slmpm_coll *c = &j->coll;

	if (c->count == LONG)
		for (int i = 0; i < LONG; i++)
			CHECK(long_to[i] == (int64_t)i * MEMBERS + MEMBERS * (MEMBERS - 1) / 2,
			      "long: %lld at %d", (long long)long_to[i], i);
	else if (c->kind == SLMPM_COLL_ALLREDUCE ||
		 (c->kind == SLMPM_COLL_REDUCE && c->root == rank))
		EXPECT(j->to[0], sum_of(c->tag));
	else if (c->kind == SLMPM_COLL_BROADCAST && c->root != rank)
		EXPECT(j->to[0], (int64_t)c->tag * 100 + c->root);
	for (int r = 0; c->kind == SLMPM_COLL_ALLGATHER && r < MEMBERS; r++)
		EXPECT(j->to[r], (int64_t)c->tag * 100 + r);
}

static void shuffle(struct rng *own, int *order, int n)
{
	for (int i = 0; i < n; i++) {
		int k = (int)rng_below(own, (uint32_t)i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

/* Each member starts those with tags in an order of its own, one of no tag before or between them,
 * and waits for each alone, in another one; some at once. */
static void any_order(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	struct rng same = {*(const uint64_t *)crew->arg}, own = {same.state + 7 + (uint64_t)rank};
	struct job jobs[TAGS + 1];
	int64_t one = 1, all[2];
	int order[TAGS];
	struct slmpm_group_info info;

	for (int round = 0; round < ROUNDS; round++) {
		struct slmpm_coll plain = allreduce(&one, &all[0], 0);
		int at = (int)rng_below(&own, TAGS);
		slmpm_req req[2] = {{0}};

		for (uint32_t t = 1; t <= TAGS; t++)
			make_job(&jobs[t], &same, rank, t);
		shuffle(&own, order, TAGS);
		for (int i = 0; i < TAGS; i++) {
			struct job *j = &jobs[order[i] + 1];

			if (i == at)
				req[0] = begin(g, &plain);
			j->req = begin(g, &j->coll);
			if (rng_below(&own, 8) == 0)
				(void)slmpm_progress(crew->ctx);
		}
		plain.to = &all[1];
		req[1] = begin(g, &plain);
		shuffle(&own, order, TAGS);
		for (int i = 0; i < TAGS; i++) {
			await(jobs[order[i] + 1].req);
			check_job(&jobs[order[i] + 1], rank);
		}
		await(req[0]);
		await(req[1]);
		CHECK(all[0] == MEMBERS && all[1] == MEMBERS, "call order");
	}
	info = circle_query(g);
	CHECK(info.begun == info.done && info.done == ROUNDS * (TAGS + 2), "%llu of %llu",
	      (unsigned long long)info.done, (unsigned long long)info.begun);
}

/* Each waits for one before it starts the next, which another has begun with; blocking, too. */
static void one_waits(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	int64_t one = 1, sum[4] = {0};
	const struct slmpm_coll plain = allreduce(&one, &sum[0], 0);
	struct slmpm_coll first = allreduce(&one, &sum[1], 1), second = allreduce(&one, &sum[2], 2);

	for (int i = 0; i < ROUNDS; i++) {
		slmpm_req a, b, c;

		memset(sum, 0, sizeof(sum));
		if (rank == i % MEMBERS) { /* call order waits for the others meanwhile */
			a = begin(g, &plain);
			b = begin(g, &second);
			OK(slmpm_collective(g, &first, PATIENCE));
			await(b);
			await(a);
		} else if (rank == (i + 1) % MEMBERS) {
			OK(slmpm_collective(g, &first, PATIENCE));
			OK(slmpm_collective(g, &second, PATIENCE));
			OK(slmpm_collective(g, &plain, PATIENCE));
		} else {
			if (rank == (i + 2) % MEMBERS)
				usleep(2000); /* the others sleep */
			c = begin(g, &first);
			b = begin(g, &second);
			await(b);
			OK(slmpm_collective(g, &plain, PATIENCE));
			await(c);
		}
		CHECK(sum[0] == MEMBERS && sum[1] == MEMBERS && sum[2] == MEMBERS, "sums");
	}
}

/* At a deadline of the wait, which ends nothing, who has not started it is named. */
static void is_named(const struct crew *crew, int rank)
{
	static const char named[] = "slmpm_wait: still waiting for rank 2 (";
	const int64_t end = actor_now_ms() + PATIENCE;
	slmpm_group g = crew->group[0];
	int64_t one = 1, sum = 0;
	const struct slmpm_coll c = allreduce(&one, &sum, 1);
	slmpm_req req = {0};

	if (rank != VICTIM) {
		req = begin(g, &c);
		do /* who it is a round shows */
			EXPECT(slmpm_wait(&req, 1, NULL, SHORT / 20), -SLMPM_ETIMEOUT);
		while (!strstr(slmpm_error_detail(), named) && actor_now_ms() < end);
		CHECK(strstr(slmpm_error_detail(), named) &&
			      strstr(slmpm_error_detail(), ") of group ") &&
			      strstr(slmpm_error_detail(), ", tag 1"),
		      "%s", slmpm_error_detail());
	}
	OK(slmpm_barrier(crew->group[1], PATIENCE));
	if (rank == VICTIM)
		req = begin(g, &c);
	await(req);
}

/* ---- prepared, own, limits ------------------------------------------------------------------- */

static void larger(void *to, const void *left, const void *right, uint64_t count, void *unused)
{
	const int64_t *l = left, *r = right;

	(void)unused;
	for (uint64_t i = 0; i < count; i++)
		((int64_t *)to)[i] = l[i] > r[i] ? l[i] : r[i];
}

static void forms(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	const struct slmpm_combine own = {sizeof(own), 0, 8, larger, NULL};
	int64_t from = rank, to[3] = {0};
	struct slmpm_coll c = allreduce(&from, &to[0], 9), max = allreduce(&from, &to[1], 4);
	struct slmpm_how how = {.size = sizeof(how), .cookie = 5};
	slmpm_prepared prepared;
	struct slmpm_done done;
	slmpm_req req;
	slmpm_ctr ctr;

	OK(slmpm_ctr_create(crew->ctx, &ctr));
	OK(slmpm_cq_create(crew->ctx, &how.cq));
	max.combine = &own;
	OK(slmpm_collective_prepare(&prepared, g, &c));
	for (int i = 0; i < 5; i++) {
		if (rank == i % MEMBERS) { /* it comes to it last */
			OK(slmpm_barrier(g, PATIENCE));
			usleep(1000);
		}
		OK(slmpm_prepared_start(prepared, NULL, &req));
		if (rank != i % MEMBERS) {
			REFUSED(slmpm_prepared_start(prepared, NULL, &req), SLMPM_EBUSY,
				"last run");
			REFUSED(slmpm_collective_start(g, &c, &how, NULL), SLMPM_EBUSY, "tag 9");
			OK(slmpm_barrier(g, PATIENCE));
		}
		OK(slmpm_collective_start(g, &max, &how, NULL));
		await(req);
		EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && done.cookie == 5 && to[1] == MEMBERS - 1, "own");
		EXPECT(to[0], MEMBERS * (MEMBERS - 1) / 2);
	}
	OK(slmpm_prepared_start(prepared,
				&(struct slmpm_how){.size = sizeof(how), .timeout_ms = -1}, NULL));
	OK(slmpm_prepared_destroy(prepared));
	OK(slmpm_barrier(g, PATIENCE));
	/* As many as may be, and one more. */
	c.kind = SLMPM_COLL_BARRIER;
	how = (struct slmpm_how){.size = sizeof(how), .ctr = ctr};
	for (uint32_t t = 0; t < SLMPM_COLL_TAGS; t++) {
		c.tag = 100 + (rank ? t : SLMPM_COLL_TAGS - 1 - t);
		if (rank == 3 && !t)
			usleep(50000);
		OK(slmpm_collective_start(g, &c, &how, NULL));
	}
	c.tag = 99;
	if (rank == 0)
		REFUSED(slmpm_collective_start(g, &c, &how, NULL), SLMPM_ELIMIT, "64");
	REFUSED(slmpm_group_destroy(g), SLMPM_EBUSY, "operation");
	OK(slmpm_ctr_wait(ctr, SLMPM_COLL_TAGS, PATIENCE));
	c.reserved = 1;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "reserved");
	OK(slmpm_ctr_destroy(ctr));
}

/* ---- what ends them -------------------------------------------------------------------------- */

struct scene {
	const char *name;
	int error;
	const char *text; /* in the detail, but of one that has learnt it from another */
	int64_t timeout;
	bool kills, leaves, disagrees;
};

/* Others see which tag this process waits for, and that it is for the victim. */
static void shown(slmpm_ctx ctx, slmpm_group g)
{
	struct slmpm_group_shown s = {.under_way = 0};
	uint32_t i = 0;

	while (!s.under_way) { /* as it was a while ago */
		usleep(1000);
		(void)slmpm_progress(ctx);
		if (circle_query(g).status)
			return;
		EXPECT(slmpm_groups_read(getpid(), 0, &s, sizeof(s)), 0);
	}
	CHECK(s.under_way == 1 && s.operation[0].tag == 1 && s.operation[0].number == 0 &&
		      s.operation[0].kind == SLMPM_COLL_ALLREDUCE,
	      "%u under way, the first of tag %u", s.under_way, s.operation[0].tag);
	while (i < s.waiting && s.member[i].rank != VICTIM)
		i++;
	CHECK(i < s.waiting && s.member[i].since_ns, "%u are waited for", s.waiting);
}

/* Whose end could be taken for why the group is broken. */
static void all_know(const struct crew *crew, bool one_is_dead)
{
	if (one_is_dead)
		usleep(SHORT * 1000);
	else
		OK(slmpm_barrier(crew->group[1], PATIENCE));
}

/* Tag 1 is started by all but the victim, or is another operation there, tag 2 by all. */
static void ends(const struct crew *crew, int rank)
{
	const struct scene *s = crew->arg;
	slmpm_group g = crew->group[0];
	int64_t one = 1, sum[3] = {0};
	struct slmpm_coll first = allreduce(&one, &sum[1], 1), second = allreduce(&one, &sum[2], 2);
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_group_info info;
	struct slmpm_done done;
	slmpm_req a, b;

	OK(slmpm_barrier(g, PATIENCE));
	if (s->disagrees && rank == VICTIM)
		first.kind = SLMPM_COLL_BARRIER;
	if (rank != VICTIM || s->disagrees) {
		how.timeout_ms = rank == 1 ? (int)s->timeout : 0;
		OK(slmpm_collective_start(g, &first, &how, &a));
	}
	if (!s->disagrees) {
		await(begin(g, &second));
		EXPECT(sum[2], MEMBERS);
	}
	if (rank == VICTIM && s->kills) {
		usleep(SHORT * 1000); /* the others are through with that, and sleep */
		_exit(0);
	}
	if (rank == VICTIM && s->leaves) {
		OK(slmpm_group_destroy(g));
		all_know(crew, false);
		OK(slmpm_group_destroy(crew->group[1]));
		OK(slmpm_shut(crew->ctx, PATIENCE));
		_exit(0);
	}
	if (rank == VICTIM && !s->disagrees)
		a = begin(g, &(struct slmpm_coll){.size = sizeof(first), .kind = 1, .tag = 77});
	if (s->timeout && !rank && slmpm_test(&a, &done) == 0) {
		usleep(SHORT / 4 * 1000);
		shown(crew->ctx, g);
	}
	EXPECT(slmpm_wait(&a, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -s->error);
	if (s->text)
		CHECK(strstr(slmpm_error_detail(), s->text), "%s", slmpm_error_detail());
	REFUSED(slmpm_collective_start(g, &second, NULL, &b), s->error, "");
	EXPECT(slmpm_barrier(g, PATIENCE), -s->error);
	info = circle_query(g);
	CHECK(info.status == -s->error && info.begun == info.done, "%d, %llu of %llu", info.status,
	      (unsigned long long)info.done, (unsigned long long)info.begun);
	all_know(crew, s->kills);
	if (!s->kills)
		return;
	OK(slmpm_group_shrink(g, PATIENCE)); /* tags begin again */
	for (int i = 0; i < 40; i++) {
		a = begin(g, i % 2 ? &first : &second);
		b = begin(g, i % 2 ? &second : &first);
		await(b);
		await(a);
		CHECK(sum[1] == MEMBERS - 1 && sum[2] == MEMBERS - 1, "without one");
	}
}

/* Rank 1 blocks in an operation of tag 5, the others in one of tag 6, or of none: at once, in
 * operations that the others wait for as well. All go on without tags. */
static void block_now(const struct crew *crew, int rank)
{
	const uint32_t other = *(const uint32_t *)crew->arg;
	slmpm_group g = crew->group[0];
	int64_t one = 1, sum = 0, begun;
	struct slmpm_coll c = allreduce(&one, &sum, rank == 1 ? 5 : other);

	begun = actor_now_ms();
	EXPECT(slmpm_collective(g, &c, PATIENCE), -SLMPM_EINVAL);
	CHECK(actor_now_ms() - begun < 700 * actor_slow(), "late");
	CHECK(strstr(slmpm_error_detail(), "tag 5") && strstr(slmpm_error_detail(), "rank 1 (") &&
		      strstr(slmpm_error_detail(), other ? "tag 6" : "one without"),
	      "%s", slmpm_error_detail());
	EXPECT(slmpm_barrier(g, PATIENCE), -SLMPM_EINVAL);
	all_know(crew, false);
}

/* Of what is over nothing is taken for it. */
static void block(const struct crew *crew, int rank)
{
	int64_t one = 1, sum = 0;
	const struct slmpm_coll c = allreduce(&one, &sum, 9);

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	OK(slmpm_collective(crew->group[0], &c, PATIENCE));
	block_now(crew, rank);
}

/* The members have no connections yet: what is shown is seen once they have. */
static void block_first(const struct crew *crew, int rank)
{
	OK(slmpm_barrier(crew->group[1], PATIENCE));
	block_now(crew, rank);
}

/* Of a context of several threads another one may start what is waited for. */
static void block_in_threads(const struct crew *crew, int rank)
{
	int64_t one = 1, sum = 0;
	struct slmpm_coll c = allreduce(&one, &sum, rank == 1 ? 5 : 0);

	EXPECT(slmpm_collective(crew->group[0], &c, rank ? PATIENCE : SHORT), -SLMPM_ETIMEOUT);
	all_know(crew, false);
}

/* The context closes. */
static void shut(const struct crew *crew, int rank)
{
	const struct slmpm_coll c = {
		.size = sizeof(c), .kind = SLMPM_COLL_BARRIER, .tag = 3 + (uint32_t)rank};
	slmpm_req req = begin(crew->group[0], &c);
	struct slmpm_done done;

	if (rank) {
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		EXPECT(done.status, -SLMPM_ECLOSED);
		return;
	}
	usleep(SHORT * 1000);
	OK(slmpm_shut(crew->ctx, PATIENCE));
	EXPECT(slmpm_test(&req, &done), 1);
	CHECK(done.status == -SLMPM_ECLOSED, "status %d", done.status);
	_exit(0);
}

static int64_t stands_until; /* ms: no entry of a queue is taken back before */

int __real_slmpm_wq_reset(slmpm_wq wq);
int __wrap_slmpm_wq_reset(slmpm_wq wq);

/* The library's, too. */
int __wrap_slmpm_wq_reset(slmpm_wq wq)
{
	return actor_now_ms() < stands_until ? -SLMPM_EBUSY : __real_slmpm_wq_reset(wq);
}

/* As long as a round is under way, so is what has waited for it; then nothing is. */
static void round_stands(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	int64_t one = 1, sum = 0;
	const struct slmpm_coll c = allreduce(&one, &sum, 1);

	OK(slmpm_barrier(g, PATIENCE));
	if (rank) {
		circle_breaks(g, -SLMPM_ETIMEOUT, 1);
		return;
	}
	stands_until = actor_now_ms() + SHORT;
	EXPECT(slmpm_collective(g, &c, SHORT / 4), -SLMPM_ETIMEOUT);
	CHECK(strstr(slmpm_error_detail(), "tag 1"), "%s", slmpm_error_detail());
	CHECK(actor_now_ms() >= stands_until, "while a round is under way");
}

static void run(const char *name, crew_body *body, uint64_t apart, const void *arg)
{
	struct crew crew = {.members = MEMBERS,
			    .groups = 2,
			    .apart = apart,
			    .body = body,
			    .arg = arg,
			    .victim = VICTIM};

	printf("%s%s\n", name, apart ? ", apart" : "");
	fflush(stdout);
	crew_run(&crew, 30);
}

int main(void)
{
	static const struct scene scenes[] = {
		{.name = "late", .error = SLMPM_ETIMEOUT, .text = "tag 1", .timeout = SHORT},
		{.name = "killed", .error = SLMPM_EDEAD, .text = "rank 2", .kills = true},
		{.name = "left", .error = SLMPM_ECLOSED, .text = "rank 2", .leaves = true},
		{.name = "disagrees", .error = SLMPM_EINVAL, .text = "tag 1", .disagrees = true},
	};
	static const uint32_t others[] = {6, 0};
	struct crew threads = {
		.members = MEMBERS, .groups = 2, .flags = SLMPM_THREADS, .body = block_in_threads};
	uint64_t seed = rng_run_seed(50);

	for (uint64_t apart = 0; apart <= 0xff; apart += 0xff) {
		run("any order", any_order, apart, &seed);
		run("one waits", one_waits, apart, NULL);
		run("is named", is_named, apart, NULL);
		run("forms", forms, apart, NULL);
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
			run(scenes[i].name, ends, apart, &scenes[i]);
		for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			run("block", block, apart, &others[i]);
	}
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		run("block first", block_first, 0xff, &others[i]);
	crew_run(&threads, 30);
	run("a round stands", round_stands, 0xff, NULL);
	run("shut", shut, 0, NULL);
	return 0;
}
