/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/*
 * Connections that lie in words, break off or keep silent, at a listener and in the place of a
 * spawned child: refused with the reason in bounded time, nothing kept.
 */
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/liar.h"

static void say_noise(struct raw_peer *p)
{
	unsigned char noise[64];

	actor_fill(noise, 77, sizeof(noise));
	raw_say(p->fd, noise, sizeof(noise), NULL, 0);
}

static void say_little(struct raw_peer *p)
{
	raw_say(p->fd, "abcd", 4, NULL, 0);
}

static void say_nothing_at_all(struct raw_peer *p)
{
	raw_say(p->fd, "", 0, NULL, 0);
}

static void pass_without_a_word(struct raw_peer *p)
{
	const int fds[2] = {p->own.fd, p->own.fd};

	raw_say(p->fd, "", 0, fds, 2);
}

static void say_much(struct raw_peer *p)
{
	static unsigned char much[60000];

	memcpy(much, &p->hello, sizeof(p->hello));
	raw_say_packet(p->fd, WIRE_HELLO, much, sizeof(much), -1);
}

static void say_unknown_type(struct raw_peer *p)
{
	raw_say_packet(p->fd, 99, &p->hello, sizeof(p->hello), -1);
}

static void send_hello(struct raw_peer *p)
{
	raw_say_packet(p->fd, WIRE_HELLO, &p->hello, sizeof(p->hello), -1);
}

static void truncate_hello(struct raw_peer *p)
{
	raw_say_packet(p->fd, WIRE_HELLO, &p->hello, sizeof(p->hello) - 16, -1);
}

static void say_hello_with_descriptor(struct raw_peer *p)
{
	raw_say_packet(p->fd, WIRE_HELLO, &p->hello, sizeof(p->hello), p->own.fd);
}

static void pass_many(struct raw_peer *p)
{
	int fds[60];

	for (int i = 0; i < 60; i++)
		fds[i] = p->own.fd;
	p->hello.head = (struct wire_control_head){LITTLE_32(WIRE_HELLO), LITTLE_32(120)};
	raw_say(p->fd, &p->hello, sizeof(p->hello), fds, 60);
}

static void wrong_magic(struct raw_peer *p)
{
	p->hello.magic ^= 1;
	send_hello(p);
}

static void wrong_version(struct raw_peer *p)
{
	p->hello.major = LITTLE_16(9);
	memset(p->hello.version, 'x', sizeof(p->hello.version)); /* no end */
	send_hello(p);
}

static void require_unknown(struct raw_peer *p)
{
	p->hello.required = LITTLE_64(UINT64_C(1) << 40);
	send_hello(p);
}

static void other_fabric(struct raw_peer *p)
{
	memset(p->hello.fabric, 'f', sizeof(p->hello.fabric));
	send_hello(p);
}

static void no_limits(struct raw_peer *p)
{
	p->hello.packet_max = LITTLE_64(3);
	send_hello(p);
}

static void no_credit(struct raw_peer *p)
{
	p->hello.eager_credit = 0;
	send_hello(p);
}

/* Else its packets would have room for nothing, and a message would never end. */
static void no_loans(struct raw_peer *p)
{
	p->hello.loan_max = LITTLE_64(1);
	send_hello(p);
}

static void hello_twice(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_HELLO);
	send_hello(p);
}

static void round_at_once(struct raw_peer *p)
{
	raw_say_round(p, 0, &p->offer, sizeof(p->offer), p->own.fd);
}

static void area_at_once(struct raw_peer *p)
{
	struct wire_area area = {.size = LITTLE_64(4096)};

	raw_say_packet(p->fd, WIRE_AREA, &area, sizeof(area), p->own.fd);
}

static void wrong_nonce(struct raw_peer *p)
{
	struct wire_nonce nonce;

	raw_steps(p, RAW_HELLO, RAW_HELLO);
	nonce.nonce = ~p->heard.nonce;
	raw_say_packet(p->fd, WIRE_NONCE, &nonce, sizeof(nonce), -1);
}

