/* SPDX-License-Identifier: BSD-3-Clause */
/* What both sides of a trial's pair know of each other (trial.h). */
#ifndef INFO_PAIR_H
#define INFO_PAIR_H

#include <sched.h>
#include <slmpm.h>
#include <stdint.h>

#define PAIR_PATIENCE 60000 /* ms: the other side's for an answer */
#define PAIR_BYTES    (64 << 20)

enum pair_stream { PAIR_ORDERS, PAIR_DATA };

#define PAIR_TOUCH 1u /* the receiver reads what came ... */
#define PAIR_EACH  2u /* ... and answers each message, not the last alone */

struct pair_hello { /* the first word: a region of the measuring side's */
	struct slmpm_key key;
	int32_t cpu;
};

struct pair_order { /* receive so many messages of SIZE bytes */
	uint64_t size;
	uint32_t count, flags;
};

/* One byte of each line; the sum, so that it is not left out. */
static inline unsigned pair_read(const volatile unsigned char *bytes, uint64_t size)
{
	unsigned sum = 0;

	for (uint64_t i = 0; i < size; i += 64)
		sum += bytes[i];
	return sum;
}

static inline void pair_write(volatile unsigned char *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i += 64)
		bytes[i]++;
}

/* Negative: any CPU. */
static inline void pair_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu < 0)
		return;
	CPU_SET((size_t)cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

#endif
