/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for a publication, or for a snapshot. */
#ifndef SLMPM_MIRROR_READ_H
#define SLMPM_MIRROR_READ_H

#include "slmpm/mirror/mirror.h"

/* Takes the snapshots that can be taken just now: a publication is here as a whole. */
void read_serve(struct mirror *m);
/* The mirror ends. */
void read_end(struct mirror *m);

#endif
