/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of a group whose members have no memory together: plans, run by the entries
 * of a work queue over the connections that this member's plan needs. All messages of an operation
 * say which it is: so members that disagree are found out by the first one that gets such. One is
 * under way at a time (operation.c); a thread that makes progress in the context goes on with it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/calc/calc.h"
#include "slmpm/completion/late.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/page.h"
#include "slmpm/group/pairing.h"
#include "slmpm/group/tags.h"
#include "slmpm/net/net.h"
#include "slmpm/part.h"

#define GRACE_MS     1000 /* that the last messages of a member that has left may take */
#define BROKEN_MS    100  /* the same, of all, for an operation that may be before what broke it */
#define PIECES       160  /* of a vector, at most: each has up to 6 entries in a queue */
#define SHARED_PIECE (60 * 1024) /* bytes: with its header what the kernel sends at a time */
#define STAR_SHORT   32768       /* bytes up to which there is one piece */
/* A rank, in texts: BOARD_MEMBER. */
#define OF(g, rank)  BOARD_MEMBER_OF(&(g)->boards, (uint32_t)(rank))
#define LONG         (64 * 1024) /* bytes of a piece from which on that is so */

static uint32_t depth_of(uint32_t size)
{
	return size < 100 ? MESSAGES_DEPTH : size * 10;
}

/* ---- its plan ------------------------------------------------------------------------------- */

static bool keeps_order(const struct group *g, const struct slmpm_coll *c)
{
	return !g->algorithms.any_order && flat_combines(c->kind) &&
	       (c->type == SLMPM_FLOAT || c->type == SLMPM_DOUBLE) &&
	       (c->op == SLMPM_CALC_SUM || c->op == SLMPM_CALC_PRODUCT);
}

static uint32_t order_asked(const struct group *g, const struct slmpm_coll *c)
{
	if (c->combine)
		return c->combine->flags & SLMPM_COLL_COMMUTES ? 0 : PLAN_NONCOMMUTATIVE;
	return keeps_order(g, c) ? PLAN_RANK_ORDER : 0;
}

uint32_t messages_width(const struct slmpm_coll *c)
{
	if (c->combine)
		return (uint32_t)c->combine->width;
	return c->kind == SLMPM_COLL_BARRIER ? 1 : calc_width(c->type);
}

/* For which its queue has room: a piece has up to 4 entries a rank at the centre of a star, up to
 * half as many where there are several. */
static uint32_t most_pieces(const struct plan_spec *spec)
{
	const bool several = plan_star_centres(spec->size, spec->processors) > 1;

	if (spec->algorithm != PLAN_STAR)
		return PIECES;
	return depth_of(spec->size) / ((several ? 2 : 4) * spec->size);
}

/* Where members share processors, or by a star: pieces so short that they are read while they are
 * still at hand. */
static uint64_t shared_piece(const struct plan_spec *spec, uint32_t width)
{
	const bool star = spec->algorithm == PLAN_STAR;
	const uint32_t centres = plan_star_centres(spec->size, spec->processors);
	const uint64_t part = spec->count / centres + 1;
	const uint64_t least = spec->count / most_pieces(spec) + 1;
	uint64_t piece = SHARED_PIECE / width;

	if (star && spec->count <= STAR_SHORT / width)
		return spec->count;
	if (star && piece > part)
		piece = part;
	return piece > least ? piece : least;
}

void messages_piece(struct plan_spec *spec, uint32_t width)
{
	spec->piece = 0;
	if (spec->count / PIECES >= LONG / width)
		spec->piece = (spec->count + PIECES - 1) / PIECES;
	if (spec->algorithm == PLAN_STAR || (spec->algorithm == PLAN_CHAIN && spec->processors))
		spec->piece = shared_piece(spec, width);
}

