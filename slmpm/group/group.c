/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: created, joined, looked at, and left. */
#include "slmpm/group/group.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/base/sized.h"
#include "slmpm/completion/late.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/listener.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/alloc.h"
#include "slmpm/group/drive.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/space.h"
#include "slmpm/group/tags.h"
#include "slmpm/group/page.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

/* ---- made, and taken apart ------------------------------------------------------------------ */

static void bell_rang(struct context *ctx, struct watch *w)
{
	struct group *g = w->owner;

	pairs_rang(g);
	group_inspect(g);
	ctx->news = true;
	context_changed(ctx);
}

/* Its own board and bell: 0, or a negative errno. */
static int equip(struct group *g, int *board, int *bell)
{
	int rc = bell_make(&g->bell.fd, bell);

	if (rc == 0)
		rc = watch_add(g->ctx, &g->bell);
	if (rc == 0)
		rc = board_make(&g->boards.own, board);
	return rc;
}

struct group *group_new(struct context *ctx, uint32_t tag, bool member, int *board, int *bell,
			int *rc)
{
	struct group *g = handle_new(&group_table);

	*board = *bell = -1;
	if (!g) {
		*rc = error_set(SLMPM_ENOMEM, "for a group");
		return NULL;
	}
	context_own(&g->ctx, ctx);
	list_append(&ctx->groups, &g->node);
	list_init(&g->operations);
	list_init(&g->spares);
	list_init(&g->prepared);
	list_init(&g->spaces);
	list_init(&g->memories);
	list_init(&g->drives);
	list_init(&g->driven);
	list_init(&g->texts);
	g->tag = tag;
	g->error = -SLMPM_EAGAIN;
	(void)snprintf(g->detail, sizeof(g->detail), "group %u is forming", tag);
	g->culprit = -1;
	g->boards.rank = BOARD_NONE;
	g->bell = (struct watch){.ready = bell_rang, .fd = -1, .owner = g};
	*rc = member ? equip(g, board, bell) : 0;
	if (*rc == 0)
		return g;
	*rc = error_system(*rc, "a group's board or bell");
	if (*bell >= 0)
		close(*bell);
	group_free(g);
	return NULL;
}

void group_free(struct group *g)
{
	parts.ungrouped(g, true);
	formation_free(g);
	group_page_free(g);
	pairs_leave(g);
	prepared_free_all(g);
	drives_shut(g);
	driven_leave(g);
	spaces_free(g);
	tags_free(g);
	memories_free(g);
	messages_close(g);
	texts_free(g);
	operations_free(g);
	for (uint32_t s = 0; s < g->seats; s++)
		distant_free(&g->members[s]);
	if (g->listener)
		listener_free(g->listener);
	g->ctx->collecting -= g->meeting.waits + (uint32_t)(g->shrinking != NULL);
	group_goes(g);
	for (uint32_t s = 0; s < g->seats; s++)
		watch_close(g->ctx, &g->members[s].process);
	watch_close(g->ctx, &g->bell);
	if (!g->boards.of) /* no size has been known */
		board_unmap(g->boards.own);
	boards_close(&g->boards);
	free(g->members);
	handle_free(&group_table, g);
}

/* The last operation whose messages others may still get: that it was given up does not recall
 * them. */
static uint64_t sent_of(const struct group *g, bool in_order)
{
	return in_order ? messages_done(g) : g->boards.posted;
}

/* The others, which perhaps go on, learn it: where it knows them all, for then it may have formed
 * there. IN_ORDER: meetings do without this process. */
static void group_leave(struct group *g, bool in_order)
{
	bool whole = g->boards.own && g->boards.of && !g->apart;
	const uint64_t did[] = {sent_of(g, in_order), g->lane ? sent_of(g->lane, in_order) : 0};

	if (g->apart)
		distant_left(g, in_order, did);
	for (uint32_t r = 0; whole && r < g->boards.size; r++)
		whole = g->boards.of[r];
	if (!whole)
		return;
	if (in_order)
		boards_come(&g->boards, BOARD_LEFT);
	boards_end(&g->boards, 0, BOARD_NONE, NULL);
}

