/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* timeout: 120 */
/* waits */
/*
 * A tree of 31 real processes: barriers, broadcasts, reductions along its links, several at once,
 * and while all applications sleep; messages too pass on through nodes that do. What else an
 * operation along a tree may not be.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm_overlay.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define NODES  31
#define COUNT  100
#define ROUNDS 4
#define NAP    300000 /* us */

static struct slmpm_network made(void)
{
	struct slmpm_network net = {.size = sizeof(net)};

	OK(slmpm_network_make(&net, SLMPM_NETWORK_TREE, NODES, NULL, 0));
	return net;
}

static slmpm_overlay laid(const struct crew *crew)
{
	const struct slmpm_network net = made();
	slmpm_overlay o;

	OK(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE));
	return o;
}

struct sums {
	int64_t from[COUNT], sum[COUNT], all[COUNT], news[COUNT];
};

static void start(slmpm_overlay o, uint32_t kind, const void *from, void *to, uint64_t cookie)
{
	const struct slmpm_coll c = {.size = sizeof(c),
				     .kind = kind,
				     .type = SLMPM_INT64,
				     .op = SLMPM_CALC_SUM,
				     .from = from,
				     .to = to,
				     .count = kind == SLMPM_COLL_BARRIER ? 0 : COUNT};

	OK(slmpm_overlay_start(o, &c, cookie, (slmpm_ctr){0}));
}

static void start_all(slmpm_overlay o, struct sums *s, int rank)
{
	for (int i = 0; i < COUNT; i++) {
		s->from[i] = i + rank * 3;
		s->all[i] = i - rank;
		s->news[i] = rank ? 0 : i * 11;
	}
	start(o, SLMPM_COLL_REDUCE, s->from, s->sum, 1);
	start(o, SLMPM_COLL_ALLREDUCE, SLMPM_IN_PLACE, s->all, 2);
	start(o, SLMPM_COLL_BROADCAST, s->news, s->news, 3);
	start(o, SLMPM_COLL_BARRIER, NULL, NULL, 4);
}

static void check_all(const struct sums *s, int rank)
{
	const int ranks = NODES * (NODES - 1) / 2;

	for (int i = 0; i < COUNT; i++) {
		CHECK(rank || s->sum[i] == NODES * i + 3 * ranks, "sum %d: %lld", i,
		      (long long)s->sum[i]);
		CHECK(s->all[i] == NODES * i - ranks, "sum of all %d: %lld", i,
		      (long long)s->all[i]);
		CHECK(s->news[i] == i * 11, "broadcast %d: %lld", i, (long long)s->news[i]);
	}
}

static void end_all(slmpm_overlay o, int timeout_ms)
{
	uint64_t cookie, ended = 0;

	for (int i = 0; i < 4; i++) {
		OK(slmpm_overlay_wait(o, &cookie, timeout_ms));
		ended |= 1u << cookie;
	}
	CHECK(ended == 0x1e, "ended: %llx", (unsigned long long)ended);
	REFUSED(slmpm_overlay_wait(o, &cookie, 0), SLMPM_ENOENT, "none");
}

static void reduce(const struct crew *crew, int rank)
{
	slmpm_overlay o = laid(crew);
	struct sums s;

	for (int k = 0; k < ROUNDS; k++) {
		start_all(o, &s, rank);
		end_all(o, PATIENCE);
		check_all(&s, rank);
	}
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* ---- asleep ---------------------------------------------------------------------------------- */

/* From one leaf to another, up to the root and down again. */
static void far(slmpm_overlay o, int rank, bool send)
{
	const uint32_t first = NODES / 2, last = NODES - 1;
	static char text[30000];
	struct slmpm_done done;
	static slmpm_req req;

	if (rank == (int)first && send) {
		memset(text, 7, sizeof(text));
		OK(slmpm_overlay_send(o, last, 9, text, sizeof(text), NULL, &req));
	} else if (rank == (int)first) {
		EXPECT(slmpm_test(&req, &done), 1);
	}
	if (rank == (int)last && !send) {
		EXPECT(slmpm_overlay_recv(o, first, 9, text, sizeof(text), NULL, 0), sizeof(text));
		for (size_t i = 0; i < sizeof(text); i++)
			CHECK(text[i] == 7, "byte %zu", i);
	}
}

/* What its first call finds has been done while all slept. */
static void asleep(const struct crew *crew, int rank)
{
	slmpm_overlay o = laid(crew);
	struct sums s;

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	start_all(o, &s, rank);
	far(o, rank, true);
	usleep((useconds_t)(NAP * actor_slow()) * (rank == NODES / 2 ? 3 : 2));
	check_all(&s, rank);
	far(o, rank, false);
	end_all(o, PATIENCE);
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* ---- what it may not be ---------------------------------------------------------------------- */

static void refused(const struct crew *crew, int rank)
{
	int64_t same = 0;
	const struct slmpm_combine combine = {.size = sizeof(combine)};
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	struct slmpm_network net = {.size = sizeof(net)};
	slmpm_overlay o;

	(void)rank;
	OK(slmpm_network_make(&net, SLMPM_NETWORK_TORUS, 2, NULL, 0));
	OK(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE));
	REFUSED(slmpm_overlay_start(o, &c, 0, (slmpm_ctr){0}), SLMPM_ENOTSUP, "no tree");
	OK(slmpm_overlay_close(o, PATIENCE));
	OK(slmpm_network_make(&net, SLMPM_NETWORK_TREE, 2, NULL, 0));
	OK(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE));
	c.kind = SLMPM_COLL_ALLTOALL;
	REFUSED(slmpm_overlay_start(o, &c, 0, (slmpm_ctr){0}), SLMPM_ENOTSUP, "operation");
	c.kind = SLMPM_COLL_REDUCE;
	c.combine = &combine;
	REFUSED(slmpm_overlay_start(o, &c, 0, (slmpm_ctr){0}), SLMPM_ENOTSUP, "own");
	c.combine = NULL;
	c.type = SLMPM_INT64;
	c.op = SLMPM_CALC_SUM;
	c.count = 1;
	c.from = c.to = &same;
	c.kind = SLMPM_COLL_ALLREDUCE;
	REFUSED(slmpm_overlay_start(o, &c, 0, (slmpm_ctr){0}), SLMPM_EINVAL, "overlap");
	c.root = 1;
	REFUSED(slmpm_overlay_start(o, &c, 0, (slmpm_ctr){0}), SLMPM_EINVAL, "root 1");
	OK(slmpm_overlay_close(o, PATIENCE));
}

static void play(const char *what, int n, crew_body *body)
{
	const struct crew crew = {.members = n, .groups = 1, .body = body};
	int64_t before = actor_now_ms();

	crew_run(&crew, 40);
	printf("%s: %lld ms\n", what, (long long)(actor_now_ms() - before));
	fflush(stdout);
}

int main(void)
{
	setenv("SLMPM_WAIT", "block", 1); /* there are more processes than processors */
	play("refused", 2, refused);
	play("31 nodes", NODES, reduce);
	setenv("SLMPM_ENGINE", "thread", 1);
	play("31 nodes asleep", NODES, asleep);
	return 0;
}
