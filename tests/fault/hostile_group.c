/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * A peer that lies about groups: as one that joins, and as one that founds. Its channel ends with
 * the violation's name, nothing is left, and an honest peer works on.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <slmpm_group.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"
#include "tests/lib/test.h"

#define RULE  "packet of a group"
#define TAG   5
#define BOARD (2 * (4096 + 8192 + 262144)) /* slmpm/board/layout.h */
#define MAGIC UINT64_C(0x32647262706d6c73)
#define SIZE  (F_SEAL_SHRINK | F_SEAL_GROW)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif
#define SEALS (SIZE | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static struct victim v;

/* ---- packets -------------------------------------------------------------------------------- */

static void say(struct raw_peer *p, struct wire_group g, const int *fds, int count)
{
	g.head.type = LITTLE_32(WIRE_GROUP);
	g.head.length = LITTLE_32(sizeof(g));
	(void)raw_say(p->fd, &g, sizeof(g), fds, count);
}

static struct wire_group of_step(enum wire_group_step step, uint32_t number)
{
	bool ends = step == GROUP_WITHDRAWN || step == GROUP_REFUSED;

	return (struct wire_group){.step = LITTLE_32(step),
				   .number = LITTLE_32(number),
				   .tag = LITTLE_32(TAG),
				   .error = LITTLE_32(ends ? 1 : 0)};
}

static void step(struct raw_peer *p, enum wire_group_step s, uint32_t number)
{
	say(p, of_step(s, number), NULL, 0);
}

static int board(size_t size, int seals)
{
	int fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint64_t magic = MAGIC;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 &&
		      pwrite(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
		      fcntl(fd, F_ADD_SEALS, seals) == 0,
	      "no memory");
	return fd;
}

static int bell(int type)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, type, 0, ends) == 0, "no bell");
	return ends[0];
}

static int process(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	CHECK(fd >= 0, "no pidfd");
	return fd;
}

static void say_join(struct raw_peer *p, uint32_t number, int memory, int ring)
{
	const int fds[] = {memory, ring};

	say(p, of_step(GROUP_JOIN, number), fds, 2);
}

static void join(struct raw_peer *p, uint32_t number)
{
	say_join(p, number, board(BOARD, SEALS), bell(SOCK_DGRAM));
}

static void take_step_of(struct raw_peer *p, enum wire_group_step want)
{
	struct wire_group g;

	CHECK(raw_hear(p->fd, &g, sizeof(g), NULL) == sizeof(g) &&
		      LITTLE_32(g.head.type) == WIRE_GROUP && LITTLE_32(g.step) == want,
	      "step %u came, not %u", LITTLE_32(g.step), want);
}

/* ---- who joins ------------------------------------------------------------------------------ */

static void short_join(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_JOIN, 1);

	raw_say_packet(p->fd, WIRE_GROUP, &g, sizeof(g) - 8, board(BOARD, SEALS));
}

static void join_without(struct raw_peer *p)
{
	step(p, GROUP_JOIN, 1);
}

static void join_with_one(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_JOIN, 1);

	raw_say_packet(p->fd, WIRE_GROUP, &g, sizeof(g), board(BOARD, SEALS));
}

static void join_failed_with(struct raw_peer *p)
{
	const int fds[] = {board(BOARD, SEALS), bell(SOCK_DGRAM)};
	struct wire_group g = of_step(GROUP_JOIN, 1);

	g.error = LITTLE_32(1);
	say(p, g, fds, 2);
}

static void join_failed_oddly(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_JOIN, 1);

	g.error = LITTLE_32(999);
	say(p, g, NULL, 0);
}

static void join_with_three(struct raw_peer *p)
{
	const int fds[] = {board(BOARD, SEALS), bell(SOCK_DGRAM), process()};

	say(p, of_step(GROUP_JOIN, 1), fds, 3);
}

static void join_unsealed(struct raw_peer *p)
{
	say_join(p, 1, board(BOARD, 0), bell(SOCK_DGRAM));
}

static void join_writable(struct raw_peer *p)
{
	say_join(p, 1, board(BOARD, SIZE | F_SEAL_SEAL), bell(SOCK_DGRAM));
}

static void join_open_to_seals(struct raw_peer *p)
{
	say_join(p, 1, board(BOARD, SIZE | F_SEAL_FUTURE_WRITE), bell(SOCK_DGRAM));
}

