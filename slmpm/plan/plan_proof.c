/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the steps of a text amount to. All members' are done at once, with what each part consists
 * of in the place of its bytes: whose contributions, and to which part.
 *
 * A SEND waits here until its receive is posted, and all behind it wait for it. There is no other
 * choice: messages of a pair are matched in their order, and no step asks which has come. So a text
 * that comes to its end so does in every order of events, and with the same result: where a SEND
 * needs not wait, more can begin, and what is read and written meanwhile is not what it reads
 * (plan_text.c: may_be_ahead).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/plan/plan_text.h"

enum value_state { VALUE_NONE, VALUE_COMING, VALUE_THERE };

struct value {
	uint64_t set;   /* ranks whose contributions it combines, each once */
	uint64_t tree;  /* in which order: the same of the same operands in the same order */
	uint32_t line;  /* that made it */
	uint16_t index; /* of those contributions */
	uint8_t state;
	uint8_t properties;
};

struct pending { /* a receive that no WAIT has been for */
	const struct text_step *step;
	bool come;
	uint64_t entered; /* what its sender knew */
};

struct proof_member {
	struct value *area[PLAN_SCRATCH + 1]; /* TO, SCRATCH */
	uint32_t len[PLAN_SCRATCH + 1];
	const struct text_step *next, *end;
	struct pending *pending;
	uint32_t pendings;
	uint64_t entered; /* ranks that have begun, as it knows */
};

struct proof {
	struct plan_text *t;
	struct proof_member member[PLAN_TEXT_MEMBERS];
};

__attribute__((cold, format(printf, 3, 4))) static int disprove(uint32_t rank, uint32_t line,
								const char *format, ...)
{
	char text[ERROR_DETAIL];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return error_set(SLMPM_EINVAL, "line %" PRIu32 ", rank %" PRIu32 ": %s", line, rank, text);
}

static const char *area_name(uint8_t area)
{
	return area == PLAN_FROM ? "from" : area == PLAN_TO ? "to" : "scratch";
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

static struct value contribution_of(uint32_t rank, uint32_t index)
{
	return (struct value){.set = UINT64_C(1) << rank,
			      .tree = mix((uint64_t)index << 8 | rank),
			      .index = (uint16_t)index,
			      .state = VALUE_THERE,
			      .properties = PLAN_LINEAR};
}

/* N parts of AREA from FIRST on are there at RANK. */
static int has_parts(const struct proof *p, uint32_t rank, const struct text_step *s, uint8_t area,
		     uint32_t first, uint32_t n)
{
	const struct proof_member *m = &p->member[rank];

	if (first + n > m->len[area])
		return disprove(rank, s->line,
				"it has %" PRIu32 " parts of %s, not one [%" PRIu32 "]",
				m->len[area], area_name(area), first + n - 1);
	return 0;
}

static int may_read(const struct proof *p, uint32_t rank, const struct text_step *s, uint8_t area,
		    uint32_t first)
{
	const struct proof_member *m = &p->member[rank];
	int rc = has_parts(p, rank, s, area, first, s->parts);

	for (uint32_t i = first; rc == 0 && area != PLAN_FROM && i < first + s->parts; i++)
		if (m->area[area][i].state != VALUE_THERE)
			rc = disprove(rank, s->line, "it reads %s[%" PRIu32 "], %s",
				      area_name(area), i,
				      m->area[area][i].state == VALUE_COMING ?
					      "which no wait says has come" :
					      "where nothing has been written");
	return rc;
}

static int may_write(const struct proof *p, uint32_t rank, const struct text_step *s)
{
	const struct proof_member *m = &p->member[rank];
	int rc = s->at_area == PLAN_FROM && s->parts ?
			 disprove(rank, s->line, "it writes from, which is the caller's") :
			 has_parts(p, rank, s, s->at_area, s->at, s->parts);

	for (uint32_t i = s->at; rc == 0 && i < (uint32_t)s->at + s->parts; i++)
		if (m->area[s->at_area][i].state == VALUE_COMING)
			rc = disprove(rank, s->line,
				      "it writes %s[%" PRIu32 "], which is being received",
				      area_name(s->at_area), i);
	return rc;
}

static struct value value_at(const struct proof *p, uint32_t rank, uint8_t area, uint32_t i)
{
	return area == PLAN_FROM ? contribution_of(rank, i) : p->member[rank].area[area][i];
}

static void set_value(struct proof *p, uint32_t rank, const struct text_step *s, uint32_t k,
		      struct value v)
{
	struct value *to = &p->member[rank].area[s->at_area][s->at + k];

	v.line = s->line;
	*to = v;
}

/* Of one length each, whatever the count. */
static bool is_as_long(const struct plan_text *t, uint32_t a, uint32_t b)
{
	return a % t->parts == b % t->parts;
}

/* ---- what is combined ------------------------------------------------------------------------ */

static bool is_one(uint64_t set)
{
	return !(set & (set - 1));
}

/* Of neighbours, those of B behind those of A. */
static bool are_neighbours(uint64_t a, uint64_t b)
{
	const uint64_t all = a | b, low = all & -all;

	return !((all + low) & all) && a < (b & -b);
}

static int combine_parts(uint32_t rank, const struct text_step *s, const struct value *a,
			 const struct value *b, struct value *sum)
{
	if (a->index != b->index)
		return disprove(rank, s->line,
				"it combines contributions to part %d with others to part %d",
				a->index, b->index);
	if (a->set & b->set)
		return disprove(rank, s->line, "it combines rank %d's contribution twice",
				__builtin_ctzll(a->set & b->set));
	*sum = (struct value){.set = a->set | b->set,
			      .tree = mix(a->tree * 3 + mix(b->tree)),
			      .index = a->index,
			      .state = VALUE_THERE};
	if (!are_neighbours(a->set, b->set) || (a->properties | b->properties) & PLAN_COMMUTES)
		sum->properties = PLAN_COMMUTES;
	else if (a->properties & PLAN_LINEAR && is_one(b->set))
		sum->properties = PLAN_LINEAR;
	return 0;
}

static int do_fold(struct proof *p, uint32_t rank, const struct text_step *s)
{
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < s->parts; k++) {
		const struct value a = value_at(p, rank, s->left_area, s->left + k);
		const struct value b = value_at(p, rank, s->right_area, s->right + k);
		struct value sum;

		rc = combine_parts(rank, s, &a, &b, &sum);
		if (rc == 0)
			set_value(p, rank, s, k, sum);
	}
	return rc;
}

