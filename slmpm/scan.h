/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the thread that polls for all scans without the lock (link/wait_scan.c). It lies on that
 * thread's stack, and the context points at it, both until the thread has the lock again.
 */
#ifndef SLMPM_SCAN_H
#define SLMPM_SCAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SCAN_WORDS 8 /* two lines of them: each is read again and again */

struct scan {
	/* By others, which have the lock: it is to end. Relaxed: what for is the lock's. */
	atomic_bool over;
	atomic_bool inside; /* the words may be read, and stay */
	uint32_t count;
	struct scan_word {
		const _Atomic uint64_t *at;
		uint64_t nothing; /* as long as it is that */
	} words[SCAN_WORDS];
};

#endif
