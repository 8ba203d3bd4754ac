/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sockets, one to each end of a link, and what goes from one to the other. */
#include "tests/lib/stream_relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/actor.h"
#include "tests/lib/far.h"
#include "tests/lib/loopback.h"

const struct fabric *stream_fabric(void)
{
	const struct fabric *f = fabric_find("tcp");
	struct fabric_caps caps;

	if (!f)
		test_skip("there is no fabric of streams in this build");
	if (f->probe(NULL, &caps) < 0)
		test_skip(caps.why_not);
	return far_fabric(f);
}

/* Puts a socket of ours in place of the one that BLOB names, whose port it returns. */
static int intercept(struct fabric_blob *blob, uint16_t *port)
{
	uint16_t ours = 0;
	int listener = loopback_listen(&ours);

	CHECK(listener >= 0, "no listening socket: %s", strerror(errno));
	*port = (uint16_t)(blob->bytes[STREAM_PORT_AT] | blob->bytes[STREAM_PORT_AT + 1] << 8);
	blob->bytes[STREAM_PORT_AT] = (unsigned char)ours;
	blob->bytes[STREAM_PORT_AT + 1] = (unsigned char)(ours >> 8);
	return listener;
}

static void stand_between(struct stream_relay *r, int listener, uint16_t port)
{
	int on = 1;

	r->end[LEFT] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	r->end[RIGHT] = loopback_socket();
	CHECK(r->end[LEFT] >= 0 && loopback_connect(r->end[RIGHT], port) == 0, "no way through: %s",
	      strerror(errno));
	for (int side = 0; side < SIDES; side++)
		CHECK(setsockopt(r->end[side], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0,
		      "no TCP");
	close(listener);
}

void stream_relay_open(struct stream_relay *r, struct link_pair *p, uint32_t segments,
		       uint32_t size)
{
	const struct fabric *f = stream_fabric();
	struct fabric_config config[SIDES] = {link_config(segments, size),
					      link_config(segments, size)};
	struct fabric_blob blob[SIDES];
	int64_t until = actor_now_ms() + PATIENCE;
	int rc[SIDES], listener;
	uint16_t port;

	*r = (struct stream_relay){0};
	link_pair_make(p, f, config);
	for (int side = 0; side < SIDES; side++)
		link_ask(p->link[side], 0, &blob[side]);
	listener = intercept(&blob[RIGHT], &port);
	for (int side = 0; side < SIDES; side++)
		rc[side] = f->connect(p->link[side], 0, &blob[!side]);
	stand_between(r, listener, port);
	while ((rc[LEFT] == 2 || rc[RIGHT] == 2) && actor_now_ms() < until) {
		stream_relay_all(r);
		for (int side = 0; side < SIDES; side++)
			if (rc[side] == 2)
				rc[side] = f->connect(p->link[side], 0, NULL);
	}
	CHECK(rc[LEFT] == 0 && rc[RIGHT] == 0, "connecting said %d and %d", rc[LEFT], rc[RIGHT]);
	r->got[LEFT] = r->got[RIGHT] = 0;
}

void stream_relay_close(struct stream_relay *r, struct link_pair *p)
{
	for (int side = 0; side < SIDES; side++)
		if (r->end[side] >= 0)
			close(r->end[side]);
	link_pair_close(p);
}

size_t stream_relay_move(struct stream_relay *r, int side, size_t n)
{
	static unsigned char bytes[1 << 16];
	ssize_t got;

	got = recv(r->end[side], bytes, n < sizeof(bytes) ? n : sizeof(bytes), MSG_DONTWAIT);
	if (got <= 0)
		return 0;
	if (side == LEFT && r->alter > r->got[LEFT] && r->alter <= r->got[LEFT] + (size_t)got)
		bytes[r->alter - 1 - r->got[LEFT]] ^= 0x10;
	r->got[side] += (size_t)got;
	CHECK(send(r->end[!side], bytes, (size_t)got, MSG_NOSIGNAL) == got, "passing on: %s",
	      strerror(errno));
	return (size_t)got;
}

void stream_relay_all(struct stream_relay *r)
{
	for (int side = 0; side < SIDES; side++)
		while (stream_relay_move(r, side, SIZE_MAX))
			;
}

void stream_relay_end(struct stream_relay *r, int side)
{
	CHECK(shutdown(r->end[side], SHUT_WR) == 0, "shutdown: %s", strerror(errno));
}

void stream_relay_reset(struct stream_relay *r, int side)
{
	struct linger now = {.l_onoff = 1};

	CHECK(setsockopt(r->end[side], SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0, "linger");
	close(r->end[side]);
	r->end[side] = -1;
}

void stream_relay_await(struct stream_relay *r, struct link_pair *p, int side)
{
	struct pollfd at = {.fd = p->domain[side]->fd, .events = POLLIN};

	(void)r;
	p->domain[side]->fabric->arm(p->domain[side], true);
	CHECK(poll(&at, 1, PATIENCE) == 1, "nothing comes");
}
