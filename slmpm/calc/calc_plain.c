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
#define PAIR_ARGS 2                /* arguments that a kernel takes by itself */
#define ROW_MIN   4                /* elements: vector instructions have nothing to do in fewer */

/* ---- taking ---------------------------------------------------------------------------------- */

static inline uint64_t two_words(const uint32_t *at)
{
	uint64_t both;

	memcpy(&both, at, sizeof(both));
	return both;
}

/* All that is said of O but where it is; 0: nothing. */
static inline uint64_t words_of(const struct slmpm_operand *o)
{
	return two_words(&o->flags) | two_words(o->reserved) | (uint64_t)o->stride[0] |
	       (uint64_t)o->stride[1] | (uint64_t)o->stride[2] | o->index | (uintptr_t)o->indices |
	       o->rmem.id | o->offset | o->peer.id | o->wq.id;
}

/* Elements of each operand; 0: too many. */
static inline uint64_t total_of(const struct slmpm_calc *c)
{
	uint64_t total = c->count[0] + !c->count[0];

	if (UNLIKELY(c->count[1] | c->count[2]) &&
	    (__builtin_mul_overflow(total, c->count[1] + !c->count[1], &total) ||
	     __builtin_mul_overflow(total, c->count[2] + !c->count[2], &total)))
		return 0;
	return total <= TOTAL_MAX ? total : 0;
}

/* Its lists and words are as they are to be. */
static inline bool is_plain_frame(const struct slmpm_calc *c, uint32_t most)
{
	return c->size == sizeof(*c) && (uint32_t)c->arg_count - 1 < most && c->target_count == 1 &&
	       c->args && c->targets && !c->reserved && calc_is_type(c->type);
}

/* BYTES from AT on lie somewhere: not at NULL, nor beyond all addresses. */
static inline bool is_place(const void *at, uint64_t bytes)
{
	return (uintptr_t)at - 1 < UINT64_MAX - bytes;
}

/* An argument of BYTES at AT is the target itself, or all of it lies beside that. */
static inline bool is_beside(const void *at, const void *target, uint64_t bytes)
{
	uint64_t behind = (uintptr_t)at - (uintptr_t)target;

	return !behind || behind + bytes - 1 >= 2 * bytes - 1;
}

/* BYTES of each operand lie where C says, without gaps, with nothing more said of them. */
static inline bool are_plain(const struct slmpm_calc *c, uint64_t bytes)
{
	const struct slmpm_operand *target = c->targets;
	uint64_t words = 0;

	for (int k = 0; k < c->arg_count; k++) {
		const struct slmpm_operand *o = &c->args[k];

		if (!is_place(o->at, bytes) || !is_beside(o->at, target->at, bytes))
			return false;
		words |= words_of(o);
	}
	return is_place(target->at, bytes) && !(words | words_of(target));
}

static inline uint64_t bytes_of(const struct slmpm_calc *c)
{
	return total_of(c) << calc_shift(c->type);
}

bool calc_is_plain(const struct slmpm_calc *c)
{
	uint64_t bytes;

	return is_plain_frame(c, SLMPM_CALC_ARGS_MAX) && calc_kernel_of(c->op, c->type, false) &&
	       (bytes = bytes_of(c)) && are_plain(c, bytes);
}

/* One argument alone is both of two. */
static inline calc_kernel *plain_kernel(const struct slmpm_calc *c, bool vectors)
{
	calc_kernel *kernel = calc_kernel_of(c->op, c->type, vectors);

	if (UNLIKELY(c->arg_count == 1 && kernel))
		kernel = calc_kernel_alone(c->op, c->type, vectors);
	return kernel;
}

bool calc_plain_take(struct calc_plain *p, const struct slmpm_calc *c)
{
	uint64_t bytes;

	p->kernel = NULL;
	if (!c || !is_plain_frame(c, CALC_PLAIN_ARGS) || !(bytes = bytes_of(c)) ||
	    !are_plain(c, bytes))
		return false;
	p->to = c->targets->at;
	p->from[1] = c->args->at;
	for (int k = 0; k < c->arg_count; k++) {
		p->from[k] = c->args[k].at;
		if (k > 1 && p->from[k] == p->to)
			return false;
	}
	p->op = c->op;
	p->type = c->type;
	p->args = (uint32_t)c->arg_count;
	p->shift = calc_shift(c->type);
	p->total = bytes >> p->shift;
	p->done = 0;
	p->vectors = calc_has_vectors();
	p->kernel = plain_kernel(c, p->vectors);
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
	for (uint32_t k = 2; k < p->args; k++) {
		f->from[1] = p->from[k] + offset;
		p->kernel(f);
	}
}

/* N elements of two arguments, 2^SHIFT bytes each. */
static inline void describe_pair(struct calc_fold *f, uint64_t n, uint32_t shift)
{
	f->form = n < ROW_MIN ? CALC_STRIDED : CALC_PAIR;
	f->n = n;
	f->to_stride = f->stride[0] = f->stride[1] = (int64_t)1 << shift;
}

bool calc_plain_step(struct calc_plain *p)
{
	uint64_t n = least_of(p->total - p->done, calc_plain_most(p));
	uint64_t offset = p->done << p->shift;
	struct calc_fold f;

	describe_pair(&f, n, p->shift);
	f.to = p->to + offset;
	f.from[0] = p->from[0] + offset;
	f.from[1] = p->from[1] + offset;
	p->done += n;
	if (p->args <= PAIR_ARGS)
		p->kernel(&f);
	else
		combine_plainly(p, &f, offset);
	return p->done < p->total;
}

bool calc_plain_at_once(const struct slmpm_calc *c, uint64_t most)
{
	struct calc_fold f;
	calc_kernel *kernel;
	uint64_t bytes;

	if (!c || !is_plain_frame(c, PAIR_ARGS) || (bytes = bytes_of(c)) - 1 >= most ||
	    !are_plain(c, bytes))
		return false;
	kernel = plain_kernel(c, calc_has_vectors());
	if (!kernel)
		return false;
	describe_pair(&f, bytes >> calc_shift(c->type), calc_shift(c->type));
	f.to = c->targets->at;
	f.from[0] = c->args[0].at;
	f.from[1] = c->args[c->arg_count - 1].at;
	kernel(&f);
	return true;
}
