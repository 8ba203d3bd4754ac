/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a group as one process has them: their boards, bells and processes, and what
 * breaks it: a member that has died, or left. */
#include "slmpm/group/group.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/reach.h"
#include "slmpm/completion/late.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/pairing.h"
#include "slmpm/part.h"

struct handle_table group_table = HANDLE_TABLE_FROM("group", struct group, node);

struct group *group_lock(slmpm_group group, const char *call, struct context **ctx, int *rc)
{
	struct group *g = context_lock_object(&group_table, group.id, rc);

	*ctx = g ? g->ctx : NULL;
	if (UNLIKELY(!g))
		*rc = error_name_call(call, *rc);
	return g;
}

const char *group_detail(void)
{
	const char *detail = slmpm_error_detail(), *rest = strstr(detail, ": ");

	return rest ? rest + 2 : detail;
}

COLD int group_unformed(const struct group *g, const char *call)
{
	if (g->state == GROUP_IS_FORMING)
		return error_name_call(call, group_late_to_form(g, 0));
	return error_of_call(-g->error, call, "%s", g->detail);
}

COLD int founder_refused(const char *call)
{
	return error_of_call(SLMPM_ESTATE, call,
			     "this process has founded the group and is no member");
}

int group_is_joined(const struct group *g, const char *call)
{
	if (!g->boards.own)
		return founder_refused(call);
	return g->state == GROUP_HAS_FORMED ? 0 : group_unformed(g, call);
}

int group_has_boards(const struct group *g, const char *call)
{
	if (!g->apart)
		return 0;
	return error_of_call(SLMPM_ENOTSUP, call,
			     "members of group %u are connected by TCP, and have no memory with "
			     "the others",
			     g->tag);
}

bool group_size(struct group *g, uint32_t size, uint32_t rank)
{
	struct board *own = g->boards.own;

	g->members = calloc(size, sizeof(*g->members));
	if (!g->members)
		return false;
	if (boards_open(&g->boards, own, size, rank) < 0) {
		free(g->members);
		g->members = NULL;
		g->boards.own = own;
		return false;
	}
	g->boards.tag = g->tag;
	g->seats = size;
	if (own)
		g->boards.processes[rank] = (int32_t)getpid();
	for (uint32_t r = 0; r < size; r++) {
		g->members[r] = (struct member){.group = g, .process.fd = -1, .offer = -1};
		list_init(&g->members[r].pairing);
	}
	if (g->whole) /* an end may be read as soon as a board is there */
		parts.machine->sized(g);
	return true;
}

/* How many members share this machine's processors: those of a machine's part do with the whole
 * group where all hosts are of one kernel. */
static uint32_t group_near(const struct group *g)
{
	const struct group *whole = g->whole;

	return whole && whole->messages->processors ? whole->boards.size : g->boards.size;
}

void group_met(struct group *g)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t near = group_near(g), sharers = 0;

	boards_met(&g->boards);
	if (processors > 0 && near > (unsigned long)processors)
		sharers = (near + (uint32_t)processors - 1) / (uint32_t)processors;
	g->boards.crowded = (uint16_t)sharers;
	if (sharers > g->ctx->sharers)
		g->ctx->sharers = sharers;
}

static void set_status(struct group *g, int status, int32_t culprit, bool left)
{
	g->status = status;
	g->culprit = culprit;
	g->left = left;
	g->ctx->news = true;
	context_changed(g->ctx);
}

void group_break(struct group *g, int status, int32_t culprit)
{
	if (!g->status || g->left)
		set_status(g, status, culprit, false);
}

void group_left(struct group *g, uint32_t rank)
{
	if (!g->status)
		set_status(g, -SLMPM_ECLOSED, (int32_t)rank, true);
}

