/* SPDX-License-Identifier: BSD-3-Clause */
/* Which interface an IP address is on: of this machine, or of a neighbour (address.h). */
#include "slmpm/base/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>

/* Loopback has none, and some tunnels have longer ones. */
static bool name_mac(const unsigned char *b, unsigned length, char text[ADDRESS_TEXT])
{
	static const unsigned char none[6];

	if (length != 6 || !memcmp(b, none, 6))
		return false;
	snprintf(text, ADDRESS_TEXT, "mac:%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3],
		 b[4], b[5]);
	return true;
}

static bool is_address(const struct sockaddr *sa, const char *ip)
{
	char text[INET6_ADDRSTRLEN];
	const void *raw;

	if (!sa || (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
		return false;
	raw = sa->sa_family == AF_INET ?
		      (const void *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr :
		      (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	return inet_ntop(sa->sa_family, raw, text, sizeof(text)) && !strcmp(text, ip);
}

/* *OWN: it is of this machine. */
static bool of_this_machine(const char *ip, char text[ADDRESS_TEXT], bool *own)
{
	struct ifaddrs *all = NULL;
	const char *name = NULL;
	bool found = false;

	*own = false;
	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *i = all; i && !name; i = i->ifa_next)
		if (is_address(i->ifa_addr, ip))
			name = i->ifa_name;
	*own = name;
	for (const struct ifaddrs *i = all; i && name && !found; i = i->ifa_next) {
		const struct sockaddr_ll *link = (const struct sockaddr_ll *)(void *)i->ifa_addr;

		found = i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET &&
			!strcmp(i->ifa_name, name) &&
			name_mac(link->sll_addr, link->sll_halen, text);
	}
	freeifaddrs(all);
	return found;
}

/* The kernel's table of neighbours has IPv4 alone. */
static bool of_neighbour(const char *ip, char text[ADDRESS_TEXT])
{
	FILE *table = fopen("/proc/net/arp", "re");
	char line[256], address[64], mac[64];
	struct address a;
	unsigned flags;
	bool found = false;

	while (table && !found && fgets(line, sizeof(line), table)) {
		if (sscanf(line, "%63s %*s %x %59s", address, &flags, mac + 4) != 3 ||
		    !(flags & 2) || strcmp(address, ip) != 0)
			continue;
		memcpy(mac, "mac:", 4);
		found = address_parse(&a, mac);
		if (found)
			memcpy(text, a.text, ADDRESS_TEXT);
	}
	if (table)
		fclose(table);
	return found;
}

bool address_mac_of(const char *ip, char text[ADDRESS_TEXT])
{
	bool own;

	return of_this_machine(ip, text, &own) || (!own && of_neighbour(ip, text));
}
