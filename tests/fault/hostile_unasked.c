/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of an announced message goes before its clear: as many full packets as the eager limit has
 * room for, to a peer that takes them, of one message at a time, and no byte more.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"

#define PACKET  8192 /* as agreed with a peer made by hand */
#define EAGER   32768
#define LENGTH  100000
#define UNASKED (EAGER / PACKET - 1) /* Middles */

static unsigned char bytes[LENGTH];

/* ---- the library sends ----------------------------------------------------------------------- */

enum scene { STOPS, CLEARED_AMID, TAKEN_BACK };

struct reader {
	const char *address;
	uint64_t offered;
	enum scene scene;
};

/* The next packet's opcode, its head, and its place in the message checked. */
static uint8_t next_packet(struct raw_peer *p, uint64_t head[3])
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;

	while (ring_peek(&p->r, &packet) != 1) {
		CHECK(actor_now_ms() < until, "nothing comes");
		(void)poll(NULL, 0, 1);
	}
	memcpy(head, packet.data, 24);
	if (packet.kind == WIRE_SEND_MIDDLE || packet.kind == WIRE_SEND_LAST)
		CHECK(!memcmp(packet.data + 24, bytes + (head[2] & WIRE_LENGTH_MASK),
			      packet.length - 24),
		      "other bytes");
	ring_release(&p->r, &packet);
	ring_publish_consumed(&p->r, RING_FLUSH);
	raw_ring_bell(p); /* it may sleep for want of room */
	return packet.kind;
}

static uint64_t next_is(struct raw_peer *p, uint8_t kind)
{
	uint64_t head[3];

	EXPECT(next_packet(p, head), kind);
	return head[0];
}

/* So many Middles, and then a packet of KIND: its message. */
static uint64_t goes_until(struct raw_peer *p, int middles, uint8_t kind)
{
	while (middles--)
		(void)next_is(p, WIRE_SEND_MIDDLE);
	return next_is(p, kind);
}

static void clear(struct raw_peer *p, uint64_t seq)
{
	raw_post(p, WIRE_CLEAR, seq, 0, 0, NULL, 0);
	raw_ring_bell(p);
}

static void take_rest(struct raw_peer *p, uint64_t seq)
{
	uint64_t head[3];

	clear(p, seq);
	while (next_packet(p, head) != WIRE_SEND_LAST)
		EXPECT(head[0], seq);
	EXPECT(head[0], seq);
}

static void read_stopped(struct raw_peer *p, const struct reader *me)
{
	int unasked = me->offered & WIRE_FEATURE_UNASKED ? UNASKED : 0;
	uint64_t one = next_is(p, WIRE_SEND_FIRST);
	uint64_t other = goes_until(p, unasked, WIRE_SEND_FIRST);

	(void)goes_until(p, 0, WIRE_SEND_ONLY);
	if (me->scene == TAKEN_BACK) {
		EXPECT(next_is(p, WIRE_WITHDRAW), one);
		one = next_is(p, WIRE_SEND_FIRST);
		(void)goes_until(p, UNASKED, WIRE_SEND_ONLY);
	}
	take_rest(p, other);
	take_rest(p, one);
}

/* The ring has no room for all that goes unasked, and the clear comes meanwhile. */
static void read_amid(struct raw_peer *p)
{
	uint64_t head[3];
	bool next = false, last = false;

	raw_await_packet(p);
	clear(p, 1);
	(void)poll(NULL, 0, 20); /* most likely it is seen before there is room */
	while (!last || !next) {
		uint8_t kind = next_packet(p, head);

		next |= kind == WIRE_SEND_ONLY;
		last |= kind == WIRE_SEND_LAST;
	}
}

static int read_it(void *arg)
{
	const struct reader *me = arg;
	struct raw_peer p;

	raw_begin(&p, raw_connect(me->address));
	p.hello.features = LITTLE_64(me->offered);
	if (me->scene == CLEARED_AMID)
		p.hello.eager_max = LITTLE_64(LENGTH - 1);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	if (me->scene == CLEARED_AMID)
		read_amid(&p);
	else
		read_stopped(&p, me);
	raw_end(&p);
	return 0;
}

static slmpm_req begin_send(slmpm_peer peer, uint32_t stream, size_t length)
{
	struct slmpm_iov iov = {bytes, length};
	slmpm_req req;

	OK(slmpm_sendv(peer, stream, &iov, 1, NULL, &req));
	return req;
}

static void end_send(slmpm_req req, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, status);
}

