/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte swapping: each width, remainders, odd addresses, and that twice is nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/dacs/dacs_message.h"

static void swaps_each_width(void **state)
{
	static const unsigned char half[8] = {1, 0, 3, 2, 5, 4, 7, 6};
	static const unsigned char word[8] = {3, 2, 1, 0, 7, 6, 5, 4};
	static const unsigned char twice[8] = {7, 6, 5, 4, 3, 2, 1, 0};
	unsigned char data[8] = {0, 1, 2, 3, 4, 5, 6, 7};

	(void)state;
	dacsi_swap(data, 8, DACS_BYTE_SWAP_HALF_WORD);
	assert_memory_equal(data, half, 8);
	dacsi_swap(data, 8, DACS_BYTE_SWAP_HALF_WORD);
	dacsi_swap(data, 8, DACS_BYTE_SWAP_WORD);
	assert_memory_equal(data, word, 8);
	dacsi_swap(data, 8, DACS_BYTE_SWAP_WORD);
	dacsi_swap(data, 8, DACS_BYTE_SWAP_DOUBLE_WORD);
	assert_memory_equal(data, twice, 8);
}

static void leaves_bytes_alone_when_disabled(void **state)
{
	unsigned char data[4] = {1, 2, 3, 4}, same[4] = {1, 2, 3, 4};

	(void)state;
	dacsi_swap(data, sizeof(data), DACS_BYTE_SWAP_DISABLE);
	assert_memory_equal(data, same, sizeof(data));
}

static void leaves_a_remainder_alone(void **state)
{
	unsigned char data[7] = {1, 2, 3, 4, 5, 6, 7};
	static const unsigned char want[7] = {4, 3, 2, 1, 5, 6, 7};

	(void)state;
	dacsi_swap(data, sizeof(data), DACS_BYTE_SWAP_WORD);
	assert_memory_equal(data, want, sizeof(data));
	dacsi_swap(data, 1, DACS_BYTE_SWAP_HALF_WORD);
	assert_memory_equal(data, want, sizeof(data));
}

static void is_its_own_inverse_at_any_address_and_length(void **state)
{
	unsigned char data[96], before[96];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		before[i] = (unsigned char)(i * 37 + 11);
	for (size_t at = 0; at < 9; at++)
		for (size_t len = 0; len + at < sizeof(data); len++)
			for (int swap = 1; swap <= 3; swap++) {
				memcpy(data, before, sizeof(data));
				dacsi_swap(data + at, len, (DACS_BYTE_SWAP_T)swap);
				if (len >= 8)
					assert_memory_not_equal(data + at, before + at, len);
				dacsi_swap(data + at, len, (DACS_BYTE_SWAP_T)swap);
				assert_memory_equal(data, before, sizeof(data));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swaps_each_width),
		cmocka_unit_test(leaves_bytes_alone_when_disabled),
		cmocka_unit_test(leaves_a_remainder_alone),
		cmocka_unit_test(is_its_own_inverse_at_any_address_and_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
