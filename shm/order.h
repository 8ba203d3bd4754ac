/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the shared words of this folder are touched: C11 atomics in every build but the model
 * checker's (-DSLMPM_MODEL), which takes each access over. SITE names the access, so that the
 * checker can weaken one order at a time and must notice.
 */
#ifndef SHM_ORDER_H
#define SHM_ORDER_H

#include <stdatomic.h>

#include "shm/compiler.h"

#ifdef SLMPM_MODEL
#include "tests/model/hooks.h"
#else
#define ORDER_LOAD(site, word, order)         atomic_load_explicit((word), (order))
#define ORDER_STORE(site, word, value, order) atomic_store_explicit((word), (value), (order))
#define ORDER_FENCE(site, order)              atomic_thread_fence(order)
#define ORDER_COMPILER_FENCE(site)            atomic_signal_fence(memory_order_seq_cst)
/* A rule of the protocol that is no memory access; the checker may switch it off. */
#define ORDER_RULE(site)                      1
#endif

#endif
