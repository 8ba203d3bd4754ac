/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of offloaded collective operations and of a large group: samples, and their bars. */
#include <slmpm_group.h>

#include "tests/bench/work.h"

/* ---- samples --------------------------------------------------------------------------------- */

/* The same fast path for both. */
static bool take_short(uint32_t kind, bool first, struct figures *f)
{
	double fast;

	if (!(first ? coll_chained(kind, &f[0].ours) && coll_started(kind, &f[1].ours) &&
			      coll_fast(kind, &fast) :
		      coll_fast(kind, &fast) && coll_started(kind, &f[1].ours) &&
			      coll_chained(kind, &f[0].ours)))
		return false;
	f[0].against = f[1].against = fast;
	return true;
}

static bool take_barrier(bool first, struct figures *f)
{
	return take_short(SLMPM_COLL_BARRIER, first, f);
}

static bool take_allreduce(bool first, struct figures *f)
{
	return take_short(SLMPM_COLL_ALLREDUCE, first, f);
}

static bool take_coll_beside(bool first, struct figures *f)
{
	(void)first; /* they take turns within a sample */
	if (!coll_beside(&f[0], &f[2]))
		return false;
	f[1] = f[0];
	return true;
}

static bool take_computing(bool first, struct figures *f)
{
	return coll_computing(!first, first ? &f[1].ours : &f[1].against,
			      first ? &f[0].ours : &f[0].against) &&
	       coll_computing(first, first ? &f[1].against : &f[1].ours,
			      first ? &f[0].against : &f[0].ours);
}

static bool take_forming(bool first, struct figures *f)
{
	(void)first;
	return forming(&f[0].ours, &f[1].ours);
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define US  1e-3
#define MS  1e-6
#define KIB (1.0 / 1024)

static const struct row barrier_rows[] = {
	{"2 offloaded, barrier, by the engines", "2.0", "the call", "ns", RATIO, false, 2.0, 1},
	{"the same, started and waited for", "2.0", "the call", "ns", RATIO, false, 2.0, 1}};
static const struct row allreduce_rows[] = {{"2 offloaded, allreduce of 8 B, by the engines", "2.0",
					     "the call", "ns", RATIO, false, 2.0, 1},
					    {"the same, started and waited for", "2.0", "the call",
					     "ns", RATIO, false, 2.0, 1}};
static const struct row coll_beside_rows[] = {
	{"2 offloaded, allreduce of 1 MiB: time kept", "0.95", "", "of 1", ITSELF, true, 0.95, 1},
	{"over a computation beside a bare sum", "0.95", "beside that", "of 1", RATIO, true, 0.95,
	 1},
	{"its end", "1.3", "alone", "us", RATIO, false, 1.3, US}};
static const struct row computing_rows[] = {
	{"2 offloaded, allreduce of 8 B, all compute: p99", "0.5", "calling progress", "us", RATIO,
	 false, 0.5, US},
	{"median", "", "calling progress", "us", RATIO, false, 0, US}};
static const struct row forming_rows[] = {
	{"group of 64: to the end of the first barrier and alltoall", "60 ms", "", "ms", ITSELF,
	 false, 60, MS},
	{"memory of each", "320 KiB", "", "KiB", ITSELF, false, 320, KIB}};

#define GROUP(name, take, rows)                                                                    \
	{                                                                                          \
		name, take, rows, (int)(sizeof(rows) / sizeof *(rows))                             \
	}

const struct group groups[] = {
	GROUP("2 offload, barrier", take_barrier, barrier_rows),
	GROUP("2 offload, allreduce", take_allreduce, allreduce_rows),
	GROUP("2 offload, beside", take_coll_beside, coll_beside_rows),
	GROUP("2 offload, computing", take_computing, computing_rows),
	GROUP("64 group", take_forming, forming_rows),
};
const int group_count = sizeof groups / sizeof *groups;
