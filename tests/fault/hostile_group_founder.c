/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* A peer that lies about a group that it founds (hostile_group.c). */
#include <sys/socket.h>
#include <unistd.h>

#include <slmpm_group.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_group.h"
#include "tests/lib/test.h"

#define MEMBERS_MOST 6 /* one more than a packet has */

static struct victim v;

static int64_t join_it(slmpm_peer peer, const struct offence *o)
{
	slmpm_group group;
	int rc = slmpm_group_join(&group, peer, RAW_GROUP_TAG, 2000 * actor_slow());

	CHECK(rc < 0, "%s: a group has formed", o->name);
	return rc;
}

static const struct trial trial_joined = {.inspect = join_it};

static void say_member(struct raw_peer *p, uint32_t rank, int memory, int ring, int ended)
{
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);
	const int fds[] = {memory, ring, ended};

	g.rank = LITTLE_32(rank);
	g.pid = (int32_t)LITTLE_32((uint32_t)getpid());
	raw_group_say(p, g, fds, 3);
}

static void member(struct raw_peer *p, uint32_t rank)
{
	say_member(p, rank, raw_group_right_board(), raw_group_bell(SOCK_DGRAM),
		   raw_group_process());
}

static void begin_apart(struct raw_peer *p, const char *host)
{
	struct wire_group g = raw_group_of(GROUP_BEGIN, 1);

	raw_group_await(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.what = LITTLE_32(WIRE_GROUP_APART);
	snprintf(g.text, sizeof(g.text), "%s", host);
	raw_group_say(p, g, NULL, 0);
}

static void begin_at_a_name(struct raw_peer *p)
{
	begin_apart(p, "localhost");
}

static void member_at_no_port(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);

	begin_apart(p, "127.0.0.1");
	g.rank = LITTLE_32(1);
	snprintf(g.url, sizeof(g.url), "shm:somewhere");
	raw_group_say(p, g, NULL, 0);
}

static void board_beside_port(struct raw_peer *p)
{
	begin_apart(p, "127.0.0.1");
	member(p, 1);
}

static void begin_oddly(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_BEGIN, 1);

	raw_group_await(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.what = LITTLE_32(8);
	raw_group_say(p, g, NULL, 0);
}

static void begin_local(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_BEGIN, 1);

	raw_group_await(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.what = LITTLE_32(WIRE_GROUP_LOCAL); /* but not WIRE_GROUP_APART */
	raw_group_say(p, g, NULL, 0);
}

static void begin_by_unknown(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_BEGIN, 1);

	raw_group_await(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.kinds[0] = LITTLE_32(0xf); /* barriers by the 15th algorithm */
	raw_group_say(p, g, NULL, 0);
}

static void begin_by_others(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_BEGIN, 1);

	raw_group_await(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.kinds[1] = LITTLE_32(1u << 12); /* of a twelfth kind of operation */
	raw_group_say(p, g, NULL, 0);
}

static void begin_with_none(struct raw_peer *p)
{
	raw_group_found(p, 0, 0);
}

static void begin_with_many(struct raw_peer *p)
{
	raw_group_found(p, SLMPM_GROUP_MAX + 1, 0);
}

static void begin_beyond(struct raw_peer *p)
{
	raw_group_found(p, 3, 3);
}

static void begin_twice(struct raw_peer *p)
{
	raw_group_found(p, 3, 0);
	raw_group_begin(p, 3, 0);
}

static void member_before_all(struct raw_peer *p)
{
	raw_group_await(p, GROUP_JOIN);
	member(p, 0);
}

static void member_out_of_turn(struct raw_peer *p)
{
	raw_group_found(p, 4, 0);
	member(p, 2);
}

static void member_again(struct raw_peer *p)
{
	raw_group_found(p, 4, 0);
	member(p, 1);
	member(p, 1);
}

static void member_itself(struct raw_peer *p)
{
	raw_group_found(p, 4, 1);
	member(p, 0);
	member(p, 1);
}

static void member_too_many(struct raw_peer *p)
{
	raw_group_found(p, 2, 0);
	member(p, 1);
	member(p, 2);
}

static void member_without_process(struct raw_peer *p)
{
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);
	const int fds[] = {raw_group_right_board(), raw_group_bell(SOCK_DGRAM)};

	raw_group_found(p, 3, 0);
	g.rank = LITTLE_32(1);
	raw_group_say(p, g, fds, 2);
}

static void member_without_board(struct raw_peer *p)
{
	raw_group_found(p, 3, 0);
	say_member(p, 1, raw_group_board(RAW_GROUP_BOARD, RAW_GROUP_SIZE),
		   raw_group_bell(SOCK_DGRAM), raw_group_process());
}

