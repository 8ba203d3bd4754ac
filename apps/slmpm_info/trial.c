/* SPDX-License-Identifier: BSD-3-Clause */
/* One trial, the side that measures (trial.h). */
#include "apps/slmpm_info/trial.h"

#include <signal.h>
#include <slmpm.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "apps/slmpm_info/lead.h"
#include "apps/slmpm_info/pair.h"

#define ROUNDS 5
#define WINDOW 4
#define COUNT  4096 /* in a round, at most */

struct driver {
	struct lead pair;
	FILE *out;
	uint64_t round_ns;
	bool fetches;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- messages ------------------------------------------------------------------------------- */

static int send_one(struct driver *d, uint64_t size, uint32_t hint, slmpm_req *req)
{
	const struct slmpm_how how = {
		.size = sizeof(how),
		.flags = hint | SLMPM_STRICT,
		.timeout_ms = PAIR_PATIENCE,
	};
	const struct slmpm_iov piece = {d->pair.from, size};

	return slmpm_sendv(d->pair.peer, PAIR_DATA, &piece, 1, &how, req);
}

static int end_one(slmpm_req *req)
{
	struct slmpm_done done = {.status = 0};
	int rc = req->id ? slmpm_wait(req, 1, &done, PAIR_PATIENCE) : 0;

	return rc < 0 ? rc : done.status;
}

/* Several on their way at once. */
static int send_stream(struct driver *d, uint64_t size, uint32_t count, uint32_t hint)
{
	slmpm_req window[WINDOW] = {{0}};
	int rc = lead_order(&d->pair, size, count, 0);

	for (uint32_t i = 0; i < count && rc >= 0; i++) {
		rc = end_one(&window[i % WINDOW]);
		if (rc >= 0)
			rc = send_one(d, size, hint, &window[i % WINDOW]);
	}
	for (uint32_t i = 0; i < WINDOW && rc >= 0; i++)
		rc = end_one(&window[i]);
	return rc < 0 ? rc : lead_answer(&d->pair);
}

static int send_each(struct driver *d, uint64_t size, uint32_t count, uint32_t hint, bool touch)
{
	int rc = lead_order(&d->pair, size, count, PAIR_EACH | (touch ? PAIR_TOUCH : 0));

	for (uint32_t i = 0; i < count && rc >= 0; i++) {
		if (touch)
			pair_write(d->pair.from, size);
		rc = send_one(d, size, hint, NULL);
		if (rc >= 0)
			rc = lead_answer(&d->pair);
	}
	return rc;
}

/* Can it fetch at all? What it was to receive it gets in any case. */
static int try_fetch(struct driver *d)
{
	int rc = lead_order(&d->pair, TRIAL_LEAST, 1, 0);

	if (rc >= 0)
		rc = send_one(d, TRIAL_LEAST, SLMPM_VIA(SLMPM_BY_RGET), NULL);
	d->fetches = rc >= 0;
	if (rc == -SLMPM_ENOTSUP)
		rc = send_one(d, TRIAL_LEAST, SLMPM_VIA(SLMPM_BY_SMT), NULL);
	return rc < 0 ? rc : lead_answer(&d->pair);
}

/* ---- puts ----------------------------------------------------------------------------------- */

static int put_one(struct driver *d, uint64_t size, uint32_t flags)
{
	const struct slmpm_how how = {
		.size = sizeof(how),
		.flags = flags,
		.timeout_ms = PAIR_PATIENCE,
	};

	return slmpm_put(d->pair.there, 0, d->pair.from, size, flags ? &how : NULL, NULL);
}

/* Who has so little time does not wait for another's engine. */
static int put_alone(struct driver *d, uint64_t size)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 99};

	return slmpm_put(d->pair.there, 0, d->pair.from, size, &how, NULL);
}

/* Left to the engine: the time until the call returns goes to *HANDED. */
static int put_handed(struct driver *d, uint64_t size, uint64_t *handed)
{
	uint64_t began = now_ns();
	slmpm_req req;
	int rc = slmpm_put(d->pair.there, 0, d->pair.from, size, NULL, &req);

	*handed += now_ns() - began;
	return rc < 0 ? rc : end_one(&req);
}