/* What rank R says of its end, or of the group's: false: nothing. Who has left breaks nothing. */
static bool take_end(struct group *g, uint32_t r)
{
	uint32_t culprit = r;
	int rc = boards_ended(&g->boards, r, &culprit);

	if (rc == -SLMPM_ECLOSED && culprit == r) {
		group_left(g, r);
	} else if (rc < 0) {
		group_break(g, rc, (int32_t)culprit);
	}
	return rc < 0;
}

/* A process that has left its groups does not break them by its end. */
static void member_ended(struct context *ctx, struct watch *w)
{
	struct member *m = w->owner;

	if (w->fd < 0) /* it has withdrawn meanwhile */
		return;
	watch_remove(ctx, w); /* it stays readable for ever */
	m->ended = true;
	group_inspect(m->group);
	ctx->news = true; /* broken before or not */
	context_changed(ctx);
}

bool member_is_dead(struct member *m)
{
	struct pollfd p = {.fd = m->process.fd, .events = POLLIN};

	m->ended |= p.fd >= 0 && poll(&p, 1, 0) > 0;
	return m->ended;
}

void group_goes(struct group *g)
{
	list_remove(&g->node);
	g->ctx->sharers = 0;
	LIST_EACH_ENTRY(const struct group, other, &g->ctx->groups, node)
		if (other->boards.crowded > g->ctx->sharers)
			g->ctx->sharers = other->boards.crowded;
}

int group_put(struct group *g, uint32_t rank, const struct board *board, int bell, int process,
	      int32_t pid)
{
	struct member *m = &g->members[rank];
	int rc;

	m->process = (struct watch){.ready = member_ended, .fd = process, .owner = m};
	rc = watch_add(g->ctx, &m->process);
	if (rc < 0) {
		m->process.fd = -1;
		return rc;
	}
	g->boards.of[rank] = board;
	g->boards.bells[rank] = bell;
	g->boards.processes[rank] = pid;
	g->boards.watched[rank] = process;
	return 0;
}

void group_remove(struct group *g, uint32_t rank)
{
	watch_close(g->ctx, &g->members[rank].process);
	if (!g->boards.of[rank]) /* it came over a stream */
		return;
	board_unmap(g->boards.of[rank]);
	g->boards.of[rank] = NULL;
	close(g->boards.bells[rank]);
	g->boards.bells[rank] = g->boards.watched[rank] = -1;
}

int group_broken_error(const struct group *g, uint64_t number, uint32_t kind)
{
	uint32_t r = (uint32_t)g->culprit;

	if (g->said[0])
		return error_set(-g->status, "%s", g->said);
	if (g->culprit < 0)
		return boards_error(&g->boards, -g->status, number, kind, "it is broken");
	if (g->status == -SLMPM_EDEAD || g->status == -SLMPM_ECLOSED)
		return boards_error(&g->boards, -g->status, number, kind, BOARD_MEMBER " has %s",
				    BOARD_MEMBER_OF(&g->boards, r),
				    g->status == -SLMPM_EDEAD ? "died" : "left the group");
	return boards_error(&g->boards, -g->status, number, kind, "it is broken, by " BOARD_MEMBER,
			    BOARD_MEMBER_OF(&g->boards, r));
}

const char *member_suspicion(const struct group *g, uint32_t rank)
{
	struct member *m = member_of(g, rank);
	int32_t pid = reach_number(m->process.fd);
	struct endpoint *ep = endpoint_of((slmpm_peer){m->peer}); /* of who founds */

	if (pid > 0)
		return late_process(pid);
	if (pair_is_up(m->pair))
		ep = m->pair->ep;
	return ep ? late_suspicion(ep) : NULL;
}

void group_inspect(struct group *g)
{
	if (g->apart)
		distant_inspect(g);
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (r != g->boards.rank && !g->apart && g->boards.of[r] && !take_end(g, r) &&
		    member_of(g, r)->ended)
			group_break(g, -SLMPM_EDEAD, (int32_t)r);
	if (g->whole)
		group_inspect(g->whole);
}
