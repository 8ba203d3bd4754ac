/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a round, and where what is received on the way lies. */
#include "slmpm/plan/rounds.h"

#define SHORT 4096 /* elements: as much for receives that are all posted at once is no matter */

static struct plan_step *step_add(struct plan *p, enum plan_op op, uint64_t count)
{
	struct plan_step *step = &p->step[p->made++];

	*step = (struct plan_step){.op = (uint8_t)op, .round = p->round, .count = count};
	return step;
}

static void send_add(struct plan *p, uint32_t peer, struct plan_part at, uint64_t count)
{
	struct plan_step *step = step_add(p, PLAN_SEND, count);

	step->peer = peer;
	step->at_area = at.area;
	step->at = at.first;
}

/* What is received may go where a phase before sends from: its first receive waits for that. */
static void recv_add(struct plan *p, uint32_t peer, struct plan_part at, uint64_t count,
		     uint32_t lane, uint32_t flags)
{
	struct plan_step *step = step_add(p, PLAN_RECV, count);

	step->peer = peer;
	step->at_area = at.area;
	step->at = at.first;
	step->lane = (uint8_t)lane;
	step->flags = p->behind ? 0 : (uint8_t)flags;
	p->behind = false;
}

void plan_send(struct plan *p, uint32_t peer, struct plan_part at, uint64_t count)
{
	if (count)
		send_add(p, peer, at, count);
}

uint32_t plan_recv(struct plan *p, uint32_t peer, struct plan_part at, uint64_t count,
		   uint32_t lane, uint32_t flags)
{
	if (count)
		recv_add(p, peer, at, count, lane, flags);
	return count != 0;
}

void plan_wait(struct plan *p, uint32_t lane, uint64_t count)
{
	if (count)
		step_add(p, PLAN_WAIT, count)->lane = (uint8_t)lane;
}

/* AT, of LEFT. */
static struct plan_step *local_add(struct plan *p, enum plan_op op, struct plan_part at,
				   struct plan_part left, uint64_t count)
{
	struct plan_step *step = step_add(p, op, count);

	step->at_area = at.area;
	step->at = at.first;
	step->left_area = left.area;
	step->left = left.first;
	return step;
}

void plan_fold(struct plan *p, struct plan_part at, struct plan_part left, struct plan_part right,
	       uint64_t count)
{
	struct plan_step *step;

	if (!count)
		return;
	step = local_add(p, PLAN_FOLD, at, left, count);
	step->right_area = right.area;
	step->right = right.first;
}

void plan_copy(struct plan *p, struct plan_part at, struct plan_part left, uint64_t count)
{
	if (count && (at.area != left.area || at.first != left.first))
		local_add(p, PLAN_COPY, at, left, count);
}

void plan_token(struct plan *p, uint32_t peer)
{
	send_add(p, peer, plan_at(PLAN_SCRATCH, 0), 0);
}

void plan_await_token(struct plan *p, uint32_t peer, uint32_t lane)
{
	recv_add(p, peer, plan_at(PLAN_SCRATCH, 0), 0, lane, PLAN_AHEAD);
}

void plan_slots(struct plan *p, uint32_t rounds, uint64_t elements, uint32_t least, uint64_t extra)
{
	bool many = elements && rounds > SHORT / elements;

	p->rounds = rounds;
	p->slots = many && least < rounds ? least : rounds;
	p->slot = elements;
	if (__builtin_mul_overflow(p->slots, elements, &p->scratch) ||
	    __builtin_add_overflow(p->scratch, extra, &p->scratch))
		p->scratch = UINT64_MAX;
}

struct plan_part plan_slot(const struct plan *p, uint32_t k)
{
	return plan_at(PLAN_SCRATCH, k % p->slots * p->slot);
}

struct plan_part plan_extra(const struct plan *p)
{
	return plan_at(PLAN_SCRATCH, p->slots * p->slot);
}

uint32_t plan_slot_flags(const struct plan *p)
{
	return p->slots < p->rounds ? 0 : PLAN_AHEAD;
}
