/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of machines to their addresses, within a deadline. */
#ifndef SLMPM_NET_LOOKUP_H
#define SLMPM_NET_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

/* Addresses of TCP for HOST, empty: every one of this machine to LISTEN at, else this machine's own;
 * to be freed with freeaddrinfo. 0, or an EAI_* code: EAI_AGAIN with *LATE when the deadline came. */
int lookup(const char *host, const char *port, bool listening, uint64_t deadline,
	   struct addrinfo **out, bool *late);

#endif
