/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* has-time */
/*
 * The plans of all members are run against each other, every kind by every algorithm, and their
 * results compared with what the kind says. Messages may be slow, and a send may not be done
 * before its receive is posted; memory knows what has not been written, is being sent or received
 * into. SLMPM_TEST_SWEEP=all has every root of every number of members.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <slmpm.h>

#include "slmpm/plan/plan.h"
#include "tests/lib/actor.h"
#include "tests/lib/random.h"

#define MOST   64   /* members */
#define LENGTH 1200 /* elements of an area of a short vector */

static bool is_in_blocks(uint32_t kind)
{
	return kind == PLAN_SCATTER || kind == PLAN_GATHER || kind == PLAN_ALLGATHER ||
	       kind == PLAN_ALLTOALL || kind == PLAN_REDUCE_SCATTER;
}

static bool is_rooted(uint32_t kind)
{
	return kind == PLAN_BROADCAST || kind == PLAN_REDUCE || kind == PLAN_SCATTER ||
	       kind == PLAN_GATHER;
}

static bool is_reduction(uint32_t kind)
{
	return kind == PLAN_REDUCE || kind == PLAN_ALLREDUCE || kind == PLAN_REDUCE_SCATTER ||
	       kind == PLAN_SCAN || kind == PLAN_EXSCAN;
}

/* ---- elements -------------------------------------------------------------------------------- */

enum operation {
	ADD,     /* all orders are the same */
	COMPOSE, /* of functions a * x + b: neighbours may be combined first, sides may not change */
	MIX      /* each order and each grouping is another */
};

