/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C by tables of eight bytes at a time. */
#include "slmpm/checksum.h"

#include <pthread.h>

#include "slmpm/request.h"

#define POLYNOMIAL UINT32_C(0x82f63b78) /* Castagnoli, reflected */

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

uint32_t checksum(uint32_t sum, const void *data, size_t n)
{
	const unsigned char *at = data;
	uint32_t c = ~sum;

	pthread_once(&once, make_table);
	for (; n >= 8; n -= 8, at += 8)
		c = table[7][(c ^ at[0]) & 255] ^ table[6][(c >> 8 ^ at[1]) & 255] ^
		    table[5][(c >> 16 ^ at[2]) & 255] ^ table[4][(c >> 24 ^ at[3]) & 255] ^
		    table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
	for (; n; n--, at++)
		c = c >> 8 ^ table[0][(c ^ *at) & 255];
	return ~c;
}

static void put64(unsigned char *at, uint64_t x)
{
	for (int i = 0; i < 8; i++)
		at[i] = (unsigned char)(x >> 8 * i);
}

uint32_t checksum_head(uint64_t seq, uint64_t route, uint64_t extent)
{
	unsigned char head[24];

	put64(head, seq);
	put64(head + 8, route);
	put64(head + 16, extent);
	return checksum(0, head, sizeof(head));
}

uint32_t checksum_request(uint32_t sum, const struct request *r, uint64_t offset, uint64_t n)
{
	struct request_walk walk = {r, 0, offset};
	uint64_t take;
	void *run;

	while (n && (run = request_walk_on(&walk, n, &take))) {
		sum = checksum(sum, run, take);
		n -= take;
	}
	return sum;
}

void checksum_put(void *at, uint32_t sum)
{
	for (int i = 0; i < CHECKSUM_SIZE; i++)
		((unsigned char *)at)[i] = (unsigned char)(sum >> 8 * i);
}

uint32_t checksum_take(const void *at)
{
	const unsigned char *bytes = at;

	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}
