/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A domain or link is a bond's, with what belongs to its paths behind it. The rounds of the second
 * link follow those of the first, under numbers that go on.
 */
#include "tests/lib/bonded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/bond/bond.h"
#include "tests/lib/test.h"

#define KINDS 4
#define LOG   (UINT64_C(1) << 16) /* short: it is full now and then */

struct domain_tail {
	struct fabric_domain *domain; /* of the paths */
};

struct link_tail {
	int path;                 /* that is being connected */
	struct fabric_link *port; /* of it; NULL: not begun, or all are */
	int before;               /* rounds that those before it took */
};

static struct domain_tail *tail_of(const struct fabric_domain *domain)
{
	return (struct domain_tail *)(void *)((char *)(uintptr_t)domain + bond_fabric.domain_size);
}

static struct link_tail *link_tail(const struct fabric_link *link)
{
	return (struct link_tail *)(void *)((char *)(uintptr_t)link + bond_fabric.link_size);
}

static struct {
	char name[32];
	const struct fabric *fabric; /* of both paths */
	struct fabric table;
} kinds[KINDS];

bool bonded_is(const struct fabric *fabric)
{
	for (int i = 0; i < KINDS; i++)
		if (fabric == &kinds[i].table)
			return true;
	return false;
}

static const struct fabric *paths_of(const struct fabric *table)
{
	int i = 0;

	while (table != &kinds[i].table)
		CHECK(++i < KINDS, "no bond of this program");
	return kinds[i].fabric;
}

/* ---- domains -------------------------------------------------------------------------------- */

static int probe(const struct fabric *fabric, struct fabric_caps *caps)
{
	struct fabric_caps bond;
	int rc = fabric->probe(caps);

	(void)bond_fabric.probe(&bond);
	caps->ops &= bond.ops;
	caps->links_max = bond.links_max;
	return rc;
}

static int open_domain(struct fabric_domain *domain)
{
	const struct fabric *fabric = paths_of(domain->fabric);
	struct fabric_domain *own = calloc(1, fabric->domain_size);
	int rc;

	CHECK(own, "out of memory");
	own->fabric = fabric;
	own->config = domain->config;
	rc = fabric->open(own);
	if (rc == 0)
		rc = bond_fabric.open(domain);
	domain->fd = own->fd;
	tail_of(domain)->domain = own;
	return rc;
}

static void close_domain(struct fabric_domain *domain)
{
	struct fabric_domain *own = tail_of(domain)->domain;

	own->forked = domain->forked;
	bond_fabric.close(domain);
	own->fabric->close(own);
	free(own);
}

static void arm(struct fabric_domain *domain, bool on)
{
	struct fabric_domain *own = tail_of(domain)->domain;

	bond_fabric.arm(domain, on);
	own->fabric->arm(own, on);
}

static int alloc(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct fabric_domain *own = tail_of(domain)->domain;

	return own->fabric->alloc(own, m);
}

static void dereg(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct fabric_domain *own = tail_of(domain)->domain;

	own->fabric->dereg(own, m);
}

/* ---- connecting ----------------------------------------------------------------------------- */

/* The link whose rounds these are. */
static struct fabric_link *port_of(struct fabric_link *link)
{
	struct fabric_domain *own = tail_of(link->domain)->domain;
	struct link_tail *t = link_tail(link);

	own->config = link->domain->config;
	if (t->port || t->path == 2)
		return t->port;
	t->port = calloc(1, own->fabric->link_size);
	CHECK(t->port, "out of memory");
	t->port->domain = own;
	t->port->bell = link->bell;
	t->port->process = link->process;
	t->port->pid = link->pid;
	t->port->active = link->active;
	return t->port;
}

static int address(struct fabric_link *link, int round, struct fabric_blob *out)
{
	struct fabric_link *port = port_of(link);

	return port->domain->fabric->address(port, round - link_tail(link)->before, out);
}

static int join(struct fabric_link *link)
{
	struct link_tail *t = link_tail(link);
	const struct fabric *fabric = t->port->domain->fabric;
	int rc = t->path ? bond_add(link, (uint32_t)t->path, fabric, t->port) :
			   bond_open(link, LOG, fabric, t->port);

	if (rc < 0)
		return rc;
	t->port = NULL;
	t->path++;
	return t->path < 2 ? 1 : 0;
}

static int connect_round(struct fabric_link *link, int round, struct fabric_blob *in)
{
	struct fabric_link *port = port_of(link);
	struct link_tail *t = link_tail(link);
	int rc = port->domain->fabric->connect(port, round - t->before, in);

	if (rc == -EPROTO)
		link->violation = port->violation;
	if (rc != 0)
		return rc;
	t->before = round + 1;
	return join(link);
}

static void disconnect(struct fabric_link *link)
{
	struct link_tail *t = link_tail(link);

	bond_fabric.disconnect(link);
	if (t->port) {
		t->port->domain->fabric->disconnect(t->port);
		free(t->port);
	}
	t->port = NULL;
}

/* ---- the tables ----------------------------------------------------------------------------- */

/* A function of a table does not hear whose table it is. */
#define PROBE(i)                                                                                   \
	static int probe_##i(struct fabric_caps *caps)                                             \
	{                                                                                          \
		return probe(kinds[i].fabric, caps);                                               \
	}

PROBE(0)
PROBE(1)
PROBE(2)
PROBE(3)

static int (*const probes[KINDS])(struct fabric_caps *) = {probe_0, probe_1, probe_2, probe_3};

static void fill(int i, const struct fabric *fabric)
{
	struct fabric *t = &kinds[i].table;

	snprintf(kinds[i].name, sizeof(kinds[i].name), "%s+%s", fabric->name, fabric->name);
	kinds[i].fabric = fabric;
	*t = bond_fabric;
	t->name = kinds[i].name;
	t->domain_size += sizeof(struct domain_tail);
	t->link_size += sizeof(struct link_tail);
	t->probe = probes[i];
	t->open = open_domain;
	t->close = close_domain;
	t->address = address;
	t->connect = connect_round;
	t->disconnect = disconnect;
	t->alloc = fabric->alloc ? alloc : NULL;
	t->reg = fabric->reg ? t->reg : NULL;
	t->dereg = fabric->reg ? dereg : NULL;
	t->arm = arm;
}

const struct fabric *bonded_at(int i)
{
	const struct fabric *fabric = i >= 0 && i < KINDS ? fabric_at(i) : NULL;

	if (!fabric)
		return NULL;
	if (!kinds[i].fabric)
		fill(i, fabric);
	return &kinds[i].table;
}
