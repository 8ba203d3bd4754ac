/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Operations that a host drives at its accelerators, whose memory it names by references: each
 * kind, several at once, and members that sleep, make progress or wait; what is refused, and that
 * nothing has moved then; who dies, and when.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define MEMBERS  3
#define COUNT    1000
#define BLOCKS   ((size_t)COUNT * MEMBERS)
#define ROOT     1
#define TAG      5
#define OFFSET   24 /* bytes: of `from` in space 1 */
#define ELEMENTS (BLOCKS + OFFSET / 8)
#define MANY     20
#define IMM      77
#define COOKIE   UINT64_C(0x1234)
#define SOON     (300 * actor_slow()) /* ms */

enum way { ASLEEP, PROGRESS, WAITING };

static struct {
	_Atomic int ready, over;
	enum way way;
	bool host_takes_part;
	bool apart;                          /* by TCP */
	int unserved;                        /* rank that does not serve; -1 */
	bool computes;                       /* the last one, once it has done one */
	_Atomic bool late;                   /* then it has broken the group */
	_Atomic int statuses[MEMBERS][MANY]; /* as completed at each */
	_Atomic int done[MEMBERS];
	pid_t pids[MEMBERS + 1];
	int64_t from[MEMBERS][ELEMENTS], to[MEMBERS][ELEMENTS];
} * all;

struct member {
	slmpm_group group;
	slmpm_cq cq;
	int rank;
};

/* ---- members --------------------------------------------------------------------------------- */

/* Each at an address of its own; 4 at the first alone. */
static void name_spaces(slmpm_group group, int rank)
{
	OK(slmpm_group_space(group, 1, all->from[rank], sizeof(all->from[rank])));
	OK(slmpm_group_space(group, 2, all->to[rank], BLOCKS * 8));
	OK(slmpm_group_space(group, 3, all->to[rank], 8));
	if (rank == 0)
		OK(slmpm_group_space(group, 4, all->to[rank], BLOCKS * 8));
}

static void serve(struct member *m, slmpm_ctx ctx)
{
	struct slmpm_how how = {.size = sizeof(how), .cookie = COOKIE};

	m->rank = circle_query(m->group).rank;
	name_spaces(m->group, m->rank);
	OK(slmpm_cq_create(ctx, &m->cq));
	how.cq = m->cq;
	if (m->rank != all->unserved)
		OK(slmpm_group_serve(m->group, &how));
	atomic_fetch_add(&all->ready, 1);
}

static void take(struct member *m, const struct slmpm_done *done)
{
	int n = atomic_load(&all->done[m->rank]);

	CHECK(done->op == SLMPM_OP_COLLECTIVE && done->cookie == COOKIE && done->imm == IMM &&
		      done->stream,
	      "op %u, kind %u, imm %u", done->op, done->stream, done->imm);
	atomic_store(&all->statuses[m->rank][n % MANY], done->status);
	atomic_store(&all->done[m->rank], n + 1);
}

static void serve_until_over(struct member *m)
{
	struct slmpm_done done;

	while (!atomic_load(&all->over)) {
		const bool computes = all->computes && m->rank == MEMBERS - 1;

		if (all->way == ASLEEP || (computes && atomic_load(&all->done[m->rank]))) {
			usleep(1000);
			continue;
		}
		if (all->way == PROGRESS)
			CHECK(slmpm_progress(circle_own) >= 0, "%s", slmpm_error_detail());
		if (slmpm_cq_wait(m->cq, &done, 1, all->way == PROGRESS ? 0 : 20) == 1)
			take(m, &done);
	}
	while (slmpm_cq_poll(m->cq, &done, 1) == 1)
		take(m, &done);
}

static void accelerate(slmpm_peer founder, int i, void *unused)
{
	struct member m = {.rank = i};

	(void)unused;
	OK(slmpm_group_join(&m.group, founder, TAG, PATIENCE));
	serve(&m, circle_own);
	REFUSED(slmpm_group_drive(m.group,
				  &(struct slmpm_drive){.size = sizeof(struct slmpm_drive)}, NULL,
				  NULL),
		SLMPM_ESTATE, "has not founded");
	if (m.rank != all->unserved)
		REFUSED(slmpm_barrier(m.group, PATIENCE), SLMPM_ESTATE, "slmpm_group_serve");
	serve_until_over(&m);
	if (atomic_load(&all->late))
		circle_breaks(m.group, -SLMPM_ETIMEOUT, MEMBERS - 1);
	if (m.rank != all->unserved)
		(void)slmpm_group_serve(m.group, NULL);
	actor_hear(founder, 1);
	/* By messages one that has failed is under way until it is given up. */
	for (int k = 0; all->apart && circle_query(m.group).begun != circle_query(m.group).done;
	     k++) {
		CHECK(k < PATIENCE, "an operation does not end");
		usleep(1000);
	}
	OK(slmpm_group_destroy(m.group));
}

