/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What calls of groups refuse, they refuse by their own name, or that of the operation's kind, and
 * with the reason: of no group, of members, of who founds the group and is none, of one that
 * serves, and while it forms, when they say for whom it waits.
 */
#include <slmpm_deposit.h>
#include <string.h>

#include "tests/lib/circle.h"

#define TAG 6

enum { GO = 1, DONE };

static const struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
static const struct slmpm_how later = {.size = sizeof(later), .timeout_ms = PATIENCE};
static const struct slmpm_how at_once = {.size = sizeof(at_once)};
static const struct slmpm_drive drive = {.size = sizeof(drive), .kind = SLMPM_COLL_BARRIER};
static int64_t word;

/* CALL's error begins with its NAME, once, and says WHY. */
#define NAMED(call, error, name, why)                                                              \
	do {                                                                                       \
		REFUSED(call, error, ": " name ": ");                                              \
		CHECK(!strstr(slmpm_error_detail(), name ": " name) &&                             \
			      strstr(slmpm_error_detail(), why),                                   \
		      "%s: \"%s\" lacks \"%s\"", #call, slmpm_error_detail(), why);                \
	} while (0)

/* Every call that does an operation, in each of its forms: ERROR, for WHY. */
static void operations_refuse(slmpm_group g, int error, const char *why)
{
	slmpm_group_memory memory;
	slmpm_group part;
	slmpm_req req;

	NAMED(slmpm_barrier(g, PATIENCE), error, "barrier", why);
	NAMED(slmpm_collective_start(g, &barrier, NULL, &req), error, "slmpm_collective_start",
	      why);
	NAMED(slmpm_collective_start(g, &barrier, &later, NULL), error, "slmpm_collective_start",
	      why);
	NAMED(slmpm_group_alloc(&memory, g, 1, SLMPM_ALLOC_BESIDE, 0, PATIENCE), error,
	      "slmpm_group_alloc", why);
	NAMED(slmpm_group_split(&part, g, 1, 0, PATIENCE), error, "slmpm_group_split", why);
}

/* And those that are for members alone. */
static void members_calls_refuse(slmpm_group g, int error, const char *why)
{
	const struct slmpm_put_spec put = {
		.size = sizeof(put), .space = 1, .from = &word, .len = sizeof(word)};
	slmpm_prepared prepared;
	slmpm_peer peer;

	operations_refuse(g, error, why);
	NAMED(slmpm_collective_prepare(&prepared, g, &barrier), error, "slmpm_collective_prepare",
	      why);
	NAMED(slmpm_group_serve(g, &later), error, "slmpm_group_serve", why);
	NAMED(slmpm_group_peer(g, 0, &peer, PATIENCE), error, "slmpm_group_peer", why);
	NAMED(slmpm_group_shrink(g, PATIENCE), error, "slmpm_group_shrink", why);
	NAMED(slmpm_put_all(g, &put, &later, NULL), error, "slmpm_put_all", why);
}

/* ---- of a member ----------------------------------------------------------------------------- */

static void member_refuses(slmpm_group g)
{
	struct slmpm_combine combine = {.size = sizeof(combine)};
	struct slmpm_coll own = {.size = sizeof(own),
				 .kind = SLMPM_COLL_ALLREDUCE,
				 .from = SLMPM_IN_PLACE,
				 .to = &word,
				 .count = 1,
				 .combine = &combine};
	struct slmpm_coll wrong = barrier;
	slmpm_prepared prepared;
	slmpm_req req;

	NAMED(slmpm_barrier(g, 0), SLMPM_EAGAIN, "barrier", "a timeout of 0");
	NAMED(slmpm_collective_start(g, &barrier, &at_once, NULL), SLMPM_EAGAIN,
	      "slmpm_collective_start", "a timeout of 0");
	wrong.kind = 12;
	NAMED(slmpm_collective(g, &wrong, PATIENCE), SLMPM_EINVAL, "slmpm_collective",
	      "no kind 12");
	NAMED(slmpm_collective_start(g, &wrong, NULL, &req), SLMPM_EINVAL, "slmpm_collective_start",
	      "no kind 12");
	NAMED(slmpm_group_plan(g, "nonsense"), SLMPM_EINVAL, "slmpm_group_plan", "line 1");
	wrong.kind = SLMPM_COLL_BARRIER;
	wrong.reserved = 1;
	NAMED(slmpm_collective(g, &wrong, PATIENCE), SLMPM_EINVAL, "barrier", ".reserved");
	NAMED(slmpm_collective_start(g, &wrong, NULL, &req), SLMPM_EINVAL, "slmpm_collective_start",
	      ".reserved");
	NAMED(slmpm_collective_prepare(&prepared, g, &wrong), SLMPM_EINVAL,
	      "slmpm_collective_prepare", ".reserved");
	NAMED(slmpm_collective(g, &own, PATIENCE), SLMPM_EINVAL, "allreduce", "no function");
	NAMED(slmpm_collective_start(g, &own, NULL, &req), SLMPM_EINVAL, "slmpm_collective_start",
	      "no function");
	combine.size = 0;
	NAMED(slmpm_collective_prepare(&prepared, g, &own), SLMPM_EINVAL,
	      "slmpm_collective_prepare", ".combine: set .size");
	OK(slmpm_collective_prepare(&prepared, g, &barrier));
	NAMED(slmpm_prepared_start(prepared, &at_once, NULL), SLMPM_EAGAIN, "slmpm_prepared_start",
	      "a timeout of 0");
	OK(slmpm_group_serve(g, &later));
	operations_refuse(g, SLMPM_ESTATE, "is driven");
	NAMED(slmpm_prepared_start(prepared, NULL, &req), SLMPM_ESTATE, "slmpm_prepared_start",
	      "is driven");
	OK(slmpm_group_serve(g, NULL));
}

static void join(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	if (i == 0)
		member_refuses(group);
	OK(slmpm_group_destroy(group));
	if (i == 1) { /* that of rank 0 is waited for */
		OK(slmpm_group_join_start(&group, founder, TAG));
		members_calls_refuse(group, SLMPM_EAGAIN, ", which founds it, has not all members");
		NAMED(slmpm_group_meet(group, 50), SLMPM_ETIMEOUT, "slmpm_group_meet",
		      ", which founds it, has not all members");
	}
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	if (i == 1)
		OK(slmpm_group_destroy(group));
}

/* ---- of none --------------------------------------------------------------------------------- */

static void none_refuses(void)
{
	const struct slmpm_put_spec put = {.size = sizeof(put), .space = 1};
	const struct slmpm_deposits deposits = {.size = sizeof(deposits)};
	const slmpm_group none = {0};
	struct slmpm_group_info info = {.size = sizeof(info)};
	slmpm_group_memory memory;
	slmpm_prepared prepared;
	slmpm_group part;
	slmpm_peer peer;
	slmpm_req req;
	uint64_t len;
	void *base;

#define NONE(call, name) NAMED(call, SLMPM_EHANDLE, name, "a zero ")
	NONE(slmpm_barrier(none, PATIENCE), "barrier");
	NONE(slmpm_collective(none, NULL, PATIENCE), "slmpm_collective");
	NONE(slmpm_collective_start(none, &barrier, NULL, &req), "slmpm_collective_start");
	NONE(slmpm_collective_prepare(&prepared, none, &barrier), "slmpm_collective_prepare");
	NONE(slmpm_prepared_start((slmpm_prepared){0}, NULL, &req), "slmpm_prepared_start");
	NONE(slmpm_prepared_destroy((slmpm_prepared){0}), "slmpm_prepared_destroy");
	NONE(slmpm_group_alloc(&memory, none, 1, 0, 0, PATIENCE), "slmpm_group_alloc");
	NONE(slmpm_group_part((slmpm_group_memory){0}, 0, &base, &len), "slmpm_group_part");
	NONE(slmpm_group_free((slmpm_group_memory){0}), "slmpm_group_free");
	NONE(slmpm_group_split(&part, none, 0, 0, PATIENCE), "slmpm_group_split");
	NONE(slmpm_group_query(none, &info), "slmpm_group_query");
	NONE(slmpm_group_peer(none, 0, &peer, PATIENCE), "slmpm_group_peer");
	NONE(slmpm_group_space(none, 1, &word, sizeof(word)), "slmpm_group_space");
	NONE(slmpm_group_plan(none, NULL), "slmpm_group_plan");
	NONE(slmpm_group_meet(none, PATIENCE), "slmpm_group_meet");
	NONE(slmpm_group_shrink(none, PATIENCE), "slmpm_group_shrink");
	NONE(slmpm_group_destroy(none), "slmpm_group_destroy");
	NONE(slmpm_group_serve(none, NULL), "slmpm_group_serve");
	NONE(slmpm_group_drive(none, &drive, &later, NULL), "slmpm_group_drive");
	NONE(slmpm_put_all(none, &put, &later, NULL), "slmpm_put_all");
	NONE(slmpm_group_deposits(none, &deposits), "slmpm_group_deposits");
	NONE(slmpm_group_join(&part, (slmpm_peer){0}, TAG, PATIENCE), "slmpm_group_join");
	NONE(slmpm_group_join_start(&part, (slmpm_peer){0}, TAG), "slmpm_group_join_start");
}

/* ---- of who founds --------------------------------------------------------------------------- */

static void founds_wrongly(slmpm_ctx ctx, const slmpm_peer *peers)
{
	slmpm_peer members[3] = {peers[0], peers[1], peers[0]};
	slmpm_group group = {ctx.id};

	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_EHANDLE, "is that of a context");
	group.id = peers[0].id;
	REFUSED(slmpm_group_destroy(group), SLMPM_EHANDLE, "is that of a peer");

	NAMED(slmpm_group_create_start(&group, ctx, members, 3, TAG), SLMPM_EINVAL,
	      "slmpm_group_create_start", "ranks 0 and 2");
	NAMED(slmpm_group_create(&group, ctx, members, 3, TAG, PATIENCE), SLMPM_EINVAL,
	      "slmpm_group_create", "ranks 0 and 2");
	members[2].id = 77;
	NAMED(slmpm_group_create_start(&group, ctx, members, 3, TAG), SLMPM_EHANDLE,
	      "slmpm_group_create_start", "rank 2: no such peer");
}

