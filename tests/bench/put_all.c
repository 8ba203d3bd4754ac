/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One put to many in each of its forms, and a put to each: "put_all target URL", and "put_all origin
 * URL TARGETS PAIRS WHERE" prints Markdown. WHERE is "here", or "links": then put_all is held
 * against the puts, too. put_all.sh starts them.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slmpm_deposit.h>

#include "tests/bench/plain.h"
#include "tests/bench/stats.h"

enum { TARGETS = 64, PAIRS = 240, LOOKS = 12, PATIENCE_MS = 20000, SPACE = 1, TAG = 1 };

#define ROOM      (UINT64_C(16) << 20)
#define SAMPLE_NS 2e6 /* a sample is of so many puts that it takes as long */
#define WARM_NS   1e8 /* of puts before the first, */
#define WARM      300 /* and so many at most */
#define CELL_NS   8e9 /* so long a row that is undecided gets more pairs */

static slmpm_group group;
static slmpm_peer peer[TARGETS];
static slmpm_rmem rmem[TARGETS];
static unsigned char *from;
static int targets;

/* ---- both sides ------------------------------------------------------------------------------ */

static double now_ns(void)
{
	return now() * 1e9;
}

/* ---- targets --------------------------------------------------------------------------------- */

static slmpm_peer connect_to(const char *url)
{
	double until = now_ns() + PATIENCE_MS * 1e6;
	slmpm_peer p;
	int rc;

	while ((rc = slmpm_connect(&p, (slmpm_ctx){0}, url, PATIENCE_MS)) < 0 && now_ns() < until)
		nap();
	ok(rc, "slmpm_connect");
	return p;
}

/* Serves until the origin has done. */
static void target(const char *url)
{
	slmpm_peer origin = connect_to(url);
	slmpm_mem mem;
	void *base;
	char byte;

	ok(slmpm_group_join(&group, origin, TAG, PATIENCE_MS), "slmpm_group_join");
	ok(slmpm_mem_alloc((slmpm_ctx){0}, ROOM, SLMPM_WRITE, &mem, &base), "slmpm_mem_alloc");
	ok(slmpm_group_space(group, SPACE, base, ROOM), "slmpm_group_space");
	ok(slmpm_mem_share(mem, origin, SLMPM_WRITE, PATIENCE_MS), "slmpm_mem_share");
	ok(slmpm_barrier(group, PATIENCE_MS), "slmpm_barrier");
	(void)slmpm_recv(origin, 0, &byte, 1, NULL, -1);
}

/* ---- ways ------------------------------------------------------------------------------------ */

#define PUTS UINT32_MAX /* no flags: a put to each */

static const struct way {
	const char *name;
	uint32_t flags;
} ways[] = {
	{"broadcast, line", SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE},
	{"broadcast, direct", SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_DIRECT},
	{"forward, line", SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE},
	{"forward, direct", SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_DIRECT},
};
enum { FORCED = sizeof ways / sizeof *ways };

static const struct way automatic = {"automatic", 0}, puts_to_each = {"puts", PUTS};

static void put_to_each(int n, size_t len)
{
	const struct slmpm_how how = {.size = sizeof how, .flags = SLMPM_REMOTE};
	slmpm_req req[TARGETS];
	struct slmpm_done done;

	for (int i = 0; i < n; i++)
		ok(slmpm_put(rmem[i], 0, from, len, &how, &req[i]), "slmpm_put");
	for (int i = 0; i < n; i++) {
		ok(slmpm_wait(&req[i], 1, &done, PATIENCE_MS), "slmpm_wait");
		ok(done.status, "a put");
	}
}

static void put_once(const struct way *w, int n, size_t len)
{
	const struct slmpm_how how = {.size = sizeof how, .timeout_ms = PATIENCE_MS};
	int32_t rank[TARGETS];
	struct slmpm_put_spec put = {.size = sizeof put,
				     .flags = w->flags,
				     .space = SPACE,
				     .len = len,
				     .from = from,
				     .rank = rank,
				     .count = n};

	if (w->flags == PUTS) {
		put_to_each(n, len);
		return;
	}
	for (int i = 0; i < n; i++)
		rank[i] = i + 1;
	ok(slmpm_put_all(group, &put, &how, NULL), "slmpm_put_all");
}

/* Nanoseconds of one of COUNT. */
static double sample(const struct way *w, int n, size_t len, int count)
{
	double begin = now_ns();

	for (int i = 0; i < count; i++)
		put_once(w, n, len);
	return (now_ns() - begin) / count;
}