/* ---- the host -------------------------------------------------------------------------------- */

struct host {
	struct circle c;
	slmpm_group group;
	struct member self; /* where it takes part: the last one */
};

static void host_begin(struct host *h, circle_part *part)
{
	int others = all->host_takes_part ? MEMBERS - 1 : MEMBERS;

	*h = (struct host){.self.rank = -1, .c.apart = all->apart ? UINT64_MAX : 0};
	atomic_store(&all->ready, 0);
	atomic_store(&all->over, 0);
	for (int r = 0; r < MEMBERS; r++)
		atomic_store(&all->done[r], 0);
	circle_begin(&h->c, others, part, NULL, 60);
	OK(slmpm_group_create(&h->group, h->c.ctx, h->c.peers, MEMBERS, TAG, PATIENCE));
	h->self.group = h->group;
	if (all->host_takes_part)
		serve(&h->self, h->c.ctx);
	while (atomic_load(&all->ready) < MEMBERS)
		usleep(1000);
}

static void host_end(struct host *h)
{
	struct slmpm_done done;

	while (all->host_takes_part && slmpm_cq_poll(h->self.cq, &done, 1) == 1)
		take(&h->self, &done);
	atomic_store(&all->over, 1);
	for (int i = 0; i < h->c.n; i++)
		if (h->c.pids[i] && h->c.peers[i].id)
			actor_tell(h->c.peers[i], 1);
	OK(slmpm_group_destroy(h->group));
	circle_end(&h->c);
}

static int64_t element(int rank, uint64_t k)
{
	return (int64_t)(k + 1) * (rank + 2);
}

static void fill(void)
{
	for (int r = 0; r < MEMBERS; r++) {
		memset(all->to[r], 0xee, sizeof(all->to[r]));
		for (uint64_t k = 0; k < BLOCKS; k++)
			all->from[r][OFFSET / 8 + k] = element(r, k);
	}
}

static struct slmpm_drive drive_of(uint32_t kind)
{
	return (struct slmpm_drive){
		.size = sizeof(struct slmpm_drive),
		.kind = kind,
		.type = SLMPM_INT64,
		.op = SLMPM_CALC_SUM,
		.root = ROOT,
		.from_space = 1,
		.from = OFFSET,
		.to_space = 2,
		.count = COUNT,
	};
}

static int64_t sum_of(uint64_t k, int ranks)
{
	int64_t sum = 0;

	for (int r = 0; r < ranks; r++)
		sum += element(r, k);
	return sum;
}

/* What element K of `to` is to be at RANK; -1: as it was. */
static int64_t wanted(uint32_t kind, int rank, uint64_t k)
{
	int block = (int)(k / COUNT);
	bool first = k < COUNT;

	switch (kind) {
	case SLMPM_COLL_BROADCAST: return first && rank != ROOT ? element(ROOT, k) : -1;
	case SLMPM_COLL_REDUCE: return first && rank == ROOT ? sum_of(k, MEMBERS) : -1;
	case SLMPM_COLL_ALLREDUCE: return first ? sum_of(k, MEMBERS) : -1;
	case SLMPM_COLL_SCATTER: return first ? element(ROOT, k + (uint64_t)rank * COUNT) : -1;
	case SLMPM_COLL_GATHER: return rank == ROOT ? element(block, k % COUNT) : -1;
	case SLMPM_COLL_ALLGATHER: return element(block, k % COUNT);
	case SLMPM_COLL_ALLTOALL: return element(block, k % COUNT + (uint64_t)rank * COUNT);
	case SLMPM_COLL_REDUCE_SCATTER:
		return first ? sum_of(k + (uint64_t)rank * COUNT, MEMBERS) : -1;
	case SLMPM_COLL_SCAN: return first ? sum_of(k, rank + 1) : -1;
	case SLMPM_COLL_EXSCAN: return first && rank ? sum_of(k, rank) : -1;
	default: return -1;
	}
}