static uint64_t hash(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static uint64_t combine(enum operation op, uint64_t left, uint64_t right)
{
	const uint32_t a = (uint32_t)left, b = (uint32_t)(left >> 32);
	const uint32_t c = (uint32_t)right, d = (uint32_t)(right >> 32);

	if (op == ADD)
		return left + right;
	if (op == MIX)
		return hash(left * 3 + hash(right));
	return (uint64_t)(b + a * d) << 32 | (a * c);
}

/* What a rank contributes at a place of its vector; to another rank's block, where it has such. */
static uint64_t given(uint32_t rank, uint32_t to, uint64_t i)
{
	return hash((uint64_t)rank << 40 | (uint64_t)to << 24 | i) | 1;
}

/* ---- a case ---------------------------------------------------------------------------------- */

enum shape { EVEN, UNEVEN, PLACED }; /* blocks: of count; of counts; where places say */

struct trial {
	uint32_t kind, algorithm, size, root;
	uint64_t count, piece;
	enum shape shape;
	bool in_place, rendezvous, strict; /* strict: nothing begins while a send is under way */
	enum operation op;
};

static struct trial trial;

/* Elements that FROM sends to TO, or of the only block of the one of both that counts. */
static uint64_t block_len(uint32_t from, uint32_t to)
{
	const uint32_t a = trial.kind == PLAN_ALLTOALL ? from : 0;
	const uint32_t lo = a < to ? a : to, hi = a < to ? to : a;

	if (trial.shape == EVEN)
		return trial.count;
	if (trial.kind == PLAN_ALLTOALL && !trial.in_place)
		return hash(a * 64 + to) % (trial.count + 3);
	return hash(lo * 64 + hi) % (trial.count + 3);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { UNDEFINED, DEFINED, COMING }; /* state of an element */

struct memory {
	uint64_t *at, len;
	uint8_t *state;
	uint8_t *sent; /* by so many sends under way */
};

struct lane {
	uint64_t posted, came, waited;
	uint64_t known;
};

struct member {
	struct plan plan;
	struct plan_step *step;
	uint32_t steps, room;
	uint32_t next;    /* step */
	uint32_t sending; /* sends under way, */
	uint32_t target;  /* to this rank */
	uint32_t inbox;   /* messages for it that have not met their receive */
	uint64_t known;   /* the ranks whose entering is known */
	struct memory area[4];
	struct lane lane[PLAN_LANES];
	uint64_t counts[MOST], places[MOST], to_counts[MOST], to_places[MOST];
};

struct message {
	struct message *next;
	const struct plan_step *step;
	uint64_t known;
	uint64_t *data; /* NULL: a rendezvous, it lies at its sender */
};

struct posted {
	struct posted *next;
	const struct plan_step *step;
};

static struct member members[MOST];
static struct message *messages[MOST][MOST]; /* from, to */
static struct posted *receives[MOST][MOST];
static char failure[200];

static bool wrong(uint32_t rank, uint32_t step, const char *why)
{
	if (!failure[0])
		snprintf(failure, sizeof(failure), "rank %u, step %u: %s", rank, step, why);
	return false;
}

static void memory_make(struct memory *m, uint64_t len)
{
	m->len = len;
	m->at = calloc(len + 1, sizeof(*m->at));
	m->state = calloc(len + 1, 1);
	m->sent = calloc(len + 1, 1);
}

static void memory_free(struct memory *m)
{
	free(m->at);
	free(m->state);
	free(m->sent);
	*m = (struct memory){0};
}

static bool reads(uint32_t rank, uint32_t i, uint8_t area, uint64_t first, uint64_t count)
{
	const struct memory *m = &members[rank].area[area];

	if (area < PLAN_FROM || area > PLAN_SCRATCH || first > m->len || count > m->len - first)
		return wrong(rank, i, "reads beyond an area");
	for (uint64_t e = first; e < first + count; e++)
		if (m->state[e] != DEFINED)
			return wrong(rank, i,
				     m->state[e] == COMING ? "reads what has not come" :
							     "reads what nothing wrote");
	return true;
}

static bool writes(uint32_t rank, uint32_t i, uint8_t area, uint64_t first, uint64_t count)
{
	const struct memory *m = &members[rank].area[area];

	if (area == PLAN_FROM && count)
		return wrong(rank, i, "writes the contribution");
	if (area < PLAN_FROM || area > PLAN_SCRATCH || first > m->len || count > m->len - first)
		return wrong(rank, i, "writes beyond an area");
	for (uint64_t e = first; e < first + count; e++)
		if (m->state[e] == COMING || m->sent[e])
			return wrong(rank, i, "writes what is under way");
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void append(struct message **list, struct message *m)
{
	while (*list)
		list = &(*list)->next;
	*list = m;
}

static bool send_begin(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];
	struct memory *m = &me->area[s->at_area];
	struct message *message;

	if (s->peer >= trial.size || s->peer == rank)
		return wrong(rank, i, "sends to no other member");
	if (!reads(rank, i, s->at_area, s->at, s->count))
		return false;
	message = calloc(1, sizeof(*message));
	message->step = s;
	message->known = me->known;
	if (trial.rendezvous) {
		for (uint64_t e = s->at; e < s->at + s->count; e++)
			m->sent[e]++;
	} else {
		message->data = malloc((s->count + 1) * sizeof(uint64_t));
		memcpy(message->data, m->at + s->at, s->count * sizeof(uint64_t));
	}
	append(&messages[rank][s->peer], message);
	me->sending += trial.rendezvous;
	members[s->peer].inbox++;
	me->target = s->peer;
	return true;
}

static bool recv_post(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];
	struct posted **list, *posted;

	if (s->peer >= trial.size || s->peer == rank || s->lane >= PLAN_LANES)
		return wrong(rank, i, "receives from no other member, or on no lane");
	if (!writes(rank, i, s->at_area, s->at, s->count))
		return false;
	memset(me->area[s->at_area].state + s->at, COMING, s->count);
	me->lane[s->lane].posted++;
	posted = calloc(1, sizeof(*posted));
	posted->step = s;
	for (list = &receives[s->peer][rank]; *list; list = &(*list)->next)
		;
	*list = posted;
	return true;
}

/* The first message from FROM meets the first receive for it. */
static bool deliver(uint32_t from, uint32_t to)
{
	struct message *m = messages[from][to];
	struct posted *r = receives[from][to];
	struct memory *there = &members[from].area[m->step->at_area];
	struct memory *here = &members[to].area[r->step->at_area];
	struct lane *lane = &members[to].lane[r->step->lane];
	const uint64_t count = m->step->count, *data = m->data ? m->data : there->at + m->step->at;

	messages[from][to] = m->next;
	receives[from][to] = r->next;
	if (count == r->step->count) {
		memcpy(here->at + r->step->at, data, count * sizeof(*data));
		memset(here->state + r->step->at, DEFINED, count);
	}
	for (uint64_t e = m->step->at; !m->data && e < m->step->at + count; e++)
		there->sent[e]--;
	members[to].inbox--;
	lane->came++;
	lane->known |= m->known;
	if (!m->data) {
		members[from].sending--;
	}
	if (count != r->step->count)
		wrong(to, (uint32_t)(r->step - members[to].step), "another length");
	free(m->data);
	free(m);
	free(r);
	return !failure[0];
}

static bool apart(uint8_t area, uint64_t at, uint8_t other_area, uint64_t other, uint64_t count)
{
	return area != other_area || at + count <= other || other + count <= at;
}

static bool fold(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];
	uint64_t *at, *left, *right;

	if (!reads(rank, i, s->left_area, s->left, s->count) ||
	    !reads(rank, i, s->right_area, s->right, s->count) ||
	    !writes(rank, i, s->at_area, s->at, s->count))
		return false;
	at = me->area[s->at_area].at + s->at;
	left = me->area[s->left_area].at + s->left;
	right = me->area[s->right_area].at + s->right;
	if ((at != left && !apart(s->at_area, s->at, s->left_area, s->left, s->count)) ||
	    (at != right && !apart(s->at_area, s->at, s->right_area, s->right, s->count)))
		return wrong(rank, i, "combines across itself");
	for (uint64_t e = 0; e < s->count; e++)
		at[e] = combine(trial.op, left[e], right[e]);
	memset(me->area[s->at_area].state + s->at, DEFINED, s->count);
	return true;
}

