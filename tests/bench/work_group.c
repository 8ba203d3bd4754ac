/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of work queues: how a sample of each is taken, and its bar. */
#include <stdio.h>
#include <string.h>

#include "tests/bench/work.h"

/* ---- samples --------------------------------------------------------------------------------- */

/* FIRST: ours goes first, where two follow each other. */
static bool take_chain(bool first, struct figures *f)
{
	(void)first;
	return chain_inline(&f[0].ours);
}

static bool take_thread(bool first, struct figures *f)
{
	(void)first;
	return chain_by_thread(&f[0].ours, &f[1].ours);
}

static bool take_arming(bool first, struct figures *f)
{
	(void)first;
	return arming(&f[0].ours);
}

static bool take_hop(bool first, struct figures *f)
{
	(void)first; /* they take turns within a sample */
	if (!perftest_pair("wq_hop", "-n 12800", "SLMPM_WAIT=spin SLMPM_ENGINE=none", &f[0]))
		return false;
	f[1] = f[0];
	return true;
}

/* A round trip is a hop by hand and one by the queue. Where the engine's thread runs decides what
 * both take; 1.15 of a hop are 1.075 of two. */
static bool take_sleeping_hop(bool first, struct figures *f)
{
	struct figures with, without;

	if (!(first ? perftest_asleep("thread", &with) && perftest_asleep("none", &without) :
		      perftest_asleep("none", &without) && perftest_asleep("thread", &with)))
		return false;
	f[0].against = 2 * without.against;
	f[0].ours = with.ours + with.against;
	return true;
}

static bool better_by_hand(double *ns)
{
	double asleep;

	if (!ring_hop(RING_YIELDING, ns) || !ring_hop(RING_ASLEEP, &asleep))
		return false;
	if (asleep < *ns)
		*ns = asleep;
	return true;
}

static bool take_ring(bool first, struct figures *f)
{
	double bare;

	if (!(first ? ring_hop(RING_BY_QUEUES, &f[0].ours) && bare_ring(&bare) &&
			      better_by_hand(&f[0].against) :
		      better_by_hand(&f[0].against) && bare_ring(&bare) &&
			      ring_hop(RING_BY_QUEUES, &f[0].ours)))
		return false;
	f[1] = (struct figures){bare, f[0].against};
	f[2] = (struct figures){f[0].ours, bare};
	return true;
}

static bool take_spinning_begin(bool first, struct figures *f)
{
	double hop;

	if (!(first ? beginning("spin", &f[0].ours, &f[1].ours) && bare_hop(&hop) :
		      bare_hop(&hop) && beginning("spin", &f[0].ours, &f[1].ours)))
		return false;
	f[0].against = 3 * hop;
	return true;
}

static bool take_sleeping_begin(bool first, struct figures *f)
{
	return first ? beginning("block", &f[0].ours, &f[1].ours) && bare_wake(&f[0].against) :
		       bare_wake(&f[0].against) && beginning("block", &f[0].ours, &f[1].ours);
}

#define FORWARD_BYTES (UINT64_C(64) << 20)
#define FORWARD_PIECE (UINT64_C(64) << 10)

static bool bare_rate(double *rate)
{
	double ns;

	if (!bare_forward(FORWARD_BYTES, FORWARD_PIECE, &ns))
		return false;
	*rate = (double)FORWARD_BYTES / ns * 1e9;
	return true;
}

static bool take_pipe(bool first, struct figures *f)
{
	bool well = first || bare_rate(&f[1].against);

	well = well && perftest_pipe(FORWARD_PIECE, FORWARD_BYTES / FORWARD_PIECE, &f[0]);
	f[1].ours = f[0].ours;
	return well && (!first || bare_rate(&f[1].against));
}

static bool take_links(bool first, struct figures *f)
{
	static const char *const keys[] = {"pipe", "bare"};
	double rates[2];
	char line[512];

	snprintf(line, sizeof line, "timeout 60 tests/bench/work_links.sh '%s' %s", links_path,
		 first ? "" : "bare-first");
	if (!answer_of(line, keys, rates, 2))
		return false;
	f[0] = (struct figures){rates[0], rates[1]};
	return true;
}

static bool take_offload(bool first, struct figures *f)
{
	(void)first;
	return perftest_offload(&f[0].ours, &f[1]);
}

static bool take_calc(bool first, struct figures *f)
{
	(void)first; /* they take turns within a sample */
	return perftest_pair("wq_calc", "-s 32k", "", &f[0]) &&
	       perftest_pair("wq_apart", "-s 32k", "", &f[1]) &&
	       perftest_pair("wq_calc", "-s 8m", "", &f[2]) &&
	       perftest_pair("wq_calc", "-s 8 -n 100000", "", &f[3]);
}

static bool take_beside(enum beside what, bool first, struct figures *f)
{
	double ours[CALLS], against[CALLS];

	if (!(first ? call_beside(what, ours) && call_beside(BESIDE_NOTHING, against) :
		      call_beside(BESIDE_NOTHING, against) && call_beside(what, ours)))
		return false;
	for (int i = 0; i < CALLS; i++)
		f[i] = (struct figures){ours[i], against[i]};
	return true;
}

static bool take_beside_engine(bool first, struct figures *f)
{
	return take_beside(BESIDE_ENGINE, first, f);
}

static bool take_beside_other(bool first, struct figures *f)
{
	return take_beside(BESIDE_OTHER, first, f);
}

static bool take_beside_same(bool first, struct figures *f)
{
	return take_beside(BESIDE_SAME, first, f);
}

