/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks over groups: laid, broken, closed; and their connections' ends. */
#include "slmpm/overlay/overlay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/late.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/network/network.h"
#include "slmpm/offload/offload.h"
#include "slmpm/request.h"

#define OPEN  "slmpm_overlay_open"
#define CLOSE "slmpm_overlay_close"

#define BUFFERS     8
#define PACKET      4096
#define PACKET_MIN  16
#define MESSAGE_MAX (UINT64_C(16) << 20)
#define UNREAD_MAX  (UINT64_C(64) << 20)

struct handle_table overlay_table = HANDLE_TABLE_FROM("network", struct overlay, node);

struct overlay *overlay_lock(slmpm_overlay overlay, int *rc)
{
	return context_lock_object(&overlay_table, overlay.id, rc);
}

void overlay_news(struct overlay *n)
{
	n->ctx->news = true;
	context_changed(n->ctx);
}

/* ---- broken ---------------------------------------------------------------------------------- */

static void end_sends(struct edge *e, int status)
{
	for (int c = 0; c < OVERLAY_CHANNELS; c++)
		while (!list_empty(&e->channel[c].own))
			overlay_send_end(LIST_ENTRY(e->channel[c].own.next, struct overlay_send,
						    node),
					 status);
}

void overlay_break(struct overlay *n, int status, int32_t culprit, const char *why)
{
	if (n->status || n->over)
		return;
	n->status = status;
	n->culprit = culprit;
	if (culprit < 0)
		(void)snprintf(n->detail, sizeof(n->detail), "network %u of group %u: %s",
			       n->number, n->tag, why);
	else
		(void)snprintf(n->detail, sizeof(n->detail),
			       "network %u of group %u: rank %" PRId32 ", process %d: %s",
			       n->number, n->tag, culprit, n->group->boards.processes[culprit],
			       why);
	LIST_EACH_ENTRY(struct edge, e, &n->all, node)
		end_sends(e, status);
	LIST_EACH_ENTRY(struct edge, e, &n->all, node)
		edge_due(e, OVERLAY_BREAK);
	overlay_news(n);
}

/* ---- edges ----------------------------------------------------------------------------------- */

struct overlays *overlays_of(struct endpoint *ep)
{
	struct overlays *o = ep->rooms->overlays;

	if (o)
		return o;
	o = ep->rooms->overlays = calloc(1, sizeof(*o));
	if (o)
		list_init(&o->edges);
	return o;
}

static bool is_same_network(const struct overlay *n, const struct overlay_hello *h)
{
	return h->kind == n->shape.kind && h->nodes == n->shape.nodes && h->wrap == n->shape.wrap &&
	       !memcmp(h->extent, n->shape.extent, sizeof(h->extent)) &&
	       h->buffers == n->limits.buffers && h->packet == n->limits.packet &&
	       h->message_max == n->limits.message_max;
}

void overlay_met(struct edge *e, const struct overlay_hello *hello)
{
	struct overlay *n = e->net;

	e->ready = true;
	if (!is_same_network(n, hello)) {
		overlay_break(n, -SLMPM_EINVAL, (int32_t)e->rank,
			      "it has laid another one, or with other options");
		return;
	}
	for (int c = 0; c < OVERLAY_CHANNELS; c++)
		e->channel[c].room = n->limits.buffers;
	overlay_news(n);
	edge_changed(e);
}

/* What has come ahead of E's network; what is older is of networks that are none here. */
static void take_early(struct edge *e, struct overlays *o)
{
	const uint32_t number = e->net->number;

	for (uint32_t i = 0; i < o->early;) {
		const struct overlay_early early = o->hellos[i];

		if (early.number > number) {
			i++;
			continue;
		}
		o->hellos[i] = o->hellos[--o->early];
		if (early.number < number)
			continue;
		overlay_met(e, &early.hello);
		if (early.status)
			overlay_break(e->net, early.status, early.culprit,
				      slmpm_strerror(early.status));
	}
}