static bool copy(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];

	if (!reads(rank, i, s->left_area, s->left, s->count) ||
	    !writes(rank, i, s->at_area, s->at, s->count))
		return false;
	if (!apart(s->at_area, s->at, s->left_area, s->left, s->count))
		return wrong(rank, i, "copies across itself");
	memcpy(me->area[s->at_area].at + s->at, me->area[s->left_area].at + s->left,
	       s->count * sizeof(uint64_t));
	memset(me->area[s->at_area].state + s->at, DEFINED, s->count);
	return true;
}

static bool may_begin(const struct member *me, const struct plan_step *s)
{
	if (!me->sending)
		return true;
	if (trial.strict)
		return false;
	return s->op == PLAN_WAIT || (s->op == PLAN_RECV && s->flags & PLAN_AHEAD) ||
	       (s->op == PLAN_SEND && s->peer == me->target);
}

/* Of a lane all that is under way is waited for: 1 when it has come, or as step_next. */
static int wait_for(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	struct lane *lane = &me->lane[me->step[i].lane];

	if (lane->posted != lane->waited + me->step[i].count)
		return wrong(rank, i, "waits for others than are under way") - 1;
	if (lane->came < lane->posted)
		return 0;
	lane->waited = lane->posted;
	me->known |= lane->known;
	return 1;
}

/* 1: it has been taken; 0: it waits, or there is none; -1: it is wrong. */
static int step_next(uint32_t rank)
{
	struct member *me = &members[rank];
	const uint32_t i = me->next;
	int rc;

	if (i == me->steps || !may_begin(me, &me->step[i]))
		return 0;
	switch (me->step[i].op) {
	case PLAN_SEND: rc = send_begin(rank, i) ? 1 : -1; break;
	case PLAN_RECV: rc = recv_post(rank, i) ? 1 : -1; break;
	case PLAN_WAIT: rc = wait_for(rank, i); break;
	case PLAN_FOLD: rc = fold(rank, i) ? 1 : -1; break;
	case PLAN_COPY: rc = copy(rank, i) ? 1 : -1; break;
	default: rc = wrong(rank, i, "no step") - 1;
	}
	me->next += rc > 0;
	return rc;
}

