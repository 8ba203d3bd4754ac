/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes, SLMPM_LINKS: each link's fabric, and where this end of it lies. */
#ifndef SLMPM_BASE_ROUTES_H
#define SLMPM_BASE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ROUTES_MAX 4

struct route {
	char fabric[16];    /* empty: that of the pair's first link */
	char interface[16]; /* this end is an address of it; empty: of any */
	int family; /* AF_INET, AF_INET6: it begins with so many bits of `address`; 0: any */
	uint32_t bits;
	unsigned char address[16];
};

struct routes {
	uint32_t count;
	struct route route[ROUTES_MAX];
};

/* A number of links, or so many of FABRIC, FABRIC@PLACE and PLACE with commas between, PLACE being
 * an address, ADDRESS/BITS or an interface. False, and WHY says what is wrong. */
bool routes_read(const char *text, struct routes *routes, char *why, size_t size);
/* Does the route say where this end lies? */
bool route_has_place(const struct route *r);
/* The bytes of an address: 4 of IPv4, else 16. */
unsigned char *route_bytes(const struct sockaddr *sa);
/* Is that there? */
bool route_holds(const struct route *r, const struct sockaddr *here);
/* An address of this machine, of FAMILY (0: any), that the route allows: 0 or -EADDRNOTAVAIL. */
int route_address(const struct route *r, int family, struct sockaddr_storage *here);

#endif
