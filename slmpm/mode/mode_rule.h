/* SPDX-License-Identifier: BSD-3-Clause */
/* What the choice among links (mode_links.c) needs of the rules on one of them (mode.c). */
#ifndef SLMPM_MODE_RULE_H
#define SLMPM_MODE_RULE_H

#include "slmpm/mode/mode.h"

#define MODE_BIT(way) (1u << (way))
#define MODE_IN_RING  (MODE_BIT(MODE_PACKETS) | MODE_BIT(MODE_REQUEST))

/* On LINK, the I-th, whatever the others are. */
struct mode mode_select_on(const struct mode_ask *asked, const struct mode_link *link, int i,
			   const struct mode_limits *l);
/* Is the ring as full as a threshold says? */
bool mode_is_full(const struct mode_view *v, const struct mode_limits *l);
/* The shortest put or get that is the engine's. */
uint64_t mode_shortest_engine(const struct mode_ask *a, const struct mode_limits *l);

#endif
