/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: how they come to be, are named and looked at. */
#include "slmpm/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "slmpm/domain.h"
#include "slmpm/base/error.h"
#include "slmpm/base/log.h"
#include "slmpm/part.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"

struct handle_table endpoint_table =
	HANDLE_TABLE_IN("peer", union endpoint_slot, struct endpoint, unpack);

int endpoint_bad_handle(slmpm_peer peer)
{
	if ((peer.id & (ENDPOINT_ANY | ENDPOINT_NAMED)) == ENDPOINT_NAMED)
		return error_set(SLMPM_EHANDLE, "no such peer: work requests alone name one by "
						"its address");
	return handle_error(&endpoint_table, peer.id & ~ENDPOINT_LINK_BITS);
}

static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

const struct fabric *endpoint_fabric(const struct fabric *fabric)
{
	static struct fabric tables[8];
	struct fabric with = *fabric;
	bool other = false;

	PART_EACH(part, parts.before)
		other |= (*part)(&with);
	with.name = NULL;
	pthread_mutex_lock(&tables_lock);
	for (size_t i = 0; other && i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!tables[i].name) {
			tables[i] = with;
			atomic_signal_fence(
				memory_order_release); /* a child of fork has it whole */
			tables[i].name = fabric->name;
		}
		if (tables[i].name == fabric->name) {
			fabric = &tables[i];
			break;
		}
	}
	pthread_mutex_unlock(&tables_lock);
	return fabric;
}