static void check(uint32_t kind)
{
	int64_t old;

	memset(&old, 0xee, sizeof(old));
	for (int r = 0; r < MEMBERS; r++)
		for (uint64_t k = 0; k < BLOCKS; k++) {
			int64_t want = wanted(kind, r, k);

			CHECK(all->to[r][k] == (want < 0 ? old : want),
			      "kind %u, rank %d, element %llu: %lld, not %lld", kind, r,
			      (unsigned long long)k, (long long)all->to[r][k],
			      (long long)(want < 0 ? old : want));
		}
}

static const struct slmpm_how tries = {.size = sizeof(tries), .imm = IMM, .timeout_ms = PATIENCE};

static int drive(struct host *h, const struct slmpm_drive *d)
{
	return slmpm_group_drive(h->group, d, &tries, NULL);
}

/* Without a call of theirs they have them once they are over. */
static void check_completions(int n)
{
	for (int r = 0; r < MEMBERS; r++) {
		CHECK(atomic_load(&all->done[r]) == n, "rank %d has %d completions, not %d", r,
		      atomic_load(&all->done[r]), n);
		for (int k = 0; k < n && k < MANY; k++)
			EXPECT(atomic_load(&all->statuses[r][k]), 0);
	}
}

/* ---- each kind, several at once -------------------------------------------------------------- */

static int kinds(void *unused)
{
	struct host h;
	int n = 0;

	(void)unused;
	host_begin(&h, accelerate);
	for (uint32_t kind = SLMPM_COLL_BARRIER; kind <= SLMPM_COLL_EXSCAN; kind++, n++) {
		struct slmpm_drive d = drive_of(kind);

		fill();
		OK(drive(&h, &d));
		check(kind);
	}
	host_end(&h);
	check_completions(n);
	return 0;
}

/* Each adds to what that before it has left: the order shows. */
static int several(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	slmpm_req reqs[MANY];
	struct slmpm_done done;
	struct host h;
	int64_t times = 1;

	(void)unused;
	d.flags = SLMPM_DRIVE_IN_PLACE;
	host_begin(&h, accelerate);
	for (int r = 0; r < MEMBERS; r++)
		for (uint64_t k = 0; k < COUNT; k++)
			all->to[r][k] = (int64_t)k;
	for (int i = 0; i < MANY; i++)
		OK(slmpm_group_drive(h.group, &d, &tries, &reqs[i]));
	for (int i = 0; i < MANY; i++) {
		OK(slmpm_wait(&reqs[i], 1, &done, PATIENCE));
		EXPECT(done.status, 0);
		EXPECT(done.op, SLMPM_OP_COLLECTIVE);
		times *= MEMBERS;
	}
	for (int r = 0; r < MEMBERS; r++)
		for (uint64_t k = 0; k < COUNT; k++)
			CHECK(all->to[r][k] == times * (int64_t)k, "rank %d, element %llu: %lld", r,
			      (unsigned long long)k, (long long)all->to[r][k]);
	host_end(&h);
	check_completions(MANY);
	return 0;
}

/* ---- refused, and nothing has moved ---------------------------------------------------------- */

static void refuse(struct host *h, struct slmpm_drive d, int error, const char *word)
{
	fill();
	REFUSED(drive(h, &d), error, word);
	check(SLMPM_COLL_BARRIER);
}

static int refusals(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	struct slmpm_how queued = tries;
	struct slmpm_done done;
	struct host h;
	slmpm_cq cq;

	(void)unused;
	host_begin(&h, accelerate);
	d.to_space = 9;
	refuse(&h, d, SLMPM_ENOENT, "says: no space 9");
	d.to_space = 4; /* which the first has */
	refuse(&h, d, SLMPM_ENOENT, "says: no space 4");
	d.to_space = 3;
	refuse(&h, d, SLMPM_ELIMIT, "space 3 has 8 bytes, not 8000 from 0 on");
	d.to_space = 2;
	d.to = UINT64_MAX - 7;
	refuse(&h, d, SLMPM_ELIMIT, "space 2 has");
	d.to_space = 1;
	d.to = 0;
	refuse(&h, d, SLMPM_EINVAL, "overlap");
	d = drive_of(SLMPM_COLL_REDUCE);
	d.to_space = 4; /* the root alone needs it, and has none */
	OK(slmpm_cq_create(h.c.ctx, &cq));
	queued.cq = cq;
	OK(slmpm_group_drive(h.group, &d, &queued, NULL));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == -SLMPM_ENOENT && done.imm == ROOT, "%d, %u", done.status, done.imm);
	d.root = 0; /* who has it */
	OK(drive(&h, &d));
	d.root = MEMBERS;
	refuse(&h, d, SLMPM_EINVAL, "no root");
	d.root = 0;
	d.kind = 99;
	refuse(&h, d, SLMPM_EINVAL, "no kind 99");
	d.kind = SLMPM_COLL_REDUCE;
	d.flags = 2;
	refuse(&h, d, SLMPM_EINVAL, "flags");
	d.flags = 0;
	REFUSED(slmpm_group_drive(h.group, &d, &(struct slmpm_how){.size = sizeof(queued)}, NULL),
		SLMPM_EAGAIN, "members are to answer");
	REFUSED(slmpm_group_serve(h.group, &tries), SLMPM_ESTATE, "no member");
	host_end(&h);
	check_completions(1);
	return 0;
}

