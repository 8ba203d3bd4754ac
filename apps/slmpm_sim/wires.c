/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How messages go. Where all nodes are connected, each has one link into the network and one out of
 * it; a message goes as a whole, its first byte ahead of the rest. Eager ones, whose SENDs are done
 * at once, leave in packets: those to different nodes take turns. Over a torus or a tree it goes
 * in packets, each stored at every node of its route and forwarded when the link is free, first
 * come, first served; the next packet is added to the first link's queue when that one has left.
 * Nothing is ever dropped or held up for lack of a buffer.
 */
#include "apps/slmpm_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE UINT32_MAX

enum { LINK_IN, LINK_OUT, LINKS_FULL };

static int make_network(struct sim *sim)
{
	struct wires *w = &sim->wires;
	const struct setting *set = &sim->set;
	const bool tree = set->topology == TOPOLOGY_TREE;
	const uint32_t wrap = set->topology == TOPOLOGY_TORUS ? SLMPM_NETWORK_WRAP : 0;

	w->net.size = sizeof(w->net);
	if (slmpm_network_make(&w->net, tree ? SLMPM_NETWORK_TREE : SLMPM_NETWORK_TORUS, set->nodes,
			       set->extent, wrap) < 0)
		return slmpm_perror("slmpm_sim");
	for (int d = 0; d < 3; d++)
		sim->set.extent[d] = w->net.extent[d];
	w->links = w->net.links;
	return 0;
}

int wires_open(struct sim *sim)
{
	struct wires *w = &sim->wires;
	size_t all;

	w->unused = NONE;
	w->links = LINKS_FULL;
	if (sim->set.topology != TOPOLOGY_FULL && make_network(sim))
		return 1;
	all = (size_t)w->links * sim->set.nodes;
	w->free = calloc(all, sizeof(*w->free));
	w->busy = calloc(all, sizeof(*w->busy));
	w->carried = calloc(all, sizeof(*w->carried));
	w->leaving = malloc(sim->set.nodes * sizeof(*w->leaving));
	if (!w->free || !w->busy || !w->carried || !w->leaving) {
		fprintf(stderr, "slmpm_sim: no memory for %zu links\n", all);
		return 1;
	}
	for (uint32_t i = 0; i < sim->set.nodes; i++)
		w->leaving[i] = NONE;
	return 0;
}

void wires_close(struct sim *sim)
{
	struct wires *w = &sim->wires;

	free(w->free);
	free(w->busy);
	free(w->carried);
	free(w->leaving);
	free(w->parcels);
}

/* ---- parcels --------------------------------------------------------------------------------- */

static uint32_t new_parcel(struct wires *w, uint32_t from, uint32_t to, uint64_t bytes)
{
	uint32_t i = w->unused;

	if (i != NONE) {
		w->unused = w->parcels[i].whole;
	} else {
		w->parcels = grown(w->parcels, &w->room, w->used, sizeof(*w->parcels));
		i = w->used++;
	}
	w->parcels[i] = (struct parcel){from, to, from, i, NONE, bytes, bytes, bytes};
	return i;
}

static void drop_parcel(struct wires *w, uint32_t i)
{
	w->parcels[i].whole = w->unused;
	w->unused = i;
}

/* BYTES take LINK as soon as it is free, and not before EARLIEST: when the last one has left. */
static uint64_t take_link(struct sim *sim, uint32_t node, uint32_t link, uint64_t earliest,
			  uint64_t bytes)
{
	struct wires *w = &sim->wires;
	const size_t i = (size_t)node * w->links + link;
	const uint64_t from = w->free[i] < earliest ? earliest : w->free[i];

	w->free[i] = clock_bytes(from, bytes, sim->set.byte);
	w->busy[i] += w->free[i] - from;
	w->carried[i] += bytes;
	return w->free[i];
}

/* Its SEND is done as it begins. */
static bool is_eager(const struct sim *sim, uint64_t bytes)
{
	return sim->set.eager && bytes <= sim->set.eager;
}

static uint64_t after_latency(const struct sim *sim, uint64_t time)
{
	return clock_after(time, sim->set.latency);
}

/* ---- all connected --------------------------------------------------------------------------- */

/* When it has left the node where it is. */
static uint64_t send_whole(struct sim *sim, uint32_t parcel)
{
	const struct parcel p = sim->wires.parcels[parcel];
	uint64_t left = take_link(sim, p.from, LINK_OUT, sim->now, p.bytes);

	sim->wires.hops++;
	events_add(&sim->events, after_latency(sim, left), EVENT_PARCEL, parcel);
	return left;
}

/* True: it is at the node that it goes to, and not yet the next one in the link there. */
static bool enters(struct sim *sim, uint32_t parcel)
{
	struct parcel *p = &sim->wires.parcels[parcel];
	const uint64_t time = clock_bytes(0, p->bytes, sim->set.byte);
	uint64_t there;

	if (p->at == p->to)
		return false;
	p->at = p->to;
	/* Its last byte would be there now, if the link were its own. */
	there = take_link(sim, p->to, LINK_IN, sim->now - time, p->bytes);
	if (there > sim->now)
		events_add(&sim->events, there, EVENT_PARCEL, parcel);
	return there > sim->now;
}

