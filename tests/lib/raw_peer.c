/* SPDX-License-Identifier: BSD-3-Clause */
/* The other half of the handshake, written from the description of the wire. */
#include "tests/lib/raw_peer.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/test.h"

#define DESCRIPTORS_MOST 64

int raw_connect(const char *name)
{
	return raw_connect_as(name, getuid());
}

int raw_connect_as(const char *name, unsigned user)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "slmpm/%u/%s", user, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0, "no socket");
	if (connect(fd, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
		return fd;
	close(fd);
	return -1;
}

int raw_inherited(void)
{
	const char *text = getenv("SLMPM_PARENT");

	CHECK(text, "nothing was inherited");
	return atoi(text);
}

static uint64_t any_number(void)
{
	return (uint64_t)actor_now_ms() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid() << 32;
}

void raw_begin(struct raw_peer *p, int fd)
{
	struct ring_shape shape = {RAW_SEGMENTS, RAW_SEGMENT_SIZE};

	*p = (struct raw_peer){.fd = fd};
	p->hello = (struct wire_hello){
		.magic = LITTLE_64(WIRE_MAGIC),
		.major = LITTLE_16(WIRE_MAJOR),
		.minor = LITTLE_16(WIRE_MINOR),
		.byte_order = LITTLE_32(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2),
		.nonce = any_number(),
		.pid = (int32_t)LITTLE_32((uint32_t)getpid()),
		.packet_max = LITTLE_64(8192),
		.eager_max = LITTLE_64(32768),
		.eager_credit = LITTLE_64(1 << 20),
		.loan_max = LITTLE_64(1 << 20),
		.version = "by hand",
		.fabric = "shm",
	};
	p->offer = (struct raw_offer){
		.segments = LITTLE_32(RAW_SEGMENTS),
		.segment_size = LITTLE_32(RAW_SEGMENT_SIZE),
		.epoch = any_number(),
	};
	CHECK(mapping_create(&p->own, "raw-ring", ring_size(&shape)) == 0, "no memory to offer");
	p->other.fd = -1;
}

void raw_end(struct raw_peer *p)
{
	close(p->fd);
	mapping_destroy(&p->own);
	mapping_destroy(&p->other);
	free(p->w.stale);
	free(p->r.done);
}

/* ---- the control socket --------------------------------------------------------------------- */

bool raw_say(int fd, const void *bytes, size_t n, const int *fds, int count)
{
	char space[CMSG_SPACE(DESCRIPTORS_MOST * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	size_t size = (size_t)count * sizeof(int);
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	CHECK(count <= DESCRIPTORS_MOST, "%d descriptors", count);
	if (count) {
		struct cmsghdr *c;

		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(size);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(c), fds, size);
	}
	while (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EAGAIN)
			return false;
		CHECK(poll(&p, 1, PATIENCE) == 1, "it does not read its socket");
	}
	return true;
}

bool raw_say_packet(int fd, uint32_t type, void *packet, size_t n, int passed)
{
	struct wire_control_head *head = packet;

	head->type = LITTLE_32(type);
	head->length = LITTLE_32((uint32_t)n);
	return raw_say(fd, packet, n, &passed, passed >= 0);
}

bool raw_say_round(struct raw_peer *p, uint32_t round, const void *blob, size_t n, int passed)
{
	struct wire_round packet = {.round = LITTLE_32(round)};

	packet.blob_length = LITTLE_32((uint32_t)n);
	memcpy(packet.blob, blob, n);
	return raw_say_packet(p->fd, WIRE_ROUND, &packet, sizeof(packet), passed);
}

size_t raw_hear(int fd, void *packet, size_t room, int *passed)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (;;) {
		char space[CMSG_SPACE(sizeof(int))] = {0};
		struct iovec iov = {.iov_base = packet, .iov_len = room};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = space,
				     .msg_controllen = sizeof(space)};
		struct cmsghdr *c;
		ssize_t n;

		CHECK(poll(&p, 1, PATIENCE) == 1, "nothing is said");
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 &&
		    (errno == EAGAIN || errno == ECONNRESET)) /* closed unread: not the end yet */
			continue;
		if (n <= 0)
			return 0;
		c = CMSG_FIRSTHDR(&msg);
		if (c && passed)
			memcpy(passed, CMSG_DATA(c), sizeof(int));
		else if (c)
			close(*(int *)(void *)CMSG_DATA(c));
		if (n > 1)
			return (size_t)n;
	}
}

