/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Connections that lie, break off or keep silent, at a listener and in the place of a spawned
 * child: refused with the reason in bounded time, nothing kept, and an honest peer works on.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"
#include "tests/lib/stranger.h"

/* The deadline: silence meets it soon; who speaks must not, however busy the machine is. */
#define SOON_MS  "400"
#define LATER_MS "10000"

struct lie {
	const char *name;
	void (*tell)(struct raw_peer *p);
	int error;        /* what the other side's calls say ... */
	const char *word; /* ... and its text, also to us; NULL: it says nothing to us */
};

/* ---- lies ---- */

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

static void say_hello(struct raw_peer *p)
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
	say_hello(p);
}

static void wrong_version(struct raw_peer *p)
{
	p->hello.major = LITTLE_16(9);
	memset(p->hello.version, 'x', sizeof(p->hello.version)); /* no end */
	say_hello(p);
}

static void require_unknown(struct raw_peer *p)
{
	p->hello.required = LITTLE_64(UINT64_C(1) << 40);
	say_hello(p);
}

static void other_fabric(struct raw_peer *p)
{
	memset(p->hello.fabric, 'f', sizeof(p->hello.fabric));
	say_hello(p);
}

static void no_limits(struct raw_peer *p)
{
	p->hello.packet_max = LITTLE_64(3);
	say_hello(p);
}

static void no_credit(struct raw_peer *p)
{
	p->hello.eager_credit = 0;
	say_hello(p);
}

static void hello_twice(struct raw_peer *p)
{
	raw_steps(p, RAW_HELLO, RAW_HELLO);
	say_hello(p);
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

/* The offer, with the memory of FD. */
static void offer(struct raw_peer *p, int fd)
{
	raw_steps(p, RAW_HELLO, RAW_NONCE);
	raw_say_round(p, 0, &p->offer, sizeof(p->offer), fd);
}

static void offer_nothing(struct raw_peer *p)
{
	offer(p, -1);
}

static void offer_twice(struct raw_peer *p)
{
	struct wire_round round = {.blob_length = LITTLE_32(sizeof(p->offer))};
	int fds[2] = {p->own.fd, p->own.fd};

	raw_steps(p, RAW_HELLO, RAW_NONCE);
	memcpy(round.blob, &p->offer, sizeof(p->offer));
	round.head = (struct wire_control_head){LITTLE_32(WIRE_ROUND), LITTLE_32(sizeof(round))};
	raw_say(p->fd, &round, sizeof(round), fds, 2);
}

static int memory(size_t size, unsigned flags, int seals)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | flags);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "no memory");
	CHECK(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0, "no seals");
	return fd;
}

#define RIGHT_SIZE (RING_SEGMENTS_OFFSET + (size_t)RAW_SEGMENTS * RAW_SEGMENT_SIZE)
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static void offer_unsealed(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE, MFD_ALLOW_SEALING, 0));
}

static void offer_growable(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE, MFD_ALLOW_SEALING, F_SEAL_SHRINK));
}

static void offer_too_small(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE - 4096, MFD_ALLOW_SEALING, SIZE_SEALS));
}

static void offer_too_large(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE + 1, MFD_ALLOW_SEALING, SIZE_SEALS));
}

static void offer_unwritable(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE, MFD_ALLOW_SEALING, SIZE_SEALS | F_SEAL_WRITE));
}

static void offer_pipe(struct raw_peer *p)
{
	int fds[2];

	CHECK(pipe(fds) == 0, "no pipe");
	offer(p, fds[0]);
}

static void offer_socket(struct raw_peer *p)
{
	offer(p, p->fd);
}

static void offer_shape(struct raw_peer *p, uint32_t segments, uint32_t size)
{
	p->offer.segments = LITTLE_32(segments);
	p->offer.segment_size = LITTLE_32(size);
	offer(p, p->own.fd);
}

static void offer_odd_ring(struct raw_peer *p)
{
	offer_shape(p, 1000, 64);
}

static void offer_no_ring(struct raw_peer *p)
{
	offer_shape(p, 0, 0);
}

static void offer_endless_ring(struct raw_peer *p)
{
	offer_shape(p, 1u << 31, 1u << 31);
}

/* Of which a packet holds less than what the library says in one. */
static void offer_tiny_ring(struct raw_peer *p)
{
	struct ring_shape tiny = {2, 64};

	p->offer.segments = LITTLE_32(tiny.segments);
	p->offer.segment_size = LITTLE_32(tiny.segment_size);
	mapping_destroy(&p->own);
	CHECK(mapping_create(&p->own, "raw-ring", ring_size(&tiny)) == 0, "no memory to offer");
	raw_steps(p, RAW_HELLO, RAW_MAPPED);
	raw_say_round(p, 2, &p->offered.epoch, 8, -1);
}