/* Over EP. False: there is no memory. */
static bool edge_attach(struct edge *e, struct endpoint *ep)
{
	struct overlays *o = overlays_of(ep);

	if (!o)
		return false;
	e->ep = ep;
	o->last = e->net->number;
	list_append(&o->edges, &e->of_peer);
	edge_due(e, OVERLAY_HELLO);
	take_early(e, o);
	return true;
}

static void edge_detach(struct edge *e)
{
	struct endpoint *ep = e->ep;

	if (!ep)
		return;
	e->ep = NULL;
	list_remove(&e->of_peer);
	endpoint_block(ep, BLOCK_OVERLAY, overlay_has_work(ep));
}

static size_t buffer_size(const struct overlay *n)
{
	const size_t bytes = sizeof(struct overlay_packet) + n->limits.packet;

	return (bytes + 63) & ~(size_t)63;
}

static struct edge *edge_new(struct overlay *n, uint32_t link, uint32_t rank)
{
	struct edge *e = calloc(1, sizeof(*e));
	const size_t size = buffer_size(n), count = n->limits.buffers * n->shape.channels;

	if (!e)
		return NULL;
	e->buffers = malloc(size * count);
	if (!e->buffers) {
		free(e);
		return NULL;
	}
	e->net = n;
	e->link = link;
	e->rank = rank;
	list_init(&e->of_peer);
	list_init(&e->exchanged);
	for (int c = 0; c < OVERLAY_CHANNELS; c++) {
		list_init(&e->channel[c].through);
		list_init(&e->channel[c].own);
		list_init(&e->channel[c].unused);
	}
	for (size_t i = 0; i < count; i++) {
		struct overlay_packet *p = (void *)(e->buffers + i * size);

		p->from = e;
		list_append(&e->channel[i / n->limits.buffers].unused, &p->node);
	}
	return e;
}

static void drop_arrivals(struct overlay *n, struct list *arrivals)
{
	LIST_EACH_ENTRY(struct overlay_arrival, a, arrivals, node)
		arrival_free(n, a);
}

static void overlay_free(struct overlay *n)
{
	for (uint32_t r = 0; n->partial && r < n->shape.nodes; r++)
		if (n->partial[r])
			arrival_free(n, n->partial[r]);
	drop_arrivals(n, &n->arrivals);
	LIST_EACH_ENTRY(struct edge, e, &n->all, node) {
		drop_arrivals(n, &e->exchanged);
		edge_bid_farewell(e);
		edge_detach(e);
	}
	LIST_EACH_ENTRY(struct edge, e, &n->all, node) {
		free(e->buffers);
		free(e);
	}
	free(n->partial);
	list_remove(&n->node);
	n->group->overlays--;
	handle_free(&overlay_table, n);
}

/* ---- laid ------------------------------------------------------------------------------------ */

static bool make_edges(struct overlay *n)
{
	const uint32_t links = n->shape.kind == SLMPM_NETWORK_TREE ? 3 : SLMPM_NETWORK_LINKS;

	for (uint32_t l = 0; l < links; l++) {
		uint32_t there = n->shape.kind == SLMPM_NETWORK_TREE ?
					 tree_neighbour(&n->shape, n->rank, l) :
					 torus_neighbour(&n->shape, n->rank, l);

		if (there == NETWORK_NONE)
			continue;
		n->edges[l] = edge_new(n, l, there);
		if (!n->edges[l])
			return false;
		list_append(&n->all, &n->edges[l]->node);
		if (there && overlay_next(n, there, 0) == overlay_back(n->edges[l]))
			n->children |= 1u << l;
	}
	return true;
}

static struct overlay *overlay_new(struct group *g, const struct slmpm_network *shape,
				   const struct slmpm_overlay_options *limits)
{
	struct overlay *n = handle_new(&overlay_table);

	if (!n)
		return NULL;
	context_own(&n->ctx, g->ctx);
	list_append(&g->ctx->overlays, &n->node);
	list_init(&n->all);
	list_init(&n->arrivals);
	list_init(&n->waiting);
	n->group = g;
	g->overlays++;
	n->number = g->laid;
	n->rank = g->boards.rank;
	n->tag = g->tag;
	n->culprit = -1;
	n->shape = *shape;
	n->limits = *limits;
	n->partial = calloc(shape->nodes, sizeof(struct overlay_arrival *));
	if (n->partial && make_edges(n))
		return n;
	overlay_free(n);
	return NULL;
}

