/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 150 */
/* A link of any fabric between two processes: both directions at once, asleep and awake, the ring
 * full and empty; and what is left of a link whose other process has been killed. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/child.h"
#include "tests/lib/fabric_suite.h"

#define ROUNDS  16
#define SECONDS 50 /* a child's life */

struct meeting {
	struct fabric_config config[SIDES];
	int blobs[SIDES], bells[SIDES];
	void (*play)(struct link_end *e, uint64_t packets);
	uint64_t packets;
	int rounds; /* of connecting */
};

static void prepare(struct meeting *m, uint32_t segments, uint32_t size)
{
	memset(m, 0, sizeof(*m));
	m->config[LEFT] = m->config[RIGHT] = link_config(segments, size);
	m->rounds = ROUNDS;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, m->blobs), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, m->bells), 0);
}

/* This process's end, connected as far as m->rounds say. */
static void enter(struct meeting *m, int side, struct link_end *e)
{
	int rc;

	close(m->blobs[!side]);
	close(m->bells[!side]);
	link_end_open(e, fabric, &m->config[side], side, m->bells[side]);
	e->link->active = side == LEFT;
	rc = link_end_meet(e, m->blobs[side], m->rounds);
	CHECK(rc == (m->rounds == ROUNDS ? 0 : 1) || !m->rounds, "connecting said %d", rc);
}

/* Of a bond's paths one may notice the other side's end, and another never does: the core tells. So
 * neither side leaves before the other has had all. */
static void leave(struct meeting *m, int side, struct link_end *e)
{
	struct fabric_wr listen = {.op = FABRIC_FLUSH};
	struct pollfd other = {.fd = m->blobs[side], .events = POLLIN};

	if (bonded_is(fabric))
		CHECK(write(m->blobs[side], "l", 1) == 1, "the other side has gone");
	while (bonded_is(fabric) && poll(&other, 1, 0) == 0)
		(void)fabric->post(e->link, &listen);
	close(m->blobs[side]);
	link_end_close(e);
}

static int play_left(void *arg)
{
	struct meeting *m = arg;
	struct link_end e;

	enter(m, LEFT, &e);
	m->play(&e, m->packets);
	leave(m, LEFT, &e);
	return 0;
}

static pid_t meet(struct meeting *m, struct link_end *e)
{
	pid_t child = child_start(play_left, m, SECONDS);

	enter(m, RIGHT, e);
	return child;
}

/* The same play on both sides. */
static void both_play(struct meeting *m)
{
	struct link_end e;
	pid_t child = meet(m, &e);

	m->play(&e, m->packets);
	leave(m, RIGHT, &e);
	assert_int_equal(child_wait(child), 0);
}

/* ---- both directions at once ---------------------------------------------------------------- */

struct talk {
	uint64_t sent, taken; /* the next of each */
};

/* As much as goes both ways: whether anything did. */
static bool talk(struct link_end *e, struct talk *t, uint64_t packets)
{
	struct fabric_arrival a[8];
	int n = link_poll(e->link, a, 8);
	bool any = n > 0;

	CHECK(n >= 0, "poll said %d (%s)", n, e->link->violation);
	for (int i = 0; i < n; i++, t->taken++) {
		link_check(&a[i], t->taken, link_length(e->link->payload_max_in, t->taken));
		fabric->release(e->link, &a[i]);
	}
	for (int i = 0; i < 8 && t->sent <= packets; i++, t->sent++) {
		uint32_t length = link_length(e->link->payload_max, t->sent);
		int rc = link_put(e->link, t->sent, length, i % 3 ? FABRIC_MORE : 0);

		if (rc == -EAGAIN)
			break;
		CHECK(rc == 1, "post said %d (%s)", rc, e->link->violation);
		any = true;
	}
	return any;
}

static bool talked(const struct talk *t, uint64_t packets)
{
	return t->sent > packets && t->taken > packets;
}

static void talk_awake(struct link_end *e, uint64_t packets)
{
	struct talk t = {1, 1};

	while (!talked(&t, packets))
		if (!talk(e, &t, packets))
			sched_yield();
	link_flush_totals(e->link);
}

static bool is_woken(struct link_end *e)
{
	struct pollfd p[2] = {{.fd = e->bell, .events = POLLIN},
			      {.fd = e->domain->fd, .events = POLLIN}};

	return poll(p, 2, PATIENCE) > 0;
}

/* Takes a bell; false: there is none, or one more may come. */
static bool has_gone(struct link_end *e)
{
	char bell;

	return recv(e->bell, &bell, 1, MSG_DONTWAIT) == 0;
}

/* Sleeps whenever nothing goes: each bell must come. */
static void talk_asleep(struct link_end *e, uint64_t packets)
{
	struct talk t = {1, 1};

	while (!talked(&t, packets)) {
		if (talk(e, &t, packets))
			continue;
		fabric->arm(e->domain, true);
		if (!talk(e, &t, packets) && !talked(&t, packets)) {
			CHECK(is_woken(e), "nobody woke this side: %llu sent, %llu taken",
			      (unsigned long long)t.sent, (unsigned long long)t.taken);
			if (has_gone(e))
				CHECK(t.sent > packets, "the other side is gone");
		}
		fabric->arm(e->domain, false);
	}
	link_flush_totals(e->link);
	/* The other side may sleep for what this one has read. */
	fabric->arm(e->domain, true);
}

/* Bonds, over each fabric, need fewer to show the same. */
static unsigned parts(void)
{
	return (unsigned)actor_slow() * (bonded_is(fabric) ? 5 : 1);
}

