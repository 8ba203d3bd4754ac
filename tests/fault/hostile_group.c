/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that lies about a group that it joins. Its channel ends with the violation's name, nothing
 * is left, and an honest peer works on.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <slmpm_group.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_group.h"
#include "tests/lib/test.h"

static struct victim v;

/* ---- who joins ------------------------------------------------------------------------------ */

static void short_join(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_JOIN, 1);

	raw_say_packet(p->fd, WIRE_GROUP, &g, sizeof(g) - 8, raw_group_right_board());
}

static void join_without(struct raw_peer *p)
{
	raw_group_step(p, GROUP_JOIN, 1);
}

static void join_with_one(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_JOIN, 1);

	raw_say_packet(p->fd, WIRE_GROUP, &g, sizeof(g), raw_group_right_board());
}

static void join_failed_with(struct raw_peer *p)
{
	const int fds[] = {raw_group_right_board(), raw_group_bell(SOCK_DGRAM)};
	struct wire_group g = raw_group_of(GROUP_JOIN, 1);

	g.error = LITTLE_32(1);
	raw_group_say(p, g, fds, 2);
}

static void join_failed_oddly(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_JOIN, 1);

	g.error = LITTLE_32(999);
	raw_group_say(p, g, NULL, 0);
}

static void join_with_three(struct raw_peer *p)
{
	const int fds[] = {raw_group_right_board(), raw_group_bell(SOCK_DGRAM),
			   raw_group_process()};

	raw_group_say(p, raw_group_of(GROUP_JOIN, 1), fds, 3);
}

static void join_unsealed(struct raw_peer *p)
{
	raw_group_say_join(p, 1, raw_group_board(RAW_GROUP_BOARD, 0), raw_group_bell(SOCK_DGRAM));
}

static void join_writable(struct raw_peer *p)
{
	raw_group_say_join(p, 1, raw_group_board(RAW_GROUP_BOARD, RAW_GROUP_SIZE | F_SEAL_SEAL),
			   raw_group_bell(SOCK_DGRAM));
}

static void join_open_to_seals(struct raw_peer *p)
{
	raw_group_say_join(p, 1,
			   raw_group_board(RAW_GROUP_BOARD, RAW_GROUP_SIZE | F_SEAL_FUTURE_WRITE),
			   raw_group_bell(SOCK_DGRAM));
}

static void join_short_board(struct raw_peer *p)
{
	raw_group_say_join(p, 1, raw_group_board(4096, RAW_GROUP_SEALS),
			   raw_group_bell(SOCK_DGRAM));
}

static void join_socket_as_board(struct raw_peer *p)
{
	raw_group_say_join(p, 1, raw_group_bell(SOCK_DGRAM), raw_group_bell(SOCK_DGRAM));
}

static void join_stream_as_bell(struct raw_peer *p)
{
	raw_group_say_join(p, 1, raw_group_right_board(), raw_group_bell(SOCK_STREAM));
}

static void join_pipe_as_bell(struct raw_peer *p)
{
	int ends[2];

	CHECK(pipe(ends) == 0, "no pipe");
	raw_group_say_join(p, 1, raw_group_right_board(), ends[1]);
}

static void join_zero(struct raw_peer *p)
{
	raw_group_join(p, 0);
}

static void join_two(struct raw_peer *p)
{
	raw_group_join(p, 2);
}

static void join_oddly(struct raw_peer *p)
{
	const int fds[] = {raw_group_right_board(), raw_group_bell(SOCK_DGRAM)};
	struct wire_group g = raw_group_of(GROUP_JOIN, 1);

	g.what = LITTLE_32(2);
	raw_group_say(p, g, fds, 2);
}

static void join_again(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_join(p, 1);
}

static void join_without_end(struct raw_peer *p)
{
	for (uint32_t i = 0; i <= WIRE_GROUP_JOINS; i++)
		raw_group_join(p, i + 1);
}

