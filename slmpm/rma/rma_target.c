/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request says of memory in whatever form it travels (struct wire_target), at both ends. */
#include <stdlib.h>
#include <string.h>

#include "slmpm/completion/completion.h"
#include "slmpm/completion/queue.h"
#include "slmpm/link/landing.h"
#include "slmpm/link/link.h"
#include "slmpm/part.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/direct.h"
#include "slmpm/rma/rma.h"

struct wire_target rma_target(const struct remote *remote, uint64_t offset, uint64_t length)
{
	struct wire_target t = {
		.offset = LITTLE_64(offset),
		.length = LITTLE_64(length),
		.grant = LITTLE_32(remote->grant),
	};

	memcpy(t.secret, remote->secret, sizeof(t.secret));
	return t;
}

struct wire_atomic rma_operands(const struct request *r)
{
	return (struct wire_atomic){
		.operand = LITTLE_64(r->rma.operand),
		.compare = LITTLE_64(r->rma.compare),
		.bits = LITTLE_32(r->rma.bits),
	};
}

/* ---- the side whose memory it is --------------------------------------------------------- */

void rma_target_in(struct wire_target *t)
{
	t->offset = LITTLE_64(t->offset);
	t->length = LITTLE_64(t->length);
	t->grant = LITTLE_32(t->grant);
	t->zero = LITTLE_32(t->zero);
}

bool rma_operands_in(struct wire_atomic *a, const void *from, uint64_t length)
{
	memcpy(a, from, sizeof(*a));
	a->operand = LITTLE_64(a->operand);
	a->compare = LITTLE_64(a->compare);
	a->bits = LITTLE_32(a->bits);
	return (a->bits == 32 || a->bits == 64) && length == a->bits / 8 && !a->zero;
}

struct region *rma_find(struct endpoint *ep, const struct wire_target *t, uint32_t access,
			int *status)
{
	const struct grant *grant =
		region_check(ep, t->grant, t->secret, access, t->offset, t->length, status);

	return grant ? grant->region : NULL;
}

struct region *rma_store(struct endpoint *ep, const struct wire_target *t, uint64_t got,
			 const void *data, uint32_t n, int *status)
{
	struct region *region = *status ? NULL : rma_find(ep, t, SLMPM_WRITE, status);

	if (region && n) {
		landing_copy(region_at(region, t->offset + got), data, n);
		part_landed(ep->ctx, region_at(region, t->offset + got), n);
	}
	return region;
}

bool rma_charge(struct endpoint *ep)
{
	ep->unmatched_charge += WIRE_ENVELOPE;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit))
		return endpoint_poison(ep, "credit overrun");
	return true;
}

void rma_notified(struct endpoint *ep, const struct region *region, const struct wire_target *t,
		  uint32_t imm, enum slmpm_protocol by)
{
	if (region)
		completion_notify(region->counter, region->queue, ep, t->offset, t->length, imm,
				  by);
	else
		link_discharge(ep, WIRE_ENVELOPE);
}

static void *rma_refuse(struct endpoint *ep, int *status, int why)
{
	ep->stats->refused++;
	*status = why;
	return NULL;
}

void *rma_word(struct endpoint *ep, const struct wire_target *t, struct counter **counter,
	       int *status)
{
	const struct grant *g =
		region_check(ep, t->grant, t->secret, 0, t->offset, t->length, status);
	void *at;

	if (!g)
		return NULL;
	*counter = g->region->word;
	if (UNLIKELY(*counter))
		return t->length == sizeof(uint64_t) ? &(*counter)->done :
						       rma_refuse(ep, status, -SLMPM_EINVAL);
	if (SLMPM_READ_WRITE & ~g->access)
		return rma_refuse(ep, status, -SLMPM_EACCES);
	at = region_at(g->region, t->offset);
	return (uintptr_t)at % t->length == 0 ? at : rma_refuse(ep, status, -SLMPM_EINVAL);
}

uint64_t rma_change(struct endpoint *ep, void *at, struct counter *counter, int op,
		    const struct wire_atomic *a)
{
	uint64_t old;

	ep->stats->served++;
	if (UNLIKELY(counter))
		return counter_operate(counter, op, a->operand, a->compare);
	old = direct_atomic(at, op, (int)a->bits, a->operand, a->compare);
	part_landed(ep->ctx, at, a->bits / 8);
	return old;
}

bool rma_is_part(const struct endpoint *ep, bool last, uint32_t length, uint64_t left)
{
	return last ? length == left && length <= ep->packet_max_in :
		      length == ep->packet_max_in && length < left;
}

const void *rma_staged(struct endpoint *ep, const void *data, uint32_t n)
{
	struct rma *m = ep->rma;

	if (!ep->link.check || !n)
		return data;
	if (!m->stage)
		m->stage = malloc(ep->packet_max);
	return m->stage ? memcpy(m->stage, data, n) : NULL;
}
