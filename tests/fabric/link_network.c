/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A link where its control connection is a network's: on the same addresses, of either family; what
 * has been said arrives although who said it has gone; many links, few calls.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/far.h"
#include "tests/lib/stream_relay.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address v4(uint32_t host, uint16_t port)
{
	return (union address){.v4 = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(host),
				      .sin_port = htons(port)}};
}

static union address v6(uint16_t port)
{
	return (union address){.v6 = {.sin6_family = AF_INET6,
				      .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				      .sin6_port = htons(port)}};
}

/* Two connected sockets on that address; false: it is not to be had here. */
static bool bells(union address at, int fds[SIDES])
{
	socklen_t size = sizeof(at);
	int l = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (l < 0 || bind(l, &at.any, sizeof(at)) != 0) {
		close(l);
		return false;
	}
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, &at.any, &size), 0);
	fds[LEFT] = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[LEFT], &at.any, size), 0);
	fds[RIGHT] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fds[RIGHT] >= 0);
	close(l);
	return true;
}

static bool somebody_listens(union address at)
{
	int s = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes = connect(s, &at.any, sizeof(at)) == 0;

	close(s);
	return yes;
}

static void make_over(struct link_pair *p, const int fds[SIDES])
{
	struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};

	link_pair_make(p, stream_fabric(), config);
	for (int side = 0; side < SIDES; side++) {
		close(p->end[side].bell);
		p->link[side]->bell = fds[side];
		p->end[side].bell = fds[side];
	}
}

/* Where the control connection has come in, and nowhere else. */
static void meet_at(union address at, union address (*moved)(union address, uint16_t),
		    union address (*elsewhere)(union address, uint16_t))
{
	struct fabric_blob blob[SIDES];
	struct link_pair p;
	int fds[SIDES] = {-1, -1}, rc[SIDES];
	uint16_t port;

	if (!bells(at, fds))
		skip();
	make_over(&p, fds);
	for (int side = 0; side < SIDES; side++)
		link_ask(p.link[side], 0, &blob[side]);
	port = (uint16_t)(blob[RIGHT].bytes[STREAM_PORT_AT] | blob[RIGHT].bytes[STREAM_PORT_AT + 1]
								      << 8);
	assert_true(somebody_listens(moved(at, port)));
	assert_false(somebody_listens(elsewhere(at, port)));
	for (int side = 0; side < SIDES; side++)
		rc[side] = p.domain[side]->fabric->connect(p.link[side], 0, &blob[!side]);
	link_pair_settle(&p, 0, rc, PATIENCE);
	assert_true(rc[LEFT] == 0 && rc[RIGHT] == 0);
	assert_false(somebody_listens(moved(at, port))); /* not any more */
	for (uint64_t i = 1; i < 100; i++) {
		link_send(p.link[i & 1], i, 20, 0);
		link_take(p.link[!(i & 1)], i, 20);
	}
	link_pair_close(&p);
}

static union address same_v4(union address at, uint16_t port)
{
	at.v4.sin_port = htons(port);
	return at;
}

static union address loopback_v4(union address at, uint16_t port)
{
	(void)at;
	return v4(INADDR_LOOPBACK, port);
}

static union address same_v6(union address at, uint16_t port)
{
	at.v6.sin6_port = htons(port);
	return at;
}

static void links_meet_where_the_peers_did(void **state)
{
	(void)state;
	meet_at(v4(INADDR_LOOPBACK + 1, 0), same_v4, loopback_v4);
}

static void links_meet_over_version_6(void **state)
{
	(void)state;
	meet_at(v6(0), same_v6, loopback_v4);
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* Who has said all may go, whatever he has not heard. */
static void last_words_arrive(void **state)
{
	struct link_pair p;

	(void)state;
	for (int lap = 0; lap < 50; lap++) {
		uint64_t sent = 1, taken = 1, back = 1;

		link_pair_open(&p, stream_fabric(), 256, 64);
		link_fill(p.link[LEFT], &sent);
		link_fill(p.link[RIGHT], &back); /* and nobody reads it */
		link_flush_totals(p.link[LEFT]);
		p.domain[LEFT]->fabric->disconnect(p.link[LEFT]);
		while (taken < sent) {
			link_take_next(p.link[RIGHT], &taken);
			if (lap & 1) /* credits, to nobody */
				(void)p.domain[RIGHT]->fabric->post(
					p.link[RIGHT], &(struct fabric_wr){.op = FABRIC_FLUSH});
		}
		link_pair_close(&p);
	}
}

/* FLUSH says whether all that was taken has left. */
static void flush_waits_for_the_socket(void **state)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	uint64_t sent = 1, taken = 1;
	struct stream_relay r;
	struct link_pair p;
	int rc;

	(void)state;
	stream_relay_open(&r, &p, 1u << 18, 64);
	link_fill(p.link[LEFT], &sent); /* more than two sockets hold: nobody reads */
	rc = p.domain[LEFT]->fabric->post(p.link[LEFT], &flush);
	assert_int_equal(rc, -EAGAIN);
	while (taken < sent) {
		struct fabric_arrival a;
		int n;

		(void)stream_relay_move(&r, LEFT, 30000);
		(void)stream_relay_move(&r, RIGHT, 30000);
		(void)p.domain[LEFT]->fabric->poll(p.link[LEFT], &a, 1);
		for (int polls = 0; polls < 4; polls++) {
			n = link_poll(p.link[RIGHT], &a, 1);
			assert_true(n >= 0);
			if (n == 0)
				continue;
			link_check(&a, taken, link_length(p.link[RIGHT]->payload_max_in, taken));
			p.domain[RIGHT]->fabric->release(p.link[RIGHT], &a);
			taken++;
		}
	}
	assert_int_equal(p.domain[LEFT]->fabric->post(p.link[LEFT], &flush), 1);
	stream_relay_close(&r, &p);
}

/* Another thread sleeps on the descriptor: what was to wake it is taken, or it would have to wait
 * for room. */
static void who_sleeps_is_roused(void **state)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	const struct fabric *f = stream_fabric();
	int here = far_side() == LEFT ? RIGHT : LEFT;
	struct fabric_domain *domain;
	struct fabric_link *ours;
	struct link_pair p;
	uint64_t sent = 1;

	(void)state;
	link_pair_open(&p, f, 1 << 18, 64);
	domain = p.domain[here];
	ours = p.link[here];
	f->arm(domain, true);
	assert_false(domain->roused);
	link_send(p.link[!here], 1, 8, 0);
	for (int i = 0; i < 1000 && !domain->roused; i++) {
		assert_true(f->post(ours, &flush) >= 0);
		usleep(1000);
	}
	assert_true(domain->roused);
	link_take(ours, 1, 8);

	f->arm(domain, true);
	domain->roused = false;
	while (!ours->lags && link_put(ours, sent, 100000, 0) == 1)
		sent++;
	assert_true(ours->lags);
	assert_true(domain->roused);
	link_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(links_meet_where_the_peers_did),
		FABRIC_TEST(links_meet_over_version_6),
		FABRIC_TEST(last_words_arrive),
		FABRIC_TEST(flush_waits_for_the_socket),
		FABRIC_TEST(who_sleeps_is_roused),
	};

	(void)stream_fabric();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
