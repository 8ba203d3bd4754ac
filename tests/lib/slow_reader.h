/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator that takes what comes, in its order and whole, and stops when it is told to. */
#ifndef TESTS_LIB_SLOW_READER_H
#define TESTS_LIB_SLOW_READER_H

#include "tests/lib/chosen.h"

/* The role: one "reader" among those of actor_begin. */
int slow_reader(slmpm_peer host, char **words);

/* Fills chosen_bytes with what it expects. */
slmpm_peer slow_reader_begin(int *pid);
/* Until somebody sends it SIGCONT. */
void slow_reader_pause(slmpm_peer reader, int pid);
/* Is there fetching at all? A strict hint for it says so. */
bool slow_reader_fetches(slmpm_peer reader);
void slow_reader_end(slmpm_peer reader);

#endif
