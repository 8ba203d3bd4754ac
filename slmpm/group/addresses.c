/* SPDX-License-Identifier: BSD-3-Clause */
/* A group without boards forms: where its members listen, and what each pair of them proves. */
#include "slmpm/group/formation.h"

#include <stdio.h>
#include <string.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"
#include "slmpm/net/net.h"

/* Does it connect from this machine? */
static bool joiner_is_here(const struct joiner *s)
{
	return !s->ep || bootstrap_is_here(s->ep);
}

static bool all_are_here(const struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (!joiner_is_here(&g->formation->joiners[r]))
			return false;
	return true;
}

/* For those of this machine; elsewhere a member knows by which address it has come. */
static const char *host_here(const struct group *g)
{
	return all_are_here(g) ? "127.0.0.1" : "*";
}

static bool all_form_local(const struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (r != g->boards.rank && !bootstrap_forms_local(g->formation->joiners[r].ep))
			return false;
	return true;
}

int addresses_begin(struct group *g)
{
	struct formation *f = g->formation;
	uint32_t self = g->boards.rank;
	int rc;

	g->meets_local = all_form_local(g);
	if (secret_make(&f->master) < 0)
		return error_set(SLMPM_ESYSTEM, "no random numbers");
	if (self == BOARD_NONE)
		return 0;
	rc = distant_listen(g, host_here(g));
	f->joiners[self].port = rc < 0 ? 0 : distant_port(g);
	f->joiners[self].machine = net_machine();
	return rc;
}

void formation_host(const struct joining *j, char *host, size_t size)
{
	bool here = joiner_is_here(&j->group->formation->joiners[j->rank]);

	snprintf(host, size, "%s", here ? host_here(j->group) : "");
}

static void key_of(const struct formation *f, uint32_t a, uint32_t b, unsigned char *key)
{
	uint32_t both[] = {a < b ? a : b, a < b ? b : a};

	siphash(f->master.bytes, both, sizeof(both), key);
}

/* Of S as TO sees it (NULL: this process); from another machine those of this one are where it
 * finds this process. */
static void joiner_address(const struct joiner *s, const struct endpoint *to, char *url,
			   size_t size)
{
	char host[NET_NAME] = "127.0.0.1";
	bool v6;

	if (!joiner_is_here(s))
		(void)bootstrap_host(s->ep, true, host);
	else if (to && !bootstrap_is_here(to))
		(void)bootstrap_host(to, false, host);
	v6 = strchr(host, ':');
	snprintf(url, size, "tcp://%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", s->port);
}

void formation_address(const struct joining *j, uint32_t rank, struct wire_group *packet)
{
	const struct formation *f = j->group->formation;

	joiner_address(&f->joiners[rank], j->ep, packet->url, sizeof(packet->url));
	key_of(f, rank, j->rank, packet->key);
	packet->pid = (int32_t)LITTLE_32((uint32_t)j->group->boards.processes[rank]);
	packet->machine = LITTLE_32(f->joiners[rank].machine);
	bootstrap_mask(j->ep, false, j->number, rank, packet->key);
}

int addresses_known(struct group *g)
{
	const struct formation *f = g->formation;
	uint32_t self = g->boards.rank;
	int rc = 0;

	for (uint32_t r = 0; self != BOARD_NONE && rc == 0 && r < g->boards.size; r++) {
		char url[sizeof(((struct wire_group *)0)->url)];
		unsigned char key[SECRET_SIZE];

		g->members[r].machine = f->joiners[r].machine;
		if (r == self)
			continue;
		joiner_address(&f->joiners[r], NULL, url, sizeof(url));
		key_of(f, r, self, key);
		rc = distant_put(g, r, url, key);
	}
	return rc;
}
