/* SPDX-License-Identifier: BSD-3-Clause */
/* How a group forms at who founds it: who has come, what each is sent, who is missing. */
#include "slmpm/group/formation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/board/reach.h"
#include "slmpm/completion/late.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"

static uint32_t seat_of(const struct group *g, const struct endpoint *ep)
{
	uint32_t r = 0;

	while (r < g->boards.size && g->formation->seats[r].ep != ep)
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
		*rank = seat_of(g, ep);
		if (*rank < g->boards.size && !g->formation->seats[*rank].joining)
			return g;
	}
	return NULL;
}

/* Can it be a member? 0, or negative with the detail set. */
static int is_suitable(const struct endpoint *ep, uint32_t rank)
{
	if (ep->state == SLMPM_PEER_UP && !bootstrap_forms_groups(ep))
		return error_set(SLMPM_ENOTSUP, "rank %u (%s) does not know groups", rank,
				 ep->life->name);
	return 0;
}

/* ---- its end -------------------------------------------------------------------------------- */

static void close_seat(struct seat *s)
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
		close_seat(&f->seats[r]);
	free(f->seats);
	free(f);
	g->formation = NULL;
}

void formation_forked(const struct group *g)
{
	for (uint32_t r = 0; g->formation && r < g->boards.size; r++)
		close_seat(&g->formation->seats[r]);
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

/* Of a group that does not form, the join that has come, or the next. */
static void refuse_waiting(struct endpoint *ep, uint32_t tag, bool part, int error,
			   const char *text)
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
	for (uint32_t r = 0; r < g->boards.size; r++) {
		struct seat *s = &g->formation->seats[r];
		struct joining *j = s->joining;

		s->joining = NULL;
		if (j)
			joining_end(j, error, text);
		else if (s->ep && !s->withdrew && g->whole)
			formation_refuse_part(s->ep, g->tag, error, text);
		else if (s->ep && !s->withdrew && error != SLMPM_ETIMEOUT)
			refuse_waiting(s->ep, g->tag, g->part, error, text);
	}
}

void formation_in_vain(struct group *g, uint32_t rank)
{
	g->formation->seats[rank].withdrew = true;
}

static const char *seat_name(const struct seat *s)
{
	return s->ep ? s->ep->life->name : "this process";
}

/* The step that others wait for. */
static bool lags_behind(const struct group *g, const struct seat *s)
{
	const struct formation *f = g->formation;

	if (!s->ep)
		return false;
	if (f->come < f->others)
		return !s->joining;
	return g->apart && f->listening < f->others ? !s->port : !s->ready;
}

uint32_t formation_missing(const struct group *g)
{
	uint32_t expired = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct seat *s = &g->formation->seats[r];

		if (!lags_behind(g, s))
			continue;
		if (!s->expired)
			return r;
		expired = r;
	}
	return expired;
}

bool formation_awaits(const struct group *g, uint32_t rank)
{
	const struct seat *s = g->formation ? &g->formation->seats[rank] : NULL;

	return s && s->ep && !(s->joining && s->ready);
}

int formation_waits(struct group *g, int timeout_ms)
{
	const struct formation *f = g->formation;
	uint32_t r = formation_missing(g);
	const struct seat *s = &f->seats[r];
	bool all_came = f->come == f->others;
	bool all_listen = !g->apart || f->listening == f->others;
	uint32_t missing = f->others - (!all_came ? f->come : all_listen ? f->ready : f->listening);

	return late_error(g->ctx, s->ep, timeout_ms,
			  "group %u is forming: rank %u (%s) %s; %u of %u are there", g->tag, r,
			  seat_name(s),
			  all_came    ? "does not answer" :
			  s->withdrew ? "has given up" :
					"has not come",
			  g->boards.size - missing, g->boards.size);
}

void formation_late(struct group *g, int timeout_ms)
{
	int rc = formation_waits(g, timeout_ms);

	formation_fail(g, -rc, "%s", group_detail());
}

static void fail_unsuitable(struct group *g, const struct endpoint *ep, uint32_t rank)
{
	int rc = is_suitable(ep, rank);

	if (rc < 0)
		formation_fail(g, -rc, "%s", group_detail());
}

void formation_peer_ended(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node) {
		uint32_t r = is_founded(g) ? seat_of(g, ep) : UINT32_MAX;

		if (r < g->boards.size)
			formation_fail(g, ep->life->error ? ep->life->error : SLMPM_ECLOSED,
				       "rank %u (%s) of group %u: %s", r, ep->life->name, g->tag,
				       ep->life->reason[0] ? ep->life->reason :
							     "it has been closed");
	}
}

/* The others reach this member's memory, and it theirs, if it trusts them all (SLMPM_ATTACH). */
static void offer_memory(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (r != g->boards.rank && !g->formation->seats[r].ep->life->attach)
			return;
	reach_offer(&g->boards);
}

