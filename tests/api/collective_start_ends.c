/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * What ends started operations before they are done: a member that is killed, stopped until a
 * deadline, or leaves: each completion says so, however it is waited for, and who.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/crew.h"

#define MEMBERS 4
#define VICTIM  2 /* a rank */
#define BATCH   6
#define AT_ONCE 1000
#define MOMENT  300

enum how { BY_WAIT, BY_TEST, BY_FD };

struct scene {
	const char *name;
	int error;
	bool deadline, stops, late;
};

struct outstanding {
	slmpm_req req[BATCH];
	slmpm_ctr ctr;
	slmpm_cq cq;
	int64_t word, sums[3 * BATCH];
};

static void start(const struct crew *crew, struct outstanding *o, int timeout_ms)
{
	o->word = 1;
	OK(slmpm_ctr_create(crew->ctx, &o->ctr));
	OK(slmpm_cq_create(crew->ctx, &o->cq));
	for (int i = 0; i < 3 * BATCH; i++) {
		struct slmpm_how how = {.size = sizeof(how), .cookie = (uint64_t)i};
		struct slmpm_coll c = {.size = sizeof(c),
				       .kind = SLMPM_COLL_ALLREDUCE,
				       .type = SLMPM_INT64,
				       .op = SLMPM_CALC_SUM,
				       .from = &o->word,
				       .to = &o->sums[i],
				       .count = 1};

		if (i >= 2) /* one behind others */
			how.timeout_ms = timeout_ms;
		if (i % 3 == 1)
			how.ctr = o->ctr;
		else if (i % 3 == 2)
			how.cq = o->cq;
		OK(slmpm_collective_start(crew->group[0], &c, &how, i % 3 ? NULL : &o->req[i / 3]));
	}
}

static void await(const struct crew *crew, slmpm_req *req, struct slmpm_done *done, enum how how)
{
	struct pollfd at = {.fd = slmpm_fd(crew->ctx), .events = POLLIN};

	if (how == BY_WAIT) {
		EXPECT(slmpm_wait(req, 1, done, PATIENCE), 0);
		return;
	}
	while (slmpm_test(req, done) == 0)
		if (how == BY_FD && slmpm_arm(crew->ctx) == 0)
			CHECK(poll(&at, 1, PATIENCE) == 1, "nothing rings");
}

static void ended(const struct slmpm_done *d, int error)
{
	CHECK(d->op == SLMPM_OP_COLLECTIVE && d->status == -error && d->imm == VICTIM,
	      "op %u, status %d, by %u", d->op, d->status, d->imm);
}

static void play(const struct crew *crew, int rank)
{
	const struct scene *s = crew->arg;
	slmpm_group g = crew->group[0];
	struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	struct slmpm_group_info info;
	struct slmpm_done d[BATCH];
	int64_t before;
	struct outstanding o;
	slmpm_req more;

	OK(slmpm_barrier(g, PATIENCE));
	if (rank == VICTIM) {
		usleep(MOMENT * 1000); /* the others sleep */
		if (s->stops)
			raise(SIGSTOP);
		if (s->late)
			_exit(0);
		return; /* it leaves */
	}
	before = actor_now_ms();
	start(crew, &o, s->deadline && rank == 3 ? 2 * MOMENT : 0);
	/* Breaks nothing. */
	REFUSED(slmpm_wait(&o.req[0], 1, d, 10), SLMPM_ETIMEOUT,
		"slmpm_wait: still waiting for rank 2 (");
	CHECK(strstr(slmpm_error_detail(), ") of group "), "%s", slmpm_error_detail());
	REFUSED(slmpm_wait(o.req, 2, d, 10), SLMPM_ETIMEOUT,
		"slmpm_wait: none of 2 requests has ended, the first waits for rank 2 (");
	REFUSED(slmpm_ctr_wait(o.ctr, BATCH, 10), SLMPM_ETIMEOUT, "slmpm_ctr_wait: 0 of 6 ");
	REFUSED(slmpm_cq_wait(o.cq, d, 1, 10), SLMPM_ETIMEOUT, "slmpm_cq_wait: no completion");
	for (int i = 0; i < BATCH; i++) {
		await(crew, &o.req[i], d, rank > VICTIM ? BY_FD : (enum how)rank);
		ended(d, s->error);
		CHECK(strstr(slmpm_error_detail(), "rank"), "%s", slmpm_error_detail());
	}
	CHECK(actor_now_ms() - before < (2 * MOMENT + AT_ONCE) * actor_slow(), "after %lld ms",
	      (long long)(actor_now_ms() - before));
	EXPECT(slmpm_ctr_wait(o.ctr, BATCH, PATIENCE), -s->error);
	REFUSED(slmpm_wait(NULL, 1, NULL, 0), SLMPM_EINVAL, "no requests");
	EXPECT(slmpm_cq_wait(o.cq, d, BATCH, PATIENCE), BATCH);
	CHECK(strstr(slmpm_error_detail(), "rank 2 ("), "%s", slmpm_error_detail());
	for (int i = 0; i < BATCH; i++) {
		ended(&d[i], s->error);
		CHECK(d[i].cookie == (uint64_t)i * 3 + 2, "cookie %llu",
		      (unsigned long long)d[i].cookie);
	}
	EXPECT(slmpm_collective_start(g, &barrier, NULL, &more), -s->error);
	EXPECT(slmpm_barrier(g, PATIENCE), -s->error);
	info = circle_query(g);
	CHECK(info.status == -s->error && info.culprit == VICTIM && info.begun == info.done,
	      "status %d by %d, %llu of %llu", info.status, info.culprit,
	      (unsigned long long)info.done, (unsigned long long)info.begun);
}