static int do_copy(struct proof *p, uint32_t rank, const struct text_step *s)
{
	for (uint32_t k = 0; k < s->parts; k++)
		set_value(p, rank, s, k, value_at(p, rank, s->left_area, s->left + k));
	return 0;
}

static bool lies_across(const struct text_step *s, uint8_t area, uint32_t first, bool may_be_same)
{
	return s->at_area == area && (!may_be_same || s->at != first) && s->at < first + s->parts &&
	       first < (uint32_t)s->at + s->parts;
}

/* A FOLD or a COPY: 1; negative. */
static int step_local(struct proof *p, uint32_t rank, const struct text_step *s)
{
	const bool folds = s->op == PLAN_FOLD;
	int rc;

	if (folds && !(plan_takes(p->t->kind) & PLAN_COMBINES))
		return disprove(rank, s->line, "%s combines nothing", plan_kind_name(p->t->kind));
	rc = may_read(p, rank, s, s->left_area, s->left);
	if (rc == 0)
		rc = may_read(p, rank, s, s->right_area, s->right);
	if (rc == 0)
		rc = may_write(p, rank, s);
	if (rc == 0 && !(is_as_long(p->t, s->at, s->left) && is_as_long(p->t, s->at, s->right)))
		rc = disprove(rank, s->line,
			      "its operands may be of other lengths: [I] is part "
			      "I %% %" PRIu32,
			      p->t->parts);
	if (rc == 0 && (lies_across(s, s->left_area, s->left, folds) ||
			lies_across(s, s->right_area, s->right, folds)))
		rc = disprove(rank, s->line, "its operands overlap");
	if (rc == 0)
		rc = folds ? do_fold(p, rank, s) : do_copy(p, rank, s);
	return rc < 0 ? rc : 1;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int step_receive(struct proof *p, uint32_t rank, const struct text_step *s)
{
	struct proof_member *m = &p->member[rank];
	int rc = may_write(p, rank, s);

	if (rc < 0)
		return rc;
	for (uint32_t k = 0; k < s->parts; k++)
		m->area[s->at_area][s->at + k].state = VALUE_COMING;
	m->pending[m->pendings++] = (struct pending){.step = s};
	return 1;
}

/* The first receive that M has posted for messages of RANK. */
static struct pending *receive_for(struct proof_member *m, uint32_t rank)
{
	for (uint32_t i = 0; i < m->pendings; i++)
		if (!m->pending[i].come && m->pending[i].step->peer == rank)
			return &m->pending[i];
	return NULL;
}

/* 1; 0: its receive is yet to be posted; negative. What is sent shows when that is waited for. */
static int step_send(struct proof *p, uint32_t rank, const struct text_step *s)
{
	struct proof_member *to = &p->member[s->peer];
	struct pending *there;
	int rc = may_read(p, rank, s, s->at_area, s->at);

	if (rc < 0)
		return rc;
	there = receive_for(to, rank);
	if (!there)
		return 0;
	if (there->step->parts != s->parts || !is_as_long(p->t, s->at, there->step->at))
		return disprove(rank, s->line,
				"it sends %d parts, and rank %d receives %d in line %" PRIu32
				"; or of another length",
				s->parts, s->peer, there->step->parts, there->step->line);
	for (uint32_t k = 0; k < s->parts; k++) {
		struct value v = value_at(p, rank, s->at_area, s->at + k);

		v.state = VALUE_COMING;
		set_value(p, s->peer, there->step, k, v);
	}
	there->come = true;
	there->entered = p->member[rank].entered;
	return 1;
}

static int step_wait(struct proof *p, uint32_t rank, const struct text_step *s)
{
	struct proof_member *m = &p->member[rank];
	uint32_t left = 0;

	for (uint32_t i = 0; i < m->pendings; i++)
		if (m->pending[i].step->lane == s->lane && !m->pending[i].come)
			return 0;
	for (uint32_t i = 0; i < m->pendings; i++) {
		const struct text_step *came = m->pending[i].step;

		if (came->lane != s->lane) {
			m->pending[left++] = m->pending[i];
			continue;
		}
		m->entered |= m->pending[i].entered;
		for (uint32_t k = 0; k < came->parts; k++)
			m->area[came->at_area][came->at + k].state = VALUE_THERE;
	}
	m->pendings = left;
	return 1;
}

/* ---- all steps ------------------------------------------------------------------------------- */

/* 1: it is done; 0: it waits, or there is none; negative. */
static int step_on(struct proof *p, uint32_t rank)
{
	struct proof_member *m = &p->member[rank];
	int rc;

	if (m->next == m->end)
		return 0;
	switch (m->next->op) {
	case PLAN_SEND: rc = step_send(p, rank, m->next); break;
	case PLAN_RECV: rc = step_receive(p, rank, m->next); break;
	case PLAN_WAIT: rc = step_wait(p, rank, m->next); break;
	default: rc = step_local(p, rank, m->next);
	}
	m->next += rc > 0;
	return rc;
}

static int come_to_end(const struct proof *p)
{
	for (uint32_t r = 0; r < p->t->members; r++) {
		const struct proof_member *m = &p->member[r];

		if (m->next == m->end)
			continue;
		if (m->next->op == PLAN_SEND)
			return disprove(r, m->next->line,
					"it sends for ever: rank %d posts no receive",
					m->next->peer);
		for (uint32_t i = 0; i < m->pendings; i++)
			if (m->pending[i].step->lane == m->next->lane && !m->pending[i].come)
				return disprove(
					r, m->next->line,
					"it waits for ever: rank %d does not send what line %" PRIu32
					" receives",
					m->pending[i].step->peer, m->pending[i].step->line);
	}
	return 0;
}

static int do_all(struct proof *p)
{
	bool moved = true;
	int rc = 0;

	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < p->t->members; r++) {
			while ((rc = step_on(p, r)) > 0)
				moved = true;
			if (rc < 0)
				return rc;
		}
	}
	return come_to_end(p);
}