/* All have one another: it has formed. */
static void formation_complete(struct group *g)
{
	offer_memory(g);
	group_has_formed(g);
	for (uint32_t r = 0; r < g->boards.size; r++) {
		struct joining *j = g->formation->seats[r].joining;

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
		uint32_t r = is_founded(g) ? seat_of(g, ep) : UINT32_MAX;

		if (r < g->boards.size)
			fail_unsuitable(g, ep, r);
	}
}

static int ended_before(struct endpoint *ep, uint32_t rank)
{
	char text[ERROR_DETAIL];
	int rc = endpoint_error(ep);

	snprintf(text, sizeof(text), "%s", group_detail());
	return error_set(-rc, "slmpm_group_create: rank %u: %s", rank, text);
}

static int check_member(struct context *ctx, slmpm_peer peer, uint32_t rank)
{
	struct endpoint *ep = endpoint_of(peer);

	if (!ep)
		return endpoint_bad_handle(peer);
	if (ep->ctx != ctx)
		return error_set(SLMPM_EINVAL,
				 "slmpm_group_create: rank %u (%s) is of another context", rank,
				 ep->life->name);
	if (endpoint_has_ended(ep) || ep->closing)
		return ended_before(ep, rank);
	if (ep->state == SLMPM_PEER_UP)
		bootstrap_read_ahead(ep); /* a join that has been given up is none */
	return ep->state == SLMPM_PEER_UP ? is_suitable(ep, rank) : 0;
}

/* No two are the same; *SELF: the rank of this process, or BOARD_NONE. */
static int check_members(struct context *ctx, const slmpm_peer *members, uint32_t n, uint32_t *self)
{
	int rc = 0;

	*self = BOARD_NONE;
	for (uint32_t r = 0; r < n && rc == 0; r++) {
		slmpm_peer peer = endpoint_plain(members[r]);

		for (uint32_t before = 0; before < r; before++)
			if (endpoint_plain(members[before]).id == peer.id)
				return error_set(SLMPM_EINVAL,
						 "slmpm_group_create: ranks %u and %u are the same",
						 before, r);
		if (peer.id)
			rc = check_member(ctx, peer, r);
		else
			*self = r;
	}
	return rc;
}

/* What is known of each rank; this process has its own. */
static int sit_down(struct group *g, const slmpm_peer *members, uint32_t n, uint32_t self,
		    int board, int bell)
{
	struct formation *f = calloc(1, sizeof(*f));

	g->formation = f;
	if (f)
		f->seats = calloc(n, sizeof(*f->seats));
	if (!f || !f->seats || !group_size(g, n, self))
		return -ENOMEM;
	for (uint32_t r = 0; r < n; r++)
		f->seats[r] = (struct seat){.ep = r == self ? NULL : endpoint_of(members[r]),
					    .board = r == self ? board : -1,
					    .bell = r == self ? bell : -1};
	f->others = n - (self < n);
	return 0;
}

/* Of this process: which others watch. */
static int own_process(struct group *g)
{
	uint32_t self = g->boards.rank;

	if (self == BOARD_NONE)
		return 0;
	g->members[self].process.fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	return g->members[self].process.fd < 0 ? -errno : 0;
}

/* RANK could not begin to join, the last time: it may try again. */
static void fail_unjoined(struct group *g, struct groups *of, uint32_t rank)
{
	struct failed_join *last = &of->failed;

	if (!last->error || last->tag != g->tag || last->part != g->part)
		return;
	formation_in_vain(g, rank);
	formation_fail(g, last->error, "rank %u (%s) of group %u: it says: %s", rank,
		       of->ep->life->name, g->tag, last->text);
	last->error = 0;
}

void formation_no_join(struct groups *of)
{
	uint32_t rank;
	struct group *g = formation_of(of->ep, of->failed.tag, of->failed.part, &rank);

	if (g)
		fail_unjoined(g, of, rank);
}

/* By what the thread's detail says it is not begun: those that live learn it. */
static void formation_refuse(const struct context *ctx, const slmpm_peer *members, uint32_t n,
			     uint32_t tag, int error)
{
	char text[ERROR_DETAIL];

	snprintf(text, sizeof(text), "%s", group_detail());
	for (uint32_t r = 0; r < n; r++) {
		struct endpoint *ep = endpoint_of(endpoint_plain(members[r]));
		struct failed_join *failed = NULL;

		if (!ep || ep->ctx != ctx)
			continue;
		if (ep->rooms->groups)
			failed = &ep->rooms->groups->failed;
		if (failed && failed->error && failed->tag == tag && !failed->part)
			failed->error = 0;
		else
			refuse_waiting(ep, tag, false, error, text);
	}
	(void)error_set(error, "%s", text);
}

