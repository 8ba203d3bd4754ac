/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a group between machines by the group of those on this one, and their ends. */
#include "slmpm/machine/machine_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/calc/calc.h"
#include "slmpm/group/pairing.h"

static int machine_next(struct group *g);

/* ---- an operation ---------------------------------------------------------------------------- */

static bool is_local_leader(const struct machine *n)
{
	return n->rank == n->leader;
}

/* Bytes of a contribution. */
static size_t machine_bytes(const struct messages *m)
{
	return m->coll->count * messages_width(m->coll);
}

/* This member's contribution. */
static const void *own_contribution(const struct slmpm_coll *c)
{
	return c->from == SLMPM_IN_PLACE ? c->to : c->from;
}

static bool is_root(const struct group *g)
{
	return g->messages->coll->root == (int)g->boards.rank;
}

/* The root leads its machine; its head leads each other one. */
static void choose_leaders(struct group *g)
{
	struct machine *n = g->messages->machine;
	const struct slmpm_coll *c = g->messages->coll;
	uint32_t root = flat_has_root(c->kind) ? (uint32_t)c->root : 0;

	n->leader = 0;
	for (uint32_t i = 0; i < n->machines; i++)
		n->leaders[i] = n->lowest[i] == g->messages->hosts[root] ? root : n->heads[i];
	while (n->ranks[n->leader] != n->leaders[n->index])
		n->leader++;
}

/* At a leader that is not the root. */
static bool sums_for_root(const struct group *g)
{
	return g->messages->coll->kind == SLMPM_COLL_REDUCE && !is_root(g);
}

/* For what comes of others, at the leader: some, in any case. */
static int machine_room(struct group *g)
{
	struct machine *n = g->messages->machine;
	size_t len = 0;
	void *room;

	if (n->gathers)
		len = machine_bytes(g->messages) * g->boards.size;
	else if (sums_for_root(g))
		len = machine_bytes(g->messages);
	len += !len;
	if (!is_local_leader(n) || len <= n->room_len)
		return 0;
	room = realloc(n->room, len);
	if (!room)
		return error_set(SLMPM_ENOMEM, "for what the members of a machine contribute");
	n->room = room;
	n->room_len = len;
	return 0;
}

/* Where a reduction's result within this machine goes, at the leader. */
static void *local_sum(const struct group *g)
{
	return sums_for_root(g) ? g->messages->machine->room : g->messages->coll->to;
}

/* Where all that this machine contributes lies, at the leader. */
static unsigned char *local_contributions(const struct group *g)
{
	const struct machine *n = g->messages->machine;

	return n->room + n->place[n->heads[n->index]] * machine_bytes(g->messages);
}

/* N->coll is begun by the local members, though they have broken G by then: perhaps in a later
 * operation than this one, of which all that is needed is there. */
static int begin_local(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;
	struct group *of = n->group;
	const uint32_t slot = (of->boards.posted + 1) % BOARD_SLOTS;

	n->local.steps_of[slot].number = m->number;
	n->local.steps_of[slot].kind = m->coll->kind;
	m->stage = LOCAL;
	n->result = of->error;
	if (of->error)
		return 0;
	n->op = (struct collective){.group = of,
				    .coll = &n->coll,
				    .result = &n->result,
				    .deadline = UINT64_MAX,
				    .kept = true};
	list_init(&n->op.node);
	if (operation_begin_flat(of, &n->coll) < 0)
		return -SLMPM_ENOMEM;
	flat_step_of(&of->flat, m->coll, m->history);
	of->begun++;
	operation_append(&n->op);
	return 0;
}

