/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of members that have their new ranks after slmpm_group_shrink, where this one has not
 * yet: its verdict is on its way. They are kept until it is here.
 */
#include "slmpm/deposit/deposit.h"

#include <stdlib.h>
#include <string.h>

struct early {
	struct list node;
	struct endpoint *ep; /* it came by; it has not ended */
	uint32_t origin;
	struct wire_deposit head;
	size_t len;
	unsigned char sets[];
};

static void early_free(struct deposits *d, struct early *e)
{
	list_remove(&e->node);
	d->early_count--;
	free(e);
}

/* Of that put or an earlier one, by any member: the request comes along the line, and that it is
 * over from the origin. */
static void early_over(struct deposits *d, uint32_t origin, uint64_t number)
{
	LIST_EACH_ENTRY(struct early, e, &d->early, node)
		if (e->origin == origin && LITTLE_64(e->head.number) <= number)
			early_free(d, e);
}

/* One of each origin, which has one put under way. A member that lies may take all places, and
 * others' requests are dropped: it could stop their puts by other words, too. */
static void early_keep(struct deposits *d, struct endpoint *ep, const struct wire_deposit *w,
		       const struct slmpm_am *am)
{
	const uint32_t origin = LITTLE_32(w->origin), size = d->group->boards.size;
	struct early *e;

	if (d->early_count >= size || am->data_len > WORD_SETS_MAX || origin >= size)
		return;
	e = malloc(sizeof(*e) + am->data_len);
	if (!e) {
		endpoint_no_memory(ep);
		return;
	}
	*e = (struct early){.ep = ep, .origin = origin, .head = *w, .len = am->data_len};
	memcpy(e->sets, am->data, am->data_len);
	list_append(&d->early, &e->node);
	d->early_count++;
}

void early_arrived(struct deposits *d, struct endpoint *ep, const struct slmpm_am *am)
{
	struct wire_deposit w;
	uint16_t word;

	if (am->head_len != sizeof(w) || !d->group->status)
		return;
	memcpy(&w, am->head, sizeof(w));
	word = LITTLE_16(w.word);
	if (w.generation != (uint8_t)(d->group->boards.generation + 1))
		return;
	if (word == WORD_REQUEST || word == WORD_STOP || word == WORD_LEAVE)
		early_over(d, LITTLE_32(w.origin), LITTLE_64(w.number));
	if (word == WORD_REQUEST)
		early_keep(d, ep, &w, am);
}

static void early_drop(struct deposits *d, const struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct early, e, &d->early, node)
		if (e->ep == ep)
			early_free(d, e);
}

/* Its member may have been left out, or have another endpoint by now. */
void early_ended(const struct endpoint *ep)
{
	LIST_EACH_ENTRY(const struct group, g, &ep->ctx->groups, node)
		if (g->deposits)
			early_drop(g->deposits, ep);
}

void early_forget(struct deposits *d)
{
	LIST_EACH_ENTRY(struct early, e, &d->early, node)
		early_free(d, e);
}

void deposit_regrouped(struct group *g)
{
	struct deposits *d = g->deposits;

	while (d && !list_empty(&d->early)) { /* none is kept again: the ranks are those of now */
		struct early *e = LIST_ENTRY(d->early.next, struct early, node);
		const struct slmpm_am am = {
			.id = DEPOSIT_WORD,
			.head_len = sizeof(e->head),
			.head = &e->head,
			.data = e->sets,
			.data_len = e->len,
		};
		struct endpoint *ep = e->ep;

		list_remove(&e->node);
		d->early_count--;
		if (pair_member(ep) && pair_member(ep)->group == g) /* or it has been left out */
			deposit_arrived(ep, &am);
		free(e);
	}
}
