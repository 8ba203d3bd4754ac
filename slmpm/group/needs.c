/* SPDX-License-Identifier: BSD-3-Clause */
/* Those whose messages an operation needs: how many, of whom, and the connections with them. */
#include <string.h>

#include "slmpm/dial/dial.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/pairing.h"
#include "slmpm/part.h"

/* Of its connections' streams: the first that it uses, and as many for each generation. */
#define STREAM      (SLMPM_STREAM_MAX - 15)
#define STREAMS     16u
#define GENERATIONS 4096u

/* Of struct messages.needs. */
#define NEEDED  1u
#define WANTED  2u /* a connection has been asked for */
#define AWAITED 4u /* its next step waits for it */

uint32_t needs_stream(const struct group *g, uint32_t generation)
{
	return STREAM - generation % GENERATIONS * STREAMS + (g->main ? OFFLOAD_RUNS : 0);
}

int needs_find(struct group *g, const struct offload_run *run)
{
	struct messages *m = g->messages;
	struct plan_step step;
	struct plan plan;
	int rc = plan_begin(&plan, &run->spec);

	if (rc < 0)
		return error_set(-rc, "%s: there is no plan for it",
				 plan_kind_name(run->spec.kind));
	memset(m->needs, 0, g->boards.size * sizeof(*m->needs));
	for (uint32_t r = 0; r < g->boards.size; r++)
		m->before[r] = m->expected[r] = offload_came(m->offload, r);
	while (plan_next(&plan, &step)) {
		if (step.op != PLAN_SEND && step.op != PLAN_RECV)
			continue;
		m->needs[step.peer] = NEEDED;
		m->expected[step.peer] += step.op == PLAN_RECV;
	}
	return 0;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Of one that has ended in order, what has been sent before can still be read. */
static bool is_connected(const struct member *to)
{
	const struct pair *p = to->pair;

	return pair_is_up(p) || (p && p->ep->life->was_up && !dial_is_read(p->ep));
}

static void needs_want_one(struct group *g, uint32_t rank)
{
	struct messages *m = g->messages;

	if (m->needs[rank] & WANTED)
		return;
	pair_want(member_of(g, rank));
	m->needs[rank] |= WANTED;
}

void needs_want(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (g->messages->needs[r] && !is_connected(member_of(g, r)))
			needs_want_one(g, r);
}

void needs_unwant(struct group *g)
{
	struct messages *m = g->messages;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (m->needs[r] & WANTED)
			pair_unwant(member_of(g, r));
		m->needs[r] &= (unsigned char)~WANTED;
	}
}

bool needs_are_decided(struct group *g)
{
	struct messages *m = g->messages;

	for (; m->first < g->boards.size; m->first++) {
		struct member *to = member_of(g, m->first);

		if (m->needs[m->first] && !is_connected(to) && !pair_is_decided(to))
			return false;
	}
	return true;
}

int needs_connect(struct group *g, int *culprit)
{
	struct messages *m = g->messages;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		struct member *to = member_of(g, r);

		if (!m->needs[r])
			continue;
		*culprit = (int)pair_culprit(to);
		if (!is_connected(to) && !pair_is_decided(to)) { /* any more */
			needs_want_one(g, r);
			m->first = r;
			return 1;
		}
		if (!is_connected(to))
			return pair_error(to, boards_name(&g->boards, m->number, m->coll->kind),
					  -1);
		offload_peer(m->offload, r, (slmpm_peer){handle_id(to->pair->ep)});
	}
	return 0;
}

/* ---- what has come, or not ------------------------------------------------------------------- */

static bool has_come_of(const struct messages *m, const struct plan_step *step)
{
	return ++m->walked[step->peer] <=
	       offload_came(m->offload, step->peer) - m->before[step->peer];
}

/* The receives that are posted when its first WAIT stands that they have not come for. */
static COLD bool note_receives(struct group *g)
{
	struct messages *m = g->messages;
	bool missing[PLAN_LANES] = {false}, any = false;
	struct plan_step step;
	struct plan plan;

	memset(m->walked, 0, g->boards.size * sizeof(*m->walked));
	if (plan_begin(&plan, &m->run.spec) < 0)
		return false;
	while (plan_next(&plan, &step) && (step.op != PLAN_WAIT || !missing[step.lane])) {
		if (step.op != PLAN_RECV || has_come_of(m, &step))
			continue;
		m->needs[step.peer] |= AWAITED;
		missing[step.lane] = any = true;
	}
	return any;
}

