/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: each in its one form, whatever it was written like; and what is none. */
#include "slmpm/base/address.h"

#include <string.h>

#include "tests/lib/test.h"

static const struct {
	const char *text, *form; /* NULL: it is none */
	uint32_t element;
} addresses[] = {
	{"pci:0000:03:00.0", "pci:0000:03:00.0", 0},
	{"pci:03:00.0", "pci:0000:03:00.0", 0},
	{"pci:10000:E1:1f.7", "pci:10000:e1:1f.7", 0},
	{"pci:03:00.0/2", "pci:0000:03:00.0", 2},
	{"pci:03:20.0", NULL, 0},
	{"pci:03:00.8", NULL, 0},
	{"pci:03:00", NULL, 0},
	{"pci:03:00.0x", NULL, 0},
	{"pci:", NULL, 0},
	{"mac:02:00:5E:10:00:ff", "mac:02:00:5e:10:00:ff", 0},
	{"mac:02-00-5e-10-00-ff", "mac:02:00:5e:10:00:ff", 0},
	{"mac:02:00:5e:10:00:ff/17", "mac:02:00:5e:10:00:ff", 17},
	{"mac:02:00:5e:10:00", NULL, 0},
	{"mac:02:00:5e:10:00:fff", NULL, 0},
	{"mac:02:00:5e:10:00:gg", NULL, 0},
	{"mac:-1:-1:-1:-1:-1:-1", NULL, 0},
	{"mac:02:00-5e:10:00:ff", NULL, 0},
	{"ip:192.0.2.1", "ip:192.0.2.1", 0},
	{"ip:192.0.2.1/3", "ip:192.0.2.1", 3},
	{"ip:2001:DB8:0::1", "ip:2001:db8::1", 0},
	{"ip:[2001:db8::1]", "ip:2001:db8::1", 0},
	{"ip:192.0.2.256", NULL, 0},
	{"ip:192.0.2.1/0", NULL, 0},
	{"ip:192.0.2.1/", NULL, 0},
	{"ip:192.0.2.1/x", NULL, 0},
	{"ip:192.0.2.1/4294967296", NULL, 0},
	{"ip:example.org", NULL, 0},
	{"id:rack1/3", "id:rack1/3", 0},
	{"id:rack1:4711", "id:rack1:4711", 0},
	{"id:rack1", NULL, 0},
	{"id:/3", NULL, 0},
	{"id:rack 1/3", NULL, 0},
	{"usb:1", NULL, 0},
	{"", NULL, 0},
	{NULL, NULL, 0},
};

static void look_at_each(void)
{
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		const char *text = addresses[i].text, *form = addresses[i].form;
		struct address a, again;
		bool good = address_parse(&a, text);

		CHECK(good == (form != NULL), "\"%s\": %s", text, good ? "taken" : "refused");
		if (!good)
			continue;
		CHECK(!strcmp(a.text, form) && a.element == addresses[i].element,
		      "\"%s\" is %s, element %u", text, a.text, a.element);
		CHECK(address_parse(&again, a.text) && !strcmp(again.text, a.text) &&
			      again.kind == a.kind,
		      "%s is not its own form", a.text);
	}
}

static void look_at_long_ones(void)
{
	char text[4096];
	struct address a;

	memset(text, '1', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (size_t n = ADDRESS_TEXT - 8; n < sizeof(text); n = n < 200 ? n + 1 : n * 2) {
		memcpy(text, "id:h/", 5);
		text[n] = 0;
		CHECK(address_parse(&a, text) == (n < ADDRESS_TEXT), "%zu characters", n);
		text[n] = '1';
	}
}

static void expect_fault(const char *list, int at)
{
	const char *fault = address_list_fault(list);

	CHECK(fault == list + at, "\"%s\": \"%s\"", list, fault ? fault : "sound");
}

static void look_at_lists(void)
{
	const char *list = "03:00.0,0000:04:00.0,5:0.1";
	char text[ADDRESS_TEXT];

	CHECK(address_in_list(list, 0, text) && !strcmp(text, "pci:0000:03:00.0"), "the first");
	CHECK(address_in_list(list, 2, text) && !strcmp(text, "pci:0000:05:00.1"), "the last");
	CHECK(!address_in_list(list, 3, text) && !address_in_list("", 0, text), "one more");
	CHECK(!address_list_fault(list) && !address_list_fault(""), "a sound list");
	expect_fault("03:00.0,", 8);
	expect_fault(",03:00.0", 0);
	expect_fault("03:00.0,x", 8);
	expect_fault("03:00.0,,04:00.0", 8);
	expect_fault("03:00.0,04:00.0,3.0,y", 16);
	expect_fault(" 03:00.0", 0);
	expect_fault(",", 0);
}

/* Loopback has none; what is nobody's neither. */
static void look_at_interfaces(void)
{
	char text[ADDRESS_TEXT];

	CHECK(!address_mac_of("127.0.0.1", text), "loopback: %s", text);
	CHECK(!address_mac_of("192.0.2.77", text), "an example's: %s", text);
	CHECK(!address_mac_of("nobody", text), "none");
}

int main(void)
{
	look_at_each();
	look_at_long_ones();
	look_at_lists();
	look_at_interfaces();
	return 0;
}
