/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that connects legally and then breaks one rule: in the words of the ring, in a packet's
 * header, on the control socket. Its channel ends with the violation's name, counted; what it had
 * sent before can be read, and an honest peer works on. doc/reliability.md has the rules R1..R14.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_peer.h"

#define BOUND_MS 3000
#define PACKET   8192 /* the longest, as agreed */
#define EAGER    32768
#define CREDIT   (1u << 20)
#define LOANS    (1u << 20)

static unsigned char bytes[CREDIT];

struct offence {
	const char *rule;
	const char *name;
	void (*commit)(struct raw_peer *p);
	const char *word; /* the violation's name */
};

/* ---- the ring's words ---- */

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, LITTLE_64(value), memory_order_release);
}

static void store_word(struct raw_peer *p, uint64_t value)
{
	store(raw_commit_word(p, p->w.produced + 1), value);
}

/* A commit word that is right but for what LENGTH and FLAGS make of it. */
static uint64_t word_at(const struct raw_peer *p, uint64_t total, uint64_t flags, uint32_t length)
{
	return flags | (uint64_t)WIRE_SEND_ONLY << 54 | (uint64_t)length << 32 |
	       ((uint32_t)total ^ p->w.epoch);
}

static void produced_beyond(struct raw_peer *p)
{
	store(&raw_words(p)->produced, p->w.produced + p->w.mask + 2);
}

static void produced_back(struct raw_peer *p)
{
	struct pollfd end = {.fd = p->fd};

	for (int i = 0; i < 600; i++)
		raw_send(p, 1, bytes, 40);
	/* There and back again, until it has looked at the right moments. */
	do {
		store(&raw_words(p)->produced, p->w.produced);
		raw_ring_bell(p);
		(void)poll(NULL, 0, 3);
		store(&raw_words(p)->produced, 0);
		raw_ring_bell(p);
	} while (poll(&end, 1, 3) == 0);
}

static void consumed_beyond(struct raw_peer *p)
{
	store(&raw_words(p)->consumed, 1 << 20);
}

static void consumed_back(struct raw_peer *p)
{
	store(&raw_words(p)->consumed, UINT64_MAX);
}

static void word_of_noise(struct raw_peer *p)
{
	store_word(p, UINT64_C(0x123456789abcdef1));
}

static void word_of_next(struct raw_peer *p)
{
	store_word(p, word_at(p, p->w.produced + 2, 0, 40));
}

static void word_of_other_epoch(struct raw_peer *p)
{
	store_word(p, word_at(p, p->w.produced + 1, 0, 40) ^ 0x80000000);
}

static void longer_than_longest(struct raw_peer *p)
{
	store_word(p, word_at(p, p->w.produced + 1, 0, RING_LENGTH_MAX));
}

static void pad_with_length(struct raw_peer *p)
{
	store_word(p, word_at(p, p->w.produced + 1, RING_PAD, 40));
}

/* Fills the ring up to its last segment but one. */
static void go_to_the_end(struct raw_peer *p)
{
	while (((p->w.produced + 1) & p->w.mask) != p->w.mask)
		raw_send(p, 1, bytes, 8);
}

static void wrap(struct raw_peer *p)
{
	go_to_the_end(p);
	store_word(p, word_at(p, p->w.produced + 1, 0, 400));
}

static void shorter_than_header(struct raw_peer *p)
{
	store_word(p, word_at(p, p->w.produced + 1, 0, 23));
}

/* ---- headers ---- */

static void post(struct raw_peer *p, uint8_t opcode, uint64_t extent, uint32_t length)
{
	raw_post(p, opcode, ++p->sent, wire_route(1, 0), extent, bytes, length);
}

static void only_too_short(struct raw_peer *p)
{
	post(p, WIRE_SEND_ONLY, 100, 99);
}

static void only_too_long(struct raw_peer *p)
{
	post(p, WIRE_SEND_ONLY, PACKET + 1, PACKET + 1);
}

static void only_announced(struct raw_peer *p)
{
	post(p, WIRE_SEND_ONLY, wire_extent(50, WIRE_FLAG_ANNOUNCED), 50);
}

static void first_not_full(struct raw_peer *p)
{
	post(p, WIRE_SEND_FIRST, 20000, 8000);
}

static void first_is_all(struct raw_peer *p)
{
	post(p, WIRE_SEND_FIRST, PACKET, PACKET);
}

