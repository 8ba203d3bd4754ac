/* SPDX-License-Identifier: BSD-3-Clause */
/* Who connects to a listener and does not mean well: its visit is over soon, and leaves nothing. */
#ifndef TESTS_LIB_STRANGER_H
#define TESTS_LIB_STRANGER_H

#include <stdbool.h>
#include <sys/types.h>

#include <slmpm.h>

#include "tests/lib/death.h"

#define STRANGER_BOUND_MS 9000 /* every visit is over by then */

/* BODY(ARG), in a process of its own, connects to LISTENER and is not accepted; HONEST, a peer of
 * tests/lib/honest.h, works on meanwhile. */
void stranger_visits(const char *name, int (*body)(void *), void *arg, slmpm_listener listener,
		     slmpm_peer honest);
/* Has the process ended? It stays to be waited for. */
bool stranger_has_left(pid_t pid);
/* Its end has been seen, and it is forgotten: nothing is held beyond BEFORE. */
void stranger_forgotten(slmpm_listener listener, struct holdings before, const char *what);

#endif