/* Connections with the neighbours, one after the other. */
static int meet_neighbours(struct overlay *n, uint64_t deadline, int timeout_ms)
{
	int rc = 0;

	LIST_EACH_ENTRY(struct edge, e, &n->all, node) {
		int left = timeout_ms > 0 ? clock_ms(clock_now(), deadline, -1) : timeout_ms;
		struct endpoint *ep = group_pair(n->group, (int)e->rank, left, &rc);

		if (!ep)
			return rc;
		if (ep->packet_max < sizeof(struct overlay_head) + n->limits.packet)
			return error_set(SLMPM_EINVAL, OPEN ": packets of %u bytes; %s takes %u",
					 n->limits.packet, ep->life->name,
					 ep->packet_max - (uint32_t)sizeof(struct overlay_head));
		if (!edge_attach(e, ep))
			return error_set(SLMPM_ENOMEM, "for a network");
	}
	return 0;
}

static struct edge *not_ready(const struct overlay *n)
{
	LIST_EACH_ENTRY(struct edge, e, &n->all, node)
		if (!e->ready)
			return e;
	return NULL;
}

/* A member that does not come, and so perhaps others that wait for it elsewhere. */
static bool has_lost_one(const struct overlay *n)
{
	group_inspect(n->group);
	return n->group->status == -SLMPM_EDEAD || n->group->status == -SLMPM_ECLOSED;
}

static bool is_laid(void *arg)
{
	const struct overlay *n = arg;

	return n->status || !not_ready(n) || has_lost_one(n);
}

static int end_without(struct overlay *n)
{
	overlay_break(n, n->group->status, n->group->culprit,
		      n->group->status == -SLMPM_EDEAD ? "it has died" : "it has left the group");
	return overlay_error(n);
}

static int overlay_meet(struct overlay *n, int timeout_ms)
{
	const uint64_t deadline = clock_deadline(timeout_ms);
	const struct edge *e;
	int rc;

	if (has_lost_one(n))
		return end_without(n);
	rc = meet_neighbours(n, deadline, timeout_ms);
	if (rc < 0)
		return rc;
	progress_opportunistic(n->ctx); /* one that has come early may have ended since */
	(void)wait_until(n->ctx, is_laid, n,
			 timeout_ms > 0 ? clock_ms(clock_now(), deadline, -1) : timeout_ms);
	rc = overlay_error(n);
	e = rc == 0 ? not_ready(n) : NULL;
	if (e && has_lost_one(n))
		return end_without(n);
	return e ? late_error(n->ctx, e->ep, timeout_ms, OPEN ": rank %u has not laid it",
			      e->rank) :
		   rc;
}

static int take_overlay_options(struct slmpm_overlay_options *full,
				const struct slmpm_overlay_options *given)
{
	int rc;

	memset(full, 0, sizeof(*full));
	rc = given ? sized_take(OPEN, full, given, sizeof(*full)) : 0;
	if (rc < 0)
		return rc;
	full->buffers = full->buffers ? full->buffers : BUFFERS;
	full->packet = full->packet ? full->packet : PACKET;
	full->message_max = full->message_max ? full->message_max : MESSAGE_MAX;
	full->unread_max = full->unread_max ? full->unread_max : UNREAD_MAX;
	if (full->flags)
		return error_set(SLMPM_EINVAL, OPEN ": flags 0x%x", full->flags);
	if (full->buffers > SLMPM_OVERLAY_BUFFERS || full->packet < PACKET_MIN ||
	    full->packet > SLMPM_OVERLAY_PACKET)
		return error_set(SLMPM_EINVAL, OPEN ": %u buffers for packets of %u bytes",
				 full->buffers, full->packet);
	if (full->message_max > SLMPM_MESSAGE_MAX / 2 || full->unread_max > SLMPM_MESSAGE_MAX / 2)
		return error_set(SLMPM_EINVAL,
				 OPEN ": messages of %" PRIu64 " bytes, %" PRIu64 " of them unread",
				 full->message_max, full->unread_max);
	return 0;
}