/* It is not to form any more. */
static void group_give_up(struct group *g)
{
	const struct context *ctx = g->ctx;

	if (g->state != GROUP_IS_FORMING)
		return;
	if (g->formation) {
		formation_fail(g, SLMPM_ECLOSED, "group %u: who founds it has given it up", g->tag);
		return;
	}
	for (uint32_t i = 0; i < ctx->live; i++) {
		struct joining *j = joining_of(ctx->endpoints[i], g);

		if (j)
			joining_end(j, SLMPM_ECLOSED, "it has given up");
	}
}

void groups_stop(struct context *ctx)
{
	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		group_give_up(g);
		group_leave(g, false);
		g->shut = true;
		pairs_end(g);
	}
}

/* Behind the connections: until then an operation's messages use its buffers. */
void group_shut(struct context *ctx)
{
	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		operations_shut(g);
		tags_shut(g);
		group_free(g);
	}
}

static void close_copy(int fd)
{
	if (fd >= 0)
		close(fd);
}

void group_forked(struct context *ctx)
{
	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		formation_forked(g);
		group_page_forked(g);
		alloc_forked(g);
		close_copy(g->bell.fd);
		for (uint32_t s = 0; s < g->seats; s++) {
			close_copy(g->members[s].process.fd);
			distant_forked(&g->members[s]);
			close_copy(g->members[s].offer);
		}
		for (uint32_t r = 0; g->members && r < g->boards.size; r++)
			close_copy(g->boards.bells[r]);
	}
}

void group_fail(struct group *g, int error, const char *format, ...)
{
	va_list args;

	if (g->state != GROUP_IS_FORMING)
		return;
	g->state = GROUP_HAS_FAILED;
	g->error = -error;
	va_start(args, format);
	vsnprintf(g->detail, sizeof(g->detail), format, args);
	va_end(args);
	g->ctx->news = true;
	context_changed(g->ctx);
}

void group_has_formed(struct group *g)
{
	g->state = GROUP_HAS_FORMED;
	g->error = 0;
	if (!g->apart)
		group_met(g);
	meeting_formed(g);
	pairs_formed(g);
	g->ctx->news = true;
	context_changed(g->ctx);
}

/* ---- forming -------------------------------------------------------------------------------- */

static bool group_is_decided(void *arg)
{
	const struct group *g = arg;

	return g->state != GROUP_IS_FORMING;
}

int group_await(struct group *g, int timeout_ms)
{
	if (!timeout_ms)
		progress_opportunistic(g->ctx);
	if (wait_until(g->ctx, group_is_decided, g, timeout_ms) == 0)
		return 0;
	return group_late_to_form(g, timeout_ms);
}

/* Gives out its handle if it has formed; else takes it apart. */
static int conclude_group(struct group *g, const char *call, slmpm_group *out)
{
	int rc = g->state == GROUP_HAS_FORMED ? 0 : group_unformed(g, call);

	if (rc == 0) {
		out->id = handle_id(g);
	} else {
		group_leave(g, true); /* what it had given up may have formed meanwhile */
		group_free(g);
	}
	return rc;
}

/* Begins one, CTX locked: NULL with *RC. */
static struct group *begin_create(const char *call, struct context *ctx, const slmpm_group *out,
				  const slmpm_peer *members, int n, uint32_t tag, int timeout_ms,
				  int *rc)
{
	struct group *g = NULL;

	if (!out || !members || n < 1)
		*rc = error_set(SLMPM_EINVAL, "%s: no %s", call,
				!out     ? "place for the handle" :
				!members ? "members" :
					   "member");
	else if (n > SLMPM_GROUP_MAX)
		*rc = error_set(SLMPM_ELIMIT, "%s: %d members; at most %d", call, n,
				SLMPM_GROUP_MAX);
	else
		*rc = context_forbids(ctx, call);
	if (*rc == 0)
		g = formation_new(call, ctx, members, (uint32_t)n, tag, NULL, timeout_ms, rc);
	if (g)
		formation_begin(g);
	return g;
}

