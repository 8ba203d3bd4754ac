/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector on an endpoint's behalf: what it sees there, what was chosen, and how often. */
#ifndef SLMPM_MODE_PICK_H
#define SLMPM_MODE_PICK_H

#include "slmpm/mode.h"

struct choice;
struct endpoint;

#define MODE_WISH_SHIFT 8 /* slmpm_how.flags: where a request's wish begins ... */
#define MODE_WISH_MASK  (SLMPM_VIA_MASK | SLMPM_STRICT)

/* ... and what it keeps of them. */
static inline uint8_t mode_wish(uint32_t flags)
{
	return (uint8_t)((flags & MODE_WISH_MASK) >> MODE_WISH_SHIFT);
}

static inline void mode_ask_wish(struct mode_ask *ask, uint8_t wish)
{
	ask->wish = wish & SLMPM_VIA_MASK >> MODE_WISH_SHIFT;
	ask->strict = wish & SLMPM_STRICT >> MODE_WISH_SHIFT;
}

struct mode_tally { /* of an endpoint: decisions by what became of them */
	uint64_t by[SLMPM_PROTOCOLS][SLMPM_REASONS];
	struct mode last;
	uint8_t last_op; /* enum mode_op */
};

const struct mode_limits *mode_limits(void);
/* The way for ASK on EP, where WAYS are possible, but direct ones not yet if it is BEHIND others; C:
 * what two of them have cost of late, or NULL. */
struct mode mode_pick(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, bool behind,
		      const struct choice *c);
/* It was taken. */
void mode_count(struct endpoint *ep, enum mode_op op, struct mode mode);
/* Sets the detail: a strict wish cannot be had. -SLMPM_ENOTSUP. */
int mode_impossible(const struct endpoint *ep, const char *call);

#endif
