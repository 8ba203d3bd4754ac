/* SPDX-License-Identifier: BSD-3-Clause */
/* By which rail, one of several links, packets go: as was asked, or as was chosen for them. */
#include "slmpm/choice/rail.h"

#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/bond/bond.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/endpoint.h"

_Static_assert(BOND_PATHS == MODE_LINKS, "each path of a bond can be asked for");

bool rail_is_on(const struct endpoint *ep, int link)
{
	return link < 0 ||
	       (bond_is(ep->link.port) ? bond_path(ep->link.port) == (uint32_t)link : !link);
}

uint16_t rail_flags(const struct endpoint *ep, struct mode mode, uint8_t hint)
{
	bool asked = mode_hint_link(hint) >= 0;
	uint32_t strict = asked ? hint & SLMPM_STRICT >> MODE_HINT_SHIFT : 0;

	if (!bond_is(ep->link.port) || (!asked && mode.link == bond_home(ep->link.port)))
		return 0;
	return mode_packet_flags((uint8_t)(strict | SLMPM_ON_LINK(mode.link) >> MODE_HINT_SHIFT));
}

void rail_follow(struct endpoint *ep, struct mode mode)
{
	if (bond_is(ep->link.port) && mode.way && mode.link != bond_home(ep->link.port))
		(void)bond_use(ep->link.port, mode.link);
}

static bool is_down(const struct endpoint *ep, int link)
{
	return link >= 0 && (uint32_t)link < secondary_links(ep) && bond_is(ep->link.port) &&
	       !(bond_up(ep->link.port) >> link & 1);
}

int rail_refusal(const struct endpoint *ep, uint8_t hint)
{
	return is_down(ep, mode_hint_link(hint)) ? -SLMPM_ESTATE : -SLMPM_ENOTSUP;
}

int rail_refused(const struct endpoint *ep, const char *who, uint8_t hint, int status)
{
	uint32_t link = (uint32_t)mode_hint_link(hint);
	const char *reason;

	if (status == -SLMPM_ESTATE && bond_is(ep->link.port)) {
		reason = bond_reason(ep->link.port, link);
		return error_set(SLMPM_ESTATE, "%slink %u to %s %s%s", who, link, ep->life->name,
				 reason ? "is lost: " : "does not stand", reason ? reason : "");
	}
	if (mode_hint_link(hint) >= 0 && link >= secondary_links(ep))
		return error_set(-status, "%slink %u to %s: it has %u", who, link, ep->life->name,
				 secondary_links(ep));
	return error_set(-status, "%snot by that protocol to %s", who, ep->life->name);
}

int rail_impossible(const struct endpoint *ep, const char *call, uint8_t hint)
{
	char who[48];

	snprintf(who, sizeof(who), "%s: ", call);
	return rail_refused(ep, who, hint, rail_refusal(ep, hint));
}
