/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Mirrors that nobody asked for, changes that lie elsewhere or that a follower may not make,
 * numbers that cannot be: each ends the channel by its name, and no byte outside of the mirror is
 * touched.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"

#define TAG    7
#define BYTES  4096
#define GUARD  4096
#define LEAD   SLMPM_MIRROR_LEAD
#define FOLLOW SLMPM_MIRROR_FOLLOW
#define BOTH   SLMPM_MIRROR_BOTH

static _Alignas(8) unsigned char room[GUARD + BYTES + GUARD];
static unsigned char noise[BYTES];
static slmpm_mirror mirror;
static slmpm_ctx ctx;

/* ---- the offender ---------------------------------------------------------------------------- */

static void ask(struct raw_peer *p, uint32_t tag, uint32_t how, uint64_t size, uint32_t slot)
{
	struct wire_mirror w = {.size = LITTLE_64(size),
				.tag = LITTLE_32(tag),
				.how = LITTLE_32(how),
				.slot = LITTLE_32(slot)};

	raw_post(p, WIRE_MIRROR_ASK, 0, 0, 0, &w, sizeof(w));
}

/* The victim has asked by now. */
static void joined(struct raw_peer *p, uint32_t how)
{
	raw_await_packet(p);
	ask(p, TAG, how, BYTES, 0);
}

static void change(struct raw_peer *p, uint8_t opcode, uint64_t number, uint64_t at, uint32_t n)
{
	raw_post(p, opcode, number, wire_route(0, 0), at, noise, n);
}

static void half_asked(struct raw_peer *p)
{
	raw_await_packet(p);
	raw_post(p, WIRE_MIRROR_ASK, 0, 0, 0, noise, sizeof(struct wire_mirror) - 1);
}

static void more_asked(struct raw_peer *p)
{
	const struct wire_mirror w[2] = {
		{.size = LITTLE_64(BYTES), .tag = LITTLE_32(TAG), .how = LITTLE_32(LEAD)}};

	raw_await_packet(p);
	raw_post(p, WIRE_MIRROR_ASK, 0, 0, 0, w, sizeof(w[0]) + 8);
}

static void unknown_how(struct raw_peer *p)
{
	raw_await_packet(p);
	ask(p, TAG, LEAD | UINT32_C(1) << 31, BYTES, 0);
}

static void no_role(struct raw_peer *p)
{
	raw_await_packet(p);
	ask(p, TAG, LEAD | FOLLOW, BYTES, 0);
}

static void no_bytes(struct raw_peer *p)
{
	raw_await_packet(p);
	ask(p, TAG, LEAD, 0, 0);
}

static void far_slot(struct raw_peer *p)
{
	raw_await_packet(p);
	ask(p, TAG, LEAD, BYTES, 256);
}

static void asked_twice(struct raw_peer *p)
{
	joined(p, LEAD);
	ask(p, TAG, LEAD, BYTES, 0);
}

/* Of one that is not wanted here yet. */
static void asked_again(struct raw_peer *p)
{
	raw_await_packet(p);
	ask(p, 1000, LEAD, BYTES, 1);
	ask(p, 1000, LEAD, BYTES, 2);
}

static void asks_for_ever(struct raw_peer *p)
{
	raw_await_packet(p);
	for (uint32_t i = 0; i < 300; i++)
		ask(p, 1000 + i, LEAD, BYTES, i % 256);
}

static void answers_nothing(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_END, 1, TAG, 0, NULL, 0);
}

static void answers_nobody(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_END, 1, TAG + 1, 0, NULL, 0);
}

static void ends_with_bytes(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_END, 0, TAG, 0, noise, 8);
}

/* And reads none of the answers. */
static void leaves_for_ever(struct raw_peer *p)
{
	raw_await_packet(p);
	for (uint32_t i = 0; i < 4000; i++)
		raw_post(p, WIRE_MIRROR_END, 0, 1000 + i, 0, NULL, 0);
}

static void ends_otherwise(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_END, 2, TAG, 0, NULL, 0);
}

static void flagged(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_LAST, 1, 0, wire_extent(0, WIRE_FLAG_NOTIFY), noise, 8);
}

static void of_no_slot(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_LAST, 1, wire_route(1, 0), 0, noise, 8);
}