/* ---- running --------------------------------------------------------------------------------- */

static struct rng rng;

static uint32_t draw(uint32_t below)
{
	return rng_below(&rng, below);
}

/* What can come does, some of it now and some later. */
static bool deliver_some(uint32_t to, bool *moved)
{
	for (uint32_t from = 0; members[to].inbox && from < trial.size; from++)
		while (messages[from][to] && receives[from][to]) {
			*moved = true;
			if (draw(4) == 0)
				break;
			if (!deliver(from, to))
				return false;
		}
	return true;
}

/* False: something is wrong. */
static bool turn(uint32_t rank, bool *moved)
{
	int rc = 1;

	if (!deliver_some(rank, moved))
		return false;
	while (rc > 0 && draw(8)) {
		rc = step_next(rank);
		*moved |= rc > 0;
	}
	if (rc > 0) /* it might have gone on */
		*moved = true;
	return rc >= 0;
}

static bool ended(void)
{
	for (uint32_t r = 0; r < trial.size; r++) {
		const struct member *me = &members[r];

		if (me->next < me->steps)
			return wrong(r, me->next, "waits for ever");
		for (uint32_t k = 0; k < PLAN_LANES; k++)
			if (me->lane[k].waited != me->lane[k].posted)
				return wrong(r, k, "a receive that it does not wait for");
		for (uint32_t to = 0; to < trial.size; to++)
			if (messages[r][to] || receives[r][to])
				return wrong(r, 0, "a message without its receive");
	}
	return true;
}

static bool run_all(void)
{
	bool moved = true;

	while (moved) {
		const uint32_t first = draw(trial.size);

		moved = false;
		for (uint32_t r = 0; r < trial.size; r++) {
			if (!turn((first + r) % trial.size, &moved))
				return false;
		}
	}
	return ended();
}

/* ---- what it should be ----------------------------------------------------------------------- */

static bool contributes_all(uint32_t rank)
{
	return trial.kind == PLAN_SCATTER ?
		       rank == trial.root :
		       trial.kind == PLAN_ALLTOALL || trial.kind == PLAN_REDUCE_SCATTER;
}

static bool gets_all(uint32_t rank)
{
	return trial.kind == PLAN_GATHER ?
		       rank == trial.root :
		       trial.kind == PLAN_ALLGATHER || trial.kind == PLAN_ALLTOALL;
}

static uint64_t lay(uint64_t *counts, uint64_t *places, uint32_t rank, bool sends)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < trial.size; i++) {
		const uint32_t r = trial.shape == PLACED ? trial.size - 1 - i : i;

		counts[r] = sends ? block_len(rank, r) : block_len(r, rank);
		if (trial.kind != PLAN_ALLTOALL)
			counts[r] = block_len(0, r);
		end += trial.shape == PLACED ? i % 3 : 0;
		places[r] = end;
		end += counts[r];
	}
	return end;
}

static void define(struct memory *m, uint64_t at, uint32_t from, uint32_t to, uint64_t count)
{
	for (uint64_t e = 0; e < count; e++) {
		m->at[at + e] = given(from, to, e);
		m->state[at + e] = DEFINED;
	}
}

static void contribute(uint32_t rank)
{
	struct member *me = &members[rank];
	struct memory *m = &me->area[trial.in_place ? PLAN_TO : PLAN_FROM];
	const bool to = trial.in_place && trial.kind == PLAN_ALLTOALL;

	if (contributes_all(rank)) {
		for (uint32_t r = 0; r < trial.size; r++)
			define(m, to ? me->to_places[r] : me->places[r], rank, r,
			       to ? me->to_counts[r] : me->counts[r]);
	} else if (is_in_blocks(trial.kind)) {
		const bool placed = trial.in_place && gets_all(rank);

		if (trial.kind != PLAN_SCATTER)
			define(m, placed ? me->places[rank] : 0, rank, 0, me->counts[rank]);
	} else if (trial.kind != PLAN_BROADCAST || rank == trial.root) {
		define(m, 0, rank, 0, trial.count);
	}
}

