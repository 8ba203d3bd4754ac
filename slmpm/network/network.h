/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks as numbers: of a torus and of a tree the neighbours, routes and channels. Nothing here
 * checks its arguments; network.c, which has the public calls, does.
 */
#ifndef SLMPM_NETWORK_H
#define SLMPM_NETWORK_H

#include <slmpm_network.h>

#include <stdbool.h>

#define NETWORK_DIMS  3
#define NETWORK_NODES ((uint32_t)INT32_MAX)
#define NETWORK_NONE  UINT32_MAX /* no node, no link */

/* EXTENT of NODES: those that are 0 are chosen. False: these extents do not make it. */
bool torus_shape(uint32_t extent[NETWORK_DIMS], uint32_t nodes);
/* The product; 0: more than NETWORK_NODES, or nothing. */
uint32_t torus_nodes(const uint32_t extent[NETWORK_DIMS]);
void torus_coords(const struct slmpm_network *net, uint32_t rank, uint32_t at[NETWORK_DIMS]);
uint32_t torus_rank(const struct slmpm_network *net, const uint32_t at[NETWORK_DIMS]);
uint32_t torus_neighbour(const struct slmpm_network *net, uint32_t rank, uint32_t link);
uint32_t torus_next(const struct slmpm_network *net, uint32_t from, uint32_t to);
uint32_t torus_hops(const struct slmpm_network *net, uint32_t from, uint32_t to);
uint32_t torus_channel(const struct slmpm_network *net, uint32_t from, uint32_t link, uint32_t to);
uint32_t torus_diameter(const struct slmpm_network *net);

void tree_coords(uint32_t rank, uint32_t at[NETWORK_DIMS]);
/* NETWORK_NONE: there is nothing, in any tree. */
uint32_t tree_rank(const uint32_t at[NETWORK_DIMS]);
uint32_t tree_neighbour(const struct slmpm_network *net, uint32_t rank, uint32_t link);
uint32_t tree_next(uint32_t from, uint32_t to);
uint32_t tree_hops(uint32_t from, uint32_t to);
uint32_t tree_diameter(uint32_t nodes);

#endif
