/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4-128, as its authors describe it: four words, two rounds a word, four at each end. */
#include "slmpm/net/secret.h"

#include <stdint.h>
#include <string.h>

#include "shm/compiler.h"

struct state {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void rounds(struct state *s, int n)
{
	while (n--) {
		s->a += s->b;
		s->c += s->d;
		s->b = rotate(s->b, 13) ^ s->a;
		s->d = rotate(s->d, 16) ^ s->c;
		s->a = rotate(s->a, 32);
		s->c += s->b;
		s->a += s->d;
		s->b = rotate(s->b, 17) ^ s->c;
		s->d = rotate(s->d, 21) ^ s->a;
		s->c = rotate(s->c, 32);
	}
}

static uint64_t siphash_load(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return LITTLE_64(word);
}

static void siphash_store(unsigned char *at, uint64_t word)
{
	word = LITTLE_64(word);
	memcpy(at, &word, sizeof(word));
}

static void siphash_take(struct state *s, uint64_t word)
{
	s->d ^= word;
	rounds(s, 2);
	s->a ^= word;
}

void siphash(const unsigned char key[SIPHASH_SIZE], const void *data, size_t n,
	     unsigned char out[SIPHASH_SIZE])
{
	uint64_t low = siphash_load(key), high = siphash_load(key + 8);
	struct state s = {
		.a = low ^ UINT64_C(0x736f6d6570736575),
		.b = high ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
		.c = low ^ UINT64_C(0x6c7967656e657261),
		.d = high ^ UINT64_C(0x7465646279746573),
	};
	const unsigned char *at = data;
	unsigned char last[8] = {0};

	for (size_t left = n; left >= 8; left -= 8, at += 8)
		siphash_take(&s, siphash_load(at));
	if (n % 8)
		memcpy(last, at, n % 8);
	last[7] = (unsigned char)n;
	siphash_take(&s, siphash_load(last));
	s.c ^= 0xee;
	rounds(&s, 4);
	siphash_store(out, s.a ^ s.b ^ s.c ^ s.d);
	s.b ^= 0xdd;
	rounds(&s, 4);
	siphash_store(out + 8, s.a ^ s.b ^ s.c ^ s.d);
}