static void ready_for_nothing(struct raw_peer *p)
{
	raw_group_step(p, GROUP_READY, 1);
}

static void ready_before_all(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_step(p, GROUP_READY, 1);
}

static void ready_with_descriptor(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_READY, 1);

	raw_group_join(p, 1);
	raw_say_packet(p->fd, WIRE_GROUP, &g, sizeof(g), p->own.fd);
}

static void withdraw_for_nothing(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_say(
		p, (struct wire_group){.step = LITTLE_32(GROUP_WITHDRAWN), .number = LITTLE_32(1)},
		NULL, 0);
}

static void withdraw_unknown_error(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_WITHDRAWN, 1);

	g.error = LITTLE_32(WIRE_ERROR_LAST + 1);
	raw_group_join(p, 1);
	raw_group_say(p, g, NULL, 0);
}

static void found_unasked(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_step(p, GROUP_BEGIN, 1);
}

static void no_step(struct raw_peer *p)
{
	raw_group_step(p, 0, 1);
}

static void step_too_many(struct raw_peer *p)
{
	raw_group_step(p, GROUP_RELEASED + 1, 1);
}

static void fail_for_nothing(struct raw_peer *p)
{
	raw_group_step(p, GROUP_FAILED, 0);
}

static void fail_before_its_time(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_FAILED, 2);

	g.error = LITTLE_32(1);
	raw_group_join(p, 1);
	raw_group_say(p, g, NULL, 0);
}

static void listen_for_nothing(struct raw_peer *p)
{
	raw_group_step(p, GROUP_LISTENS, 1);
}

static void end_as_no_member(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_ENDED, 1);

	g.tag = 0;
	raw_group_say(p, g, NULL, 0);
}

/* By the connection of a join: for nothing; with an error, of none, it is dropped. */
static void end_a_join(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_ENDED, 0);

	g.tag = g.error = LITTLE_32(1);
	raw_group_say(p, g, NULL, 0);
	g.what = LITTLE_32(WIRE_GROUP_FOUNDS);
	raw_group_say(p, g, NULL, 0);
	g.error = 0;
	raw_group_say(p, g, NULL, 0);
}

static void release_as_no_member(struct raw_peer *p)
{
	raw_group_step(p, GROUP_RELEASED, 0);
}

static void show_as_no_member(struct raw_peer *p)
{
	raw_group_step(p, GROUP_VIEW, 1);
}

static void attend_as_no_member(struct raw_peer *p)
{
	raw_group_step(p, GROUP_ATTENDS, 1);
}