/* Elements of the program's own are bytes by boards. */
static void describe_local(struct group *g, uint32_t kind)
{
	const struct slmpm_coll *c = g->messages->coll;
	struct machine *n = g->messages->machine;
	bool barrier = c->kind == SLMPM_COLL_BARRIER;
	uint64_t count = c->combine ? c->count * c->combine->width : c->count;

	n->coll = (struct slmpm_coll){
		.size = sizeof(n->coll),
		.kind = kind,
		.type = barrier || c->combine ? SLMPM_UINT8 : c->type,
		.op = barrier ? SLMPM_CALC_SUM : c->op,
		.root = (int)n->leader,
		.count = barrier ? 0 : count,
		.to = c->to,
		.combine = kind == SLMPM_COLL_REDUCE ? c->combine : NULL,
	};
}

static int machine_gather(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;
	const struct slmpm_coll *c = m->coll;
	int rc = machine_room(g);

	if (rc < 0)
		return rc;
	n->phase = MACHINE_GATHERS;
	if (n->gathers && !n->group && c->count)
		memcpy(local_contributions(g), own_contribution(c), machine_bytes(m));
	if (!n->group || c->kind == SLMPM_COLL_BROADCAST)
		return machine_next(g);
	describe_local(g, n->gathers ? SLMPM_COLL_GATHER : SLMPM_COLL_REDUCE);
	n->coll.from = c->kind == SLMPM_COLL_BARRIER ? NULL : own_contribution(c);
	if (n->gathers)
		n->coll.to = is_local_leader(n) ? local_contributions(g) : NULL;
	else if (is_local_leader(n))
		n->coll.to = local_sum(g);
	if (!n->gathers && is_local_leader(n) && n->coll.from == n->coll.to)
		n->coll.from = SLMPM_IN_PLACE;
	return begin_local(g);
}

/* Contributions as they are, in the order of machines. */
static void describe_gathered(struct group *g)
{
	struct machine *n = g->messages->machine;
	struct offload_run *run = &g->messages->run;
	uint64_t width = run->combine ? run->combine->width : 1;
	bool all = run->spec.kind == SLMPM_COLL_ALLREDUCE;

	for (uint32_t i = 0; i < n->machines; i++)
		n->counts[n->machines + i] = n->counts[i] * width * run->spec.count;
	run->combine = NULL;
	run->spec.kind = all ? PLAN_ALLGATHER : PLAN_GATHER;
	run->spec.counts = n->counts + n->machines;
	run->spec.places = NULL;
	run->spec.count = 0;
	run->spec.flags = all || is_root(g) ? PLAN_IN_PLACE : 0;
	run->from = run->spec.flags ? NULL : local_contributions(g);
	run->to = run->spec.flags ? n->room : NULL;
}

/* What the local members have come to is this member's contribution. */
static void describe_sums(struct group *g)
{
	struct offload_run *run = &g->messages->run;
	bool sent = run->spec.kind == SLMPM_COLL_REDUCE && !is_root(g);

	run->spec.flags = sent ? 0 : PLAN_IN_PLACE;
	run->from = sent ? local_sum(g) : NULL;
	run->to = sent ? NULL : local_sum(g);
}

static int machine_exchange(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;
	struct plan_spec *spec = &m->run.spec;
	/* Of the program's own, what is gathered is counted in bytes. */
	uint32_t width = n->gathers && m->coll->combine ? 1 : messages_width(m->coll);

	n->phase = MACHINE_EXCHANGES;
	if (!is_local_leader(n)) {
		offload_pass(m->offload);
		return machine_next(g);
	}
	m->run = n->run;
	spec->members = n->leaders;
	spec->size = n->machines;
	spec->rank = n->index;
	spec->hosts = NULL;
	for (uint32_t i = 0; flat_has_root(m->coll->kind) && i < n->machines; i++)
		if (n->leaders[i] == (uint32_t)m->coll->root)
			spec->root = i;
	if (n->gathers)
		describe_gathered(g);
	else if (n->group && flat_combines(spec->kind))
		describe_sums(g);
	spec->algorithm = spec->kind == PLAN_GATHER ? PLAN_FLAT : plan_choose(spec, width);
	messages_piece(spec, width);
	return messages_exchange(g);
}

/* ---- in the order of the ranks --------------------------------------------------------------- */

