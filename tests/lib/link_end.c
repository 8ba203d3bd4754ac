/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core does with a fabric, by hand: opening, connecting, packets. */
#include "tests/lib/link_end.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/far.h"
#include "tests/lib/far_call.h"
#include "tests/lib/loopback.h"

/* SLMPM_TEST_ENGINE: "uring" both ways, else as the fabric likes. */
static uint8_t engine(void)
{
	const char *name = getenv("SLMPM_TEST_ENGINE");

	return name && !strcmp(name, "uring") ? FABRIC_ENGINE_URING : FABRIC_ENGINE_AUTO;
}

struct fabric_config link_config(uint32_t segments, uint32_t segment_size)
{
	return (struct fabric_config){
		.engine = engine(),
		.segments = segments,
		.segment_size = segment_size,
		.threshold_permille = 500,
		.membarrier = true,
	};
}

/* Ends of this process. */
#define ENDS 32
static struct fabric_link *ends[ENDS];

static void replace(struct fabric_link *old, struct fabric_link *new)
{
	int i = 0;

	while (ends[i] != old)
		CHECK(++i < ENDS, "more than %d ends", ENDS);
	ends[i] = new;
}

void link_place(struct fabric_link *l)
{
	static union loopback here;

	if (!loopback_is_v6())
		return;
	here = loopback_at(0);
	l->local = l->remote = &here.any;
}

void link_end_open(struct link_end *e, const struct fabric *f, const struct fabric_config *config,
		   int side, int bell)
{
	e->domain = calloc(1, f->domain_size);
	e->link = calloc(1, f->link_size);
	CHECK(e->domain && e->link, "out of memory");
	e->domain->fabric = f;
	e->domain->config = *config;
	if (side == far_side())
		far_take(e->domain);
	CHECK(f->open(e->domain) == 0, "%s: open", f->name);
	e->link->domain = e->domain;
	e->link->bell = e->bell = bell;
	e->link->process = -1;
	e->link->pid = getpid(); /* unless it meets another process */
	e->link->attach = true;
	link_place(e->link);
	replace(NULL, e->link);
}

