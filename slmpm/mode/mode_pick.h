/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector on an endpoint's behalf: what it sees there, what was chosen, and how often. */
#ifndef SLMPM_MODE_PICK_H
#define SLMPM_MODE_PICK_H

#include "fabrics/fabric.h"
#include "slmpm/bond/bond.h"
#include "slmpm/mode/mode.h"

struct choice;
struct endpoint;

#define MODE_WISH_SHIFT 8 /* slmpm_how.flags: where a request's wish begins ... */
#define MODE_WISH_MASK  (SLMPM_VIA_MASK | SLMPM_STRICT)
#define MODE_LINK_MASK  (MODE_WISH_MASK | SLMPM_ON_LINK_MASK) /* of a message */
#define MODE_ROUTE_MASK (SLMPM_STRICT | SLMPM_ON_LINK_MASK)   /* of what goes in packets alone */

#define MODE_PACKET_SHIFT 5 /* from there to a packet's flags */
_Static_assert(SLMPM_STRICT >> MODE_WISH_SHIFT << MODE_PACKET_SHIFT == FABRIC_ONLY &&
		       SLMPM_ON_LINK(3) >> MODE_WISH_SHIFT << MODE_PACKET_SHIFT == FABRIC_BY(3),
	       "both in the same order");

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
	uint8_t crowded; /* a bit for each link whose fabric others load */
};

const struct mode_limits *mode_limits(void);
/* The number of the link in it, or -1. */
static inline int mode_wish_link(uint8_t wish)
{
	return (wish >> (12 - MODE_WISH_SHIFT) & 7) - 1;
}

/* Has EP several links? */
bool mode_has_links(const struct endpoint *ep);
/* The way and the link for a message; as mode_pick. */
struct mode mode_pick_link(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, int link,
			   const struct choice *c);
/* Do packets go by it now? -1: any. */
bool mode_is_on(const struct endpoint *ep, int link);
/* The way for ASK on EP, where WAYS are possible, but direct ones not yet if it is BEHIND others; C:
 * what two of them have cost of late, or NULL. */
struct mode mode_pick(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, bool behind,
		      const struct choice *c);
/* The same of a one-sided operation, with LINK or -1: memory is within reach by one link alone. */
struct mode mode_pick_reach(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways,
			    bool behind, int link);
/* What packets carry of WISH, each of them: the link that they are to go by (FABRIC_BY, FABRIC_ONLY). */
static inline uint16_t mode_packet_flags(uint8_t wish)
{
	return mode_wish_link(wish) < 0 ?
		       0 :
		       (uint16_t)((wish & MODE_ROUTE_MASK >> MODE_WISH_SHIFT) << MODE_PACKET_SHIFT);
}
/* The same of a request that was chosen so: it goes by that link, whether it was asked for or not. */
uint16_t mode_by(const struct endpoint *ep, struct mode mode, uint8_t wish);
/* FLAGS of a handle, for one-sided operations: 0 where its link is the one that memory is mapped by. */
uint32_t mode_memory_wish(const struct endpoint *ep, uint32_t flags);
/* What asks for no link goes by that of MODE from now on. */
void mode_move(struct endpoint *ep, struct mode mode);
/* It was taken. */
void mode_count(struct endpoint *ep, enum mode_op op, struct mode mode);
/* A strict wish cannot be had: -SLMPM_ESTATE, its link does not stand now, or -SLMPM_ENOTSUP. */
int mode_refusal(const struct endpoint *ep, uint8_t wish);
/* That, with its detail, behind WHO; and both at once, of a CALL. */
int mode_refused(const struct endpoint *ep, const char *who, uint8_t wish, int status);
int mode_impossible(const struct endpoint *ep, const char *call, uint8_t wish);

#endif