static void first_not_announced(struct raw_peer *p)
{
	post(p, WIRE_SEND_FIRST, EAGER + 1, PACKET);
}

static void first_needlessly_announced(struct raw_peer *p)
{
	post(p, WIRE_SEND_FIRST, wire_extent(EAGER, WIRE_FLAG_ANNOUNCED), PACKET);
}

static void first_of_everything(struct raw_peer *p)
{
	post(p, WIRE_SEND_FIRST, wire_extent(SLMPM_MESSAGE_MAX + 1, WIRE_FLAG_ANNOUNCED), PACKET);
}

static void more_of_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_SEND_MIDDLE, 77, wire_route(1, 0), PACKET, bytes, PACKET);
}

/* After a legal First of 30,000 bytes. */
static void go_on(struct raw_peer *p, uint8_t opcode, uint32_t stream, uint64_t offset,
		  uint32_t length)
{
	post(p, WIRE_SEND_FIRST, 30000, PACKET);
	raw_post(p, opcode, p->sent, wire_route(stream, 0), offset, bytes, length);
}

static void middle_elsewhere(struct raw_peer *p)
{
	go_on(p, WIRE_SEND_MIDDLE, 1, PACKET + 1, PACKET);
}

static void middle_again(struct raw_peer *p)
{
	go_on(p, WIRE_SEND_MIDDLE, 1, 0, PACKET);
}

static void middle_not_full(struct raw_peer *p)
{
	go_on(p, WIRE_SEND_MIDDLE, 1, PACKET, 8000);
}

static void middle_of_other_stream(struct raw_peer *p)
{
	go_on(p, WIRE_SEND_MIDDLE, 2, PACKET, PACKET);
}

static void last_too_early(struct raw_peer *p)
{
	go_on(p, WIRE_SEND_LAST, 1, PACKET, PACKET);
}

static void last_of_nothing(struct raw_peer *p)
{
	go_on(p, WIRE_SEND_LAST, 1, PACKET, 0);
}

static void unasked_rest(struct raw_peer *p)
{
	/* On stream 9 nobody receives. */
	raw_post(p, WIRE_SEND_FIRST, ++p->sent, wire_route(9, 0),
		 wire_extent(100000, WIRE_FLAG_ANNOUNCED), bytes, PACKET);
	raw_post(p, WIRE_SEND_MIDDLE, p->sent, wire_route(9, 0), PACKET, bytes, PACKET);
}

static void bundle_of_none(struct raw_peer *p)
{
	post(p, WIRE_BUNDLE, 8, 0);
}

static void bundle_of_zero(struct raw_peer *p)
{
	post(p, WIRE_BUNDLE, 0, 64);
}

static void bundle_uneven(struct raw_peer *p)
{
	post(p, WIRE_BUNDLE, 24, 100);
}

static void bundle_too_long(struct raw_peer *p)
{
	post(p, WIRE_BUNDLE, 8, 8200);
}

static void bundle_of_long(struct raw_peer *p)
{
	post(p, WIRE_BUNDLE, 512, 1024);
}

static void opcode_zero(struct raw_peer *p)
{
	uint64_t total = p->w.produced + 1;

	/* No kind but a length: neither open nor a packet. */
	store_word(p, UINT64_C(40) << 32 | ((uint32_t)total ^ p->w.epoch));
}

static void opcode_kept_free(struct raw_peer *p)
{
	post(p, 20, 8, 8);
}

static void opcode_unknown(struct raw_peer *p)
{
	post(p, 255, 8, 8);
}

static void unknown_flag(struct raw_peer *p)
{
	post(p, WIRE_SEND_ONLY, wire_extent(8, 0x8000), 8);
}

static void checksum_without_room(struct raw_peer *p)
{
	post(p, WIRE_SEND_ONLY, wire_extent(0, WIRE_FLAG_CHECK), 3);
}

static void sequence_again(struct raw_peer *p)
{
	raw_post(p, WIRE_SEND_ONLY, p->sent, wire_route(1, 0), 8, bytes, 8);
}

static void sequence_ahead(struct raw_peer *p)
{
	p->sent++;
	post(p, WIRE_SEND_ONLY, 8, 8);
}

