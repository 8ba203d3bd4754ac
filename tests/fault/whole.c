/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message of up to WIRE_WHOLE bytes in one packet, though packets are shorter: from a peer that
 * has agreed to it, and to it, as one of a stream, where this processor gains by it.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/fabric.h"
#include "shm/copy.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"

#define BLOCK  4096
#define PACKET 8192  /* as peers made by hand say */
#define EAGER  32768 /* likewise */
#define LONG   (RING_TAKES / 2)

/* In one packet; a checksum might be behind it. */
enum { RING_TAKES = RAW_SEGMENTS / 4 * RAW_SEGMENT_SIZE - RING_WORD - FABRIC_HEAD_SIZE - 4 };

static unsigned char bytes[WIRE_WHOLE + 1];

struct reader {
	const char *address;
	uint64_t offered;
	bool whole;
};

/* The kind of the next packet, of which LENGTH bytes are payload. */
static uint8_t next_packet(struct raw_peer *p, uint32_t *length)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;

	while (ring_peek(&p->r, &packet) != 1) {
		CHECK(actor_now_ms() < until, "nothing comes");
		(void)poll(NULL, 0, 1);
	}
	*length = packet.length - FABRIC_HEAD_SIZE;
	CHECK(packet.kind != WIRE_SEND_ONLY ||
		      !memcmp(packet.data + FABRIC_HEAD_SIZE, bytes, *length),
	      "other bytes");
	ring_release(&p->r, &packet);
	ring_publish_consumed(&p->r, RING_FLUSH);
	return packet.kind;
}

static void comes_whole(struct raw_peer *p, uint32_t sent)
{
	uint32_t length;

	EXPECT(next_packet(p, &length), WIRE_SEND_ONLY);
	EXPECT(length, sent);
}

static void comes(struct raw_peer *p, bool whole)
{
	uint32_t length;

	if (whole) {
		comes_whole(p, LONG);
		return;
	}
	EXPECT(next_packet(p, &length), WIRE_SEND_FIRST);
	EXPECT(length, BLOCK);
	EXPECT(next_packet(p, &length), WIRE_SEND_LAST);
}

static int read_it(void *arg)
{
	const struct reader *me = arg;
	bool whole = me->whole && copy_has_vectors();
	struct raw_peer p;

	raw_begin(&p, raw_connect(me->address));
	p.hello.features = LITTLE_64(me->offered);
	p.hello.packet_max = LITTLE_64(BLOCK);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	comes(&p, false);
	comes(&p, whole);
	comes_whole(&p, 8);
	comes(&p, whole);
	comes(&p, false); /* too long by a byte */
	raw_send(&p, 2, "answer", 6);
	raw_ring_bell(&p);
	comes(&p, false);
	comes(&p, whole);
	raw_end(&p);
	return 0;
}

static void send_some(slmpm_peer peer, const uint32_t *lengths, int n)
{
	for (int i = 0; i < n; i++)
		OK(slmpm_send(peer, 1, bytes, lengths[i], PATIENCE));
}

static void send_to(const struct victim *v, uint64_t offered, bool whole)
{
	struct reader r = {v->address, offered, whole};
	pid_t child = child_start(read_it, &r, 60);
	slmpm_peer peer;
	char word[6];

	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	send_some(peer, (const uint32_t[]){LONG, LONG, 8, LONG, LONG + 1}, 5);
	EXPECT(slmpm_recv(peer, 2, word, sizeof(word), NULL, PATIENCE), 6);
	send_some(peer, (const uint32_t[]){LONG, LONG}, 2);
	EXPECT(child_wait(child), 0);
	OK(slmpm_close(peer, 0));
}

static void post_only(struct raw_peer *p, uint32_t length)
{
	raw_post(p, WIRE_SEND_ONLY, ++p->sent, wire_route(2, 0), length, bytes, length);
}

static void come_with(struct raw_peer *p, const char *address, uint64_t offered)
{
	raw_begin(p, raw_connect(address));
	p->hello.features = LITTLE_64(offered);
	p->hello.eager_max = LITTLE_64(2 * WIRE_WHOLE);
	raw_steps(p, RAW_HELLO, RAW_UP);
}

static void come(struct raw_peer *p, const char *address)
{
	come_with(p, address, WIRE_FEATURES);
}

static void come_without(struct raw_peer *p, const char *address)
{
	come_with(p, address, WIRE_FEATURES & ~WIRE_FEATURE_WHOLE);
}

/* Twice: a receive that is too short loses what it has no room for. */
static int write_it(void *arg)
{
	struct raw_peer p;

	come(&p, arg);
	post_only(&p, WIRE_WHOLE);
	post_only(&p, WIRE_WHOLE);
	raw_ring_bell(&p);
	raw_end(&p);
	return 0;
}

static void receive_from(struct victim *v)
{
	static unsigned char got[WIRE_WHOLE];
	pid_t child = child_start(write_it, v->address, 60);
	slmpm_peer peer;

	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 2, got, sizeof(got), NULL, PATIENCE), WIRE_WHOLE);
	CHECK(!memcmp(got, bytes, WIRE_WHOLE), "other bytes");
	EXPECT(slmpm_recv(peer, 2, got, WIRE_WHOLE - 1, NULL, PATIENCE), -SLMPM_ETRUNC);
	EXPECT(child_wait(child), 0);
	OK(slmpm_close(peer, 0));
}

static void one_byte_more(struct raw_peer *p)
{
	post_only(p, WIRE_WHOLE + 1);
}

static void beyond_packet(struct raw_peer *p)
{
	post_only(p, PACKET + 1);
}

static void beyond_eager(struct raw_peer *p)
{
	post_only(p, EAGER + 1);
}

static const struct offence offences[] = {
	{"R5", "an Only over the limit", one_byte_more, "length of Only", 0},
};

static const struct offence without[] = {
	{"R5", "one that is not agreed", beyond_packet, "length of Only", 0},
};

static const struct offence little[] = {
	{"R5", "one that is to be announced", beyond_eager, "length of Only", 0},
};

static const struct trial longest = {.come = come}, shorter = {.come = come_without};

/* Where the length of packets is set, none that is longer is offered, or taken. */
static int does_not(void *arg)
{
	struct victim v;

	(void)arg;
	setenv("SLMPM_PACKET_MAX", "8k", 1);
	victim_begin(&v, "whole-not");
	send_to(&v, WIRE_FEATURES, false);
	SURVIVE(&v, &longest, without);
	victim_end(&v);
	return 0;
}

int main(void)
{
	static const struct trial usual = {.come = NULL};
	struct victim v;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 >> 3);
	setenv("SLMPM_FETCH", "never", 1);
	EXPECT(child_wait(child_start(does_not, NULL, 120)), 0);
	victim_begin(&v, "whole");
	send_to(&v, WIRE_FEATURES, true);
	send_to(&v, WIRE_FEATURES & ~WIRE_FEATURE_WHOLE, false);
	receive_from(&v);
	SURVIVE(&v, &longest, offences);
	SURVIVE(&v, &shorter, without);
	SURVIVE(&v, &usual, little);
	victim_end(&v);
	return 0;
}