static int fold_gathered(struct group *g)
{
	const struct messages *m = g->messages;
	const struct machine *n = m->machine;
	const struct slmpm_coll *c = m->coll;
	const size_t bytes = machine_bytes(m);
	struct flat f = {.coll = c, .shift = c->combine ? 0 : calc_shift(c->type)};

	if (!c->combine)
		f.kernel = calc_kernel_of(c->op, c->type, calc_has_vectors());
	if (!bytes)
		return 1;
	f.form = bytes >> f.shift < 4 ? CALC_STRIDED : CALC_PAIR;
	memcpy(c->to, n->room + n->place[0] * bytes, bytes);
	for (uint32_t r = 1; r < g->boards.size; r++)
		flat_combine(&f, c->to, c->to, n->room + n->place[r] * bytes, bytes >> f.shift);
	return 1;
}

static int machine_fold(struct group *g)
{
	const struct slmpm_combine *own = g->messages->coll->combine;

	return own ? operation_combine(g, own, fold_gathered) : fold_gathered(g);
}

/* ---- the result, within this machine -------------------------------------------------------- */

static int machine_spread(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;

	n->phase = MACHINE_SPREADS;
	if (!n->group || m->coll->kind == SLMPM_COLL_REDUCE)
		return 1;
	describe_local(g, SLMPM_COLL_BROADCAST);
	n->coll.from = is_local_leader(n) ? SLMPM_IN_PLACE : NULL;
	if (m->coll->kind == SLMPM_COLL_BROADCAST && is_root(g))
		n->coll.from = m->coll->from;
	return begin_local(g);
}

/* ---- its parts ------------------------------------------------------------------------------- */

static int machine_go(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;
	const struct slmpm_coll *c = m->coll;

	n->run = m->run;
	n->phase = MACHINE_SPREADS;
	n->gathers = flat_combines(c->kind) &&
		     m->run.spec.flags & (PLAN_RANK_ORDER | PLAN_NONCOMMUTATIVE);
	if (!m->local || m->run.spec.algorithm != PLAN_HOSTS ||
	    (n->gathers && !algorithm_may_gather(g, &m->run.spec, messages_width(c))))
		return messages_exchange(g);
	choose_leaders(g);
	n->folds =
		n->gathers && is_local_leader(n) && (c->kind == SLMPM_COLL_ALLREDUCE || is_root(g));
	return machine_gather(g);
}

static int machine_begin(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;

	if (n->decided)
		return machine_go(g);
	n->phase = MACHINE_FORMS;
	n->mark = m->run.mark;
	m->stage = LOCAL;
	machine_want(g, true);
	return 0;
}

static int machine_next(struct group *g)
{
	struct machine *n = g->messages->machine;

	switch (n->phase) {
	case MACHINE_FORMS: return machine_agree(g);
	case MACHINE_AGREES:
		n->decided = true;
		g->messages->local = n->word && machine_can_be_used(n);
		if (!g->messages->local)
			machine_leave(g);
		messages_describe(g, n->mark);
		return machine_go(g);
	case MACHINE_GATHERS: return machine_exchange(g);
	case MACHINE_EXCHANGES:
		if (!n->folds)
			return machine_spread(g);
		n->phase = MACHINE_FOLDS;
		g->messages->stage = LOCAL;
		return 0;
	case MACHINE_FOLDS: return machine_spread(g);
	default: n->local.done = n->group ? n->group->boards.posted : 0; return 1;
	}
}

/* ---- its end --------------------------------------------------------------------------------- */

/* The culprit of the local group, by its rank in G. */
static COLD int whole_culprit(const struct group *g)
{
	const struct group *of = g->messages->machine->group;

	return of->culprit < 0 ? -1 : (int)boards_rank(&of->boards, (uint32_t)of->culprit);
}

