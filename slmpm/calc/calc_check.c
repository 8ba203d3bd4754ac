/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a calculation can be done: its words, its shape, and which memory overlaps which. */
#include "slmpm/calc/calc.h"

#include <stdio.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"

/* ---- shape ----------------------------------------------------------------------------------- */

/* Far more than there is: what is computed of two operands stays within 64 bits. */
#define REACH_MAX (INT64_MAX / 4)

bool calc_shape_of(struct calc_shape *shape, const struct slmpm_calc *c)
{
	uint64_t words;
	int64_t stride;

	shape->width = calc_width(c->type);
	shape->total = 1;
	for (int d = 0; d < CALC_DIMS; d++) {
		shape->count[d] = c->count[d] ? c->count[d] : 1;
		if (__builtin_mul_overflow(shape->total, shape->count[d], &shape->total))
			return false;
	}
	if (__builtin_mul_overflow(shape->total, sizeof(uint64_t), &words) || words > REACH_MAX)
		return false; /* so many indices */
	stride = shape->width;
	for (int d = CALC_DIMS - 1; d >= 0; d--) {
		shape->packed[d] = shape->count[d] > 1 ? stride : 0;
		stride *= (int64_t)shape->count[d];
	}
	return true;
}

void calc_strides(int64_t stride[CALC_DIMS], const struct slmpm_operand *o,
		  const struct calc_shape *shape)
{
	if (calc_is_packed(o)) {
		memcpy(stride, shape->packed, sizeof(shape->packed));
		return;
	}
	for (int d = 0; d < CALC_DIMS; d++)
		stride[d] = shape->count[d] > 1 ? o->stride[d] : 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The elements of an operand, or its indices. */
struct part {
	uint64_t at, lo, hi;       /* addresses; the end is behind the last byte */
	int64_t stride[CALC_DIMS]; /* of elements */
	bool indices;
};

/* False: it reaches beyond what has an address. */
static bool take_packed(struct part *p, const void *at, uint64_t bytes)
{
	p->at = p->lo = (uintptr_t)at;
	return !__builtin_add_overflow(p->at, bytes, &p->hi);
}

static bool take_elements(struct part *p, const struct slmpm_operand *o,
			  const struct calc_shape *shape)
{
	p->indices = false;
	calc_strides(p->stride, o, shape);
	if (calc_is_packed(o))
		return take_packed(p, o->at, shape->total * shape->width);
	if (!take_packed(p, o->at, shape->width))
		return false;
	for (int d = 0; d < CALC_DIMS; d++) {
		int64_t n = (int64_t)shape->count[d] - 1, bytes;
		uint64_t *end = p->stride[d] < 0 ? &p->lo : &p->hi;

		if (__builtin_mul_overflow(n, p->stride[d], &bytes) ||
		    __builtin_add_overflow(*end, bytes, end))
			return false;
	}
	return p->hi - p->lo <= REACH_MAX;
}

bool calc_reach(const struct slmpm_operand *o, const struct calc_shape *shape, uint64_t *lo,
		uint64_t *hi)
{
	struct part p;
	bool within = take_elements(&p, o, shape);

	*lo = p.lo;
	*hi = p.hi;
	return within;
}

static bool take_indices(struct part *p, const struct slmpm_operand *o,
			 const struct calc_shape *shape)
{
	p->indices = true;
	return take_packed(p, o->indices, shape->total * sizeof(*o->indices));
}

static uint64_t size_of_stride(int64_t stride)
{
	return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Dimensions by the size of their strides, the largest first. */
static void rank(int order[CALC_DIMS], const struct part *p)
{
	for (int i = 0; i < CALC_DIMS; i++) {
		int k = i;

		for (; k && size_of_stride(p->stride[order[k - 1]]) < size_of_stride(p->stride[i]);
		     k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
}

/* Whether each dimension steps over all that lies within it. Elements may lie apart otherwise, but
 * nobody stores so. */
static bool is_nested(const struct part *p, const struct calc_shape *shape)
{
	int order[CALC_DIMS];
	uint64_t within = shape->width;

	rank(order, p);
	for (int i = CALC_DIMS - 1; i >= 0; i--) {
		uint64_t step = size_of_stride(p->stride[order[i]]);

		if (shape->count[order[i]] == 1)
			continue;
		if (step < within)
			return false;
		within += (shape->count[order[i]] - 1) * step;
	}
	return true;
}

/* Whether of two parts of the same nested strides, the second BYTES behind the first, an element of
 * one meets one of the other. In each dimension only the places next to it come near. */
static bool meets(const struct part *p, const struct calc_shape *shape, const int order[CALC_DIMS],
		  int i, int64_t bytes)
{
	int64_t step, n, nearest;

	while (i < CALC_DIMS && shape->count[order[i]] == 1)
		i++;
	if (i == CALC_DIMS)
		return bytes < (int64_t)shape->width && -bytes < (int64_t)shape->width;
	step = (int64_t)size_of_stride(p->stride[order[i]]);
	n = (int64_t)shape->count[order[i]] - 1;
	nearest = bytes / step;
	for (int64_t k = nearest - 1; k <= nearest + 1; k++)
		if (k >= -n && k <= n && meets(p, shape, order, i + 1, bytes - k * step))
			return true;
	return false;
}

/* T is written, and nested; EQUAL: O may be the same. */
static bool collide(const struct part *t, const struct part *o, const struct calc_shape *shape,
		    bool equal)
{
	int order[CALC_DIMS];

	if (t->hi <= o->lo || o->hi <= t->lo)
		return false;
	if (t->indices != o->indices)
		return true;
	if (t->indices)
		return t->at != o->at || !equal;
	if (memcmp(t->stride, o->stride, sizeof(t->stride)) != 0)
		return true;
	if (t->at == o->at)
		return !equal;
	rank(order, t);
	return meets(t, shape, order, 0, (int64_t)(o->at - t->at));
}

/* All memory of a calculation: of each operand its elements and, if there are any, its indices. */
struct map {
	struct operand_parts {
		int n;
		struct part part[2];
	} args[SLMPM_CALC_ARGS_MAX], targets[SLMPM_CALC_TARGETS_MAX];
};

/* What is written of T against all of O, which is an argument or another target. */
static bool parts_overlap(const struct operand_parts *t, const struct operand_parts *o,
			  const struct calc_shape *shape, bool argument)
{
	for (int i = 0; i < t->n; i++)
		for (int k = 0; k < o->n; k++)
			if (collide(&t->part[i], &o->part[k], shape, argument))
				return true;
	return false;
}

static int check_target(const struct slmpm_calc *c, const struct calc_shape *shape,
			const struct map *map, int k, const char *call)
{
	const struct operand_parts *t = &map->targets[k];

	if (!t->n)
		return 0;
	if (!calc_is_packed(&c->targets[k]) && !is_nested(&t->part[0], shape))
		return error_set(SLMPM_EINVAL, "%s: elements of target %d overlap, by its strides",
				 call, k);
	if (t->n == 2 && collide(&t->part[0], &t->part[1], shape, false))
		return error_set(SLMPM_EINVAL, "%s: target %d overlaps its indices", call, k);
	for (int i = 0; i < c->arg_count; i++)
		if (parts_overlap(t, &map->args[i], shape, true))
			return error_set(SLMPM_EINVAL, "%s: target %d overlaps argument %d", call,
					 k, i);
	for (int i = 0; i < k; i++)
		if (parts_overlap(t, &map->targets[i], shape, false))
			return error_set(SLMPM_EINVAL, "%s: target %d overlaps target %d", call, k,
					 i);
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* What says that O is a message. */
static const char *member_of_message(const struct slmpm_operand *o)
{
	return o->peer.id ? ".peer" : o->wq.id ? ".wq" : ".stream";
}

static int check_words_of(const struct slmpm_operand *o, const char *what, int k, const char *call)
{
	if (o->reserved[0] | o->reserved[1])
		return error_set(SLMPM_EINVAL,
				 "%s: .reserved of %s %d is set, which this library does not know",
				 call, what, k);
	if (o->flags > SLMPM_OPERAND_LITTLE_ENDIAN)
		return error_set(SLMPM_EINVAL,
				 "%s: flags 0x%x of %s %d: 0, SLMPM_OPERAND_BIG_ENDIAN (1) or "
				 "SLMPM_OPERAND_LITTLE_ENDIAN (2)",
				 call, o->flags, what, k);
	return 0;
}

/* Only MIN and MAX have indices. */
static int bad_index(const struct slmpm_operand *o, const char *what, int k, uint32_t op,
		     const char *call)
{
	return error_set(SLMPM_EINVAL,
			 "%s: an index of %s %d: %s is for MIN and MAX, calculation %u is another",
			 call, what, k, o->index ? ".index" : ".indices", op);
}

/* All of it but its region, which is not known here. */
static int check_far_target(const struct slmpm_calc *c, const struct calc_shape *shape,
			    const struct slmpm_operand *o, int k, const char *call)
{
	uint64_t bytes = shape->total * shape->width;
	int rc;

	if (o->at)
		return error_set(SLMPM_EINVAL,
				 "%s: target %d is here and at a peer: .at and .rmem are set", call,
				 k);
	if (!calc_is_packed(o))
		return error_set(SLMPM_EINVAL,
				 "%s: target %d, at a peer, has strides: it is without gaps", call,
				 k);
	if (o->index || o->indices)
		return error_set(SLMPM_EINVAL, "%s: target %d, at a peer, has indices", call, k);
	if (o->peer.id | o->wq.id | o->stream)
		return error_set(SLMPM_EINVAL, "%s: target %d is a message: %s is set", call, k,
				 member_of_message(o));
	rc = check_words_of(o, "target", k, call);
	if (rc < 0)
		return rc;
	for (int i = 0; i < k; i++) {
		const struct slmpm_operand *t = &c->targets[i];

		if (t->rmem.id == o->rmem.id &&
		    (t->offset - o->offset < bytes || o->offset - t->offset < bytes))
			return error_set(SLMPM_EINVAL, "%s: target %d overlaps target %d", call, k,
					 i);
	}
	return 0;
}

/* An argument that is a message; its source is not known here. */
static int check_arriving(const struct slmpm_calc *c, const struct calc_shape *shape,
			  struct operand_parts *parts, const struct slmpm_operand *o, int k,
			  const char *call)
{
	bool picks = c->op == SLMPM_CALC_MIN || c->op == SLMPM_CALC_MAX;
	int rc;

	if (o->at)
		return error_set(SLMPM_EINVAL,
				 "%s: argument %d is here and a message: .at and %s are set", call,
				 k, member_of_message(o));
	if (o->rmem.id | o->offset)
		return error_set(SLMPM_EINVAL,
				 "%s: argument %d, a message, has a region or an offset: %s is set",
				 call, k, o->rmem.id ? ".rmem" : ".offset");
	if (o->wq.id && (o->peer.id || o->stream))
		return error_set(SLMPM_EINVAL,
				 "%s: argument %d is of a receive queue: %s is set beside .wq",
				 call, k, o->peer.id ? ".peer" : ".stream");
	if (!calc_is_packed(o))
		return error_set(SLMPM_EINVAL,
				 "%s: argument %d, a message, has strides: it is without gaps",
				 call, k);
	rc = check_words_of(o, "argument", k, call);
	if (rc < 0)
		return rc;
	if (!picks && (o->index || o->indices))
		return bad_index(o, "argument", k, c->op, call);
	parts->n = o->indices ? 1 : 0;
	if (o->indices && !take_indices(&parts->part[0], o, shape))
		return error_set(SLMPM_EINVAL, "%s: argument %d reaches beyond all addresses", call,
				 k);
	return 0;
}

static int check_operand(const struct slmpm_calc *c, const struct calc_shape *shape,
			 struct map *map, bool target, int k, const char *call)
{
	const struct slmpm_operand *o = target ? &c->targets[k] : &c->args[k];
	struct operand_parts *parts = target ? &map->targets[k] : &map->args[k];
	const char *what = target ? "target" : "argument";
	bool picks = c->op == SLMPM_CALC_MIN || c->op == SLMPM_CALC_MAX;
	int rc;

	parts->n = 0;
	if (target && o->rmem.id)
		return check_far_target(c, shape, o, k, call);
	if (!target && calc_arrives(o))
		return check_arriving(c, shape, parts, o, k, call);
	if (o->peer.id | o->wq.id | o->stream)
		return error_set(SLMPM_EINVAL, "%s: %s %d is no message, but %s is set", call, what,
				 k, member_of_message(o));
	if (o->rmem.id | o->offset)
		return error_set(SLMPM_EINVAL, "%s: %s %d has a region or an offset: %s is set",
				 call, what, k, o->rmem.id ? ".rmem" : ".offset");
	if (!o->at)
		return error_set(SLMPM_EINVAL, "%s: %s %d is NULL", call, what, k);
	rc = check_words_of(o, what, k, call);
	if (rc < 0)
		return rc;
	if (o->index && target)
		return error_set(SLMPM_EINVAL,
				 "%s: an index of target %d: .index is an argument's, and a target "
				 "has .indices",
				 call, k);
	if (!picks && (o->index || o->indices))
		return bad_index(o, what, k, c->op, call);
	parts->n = o->indices ? 2 : 1;
	if (!take_elements(&parts->part[0], o, shape) ||
	    (o->indices && !take_indices(&parts->part[1], o, shape)))
		return error_set(SLMPM_EINVAL, "%s: %s %d reaches beyond all addresses", call, what,
				 k);
	return 0;
}

/* As far as it was given: a 0 is 1. */
static int bad_count(const struct slmpm_calc *c, const char *call)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)c->count[0]);

	for (int d = 1; d < CALC_DIMS && n > 0 && (size_t)n < sizeof(text); d++)
		if (c->count[d])
			n += snprintf(text + n, sizeof(text) - (size_t)n, " * %llu",
				      (unsigned long long)c->count[d]);
	return error_set(SLMPM_EINVAL, "%s: %s elements are more than there is memory for", call,
			 text);
}

static int check_list(const struct slmpm_operand *list, int n, int most, const char *call,
		      const char *what)
{
	if (n > most)
		return error_set(SLMPM_ELIMIT, "%s: %d %ss, at most %d", call, n, what, most);
	if (n < 1)
		return error_set(SLMPM_EINVAL, "%s: %d %ss, at least 1", call, n, what);
	return list ? 0 :
		      error_set(SLMPM_EINVAL, "%s: the %ss are NULL, their number is %d", call,
				what, n);
}

static int check_words(const struct slmpm_calc *c, const char *call)
{
	if (c->op < SLMPM_CALC_SUM || c->op > SLMPM_CALC_LXOR)
		return error_set(SLMPM_EINVAL,
				 "%s: calculation %u is none: SLMPM_CALC_SUM (1) to LXOR (10)",
				 call, c->op);
	if (c->type < SLMPM_INT8 || c->type > SLMPM_DOUBLE)
		return error_set(SLMPM_EINVAL,
				 "%s: type %u is none: SLMPM_INT8 (1) to SLMPM_DOUBLE (10)", call,
				 c->type);
	if (!calc_kernel_of(c->op, c->type, false))
		return error_set(SLMPM_EINVAL,
				 "%s: calculation %u is bitwise, of integers alone, not of type %u",
				 call, c->op, c->type);
	if (c->reserved)
		return error_set(SLMPM_EINVAL, "%s: .reserved is %u, not 0", call, c->reserved);
	return 0;
}

static int check_operands(const struct slmpm_calc *c, const struct calc_shape *shape,
			  const char *call)
{
	struct map map; /* as far as there are operands */
	int rc = 0;

	for (int i = 0; i < c->arg_count && rc == 0; i++)
		rc = check_operand(c, shape, &map, false, i, call);
	for (int i = 0; i < c->target_count && rc == 0; i++)
		rc = check_operand(c, shape, &map, true, i, call);
	for (int i = 0; i < c->target_count && rc == 0; i++)
		rc = check_target(c, shape, &map, i, call);
	return rc;
}

int calc_check(const struct slmpm_calc *given, const char *call)
{
	const struct slmpm_calc *c = given;
	struct slmpm_calc known;
	struct calc_shape shape;
	int rc = 0;

	if (given && calc_is_plain(given))
		return 0;
	if (!given || given->size != sizeof(known)) {
		rc = sized_take(call, &known, given, sizeof(known));
		c = &known;
	}
	if (rc == 0)
		rc = check_words(c, call);
	if (rc == 0)
		rc = check_list(c->args, c->arg_count, SLMPM_CALC_ARGS_MAX, call, "argument");
	if (rc == 0)
		rc = check_list(c->targets, c->target_count, SLMPM_CALC_TARGETS_MAX, call,
				"target");
	if (rc < 0)
		return rc;
	if (!calc_shape_of(&shape, c))
		return bad_count(c, call);
	return check_operands(c, &shape, call);
}
