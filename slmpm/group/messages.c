/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of a group whose members have no memory together: plans, run by the entries
 * of a work queue over the connections that this member's plan needs. All messages of an operation
 * say which it is: so members that disagree are found out by the first one that gets such.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/calc/calc.h"
#include "slmpm/completion/late.h"
#include "slmpm/group/page.h"
#include "slmpm/group/pairing.h"
#include "slmpm/link/wait.h"
#include "slmpm/offload/offload.h"

#define CALL        "slmpm_collective"
#define STREAM      (SLMPM_STREAM_MAX - 15) /* the first of those of its connections that it uses */
#define SLICE_MS    20                      /* between looks for what others say of the group */
#define GRACE_MS    1000 /* that the last messages of a member that has left may take */
#define PIECES      200  /* of a vector, at most: each has entries of its own */
/* A rank, in texts: BOARD_MEMBER. */
#define OF(g, rank) BOARD_MEMBER_OF(&(g)->boards, (uint32_t)(rank))
#define LONG        (64 * 1024) /* bytes of a piece from which on that is so */

struct messages {
	struct offload *offload;
	uint64_t *expected; /* messages by rank, as offload_came counts them */
	bool *needs;        /* by rank: the operation under way, ... */
	uint32_t kind;      /* ... and what it is */
};

/* ---- which it is ---------------------------------------------------------------------------- */

#define MARK_TYPE  4
#define MARK_OP    8
#define MARK_REST  12
#define MARK_FIELD 15u

/* All members give the same; else the length of a message says who disagrees. */
static bool counts_are_same(uint32_t kind)
{
	return kind != SLMPM_COLL_ALLTOALL && kind != SLMPM_COLL_SCATTER &&
	       kind != SLMPM_COLL_GATHER;
}

static uint32_t mark_of(const struct slmpm_coll *c, uint32_t size, uint64_t number)
{
	uint64_t rest = number;
	uint32_t mark = c->kind;

	if (c->kind == SLMPM_COLL_BARRIER)
		return mark | (uint32_t)(rest << MARK_REST);
	if (flat_has_root(c->kind))
		rest = rest * 31 + (uint32_t)c->root;
	if (counts_are_same(c->kind))
		rest = rest * 31 + (c->counts ? 0 : c->count);
	for (uint32_t r = 0; c->counts && counts_are_same(c->kind) && r < size; r++)
		rest = rest * 31 + c->counts[r];
	rest = rest * UINT64_C(0x9e3779b97f4a7c15) >> (32 + MARK_REST);
	mark |= c->type << MARK_TYPE;
	if (flat_combines(c->kind))
		mark |= c->op << MARK_OP;
	return mark | (uint32_t)rest << MARK_REST;
}

static COLD int differs(struct group *g, const struct slmpm_coll *c, uint32_t mark, int rank,
			int status)
{
	uint32_t other = offload_mark(g->messages->offload);
	const char *in = "number, count or root";

	if (!other || other == mark)
		return boards_error(&g->boards, SLMPM_EINVAL, g->begun, c->kind,
				    "what " BOARD_MEMBER " sends is %s", OF(g, rank),
				    !other || status == -SLMPM_ETRUNC ? "longer" : "shorter");
	if ((other ^ mark) & MARK_FIELD)
		return boards_error(&g->boards, SLMPM_EINVAL, g->begun, 0,
				    BOARD_MEMBER " does %s, " BOARD_MEMBER " %s", OF(g, rank),
				    flat_kind_name(other & MARK_FIELD), OF(g, g->boards.rank),
				    flat_kind_name(c->kind));
	if ((other ^ mark) >> MARK_TYPE & MARK_FIELD)
		in = "type";
	else if ((other ^ mark) >> MARK_OP & MARK_FIELD)
		in = "operation";
	return boards_error(&g->boards, SLMPM_EINVAL, g->begun, c->kind,
			    BOARD_MEMBER " has another %s than " BOARD_MEMBER, OF(g, rank), in,
			    OF(g, g->boards.rank));
}

