/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that were closed while entries named them (leaver.c; leaver_entry.c finds these). */
#ifndef SLMPM_LEAVER_H
#define SLMPM_LEAVER_H

#include "slmpm/endpoint.h"

struct workqueue;

/* As of parts.leave: queues with entries for EP note what it was called. */
void leaver_left(struct endpoint *ep);
/* WQ notes that of EP. */
void leaver_note(struct workqueue *wq, const struct endpoint *ep);
/* That of PEER, which WQ has noted; or NULL. */
const char *leaver_name(const struct workqueue *wq, slmpm_peer peer);
/* WQ has no entries, and no channel that has stopped. */
void leavers_forget(struct workqueue *wq);

#endif