static void describe_run(const struct group *g, const struct slmpm_coll *c, struct offload_run *run)
{
	bool in_place = c->from == SLMPM_IN_PLACE, barrier = c->kind == SLMPM_COLL_BARRIER;
	uint32_t width = messages_width(c);
	uint64_t number = g->messages->number;

	*run = (struct offload_run){.spec = {.kind = c->kind,
					     .size = g->boards.size,
					     .rank = g->boards.rank,
					     .root = flat_has_root(c->kind) ? (uint32_t)c->root : 0,
					     .flags = (in_place ? PLAN_IN_PLACE : 0) |
						      order_asked(g, c),
					     .count = barrier ? 0 : c->count,
					     .counts = c->counts,
					     .places = c->places,
					     .to_counts = c->to_counts,
					     .to_places = c->to_places,
					     .hosts = g->messages->hosts,
					     .processors = g->messages->processors},
				    .type = c->type,
				    .op = c->op,
				    .combine = c->combine,
				    .from = in_place ? NULL : c->from,
				    .to = c->to};
	run->mark = mark_of(c, g->boards.size, number, boards_call_of(&g->boards, number));
	/* All send something at once: so one that has begun a round is seen to have. */
	if (g->main && tags_is_round(c)) {
		run->spec.algorithm = PLAN_BRUCK;
		return;
	}
	run->spec.limits = g->algorithms.limits;
	run->spec.text = texts_choose(g->main ? g->main : g, &run->spec, width);
	run->spec.algorithm = PLAN_TEXT;
	if (LIKELY(!run->spec.text))
		run->spec.algorithm = algorithm_choose(g, &run->spec, width);
	if (run->spec.algorithm != PLAN_HOSTS && !run->spec.text && g->messages->local &&
	    (g->messages->several ? algorithm_may_meet(g, &run->spec, width) :
				    algorithm_may_gather(g, &run->spec, width)))
		run->spec.algorithm = PLAN_HOSTS;
	messages_piece(&run->spec, width);
	if (run->spec.text)
		run->mark = mark_with(run->mark, plan_text_hash(run->spec.text));
}

void messages_describe(struct group *g, uint32_t mark)
{
	struct messages *m = g->messages;

	describe_run(g, m->coll, &m->run);
	m->run.mark = mark;
	g->algorithm = m->run.spec.algorithm;
}

/* ---- opened, closed ------------------------------------------------------------------------- */

/* The lowest rank on R's machine. */
static uint32_t host_of_rank(const struct group *g, uint32_t r)
{
	uint32_t machine = member_of(g, r)->machine, lowest = 0;

	while (machine && lowest < r && member_of(g, lowest)->machine != machine)
		lowest++;
	return machine ? lowest : r;
}

/* 0, or -SLMPM_ENOMEM. */
static int find_hosts(struct group *g)
{
	uint32_t size = g->boards.size, n = 0;
	uint32_t *hosts = malloc(size * sizeof(*hosts));

	if (!hosts)
		return -SLMPM_ENOMEM;
	for (uint32_t r = 0; r < size; r++) {
		hosts[r] = host_of_rank(g, r);
		n += hosts[r] == r;
	}
	g->messages->several = 2 * n <= size;
	if (n > 1 && n < size)
		g->messages->hosts = hosts;
	else
		free(hosts);
	return 0;
}

/* All are on one kernel, in networks of their own, and its processors are too few for rounds in
 * which all send at once: how many; else 0. */
static uint32_t shared_processors(const struct group *g)
{
	const uint32_t size = g->boards.size, first = member_of(g, 0)->machine;
	const uint32_t rounds = size > 1 ? 32 - (uint32_t)__builtin_clz(size - 1) : 0;
	const uint32_t processors = net_processors(first);
	bool differ = false;

	for (uint32_t r = 1; r < size; r++) {
		const uint32_t machine = member_of(g, r)->machine;

		if (net_kernel(machine) != net_kernel(first))
			return 0;
		differ |= machine != first;
	}
	if (!differ || !net_kernel(first) || processors >= 2 * rounds)
		return 0;
	return processors < NET_PROCESSORS ? processors : 0;
}

/* Operations with tags go by messages alone. */
static int find_machine(struct group *g)
{
	return g->messages->hosts && g->meets_local && !g->main ? parts.machine->open(g) : 0;
}

static void messages_free(struct group *g)
{
	if (g->messages->machine)
		parts.machine->close(g);
	free(g->messages->hosts);
	free(g->messages->before);
	free(g->messages->needs);
	free(g->messages);
	g->messages = NULL;
}

