/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that breaks a rule of puts into a FIFO: its channel ends with the violation's name, and an
 * honest peer works on. What has a wrong key or range is refused, and is in no FIFO. R5, R6 and R9
 * of doc/reliability.md.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_key.h"

#define SIZE 200000

enum { PUT = 0xff10, DONE };

struct entry {
	struct wire_target target;
	uint64_t tag;
	uint32_t imm, zero;
	unsigned char bytes[30000];
};

static const char *address;
static slmpm_mem mem;

static struct entry entry(uint64_t offset, uint64_t length, uint64_t tag)
{
	return (struct entry){.target = raw_ask(offset, length).target, .tag = LITTLE_64(tag)};
}

static void post(struct raw_peer *p, uint8_t opcode, uint32_t flags, uint16_t id, uint32_t head,
		 uint64_t total, const void *data, uint32_t length)
{
	raw_post(p, opcode, ++p->sent, wire_route(id | head << 16, 0),
		 wire_extent(total, flags | WIRE_FLAG_ACTIVE), data, length);
}

static void put(struct raw_peer *p, const struct entry *e, uint32_t flags, uint32_t bytes)
{
	post(p, WIRE_SEND_ONLY, flags, PUT, 56, 56 + bytes, e, 56 + bytes);
}

static void first(struct raw_peer *p, uint32_t flags, uint64_t total)
{
	struct entry e = entry(0, total - 56, 0);

	post(p, WIRE_SEND_FIRST, flags, PUT, 56, total, &e, RAW_PACKET);
}

static void done(struct raw_peer *p, uint64_t tag, uint32_t error, uint32_t flags, uint32_t bytes)
{
	struct entry e = {.tag = 0};
	const uint64_t words[2] = {LITTLE_64(tag), LITTLE_64((uint64_t)error)};

	memcpy(&e, words, sizeof(words));
	post(p, WIRE_SEND_ONLY, flags, DONE, 16, 16 + bytes, &e, 16 + bytes);
}

static void short_head(struct raw_peer *p)
{
	struct entry e = entry(0, 8, 0);

	post(p, WIRE_SEND_ONLY, 0, PUT, 55, 64, &e, 64);
}

static void long_head(struct raw_peer *p)
{
	struct entry e = entry(0, 8, 0);

	post(p, WIRE_SEND_ONLY, 0, PUT, 57, 64, &e, 64);
}

static void fewer_bytes(struct raw_peer *p)
{
	struct entry e = entry(0, 9, 0);

	put(p, &e, 0, 8);
}

static void more_bytes(struct raw_peer *p)
{
	struct entry e = entry(0, 7, 0);

	put(p, &e, 0, 8);
}

static void no_zero(struct raw_peer *p)
{
	struct entry e = entry(0, 8, 0);

	e.zero = 1;
	put(p, &e, 0, 8);
}

static void free_of_charge(struct raw_peer *p)
{
	struct entry e = entry(0, 8, 0);

	put(p, &e, WIRE_FLAG_UNCHARGED, 8);
}

static void long_and_free(struct raw_peer *p)
{
	first(p, WIRE_FLAG_UNCHARGED, 30000);
}

#define PACKETS 5 /* together longer than what may come without asking */

static void one_announced(struct raw_peer *p)
{
	const uint32_t total = PACKETS * RAW_PACKET;
	struct entry e = entry(0, total - 56, 0);

	post(p, WIRE_SEND_FIRST, WIRE_FLAG_ANNOUNCED, PUT, 56, total, &e, RAW_PACKET);
	for (uint32_t at = RAW_PACKET; at < total; at += RAW_PACKET)
		raw_post(p, at + RAW_PACKET < total ? WIRE_SEND_MIDDLE : WIRE_SEND_LAST, p->sent,
			 wire_route(PUT | 56u << 16, 0), at, &e, RAW_PACKET);
}

/* The second is not to come while the first is there. */
static void announced(struct raw_peer *p)
{
	one_announced(p);
	one_announced(p);
}

static void long_of_other_length(struct raw_peer *p)
{
	struct entry e = entry(0, 100, 0);

	post(p, WIRE_SEND_FIRST, 0, PUT, 56, RAW_PACKET + 8, &e, RAW_PACKET);
	raw_post(p, WIRE_SEND_LAST, p->sent, wire_route(PUT | 56u << 16, 0), RAW_PACKET, &e, 8);
}

static void long_answer(struct raw_peer *p)
{
	struct entry e = entry(0, 100, 0);

	post(p, WIRE_SEND_FIRST, 0, DONE, 16, RAW_PACKET + 8, &e, RAW_PACKET);
}

static void answer_unasked(struct raw_peer *p)
{
	done(p, 1, 0, WIRE_FLAG_UNCHARGED, 0);
}

static void answer_to_zero(struct raw_peer *p)
{
	done(p, 0, 0, WIRE_FLAG_UNCHARGED, 0);
}

static void answer_with_bytes(struct raw_peer *p)
{
	done(p, 1, 0, WIRE_FLAG_UNCHARGED, 8);
}

static void answer_for_credit(struct raw_peer *p)
{
	done(p, 1, 0, 0, 0);
}