static int put_as(struct driver *d, enum trial_of what, uint64_t size, uint64_t *handed)
{
	switch (what) {
	case TRIAL_COPY: return put_one(d, size, SLMPM_VIA(SLMPM_BY_PUT) | SLMPM_STRICT);
	case TRIAL_SHARED:
	case TRIAL_ASKED: return put_one(d, size, 0);
	case TRIAL_NOT_ASKED: return put_alone(d, size);
	case TRIAL_REQUEST:
		return put_one(d, size, SLMPM_VIA(SLMPM_BY_REQUEST) | SLMPM_STRICT | SLMPM_REMOTE);
	default: return put_handed(d, size, handed);
	}
}

/* ---- a case --------------------------------------------------------------------------------- */

/* COUNT of them: nanoseconds of each, or negative. */
static double run_case(struct driver *d, enum trial_of what, uint64_t size, uint32_t count)
{
	const uint32_t smt = SLMPM_VIA(SLMPM_BY_SMT), rget = SLMPM_VIA(SLMPM_BY_RGET);
	uint64_t began = now_ns(), handed = 0;
	int rc = 0;

	switch (what) {
	case TRIAL_SMT: rc = send_each(d, size, count, smt, false); break;
	case TRIAL_RGET: rc = send_each(d, size, count, rget, false); break;
	case TRIAL_SMT_TOUCHED: rc = send_each(d, size, count, smt, true); break;
	case TRIAL_RGET_TOUCHED: rc = send_each(d, size, count, rget, true); break;
	case TRIAL_SMT_STREAM: rc = send_stream(d, size, count, smt); break;
	case TRIAL_RGET_STREAM: rc = send_stream(d, size, count, rget); break;
	default:
		for (uint32_t i = 0; i < count && rc >= 0; i++)
			rc = put_as(d, what, size, &handed);
	}
	if (rc < 0)
		return rc;
	return (double)(what == TRIAL_HANDED ? handed : now_ns() - began) / count;
}

