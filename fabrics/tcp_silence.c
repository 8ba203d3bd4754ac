/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signs of life from another machine: its kernel confirms what it gets, and answers keep-alive questions, whatever
 * the process there does. When to ask, and how long silence may last, the core knows (slmpm/connect/silence.c).
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fabrics/tcp.h"

#ifndef TCP_RTO_MAX_MS /* Linux 6.15 */
#define TCP_RTO_MAX_MS 44
#endif

#define NOW_S   1 /* the kernel asks after a second without a packet, at once where that is longer: */
#define LATER_S 2 /* ... and by this its question waits, while the other connection's turn is */
#define MS      UINT64_C(1000000)

int tcp_ask_when_idle(struct tcp_link *l, uint32_t dead_ms)
{
	int rc, s = l->socket;

	if (!dead_ms)
		return 0;
	/* Without it what was sent into an outage is sent again as long after it as that was long. */
	l->prompt = tcp_set(s, IPPROTO_TCP, TCP_RTO_MAX_MS, 1000) == 0;
	rc = tcp_set(s, SOL_SOCKET, SO_KEEPALIVE, 1);
	rc = rc < 0 ? rc : tcp_set(s, IPPROTO_TCP, TCP_KEEPIDLE, NOW_S);
	rc = rc < 0 ? rc : tcp_set(s, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	/* As many as it counts: it counts the core's questions, too, and knows none of its reasons. */
	return rc < 0 ? rc : tcp_set(s, IPPROTO_TCP, TCP_KEEPCNT, 127);
}

/* When the last sign came; 0: there is none to be had by it now. IDLE: the kernel would ask. */
static uint64_t sign(int s, bool prompt, uint64_t now, bool *idle)
{
	struct tcp_info info = {.tcpi_state = 0};
	socklen_t length = sizeof(info);
	uint64_t age;

	*idle = false;
	if (s < 0 || getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return 0;
	*idle = !info.tcpi_unacked && !info.tcpi_notsent_bytes;
	/* A peer that does not read is asked for room, more and more seldom unless the kernel is prompt. */
	if (!prompt && !info.tcpi_unacked && info.tcpi_notsent_bytes)
		return 0;
	age = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv :
								   info.tcpi_last_data_recv;
	return age * MS < now ? now - age * MS : 1;
}

/* The question goes out now, or, where a sign is younger than that, a second after it. */
static void tcp_silence_ask(int s)
{
	(void)tcp_set(s, IPPROTO_TCP, TCP_KEEPIDLE, NOW_S);
}

/* By one, then by the other: each gets no question within a second of a sign, both together one in half of that. */
static void ask_in_turn(struct tcp_link *l, int bell, bool idle, bool bell_idle)
{
	l->by_bell = bell_idle && (!l->by_bell || !idle);
	tcp_silence_ask(l->by_bell ? bell : l->socket);
	if (idle && bell_idle)
		(void)tcp_set(l->by_bell ? l->socket : bell, IPPROTO_TCP, TCP_KEEPIDLE, LATER_S);
}

void tcp_keepalive(struct tcp_link *l, uint32_t flags)
{
	int bell = flags & FABRIC_WITH_BELL ? l->base.bell : -1;
	uint64_t now = tcp_ns(), last_sign, by_bell;
	bool idle, bell_idle;

	last_sign = sign(l->socket, l->prompt, now, &idle);
	by_bell = sign(bell, false, now, &bell_idle);
	if (by_bell > last_sign)
		last_sign = by_bell;
	l->base.last_sign = last_sign ? last_sign : now; /* no socket has a sign */
	if (flags & FABRIC_ASK)
		ask_in_turn(l, bell, idle, bell_idle);
}