static void land_whole(struct sim *sim, uint32_t message)
{
	const struct parcel p = sim->wires.parcels[message];

	drop_parcel(&sim->wires, message);
	nodes_arrived(sim, p.to, p.from);
}

/* ---- eager messages -------------------------------------------------------------------------- */

/* The first of them from LINK on that goes to TO: the link at which it hangs. */
static uint32_t *find_leaving(struct wires *w, uint32_t *link, uint32_t to)
{
	while (*link != NONE && w->parcels[*link].to != to)
		link = &w->parcels[*link].next;
	return link;
}

/* Behind all others. True: its packets leave now, for none to the same node is before it. */
static bool queue_up(struct wires *w, uint32_t message)
{
	const struct parcel *p = &w->parcels[message];
	uint32_t *link = find_leaving(w, &w->leaving[p->from], p->to);
	const bool first = *link == NONE;

	while (*link != NONE)
		link = &w->parcels[*link].next;
	*link = message;
	return first;
}

/* The last packet of MESSAGE leaves: the message whose turn has come, or NONE. */
static uint32_t leave_queue(struct wires *w, uint32_t message)
{
	const struct parcel *p = &w->parcels[message];
	uint32_t *link = find_leaving(w, &w->leaving[p->from], p->to);

	*link = p->next;
	return *find_leaving(w, link, p->to);
}

/* ---- by packets ------------------------------------------------------------------------------ */

/* When it has left the node where it is. */
static uint64_t forward(struct sim *sim, uint32_t parcel)
{
	struct parcel *p = &sim->wires.parcels[parcel];
	uint32_t link = (uint32_t)slmpm_network_next_hop(&sim->wires.net, p->at, p->to);
	uint64_t left = take_link(sim, p->at, link, sim->now, p->bytes);

	p->at = (uint32_t)slmpm_network_neighbour(&sim->wires.net, p->at, link);
	sim->wires.hops++;
	events_add(&sim->events, after_latency(sim, left), EVENT_PARCEL, parcel);
	return left;
}

static void send_packet(struct sim *sim, uint32_t message)
{
	struct parcel m = sim->wires.parcels[message];
	uint64_t bytes = m.unsent < sim->set.packet ? m.unsent : sim->set.packet, left;
	uint32_t packet = new_parcel(&sim->wires, m.from, m.to, bytes);

	sim->wires.parcels[packet].whole = message;
	sim->wires.parcels[message].unsent -= bytes;
	left = sim->set.topology == TOPOLOGY_FULL ? send_whole(sim, packet) : forward(sim, packet);
	if (bytes == m.unsent && !is_eager(sim, m.bytes))
		nodes_sent(sim, m.from, left);
	if (bytes == m.unsent)
		message = is_eager(sim, m.bytes) ? leave_queue(&sim->wires, message) : NONE;
	if (message != NONE)
		events_add(&sim->events, left, EVENT_PARCEL, message);
}

static void land_packet(struct sim *sim, uint32_t packet)
{
	const struct parcel p = sim->wires.parcels[packet];
	struct parcel *message = &sim->wires.parcels[p.whole];

	message->missing -= p.bytes;
	drop_parcel(&sim->wires, packet);
	if (message->missing)
		return;
	drop_parcel(&sim->wires, p.whole);
	nodes_arrived(sim, p.to, p.from);
}

/* ---- either ---------------------------------------------------------------------------------- */

void wires_send(struct sim *sim, uint32_t from, uint32_t to, uint64_t bytes)
{
	uint32_t message = new_parcel(&sim->wires, from, to, bytes);

	sim->result.messages++;
	sim->result.bytes += bytes;
	if (is_eager(sim, bytes))
		nodes_sent(sim, from, sim->now);
	if (is_eager(sim, bytes) && !queue_up(&sim->wires, message))
		return;
	if (is_eager(sim, bytes) || sim->set.topology != TOPOLOGY_FULL)
		send_packet(sim, message);
	else
		nodes_sent(sim, from, send_whole(sim, message));
}

static void event_full(struct sim *sim, uint32_t parcel)
{
	const struct parcel *p = &sim->wires.parcels[parcel];

	if (p->whole == parcel && is_eager(sim, p->bytes))
		send_packet(sim, parcel);
	else if (enters(sim, parcel))
		return;
	else if (p->whole != parcel)
		land_packet(sim, parcel);
	else
		land_whole(sim, parcel);
}

void wires_event(struct sim *sim, uint32_t parcel)
{
	const struct parcel *p = &sim->wires.parcels[parcel];

	if (sim->set.topology == TOPOLOGY_FULL)
		event_full(sim, parcel);
	else if (p->whole == parcel)
		send_packet(sim, parcel);
	else if (p->at == p->to)
		land_packet(sim, parcel);
	else
		forward(sim, parcel);
}

void wires_judge(struct sim *sim)
{
	const struct wires *w = &sim->wires;
	struct result *r = &sim->result;

	r->hops = w->hops;
	r->node = r->link = NONE;
	for (size_t i = 0; i < (size_t)w->links * sim->set.nodes; i++) {
		if (w->busy[i] < r->busy || (w->busy[i] == r->busy && w->carried[i] <= r->carried))
			continue;
		r->busy = w->busy[i];
		r->carried = w->carried[i];
		r->node = (uint32_t)(i / w->links);
		r->link = (uint32_t)(i % w->links);
	}
}
