/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that can be checked: bytes, length and immediate follow from a number. */
#ifndef TESTS_LIB_MESSAGE_H
#define TESTS_LIB_MESSAGE_H

#include "tests/lib/actor.h"

/* The same for 256 in a row, so that they may share a packet. */
static inline uint32_t message_imm(uint64_t seed)
{
	return (uint32_t)(seed >> 8);
}

/* A send under way. */
struct message {
	unsigned char *data;
	slmpm_req req;
};

/* Message SEED of N bytes, blocking; FLAGS of struct slmpm_how. */
void message_send(slmpm_peer to, uint32_t stream, uint64_t seed, size_t n, uint32_t flags);
/* The same as a request; and its end, which must come and be STATUS. */
void message_start(struct message *m, slmpm_peer to, uint32_t stream, uint64_t seed, size_t n);
void message_end(struct message *m, int status);
/* The next of FROM (or any) on STREAM (or any) must be that: what came with it. */
struct slmpm_done message_take(slmpm_peer from, uint32_t stream, uint64_t seed, size_t n);
/* That is what lies there, and came with it. */
void message_check(const void *data, const struct slmpm_done *done, uint64_t seed, size_t n);
/* Nothing is there. */
void message_none(slmpm_peer from, uint32_t stream);

/* What PEER takes unasked, and in one packet. */
size_t message_eager(slmpm_peer peer);
size_t message_packet(slmpm_peer peer);
/* What may lie unreceived, by this process's settings: bytes, and 64 more a message. */
size_t message_credit(void);

#endif
