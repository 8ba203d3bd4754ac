/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading addresses; each has one form by which it is compared (address.h). */
#include "slmpm/base/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/routes.h"

static bool has_end(const char *from, int n)
{
	return n > 0 && !from[n];
}

/* [domain:]bus:device.function */
static bool read_pci(const char *from, char out[ADDRESS_TEXT])
{
	unsigned domain = 0, bus, device, function;
	int n = 0;

	if (strspn(from, "0123456789abcdefABCDEF:.") != strlen(from))
		return false;
	if (sscanf(from, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) != 4 ||
	    !has_end(from, n)) {
		domain = 0;
		n = 0;
		if (sscanf(from, "%2x:%2x.%1x%n", &bus, &device, &function, &n) != 3)
			return false;
	}
	if (!has_end(from, n) || device > 31 || function > 7)
		return false;
	snprintf(out, ADDRESS_TEXT, "pci:%04x:%02x:%02x.%x", domain, bus, device, function);
	return true;
}

static bool read_mac(const char *from, char out[ADDRESS_TEXT])
{
	size_t at = 0;

	if (strlen(from) != 17)
		return false;
	memcpy(out, "mac:", 4);
	for (char *to = out + 4; at < 17; at++, to++) {
		bool between = at % 3 == 2;

		if (between ? from[at] != from[2] : !isxdigit((unsigned char)from[at]))
			return false;
		*to = between ? ':' : (char)tolower((unsigned char)from[at]);
	}
	out[4 + 17] = 0;
	return from[2] == ':' || from[2] == '-';
}

static bool read_ip(const char *from, char out[ADDRESS_TEXT])
{
	int family = strchr(from, ':') ? AF_INET6 : AF_INET;
	char host[INET6_ADDRSTRLEN + 2];
	unsigned char address[16];
	size_t n = strlen(from);

	if (n > 2 && n < sizeof(host) && from[0] == '[' && from[n - 1] == ']') {
		memcpy(host, from + 1, n - 2);
		host[n - 2] = 0;
		from = host;
	}
	if (inet_pton(family, from, address) != 1)
		return false;
	memcpy(out, "ip:", 3);
	return inet_ntop(family, address, out + 3, ADDRESS_TEXT - 3);
}

/* HOST/ELEMENT, HOST:PID */
static bool read_id(const char *from, char out[ADDRESS_TEXT])
{
	size_t n = strlen(from), digits = 0;

	while (digits < n && isdigit((unsigned char)from[n - 1 - digits]))
		digits++;
	if (!digits || digits + 2 > n || n > ADDRESS_TEXT - 4 ||
	    !strchr("/:", from[n - 1 - digits]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)from[i]))
			return false;
	snprintf(out, ADDRESS_TEXT, "id:%s", from);
	return true;
}

/* Behind the last slash; TEXT ends there then. */
static bool take_element(char *text, uint32_t *element)
{
	char *slash = strrchr(text, '/'), *end;
	unsigned long n;

	*element = 0;
	if (!slash)
		return true;
	*slash = 0;
	n = strtoul(slash + 1, &end, 10);
	*element = (uint32_t)n;
	return isdigit((unsigned char)slash[1]) && !*end && n && n <= UINT32_MAX;
}

bool address_parse(struct address *a, const char *text)
{
	static bool (*const readers[ADDRESS_KINDS])(const char *, char *) = {read_pci, read_mac,
									     read_ip, read_id};
	static const char *const kinds[ADDRESS_KINDS] = {"pci:", "mac:", "ip:", "id:"};
	char rest[ADDRESS_TEXT];

	for (int k = 0; text && k < ADDRESS_KINDS; k++) {
		size_t n = strlen(kinds[k]);

		if (strncmp(text, kinds[k], n) != 0 || strlen(text + n) >= sizeof(rest))
			continue;
		strcpy(rest, text + n);
		a->kind = (enum address_kind)k;
		a->element = 0;
		return (k == ADDRESS_ID || take_element(rest, &a->element)) &&
		       readers[k](rest, a->text);
	}
	return false;
}

bool address_in_list(const char *list, uint32_t n, char text[ADDRESS_TEXT])
{
	char one[ADDRESS_TEXT];

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t length = strcspn(at, ",");

		if (n--)
			continue;
		if (length >= sizeof(one))
			return false;
		memcpy(one, at, length);
		one[length] = 0;
		return read_pci(one, text);
	}
	return false;
}

const char *address_list_fault(const char *list)
{
	const char *at = list;
	char text[ADDRESS_TEXT];

	for (uint32_t i = 0; *list; i++) {
		if (!address_in_list(list, i, text))
			return at;
		at += strcspn(at, ",");
		if (!*at++)
			break;
	}
	return NULL;
}

/* ---- which interface an IP address is on: of this machine, or of a neighbour ---------------- */

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

	return sa && (sa->sa_family == AF_INET || sa->sa_family == AF_INET6) &&
	       inet_ntop(sa->sa_family, route_bytes(sa), text, sizeof(text)) && !strcmp(text, ip);
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