/* ---- its plan ------------------------------------------------------------------------------- */

static bool keeps_order(const struct slmpm_coll *c)
{
	return flat_combines(c->kind) && (c->type == SLMPM_FLOAT || c->type == SLMPM_DOUBLE) &&
	       (c->op == SLMPM_CALC_SUM || c->op == SLMPM_CALC_PRODUCT);
}

static void describe_run(const struct group *g, const struct slmpm_coll *c, struct offload_run *run)
{
	bool in_place = c->from == SLMPM_IN_PLACE, barrier = c->kind == SLMPM_COLL_BARRIER;
	uint32_t width = barrier ? 1 : calc_width(c->type);

	*run = (struct offload_run){.spec = {.kind = c->kind,
					     .size = g->boards.size,
					     .rank = g->boards.rank,
					     .root = flat_has_root(c->kind) ? (uint32_t)c->root : 0,
					     .flags = (in_place ? PLAN_IN_PLACE : 0) |
						      (keeps_order(c) ? PLAN_RANK_ORDER : 0),
					     .count = barrier ? 0 : c->count,
					     .counts = c->counts,
					     .places = c->places,
					     .to_counts = c->to_counts,
					     .to_places = c->to_places},
				    .type = c->type,
				    .op = c->op,
				    .from = in_place ? NULL : c->from,
				    .to = c->to,
				    .mark = mark_of(c, g->boards.size, g->begun)};
	if (run->spec.count / PIECES >= LONG / width)
		run->spec.piece = (run->spec.count + PIECES - 1) / PIECES;
	/* Who is not the root need not know the others' counts. */
	run->spec.algorithm = c->kind == SLMPM_COLL_SCATTER || c->kind == SLMPM_COLL_GATHER ?
				      (uint32_t)PLAN_FLAT :
				      plan_choose(&run->spec, width);
}

/* With which ranks, and how many messages of each. */
static int look_through(struct group *g, const struct offload_run *run)
{
	struct messages *m = g->messages;
	struct plan_step step;
	struct plan plan;
	int rc = plan_begin(&plan, &run->spec);

	if (rc < 0)
		return error_set(-rc, CALL ": no plan for %s", flat_kind_name(run->spec.kind));
	m->kind = run->spec.kind;
	memset(m->needs, 0, g->boards.size * sizeof(*m->needs));
	for (uint32_t r = 0; r < g->boards.size; r++)
		m->expected[r] = offload_came(m->offload, r);
	while (plan_next(&plan, &step)) {
		if (step.op != PLAN_SEND && step.op != PLAN_RECV)
			continue;
		m->needs[step.peer] = true;
		m->expected[step.peer] += step.op == PLAN_RECV;
	}
	return 0;
}

/* ---- opened, closed ------------------------------------------------------------------------- */