static void start_elsewhere(struct raw_peer *p)
{
	p->offer.start = LITTLE_64(5);
	offer(p, p->own.fd);
}

static void offer_unknown_bits(struct raw_peer *p)
{
	p->offer.zero = 1;
	offer(p, p->own.fd);
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
	{"60,000 bytes", say_much, SLMPM_EPROTO, "control packet"},
	{"an unknown type", say_unknown_type, SLMPM_EPROTO, "out of turn"},
	{"a hello cut short", truncate_hello, SLMPM_EPROTO, "wrong length"},
	{"a hello with a descriptor", say_hello_with_descriptor, SLMPM_EPROTO, "wrong length"},
	{"sixty descriptors", pass_many, SLMPM_EPROTO, "control packet"},
	{"another magic", wrong_magic, SLMPM_EPROTO, "does not speak SLMPM"},
	{"another version", wrong_version, SLMPM_EVERSION, "wire version 9.0"},
	{"an unknown feature", require_unknown, SLMPM_EVERSION, "requires"},
	{"another fabric", other_fabric, SLMPM_EVERSION, "another fabric"},
	{"packets of three bytes", no_limits, SLMPM_EPROTO, "limits"},
	{"no credit", no_credit, SLMPM_EPROTO, "limits"},
	{"hello twice", hello_twice, SLMPM_EPROTO, "out of turn"},
	{"an offer at once", round_at_once, SLMPM_EPROTO, "out of turn"},
	{"an area at once", area_at_once, SLMPM_EPROTO, "area"},
	{"another nonce", wrong_nonce, SLMPM_EPROTO, "nonce"},
	{"no memory", offer_nothing, SLMPM_EPROTO, "ring"},
	{"two memories", offer_twice, SLMPM_EPROTO, "ring"},
	{"unsealed memory", offer_unsealed, SLMPM_EACCES, "ring"},
	{"memory that can grow", offer_growable, SLMPM_EACCES, "ring"},
	{"too little memory", offer_too_small, SLMPM_EPROTO, "ring"},
	{"a byte too much", offer_too_large, SLMPM_EPROTO, "ring"},
	{"memory nobody can write", offer_unwritable, SLMPM_EACCES, "ring"},
	{"a pipe for memory", offer_pipe, SLMPM_EACCES, "ring"},
	{"a socket for memory", offer_socket, SLMPM_EACCES, "ring"},
	{"a ring of 1000", offer_odd_ring, SLMPM_EPROTO, "ring"},
	{"a ring of none", offer_no_ring, SLMPM_EPROTO, "ring"},
	{"a ring of 2^62", offer_endless_ring, SLMPM_EPROTO, "ring"},
	{"a ring of two", offer_tiny_ring, SLMPM_EPROTO, "size of a ring"},
	{"totals from five", start_elsewhere, SLMPM_EPROTO, "ring"},
	{"unknown bits in the offer", offer_unknown_bits, SLMPM_EPROTO, "ring"},
	{"a blob without end", long_blob, SLMPM_EPROTO, "malformed"},
	{"a round left out", skip_a_round, SLMPM_EPROTO, "malformed"},
	{"another epoch", wrong_echo, SLMPM_EPROTO, "answer to the offer"},
	{"seals left open", leave_seals_open, SLMPM_EPROTO, "ring"},
	{"a strange goodbye", refuse_oddly, SLMPM_EPROTO, "it says: ?"},
	{"silence after the hello", fall_silent, SLMPM_ETIMEOUT, "in time"},
	{"silence after the rounds", fall_silent_late, SLMPM_ETIMEOUT, "in time"},
	{"nothing but bells", only_ring_bells, SLMPM_ETIMEOUT, "in time"},
	{"breaking off", break_off, SLMPM_EDEAD, NULL},
};
#define LIES (sizeof(lies) / sizeof(*lies))

/* Tells it and hears what comes of it. */
static int tell(const struct lie *lie, int fd)
{
	struct raw_peer p;
	char reason[112];

	raw_begin(&p, fd);
	lie->tell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!lie->word || strstr(reason, lie->word), "%s: the answer was \"%s\"", lie->name,
	      reason);
	raw_end(&p);
	return 0;
}

static char address[64]; /* without "shm:" */

/* ---- at a listener ---- */

static int lie_to_listener(void *arg)
{
	int fd = raw_connect(address);

	CHECK(fd >= 0, "the listener is not there");
	return tell(arg, fd);
}

/* ---- in a child's place ---- */

static int lie_as_child(slmpm_peer host, char **words)
{
	(void)host;
	return tell(&lies[atoi(words[0])], raw_inherited());
}

