/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of functions of such a link, on top of the others: those below see longer packets. */
#include "slmpm/link/addressee.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/copy.h"
#include "slmpm/part.h"

#define SIZE ((uint32_t)sizeof(struct wire_addressee))
#define FLAG ((uint64_t)WIRE_FLAG_ADDRESSED << 48)

struct addressee {
	struct fabric table; /* what the link is called by */
	const struct fabric *below;
	uint32_t element;      /* of the pair's accelerator, or 0 */
	uint32_t here, there;  /* the two processes, as each calls itself */
	bool places;           /* where asked */
	unsigned char *built;  /* where a packet is being built in place */
	const char *violation; /* behind what poll has handed out */
	struct wire_addressee sent;
};

/* ---- what is agreed ------------------------------------------------------------------------- */

uint64_t addressee_features(const struct context *ctx)
{
	switch (ctx->header) {
	case HEADER_MISADDRESSED:
	case HEADER_IDS: return WIRE_FEATURE_IDS;
	case HEADER_ADDRESS: return WIRE_FEATURE_IDS | WIRE_FEATURE_PLACES;
	default: return 0;
	}
}

/* A started process does not know its own number: the hello has it. */
void addressee_agree(struct endpoint *ep, const struct wire_hello *hello, uint64_t features)
{
	ep->life->header.features = features & (WIRE_FEATURE_IDS | WIRE_FEATURE_PLACES);
	ep->life->header.element =
		ep->life->element ? ep->life->element : LITTLE_32(hello->element);
	ep->life->header.process = LITTLE_32((uint32_t)hello->pid);
}

/* ---- places --------------------------------------------------------------------------------- */

/* Payloads that begin with a struct wire_target. */
static const bool has_target[UINT8_MAX + 1] = {
	[WIRE_WRITE_FIRST] = true, [WIRE_WRITE_ONLY] = true, [WIRE_READ_REQUEST] = true,
	[WIRE_FETCH_ADD] = true,   [WIRE_SWAP] = true,       [WIRE_COMPARE_SWAP] = true,
	[WIRE_NOTIFY] = true,      [WIRE_SHARE] = true,
};

/* That range of a region, which may be the peer's to change. */
static bool addressee_take_target(struct wire_target *t, uint8_t opcode, const void *data,
				  uint32_t n)
{
	if (!has_target[opcode] || !data || n < sizeof(*t))
		return false;
	memcpy(t, data, sizeof(*t));
	t->grant = LITTLE_32(t->grant);
	t->offset = LITTLE_64(t->offset);
	return true;
}

/* Of a packet that names memory of the peer's the address there; of any other word 1. */
static uint64_t place_there(struct endpoint *ep, const struct fabric_wr *wr)
{
	struct wire_target t;
	uint64_t base;

	if (addressee_take_target(&t, wr->kind, wr->data, wr->length) &&
	    parts.address_there(ep, t.grant, &base))
		return base + t.offset;
	return wr->head[1];
}

/* The same as this side knows it. False: of a region that is none here; its key is refused. */
static bool place_here(struct endpoint *ep, const struct fabric_arrival *a, uint64_t *place)
{
	struct wire_target t;

	*place = a->head[1];
	if (!addressee_take_target(&t, a->kind, a->data, a->length))
		return true;
	if (!parts.address_here(ep, t.grant, place))
		return false;
	*place += t.offset;
	return true;
}

/* ---- down ----------------------------------------------------------------------------------- */

static void *addressed_reserve(struct fabric_link *link, uint32_t length)
{
	struct addressee *x = ((struct endpoint *)link->owner)->link.addressee;

	if (UNLIKELY(length > link->payload_max)) /* near 2^32 the sum would come out small */
		return NULL;
	x->built = x->below->reserve(link, length + SIZE);
	return x->built;
}

