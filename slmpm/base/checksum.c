/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C by the processor's instruction where it has one, else by tables, eight bytes a step. */
#include "slmpm/base/checksum.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "shm/compiler.h"

#if defined(__aarch64__) && !defined(__AARCH64EB__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78) /* Castagnoli, reflected */

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* C goes on over N bytes at AT; the inversions are the caller's. */
typedef uint32_t checksum_step(uint32_t c, const unsigned char *at, size_t n);
static checksum_step by_table;
static checksum_step *step = by_table; /* chosen once, before the first use */

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int row = 1; row < 8; row++)
			table[row][i] = table[row - 1][i] >> 8 ^ table[0][table[row - 1][i] & 255];
}

static uint32_t by_table(uint32_t c, const unsigned char *at, size_t n)
{
	for (; n >= 8; n -= 8, at += 8)
		c = table[7][(c ^ at[0]) & 255] ^ table[6][(c >> 8 ^ at[1]) & 255] ^
		    table[5][(c >> 16 ^ at[2]) & 255] ^ table[4][(c >> 24 ^ at[3]) & 255] ^
		    table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
	for (; n; n--, at++)
		c = c >> 8 ^ table[0][(c ^ *at) & 255];
	return c;
}

#if defined(__x86_64__)
#define TARGET          "sse4.2"
#define CRC_WORD        (uint32_t) __builtin_ia32_crc32di
#define CRC_BYTE        __builtin_ia32_crc32qi
#define HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define TARGET          "+crc"
#define CRC_WORD        __crc32cd
#define CRC_BYTE        __crc32cb
#define HAS_INSTRUCTION (getauxval(AT_HWCAP) & 1UL << 7) /* HWCAP_CRC32 */
#endif

#ifdef TARGET
__attribute__((target(TARGET))) static uint32_t by_instruction(uint32_t c, const unsigned char *at,
							       size_t n)
{
	uint64_t word;

	for (; n >= 8; n -= 8, at += 8) {
		memcpy(&word, at, sizeof(word));
		c = CRC_WORD(c, word);
	}
	for (; n; n--, at++)
		c = CRC_BYTE(c, *at);
	return c;
}
#else
#define by_instruction  by_table
#define HAS_INSTRUCTION false
#endif

static void checksum_choose(void)
{
	make_table();
	if (HAS_INSTRUCTION)
		step = by_instruction;
}

uint32_t checksum(uint32_t sum, const void *data, size_t n)
{
	pthread_once(&once, checksum_choose);
	return ~step(~sum, data, n);
}

uint32_t checksum_by_table(uint32_t sum, const void *data, size_t n)
{
	pthread_once(&once, checksum_choose);
	return ~by_table(~sum, data, n);
}

uint32_t checksum_head(uint64_t seq, uint64_t route, uint64_t extent)
{
	const uint64_t head[] = {LITTLE_64(seq), LITTLE_64(route), LITTLE_64(extent)};

	return checksum(0, head, sizeof(head));
}

void checksum_put(void *at, uint32_t sum)
{
	sum = LITTLE_32(sum);
	memcpy(at, &sum, CHECKSUM_SIZE);
}

uint32_t checksum_take(const void *at)
{
	uint32_t sum;

	memcpy(&sum, at, CHECKSUM_SIZE);
	return LITTLE_32(sum);
}