/* The culprit of G, by its rank in the local group. */
static COLD uint32_t local_culprit(const struct group *g)
{
	const uint32_t rank = (uint32_t)g->culprit;
	const struct machine *n = g->messages->machine;
	const uint32_t i = g->culprit < 0 ? BOARD_NONE : machine_rank(n, rank);

	return g->culprit < 0 || i != BOARD_NONE ? i : n->locals + rank;
}

static COLD int machine_failed(struct group *g)
{
	const struct group *of = g->messages->machine->group;

	if (group_is_broken(g) && g->culprit != whole_culprit(g))
		return messages_broken_by(g);
	(void)error_set(-of->error, "%s", of->detail);
	return messages_break(g, of->error, whole_culprit(g));
}

/* Members that differ may have done so by messages, before: what the other has done it says. The
 * first local one is one of the two, if this member is the other. */
static COLD int machine_fails(struct group *g)
{
	const struct machine *n = g->messages->machine;
	const int culprit = whole_culprit(g);
	const int other = culprit != (int)g->boards.rank ? culprit : (int)n->ranks[0];

	if (n->group->error != -SLMPM_EINVAL || other < 0 || other == (int)g->boards.rank)
		return machine_failed(g);
	stalled_ask(g, other, 0);
	g->messages->stage = ASKS;
	return 0;
}

static int machine_step(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;

	if (n->phase == MACHINE_FORMS)
		return n->locals == 1 ? 1 : machine_form(g);
	if (n->phase == MACHINE_FOLDS)
		return machine_fold(g);
	if (!n->result)
		(void)operations_go_on(n->group);
	return n->result < 0 ? machine_fails(g) : n->result;
}

/* Local members find on this member's board by whom G is broken; what their group has of a writer
 * that is stopped is of G's buffers. */
static COLD void machine_stop(struct group *g)
{
	struct machine *n = g->messages->machine;

	machine_want(g, false);
	if (!machine_is_current(g) || !machine_is_used(n))
		return;
	if (!n->group->error) {
		(void)error_set(-g->error, "%s", g->detail);
		operations_fail(n->group, g->error, local_culprit(g));
	}
	operation_warn(g, n->group);
}

static bool machine_is_due(const struct group *g)
{
	const struct machine *n = g->messages->machine;

	if (n->phase == MACHINE_FORMS)
		return n->asked ? !n->group || n->group->state != GROUP_IS_FORMING :
				  machine_is_decided(g);
	return machine_is_in_memory(n) && n->result != 0;
}

/* The operation under way is the local group's, or was: it has the words by which G is broken. */
static COLD bool machine_ends_it(const struct group *g)
{
	const struct messages *m = g->messages;

	return m->stage == ASKS || (m->stage == LOCAL && machine_is_in_memory(m->machine));
}

static bool machine_waits_here(const struct group *g)
{
	const struct messages *m = g->messages;

	return m && m->machine && m->stage == LOCAL && machine_is_in_memory(m->machine);
}

/* What breaks one of G and the local group breaks the other: G's operation that is under way may
 * still end, before local members learn it. */
static void machine_inspect(struct group *g)
{
	struct group *of = machine_is_current(g) ? g->messages->machine->group : NULL;

	if (!of || !machine_is_used(g->messages->machine) ||
	    group_is_broken(g) == group_is_broken(of))
		return;
	if (group_is_broken(of)) {
		if (!machine_ends_it(g))
			group_break(g, of->status, whole_culprit(g));
	} else if (g->messages->stage == NOT_BEGUN) {
		group_break(of, g->status, (int32_t)local_culprit(g));
		boards_end(&of->boards, g->status, local_culprit(g), g->said);
	}
}

const struct machine_ops machine_ops = {
	.open = machine_open,
	.close = machine_close,
	.begin = machine_begin,
	.step = machine_step,
	.next = machine_next,
	.failed = machine_failed,
	.stop = machine_stop,
	.is_due = machine_is_due,
	.is_local = machine_waits_here,
	.inspect = machine_inspect,
	.sized = machine_sized,
	.awaits = machine_awaits,
	.came = machine_came,
};