static void any_stream(struct raw_peer *p)
{
	raw_post(p, WIRE_SEND_ONLY, ++p->sent, wire_route(SLMPM_ANY_STREAM, 0), 8, bytes, 8);
}

/* ---- what it refers to ---- */

static void clear_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_CLEAR, 12345, 0, 0, NULL, 0);
}

static void withdraw_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_WITHDRAW, 12345, 0, 0, NULL, 0);
}

static void credit_unearned(struct raw_peer *p)
{
	raw_post(p, WIRE_CREDIT, 0, 0, 1 << 20, NULL, 0);
}

static void return_no_area(struct raw_peer *p)
{
	raw_post(p, WIRE_LOAN_DONE, 0, 0, 3, NULL, 0);
}

static void loan(struct raw_peer *p, uint8_t opcode, uint64_t seq, struct wire_loan l)
{
	l.ready = LITTLE_64(l.ready);
	l.capacity = LITTLE_64(l.capacity);
	l.area = LITTLE_32(l.area);
	l.final = LITTLE_32(l.final);
	raw_post(p, opcode, seq, wire_route(1, 0), 0, &l, sizeof(l));
}

static void lend_no_area(struct raw_peer *p)
{
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 10, 9, 1});
}

static int sealed_memory(size_t size)
{
	int fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 &&
		      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
	      "no memory");
	return fd;
}

static void offer_area(struct raw_peer *p, uint32_t id, uint64_t size, int fd)
{
	struct wire_area area = {.area = LITTLE_32(id), .size = LITTLE_64(size)};

	(void)raw_say_packet(p->fd, WIRE_AREA, &area, sizeof(area), fd);
	if (fd >= 0)
		close(fd);
}

static void lend_more_than_area(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65537, 0, 0});
}

static void lend_twice(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65536, 0, 0});
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65536, 0, 0});
}

static void lend_beyond_capacity(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){65536, 10, 0, 0});
}

static void lend_less_again(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){1000, 65536, 0, 0});
	loan(p, WIRE_LOAN_MORE, p->sent, (struct wire_loan){999, 65536, 0, 0});
}

static void half_a_loan(struct raw_peer *p)
{
	post(p, WIRE_LOAN, 0, 12);
}

/* ---- too much ---- */

static void never_stop(struct raw_peer *p)
{
	/* Nothing is received over there on stream 9. */
	for (uint32_t sent = 0; sent <= CREDIT; sent += PACKET)
		raw_send(p, 9, bytes, PACKET);
}

static void area_too_large(struct raw_peer *p)
{
	offer_area(p, 0, 2 * LOANS, sealed_memory(2 * LOANS));
}

static void areas_too_many(struct raw_peer *p)
{
	for (uint32_t i = 0; i < 3; i++)
		offer_area(p, i, LOANS / 2, sealed_memory(LOANS / 2));
}

static void area_again(struct raw_peer *p)
{
	for (int i = 0; i < 2; i++)
		offer_area(p, 4, 65536, sealed_memory(65536));
}

static void area_unsealed(struct raw_peer *p)
{
	int fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, 65536) == 0, "no memory");
	offer_area(p, 0, 65536, fd);
}

static void area_smaller_than_said(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(4096));
}

static void area_without_memory(struct raw_peer *p)
{
	offer_area(p, 0, 65536, -1);
}

/* ---- the control socket ---- */

static void hello_again(struct raw_peer *p)
{
	raw_say_packet(p->fd, WIRE_HELLO, &p->hello, sizeof(p->hello), -1);
}

static void another_round(struct raw_peer *p)
{
	raw_say_round(p, 3, bytes, 8, -1);
}

static void noise(struct raw_peer *p)
{
	raw_say(p->fd, "some noise", 10, NULL, 0);
}

static void too_many_descriptors(struct raw_peer *p)
{
	int fds[50];

	for (int i = 0; i < 50; i++)
		fds[i] = p->own.fd;
	raw_say(p->fd, "b", 1, fds, 50);
}