static int take_shape(struct slmpm_network *full, const struct slmpm_network *given)
{
	int rc = sized_take(OPEN, full, given, sizeof(*full));

	if (rc == 0) /* that it is a network at all */
		rc = slmpm_network_hops(given, 0, 0);
	if (rc == 0) /* what follows from the rest */
		full->channels = full->wrap ? 2 : 1;
	return rc;
}

static int check_placed(const struct group *g, const struct slmpm_network *shape)
{
	int rc = group_is_joined(g, OPEN);

	if (rc < 0)
		return rc;
	if (shape->nodes != g->boards.size)
		return error_set(SLMPM_EINVAL, OPEN ": %u nodes, and %u members", shape->nodes,
				 g->boards.size);
	if (g->laid == SLMPM_OVERLAY_MAX)
		return error_set(SLMPM_ELIMIT, OPEN ": the group has had %d", SLMPM_OVERLAY_MAX);
	return context_forbids(g->ctx, OPEN);
}

/* It is not to be after all. */
static void overlay_give_up(struct overlay *n)
{
	overlay_break(n, -SLMPM_ECLOSED, (int32_t)n->rank, "it has not been laid there");
	overlay_free(n);
}

static int overlay_lay(struct group *g, const struct slmpm_network *shape,
		       const struct slmpm_overlay_options *limits, slmpm_overlay *out,
		       int timeout_ms)
{
	int rc = check_placed(g, shape);
	struct context *ctx = g->ctx;
	struct overlay *n;

	if (rc == 0)
		rc = engine_stand_by(ctx);
	if (rc < 0)
		return rc;
	g->laid++;
	n = overlay_new(g, shape, limits);
	if (!n)
		return error_set(SLMPM_ENOMEM, "for a network");
	n->inside++;
	rc = overlay_meet(n, timeout_ms);
	n->inside--;
	if (rc == 0)
		out->id = handle_id(n);
	else
		overlay_give_up(n);
	if (rc == 0 && ctx->parked) /* it passes on from now on */
		engine_come_in(ctx);
	return rc;
}

int slmpm_overlay_open(slmpm_overlay *overlay, slmpm_group group,
		       const struct slmpm_network *network,
		       const struct slmpm_overlay_options *options, int timeout_ms)
{
	struct slmpm_overlay_options limits;
	struct slmpm_network shape;
	struct context *ctx;
	struct group *g;
	int rc = take_overlay_options(&limits, options);

	if (rc == 0)
		rc = take_shape(&shape, network);
	if (rc == 0 && !overlay)
		rc = error_set(SLMPM_EINVAL, OPEN ": no place for the handle");
	g = rc == 0 ? group_lock(group, OPEN, &ctx, &rc) : NULL;
	if (!g)
		return rc;
	rc = overlay_lay(g, &shape, &limits, overlay, timeout_ms);
	context_unlock(ctx);
	return rc;
}

/* ---- closed ---------------------------------------------------------------------------------- */

void overlay_is_over(struct overlay *n)
{
	n->over = true;
	LIST_EACH_ENTRY(struct edge, e, &n->all, node)
		if (n->children >> e->link & 1)
			edge_due(e, OVERLAY_OVER);
	overlay_news(n);
}

void overlay_came(struct overlay *n)
{
	if (!n->closing || n->reported || n->came != n->children)
		return;
	n->reported = true;
	if (n->rank)
		edge_due(n->edges[overlay_next(n, n->rank, 0)], OVERLAY_CAME);
	else
		overlay_is_over(n);
}

/* All words have gone: those of connections that end go nowhere. */
static bool is_silent(const struct overlay *n)
{
	LIST_EACH_ENTRY(struct edge, e, &n->all, node)
		if (e->ep && e->due)
			return false;
	return true;
}

static bool is_closed(void *arg)
{
	const struct overlay *n = arg;

	return n->status || (n->over && is_silent(n));
}