static bool take_before(bool first, struct figures *f)
{
	static const char *const tests[CALLS] = {"send_lat", "put_lat"};

	for (int i = 0; i < 2 * CALLS; i++) {
		bool ours = (i & 1) != first;

		if (!perftest_latency(ours ? perftest_path : before_path, tests[i / 2],
				      ours ? &f[i / 2].ours : &f[i / 2].against))
			return false;
	}
	return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define NS_OF_US 1e3
#define GB       1e-9
#define US       1e-3

static const struct row chain_rows[] = {
	{"dependent entry, by the call", "12 ns", "", "ns", ITSELF, false, 12, 1}};
static const struct row thread_rows[] = {
	{"dependent entry, by the engine's thread", "20 ns", "", "ns", ITSELF, false, 20, 1},
	{"begun by the thread", "", "", "of 1", ITSELF, true, 0, 1}};
static const struct row arming_rows[] = {
	{"1,000 entries armed again", "1,000 ns", "", "ns", ITSELF, false, 1000, 1}};
static const struct row hop_rows[] = {
	{"hop, spinning", "by hand + 35 ns", "by hand", "ns", DIFFERENCE, false, 35, NS_OF_US},
	{"hop, spinning", "1.5", "by hand", "ns", RATIO, false, 1.5, NS_OF_US}};
static const struct row sleeping_hop_rows[] = {{"there and back, the engine asleep", "1.075",
						"by hand, asleep", "us", RATIO, false, 1.075, 1}};
static const struct row ring_rows[] = {
	{"ring of 4 on 2 processors, a hop", "0.9", "the better by hand", "us", RATIO, false, 0.9,
	 US},
	{"the same without the library", "", "the better by hand", "us", RATIO, false, 0, US},
	{"ring of 4, over that", "1.05", "a word that is yielded for", "us", RATIO, false, 1.05,
	 US}};
static const struct row spinning_begin_rows[] = {
	{"post until begun, the engine spins", "3 hops + 50 ns", "3 hops", "ns", DIFFERENCE, false,
	 50, 1},
	{"begun by the thread", "", "", "of 1", ITSELF, true, 0, 1}};
static const struct row sleeping_begin_rows[] = {
	{"post until begun, the engine sleeps", "1.2", "a futex wake", "us", RATIO, false, 1.2, US},
	{"begun by the thread", "", "", "of 1", ITSELF, true, 0, 1}};
static const struct row pipe_rows[] = {{"PIPE, 64 MiB by 4 x 64 KiB", "0.45", "a direct send",
					"GB/s", RATIO, true, 0.45, GB},
				       {"PIPE, 64 MiB by 4 x 64 KiB", "0.9", "three bare processes",
					"GB/s", RATIO, true, 0.9, GB}};
static const struct row links_rows[] = {{"PIPE over links of 1 Gbit/s", "0.95", "a socket over one",
					 "MB/s", RATIO, true, 0.95, 1e-6}};
static const struct row calc_rows[] = {
	{"CALC, 4 Ki doubles", "1.10", "a bare loop", "us", RATIO, false, 1.10, 1},
	{"CALC, 4 Ki of every second", "1.25", "a bare loop", "us", RATIO, false, 1.25, 1},
	{"CALC, 1 Mi doubles", "1.03", "a bare loop", "us", RATIO, false, 1.03, 1},
	{"CALC, a scalar", "25 ns", "", "ns", ITSELF, false, 25, NS_OF_US}};
static const struct row offload_rows[] = {
	{"offload, time kept", "0.95", "", "of 1", ITSELF, true, 0.95, 1},
	{"offload, the chain's end", "1.3", "alone", "us", RATIO, false, 1.3, 1}};
static const struct row beside_engine_rows[] = {{"8 B message, an engine with nothing posted",
						 "1.05", "no engine", "ns", RATIO, false, 1.05, 1},
						{"8 B put, likewise", "1.05", "no engine", "ns",
						 RATIO, false, 1.05, 1}};
static const struct row beside_other_rows[] = {
	{"8 B message, a WAIT on another peer", "1.10", "no engine", "ns", RATIO, false, 1.10, 1},
	{"8 B put, likewise", "1.10", "no engine", "ns", RATIO, false, 1.10, 1}};
static const struct row beside_same_rows[] = {
	{"8 B message, a WAIT on the same peer", "1.25", "no engine", "ns", RATIO, false, 1.25, 1},
	{"8 B put, likewise", "1.25", "no engine", "ns", RATIO, false, 1.25, 1}};
static const struct row before_rows[] = {
	{"8 B message, no engine", "1.02", "the build before", "ns", RATIO, false, 1.02, NS_OF_US},
	{"8 B put, no engine", "1.02", "the build before", "ns", RATIO, false, 1.02, NS_OF_US}};

#define GROUP(name, take, rows)                                                                    \
	{                                                                                          \
		name, take, rows, (int)(sizeof(rows) / sizeof *(rows))                             \
	}

const struct group groups[] = {
	GROUP("chain", take_chain, chain_rows),
	GROUP("thread", take_thread, thread_rows),
	GROUP("arm", take_arming, arming_rows),
	GROUP("hop", take_hop, hop_rows),
	GROUP("sleeping", take_sleeping_hop, sleeping_hop_rows),
	GROUP("ring", take_ring, ring_rows),
	GROUP("begin-spin", take_spinning_begin, spinning_begin_rows),
	GROUP("begin-block", take_sleeping_begin, sleeping_begin_rows),
	GROUP("calc", take_calc, calc_rows),
	GROUP("pipe", take_pipe, pipe_rows),
	GROUP("links", take_links, links_rows),
	GROUP("offload", take_offload, offload_rows),
	GROUP("beside-engine", take_beside_engine, beside_engine_rows),
	GROUP("beside-other", take_beside_other, beside_other_rows),
	GROUP("beside-same", take_beside_same, beside_same_rows),
	GROUP("before", take_before, before_rows),
};
const int group_count = sizeof groups / sizeof *groups;