static const struct offence offences[] = {
	{"R2", "produced beyond the ring", produced_beyond, "produced total"},
	{"R2", "produced goes back", produced_back, "produced total"},
	{"R3", "consumed what was not written", consumed_beyond, "consumed total"},
	{"R3", "consumed goes back", consumed_back, "consumed total"},
	{"R4", "a commit word of noise", word_of_noise, "commit word"},
	{"R4", "the tag after the next", word_of_next, "commit word"},
	{"R4", "another connection's tag", word_of_other_epoch, "commit word"},
	{"R4", "a tag without a kind", opcode_zero, "commit word"},
	{"R5", "longer than the longest", longer_than_longest, "packet length"},
	{"R5", "a pad with a length", pad_with_length, "packet length"},
	{"R5", "a packet that wraps", wrap, "packet length"},
	{"R5", "shorter than its header", shorter_than_header, "packet length"},
	{"R5", "Only of another length", only_too_short, "length of Only"},
	{"R5", "Only over the limit", only_too_long, "length of Only"},
	{"R5", "Only, announced", only_announced, "length of Only"},
	{"R5", "First not full", first_not_full, "length of First"},
	{"R5", "First that is all", first_is_all, "length of First"},
	{"R5", "First not announced", first_not_announced, "length of First"},
	{"R5", "First announced needlessly", first_needlessly_announced, "length of First"},
	{"R5", "First of everything", first_of_everything, "length of First"},
	{"R5", "Middle elsewhere", middle_elsewhere, "continuation"},
	{"R5", "Middle again", middle_again, "continuation"},
	{"R5", "Middle not full", middle_not_full, "continuation"},
	{"R5", "Last too early", last_too_early, "continuation"},
	{"R5", "Last of nothing", last_of_nothing, "continuation"},
	{"R5", "a bundle of none", bundle_of_none, "bundle"},
	{"R5", "a bundle of empty ones", bundle_of_zero, "bundle"},
	{"R5", "an uneven bundle", bundle_uneven, "bundle"},
	{"R5", "a bundle too long", bundle_too_long, "bundle"},
	{"R5", "a bundle of long ones", bundle_of_long, "bundle"},
	{"R5", "no room for the checksum", checksum_without_room, "length of a checksum"},
	{"R5", "half a loan", half_a_loan, "length of a loan"},
	{"R6", "an opcode kept free", opcode_kept_free, "opcode"},
	{"R6", "an unknown opcode", opcode_unknown, "opcode"},
	{"R8", "Middle of no message", more_of_nothing, "continuation of no message"},
	{"R8", "Middle on another stream", middle_of_other_stream, "continuation of no message"},
	{"R8", "the rest, unasked", unasked_rest, "continuation of no message"},
	{"R8", "an envelope again", sequence_again, "sequence number"},
	{"R8", "an envelope left out", sequence_ahead, "sequence number"},
	{"R8", "the stream of any", any_stream, "stream"},
	{"R8", "clears what was never sent", clear_nothing, "clear to send"},
	{"R8", "withdraws what never came", withdraw_nothing, "withdrawal of no message"},
	{"R8", "credit for nothing", credit_unearned, "credit"},
	{"R8", "returns no area", return_no_area, "return of an area"},
	{"R8", "lends an unknown area", lend_no_area, "area of a loan"},
	{"R8", "lends more than the area", lend_more_than_area, "area of a loan"},
	{"R8", "lends an area twice", lend_twice, "area of a loan"},
	{"R5", "lends beyond its capacity", lend_beyond_capacity, "loan"},
	{"R5", "takes lent bytes back", lend_less_again, "continuation of a loan"},
	{"R10", "never stops", never_stop, "credit overrun"},
	{"R10", "an area too large", area_too_large, "offered area"},
	{"R10", "areas too many", areas_too_many, "offered area"},
	{"R10", "an area again", area_again, "offered area"},
	{"R10", "descriptors too many", too_many_descriptors, "control packet"},
	{"S3", "an area that can shrink", area_unsealed, "offered area"},
	{"S4", "an area too small", area_smaller_than_said, "offered area"},
	{"S1", "an area without memory", area_without_memory, "offer of an area"},
	{"S7", "hello again", hello_again, "control packet out of turn"},
	{"S7", "another round", another_round, "control packet out of turn"},
	{"S7", "noise on the socket", noise, "control packet"},
	{"R14", "an unknown flag", unknown_flag, "unknown flag"},
};
#define OFFENCES (sizeof(offences) / sizeof(*offences))

/* ---- the offender ---- */

static char address[64];

static int offend(void *arg)
{
	const struct offence *o = arg;
	struct raw_peer p;
	char reason[112];

	raw_begin(&p, raw_connect(address));
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_send(&p, 1, "legal", 5);
	raw_ring_bell(&p);
	raw_await_packet(&p);
	o->commit(&p);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, o->word), "%s: the answer was \"%s\"", o->name, reason);
	raw_end(&p);
	return 0;
}