/* The right one, but for that. */
static void say_nonce(struct raw_peer *p, size_t more, int passed)
{
	struct {
		struct wire_nonce nonce;
		unsigned char more[8];
	} right = {.nonce = {.nonce = p->heard.nonce}};

	raw_say_packet(p->fd, WIRE_NONCE, &right, sizeof(right.nonce) + more, passed);
}

static void nonce_and_more(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_HELLO);
	say_nonce(p, 8, -1);
}

static void nonce_with_descriptor(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_HELLO);
	say_nonce(p, 0, p->own.fd);
}

static void nonce_twice(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_NONCE);
	say_nonce(p, 0, -1);
}

/* As it is to be, but for that. */
static void say_offer(struct raw_peer *p, size_t n, int descriptors)
{
	const int fds[3] = {p->own.fd, p->own.fd, p->own.fd};
	struct {
		struct wire_round round;
		unsigned char more[8];
	} offer = {.round = {.head = {LITTLE_32(WIRE_ROUND), LITTLE_32((uint32_t)n)},
			     .blob_length = LITTLE_32(sizeof(p->offer))}};

	memcpy(offer.round.blob, &p->offer, sizeof(p->offer));
	raw_steps(p, RAW_HELLO, RAW_NONCE);
	raw_say(p->fd, &offer, n, fds, descriptors);
}

static void short_round(struct raw_peer *p)
{
	say_offer(p, sizeof(struct wire_round) - 1, 1);
}

static void long_round(struct raw_peer *p)
{
	say_offer(p, sizeof(struct wire_round) + 1, 1);
}

static void three_descriptors(struct raw_peer *p)
{
	say_offer(p, sizeof(struct wire_round), 3);
}

static void round_of_a_link(struct raw_peer *p)
{
	struct wire_round round = {.link = LITTLE_16(1)};

	raw_steps(p, RAW_HELLO, RAW_NONCE);
	raw_say_packet(p->fd, WIRE_ROUND, &round, sizeof(round), p->own.fd);
}

static void round_of_a_life(struct raw_peer *p)
{
	struct wire_round round = {.life = LITTLE_16(1)};

	raw_steps(p, RAW_HELLO, RAW_NONCE);
	raw_say_packet(p->fd, WIRE_ROUND, &round, sizeof(round), p->own.fd);
}

static void long_blob(struct raw_peer *p)
{
	struct wire_round round = {.blob_length = LITTLE_32(UINT32_MAX)};

	raw_steps(p, RAW_HELLO, RAW_NONCE);
	raw_say_packet(p->fd, WIRE_ROUND, &round, sizeof(round), p->own.fd);
}

static void skip_a_round(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_OFFER);
	raw_say_round(p, 2, &p->offered.epoch, 8, -1);
}

static void wrong_echo(struct raw_peer *p)
{
	uint64_t epoch;

	raw_steps(p, RAW_HELLO, RAW_OFFER);
	epoch = ~p->offered.epoch;
	raw_say_round(p, 1, &epoch, 8, -1);
}

static void leave_seals_open(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_OFFER);
	raw_say_round(p, 1, &p->offered.epoch, 8, -1);
	raw_say_round(p, 2, &p->offered.epoch, 8, -1);
}

/* For good, and so that anybody may still be let write. */
static void close_seals_for_size(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_OFFER);
	CHECK(mapping_keep_seals(&p->own) == 0, "seals");
	raw_say_round(p, 1, &p->offered.epoch, 8, -1);
	raw_say_round(p, 2, &p->offered.epoch, 8, -1);
}

static void refuse_oddly(struct raw_peer *p)
{
	struct wire_bye bye;

	memset(&bye, 0x1b, sizeof(bye)); /* no end, and nothing to print */
	raw_say_packet(p->fd, WIRE_BYE, &bye, sizeof(bye), -1);
}

