/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over TCP made by hand (raw_net.h) that is called, and so says where each link is to be
 * called, and answers there.
 */
#ifndef TESTS_LIB_RAW_NET_CALLED_H
#define TESTS_LIB_RAW_NET_CALLED_H

#include "tests/lib/raw_net.h"

struct raw_net_hello { /* what who calls a link says first */
	unsigned char magic[8], to[16], from[16];
};

/* Listens on loopback; so many may wait there beside the first. */
int raw_net_door(uint16_t *port, int backlog);
/* Who calls at DOOR; all it says at first, where it is a link. */
int raw_net_take(int door);
struct raw_net_hello raw_net_listen_to(int call);

/* Called at DOOR, and wants LINKS; nothing is said. */
void raw_net_called(struct raw_net *n, int door, const char *secret, unsigned links);
/* Both have greeted (raw_proof.h): the first link. */
void raw_net_called_first(struct raw_net *n);

/* The other side tries LINK: what it offers, and in *LIFE which life that is. */
struct raw_net_offer raw_net_tried(struct raw_net *n, unsigned link, unsigned *life);
/* LINK is to be called at PORT, by a token of its own. */
struct raw_net_offer raw_net_to_call(const struct raw_net *n, uint16_t port);
void raw_net_say_offer(struct raw_net *n, unsigned link, unsigned life,
		       const struct raw_net_offer *o);

#endif
