/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains of a context: a fabric is opened when something needs it, and closed with the context. */
#ifndef SLMPM_DOMAIN_H
#define SLMPM_DOMAIN_H

#include "fabrics/fabric.h"
#include "slmpm/watch.h"

struct domain {
	struct domain *next;
	struct context *ctx;
	struct fabric_domain *port; /* the fabric's */
	struct watch watch;         /* port->fd, where the fabric has one */
};

/* What FABRIC said of itself when it was first asked. */
const struct fabric_caps *domain_caps(const struct fabric *fabric);
/* Does FABRIC write and read the peer's memory, or place there by itself what is written? */
bool domain_is_native(const struct fabric *fabric);
/* Segments of an inbound ring, each of so many bytes, and the most bytes that may wait unreceived,
 * over FABRIC by the settings. */
uint32_t domain_segments(const struct fabric *fabric, uint32_t segment_size);
uint64_t domain_credit(const struct fabric *fabric);
/* The shape of rings in CTX, as the settings and O say, without segments where that is the fabrics'
 * matter: 0, or a negative error with the detail. */
int domain_shape(struct context *ctx, const struct slmpm_options *o);
/* The opening of FABRIC (NULL: SLMPM_FABRIC's) in CTX; NULL with *RC and the detail set. */
struct fabric_domain *domain_get(struct context *ctx, const struct fabric *fabric, int *rc);
/* One whose memory peers can map, opened if need be; NULL: no fabric here has any. */
struct fabric_domain *domain_with_memory(struct context *ctx);
/* Sleep is announced in all of them, or is over. True: with barrier_all. */
bool domain_arm(struct context *ctx, bool on);
/* A call has taken what would have woken a sleeper, or left it, since this was last asked. */
bool domain_has_roused(struct context *ctx);
/* A pass over the peers begins: what has come to those that are quiet is found out once. */
void domain_rescan(struct context *ctx);
/* Rung so far for sleeping peers, or SPIN_NO_BELLS where all are woken otherwise. */
uint64_t domain_bells(const struct context *ctx);
void domain_close_all(struct context *ctx);
/* After fork, in the child: links are copies from now on; then their descriptors are closed. */
void domain_mark_forked(struct context *ctx);
void domain_forked(struct context *ctx);
void domain_caps_forked(void);

#endif
