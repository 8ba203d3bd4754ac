/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections to named peers: when they are made, step by step, and which makes way. */
#include "slmpm/dial/dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/base/log.h"
#include "slmpm/connect/listener.h"

#define MS     UINT64_C(1000000)
#define TRY_MS 20 /* between looks for an idle connection: what is read, or let go, wakes none */

/* ---- ends ---------------------------------------------------------------------------------- */

static bool dial_counts(const struct dial *d)
{
	return d->state != DIAL_OVER;
}

static void drop_attempt(struct dial *d)
{
	if (!d->attempt)
		return;
	watch_remove(d->ctx, &d->answered);
	attempt_drop(d->attempt);
	d->attempt = NULL;
}

/* Its endpoint, if it has one, goes on without it. */
static void dial_free(struct dial *d)
{
	struct named *n = d->named;

	drop_attempt(d);
	d->ctx->dial_count -= dial_counts(d);
	list_remove(&d->node);
	if (d->ep)
		d->ep->rooms->dial = NULL;
	free(d);
	if (!n)
		return;
	n->dial = NULL;
	n->ep = NULL;
	if (!list_empty(&n->awaits))
		named_want(n);
}

/* An attempt that failed with RC, for which DETAIL is the error's: who waits learns of it. */
static void dial_give_up(struct dial *d, int rc, const char *detail)
{
	struct named *n = d->named;
	struct endpoint *ep = d->ep;

	n->status = rc;
	snprintf(n->reason, sizeof(n->reason), "%s", detail);
	log_line(SLMPM_LOG_INFO, "%s", n->reason);
	named_fail(n, rc);
	if (ep)
		endpoint_free(ep); /* dial_left */
	else
		dial_free(d);
}

/* ---- a connection comes to be -------------------------------------------------------------- */

static void has_answered(struct context *ctx, struct watch *w)
{
	struct dial *d = w->owner;

	watch_remove(ctx, w); /* it stays readable */
	d->state = DIAL_ANSWERED;
}

/* With the detail set where it cannot be. */
static int dial_attempt(struct dial *d)
{
	int fd;

	d->state = DIAL_SOCKET;
	fd = attempt_begin(&d->attempt, d->named->url, d->until);
	if (fd < 0)
		return error_set(SLMPM_ESYSTEM, "%.*s: no thread, memory or descriptor to connect",
				 (int)d->named->shown, d->named->url);
	d->answered = (struct watch){.ready = has_answered, .fd = fd, .owner = d};
	if (watch_add(d->ctx, &d->answered) == 0)
		return 0;
	attempt_drop(d->attempt);
	d->attempt = NULL;
	return error_set(SLMPM_ESYSTEM, "epoll");
}

/* It failed with RC: it goes again where slmpm_connect would, or is given up. */
static void dial_retry(struct dial *d, int rc, const char *detail)
{
	uint64_t now = clock_now();
	struct url url;

	if (rc == -SLMPM_ELIMIT && now < d->until) {
		d->full = true;
		d->state = DIAL_LATER;
		d->when = now + CONNECT_AGAIN_MS * MS;
		return;
	}
	if (rc == -SLMPM_ETIMEOUT && d->full && url_parse(&url, d->named->url) == 0) {
		rc = connect_was_full(&url);
		detail = slmpm_error_detail();
	}
	dial_give_up(d, rc, detail);
}

/* Without the endpoint that has failed. */
static void dial_drop_endpoint(struct dial *d)
{
	struct endpoint *ep = d->ep;

	d->ep = NULL;
	ep->rooms->dial = NULL;
	endpoint_free(ep);
}

static void dial_start(struct named *n)
{
	struct dial *d = calloc(1, sizeof(*d));
	int rc;

	if (!d) {
		n->status = -SLMPM_ENOMEM;
		snprintf(n->reason, sizeof(n->reason), "no memory for a connection");
		named_fail(n, -SLMPM_ENOMEM);
		return;
	}
	d->ctx = n->ctx;
	d->named = n;
	d->until = clock_deadline((int)config_get()->handshake_ms);
	n->dial = d;
	list_append(&d->ctx->dials, &d->node);
	d->ctx->dial_count++;
	rc = dial_attempt(d);
	if (rc < 0)
		dial_give_up(d, rc, slmpm_error_detail());
}

