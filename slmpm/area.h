/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loan areas: memory of one side that the other maps read-only, for messages built and read in
 * place. An area holds one message at a time and is used again when the reader is through.
 */
#ifndef SLMPM_AREA_H
#define SLMPM_AREA_H

#include "slmpm/endpoint.h"

struct area {
	struct area *next;
	struct mapping map;
	uint32_t id;
	bool busy; /* own: on loan or at the reader; the peer's: being read */
};

/* A free area of at least LENGTH bytes, marked busy; NULL with *RC and the detail set. */
struct area *area_take(struct endpoint *ep, uint64_t length, int *rc);
/* The reader has returned own area ID; false when it did not have it. */
bool area_returned(struct endpoint *ep, uint64_t id);
/* The peer offers an area over the control socket: -errno when it is refused. */
int area_offered(struct endpoint *ep, uint32_t id, uint64_t size, int fd);
/* The peer put a message of up to CAPACITY bytes into its area ID; NULL: it cannot have. */
struct area *area_lent(struct endpoint *ep, uint32_t id, uint64_t capacity);
/* Through with it: give it back. */
void area_done(struct endpoint *ep, struct area *area);
void area_free_all(struct endpoint *ep);

static inline void *area_at(const struct area *area, uint64_t offset)
{
	return (unsigned char *)area->map.base + offset;
}

#endif