static void join_short_board(struct raw_peer *p)
{
	say_join(p, 1, board(4096, SEALS), bell(SOCK_DGRAM));
}

static void join_socket_as_board(struct raw_peer *p)
{
	say_join(p, 1, bell(SOCK_DGRAM), bell(SOCK_DGRAM));
}

static void join_stream_as_bell(struct raw_peer *p)
{
	say_join(p, 1, board(BOARD, SEALS), bell(SOCK_STREAM));
}

static void join_pipe_as_bell(struct raw_peer *p)
{
	int ends[2];

	CHECK(pipe(ends) == 0, "no pipe");
	say_join(p, 1, board(BOARD, SEALS), ends[1]);
}

static void join_zero(struct raw_peer *p)
{
	join(p, 0);
}

static void join_two(struct raw_peer *p)
{
	join(p, 2);
}

static void join_oddly(struct raw_peer *p)
{
	const int fds[] = {board(BOARD, SEALS), bell(SOCK_DGRAM)};
	struct wire_group g = of_step(GROUP_JOIN, 1);

	g.what = LITTLE_32(2);
	say(p, g, fds, 2);
}

static void join_again(struct raw_peer *p)
{
	join(p, 1);
	join(p, 1);
}

static void join_without_end(struct raw_peer *p)
{
	for (uint32_t i = 0; i <= WIRE_GROUP_JOINS; i++)
		join(p, i + 1);
}

static void ready_for_nothing(struct raw_peer *p)
{
	step(p, GROUP_READY, 1);
}

static void ready_before_all(struct raw_peer *p)
{
	join(p, 1);
	step(p, GROUP_READY, 1);
}

static void ready_with_descriptor(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_READY, 1);

	join(p, 1);
	raw_say_packet(p->fd, WIRE_GROUP, &g, sizeof(g), p->own.fd);
}

static void withdraw_for_nothing(struct raw_peer *p)
{
	join(p, 1);
	say(p, (struct wire_group){.step = LITTLE_32(GROUP_WITHDRAWN), .number = LITTLE_32(1)},
	    NULL, 0);
}

static void withdraw_unknown_error(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_WITHDRAWN, 1);

	g.error = LITTLE_32(WIRE_ERROR_LAST + 1);
	join(p, 1);
	say(p, g, NULL, 0);
}

static void found_unasked(struct raw_peer *p)
{
	join(p, 1);
	step(p, GROUP_BEGIN, 1);
}

static void no_step(struct raw_peer *p)
{
	step(p, 0, 1);
}

static void step_too_many(struct raw_peer *p)
{
	step(p, GROUP_RELEASED + 1, 1);
}

static void fail_for_nothing(struct raw_peer *p)
{
	step(p, GROUP_FAILED, 0);
}

static void fail_before_its_time(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_FAILED, 2);

	g.error = LITTLE_32(1);
	join(p, 1);
	say(p, g, NULL, 0);
}

static void listen_for_nothing(struct raw_peer *p)
{
	step(p, GROUP_LISTENS, 1);
}

static void end_as_no_member(struct raw_peer *p)
{
	step(p, GROUP_ENDED, 1);
}

static void release_as_no_member(struct raw_peer *p)
{
	step(p, GROUP_RELEASED, 0);
}

static void show_as_no_member(struct raw_peer *p)
{
	step(p, GROUP_VIEW, 1);
}

static void attend_as_no_member(struct raw_peer *p)
{
	step(p, GROUP_ATTENDS, 1);
}

