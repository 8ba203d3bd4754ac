/* SPDX-License-Identifier: BSD-3-Clause */
/* helper */
/*
 * The far end of links whose near end is another program's (tests/lib/far.h): far_end SOCKET makes
 * the calls that it is asked to make. What it hands out must be the same when it is given back.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/actor.h"
#include "tests/lib/far_call.h"

struct copy { /* of an arrival that has not been released */
	struct copy *next;
	struct fabric_arrival arrival;
	unsigned char data[];
};

#define STAYS_MAX 16

struct object { /* a domain, or a link */
	struct object *next;
	uint64_t name;
	struct fabric_domain *domain;
	struct fabric_link *link; /* NULL: it is the domain */
	struct copy *copies;
	void *built, *landing;
	uint32_t longest;       /* of what is to land */
	void *stays[STAYS_MAX]; /* payloads that the fabric may still look at */
	unsigned staying;
};

static struct object *objects;
static struct parcel in, out;

static struct object *find(uint64_t name)
{
	struct object *o = objects;

	while (o && o->name != name)
		o = o->next;
	CHECK(o, "nothing is called %llx", (unsigned long long)name);
	return o;
}

static struct object *add(uint64_t name)
{
	struct object *o = calloc(1, sizeof(*o));

	CHECK(o, "out of memory");
	o->name = name;
	o->next = objects;
	objects = o;
	return o;
}

static void drop_link(struct object *o)
{
	for (struct copy *c; (c = o->copies);) {
		o->copies = c->next;
		free(c);
	}
	close(o->link->bell);
	free(o->landing);
	free(o->link);
}

/* The domain, and every link of it. */
static void drop(const struct fabric_domain *domain)
{
	struct object **at = &objects;

	while (*at) {
		struct object *o = *at;

		if (o->domain != domain) {
			at = &o->next;
			continue;
		}
		if (o->link)
			drop_link(o);
		*at = o->next;
		free(o);
	}
}

/* ---- domains -------------------------------------------------------------------------------- */

static void open_domain(uint64_t name)
{
	struct object *o = add(name);
	const struct fabric *f;
	char fabric[32];
	int rc;

	parcel_get_text(&in, fabric, sizeof(fabric));
	f = fabric_find(fabric);
	CHECK(f, "no fabric %s", fabric);
	o->domain = calloc(1, f->domain_size);
	CHECK(o->domain, "out of memory");
	o->domain->fabric = f;
	far_get_config(&in, &o->domain->config);
	rc = f->open(o->domain);
	parcel_put(&out, (uint64_t)(int64_t)rc);
	if (rc < 0)
		return;
	parcel_put(&out, o->domain->fd >= 0);
	if (o->domain->fd >= 0)
		parcel_put_fd(&out, o->domain->fd);
}

static void close_domain(struct fabric_domain *domain)
{
	domain->fabric->close(domain);
	drop(domain);
	free(domain);
}

/* ---- links ---------------------------------------------------------------------------------- */

static void make_link(uint64_t name)
{
	struct fabric_domain *domain = find(parcel_get(&in))->domain;
	struct object *o = add(name);

	o->domain = domain;
	o->link = calloc(1, domain->fabric->link_size);
	CHECK(o->link, "out of memory");
	o->link->domain = domain;
	o->link->active = parcel_get(&in);
	o->link->bell = parcel_get_fd(&in);
	o->link->process = -1;
}

static int connect_link(struct fabric_link *l)
{
	int round = (int)parcel_get(&in);
	struct fabric_blob blob;
	int rc;

	if (!parcel_get(&in))
		return l->domain->fabric->connect(l, round, NULL);
	far_get_blob(&in, &blob);
	rc = l->domain->fabric->connect(l, round, &blob);
	if (blob.fd >= 0)
		close(blob.fd);
	return rc;
}

/* What was posted to stay has gone. */
static void let_go(struct object *o)
{
	while (o->staying)
		free(o->stays[--o->staying]);
}

static void *keep_staying(struct object *o, const void *bytes, size_t n)
{
	void *copy = malloc(n + 1);

	CHECK(copy && o->staying < STAYS_MAX, "packets that stay");
	memcpy(copy, bytes, n);
	return o->stays[o->staying++] = copy;
}

static bool reserve(struct object *o)
{
	uint32_t length = (uint32_t)parcel_get(&in);

	o->built = o->domain->fabric->reserve(o->link, length);
	let_go(o);
	if (o->built)
		memset(o->built, 0xff, length); /* what is not sent must not look like anything */
	return o->built;
}

/* Payload that lands does so in memory of its own, moved with each time it is told where. */
static int land(struct object *o, struct fabric_wr *wr, bool elsewhere)
{
	void *old = o->landing;
	int rc;

	o->landing = elsewhere ? malloc(o->longest + 1u) : NULL;
	CHECK(o->landing || !elsewhere, "out of memory");
	wr->into = o->landing;
	rc = o->domain->fabric->post(o->link, wr);
	free(old);
	return rc;
}

