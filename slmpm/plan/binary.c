/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binary trees with ranks breadth-first from the root on: those that lie over a network that is
 * one. A node combines with its children, the left one first, so not in the order of the ranks.
 */
#include "slmpm/plan/rounds.h"

#define BRANCHES 2

static uint32_t binary_place(const struct plan *p)
{
	return (p->spec.rank + p->spec.size - p->spec.root) % p->spec.size;
}

static uint32_t binary_parent(const struct plan *p)
{
	return (uint32_t)(((uint64_t)(binary_place(p) - 1) / BRANCHES + p->spec.root) %
			  p->spec.size);
}

static uint32_t binary_children(const struct plan *p)
{
	const uint32_t first = binary_place(p) * BRANCHES + 1, n = p->spec.size;

	if (first >= n)
		return 0;
	return n - first < BRANCHES ? n - first : BRANCHES;
}

/* The K-th from the left. */
static uint32_t binary_child(const struct plan *p, uint32_t k)
{
	return (binary_place(p) * BRANCHES + 1 + k + p->spec.root) % p->spec.size;
}

/* ---- barrier --------------------------------------------------------------------------------- */

bool round_binary_up(struct plan *p, uint32_t k)
{
	const uint32_t children = binary_children(p);

	(void)k;
	for (uint32_t i = 0; i < children; i++)
		plan_await_token(p, binary_child(p, i), 0);
	if (children)
		plan_wait(p, 0, children);
	if (binary_place(p))
		plan_token(p, binary_parent(p));
	return false;
}

bool round_binary_down(struct plan *p, uint32_t k)
{
	(void)k;
	if (binary_place(p)) {
		plan_await_token(p, binary_parent(p), 0);
		plan_wait(p, 0, 1);
	}
	for (uint32_t i = 0; i < binary_children(p); i++)
		plan_token(p, binary_child(p, i));
	return false;
}

/* ---- broadcast ------------------------------------------------------------------------------- */

bool round_binary_broadcast(struct plan *p, uint32_t k)
{
	const uint32_t place = binary_place(p);
	const struct plan_part data = plan_at(place || p->phase ? PLAN_TO : p->input, 0);
	const uint64_t count = p->spec.count;

	(void)k;
	if (place)
		plan_wait(p, 0, plan_recv(p, binary_parent(p), data, count, 0, PLAN_AHEAD));
	for (uint32_t i = 0; i < binary_children(p); i++)
		plan_send(p, binary_child(p, i), data, count);
	return false;
}

/* ---- reduce ---------------------------------------------------------------------------------- */

void prepare_binary_reduce(struct plan *p)
{
	const uint32_t children = binary_children(p);

	if (children)
		plan_slots(p, children, p->spec.count, children,
			   binary_place(p) ? p->spec.count : 0);
}

static void combine_child(struct plan *p, uint32_t k)
{
	const struct plan_part at = binary_place(p) ? plan_extra(p) : plan_at(PLAN_TO, 0);

	plan_wait(p, k, p->spec.count ? 1 : 0);
	plan_fold(p, at, p->have, plan_slot(p, k), p->spec.count);
	p->have = at;
}

bool round_binary_reduce(struct plan *p, uint32_t k)
{
	const uint32_t children = binary_children(p);

	(void)k;
	p->have = plan_at(p->input, 0);
	for (uint32_t i = 0; i < children; i++)
		(void)plan_recv(p, binary_child(p, i), plan_slot(p, i), p->spec.count, i,
				PLAN_AHEAD);
	for (uint32_t i = 0; i < children; i++)
		combine_child(p, i);
	if (binary_place(p))
		plan_send(p, binary_parent(p), p->have, p->spec.count);
	else
		plan_copy(p, plan_at(PLAN_TO, 0), p->have, p->spec.count);
	return false;
}