static const struct offence joins[] = {
	{"R8", "listens for nothing", listen_for_nothing, RULE, 0},
	{"R8", "a member's end by what is none", end_as_no_member, RULE, 0},
	{"R8", "what a member shows by what is none", show_as_no_member, RULE, 0},
	{"R8", "release by what is none", release_as_no_member, RULE, 0},
	{"R8", "comes to a meeting by what is none", attend_as_no_member, RULE, 0},
	{"S7", "half a join", short_join, RULE, 0},
	{"S1", "a join without descriptors", join_without, RULE, 0},
	{"S1", "a join with one", join_with_one, RULE, 0},
	{"S1", "a join with three", join_with_three, RULE, 0},
	{"S1", "a failed join with descriptors", join_failed_with, RULE, 0},
	{"S1", "a failed join of no error", join_failed_oddly, RULE, 0},
	{"S3", "a board that can shrink", join_unsealed, RULE, 0},
	{"S3", "a board that others can write", join_writable, RULE, 0},
	{"S3", "a board to be sealed later", join_open_to_seals, RULE, 0},
	{"S4", "a board too short", join_short_board, RULE, 0},
	{"S4", "a socket for a board", join_socket_as_board, RULE, 0},
	{"S4", "a stream for a bell", join_stream_as_bell, RULE, 0},
	{"S4", "a pipe for a bell", join_pipe_as_bell, RULE, 0},
	{"R8", "join 0", join_zero, RULE, 0},
	{"R8", "a join left out", join_two, RULE, 0},
	{"R8", "a join again", join_again, RULE, 0},
	{"R8", "a join of an unknown kind", join_oddly, RULE, 0},
	{"R10", "joins without end", join_without_end, RULE, 0},
	{"R8", "ready for nothing", ready_for_nothing, RULE, 0},
	{"R8", "ready before all", ready_before_all, RULE, 0},
	{"S1", "ready with a descriptor", ready_with_descriptor, RULE, 0},
	{"R8", "withdrawn for nothing", withdraw_for_nothing, RULE, 0},
	{"R8", "withdrawn, error 26", withdraw_unknown_error, RULE, 0},
	{"R8", "founds what none joins", found_unasked, RULE, 0},
	{"R6", "step 0", no_step, RULE, 0},
	{"R6", "step 15", step_too_many, RULE, 0},
	{"R8", "fails a group, for nothing", fail_for_nothing, RULE, 0},
	{"R8", "fails one behind joins to come", fail_before_its_time, RULE, 0},
};

/* ---- and is to be a member ------------------------------------------------------------------ */

static int64_t found(slmpm_peer peer, const struct offence *o)
{
	const slmpm_peer members[] = {peer, {0}};
	slmpm_group group;
	int rc = slmpm_group_create(&group, v.ctx, members, 2, TAG, 2000 * actor_slow());

	CHECK(rc < 0, "%s: a group has formed", o->name);
	return rc;
}

static const struct trial trial_founded = {.inspect = found};

static void ready_twice_early(struct raw_peer *p)
{
	join(p, 1);
	take_step_of(p, GROUP_BEGIN);
	take_step_of(p, GROUP_MEMBER);
	step(p, GROUP_BEGIN, 1);
}

static void ready_for_the_next(struct raw_peer *p)
{
	join(p, 1);
	take_step_of(p, GROUP_BEGIN);
	take_step_of(p, GROUP_MEMBER);
	step(p, GROUP_READY, 2);
}

static void join_twice_in_one(struct raw_peer *p)
{
	join(p, 1);
	take_step_of(p, GROUP_BEGIN);
	join(p, 1);
}

static void listen_beside_boards(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_LISTENS, 1);

	join(p, 1);
	take_step_of(p, GROUP_BEGIN);
	g.what = LITTLE_32(4711);
	say(p, g, NULL, 0);
}

static const struct offence members[] = {
	{"R8", "listens beside boards", listen_beside_boards, RULE, 0},
	{"R8", "begins what it joined", ready_twice_early, RULE, 0},
	{"R8", "ready for the next", ready_for_the_next, RULE, 0},
	{"R8", "joins what has begun", join_twice_in_one, RULE, 0},
};

/* ---- who founds ----------------------------------------------------------------------------- */

static int64_t join_it(slmpm_peer peer, const struct offence *o)
{
	slmpm_group group;
	int rc = slmpm_group_join(&group, peer, TAG, 2000 * actor_slow());

	CHECK(rc < 0, "%s: a group has formed", o->name);
	return rc;
}

static const struct trial trial_joined = {.inspect = join_it};

static void begin(struct raw_peer *p, uint32_t size, uint32_t rank)
{
	struct wire_group g = of_step(GROUP_BEGIN, 1);

	g.size = LITTLE_32(size);
	g.rank = LITTLE_32(rank);
	say(p, g, NULL, 0);
}

static void begin_when_asked(struct raw_peer *p, uint32_t size, uint32_t rank)
{
	take_step_of(p, GROUP_JOIN);
	begin(p, size, rank);
}

