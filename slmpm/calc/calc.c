/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A calculation under way. It goes through its elements in blocks: all arguments of a block are
 * combined before the next block, so that what has been combined so far stays in the first cache.
 */
#include "slmpm/calc/calc.h"

#include <string.h>

#include "shm/compiler.h"

#define BLOCK     4096 /* bytes of the elements of a block, where something is kept beside them */
#define INDICES   512  /* of a block */
#define TRAFFIC   (3 * CALC_STEP) /* bytes of a step, of all operands: three or more */
#define QUAD_ARGS 4
#define ROW       (CALC_DIMS - 1) /* the dimension that kernels go along */

/* ---- beginning ------------------------------------------------------------------------------- */

/* One argument alone is combined with itself. */
static uint32_t args_of(const struct slmpm_calc *c)
{
	return c->arg_count > 1 ? (uint32_t)c->arg_count : 2;
}

size_t calc_job_size(const struct slmpm_calc *c)
{
	return sizeof(struct calc_job) +
	       (args_of(c) + (uint32_t)c->target_count) * sizeof(struct calc_operand);
}

static calc_kernel *kernel_of(const struct calc_job *j, const struct slmpm_calc *c)
{
	if (c->arg_count == 1 && !j->indexed)
		return calc_kernel_alone(c->op, c->type, j->vectors);
	return calc_kernel_of(c->op, c->type, j->vectors);
}

static bool all_packed(const struct slmpm_operand *list, int n)
{
	for (int i = 0; i < n; i++)
		if (!calc_is_packed(&list[i]))
			return false;
	return true;
}

/* Returns how many bytes of it belong to an element. */
static uint64_t take(struct calc_job *j, struct calc_operand *o, const struct slmpm_operand *given,
		     const struct calc_shape *shape)
{
	o->at = given->at;
	o->flags = (uint8_t)given->flags;
	if (j->gapless)
		o->stride[ROW] = j->width;
	else
		calc_strides(o->stride, given, shape);
	o->index = given->index;
	o->indices = given->indices;
	o->foreign = calc_is_foreign(given->flags);
	j->foreign |= o->foreign;
	return j->width + (o->indices ? sizeof(*o->indices) : 0);
}

static uint32_t operands(const struct calc_job *j)
{
	return j->args + j->targets;
}

/* Whether in each operand the elements of D's next step follow on those of D + 1. */
static bool goes_on(const struct calc_job *j, int d)
{
	for (uint32_t i = 0; i < operands(j); i++) {
		const int64_t *stride = j->operand[i].stride;

		if (stride[d] != stride[d + 1] * (int64_t)j->count[d + 1])
			return false;
	}
	return true;
}

/* Makes one dimension of D and D + 1 where they are one. */
static void merge(struct calc_job *j, int d)
{
	if (j->count[d] == 1)
		return;
	if (j->count[d + 1] == 1) {
		for (uint32_t i = 0; i < operands(j); i++)
			j->operand[i].stride[d + 1] = j->operand[i].stride[d];
	} else if (!goes_on(j, d)) {
		return;
	}
	j->count[d + 1] *= j->count[d];
	j->count[d] = 1;
}

static bool is_gapless(const struct calc_job *j)
{
	for (uint32_t i = 0; i < operands(j); i++)
		if (j->operand[i].stride[ROW] != j->width)
			return false;
	return true;
}

/* A target that is an argument, too, keeps its elements until that argument's turn. */
static bool may_be_direct(const struct calc_job *j)
{
	const struct calc_operand *target = &j->operand[j->args];

	for (uint32_t i = 2; i < j->args; i++)
		if (j->operand[i].at == target->at)
			return false;
	return !target->foreign && (!j->indexed || target->stride[ROW] == j->width);
}

static uint64_t block_of(const struct calc_job *j)
{
	if (j->indexed)
		return least_of(j->step, INDICES);
	if (!j->direct || j->foreign || j->targets > 1 || j->args > QUAD_ARGS)
		return least_of(j->step, BLOCK / j->width);
	return j->step;
}

void calc_begin(struct calc_job *j, const struct slmpm_calc *c)
{
	bool row = all_packed(c->args, c->arg_count) && all_packed(c->targets, c->target_count);
	struct calc_shape shape;
	uint64_t bytes = 0;

	(void)calc_shape_of(&shape, c);
	*j = (struct calc_job){
		.width = shape.width,
		.args = args_of(c),
		.targets = (uint32_t)c->target_count,
		.vectors = calc_has_vectors(),
		.gapless = row,
		.alone = c->arg_count == 1,
		.op = (uint8_t)c->op,
		.type = (uint8_t)c->type,
		.count = {1, 1, shape.total},
		.total = shape.total,
	};
	if (!row)
		memcpy(j->count, shape.count, sizeof(j->count));
	for (uint32_t i = 0; i < j->args; i++)
		bytes += take(j, &j->operand[i], &c->args[c->arg_count > 1 ? i : 0], &shape);
	for (uint32_t i = 0; i < j->targets; i++) {
		bytes += take(j, &j->operand[j->args + i], &c->targets[i], &shape);
		j->indexed |= c->targets[i].indices != NULL;
	}
	if (!row) {
		merge(j, 1);
		merge(j, 0);
		merge(j, 1);
		j->gapless = is_gapless(j);
	}
	j->kernel = kernel_of(j, c);
	j->direct = may_be_direct(j);
	j->step = TRAFFIC / bytes;
	j->block = block_of(j);
}

/* ---- a block --------------------------------------------------------------------------------- */

