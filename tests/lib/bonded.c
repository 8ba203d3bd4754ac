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

#include "fabrics/registry.h"
#include "slmpm/bond/bond.h"
#include "tests/lib/test.h"

#define KINDS 4
#define LOG   (UINT64_C(1) << 16) /* short: it is full now and then */

#define PATHS 2

struct domain_tail {
	struct fabric_domain
		*domain[PATHS]; /* of each path; one for both, where the fabric is one */
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
	const struct fabric *fabric[PATHS];
	struct fabric table;
} kinds[KINDS];

bool bonded_is(const struct fabric *fabric)
{
	for (int i = 0; i < KINDS; i++)
		if (fabric == &kinds[i].table)
			return true;
	return false;
}

static const struct fabric *const *paths_of(const struct fabric *table)
{
	int i = 0;

	while (table != &kinds[i].table)
		CHECK(++i < KINDS, "no bond of this program");
	return kinds[i].fabric;
}

/* ---- domains -------------------------------------------------------------------------------- */

static int probe(const struct fabric *const *paths, const struct fabric_config *config,
		 struct fabric_caps *caps)
{
	struct fabric_caps bond, other = {.why_not = ""};
	int rc = paths[0]->probe(config, caps), also = paths[1]->probe(config, &other);

	if (rc >= 0 && also < 0) {
		*caps = other;
		rc = also;
	}
	(void)bond_fabric.probe(config, &bond);
	caps->ops &= bond.ops;
	return rc;
}

static struct fabric_domain *open_path(const struct fabric *fabric,
				       const struct fabric_config *config)
{
	struct fabric_domain *own = calloc(1, fabric->domain_size);

	CHECK(own, "out of memory");
	own->fabric = fabric;
	own->config = *config;
	CHECK(fabric->open(own) == 0, "%s: open", fabric->name);
	return own;
}

static int open_domain(struct fabric_domain *domain)
{
	const struct fabric *const *paths = paths_of(domain->fabric);
	struct domain_tail *t = tail_of(domain);
	int rc = bond_fabric.open(domain);

	for (int i = 0; i < PATHS; i++)
		t->domain[i] = i && paths[i] == paths[0] ? t->domain[0] :
							   open_path(paths[i], &domain->config);
	/* One at most has a descriptor; the other rings. */
	domain->fd = t->domain[0]->fd >= 0 ? t->domain[0]->fd : t->domain[1]->fd;
	return rc;
}

static void close_path(struct fabric_domain *own, bool forked)
{
	own->forked = forked;
	own->fabric->close(own);
	free(own);
}

static void close_domain(struct fabric_domain *domain)
{
	struct domain_tail *t = tail_of(domain);

	bond_fabric.close(domain);
	if (t->domain[1] != t->domain[0])
		close_path(t->domain[1], domain->forked);
	close_path(t->domain[0], domain->forked);
}

static void arm(struct fabric_domain *domain, bool on)
{
	struct domain_tail *t = tail_of(domain);

	bond_fabric.arm(domain, on);
	for (int i = 0; i < PATHS; i++)
		if (!i || t->domain[i] != t->domain[0])
			t->domain[i]->fabric->arm(t->domain[i], on);
}

/* Memory is the first path's. */
static int alloc(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct fabric_domain *own = tail_of(domain)->domain[0];

	return own->fabric->alloc(own, m);
}

static void dereg(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct fabric_domain *own = tail_of(domain)->domain[0];

	own->fabric->dereg(own, m);
}

/* ---- connecting ----------------------------------------------------------------------------- */

/* The link whose rounds these are. */
static struct fabric_link *port_of(struct fabric_link *link)
{
	struct link_tail *t = link_tail(link);
	struct fabric_domain *own;

	if (t->port || t->path == PATHS)
		return t->port;
	own = tail_of(link->domain)->domain[t->path];
	own->config = link->domain->config;
	t->port = calloc(1, own->fabric->link_size);
	CHECK(t->port, "out of memory");
	t->port->domain = own;
	t->port->bell = link->bell;
	t->port->process = link->process;
	t->port->pid = link->pid;
	t->port->active = link->active;
	t->port->attach = link->attach;
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
	return t->path < PATHS ? 1 : 0;
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
	static int probe_##i(const struct fabric_config *config, struct fabric_caps *caps)         \
	{                                                                                          \
		return probe(kinds[i].fabric, config, caps);                                       \
	}

PROBE(0)
PROBE(1)
PROBE(2)
PROBE(3)

static int (*const probes[KINDS])(const struct fabric_config *,
				  struct fabric_caps *) = {probe_0, probe_1, probe_2, probe_3};

static void fill(int i, const struct fabric *first, const struct fabric *second)
{
	struct fabric *t = &kinds[i].table;

	snprintf(kinds[i].name, sizeof(kinds[i].name), "%s+%s", first->name, second->name);
	kinds[i].fabric[0] = first;
	kinds[i].fabric[1] = second;
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
	t->alloc = first->alloc ? alloc : NULL;
	t->reg = first->reg ? t->reg : NULL;
	t->dereg = first->reg ? dereg : NULL;
	t->arm = arm;
}

/* The first of the pairs that this program has no place for is the end. */
const struct fabric *bonded_at(int i)
{
	int fabrics = 0;

	while (fabric_at(fabrics))
		fabrics++;
	if (i < 0 || i >= KINDS || i >= fabrics * fabrics)
		return NULL;
	if (!kinds[i].fabric[0])
		fill(i, fabric_at(i / fabrics), fabric_at(i % fabrics));
	return &kinds[i].table;
}
