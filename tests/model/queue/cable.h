/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric of the model: two sides, a queue of packets each way with room for a few. What a side
 * may read of it the search decides. With it, what the code under test would ask the system for.
 */
#ifndef TESTS_MODEL_QUEUE_CABLE_H
#define TESTS_MODEL_QUEUE_CABLE_H

#include <slmpm.h>
#include <stdbool.h>
#include <stdint.h>

#include "slmpm/endpoint.h"

enum { LEFT, RIGHT, SIDES };

#define CABLE_ROOM  8
#define CABLE_BYTES 64

struct cable_packet {
	uint64_t head[3];
	uint8_t kind, length;
	unsigned char data[CABLE_BYTES];
};

struct cable { /* what one side sends */
	struct cable_packet packets[CABLE_ROOM];
	uint8_t first, count; /* not released yet */
	uint8_t read;         /* of them */
	uint8_t shown;        /* of them, read ones included: there for the reader */
	uint8_t room;
	bool refused, rung; /* its sender: had no room; and has been told that there is */
	bool cut;           /* its sender is dead */
};

struct cables {
	struct cable of[SIDES];
	uint64_t now;      /* ns */
	uint32_t links;    /* bits: those of a bond's that are up, if it is one; or 0 */
	const char *fault; /* the code under test has said that a peer broke a rule */
};

extern struct cables cables;

/* Two contexts, each with the other's endpoint, connected; so many packets have room each way. */
void cable_set_up(struct context *ctx[SIDES], struct endpoint *ep[SIDES], unsigned room);
/* Packets that SIDE has not read. */
unsigned cable_waits(int side);
/* So many of them are there; or all. */
void cable_show(int side, unsigned n);
/* Room that SIDE lacked has been made since this was last cleared. */
bool cable_rings(int side);
void cable_hush(int side);
/* SIDE is dead: what it has sent can be read. */
void cable_cut(int side);
/* SIDE has read all of a dead one's packets. */
bool cable_is_over(int side);

#endif
