/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of accelerators as written: "pci:", "mac:", "ip:", "id:" (slmpm_address(3)). */
#ifndef SLMPM_BASE_ADDRESS_H
#define SLMPM_BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_TEXT 96

enum address_kind { ADDRESS_PCI, ADDRESS_MAC, ADDRESS_IP, ADDRESS_ID, ADDRESS_KINDS };

struct address {
	enum address_kind kind;
	uint32_t element;        /* the one of several that have it; 0: any */
	char text[ADDRESS_TEXT]; /* in the one form that each address has, without the element */
};

/* False: it is none. */
bool address_parse(struct address *address, const char *text);
/* The N-th, from 0, of a list of PCI addresses with commas, in its one form; false: none. */
bool address_in_list(const char *list, uint32_t n, char text[ADDRESS_TEXT]);
/* Where the first begins that is none, up to its comma; NULL: all are. */
const char *address_list_fault(const char *list);

/* "mac:..." of the interface that has IP, "192.0.2.1" or "2001:db8::1": one of this machine, or a
 * neighbour's as far as this machine knows it. False: not known. */
bool address_mac_of(const char *ip, char text[ADDRESS_TEXT]);

#endif