static void send_to(const struct victim *v, uint64_t offered, enum scene scene)
{
	struct reader r = {.address = v->address, .offered = offered, .scene = scene};
	pid_t child = child_start(read_it, &r, 60);
	slmpm_req one, other = {0};
	slmpm_peer peer;

	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	one = begin_send(peer, 1, LENGTH);
	if (scene != CLEARED_AMID)
		other = begin_send(peer, 3, LENGTH);
	end_send(begin_send(peer, 2, 1), 0);
	if (scene == TAKEN_BACK) {
		OK(slmpm_cancel(one));
		end_send(one, -SLMPM_ECANCELED);
		one = begin_send(peer, 1, LENGTH);
		end_send(begin_send(peer, 2, 1), 0);
	}
	if (scene != CLEARED_AMID)
		end_send(other, 0);
	end_send(one, 0);
	EXPECT(child_wait(child), 0);
	OK(slmpm_close(peer, 0));
}

/* ---- the library receives -------------------------------------------------------------------- */

static void first(struct raw_peer *p, uint32_t stream, uint32_t flags)
{
	raw_post(p, WIRE_SEND_FIRST, ++p->sent, wire_route(stream, 0), wire_extent(LENGTH, flags),
		 bytes, PACKET);
}

static void middle(struct raw_peer *p, uint32_t stream, uint64_t offset)
{
	raw_post(p, WIRE_SEND_MIDDLE, p->sent, wire_route(stream, 0), offset, bytes + offset,
		 PACKET);
}

static void all_unasked(struct raw_peer *p, uint32_t stream)
{
	first(p, stream, WIRE_FLAG_ANNOUNCED);
	for (int i = 1; i <= UNASKED; i++)
		middle(p, stream, (uint64_t)i * PACKET);
}

static int write_it(void *arg)
{
	const char *address = arg;
	struct raw_peer p;
	uint64_t head[3], at = EAGER, seq;

	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	for (int i = 0; i < 2; i++, at = EAGER) {
		all_unasked(&p, 1);
		seq = p.sent;
		raw_send(&p, 2, "here", 4);
		raw_ring_bell(&p);
		while (next_packet(&p, head) != WIRE_CLEAR || head[0] != seq)
			;
		for (; at + PACKET < LENGTH; at += PACKET)
			raw_post(&p, WIRE_SEND_MIDDLE, seq, wire_route(1, 0), at, bytes + at,
				 PACKET);
		raw_post(&p, WIRE_SEND_LAST, seq, wire_route(1, 0), at, bytes + at,
			 (uint32_t)(LENGTH - at));
		raw_ring_bell(&p);
	}
	raw_end(&p);
	return 0;
}

/* It has no receive while that comes: then a buffer, and then a hold. */
static void receive_from(struct victim *v)
{
	static unsigned char got[LENGTH];
	pid_t child = child_start(write_it, v->address, 60);
	const void *held;
	slmpm_peer peer;
	char word[4];

	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 2, word, sizeof(word), NULL, PATIENCE), 4);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), LENGTH);
	CHECK(!memcmp(got, bytes, LENGTH), "other bytes");
	EXPECT(slmpm_recv(peer, 2, word, sizeof(word), NULL, PATIENCE), 4);
	EXPECT(slmpm_hold(peer, 1, &held, NULL, PATIENCE), LENGTH);
	CHECK(!memcmp(held, bytes, LENGTH), "other bytes held");
	OK(slmpm_release(peer, held));
	EXPECT(child_wait(child), 0);
	OK(slmpm_close(peer, 0));
}

/* ---- and is lied to -------------------------------------------------------------------------- */

static void one_more(struct raw_peer *p)
{
	all_unasked(p, 9);
	middle(p, 9, EAGER);
}

static void of_two(struct raw_peer *p)
{
	all_unasked(p, 9);
	all_unasked(p, 9);
}

static void beyond_the_credit(struct raw_peer *p)
{
	all_unasked(p, 9);
	for (int i = 0; i < 200; i++)
		first(p, 9, WIRE_FLAG_ANNOUNCED);
}

static const struct offence offences[] = {
	{"R8", "one packet more", one_more, "continuation of no message", 0},
	{"R8", "two messages at a time", of_two, "continuation of no message", 0},
	{"R10", "and Firsts beyond the credit", beyond_the_credit, "credit overrun", 0},
};

static void not_agreed(struct raw_peer *p)
{
	first(p, 9, WIRE_FLAG_ANNOUNCED);
	middle(p, 9, PACKET);
}

static const struct offence without[] = {
	{"R8", "not agreed", not_agreed, "continuation of no message", 0},
};

int main(void)
{
	static const struct trial all_features = {.come = NULL};
	struct victim v;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 >> 3);
	setenv("SLMPM_FETCH", "never", 1);
	victim_begin(&v, "hostile-unasked");
	send_to(&v, WIRE_FEATURES, STOPS);
	send_to(&v, WIRE_FEATURES & ~WIRE_FEATURE_UNASKED, STOPS);
	send_to(&v, WIRE_FEATURES, CLEARED_AMID);
	send_to(&v, WIRE_FEATURES, TAKEN_BACK);
	receive_from(&v);
	SURVIVE(&v, &all_features, offences);
	SURVIVE(&v, &trial_legal, without);
	victim_end(&v);
	return 0;
}
