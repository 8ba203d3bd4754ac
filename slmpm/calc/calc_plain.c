/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain calculations: of few arguments, to one target, all without gaps. Each operand is read once,
 * to check it and to take it, and a step is little more than the kernel's call: of one element all
 * else would cost many times what it is about.
 */
#include "slmpm/calc/calc.h"

#include <stddef.h>
#include <string.h>

#include "shm/compiler.h"

#define TOTAL_MAX (INT64_MAX / 64) /* elements: computing with their bytes stays within 64 bits */
#define ROW_MIN   4                /* elements: vector instructions have nothing to do in fewer */

/* ---- taking ---------------------------------------------------------------------------------- */

static inline uint64_t two_words(const uint32_t *at)
{
	uint64_t both;

	memcpy(&both, at, sizeof(both));
	return both;
}

/* Nothing is said of O but where it is. */
static inline bool is_bare(const struct slmpm_operand *o)
{
	uint64_t words = two_words(&o->flags) | two_words(o->reserved);

	words |= (uint64_t)(o->stride[0] | o->stride[1] | o->stride[2]);
	words |= o->rmem.id | o->offset | o->peer.id | o->wq.id;
	return o->at && !(words | o->index | (uintptr_t)o->indices);
}

/* Elements of each operand; 0: too many. */
static inline uint64_t total_of(const struct slmpm_calc *c)
{
	uint64_t total = c->count[0] + !c->count[0];

	if (__builtin_mul_overflow(total, c->count[1] + !c->count[1], &total) ||
	    __builtin_mul_overflow(total, c->count[2] + !c->count[2], &total))
		return 0;
	return total <= TOTAL_MAX ? total : 0;
}

/* All but the operation and the arguments is as it is to be; *BYTES: of the target. */
static inline bool is_plain_frame(const struct slmpm_calc *c, int most, uint64_t *bytes)
{
	const struct slmpm_operand *t = c->targets;

	if (c->size != sizeof(*c) || c->arg_count < 1 || c->arg_count > most || !c->args ||
	    c->target_count != 1 || !t || c->reserved || !calc_is_type(c->type))
		return false;
	*bytes = total_of(c) << calc_shift(c->type);
	return *bytes && is_bare(t) && (uintptr_t)t->at <= UINT64_MAX - *bytes;
}

/* O, an argument, is so, too: the target itself, or all of it beside that. */
static inline bool is_plain_argument(const struct slmpm_operand *o, uint64_t target, uint64_t bytes)
{
	uint64_t at = (uintptr_t)o->at, behind = at - target;

	return is_bare(o) && at <= UINT64_MAX - bytes &&
	       (!behind || (behind >= bytes && 0 - behind >= bytes));
}

bool calc_is_plain(const struct slmpm_calc *c)
{
	uint64_t bytes;

	if (!is_plain_frame(c, SLMPM_CALC_ARGS_MAX, &bytes) ||
	    !calc_kernel_of(c->op, c->type, false))
		return false;
	for (int k = 0; k < c->arg_count; k++)
		if (!is_plain_argument(&c->args[k], (uintptr_t)c->targets->at, bytes))
			return false;
	return true;
}

bool calc_plain_take(struct calc_plain *p, const struct slmpm_calc *c)
{
	uint64_t bytes;

	p->kernel = NULL;
	if (!c || !is_plain_frame(c, CALC_PLAIN_ARGS, &bytes))
		return false;
	p->to = c->targets->at;
	for (int k = 0; k < c->arg_count; k++) {
		p->from[k] = c->args[k].at;
		if (!is_plain_argument(&c->args[k], (uintptr_t)p->to, bytes) ||
		    (k > 1 && p->from[k] == p->to))
			return false;
	}
	p->op = (uint8_t)c->op;
	p->type = (uint8_t)c->type;
	p->args = (uint8_t)c->arg_count;
	p->shift = (uint8_t)calc_shift(c->type);
	p->total = bytes >> p->shift;
	p->done = 0;
	p->vectors = calc_has_vectors();
	p->kernel = calc_kernel_of(c->op, c->type, p->vectors);
	if (p->args == 1) {
		p->from[1] = p->from[0];
		p->kernel = p->kernel ? calc_kernel_alone(c->op, c->type, p->vectors) : NULL;
	}
	return p->kernel;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Argument by argument; those of four all at once, where the kernel knows that. */
static void combine_plainly(const struct calc_plain *p, struct calc_fold *f, uint64_t offset)
{
	if (p->args == CALC_PLAIN_ARGS && f->form == CALC_PAIR && p->vectors) {
		f->form = CALC_QUAD;
		f->from[2] = p->from[2] + offset;
		f->from[3] = p->from[3] + offset;
		p->kernel(f);
		return;
	}
	p->kernel(f);
	f->from[0] = f->to;
	for (int k = 2; k < p->args; k++) {
		f->from[1] = p->from[k] + offset;
		p->kernel(f);
	}
}

bool calc_plain_step(struct calc_plain *p)
{
	uint64_t n = least_of(p->total - p->done, calc_plain_most(p));
	uint64_t offset = p->done << p->shift;
	int64_t width = (int64_t)1 << p->shift;
	struct calc_fold f;

	f.form = n < ROW_MIN ? CALC_STRIDED : CALC_PAIR;
	f.n = n;
	f.to = p->to + offset;
	f.from[0] = p->from[0] + offset;
	f.from[1] = p->from[1] + offset;
	f.to_stride = f.stride[0] = f.stride[1] = width;
	p->done += n;
	if (p->args <= 2)
		p->kernel(&f);
	else
		combine_plainly(p, &f, offset);
	return p->done < p->total;
}