static int messages_open(struct group *g)
{
	uint32_t size = g->boards.size;
	struct messages *m = calloc(1, sizeof(*m));
	slmpm_peer *none = calloc(size, sizeof(*none));
	int rc = -SLMPM_ENOMEM;

	if (m) {
		g->messages = m;
		m->generation = g->boards.generation;
		m->done = g->boards.posted;
		m->processors = shared_processors(g);
		m->before = calloc(3 * (size_t)size, sizeof(*m->before));
		m->expected = m->before ? m->before + size : NULL;
		m->walked = m->before ? m->expected + size : NULL;
		m->needs = calloc(size, sizeof(*m->needs));
	}
	if (m && none && m->before && m->needs && find_hosts(g) == 0 && find_machine(g) == 0) {
		const struct offload_options options = {
			.ctx = {handle_id(g->ctx)},
			.peers = none,
			.size = size,
			.rank = g->boards.rank,
			.stream = needs_stream(g, g->boards.generation),
			.depth = depth_of(size)};

		rc = offload_open(&m->offload, &options);
	} else {
		rc = error_set(SLMPM_ENOMEM, "for a group's operations");
	}
	free(none);
	if (rc < 0 && m)
		messages_free(g);
	return rc;
}

/* Once none is under way any more nothing is read or written for it. */
static bool stops(struct offload *o)
{
	struct offload_end ends[OFFLOAD_RUNS];

	(void)offload_take(o, ends, OFFLOAD_RUNS); /* without progress: the group is half gone */
	return offload_close(o) == 0;
}