static int overlay_end(struct overlay *n, int timeout_ms)
{
	n->closing = true;
	n->inside++;
	overlay_came(n);
	if (!timeout_ms)
		progress_opportunistic(n->ctx);
	(void)wait_until(n->ctx, is_closed, n, timeout_ms);
	n->inside--;
	if (is_closed(n))
		return 0;
	return late_error(n->ctx, NULL, timeout_ms,
			  CLOSE ": not all nodes of network %u of group %u have come", n->number,
			  n->tag);
}

static int check_close(const struct overlay *n)
{
	if (n->inside || n->takers || n->reducing)
		return error_set(SLMPM_EBUSY, CLOSE ": a call waits in it");
	if (n->sends || (n->runs && !n->status))
		return error_set(SLMPM_EBUSY, CLOSE ": what it has begun has not ended");
	return context_forbids(n->ctx, CLOSE);
}

int slmpm_overlay_close(slmpm_overlay overlay, int timeout_ms)
{
	int rc = 0;
	struct overlay *n = overlay_lock(overlay, &rc);
	struct context *ctx;

	if (!n)
		return rc;
	ctx = n->ctx;
	rc = check_close(n);
	if (rc == 0)
		rc = overlay_end(n, timeout_ms);
	if (rc == 0 && n->offload) {
		n->reducing = true;
		context_unlock(ctx);
		rc = overlay_tree_close(n);
		context_lock(ctx);
		n->reducing = false;
	}
	if (rc == 0)
		overlay_free(n);
	context_changed(ctx);
	context_unlock(ctx);
	return rc;
}

void overlay_shut(struct context *ctx)
{
	LIST_EACH_ENTRY(struct overlay, n, &ctx->overlays, node) {
		overlay_break(n, -SLMPM_ECLOSED, (int32_t)n->rank, "its context has been closed");
		if (n->offload)
			offload_forget(n->offload);
		overlay_free(n);
	}
}

/* ---- what its connections do ----------------------------------------------------------------- */

void overlay_ended(struct endpoint *ep)
{
	struct overlays *o = ep->rooms->overlays;

	if (!o)
		return;
	while (!list_empty(&o->edges)) {
		struct edge *e = LIST_ENTRY(o->edges.next, struct edge, of_peer);

		list_remove(&e->of_peer);
		e->ep = NULL;
		overlay_break(e->net, -ep->life->error, (int32_t)e->rank,
			      slmpm_strerror(ep->life->error));
		overlay_news(e->net);
	}
	endpoint_block(ep, BLOCK_OVERLAY, false);
}

void overlay_left(struct endpoint *ep)
{
	overlay_ended(ep);
	if (ep->rooms->overlays)
		free(ep->rooms->overlays->hellos);
	free(ep->rooms->overlays);
	ep->rooms->overlays = NULL;
}

/* ---- looked at ------------------------------------------------------------------------------- */

static struct slmpm_overlay_info figures(const struct overlay *n)
{
	struct slmpm_overlay_info now = {
		.rank = n->rank,
		.status = n->status,
		.culprit = n->culprit,
		.buffers = n->limits.buffers,
		.packet = n->limits.packet,
		.sent = n->sent,
		.delivered = n->delivered,
		.forwarded = n->forwarded,
		.unread = n->unread,
	};

	LIST_EACH_ENTRY(struct edge, e, &n->all, node) {
		now.over[e->link] = e->over;
		for (int c = 0; c < OVERLAY_CHANNELS; c++)
			now.held[c] += e->channel[c].held;
	}
	return now;
}

int slmpm_overlay_query(slmpm_overlay overlay, struct slmpm_overlay_info *info)
{
	struct slmpm_overlay_info now;
	int rc = 0;
	struct overlay *n = overlay_lock(overlay, &rc);
	struct context *ctx;

	if (!n)
		return rc;
	ctx = n->ctx;
	rc = sized_check_own("slmpm_overlay_query", info, sizeof(now));
	if (rc == 0) {
		progress_opportunistic(ctx);
		now = figures(n);
		sized_give_own(info, &now, sizeof(now));
	}
	context_unlock(ctx);
	return rc;
}