void raw_hear_end(int fd, char reason[112])
{
	unsigned char packet[512];
	size_t n;

	reason[0] = 0;
	while ((n = raw_hear(fd, packet, sizeof(packet), NULL)) > 0) {
		const struct wire_bye *bye = (const void *)packet;

		if (n == sizeof(*bye) && LITTLE_32(bye->head.type) == WIRE_BYE)
			memcpy(reason, bye->reason, sizeof(bye->reason));
	}
}

/* ---- the steps ------------------------------------------------------------------------------ */

static void exchange_offers(struct raw_peer *p)
{
	struct ring_shape theirs;
	struct wire_round round;
	int passed = -1;

	CHECK(raw_say_round(p, 0, &p->offer, sizeof(p->offer), p->own.fd), "gone: offer");
	CHECK(raw_hear(p->fd, &round, sizeof(round), &passed) == sizeof(round) && passed >= 0,
	      "no offer came");
	memcpy(&p->offered, round.blob, sizeof(p->offered));
	theirs.segments = LITTLE_32(p->offered.segments);
	theirs.segment_size = LITTLE_32(p->offered.segment_size);
	CHECK(mapping_attach(&p->other, passed, ring_size(&theirs), MAPPING_WRITE) == 0,
	      "its ring cannot be mapped");
	close(passed);
}

static void exchange_echoes(struct raw_peer *p, uint32_t number)
{
	struct wire_round round;

	CHECK(raw_say_round(p, number, &p->offered.epoch, 8, -1), "gone: round %u", number);
	CHECK(raw_hear(p->fd, &round, sizeof(round), NULL) == sizeof(round), "no round %u", number);
}

static uint64_t *bits_for(const struct ring_shape *shape)
{
	uint64_t *bits = calloc(1, ring_bits_size(shape));

	CHECK(bits, "out of memory");
	return bits;
}

static void start_rings(struct raw_peer *p)
{
	struct ring_words *own = p->own.base, *other = p->other.base;
	struct ring_setup out = {
		.shape = {LITTLE_32(p->offered.segments), LITTLE_32(p->offered.segment_size)},
		.epoch = (uint32_t)LITTLE_64(p->offered.epoch),
		.segments = (unsigned char *)p->other.base + RING_SEGMENTS_OFFSET,
		.out = &other->produced,
		.in = &own->consumed,
	};
	struct ring_setup in = {
		.shape = {RAW_SEGMENTS, RAW_SEGMENT_SIZE},
		.epoch = (uint32_t)LITTLE_64(p->offer.epoch),
		.start = LITTLE_64(p->offered.start),
		.segments = (unsigned char *)p->own.base + RING_SEGMENTS_OFFSET,
		.out = &other->consumed,
		.in = &own->produced,
	};

	out.bits = bits_for(&out.shape);
	in.bits = bits_for(&in.shape);
	if (p->offered.start) /* our mapping may be for reading */
		CHECK(pwrite(p->own.fd, &p->offered.start, 8,
			     offsetof(struct ring_words, produced)) == 8,
		      "start");
	ring_writer_init(&p->w, &out);
	ring_reader_init(&p->r, &in);
}