static void say_member(struct raw_peer *p, uint32_t rank, int memory, int ring, int ended)
{
	struct wire_group g = of_step(GROUP_MEMBER, 1);
	const int fds[] = {memory, ring, ended};

	g.rank = LITTLE_32(rank);
	g.pid = (int32_t)LITTLE_32((uint32_t)getpid());
	say(p, g, fds, 3);
}

static void member(struct raw_peer *p, uint32_t rank)
{
	say_member(p, rank, board(BOARD, SEALS), bell(SOCK_DGRAM), process());
}

static void begin_apart(struct raw_peer *p, const char *host)
{
	struct wire_group g = of_step(GROUP_BEGIN, 1);

	take_step_of(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.what = LITTLE_32(WIRE_GROUP_APART);
	snprintf(g.text, sizeof(g.text), "%s", host);
	say(p, g, NULL, 0);
}

static void begin_at_a_name(struct raw_peer *p)
{
	begin_apart(p, "localhost");
}

static void member_at_no_port(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_MEMBER, 1);

	begin_apart(p, "127.0.0.1");
	g.rank = LITTLE_32(1);
	snprintf(g.url, sizeof(g.url), "shm:somewhere");
	say(p, g, NULL, 0);
}

static void board_beside_port(struct raw_peer *p)
{
	begin_apart(p, "127.0.0.1");
	member(p, 1);
}

static void begin_oddly(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_BEGIN, 1);

	take_step_of(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.what = LITTLE_32(8);
	say(p, g, NULL, 0);
}

static void begin_by_unknown(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_BEGIN, 1);

	take_step_of(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.kinds[0] = LITTLE_32(0xf); /* barriers by the 15th algorithm */
	say(p, g, NULL, 0);
}

static void begin_by_others(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_BEGIN, 1);

	take_step_of(p, GROUP_JOIN);
	g.size = LITTLE_32(3);
	g.kinds[1] = LITTLE_32(1u << 12); /* of a twelfth kind of operation */
	say(p, g, NULL, 0);
}

static void begin_with_none(struct raw_peer *p)
{
	begin_when_asked(p, 0, 0);
}

static void begin_with_many(struct raw_peer *p)
{
	begin_when_asked(p, SLMPM_GROUP_MAX + 1, 0);
}

static void begin_beyond(struct raw_peer *p)
{
	begin_when_asked(p, 3, 3);
}

static void begin_twice(struct raw_peer *p)
{
	begin_when_asked(p, 3, 0);
	begin(p, 3, 0);
}

static void member_before_all(struct raw_peer *p)
{
	take_step_of(p, GROUP_JOIN);
	member(p, 0);
}

static void member_out_of_turn(struct raw_peer *p)
{
	begin_when_asked(p, 4, 0);
	member(p, 2);
}

static void member_again(struct raw_peer *p)
{
	begin_when_asked(p, 4, 0);
	member(p, 1);
	member(p, 1);
}

static void member_itself(struct raw_peer *p)
{
	begin_when_asked(p, 4, 1);
	member(p, 0);
	member(p, 1);
}

static void member_too_many(struct raw_peer *p)
{
	begin_when_asked(p, 2, 0);
	member(p, 1);
	member(p, 2);
}

static void member_without_process(struct raw_peer *p)
{
	struct wire_group g = of_step(GROUP_MEMBER, 1);
	const int fds[] = {board(BOARD, SEALS), bell(SOCK_DGRAM)};

	begin_when_asked(p, 3, 0);
	g.rank = LITTLE_32(1);
	say(p, g, fds, 2);
}

static void member_without_board(struct raw_peer *p)
{
	begin_when_asked(p, 3, 0);
	say_member(p, 1, board(BOARD, SIZE), bell(SOCK_DGRAM), process());
}

static void member_without_bell(struct raw_peer *p)
{
	begin_when_asked(p, 3, 0);
	say_member(p, 1, board(BOARD, SEALS), process(), process());
}

static void member_of_no_process(struct raw_peer *p)
{
	begin_when_asked(p, 3, 0);
	say_member(p, 1, board(BOARD, SEALS), bell(SOCK_DGRAM), bell(SOCK_DGRAM));
}