static void member_without_bell(struct raw_peer *p)
{
	raw_group_found(p, 3, 0);
	say_member(p, 1, raw_group_right_board(), raw_group_process(), raw_group_process());
}

/* It is a socket, but to others than those on this machine. */
static void member_with_wide_bell(struct raw_peer *p)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	raw_group_found(p, 3, 0);
	say_member(p, 1, raw_group_right_board(), fd, raw_group_process());
}

static void member_of_no_process(struct raw_peer *p)
{
	raw_group_found(p, 3, 0);
	say_member(p, 1, raw_group_right_board(), raw_group_bell(SOCK_DGRAM),
		   raw_group_bell(SOCK_DGRAM));
}

/* A packet that is of N members, from RANK on, with the descriptors of HAVE. */
static void members(struct raw_peer *p, uint32_t rank, uint32_t n, int have)
{
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);
	int fds[MEMBERS_MOST * 3];

	for (int i = 0; i < have; i++) {
		fds[3 * i] = raw_group_right_board();
		fds[3 * i + 1] = raw_group_bell(SOCK_DGRAM);
		fds[3 * i + 2] = raw_group_process();
	}
	g.rank = LITTLE_32(rank);
	g.size = LITTLE_32(n);
	raw_group_say(p, g, fds, 3 * have);
}

static void members_beyond(struct raw_peer *p)
{
	raw_group_found(p, 4, 0);
	members(p, 1, 4, 4);
}

static void members_beyond_own(struct raw_peer *p)
{
	raw_group_found(p, 4, 3);
	members(p, 0, 4, 4);
}

static void members_from_beyond(struct raw_peer *p)
{
	raw_group_found(p, 4, 0);
	members(p, 4, 2, 2);
}

static void members_out_of_turn(struct raw_peer *p)
{
	raw_group_found(p, 6, 0);
	members(p, 2, 2, 2);
}

static void members_again(struct raw_peer *p)
{
	raw_group_found(p, 6, 0);
	members(p, 1, 2, 2);
	members(p, 2, 2, 2);
}

static void members_of_none(struct raw_peer *p)
{
	raw_group_found(p, 6, 0);
	members(p, 1, 0, 2);
}

static void members_with_few(struct raw_peer *p)
{
	raw_group_found(p, 6, 0);
	members(p, 1, 4, 3);
}

static void members_with_more(struct raw_peer *p)
{
	raw_group_found(p, 6, 0);
	members(p, 1, 3, 4);
}

static void members_too_many(struct raw_peer *p)
{
	raw_group_found(p, 8, 0);
	members(p, 1, 6, 6);
}

static void members_too_many_say(struct raw_peer *p)
{
	raw_group_found(p, 8, 0);
	members(p, 1, 6, 5);
}

static void members_by_billions(struct raw_peer *p)
{
	const int fds[] = {raw_group_right_board(), raw_group_bell(SOCK_DGRAM)};
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);

	raw_group_found(p, 8, 0);
	g.rank = LITTLE_32(1);
	g.size = LITTLE_32(0x55555556); /* times 3: 2 */
	raw_group_say(p, g, fds, 2);
}

/* Of two, of whom the other has these descriptors. */
static void members_with(struct raw_peer *p, int memory, int ring, int ended)
{
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);
	const int fds[] = {raw_group_right_board(),
			   raw_group_bell(SOCK_DGRAM),
			   raw_group_process(),
			   memory,
			   ring,
			   ended};

	raw_group_found(p, 4, 0);
	g.rank = LITTLE_32(1);
	g.size = LITTLE_32(2);
	raw_group_say(p, g, fds, 6);
}

static void members_one_without_board(struct raw_peer *p)
{
	members_with(p, raw_group_board(RAW_GROUP_BOARD, RAW_GROUP_SIZE),
		     raw_group_bell(SOCK_DGRAM), raw_group_process());
}

static void members_one_without_bell(struct raw_peer *p)
{
	members_with(p, raw_group_right_board(), raw_group_right_board(), raw_group_process());
}

static void members_one_without_process(struct raw_peer *p)
{
	members_with(p, raw_group_right_board(), raw_group_bell(SOCK_DGRAM),
		     raw_group_bell(SOCK_DGRAM));
}

static void formed_early(struct raw_peer *p)
{
	raw_group_found(p, 3, 0);
	member(p, 1);
	raw_group_step(p, GROUP_FORMED, 1);
}

