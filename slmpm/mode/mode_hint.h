/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call asks for, a protocol and a link: in its flags, in its request, and in packets. */
#ifndef SLMPM_MODE_HINT_H
#define SLMPM_MODE_HINT_H

#include "fabrics/fabric.h"
#include "slmpm/mode/mode.h"

#define MODE_HINT_SHIFT 8 /* slmpm_how.flags: where a request's hint begins ... */
#define MODE_HINT_MASK  (SLMPM_VIA_MASK | SLMPM_STRICT)
#define MODE_LINK_MASK  (MODE_HINT_MASK | SLMPM_ON_LINK_MASK) /* of a message */
#define MODE_ROUTE_MASK (SLMPM_STRICT | SLMPM_ON_LINK_MASK)   /* of what goes in packets alone */

#define MODE_PACKET_SHIFT 5 /* from there to a packet's flags */
_Static_assert(SLMPM_STRICT >> MODE_HINT_SHIFT << MODE_PACKET_SHIFT == FABRIC_ONLY &&
		       SLMPM_ON_LINK(3) >> MODE_HINT_SHIFT << MODE_PACKET_SHIFT == FABRIC_BY(3),
	       "both in the same order");

/* ... and what it keeps of them. */
static inline uint8_t mode_hint(uint32_t flags)
{
	return (uint8_t)((flags & MODE_LINK_MASK) >> MODE_HINT_SHIFT);
}

static inline bool mode_hint_is_sound(uint32_t flags)
{
	return (flags & SLMPM_VIA_MASK) < SLMPM_VIA(SLMPM_PROTOCOLS) &&
	       (flags & SLMPM_ON_LINK_MASK) < SLMPM_ON_LINK(MODE_LINKS);
}

static inline void mode_ask_hint(struct mode_ask *ask, uint8_t hint)
{
	ask->hint = hint & SLMPM_VIA_MASK >> MODE_HINT_SHIFT;
	ask->strict = hint & SLMPM_STRICT >> MODE_HINT_SHIFT;
}

/* The number of the link in it, or -1. */
static inline int mode_hint_link(uint8_t hint)
{
	return (hint >> (12 - MODE_HINT_SHIFT) & 7) - 1;
}

/* What each packet carries of HINT: the link that it is to go by (FABRIC_BY, FABRIC_ONLY). */
static inline uint16_t mode_packet_flags(uint8_t hint)
{
	return mode_hint_link(hint) < 0 ?
		       0 :
		       (uint16_t)((hint & MODE_ROUTE_MASK >> MODE_HINT_SHIFT) << MODE_PACKET_SHIFT);
}

#endif
