/* SPDX-License-Identifier: BSD-3-Clause */
/* The model's fabric, and the stand-ins for what would make system calls or look at a clock. */
#include "tests/model/queue/cable.h"

#include <errno.h>
#include <slmpm_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "slmpm/bond/bond.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/domain.h"
#include "slmpm/link/wait.h"
#include "slmpm/monitor/totals.h"
#include "slmpm/region/memory.h"
#include "slmpm/stats.h"

#define PAYLOAD 1024
#define PACKET  16 /* of a message: longer ones go in parts */
#define EAGER   24 /* longer ones are announced, and wait for their receive */
#define CREDIT  (1u << 20)

struct cable_link {
	struct fabric_link link;
	int side;
};

struct cables cables;

static struct cable *cable_in(int side)
{
	return &cables.of[!side];
}

/* ---- the fabric ----------------------------------------------------------------------------- */

static int side_of(const struct fabric_link *link)
{
	return ((const struct cable_link *)(const void *)link)->side;
}

static int cable_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct cable *c = &cables.of[side_of(link)];
	struct cable_packet *p = &c->packets[(c->first + c->count) % CABLE_ROOM];

	if (wr->op != FABRIC_SEND)
		return 1;
	c->refused = c->count >= c->room;
	if (c->refused)
		return -EAGAIN;
	memcpy(p->head, wr->head, sizeof(p->head));
	p->kind = wr->kind;
	p->length = (uint8_t)wr->length;
	if (wr->length > CABLE_BYTES)
		cables.fault = "the checker: a packet is too long";
	else if (wr->length)
		memcpy(p->data, wr->data, wr->length);
	c->count++;
	return 1;
}

static int cable_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct cable *c = cable_in(side_of(link));
	int got = 0;

	for (; got < n && c->read < c->shown; got++, c->read++) {
		const struct cable_packet *p = &c->packets[(c->first + c->read) % CABLE_ROOM];
		struct fabric_arrival *a = &arrivals[got];

		memcpy(a->head, p->head, sizeof(a->head));
		a->data = p->data;
		a->length = p->length;
		a->kind = p->kind;
		a->span = 1;
		a->token = 0;
	}
	return got || !c->cut || c->count > c->read ? got : -EPIPE;
}

static void cable_release(struct fabric_link *link, const struct fabric_arrival *a)
{
	struct cable *c = cable_in(side_of(link));

	for (uint32_t i = 0; i < a->span; i++) {
		memset(&c->packets[c->first], 0, sizeof(c->packets[0]));
		c->first = (uint8_t)((c->first + 1) % CABLE_ROOM);
		c->count--;
		c->read--;
		c->shown--;
	}
	c->rung |= c->refused;
	c->refused = false;
}

static const struct fabric fabric = {
	.name = "model",
	.link_size = sizeof(struct cable_link),
	.post = cable_post,
	.poll = cable_poll,
	.release = cable_release,
};

static struct fabric_domain domain = {.fabric = &fabric, .fd = -1};

/* ---- for the search ------------------------------------------------------------------------- */

unsigned cable_waits(int side)
{
	const struct cable *c = cable_in(side);

	return (unsigned)c->count - c->read;
}

void cable_show(int side, unsigned n)
{
	struct cable *c = cable_in(side);

	c->shown = (uint8_t)(c->read + n);
}

bool cable_rings(int side)
{
	return cables.of[side].rung;
}

void cable_hush(int side)
{
	cables.of[side].rung = false;
}

void cable_cut(int side)
{
	cables.of[side].cut = true;
}

bool cable_is_over(int side)
{
	return cable_in(side)->cut && !cable_waits(side);
}

static struct endpoint *connect_to(struct context *ctx, int side)
{
	struct endpoint *ep = endpoint_new(ctx, NULL);

	if (!ep)
		return NULL;
	((struct cable_link *)(void *)ep->link.port)->side = side;
	ep->link.port->payload_max = ep->link.port->payload_max_in = PAYLOAD;
	ep->packet_max = PACKET;
	ep->rooms->regions->agreed = true;
	ep->life->eager_max = EAGER;
	ep->credit = CREDIT;
	return ep;
}

void cable_set_up(struct context *ctx[SIDES], struct endpoint *ep[SIDES], unsigned room)
{
	memset(&cables, 0, sizeof(cables));
	for (int side = 0; side < SIDES; side++) {
		int rc = 0;
		slmpm_ctx handle;

		cables.of[side].room = (uint8_t)room;
		if (slmpm_open(&handle, NULL) < 0 || !(ctx[side] = context_get(handle, &rc)) ||
		    !(ep[side] = connect_to(ctx[side], side))) {
			fprintf(stderr, "model: %s\n", slmpm_error_detail());
			exit(2);
		}
		endpoint_up(ep[side]);
	}
}

/* ---- what the code under test calls in place of the library's own ---------------------------- */

struct fabric_domain *domain_get(struct context *ctx, const struct fabric *of, int *rc)
{
	(void)ctx;
	(void)of;
	(void)rc;
	return &domain;
}

/* A bond of two, whose packets keep their order whichever has them. */
bool bond_is(const struct fabric_link *port)
{
	(void)port;
	return cables.links;
}

uint32_t bond_up(const struct fabric_link *link)
{
	(void)link;
	return cables.links;
}

uint32_t bond_home(const struct fabric_link *link)
{
	(void)link;
	return (uint32_t)__builtin_ctz(cables.links);
}

bool bond_spreads(const struct fabric_link *link)
{
	(void)link;
	return false;
}

struct fabric_link *bond_port(const struct fabric_link *link, uint32_t path)
{
	(void)link, (void)path;
	return NULL;
}

int domain_shape(struct context *ctx, const struct slmpm_options *o)
{
	(void)ctx;
	(void)o;
	return 0;
}

const struct fabric_caps *domain_caps(const struct fabric *of)
{
	static const struct fabric_caps caps;

	(void)of;
	return &caps;
}

bool domain_is_native(const struct fabric *of)
{
	(void)of;
	return false;
}

void domain_rescan(struct context *ctx)
{
	(void)ctx;
}

void stats_open(struct context *ctx)
{
	(void)ctx;
}

void totals_begin(struct endpoint *ep)
{
	(void)ep;
}

int wait_inspect(struct context *ctx)
{
	(void)ctx;
	return 0;
}

uint64_t clock_now(void)
{
	return 1 + cables.now;
}

uint64_t clock_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : clock_now() + (uint64_t)timeout_ms * 1000000;
}

/* Its process is gone, and all that it sent has been read. */
void bootstrap_link_lost(struct endpoint *ep)
{
	endpoint_lost(ep, "killed");
}

void bootstrap_stop(struct endpoint *ep, const char *reason)
{
	(void)ep;
	cables.fault = reason && strncmp(reason, "impossible", 10) == 0 ?
			       "a peer is said to have broken a rule" :
			       cables.fault;
}

/* Keys that differ, and are the same in each run. */
ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	(void)flags;
	memset(bytes, 0x5a, size);
	return (ssize_t)size;
}

/* A sleeping thread is woken. */
void context_wake(struct context *ctx)
{
	ctx->sleeping = false;
}

int error_set(int error, const char *format, ...)
{
	(void)format;
	return -error;
}
