/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Named peers: a handle of an address, which entries may name whether it is connected or not. An
 * entry whose turn it is waits here for the connection (slmpm/dial makes it, and ends idle ones).
 */
#ifndef SLMPM_NAMED_H
#define SLMPM_NAMED_H

#include "slmpm/base/error.h"
#include "slmpm/endpoint.h"

struct channel;
struct dial;
struct work;
struct workqueue;

struct named {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of the context's */
	struct list to_dial; /* of those that are to be connected, in their order; or alone */
	struct list awaits;  /* channels that stand at an entry for it, by channel.await */
	struct endpoint *ep; /* its connection, up; or NULL */
	struct dial *dial;   /* that which comes to be, stands or is closed here; or NULL */
	uint64_t used;       /* when an entry has looked for it last: of ctx->lookups */
	uint64_t connects;   /* connections so far */
	bool busy;           /* as of named_mark */
	int status;          /* why the last one could not be made, or has ended; or 0 */
	char reason[ERROR_DETAIL];
	char *url;      /* with the secret; ... */
	uint32_t shown; /* ... so much of it without */
};

extern struct handle_table named_table;

static inline bool named_is(slmpm_peer peer)
{
	return (peer.id & (ENDPOINT_ANY | ENDPOINT_NAMED)) == ENDPOINT_NAMED;
}
static inline slmpm_peer named_handle(const struct named *n)
{
	return (slmpm_peer){handle_id(n) | ENDPOINT_NAMED};
}
/* That of a handle; NULL: there is none. */
struct named *named_of(slmpm_peer peer);
/* Its connection, if PEER is one and it is connected; or NULL. */
struct endpoint *named_endpoint(slmpm_peer peer);
int named_bad_handle(slmpm_peer peer);

/* ---- of entries ---- */

/* WR, which no endpoint is for: 0, or negative with the detail set. */
int named_check(const struct workqueue *wq, const struct slmpm_wr *wr);
/* CH stands at W, for which there is no endpoint: true, it waits for a connection. */
bool named_waits(struct channel *ch, struct work *w);
/* N is to be connected. */
void named_want(struct named *n);
/* It is: those that wait for it go on. */
void named_wake(struct named *n);
/* It cannot be: their entries fail with STATUS. */
void named_fail(struct named *n, int status);
/* Notes in each named peer of CTX whether an entry is under way with it, or its turn has come. */
void named_mark(struct context *ctx);
/* Does any entry name N? */
bool named_has_entries(const struct named *n);

#endif
