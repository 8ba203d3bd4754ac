/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector on an endpoint's behalf: what it sees there, what was chosen, and how often. */
#ifndef SLMPM_MODE_PICK_H
#define SLMPM_MODE_PICK_H

#include "slmpm/bond/bond.h"
#include "slmpm/mode.h"

struct choice;
struct endpoint;

#define MODE_WISH_SHIFT 8 /* slmpm_how.flags: where a request's wish begins ... */
#define MODE_WISH_MASK  (SLMPM_VIA_MASK | SLMPM_STRICT)
#define MODE_LINK_MASK  (MODE_WISH_MASK | SLMPM_ON_LINK_MASK) /* of a message */
#define MODE_ROUTE_MASK (SLMPM_STRICT | SLMPM_ON_LINK_MASK)   /* of what goes in packets alone */

/* ... and what it keeps of them. */
static inline uint8_t mode_wish(uint32_t flags)
{
	return (uint8_t)((flags & MODE_LINK_MASK) >> MODE_WISH_SHIFT);
}

static inline bool mode_wish_is_sound(uint32_t flags)
{
	return (flags & SLMPM_VIA_MASK) < SLMPM_VIA(SLMPM_PROTOCOLS) &&
	       (flags & SLMPM_ON_LINK_MASK) < SLMPM_ON_LINK(BOND_PATHS);
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
	uint8_t left;    /* number of the link that was left for having too much to do, plus 1 */
};

const struct mode_limits *mode_limits(void);
/* The number of the link in it, or -1. */
static inline int mode_wish_link(uint8_t wish)
{
	return (wish >> (12 - MODE_WISH_SHIFT) & 7) - 1;
}

/* Has EP several links? */
bool mode_has_links(const struct endpoint *ep);
/* The way and the link for a message; as mode_pick. What goes out next goes by that link where it can:
 * mode_is_on says whether it does. */
struct mode mode_pick_link(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, int link,
			   const struct choice *c);
bool mode_is_on(const struct endpoint *ep, int link);
/* The way for ASK on EP, where WAYS are possible, but direct ones not yet if it is BEHIND others; C:
 * what two of them have cost of late, or NULL. */
struct mode mode_pick(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, bool behind,
		      const struct choice *c);
/* The same of a one-sided operation, with LINK or -1: memory is within reach by one link alone. */
struct mode mode_pick_reach(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways,
			    bool behind, int link);
/* What a request that was chosen so keeps: its link, if it is to go by that one, and no other. */
static inline uint8_t mode_link_wish(struct mode mode, uint8_t wish)
{
	if (mode_wish_link(wish) < 0 && mode.reason != SLMPM_REASON_LINK)
		return wish;
	return (uint8_t)((wish & SLMPM_STRICT >> MODE_WISH_SHIFT) |
			 SLMPM_ON_LINK(mode.link) >> MODE_WISH_SHIFT);
}
/* FLAGS of a handle, for one-sided operations: 0 where its link is the one that memory is mapped by. */
uint32_t mode_memory_wish(const struct endpoint *ep, uint32_t flags);
/* One with WISH begins: what goes out next goes by its link where it can. False: not yet. */
bool mode_begin(struct endpoint *ep, uint8_t wish);
/* It was taken. */
void mode_count(struct endpoint *ep, enum mode_op op, struct mode mode);
/* Sets the detail: a strict wish cannot be had. -SLMPM_ENOTSUP. */
int mode_impossible(const struct endpoint *ep, const char *call);

#endif