static void member_make(uint32_t rank)
{
	struct member *me = &members[rank];
	const bool counted = trial.shape != EVEN, placed = trial.shape == PLACED;
	const uint64_t from_end = lay(me->counts, me->places, rank, true);
	const uint64_t to_end = lay(me->to_counts, me->to_places, rank, false);
	uint64_t from_len = trial.count, to_len = trial.count;
	const struct plan_spec spec = {
		.kind = trial.kind,
		.algorithm = trial.algorithm,
		.size = trial.size,
		.rank = rank,
		.root = trial.root,
		.flags = trial.in_place ? PLAN_IN_PLACE : 0,
		.count = counted ? 0 : trial.count,
		.counts = counted ? me->counts : NULL,
		.places = placed ? me->places : NULL,
		.to_counts = counted ? me->to_counts : NULL,
		.to_places = placed ? me->to_places : NULL,
		.piece = trial.piece,
	};

	assert_int_equal(plan_begin(&me->plan, &spec), 0);
	if (is_in_blocks(trial.kind)) {
		from_len = contributes_all(rank) ? from_end : me->counts[rank];
		to_len = gets_all(rank) ? to_end : me->to_counts[rank];
	}
	if (trial.kind == PLAN_REDUCE && rank != trial.root && !trial.in_place)
		to_len = 0;
	if (trial.kind == PLAN_GATHER && rank != trial.root && !trial.in_place)
		to_len = 0;
	if (trial.kind == PLAN_BROADCAST && rank == trial.root && !trial.in_place)
		to_len = 0;
	if (trial.in_place) {
		to_len = to_len > from_len ? to_len : from_len;
		from_len = 0;
	}
	memory_make(&me->area[PLAN_FROM], from_len);
	memory_make(&me->area[PLAN_TO], to_len);
	memory_make(&me->area[PLAN_SCRATCH], me->plan.scratch);
	contribute(rank);
	me->known = 1ull << rank;
}

static void member_steps(uint32_t rank)
{
	struct member *me = &members[rank];
	struct plan_step step;

	me->steps = 0;
	while (plan_next(&me->plan, &step)) {
		if (me->steps == me->room) {
			me->room = me->room * 2 + 16;
			me->step = realloc(me->step, me->room * sizeof(step));
		}
		me->step[me->steps++] = step;
	}
}

static void member_free(uint32_t rank)
{
	struct member *me = &members[rank];

	for (int a = PLAN_FROM; a <= PLAN_SCRATCH; a++)
		memory_free(&me->area[a]);
	me->next = me->sending = me->inbox = 0;
	memset(me->lane, 0, sizeof(me->lane));
	for (uint32_t to = 0; to < trial.size; to++) {
		while (messages[rank][to]) {
			struct message *m = messages[rank][to];

			messages[rank][to] = m->next;
			free(m->data);
			free(m);
		}
		while (receives[rank][to]) {
			struct posted *r = receives[rank][to];

			receives[rank][to] = r->next;
			free(r);
		}
	}
}

/* Element E of block TO of a reduction over the ranks below END. */
static uint64_t reduced(uint32_t end, uint32_t to, uint64_t e)
{
	uint64_t sum = given(0, to, e);

	for (uint32_t r = 1; r < end; r++)
		sum = combine(trial.op, sum, given(r, to, e));
	return sum;
}

static bool expect(uint32_t rank, uint64_t at, uint64_t value)
{
	const struct memory *m = &members[rank].area[PLAN_TO];

	if (at >= m->len || m->state[at] != DEFINED)
		return wrong(rank, (uint32_t)at, "no result there");
	return m->at[at] == value || wrong(rank, (uint32_t)at, "another result");
}

