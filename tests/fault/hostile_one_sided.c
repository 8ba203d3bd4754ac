/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer with a key that says of one-sided operations what no peer says: its channel ends with the
 * violation's name, and an honest peer works on. R5, R6, R10 of doc/reliability.md.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/death.h"
#include "tests/lib/guarded.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_key.h"

#define SIZE  200000
#define ASKED 1 /* an offence's note: the victim has asked for something before */

static unsigned char bytes[64 << 10];

static void write_only(struct raw_peer *p, uint64_t seq, uint32_t n, uint32_t flags)
{
	struct raw_request r = raw_ask(0, n);

	raw_request(p, WIRE_WRITE_ONLY, seq, flags, &r, n, RAW_LEAD + n);
}

static void write_first(struct raw_peer *p, uint64_t seq, uint64_t total)
{
	struct raw_request r = raw_ask(0, total);

	raw_request(p, WIRE_WRITE_FIRST, seq, 0, &r, total, RAW_LEAD + RAW_PACKET);
}

static void read_request(struct raw_peer *p, uint64_t seq, uint64_t n)
{
	struct raw_request r = raw_ask(0, n);

	raw_request(p, WIRE_READ_REQUEST, seq, 0, &r, n, RAW_LEAD);
}

static void add(struct raw_peer *p, uint32_t bits, uint64_t length, uint32_t packet)
{
	struct raw_request r = raw_ask(0, length);

	r.atomic = (struct wire_atomic){LITTLE_64(1), 0, LITTLE_32(bits), 0};
	raw_request(p, WIRE_FETCH_ADD, 1, 0, &r, length, packet);
}

/* ---- violations ------------------------------------------------------------------------------ */

static void number_skipped(struct raw_peer *p)
{
	write_only(p, 2, 8, 0);
}

static void number_zero(struct raw_peer *p)
{
	write_only(p, 0, 8, 0);
}

static void number_again(struct raw_peer *p)
{
	read_request(p, 1, 8);
	read_request(p, 1, 8);
}

static void flag_of_read(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 8);

	raw_request(p, WIRE_READ_REQUEST, 1, WIRE_FLAG_ANSWER, &r, 8, RAW_LEAD);
}

static void flag_of_write(struct raw_peer *p)
{
	write_only(p, 1, 8, WIRE_FLAG_ANNOUNCED);
}

static void no_target(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 0);

	raw_request(p, WIRE_WRITE_ONLY, 1, 0, &r, 0, RAW_LEAD - 1);
}

static void other_length(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 9);

	raw_request(p, WIRE_WRITE_ONLY, 1, 0, &r, 8, RAW_LEAD + 8);
}

static void not_zero(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 8);

	r.target.zero = 1;
	raw_request(p, WIRE_WRITE_ONLY, 1, 0, &r, 8, RAW_LEAD + 8);
}

static void beyond_everything(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, SLMPM_MESSAGE_MAX + 1);

	raw_request(p, WIRE_READ_REQUEST, 1, 0, &r, SLMPM_MESSAGE_MAX + 1, RAW_LEAD);
}

static void only_short(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 80);

	raw_request(p, WIRE_WRITE_ONLY, 1, 0, &r, 80, RAW_LEAD + 8);
}

static void only_long(struct raw_peer *p)
{
	write_only(p, 1, RAW_PACKET + 1, 0);
}

static void first_is_all(struct raw_peer *p)
{
	write_first(p, 1, RAW_PACKET);
}

static void first_not_full(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 20000);

	raw_request(p, WIRE_WRITE_FIRST, 1, 0, &r, 20000, RAW_LEAD + RAW_PACKET - 1);
}

static void middle_of_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_WRITE_MIDDLE, 1, 0, 0, bytes, RAW_PACKET);
}

static void more(struct raw_peer *p, uint8_t opcode, uint64_t offset, uint32_t length)
{
	write_first(p, 1, 30000);
	raw_post(p, opcode, 1, 0, offset, bytes, length);
}

static void middle_elsewhere(struct raw_peer *p)
{
	more(p, WIRE_WRITE_MIDDLE, RAW_PACKET - RAW_LEAD, RAW_PACKET);
}