static void fall_silent(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_HELLO);
}

static void fall_silent_late(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_MAPPED);
}

static void only_ring_bells(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_HELLO);
	for (int i = 0; i < 20000; i++)
		raw_say(p->fd, "b", 1, NULL, 0);
}

static void break_off(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_OFFER);
	(void)shutdown(p->fd, SHUT_RDWR);
}

static const struct lie lies[] = {
	{"noise", say_noise, SLMPM_EPROTO, "control packet"},
	{"four bytes", say_little, SLMPM_EPROTO, "control packet"},
	{"an empty packet", say_nothing_at_all, SLMPM_EDEAD, NULL},
	{"descriptors in an empty packet", pass_without_a_word, SLMPM_EDEAD, NULL},
	{"60,000 bytes", say_much, SLMPM_EPROTO, "control packet"},
	{"an unknown type", say_unknown_type, SLMPM_EPROTO, "out of turn"},
	{"a hello cut short", truncate_hello, SLMPM_EPROTO, "wrong length"},
	{"a hello with a descriptor", say_hello_with_descriptor, SLMPM_EPROTO, "wrong length"},
	{"sixty descriptors", pass_many, SLMPM_EPROTO, "wrong length"},
	{"another magic", wrong_magic, SLMPM_EPROTO, "does not speak SLMPM"},
	{"another version", wrong_version, SLMPM_EVERSION, "wire version 9.0"},
	{"an unknown feature", require_unknown, SLMPM_EVERSION, "requires"},
	{"another fabric", other_fabric, SLMPM_ENOTSUP, "another fabric"},
	{"packets of three bytes", no_limits, SLMPM_EPROTO, "limits"},
	{"no credit", no_credit, SLMPM_EPROTO, "limits"},
	{"no loans", no_loans, SLMPM_EPROTO, "limits"},
	{"hello twice", hello_twice, SLMPM_EPROTO, "out of turn"},
	{"an offer at once", round_at_once, SLMPM_EPROTO, "out of turn"},
	{"an area at once", area_at_once, SLMPM_EPROTO, "area"},
	{"another nonce", wrong_nonce, SLMPM_EPROTO, "nonce"},
	{"a nonce and more", nonce_and_more, SLMPM_EPROTO, "nonce"},
	{"a nonce with a descriptor", nonce_with_descriptor, SLMPM_EPROTO, "nonce"},
	{"the nonce twice", nonce_twice, SLMPM_EPROTO, "out of turn"},
	{"an offer cut short", short_round, SLMPM_EPROTO, "malformed"},
	{"an offer and more", long_round, SLMPM_EPROTO, "control packet"},
	{"a link before the first one", round_of_a_link, SLMPM_EPROTO, "malformed"},
	{"another life of the first one", round_of_a_life, SLMPM_EPROTO, "malformed"},
	{"three descriptors", three_descriptors, SLMPM_EPROTO, "malformed"},
	{"a blob without end", long_blob, SLMPM_EPROTO, "malformed"},
	{"a round left out", skip_a_round, SLMPM_EPROTO, "malformed"},
	{"another epoch", wrong_echo, SLMPM_EPROTO, "answer to the offer"},
	{"seals left open", leave_seals_open, SLMPM_EPROTO, "ring"},
	{"seals that let others write", close_seals_for_size, SLMPM_EPROTO, "ring"},
	{"a strange goodbye", refuse_oddly, SLMPM_EPROTO, "it says: ?"},
	{"silence after the hello", fall_silent, SLMPM_ETIMEOUT, "in time"},
	{"silence after the rounds", fall_silent_late, SLMPM_ETIMEOUT, "in time"},
	{"nothing but bells", only_ring_bells, SLMPM_ETIMEOUT, "in time"},
	{"breaking off", break_off, SLMPM_EDEAD, NULL},
};

int main(int argc, char **argv)
{
	return liar_main(argc, argv, lies, sizeof(lies) / sizeof(*lies));
}
