/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler of SIGSEGV before the application's: faults that are stores are offered to us first,
 * and what is not ours goes to the handler that was there before, as if ours was not.
 */
#ifndef SLMPM_TRACK_CHAIN_H
#define SLMPM_TRACK_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

/* In the handler: may who stored at AT try again? */
typedef bool chain_take(uintptr_t at);

/*
 * Once for the process, and for good: a fault that happened before it would be taken off is handled
 * afterwards. -EBUSY: another handler has been installed over ours, -EDEADLK: this thread blocks
 * the signal, a store would kill; another negative errno.
 */
int chain_install(chain_take *take);
void chain_forked(void);

#endif