static void of_a_far_slot(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_LAST, 1, wire_route(UINT32_MAX, 0), 0, noise, 8);
}

static void unasked(struct raw_peer *p)
{
	raw_await_packet(p);
	change(p, WIRE_MIRROR_LAST, 1, 0, 8);
}

static void beyond(struct raw_peer *p)
{
	joined(p, LEAD);
	change(p, WIRE_MIRROR_LAST, 1, BYTES - 7, 8);
}

static void far_beyond(struct raw_peer *p)
{
	joined(p, LEAD);
	change(p, WIRE_MIRROR_LAST, 1, WIRE_LENGTH_MASK, 8);
}

static void empty(struct raw_peer *p)
{
	joined(p, LEAD);
	change(p, WIRE_MIRROR_LAST, 1, 0, 0);
}

static void list(struct raw_peer *p, uint64_t head, uint32_t length)
{
	unsigned char bytes[64] = {0};

	head = LITTLE_64(head);
	memcpy(bytes, &head, sizeof(head));
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_LIST_LAST, 1, 0, 0, bytes, length);
}

static void half_a_head(struct raw_peer *p)
{
	list(p, WIRE_MIRROR_RUN(8, 9), 7); /* what is left out is 0 */
}

static void no_list(struct raw_peer *p)
{
	list(p, 0, 0);
}

static void run_of_nothing(struct raw_peer *p)
{
	list(p, WIRE_MIRROR_RUN(0, 0), 16);
}

static void run_too_long(struct raw_peer *p)
{
	list(p, WIRE_MIRROR_RUN(8, 57), 64);
}

static void run_not_padded(struct raw_peer *p)
{
	list(p, WIRE_MIRROR_RUN(0, 3), 11);
}

static void run_beyond(struct raw_peer *p)
{
	list(p, WIRE_MIRROR_RUN(BYTES - 1, 2), 16);
}

static void number_zero(struct raw_peer *p)
{
	joined(p, LEAD);
	change(p, WIRE_MIRROR_LAST, 0, 0, 8);
}

static void number_again(struct raw_peer *p)
{
	joined(p, LEAD);
	change(p, WIRE_MIRROR_LAST, 5, 0, 8);
	change(p, WIRE_MIRROR_LAST, 5, 0, 8);
}

static void number_within(struct raw_peer *p)
{
	joined(p, LEAD);
	change(p, WIRE_MIRROR_PART, 5, 0, 8);
	change(p, WIRE_MIRROR_PART, 6, 8, 8);
}

static void stored_unasked(struct raw_peer *p)
{
	raw_await_packet(p);
	raw_post(p, WIRE_MIRROR_STORED, 0, 0, 0, NULL, 0);
}

static void stored_more(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_LAST, 1, wire_route(0, 1000), 0, noise, 8);
}

static void stored_backwards(struct raw_peer *p)
{
	joined(p, LEAD | BOTH);
	raw_post(p, WIRE_MIRROR_STORED, 0, wire_route(0, UINT32_MAX), 0, NULL, 0);
}

static void stored_bytes(struct raw_peer *p)
{
	joined(p, LEAD);
	raw_post(p, WIRE_MIRROR_STORED, 0, 0, 0, noise, 1);
}

static void follower_changes(struct raw_peer *p)
{
	joined(p, FOLLOW);
	change(p, WIRE_MIRROR_LAST, 1, 0, 8);
}

static void follower_stores(struct raw_peer *p)
{
	joined(p, FOLLOW);
	raw_post(p, WIRE_MIRROR_STORED, 0, 0, 0, NULL, 0);
}

#define ABOUT  "packet about a mirror"
#define PLACE  "place of a change"
#define NUMBER "publication's number"

