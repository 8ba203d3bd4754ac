/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that breaks a rule of one-sided operations by active messages: its channel ends with the
 * violation's name, an honest peer works on, and nothing is touched but the region. What is merely
 * not allowed is refused. R5, R6, R8 and R10 of doc/reliability.md.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/guarded.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_key.h"

#define SIZE 200000
#define OWN  0xff00 /* the first number of the library's */

enum { WRITE = OWN, READ, ATOMIC, NOTIFY, TAGGED_WRITE, TAGGED_READ, GIVE_UP, DONE, DATA, FAILED };

static unsigned char bytes[64 << 10], *base;
static slmpm_mem mem;
static const char *address;

struct request {
	struct wire_target target;
	uint32_t tag, imm;
	struct wire_atomic atomic;
};

static struct request ask_for(uint64_t offset, uint64_t length, uint32_t tag)
{
	struct raw_request r = raw_ask(offset, length);

	return (struct request){.target = r.target, .tag = LITTLE_32(tag)};
}

static void request(struct raw_peer *p, uint16_t id, const struct request *r, uint32_t head,
		    uint32_t data)
{
	static unsigned char all[RAW_PACKET];

	memcpy(all, r, sizeof(*r));
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, id, head, head + data, all, head + data);
}

static void answer(struct raw_peer *p, uint16_t id, uint64_t old, uint32_t tag, uint32_t data)
{
	unsigned char all[16 + 64] = {0};

	memcpy(all, &old, 8);
	memcpy(all + 8, &tag, 4);
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, id, 16, 16 + data, all, 16 + data);
}

static void short_request(struct raw_peer *p)
{
	struct request r = ask_for(0, 8, 1);

	request(p, WRITE, &r, 47, 8);
}

static void read_with_bytes(struct raw_peer *p)
{
	struct request r = ask_for(0, 8, 1);

	request(p, READ, &r, 48, 8);
}

static void atomic_without_operand(struct raw_peer *p)
{
	struct request r = ask_for(0, 8, 1);

	request(p, ATOMIC, &r, 48, 0);
}

static void atomic_of_no_kind(struct raw_peer *p)
{
	struct request r = ask_for(0, 8, 1);

	r.atomic.bits = LITTLE_32(64);
	request(p, ATOMIC, &r, 72, 0);
}

static void write_of_other_length(struct raw_peer *p)
{
	struct request r = ask_for(0, 9, 1);

	request(p, WRITE, &r, 48, 8);
}

static void write_of_everything(struct raw_peer *p)
{
	struct request r = ask_for(0, SLMPM_MESSAGE_MAX + 1, 1);

	request(p, TAGGED_WRITE, &r, 48, 0);
}

static void target_with_more(struct raw_peer *p)
{
	struct request r = ask_for(0, 8, 1);

	r.target.zero = 1;
	request(p, READ, &r, 48, 0);
}

static void read_too_long(struct raw_peer *p)
{
	struct request r = ask_for(0, RAW_PACKET, 1);

	request(p, READ, &r, 48, 0);
}

static void many_reads(struct raw_peer *p)
{
	for (uint32_t i = 0; i < 100; i++) {
		struct request r = ask_for(0, 8000, i);

		request(p, i % 2 ? READ : TAGGED_READ, &r, 48, 0);
	}
}

static void many_tagged_writes(struct raw_peer *p)
{
	for (uint32_t i = 0; i <= 64; i++) {
		struct request r = ask_for(0, 8000, i);

		request(p, TAGGED_WRITE, &r, 48, 0);
	}
}

static void tag_twice(struct raw_peer *p)
{
	struct request r = ask_for(0, 8, 7);

	request(p, TAGGED_WRITE, &r, 48, 0);
	request(p, TAGGED_WRITE, &r, 48, 0);
}

static void tag_of_nothing(struct raw_peer *p)
{
	raw_tagged(p, 7, 0, bytes, 8);
}

static void read_of_nothing(struct raw_peer *p)
{
	raw_tagged(p, 7, 1, bytes, 8);
}

static void tag_of_neither(struct raw_peer *p)
{
	raw_tagged(p, 7, 2, bytes, 8);
}

static void more_than_asked(struct raw_peer *p)
{
	struct request r = ask_for(0, 100, 7);

	request(p, TAGGED_WRITE, &r, 48, 0);
	raw_tagged(p, 7, 0, bytes, 60);
	raw_tagged(p, 7, 0, bytes, 41);
}

static void empty_tagged(struct raw_peer *p)
{
	struct request r = ask_for(0, 100, 7);

	request(p, TAGGED_WRITE, &r, 48, 0);
	raw_tagged(p, 7, 0, bytes, 0);
}

static void give_up_nothing(struct raw_peer *p)
{
	answer(p, GIVE_UP, 0, 7, 0);
}

static void done_unasked(struct raw_peer *p)
{
	answer(p, DONE, 0, 0, 0);
}