static bool expect_blocks(uint32_t rank)
{
	const struct member *me = &members[rank];
	const bool alltoall = trial.kind == PLAN_ALLTOALL;

	for (uint32_t r = 0; r < trial.size; r++)
		for (uint64_t e = 0; e < me->to_counts[r]; e++)
			if (!expect(rank, me->to_places[r] + e, given(r, alltoall ? rank : 0, e)))
				return false;
	return true;
}

static uint64_t value_at(uint32_t rank, uint64_t e)
{
	switch (trial.kind) {
	case PLAN_BROADCAST: return given(trial.root, 0, e);
	case PLAN_SCATTER: return given(trial.root, rank, e);
	case PLAN_SCAN: return reduced(rank + 1, 0, e);
	case PLAN_EXSCAN: return reduced(rank, 0, e);
	case PLAN_REDUCE_SCATTER: return reduced(trial.size, rank, e);
	default: return reduced(trial.size, 0, e);
	}
}

static bool has_result(uint32_t rank)
{
	switch (trial.kind) {
	case PLAN_BARRIER: return false;
	case PLAN_BROADCAST: return rank != trial.root || trial.in_place;
	case PLAN_REDUCE:
	case PLAN_GATHER: return rank == trial.root;
	case PLAN_SCATTER: return rank != trial.root || !trial.in_place;
	case PLAN_EXSCAN: return rank > 0;
	default: return true;
	}
}

static bool result_right(uint32_t rank)
{
	const uint64_t all = trial.size == 64 ? UINT64_MAX : (1ull << trial.size) - 1;
	const struct member *me = &members[rank];
	const uint64_t len = is_in_blocks(trial.kind) ? me->to_counts[rank] : trial.count;

	if (trial.kind == PLAN_BARRIER && me->known != all)
		return wrong(rank, 0, "leaves before all have entered");
	if (!has_result(rank))
		return true;
	if (gets_all(rank))
		return expect_blocks(rank);
	for (uint64_t e = 0; e < len; e++)
		if (!expect(rank, e, value_at(rank, e)))
			return false;
	return true;
}

/* Whatever it computes, it is the same everywhere. */
static bool results_same(void)
{
	const struct memory *first = &members[0].area[PLAN_TO];

	for (uint32_t r = 1; trial.kind == PLAN_ALLREDUCE && r < trial.size; r++)
		if (memcmp(first->at, members[r].area[PLAN_TO].at, first->len * sizeof(uint64_t)))
			return wrong(r, 0, "other bits than rank 0");
	return true;
}

static const uint32_t no_step = UINT32_MAX;

/* One run; without step LOST of rank LOSER. Its failure is in `failure`. */
static bool run_without(uint32_t loser, uint32_t lost)
{
	const bool exact =
		trial.op != MIX || plan_properties(trial.kind, trial.algorithm) & PLAN_LINEAR;
	bool right;

	failure[0] = 0;
	for (uint32_t r = 0; r < trial.size; r++) {
		member_make(r);
		member_steps(r);
	}
	if (lost != no_step) {
		struct member *m = &members[loser];

		memmove(m->step + lost, m->step + lost + 1,
			(m->steps - lost - 1) * sizeof(*m->step));
		m->steps--;
	}
	right = run_all();
	for (uint32_t r = 0; right && exact && r < trial.size; r++)
		right = result_right(r);
	right = right && results_same();
	for (uint32_t r = 0; r < trial.size; r++)
		member_free(r);
	return right;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static uint64_t runs;

static void run_right(void)
{
	runs++;
	if (!run_without(0, no_step))
		fail_msg("%s by %s, %u members, root %u, count %llu, piece %llu, shape %d%s%s%s, "
			 "operation %d: %s",
			 plan_kind_name(trial.kind), plan_name(trial.algorithm), trial.size,
			 trial.root, (unsigned long long)trial.count,
			 (unsigned long long)trial.piece, trial.shape,
			 trial.in_place ? ", in place" : "", trial.rendezvous ? ", rendezvous" : "",
			 trial.strict ? ", strict" : "", trial.op, failure);
}

/* By the operation that its properties allow; and by one that shows each order. */
static void run_operations(void)
{
	const uint32_t has = plan_properties(trial.kind, trial.algorithm);

	trial.op = has & PLAN_COMMUTES ? ADD : has & PLAN_LINEAR ? MIX : COMPOSE;
	run_right();
	if (trial.kind != PLAN_ALLREDUCE || trial.op == MIX)
		return;
	trial.op = MIX;
	run_right();
}

/* Each run has a mode of its own; all come about. */
static void run_modes(void)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		const uint32_t mode = draw(4);

		if (in_place && trial.kind == PLAN_BARRIER)
			return;
		trial.in_place = in_place;
		trial.rendezvous = mode & 1;
		trial.strict = mode & 2;
		run_operations();
	}
}