static void formed_early(struct raw_peer *p)
{
	begin_when_asked(p, 3, 0);
	member(p, 1);
	step(p, GROUP_FORMED, 1);
}

static void formed_at_once(struct raw_peer *p)
{
	take_step_of(p, GROUP_JOIN);
	step(p, GROUP_FORMED, 1);
}

static void refused_for_nothing(struct raw_peer *p)
{
	take_step_of(p, GROUP_JOIN);
	say(p, (struct wire_group){.step = LITTLE_32(GROUP_REFUSED), .number = LITTLE_32(1)}, NULL,
	    0);
}

static void refused_in_advance(struct raw_peer *p)
{
	take_step_of(p, GROUP_JOIN);
	step(p, GROUP_REFUSED, 2);
}

static const struct offence founders[] = {
	{"R8", "a name to listen at", begin_at_a_name, RULE, 0},
	{"R8", "a member at no port", member_at_no_port, RULE, 0},
	{"R8", "a board beside a port", board_beside_port, RULE, 0},
	{"R8", "a group of a kind that there is not", begin_oddly, RULE, 0},
	{"R8", "an algorithm that there is not", begin_by_unknown, RULE, 0},
	{"R8", "a kind that there is not", begin_by_others, RULE, 0},
	{"R5", "a group of none", begin_with_none, RULE, 0},
	{"R10", "a group of too many", begin_with_many, RULE, 0},
	{"R5", "a rank beyond", begin_beyond, RULE, 0},
	{"R8", "begins twice", begin_twice, RULE, 0},
	{"R8", "a member before all", member_before_all, RULE, 0},
	{"R8", "a member out of turn", member_out_of_turn, RULE, 0},
	{"R8", "a member again", member_again, RULE, 0},
	{"R8", "the member itself", member_itself, RULE, 0},
	{"R8", "a member too many", member_too_many, RULE, 0},
	{"S1", "a member without process", member_without_process, RULE, 0},
	{"S3", "a member's board unsealed", member_without_board, RULE, 0},
	{"S4", "a member's bell is none", member_without_bell, RULE, 0},
	{"S4", "a member's process is none", member_of_no_process, RULE, 0},
	{"R8", "formed early", formed_early, RULE, 0},
	{"R8", "formed at once", formed_at_once, RULE, 0},
	{"R8", "refused for nothing", refused_for_nothing, RULE, 0},
	{"R8", "refused in advance", refused_in_advance, RULE, 0},
};

/* ---- who drives ------------------------------------------------------------------------------ */

#define DRIVE_RULE "order of operations"
#define DRIVE      0xff30 /* the library's number of what prepares; a word of it is the next */

enum { DRIVE_GO = 1, DRIVE_STOP };

struct drive {
	uint64_t group, number;
	uint32_t join, rank;
	union {
		struct {
			uint64_t from, to, count;
			uint32_t kind, type, op, root, flags, from_space, to_space, imm;
		} ask;
		struct {
			uint32_t word, error, culprit, zero;
			char text[96];
		} say;
	} as;
};

static slmpm_group driven;

/* The only member of a group, which serves, and the rest follows. */
static int64_t be_driven(slmpm_peer peer, const struct offence *o)
{
	const struct slmpm_how how = {.size = sizeof(how)};

	(void)o;
	if (!driven.id) {
		OK(slmpm_group_join(&driven, peer, TAG, PATIENCE));
		OK(slmpm_group_serve(driven, &how));
		OK(slmpm_send(peer, 1, "go", 2, PATIENCE));
	}
	return slmpm_recv(peer, 1, NULL, 0, NULL, 5);
}

static void leave_driven(slmpm_peer peer, const struct offence *o)
{
	(void)peer;
	(void)o;
	OK(slmpm_group_destroy(driven));
	driven.id = 0;
}

static const struct trial trial_driven = {.inspect = be_driven, .see = leave_driven};

static void found_one(struct raw_peer *p)
{
	begin_when_asked(p, 1, 0);
	take_step_of(p, GROUP_READY);
	step(p, GROUP_FORMED, 1);
	raw_await_packet(p);
}

static void drive_send(struct raw_peer *p, uint16_t id, const struct drive *d, uint32_t length)
{
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, id, length, length, d, length);
}

