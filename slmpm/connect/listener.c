/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening: addresses and secrets, and handing connections to who accepts. */
#include "slmpm/connect/listener.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"
#include "slmpm/engine/engine.h"
#include "slmpm/fifo/fifo.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/net/net.h"
#include "slmpm/net/url.h"
#include "slmpm/am/am.h"
#include "slmpm/message/match.h"
#include "slmpm/base/sized.h"
#include "slmpm/link/wait.h"

/* Over TCP, not yet accepted: those beyond come again late. */
#define NET_QUEUE 1024

static struct handle_table listener_table = HANDLE_TABLE("listener", struct listener);

/* What the address says, SLMPM_SECRET, or one made up: slmpm_listener_query hands it out. */
static int listener_find_secret(struct listener *l, const struct url *url)
{
	int rc = 0;

	l->secret = url->secret;
	if (!l->secret.known)
		rc = secret_configured(&l->secret);
	if (rc == 0 && !l->secret.known && secret_make(&l->secret) < 0)
		rc = error_set(SLMPM_ESYSTEM, "no random bytes are to be had");
	return rc;
}

static void set_url(struct listener *l, const struct url *url)
{
	bool v6 = strchr(url->host, ':');

	if (!l->tcp)
		snprintf(l->url, sizeof(l->url), "%s", url->text);
	else
		snprintf(l->url, sizeof(l->url), "tcp://%s%s%s:%u", v6 ? "[" : "",
			 *url->host ? url->host : "*", v6 ? "]" : "", net_port(l->watch.fd));
}

static void close_descriptors(struct listener *l)
{
	if (l->watch.fd >= 0)
		close(l->watch.fd);
	if (l->spare >= 0)
		close(l->spare);
	if (l->near.watch.fd >= 0)
		close(l->near.watch.fd);
}

static void close_it(struct listener *l)
{
	watch_remove(l->ctx, &l->near.watch);
	watch_remove(l->ctx, &l->watch);
	close_descriptors(l);
	if (l->path[0])
		unlink(l->path);
}

/* Its socket; what is left of a failed one goes with close_it. */
static int listener_begin(struct listener *l, const char *text)
{
	const struct fabric *fabric;
	struct url url;
	int rc = url_parse(&url, text);

	if (rc < 0)
		return rc;
	l->tcp = url.kind == URL_TCP;
	/* What comes in arrives in the midst of some call: the engine is ready for it before. */
	fabric = fabric_find(connect_fabric(l->tcp));
	rc = fabric ? engine_attend(l->ctx, fabric) : 0;
	if (rc < 0)
		return rc;
	if (l->tcp && !fabric_find("tcp"))
		return error_set(SLMPM_ENOTSUP, "%s: this library has no fabric \"tcp\"", url.text);
	if (l->tcp)
		rc = listener_find_secret(l, &url);
	if (rc == 0)
		rc = l->watch.fd = url_listen(&url, l->tcp ? NET_QUEUE : LISTENER_HALF_OPEN);
	if (rc < 0)
		return rc;
	snprintf(l->path, sizeof(l->path), "%s", url_path(&url));
	set_url(l, &url);
	listener_resume(l); /* it has its spare descriptor now */
	if (l->tcp)
		near_open(l);
	rc = watch_add(l->ctx, &l->watch);
	return rc < 0 ? error_system(rc, url.text) : 0;
}

static struct listener *listener_new(struct context *ctx, const char *url, int *rc)
{
	struct listener *l = handle_new(&listener_table);

	if (!l) {
		*rc = error_set(SLMPM_ENOMEM, "for a listener");
		return NULL;
	}
	l->ctx = ctx;
	l->spare = l->near.watch.fd = -1;
	l->watch = (struct watch){.ready = listener_ready, .fd = -1, .owner = l};
	*rc = listener_begin(l, url);
	if (*rc == 0) {
		list_append(&ctx->listeners, &l->node);
		return l;
	}
	close_it(l);
	handle_free(&listener_table, l);
	return NULL;
}

int listener_open(struct context *ctx, const char *url, struct listener **home)
{
	int rc;

	*home = listener_new(ctx, url, &rc);
	if (*home)
		(*home)->home = home;
	return rc;
}

int slmpm_listen(slmpm_listener *out, slmpm_ctx handle, const char *url)
{
	struct listener *l;
	struct context *ctx;
	int rc = 0;

	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_listen: no listener");
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	context_lock(ctx);
	l = listener_new(ctx, url, &rc);
	if (l)
		out->id = handle_id(l);
	context_unlock(ctx);
	return rc;
}