/* What only a member has. */
static void founder_has_none(slmpm_group g)
{
	const char *why = "founded the group and is no member";

	NAMED(slmpm_group_space(g, 1, &word, sizeof(word)), SLMPM_ESTATE, "slmpm_group_space", why);
	NAMED(slmpm_group_space(g, 1, NULL, 0), SLMPM_ESTATE, "slmpm_group_space", why);
	NAMED(slmpm_group_plan(g, NULL), SLMPM_ESTATE, "slmpm_group_plan", why);
	NAMED(slmpm_group_deposits(g, NULL), SLMPM_ESTATE, "slmpm_group_deposits", why);
	NAMED(slmpm_group_serve(g, NULL), SLMPM_ESTATE, "slmpm_group_serve", why);
	NAMED(slmpm_group_meet(g, PATIENCE), SLMPM_ESTATE, "slmpm_group_meet", why);
}

int main(void)
{
	struct circle c = {.flags = 0};
	slmpm_group group;

	circle_begin(&c, 2, join, NULL, 30);
	founds_wrongly(c.ctx, c.peers);
	none_refuses();
	OK(slmpm_group_create(&group, c.ctx, c.peers, 2, TAG, PATIENCE));
	members_calls_refuse(group, SLMPM_ESTATE, "founded the group and is no member");
	founder_has_none(group);
	OK(slmpm_group_destroy(group));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	OK(slmpm_group_create_start(&group, c.ctx, c.peers, 2, TAG));
	NAMED(slmpm_group_drive(group, &drive, &later, NULL), SLMPM_EAGAIN, "slmpm_group_drive",
	      "rank 0 (");
	OK(slmpm_group_destroy(group));
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	circle_end(&c);
	return 0;
}
