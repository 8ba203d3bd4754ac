/* SPDX-License-Identifier: BSD-3-Clause */
/* How a group forms at who founds it: who has come, what each is sent, who is missing. */
#include "slmpm/group/formation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/reach.h"
#include "slmpm/completion/late.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/page.h"
#include "slmpm/group/pairing.h"

#define RANK_NAME 128

static uint32_t joiner_rank(const struct group *g, const struct endpoint *ep)
{
	uint32_t r = 0;

	while (r < g->boards.size && g->formation->joiners[r].ep != ep)
		r++;
	return r;
}

static bool is_founded(const struct group *g)
{
	return g->state == GROUP_IS_FORMING && g->formation;
}

struct group *formation_of(const struct endpoint *ep, uint32_t tag, bool part, uint32_t *rank)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node) {
		if (!is_founded(g) || g->tag != tag || g->part != part)
			continue;
		*rank = joiner_rank(g, ep);
		if (*rank < g->boards.size && !g->formation->joiners[*rank].joining)
			return g;
	}
	return NULL;
}

int joiner_suits(const struct endpoint *ep, uint32_t rank)
{
	if (ep->state == SLMPM_PEER_UP && !bootstrap_forms_groups(ep))
		return error_set(SLMPM_ENOTSUP, "rank %u (%s) does not know groups", rank,
				 ep->life->name);
	return 0;
}

/* ---- its end -------------------------------------------------------------------------------- */

void joiner_close(struct joiner *s)
{
	if (s->board >= 0)
		close(s->board);
	if (s->bell >= 0)
		close(s->bell);
	s->board = s->bell = -1;
}

/* Others have its process by now. */
static void close_own_process(struct group *g)
{
	if (g->boards.rank < g->boards.size)
		watch_close(g->ctx, &g->members[g->boards.rank].process);
}

void formation_free(struct group *g)
{
	struct formation *f = g->formation;

	if (!f)
		return;
	close_own_process(g);
	for (uint32_t r = 0; r < g->boards.size; r++)
		joiner_close(&f->joiners[r]);
	free(f->joiners);
	free(f);
	g->formation = NULL;
}

void formation_forked(const struct group *g)
{
	for (uint32_t r = 0; g->formation && r < g->boards.size; r++)
		joiner_close(&g->formation->joiners[r]);
}

/* What EP has sent of a group that nothing waits for yet; NULL: nothing. */
static struct joining *find_waiting(const struct endpoint *ep, uint32_t tag, bool part)
{
	if (!ep->rooms->groups)
		return NULL;
	LIST_EACH_ENTRY(struct joining, j, &ep->rooms->groups->theirs, node)
		if (!j->group && !j->over && j->tag == tag && j->part == part)
			return j;
	return NULL;
}

void formation_refuse(struct endpoint *ep, uint32_t tag, bool part, int error, const char *text)
{
	struct joining *j = find_waiting(ep, tag, part);

	if (j)
		joining_end(j, error, text);
	else if (!part)
		joining_refuse_next(ep, tag, false, error, text);
}

void formation_refuse_part(struct endpoint *ep, uint32_t tag, int error, const char *text)
{
	struct joining *j = find_waiting(ep, tag, true);

	if (j)
		joining_end(j, error, text);
	else
		joining_refuse_next(ep, tag, true, error, text);
}

bool formation_forget(const struct endpoint *ep, uint32_t tag, bool part)
{
	struct failed_join *failed = ep->rooms->groups ? &ep->rooms->groups->failed : NULL;

	if (!failed || !failed->error || failed->tag != tag || failed->part != part)
		return false;
	failed_take(failed);
	return true;
}

/* Those that are to be members learn it, by TEXT. */
static COLD void refuse_joiners(struct group *g, int error, const char *text)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		struct joiner *s = &g->formation->joiners[r];
		struct joining *j = s->joining;

		s->joining = NULL;
		if (j)
			joining_end(j, error, text);
		else if (s->ep && !s->withdrew && formation_forget(s->ep, g->tag, g->part))
			continue;
		else if (s->ep && !s->withdrew && g->whole)
			formation_refuse_part(s->ep, g->tag, error, text);
		else if (s->ep && !s->withdrew && error != SLMPM_ETIMEOUT)
			formation_refuse(s->ep, g->tag, g->part, error, text);
	}
}

void formation_fail(struct group *g, int error, const char *format, ...)
{
	char text[ERROR_DETAIL];
	va_list args;

	if (g->state != GROUP_IS_FORMING)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	group_fail(g, error, "%s", text);
	refuse_joiners(g, error, text);
}

