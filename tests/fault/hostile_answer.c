/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Answers that lie about a read under way by active messages, or by tag: of another kind, with
 * errors that there are none of, with more than was asked for. The channel ends, and the read with
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/guarded.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_key.h"

#define DONE   0xff07 /* numbers of the library's */
#define DATA   0xff08
#define FAILED 0xff09

static unsigned char bytes[RAW_PACKET];

/* ---- who is asked --------------------------------------------------------------------------- */

static uint32_t tag; /* of the read */

static void await_request(struct raw_peer *p)
{
	struct ring_packet packet;
	bool asked;
	int rc;

	do {
		while ((rc = ring_peek(&p->r, &packet)) == 0)
			;
		CHECK(rc == 1, "the ring is broken");
		asked = packet.kind == WIRE_SEND_ONLY;
		if (asked) /* behind the packet's head and the target */
			memcpy(&tag, packet.data + 24 + RAW_LEAD, sizeof(tag));
		ring_release(&p->r, &packet);
	} while (!asked);
	tag = LITTLE_32(tag);
}

static void come(struct raw_peer *p, const char *address)
{
	raw_keys_come(p, address);
	await_request(p);
}

static void answer(struct raw_peer *p, uint16_t id, uint64_t old, uint32_t length)
{
	static unsigned char all[16 + RAW_PACKET];
	uint64_t word = LITTLE_64(old);
	uint32_t to = LITTLE_32(tag);

	memcpy(all, &word, sizeof(word));
	memcpy(all + 8, &to, sizeof(to));
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, id, 16, 16 + length, all, 16 + length);
}

static void done(struct raw_peer *p)
{
	answer(p, DONE, 0, 0);
}

static void failed_with_none(struct raw_peer *p)
{
	answer(p, FAILED, 0, 0);
}

static void failed_with_unknown(struct raw_peer *p)
{
	answer(p, FAILED, 1000, 0);
}

static void another_tag(struct raw_peer *p)
{
	tag++;
	answer(p, DATA, 0, RAW_FOREIGN);
}

static void a_window_later(struct raw_peer *p)
{
	tag += 1u << 16; /* the same place of any table */
	answer(p, DATA, 0, RAW_FOREIGN);
}

static void too_much(struct raw_peer *p)
{
	answer(p, DATA, 0, RAW_FOREIGN + 1);
}

static void failed_with_bytes(struct raw_peer *p)
{
	answer(p, FAILED, 1, 8);
}

static void back_by_tag(struct raw_peer *p)
{
	raw_tagged(p, tag, 1, bytes, RAW_FOREIGN);
}

static void neither_way(struct raw_peer *p)
{
	raw_tagged(p, tag, 2, bytes, RAW_FOREIGN);
}

static void too_much_by_tag(struct raw_peer *p)
{
	raw_tagged(p, tag, 1, bytes, RAW_FOREIGN + 1);
}

static void data(struct raw_peer *p)
{
	answer(p, DATA, 0, RAW_FOREIGN);
}

static const struct offence to_a_read[] = {
	{"R8", "done, of a read", done, "answer to no request", 0},
	{"R6", "failed for no reason", failed_with_none, "answer to no request", 0},
	{"R6", "failed, no such error", failed_with_unknown, "answer to no request", 0},
	{"R8", "data of another tag", another_tag, "answer to no request", 0},
	{"R8", "data of a tag to come", a_window_later, "answer to no request", 0},
	{"R5", "more than was asked for", too_much, "length of a read", 0},
	{"R5", "failed, with bytes", failed_with_bytes, "length of an answer", 0},
	{"R8", "tagged, of a read", back_by_tag, "tag of a message", 0},
};

static const struct offence to_a_tagged_read[] = {
	{"R8", "neither out nor back", neither_way, "tag of a message", 0},
	{"R5", "more than was asked for", too_much_by_tag, "length of a read", 0},
	{"R8", "data, of a tagged read", data, "answer to no request", 0},
	{"R8", "done, of a tagged read", done, "answer to no request", 0},
};

/* ---- who asks ------------------------------------------------------------------------------- */

static unsigned char *got; /* RAW_FOREIGN bytes, and what must not change around them */
static slmpm_mem mem;
static slmpm_req req;

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);
	slmpm_rmem rmem;

	(void)o;
	OK(slmpm_mem_open(peer, &raw_keys->foreign, &rmem));
	OK(slmpm_get(rmem, 0, got, RAW_FOREIGN, NULL, &req));
	raw_keys->ready = 1;
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_done ended;

	(void)peer;
	CHECK(guarded_is_whole(got, RAW_FOREIGN), "%s: bytes beside the read's", o->name);
	EXPECT(slmpm_wait(&req, 1, &ended, PATIENCE), 0);
	EXPECT(ended.status, -SLMPM_EPROTO);
}

static int survive(void *way)
{
	static const struct trial trial = {.come = come, .meet = meet, .see = see};
	bool by_tag = !strcmp(way, "tag");
	struct victim v;

	CHECK(setenv("SLMPM_RMA", way, 1) == 0, "setenv");
	victim_begin(&v, "hostile-answer");
	got = guarded_new(RAW_FOREIGN);
	OK(slmpm_mem_register(v.ctx, bytes, sizeof(bytes), SLMPM_READ_WRITE, &mem));
	offence_survive(&v, &trial, by_tag ? to_a_tagged_read : to_a_read,
			by_tag ? sizeof(to_a_tagged_read) / sizeof(*to_a_tagged_read) :
				 sizeof(to_a_read) / sizeof(*to_a_read));
	victim_end(&v);
	return 0;
}

int main(void)
{
	raw_keys_make();
	CHECK(child_run(survive, (void *)(uintptr_t) "am", 25) == 0,
	      "by active messages: see above");
	CHECK(child_run(survive, (void *)(uintptr_t) "tag", 25) == 0, "by tag: see above");
	return 0;
}