static void middle_short(struct raw_peer *p)
{
	more(p, WIRE_WRITE_MIDDLE, RAW_PACKET, RAW_PACKET - 1);
}

static void last_early(struct raw_peer *p)
{
	more(p, WIRE_WRITE_LAST, RAW_PACKET, RAW_PACKET);
}

static void middle_is_last(struct raw_peer *p)
{
	write_first(p, 1, 2 * RAW_PACKET);
	raw_post(p, WIRE_WRITE_MIDDLE, 1, 0, RAW_PACKET, bytes, RAW_PACKET);
}

static void first_twice(struct raw_peer *p)
{
	write_first(p, 1, 30000);
	write_first(p, 1, 30000);
}

static void many_writes(struct raw_peer *p)
{
	for (uint64_t i = 1; i <= 17; i++)
		write_first(p, i, 30000);
}

static void many_reads(struct raw_peer *p)
{
	for (uint64_t i = 1; i <= 17; i++)
		read_request(p, i, 100000); /* whose response finds no room */
}

static void read_long(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 8);

	raw_request(p, WIRE_READ_REQUEST, 1, 0, &r, 8, RAW_LEAD + 1);
}

static void half_an_atomic(struct raw_peer *p)
{
	add(p, 64, 8, RAW_LEAD + 8);
}

static void atomic_of_16_bits(struct raw_peer *p)
{
	add(p, 16, 2, sizeof(struct raw_request));
}

static void atomic_of_two_widths(struct raw_peer *p)
{
	add(p, 32, 8, sizeof(struct raw_request));
}

static void notify_long(struct raw_peer *p)
{
	struct raw_request r = raw_ask(0, 8);

	raw_request(p, WIRE_NOTIFY, 1, 0, &r, 8, RAW_LEAD + 8);
}

static void notify_without_end(struct raw_peer *p)
{
	for (uint64_t i = 1; i <= (1 << 20) / WIRE_ENVELOPE + 1; i++)
		write_only(p, i, 8, WIRE_FLAG_NOTIFY);
}

static void withdraw_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_WITHDRAW, 1, 0, 1, NULL, 0);
}

static void answer_unasked(struct raw_peer *p)
{
	raw_post(p, WIRE_READ_ONLY, 1, 0, 8, bytes, 8);
}

static void acknowledge_unasked(struct raw_peer *p)
{
	raw_post(p, WIRE_ACKNOWLEDGE, 1, 0, 0, NULL, 0);
}

static void atomic_unasked(struct raw_peer *p)
{
	raw_post(p, WIRE_ATOMIC_ACKNOWLEDGE, 1, 0, 0, bytes, 8);
}

/* The victim reads RAW_FOREIGN bytes from us: its request has number 1. */
static void response_long(struct raw_peer *p)
{
	raw_post(p, WIRE_READ_ONLY, 1, 0, RAW_FOREIGN, bytes, RAW_FOREIGN + 1);
}

static void response_first(struct raw_peer *p)
{
	raw_post(p, WIRE_READ_FIRST, 1, 0, RAW_FOREIGN, bytes, RAW_PACKET);
}

static void response_last(struct raw_peer *p)
{
	raw_post(p, WIRE_READ_LAST, 1, 0, 0, bytes, RAW_FOREIGN);
}

static void acknowledge_read(struct raw_peer *p)
{
	raw_post(p, WIRE_ACKNOWLEDGE, 1, 0, 0, NULL, 0);
}

static void acknowledge_by_no_error(struct raw_peer *p)
{
	raw_post(p, WIRE_ACKNOWLEDGE, 1, 0, 1000, NULL, 0);
}

static void atomic_for_read(struct raw_peer *p)
{
	raw_post(p, WIRE_ATOMIC_ACKNOWLEDGE, 1, 0, 0, bytes, 8);
}