static void messages_free(struct group *g)
{
	free(g->messages->expected);
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
		m->expected = calloc(size, sizeof(*m->expected));
		m->needs = calloc(size, sizeof(*m->needs));
	}
	if (m && none && m->expected && m->needs) {
		const struct offload_options options = {.ctx = {handle_id(g->ctx)},
							.peers = none,
							.size = size,
							.rank = g->boards.rank,
							.stream = STREAM,
							.depth = size < 100 ? 1024 : size * 10};

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

	(void)offload_poll(o, ends, OFFLOAD_RUNS);
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

/* The group is broken by what the thread's detail says. */
static COLD int break_apart(struct group *g, int error, int culprit)
{
	const char *detail = group_detail();

	g->error = error;
	snprintf(g->detail, sizeof(g->detail), "%s", detail);
	group_break(g, error, culprit);
	distant_end(g, error, culprit < 0 ? BOARD_NONE : (uint32_t)culprit);
	return error_set(-error, "%s", g->detail);
}

/* As operation NUMBER, of KIND, finds it. */
static COLD int is_broken_by(struct group *g, uint64_t number, uint32_t kind)
{
	return break_apart(g, group_broken_error(g, number, kind), g->culprit);
}

/* The first whose messages are missing. */
static int missing(const struct group *g)
{
	const struct messages *m = g->messages;

	for (uint32_t r = 0; r < g->boards.size; r++)
		if (m->needs[r] && offload_came(m->offload, r) < m->expected[r])
			return (int)r;
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (m->needs[r])
			return (int)r;
	return -1;
}

uint32_t messages_kind(const struct group *g)
{
	return g->messages && g->begun != g->done ? g->messages->kind : 0;
}

bool messages_await(const struct group *g, uint32_t rank)
{
	const struct messages *m = g->messages;

	return messages_kind(g) && m->needs[rank] &&
	       (offload_came(m->offload, rank) < m->expected[rank] ||
		!pair_is_up(g->members[rank].pair));
}

uint64_t messages_came(const struct group *g, uint32_t rank)
{
	return g->messages ? offload_came(g->messages->offload, rank) : 0;
}

static COLD int messages_late(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	int r = missing(g);
	const struct member *m = r < 0 ? NULL : &g->members[r];
	char waited[GROUP_WAITED];
	int rc;

	group_page_waited(g, timeout_ms, waited);
	rc = late_error(g->ctx, m && pair_lives(m->pair) ? m->pair->ep : NULL, timeout_ms,
			"group %u, operation %" PRIu64 ", %s: nothing yet from rank %d (%s)%s",
			g->tag, g->begun, flat_kind_name(c->kind), r,
			m && m->distant ? m->distant->url : "?", waited);
	return break_apart(g, rc, r);
}

/* ---- connections ---------------------------------------------------------------------------- */

struct needed {
	struct group *g;
	uint32_t first; /* that may not be there yet */
};

static bool are_decided(void *arg)
{
	struct needed *n = arg;
	struct group *g = n->g;

	for (; n->first < g->boards.size; n->first++)
		if (g->messages->needs[n->first] && !pair_is_decided(&g->members[n->first]))
			return false;
	return true;
}

static void want_all(struct group *g, bool want)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (!g->messages->needs[r])
			continue;
		if (want)
			pair_want(&g->members[r]);
		else
			pair_unwant(&g->members[r]);
	}
}

/* All that the plan needs, as peers. */
static int connect_all(struct group *g, int timeout_ms)
{
	struct messages *m = g->messages;
	struct needed n = {g, 0};
	int rc = 0;
	uint32_t r;

	want_all(g, true);
	(void)wait_until(g->ctx, are_decided, &n, timeout_ms);
	for (r = 0; r < g->boards.size && rc == 0; r++) {
		struct member *to = &g->members[r];

		if (!m->needs[r])
			continue;
		if (pair_is_up(to->pair) && !to->distant->left)
			offload_peer(m->offload, r, (slmpm_peer){handle_id(to->pair->ep)});
		else
			rc = pair_error(to, CALL, timeout_ms);
	}
	want_all(g, false);
	return rc < 0 ? break_apart(g, rc, (int)r - 1) : 0;
}

/* ---- the operation -------------------------------------------------------------------------- */

/* What is known of the group meanwhile: negative, it is of no use to wait on. */
static int group_state_of(struct group *g, uint64_t *grace)
{
	int status;

	context_lock(g->ctx);
	status = g->status;
	context_unlock(g->ctx);
	if (status != -SLMPM_ECLOSED)
		return status;
	/* What a member has sent before it left may be on its way. */
	if (!*grace)
		*grace = clock_deadline(GRACE_MS);
	return clock_now() < *grace ? 0 : status;
}

/* Nothing is read or written for it any more. */
static void wait_for_rest(struct offload *o)
{
	struct offload_end end;

	(void)offload_wait(o, &end, 1, GRACE_MS);
}

