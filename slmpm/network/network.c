/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls about networks: what they are given is checked here. */
#include "slmpm/network/network.h"

#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"

/* ---- making one ----------------------------------------------------------------------------- */

static int make_torus(struct slmpm_network *net, uint32_t nodes, const uint32_t *extent,
		      uint32_t wrap)
{
	if (extent)
		memcpy(net->extent, extent, sizeof(net->extent));
	if (!nodes)
		nodes = torus_nodes(net->extent);
	if (!nodes || nodes > NETWORK_NODES)
		return error_set(SLMPM_EINVAL, "slmpm_network_make: nodes from 1 to %u are wanted",
				 NETWORK_NODES);
	if (wrap & ~SLMPM_NETWORK_WRAP)
		return error_set(SLMPM_EINVAL, "slmpm_network_make: wrap %#x: no such dimension",
				 wrap);
	if (!torus_shape(net->extent, nodes))
		return error_set(SLMPM_EINVAL,
				 "slmpm_network_make: %u x %u x %u (0: any) do not make %u nodes",
				 extent[0], extent[1], extent[2], nodes);
	net->nodes = nodes;
	for (int d = 0; d < NETWORK_DIMS; d++)
		if (net->extent[d] > 2)
			net->wrap |= wrap & 1u << d;
	net->links = SLMPM_NETWORK_LINKS;
	net->channels = net->wrap ? 2 : 1;
	net->diameter = torus_diameter(net);
	return 0;
}

static int make_tree(struct slmpm_network *net, uint32_t nodes, const uint32_t *extent,
		     uint32_t wrap)
{
	if (wrap || (extent && (extent[0] || extent[1] || extent[2])))
		return error_set(SLMPM_EINVAL,
				 "slmpm_network_make: a tree has no extents and does not wrap");
	if (!nodes || nodes > NETWORK_NODES)
		return error_set(SLMPM_EINVAL, "slmpm_network_make: nodes from 1 to %u are wanted",
				 NETWORK_NODES);
	net->nodes = nodes;
	net->links = 3;
	net->channels = 1;
	net->diameter = tree_diameter(nodes);
	return 0;
}

int slmpm_network_make(struct slmpm_network *net, uint32_t kind, uint32_t nodes,
		       const uint32_t extent[3], uint32_t wrap)
{
	struct slmpm_network made = {.kind = kind};
	int rc = sized_check_own("slmpm_network_make", net, sizeof(made));

	if (rc < 0)
		return rc;
	if (kind == SLMPM_NETWORK_TORUS)
		rc = make_torus(&made, nodes, extent, wrap);
	else if (kind == SLMPM_NETWORK_TREE)
		rc = make_tree(&made, nodes, extent, wrap);
	else
		rc = error_set(SLMPM_EINVAL, "slmpm_network_make: kind %u: there is none such",
			       kind);
	if (rc == 0)
		sized_give_own(net, &made, sizeof(made));
	return rc;
}

/* ---- asking one ----------------------------------------------------------------------------- */

/* What is derived, links, channels and diameter, is not asked for below. */
static bool is_network(const struct slmpm_network *net)
{
	if (net->kind == SLMPM_NETWORK_TREE)
		return net->nodes && net->nodes <= NETWORK_NODES;
	if (net->kind != SLMPM_NETWORK_TORUS || net->wrap & ~SLMPM_NETWORK_WRAP)
		return false;
	for (int d = 0; d < NETWORK_DIMS; d++)
		if (net->wrap >> d & 1 && net->extent[d] <= 2)
			return false;
	return net->nodes && torus_nodes(net->extent) == net->nodes;
}

/* NET as this library has it, in which both are nodes. */
static int network_take(const char *call, struct slmpm_network *full,
			const struct slmpm_network *net, uint32_t one, uint32_t other)
{
	int rc = sized_take(call, full, net, sizeof(*full));

	if (rc < 0)
		return rc;
	if (!is_network(full))
		return error_set(SLMPM_EINVAL, "%s: no network that slmpm_network_make has made",
				 call);
	if (one >= full->nodes || other >= full->nodes)
		return error_set(SLMPM_EINVAL, "%s: node %u of %u", call,
				 one >= full->nodes ? one : other, full->nodes);
	return 0;
}

