/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's own check: what C11 allows and forbids in programs of a few lines. */
#ifndef TESTS_MODEL_LITMUS_H
#define TESTS_MODEL_LITMUS_H

/* Runs them all; how many came out wrong. */
unsigned litmus_failures(void);

#endif
