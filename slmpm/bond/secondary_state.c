/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the links of an endpoint without changing any (secondary_state.h). */
#include "slmpm/bond/secondary_state.h"

static bool has_stream(const struct fabric_link *port)
{
	return port && port->domain->fd >= 0;
}

uint32_t secondary_links(const struct endpoint *ep)
{
	return ep->rooms->secondary ? ep->rooms->secondary->links : 1;
}

const char *secondary_fabric(const struct endpoint *ep, uint32_t link)
{
	const char *fabric = ep->rooms->secondary ? ep->rooms->secondary->link[link].fabric :
						    ep->link.fabric->name;

	return fabric ? fabric : "";
}

int secondary_wanted(const struct endpoint *ep)
{
	return ep->rooms->secondary ? ep->rooms->secondary->wanted : -1;
}

int secondary_default(const struct endpoint *ep, const char *fabric)
{
	const struct secondary *f = ep->rooms->secondary;

	for (uint32_t i = 0; f && i < f->links; i++)
		if (secondary_is_over(f, i, fabric) && bond_state(ep->link.port, i) == PATH_UP)
			return (int)i;
	return -1;
}

bool secondary_is_elsewhere(const struct endpoint *ep, const char *fabric)
{
	const struct fabric_domain *memory = secondary_memory(ep);

	return ep->rooms->secondary && strcmp(fabric, "auto") != 0 &&
	       (!memory || strcmp(fabric, memory->fabric->name) != 0);
}

bool secondary_speaks(const struct endpoint *ep)
{
	if (!ep->rooms->secondary)
		return has_stream(ep->link.port);
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		enum bond_state state = bond_state(ep->link.port, i);

		if ((state == PATH_UP || state == PATH_SHUT) &&
		    has_stream(bond_port(ep->link.port, i)))
			return true;
	}
	return false;
}

struct fabric_domain *secondary_memory(const struct endpoint *ep)
{
	return ep->rooms->secondary ? bond_memory(ep->link.port) : ep->link.port->domain;
}
