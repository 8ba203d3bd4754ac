/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silence. While a peer's machine is there its kernel gives signs of life: it confirms what it gets
 * and answers questions, for a stopped process, too. The control connection and the link on its
 * path are asked in turns, so that the last sign of an idle pair, too, is young when the network
 * falls silent.
 *
 * Let that be at O, and the last sign before it at L. The kernel asks by each of the two no sooner
 * than a second after its last sign; in turns PERIOD apart that makes a sign each PERIOD: O - L <=
 * 550 ms, next to nothing where data is under way, and a round trip. The peer is lost at L + DEAD +
 * MARGIN. So
 *	found:    by O + DEAD + 800 ms, and a timer's 100: within DEAD and a second
 *	outlived: until O + DEAD + 250 ms. From L + 810 ms on there is a question each 260 ms:
 *	          one finds a network that is back by O + DEAD - 100 ms, with 90 ms for the answer.
 * (One that loses answers alone is asked by each connection each 520 ms: its kernel answers twice a
 * second.) A secondary link is asked alone, once a second: it has PERIOD more while the control
 * connection lives, and is lost with it else.
 */
#include "slmpm/connect/control.h"

#include <errno.h>
#include <sys/socket.h>

#include "slmpm/bond/bond.h"
#include "slmpm/base/config.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/link/link.h"
#include "slmpm/link/wait.h"

#define MS     UINT64_C(1000000)
#define PERIOD (550 * MS) /* between questions while there are answers */
#define RETRY  (260 * MS) /* ... and while there is none */
#define MARGIN (800 * MS)
#define LATE   (100 * MS) /* a timer that fires by then was in time */
#define ENOUGH 3          /* questions without an answer before a peer is lost */

/* The link's own, or, of a bond, its I-th; NULL: it is not up. */
static struct fabric_link *link_at(const struct endpoint *ep, uint32_t i)
{
	if (!ep->rooms->secondary)
		return i ? NULL : ep->link.port;
	return bond_state(ep->link.port, i) == PATH_UP ? bond_port(ep->link.port, i) : NULL;
}

/* The link that shares the control connection's path, and is asked by both: the first that is
 * up. */
static uint32_t home_of(const struct endpoint *ep)
{
	uint32_t i = 0;

	while (i < BOND_PATHS - 1 && !link_at(ep, i))
		i++;
	return i;
}

static int silence_keepalive(struct fabric_link *port, bool home, enum fabric_flag what)
{
	return link_status(port, (uint16_t)(FABRIC_SIGN | what | (home ? FABRIC_WITH_BELL : 0)));
}

/* While this side was in no call it sent no questions, and the last sign is as much older; but the
 * kernel sent one each second or two. */
static void give_grace(struct silence *s, uint64_t now)
{
	uint64_t away = now - s->inspected;

	if (away < PERIOD + LATE)
		return;
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		s->link[i].grace = away < 2 * PERIOD ? away : 2 * PERIOD;
		s->link[i].asked = 0;
	}
}

/* Has EP's I-th been silent for too long? Else NEXT becomes no later than its next inspection. */
static bool silence_is_silent(struct endpoint *ep, struct fabric_link *port, uint32_t i,
			      uint64_t now, uint64_t *next)
{
	struct silence_link *l = &ep->rooms->control->silence.link[i];
	uint64_t most = (uint64_t)config_get()->dead_ms * MS + MARGIN + l->grace, age, when;
	bool home = i == home_of(ep);
	int rc = silence_keepalive(port, home, FABRIC_ASK);

	if (rc == -ENOTSUP) /* on this machine */
		return false;
	if (!home && ep->rooms->control->socket.fd >= 0)
		most += PERIOD;
	age = now > port->last_sign ? now - port->last_sign : 0;
	if (rc < 0 || age < PERIOD + RETRY) {
		*l = (struct silence_link){.asked = 0};
		when = now + PERIOD;
	} else {
		l->asked++;
		if (age >= most && l->asked > ENOUGH)
			return true;
		when = age < most && most - age < RETRY ? now + most - age : now + RETRY;
	}
	*next = when < *next ? when : *next;
	return false;
}

/* The control connection, where there still is one, goes with the link that shares its path. */
static void fall_silent(struct endpoint *ep, struct fabric_link *port, bool home)
{
	struct control *c = ep->rooms->control;

	(void)silence_keepalive(port, home, FABRIC_SILENT);
	if (!home || c->socket.fd < 0)
		return;
	/* Should the peer receive it after all, then as a loss, not as an orderly end. */
	(void)setsockopt(c->socket.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			 sizeof(struct linger));
	c->stream->error = ETIMEDOUT;
	bootstrap_hang_up(ep);
}

/* The next inspection of EP; 0: one of its links fell silent; UINT64_MAX: none of them is
 * watched. */
static uint64_t silence_inspect(struct endpoint *ep, uint64_t now)
{
	struct silence *s = &ep->rooms->control->silence;
	/* While none is up, one may come. */
	uint64_t next = link_at(ep, home_of(ep)) ? UINT64_MAX : now + PERIOD;

	give_grace(s, now);
	s->inspected = now;
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		struct fabric_link *port = link_at(ep, i);

		if (port && silence_is_silent(ep, port, i, now, &next)) {
			fall_silent(ep, port, i == home_of(ep));
			return 0;
		}
	}
	return next;
}

void silence_watch(struct control *c)
{
	struct context *ctx = c->ep->ctx;

	if (!c->stream)
		return;
	c->silence.inspected = clock_now();
	list_append(&ctx->remote_peers, &c->silence.node);
	ctx->silence_deadline = 0;
	context_changed(ctx);
}

uint64_t silence_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (list_empty(&ctx->remote_peers))
		return UINT64_MAX;
	if (now_ns < ctx->silence_deadline)
		return ctx->silence_deadline;
	LIST_EACH_ENTRY(struct control, c, &ctx->remote_peers, silence.node) {
		uint64_t when = UINT64_MAX;

		if (c->ep->state == SLMPM_PEER_UP)
			when = silence_inspect(c->ep, now_ns);
		if (!when) {
			ctx->silence_deadline = 0;
			return 0; /* what it brought with it may have changed the list */
		}
		if (when == UINT64_MAX)
			list_remove(&c->silence.node);
		next = when < next ? when : next;
	}
	ctx->silence_deadline = next;
	return next;
}
