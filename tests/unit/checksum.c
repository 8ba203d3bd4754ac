/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C: known values, every short length at every alignment against a bit at a time, pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/base/checksum.h"
#include "tests/lib/random.h"

#define MOST   300
#define STARTS 16

/* The definition: polynomial 0x1edc6f41, everything reflected, inverted before and after. */
static uint32_t plainly(uint32_t sum, const unsigned char *at, size_t n)
{
	uint32_t c = ~sum;

	for (size_t i = 0; i < 8 * n; i++) {
		uint32_t bit = (at[i / 8] >> i % 8 & 1) ^ (c & 1);

		c = c >> 1 ^ (bit ? UINT32_C(0x82f63b78) : 0);
	}
	return ~c;
}

static void fill(unsigned char *at, size_t n, uint64_t seed)
{
	struct rng g = {seed};

	for (size_t i = 0; i < n; i++)
		at[i] = (unsigned char)rng_next(&g);
}

/* "123456789", and the 32-byte patterns that RFC 3720 lists for iSCSI. */
static void known_values(void **state)
{
	unsigned char block[32];

	(void)state;
	assert_int_equal(checksum(0, "", 0), 0);
	assert_int_equal(checksum(0, "123456789", 9), 0xe3069283);
	memset(block, 0, sizeof(block));
	assert_int_equal(checksum(0, block, 32), 0x8a9136aa);
	memset(block, 0xff, sizeof(block));
	assert_int_equal(checksum(0, block, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		block[i] = (unsigned char)i;
	assert_int_equal(checksum(0, block, 32), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		block[i] = (unsigned char)(31 - i);
	assert_int_equal(checksum(0, block, 32), 0x113fdb5c);
}

static void every_length_and_alignment(void **state)
{
	_Alignas(64) unsigned char bytes[MOST + STARTS];

	(void)state;
	fill(bytes, sizeof(bytes), 1);
	for (size_t start = 0; start < STARTS; start++)
		for (size_t n = 0; n <= MOST; n++)
			assert_int_equal(checksum(0, bytes + start, n),
					 plainly(0, bytes + start, n));
	for (size_t start = 0; start < STARTS; start++)
		for (size_t n = 0; n <= MOST; n++)
			assert_int_equal(checksum_by_table(7, bytes + start, n),
					 checksum(7, bytes + start, n));
}

static void parts_sum_like_the_whole(void **state)
{
	unsigned char bytes[MOST];
	uint32_t whole;

	(void)state;
	fill(bytes, sizeof(bytes), 2);
	whole = plainly(0, bytes, MOST);
	for (size_t cut = 0; cut <= MOST; cut++)
		assert_int_equal(checksum(checksum(0, bytes, cut), bytes + cut, MOST - cut), whole);
}

/* Each damage of one bit shows, and each pair of neighbours. */
static void damage_shows(void **state)
{
	unsigned char bytes[64];
	uint32_t whole;

	(void)state;
	fill(bytes, sizeof(bytes), 3);
	whole = checksum(0, bytes, sizeof(bytes));
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
		assert_int_not_equal(checksum(0, bytes, sizeof(bytes)), whole);
		bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
	}
	for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
		unsigned char first = bytes[i];

		if (first == bytes[i + 1])
			continue;
		bytes[i] = bytes[i + 1];
		bytes[i + 1] = first;
		assert_int_not_equal(checksum(0, bytes, sizeof(bytes)), whole);
		bytes[i + 1] = bytes[i];
		bytes[i] = first;
	}
	assert_int_equal(checksum(0, bytes, sizeof(bytes)), whole);
}

/* A header is summed as it stands on the wire, whatever this machine's byte order. */
static void a_head_is_little_endian(void **state)
{
	const unsigned char wire[24] = {8,    7,    6,    5,    4,    3,    2,    1,
					0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
					0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};

	(void)state;
	assert_int_equal(checksum_head(UINT64_C(0x0102030405060708), UINT64_C(0x1112131415161718),
				       UINT64_C(0x2122232425262728)),
			 plainly(0, wire, sizeof(wire)));
}

static void it_travels_little_endian(void **state)
{
	unsigned char at[CHECKSUM_SIZE + 3];

	(void)state;
	for (int start = 0; start < 4; start++) {
		checksum_put(at + start, UINT32_C(0x04030201));
		for (int i = 0; i < CHECKSUM_SIZE; i++)
			assert_int_equal(at[start + i], i + 1);
		assert_int_equal(checksum_take(at + start), 0x04030201);
	}
	checksum_put(at, UINT32_MAX);
	assert_int_equal(checksum_take(at), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(every_length_and_alignment),
		cmocka_unit_test(parts_sum_like_the_whole),
		cmocka_unit_test(damage_shows),
		cmocka_unit_test(a_head_is_little_endian),
		cmocka_unit_test(it_travels_little_endian),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
