/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one word that marks a check of what the peer wrote (R1 to R12 of doc/reliability.md):
 * PEER_FAULT(condition) is true where the peer broke a rule. The bench alone builds without them,
 * to show what they cost.
 */
#ifndef SHM_PEER_FAULT_H
#define SHM_PEER_FAULT_H

#ifdef SLMPM_UNCHECKED
#define PEER_FAULT(condition) (0 && (condition))
#else
#define PEER_FAULT(condition) (condition)
#endif

#endif
