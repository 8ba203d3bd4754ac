/* SPDX-License-Identifier: BSD-3-Clause */
/* Links over TCP, by hand (raw_net.h). */
#include "tests/lib/raw_net.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/raw_link.h"
#include "tests/lib/stream_peer.h"
#include "tests/lib/test.h"

_Static_assert(sizeof(struct raw_net_offer) == 40, "wire layout");

#define HEADER 32
#define EVEN   4096 /* payloads from this length on begin behind 64 bytes */

/* ---- links -------------------------------------------------------------------------- */

int raw_net_call(const struct raw_net_offer *to, const unsigned char token[16],
		 const unsigned char own[16])
{
	int call = raw_stream_connect(LITTLE_16(to->port));
	unsigned char hello[40] = "SLMPMtcp";

	if (call < 0)
		return -1;
	memcpy(hello + 8, token, 16);
	memcpy(hello + 24, own, 16);
	(void)raw_stream_say(call, hello, sizeof(hello));
	return call;
}

bool raw_net_answered(const struct raw_net *n, int call)
{
	unsigned char answer[16];

	if (!raw_stream_read(call, answer, sizeof(answer)))
		return false;
	CHECK(!memcmp(answer, n->own.token, sizeof(answer)), "another link's token");
	return true;
}

int raw_net_join(struct raw_net *n, const struct raw_net_offer *to)
{
	int call = raw_net_call(to, to->token, n->own.token);

	CHECK(call >= 0 && raw_net_answered(n, call), "it does not let us in");
	return call;
}

void raw_net_prepare(struct raw_net *n, int control, const char *secret, unsigned links)
{
	*n = (struct raw_net){
		.own = {.version = LITTLE_32(2),
			.segments = LITTLE_32(RAW_NET_SEGMENTS),
			.segment_size = LITTLE_32(RAW_NET_SEGMENT)},
		.data = -1,
	};
	CHECK(getrandom(n->own.token, 16, 0) == 16, "nothing is random");
	raw_stream_prepare(&n->control, control, secret);
	n->control.hello.features =
		LITTLE_64(WIRE_FEATURES | ((UINT64_C(1) << (links - 1)) - 1) * WIRE_FEATURE_LINKS);
}

void raw_net_begin(struct raw_net *n, const char *address, unsigned links)
{
	char secret[33];
	uint16_t port;

	CHECK(sscanf(address, "tcp://127.0.0.1:%hu#%32s", &port, secret) == 2, "\"%s\"", address);
	raw_net_prepare(n, raw_stream_connect(port), secret, links);
	n->own.active = 1;
}

void raw_net_trade(struct raw_net *n)
{
	struct wire_round round = {.blob_length = LITTLE_32(sizeof(n->own))};

	memcpy(round.blob, &n->own, sizeof(n->own));
	CHECK(raw_stream_say_packet(n->control.fd, WIRE_ROUND, &round, sizeof(round)), "gone");
	CHECK(raw_stream_hear(n->control.fd, &round, sizeof(round)) == sizeof(round) &&
		      LITTLE_32(round.head.type) == WIRE_ROUND,
	      "no round");
	memcpy(&n->heard, round.blob, sizeof(n->heard));
}

void raw_net_first(struct raw_net *n)
{
	raw_net_trade(n);
	n->data = raw_net_join(n, &n->heard);
}

void raw_net_end(struct raw_net *n)
{
	if (n->control.fd >= 0)
		close(n->control.fd);
	close(n->data);
}