static bool has_case(const struct driver *d, enum trial_kind kind, enum trial_of what,
		     uint64_t size)
{
	switch (what) {
	case TRIAL_RGET:
	case TRIAL_RGET_STREAM:
	case TRIAL_RGET_TOUCHED: return kind == TRIAL_WAYS && d->fetches;
	case TRIAL_COPY: return kind != TRIAL_REQUESTS && kind != TRIAL_ASKING && d->pair.mapped;
	case TRIAL_ASKED:
	case TRIAL_NOT_ASKED: return kind == TRIAL_ASKING && d->pair.mapped;
	case TRIAL_SHARED:
		return kind == TRIAL_WAYS && d->pair.mapped && size >= TRIAL_SHARED_LEAST;
	case TRIAL_ENGINE:
	case TRIAL_HANDED: return kind == TRIAL_WITH_ENGINE && d->pair.mapped;
	case TRIAL_REQUEST: return kind == TRIAL_WAYS || kind == TRIAL_REQUESTS;
	case TRIAL_SMT:
	case TRIAL_SMT_STREAM: return kind == TRIAL_WAYS || kind == TRIAL_SOCKETS;
	default: return kind == TRIAL_WAYS;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* All cases in turns, so that what disturbs one disturbs the others, too; of each the median. */
static int measure_size(struct driver *d, enum trial_kind kind, uint64_t size)
{
	double took[TRIAL_CASES][ROUNDS];
	uint32_t count[TRIAL_CASES];

	for (int round = -1; round < ROUNDS; round++) {
		for (int c = 0; c < TRIAL_CASES; c++) {
			double ns;

			if (!has_case(d, kind, (enum trial_of)c, size))
				continue;
			ns = run_case(d, (enum trial_of)c, size, round < 0 ? 3 : count[c]);
			if (ns < 0)
				return (int)ns;
			if (round >= 0)
				took[c][round] = ns;
			else
				count[c] = ns * COUNT < (double)d->round_ns ?
						   COUNT :
					   ns * 2 > (double)d->round_ns ?
						   2 :
						   (uint32_t)((double)d->round_ns / ns);
		}
	}
	for (int c = 0; c < TRIAL_CASES; c++) {
		if (!has_case(d, kind, (enum trial_of)c, size))
			continue;
		qsort(took[c], ROUNDS, sizeof(double), compare);
		fprintf(d->out, "%d %llu %.1f\n", c, (unsigned long long)size, took[c][ROUNDS / 2]);
	}
	return 0;
}

/* ---- the ring ------------------------------------------------------------------------------- */

static uint64_t segment_size(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};

	for (int i = 0; slmpm_setting_at(i, &s) >= 0; i++)
		if (!strcmp(s.name, "SEGMENT_SIZE"))
			return strtoull(s.value, NULL, 10);
	return 0;
}

/* The reader keeps up: never more than a few KiB are really unread. */
static int measure_ring(struct driver *d)
{
	double sum = 0, most = 0;
	struct slmpm_stats s;
	uint64_t begun = 0;
	int n = 0, inspections = 0, rc = 0;

	do {
		rc = lead_order(&d->pair, 1024, 16, 0);
		for (int i = 0; i < 16 && rc >= 0; i++)
			rc = send_one(d, 1024, SLMPM_VIA(SLMPM_BY_SMT), NULL);
		if (rc >= 0)
			rc = lead_answer(&d->pair);
		if (rc >= 0)
			rc = slmpm_peer_stats(d->pair.peer, &s, sizeof(s));
		if (rc < 0)
			return rc;
		if (!n++)
			begun = s.out_produced;
		if (s.out_produced - begun > s.out_segments) { /* from the first lap on */
			double seen = 100.0 * (double)(s.out_produced - s.out_consumed) /
				      (double)s.out_segments;

			most = seen > most ? seen : most;
			sum += seen;
			inspections++;
		}
	} while (s.out_produced - begun < 5 * s.out_segments && n < 100000);
	fprintf(d->out, "%d 0 %.1f\n%d 0 %.1f\n%d 0 %llu\n", TRIAL_RING_MOST, most, TRIAL_RING_MEAN,
		inspections ? sum / inspections : 0, TRIAL_RING_BYTES,
		(unsigned long long)(s.out_segments * segment_size()));
	return 0;
}

/* ---- the pair ------------------------------------------------------------------------------- */

static int measure_all(struct driver *d, enum trial_kind kind, int ms)
{
	int rc = try_fetch(d), cases = 0;
	uint64_t size = trial_least(kind);

	for (int c = 0; c < TRIAL_CASES; c++)
		cases += has_case(d, kind, (enum trial_of)c, TRIAL_MOST);
	d->round_ns = (uint64_t)ms * 1000000 / (uint64_t)(TRIAL_SIZES * (ROUNDS + 1) * (cases + 1));
	if (rc >= 0 && kind == TRIAL_WAYS)
		rc = measure_ring(d);
	for (int i = 0; i < TRIAL_SIZES && rc >= 0; i++, size *= 2)
		rc = measure_size(d, kind, size);
	return rc;
}

int trial_drive(enum trial_kind kind, const int cpu[2], int ms, FILE *out)
{
	/* Who waits for nothing but the engine's end leaves the CPU to the engine. */
	char *const asleep[] = {"SLMPM_WAIT=block", NULL};
	char *const engine[] = {"SLMPM_ENGINE=thread", NULL};
	char *const *there = kind == TRIAL_WITH_ENGINE ? asleep :
			     kind == TRIAL_ASKING      ? engine :
							 NULL;
	struct driver d = {.out = out};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (kind != TRIAL_WITH_ENGINE) /* its thread is to have another CPU */
		pair_pin(cpu[0]);
	if (lead_begin(&d.pair, cpu[1], there) < 0 || measure_all(&d, kind, ms) < 0)
		return slmpm_perror("slmpm_info: trial");
	lead_end(&d.pair);
	return fflush(out) ? 1 : 0;
}