/* ---- what it is for -------------------------------------------------------------------------- */

static uint64_t ranks_below(uint32_t n)
{
	return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* Whose contributions, to which part, rank R is to have in TO[I]. */
static uint64_t wanted_set(const struct plan_text *t, uint32_t r, uint32_t i, uint32_t *index)
{
	const uint32_t block = i / t->parts, part = i % t->parts;

	*index = part;
	switch (t->kind) {
	case PLAN_BROADCAST: return 1;
	case PLAN_ALLTOALL: *index += r * t->parts; return UINT64_C(1) << block;
	case PLAN_ALLGATHER: return UINT64_C(1) << block;
	case PLAN_REDUCE_SCATTER: *index += r * t->parts; return ranks_below(t->members);
	case PLAN_SCAN: return ranks_below(r + 1);
	case PLAN_EXSCAN: return ranks_below(r);
	default: return ranks_below(t->members);
	}
}

static int check_part(const struct proof *p, uint32_t r, uint32_t i)
{
	const struct value *v = &p->member[r].area[PLAN_TO][i];
	uint32_t index;
	const uint64_t set = wanted_set(p->t, r, i, &index), differ = v->set ^ set;

	if (v->state != VALUE_THERE)
		return disprove(r,
				p->t->begin[r + 1] > p->t->begin[r] ?
					p->t->step[p->t->begin[r + 1] - 1].line :
					0,
				"at its end nothing has been written to to[%" PRIu32 "]", i);
	if (differ)
		return disprove(r, v->line, "to[%" PRIu32 "] %s rank %d's contribution", i,
				differ & set ? "lacks" : "has",
				__builtin_ctzll(differ & set ? differ & set : differ));
	if (v->index != index)
		return disprove(r, v->line,
				"to[%" PRIu32
				"] has contributions to part %d, and should to %" PRIu32,
				i, v->index, index);
	/* All have the same bits. */
	if (p->t->kind == PLAN_ALLREDUCE && v->tree != p->member[0].area[PLAN_TO][i].tree)
		return disprove(r, v->line,
				"to[%" PRIu32 "] is combined in another order than rank 0's", i);
	return 0;
}

/* A property that one result lacks all lack; one that needs an operation to commute, all do. */
static void take_properties(struct plan_text *t, const struct value *v)
{
	if (!(v->properties & PLAN_LINEAR))
		t->properties &= ~PLAN_LINEAR;
	t->properties |= v->properties & PLAN_COMMUTES;
}

static int check_results(const struct proof *p)
{
	struct plan_text *t = p->t;
	int rc = 0;

	t->properties = plan_takes(t->kind) & PLAN_COMBINES ? PLAN_LINEAR : 0;
	for (uint32_t r = 0; rc == 0 && r < t->members; r++) {
		if (t->kind == PLAN_BARRIER && p->member[r].entered != ranks_below(t->members))
			return disprove(
				r, p->member[r].next > t->step ? p->member[r].next[-1].line : 0,
				"it ends, and need not have waited for rank %d",
				__builtin_ctzll(~p->member[r].entered));
		for (uint32_t i = 0; rc == 0 && i < p->member[r].len[PLAN_TO]; i++) {
			rc = check_part(p, r, i);
			take_properties(t, &p->member[r].area[PLAN_TO][i]);
		}
	}
	return rc;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool proof_begin(struct proof *p, struct plan_text *t)
{
	p->t = t;
	for (uint32_t r = 0; r < t->members; r++) {
		struct proof_member *m = &p->member[r];
		const uint32_t steps = t->begin[r + 1] - t->begin[r];

		m->len[PLAN_FROM] = plan_text_blocks(t, r, PLAN_FROM) * t->parts;
		m->len[PLAN_TO] = plan_text_blocks(t, r, PLAN_TO) * t->parts;
		m->len[PLAN_SCRATCH] = t->scratch;
		m->next = t->step + t->begin[r];
		m->end = m->next + steps;
		m->entered = UINT64_C(1) << r;
		m->pending = calloc(steps + 1, sizeof(*m->pending));
		for (uint8_t a = PLAN_TO; a <= PLAN_SCRATCH; a++) {
			m->area[a] = calloc(m->len[a] + 1, sizeof(struct value));
			if (!m->area[a])
				return false;
		}
		if (!m->pending)
			return false;
	}
	return true;
}

static void proof_free(struct proof *p)
{
	for (uint32_t r = 0; r < PLAN_TEXT_MEMBERS; r++) {
		free(p->member[r].pending);
		free(p->member[r].area[PLAN_TO]);
		free(p->member[r].area[PLAN_SCRATCH]);
	}
	free(p);
}

int plan_text_prove(struct plan_text *t)
{
	struct proof *p = calloc(1, sizeof(*p));
	int rc;

	if (!p || !proof_begin(p, t)) {
		if (p)
			proof_free(p);
		return error_system(-ENOMEM, "for a plan's text");
	}
	rc = do_all(p);
	if (rc == 0)
		rc = check_results(p);
	proof_free(p);
	return rc;
}
