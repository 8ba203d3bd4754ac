/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How messages go. Where all nodes are connected, each has one link into the network and one out of
 * it; a message goes as a whole, its first byte ahead of the rest. Over a torus or a tree it goes
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
	if (w->free && w->busy && w->carried)
		return 0;
	fprintf(stderr, "slmpm_sim: no memory for %zu links\n", all);
	return 1;
}

void wires_close(struct sim *sim)
{
	struct wires *w = &sim->wires;

	free(w->free);
	free(w->busy);
	free(w->carried);
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
	w->parcels[i] = (struct parcel){from, to, from, i, bytes, bytes, bytes};
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

static uint64_t after_latency(const struct sim *sim, uint64_t time)
{
	return clock_after(time, sim->set.latency);
}

/* ---- all connected --------------------------------------------------------------------------- */

static void send_whole(struct sim *sim, uint32_t message)
{
	const struct parcel p = sim->wires.parcels[message];
	uint64_t left = take_link(sim, p.from, LINK_OUT, sim->now, p.bytes);

	sim->wires.hops++;
	events_add(&sim->events, after_latency(sim, left), EVENT_PARCEL, message);
	nodes_sent(sim, p.from, left);
}

static void land_whole(struct sim *sim, uint32_t message)
{
	struct parcel *p = &sim->wires.parcels[message];
	const uint32_t from = p->from, to = p->to;
	const uint64_t time = clock_bytes(0, p->bytes, sim->set.byte);

	if (p->at != to) {
		/* Its last byte would be there now, had nothing else come by the same link. */
		uint64_t there = take_link(sim, to, LINK_IN, sim->now - time, p->bytes);

		p->at = to;
		if (there > sim->now) {
			events_add(&sim->events, there, EVENT_PARCEL, message);
			return;
		}
	}
	drop_parcel(&sim->wires, message);
	nodes_arrived(sim, to, from);
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
	left = forward(sim, packet);
	if (bytes < m.unsent)
		events_add(&sim->events, left, EVENT_PARCEL, message);
	else
		nodes_sent(sim, m.from, left);
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
	if (sim->set.topology == TOPOLOGY_FULL)
		send_whole(sim, message);
	else
		send_packet(sim, message);
}

void wires_event(struct sim *sim, uint32_t parcel)
{
	const struct parcel *p = &sim->wires.parcels[parcel];

	if (sim->set.topology == TOPOLOGY_FULL)
		land_whole(sim, parcel);
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