static int count_for(int n, size_t len)
{
	double took = sample(&automatic, n, len, 3);

	return took < SAMPLE_NS ? (int)(SAMPLE_NS / took) + 1 : 1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct pairs {
	double ours[PAIRS], other[PAIRS];
};

static const char *verdict(struct estimate e, double bar)
{
	return e.high <= bar ? "holds" : e.low > bar ? "does not hold" : "undecided";
}

static void take_pairs(struct pairs *p, const struct way *a, const struct way *b, int n, size_t len,
		       int first, int last, int count)
{
	for (int i = first; i < last; i++) {
		if (i & 1)
			p->other[i] = sample(b, n, len, count);
		p->ours[i] = sample(a, n, len, count);
		if (!(i & 1))
			p->other[i] = sample(b, n, len, count);
	}
}

/* How many: twice as many as long as they decide nothing, and each look at them is a chance to be
 * wrong. Of two routes that cost the same one put varies by half. */
static int take_enough(struct pairs *p, const struct way *a, const struct way *b, int n, size_t len,
		       int pairs, double bar)
{
	const double until = now_ns() + CELL_NS;
	const int count = count_for(n, len);
	struct estimate e;
	int taken = 0;

	do {
		take_pairs(p, a, b, n, len, taken, pairs, count);
		taken = pairs;
		pairs *= 2;
		e = ratio_surely(p->ours, p->other, taken);
	} while (pairs <= PAIRS && now_ns() < until && e.low <= bar && e.high > bar);
	return taken;
}

static void print_size(size_t len)
{
	if (len >> 20)
		printf("%zu MiB", len >> 20);
	else if (len >> 10)
		printf("%zu KiB", len >> 10);
	else
		printf("%zu B", len);
}

static void print_row(const struct pairs *p, const char *name, int n, size_t len, int pairs,
		      double bar)
{
	struct estimate e = ratio(p->ours, p->other, pairs);

	printf("| %d targets, ", n);
	print_size(len);
	printf(" | ≤ %.2f | %.1f us | %s: %.1f us | %.3f (%.3f to %.3f), %d pairs | %s |\n", bar,
	       median(p->ours, pairs) / 1e3, name, median(p->other, pairs) / 1e3, e.mid, e.low,
	       e.high, pairs, verdict(e, bar));
	fflush(stdout);
}

/* The best of the forced ones, by a few samples in turns. */
static const struct way *best_of(int n, size_t len)
{
	double took[FORCED][LOOKS], least = 0;
	const struct way *best = NULL;
	int count = count_for(n, len);

	for (int k = 0; k < LOOKS; k++)
		for (int j = 0; j < FORCED; j++) {
			int i = k & 1 ? FORCED - 1 - j : j; /* what went before tells on it */

			took[i][k] = sample(&ways[i], n, len, count);
		}
	for (int i = 0; i < FORCED; i++) {
		double m = median(took[i], LOOKS);

		if (best && m >= least)
			continue;
		least = m;
		best = &ways[i];
	}
	return best;
}

static void warm(int n, size_t len)
{
	double until = now_ns() + WARM_NS;

	for (int i = 0; i < WARM && now_ns() < until; i++)
		put_once(&automatic, n, len);
}

static void choice_row(int n, size_t len, int pairs)
{
	static struct pairs p;
	const struct way *best;

	warm(n, len);
	best = best_of(n, len);
	pairs = take_enough(&p, &automatic, best, n, len, pairs, 1.05);
	print_row(&p, best->name, n, len, pairs, 1.05);
}

static void links_row(int pairs)
{
	static struct pairs p;

	put_to_each(targets, ROOM);
	take_pairs(&p, &automatic, &puts_to_each, targets, ROOM, 0, pairs, 1);
	print_row(&p, "puts", targets, ROOM, pairs, 0.36);
}

static void rows(int pairs, bool links)
{
	static const size_t sizes[] = {8, 4096, 65536, UINT64_C(1) << 20, ROOM};

	printf("| put_all %s | bar | automatic | against | ratio | |\n"
	       "| --- | --- | --: | --: | --: | --- |\n",
	       links ? "over links of 1 Gbit/s" : "on one machine");
	if (links)
		links_row(pairs);
	for (int n = links ? targets : 2; n <= targets; n = n == 2 ? 3 : n * 2 + 1)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			choice_row(n, sizes[i], pairs);
}

/* ---- origin ---------------------------------------------------------------------------------- */

static void gather(const char *url)
{
	slmpm_peer members[TARGETS + 1] = {{0}};
	slmpm_listener listener;

	ok(slmpm_listen(&listener, (slmpm_ctx){0}, url), "slmpm_listen");
	for (int i = 0; i < targets; i++) {
		ok(slmpm_accept(listener, &peer[i], PATIENCE_MS), "slmpm_accept");
		members[i + 1] = peer[i];
	}
	ok(slmpm_group_create(&group, (slmpm_ctx){0}, members, targets + 1, TAG, PATIENCE_MS),
	   "slmpm_group_create");
	for (int i = 0; i < targets; i++)
		ok(slmpm_mem_accept(peer[i], &rmem[i], PATIENCE_MS), "slmpm_mem_accept");
	ok(slmpm_barrier(group, PATIENCE_MS), "slmpm_barrier");
}

static int origin(const char *url, int pairs, bool links)
{
	from = malloc(ROOM);
	if (!from)
		return 1;
	memset(from, 1, ROOM);
	gather(url);
	rows(pairs, links);
	for (int i = 0; i < targets; i++)
		(void)slmpm_send(peer[i], 0, "", 1, PATIENCE_MS);
	return 0;
}

int main(int argc, char **argv)
{
	int pairs = argc > 4 ? atoi(argv[4]) : 0;

	if (argc == 3 && !strcmp(argv[1], "target")) {
		target(argv[2]);
		return 0;
	}
	targets = argc > 3 ? atoi(argv[3]) : 0;
	if (argc != 6 || strcmp(argv[1], "origin") || targets < 1 || targets > TARGETS ||
	    pairs < 1 || pairs > PAIRS) {
		fprintf(stderr,
			"usage: %s origin URL TARGETS PAIRS here|links\n"
			"       %s target URL\n",
			argv[0], argv[0]);
		return 2;
	}
	return origin(argv[2], pairs, !strcmp(argv[5], "links"));
}
