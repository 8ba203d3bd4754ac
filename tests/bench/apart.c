/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long collectives of members that meet by messages take: "apart MEMBERS SAMPLES COLLECTIVE:BYTES..."
 * prints a line for each: the collective, the bytes, and microseconds from the instant at which all
 * members begin to that at which the last one is done, the median of the samples. Members are on
 * machines of one clock, as namespaces are; where slmpm_run says.
 */
#include <slmpm_group.h>
#include <slmpm_plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 8, TAG = 1, PATIENCE = 20000, WARM = 3, BYTES_MAX = 2 << 20, SAMPLES_MAX = 200 };

#define SOON 30000000 /* ns until all begin: longer than it takes them to know when that is */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	slmpm_perror(what);
	exit(1);
}

/* ---- a member -------------------------------------------------------------------------------- */

struct member {
	slmpm_group group;
	struct slmpm_group_info own;
	struct slmpm_coll coll;
};

/* All begin together: when. */
static int64_t meet(struct member *m)
{
	int64_t begin = now() + SOON;
	struct timespec until;

	check(slmpm_broadcast(m->group, &begin, 1, SLMPM_INT64, 0, PATIENCE), "slmpm_broadcast");
	until.tv_sec = begin / 1000000000;
	until.tv_nsec = begin % 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return begin;
}

/* Nanoseconds, by the last of them. */
static int64_t sample(struct member *m)
{
	int64_t begin = meet(m), took, last;

	check(slmpm_collective(m->group, &m->coll, PATIENCE), "slmpm_collective");
	took = now() - begin;
	check(slmpm_allreduce(m->group, &took, &last, 1, SLMPM_INT64, SLMPM_CALC_MAX, PATIENCE),
	      "slmpm_allreduce");
	return last;
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* "allreduce:8" */
static void measure(struct member *m, int samples, const char *what)
{
	static int64_t from[BYTES_MAX / 8 * MOST], to[BYTES_MAX / 8 * MOST];
	int64_t took[SAMPLES_MAX];
	const char *size = strchr(what, ':');
	uint32_t kind = 1;

	while (slmpm_plan_kind(kind) &&
	       (strncmp(slmpm_plan_kind(kind), what, (size_t)(size - what)) ||
		slmpm_plan_kind(kind)[size - what]))
		kind++;
	m->coll = (struct slmpm_coll){
		.size = sizeof(m->coll),
		.kind = kind,
		.type = kind == SLMPM_COLL_BARRIER ? 0 : SLMPM_INT64,
		.from = kind == SLMPM_COLL_BARRIER ? NULL : from,
		.to = kind == SLMPM_COLL_BARRIER ? NULL : to,
		.count = kind == SLMPM_COLL_BARRIER ? 0 : strtoull(size + 1, NULL, 10) / 8};
	if (kind == SLMPM_COLL_REDUCE || kind == SLMPM_COLL_ALLREDUCE)
		m->coll.op = SLMPM_CALC_SUM;
	for (int i = -WARM; i < samples; i++)
		took[i < 0 ? 0 : i] = sample(m);
	qsort(took, (size_t)samples, sizeof(*took), by_size);
	if (m->own.rank == 0)
		printf("%.*s %s %.1f %.1f %.1f\n", (int)(size - what), what, size + 1,
		       (double)took[samples / 2] / 1e3, (double)took[samples / 10] / 1e3,
		       (double)took[samples * 9 / 10] / 1e3);
	fflush(stdout);
}

static int member(int samples, char **what)
{
	struct member m = {.own = {.size = sizeof(m.own)}};
	slmpm_peer founder;

	check(slmpm_parent(&founder), "slmpm_parent");
	check(slmpm_group_join(&m.group, founder, TAG, PATIENCE), "slmpm_group_join");
	check(slmpm_group_query(m.group, &m.own), "slmpm_group_query");
	for (; *what; what++)
		measure(&m, samples, *what);
	check(slmpm_barrier(m.group, PATIENCE), "slmpm_barrier");
	return slmpm_group_destroy(m.group) < 0;
}

/* ---- who starts them ------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	slmpm_peer accels[MOST];
	slmpm_group group;
	int n, samples, failed = 0;

	n = argc > 3 ? atoi(argv[1]) : 0;
	samples = argc > 3 ? atoi(argv[2]) : 0;
	for (int i = 3; i < argc; i++)
		if (!strchr(argv[i], ':') ||
		    strtoull(strchr(argv[i], ':') + 1, NULL, 10) > BYTES_MAX)
			samples = 0;
	if (n < 0 || n > MOST || samples < 1 || samples > SAMPLES_MAX) {
		fprintf(stderr, "usage: apart MEMBERS SAMPLES COLLECTIVE:BYTES...\n");
		return 2;
	}
	if (n == 0)
		return member(samples, argv + 3);
	argv[1][0] = '0';
	argv[1][1] = '\0';
	for (int i = 0; i < n; i++)
		check(slmpm_spawn(&accels[i], argv[0], argv + 1, NULL), "slmpm_spawn");
	check(slmpm_group_create(&group, (slmpm_ctx){0}, accels, n, TAG, PATIENCE),
	      "slmpm_group_create");
	for (int i = 0; i < n; i++)
		failed |= slmpm_join(accels[i], NULL, -1) != 0;
	return failed;
}
