/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Lies about links to be: numbers and lives that cannot be, packets of no shape, rounds out of turn
 * or with what is another's. Each ends the channel by its name, while an honest peer of two links
 * works on.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_link.h"
#include "tests/lib/raw_link_trial.h"
#include "tests/lib/stranger.h"

/* ---- what no link is ------------------------------------------------------------------------- */

static void link_beyond(struct raw_peer *p)
{
	raw_link_begin(p, 2, 0);
}

static void link_far_beyond(struct raw_peer *p)
{
	raw_link_begin(p, UINT16_MAX, 0);
}

static void life_beyond(struct raw_peer *p)
{
	raw_link_begin(p, 1, 32767);
}

static void life_far_beyond(struct raw_peer *p)
{
	raw_link_say_plain(p, WIRE_ROUND_NOT, 1, UINT16_MAX);
}

static void blob_beyond(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	w.blob_length = LITTLE_32(sizeof(w.blob) + 1);
	raw_link_say(p, &w, raw_link_memory.fd);
}

static void blob_without_end(struct raw_peer *p)
{
	struct wire_round w = raw_link_about(WIRE_ROUND_NOT, 1, 0);

	w.blob_length = LITTLE_32(UINT32_MAX);
	raw_link_say(p, &w, -1);
}

static void family(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	w.family = LITTLE_16(5);
	raw_link_say(p, &w, raw_link_memory.fd);
}

static void ask(struct raw_peer *p)
{
	raw_link_say_plain(p, WIRE_ROUND_ASK, 1, 0);
}

static void cut_to(struct raw_peer *p, size_t n)
{
	unsigned char bytes[sizeof(struct wire_round) + 8] = {0};
	struct wire_round w = raw_link_ring(p, 1, 0);

	memcpy(bytes, &w, sizeof(w));
	(void)raw_say_packet(p->fd, WIRE_ROUND, bytes, n, raw_link_memory.fd);
}

static void too_short(struct raw_peer *p)
{
	cut_to(p, sizeof(struct wire_round) - 1);
}

static void too_long(struct raw_peer *p)
{
	cut_to(p, sizeof(struct wire_round) + 1);
}

/* Its beginning is right. */
static void longer_than_it_says(struct raw_peer *p)
{
	unsigned char bytes[sizeof(struct wire_round) + 8] = {0};
	struct wire_round w = raw_link_ring(p, 1, 0);

	w.head.type = LITTLE_32(WIRE_ROUND);
	w.head.length = LITTLE_32(sizeof(w));
	memcpy(bytes, &w, sizeof(w));
	(void)raw_say(p->fd, bytes, sizeof(bytes), &raw_link_memory.fd, 1);
}

static void head_alone(struct raw_peer *p)
{
	cut_to(p, sizeof(struct wire_control_head));
}

static void two_descriptors(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);
	int fds[2] = {raw_link_memory.fd, raw_link_memory.fd};

	w.head.type = LITTLE_32(WIRE_ROUND);
	w.head.length = LITTLE_32(sizeof(w));
	(void)raw_say(p->fd, &w, sizeof(w), fds, 2);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void round_left_out(struct raw_peer *p)
{
	struct wire_round w;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	raw_link_echo(p, 2, raw_link_epoch(&w), -1);
}

static void round_again(struct raw_peer *p)
{
	struct wire_round w;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	raw_link_echo(p, 1, raw_link_epoch(&w), -1);
	raw_link_echo(p, 1, raw_link_epoch(&w), -1);
}

static void round_that_is_none(struct raw_peer *p)
{
	raw_link_begin(p, 1, 0);
	raw_link_say_plain(p, 7, 1, 0);
}

static void without_memory(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	raw_link_say(p, &w, -1);
}

static void half_an_offer(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	w.blob_length = LITTLE_32(sizeof(p->offer) - 1);
	raw_link_say(p, &w, raw_link_memory.fd);
}

static void odd_ring(struct raw_peer *p)
{
	struct raw_offer offer = p->offer;
	struct wire_round w = raw_link_ring(p, 1, 0);

	offer.segments = LITTLE_32(RAW_SEGMENTS - 1);
	raw_link_blob(&w, &offer, sizeof(offer));
	raw_link_say(p, &w, raw_link_memory.fd);
}

/* What the first link's memory is known by. */
static void epoch_of_another(struct raw_peer *p)
{
	raw_link_begin(p, 1, 0);
	(void)raw_link_hear_round(p, 0);
	raw_link_echo(p, 1, p->offered.epoch, -1);
}

static void echo_with_descriptor(struct raw_peer *p)
{
	struct wire_round w;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	raw_link_echo(p, 1, raw_link_epoch(&w), raw_link_memory.fd);
}

static void never_sealed(struct raw_peer *p)
{
	struct wire_round w;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	raw_link_echo(p, 1, raw_link_epoch(&w), -1);
	raw_link_echo(p, 2, raw_link_epoch(&w), -1);
}

