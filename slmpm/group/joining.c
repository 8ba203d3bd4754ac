/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins of groups, from when they are sent, or come, until both sides know how they ended: what is
 * due to be sent of each, by which peer. */
#include "slmpm/group/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/base/clock.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/net/net.h"
#include "slmpm/plan/plan.h"

_Static_assert(NET_FDS >= WIRE_GROUP_MEMBERS * WIRE_GROUP_FDS, "a packet's descriptors");

#define RETRY_NS UINT64_C(1000000) /* where descriptors under way are too many for the kernel */

struct joining *joining_new(struct groups *of, bool ours)
{
	struct joining *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->ep = of->ep;
	j->board = j->bell = -1;
	j->ours = ours;
	j->number = ours ? ++of->our_last : ++of->their_last;
	list_append(ours ? &of->ours : &of->theirs, &j->node);
	if (ours)
		of->our_count++;
	else
		of->their_count++;
	return j;
}

struct joining *joining_find(struct list *list, uint32_t number)
{
	LIST_EACH_ENTRY(struct joining, j, list, node)
		if (j->number == number)
			return j;
	return NULL;
}

static void close_own(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void joining_free(struct joining *j)
{
	struct groups *of = j->ep->rooms->groups;

	if (j->ours)
		of->our_count--;
	else
		of->their_count--;
	list_remove(&j->node);
	close_own(&j->board);
	close_own(&j->bell);
	board_unmap(j->map);
	free(j);
}

/* ---- sending -------------------------------------------------------------------------------- */

static int send_step(struct joining *j, enum wire_group_step step, struct wire_group *packet,
		     const int *fds, size_t count)
{
	packet->step = LITTLE_32(step);
	packet->number = LITTLE_32(j->number);
	return bootstrap_pass(j->ep, packet, sizeof(*packet), WIRE_GROUP, fds, count);
}

static int send_join(struct joining *j)
{
	struct wire_group packet = {.tag = LITTLE_32(j->tag),
				    .what = LITTLE_32(j->part ? WIRE_GROUP_PART : 0)};
	const int fds[] = {j->board, j->bell};
	int rc;

	if (j->error && !(j->due & DUE_WITHDRAWN)) { /* it has nothing to come with */
		packet.error = LITTLE_32(wire_error(-j->error));
		memcpy(packet.text, j->text, sizeof(packet.text));
		return send_step(j, GROUP_JOIN, &packet, NULL, 0);
	}
	rc = send_step(j, GROUP_JOIN, &packet, fds, bootstrap_passes(j->ep) ? 2 : 0);
	if (rc == 0) {
		close_own(&j->board);
		close_own(&j->bell);
	}
	return rc;
}

static int joining_send_end(struct joining *j, enum wire_group_step step)
{
	struct wire_group packet = {.error = LITTLE_32(wire_error(-j->error))};

	memcpy(packet.text, j->text, sizeof(packet.text));
	return send_step(j, step, &packet, NULL, 0);
}

static void put_long(uint32_t words[2], uint64_t value)
{
	words[0] = LITTLE_32((uint32_t)value);
	words[1] = LITTLE_32((uint32_t)(value >> 32));
}

static int send_begin(struct joining *j)
{
	struct wire_group packet = {.size = LITTLE_32(j->group->boards.size),
				    .rank = LITTLE_32(j->rank)};
	const struct group *g = j->group;

	put_long(packet.kinds, g->algorithms.forced);
	for (int i = 0; i < PLAN_LIMITS; i++)
		put_long(packet.limits[i], g->algorithms.limits[i]);
	packet.what = LITTLE_32((g->apart ? WIRE_GROUP_APART : 0) |
				(g->meets_local ? WIRE_GROUP_LOCAL : 0) |
				(g->algorithms.any_order ? WIRE_GROUP_ANY_ORDER : 0));
	if (g->apart) {
		formation_host(j, packet.host, sizeof(packet.host));
	}
	return send_step(j, GROUP_BEGIN, &packet, NULL, 0);
}

/* What follows from *RANK on: it is behind those then. */
static int send_boards(struct joining *j, uint32_t *rank)
{
	const uint32_t most = bootstrap_takes_members(j->ep) ? WIRE_GROUP_MEMBERS : 1;
	struct wire_group packet = {.rank = LITTLE_32(*rank)};
	int fds[WIRE_GROUP_MEMBERS * WIRE_GROUP_FDS];
	uint32_t n = 0;

	for (; *rank < j->group->boards.size && n < most; ++*rank) {
		int32_t pid;

		if (*rank == j->rank)
			continue;
		pid = formation_fds(j->group, *rank, fds + n * WIRE_GROUP_FDS);
		*(n ? &packet.pids[n - 1] : &packet.pid) = (int32_t)LITTLE_32((uint32_t)pid);
		n++;
	}
	packet.size = LITTLE_32(n > 1 ? n : 0);
	return send_step(j, GROUP_MEMBER, &packet, fds, n * WIRE_GROUP_FDS);
}

static int send_address(struct joining *j, uint32_t *rank)
{
	struct wire_group packet = {.rank = LITTLE_32(*rank)};

	formation_address(j, (*rank)++, &packet);
	return send_step(j, GROUP_MEMBER, &packet, NULL, 0);
}

static int send_members(struct joining *j)
{
	const struct group *g = j->group;

	for (;;) {
		uint32_t next;
		int rc;

		j->next += j->next == j->rank;
		if (j->next >= g->boards.size)
			return 0;
		next = j->next;
		rc = g->apart ? send_address(j, &next) : send_boards(j, &next);
		if (rc < 0)
			return rc;
		j->next = next;
	}
}

static int send_listens(struct joining *j)
{
	struct wire_group packet = {
		.what = LITTLE_32(j->port),
		.machine = LITTLE_32(j->group->members[j->group->boards.rank].machine)};

	return send_step(j, GROUP_LISTENS, &packet, NULL, 0);
}

static int joining_send_one(struct joining *j, uint32_t due)
{
	struct wire_group empty = {.what = 0};

	switch (due) {
	case DUE_JOIN: return send_join(j);
	case DUE_LISTENS: return send_listens(j);
	case DUE_READY: return send_step(j, GROUP_READY, &empty, NULL, 0);
	case DUE_WITHDRAWN: return joining_send_end(j, GROUP_WITHDRAWN);
	case DUE_BEGIN: return send_begin(j);
	case DUE_MEMBERS: return send_members(j);
	case DUE_FORMED: return send_step(j, GROUP_FORMED, &empty, NULL, 0);
	default: return joining_send_end(j, GROUP_REFUSED);
	}
}

/* All that is due of J; a negative errno: the rest is not to be had now. */
static int send_due(struct joining *j)
{
	while (j->due) {
		uint32_t first = j->due & -j->due;
		int rc = joining_send_one(j, first);

		if (rc < 0)
			return rc;
		j->due &= ~first;
	}
	if (j->over)
		joining_free(j);
	return 0;
}

static int joining_send_all(struct list *list)
{
	LIST_EACH_ENTRY(struct joining, j, list, node) {
		int rc = send_due(j);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* As far as the socket takes it. */
void groups_room(struct endpoint *ep)
{
	struct groups *of = ep->rooms->groups;
	int rc;

	if (!of || ep->state == SLMPM_PEER_CONNECTING) /* then when it has */
		return;
	list_remove(&of->stalled);
	rc = groups_send_unsent(of);
	if (rc == 0)
		rc = joining_send_all(&of->ours);
	if (rc == 0)
		rc = joining_send_all(&of->theirs);
	groups_await_room(of, rc);
}

uint64_t groups_deadlines(struct context *ctx, uint64_t now)
{
	struct list all;

	if (list_empty(&ctx->stalled))
		return UINT64_MAX;
	list_insert(ctx->stalled.next, &all);
	list_remove(&ctx->stalled);
	LIST_EACH_ENTRY(struct groups, of, &all, stalled)
		groups_room(of->ep);
	return list_empty(&ctx->stalled) ? UINT64_MAX : now + RETRY_NS;
}

void joining_send(struct joining *j, uint32_t more)
{
	j->due |= more;
	groups_room(j->ep);
}

void joining_fail(struct groups *of, uint32_t tag, bool part, int error, const char *text)
{
	struct joining *j = joining_new(of, true);

	if (!j)
		return;
	(void)joining_refusal(&of->our_refused, tag, part, j->number);
	j->tag = tag;
	j->part = part;
	j->over = true;
	j->error = error;
	error_fit(j->text, sizeof(j->text), text);
	joining_send(j, DUE_JOIN);
}

/* The other side has not seen J, nor those behind it. */
static void joining_forget(struct joining *j)
{
	struct groups *of = j->ep->rooms->groups;

	LIST_EACH_ENTRY(struct joining, behind, &of->ours, node)
		behind->number -= behind->number > j->number;
	of->our_last--;
	joining_free(j);
}

void joining_end(struct joining *j, int error, const char *text)
{
	if (j->ep->state == SLMPM_PEER_CONNECTING) {
		joining_forget(j);
		return;
	}
	j->group = NULL;
	j->over = true;
	j->error = error;
	error_fit(j->text, sizeof(j->text), text);
	j->due &= DUE_JOIN; /* its number is not left out */
	joining_send(j, j->ours ? DUE_WITHDRAWN : DUE_REFUSED);
}

/* Who tries again and again before the other begins is not to be refused as often: fewer than may
 * be under way, so that those that are refused leave room for one more. */
#define FAILED_MOST (WIRE_GROUP_JOINS / 2)

void failed_note(struct failed_join *noted, const struct failed_join *next)
{
	const bool more = noted->error && noted->tag == next->tag && noted->part == next->part;
	const uint32_t count = more ? noted->count : 0;

	*noted = *next;
	noted->count = count < FAILED_MOST ? count + 1 : count;
}

void failed_take(struct failed_join *noted)
{
	if (noted->count)
		noted->count--;
	if (!noted->count)
		noted->error = 0;
}

static void send_refusal(struct endpoint *ep)
{
	const struct groups *of = ep->rooms->groups;
	struct wire_group packet = {.step = LITTLE_32(GROUP_FAILED)};

	if (!of || !of->their_refused.error || of->their_refused.part ||
	    !bootstrap_forms_groups(ep))
		return;
	packet.number = LITTLE_32(of->their_refused.behind);
	packet.tag = LITTLE_32(of->their_refused.tag);
	packet.error = LITTLE_32(wire_error(-of->their_refused.error));
	memcpy(packet.text, of->their_refused.text, sizeof(packet.text));
	groups_send(ep, &packet);
}

void joining_refuse_next(struct endpoint *ep, uint32_t tag, bool part, int error, const char *text)
{
	struct groups *of = endpoint_has_ended(ep) ? NULL : groups_of(ep);
	struct failed_join next = {.tag = tag, .part = part, .error = error};

	if (!of)
		return;
	next.behind = of->their_last;
	error_fit(next.text, sizeof(next.text), text);
	failed_note(&of->their_refused, &next);
	if (ep->state == SLMPM_PEER_UP)
		send_refusal(ep);
}

void joining_refuse_unsaid(struct endpoint *ep)
{
	const struct groups *of = ep->rooms->groups;

	for (uint32_t i = 0; of && of->their_refused.error && i < of->their_refused.count; i++)
		send_refusal(ep);
}

int joining_refusal(struct failed_join *refused, uint32_t tag, bool part, uint32_t number)
{
	int error = refused->error;

	if (tag != refused->tag || part != refused->part ||
	    !wire_is_before(refused->behind, number))
		return 0;
	failed_take(refused);
	return error;
}

/* ---- the peer's beginning and its ends ------------------------------------------------------- */

/* Those that were to be sent, to one that does not know what they are: none is left. */
static void joinings_unknown(struct groups *of)
{
	LIST_EACH_ENTRY(struct joining, j, &of->ours, node) {
		if (j->group)
			group_fail(j->group, SLMPM_ENOTSUP, "%s does not know groups",
				   of->ep->life->name);
		joining_free(j);
	}
}

void groups_up(struct endpoint *ep)
{
	struct groups *of = ep->rooms->groups;

	if (!of)
		return;
	if (!bootstrap_forms_groups(ep))
		joinings_unknown(of);
	groups_room(ep);
}

void groups_ending(struct endpoint *ep)
{
	/* A group that has formed has, though who founded it has gone; and a member may have said
	 * that it has left, before its link's end. */
	if (ep->state == SLMPM_PEER_UP && (ep->rooms->groups || ep->rooms->pair))
		bootstrap_read_ahead(ep);
}

void groups_end(struct endpoint *ep)
{
	struct groups *of = ep->rooms->groups;

	formation_peer_ended(ep);
	if (!of)
		return;
	LIST_EACH_ENTRY(struct joining, j, &of->ours, node) {
		if (j->group)
			group_fail(j->group, ep->life->error, "%s, before the group had formed: %s",
				   ep->life->name, ep->life->reason);
		joining_free(j);
	}
	LIST_EACH_ENTRY(struct joining, j, &of->theirs, node)
		joining_free(j);
	groups_drop_unsent(of);
	list_remove(&of->stalled);
}

void groups_free(struct endpoint *ep)
{
	if (!ep->rooms->groups)
		return;
	groups_end(ep);
	free(ep->rooms->groups);
	ep->rooms->groups = NULL;
}

static void joinings_forked(struct list *list)
{
	LIST_EACH_ENTRY(struct joining, j, list, node) {
		close_own(&j->board);
		close_own(&j->bell);
	}
}

void groups_forked(struct endpoint *ep)
{
	struct groups *of = ep->rooms->groups;

	if (!of)
		return;
	joinings_forked(&of->ours);
	joinings_forked(&of->theirs);
}
