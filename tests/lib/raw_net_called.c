/* SPDX-License-Identifier: BSD-3-Clause */
/* Links over TCP, by hand, of who is called (raw_net_called.h). */
#include "tests/lib/raw_net_called.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"

int raw_net_door(uint16_t *port, int backlog)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(sa);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(door >= 0 && bind(door, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
		      listen(door, backlog) == 0 &&
		      getsockname(door, (struct sockaddr *)&sa, &size) == 0,
	      "no door");
	*port = ntohs(sa.sin_port);
	return door;
}

int raw_net_take(int door)
{
	struct pollfd calls = {.fd = door, .events = POLLIN};
	int call;

	CHECK(poll(&calls, 1, PATIENCE) == 1, "nobody calls");
	call = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	CHECK(call >= 0, "who calls has gone");
	return call;
}

struct raw_net_hello raw_net_listen_to(int call)
{
	struct raw_net_hello hello;

	CHECK(raw_stream_read(call, &hello, sizeof(hello)) && !memcmp(hello.magic, "SLMPMtcp", 8),
	      "it is nobody");
	return hello;
}

void raw_net_called(struct raw_net *n, int door, const char *secret, unsigned links)
{
	raw_net_prepare(n, raw_net_take(door), secret, links);
}

void raw_net_called_first(struct raw_net *n)
{
	uint16_t port;
	int door = raw_net_door(&port, 1);
	struct raw_net_hello hello;

	n->own.port = LITTLE_16(port);
	n->own.family = 4;
	raw_net_trade(n);
	n->data = raw_net_take(door);
	close(door);
	hello = raw_net_listen_to(n->data);
	CHECK(!memcmp(hello.to, n->own.token, 16) && !memcmp(hello.from, n->heard.token, 16),
	      "other tokens");
	CHECK(raw_stream_say(n->data, n->heard.token, 16), "gone");
}

struct raw_net_offer raw_net_tried(struct raw_net *n, unsigned link, unsigned *life)
{
	struct wire_round w = raw_net_hear(n);
	struct raw_net_offer theirs;

	CHECK(!w.round && LITTLE_16(w.link) == link, "link %u, round %u: %.100s", LITTLE_16(w.link),
	      LITTLE_32(w.round), (const char *)w.blob);
	*life = LITTLE_16(w.life);
	memcpy(&theirs, w.blob, sizeof(theirs));
	return theirs;
}

struct raw_net_offer raw_net_to_call(const struct raw_net *n, uint16_t port)
{
	struct raw_net_offer o = n->own;

	o.port = LITTLE_16(port);
	CHECK(getrandom(o.token, 16, 0) == 16, "nothing is random");
	return o;
}

void raw_net_say_offer(struct raw_net *n, unsigned link, unsigned life,
		       const struct raw_net_offer *o)
{
	struct wire_round w = raw_net_round(n, link, life);

	memcpy(w.blob, o, sizeof(*o));
	raw_net_say(n, &w);
}
