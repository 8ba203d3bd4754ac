/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trial of collectives: a few processes that are connected by TCP do each kind by the algorithm
 * that the settings force. Rank 0 says what, and takes the time.
 */
#include "apps/slmpm_info/collect.h"

#include <signal.h>
#include <slmpm_group.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define TAG     1
#define MEMBERS 4
#define ROUNDS  3
#define MOST    100 /* of a round */
#define WAIT_MS 30000
#define BYTES   ((uint64_t)COLLECT_LEAST << (COLLECT_SIZES - 1))

struct order {
	uint32_t kind, type; /* kind 0: it is over */
	uint64_t bytes, times;
};

struct collector {
	slmpm_group group;
	/* At rank 0, {0} itself: as members, and as what it has spawned. */
	slmpm_peer peer[MEMBERS], child[MEMBERS];
	unsigned char *from, *to;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A barrier behind each, or a root would be ahead of the others. */
static int collect_times(const struct collector *c, const struct order *o)
{
	const bool blocks = o->kind == SLMPM_COLL_ALLGATHER || o->kind == SLMPM_COLL_REDUCE_SCATTER;
	const uint64_t count = o->bytes / sizeof(uint64_t) / (blocks ? MEMBERS : 1);
	const void *from = o->kind == SLMPM_COLL_BROADCAST ? c->to : c->from;
	int rc = 0;

	for (uint64_t i = 0; i < o->times && rc >= 0; i++) {
		rc = slmpm_collect(c->group, o->kind, from, c->to, count, o->type, SLMPM_CALC_SUM,
				   0, WAIT_MS);
		if (rc >= 0)
			rc = slmpm_barrier(c->group, WAIT_MS);
	}
	return rc;
}

static int collector_open(struct collector *c)
{
	c->from = calloc(1, BYTES);
	c->to = calloc(1, BYTES);
	return c->from && c->to ? 0 : -SLMPM_ENOMEM;
}

static void collector_close(struct collector *c)
{
	(void)slmpm_group_destroy(c->group);
	free(c->from);
	free(c->to);
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

static int collect_say(const struct collector *c, const struct order *o)
{
	int rc = 0;

	for (int r = 1; r < MEMBERS && rc >= 0; r++)
		rc = slmpm_send(c->peer[r], 0, o, sizeof(*o), WAIT_MS);
	return rc;
}

/* Nanoseconds of each, or negative. */
static double collect_round(const struct collector *c, const struct order *o)
{
	int rc = collect_say(c, o);
	double began = seconds();

	rc = rc < 0 ? rc : collect_times(c, o);
	return rc < 0 ? rc : (seconds() - began) / (double)o->times * 1e9;
}

/* The least of a few: what disturbs makes it longer. */
static double collect_case(const struct collector *c, uint32_t kind, uint32_t type, uint64_t bytes,
			   double round_ns)
{
	struct order o = {.kind = kind, .type = type, .bytes = bytes, .times = 1};
	double least = collect_round(c, &o), ns = least;

	for (int i = 0; i < ROUNDS && ns >= 0; i++) {
		o.times = least * MOST < round_ns ? MOST : (uint64_t)(round_ns / (least + 1)) + 1;
		ns = collect_round(c, &o);
		least = ns < least ? ns : least;
	}
	return least;
}

static int collect_all(const struct collector *c, int ranked, int ms, FILE *out)
{
	static const uint32_t kinds[2][7] = {
		{SLMPM_COLL_BROADCAST, SLMPM_COLL_REDUCE, SLMPM_COLL_ALLREDUCE,
		 SLMPM_COLL_ALLGATHER, SLMPM_COLL_REDUCE_SCATTER, SLMPM_COLL_SCAN,
		 SLMPM_COLL_EXSCAN},
		{SLMPM_COLL_REDUCE, SLMPM_COLL_ALLREDUCE},
	};
	struct slmpm_group_info info = {.size = sizeof(info)};
	const double round_ns = ms * 1e6 / ((ranked ? 2 : 7) * COLLECT_SIZES * ROUNDS);

	if (collect_case(c, SLMPM_COLL_BARRIER, 0, 0, 0) < 0 ||
	    slmpm_group_query(c->group, &info) < 0 || !info.algorithm)
		return -SLMPM_ENOTSUP; /* it is not by messages */
	for (int k = 0; k < 7 && kinds[ranked][k]; k++)
		for (int i = 0; i < COLLECT_SIZES; i++) {
			const uint64_t bytes = (uint64_t)COLLECT_LEAST << i;
			double ns =
				collect_case(c, kinds[ranked][k],
					     ranked ? SLMPM_DOUBLE : SLMPM_INT64, bytes, round_ns);

			if (ns < 0)
				return (int)ns;
			fprintf(out, "%u %llu %.1f\n", COLLECT_CASE + kinds[ranked][k],
				(unsigned long long)bytes, ns);
		}
	return 0;
}

/* What is spawned shares memory with who has done it; by an address it is another machine's. */
static int collect_meet(struct collector *c, slmpm_listener door)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	char *const argv[] = {COLLECT_FOLLOW, NULL};
	const struct slmpm_spawn_options how = {.size = sizeof(how),
						.flags = SLMPM_SPAWN_DIE_WITH_HOST};
	int rc = slmpm_listener_query(door, &info);
	char url[sizeof(info.url) + sizeof(info.secret) + 1];

	snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	for (int r = 1; r < MEMBERS && rc >= 0; r++) {
		rc = slmpm_spawn(&c->child[r], "/proc/self/exe", argv, &how);
		if (rc >= 0)
			rc = slmpm_send(c->child[r], 0, url, strlen(url) + 1, WAIT_MS);
		if (rc >= 0)
			rc = slmpm_accept(door, &c->peer[r], WAIT_MS);
	}
	return rc;
}

static int collect_found(struct collector *c)
{
	slmpm_listener door;
	int rc = collector_open(c);

	if (rc >= 0)
		rc = slmpm_listen(&door, (slmpm_ctx){0}, "tcp://127.0.0.1:0");
	if (rc < 0)
		return rc;
	rc = collect_meet(c, door);
	if (rc >= 0)
		rc = slmpm_group_create(&c->group, (slmpm_ctx){0}, c->peer, MEMBERS, TAG, WAIT_MS);
	return rc;
}

int collect_drive(int ranked, int ms, FILE *out)
{
	const struct order over = {0};
	struct collector c = {0};
	int rc;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = collect_found(&c);
	rc = rc < 0 ? rc : collect_all(&c, ranked, ms, out);
	rc = rc < 0 ? rc : collect_say(&c, &over);
	if (rc < 0)
		return slmpm_perror("slmpm_info: collectives");
	for (int r = 1; r < MEMBERS; r++)
		(void)slmpm_join(c.child[r], NULL, WAIT_MS);
	collector_close(&c);
	return fflush(out) ? 1 : 0;
}

/* ---- the others ------------------------------------------------------------------------------ */

static int collect_join(struct collector *c, slmpm_peer *founder)
{
	slmpm_peer parent;
	char url[512];
	int rc = collector_open(c);
	int64_t n;

	if (rc >= 0)
		rc = slmpm_parent(&parent);
	if (rc < 0)
		return rc;
	n = slmpm_recv(parent, 0, url, sizeof(url), NULL, WAIT_MS);
	if (n < 0)
		return (int)n;
	url[sizeof(url) - 1] = 0;
	rc = slmpm_connect(founder, (slmpm_ctx){0}, url, WAIT_MS);
	return rc < 0 ? rc : slmpm_group_join(&c->group, *founder, TAG, WAIT_MS);
}

int collect_follow(void)
{
	struct collector c = {0};
	slmpm_peer founder;
	struct order o = {0};
	int64_t n = collect_join(&c, &founder);

	if (n < 0)
		return slmpm_perror("slmpm_info: a member");
	do {
		n = slmpm_recv(founder, 0, &o, sizeof(o), NULL, WAIT_MS);
		if (n == sizeof(o) && o.kind)
			n = collect_times(&c, &o) < 0 ? -1 : n;
	} while (n == sizeof(o) && o.kind);
	collector_close(&c);
	return n == sizeof(o) ? 0 : slmpm_perror("slmpm_info: a member");
}
