/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By machines: each has a leader, the root or its lowest rank. Members give to, and get from, the
 * leader of theirs, and leaders go up and down a binomial tree: so as few messages as can be go
 * from one machine to another. A node combines what its children give in the order of these, so not
 * in that of the ranks.
 */
#include "slmpm/plan/rounds.h"

/* The lowest rank of R's machine. */
static uint32_t lowest_of(const struct plan *p, uint32_t r)
{
	return p->spec.hosts ? p->spec.hosts[r] : r;
}

static uint32_t leader_of(const struct plan *p, uint32_t host)
{
	return lowest_of(p, p->spec.root) == host ? p->spec.root : host;
}

/* Machines whose lowest rank is below R. */
static uint32_t hosts_below(const struct plan *p, uint32_t r)
{
	uint32_t n = 0;

	if (!p->spec.hosts)
		return r;
	for (uint32_t i = 0; i < r; i++)
		n += p->spec.hosts[i] == i;
	return n;
}

/* The leader in place V of the tree, from the root's on. */
static uint32_t leader_at(const struct plan *p, uint32_t v)
{
	uint32_t i = (hosts_below(p, lowest_of(p, p->spec.root)) + v) % p->hosts, r = 0;

	if (!p->spec.hosts)
		return i;
	while (p->spec.hosts[r] != r || i--)
		r++;
	return leader_of(p, r);
}

static bool leads_host(const struct plan *p)
{
	return leader_of(p, lowest_of(p, p->spec.rank)) == p->spec.rank;
}

/* Who this rank gives to; it is not the root. */
static uint32_t hosts_parent(const struct plan *p)
{
	return leads_host(p) ? leader_at(p, p->place & (p->place - 1)) :
			       leader_of(p, lowest_of(p, p->spec.rank));
}

/* Those behind p->next, which moves on: leaders first, of the largest parts. False: there is none
 * left. */
static bool next_child(struct plan *p, uint32_t *child)
{
	const uint32_t levels = plan_log2(p->hosts), me = p->spec.rank;

	if (!leads_host(p))
		return false;
	for (; p->next < levels; p->next++) {
		const uint32_t part = 1u << (levels - 1 - p->next);

		if (p->place % (2 * part) || p->place + part >= p->hosts)
			continue;
		*child = leader_at(p, p->place + part);
		p->next++;
		return true;
	}
	for (; p->spec.hosts && p->next < levels + p->spec.size; p->next++) {
		*child = p->next - levels;
		if (*child == me || p->spec.hosts[*child] != p->spec.hosts[me])
			continue;
		p->next++;
		return true;
	}
	return false;
}

static bool is_top(const struct plan *p)
{
	return p->spec.rank == p->spec.root;
}

static bool is_barrier(const struct plan *p)
{
	return p->spec.kind == PLAN_BARRIER;
}

/* ---- up -------------------------------------------------------------------------------------- */

void prepare_hosts(struct plan *p)
{
	const uint32_t first = hosts_below(p, lowest_of(p, p->spec.root));
	uint32_t children = 0, child;

	p->hosts = hosts_below(p, p->spec.size);
	p->place = (hosts_below(p, lowest_of(p, p->spec.rank)) + p->hosts - first) % p->hosts;
	while (next_child(p, &child))
		children++;
	p->next = 0;
	if (children && !is_barrier(p))
		plan_slots(p, children, p->spec.count, children, is_top(p) ? 0 : p->spec.count);
	p->rounds = children;
	p->have = plan_at(p->input, 0);
}

/* What the K-th child gives; behind the last, all of it is waited for. */
bool round_hosts_gather(struct plan *p, uint32_t k)
{
	uint32_t child;

	if (!next_child(p, &child)) {
		plan_wait(p, 0, p->pending);
		p->next = 0;
		return false;
	}
	if (is_barrier(p)) {
		plan_await_token(p, child, 0);
		p->pending++;
	} else {
		p->pending += plan_recv(p, child, plan_slot(p, k), p->spec.count, 0, PLAN_AHEAD);
	}
	return true;
}

/* It is combined, and the sum goes up. */
bool round_hosts_fold(struct plan *p, uint32_t k)
{
	const struct plan_part at = is_top(p) ? plan_at(PLAN_TO, 0) : plan_extra(p);

	if (k < p->rounds && !is_barrier(p)) {
		plan_fold(p, at, p->have, plan_slot(p, k), p->spec.count);
		p->have = at;
		return true;
	}
	if (!is_top(p) && is_barrier(p))
		plan_token(p, hosts_parent(p));
	else if (!is_top(p))
		plan_send(p, hosts_parent(p), p->have, p->spec.count);
	else if (!is_barrier(p))
		plan_copy(p, plan_at(PLAN_TO, 0), p->have, p->spec.count);
	return false;
}

/* ---- down ------------------------------------------------------------------------------------ */

static void come_down(struct plan *p, struct plan_part data)
{
	if (!is_barrier(p)) {
		plan_wait(p, 0, plan_recv(p, hosts_parent(p), data, p->spec.count, 0, PLAN_AHEAD));
		return;
	}
	plan_await_token(p, hosts_parent(p), 0);
	plan_wait(p, 0, 1);
}

bool round_hosts_down(struct plan *p, uint32_t k)
{
	const struct plan_part data = plan_at(is_top(p) && !p->phase ? p->input : PLAN_TO, 0);
	uint32_t child;

	if (k == 0 && !is_top(p))
		come_down(p, data);
	if (!next_child(p, &child))
		return false;
	if (is_barrier(p))
		plan_token(p, child);
	else
		plan_send(p, child, data, p->spec.count);
	return true;
}