int slmpm_group_create_start(slmpm_group *out, slmpm_ctx handle, const slmpm_peer *members, int n,
			     uint32_t tag)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);
	struct group *g;

	if (!ctx)
		return error_name_call("slmpm_group_create_start", rc);
	context_lock(ctx);
	g = begin_create("slmpm_group_create_start", ctx, out, members, n, tag, -1, &rc);
	if (g)
		out->id = handle_id(g);
	context_unlock(ctx);
	return rc;
}

int slmpm_group_create(slmpm_group *out, slmpm_ctx handle, const slmpm_peer *members, int n,
		       uint32_t tag, int timeout_ms)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);
	struct group *g;

	if (!ctx)
		return error_name_call("slmpm_group_create", rc);
	context_lock(ctx);
	g = begin_create("slmpm_group_create", ctx, out, members, n, tag, timeout_ms, &rc);
	if (g) {
		if (wait_until(ctx, group_is_decided, g, timeout_ms) < 0)
			formation_late(g, timeout_ms);
		rc = conclude_group(g, "slmpm_group_create", out);
	}
	context_unlock(ctx);
	return rc;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* One that has not connected yet is waited for. */
static int may_join(struct endpoint *ep)
{
	bool connects = ep->state == SLMPM_PEER_CONNECTING && !ep->closing;

	if (!connects && endpoint_is_blocked(ep, BLOCK_STATE))
		return endpoint_error(ep);
	if (!connects && !bootstrap_forms_groups(ep))
		return error_set(SLMPM_ENOTSUP, "%s does not know groups", ep->life->name);
	if (ep->rooms->groups && ep->rooms->groups->our_count >= WIRE_GROUP_JOINS)
		return error_set(SLMPM_ELIMIT, "%s has yet to answer %d joins", ep->life->name,
				 WIRE_GROUP_JOINS);
	return 0;
}

struct group *group_ask(struct endpoint *ep, uint32_t tag, bool part, int *rc)
{
	struct groups *of = groups_of(ep);
	struct joining *j;
	int board, bell, error;
	struct group *g = group_new(ep->ctx, tag, true, &board, &bell, rc);

	if (!g) {
		if (of)
			joining_fail(of, tag, part, -*rc, group_detail());
		return NULL;
	}
	j = of ? joining_new(of, true) : NULL;
	if (!j) {
		*rc = error_set(SLMPM_ENOMEM, "for a group");
		close(board);
		close(bell);
		group_free(g);
		return NULL;
	}
	g->part = part;
	j->group = g;
	j->tag = tag;
	j->part = part;
	j->board = board;
	j->bell = bell;
	error = joining_refusal(&of->our_refused, tag, part, j->number);
	joining_send(j, DUE_JOIN);
	if (error) { /* the other side may have forgotten it */
		group_fail(g, error, "%s says: %s", ep->life->name, of->our_refused.text);
		joining_end(j, error, of->our_refused.text);
	}
	return g;
}

void group_join_late(struct group *g, struct endpoint *ep, int timeout_ms)
{
	int rc = group_late_to_form(g, timeout_ms);

	group_fail(g, -rc, "%s", group_detail());
	joining_end(joining_of(ep, g), SLMPM_ETIMEOUT, "its deadline has passed");
}

/* Begins to join one: NULL with *RC. */
static struct group *begin_join(const char *call, struct endpoint *ep, const slmpm_group *out,
				uint32_t tag, int timeout_ms, int *rc)
{
	struct group *g;

	*rc = context_forbids(ep->ctx, call);
	if (*rc == 0 && !out)
		*rc = error_set(SLMPM_EINVAL, "%s: no place for the handle", call);
	if (*rc == 0 && (*rc = may_join(ep)) < 0)
		*rc = error_name_call(call, *rc);
	if (*rc == 0 && !timeout_ms)
		*rc = late_error(ep->ctx, ep, 0,
				 "%s: a timeout of 0 is not enough for %s, which founds group %u, "
				 "to answer",
				 call, ep->life->name, tag);
	if (*rc < 0)
		return NULL;
	g = group_ask(ep, tag, false, rc);
	if (!g)
		*rc = error_name_call(call, *rc);
	return g;
}