static atomic_int *started; /* members that have */

/* The engine's thread finds it out, while the application sleeps. */
static void by_engine(const struct crew *crew, int rank)
{
	struct slmpm_done d[BATCH];
	struct outstanding o;

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	while (rank == VICTIM && atomic_load(started) < MEMBERS - 1)
		usleep(1000);
	if (rank == VICTIM)
		_exit(0);
	start(crew, &o, 0);
	atomic_fetch_add(started, 1);
	while (circle_query(crew->group[0]).done <= 3 * BATCH)
		usleep(1000);
	EXPECT(slmpm_cq_poll(o.cq, d, BATCH), BATCH);
	CHECK(strstr(slmpm_error_detail(), "rank 2 (") &&
		      strstr(slmpm_error_detail(), "operation 2"),
	      "\"%s\"", slmpm_error_detail());
	ended(&d[BATCH - 1], SLMPM_EDEAD);
}

/* A context that closes ends what it has. */
static void shut(const struct crew *crew, int rank)
{
	struct outstanding o;
	struct slmpm_done d;

	if (rank) {
		usleep(MOMENT * 1000);
		return;
	}
	start(crew, &o, 0);
	OK(slmpm_shut(crew->ctx, PATIENCE));
	EXPECT(slmpm_test(&o.req[BATCH - 1], &d), 1);
	CHECK(d.status == -SLMPM_ECLOSED, "status %d", d.status);
	EXPECT(slmpm_error_detail() && strstr(slmpm_error_detail(), "closed") != NULL, 1);
	_exit(0);
}

int main(void)
{
	static const struct scene scenes[] = {
		{.name = "killed", .error = SLMPM_EDEAD, .late = true},
		{.name = "left", .error = SLMPM_ECLOSED},
		{.name = "stopped",
		 .error = SLMPM_ETIMEOUT,
		 .deadline = true,
		 .stops = true,
		 .late = true},
	};
	static const char *const ways[] = {"adaptive", "block"};

	for (int w = 0; w < 2; w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
			struct crew crew = {.members = MEMBERS,
					    .groups = 1,
					    .flags = w ? SLMPM_THREADS : 0,
					    .body = play,
					    .arg = &scenes[i],
					    .victim = VICTIM,
					    .code = scenes[i].stops ? -SIGKILL : 0};

			printf("%s, %s\n", scenes[i].name, ways[w]);
			fflush(stdout);
			crew_run(&crew, 30);
		}
	}
	crew_run(&(struct crew){.members = 2, .groups = 1, .body = shut}, 30);
	setenv("SLMPM_ENGINE", "thread", 1);
	started = child_common(sizeof(*started));
	/* ThreadSanitizer starts no threads in a child of a process with TCP. */
	for (int apart = 0; apart < (actor_slow() > 1 ? 1 : 2); apart++) {
		atomic_store(started, 0);
		crew_run(&(struct crew){.members = MEMBERS,
					.groups = 1,
					.apart = apart ? 0xff : 0,
					.body = by_engine,
					.victim = VICTIM},
			 30);
	}
	return 0;
}