static const struct offence offences[] = {
	{"R8", "number skipped", number_skipped, "number of a request", 0},
	{"R8", "number zero", number_zero, "number of a request", 0},
	{"R8", "number again", number_again, "number of a request", 0},
	{"R6", "flag of a read", flag_of_read, "flag of a request", 0},
	{"R6", "flag of a Write", flag_of_write, "flag of a request", 0},
	{"R5", "no target", no_target, "length of a request", 0},
	{"R5", "two lengths", other_length, "range of a request", 0},
	{"R5", "field that is not zero", not_zero, "range of a request", 0},
	{"R5", "beyond everything", beyond_everything, "range of a request", 0},
	{"R5", "Only too short", only_short, "length of a Write", 0},
	{"R5", "Only too long", only_long, "length of a Write", 0},
	{"R5", "First is all", first_is_all, "length of a Write", 0},
	{"R5", "First not full", first_not_full, "length of a Write", 0},
	{"R8", "Middle of nothing", middle_of_nothing, "continuation of no Write", 0},
	{"R5", "Middle elsewhere", middle_elsewhere, "offset of a Write", 0},
	{"R5", "Middle not full", middle_short, "offset of a Write", 0},
	{"R5", "Middle is the last", middle_is_last, "offset of a Write", 0},
	{"R5", "Last too early", last_early, "offset of a Write", 0},
	{"R8", "First twice", first_twice, "second Write of one number", 0},
	{"R10", "seventeen Writes", many_writes, "number of Writes under way", 0},
	{"R10", "seventeen reads", many_reads, "number of requests under way", 0},
	{"R5", "read with more", read_long, "length of a read request", 0},
	{"R5", "half an atomic", half_an_atomic, "length of an atomic operation", 0},
	{"R6", "atomic of 16 bits", atomic_of_16_bits, "width of an atomic operation", 0},
	{"R6", "atomic of two widths", atomic_of_two_widths, "width of an atomic operation", 0},
	{"R5", "notification with bytes", notify_long, "length of a notification", 0},
	{"R10", "notified without end", notify_without_end, "credit overrun", 0},
	{"R8", "withdrawal of nothing", withdraw_nothing, "withdrawal of no Write", 0},
	{"R8", "unasked response", answer_unasked, "response to no read", 0},
	{"R8", "unasked acknowledgement", acknowledge_unasked, "acknowledgement", 0},
	{"R8", "unasked word", atomic_unasked, "acknowledgement of an atomic", 0},
	{"R5", "response too long", response_long, "read's response", ASKED},
	{"R5", "response begins too long", response_first, "read's response", ASKED},
	{"R5", "response without beginning", response_last, "read's response", ASKED},
	{"R8", "read acknowledged", acknowledge_read, "acknowledgement", ASKED},
	{"R8", "no such error", acknowledge_by_no_error, "acknowledgement", ASKED},
	{"R8", "word for a read", atomic_for_read, "acknowledgement of an atomic", ASKED},
};

/* ---- both processes ------------------------------------------------------------------------- */

static unsigned char *base, got[RAW_FOREIGN];
static slmpm_mem mem;
static slmpm_req req;

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);
	slmpm_rmem rmem;

	if (o->note == ASKED) {
		OK(slmpm_mem_open(peer, &raw_keys->foreign, &rmem));
		OK(slmpm_get(rmem, 0, got, RAW_FOREIGN, NULL, &req));
	}
	raw_keys->ready = 1;
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_done done;

	(void)peer;
	CHECK(guarded_is_whole(base, SIZE), "%s: what lies around the region", o->name);
	if (o->note != ASKED)
		return;
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_EPROTO);
}

int main(void)
{
	static const struct trial trial = {.come = raw_keys_come, .meet = meet, .see = see};
	slmpm_ctr none = {0};
	struct victim v;
	slmpm_cq cq;

	raw_keys_make();
	victim_begin(&v, "hostile-one-sided");
	base = guarded_new(SIZE);
	OK(slmpm_mem_register(v.ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	OK(slmpm_cq_create(v.ctx, &cq));
	OK(slmpm_mem_notify(mem, none, cq));
	SURVIVE(&v, &trial, offences);
	OK(slmpm_mem_notify(mem, none, (slmpm_cq){0}));
	OK(slmpm_cq_destroy(cq));
	victim_end(&v);
	return 0;
}
