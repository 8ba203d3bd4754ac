/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that connects legally and then breaks one rule, in the words of the ring or in a packet's
 * header. Its channel ends with the violation's name, counted; what it had sent before can be read,
 * and an honest peer works on. doc/reliability.md has the rules R1..R14.
 */
#include <poll.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"

#define PACKET 8192 /* the longest, as agreed */
#define EAGER  32768
#define CREDIT (1u << 20)

static unsigned char bytes[CREDIT];

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

static void bundle_out_of_order(struct raw_peer *p)
{
	p->sent++;
	post(p, WIRE_BUNDLE, 8, 64);
}

static void bundle_of_before(struct raw_peer *p)
{
	p->sent--;
	post(p, WIRE_BUNDLE, 8, 64);
}

static void bundle_for_any_stream(struct raw_peer *p)
{
	raw_post(p, WIRE_BUNDLE, ++p->sent, wire_route(SLMPM_ANY_STREAM, 0), 8, bytes, 64);
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

/* ---- receive queues ---- */

static void bind_with_payload(struct raw_peer *p)
{
	raw_post(p, WIRE_BIND, 1, 9, 0, bytes, 8);
}

static void bind_any_stream(struct raw_peer *p)
{
	raw_post(p, WIRE_BIND, 1, SLMPM_ANY_STREAM, 0, NULL, 0);
}

static void bind_otherwise(struct raw_peer *p)
{
	raw_post(p, WIRE_BIND, 1, 9, BIND_REFUSED + 1, NULL, 0);
}

static void bind_shared_with_entries(struct raw_peer *p)
{
	raw_post(p, WIRE_BIND, 1, 9, BIND_SHARED, NULL, 0);
}

static void bind_shared_and_more(struct raw_peer *p, uint64_t total, uint64_t how)
{
	raw_post(p, WIRE_BIND, 0, 9, BIND_SHARED, NULL, 0);
	raw_post(p, WIRE_BIND, total, 9, how, NULL, 0);
}

static void bind_shared_back(struct raw_peer *p)
{
	bind_shared_and_more(p, UINT64_MAX, BIND_SHARED);
}

static void bind_shared_total(struct raw_peer *p)
{
	bind_shared_and_more(p, 1, BIND_TOTAL);
}

static void refuse_no_claim(struct raw_peer *p)
{
	bind_shared_and_more(p, 0, BIND_REFUSED);
}

static void bind_and_reserve(struct raw_peer *p)
{
	raw_post(p, WIRE_BIND, 1, 9, BIND_TOTAL, NULL, 0);
	raw_post(p, WIRE_BIND, 2, 9, BIND_SHARED, NULL, 0);
}

static void claim_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_CLAIM, 1, 9, CLAIM_NOW, NULL, 0);
}

static void release_nothing(struct raw_peer *p)
{
	raw_post(p, WIRE_BIND, 0, 9, 1, NULL, 0);
}

static void bound_with_number(struct raw_peer *p)
{
	raw_post(p, WIRE_BOUND, 1, 9, 0, NULL, 0);
}

static void bind_everything(struct raw_peer *p)
{
	for (uint32_t stream = 0; stream <= 256; stream++)
		raw_post(p, WIRE_BIND, 1, stream, 0, NULL, 0);
}

static void bind_for_ever(struct raw_peer *p)
{
	/* Nothing is read of what is answered. */
	for (uint32_t stream = 0; stream < 40000; stream++) {
		raw_post(p, WIRE_BIND, 1, stream, 0, NULL, 0);
		raw_post(p, WIRE_BIND, 0, stream, 1, NULL, 0);
	}
}

/* ---- too much ---- */

static void never_stop(struct raw_peer *p)
{
	/* Nothing is received over there on stream 9. */
	for (uint32_t sent = 0; sent <= CREDIT; sent += PACKET)
		raw_send(p, 9, bytes, PACKET);
}

