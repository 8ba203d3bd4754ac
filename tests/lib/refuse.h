/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that refuses a system call: a filter on this process and what it starts. */
#ifndef TESTS_LIB_REFUSE_H
#define TESTS_LIB_REFUSE_H

#include <stdbool.h>
#include <stdint.h>

struct refusal {
	long call;            /* SYS_... */
	int error;            /* what it fails with */
	int arg;              /* only where this argument, from 0 ... */
	uint32_t mask, value; /* ... under the mask is the value; mask 0: always */
};

/* From now on; cannot be undone. False where no filter can be had: skip aloud. */
bool refuse(const struct refusal *r);

#endif
