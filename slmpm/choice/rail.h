/* SPDX-License-Identifier: BSD-3-Clause */
/* By which rail, one of several links, packets go: as was asked, or as was chosen for them. */
#ifndef SLMPM_RAIL_H
#define SLMPM_RAIL_H

#include "slmpm/mode/mode_hint.h"

struct endpoint;

/* Do packets go by LINK now? -1: any. */
bool rail_is_on(const struct endpoint *ep, int link);
/* What each packet of a request carries that was chosen so (FABRIC_BY, FABRIC_ONLY): it goes by the link of MODE,
 * whether HINT asked for it or not. */
uint16_t rail_flags(const struct endpoint *ep, struct mode mode, uint8_t hint);
/* Packets that ask for no link go by that of MODE from now on. */
void rail_follow(struct endpoint *ep, struct mode mode);
/* A strict HINT cannot be had: -SLMPM_ESTATE, its link does not stand now, or -SLMPM_ENOTSUP. */
int rail_refusal(const struct endpoint *ep, uint8_t hint);
/* That STATUS with its detail, behind WHO. */
int rail_refused(const struct endpoint *ep, const char *who, uint8_t hint, int status);
/* Both at once, of a CALL. */
int rail_impossible(const struct endpoint *ep, const char *call, uint8_t hint);

#endif