static const struct offence offences[] = {
	{"R5", "half a mirror", half_asked, ABOUT, FOLLOW},
	{"R5", "more than a mirror", more_asked, ABOUT, FOLLOW},
	{"R14", "a mirror of no kind", unknown_how, ABOUT, FOLLOW},
	{"R14", "a mirror of both roles", no_role, ABOUT, FOLLOW},
	{"R5", "a mirror of nothing", no_bytes, ABOUT, FOLLOW},
	{"R5", "a slot that is none", far_slot, ABOUT, FOLLOW},
	{"R8", "a mirror asked for twice", asked_twice, "mirror that is asked for", FOLLOW},
	{"R8", "and again, unwanted", asked_again, "mirror that is asked for", FOLLOW},
	{"R10", "mirrors without end", asks_for_ever, "mirror that is asked for", FOLLOW},
	{"R8", "an answer to nothing", answers_nothing, "end of a mirror", FOLLOW},
	{"R8", "an answer to nobody", answers_nobody, "end of a mirror", FOLLOW},
	{"R5", "an end with bytes", ends_with_bytes, "end of a mirror", FOLLOW},
	{"R10", "ends without end", leaves_for_ever, "number of mirrors left", FOLLOW},
	{"R14", "an end of no kind", ends_otherwise, "end of a mirror", FOLLOW},
	{"R6", "a flag", flagged, ABOUT, FOLLOW},
	{"R5", "a change of no mirror", of_no_slot, "change of no mirror", FOLLOW},
	{"R5", "a change far from any", of_a_far_slot, "change of no mirror", FOLLOW},
	{"R8", "a change unasked", unasked, "mirror that is not joined", FOLLOW},
	{"R5", "a change beyond", beyond, PLACE, FOLLOW},
	{"R5", "a change far beyond", far_beyond, PLACE, FOLLOW},
	{"R5", "a change of nothing", empty, PLACE, FOLLOW},
	{"R5", "half a list", half_a_head, PLACE, FOLLOW},
	{"R5", "no list", no_list, PLACE, FOLLOW},
	{"R5", "a run of nothing", run_of_nothing, PLACE, FOLLOW},
	{"R5", "a run that is longer", run_too_long, PLACE, FOLLOW},
	{"R5", "a run that is not padded", run_not_padded, PLACE, FOLLOW},
	{"R5", "a run beyond", run_beyond, PLACE, FOLLOW},
	{"R8", "number 0", number_zero, NUMBER, FOLLOW},
	{"R8", "a number again", number_again, NUMBER, FOLLOW},
	{"R8", "a number within another", number_within, NUMBER, FOLLOW},
	{"R8", "stored, and not joined", stored_unasked, "count of changes", FOLLOW},
	{"R8", "more stored than sent", stored_more, "count of changes", FOLLOW},
	{"R8", "less stored than none", stored_backwards, "count of changes", FOLLOW | BOTH},
	{"R5", "stored, with bytes", stored_bytes, "count of changes", FOLLOW},
	{"R9", "a follower's change", follower_changes, "change by a follower", LEAD},
	{"R8", "a follower that stores", follower_stores, "count of changes", LEAD},
};

/* ---- the victim ------------------------------------------------------------------------------ */

/* The call that asks for the mirror has taken the answer and the offence, too: none is attached. */
static bool seen_at_once;

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer;
	int rc;

	ctx = v->ctx;
	memset(room, 0x5a, sizeof(room));
	*pid = child_start(body, arg, 30);
	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	OK(slmpm_mirror_create(ctx, room + GUARD, BYTES, NULL, &mirror));
	rc = slmpm_mirror_attach(mirror, peer, TAG, (uint32_t)o->note, 0);
	CHECK(rc == 0 || rc == -SLMPM_EAGAIN || rc == -SLMPM_EPROTO, "%s: %d", o->name, rc);
	seen_at_once = rc == -SLMPM_EPROTO;
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	if (!seen_at_once) {
		OK(slmpm_mirror_query(mirror, peer, &info));
		CHECK(info.state == SLMPM_MIRROR_STALE && info.error == -SLMPM_EPROTO,
		      "%s: state %u, %d", o->name, info.state, info.error);
	}
	for (size_t i = 0; i < GUARD; i++)
		CHECK(room[i] == 0x5a && room[GUARD + BYTES + i] == 0x5a, "%s: a byte beside it",
		      o->name);
	for (size_t i = 8; i < BYTES && !strcmp(o->word, PLACE); i++)
		CHECK(room[GUARD + i] == 0x5a, "%s: byte %zu was stored", o->name, i);
	OK(slmpm_mirror_destroy(mirror));
}

int main(void)
{
	static const struct trial trial = {.meet = meet, .see = see};
	struct victim v;

	memset(noise, 0xee, sizeof(noise));
	victim_begin(&v, "hostile-mirror");
	SURVIVE(&v, &trial, offences);
	victim_end(&v);
	return 0;
}
