/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: in blocked calls, and in the thread that serves partners meanwhile. */
#ifndef SLMPM_DACS_WAIT_H
#define SLMPM_DACS_WAIT_H

#include "slmpm/dacsbase/dacs_internal.h"

struct dacsi_pause {      /* a blocked call */
	int64_t deadline; /* nanoseconds */
	uint32_t rounds;
	bool slept;
};

int64_t dacsi_now(void);
/* Wakes the thread that sleeps. */
void dacsi_kick(void);
/* Moves on what can be moved on; true when something did. Never blocks. */
bool dacsi_progress(void);
void dacsi_pause_begin(struct dacsi_pause *p);
/* Between two checks of a condition: waits until it may have changed. DACS_SUCCESS: check again. */
DACS_ERR_T dacsi_pause(struct dacsi_pause *p);
/* What was waited for has come, if `dacsi.idle`. */
void dacsi_pause_over(void);
/* A thread that serves partners while the application computes. */
DACS_ERR_T dacsi_serve_begin(void);
/* The runtime is leaving, nobody is inside any more; gives the lock back meanwhile. */
void dacsi_serve_end(void);

#endif