static int addressed_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct endpoint *ep = link->owner;
	struct addressee *x = ep->link.addressee;
	struct fabric_wr with = *wr;

	if (wr->op == FABRIC_HOLD_BACK) {
		if (ep->rooms->secondary && wr->length)
			return -EINVAL;
		with.length *= ADDRESSEE_WORD;
	}
	if (wr->op != FABRIC_SEND)
		return x->below->post(link, &with);
	if (!(wr->flags & FABRIC_BUILT)) {
		if (!addressed_reserve(link, wr->length))
			return link->violation ? -EPROTO : -EAGAIN;
		if (wr->length)
			copy_payload(x->built, wr->data, wr->length);
	}
	x->sent = (struct wire_addressee){
		.element = LITTLE_32(x->element),
		.process = LITTLE_32(x->there),
		.place = x->places ? LITTLE_64(place_there(ep, wr)) : 0,
	};
	memcpy(x->built + wr->length, &x->sent, SIZE);
	with.flags = (uint16_t)((wr->flags | FABRIC_BUILT) & ~FABRIC_STAYS);
	with.length += SIZE;
	with.data = wr->flags & FABRIC_BUILT ? NULL : wr->data; /* for who notes it */
	with.head[2] |= FLAG;
	return x->below->post(link, &with);
}

/* ---- up ------------------------------------------------------------------------------------- */

bool addressee_read(struct wire_addressee *to, uint64_t flags, const void *data, uint32_t n)
{
	if (!(flags & WIRE_FLAG_ADDRESSED) || !data || n < SIZE)
		return false;
	memcpy(to, (const unsigned char *)data + n - SIZE, SIZE);
	return true;
}

/* Removes the addressee: NULL, or the rule that it breaks. */
static const char *take_off(struct endpoint *ep, struct fabric_arrival *a)
{
	const struct addressee *x = ep->link.addressee;
	struct wire_addressee to;
	uint64_t place;

	if (PEER_FAULT(!addressee_read(&to, a->head[2] >> 48, a->data, a->length)))
		return "message without its addressee";
	a->head[2] &= ~FLAG;
	a->length -= SIZE;
	if (PEER_FAULT(LITTLE_32(to.element) != x->element))
		return "accelerator id of a message";
	if (PEER_FAULT(LITTLE_32(to.process) != x->here))
		return "process id of a message";
	if (x->places ? place_here(ep, a, &place) && PEER_FAULT(LITTLE_64(to.place) != place) :
			PEER_FAULT(to.place))
		return "destination address of a message";
	return NULL;
}

static int addressee_refuse(struct fabric_link *link, const char *rule)
{
	link->violation = rule;
	return -EPROTO;
}

static int addressed_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct endpoint *ep = link->owner;
	struct addressee *x = ep->link.addressee;
	int got;

	if (UNLIKELY(x->violation != NULL))
		return addressee_refuse(link, x->violation);
	got = x->below->poll(link, arrivals, n);
	for (int i = 0; i < got; i++) {
		x->violation = take_off(ep, &arrivals[i]);
		if (LIKELY(!x->violation))
			continue;
		ep->stats->misaddressed++;
		link->quiet = false; /* what came before is handed out first */
		return i ? i : addressee_refuse(link, x->violation);
	}
	return got;
}

/* ---- its life ------------------------------------------------------------------------------- */

int addressee_begin(struct endpoint *ep)
{
	struct addressee *x;

	if (!ep->life->header.features)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->below = ep->link.fabric;
	x->table = *x->below;
	x->table.reserve = addressed_reserve;
	x->table.post = addressed_post;
	x->table.poll = addressed_poll;
	x->element = ep->life->header.element;
	x->here = (uint32_t)getpid();
	x->there = ep->life->header.process + (ep->ctx->header == HEADER_MISADDRESSED);
	x->places = ep->life->header.features & WIRE_FEATURE_PLACES;
	ep->link.addressee = x;
	ep->link.fabric = &x->table;
	return 0;
}

void addressee_free(struct endpoint *ep)
{
	if (!ep->link.addressee)
		return;
	ep->link.fabric = ep->link.addressee->below;
	free(ep->link.addressee);
	ep->link.addressee = NULL;
}

const struct wire_addressee *addressee_sent(const struct fabric_link *link)
{
	return &((const struct endpoint *)link->owner)->link.addressee->sent;
}
