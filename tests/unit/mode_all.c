/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* The selector: every combination of conditions against what must always hold. */
#include "slmpm/mode/mode.h"

#include "tests/lib/actor.h"
#include "tests/unit/mode_limits.h"

static bool is_around(const struct mode_ask *a, enum mode_force force)
{
	if (a->hint)
		return a->hint != SLMPM_BY_SMT + 1 && a->hint != SLMPM_BY_REQUEST + 1;
	return force == MODE_DMA || (force != MODE_SMT && a->op != MODE_SEND);
}

static bool is_possible(const struct mode_ask *a)
{
	if (a->hint <= SLMPM_BY_SMT + 1)
		return true;
	return (a->op == MODE_SEND) == (a->hint == SLMPM_BY_RGET + 1);
}

#define MUST(condition)                                                                            \
	CHECK(condition, #condition ": op %d hint %u strict %d size %d ways %x: way %d, \"%s\"",   \
	      (int)a->op, a->hint, a->strict, (int)a->size, link->ways, m.way,                     \
	      slmpm_reason_name(m.reason))

/* Each reason is true. */
static void check_reason(const struct mode_ask *a, const struct mode_link *link,
			 enum mode_force force, struct mode m)
{
	const struct mode_view *v = &link->view;
	uint32_t ring = P | R, around = F | C | S | E | A,
		 usable = link->ways & ~(v->behind ? C | S | E | A : 0);
	struct mode_ask asked = *a;

	if (!is_possible(a))
		asked.hint = 0;
	switch (m.reason) {
	case SLMPM_REASON_CALL:
		MUST(!asked.hint && force == MODE_AUTO);
		MUST(!(1u << m.way & (a->op == MODE_SEND ? around : ring)));
		break;
	case SLMPM_REASON_HINT:
		MUST(asked.hint && 1u << m.way & (is_around(&asked, force) ? around : ring));
		break;
	case SLMPM_REASON_STRICT: MUST(a->strict); break;
	case SLMPM_REASON_ONLY: MUST(!(usable & (is_around(&asked, force) ? around : ring))); break;
	case SLMPM_REASON_SETTING: MUST(force != MODE_AUTO || a->always); break;
	case SLMPM_REASON_SIZE:
		MUST(!asked.hint);
		MUST(m.way == MODE_ENGINE && a->size >= limits.engine);
		break;
	case SLMPM_REASON_FASTER:
		MUST(v->cost[0] && v->cost[1] && !v->trial);
		MUST((v->cost[1] <= v->cost[0]) == (m.way == MODE_FETCHED || m.way == MODE_SHARED));
		break;
	case SLMPM_REASON_TRIAL: MUST(v->trial || !v->cost[0] || !v->cost[1]); break;
	case SLMPM_REASON_RING: MUST(v->unread >= 750 && 1u << m.way & around); break;
	case SLMPM_REASON_QUEUE:
		if (1u << m.way & around)
			MUST(v->queue > limits.queue);
		else
			MUST(v->dma > limits.dma && v->unread <= 250);
		break;
	case SLMPM_REASON_ORDER: MUST(v->behind); break;
	case SLMPM_REASON_ENGINE: MUST(m.way == MODE_ASKED && a->size >= limits.engine); break;
	case SLMPM_REASON_UNREACHABLE: MUST(a->beyond && m.way == MODE_COPY); break;
	case SLMPM_REASON_ABSENT: MUST(v->sleeps && a->eager && m.way == MODE_PACKETS); break;
	default: MUST(false);
	}
}

static void check_one(const struct mode_ask *a, const struct mode_link *link, enum mode_force force)
{
	struct mode_limits l = limits;
	struct mode_link calm = *link;
	struct mode m, other;

	l.force = force;
	m = mode_select(a, link, 1, 0, &l);
	if (m.way == MODE_NONE)
		MUST(a->strict);
	else
		MUST(link->ways & 1u << m.way);
	if (link->view.behind)
		MUST(!(1u << m.way & (C | S | E | A)));
	if (a->waits)
		MUST(m.way != MODE_ENGINE);
	check_reason(a, link, force, m);
	if (!a->strict)
		return;
	/* Whatever happens on the link, a strict one goes by the same protocol. */
	MUST(m.way == MODE_NONE ||
	     (is_possible(a) && is_around(a, force) == (bool)(1u << m.way & (F | C | S | E | A))));
	calm.view = (struct mode_view){.segments = 1000, .behind = link->view.behind};
	other = mode_select(a, &calm, 1, 0, &l);
	MUST(mode_protocol(a->op, (enum mode_route)m.way) ==
	     mode_protocol(a->op, (enum mode_route)other.way));
}

#define EACH(type, name, ...)                                                                      \
	for (type const *name = (type const[]){__VA_ARGS__},                                       \
			*name##_end = name + sizeof((type const[]){__VA_ARGS__}) / sizeof(type);   \
	     name < name##_end; name++)

/* Bits of N: the conditions that hold or not. */
static long look_at_views(struct mode_ask a, uint32_t ways)
{
	static const uint32_t costs[4][2] = {{0, 0}, {10, 0}, {10, 20}, {20, 10}};
	uint32_t step = actor_slow() == 1 ? 1 : 7; /* all values of any two */
	long n = 0;

	for (uint32_t bits = 0; bits < 1u << 9; bits += step)
		EACH(uint64_t, unread, 0, 500, 750)
	for (int cost = 0; cost < 4; cost++) {
		const struct mode_link link =
			LINK(ways, .view.unread = *unread, .view.queue = bits & 1 ? 17 : 0,
			     .view.dma = bits & 2 ? 9 : 0, .view.sleeps = bits & 4,
			     .view.behind = bits & 8, .view.trial = bits & 16,
			     .view.cost = {costs[cost][0], costs[cost][1]});

		a.waits = bits & 32;
		a.eager = bits & 64;
		a.always = bits & 128;
		a.beyond = bits & 256 && ways & C && !(ways & (A | E | S));
		for (int force = MODE_AUTO; force <= MODE_DMA; force++, n++)
			check_one(&a, &link, (enum mode_force)force);
	}
	return n;
}

static long inspect_all(void)
{
	long n = 0;

	for (int op = MODE_SEND; op <= MODE_ATOMIC; op++)
		for (uint32_t ways = 1; ways < 1u << MODE_ROUTES; ways++) {
			uint32_t own = op == MODE_SEND ? P | F :
				       op == MODE_PUT  ? C | S | E | A | R :
				       op == MODE_GET  ? C | E | A | R :
							 C | R;

			/* The ring is always there; what the engine reaches, the call does, too. */
			if (ways & ~own || !(ways & (P | R)) ||
			    (ways & (S | E | A) && !(ways & C)) || (ways & E && ways & A))
				continue;
			EACH(uint64_t, size, 8, 64 K, 2048 K)
			for (uint32_t hint = 0; hint <= SLMPM_PROTOCOLS; hint++)
				for (int strict = 0; strict < 2; strict++)
					n += look_at_views((struct mode_ask){.op = (enum mode_op)op,
									     .hint = hint,
									     .strict = strict,
									     .size = *size},
							   ways);
		}
	return n;
}

int main(void)
{
	printf("%ld combinations\n", inspect_all());
	return 0;
}
