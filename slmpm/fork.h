/* SPDX-License-Identifier: BSD-3-Clause */
/* After fork the child drops what belongs to its parent; its handles answer "forked". */
#ifndef SLMPM_FORK_H
#define SLMPM_FORK_H

/* From now on. */
void fork_watch(void);

#endif