/* ---- who is offended ---- */

static uint64_t counted(const char *word)
{
	uint64_t sum = 0, count;
	const char *name;

	for (int i = 0; slmpm_violation_at(i, &name, &count) == 0; i++)
		if (strstr(name, word))
			sum += count;
	return sum;
}

static void expect_poisoned(slmpm_ctx ctx, slmpm_peer peer, const struct offence *o)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_event e = {.size = sizeof(e)};
	struct slmpm_stats stats;
	bool told = false;

	OK(slmpm_peer_query(peer, &info));
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(info.state == SLMPM_PEER_POISONED && stats.violations == 1,
	      "%s: state %u, %llu violations", o->name, info.state,
	      (unsigned long long)stats.violations);
	while (slmpm_next_event(ctx, &e, 0) == 1)
		if (e.peer.id == peer.id && e.type != SLMPM_EVENT_UP) {
			CHECK(e.type == SLMPM_EVENT_POISONED && e.error == -SLMPM_EPROTO && !told,
			      "%s: event %u, error %d: %s", o->name, e.type, e.error, e.detail);
			told = true;
		}
	CHECK(told, "%s: no event", o->name);
}

/* Asleep and awake, with a look at the figures and without. */
static void survive(const struct offence *o, slmpm_ctx ctx, slmpm_listener listener,
		    slmpm_peer honest)
{
	struct holdings before = holdings_now();
	int64_t until = actor_now_ms() + BOUND_MS * actor_slow(), n;
	uint64_t count = counted(o->word);
	struct slmpm_stats stats;
	unsigned char got[64];
	slmpm_peer peer;
	int messages = 0;
	pid_t pid = child_start(offend, (void *)(uintptr_t)o, 30);

	OK(slmpm_accept(listener, &peer, PATIENCE));
	while ((n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 5)) != -SLMPM_EPROTO) {
		CHECK(actor_now_ms() < until, "%s was not noticed", o->name);
		CHECK(n > 0 || n == -SLMPM_ETIMEOUT || n == -SLMPM_ETRUNC, "%s: %lld (%s)", o->name,
		      (long long)n, slmpm_error_detail());
		if (messages == 0 && n > 0) {
			CHECK(n == 5 && memcmp(got, "legal", 5) == 0, "%s: the legal message",
			      o->name);
			OK(slmpm_send(peer, 1, "go on", 5, PATIENCE));
		}
		messages += n > 0;
		honest_works(honest);
		if (n < 0 && messages)
			OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	}
	CHECK(strstr(slmpm_error_detail(), o->word), "%s: \"%s\"", o->name, slmpm_error_detail());
	CHECK(messages > 0, "%s: the legal message was lost", o->name);
	expect_poisoned(ctx, peer, o);
	EXPECT(slmpm_send(peer, 1, "x", 1, PATIENCE), -SLMPM_EPROTO);
	CHECK(counted(o->word) == count + 1, "%s: counted %llu times", o->name,
	      (unsigned long long)(counted(o->word) - count));
	CHECK(child_wait(pid) == 0, "%s: see above", o->name);
	OK(slmpm_close(peer, PATIENCE));
	honest_works(honest);
	holdings_expect(before, o->name);
}

/* ---- legal, but annoying ---- */

static int annoy(void *arg)
{
	struct raw_peer p;
	char reason[112];

	(void)arg;
	raw_begin(&p, raw_connect(address));
	raw_steps(&p, RAW_HELLO, RAW_UP);
	for (int i = 0; i < 20000; i++) { /* R12: bells for nothing */
		raw_ring_bell(&p);
		store(&raw_words(&p)->asleep, (uint64_t)i);
		if (i % 64 == 0)
			raw_send(&p, 1, bytes, 32);
	}
	raw_send(&p, 2, "over", 4);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "annoyance was called \"%s\"", reason);
	raw_end(&p);
	return 0;
}

