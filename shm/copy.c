/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/copy.h"

void copy_in_steps(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	for (; n >= COPY_SHORT; n -= COPY_SHORT, t += COPY_SHORT, f += COPY_SHORT) {
		memcpy(t, f, COPY_SHORT);
		__asm__ volatile("" : : : "memory"); /* not one memcpy after all */
	}
	copy_short(t, f, n);
}

#if defined(__x86_64__)

#define VECTOR 32

typedef long long vector __attribute__((vector_size(VECTOR), aligned(1), may_alias));

__attribute__((target("avx2"))) static void copy_vectors(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	for (; n >= COPY_SHORT; n -= COPY_SHORT, t += COPY_SHORT, f += COPY_SHORT) {
		vector a = *(const vector *)(const void *)f;
		vector b = *(const vector *)(const void *)(f + VECTOR);

		*(vector *)(void *)t = a;
		*(vector *)(void *)(t + VECTOR) = b;
		__asm__ volatile("" : : : "memory"); /* not a memcpy after all */
	}
	copy_short(t, f, n);
}

bool copy_has_vectors(void)
{
	return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx2");
}

/*
 * memcpy of glibc 2.36 is rep movsb wherever the processor says that it has a quick one. AMD's of
 * family 25 (others were not measured) takes sixteen times as long where TO lies 1 to 31 bytes
 * behind FROM within a page, and two to three times, for seconds on end, out of lines that another
 * processor has just written; and into lines that another one holds it is no quicker than vectors.
 */
void copy_long(void *to, const void *from, size_t n)
{
	if (copy_has_vectors())
		copy_vectors(to, from, n);
	else
		memcpy(to, from, n);
}

#else

bool copy_has_vectors(void)
{
	return false;
}

void copy_long(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}

#endif
