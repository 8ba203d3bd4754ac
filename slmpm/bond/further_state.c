/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be told of the links of an endpoint without changing any (further_state.h). */
#include "slmpm/bond/further_state.h"

static bool has_stream(const struct fabric_link *port)
{
	return port && port->domain->fd >= 0;
}

uint32_t further_links(const struct endpoint *ep)
{
	return ep->further ? ep->further->links : 1;
}

const char *further_fabric(const struct endpoint *ep, uint32_t link)
{
	const char *fabric = ep->further ? ep->further->link[link].fabric : ep->link.fabric->name;

	return fabric ? fabric : "";
}

int further_wanted(const struct endpoint *ep)
{
	return ep->further ? ep->further->wanted : -1;
}

int further_default(const struct endpoint *ep, const char *fabric)
{
	const struct further *f = ep->further;

	for (uint32_t i = 0; f && i < f->links; i++)
		if (further_is_over(f, i, fabric) && bond_state(ep->link.port, i) == PATH_UP)
			return (int)i;
	return -1;
}

bool further_is_elsewhere(const struct endpoint *ep, const char *fabric)
{
	const struct fabric_domain *memory = further_memory(ep);

	return ep->further && strcmp(fabric, "auto") != 0 &&
	       (!memory || strcmp(fabric, memory->fabric->name) != 0);
}

bool further_speaks(const struct endpoint *ep)
{
	if (!ep->further)
		return has_stream(ep->link.port);
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		enum bond_state state = bond_state(ep->link.port, i);

		if ((state == PATH_UP || state == PATH_SHUT) &&
		    has_stream(bond_port(ep->link.port, i)))
			return true;
	}
	return false;
}

bool further_stays(const struct endpoint *ep)
{
	return ep->further && further_speaks(ep);
}

struct fabric_domain *further_memory(const struct endpoint *ep)
{
	return ep->further ? bond_memory(ep->link.port) : ep->link.port->domain;
}