static void run_counts(void)
{
	const uint32_t n = trial.size;
	const uint64_t counts[] = {0, 1, n - 1, n, n > 9 && n % 8 ? 40 : 1000};

	for (uint32_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		trial.count = counts[i];
		trial.piece = i == 4 ? 1 + draw(300) : 0;
		trial.shape = EVEN;
		run_modes();
		if (trial.kind == PLAN_BARRIER)
			return;
	}
	for (trial.shape = UNEVEN; is_in_blocks(trial.kind) && trial.shape <= PLACED;
	     trial.shape++) {
		trial.count = draw(2) ? 2 : 20;
		run_modes();
	}
}

static void run_roots(bool every)
{
	const uint32_t n = trial.size;

	if (!is_rooted(trial.kind)) {
		trial.root = 0;
		run_counts();
		return;
	}
	for (uint32_t root = 0; root < n; root++) {
		trial.root = root;
		if (every || root < 2 || root + 1 == n || root == n / 2 || draw(n) < 2)
			run_counts();
	}
}

/* From N members to the next number of them; above ten, under a sanitizer, some. */
static uint32_t more(uint32_t n)
{
	return n < 10 || actor_slow() == 1 ? n + 1 : n + 6;
}

static void each_is_right(void **state)
{
	const char *sweep = getenv("SLMPM_TEST_SWEEP");

	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++)
			for (uint32_t n = 1; n <= 34; n = more(n)) {
				trial = (struct trial){.kind = kind,
						       .algorithm = plan_algorithm_at(kind, i),
						       .size = n < 34 ? n : MOST};
				run_roots(n <= 9 || (sweep && !strcmp(sweep, "all")));
			}
	print_message("%llu runs\n", (unsigned long long)runs);
	assert_true(runs > (actor_slow() == 1 ? 20000 : 8000));
}

/* Long vectors go through few slots. */
static void long_ones(void **state)
{
	(void)state;
	for (uint32_t kind = PLAN_BROADCAST; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++)
			for (uint32_t n = 2; n <= 7; n++) {
				trial = (struct trial){.kind = kind,
						       .algorithm = plan_algorithm_at(kind, i),
						       .size = n,
						       .root = draw(is_rooted(kind) ? n : 1),
						       .count = 9001};
				for (int k = 0; k < 3; k++) {
					trial.piece = k ? 900 : 0;
					run_modes();
				}
			}
}

/* Each step is needed: without it a run fails. */
static void lose_each(uint32_t rank)
{
	for (uint32_t lost = 0; lost < members[rank].steps; lost++) {
		const uint8_t op = members[rank].step[lost].op;

		if (run_without(rank, lost))
			fail_msg("%s by %s is right without step %u of rank %u, a %u",
				 plan_kind_name(trial.kind), plan_name(trial.algorithm), lost, rank,
				 op);
		assert_true(run_without(rank, no_step));
	}
}