static void drive_ask(struct raw_peer *p, uint64_t number, uint32_t kind)
{
	struct drive d = {.number = LITTLE_64(number), .join = LITTLE_32(1)};

	d.as.ask.kind = LITTLE_32(kind);
	d.as.ask.count = d.as.ask.from = UINT64_MAX;
	d.as.ask.root = d.as.ask.flags = d.as.ask.to_space = UINT32_MAX;
	drive_send(p, DRIVE, &d, 80);
}

static void drive_say(struct raw_peer *p, uint64_t number, uint32_t word)
{
	struct drive d = {.number = LITTLE_64(number), .join = LITTLE_32(1)};

	d.as.say.word = LITTLE_32(word);
	drive_send(p, DRIVE + 1, &d, 136);
}

static void drive_go_of_none(struct raw_peer *p)
{
	found_one(p);
	drive_say(p, 1, DRIVE_STOP);
	drive_say(p, 1, DRIVE_GO);
}

static void drive_twice(struct raw_peer *p)
{
	found_one(p);
	drive_ask(p, 1, SLMPM_COLL_BARRIER);
	drive_ask(p, 1, SLMPM_COLL_BARRIER);
}

/* The first has not begun. */
static void drive_past_one(struct raw_peer *p)
{
	found_one(p);
	drive_ask(p, 1, SLMPM_COLL_BARRIER);
	drive_ask(p, 2, SLMPM_COLL_BARRIER);
	drive_say(p, 2, DRIVE_GO);
}

static void drive_what_is_stopped(struct raw_peer *p)
{
	found_one(p);
	drive_ask(p, 1, SLMPM_COLL_BARRIER);
	drive_say(p, 1, DRIVE_STOP);
	drive_say(p, 1, DRIVE_GO);
}

/* Each kind with figures that none has, which is refused. */
static void drive_nonsense(struct raw_peer *p)
{
	uint64_t number = 0;

	found_one(p);
	for (uint32_t kind = 0; kind < 14; kind++)
		if (kind != SLMPM_COLL_BARRIER)
			drive_ask(p, ++number, kind);
	drive_say(p, number, DRIVE_GO);
}

static const struct offence drivers[] = {
	{"R8", "go, of none", drive_go_of_none, DRIVE_RULE, 0},
	{"R8", "asks twice", drive_twice, DRIVE_RULE, 0},
	{"R8", "go past one", drive_past_one, DRIVE_RULE, 0},
	{"R8", "go, of one that is stopped", drive_what_is_stopped, DRIVE_RULE, 0},
	{"R8", "go, of what is refused", drive_nonsense, DRIVE_RULE, 0},
};

/* ---- who reads nothing ----------------------------------------------------------------------- */

#define FLOOD 2000

/* An honest one: no more joins are under way than may be, for each that goes wrong is withdrawn. It
 * does not hear that they are refused, until there is no room to say so. */
static void withdraw_each(struct raw_peer *p)
{
	struct wire_group g;
	int memory = board(BOARD, SEALS), ring = bell(SOCK_DGRAM);

	for (uint32_t i = 1; i <= FLOOD; i++) {
		say_join(p, i, memory, ring);
		step(p, GROUP_WITHDRAWN, i);
	}
	g = of_step(GROUP_JOIN, 1);
	raw_say_packet(p->fd, 99, &g, sizeof(g), -1); /* the offence, at last */
}

/* None of its descriptors is to be had. */
static int64_t refuse_joins(slmpm_peer peer, const struct offence *o)
{
	struct rlimit limit, before;
	int64_t n;

	(void)o;
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	limit = before;
	limit.rlim_cur = (rlim_t)actor_descriptors();
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
	n = slmpm_recv(peer, 1, NULL, 0, NULL, 5);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	return n;
}

/* There may be no room for the reason. */
static void read_on(struct raw_peer *p, char reason[112])
{
	struct wire_group g;

	while (raw_hear(p->fd, &g, sizeof(g), NULL) > 0)
		;
	strcpy(reason, "out of turn");
}

static const struct trial trial_deaf = {.inspect = refuse_joins, .hear_end = read_on};

static const struct offence deaf[] = {
	{"R6", "packet 99 behind many joins", withdraw_each, "out of turn", 0},
};

/* ---- who is joined, and reads late ----------------------------------------------------------- */

