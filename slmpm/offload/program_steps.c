/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan's steps as entries of one channel: each begins in its turn there as a plan's does. A GATE
 * is a COUNT of nothing, which acts when the sends before it are done. A WAIT is for a total of the
 * lane's counter, which its receives count at: some of them have come when a program of many steps
 * is only posted in part.
 */
#include "slmpm/offload/program_steps.h"

#include <string.h>

uint64_t steps_count(struct plan *p)
{
	struct plan_step step;
	uint64_t n = 0;

	while (plan_next(p, &step))
		n++;
	return n;
}

void steps_begin(struct steps *s, struct offload *o, uint32_t slot, const struct offload_run *run,
		 struct plan *p)
{
	s->plan = p;
	s->run = run;
	s->offload = o;
	s->area[0] = NULL;
	s->area[PLAN_FROM] = (unsigned char *)run->from;
	s->area[PLAN_TO] = run->to;
	s->area[PLAN_SCRATCH] = o->slot[slot].scratch;
	s->slot = slot;
	s->width = run_width(run);
	memcpy(s->waited, o->slot[slot].waited, sizeof(s->waited));
	s->stands = false;
	s->posted = 0;
	s->count = 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void *step_at(const struct steps *s, uint8_t area, uint64_t first)
{
	return s->area[area] ? s->area[area] + first * s->width : NULL;
}

static struct slmpm_wr *entry_add(struct steps *s, uint32_t op)
{
	struct slmpm_wr *wr = &s->wr[s->count];

	s->queues[s->count++] = s->offload->wq;
	*wr = (struct slmpm_wr){.size = sizeof(*wr),
				.op = op,
				.flags = SLMPM_SILENT,
				.channel = s->slot,
				.cookie = OFFLOAD_RUNS};
	return wr;
}

static void message_add(struct steps *s, const struct plan_step *step)
{
	struct slmpm_iov *iov = &s->iov[s->count];
	const bool recv = step->op == PLAN_RECV;
	struct slmpm_wr *wr = entry_add(s, recv ? SLMPM_OP_RECV : SLMPM_OP_SEND);

	wr->peer = s->offload->peers[step->peer];
	wr->stream = s->offload->stream + s->slot;
	if (recv)
		wr->ctr = s->offload->slot[s->slot].lane[step->lane];
	else
		wr->imm = s->run->mark;
	if (recv && s->run->mark) { /* it is compared */
		wr->flags = 0;
		wr->cookie = message_cookie(s->slot, step->count * s->width);
	}
	if (!step->count)
		return;
	iov->base = step_at(s, step->at_area, step->at);
	iov->len = step->count * s->width;
	wr->iov = iov;
	wr->iov_count = 1;
}

static void wait_add(struct steps *s, const struct plan_step *step)
{
	struct slmpm_wr *wr = entry_add(s, SLMPM_OP_WAIT);

	wr->ctr = s->offload->slot[s->slot].lane[step->lane];
	wr->value = s->waited[step->lane] += step->count;
}

/* It moves no counter. */
static void gate_add(struct steps *s)
{
	struct slmpm_wr *wr = entry_add(s, SLMPM_OP_COUNT);

	wr->flags |= SLMPM_RELATIVE;
	wr->ctr = s->offload->slot[s->slot].lane[0];
}

static struct slmpm_wr *calc_add(struct steps *s, uint32_t op, uint32_t type, uint64_t count,
				 int args)
{
	struct slmpm_calc *calc = &s->calc[s->count];
	struct slmpm_operand *operand = s->operand[s->count];
	struct slmpm_wr *wr = entry_add(s, SLMPM_OP_CALC);

	for (int i = 0; i < 3; i++)
		operand[i] = (struct slmpm_operand){0};
	*calc = (struct slmpm_calc){.size = sizeof(*calc),
				    .op = op,
				    .type = type,
				    .count = {count},
				    .args = operand + 1,
				    .targets = operand,
				    .arg_count = args,
				    .target_count = 1};
	wr->calc = calc;
	return wr;
}

static void fold_add(struct steps *s, const struct plan_step *step)
{
	struct slmpm_operand *operand = s->operand[s->count];

	calc_add(s, s->run->op, s->run->type, step->count, 2);
	operand[0].at = step_at(s, step->at_area, step->at);
	operand[1].at = step_at(s, step->left_area, step->left);
	operand[2].at = step_at(s, step->right_area, step->right);
}

/* All bits as they are: as integers. */
static void copy_add(struct steps *s, const struct plan_step *step)
{
	static const uint32_t types[] = {SLMPM_UINT8, SLMPM_UINT16, SLMPM_UINT32, SLMPM_UINT64};
	const int shift = s->width % 8 ? __builtin_ctz(s->width) : 3;
	struct slmpm_operand *operand = s->operand[s->count];

	calc_add(s, SLMPM_CALC_OR, types[shift], step->count * (s->width >> shift), 1);
	operand[0].at = step_at(s, step->at_area, step->at);
	operand[1].at = step_at(s, step->left_area, step->left);
}

/* It acts when all before it is done, and alone completes without an error. */
static struct slmpm_wr *end_add(struct steps *s)
{
	unsigned char *nothing = &s->offload->slot[s->slot].nothing;
	struct slmpm_operand *operand = s->operand[s->count];
	struct slmpm_wr *wr = calc_add(s, SLMPM_CALC_OR, SLMPM_UINT8, 1, 1);

	operand[0].at = operand[1].at = nothing;
	wr->flags = 0;
	wr->cookie = s->slot;
	return wr;
}

static void last_add(struct steps *s)
{
	end_add(s)->ctr = s->run->ctr;
}

static void stand_add(struct steps *s, const struct plan_step *step)
{
	(void)end_add(s);
	s->fold = *step;
	s->stands = true;
}

static void step_entry(struct steps *s, const struct plan_step *step)
{
	switch (step->op) {
	case PLAN_WAIT: wait_add(s, step); break;
	case PLAN_FOLD: s->run->combine ? stand_add(s, step) : fold_add(s, step); break;
	case PLAN_COPY: copy_add(s, step); break;
	case PLAN_GATE: gate_add(s); break;
	case PLAN_END: last_add(s); break;
	default: message_add(s, step);
	}
}

int steps_take(struct steps *s)
{
	struct plan_step step;

	s->posted += (uint64_t)s->count;
	s->count = 0;
	while (!s->stands && s->count < STEPS_AT_ONCE && plan_next(s->plan, &step))
		step_entry(s, &step);
	return s->count;
}

void steps_fold(struct steps *s)
{
	const struct slmpm_combine *own = s->run->combine;
	const struct plan_step *f = &s->fold;

	own->function(step_at(s, f->at_area, f->at), step_at(s, f->left_area, f->left),
		      step_at(s, f->right_area, f->right), f->count, own->arg);
}