int slmpm_listener_query(slmpm_listener handle, struct slmpm_listener_info *info)
{
	struct listener *l = handle_get(&listener_table, handle.id);
	struct slmpm_listener_info now;

	if (!l)
		return handle_error(&listener_table, handle.id);
	if (sized_check_own("slmpm_listener_query", info, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	now = (struct slmpm_listener_info){.port = l->tcp ? net_port(l->watch.fd) : 0};
	snprintf(now.url, sizeof(now.url), "%s", l->url);
	if (l->tcp)
		secret_text(&l->secret, now.secret);
	sized_give_own(info, &now, sizeof(now));
	return 0;
}

void listener_forget_refused(struct context *ctx)
{
	ctx->refused = false;
	for (uint32_t i = 0; i < ctx->count; i++) {
		struct endpoint *ep = ctx->endpoints[i];

		if (!ep->rooms->listener || ep->state == SLMPM_PEER_CONNECTING || ep->life->was_up)
			continue;
		endpoint_free(ep);
		i--;
	}
}

/* Nobody can accept them any more. */
static void turn_away(struct listener *l)
{
	static const char why[] = "its listener was closed before it was accepted";
	struct context *ctx = l->ctx;

	for (uint32_t i = 0; i < ctx->count; i++) {
		struct endpoint *ep = ctx->endpoints[i];

		if (ep->rooms->listener != l)
			continue;
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, why);
		bootstrap_stop(ep, why);
		endpoint_free(ep);
		i--;
	}
}

void listener_free(struct listener *l)
{
	if (l->home)
		*l->home = NULL;
	turn_away(l);
	list_remove(&l->node);
	close_it(l);
	match_nobody(l->ctx);
	handle_free(&listener_table, l);
}

void listener_up(struct endpoint *ep)
{
	struct listener *l = ep->rooms->listener;

	if (!l)
		return;
	l->waiting++;
	ep->life->turn = ++l->turns;
}

void listener_left(struct endpoint *ep)
{
	if (ep->rooms->listener && ep->life->was_up)
		ep->rooms->listener->waiting--;
}

void listener_free_all(struct context *ctx)
{
	while (!list_empty(&ctx->listeners))
		listener_free(LIST_ENTRY(ctx->listeners.next, struct listener, node));
}

int slmpm_unlisten(slmpm_listener handle)
{
	struct listener *l = handle_get(&listener_table, handle.id);
	struct context *ctx;
	int rc = 0;

	if (!l)
		return handle_error(&listener_table, handle.id);
	ctx = l->ctx;
	context_lock(ctx);
	if (handle_get(&listener_table, handle.id) == l)
		listener_free(l);
	else /* another thread was first */
		rc = handle_error(&listener_table, handle.id);
	context_changed(ctx);
	context_unlock(ctx);
	return rc;
}

/* ---- the next connection -------------------------------------------------------------------- */

/* Who came first, whether it stands or has ended since: it may be one program that comes again. */
static struct endpoint *accepted(struct listener *l)
{
	struct endpoint *first = NULL;

	if (!l->waiting)
		return NULL;
	for (uint32_t i = 0; i < l->ctx->count; i++) {
		struct endpoint *ep = l->ctx->endpoints[i];

		if (ep->rooms->listener == l && ep->life->was_up &&
		    (!first || (int32_t)(ep->life->turn - first->life->turn) < 0))
			first = ep;
	}
	return first;
}

void listener_take(struct endpoint *ep)
{
	struct context *ctx = ep->ctx;

	ep->rooms->listener->waiting--;
	ep->rooms->listener = NULL;
	endpoint_block(ep, BLOCK_ACCEPT, false);
	match_accepted(ep);
	am_ack_clear_next(ep);
	ctx->accepted |= am_is_due(ep);
	ctx->news |= am_is_due(ep);
	context_changed(ctx);
}

struct acceptance {
	slmpm_listener handle;
	struct listener *listener; /* NULL: closed by another thread */
	struct endpoint *ep;
};

static bool has_accepted(void *arg)
{
	struct acceptance *a = arg;

	a->listener = handle_get(&listener_table, a->handle.id);
	a->ep = a->listener ? accepted(a->listener) : NULL;
	return a->ep || !a->listener;
}

int slmpm_accept(slmpm_listener handle, slmpm_peer *peer, int timeout_ms)
{
	struct listener *l = handle_get(&listener_table, handle.id);
	struct acceptance a = {.handle = handle, .listener = l};
	struct context *ctx;
	int rc;

	if (!l)
		return handle_error(&listener_table, handle.id);
	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_accept: no peer");
	ctx = l->ctx;
	context_lock(ctx);
	if (handle_get(&listener_table, handle.id) == l)
		listener_resume(l);
	if (!timeout_ms)
		(void)wait_inspect(ctx);
	rc = wait_until(ctx, has_accepted, &a, timeout_ms);
	if (a.ep) {
		listener_take(a.ep);
		peer->id = handle_id(a.ep);
	} else if (!a.listener) {
		rc = handle_error(&listener_table, handle.id);
	} else if (!context_forbids(ctx, "slmpm_accept")) {
		rc = error_set(late_code(timeout_ms), "nobody connected to %s", a.listener->url);
	}
	context_unlock(ctx);
	return rc;
}

void listener_forked_all(struct context *ctx)
{
	LIST_EACH_ENTRY(struct listener, l, &ctx->listeners, node)
		close_descriptors(l);
}