/* A connection is closed: by its end, or while one waits for it. */
static int closed(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	struct slmpm_done done;
	struct host h;
	slmpm_req req;

	(void)unused;
	host_begin(&h, accelerate);
	kill(h.c.pids[0], SIGSTOP);
	actor_await_state(h.c.pids[0], "T");
	fill();
	OK(slmpm_group_drive(h.group, &d, &tries, &req));
	REFUSED(slmpm_group_destroy(h.group), SLMPM_EBUSY, "under way");
	(void)slmpm_close(h.c.peers[0], 0);
	OK(slmpm_wait(&req, 1, &done, PATIENCE));
	CHECK(done.status == -SLMPM_ECLOSED && done.imm == 0, "%d, %u", done.status, done.imm);
	refuse(&h, d, SLMPM_ECLOSED, "rank 0");
	kill(h.c.pids[0], SIGKILL);
	EXPECT(circle_wait(&h.c, 0), -SIGKILL);
	h.c.pids[0] = 0;
	host_end(&h);
	return 0;
}

static int not_served(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	struct host h;

	(void)unused;
	all->unserved = 1;
	host_begin(&h, accelerate);
	refuse(&h, d, SLMPM_ESTATE, "rank 1 (");
	CHECK(strstr(slmpm_error_detail(), "slmpm_group_serve"), "%s", slmpm_error_detail());
	all->unserved = -1;
	host_end(&h);
	check_completions(0);
	return 0;
}

/* ---- who dies -------------------------------------------------------------------------------- */

/* Stopped before it is asked: it does not agree, and nothing has begun at the others. */
static int dies_asked(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	struct slmpm_how shortly = tries;
	struct slmpm_done done;
	slmpm_req req;
	struct host h;

	(void)unused;
	host_begin(&h, accelerate);
	kill(h.c.pids[2], SIGSTOP);
	actor_await_state(h.c.pids[2], "T");
	fill();
	shortly.timeout_ms = SOON;
	REFUSED(slmpm_group_drive(h.group, &d, &shortly, NULL), SLMPM_ETIMEOUT, "rank 2 (");
	CHECK(strstr(slmpm_error_detail(), "has not agreed, suspect") &&
		      strstr(slmpm_error_detail(), "slmpm_group_drive: "),
	      "%s", slmpm_error_detail());
	OK(slmpm_group_drive(h.group, &d, &tries, &req));
	kill(h.c.pids[2], SIGKILL);
	OK(slmpm_wait(&req, 1, &done, PATIENCE));
	CHECK(done.status == -SLMPM_EDEAD && done.imm == 2 &&
		      strstr(slmpm_error_detail(), "rank 2 ("),
	      "%d, %u: %s", done.status, done.imm, slmpm_error_detail());
	REFUSED(drive(&h, &d), SLMPM_EDEAD, "rank 2");
	check(SLMPM_COLL_BARRIER);
	EXPECT(circle_wait(&h.c, 2), -SIGKILL);
	host_end(&h);
	return 0;
}

/* Who goes on without one that has died waits until what it has agreed to is called off. */
static void go_on(slmpm_peer founder, int i, void *unused)
{
	struct member m = {.rank = i};

	(void)unused;
	OK(slmpm_group_join(&m.group, founder, TAG, PATIENCE));
	serve(&m, circle_own);
	if (i != 2) {
		circle_breaks(m.group, -SLMPM_EDEAD, 2);
		EXPECT(slmpm_group_shrink(m.group, PATIENCE), 0);
		EXPECT(circle_query(m.group).members, 2);
	}
	actor_hear(founder, 1);
	OK(slmpm_group_destroy(m.group));
}