void raw_steps(struct raw_peer *p, enum raw_step from, enum raw_step to)
{
	struct wire_nonce nonce;

	for (int step = (int)from; step <= (int)to; step++)
		switch ((enum raw_step)step) {
		case RAW_HELLO:
			CHECK(raw_say_packet(p->fd, WIRE_HELLO, &p->hello, sizeof(p->hello), -1),
			      "gone: hello");
			CHECK(raw_hear(p->fd, &p->heard, sizeof(p->heard), NULL) ==
				      sizeof(p->heard),
			      "no hello came");
			break;
		case RAW_NONCE:
			nonce.nonce = p->heard.nonce;
			CHECK(raw_say_packet(p->fd, WIRE_NONCE, &nonce, sizeof(nonce), -1),
			      "gone: nonce");
			CHECK(raw_hear(p->fd, &nonce, sizeof(nonce), NULL) == sizeof(nonce) &&
				      nonce.nonce == p->hello.nonce,
			      "our nonce did not come back");
			break;
		case RAW_OFFER: exchange_offers(p); break;
		case RAW_MAPPED:
			exchange_echoes(p, 1);
			CHECK(mapping_close_seals(&p->own) == 0, "cannot seal");
			break;
		case RAW_UP:
			exchange_echoes(p, 2);
			start_rings(p);
			break;
		}
}

/* ---- the rings ------------------------------------------------------------------------------ */

struct ring_words *raw_words(struct raw_peer *p)
{
	return p->other.base;
}

_Atomic uint64_t *raw_commit_word(struct raw_peer *p, uint64_t total)
{
	return (_Atomic uint64_t *)(void *)(p->w.segments + ((total & p->w.mask) << p->w.shift));
}

void raw_post(struct raw_peer *p, uint8_t opcode, uint64_t seq, uint64_t route, uint64_t extent,
	      const void *data, uint32_t length)
{
	uint64_t head[3] = {LITTLE_64(seq), LITTLE_64(route), LITTLE_64(extent)};
	int64_t until = actor_now_ms() + PATIENCE;
	struct pollfd end = {.fd = p->fd};
	unsigned char *at;

	while (!(at = ring_reserve(&p->w, (uint32_t)sizeof(head) + length))) {
		CHECK(actor_now_ms() < until, "no room comes");
		ring_publish_produced(&p->w);
		raw_ring_bell(p);
		if (poll(&end, 1, 1) != 0)
			return;
	}
	memcpy(at, head, sizeof(head));
	if (length)
		memcpy(at + sizeof(head), data, length);
	ring_commit(&p->w, (uint32_t)sizeof(head) + length, opcode);
}

void raw_send(struct raw_peer *p, uint32_t stream, const void *data, uint32_t length)
{
	raw_post(p, WIRE_SEND_ONLY, ++p->sent, wire_route(stream, 0), length, data, length);
}

void raw_await_packet(struct raw_peer *p)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;
	int rc;

	while ((rc = ring_peek(&p->r, &packet)) == 0) {
		CHECK(actor_now_ms() < until, "nothing comes");
		(void)poll(NULL, 0, 1);
	}
	CHECK(rc == 1, "it broke rule %d", (int)p->r.violation);
	ring_release(&p->r, &packet);
}

void raw_ring_bell(struct raw_peer *p)
{
	(void)!send(p->fd, "b", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void raw_tagged(struct raw_peer *p, uint32_t tag, uint32_t imm, const void *data, uint32_t length)
{
	raw_post(p, WIRE_SEND_ONLY, ++p->sent, wire_route(tag, imm),
		 wire_extent(length, WIRE_FLAG_TAGGED | WIRE_FLAG_UNCHARGED), data, length);
}

void raw_active(struct raw_peer *p, uint8_t opcode, uint32_t flags, uint16_t id, uint32_t head,
		uint64_t total, const void *data, uint32_t length)
{
	raw_post(p, opcode, ++p->sent, wire_route(id | head << 16, 0),
		 wire_extent(total, flags | WIRE_FLAG_ACTIVE), data, length);
}
