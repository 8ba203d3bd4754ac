/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer made by hand that has been granted a region and has one of its own: its lies about both,
 * and Reads of what it was granted.
 */
#ifndef TESTS_LIB_RAW_REGION_H
#define TESTS_LIB_RAW_REGION_H

#include "tests/lib/raw_peer.h"

#define RAW_REGION_SIZE 65536

struct raw_map_blob { /* of a mapped region */
	uint32_t how, zero;
	uint64_t size, rest[3];
	unsigned char probe[16];
};

/* Of the process that is that peer. */
extern struct raw_region {
	struct wire_grant granted; /* what it was given, and the descriptor */
	int fd;
	struct mapping own; /* one of its own */
	uint64_t requests;
} raw_region;

/* Connects, with a region of its own; the second waits for a grant, too. */
void raw_region_begin(struct raw_peer *p, const char *address, uint64_t features);
void raw_region_come(struct raw_peer *p, const char *address);
void raw_region_leave(struct raw_peer *p);

/* A grant of its own region that is right. */
struct wire_grant raw_grant_of(uint32_t id);
void raw_say_grant(struct raw_peer *p, struct wire_grant g, int fd);
/* A packet about a region. */
void raw_say_region(struct raw_peer *p, uint8_t opcode, uint64_t seq, uint64_t id, const void *data,
		    uint32_t length);
/* What the other answers to the last request, and with how many bytes: 0 or SLMPM_E*. */
int raw_answer(struct raw_peer *p, uint64_t *bytes);
/* Likewise to a Read of LENGTH bytes at OFFSET by that key: 0 or SLMPM_E*. */
int raw_read(struct raw_peer *p, uint32_t id, const unsigned char *secret, uint64_t offset,
	     uint64_t length);

#endif
