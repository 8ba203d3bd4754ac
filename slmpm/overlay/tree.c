/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations along a tree: runs of the plan for binary trees, as entries of a work queue, over the
 * connections of its links. The queue's calls lock the context themselves; a network in use by one
 * of the two calls here is marked so, and stays.
 */
#include <stdlib.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/late.h"
#include "slmpm/offload/offload.h"
#include "slmpm/overlay/overlay.h"

#define START "slmpm_overlay_start"
#define WAIT  "slmpm_overlay_wait"

/* Streams of the connections, from here on: OFFLOAD_RUNS of each network. */
#define STREAMS UINT32_C(0xfff00000)
#define SLICE   50 /* ms: then whether the network is broken */

/* ---- one thread at a time -------------------------------------------------------------------- */

/* OVERLAY, for this thread alone, and not locked; NULL with *RC. */
static struct overlay *tree_enter(const char *call, slmpm_overlay overlay, int *rc)
{
	struct overlay *n = overlay_lock(overlay, rc);
	struct context *ctx;

	if (!n)
		return NULL;
	ctx = n->ctx;
	*rc = context_forbids(ctx, call);
	if (*rc == 0 && n->reducing)
		*rc = error_set(SLMPM_EBUSY, "%s: another thread is in it", call);
	if (*rc == 0)
		n->reducing = true;
	context_unlock(ctx);
	return *rc == 0 ? n : NULL;
}

static void tree_leave(struct overlay *n)
{
	struct context *ctx = n->ctx;

	context_lock(ctx);
	n->reducing = false;
	context_changed(ctx);
	context_unlock(ctx);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The connections of its links; a neighbour that has ended breaks the network. */
static void find_peers(const struct overlay *n, slmpm_peer *peers)
{
	struct context *ctx = n->ctx;

	context_lock(ctx);
	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++)
		if (n->edges[l] && n->edges[l]->ep)
			peers[n->edges[l]->rank].id = handle_id(n->edges[l]->ep);
	context_unlock(ctx);
}

static int tree_open(struct overlay *n)
{
	struct offload_options o = {.ctx = {handle_id(n->ctx)},
				    .size = n->shape.nodes,
				    .rank = n->rank,
				    .stream = STREAMS + n->number * OFFLOAD_RUNS};
	slmpm_peer *peers = calloc(n->shape.nodes, sizeof(*peers));
	int rc;

	if (!peers)
		return error_set(SLMPM_ENOMEM, "for a tree");
	find_peers(n, peers);
	o.peers = peers;
	rc = offload_open(&n->offload, &o);
	free(peers);
	return rc;
}

static int check_start(const struct overlay *n, const struct slmpm_coll *c)
{
	struct context *ctx = n->ctx;
	int rc;

	if (n->shape.kind != SLMPM_NETWORK_TREE)
		return error_set(SLMPM_ENOTSUP, START ": the network is no tree");
	if (c->kind < SLMPM_COLL_BARRIER || c->kind > SLMPM_COLL_ALLREDUCE)
		return error_set(SLMPM_ENOTSUP, START ": operation %u", c->kind);
	if (c->root || c->flags)
		return error_set(SLMPM_EINVAL, START ": root %d, flags 0x%x", c->root, c->flags);
	if (c->combine || c->counts || c->places || c->to_counts || c->to_places)
		return error_set(SLMPM_ENOTSUP, START ": an operation of the program's own, or "
						      "counts for each node");
	rc = flat_check(c, n->shape.nodes, n->rank);
	if (rc < 0)
		return rc;
	context_lock(ctx);
	rc = overlay_error(n);
	context_unlock(ctx);
	return rc;
}

static int tree_run(struct overlay *n, const struct slmpm_coll *c, uint64_t cookie, slmpm_ctr ctr)
{
	const struct offload_run run = {
		.spec = {.kind = c->kind,
			 .algorithm = PLAN_BINARY,
			 .flags = c->from == SLMPM_IN_PLACE ? PLAN_IN_PLACE : 0,
			 .count = c->count},
		.type = c->type,
		.op = c->op,
		.from = c->from == SLMPM_IN_PLACE ? NULL : c->from,
		.to = c->to,
		.cookie = cookie,
		.ctr = ctr,
	};
	int rc = n->offload ? 0 : tree_open(n);

	if (rc == 0)
		rc = offload_start(n->offload, &run);
	n->runs += rc == 0;
	return rc;
}

int slmpm_overlay_start(slmpm_overlay overlay, const struct slmpm_coll *coll, uint64_t cookie,
			slmpm_ctr ctr)
{
	struct slmpm_coll c;
	int rc = sized_take(START, &c, coll, sizeof(c));
	struct overlay *n = rc == 0 ? tree_enter(START, overlay, &rc) : NULL;

	if (!n)
		return rc;
	rc = check_start(n, &c);
	if (rc == 0)
		rc = tree_run(n, &c, cookie, ctr);
	tree_leave(n);
	return rc;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* What a neighbour's end has broken, breaks all of it; what another's has, ends the runs. */
static int tree_is_broken(struct overlay *n)
{
	struct context *ctx = n->ctx;
	int status, culprit;

	context_lock(ctx);
	status = n->status;
	culprit = n->culprit;
	context_unlock(ctx);
	if (status < 0)
		offload_break(n->offload, status, culprit);
	return status;
}

static int tree_ended(struct overlay *n, const struct offload_end *end, uint64_t *cookie)
{
	struct context *ctx = n->ctx;
	int rc = 0;

	n->runs--;
	*cookie = end->cookie;
	if (end->status == 0)
		return 0;
	context_lock(ctx);
	overlay_break(n, end->status, end->culprit, slmpm_strerror(end->status));
	rc = overlay_error(n);
	context_unlock(ctx);
	return rc;
}

static int tree_wait(struct overlay *n, uint64_t *cookie, int timeout_ms)
{
	const uint64_t deadline = clock_deadline(timeout_ms);
	struct offload_end end;

	for (;;) {
		int left = timeout_ms > 0 ? clock_ms(clock_now(), deadline, -1) : timeout_ms, rc;

		(void)tree_is_broken(n);
		rc = left ? offload_wait(n->offload, &end, 1,
					 left < 0 || left > SLICE ? SLICE : left) :
			    offload_poll(n->offload, &end, 1);
		if (rc == 1)
			return tree_ended(n, &end, cookie);
		if (rc < 0 && rc != -SLMPM_ETIMEOUT)
			return rc;
		if (!left)
			return error_set(late_code(timeout_ms),
					 WAIT ": no operation has ended yet");
	}
}

int slmpm_overlay_wait(slmpm_overlay overlay, uint64_t *cookie, int timeout_ms)
{
	int rc = 0;
	struct overlay *n = tree_enter(WAIT, overlay, &rc);

	if (!n)
		return rc;
	if (!cookie)
		rc = error_set(SLMPM_EINVAL, WAIT ": no place for the cookie");
	else if (!n->runs)
		rc = error_set(SLMPM_ENOENT, WAIT ": none is under way");
	else
		rc = tree_wait(n, cookie, timeout_ms);
	tree_leave(n);
	return rc;
}

int overlay_tree_close(struct overlay *n)
{
	struct offload_end end;
	int rc;

	if (tree_is_broken(n) < 0)
		while (n->runs && offload_wait(n->offload, &end, 1, SLICE) == 1)
			n->runs--;
	rc = offload_close(n->offload);
	if (rc == 0)
		n->offload = NULL;
	return rc;
}