/* Beside the operands: what has been combined, and an argument as kernels read it. */
struct scratch {
	_Alignas(64) unsigned char combined[BLOCK], argument[BLOCK];
	uint64_t winners[INDICES], indices[INDICES];
};

static unsigned char *place_of(const struct calc_job *j, const struct calc_operand *o)
{
	int64_t offset = (int64_t)j->at[ROW] * o->stride[ROW];

	if (j->at[0] | j->at[1])
		offset += (int64_t)j->at[0] * o->stride[0] + (int64_t)j->at[1] * o->stride[1];
	return o->at + offset;
}

/* Argument O's elements become the Kth of the kernel, by way of ROOM where they are foreign or have
 * gaps that the kernel cannot take. */
static void load(const struct calc_job *j, struct calc_fold *f, int k, const struct calc_operand *o,
		 unsigned char *room)
{
	int64_t stride = o->stride[ROW];

	f->from[k] = place_of(j, o);
	if (o->foreign || (j->indexed && stride != j->width)) {
		calc_move(room, j->width, f->from[k], stride, j->width, o->foreign, f->n);
		f->from[k] = room;
		stride = j->width;
	}
	if (k < 2)
		f->stride[k] = stride;
}

static void load_indices(const struct calc_job *j, struct calc_fold *f, int k,
			 const struct calc_operand *o, uint64_t *room)
{
	if (o->indices && !o->foreign) {
		f->index[k] = o->indices + j->done;
		return;
	}
	f->index[k] = room;
	if (o->indices)
		calc_move((unsigned char *)room, sizeof(*room),
			  (const unsigned char *)(o->indices + j->done), sizeof(*room),
			  sizeof(*room), true, f->n);
	else
		for (size_t i = 0; i < f->n; i++)
			room[i] = o->index;
}

/* What has been combined, in `from[0]` and `index[0]`, to all targets from the Kth on. */
static void store(const struct calc_job *j, const struct calc_fold *f, uint32_t k)
{
	const int64_t word = sizeof(uint64_t);

	for (uint32_t i = 0; i < j->targets; i++) {
		const struct calc_operand *o = &j->operand[j->args + i];

		if (i >= k)
			calc_move(place_of(j, o), o->stride[ROW], f->from[0], f->stride[0],
				  j->width, o->foreign, f->n);
		if (o->indices)
			calc_move((unsigned char *)(o->indices + j->done), word,
				  (const unsigned char *)f->index[0], word, sizeof(uint64_t),
				  o->foreign, f->n);
	}
}

/* Vector instructions have nothing to do in a short row. */
static enum calc_form form_of(const struct calc_job *j, size_t n)
{
	if (j->indexed)
		return CALC_INDEXED;
	return j->gapless && n >= QUAD_ARGS ? CALC_PAIR : CALC_STRIDED;
}

/* Argument K with what has been combined of those before it, and those behind it that the kernel
 * takes as well; the next one. */
static uint32_t combine(const struct calc_job *j, struct calc_fold *f, uint32_t k,
			struct scratch *s)
{
	const struct calc_operand *arg = j->operand;
	enum calc_form form = f->form;

	load(j, f, 1, &arg[k], s->argument);
	if (j->indexed)
		load_indices(j, f, 1, &arg[k], s->indices);
	if (form == CALC_PAIR && j->vectors && !j->foreign && j->args - k >= QUAD_ARGS - 1) {
		load(j, f, 2, &arg[++k], NULL);
		load(j, f, 3, &arg[++k], NULL);
		f->form = CALC_QUAD;
	}
	j->kernel(f);
	f->form = form;
	f->from[0] = f->to;
	f->stride[0] = f->to_stride;
	f->index[0] = f->to_index;
	return k + 1;
}

static void calc_block(const struct calc_job *j, size_t n)
{
	const struct calc_operand *target = &j->operand[j->args];
	struct calc_fold f;
	struct scratch s;

	f.form = form_of(j, n);
	f.n = n;
	f.to = j->direct ? place_of(j, target) : s.combined;
	f.to_stride = j->direct ? target->stride[ROW] : j->width;
	f.to_index = s.winners;
	load(j, &f, 0, &j->operand[0], s.combined);
	if (j->indexed)
		load_indices(j, &f, 0, &j->operand[0], s.winners);
	for (uint32_t k = 1; k < j->args;)
		k = combine(j, &f, k, &s);
	if (!j->direct || j->indexed || j->targets > 1)
		store(j, &f, j->direct ? 1 : 0);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void go_on(struct calc_job *j, uint64_t n)
{
	j->done += n;
	j->at[ROW] += n;
	for (int d = ROW; d && j->at[d] == j->count[d]; d--) {
		j->at[d] = 0;
		j->at[d - 1]++;
	}
}

void calc_again(struct calc_job *j)
{
	j->done = 0;
	memset(j->at, 0, sizeof(j->at));
}

void calc_read(struct calc_job *j, uint32_t k, const void *at)
{
	j->operand[k].at = (unsigned char *)(uintptr_t)at; /* it is not written */
}

void calc_aim(struct calc_job *j, uint32_t k, void *at)
{
	uintptr_t first = (uintptr_t)at - j->done * j->width; /* where it would be */

	j->operand[j->args + k].at = (unsigned char *)first;
}

bool calc_step(struct calc_job *j)
{
	uint64_t left = j->step;

	while (left && j->done < j->total) {
		uint64_t row = j->count[ROW] - j->at[ROW];
		uint64_t n = least_of(least_of(left, j->block), row);

		calc_block(j, n);
		go_on(j, n);
		left -= n;
	}
	return j->done < j->total;
}
