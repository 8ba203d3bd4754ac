/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages, for a region that the fabric cannot reach.
 */
#ifndef SLMPM_EMULATE_H
#define SLMPM_EMULATE_H

#include "slmpm/inbound.h"

/* One of the library's own numbers. */
void emulate_handle(struct endpoint *ep, const struct slmpm_am *am);
/* It was one, and its checksum is wrong. */
void emulate_damaged(struct endpoint *ep, uint16_t id);

#endif
