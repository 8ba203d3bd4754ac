/* SPDX-License-Identifier: BSD-3-Clause */
/* How a group is founded: its members are checked, and what is known of each is noted; where it
 * cannot be, those that join are refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/formation.h"

/* ---- its members ----------------------------------------------------------------------------- */

/* RC, of which the detail says more, is RANK's. */
static COLD int of_rank(uint32_t rank, int rc)
{
	char text[ERROR_DETAIL];

	snprintf(text, sizeof(text), "%s", group_detail());
	return error_set(-rc, "rank %u: %s", rank, text);
}

static int check_member(struct context *ctx, slmpm_peer peer, uint32_t rank)
{
	struct endpoint *ep = endpoint_of(peer);

	if (!ep)
		return of_rank(rank, endpoint_bad_handle(peer));
	if (ep->ctx != ctx)
		return error_set(SLMPM_EINVAL, "rank %u (%s) is of another context", rank,
				 ep->life->name);
	if (ep->life->lacks && endpoint_has_ended(ep))
		return error_set(ep->life->error, "this process, for rank %u (%s): %s", rank,
				 ep->life->name, ep->life->reason);
	if (endpoint_has_ended(ep) || ep->closing)
		return of_rank(rank, endpoint_error(ep));
	if (ep->state == SLMPM_PEER_UP)
		bootstrap_read_ahead(ep); /* a join that has been given up is none */
	return ep->state == SLMPM_PEER_UP ? joiner_suits(ep, rank) : 0;
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
				return error_set(SLMPM_EINVAL, "ranks %u and %u are the same",
						 before, r);
		if (peer.id)
			rc = check_member(ctx, peer, r);
		else
			*self = r;
	}
	return rc;
}

/* What is known of each rank; this process has its own. */
static int await_joiners(struct group *g, const slmpm_peer *members, uint32_t n, uint32_t self,
			 int board, int bell)
{
	struct formation *f = calloc(1, sizeof(*f));

	g->formation = f;
	if (f)
		f->joiners = calloc(n, sizeof(*f->joiners));
	if (!f || !f->joiners || !group_size(g, n, self))
		return -ENOMEM;
	for (uint32_t r = 0; r < n; r++)
		f->joiners[r] = (struct joiner){.ep = r == self ? NULL : endpoint_of(members[r]),
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

/* By what the thread's detail says it is not begun: those that live learn it. */
static void refuse_all(const struct context *ctx, const slmpm_peer *members, uint32_t n,
		       uint32_t tag, int error)
{
	char text[ERROR_DETAIL];

	snprintf(text, sizeof(text), "%s", group_detail());
	for (uint32_t r = 0; r < n; r++) {
		struct endpoint *ep = endpoint_of(endpoint_plain(members[r]));

		if (ep && ep->ctx == ctx && !formation_forget(ep, tag, false))
			formation_refuse(ep, tag, false, error, text);
	}
	(void)error_set(error, "%s", text);
}

/* ---- made ------------------------------------------------------------------------------------ */

/* Of N members that have been checked, of which this process is SELF. As formation_new. */
static struct group *formation_make(struct context *ctx, const slmpm_peer *members, uint32_t n,
				    uint32_t self, uint32_t tag, const struct group *of, int *rc)
{
	struct algorithms as_set = {0};
	struct group *g;
	int board, bell;

	*rc = of ? 0 : algorithms_set(&as_set);
	g = *rc == 0 ? group_new(ctx, tag, self != BOARD_NONE, &board, &bell, rc) : NULL;
	if (!g)
		return NULL;
	g->part = of;
	g->algorithms = of ? of->algorithms : as_set;
	*rc = await_joiners(g, members, n, self, board, bell);
	if (*rc == 0)
		*rc = own_process(g);
	if (*rc < 0) {
		struct joiner unused = {.board = board, .bell = bell};

		*rc = error_system(*rc, "a group");
		if (!g->members) /* no rank has them */
			joiner_close(&unused);
		group_free(g);
		return NULL;
	}
	return g;
}

struct group *formation_new(const char *call, struct context *ctx, const slmpm_peer *members,
			    uint32_t n, uint32_t tag, const struct group *of, int timeout_ms,
			    int *rc)
{
	struct group *g = NULL;
	uint32_t self;
	bool local; /* an error of the arguments: the others need not know */

	*rc = check_members(ctx, members, n, &self);
	local = *rc == 0 && timeout_ms == 0 && (n > 1 || self != 0);
	if (local)
		*rc = error_set(SLMPM_EAGAIN,
				"a timeout of 0 is not enough for the others to answer");
	if (*rc == 0)
		g = formation_make(ctx, members, n, self, tag, of, rc);
	if (g || of)
		return g;
	local = local || *rc == -SLMPM_EINVAL || *rc == -SLMPM_EHANDLE;
	*rc = error_name_call(call, *rc);
	if (!local)
		refuse_all(ctx, members, n, tag, -*rc);
	return NULL;
}
