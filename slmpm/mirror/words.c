/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes, word by word: stored, loaded, moved. */
#include "slmpm/mirror/words.h"

#include "slmpm/mirror/mirror.h"

static inline void word_load(unsigned char *t, const unsigned char *f, uint64_t n)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	switch (n) {
	case 8:
		v64 = __atomic_load_n((const word64 *)(const void *)f, __ATOMIC_RELAXED);
		memcpy(t, &v64, 8);
		return;
	case 4:
		v32 = __atomic_load_n((const word32 *)(const void *)f, __ATOMIC_RELAXED);
		memcpy(t, &v32, 4);
		return;
	case 2:
		v16 = __atomic_load_n((const word16 *)(const void *)f, __ATOMIC_RELAXED);
		memcpy(t, &v16, 2);
		return;
	default: *t = __atomic_load_n(f, __ATOMIC_RELAXED);
	}
}

void mirror_store(void *to, const void *from, uint64_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	for (uint64_t k; n; n -= k, t += k, f += k) {
		k = word_step(t, n);
		word_store(t, f, k);
	}
}

void mirror_load(void *to, const void *from, uint64_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	for (uint64_t k; n; n -= k, t += k, f += k) {
		k = word_step(f, n);
		word_load(t, f, k);
	}
}

/* From the end, where that is what overlapping asks for. */
void mirror_move(unsigned char *to, const unsigned char *from, uint64_t n)
{
	unsigned char word[8];

	if (to <= from || (uint64_t)(to - from) >= n) {
		for (uint64_t k; n; n -= k, to += k, from += k) {
			k = word_step(to, n);
			mirror_load(word, from, k);
			word_store(to, word, k);
		}
		return;
	}
	while (n) {
		uint64_t k = 8;

		while (k > n || ((uintptr_t)to + n) % k)
			k /= 2;
		n -= k;
		mirror_load(word, from + n, k);
		word_store(to + n, word, k);
	}
}