static void each_step_is_needed(void **state)
{
	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++) {
			const enum plan_algorithm algorithm = plan_algorithm_at(kind, i);
			const uint32_t has = plan_properties(kind, algorithm);

			trial = (struct trial){.kind = kind,
					       .algorithm = algorithm,
					       .size = 6,
					       .root = is_rooted(kind) ? 2 : 0,
					       .count = 7,
					       .piece = 3,
					       .op = has & PLAN_COMMUTES ? ADD :
						     has & PLAN_LINEAR   ? MIX :
									   COMPOSE};
			assert_true(run_without(0, no_step));
			for (uint32_t r = 0; r < trial.size; r++)
				lose_each(r);
		}
}

static void choice_fits(void **state)
{
	static const uint32_t flags[] = {0, PLAN_RANK_ORDER, PLAN_NONCOMMUTATIVE,
					 PLAN_RANK_ORDER | PLAN_NONCOMMUTATIVE};

	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t n = 1; n < 3000; n = n * 2 + 1)
			for (uint64_t count = 0; count < 1 << 27; count = count * 3 + 1)
				for (uint32_t f = 0; f < 4; f++) {
					struct plan_spec spec = {.kind = kind,
								 .size = n,
								 .flags = flags[f],
								 .count = count};
					uint32_t has;

					spec.algorithm = plan_choose(&spec, 8);
					assert_int_not_equal(spec.algorithm, PLAN_AUTO);
					has = plan_properties(kind, spec.algorithm);
					if (is_reduction(kind) && flags[f] & PLAN_RANK_ORDER)
						assert_true(has & PLAN_LINEAR);
					if (flags[f] & PLAN_NONCOMMUTATIVE)
						assert_false(has & PLAN_COMMUTES);
				}
}

static void names_are_known(void **state)
{
	(void)state;
	for (enum plan_algorithm a = PLAN_DISSEMINATION; a < PLAN_ALGORITHMS; a++)
		assert_int_equal(plan_by_name(plan_name(a)), a);
	assert_int_equal(plan_by_name("none such"), PLAN_AUTO);
	assert_int_equal(plan_by_name("auto"), PLAN_AUTO);
	assert_string_equal(plan_kind_name(PLAN_EXSCAN), "exscan");
	assert_string_equal(plan_kind_name(0), "?");
}

static void what_is_no_plan(void **state)
{
	const uint64_t counts[2] = {UINT64_MAX, 1};
	const struct plan_spec sound = {
		.kind = PLAN_GATHER, .algorithm = PLAN_FLAT, .size = 2, .root = 1, .count = 1};
	struct plan_spec spec = sound;
	struct plan plan;

	(void)state;
	assert_int_equal(plan_begin(&plan, &spec), 0);
	spec.rank = 2;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.root = 2;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.algorithm = PLAN_RING;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.kind = 99;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.count = UINT64_MAX / 2;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_ELIMIT);
	spec.counts = counts;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_ELIMIT);
}

/* A thousand members' ring has thousands of steps, and a plan is as small as any. */
static void many_members(void **state)
{
	const struct plan_spec spec = {.kind = PLAN_ALLREDUCE,
				       .algorithm = PLAN_RING,
				       .size = 1000,
				       .rank = 999,
				       .count = 1000000};
	struct plan plan;
	struct plan_step step;
	uint64_t steps = 0, again = 0, sent = 0;

	(void)state;
	assert_true(sizeof(plan) < 1024);
	assert_int_equal(plan_begin(&plan, &spec), 0);
	while (plan_next(&plan, &step)) {
		steps++;
		sent += step.op == PLAN_SEND ? step.count : 0;
	}
	assert_int_equal(sent, 2 * 999 * 1000);
	plan_again(&plan);
	while (plan_next(&plan, &step))
		again++;
	assert_int_equal(again, steps);
	assert_true(plan.scratch < spec.count / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_right),       cmocka_unit_test(long_ones),
		cmocka_unit_test(each_step_is_needed), cmocka_unit_test(choice_fits),
		cmocka_unit_test(names_are_known),     cmocka_unit_test(what_is_no_plan),
		cmocka_unit_test(many_members),
	};
	int rc;

	rng.state = rng_run_seed((uint64_t)time(NULL));
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	for (uint32_t r = 0; r < MOST; r++)
		free(members[r].step);
	return rc;
}
