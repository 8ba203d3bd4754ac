/* SPDX-License-Identifier: BSD-3-Clause */
/* SLMPM_LINKS, and the addresses of this machine that it speaks of. */
#include "slmpm/base/routes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"

#define OF_NETWORKS "tcp" /* the fabric whose ends are addresses */

/* ---- the setting ---------------------------------------------------------------------------- */

static bool read_address(const char *text, struct route *r)
{
	char host[INET6_ADDRSTRLEN], *end;
	size_t n = strcspn(text, "/");
	unsigned long bits;

	if (n >= sizeof(host))
		return false;
	memcpy(host, text, n);
	host[n] = 0;
	r->family = inet_pton(AF_INET, host, r->address) == 1  ? AF_INET :
		    inet_pton(AF_INET6, host, r->address) == 1 ? AF_INET6 :
								 0;
	if (!r->family)
		return false;
	r->bits = r->family == AF_INET ? 32 : 128;
	if (!text[n])
		return true;
	bits = strtoul(text + n + 1, &end, 10);
	if (text[n + 1] < '0' || text[n + 1] > '9' || *end || bits > r->bits)
		return false;
	r->bits = (uint32_t)bits;
	return true;
}

static bool read_place(const char *text, struct route *r, char *why, size_t size)
{
	if (read_address(text, r))
		return true;
	r->family = 0;
	if (*text && strlen(text) < sizeof(r->interface) && if_nametoindex(text)) {
		snprintf(r->interface, sizeof(r->interface), "%s", text);
		return true;
	}
	snprintf(why, size, "there is no interface or address %.40s", *text ? text : "of no name");
	return false;
}

static bool read_route(char *text, struct route *r, char *why, size_t size)
{
	char *place = strchr(text, '@');

	memset(r, 0, sizeof(*r));
	if (!place && !fabric_find(text)) {
		snprintf(r->fabric, sizeof(r->fabric), "%s", OF_NETWORKS);
		return read_place(text, r, why, size);
	}
	if (place)
		*place++ = 0;
	if (!fabric_find(text)) {
		snprintf(why, size, "there is no fabric %.40s", *text ? text : "of no name");
		return false;
	}
	snprintf(r->fabric, sizeof(r->fabric), "%s", text);
	if (place && strcmp(text, OF_NETWORKS) != 0) {
		snprintf(why, size, "links over %.40s have no addresses", text);
		return false;
	}
	return !place || read_place(place, r, why, size);
}

bool routes_read(const char *text, struct routes *routes, char *why, size_t size)
{
	char copy[256], *rest = copy, *one, *end;
	unsigned long number = strtoul(text, &end, 10);

	memset(routes, 0, sizeof(*routes));
	snprintf(why, size, "a number from 1 to %d, or as many routes", ROUTES_MAX);
	if (*text >= '0' && *text <= '9' && !*end) {
		routes->count = number <= ROUTES_MAX ? (uint32_t)number : 0;
		return routes->count > 0;
	}
	if (strlen(text) >= sizeof(copy))
		return false;
	snprintf(copy, sizeof(copy), "%s", text);
	while ((one = strsep(&rest, ","))) {
		if (routes->count == ROUTES_MAX)
			return false;
		if (!read_route(one, &routes->route[routes->count++], why, size))
			return false;
	}
	return true;
}

/* ---- addresses ------------------------------------------------------------------------------ */

bool route_has_place(const struct route *r)
{
	return r->family || r->interface[0];
}

unsigned char *route_bytes(const struct sockaddr *sa)
{
	return (unsigned char *)(uintptr_t)sa + (sa->sa_family == AF_INET ?
							 offsetof(struct sockaddr_in, sin_addr) :
							 offsetof(struct sockaddr_in6, sin6_addr));
}

static bool begins_alike(const unsigned char *a, const unsigned char *b, uint32_t bits)
{
	return !memcmp(a, b, bits / 8) &&
	       (bits % 8 == 0 || !((a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8)));
}

static bool fits(const struct route *r, const char *interface, const struct sockaddr *sa)
{
	if (r->interface[0])
		return !strcmp(r->interface, interface);
	return r->family == sa->sa_family && begins_alike(r->address, route_bytes(sa), r->bits);
}

/* Addresses of a single link are only good with its name, which the peer does not know. */
static bool is_wide(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET ||
	       (sa->sa_family == AF_INET6 &&
		!IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)sa)->sin6_addr));
}

/* The first that the route allows, of FAMILY, or equal to HERE. */
static int routes_find(const struct route *r, int family, const struct sockaddr *here,
		       struct sockaddr_storage *found)
{
	struct ifaddrs *all, *a;

	if (getifaddrs(&all) != 0)
		return -errno;
	for (a = all; a; a = a->ifa_next) {
		const struct sockaddr *sa = a->ifa_addr;

		if (!sa || !is_wide(sa) || (family && sa->sa_family != family) ||
		    !fits(r, a->ifa_name, sa))
			continue;
		if (here &&
		    memcmp(route_bytes(sa), route_bytes(here), family == AF_INET ? 4 : 16) != 0)
			continue;
		memset(found, 0, sizeof(*found));
		memcpy(found, sa,
		       sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						  sizeof(struct sockaddr_in6));
		break;
	}
	freeifaddrs(all);
	return a ? 0 : -EADDRNOTAVAIL;
}

bool route_holds(const struct route *r, const struct sockaddr *here)
{
	struct sockaddr_storage found;

	if (here->sa_family != AF_INET && here->sa_family != AF_INET6)
		return false;
	return route_has_place(r) && routes_find(r, here->sa_family, here, &found) == 0;
}

int route_address(const struct route *r, int family, struct sockaddr_storage *here)
{
	return routes_find(r, family, NULL, here);
}