static void formed_at_once(struct raw_peer *p)
{
	raw_group_await(p, GROUP_JOIN);
	raw_group_step(p, GROUP_FORMED, 1);
}

static void refused_for_nothing(struct raw_peer *p)
{
	raw_group_await(p, GROUP_JOIN);
	raw_group_say(p,
		      (struct wire_group){.step = LITTLE_32(GROUP_REFUSED), .number = LITTLE_32(1)},
		      NULL, 0);
}

static void refused_in_advance(struct raw_peer *p)
{
	raw_group_await(p, GROUP_JOIN);
	raw_group_step(p, GROUP_REFUSED, 2);
}

static const struct offence founders[] = {
	{"R8", "a name to listen at", begin_at_a_name, RAW_GROUP_RULE, 0},
	{"R8", "a member at no port", member_at_no_port, RAW_GROUP_RULE, 0},
	{"R8", "a board beside a port", board_beside_port, RAW_GROUP_RULE, 0},
	{"R8", "a group of a kind that there is not", begin_oddly, RAW_GROUP_RULE, 0},
	{"R8", "meets in memory as it does", begin_local, RAW_GROUP_RULE, 0},
	{"R8", "an algorithm that there is not", begin_by_unknown, RAW_GROUP_RULE, 0},
	{"R8", "a kind that there is not", begin_by_others, RAW_GROUP_RULE, 0},
	{"R5", "a group of none", begin_with_none, RAW_GROUP_RULE, 0},
	{"R10", "a group of too many", begin_with_many, RAW_GROUP_RULE, 0},
	{"R5", "a rank beyond", begin_beyond, RAW_GROUP_RULE, 0},
	{"R8", "begins twice", begin_twice, RAW_GROUP_RULE, 0},
	{"R8", "a member before all", member_before_all, RAW_GROUP_RULE, 0},
	{"R8", "a member out of turn", member_out_of_turn, RAW_GROUP_RULE, 0},
	{"R8", "a member again", member_again, RAW_GROUP_RULE, 0},
	{"R8", "the member itself", member_itself, RAW_GROUP_RULE, 0},
	{"R8", "a member too many", member_too_many, RAW_GROUP_RULE, 0},
	{"S1", "a member without process", member_without_process, RAW_GROUP_RULE, 0},
	{"S3", "a member's board unsealed", member_without_board, RAW_GROUP_RULE, 0},
	{"S4", "a member's bell is none", member_without_bell, RAW_GROUP_RULE, 0},
	{"S4", "a member's bell goes elsewhere", member_with_wide_bell, RAW_GROUP_RULE, 0},
	{"S4", "a member's process is none", member_of_no_process, RAW_GROUP_RULE, 0},
	{"R5", "members beyond the group", members_beyond, RAW_GROUP_RULE, 0},
	{"R5", "members beyond, but for itself", members_beyond_own, RAW_GROUP_RULE, 0},
	{"R5", "members from beyond the group", members_from_beyond, RAW_GROUP_RULE, 0},
	{"R8", "members out of turn", members_out_of_turn, RAW_GROUP_RULE, 0},
	{"R8", "a member again, of two", members_again, RAW_GROUP_RULE, 0},
	{"S1", "two members' for one", members_of_none, RAW_GROUP_RULE, 0},
	{"S1", "three members' for four", members_with_few, RAW_GROUP_RULE, 0},
	{"S1", "four members' for three", members_with_more, RAW_GROUP_RULE, 0},
	{"R10", "more than a packet has", members_too_many, "control packet", 0},
	{"R10", "or says so", members_too_many_say, RAW_GROUP_RULE, 0},
	{"R10", "members by billions", members_by_billions, RAW_GROUP_RULE, 0},
	{"S3", "one of two boards unsealed", members_one_without_board, RAW_GROUP_RULE, 0},
	{"S4", "one of two bells is none", members_one_without_bell, RAW_GROUP_RULE, 0},
	{"S4", "one of two processes is none", members_one_without_process, RAW_GROUP_RULE, 0},
	{"R8", "formed early", formed_early, RAW_GROUP_RULE, 0},
	{"R8", "formed at once", formed_at_once, RAW_GROUP_RULE, 0},
	{"R8", "refused for nothing", refused_for_nothing, RAW_GROUP_RULE, 0},
	{"R8", "refused in advance", refused_in_advance, RAW_GROUP_RULE, 0},
};

int main(void)
{
	victim_begin(&v, "hostile-founder");
	SURVIVE(&v, &trial_joined, founders);
	victim_end(&v);
	return 0;
}
