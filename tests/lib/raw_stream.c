/* SPDX-License-Identifier: BSD-3-Clause */
/* A control connection over TCP, written from the description of the wire. */
#include "tests/lib/raw_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/test.h"

int raw_stream_connect(uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	CHECK(fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0,
	      "no socket");
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	close(fd);
	return -1;
}

void raw_stream_begin(struct raw_stream *s, uint16_t port, const char *secret)
{
	raw_stream_prepare(s, raw_stream_connect(port), secret);
}

void raw_stream_prepare(struct raw_stream *s, int fd, const char *secret)
{
	*s = (struct raw_stream){.fd = fd};
	CHECK(s->fd >= 0, "the other side is not there");
	s->hello = (struct wire_hello){
		.magic = LITTLE_64(WIRE_MAGIC),
		.major = LITTLE_16(WIRE_MAJOR),
		.minor = LITTLE_16(WIRE_MINOR),
		.byte_order = LITTLE_32(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2),
		.pid = (int32_t)LITTLE_32((uint32_t)getpid()),
		.packet_max = LITTLE_64(8192),
		.eager_max = LITTLE_64(32768),
		.eager_credit = LITTLE_64(1 << 20),
		.loan_max = LITTLE_64(1 << 20),
		.version = "by hand",
		.fabric = "tcp",
	};
	CHECK(getrandom(&s->hello.nonce, 8, 0) == 8, "nothing is random");
	for (int i = 0; i < 16; i++)
		CHECK(sscanf(secret + 2 * i, "%2hhx", &s->secret[i]) == 1, "\"%s\"", secret);
}

bool raw_stream_say(int fd, const void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t some = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);

		if (some < 0)
			return false;
		done += (size_t)some;
	}
	return true;
}

bool raw_stream_say_slowly(int fd, const void *bytes, size_t n, int ms)
{
	for (size_t i = 0; i < n; i++) {
		if (!raw_stream_say(fd, (const char *)bytes + i, 1))
			return false;
		if (ms)
			(void)poll(NULL, 0, ms);
	}
	return true;
}

bool raw_stream_say_packet(int fd, uint32_t type, void *packet, size_t n)
{
	struct wire_control_head *head = packet;

	head->type = LITTLE_32(type);
	head->length = LITTLE_32((uint32_t)n);
	return raw_stream_say(fd, packet, n);
}

bool raw_stream_read(int fd, void *to, size_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (size_t done = 0; done < n;) {
		ssize_t some;

		CHECK(poll(&p, 1, PATIENCE) == 1, "nothing is said");
		some = recv(fd, (char *)to + done, n - done, 0);
		if (some <= 0)
			return false;
		done += (size_t)some;
	}
	return true;
}

void raw_stream_say_hello(struct raw_stream *s)
{
	raw_stream_say_packet(s->fd, WIRE_HELLO, &s->hello, sizeof(s->hello));
}

void raw_stream_claim(struct raw_stream *s, uint32_t type, uint32_t length)
{
	struct wire_control_head head = {LITTLE_32(type), LITTLE_32(length)};

	raw_stream_say(s->fd, &head, sizeof(head));
}

size_t raw_stream_hear(int fd, void *packet, size_t room)
{
	struct wire_control_head *head = packet;
	size_t n;

	if (!raw_stream_read(fd, head, sizeof(*head)))
		return 0;
	n = LITTLE_32(head->length);
	CHECK(n >= sizeof(*head) && n <= room, "a packet of %zu bytes", n);
	return raw_stream_read(fd, head + 1, n - sizeof(*head)) ? n : 0;
}

void raw_stream_hear_end(int fd, char reason[112])
{
	unsigned char packet[512];
	size_t n;

	reason[0] = 0;
	while ((n = raw_stream_hear(fd, packet, sizeof(packet))) > 0) {
		const struct wire_bye *bye = (const void *)packet;

		if (n == sizeof(*bye) && LITTLE_32(bye->head.type) == WIRE_BYE)
			memcpy(reason, bye->reason, sizeof(bye->reason));
	}
}

void raw_stream_meet(struct raw_stream *s)
{
	CHECK(raw_stream_say_packet(s->fd, WIRE_HELLO, &s->hello, sizeof(s->hello)), "gone: hello");
	CHECK(raw_stream_hear(s->fd, &s->heard, sizeof(s->heard)) == sizeof(s->heard),
	      "no hello came");
}