static int post(struct object *o)
{
	struct fabric_wr wr = {.op = (uint8_t)parcel_get(&in)};
	const void *bytes;
	bool elsewhere;
	size_t n;
	int rc;

	wr.kind = (uint8_t)parcel_get(&in);
	wr.flags = (uint16_t)parcel_get(&in);
	wr.length = (uint32_t)parcel_get(&in);
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		wr.head[i] = parcel_get(&in);
	bytes = parcel_get_bytes(&in, &n);
	elsewhere = parcel_get(&in);
	if (wr.op == FABRIC_LAND)
		return land(o, &wr, elsewhere);
	if (wr.flags & FABRIC_BUILT) {
		CHECK(o->built, "built, and nothing was reserved");
		memcpy(o->built, bytes, n);
	} else {
		wr.data = wr.flags & FABRIC_STAYS ? keep_staying(o, bytes, n) : bytes;
	}
	o->built = NULL;
	rc = o->domain->fabric->post(o->link, &wr);
	if (rc != 1 || !(wr.flags & FABRIC_STAYS))
		let_go(o);
	return rc;
}

static void hand_out(struct object *o, const struct fabric_arrival *a)
{
	struct copy **last = &o->copies, *c;
	bool landed = o->landing && a->data == o->landing;

	far_put_arrival(&out, a);
	parcel_put(&out, a->data != NULL);
	if (!a->data) {
		o->longest = a->length;
		return;
	}
	parcel_put(&out, landed);
	parcel_put_bytes(&out, a->data, a->length);
	c = malloc(sizeof(*c) + a->length);
	CHECK(c, "out of memory");
	*c = (struct copy){.arrival = *a};
	memcpy(c->data, a->data, a->length);
	while (*last)
		last = &(*last)->next;
	*last = c;
}

#define MOST 64

static void poll_link(struct object *o)
{
	struct fabric_arrival arrivals[MOST];
	int n = (int)parcel_get(&in), got;

	CHECK(n >= 0 && n <= MOST, "%d arrivals at once", n);
	got = o->domain->fabric->poll(o->link, arrivals, n);
	far_put_state(&out, o->link);
	parcel_put(&out, (uint64_t)(int64_t)got);
	for (int i = 0; i < got; i++)
		hand_out(o, &arrivals[i]);
}

/* All along they have stayed as they were. */
static void release(struct object *o)
{
	struct copy **at = &o->copies, *c;
	struct fabric_arrival a;
	uint32_t left;

	far_get_arrival(&in, &a);
	left = a.span;
	while (*at && (*at)->arrival.token != a.token)
		at = &(*at)->next;
	for (; left && (c = *at); free(c)) {
		CHECK(!memcmp(c->data, c->arrival.data, c->arrival.length),
		      "%u bytes were altered before their release", c->arrival.length);
		left -= c->arrival.span;
		*at = c->next;
	}
	CHECK(!left, "released what was not handed out");
	o->domain->fabric->release(o->link, &a);
}

static void answer(struct object *o, int rc)
{
	far_put_state(&out, o->link);
	parcel_put(&out, (uint64_t)(int64_t)rc);
}

static void serve_link(enum far_call call, struct object *o)
{
	const struct fabric *f = o->domain->fabric;
	struct fabric_blob blob = {.fd = -1};
	int rc;

	switch (call) {
	case FAR_ADDRESS:
		rc = f->address(o->link, (int)parcel_get(&in), &blob);
		answer(o, rc);
		if (rc == 0)
			far_put_blob(&out, &blob);
		break;
	case FAR_CONNECT:
		rc = connect_link(o->link);
		answer(o, rc);
		break;
	case FAR_DISCONNECT:
		f->disconnect(o->link);
		answer(o, 0);
		break;
	case FAR_RESERVE:
		rc = reserve(o);
		answer(o, rc);
		break;
	case FAR_POST:
		rc = post(o);
		answer(o, rc);
		break;
	case FAR_POLL: poll_link(o); break;
	case FAR_RELEASE:
		release(o);
		answer(o, 0);
		break;
	default: CHECK(false, "an unknown call, %d", (int)call);
	}
}

static void serve(void)
{
	enum far_call call = (enum far_call)parcel_get(&in);
	uint64_t name = parcel_get(&in);

	switch (call) {
	case FAR_HELD:
		parcel_put(&out, (uint64_t)actor_descriptors());
		parcel_put(&out, (uint64_t)actor_mappings());
		break;
	case FAR_OPEN: open_domain(name); break;
	case FAR_CLOSE: close_domain(find(name)->domain); break;
	case FAR_ARM: {
		struct fabric_domain *domain = find(name)->domain;

		domain->fabric->arm(domain, parcel_get(&in));
		break;
	}
	case FAR_LINK: make_link(name); break;
	default: serve_link(call, find(name));
	}
}

int main(int argc, char **argv)
{
	int socket = argc == 2 ? atoi(argv[1]) : -1;

	CHECK(socket > 2, "usage: far_end SOCKET");
	while (parcel_receive(socket, &in)) {
		parcel_clear(&out);
		serve();
		parcel_send(socket, &out);
	}
	return 0;
}
