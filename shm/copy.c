/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/copy.h"

#include <stdbool.h>
#include <stdint.h>

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

/*
 * memcpy of glibc 2.36 is rep movsb wherever the processor says that it has a quick one. AMD's (of
 * family 25) takes sixteen times as long where TO lies 1 to 31 bytes behind FROM within a page, and
 * two to three times, for seconds on end, out of lines that another processor has just written.
 * Into such lines nothing is quicker.
 */
static bool has_odd_rep_movsb(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_is("amd");
#else
	return false;
#endif
}

static bool copy_collides(const void *to, const void *from)
{
	return (((uintptr_t)to - (uintptr_t)from) & 4095) - 1 < 31;
}

void copy_long(void *to, const void *from, size_t n)
{
	if (copy_collides(to, from) && has_odd_rep_movsb())
		copy_in_steps(to, from, n);
	else
		memcpy(to, from, n);
}

void copy_long_arrived(void *to, const void *from, size_t n)
{
	if (has_odd_rep_movsb())
		copy_in_steps(to, from, n);
	else
		memcpy(to, from, n);
}
