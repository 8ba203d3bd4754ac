/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mathematics of networks: a torus or mesh of three dimensions and a binary tree; ranks,
 * coordinates, neighbours, routes. Not a part of <slmpm.h>: include it beside that.
 *
 * These calls compute and do nothing else: they open no context, connect nothing, never block, and
 * any thread may make them. The rank of a node is its number from 0, a link of a node one of those
 * below. Routes are the shortest there are; over a torus they go along x first, then y, then z, in
 * each dimension the shorter way round.
 */
#ifndef SLMPM_API_NETWORK_H
#define SLMPM_API_NETWORK_H

#include <slmpm.h>

#ifdef __cplusplus
extern "C" {
#endif

enum slmpm_network_kind {
	SLMPM_NETWORK_TORUS = 1, /* or a mesh: as far as dimensions do not wrap around */
	SLMPM_NETWORK_TREE = 2   /* binary, ranks breadth-first: the parent of r is (r - 1) / 2 */
};

/* Links of a node, by where they lead. Link l ^ 1 of a torus leads back. */
enum slmpm_network_link {
	SLMPM_NETWORK_X_UP = 0, /* to the next greater x */
	SLMPM_NETWORK_X_DOWN = 1,
	SLMPM_NETWORK_Y_UP = 2,
	SLMPM_NETWORK_Y_DOWN = 3,
	SLMPM_NETWORK_Z_UP = 4,
	SLMPM_NETWORK_Z_DOWN = 5,
	SLMPM_NETWORK_PARENT = 0, /* of a tree */
	SLMPM_NETWORK_LEFT = 1,   /* to 2 r + 1 */
	SLMPM_NETWORK_RIGHT = 2   /* to 2 r + 2 */
};
#define SLMPM_NETWORK_LINKS 6

/* Which dimensions of a torus wrap around. */
#define SLMPM_NETWORK_WRAP_X 1u
#define SLMPM_NETWORK_WRAP_Y 2u
#define SLMPM_NETWORK_WRAP_Z 4u
#define SLMPM_NETWORK_WRAP   7u

struct slmpm_network {
	uint32_t size;
	uint32_t kind;      /* enum slmpm_network_kind */
	uint32_t nodes;     /* at least 1, at most 2^31 - 1 */
	uint32_t wrap;      /* SLMPM_NETWORK_WRAP_X and so on, of dimensions of more than 2 nodes */
	uint32_t extent[3]; /* nodes along x, y and z; 0 of a tree */
	uint32_t links;     /* the most of a node: 6, of a tree 3 */
	uint32_t channels;  /* virtual channels of a link that keep it from deadlock: 1 or 2 */
	uint32_t diameter;  /* hops of the longest route */
};

/*
 * Describes a network of NODES. EXTENT, of a torus: nodes along x, y and z; those that are 0, or
 * all where EXTENT is NULL, are chosen as even as NODES can be divided, x the greatest. NODES 0:
 * as many as all three extents make. WRAP: bits of those dimensions that wrap around; where a
 * dimension has only 1 or 2 nodes both ways are one, and the bit is cleared. SLMPM_EINVAL: a kind
 * that there is none of, a tree with EXTENT or WRAP, extents that do not make NODES.
 */
SLMPM_API int slmpm_network_make(struct slmpm_network *net, uint32_t kind, uint32_t nodes,
				 const uint32_t extent[3], uint32_t wrap);

/*
 * Where RANK is: x, y, z, rank = x + X (y + Y z); of a tree its level, the root's being 0, its
 * place in that, and 0. All that follow: SLMPM_EINVAL: NET is no network, or there is no such node.
 */
SLMPM_API int slmpm_network_coords(const struct slmpm_network *net, uint32_t rank, uint32_t at[3]);
/* The rank of what is there. */
SLMPM_API int slmpm_network_rank(const struct slmpm_network *net, const uint32_t at[3]);
/* The rank to which LINK of RANK leads. SLMPM_ENOENT: nowhere (a border, no such child). */
SLMPM_API int slmpm_network_neighbour(const struct slmpm_network *net, uint32_t rank,
				      uint32_t link);
/* The link by which the route from FROM to TO begins. Where both ways round a dimension are as
 * long, nodes of even coordinate go up, others down. SLMPM_ENOENT: it is there already. */
SLMPM_API int slmpm_network_next_hop(const struct slmpm_network *net, uint32_t from, uint32_t to);
/* As many hops as the route has. */
SLMPM_API int slmpm_network_hops(const struct slmpm_network *net, uint32_t from, uint32_t to);
/*
 * The virtual channel, 0 or 1, in which a packet for TO goes over LINK of FROM. Deadlocks are
 * impossible where each channel of a link has a buffer of its own and packets take these routes:
 * what is still to cross from the last node of a dimension to the first, or back, goes in channel
 * 1, all else in 0 (a dateline). SLMPM_ENOENT: LINK leads nowhere.
 */
SLMPM_API int slmpm_network_channel(const struct slmpm_network *net, uint32_t from, uint32_t link,
				    uint32_t to);

#ifdef __cplusplus
}
#endif

#endif