void raw_net_cut(struct raw_net *n)
{
	struct linger at_once = {1, 0};

	CHECK(setsockopt(n->control.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0,
	      "linger");
	close(n->control.fd);
	n->control.fd = -1;
}

/* ---- frames ---------------------------------------------------------------------------------- */

void raw_net_post(struct raw_net *n, uint8_t kind, const uint64_t head[3], const void *data,
		  uint32_t length)
{
	static unsigned char frame[1 << 18];
	uint64_t word = stream_word(0, length, kind), sum = head[0] ^ head[1] ^ head[2];
	size_t lead = length < EVEN ? HEADER : 64;
	size_t size = (lead + length + RAW_NET_SEGMENT - 1) / RAW_NET_SEGMENT * RAW_NET_SEGMENT;

	CHECK(size <= sizeof(frame), "a packet of %u bytes", length);
	memset(frame, 0, size);
	for (int at = 0; at < 64; at += 9)
		word ^= (sum >> at & 0x1ff) << 55;
	word = LITTLE_64(word);
	memcpy(frame, &word, 8);
	for (int i = 0; i < 3; i++) {
		uint64_t w = LITTLE_64(head[i]);

		memcpy(frame + 8 + 8 * i, &w, 8);
	}
	memcpy(frame + lead, data, length);
	CHECK(raw_stream_say(n->data, frame, size), "the first link has ended");
}

void raw_net_send(struct raw_net *n, const void *data, uint32_t length)
{
	uint64_t head[3] = {++n->envelopes, wire_route(1, 0), wire_extent(length, 0)};

	raw_net_post(n, WIRE_SEND_ONLY, head, data, length);
}

/* The next frame's kind, its payload in DATA; 0: a credit; -1 the end. */
static int take(struct raw_net *n, unsigned char data[4096])
{
	unsigned char header[64];
	uint64_t word;
	uint32_t length;
	size_t rest;

	if (!raw_stream_read(n->data, header, sizeof(header)))
		return -1;
	memcpy(&word, header, 8);
	word = LITTLE_64(word);
	length = (uint32_t)(word >> 25) & ((1u << 22) - 1);
	CHECK(length <= 4096 - 64, "a packet of %u bytes", length);
	memcpy(data, header + HEADER, sizeof(header) - HEADER);
	rest = (HEADER + length + RAW_NET_SEGMENT - 1) / RAW_NET_SEGMENT * RAW_NET_SEGMENT;
	rest = rest > sizeof(header) ? rest - sizeof(header) : 0;
	if (!raw_stream_read(n->data, data + sizeof(header) - HEADER, rest))
		return -1;
	return (int)(word >> 47 & 0xff);
}

void raw_net_go_on(struct raw_net *n)
{
	const uint64_t head[3] = {0};

	raw_net_send(n, "still", 5);
	raw_net_post(n, WIRE_OPCODES, head, "", 0);
}

void raw_net_hear_end(struct raw_net *n)
{
	unsigned char data[4096];

	while (take(n, data) >= 0)
		;
}

/* ---- what is said of links ------------------------------------------------------------------- */

struct wire_round raw_net_round(const struct raw_net *n, unsigned link, unsigned life)
{
	struct wire_round w = {.link = LITTLE_16((uint16_t)link),
			       .life = LITTLE_16((uint16_t)life),
			       .blob_length = LITTLE_32(sizeof(n->own)),
			       .name = "tcp"};

	memcpy(w.blob, &n->own, sizeof(n->own));
	return w;
}

static void say_by_link(struct raw_net *n, const struct wire_round *w)
{
	const uint64_t head[3] = {0};

	raw_net_post(n, WIRE_BOND_LINK, head, w, sizeof(*w));
}

void raw_net_say(struct raw_net *n, struct wire_round *w)
{
	if (n->control.fd >= 0)
		(void)raw_stream_say_packet(n->control.fd, WIRE_ROUND, w, sizeof(*w));
	else
		say_by_link(n, w);
}

static struct wire_round hear_by_control(struct raw_net *n)
{
	union {
		struct wire_round link;
		unsigned char bytes[512];
	} packet;

	do
		CHECK(raw_stream_hear(n->control.fd, &packet, sizeof(packet)) > 0, "it has ended");
	while (LITTLE_32(packet.link.head.type) != WIRE_ROUND);
	return packet.link;
}

struct wire_round raw_net_hear(struct raw_net *n)
{
	unsigned char data[4096];
	struct wire_round w;
	int kind;

	if (n->control.fd >= 0)
		return hear_by_control(n);
	do {
		kind = take(n, data);
		CHECK(kind >= 0, "the first link has ended");
	} while (kind != WIRE_BOND_LINK);
	memcpy(&w, data, sizeof(w));
	return w;
}

struct raw_net_offer raw_net_ask(struct raw_net *n, unsigned link, unsigned life)
{
	struct wire_round w = raw_net_round(n, link, life);
	struct raw_net_offer heard;

	raw_net_say(n, &w);
	w = raw_net_hear(n);
	CHECK(!w.round && LITTLE_16(w.link) == link && LITTLE_16(w.life) == life,
	      "round %u: %.100s", LITTLE_32(w.round), (const char *)w.blob);
	memcpy(&heard, w.blob, sizeof(heard));
	return heard;
}

void raw_net_refused(struct raw_net *n, unsigned link, unsigned life, const char *why)
{
	struct wire_round w;

	do
		w = raw_net_hear(n);
	while (LITTLE_32(w.round) != WIRE_ROUND_NOT);
	raw_link_refusal(&w, link, life, why);
}