static int adopt(struct dial *d, int fd)
{
	struct secret secret;
	struct connection c = {.fd = fd, .secret = &secret, .stays = d->stays};
	struct url url;
	int rc = url_parse(&url, d->named->url);

	c.stream = url.kind == URL_TCP;
	if (rc == 0 && c.stream)
		rc = connect_find_secret(&url, &secret);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	d->same_user = c.stream || connect_is_user(fd, geteuid());
	d->ep = connect_adopt(d->ctx, &c, NULL, &rc);
	if (!d->ep)
		return rc;
	d->ep->rooms->dial = d;
	d->state = endpoint_has_ended(d->ep) ? DIAL_FAILED : DIAL_HANDSHAKE;
	return 0;
}

static void dial_take_answer(struct dial *d)
{
	struct attempt_result got;
	int rc;

	attempt_take(d->attempt, &got);
	d->attempt = NULL;
	if (got.rc < 0) {
		dial_retry(d, got.rc, got.detail);
		return;
	}
	rc = adopt(d, got.rc);
	if (rc < 0)
		dial_retry(d, rc, slmpm_error_detail());
}

/* The other end is on this machine, and cannot be reached so after all: once more over the network,
 * as of slmpm_connect. */
static void dial_take_failure(struct dial *d)
{
	struct url url;
	int rc = url_parse(&url, d->named->url);
	bool near;

	if (rc == 0)
		rc = connect_verdict(d->ep, &url, d->same_user);
	near = url.kind == URL_TCP && !connect_is_stream(d->ep) && !d->stays;
	if (rc == -SLMPM_ELIMIT) {
		dial_drop_endpoint(d);
		dial_retry(d, rc, slmpm_error_detail());
	} else if (near && rc != -SLMPM_ETIMEOUT) {
		dial_drop_endpoint(d);
		d->stays = true;
		rc = dial_attempt(d);
		if (rc < 0)
			dial_give_up(d, rc, slmpm_error_detail());
	} else {
		dial_give_up(d, rc, slmpm_error_detail());
	}
}

/* ---- life of an endpoint -------------------------------------------------------------------- */

void dial_up(struct endpoint *ep)
{
	struct dial *d = ep->rooms->dial;
	struct named *n = d ? d->named : NULL;

	if (!n)
		return;
	d->state = DIAL_UP;
	n->ep = ep;
	n->status = 0;
	n->reason[0] = 0;
	n->connects++;
	named_wake(n);
}

/* It stays until what came is read; its place is another's. */
static void part_from(struct dial *d)
{
	struct named *n = d->named;

	d->named = NULL;
	d->ctx->dial_count -= dial_counts(d);
	d->state = DIAL_OVER;
	n->dial = NULL;
	n->ep = NULL;
	if (!list_empty(&n->awaits))
		named_want(n);
}

void dial_ended(struct endpoint *ep)
{
	struct dial *d = ep->rooms->dial;

	if (!d || !d->named)
		return;
	ep->ctx->news = true;
	if (!ep->life->was_up) {
		d->state = DIAL_FAILED;
		return;
	}
	if (d->state != DIAL_CLOSING) {
		d->named->status = -ep->life->error;
		snprintf(d->named->reason, sizeof(d->named->reason), "%s: %s", ep->life->name,
			 ep->life->reason);
	}
	part_from(d);
}