void link_end_close(struct link_end *e)
{
	const struct fabric *f = e->domain->fabric;

	replace(e->link, NULL);
	f->disconnect(e->link);
	f->disconnect(e->link); /* idempotent */
	f->close(e->domain);
	free(e->link);
	free(e->domain);
	close(e->bell);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* A bond's ends have words of their own for each other. */
static void push_all(void)
{
	struct fabric_wr listen = {.op = FABRIC_FLUSH};
	struct fabric_arrival none;

	for (int i = 0; i < ENDS; i++)
		if (ends[i] && ends[i]->payload_max) {
			(void)ends[i]->domain->fabric->poll(ends[i], &none, 0);
			if (bonded_is(ends[i]->domain->fabric))
				(void)ends[i]->domain->fabric->post(ends[i], &listen);
		}
}

static bool comes(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

bool link_await(struct fabric_domain *domain)
{
	int64_t until = actor_now_ms() + PATIENCE;
	bool found = false;

	if (bonded_is(domain->fabric)) { /* what it has read ahead shows nowhere */
		push_all();
		(void)comes(domain->fd, 0);
		return true;
	}
	if (domain->fd < 0)
		return false;
	domain->fabric->arm(domain, true);
	while (!found && actor_now_ms() < until) {
		push_all();
		found = comes(domain->fd, 1);
	}
	domain->fabric->arm(domain, false);
	return found;
}

bool link_awaits_bell(struct link_end *e, int ms)
{
	struct pollfd fds[] = {{.fd = e->bell, .events = POLLIN},
			       {.fd = e->domain->fd, .events = POLLIN}};
	bool any;
	char bells[8];

	(void)poll(fds, 2, ms);
	any = fds[1].revents != 0;
	while (recv(e->bell, bells, sizeof(bells), MSG_DONTWAIT) == 1)
		any = true;
	return any || (e->domain->fd >= 0 && comes(e->domain->fd, ms)); /* the bell may be closed */
}

bool link_is_lost(const struct fabric_link *l, int rc)
{
	return rc == -EPIPE && l->lost && l->lost[0];
}

/* ---- connecting ----------------------------------------------------------------------------- */

void link_ask(struct fabric_link *l, int round, struct fabric_blob *out)
{
	const struct fabric *f = l->domain->fabric;
	int rc;

	*out = (struct fabric_blob){.fd = -1};
	rc = f->address(l, round, out);
	CHECK(rc == 0, "%s: address %d: %s", f->name, round, strerror(-rc));
	CHECK(out->length <= sizeof(out->bytes), "%s: a blob of %u bytes", f->name, out->length);
	if (out->fd < 0)
		return;
	out->fd = dup(out->fd);
	CHECK(out->fd >= 0, "dup");
}

void link_forget(struct fabric_blob *blob)
{
	if (blob->fd >= 0)
		close(blob->fd);
	blob->fd = -1;
}

void link_send_blob(int socket, const struct fabric_blob *blob)
{
	struct parcel p = {0};

	far_put_blob(&p, blob);
	parcel_send(socket, &p);
	free(p.bytes);
}

void link_receive_blob(int socket, struct fabric_blob *blob)
{
	struct parcel p = {0};

	CHECK(parcel_receive(socket, &p), "no blob: %s", strerror(errno));
	far_get_blob(&p, blob);
	free(p.bytes);
}

int link_end_meet(struct link_end *e, int socket, int rounds)
{
	struct fabric_blob blob;
	int rc = 1;

	for (int round = 0; rc == 1 && round < rounds; round++) {
		link_ask(e->link, round, &blob);
		link_send_blob(socket, &blob);
		link_forget(&blob);
		link_receive_blob(socket, &blob);
		rc = e->domain->fabric->connect(e->link, round, &blob);
		link_forget(&blob);
		while (rc == 2 && link_await(e->domain))
			rc = e->domain->fabric->connect(e->link, round, NULL);
	}
	return rc;
}

/* ---- packets -------------------------------------------------------------------------------- */

int link_put(struct fabric_link *l, uint64_t seed, uint32_t length, uint16_t flags)
{
	unsigned char *data = malloc(length ? length : 1);
	struct fabric_wr wr = {
		.op = FABRIC_SEND,
		.kind = (uint8_t)(seed % 249 + 1), /* 250 and more are bonds' */
		.flags = flags,
		.length = length,
		.data = data,
		.head = {seed, ~seed, seed << 40 | length},
	};
	int rc;

	CHECK(data, "out of memory");
	actor_fill(data, seed, length);
	rc = l->domain->fabric->post(l, &wr);
	free(data);
	return rc ? rc : 1; /* taken, if not all of it has left */
}

void link_send(struct fabric_link *l, uint64_t seed, uint32_t length, uint16_t flags)
{
	int rc;

	while ((rc = link_put(l, seed, length, flags)) == -EAGAIN && link_await(l->domain))
		;
	CHECK(rc == 1, "packet %llu of %u bytes: post said %d (%s)", (unsigned long long)seed,
	      length, rc, l->violation ? l->violation : "sound");
}

bool link_comes_soon(struct fabric_domain *domain)
{
	struct pollfd p = {.fd = domain->fd, .events = POLLIN};

	domain->fabric->arm(domain, true);
	return domain->fd >= 0 && poll(&p, 1, 1000) == 1;
}

int link_poll(struct fabric_link *l, struct fabric_arrival *arrivals, int n)
{
	struct fabric_wr land = {.op = FABRIC_LAND};
	int got = l->domain->fabric->poll(l, arrivals, n);

	if (got > 0 && !arrivals[got - 1].data) {
		CHECK(l->domain->fabric->post(l, &land) == 1, "landing in the ring");
		got--;
	}
	return got;
}

void link_check(const struct fabric_arrival *a, uint64_t seed, uint32_t length)
{
	unsigned long long number = seed;

	CHECK(a->length == length && a->kind == seed % 249 + 1,
	      "packet %llu: %u bytes of kind %u, not %u", number, a->length, a->kind, length);
	CHECK(a->head[0] == seed && a->head[1] == ~seed && a->head[2] == (seed << 40 | length),
	      "packet %llu: another's header", number);
	CHECK(actor_filled(a->data, seed, length), "packet %llu of %u bytes: damaged", number,
	      length);
}

/* The next arrival is that; left unreleased in *A. */
static void expect(struct fabric_link *l, struct fabric_arrival *a, uint64_t seed, uint32_t length)
{
	int n;

	while ((n = link_poll(l, a, 1)) == 0 && link_await(l->domain))
		;
	CHECK(n == 1, "packet %llu of %u bytes: poll said %d (%s)", (unsigned long long)seed,
	      length, n, l->violation ? l->violation : "sound");
	link_check(a, seed, length);
}

void link_take(struct fabric_link *l, uint64_t seed, uint32_t length)
{
	struct fabric_arrival a;

	expect(l, &a, seed, length);
	l->domain->fabric->release(l, &a);
}

void link_expect_nothing(struct fabric_link *l)
{
	struct fabric_arrival a;
	int n = l->domain->fabric->poll(l, &a, 1);

	CHECK(n == 0, "poll said %d where nothing was sent (%s)", n,
	      l->violation ? l->violation : "sound");
}

void link_expect_no_more(struct fabric_link *l)
{
	struct fabric_arrival a;
	int n = l->domain->fabric->poll(l, &a, 1);

	CHECK(n == 0 || link_is_lost(l, n), "poll said %d of a link whose other end has gone", n);
}

void link_flush_totals(struct fabric_link *l)
{
	struct fabric_wr wr = {.op = FABRIC_FLUSH};
	int64_t until = actor_now_ms() + PATIENCE;
	int rc;

	while ((rc = l->domain->fabric->post(l, &wr)) == -EAGAIN && actor_now_ms() < until) {
		push_all();
		sched_yield();
	}
	CHECK(rc == 1 || link_is_lost(l, rc), "flush said %d", rc);
}

void link_await_totals(struct fabric_link *l)
{
	do {
		link_flush_totals(l);
		if (l->counts.consumed_seen == l->counts.produced)
			return;
	} while (link_await(l->domain));
	CHECK(false, "%llu segments sent, %llu of them known to be read",
	      (unsigned long long)l->counts.produced, (unsigned long long)l->counts.consumed_seen);
}

uint32_t link_length(uint32_t most, uint64_t seed)
{
	return (uint32_t)(seed * 37 % (most + 1));
}

void link_fill(struct fabric_link *l, uint64_t *sent)
{
	int rc;

	while ((rc = link_put(l, *sent, link_length(l->payload_max, *sent), 0)) == 1)
		++*sent;
	CHECK(rc == -EAGAIN || link_is_lost(l, rc), "packet %llu: post said %d (%s)",
	      (unsigned long long)*sent, rc, l->violation ? l->violation : "sound");
}

void link_fill_empty(struct fabric_link *l, uint64_t *sent)
{
	uint64_t before = *sent;

	do
		link_fill(l, sent);
	while (*sent == before && link_await(l->domain));
	CHECK(*sent != before, "an empty ring takes nothing");
}

void link_expect_next(struct fabric_link *l, struct fabric_arrival *a, uint64_t *taken)
{
	expect(l, a, *taken, link_length(l->payload_max_in, *taken));
	++*taken;
}

void link_take_next(struct fabric_link *l, uint64_t *taken)
{
	struct fabric_arrival a;

	link_expect_next(l, &a, taken);
	l->domain->fabric->release(l, &a);
}
