/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members' own memory, copied by others without a ring in between, where the kernel lets all of
 * them do so and all trust each other with their time (shm/attach.h).
 *
 * Who announces a buffer to others lets them write to it until all of them have said that they are
 * through, or until it withdraws it. A writer says on its board that it is about to write, fences,
 * and looks whether the buffer has been withdrawn; who withdraws says so, fences, and waits for
 * those that are about to write: one of two sees the other, and nothing is written later. One that
 * is stopped right there would be waited for without end: it is given up, and named.
 */
#ifndef SLMPM_REACH_H
#define SLMPM_REACH_H

#include "slmpm/board/layout.h"

/* This member may be trusted by the others, and trusts them: before they look at its board. */
void reach_offer(struct boards *b);
/* Whether all have offered that, and none has found out that it cannot reach another. The first
 * time this member tries, and says what it has found. */
bool reach_works(struct boards *b);
/* The number of the process behind descriptor FD, as it is here: in another namespace of processes
 * it is not the one that it knows. -1: it has ended. */
int32_t reach_number(int fd);
/* It has come to be refused by the system. */
void reach_refused(struct boards *b);
/* Rank R's process is there, and executes the same program: 1, 0, or a negative errno. Its number
 * may be another's else: before something is written, and behind what has been read. */
int reach_finds(struct boards *b, uint32_t r);
/* N bytes between LOCAL and ADDRESS of rank R's memory. 1; 0: that process has gone; or a negative
 * errno. */
int reach_copy(struct boards *b, uint32_t r, void *local, uint64_t address, uint64_t n, bool write);

/* In operation NUMBER this member writes into others' memory from now on; and no longer. */
void reach_claim(struct boards *b, uint64_t number);
void reach_release(struct boards *b);
/* Rank R lets none write in operation NUMBER any more; what has been read of it since may be
 * anything. */
bool reach_is_withdrawn(const struct boards *b, uint32_t r, uint64_t number);
/* Nothing is to be written into this member's memory in operation NUMBER any more. */
void reach_withdraw(struct boards *b, uint64_t number);
/* Then: a rank that is still about to write; BOARD_NONE: none is, nor will be. */
uint32_t reach_writer(const struct boards *b, uint64_t number);
/* It is withdrawn: waits for those that are about to write, a second at most. As reach_writer. */
uint32_t reach_take_back(struct boards *b, uint64_t number);

#endif
