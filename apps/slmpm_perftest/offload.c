/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of sends, each of which waits for the end of the one before, on the engine's thread:
 * alone, while the application sleeps; and beside a computation that lasts as long. Side 1 takes
 * the messages, and the chain's time, from its first entry, a message that says so, to the last.
 */
#include "apps/slmpm_perftest/program.h"

#include <endian.h>

#define SENDS       1000 /* of a chain */
#define STREAM_TIME 3u

struct run {
	double chain_ns; /* as side 1 saw it */
	double compute_ns;
};

static uint64_t sends_of(const struct job *j)
{
	return j->count < SENDS ? j->count : SENDS;
}

static uint64_t chains_of(const struct job *j)
{
	return (j->count + sends_of(j) - 1) / sends_of(j);
}

/* ---- side 1 ---- */

static int take_chain(struct pair *p, const struct job *j)
{
	int64_t rc = slmpm_recv(p->peer, STREAM_TIME, NULL, 0, NULL, -1);
	uint64_t begin = now_ns(), wire;

	for (uint64_t i = 0; i < sends_of(j) && rc >= 0; i++)
		rc = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);
	wire = htole64(now_ns() - begin);
	return rc < 0 ? (int)rc : slmpm_send(p->peer, STREAM_TIME, &wire, sizeof(wire), -1);
}

static int take_chains(struct pair *p, const struct job *j)
{
	int rc = 0;

	for (uint64_t i = 0; i < 2 * chains_of(j) + 1 && rc >= 0; i++)
		rc = take_chain(p, j);
	/* What came is checked where it was sent. */
	return rc < 0 ? rc : slmpm_send(p->peer, STREAM_DATA, p->rx, j->size, -1);
}

/* ---- side 0 ---- */

static int start(struct program *g, uint64_t sends)
{
	program_rest();
	if (g->posted)
		return slmpm_wq_arm(g->wq);
	g->posted = true;
	program_mark(g, STREAM_TIME);
	for (uint64_t i = 0; i < sends; i++) {
		program_send_counted(g);
		program_wait(g, CHANNEL_MAIN, g->there);
	}
	return g->rc < 0 ? g->rc :
			   slmpm_wq_enable(g->wq, UINT64_MAX); /* the WAITs count from here */
}

static double time_computing(uint64_t units)
{
	uint64_t begin = now_ns();

	compute(units);
	return (double)(now_ns() - begin);
}

/* The chain beside UNITS of computation. */
static int run(struct program *g, const struct job *j, uint64_t units, struct run *r)
{
	int64_t len = 0;
	uint64_t wire;
	int rc = start(g, sends_of(j));

	if (rc >= 0 && units)
		r->compute_ns = time_computing(units);
	if (rc >= 0)
		rc = program_finish(g);
	if (rc >= 0)
		len = slmpm_recv(g->pair->peer, STREAM_TIME, &wire, sizeof(wire), NULL, -1);
	if (rc >= 0 && len == (int64_t)sizeof(wire))
		r->chain_ns = (double)le64toh(wire);
	else if (rc >= 0)
		rc = len < 0 ? (int)len : -SLMPM_EPROTO;
	return rc;
}

static int lead(struct pair *p, const struct job *j, struct hist *stamps)
{
	double alone = 0, beside = 0, computing = 0, slowed = 0, unit = compute_unit_ns();
	struct run one = {0, 0}, both = {0, 0};
	double sends = (double)sends_of(j);
	struct program g;
	uint64_t units;
	int rc =
		program_make(&g, p, j->size, 2 * sends_of(j) + 1, SLMPM_WQ_KEPT | SLMPM_WQ_MANAGED);

	if (rc >= 0) /* the first run is its posting, too */
		rc = run(&g, j, 0, &one);
	for (uint64_t i = 0; i < chains_of(j) && rc >= 0; i++) {
		rc = run(&g, j, 0, &one);
		units = (uint64_t)(one.chain_ns / unit) + 1;
		computing += time_computing(units);
		if (rc >= 0)
			rc = run(&g, j, units, &both);
		alone += one.chain_ns;
		beside += both.chain_ns;
		slowed += both.compute_ns;
		if (stamps)
			hist_add(stamps, (uint64_t)(both.chain_ns / sends + 0.5));
	}
	if (rc >= 0)
		rc = (int)slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);
	p->extra.by_engine = program_by_engine(&g);
	p->extra.bare_ns = alone / sends / (double)chains_of(j);
	p->extra.each_ns = beside / sends / (double)chains_of(j);
	p->extra.kept = slowed > computing ? computing / slowed : 1;
	program_end(&g);
	return rc;
}

int loop_offload(struct pair *p, const struct job *j, struct hist *stamps)
{
	return p->side ? take_chains(p, j) : lead(p, j, stamps);
}