static const struct offence joins[] = {
	{"R8", "listens for nothing", listen_for_nothing, RAW_GROUP_RULE, 0},
	{"R8", "a member's end by what is none", end_as_no_member, RAW_GROUP_RULE, 0},
	{"R8", "an end of a join, for nothing", end_a_join, RAW_GROUP_RULE, 0},
	{"R8", "what a member shows by what is none", show_as_no_member, RAW_GROUP_RULE, 0},
	{"R8", "release by what is none", release_as_no_member, RAW_GROUP_RULE, 0},
	{"R8", "comes to a meeting by what is none", attend_as_no_member, RAW_GROUP_RULE, 0},
	{"S7", "half a join", short_join, RAW_GROUP_RULE, 0},
	{"S1", "a join without descriptors", join_without, RAW_GROUP_RULE, 0},
	{"S1", "a join with one", join_with_one, RAW_GROUP_RULE, 0},
	{"S1", "a join with three", join_with_three, RAW_GROUP_RULE, 0},
	{"S1", "a failed join with descriptors", join_failed_with, RAW_GROUP_RULE, 0},
	{"S1", "a failed join of no error", join_failed_oddly, RAW_GROUP_RULE, 0},
	{"S3", "a board that can shrink", join_unsealed, RAW_GROUP_RULE, 0},
	{"S3", "a board that others can write", join_writable, RAW_GROUP_RULE, 0},
	{"S3", "a board to be sealed later", join_open_to_seals, RAW_GROUP_RULE, 0},
	{"S4", "a board too short", join_short_board, RAW_GROUP_RULE, 0},
	{"S4", "a socket for a board", join_socket_as_board, RAW_GROUP_RULE, 0},
	{"S4", "a stream for a bell", join_stream_as_bell, RAW_GROUP_RULE, 0},
	{"S4", "a pipe for a bell", join_pipe_as_bell, RAW_GROUP_RULE, 0},
	{"R8", "join 0", join_zero, RAW_GROUP_RULE, 0},
	{"R8", "a join left out", join_two, RAW_GROUP_RULE, 0},
	{"R8", "a join again", join_again, RAW_GROUP_RULE, 0},
	{"R8", "a join of an unknown kind", join_oddly, RAW_GROUP_RULE, 0},
	{"R10", "joins without end", join_without_end, RAW_GROUP_RULE, 0},
	{"R8", "ready for nothing", ready_for_nothing, RAW_GROUP_RULE, 0},
	{"R8", "ready before all", ready_before_all, RAW_GROUP_RULE, 0},
	{"S1", "ready with a descriptor", ready_with_descriptor, RAW_GROUP_RULE, 0},
	{"R8", "withdrawn for nothing", withdraw_for_nothing, RAW_GROUP_RULE, 0},
	{"R8", "withdrawn, error 26", withdraw_unknown_error, RAW_GROUP_RULE, 0},
	{"R8", "founds what none joins", found_unasked, RAW_GROUP_RULE, 0},
	{"R6", "step 0", no_step, RAW_GROUP_RULE, 0},
	{"R6", "step 15", step_too_many, RAW_GROUP_RULE, 0},
	{"R8", "fails a group, for nothing", fail_for_nothing, RAW_GROUP_RULE, 0},
	{"R8", "fails one behind joins to come", fail_before_its_time, RAW_GROUP_RULE, 0},
};

/* ---- and is to be a member ------------------------------------------------------------------ */

static int64_t found(slmpm_peer peer, const struct offence *o)
{
	const slmpm_peer members[] = {peer, {0}};
	slmpm_group group;
	int rc = slmpm_group_create(&group, v.ctx, members, 2, RAW_GROUP_TAG, 2000 * actor_slow());

	CHECK(rc < 0, "%s: a group has formed", o->name);
	return rc;
}

static const struct trial trial_founded = {.inspect = found};

static void ready_twice_early(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_await(p, GROUP_BEGIN);
	raw_group_await(p, GROUP_MEMBER);
	raw_group_step(p, GROUP_BEGIN, 1);
}

static void ready_for_the_next(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_await(p, GROUP_BEGIN);
	raw_group_await(p, GROUP_MEMBER);
	raw_group_step(p, GROUP_READY, 2);
}

static void join_twice_in_one(struct raw_peer *p)
{
	raw_group_join(p, 1);
	raw_group_await(p, GROUP_BEGIN);
	raw_group_join(p, 1);
}

static void listen_beside_boards(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_LISTENS, 1);

	raw_group_join(p, 1);
	raw_group_await(p, GROUP_BEGIN);
	g.what = LITTLE_32(4711);
	raw_group_say(p, g, NULL, 0);
}

static const struct offence members[] = {
	{"R8", "listens beside boards", listen_beside_boards, RAW_GROUP_RULE, 0},
	{"R8", "begins what it joined", ready_twice_early, RAW_GROUP_RULE, 0},
	{"R8", "ready for the next", ready_for_the_next, RAW_GROUP_RULE, 0},
	{"R8", "joins what has begun", join_twice_in_one, RAW_GROUP_RULE, 0},
};

int main(void)
{
	victim_begin(&v, "hostile-group");
	SURVIVE(&v, &trial_legal, joins);
	SURVIVE(&v, &trial_founded, members);
	victim_end(&v);
	return 0;
}
