/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* A peer that founds a group as it should, and lies as who drives it (hostile_group.c). */
#include <slmpm_group.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_group.h"
#include "tests/lib/test.h"

#define DRIVE_RULE "order of operations"
#define DRIVE      0xff30 /* the library's number of what prepares; a word of it is the next */

static struct victim v;

enum { DRIVE_GO = 1, DRIVE_STOP, DRIVE_LATE = 5 };

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
		OK(slmpm_group_join(&driven, peer, RAW_GROUP_TAG, PATIENCE));
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
	raw_group_found(p, 1, 0);
	raw_group_await(p, GROUP_READY);
	raw_group_step(p, GROUP_FORMED, 1);
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
	drive_say(p, 1, DRIVE_LATE); /* it has not begun: nothing follows */
	drive_say(p, 1, DRIVE_STOP);
	drive_say(p, 1, DRIVE_LATE);
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

int main(void)
{
	victim_begin(&v, "hostile-driver");
	SURVIVE(&v, &trial_driven, drivers);
	victim_end(&v);
	return 0;
}
