/* SPDX-License-Identifier: BSD-3-Clause */
/* What SLMPM_LINKS may say, and the addresses of this machine that it finds. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/base/routes.h"

static struct routes read_good(const char *text)
{
	struct routes routes;
	char why[80];

	assert_true(routes_read(text, &routes, why, sizeof(why)));
	return routes;
}

static void bad(const char *text, const char *reason)
{
	struct routes routes;
	char why[80];

	assert_false(routes_read(text, &routes, why, sizeof(why)));
	if (!strstr(why, reason))
		fail_msg("%s: \"%s\", not \"%s\"", text, why, reason);
}

static void numbers(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= ROUTES_MAX; n++) {
		char text[2] = {(char)('0' + n), 0};
		struct routes routes = read_good(text);

		assert_int_equal(routes.count, n);
		for (uint32_t i = 0; i < n; i++) {
			assert_string_equal(routes.route[i].fabric, "");
			assert_false(route_has_place(&routes.route[i]));
		}
	}
	bad("0", "a number from 1 to 4");
	bad("5", "a number from 1 to 4");
	bad("-1", "no interface or address -1");
	bad("99999999999999999999", "a number from 1 to 4");
}

static void lists(void **state)
{
	struct routes routes = read_good("shm,tcp,tcp@10.1.0.0/16,::1");

	(void)state;
	assert_int_equal(routes.count, 4);
	assert_string_equal(routes.route[0].fabric, "shm");
	assert_false(route_has_place(&routes.route[0]));
	assert_string_equal(routes.route[1].fabric, "tcp");
	assert_false(route_has_place(&routes.route[1]));
	assert_int_equal(routes.route[2].family, AF_INET);
	assert_int_equal(routes.route[2].bits, 16);
	assert_int_equal(routes.route[2].address[0], 10);
	assert_string_equal(routes.route[3].fabric, "tcp");
	assert_int_equal(routes.route[3].family, AF_INET6);
	assert_int_equal(routes.route[3].bits, 128);
	routes = read_good("lo");
	assert_int_equal(routes.count, 1);
	assert_string_equal(routes.route[0].interface, "lo");
	assert_string_equal(routes.route[0].fabric, "tcp");
	routes = read_good("tcp@0.0.0.0/0");
	assert_int_equal(routes.route[0].bits, 0);
	assert_true(route_has_place(&routes.route[0]));
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	bad("", "of no name");
	bad("tcp,,tcp", "of no name");
	bad("tcp@", "of no name");
	bad("@lo", "no fabric of no name");
	bad("ib@lo", "no fabric ib");
	bad("shm@lo", "links over shm have no addresses");
	bad("no_such_dev", "no_such_dev");
	bad("tcp@10.0.0.300", "10.0.0.300");
	bad("tcp@10.0.0.0/33", "10.0.0.0/33");
	bad("tcp@10.0.0.0/", "10.0.0.0/");
	bad("tcp@10.0.0.0/8x", "10.0.0.0/8x");
	bad("tcp@::/129", "::/129");
	bad("tcp,tcp,tcp,tcp,tcp", "as many routes");
	bad("tcp@a_name_that_is_longer_than_any_interface", "a_name_that_is_longer");
}

static void here_is_found(void **state)
{
	struct sockaddr_storage found;
	struct sockaddr_in here = {.sin_family = AF_INET};
	struct routes routes = read_good("127.0.0.0/8,lo,127.0.0.1,198.51.100.0/24");

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(route_address(&routes.route[i], AF_INET, &found), 0);
		assert_int_equal(found.ss_family, AF_INET);
		assert_int_equal(((struct sockaddr_in *)&found)->sin_addr.s_addr,
				 htonl(INADDR_LOOPBACK));
		assert_true(route_holds(&routes.route[i], (struct sockaddr *)&found));
	}
	assert_int_equal(route_address(&routes.route[0], AF_INET6, &found), -EADDRNOTAVAIL);
	assert_int_equal(route_address(&routes.route[3], 0, &found), -EADDRNOTAVAIL);
	here.sin_addr.s_addr = htonl(0xc6336401);
	assert_false(
		route_holds(&routes.route[3], (struct sockaddr *)&here)); /* not of this machine */
	assert_false(route_holds(&routes.route[0], (struct sockaddr *)&here));
	routes = read_good("tcp");
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_false(
		route_holds(&routes.route[0], (struct sockaddr *)&here)); /* says nothing of it */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(lists),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(here_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