int slmpm_network_coords(const struct slmpm_network *net, uint32_t rank, uint32_t at[3])
{
	struct slmpm_network full;
	int rc = network_take("slmpm_network_coords", &full, net, rank, rank);

	if (rc < 0)
		return rc;
	if (!at)
		return error_set(SLMPM_EINVAL, "slmpm_network_coords: no place for them");
	if (full.kind == SLMPM_NETWORK_TREE)
		tree_coords(rank, at);
	else
		torus_coords(&full, rank, at);
	return 0;
}

/* NETWORK_NONE: outside. */
static uint32_t rank_there(const struct slmpm_network *net, const uint32_t at[NETWORK_DIMS])
{
	if (net->kind == SLMPM_NETWORK_TREE)
		return tree_rank(at);
	for (int d = 0; d < NETWORK_DIMS; d++)
		if (at[d] >= net->extent[d])
			return NETWORK_NONE;
	return torus_rank(net, at);
}

int slmpm_network_rank(const struct slmpm_network *net, const uint32_t at[3])
{
	struct slmpm_network full;
	int rc = network_take("slmpm_network_rank", &full, net, 0, 0);
	uint32_t rank;

	if (rc < 0)
		return rc;
	if (!at)
		return error_set(SLMPM_EINVAL, "slmpm_network_rank: no coordinates");
	rank = rank_there(&full, at);
	if (rank >= full.nodes)
		return error_set(SLMPM_EINVAL, "slmpm_network_rank: nothing is at %u, %u, %u",
				 at[0], at[1], at[2]);
	return (int)rank;
}

static uint32_t neighbour_of(const struct slmpm_network *net, uint32_t rank, uint32_t link)
{
	return net->kind == SLMPM_NETWORK_TREE ? tree_neighbour(net, rank, link) :
						 torus_neighbour(net, rank, link);
}

/* The rank to which LINK leads, or why not. */
static int follow_link(const char *call, const struct slmpm_network *net, uint32_t rank,
		       uint32_t link)
{
	const uint32_t links = net->kind == SLMPM_NETWORK_TREE ? 3 : SLMPM_NETWORK_LINKS;
	uint32_t there;

	if (link >= links)
		return error_set(SLMPM_EINVAL, "%s: link %u of %u", call, link, links);
	there = neighbour_of(net, rank, link);
	if (there == NETWORK_NONE)
		return error_set(SLMPM_ENOENT, "%s: link %u of node %u leads nowhere", call, link,
				 rank);
	return (int)there;
}

int slmpm_network_neighbour(const struct slmpm_network *net, uint32_t rank, uint32_t link)
{
	struct slmpm_network full;
	int rc = network_take("slmpm_network_neighbour", &full, net, rank, rank);

	return rc < 0 ? rc : follow_link("slmpm_network_neighbour", &full, rank, link);
}

int slmpm_network_next_hop(const struct slmpm_network *net, uint32_t from, uint32_t to)
{
	struct slmpm_network full;
	int rc = network_take("slmpm_network_next_hop", &full, net, from, to);

	if (rc < 0)
		return rc;
	if (from == to)
		return error_set(SLMPM_ENOENT, "slmpm_network_next_hop: from %u to itself", from);
	return (int)(full.kind == SLMPM_NETWORK_TREE ? tree_next(from, to) :
						       torus_next(&full, from, to));
}

int slmpm_network_hops(const struct slmpm_network *net, uint32_t from, uint32_t to)
{
	struct slmpm_network full;
	int rc = network_take("slmpm_network_hops", &full, net, from, to);

	if (rc < 0)
		return rc;
	return (int)(full.kind == SLMPM_NETWORK_TREE ? tree_hops(from, to) :
						       torus_hops(&full, from, to));
}

/* Up a tree and then down: links of one way never wait for those of the other, and one channel is
 * enough. */
int slmpm_network_channel(const struct slmpm_network *net, uint32_t from, uint32_t link,
			  uint32_t to)
{
	struct slmpm_network full;
	int rc = network_take("slmpm_network_channel", &full, net, from, to);

	if (rc == 0)
		rc = follow_link("slmpm_network_channel", &full, from, link);
	if (rc < 0)
		return rc;
	return full.kind == SLMPM_NETWORK_TREE ? 0 : (int)torus_channel(&full, from, link, to);
}
