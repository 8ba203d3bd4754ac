/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of addresses: how they come to be, and what is known of them. */
#include "slmpm/dial/dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/connect/listener.h"
#include "slmpm/engine/engine.h"

/* What a connection needs is ready before: it comes in the midst of some call. */
static int prepare(struct context *ctx, const struct url *url)
{
	bool stream = url->kind == URL_TCP;
	const struct fabric *fabric = fabric_find(connect_fabric(stream));

	if (!fabric && stream)
		return error_set(SLMPM_ENOTSUP, "%s: this library has no fabric \"tcp\"",
				 url->text);
	return fabric ? engine_attend(ctx, fabric) : 0;
}

static struct named *named_new(struct context *ctx, const char *url, size_t shown)
{
	char *copy = strdup(url);
	struct named *n = copy ? handle_new(&named_table) : NULL;

	if (!n) {
		free(copy);
		return NULL;
	}
	context_own(&n->ctx, ctx);
	n->url = copy;
	n->shown = (uint32_t)shown;
	list_init(&n->to_dial);
	list_init(&n->awaits);
	list_append(&ctx->named, &n->node);
	return n;
}

int slmpm_peer_at(slmpm_peer *peer, slmpm_ctx handle, const char *text)
{
	struct named *n = NULL;
	struct context *ctx;
	struct url url;
	int rc;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_peer_at: no peer");
	rc = url_parse(&url, text);
	if (rc < 0)
		return rc;
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	context_lock(ctx);
	rc = prepare(ctx, &url);
	if (rc == 0 && !(n = named_new(ctx, text, strlen(url.text))))
		rc = error_set(SLMPM_ENOMEM, "for a peer by its address");
	if (n)
		*peer = named_handle(n);
	context_unlock(ctx);
	return rc;
}

int slmpm_peer_at_query(slmpm_peer peer, struct slmpm_peer_at_info *info)
{
	struct slmpm_peer_at_info now;
	struct named *n;
	int rc = 0;

	if (!named_is(peer))
		return endpoint_of(peer) ?
			       error_set(SLMPM_EINVAL, "slmpm_peer_at_query: a peer "
						       "that is not named by its address") :
			       endpoint_bad_handle(peer);
	if (sized_check_own("slmpm_peer_at_query", info, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	n = context_lock_object(&named_table, peer.id & ~ENDPOINT_NAMED, &rc);
	if (!n)
		return rc;
	now = (struct slmpm_peer_at_info){
		.status = n->status,
		.peer = {n->ep ? handle_id(n->ep) : 0},
		.connects = n->connects,
	};
	snprintf(now.url, sizeof(now.url), "%.*s", (int)n->shown, n->url);
	snprintf(now.reason, sizeof(now.reason), "%s", n->reason);
	context_unlock(n->ctx);
	sized_give_own(info, &now, sizeof(now));
	return 0;
}