static void streams_cross(void **state)
{
	(void)state;
	for (const struct fabric_shape *s = fabric_shapes; s->segments; s++) {
		struct meeting m;

		prepare(&m, s->segments, s->size);
		m.play = talk_awake;
		/* In a short ring each turn is a change of processors, or of processes. */
		m.packets = (s->size > 4096 ? 500 : s->segments < 32 ? 2000 : 5000) / parts();
		both_play(&m);
	}
}

static void streams_cross_asleep(void **state)
{
	(void)state;
	for (const struct fabric_shape *s = fabric_shapes; s->segments; s++) {
		struct meeting m;

		prepare(&m, s->segments, s->size);
		m.config[LEFT].membarrier = s->segments != 8;
		m.config[RIGHT].membarrier = s->segments != 16 && s->segments != 8;
		m.play = talk_asleep;
		m.packets = (s->size > 4096 ? 500 : s->segments < 32 ? 2000 : 5000) / parts();
		both_play(&m);
	}
}

/* ---- one packet there, one back ------------------------------------------------------------- */

static void await(struct link_end *e, uint64_t seed, uint32_t length)
{
	struct fabric_arrival a;
	char bell;
	int n;

	while ((n = fabric->poll(e->link, &a, 1)) == 0) {
		fabric->arm(e->domain, true);
		n = fabric->poll(e->link, &a, 1);
		if (!n)
			CHECK(is_woken(e), "packet %llu: nobody rings", (unsigned long long)seed);
		while (!n && recv(e->bell, &bell, 1, MSG_DONTWAIT) > 0)
			;
		fabric->arm(e->domain, false);
		if (n)
			break;
	}
	CHECK(n == 1, "poll said %d", n);
	link_check(&a, seed, length);
	fabric->release(e->link, &a);
}

static void serve(struct link_end *e, uint64_t packets)
{
	for (uint64_t i = 1; i <= packets; i++) {
		await(e, i, (uint32_t)(i % 33));
		link_send(e->link, i + 5, 8, 0);
		link_flush_totals(e->link);
	}
}

static void every_packet_wakes(void **state)
{
	(void)state;
	for (int who = 0; who < 4; who++) {
		struct link_end e;
		struct meeting m;
		pid_t child;

		prepare(&m, 64, 64);
		m.config[LEFT].membarrier = who & 1;
		m.config[RIGHT].membarrier = who & 2;
		m.play = serve;
		m.packets = 3000 / parts();
		child = meet(&m, &e);
		for (uint64_t i = 1; i <= m.packets; i++) {
			link_send(e.link, i, (uint32_t)(i % 33), 0);
			await(&e, i + 5, 8);
			link_flush_totals(e.link);
		}
		leave(&m, RIGHT, &e);
		assert_int_equal(child_wait(child), 0);
	}
}

/* ---- a process that is killed --------------------------------------------------------------- */

static void send_and_die(struct link_end *e, uint64_t packets)
{
	for (uint64_t i = 1; i <= packets; i++)
		if (link_put(e->link, i, link_length(e->link->payload_max, i), 0) != 1)
			_exit(1);
	raise(SIGKILL);
}

/* In the middle of one more. */
static void reserve_and_die(struct link_end *e, uint64_t packets)
{
	for (uint64_t i = 1; i <= packets; i++)
		if (link_put(e->link, i, link_length(e->link->payload_max, i), 0) != 1)
			_exit(1);
	memset(fabric->reserve(e->link, e->link->payload_max), 0xff, e->link->payload_max);
	raise(SIGKILL);
}

/* What was posted has arrived; nothing else has, nor hurts what is left. */
static void outlive(void (*play)(struct link_end *, uint64_t), uint64_t packets)
{
	uint64_t sent = 1, taken = 1;
	struct link_end e;
	struct meeting m;
	pid_t child;

	prepare(&m, 64, 64);
	m.play = play;
	m.packets = packets;
	child = meet(&m, &e);
	assert_int_equal(child_wait(child), -SIGKILL);
	while (taken <= packets)
		link_take_next(e.link, &taken);
	link_expect_no_more(e.link);
	link_fill(e.link, &sent);
	fabric->arm(e.domain, true);
	link_expect_no_more(e.link);
	fabric->arm(e.domain, false);
	close(m.blobs[RIGHT]);
	link_end_close(&e);
}

static void what_was_posted_outlives_its_writer(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 12; n++) {
		outlive(send_and_die, n);
		outlive(reserve_and_die, n / 4);
	}
}

static void die(struct link_end *e, uint64_t packets)
{
	(void)e;
	(void)packets;
	raise(SIGKILL);
}

static void death_while_connecting_leaves_nothing(void **state)
{
	struct link_pair p;
	int rounds;

	(void)state;
	link_pair_open(&p, fabric, 64, 64);
	rounds = p.rounds;
	link_pair_close(&p);
	for (int i = 0; i < rounds; i++) {
		struct link_end e;
		struct meeting m;
		pid_t child;

		prepare(&m, 64, 64);
		m.rounds = i;
		m.play = die;
		child = meet(&m, &e);
		assert_int_equal(child_wait(child), -SIGKILL);
		close(m.blobs[RIGHT]);
		link_end_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(streams_cross),
		FABRIC_TEST(streams_cross_asleep),
		FABRIC_TEST(every_packet_wakes),
		FABRIC_TEST(what_was_posted_outlives_its_writer),
		FABRIC_TEST(death_while_connecting_leaves_nothing),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