void endpoint_fabric_forked(void)
{
	tables_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Nothing has changed where there is no memory for it. */
static int make_link(struct endpoint *ep, struct fabric_domain *domain)
{
	const struct fabric *fabric = endpoint_fabric(domain->fabric);
	struct fabric_link *port = calloc(1, fabric->link_size);

	if (!port)
		return -ENOMEM;
	port->domain = domain;
	port->owner = ep;
	port->bell = port->process = -1;
	ep->link.fabric = fabric;
	ep->link.port = port;
	return 0;
}

/* What needs no link any more, and the handle. */
static void endpoint_forget(struct endpoint *ep)
{
	free(ep->link.port);
	PART_EACH(part, parts.free)
		(*part)(ep);
	context_remove(ep->ctx, ep);
	handle_free(&endpoint_table, ep);
}

/* It begins, without link; in CTX. */
static bool endpoint_begin(struct endpoint *ep, struct context *ctx)
{
	ep->ctx = ctx;
	if (!parts.make(ep))
		return false;
	ep->state = SLMPM_PEER_CONNECTING;
	ep->blocked = BLOCK_STATE;
	ep->link.check = config_get()->check;
	endpoint_block(ep, BLOCK_CHECK, ep->link.check);
	ep->active = true;
	ep->fetch_min = UINT64_MAX;
	ep->ask_min = UINT64_MAX;
	ep->stats = &ep->rooms->figures->own;
	ep->sent = ep->charged = ep->credited = endpoint_start(ep);
	list_init(&ep->link.queue);
	list_init(&ep->link.announced);
	list_init(&ep->link.deferred);
	list_init(&ep->one_sided);
	list_init(&ep->life->events);
	return true;
}

struct endpoint *endpoint_new(struct context *ctx, const struct fabric *fabric)
{
	int rc;
	struct fabric_domain *domain = domain_get(ctx, fabric, &rc);
	bool ready = domain && parts.attend(ctx, domain->fabric) == 0;
	struct endpoint *ep = ready ? handle_new(&endpoint_table) : NULL;

	if (!ready)
		return NULL;
	if (!ep) {
		error_set(SLMPM_ENOMEM, "for a peer");
		return NULL;
	}
	if (!endpoint_begin(ep, ctx) || make_link(ep, domain) < 0 || context_add(ctx, ep) < 0) {
		error_set(SLMPM_ENOMEM, "for a peer's link");
		free(ep->link.port);
		handle_free(&endpoint_table, ep);
		return NULL;
	}
	stats_assign(ep);
	endpoint_name(ep);
	PART_EACH(part, parts.begin)
		(*part)(ep);
	return ep;
}

int endpoint_over(struct endpoint *ep, const struct fabric *fabric)
{
	int rc;
	struct fabric_domain *domain = domain_get(ep->ctx, fabric, &rc);
	const struct fabric *before = ep->link.fabric;
	struct fabric_link *port = ep->link.port;

	if (!domain || make_link(ep, domain) < 0)
		return -ENOMEM;
	before->disconnect(port);
	free(port);
	return 0;
}

void endpoint_free(struct endpoint *ep)
{
	endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it has been closed");
	context_forget_events(ep);
	PART_EACH(part, parts.leave)
		(*part)(ep);
	ep->link.fabric->disconnect(ep->link.port);
	endpoint_forget(ep);
}

void endpoint_name(struct endpoint *ep)
{
	const char *role = ep->rooms->process  ? "accelerator" :
			   ep->life->is_parent ? "host" :
						 "peer";
	char who[sizeof(ep->life->remote)];

	if (ep->life->remote[0])
		snprintf(who, sizeof(who), "%s", ep->life->remote);
	else
		snprintf(who, sizeof(who), "pid %d", ep->life->pid);
	if (ep->life->element)
		snprintf(ep->life->name, sizeof(ep->life->name), "%s %u (%.38s)", role,
			 ep->life->element, who);
	else
		snprintf(ep->life->name, sizeof(ep->life->name), "%s (%.49s)", role, who);
	ep->stats->pid = ep->life->pid;
}

/* As much of a message, and in front of it what a Write's first packet says. */
static uint32_t packet_limit(uint32_t agreed, uint32_t payload_max)
{
	return (uint32_t)least_of(agreed,
				  payload_max - CHECKSUM_SPARE - sizeof(struct wire_target));
}

/*
 * Long packets are as long as serves a stream of them; a message that is a little longer goes in
 * one all the same, where the ring takes it.
 */
static uint32_t only_limit(uint32_t packet_max, uint32_t payload_max)
{
	uint32_t most = packet_max < ONLY_FROM ? packet_max : packet_max + packet_max / 512;

	return (uint32_t)least_of(most, payload_max - CHECKSUM_SPARE);
}

void endpoint_up(struct endpoint *ep)
{
	const struct fabric_link *port = ep->link.port;
	uint32_t room_in = port->payload_max_in - endpoint_lead(ep);
	uint32_t room = port->payload_max - endpoint_lead(ep);

	ep->received = ep->matched_charge = ep->returned_charge = endpoint_start_in(ep);
	/* Each direction has its own ring, and so perhaps its own longest packet. */
	ep->packet_max_in = packet_limit(ep->packet_max, room_in);
	ep->packet_max = packet_limit(ep->packet_max, room);
	ep->only_max_in = only_limit(ep->packet_max_in, room_in);
	ep->only_max = only_limit(ep->packet_max, room);
	ep->life->eager_max_in =
		ep->life->eager_max < ep->only_max_in ? ep->only_max_in : ep->life->eager_max;
	ep->life->eager_max =
		ep->life->eager_max < ep->only_max ? ep->only_max : ep->life->eager_max;
	ep->bundle.most = room < BUNDLE_BYTES ? room : BUNDLE_BYTES;
	ep->life->native = domain_is_native(port->domain->fabric);
	context_end_scan(ep->ctx);
	ep->state = SLMPM_PEER_UP;
	ep->life->was_up = true;
	endpoint_block(ep, BLOCK_STATE, ep->closing);
	context_event(ep->ctx, ep, SLMPM_EVENT_UP, "connected");
	log_line(SLMPM_LOG_DEBUG, "%s: connected over %s, packets of %u bytes", ep->life->name,
		 ep->link.fabric->name, ep->packet_max);
	PART_EACH(part, parts.up)
		(*part)(ep);
}

/* Of what the longest packet holds no more than half: there is to be room for the next meanwhile;
 * and what is announced goes in packets. */
static uint32_t whole_limit(const struct endpoint *ep, uint32_t payload_max, uint64_t eager_max)
{
	uint32_t room = payload_max - endpoint_lead(ep) - CHECKSUM_SPARE;

	return (uint32_t)least_of(least_of(WIRE_WHOLE, room / 2), eager_max);
}

void endpoint_whole(struct endpoint *ep)
{
	const struct fabric_link *port = ep->link.port;
	uint32_t most = whole_limit(ep, port->payload_max, ep->life->eager_max);
	uint32_t most_in = whole_limit(ep, port->payload_max_in, ep->life->eager_max_in);

	if (ep->only_max_in < most_in)
		ep->only_max_in = most_in;
	ep->life->answered = ep->received - 1;
	ep->life->whole_max =
		(uint32_t)least_of(most, domain_caps(port->domain->fabric)->whole_best);
}

/* ---- looking at it -------------------------------------------------------------------------- */

int slmpm_peer_query(slmpm_peer peer, struct slmpm_peer_info *info)
{
	struct endpoint *ep = endpoint_of(peer);
	struct slmpm_peer_info now;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (sized_check_own("slmpm_peer_query", info, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	now = (struct slmpm_peer_info){
		.state = ep->state,
		.pid = ep->life->pid,
		.element = ep->life->element,
		.big_endian = ep->life->big_endian,
		.packet_max = ep->packet_max,
		.eager_max = ep->life->eager_max,
		.loan_max = ep->life->loan_max,
		.header = endpoint_header(ep),
	};
	snprintf(now.name, sizeof(now.name), "%s", ep->life->name);
	context_unlock(ep->ctx);
	sized_give_own(info, &now, sizeof(now));
	return 0;
}