static int shrinks_asked(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_BARRIER);
	struct slmpm_done done;
	slmpm_req req;
	struct host h;

	(void)unused;
	host_begin(&h, go_on);
	kill(h.c.pids[2], SIGSTOP);
	actor_await_state(h.c.pids[2], "T");
	OK(slmpm_group_drive(h.group, &d, &tries, &req));
	EXPECT(slmpm_wait(&req, 1, &done, SOON / 6), -SLMPM_ETIMEOUT); /* the others agree */
	kill(h.c.pids[2], SIGKILL);
	usleep((unsigned)SOON * 1000 / 6);
	OK(slmpm_wait(&req, 1, &done, PATIENCE));
	EXPECT(done.status, -SLMPM_EDEAD);
	EXPECT(circle_wait(&h.c, 2), -SIGKILL);
	host_end(&h);
	return 0;
}

/* A member that dies, or is late, once it has begun: the last one waits for the others, which a
 * large one does not let go. */
static int dies_begun(void *kills)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_BARRIER);
	struct slmpm_how shortly = tries;
	int tried = 0, status = 0;
	struct host h;

	host_begin(&h, accelerate);
	shortly.timeout_ms = kills ? PATIENCE : SOON;
	for (; !status; tried++) { /* until it is stopped in the midst */
		slmpm_req req;
		struct slmpm_done done;

		OK(slmpm_group_drive(h.group, &d, &shortly, &req));
		if (tried == 3)
			kill(h.c.pids[2], kills ? SIGKILL : SIGSTOP);
		OK(slmpm_wait(&req, 1, &done, PATIENCE));
		status = done.status;
		CHECK(!status || done.imm == 2, "culprit %u: %s", done.imm, slmpm_error_detail());
	}
	EXPECT(status, kills ? -SLMPM_EDEAD : -SLMPM_ETIMEOUT);
	atomic_store(&all->late, !kills && strstr(slmpm_error_detail(), "has not ended"));
	if (!kills)
		kill(h.c.pids[2], SIGKILL);
	EXPECT(circle_wait(&h.c, 2), -SIGKILL);
	host_end(&h);
	atomic_store(&all->late, false);
	return 0;
}

/* One computes and makes no progress: what the host cannot know of it the others do. */
static int late_unseen(void *unused)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	struct slmpm_how shortly = tries;
	slmpm_req reqs[MANY];
	struct host h;

	(void)unused;
	all->computes = true;
	shortly.timeout_ms = SOON;
	host_begin(&h, accelerate);
	while (!atomic_load(&all->late)) { /* until some are under way then */
		for (int i = 0; i < MANY; i++)
			OK(slmpm_group_drive(h.group, &d, &shortly, &reqs[i]));
		for (int i = 0; i < MANY; i++) {
			struct slmpm_done done;

			OK(slmpm_wait(&reqs[i], 1, &done, PATIENCE));
			if (done.status == 0)
				continue;
			CHECK(done.status == -SLMPM_ETIMEOUT && done.imm == MEMBERS - 1,
			      "%d, %u: %s", done.status, done.imm, slmpm_error_detail());
			atomic_store(&all->late, true);
		}
	}
	host_end(&h);
	atomic_store(&all->late, false);
	all->computes = false;
	return 0;
}

/* The host, another one than the group's of which it has its connections, dies when some have
 * agreed and one has not been able to. */
#define OTHER_TAG 6

static void die_as_host(slmpm_group known)
{
	struct slmpm_drive d = drive_of(SLMPM_COLL_ALLREDUCE);
	slmpm_peer peers[MEMBERS];
	struct slmpm_done done;
	slmpm_group group;
	slmpm_req req;

	for (int r = 0; r < MEMBERS; r++)
		OK(slmpm_group_peer(known, r, &peers[r], PATIENCE));
	OK(slmpm_group_create(&group, circle_own, peers, MEMBERS, OTHER_TAG, PATIENCE));
	while (atomic_load(&all->ready) < MEMBERS)
		usleep(1000);
	OK(slmpm_group_drive(group, &d, &tries, NULL));
	kill(all->pids[2], SIGSTOP);
	actor_await_state(all->pids[2], "T");
	OK(slmpm_group_drive(group, &d, &tries, &req));
	EXPECT(slmpm_wait(&req, 1, &done, SOON), -SLMPM_ETIMEOUT);
	raise(SIGKILL);
}

