/* SPDX-License-Identifier: BSD-3-Clause */
/* Offers, hellos and frames, byte by byte. */
#include "tests/lib/stream_peer.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/loopback.h"
#include "tests/lib/stream_relay.h"
#include "tests/lib/test.h"

static void put(unsigned char *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

void stream_peer_begin(struct stream_peer *p, uint32_t segments, uint32_t size)
{
	const struct fabric *f = stream_fabric();
	struct fabric_config config = link_config(segments, size);
	struct fabric_blob theirs, ours = {.length = 40, .fd = -1};
	int fds[2], rc;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0, "no socket pair");
	link_end_open(&p->end, f, &config, RIGHT, fds[0]);
	p->bell = fds[1];
	p->socket = -1;
	link_ask(p->end.link, 0, &theirs);
	p->port = (uint16_t)(theirs.bytes[STREAM_PORT_AT] | theirs.bytes[STREAM_PORT_AT + 1] << 8);
	put(ours.bytes, 2, 4);
	put(ours.bytes + 4, segments, 4);
	put(ours.bytes + 8, size, 4);
	ours.bytes[15] = 1; /* active */
	memset(ours.bytes + 24, 'p', 16);
	memcpy(p->hello, "SLMPMtcp", 8);
	memcpy(p->hello + 8, theirs.bytes + 24, 16);
	memset(p->hello + 24, 'p', 16);
	rc = f->connect(p->end.link, 0, &ours);
	CHECK(rc == 2, "an offer without a call: %d", rc);
}

int stream_peer_call(const struct stream_peer *p)
{
	int s = loopback_socket(), on = 1;

	CHECK(s >= 0 && loopback_connect(s, p->port) == 0 &&
		      setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0,
	      "calling: %s", strerror(errno));
	return s;
}

void stream_peer_open(struct stream_peer *p, uint32_t segments, uint32_t size)
{
	unsigned char answer[16];
	int rc = 2;

	stream_peer_begin(p, segments, size);
	p->socket = stream_peer_call(p);
	stream_peer_say(p->socket, p->hello, sizeof(p->hello));
	while (rc == 2 && link_await(p->end.domain))
		rc = p->end.domain->fabric->connect(p->end.link, 0, NULL);
	CHECK(rc == 0, "connecting said %d", rc);
	CHECK(recv(p->socket, answer, 16, MSG_WAITALL) == 16 && !memcmp(answer, "pppp", 4),
	      "no answer");
}

void stream_peer_close(struct stream_peer *p)
{
	if (p->socket >= 0)
		close(p->socket);
	link_end_close(&p->end);
	close(p->bell);
}

void stream_peer_say(int socket, const void *bytes, size_t n)
{
	CHECK(send(socket, bytes, n, MSG_NOSIGNAL) == (ssize_t)n, "saying %zu bytes: %s", n,
	      strerror(errno));
}

uint64_t stream_word(uint64_t consumed, uint32_t length, uint8_t kind)
{
	uint64_t low = (consumed & 0x1ffffff) | (uint64_t)length << 25 | (uint64_t)kind << 47;
	uint64_t check = 0x155;

	for (int at = 0; at < 55; at += 9)
		check ^= low >> at & 0x1ff;
	return low | check << 55;
}

void stream_peer_frame(struct stream_peer *p, uint64_t word, uint64_t head, size_t bytes)
{
	static unsigned char frame[1 << 16];

	CHECK(bytes <= sizeof(frame), "a frame of %zu bytes", bytes);
	for (int at = 0; at < 64; at += 9) /* thrice is once */
		word ^= (head >> at & 0x1ff) << 55;
	put(frame, word, 8);
	for (int i = 1; i < 4; i++)
		put(frame + 8 * i, head, 8);
	stream_peer_say(p->socket, frame, bytes);
}