static const struct offence offences[] = {
	{"R2", "produced beyond the ring", produced_beyond, "produced total", 0},
	{"R2", "produced goes back", produced_back, "produced total", 0},
	{"R3", "consumed what was not written", consumed_beyond, "consumed total", 0},
	{"R3", "consumed goes back", consumed_back, "consumed total", 0},
	{"R4", "a commit word of noise", word_of_noise, "commit word", 0},
	{"R4", "the tag after the next", word_of_next, "commit word", 0},
	{"R4", "another connection's tag", word_of_other_epoch, "commit word", 0},
	{"R4", "a tag without a kind", opcode_zero, "commit word", 0},
	{"R5", "longer than the longest", longer_than_longest, "packet length", 0},
	{"R5", "a pad with a length", pad_with_length, "packet length", 0},
	{"R5", "a packet that wraps", wrap, "packet length", 0},
	{"R5", "shorter than its header", shorter_than_header, "packet length", 0},
	{"R5", "Only of another length", only_too_short, "length of Only", 0},
	{"R5", "Only, announced", only_announced, "length of Only", 0},
	{"R5", "First not full", first_not_full, "length of First", 0},
	{"R5", "First that is all", first_is_all, "length of First", 0},
	{"R5", "First not announced", first_not_announced, "length of First", 0},
	{"R5", "First announced needlessly", first_needlessly_announced, "length of First", 0},
	{"R5", "First of everything", first_of_everything, "length of First", 0},
	{"R5", "Middle elsewhere", middle_elsewhere, "continuation", 0},
	{"R5", "Middle again", middle_again, "continuation", 0},
	{"R5", "Middle not full", middle_not_full, "continuation", 0},
	{"R5", "Last too early", last_too_early, "continuation", 0},
	{"R5", "Last of nothing", last_of_nothing, "continuation", 0},
	{"R5", "a bundle of none", bundle_of_none, "bundle", 0},
	{"R5", "a bundle of empty ones", bundle_of_zero, "bundle", 0},
	{"R5", "an uneven bundle", bundle_uneven, "bundle", 0},
	{"R8", "a bundle out of order", bundle_out_of_order, "bundle", 0},
	{"R8", "a bundle of what has been", bundle_of_before, "bundle", 0},
	{"R5", "a bundle for any stream", bundle_for_any_stream, "bundle", 0},
	{"R5", "a bundle too long", bundle_too_long, "bundle", 0},
	{"R5", "a bundle of long ones", bundle_of_long, "bundle", 0},
	{"R5", "no room for the checksum", checksum_without_room, "length of a checksum", 0},
	{"R6", "an opcode kept free", opcode_kept_free, "opcode", 0},
	{"R6", "an unknown opcode", opcode_unknown, "opcode", 0},
	{"R8", "Middle of no message", more_of_nothing, "continuation of no message", 0},
	{"R8", "Middle on another stream", middle_of_other_stream, "continuation of no message", 0},
	{"R8", "the rest, unasked", unasked_rest, "continuation of no message", 0},
	{"R8", "an envelope again", sequence_again, "sequence number", 0},
	{"R8", "an envelope left out", sequence_ahead, "sequence number", 0},
	{"R8", "the stream of any", any_stream, "stream", 0},
	{"R8", "clears what was never sent", clear_nothing, "clear to send", 0},
	{"R8", "withdraws what never came", withdraw_nothing, "withdrawal of no message", 0},
	{"R8", "credit for nothing", credit_unearned, "credit", 0},
	{"R8", "a receive queue with payload", bind_with_payload, "receive queue", 0},
	{"R8", "a receive queue of any stream", bind_any_stream, "receive queue", 0},
	{"R8", "a receive queue, how?", bind_otherwise, "receive queue", 0},
	{"R8", "a shared one with entries", bind_shared_with_entries, "receive queue", 0},
	{"R8", "reservations that go back", bind_shared_back, "receive queue", 0},
	{"R8", "a total of a shared one", bind_shared_total, "receive queue", 0},
	{"R8", "a refusal of no claim", refuse_no_claim, "receive queue", 0},
	{"R8", "a reservation of one's own", bind_and_reserve, "receive queue", 0},
	{"R8", "a claim of no receive queue", claim_nothing, "claim", 0},
	{"R8", "the end of no receive queue", release_nothing, "receive queue", 0},
	{"R8", "knows of a receive queue's number", bound_with_number, "receive queue", 0},
	{"R10", "receive queues everywhere", bind_everything, "receive queue", 0},
	{"R10", "receive queues for ever", bind_for_ever, "receive queue", 0},
	{"R10", "never stops", never_stop, "credit overrun", 0},
	{"R14", "an unknown flag", unknown_flag, "unknown flag", 0},
};

int main(void)
{
	struct victim v;

	setenv("SLMPM_RING_SEGMENTS", "8192", 1); /* a lap is less than the credit */
	victim_begin(&v, "hostile-packet");
	SURVIVE(&v, &trial_legal, offences);
	victim_end(&v);
	return 0;
}