/* All others, where it waits for none: it sends. */
COLD void needs_note_awaited(struct group *g)
{
	struct messages *m = g->messages;
	bool connects = m->stage == CONNECTS, any = false;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		m->needs[r] &= (unsigned char)~AWAITED;
		if (!connects || !m->needs[r] || is_connected(member_of(g, r)))
			continue;
		m->needs[r] |= AWAITED;
		any = true;
	}
	for (uint32_t r = 0; m->stage == LOCAL && r < g->boards.size; r++)
		m->needs[r] |= parts.machine->awaits(g, r) ? AWAITED : 0;
	if (m->stage == LOCAL)
		return;
	any = connects ? any : note_receives(g);
	for (uint32_t r = 0; !any && r < g->boards.size; r++)
		m->needs[r] |= m->needs[r] ? AWAITED : 0;
}

COLD bool needs_await(const struct group *g, uint32_t rank)
{
	return g->messages->needs[rank] & AWAITED;
}

void messages_note_awaited(struct group *g)
{
	if (g->messages && g->messages->stage != NOT_BEGUN)
		needs_note_awaited(g);
}

int messages_suspect(struct group *g)
{
	return g->messages && g->messages->stage != NOT_BEGUN ? stalled_suspect(g) : -1;
}

bool messages_await(const struct group *g, uint32_t rank)
{
	return g->messages && g->messages->stage != NOT_BEGUN && needs_await(g, rank);
}

bool messages_lack(const struct group *g, uint32_t rank)
{
	const struct messages *m = g->messages;

	if (m && m->stage == LOCAL)
		return parts.machine->awaits(g, rank);
	return m && m->stage != NOT_BEGUN && messages_came(g, rank) < m->expected[rank];
}

COLD int needs_ended(const struct group *g)
{
	const struct messages *m = g->messages;

	for (uint32_t r = 0; r < g->boards.size; r++)
		if (m->needs[r] && !pair_is_up(member_of(g, r)->pair))
			return (int)r;
	return -1;
}

uint64_t messages_came(const struct group *g, uint32_t rank)
{
	return g->messages ? offload_came(g->messages->offload, rank) : 0;
}

/* What it has sent lies here until the plan comes to it. */
static bool has_unread(const struct group *g, uint32_t rank)
{
	const struct pair *p = member_of(g, rank)->pair;

	return p && dial_has_unread(p->ep, needs_stream(g, g->boards.generation), OFFLOAD_RUNS);
}

bool messages_wait(const struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (has_unread(g, r))
			return true;
	return false;
}

COLD int needs_left(const struct group *g)
{
	const struct messages *m = g->messages;

	for (uint32_t r = 0; r < g->boards.size; r++)
		if (m->needs[r] && member_of(g, r)->distant->left &&
		    offload_came(m->offload, r) < m->expected[r] && !has_unread(g, r))
			return (int)r;
	return -1;
}

COLD bool needs_come_of(const struct group *g, uint32_t rank)
{
	const struct distant *d = member_of(g, rank)->distant;

	return d->left_in != g->boards.generation || d->did[g->main != NULL] >= g->messages->number;
}

/* As in a handler, for what makes progress would begin this operation once more. */
COLD void needs_drop_unread(const struct group *g, uint32_t generation)
{
	const bool handling = g->ctx->handling;
	char own[ERROR_DETAIL];

	error_save(own);
	g->ctx->handling = true;
	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct pair *p = member_of(g, r)->pair;
		int64_t rc;

		for (uint32_t i = 0; pair_is_up(p) && i < OFFLOAD_RUNS; i++)
			do
				rc = slmpm_recv((slmpm_peer){handle_id(p->ep)},
						needs_stream(g, generation) + i, NULL, 0, NULL, 0);
			while (rc >= 0 || rc == -SLMPM_ETRUNC);
	}
	g->ctx->handling = handling;
	error_restore(own);
}
