/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading addresses; each has one form by which it is compared (address.h). */
#include "slmpm/base/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