int slmpm_group_join_start(slmpm_group *out, slmpm_peer founder, uint32_t tag)
{
	struct endpoint *ep = endpoint_of(founder);
	struct group *g;
	int rc = 0;

	if (!ep || !endpoint_lock(ep, founder))
		return error_name_call("slmpm_group_join_start", endpoint_bad_handle(founder));
	g = begin_join("slmpm_group_join_start", ep, out, tag, -1, &rc);
	if (g)
		out->id = handle_id(g);
	context_unlock(ep->ctx);
	return rc;
}

int slmpm_group_join(slmpm_group *out, slmpm_peer founder, uint32_t tag, int timeout_ms)
{
	struct endpoint *ep = endpoint_of(founder);
	struct context *ctx;
	struct group *g;
	int rc = 0;

	if (!ep || !endpoint_lock(ep, founder))
		return error_name_call("slmpm_group_join", endpoint_bad_handle(founder));
	ctx = ep->ctx;
	g = begin_join("slmpm_group_join", ep, out, tag, timeout_ms, &rc);
	if (g) {
		if (wait_until(ctx, group_is_decided, g, timeout_ms) < 0)
			group_join_late(g, ep, timeout_ms);
		rc = conclude_group(g, "slmpm_group_join", out);
	}
	context_unlock(ctx);
	return rc;
}

/* ---- looked at, and left -------------------------------------------------------------------- */

int slmpm_group_query(slmpm_group group, struct slmpm_group_info *info)
{
	struct slmpm_group_info now;
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, "slmpm_group_query", &ctx, &rc);

	if (!g)
		return rc;
	rc = sized_check_own("slmpm_group_query", info, sizeof(now));
	if (rc == 0) {
		progress_opportunistic(ctx); /* of a member's end its descriptor says */
		group_inspect(g);
		now = (struct slmpm_group_info){
			.rank = (int32_t)g->boards.rank,
			.members = g->state == GROUP_HAS_FORMED ? g->boards.size : 0,
			.tag = g->tag,
			.status = g->state == GROUP_HAS_FORMED ? g->status : g->error,
			.culprit = g->culprit,
			.begun = g->begun + tags_begun(g),
			.done = g->done + tags_begun(g) - tags_outstanding(g),
			.generation = g->boards.generation,
			.algorithm = g->algorithm,
			.any_order = g->algorithms.any_order,
			.in_memory = g->boards.in_shared,
		};
		sized_give_own(info, &now, sizeof(now));
	}
	context_unlock(ctx);
	return rc;
}

void group_quit(struct group *g)
{
	group_give_up(g);
	group_leave(g, true);
	group_free(g);
}

void group_reap(struct group *g)
{
	g->ctx->collecting--;
	group_quit(g);
}

/* Its member may make no progress any more. */
static void groups_reap(struct context *ctx)
{
	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node)
		if (g->to_reap)
			group_reap(g);
}

int slmpm_group_destroy(slmpm_group group)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, "slmpm_group_destroy", &ctx, &rc);

	if (!g)
		return rc;
	rc = context_forbids(ctx, "slmpm_group_destroy"); /* whose caller may be in it */
	if (rc == 0 && g->overlays)
		rc = error_set(SLMPM_EBUSY, "slmpm_group_destroy: %u networks lie over it",
			       g->overlays);
	if (rc == 0 && (g->begun != g->done || tags_wait(g) || g->waits || g->meeting.inside ||
			g->shrinking || !list_empty(&g->drives)))
		rc = error_set(
			SLMPM_EBUSY, "slmpm_group_destroy: %s is under way",
			!g->waits     ? "an operation" :
			g->splitting  ? "slmpm_group_split" :
			g->allocation ? "slmpm_group_alloc" :
					"slmpm_group_peer, slmpm_group_shrink or slmpm_put_all");
	if (rc == 0) {
		group_quit(g);
		groups_reap(ctx);
	}
	context_changed(ctx); /* who waits in it learns that it is gone */
	context_unlock(ctx);
	return rc;
}