void messages_close(struct group *g)
{
	struct messages *m = g->messages;

	if (!m)
		return;
	if (g->shut)
		offload_forget(m->offload);
	else
		for (int i = 0; i < 3 && !stops(m->offload); i++)
			offload_break(m->offload, -SLMPM_ECLOSED, -1);
	messages_free(g);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static COLD void stop_run(struct group *g, int error)
{
	struct messages *m = g->messages;

	if (m && m->stage == CONNECTS)
		needs_unwant(g);
	if (m && m->machine)
		parts.machine->stop(g);
	if (m && (m->stage == CONNECTS || m->stage == ASKS || m->stage == LOCAL)) {
		m->stage = NOT_BEGUN;
	} else if (m && m->stage == RUNS) {
		offload_break(m->offload, error, -1);
		m->until = clock_deadline(GRACE_MS);
	}
}

COLD int messages_break(struct group *of, int error, int culprit)
{
	struct group *g = group_main(of);

	(void)snprintf(g->detail, sizeof(g->detail), "%s", group_detail());
	g->error = error;
	group_break(g, error, culprit);
	distant_end(g, error, culprit < 0 ? BOARD_NONE : (uint32_t)culprit);
	stop_run(g, error);
	if (g->lane) {
		lane_broken(g);
		stop_run(g->lane, error);
	}
	return error_set(-error, "%s", g->detail);
}
/* Others have said so. */
COLD int messages_broken_by(struct group *g)
{
	const struct messages *m = g->messages;

	return messages_break(g, group_broken_error(g, m->number, m->coll->kind), g->culprit);
}

COLD bool messages_have_stopped(struct group *g)
{
	struct messages *m = g->messages;
	struct offload_end end;

	if (!m || m->stage != RUNS)
		return true;
	if (offload_take(m->offload, &end, 1) == 0 && clock_now() < m->until)
		return false;
	m->stage = NOT_BEGUN;
	return true;
}

void messages_drop(struct group *g)
{
	if (g->messages)
		g->messages->stage = NOT_BEGUN;
}

/* A member does another operation: the first one that is known of. */
static COLD int conclude_asked(struct group *g)
{
	const struct messages *m = g->messages;

	if (!m->asked.mark && !mark_first_unlike(g, (uint32_t)m->asked.rank))
		return parts.machine->failed(g);
	return messages_break(g, mark_differs(g, m->asked.mark, m->asked.rank), m->asked.rank);
}

/* 0: it has yet to say which ones it has done. */
static COLD int await_answer(struct group *g)
{
	const struct messages *m = g->messages;

	if (g->said[0] && group_is_broken(g))
		return messages_broken_by(g);
	return m->asked.answered || clock_now() >= m->asked.until ? conclude_asked(g) : 0;
}

COLD int messages_late(struct group *g, int timeout_ms)
{
	const struct messages *m = g->messages;
	int r = stalled_suspect(g), rc;
	const struct member *late = r < 0 ? NULL : member_of(g, (uint32_t)r);
	char waited[GROUP_WAITED], which[BOARD_WHICH];
	const char *why;

	if (m->asked.any)
		return conclude_asked(g);
	group_page_waited(g, timeout_ms, waited);
	why = late ? member_suspicion(g, (uint32_t)r) : NULL;
	rc = error_set(late_code(timeout_ms),
		       "group %u, %soperation %" PRIu64 ", %s: nothing yet from rank %d (%s)%s%s%s",
		       g->tag, boards_which(&g->boards, which), m->number,
		       boards_name(&g->boards, m->number, m->coll->kind), r,
		       late && late->distant ? late->distant->url : "?", waited,
		       why ? ", suspect: " : "", why ? why : "");
	return messages_break(g, rc, r);
}

/* ---- connections ---------------------------------------------------------------------------- */

/* What has failed with ERROR is R's doing. */
static COLD int member_has_ended(const struct group *g, int r, int error)
{
	const struct messages *m = g->messages;

	return boards_error(&g->boards, -error, m->number, m->coll->kind, BOARD_MEMBER "%s",
			    OF(g, r),
			    error == -SLMPM_EDEAD ? " has died" : "'s connection has ended");
}

/* All that the plan needs are peers, and it begins: 1; 0: not yet. */
static int begin_run(struct group *g)
{
	struct messages *m = g->messages;
	int rc, culprit;

	if (!needs_are_decided(g))
		return 0;
	rc = needs_connect(g, &culprit);
	if (rc > 0)
		return 0;
	if (rc < 0) /* it ends for those that have learnt before it why the group is broken */
		return group_is_broken(g) ? messages_broken_by(g) : messages_break(g, rc, culprit);
	needs_unwant(g);
	rc = offload_start(m->offload, &m->run);
	culprit = rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED ? needs_ended(g) : -1;
	if (culprit >= 0) /* just now */
		rc = member_has_ended(g, culprit, rc);
	if (rc < 0)
		return messages_break(g, rc, culprit);
	m->stage = RUNS;
	return 1;
}

/* ---- the operation -------------------------------------------------------------------------- */

/* It has left, and has not done its part: by the last error. */
static COLD int member_has_left(struct group *g, int r)
{
	const struct messages *m = g->messages;
	int rc = boards_error(&g->boards, SLMPM_ECLOSED, m->number, m->coll->kind,
			      BOARD_MEMBER " has left the group", OF(g, r));

	return messages_break(g, rc, r);
}

/* What END says, which is an error. */
static COLD int conclude_run(struct group *g, const struct offload_end *end)
{
	struct messages *m = g->messages;
	int rc = end->status;

	if ((rc == -SLMPM_EINVAL || rc == -SLMPM_ETRUNC) && end->culprit >= 0) {
		stalled_ask(g, end->culprit, offload_mark(m->offload));
		m->stage = ASKS;
		return 0;
	}
	if (group_is_broken(g))
		return messages_broken_by(g);
	else if (end->culprit >= 0 && member_of(g, (uint32_t)end->culprit)->distant->left)
		return member_has_left(g, end->culprit);
	else if (end->culprit >= 0)
		rc = member_has_ended(g, end->culprit, rc);
	else
		rc = boards_error(&g->boards, -rc, m->number, m->coll->kind, "it has failed");
	return messages_break(g, rc, end->culprit);
}

/* What a member has sent before it left may be on its way: 0, or it has been waited for. */
static COLD int await_left(struct group *g)
{
	struct messages *m = g->messages;
	const int r = needs_left(g);

	if (r >= 0) {
		if (!m->until)
			m->until = clock_deadline(needs_come_of(g, (uint32_t)r) ? GRACE_MS : 0);
		return clock_now() < m->until ? 0 : member_has_left(g, r);
	}
	if (!group_is_broken(g))
		m->until = 0;
	return 0;
}

/* Another says so: perhaps as it does a later one, and what this one needs is on its way. */
static COLD bool may_still_end(struct group *g)
{
	struct messages *m = g->messages;

	if (!m->until)
		m->until = clock_deadline(BROKEN_MS);
	return clock_now() < m->until;
}

static COLD int fold_received(struct group *g)
{
	offload_fold(g->messages->offload);
	return 1;
}

/* 1: it has ended. */
static int run_on(struct group *g)
{
	struct messages *m = g->messages;
	struct offload_end end;

	while (offload_take(m->offload, &end, 1) == 0)
		if (!offload_awaits_fold(m->offload) ||
		    !operation_combine(g, m->coll->combine, fold_received))
			return UNLIKELY(g->left) ? await_left(g) : 0;
	m->stage = NOT_BEGUN;
	return end.status == 0 ? 1 : conclude_run(g, &end);
}

/* What is under way of the operation: 1: it is done. */
static int messages_step_on(struct group *g)
{
	int rc = 1;

	if (g->messages->stage == ASKS)
		rc = await_answer(g);
	else if (group_is_broken(g) && !may_still_end(g))
		rc = messages_broken_by(g);
	else if (g->messages->stage == LOCAL)
		return parts.machine->step(g);
	else if (g->messages->stage == CONNECTS)
		rc = begin_run(g);
	return rc > 0 ? run_on(g) : rc;
}

/* Another part of it has begun: 0; there is none: 1. */
static int begin_next_part(struct group *g)
{
	int rc = g->messages->machine ? parts.machine->next(g) : 1;

	if (rc == 0)
		g->messages->until = 0; /* it was of the part that has been done */
	return rc < 0 && !g->error ? messages_break(g, rc, -1) : rc;
}

int messages_step(struct group *g)
{
	int rc;

	if (g->error)
		return messages_have_stopped(g) ? g->error : 0;
	while ((rc = messages_step_on(g)) > 0 && (rc = begin_next_part(g)) == 0)
		continue;
	if (rc > 0) {
		g->messages->stage = NOT_BEGUN;
		g->messages->done = g->messages->number;
		if (group_is_broken(g) && g->messages->machine) /* meanwhile: local ones learn it */
			parts.machine->inspect(g);
	}
	return rc >= 0 || messages_have_stopped(g) ? rc : 0;
}

/* For the first operation, or the first of a generation. */
static COLD int messages_renew(struct group *g)
{
	if (g->messages) {
		needs_drop_unread(g, g->messages->generation);
		messages_close(g);
	}
	return messages_open(g);
}

int messages_begin(struct group *g, const struct slmpm_coll *c)
{
	struct messages *m = g->messages;
	int rc = m && m->generation == g->boards.generation ? 0 : messages_renew(g);

	if (rc < 0)
		return rc;
	m = g->messages;
	m->coll = c;
	m->number = ++g->boards.posted;
	m->until = 0;
	m->asked.any = false;
	describe_run(g, c, &m->run);
	mark_note(m);
	g->algorithm = m->run.spec.algorithm;
	if (!m->machine)
		return messages_exchange(g);
	rc = parts.machine->begin(g);
	/* Its number is taken: the others would wait for this member. */
	return rc < 0 && !g->error ? messages_break(g, rc, (int)g->boards.rank) : rc;
}

int messages_exchange(struct group *g)
{
	struct messages *m = g->messages;
	int rc = needs_find(g, &m->run);

	if (rc < 0)
		return rc;
	m->first = 0;
	m->stage = CONNECTS;
	needs_want(g);
	return 0;
}

uint64_t messages_done(const struct group *g)
{
	const struct messages *m = g->messages;

	return m && m->generation == g->boards.generation ? m->done : g->boards.posted;
}

uint64_t messages_due(struct group *g)
{
	const struct messages *m = g->messages;

	if ((m->stage == CONNECTS && needs_are_decided(g)) ||
	    (m->stage == LOCAL && parts.machine->is_due(g)))
		return 0;
	if (m->stage == ASKS)
		return m->asked.until;
	return m->until ? m->until : UINT64_MAX;
}
