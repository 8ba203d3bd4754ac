/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -luring -pthread */
/*
 * More comes by io_uring than it has buffers for, or room to tell of: nothing is lost, awake,
 * asleep and when another thread takes over, and each link is received by it again afterwards.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "fabrics/registry.h"
#include "fabrics/tcp_uring.h"
#include "tests/lib/actor.h"
#include "tests/lib/link_pair.h"

#define LINKS  (TCP_URING_BUFFERS + 8)
#define ROUNDS 20
#define FEW    8 /* completions: as few as the kernel allows */
#define POLLS  1000
#define LENGTH 40

static const struct fabric *tcp;
static struct fabric_domain *domain[SIDES];
static struct link_pair pair[LINKS];
static uint64_t seed;

static struct tcp_domain *taker(void)
{
	return (struct tcp_domain *)domain[RIGHT];
}

static int poll_link(uint32_t i, struct fabric_arrival *a)
{
	return domain[RIGHT]->fabric->poll(pair[i].link[RIGHT], a, 1);
}

/* ---- many links of one domain ---------------------------------------------------------------- */

static void open_domain(int side, uint8_t engine)
{
	struct fabric_domain *d = calloc(1, tcp->domain_size);

	CHECK(d, "out of memory");
	d->fabric = tcp;
	d->config = link_config(256, 64);
	d->config.engine = engine;
	CHECK(tcp->open(d) == 0, "open");
	domain[side] = d;
}

static void open_pair(struct link_pair *p)
{
	int fds[2];

	*p = (struct link_pair){.rounds = 0};
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0, "no socket pair");
	for (int side = 0; side < SIDES; side++) {
		struct fabric_link *l = calloc(1, tcp->link_size);

		CHECK(l, "out of memory");
		l->domain = p->domain[side] = domain[side];
		l->bell = fds[side];
		l->process = -1;
		l->pid = getpid();
		l->active = side == LEFT;
		p->link[side] = l;
	}
	link_pair_connect(p);
}

/* Each has nothing, so that it joins. */
static void all_join(void)
{
	struct fabric_arrival a;

	for (int polls = 0; polls < POLLS && taker()->armed < LINKS; polls++)
		for (uint32_t i = 0; i < LINKS; i++)
			CHECK(poll_link(i, &a) == 0, "link %u: something comes", i);
	CHECK(taker()->armed == LINKS, "%u links of %d are received by it", taker()->armed, LINKS);
}

static void begin(uint32_t completions)
{
	struct tcp_uring *u;

	open_domain(LEFT, FABRIC_ENGINE_PLAIN);
	open_domain(RIGHT, FABRIC_ENGINE_URING_RECV);
	u = taker()->uring;
	if (taker()->no_uring)
		test_skip("io_uring is refused here");
	if (completions) { /* it is made again for the first link */
		io_uring_queue_exit(&u->ring);
		u->open = false;
		u->completions = completions;
	}
	for (uint32_t i = 0; i < LINKS; i++)
		open_pair(&pair[i]);
	all_join();
}

static void end(void)
{
	for (uint32_t i = 0; i < LINKS; i++)
		for (int side = 0; side < SIDES; side++)
			tcp->disconnect(pair[i].link[side]);
	for (int side = 0; side < SIDES; side++) {
		tcp->close(domain[side]);
		free(domain[side]);
	}
	for (uint32_t i = 0; i < LINKS; i++)
		for (int side = 0; side < SIDES; side++) {
			close(pair[i].link[side]->bell);
			free(pair[i].link[side]);
		}
}

/* ---- a packet on each ------------------------------------------------------------------------ */

static void send_all(void)
{
	seed += LINKS;
	for (uint32_t i = 0; i < LINKS; i++)
		link_send(pair[i].link[LEFT], seed + i, LENGTH, 0);
}

static void take(uint32_t i)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct fabric_arrival a;
	int n;

	while ((n = poll_link(i, &a)) == 0 && actor_now_ms() < until)
		;
	CHECK(n == 1, "link %u: poll said %d", i, n);
	link_check(&a, seed + i, LENGTH);
	domain[RIGHT]->fabric->release(pair[i].link[RIGHT], &a);
}

/* Another one first each time. */
static void take_some(uint64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		take((uint32_t)(first + i) % LINKS);
}

static struct io_uring *ring(void)
{
	return &taker()->uring->ring;
}

static bool overflows(void)
{
	return IO_URING_READ_ONCE(*ring()->sq.kflags) & IORING_SQ_CQ_OVERFLOW;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void buffers_run_out(void)
{
	begin(0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		send_all();
		for (int inspections = 0; inspections < POLLS && taker()->armed == LINKS;
		     inspections++)
			tcp_uring_inspect(taker()); /* some at a time */
		CHECK(taker()->armed == TCP_URING_BUFFERS, "%u links had a buffer", taker()->armed);
		take_some(round, LINKS);
		all_join();
	}
	end();
}

static void completions_overflow(void)
{
	begin(FEW);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		send_all();
		CHECK(io_uring_get_events(ring()) >= 0, "get events");
		CHECK(overflows(), "%d completions have room", LINKS);
		take_some(round, LINKS);
		all_join();
	}
	end();
}

/* Who sleeps wakes for what comes, and does not fall asleep on what is left. */
static void sleepers_wake(uint32_t completions)
{
	struct pollfd fd;

	begin(completions);
	fd = (struct pollfd){.fd = domain[RIGHT]->fd, .events = POLLIN};
	for (uint64_t round = 0; round < ROUNDS; round++) {
		tcp->arm(domain[RIGHT], true);
		CHECK(poll(&fd, 1, 0) == 0, "awake for nothing");
		send_all();
		for (uint32_t taken = 0; taken < LINKS; taken += LINKS / 4) {
			CHECK(poll(&fd, 1, PATIENCE) == 1, "asleep, and %u are left",
			      LINKS - taken);
			tcp->arm(domain[RIGHT], false);
			take_some(round + taken, LINKS / 4);
			tcp->arm(domain[RIGHT], true);
		}
		tcp->arm(domain[RIGHT], false);
		all_join();
	}
	end();
}

static void *take_rest(void *first)
{
	take_some(*(uint64_t *)first, LINKS - 1);
	return NULL;
}

/* The ring ends with what it has told its own thread. */
static void another_thread_takes_over(uint32_t completions)
{
	uint64_t next = 1;
	pthread_t thread;

	begin(completions);
	send_all();
	take_some(0, 1);
	CHECK(pthread_create(&thread, NULL, take_rest, &next) == 0, "no thread");
	CHECK(pthread_join(thread, NULL) == 0, "join");
	end();
}

int main(void)
{
	tcp = fabric_find("tcp");
	CHECK(tcp, "no such fabric");
	buffers_run_out();
	completions_overflow();
	sleepers_wake(0);
	sleepers_wake(FEW);
	another_thread_takes_over(0);
	another_thread_takes_over(FEW);
	return 0;
}
