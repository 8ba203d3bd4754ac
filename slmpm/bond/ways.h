/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways: over which fabric, and where this end lies, each link of a pair goes, as SLMPM_LINKS says. */
#ifndef SLMPM_WAYS_H
#define SLMPM_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define WAYS_MAX 4

struct way {
	char fabric[16];    /* empty: that of the pair's first link */
	char interface[16]; /* this end is an address of it; empty: of any */
	int family; /* AF_INET, AF_INET6: it begins with so many bits of `address`; 0: any */
	uint32_t bits;
	unsigned char address[16];
};

struct ways {
	uint32_t count;
	struct way way[WAYS_MAX];
};

/* A number of links, or so many of FABRIC, FABRIC@PLACE and PLACE with commas between, PLACE being an
 * address, ADDRESS/BITS or an interface. False, and WHY says what is wrong. */
bool ways_read(const char *text, struct ways *ways, char *why, size_t size);
/* Does the way say where this end lies? */
bool way_has_place(const struct way *w);
/* Is that there? */
bool way_holds(const struct way *w, const struct sockaddr *here);
/* An address of this machine, of FAMILY (0: any), that the way allows: 0 or -EADDRNOTAVAIL. */
int way_address(const struct way *w, int family, struct sockaddr_storage *here);

#endif
