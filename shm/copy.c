/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which copy is best is asked of the processor once. On AMD's with fast strings, `rep movsb` writes
 * whole lines without fetching them first, and for messages that pays from 1 KiB on; the C library
 * begins at 2 KiB. Elsewhere the C library's choice stands.
 */
#include "shm/copy.h"

#include <stdint.h>

size_t copy_string_min = SIZE_MAX;

#ifdef __x86_64__
#include <cpuid.h>

#define ERMS (1u << 9) /* leaf 7, EBX: enhanced rep movsb */

__attribute__((constructor)) static void choose(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx)
		return;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b & ERMS)
		copy_string_min = 1024;
}
#endif
