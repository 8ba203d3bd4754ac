/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer made by hand that forms groups: its packets about these, right or wrong. */
#ifndef TESTS_LIB_RAW_GROUP_H
#define TESTS_LIB_RAW_GROUP_H

#include <fcntl.h>

#include "tests/lib/raw_peer.h"

#define RAW_GROUP_RULE  "packet of a group" /* the violation's name */
#define RAW_GROUP_TAG   5
#define RAW_GROUP_BOARD (2 * (4096 + 8192 + 262144)) /* slmpm/board/layout.h */
#define RAW_GROUP_SIZE  (F_SEAL_SHRINK | F_SEAL_GROW)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif
#define RAW_GROUP_SEALS (RAW_GROUP_SIZE | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* A packet of that step of the join NUMBER, by RAW_GROUP_TAG; what ends it, with an error. */
struct wire_group raw_group_of(enum wire_group_step step, uint32_t number);
/* G, whose head is filled in, with descriptors; the second of a step, without. */
void raw_group_say(struct raw_peer *p, struct wire_group g, const int *fds, int count);
void raw_group_step(struct raw_peer *p, enum wire_group_step s, uint32_t number);
/* The next that comes is of that step. */
void raw_group_await(struct raw_peer *p, enum wire_group_step want);

/* Descriptors: a board, right or so; a bell, right of type SOCK_DGRAM; this process. */
int raw_group_right_board(void);
int raw_group_board(size_t size, int seals);
int raw_group_bell(int type);
int raw_group_process(void);

/* As a member. */
void raw_group_say_join(struct raw_peer *p, uint32_t number, int memory, int ring);
void raw_group_join(struct raw_peer *p, uint32_t number);
/* As who founds: of SIZE members, the other side is RANK; once it has joined. */
void raw_group_begin(struct raw_peer *p, uint32_t size, uint32_t rank);
void raw_group_found(struct raw_peer *p, uint32_t size, uint32_t rank);

#endif