/* RANK, in texts; of a part by its rank in the group that is split, as all know it. */
static COLD const char *rank_name(const struct group *g, uint32_t rank, char name[RANK_NAME])
{
	const struct endpoint *ep = g->formation->joiners[rank].ep;
	const struct member *m = pair_member(ep);

	if (!g->part)
		(void)snprintf(name, RANK_NAME, "rank %u (%s) of group %u", rank, ep->life->name,
			       g->tag);
	else if (m)
		(void)snprintf(name, RANK_NAME, BOARD_MEMBER,
			       BOARD_MEMBER_OF(&m->group->boards, pair_rank(m)));
	else
		(void)snprintf(name, RANK_NAME, "%s", ep->life->name);
	return name;
}

void formation_lacks(struct group *g, uint32_t rank, int error, const char *why)
{
	char name[RANK_NAME], text[ERROR_DETAIL];

	if (g->state != GROUP_IS_FORMING)
		return;
	(void)snprintf(text, sizeof(text), "for %s: %s", rank_name(g, rank, name), why);
	g->lacks = true;
	group_fail(g, error, "%s%s", g->part ? "" : "this process, ", text);
	refuse_joiners(g, error, text);
}

void formation_in_vain(struct group *g, uint32_t rank)
{
	g->formation->joiners[rank].withdrew = true;
}

bool formation_awaits(const struct group *g, uint32_t rank)
{
	const struct joiner *s = g->formation ? &g->formation->joiners[rank] : NULL;

	return s && s->ep && !(s->joining && s->ready);
}

void formation_late(struct group *g, int timeout_ms)
{
	int rc = formation_waits(g, timeout_ms);

	formation_fail(g, -rc, "%s", group_detail());
}

static void fail_unsuitable(struct group *g, const struct endpoint *ep, uint32_t rank)
{
	int rc = joiner_suits(ep, rank);

	if (rc < 0)
		formation_fail(g, -rc, "%s", group_detail());
}

void formation_peer_ended(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node) {
		uint32_t r = is_founded(g) ? joiner_rank(g, ep) : UINT32_MAX;

		char name[RANK_NAME];

		if (r < g->boards.size && ep->life->lacks)
			formation_lacks(g, r, ep->life->error, ep->life->reason);
		else if (r < g->boards.size)
			formation_fail(g, ep->life->error ? ep->life->error : SLMPM_ECLOSED,
				       "%s: %s", rank_name(g, r, name),
				       ep->life->reason[0] ? ep->life->reason :
							     "it has been closed");
	}
}

/* The others reach this member's memory, and it theirs, if it trusts them all (SLMPM_ATTACH). */
static void offer_memory(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (r != g->boards.rank && !g->formation->joiners[r].ep->life->attach)
			return;
	reach_offer(&g->boards);
}

/* All have one another: it has formed. */
static void formation_complete(struct group *g)
{
	offer_memory(g);
	group_has_formed(g);
	group_page_begin(g);
	for (uint32_t r = 0; r < g->boards.size; r++) {
		struct joining *j = g->formation->joiners[r].joining;

		if (!j)
			continue;
		g->members[r].peer = handle_id(j->ep);
		g->members[r].join = j->number;
		j->group = NULL;
		j->over = true;
		joining_send(j, DUE_FORMED);
	}
	formation_free(g);
}

/* ---- its beginning -------------------------------------------------------------------------- */

/* Its negotiation was under way when the group was begun. */
void formation_peer_up(struct endpoint *ep)
{
	joining_refuse_unsaid(ep);
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node) {
		uint32_t r = is_founded(g) ? joiner_rank(g, ep) : UINT32_MAX;

		if (r < g->boards.size)
			fail_unsuitable(g, ep, r);
	}
}

/* RANK could not begin to join, as often as is noted: it may try again. */
static void fail_unjoined(struct group *g, struct groups *of, uint32_t rank)
{
	const struct failed_join first = of->failed;
	char name[RANK_NAME];

	if (!formation_forget(of->ep, g->tag, g->part))
		return;
	formation_in_vain(g, rank);
	if (first.here)
		formation_lacks(g, rank, first.error, first.text);
	else
		formation_fail(g, first.error, "%s: it says: %s", rank_name(g, rank, name),
			       first.text);
}

void formation_no_join(struct groups *of)
{
	uint32_t rank;
	struct group *g = formation_of(of->ep, of->failed.tag, of->failed.part, &rank);

	if (g)
		fail_unjoined(g, of, rank);
}

static void formation_take_waiting(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size && g->state == GROUP_IS_FORMING; r++) {
		const struct joiner *s = &g->formation->joiners[r];
		const struct endpoint *ep = s->ep;
		struct joining *j;

		if (!ep || s->joining || !ep->rooms->groups)
			continue;
		fail_unjoined(g, ep->rooms->groups, r);
		j = find_waiting(ep, g->tag, g->part);
		if (j && g->state == GROUP_IS_FORMING)
			formation_joined(g, j, r);
	}
}

void formation_begin(struct group *g)
{
	formation_take_waiting(g);
	if (!g->formation->others)
		formation_complete(g);
}

/* ---- its steps ------------------------------------------------------------------------------ */

