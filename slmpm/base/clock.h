/* SPDX-License-Identifier: BSD-3-Clause */
/* Time: in ns, in ticks, in milliseconds of a call. */
#ifndef SLMPM_BASE_CLOCK_H
#define SLMPM_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now(void); /* ns, monotonic */
/* A clock that costs next to nothing, of a rate between one and five in a nanosecond. */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	return clock_now();
#endif
}
/*
 * Between two looks at a line that another processor is about to write. A processor would begin
 * many looks ahead of time; those under way when the line is taken from it have to be made again,
 * in the way of what has come. x86 waits here for the last one; a pause takes far too long.
 */
static inline void clock_between_polls(void)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#endif
}
/* A moment's rest between two looks of a wait. */
static inline void clock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
/* Keeps the processor, quietly, for about so long. */
void clock_relax(uint64_t ns);
uint64_t clock_deadline(int timeout_ms);
/* Milliseconds from NOW to DEADLINE for poll, rounded up; LONGEST < 0: no other bound. */
int clock_ms(uint64_t now, uint64_t deadline, int longest);

#endif
