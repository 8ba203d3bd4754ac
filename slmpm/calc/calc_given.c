/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job does, as a calculation again. */
#include "slmpm/calc/calc.h"

#include <string.h>

/* The job's dimensions are the last ones, the calculation's the first. */
static int dims_of(const struct calc_job *j)
{
	int dims = CALC_DIMS;

	while (dims && j->count[CALC_DIMS - dims] == 1)
		dims--;
	return dims;
}

/* Strides that are all 0 would say that there are no gaps: where it is the same element again and
 * again, one of a dimension of one element says something else. */
static void given_strides(int64_t stride[CALC_DIMS], const struct calc_job *j,
			  const struct calc_operand *o)
{
	int dims = dims_of(j), first = CALC_DIMS - dims;
	uint64_t packed = j->width;
	bool gaps = false, any = false;

	for (int d = dims - 1; d >= 0; d--) {
		stride[d] = o->stride[first + d];
		gaps |= stride[d] != (int64_t)packed;
		any |= stride[d] != 0;
		packed *= j->count[first + d];
	}
	if (!gaps)
		memset(stride, 0, sizeof(int64_t) * CALC_DIMS);
	else if (!any && dims < CALC_DIMS)
		stride[dims] = 1;
}

static void given_operand(struct slmpm_operand *to, const struct calc_job *j,
			  const struct calc_operand *o)
{
	*to = (struct slmpm_operand){
		.at = o->at, .flags = o->flags, .index = o->index, .indices = o->indices};
	given_strides(to->stride, j, o);
}

void calc_given(const struct calc_job *j, struct slmpm_calc *c,
		struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX])
{
	int dims = dims_of(j);

	*c = (struct slmpm_calc){
		.size = sizeof(*c),
		.op = j->op,
		.type = j->type,
		.args = operands,
		.targets = &operands[SLMPM_CALC_ARGS_MAX],
		.arg_count = j->alone ? 1 : (int32_t)j->args,
		.target_count = (int32_t)j->targets,
	};
	memcpy(c->count, &j->count[CALC_DIMS - dims], (size_t)dims * sizeof(c->count[0]));
	for (int i = 0; i < c->arg_count; i++)
		given_operand(&operands[i], j, &j->operand[i]);
	for (int i = 0; i < c->target_count; i++)
		given_operand(&operands[SLMPM_CALC_ARGS_MAX + i], j,
			      &j->operand[j->args + (uint32_t)i]);
}

void calc_plain_given(const struct calc_plain *p, struct slmpm_calc *c,
		      struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX])
{
	*c = (struct slmpm_calc){
		.size = sizeof(*c),
		.op = p->op,
		.type = p->type,
		.count = {p->total > 1 ? p->total : 0},
		.args = operands,
		.targets = &operands[SLMPM_CALC_ARGS_MAX],
		.arg_count = (int32_t)p->args,
		.target_count = 1,
	};
	for (uint32_t i = 0; i < p->args; i++)
		operands[i] = (struct slmpm_operand){.at = (void *)(uintptr_t)p->from[i]};
	operands[SLMPM_CALC_ARGS_MAX] = (struct slmpm_operand){.at = p->to};
}