static void formation_take_waiting(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size && g->state == GROUP_IS_FORMING; r++) {
		const struct seat *s = &g->formation->seats[r];
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

struct group *formation_new(struct context *ctx, const slmpm_peer *members, uint32_t n,
			    uint32_t tag, const struct group *of, int timeout_ms, int *rc)
{
	struct algorithms as_set = {0};
	struct group *g;
	uint32_t self;
	int board, bell;

	*rc = check_members(ctx, members, n, &self);
	if (*rc < 0 && !of && *rc != -SLMPM_EINVAL && *rc != -SLMPM_EHANDLE)
		formation_refuse(ctx, members, n, tag, -*rc);
	if (*rc == 0 && !timeout_ms && (n > 1 || self != 0))
		*rc = error_set(SLMPM_EAGAIN, "slmpm_group_create: others are to answer");
	if (*rc == 0 && !of)
		*rc = algorithms_set(&as_set);
	g = *rc == 0 ? group_new(ctx, tag, self != BOARD_NONE, &board, &bell, rc) : NULL;
	if (!g)
		return NULL;
	g->part = of;
	g->algorithms = of ? of->algorithms : as_set;
	*rc = sit_down(g, members, n, self, board, bell);
	if (*rc == 0)
		*rc = own_process(g);
	if (*rc < 0) {
		struct seat unused = {.board = board, .bell = bell};

		*rc = error_system(*rc, "a group");
		if (!g->members) /* no rank has them */
			close_seat(&unused);
		group_free(g);
		return NULL;
	}
	return g;
}

void formation_begin(struct group *g)
{
	formation_take_waiting(g);
	if (!g->formation->others)
		formation_complete(g);
}

/* ---- its steps ------------------------------------------------------------------------------ */

/* RANK has come: what it has sent is the group's. */
static int take_seat(struct group *g, struct joining *j, uint32_t rank)
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
	g->formation->seats[rank].board = j->board;
	j->map = NULL;
	j->board = j->bell = -1;
	return 0;
}

static void formation_say(struct group *g, uint32_t due)
{
	for (uint32_t r = 0; r < g->boards.size && g->state == GROUP_IS_FORMING; r++)
		if (g->formation->seats[r].joining)
			joining_send(g->formation->seats[r].joining, due);
}

/* Of one without boards no member has another's, or watches its process, which may end before what
 * it has said as it left is read. */
static void drop_boards(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (r == g->boards.rank)
			continue;
		close_seat(&g->formation->seats[r]);
		group_remove(g, r);
	}
}

/* All have come: each is told of the others; of those that have no boards, where they listen, once
 * all do. */
static void formation_spread(struct group *g)
{
	int rc = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct seat *s = &g->formation->seats[r];

		g->apart |= s->ep && !bootstrap_passes(s->ep);
	}
	if (g->apart && g->whole) {
		rc = error_set(SLMPM_ENOTSUP, "not all can pass descriptors");
	} else if (g->apart) {
		drop_boards(g);
		rc = addresses_begin(g);
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

	j->port = f->seats[j->rank].port = port;
	f->seats[j->rank].machine = machine;
	if (++f->listening < f->others)
		return;
	if (addresses_known(g) < 0)
		formation_fail(g, SLMPM_ENOMEM, "no memory for a group");
	else
		formation_say(g, DUE_MEMBERS);
}

/* RANK has come in vain. */
static void formation_unseat(struct group *g, struct joining *j, uint32_t rank, int rc)
{
	char text[ERROR_DETAIL];
	int error = -error_system(rc, "its board, bell and process cannot be kept");

	snprintf(text, sizeof(text), "%s", group_detail());
	formation_in_vain(g, rank);
	formation_fail(g, error, "rank %u (%s) of group %u: %s", rank, j->ep->life->name, g->tag,
		       text);
	joining_end(j, error, text);
}

void formation_joined(struct group *g, struct joining *j, uint32_t rank)
{
	struct formation *f = g->formation;
	int rc = take_seat(g, j, rank);

	if (rc < 0) {
		formation_unseat(g, j, rank, rc);
		return;
	}
	j->group = g;
	j->rank = rank;
	f->seats[rank].joining = j;
	f->seats[rank].withdrew = f->seats[rank].expired = false;
	if (++f->come == f->others)
		formation_spread(g);
}

int32_t formation_fds(const struct group *g, uint32_t rank, int fds[WIRE_GROUP_FDS])
{
	const struct seat *s = &g->formation->seats[rank];

	fds[0] = s->board;
	fds[1] = s->ep ? g->boards.bells[rank] : s->bell;
	fds[2] = g->members[rank].process.fd;
	return g->boards.processes[rank];
}

void formation_ready(struct joining *j)
{
	struct group *g = j->group;

	j->ready = true;
	g->formation->seats[j->rank].ready = true;
	if (++g->formation->ready == g->formation->others)
		formation_complete(g);
}

void formation_withdrawn(struct group *g, uint32_t rank, int error, const char *text)
{
	struct formation *f = g->formation;
	struct seat *s = &f->seats[rank];

	s->joining = NULL;
	s->withdrew = true;
	s->expired = error == SLMPM_ETIMEOUT;
	if (f->come == f->others && error == SLMPM_ETIMEOUT && formation_missing(g) != rank) {
		formation_late(g, -1);
		return;
	}
	if (f->come == f->others) {
		formation_fail(g, error, "rank %u (%s) of group %u: it says: %s", rank,
			       s->ep->life->name, g->tag, text);
		return;
	}
	f->come--;
	close_seat(s);
	group_remove(g, rank);
	formation_take_waiting(g); /* another one of its joins */
}