/* Until it has ended: its end; -SLMPM_ETIMEOUT; or what the group's status is. */
static int await_run(struct group *g, uint64_t deadline, struct offload_end *end)
{
	uint64_t grace = 0;

	for (;;) {
		int left = clock_ms(clock_now(), deadline, SLICE_MS);
		int rc = offload_wait(g->messages->offload, end, 1, left ? left : 1);

		if (rc > 0)
			return 0;
		if (rc < 0 && rc != -SLMPM_ETIMEOUT && rc != -SLMPM_EAGAIN)
			return rc;
		rc = group_state_of(g, &grace);
		if (rc < 0)
			return rc;
		if (clock_now() >= deadline)
			return -SLMPM_ETIMEOUT;
	}
}

/* What END says. */
static int conclude_run(struct group *g, const struct slmpm_coll *c, const struct offload_end *end,
			uint32_t mark)
{
	int rc = end->status;

	if (rc == 0)
		return 0;
	if ((rc == -SLMPM_EINVAL || rc == -SLMPM_ETRUNC) && end->culprit >= 0)
		rc = differs(g, c, mark, end->culprit, rc);
	else if (g->status && g->status != -SLMPM_ECLOSED)
		return is_broken_by(g, g->begun, c->kind);
	else
		rc = boards_error(&g->boards, -rc, g->begun, c->kind, "by rank %d", end->culprit);
	return break_apart(g, rc, end->culprit);
}

static int carry_out(struct group *g, const struct slmpm_coll *c, const struct offload_run *run,
		     uint64_t deadline, int timeout_ms)
{
	struct offload *o = g->messages->offload;
	struct context *ctx = g->ctx;
	struct offload_end end = {0};
	int rc = offload_start(o, run);

	if (rc < 0)
		return break_apart(g, rc, -1);
	context_unlock(ctx);
	rc = await_run(g, deadline, &end);
	if (rc < 0) {
		offload_break(o, rc, -1);
		wait_for_rest(o);
	}
	context_lock(ctx);
	if (rc == 0)
		return conclude_run(g, c, &end, run->mark);
	if (rc == -SLMPM_ETIMEOUT && !g->status)
		return messages_late(g, c, timeout_ms);
	if (g->status)
		return is_broken_by(g, g->begun, c->kind);
	return break_apart(g, rc, missing(g));
}

static COLD int may_collect(struct group *g, uint32_t kind)
{
	if (g->ctx->handling)
		return context_forbids(g->ctx, CALL);
	if (!g->boards.own)
		return error_set(SLMPM_ESTATE,
				 CALL ": this process has founded the group and is no member");
	if (g->error)
		return error_set(-g->error, "%s", g->detail);
	if (g->status && g->status != -SLMPM_ECLOSED)
		return is_broken_by(g, g->begun + 1, kind);
	if (g->begun != g->done)
		return error_set(SLMPM_EBUSY, CALL ": another thread has an operation of the group "
						   "under way");
	return 0;
}

int messages_collect(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct offload_run run;
	int rc;

	(void)wait_inspect(g->ctx); /* what others have said of the group */
	rc = may_collect(g, c->kind);
	if (rc == 0)
		rc = flat_check(c, g->boards.size, g->boards.rank);
	if (rc == 0 && c->combine)
		rc = group_has_boards(g, CALL ", of an operation of the program's own");
	if (rc == 0 && !timeout_ms && g->boards.size > 1)
		rc = error_set(SLMPM_EAGAIN,
			       CALL ": a timeout of 0 is not enough for the others to "
				    "answer");
	if (rc == 0 && !g->messages)
		rc = messages_open(g);
	if (rc < 0)
		return rc;
	g->begun++;
	describe_run(g, c, &run);
	rc = look_through(g, &run);
	if (rc == 0)
		rc = connect_all(g, timeout_ms);
	if (rc == 0)
		rc = carry_out(g, c, &run, deadline, timeout_ms);
	g->done++;
	return rc;
}