static _Atomic uint32_t *joined; /* so many, until no more may be under way */

static void step_is(struct raw_peer *p, enum wire_group_step want, uint32_t number)
{
	struct wire_group g;

	CHECK(raw_hear(p->fd, &g, sizeof(g), NULL) == sizeof(g), "nothing came");
	CHECK(LITTLE_32(g.step) == want && LITTLE_32(g.number) == number,
	      "step %u of join %u came, not %u of %u", LITTLE_32(g.step), LITTLE_32(g.number), want,
	      number);
}

/* An honest one until then: of each join both its steps come. */
static void read_late(struct raw_peer *p)
{
	while (!*joined)
		usleep(1000);
	for (uint32_t i = 1; i <= *joined; i++) {
		step_is(p, GROUP_JOIN, i);
		step_is(p, GROUP_WITHDRAWN, i);
	}
	step(p, 0, 1);
}

static int64_t join_until_full(slmpm_peer peer, const struct offence *o)
{
	slmpm_group group;
	uint32_t n = 0;
	int rc = -SLMPM_ETIMEOUT;

	(void)o;
	for (int fd = 0; fd < 64; fd++) /* of this process's, the pair's */
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int));
	while (!*joined && rc == -SLMPM_ETIMEOUT && n < FLOOD) {
		rc = slmpm_group_join(&group, peer, TAG, 1);
		n += rc == -SLMPM_ETIMEOUT;
	}
	if (!*joined)
		EXPECT(rc, -SLMPM_ELIMIT);
	if (!*joined)
		*joined = n;
	return slmpm_recv(peer, 1, NULL, 0, NULL, 5);
}

static const struct trial trial_full = {.inspect = join_until_full};

static const struct offence late[] = {
	{"R6", "step 0 behind joins that were stuck", read_late, RULE, 0},
};

/* ---- who fails to join, and is refused another join ------------------------------------------ */

#define OTHER 6 /* a tag */

static void fail_join(struct raw_peer *p, uint32_t number, uint32_t tag, const char *text)
{
	struct wire_group g = of_step(GROUP_JOIN, number);

	g.tag = LITTLE_32(tag);
	g.error = LITTLE_32(1);
	strcpy(g.text, text);
	say(p, g, NULL, 0);
}

/* An honest one until then. */
static void fail_both(struct raw_peer *p)
{
	fail_join(p, 1, TAG, "the first");
	take_step_of(p, GROUP_FAILED);
	fail_join(p, 2, OTHER, "the other");
	take_step_of(p, GROUP_FAILED);
	step(p, 0, 1);
}

static void give_up_other(const slmpm_peer *both)
{
	slmpm_group group;

	CHECK(slmpm_group_create_start(&group, v.ctx, both, 2, OTHER) == 0 &&
		      slmpm_group_destroy(group) == 0,
	      "%s", slmpm_error_detail());
}

static int64_t found_both(slmpm_peer peer, const struct offence *o)
{
	const slmpm_peer both[] = {peer, {0}};
	static bool found;
	slmpm_group group;

	if (!found) {
		give_up_other(both);
		(void)slmpm_recv(peer, 1, NULL, 0, NULL, 20);
		CHECK(slmpm_group_create(&group, v.ctx, both, 2, TAG, 2000 * actor_slow()) < 0 &&
			      strstr(slmpm_error_detail(), "it says: the first"),
		      "%s: %s", o->name, slmpm_error_detail());
		give_up_other(both);
		found = true;
	}
	return slmpm_recv(peer, 1, NULL, 0, NULL, 5);
}

static const struct trial trial_refused = {.inspect = found_both};

static const struct offence refused[] = {
	{"R6", "step 0 behind joins that failed", fail_both, RULE, 0},
};

int main(void)
{
	joined = child_common(sizeof(*joined));
	victim_begin(&v, "hostile-group");
	SURVIVE(&v, &trial_legal, joins);
	SURVIVE(&v, &trial_founded, members);
	SURVIVE(&v, &trial_joined, founders);
	SURVIVE(&v, &trial_driven, drivers);
	SURVIVE(&v, &trial_deaf, deaf);
	SURVIVE(&v, &trial_full, late);
	SURVIVE(&v, &trial_refused, refused);
	victim_end(&v);
	return 0;
}