static void orphan(slmpm_peer founder, int i, void *unused)
{
	struct member m = {.rank = i};
	struct slmpm_done done;
	slmpm_group known;
	slmpm_peer host;

	(void)unused;
	all->pids[i] = getpid();
	OK(slmpm_group_join(&known, founder, TAG, PATIENCE));
	if (i == MEMBERS)
		die_as_host(known);
	OK(slmpm_group_peer(known, MEMBERS, &host, PATIENCE));
	OK(slmpm_group_join(&m.group, host, OTHER_TAG, PATIENCE));
	serve(&m, circle_own);
	for (int n = 0; n < 2; n++) {
		/* By TCP the question may be lost with the host that has sent it. */
		bool lost = all->apart && n && i == 2;
		int got = slmpm_cq_wait(m.cq, &done, 1, lost ? SOON : PATIENCE);

		if (lost && got != 1)
			break;
		EXPECT(got, 1);
		take(&m, &done);
		EXPECT(done.status, n ? -SLMPM_EDEAD : 0);
	}
	OK(slmpm_group_serve(m.group, NULL));
	REFUSED(slmpm_barrier(m.group, PATIENCE), SLMPM_EDEAD, "which drives it, has ended");
	OK(slmpm_group_destroy(m.group));
	actor_hear(founder, 1);
}

static int orphaned(void *unused)
{
	struct circle c = {.apart = all->apart ? UINT64_MAX : 0};
	slmpm_group group;

	(void)unused;
	atomic_store(&all->ready, 0);
	for (int r = 0; r < MEMBERS; r++)
		atomic_store(&all->done[r], 0);
	circle_begin(&c, MEMBERS + 1, orphan, NULL, 30);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MEMBERS + 1, TAG, PATIENCE));
	EXPECT(circle_wait(&c, MEMBERS), -SIGKILL);
	kill(c.pids[2], SIGCONT);
	for (int i = 0; i < MEMBERS; i++)
		actor_tell(c.peers[i], 1);
	circle_end(&c);
	for (int r = 0; r < MEMBERS; r++)
		CHECK(atomic_load(&all->done[r]) == 2 || (all->apart && r == 2),
		      "rank %d has %d completions", r, atomic_load(&all->done[r]));
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void each_way(int (*body)(void *), const char *what)
{
	static const char *const engines[] = {"thread", "none", "thread"};

	for (int way = ASLEEP; way <= WAITING; way++) {
		if (TEST_THREADS_ALONE && strcmp(engines[way], "thread") != 0)
			continue;
		all->way = (enum way)way;
		settings_set("SLMPM_ENGINE", engines[way]);
		for (int part = 0; part < 2; part++) {
			all->host_takes_part = part;
			settings_run(what, body, NULL);
		}
	}
	all->host_takes_part = false;
	settings_set("SLMPM_ENGINE", "none");
}

int main(void)
{
	static const int kill_it = 1;

	all = child_common(sizeof(*all));
	all->unserved = -1;
	each_way(kinds, "each kind");
	each_way(several, "several");
	if (TEST_THREADS_ALONE)
		return 0;
	all->way = WAITING;
	settings_run("refusals", refusals, NULL);
	settings_run("one does not serve", not_served, NULL);
	settings_run("one is closed", closed, NULL);
	settings_run("dies before it has agreed", dies_asked, NULL);
	settings_run("the others go on", shrinks_asked, NULL);
	settings_run("dies in the midst", dies_begun, &kill_it);
	settings_run("late in the midst", dies_begun, NULL);
	settings_run("late unseen", late_unseen, NULL);
	settings_run("the host dies", orphaned, NULL);
	all->apart = true;
	settings_run("apart, refusals", refusals, NULL);
	settings_run("apart, dies in the midst", dies_begun, &kill_it);
	settings_run("apart, late in the midst", dies_begun, NULL);
	settings_run("apart, late unseen", late_unseen, NULL);
	settings_run("apart, the host dies", orphaned, NULL);
	if (actor_slow() > 1) /* sanitizers: children of a process with threads may not come up */
		return 0;
	all->way = ASLEEP;
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("apart, each kind", kinds, NULL);
	all->host_takes_part = true;
	settings_run("apart, several", several, NULL);
	return 0;
}