/* ---- by the bond ----------------------------------------------------------------------------- */

static void by_bond(struct raw_peer *p, const struct wire_round *w, uint32_t n)
{
	raw_post(p, WIRE_BOND_LINK, 0, 0, 0, w, n);
}

static void short_by_bond(struct raw_peer *p)
{
	struct wire_round w = raw_link_about(WIRE_ROUND_NOT, 1, 0);

	by_bond(p, &w, sizeof(w) - 8);
}

static void nothing_by_bond(struct raw_peer *p)
{
	by_bond(p, NULL, 0);
}

static void beyond_by_bond(struct raw_peer *p)
{
	struct wire_round w = raw_link_about(0, 2, 0);

	by_bond(p, &w, sizeof(w));
}

/* clang-format off */
static const struct offence offences[] = {
	{"R6", "a link beyond those agreed", link_beyond, LINK_RULE, 0},
	{"R6", "a link far beyond", link_far_beyond, LINK_RULE, 0},
	{"R6", "a life beyond the last", life_beyond, LINK_RULE, 0},
	{"R6", "a life far beyond", life_far_beyond, LINK_RULE, 0},
	{"R5", "a blob that is longer", blob_beyond, LINK_RULE, 0},
	{"R5", "a blob without end", blob_without_end, LINK_RULE, 0},
	{"R6", "an address of no family", family, LINK_RULE, 0},
	{"R8", "a hint of who begins", ask, LINK_RULE, 0},
	{"R5", "a byte less", too_short, LINK_RULE, 0},
	{"R5", "a byte more", too_long, "control packet", 0},
	{"R5", "more than it says", longer_than_it_says, "control packet", 0},
	{"R5", "a head alone", head_alone, LINK_RULE, 0},
	{"R10", "two descriptors", two_descriptors, LINK_RULE, 0},
	{"R8", "a round left out", round_left_out, LINK_RULE, 0},
	{"R8", "a round again", round_again, LINK_RULE, 0},
	{"R8", "a round that is none", round_that_is_none, LINK_RULE, 0},
	{"R5", "no memory", without_memory, LINK_RULE, 0},
	{"R5", "half an offer", half_an_offer, LINK_RULE, 0},
	{"R5", "a ring of odd size", odd_ring, LINK_RULE, 0},
	{"R8", "another link's epoch", epoch_of_another, LINK_RULE, 0},
	{"R5", "a descriptor too many", echo_with_descriptor, LINK_RULE, 0},
	{"R8", "memory that is not sealed", never_sealed, LINK_RULE, 0},
	{"R5", "a short one by the bond", short_by_bond, LINK_RULE, 0},
	{"R5", "nothing by the bond", nothing_by_bond, LINK_RULE, 0},
	{"R6", "a link beyond, by the bond", beyond_by_bond, LINK_RULE, 0},
};

static const struct offence alone[] = {
	{"R8", "a link of who wants one", link_beyond, LINK_RULE, 0},
	{"R8", "a refusal of who wants one", life_far_beyond, LINK_RULE, 0},
	{"R8", "by a bond that is none", beyond_by_bond, LINK_RULE, 0},
};
/* clang-format on */

/* ---- when it has left ------------------------------------------------------------------------ */

static int left[2]; /* a pipe: that is known */

static int leave_and_ask(void *at)
{
	struct raw_peer p;
	char word;

	link_trial_come(&p, at);
	raw_post(&p, WIRE_CLOSE, 0, 0, 0, "", 0);
	raw_ring_bell(&p);
	CHECK(read(left[0], &word, 1) == 1, "it stays");
	raw_link_begin(&p, 1, 0);
	raw_link_await_read(&p);
	(void)poll(NULL, 0, 10); /* in which there is time for an answer */
	CHECK(raw_link_unread(&p) == 0, "a link is made of who has left");
	link_trial_leave(&p);
	return 0;
}

/* Nobody would read it, and it would keep its context awake. */
static void no_link_behind_the_end(struct victim *v)
{
	slmpm_peer peer;
	char byte;
	pid_t pid;

	CHECK(pipe(left) == 0, "no pipe");
	pid = child_start(leave_and_ask, v->address, 30);
	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, &byte, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	CHECK(write(left[1], "", 1) == 1, "it has gone");
	while (!stranger_has_left(pid))
		honest_works(v->honest);
	CHECK(child_wait(pid) == 0, "see above");
	OK(slmpm_close(peer, PATIENCE));
}

int main(void)
{
	static const struct trial callers = {.come = link_trial_come,
					     .leave = link_trial_leave,
					     .inspect = link_trial_look,
					     .see = link_trial_see};
	static const struct trial of_one = {.leave = link_trial_leave};
	struct victim v;

	link_victim_begin(&v, "hostile-link");
	SURVIVE(&v, &callers, offences);
	SURVIVE(&v, &of_one, alone);
	no_link_behind_the_end(&v);
	link_victim_end(&v);
	return 0;
}