/* R11, R12: the honest one gets its turn, and nothing was a violation. */
static void bear(slmpm_listener listener, slmpm_peer honest)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(annoy, NULL, 30);
	int64_t slowest = 0, n = 0;
	unsigned char got[64];
	slmpm_peer peer;
	struct slmpm_done done = {.stream = 1};

	OK(slmpm_accept(listener, &peer, PATIENCE));
	while (done.stream == 1) {
		int64_t begin = actor_now_ms();

		honest_works(honest);
		if (actor_now_ms() - begin > slowest)
			slowest = actor_now_ms() - begin;
		n = slmpm_recv(peer, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE);
		CHECK(n > 0, "bells end in %lld (%s)", (long long)n, slmpm_error_detail());
	}
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "bells: see above");
	CHECK(slowest < 1000 * actor_slow(), "the honest peer waited for %lld ms",
	      (long long)slowest);
	holdings_expect(before, "bells");
}

/* A message that never goes on: announced, and asked for; or begun, and longer than its buffer. */
static int stall(void *arg)
{
	struct raw_peer p;
	char reason[112];

	(void)arg;
	raw_begin(&p, raw_connect(address));
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_post(&p, WIRE_SEND_FIRST, ++p.sent, wire_route(1, 0),
		 wire_extent(100000, WIRE_FLAG_ANNOUNCED), bytes, PACKET);
	raw_post(&p, WIRE_SEND_FIRST, ++p.sent, wire_route(2, 0), 30000, bytes, PACKET);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "a pause was called \"%s\"", reason);
	raw_end(&p);
	return 0;
}

static void wait_no_longer(slmpm_listener listener, slmpm_peer honest)
{
	static unsigned char room[100000];
	struct holdings before = holdings_now();
	pid_t pid = child_start(stall, NULL, 30);
	int64_t begin;
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	begin = actor_now_ms();
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_recv(peer, 1, room, sizeof(room), NULL, 50), -SLMPM_ETIMEOUT);
		honest_works(honest);
	}
	for (int i = 0; i < 2; i++) {
		int64_t rc = slmpm_recv(peer, 2, room, 64, NULL, 50);

		/* Put back whole, or ended with what its buffer takes. */
		CHECK(rc == -SLMPM_ETIMEOUT || rc == -SLMPM_ETRUNC, "%lld: %s", (long long)rc,
		      slmpm_error_detail());
	}
	CHECK(actor_now_ms() - begin < 1000 * actor_slow(), "four deadlines took %lld ms",
	      (long long)(actor_now_ms() - begin));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "a pause: see above");
	holdings_expect(before, "a pause");
}

/* R7: another user does not get in. */
static int come_as_another(void *arg)
{
	unsigned user = getuid(); /* whose number the name has in it */
	char packet[512];
	int fd;

	(void)arg;
	if (setresuid(65534, 65534, 65534) != 0)
		return TEST_SKIPPED;
	fd = raw_connect_as(address, user);
	CHECK(fd >= 0, "the listener is not there");
	CHECK(raw_hear(fd, packet, sizeof(packet), NULL) == 0, "it spoke to another user");
	close(fd);
	return 0;
}

static void refuse_another_user(slmpm_listener listener, slmpm_peer honest)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(come_as_another, NULL, 30);
	siginfo_t info = {0};
	slmpm_peer nobody;
	int rc;

	while (!info.si_pid) {
		EXPECT(slmpm_accept(listener, &nobody, 2), -SLMPM_ETIMEOUT);
		CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0, "waitid");
	}
	honest_works(honest);
	rc = child_wait(pid);
	if (rc == TEST_SKIPPED)
		printf("R7  another user: not tried, needs root\n");
	else
		CHECK(rc == 0, "another user: see above");
	holdings_expect(before, "another user");
}

int main(void)
{
	slmpm_listener listener;
	slmpm_peer honest;
	slmpm_ctx ctx;
	char url[80];
	pid_t pid;

	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_LOAN_MAX", "1m", 1);
	setenv("SLMPM_RING_SEGMENTS", "8192", 1); /* a lap is less than the credit */
	snprintf(address, sizeof(address), "hostile-packet-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(honest_peer, address, 60);
	OK(slmpm_accept(listener, &honest, PATIENCE));
	for (size_t i = 0; i < OFFENCES; i++) {
		survive(&offences[i], ctx, listener, honest);
		printf("%-3s %-30s %s\n", offences[i].rule, offences[i].name, offences[i].word);
	}
	bear(listener, honest);
	wait_no_longer(listener, honest);
	refuse_another_user(listener, honest);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}