/* RANK has come: what it has sent is the group's. */
static int take_joiner(struct group *g, struct joining *j, uint32_t rank)
{
	int process, rc;

	if (!j->map) { /* over a stream */
		g->boards.processes[rank] = bootstrap_said_pid(j->ep);
		return 0;
	}
	process = fcntl(bootstrap_process(j->ep), F_DUPFD_CLOEXEC, 0);
	rc = process < 0 ? -errno : group_put(g, rank, j->map, j->bell, process, j->ep->life->pid);
	if (rc < 0) {
		if (process >= 0)
			close(process);
		return rc;
	}
	g->formation->joiners[rank].board = j->board;
	j->map = NULL;
	j->board = j->bell = -1;
	return 0;
}

static void formation_say(struct group *g, uint32_t due)
{
	for (uint32_t r = 0; r < g->boards.size && g->state == GROUP_IS_FORMING; r++)
		if (g->formation->joiners[r].joining)
			joining_send(g->formation->joiners[r].joining, due);
}

/* Of one without boards no member has another's, or watches its process, which may end before what
 * it has said as it left is read. */
static void drop_boards(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (r == g->boards.rank)
			continue;
		joiner_close(&g->formation->joiners[r]);
		group_remove(g, r);
	}
}

/* All have come: each is told of the others; of those that have no boards, where they listen, once
 * all do. */
static void formation_spread(struct group *g)
{
	int rc = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct joiner *s = &g->formation->joiners[r];

		g->apart |= s->ep && !bootstrap_passes(s->ep);
	}
	if (g->apart && g->whole) {
		rc = error_set(SLMPM_ENOTSUP, "not all can pass descriptors");
	} else if (g->apart) {
		drop_boards(g);
		rc = addresses_begin(g);
		g->lacks = rc < 0;
	}
	if (rc < 0)
		formation_fail(g, -rc, "%s", group_detail());
	else
		formation_say(g, g->apart ? DUE_BEGIN : DUE_BEGIN | DUE_MEMBERS);
}

void formation_listens(struct joining *j, uint16_t port, uint32_t machine)
{
	struct group *g = j->group;
	struct formation *f = g->formation;

	j->port = f->joiners[j->rank].port = port;
	f->joiners[j->rank].machine = machine;
	if (++f->listening < f->others)
		return;
	g->lacks = addresses_known(g) < 0;
	if (g->lacks)
		formation_fail(g, SLMPM_ENOMEM, "no memory for a group");
	else
		formation_say(g, DUE_MEMBERS);
}

/* RANK has come in vain. */
static void formation_drop(struct group *g, struct joining *j, uint32_t rank, int rc)
{
	char text[ERROR_DETAIL];
	int error = -error_system(rc, "board, bell and process cannot be kept");

	snprintf(text, sizeof(text), "%s", group_detail());
	formation_in_vain(g, rank);
	formation_lacks(g, rank, error, text);
	joining_end(j, error, text);
}

void formation_joined(struct group *g, struct joining *j, uint32_t rank)
{
	struct formation *f = g->formation;
	int rc = take_joiner(g, j, rank);

	if (rc < 0) {
		formation_drop(g, j, rank, rc);
		return;
	}
	j->group = g;
	j->rank = rank;
	f->joiners[rank].joining = j;
	f->joiners[rank].withdrew = f->joiners[rank].expired = false;
	if (++f->come == f->others)
		formation_spread(g);
}

int32_t formation_fds(const struct group *g, uint32_t rank, int fds[WIRE_GROUP_FDS])
{
	const struct joiner *s = &g->formation->joiners[rank];

	fds[0] = s->board;
	fds[1] = s->ep ? g->boards.bells[rank] : s->bell;
	fds[2] = g->members[rank].process.fd;
	return g->boards.processes[rank];
}

void formation_ready(struct joining *j)
{
	struct group *g = j->group;

	j->ready = true;
	g->formation->joiners[j->rank].ready = true;
	if (++g->formation->ready == g->formation->others)
		formation_complete(g);
}

void formation_withdrawn(struct group *g, uint32_t rank, int error, const char *text)
{
	struct formation *f = g->formation;
	struct joiner *s = &f->joiners[rank];
	char name[RANK_NAME];

	s->joining = NULL;
	s->withdrew = true;
	s->expired = error == SLMPM_ETIMEOUT;
	if (f->come == f->others && error == SLMPM_ETIMEOUT && formation_missing(g) != rank) {
		formation_late(g, -1);
		return;
	}
	/* At a deadline of its own it may come again. */
	if (f->come == f->others || error != SLMPM_ETIMEOUT) {
		formation_fail(g, error, "%s: it says: %s", rank_name(g, rank, name), text);
		return;
	}
	f->come--;
	joiner_close(s);
	group_remove(g, rank);
	formation_take_waiting(g); /* another one of its joins */
}