static void failed_unasked(struct raw_peer *p)
{
	answer(p, FAILED, 1, 0, 0);
}

static void data_unasked(struct raw_peer *p)
{
	answer(p, DATA, 0, 0, 8);
}

static void done_with_bytes(struct raw_peer *p)
{
	answer(p, DONE, 0, 0, 8);
}

static const struct offence offences[] = {
	{"R5", "a short request", short_request, "length of a request", 0},
	{"R5", "a read with bytes", read_with_bytes, "length of a request", 0},
	{"R5", "an atomic without operand", atomic_without_operand, "length of a request", 0},
	{"R6", "an atomic of no kind", atomic_of_no_kind, "width of an atomic operation", 0},
	{"R5", "a write of another length", write_of_other_length, "range of a request", 0},
	{"R5", "a write of everything", write_of_everything, "range of a request", 0},
	{"R5", "a field that is not zero", target_with_more, "range of a request", 0},
	{"R5", "a read too long", read_too_long, "range of a request", 0},
	{"R10", "many reads", many_reads, "number of requests under way", 0},
	{"R10", "many tagged writes", many_tagged_writes, "number of requests under way", 0},
	{"R8", "a tag twice", tag_twice, "tag of a request", 0},
	{"R8", "a tag of nothing", tag_of_nothing, "tag of a message", 0},
	{"R8", "a read of nothing", read_of_nothing, "tag of a message", 0},
	{"R8", "neither out nor back", tag_of_neither, "tag of a message", 0},
	{"R8", "more than asked for", more_than_asked, "tag of a message", 0},
	{"R8", "an empty tagged message", empty_tagged, "tag of a message", 0},
	{"R8", "gives up nothing", give_up_nothing, "tag of a request", 0},
	{"R8", "done, unasked", done_unasked, "answer to no request", 0},
	{"R8", "failed, unasked", failed_unasked, "answer to no request", 0},
	{"R8", "data, unasked", data_unasked, "answer to no request", 0},
	{"R5", "done, with bytes", done_with_bytes, "length of an answer", 0},
};

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);

	(void)o;
	raw_keys->ready = 1;
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	(void)peer;
	CHECK(guarded_is_whole(base, SIZE), "%s: what lies around the region", o->name);
}

/* ---- refused, and no violation ---- */

static void refused_write(struct raw_peer *p, uint64_t offset, uint64_t length, uint32_t flip)
{
	struct request r = ask_for(offset, length, 1);

	r.target.secret[5] ^= (unsigned char)flip;
	request(p, WRITE, &r, 48, (uint32_t)length);
	request(p, TAGGED_READ, &r, 48, 0);
	r.atomic = (struct wire_atomic){LITTLE_64(1), 0, LITTLE_32(64), 0};
	r.target.length = LITTLE_64(8);
	r.imm = LITTLE_32(SLMPM_FETCH_ADD);
	request(p, ATOMIC, &r, 72, 0);
	r.target.length = LITTLE_64(length);
	r.tag = LITTLE_32(2);
	request(p, TAGGED_WRITE, &r, 48, 0);
	if (length)
		raw_tagged(p, 2, 0, bytes, (uint32_t)length);
}

static int guess(void *arg)
{
	struct raw_peer p;

	(void)arg;
	raw_keys_come(&p, address);
	refused_write(&p, SIZE - 7, 8, 0);
	refused_write(&p, SIZE, 8, 0);
	refused_write(&p, UINT64_MAX - 3, 8, 0);
	refused_write(&p, 0, 8, 1);
	raw_send(&p, 2, "over", 4);
	raw_push(&p);
	raw_end(&p);
	return 0;
}

static void refused(slmpm_listener listener)
{
	struct slmpm_stats stats;
	unsigned char got[8];
	slmpm_peer peer;
	pid_t pid;

	memset(base, 0x3c, SIZE);
	peer = raw_keys_meet(listener, mem, guess, NULL, &pid);
	raw_keys->ready = 1;
	EXPECT(slmpm_recv(peer, 2, got, sizeof(got), NULL, PATIENCE), 4);
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(!stats.violations && stats.refused >= 16 && !stats.served, "%llu refused, %llu done",
	      (unsigned long long)stats.refused, (unsigned long long)stats.served);
	CHECK(guarded_is_whole(base, SIZE) && base[0] == 0x3c && base[SIZE - 1] == 0x3c,
	      "a byte was written");
	CHECK(child_wait(pid) == 0, "see above");
	OK(slmpm_close(peer, PATIENCE));
}

int main(void)
{
	static const struct trial trial = {.come = raw_keys_come, .meet = meet, .see = see};
	struct victim v;

	raw_keys_make();
	victim_begin(&v, "hostile-emulation");
	address = v.address;
	base = guarded_new(SIZE);
	OK(slmpm_mem_register(v.ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	SURVIVE(&v, &trial, offences);
	refused(v.listener);
	victim_end(&v);
	return 0;
}