void dial_left(struct endpoint *ep)
{
	struct dial *d = ep->rooms->dial;

	if (d)
		dial_free(d);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* When D is to be inspected next; 0: something has happened. */
static uint64_t dial_step(struct dial *d, uint64_t now)
{
	int rc;

	switch (d->state) {
	case DIAL_ANSWERED: dial_take_answer(d); return 0;
	case DIAL_FAILED: dial_take_failure(d); return 0;
	case DIAL_LATER:
		if (now < d->when)
			return d->when;
		rc = dial_attempt(d);
		if (rc < 0)
			dial_give_up(d, rc, slmpm_error_detail());
		return 0;
	case DIAL_CLOSING:
		if (now < d->when)
			return d->when;
		dial_close_step(d, now);
		return 0;
	case DIAL_OVER:
		if (!dial_is_read(d->ep))
			return UINT64_MAX;
		endpoint_free(d->ep);
		return 0;
	default: return UINT64_MAX;
	}
}

/* Of the connections that are idle the one that was used before all others. */
static struct dial *find_idle(const struct context *ctx)
{
	struct dial *oldest = NULL;

	LIST_EACH_ENTRY(struct dial, d, &ctx->dials, node)
		if (d->state == DIAL_UP && !d->named->busy && dial_is_idle(d->ep) &&
		    (!oldest || d->named->used < oldest->named->used))
			oldest = d;
	return oldest;
}

/* Others are closed for those that wait, one each. */
static bool dial_make_room(struct context *ctx, uint64_t now)
{
	struct dial *d;
	uint32_t want = 0;
	bool any = false;

	LIST_EACH(at, &ctx->to_dial)
		want++;
	LIST_EACH_ENTRY(struct dial, closing, &ctx->dials, node)
		want -= want && closing->state == DIAL_CLOSING;
	if (!want)
		return false;
	named_mark(ctx);
	for (; want && (d = find_idle(ctx)); want--, any = true)
		dial_close_begin(d, now);
	return any;
}

static bool dial_start_wanted(struct context *ctx)
{
	bool any = false;

	while (!list_empty(&ctx->to_dial) && ctx->dial_count < ctx->dial_max) {
		struct named *n = LIST_ENTRY(ctx->to_dial.next, struct named, to_dial);

		list_remove(&n->to_dial);
		if (list_empty(&n->awaits)) /* cancelled */
			continue;
		dial_start(n);
		any = true;
	}
	return any;
}

uint64_t dial_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH_ENTRY(struct dial, d, &ctx->dials, node) {
		uint64_t at = dial_step(d, now);

		next = at < next ? at : next;
	}
	if (list_empty(&ctx->to_dial))
		return next;
	if (dial_start_wanted(ctx))
		next = 0;
	if (list_empty(&ctx->to_dial) || !ctx->dial_max)
		return next;
	if (dial_make_room(ctx, now))
		next = 0;
	return next < now + TRY_MS * MS ? next : now + TRY_MS * MS;
}

/* ---- the end ------------------------------------------------------------------------------- */

struct endpoint *dial_cancel(struct named *n)
{
	struct dial *d = n->dial;

	list_remove(&n->to_dial);
	if (!d)
		return NULL;
	if (!d->ep)
		dial_free(d);
	else if (d->state == DIAL_CLOSING) /* the caller does */
		dial_close_undo(d);
	return n->dial ? n->dial->ep : NULL;
}

void dial_forget(struct named *n)
{
	list_remove(&n->node);
	free(n->url);
	n->url = NULL;
	handle_free(&named_table, n);
}

void dial_stop(struct context *ctx)
{
	ctx->dial_max = 0;
	LIST_EACH_ENTRY(struct named, n, &ctx->named, node)
		(void)dial_cancel(n);
}

void dial_shut(struct context *ctx)
{
	LIST_EACH_ENTRY(struct dial, d, &ctx->dials, node)
		dial_free(d); /* those without endpoint: others have gone with theirs */
	LIST_EACH_ENTRY(struct named, n, &ctx->named, node) {
		list_remove(&n->to_dial);
		dial_forget(n);
	}
}

void dial_forked(struct context *ctx)
{
	LIST_EACH_ENTRY(const struct dial, d, &ctx->dials, node)
		if (d->attempt)
			close(d->answered.fd);
}