static void as_child(int i, slmpm_ctx ctx, slmpm_peer honest)
{
	struct slmpm_spawn_options options = {.size = sizeof(options), .ctx = ctx};
	const struct lie *lie = &lies[i];
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_CONNECTING};
	slmpm_peer peer;
	char number[16];
	int rc;

	snprintf(number, sizeof(number), "%d", i);
	peer = actor_spawn_with(&options, "-lie", number, NULL);
	while (info.state == SLMPM_PEER_CONNECTING) {
		honest_works(honest);
		OK(slmpm_peer_query(peer, &info));
		CHECK(actor_now_ms() < begin + STRANGER_BOUND_MS * actor_slow(), "%s: no end",
		      lie->name);
	}
	rc = slmpm_send(peer, 1, "x", 1, PATIENCE);
	/* A child that tells nobody why may be found gone, or gone with exit status 0. */
	CHECK(rc == -lie->error || (!lie->word && rc == -SLMPM_ECLOSED), "%s: %d (%s)", lie->name,
	      rc, slmpm_error_detail());
	CHECK(!lie->word || strstr(slmpm_error_detail(), lie->word), "%s: \"%s\"", lie->name,
	      slmpm_error_detail());
	EXPECT(slmpm_recv(peer, 1, number, 1, NULL, PATIENCE), rc);
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
	holdings_expect(before, lie->name);
}

/* ---- half-open by the hundred ---- */

#define CROWD     300
#define HALF_OPEN 64 /* so many are let in at a time */

static int connect_patiently(void)
{
	int64_t until = actor_now_ms() + STRANGER_BOUND_MS * actor_slow();
	int fd;

	while ((fd = raw_connect(address)) < 0) {
		CHECK(actor_now_ms() < until, "its queue stays full");
		(void)poll(NULL, 0, 1);
	}
	return fd;
}

/* All stay until each has heard whether it is let in. */
static int crowd(void *arg)
{
	int fds[CROWD], in = 0;

	(void)arg;
	for (int i = 0; i < CROWD; i++)
		fds[i] = connect_patiently();
	for (int i = 0; i < CROWD; i++) {
		union {
			struct wire_control_head head;
			struct wire_hello hello;
			struct wire_bye bye;
		} said = {.head.type = 0};

		CHECK(raw_hear(fds[i], &said, sizeof(said), NULL), "an end without a word");
		if (LITTLE_32(said.head.type) == WIRE_HELLO)
			in++;
		else
			CHECK(LITTLE_32(said.head.type) == WIRE_BYE &&
				      strstr(said.bye.reason, "too many"),
			      "packet %u, \"%s\"", LITTLE_32(said.head.type), said.bye.reason);
	}
	CHECK(in == HALF_OPEN, "%d of %d were let in", in, CROWD);
	return 0;
}

static void half_open(slmpm_listener listener, slmpm_peer honest)
{
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	pid_t pid = child_start(crowd, NULL, 30), late;
	slmpm_peer peer;

	while (!stranger_has_left(pid)) {
		EXPECT(slmpm_accept(listener, &peer, 1), -SLMPM_ETIMEOUT);
		honest_works(honest);
		CHECK(holdings_now().descriptors < before.descriptors + 3 * HALF_OPEN + 8,
		      "hundreds of half-open connections are kept");
		CHECK(actor_now_ms() < begin + 2 * STRANGER_BOUND_MS * actor_slow(),
		      "the crowd: no end");
	}
	CHECK(child_wait(pid) == 0, "the crowd: see above");
	late = child_start(honest_peer, address, 30);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	honest_works(peer);
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(late) == 0, "the honest latecomer");
	stranger_forgotten(listener, before, "half-open connections");
}

/* ---- everything, by deadline ---- */

static bool meets_deadline(const struct lie *lie)
{
	return lie->error == SLMPM_ETIMEOUT;
}

static int tell_all(void *handshake_ms)
{
	bool soon = !strcmp(handshake_ms, SOON_MS);
	slmpm_listener listener;
	slmpm_peer honest;
	slmpm_ctx ctx;
	char url[80];
	pid_t pid;

	setenv("SLMPM_HANDSHAKE_MS", handshake_ms, 1);
	snprintf(address, sizeof(address), "hostile-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(honest_peer, address, 60);
	OK(slmpm_accept(listener, &honest, PATIENCE));
	for (int i = 0; i < (int)LIES; i++) {
		if (meets_deadline(&lies[i]) != soon)
			continue;
		stranger_visits(lies[i].name, lie_to_listener, (void *)(uintptr_t)&lies[i],
				listener, honest);
		as_child(i, ctx, honest);
		printf("%-28s refused\n", lies[i].name);
	}
	if (!soon)
		half_open(listener, honest);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-lie", lie_as_child}, {NULL, NULL}};

	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	CHECK(child_run(tell_all, LATER_MS, 50) == 0, "those who speak: see above");
	CHECK(child_run(tell_all, SOON_MS, 50) == 0, "those who fall silent: see above");
	return 0;
}