/* The entries are dropped over there; nobody reads the answers here. */
static void without_end(struct raw_peer *p)
{
	struct entry e = entry(0, 8, 0);

	for (uint32_t charged = 0; charged <= 5 << 18; charged += 64 + WIRE_ENVELOPE) {
		e.tag = LITTLE_64(charged + 1);
		put(p, &e, 0, 8);
	}
}

static const struct offence offences[] = {
	{"R5", "a short head", short_head, "head of a FIFO entry", 0},
	{"R5", "a long head", long_head, "head of a FIFO entry", 0},
	{"R5", "fewer bytes", fewer_bytes, "length of a FIFO entry", 0},
	{"R5", "more bytes", more_bytes, "length of a FIFO entry", 0},
	{"R5", "what is zero is not", no_zero, "length of a FIFO entry", 0},
	{"R6", "free of charge", free_of_charge, "credit of a FIFO entry", 0},
	{"R8", "long and free of charge", long_and_free, "within another", 0},
	{"R8", "announced, and sent unasked", announced, "continuation of no message", 0},
	{"R5", "long, of another length", long_of_other_length, "length of a FIFO entry", 0},
	{"R8", "a long answer", long_answer, "within another", 0},
	{"R8", "an answer, unasked", answer_unasked, "answer to no request", 0},
	{"R8", "an answer to nothing", answer_to_zero, "answer to no request", 0},
	{"R5", "an answer with bytes", answer_with_bytes, "length of an answer", 0},
	{"R6", "an answer for credit", answer_for_credit, "credit of a FIFO entry", 0},
	{"R10", "puts without end", without_end, "credit overrun", 0},
};

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);

	(void)o;
	raw_keys->ready = 1;
	return peer;
}

static int64_t take_one(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_fifo e;
	int rc = slmpm_fifo_take(peer, &e, 5);

	(void)o;
	if (rc == 0)
		OK(slmpm_fifo_drop(&e));
	return rc;
}

/* ---- refused, and no violation ---- */

static void with_key(struct raw_peer *p, const struct slmpm_key *key, uint64_t offset,
		     uint64_t length, unsigned char flip, uint32_t bytes)
{
	struct entry e = {.target = raw_ask_with(key, offset, length).target};

	e.target.secret[3] ^= flip;
	put(p, &e, 0, bytes);
	e.tag = LITTLE_64(1);
	put(p, &e, 0, bytes);
}

static int guess(void *arg)
{
	struct entry e;
	struct raw_peer p;

	(void)arg;
	raw_keys_come(&p, address);
	with_key(&p, &raw_keys->read_write, SIZE - 7, 8, 0, 8);
	with_key(&p, &raw_keys->read_write, UINT64_MAX - 3, 8, 0, 8);
	with_key(&p, &raw_keys->read_write, SIZE + 1, 0, 0, 0);
	with_key(&p, &raw_keys->read_write, 0, 8, 1, 8);
	with_key(&p, &raw_keys->read_only, 0, 8, 0, 8);
	with_key(&p, &raw_keys->revoked, 0, 8, 0, 8);
	e = entry(SIZE, 0, 0); /* this one is right */
	e.imm = LITTLE_32(7);
	put(&p, &e, 0, 0);
	raw_send(&p, 2, "over", 4);
	raw_push(&p);
	raw_await_packet(&p);
	raw_end(&p);
	return 0;
}

static void refused(slmpm_ctx ctx, slmpm_listener listener)
{
	struct slmpm_stats stats;
	unsigned char got[8];
	struct slmpm_fifo e;
	slmpm_peer peer;
	slmpm_mem other;
	void *base;
	pid_t pid;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &other, &base));
	peer = raw_keys_meet(listener, mem, guess, NULL, &pid);
	OK(slmpm_mem_key(mem, peer, SLMPM_READ, &raw_keys->read_only));
	OK(slmpm_mem_key(other, peer, SLMPM_READ_WRITE, &raw_keys->revoked));
	OK(slmpm_mem_revoke(other, peer, PATIENCE));
	raw_keys->ready = 1;
	EXPECT(slmpm_recv(peer, 2, got, sizeof(got), NULL, PATIENCE), 4);
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(!stats.violations && stats.refused == 12, "%llu refused",
	      (unsigned long long)stats.refused);
	OK(slmpm_fifo_take(peer, &e, 0));
	CHECK(e.imm == 7 && e.offset == SIZE && !e.len && e.data, "%u", e.imm);
	OK(slmpm_fifo_store(&e, e.mem, e.offset, NULL, NULL));
	CHECK(child_wait(pid) == 0, "see above");
	EXPECT(slmpm_fifo_take(peer, &e, PATIENCE), -SLMPM_EDEAD);
	OK(slmpm_close(peer, PATIENCE));
}

int main(void)
{
	static const struct trial trial = {
		.come = raw_keys_come, .meet = meet, .inspect = take_one};
	struct victim v;
	void *base;

	raw_keys_make();
	victim_begin(&v, "hostile-fifo");
	address = v.address;
	OK(slmpm_mem_alloc(v.ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	SURVIVE(&v, &trial, offences);
	refused(v.ctx, v.listener);
	victim_end(&v);
	return 0;
}
