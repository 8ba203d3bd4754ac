/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels: packet opcodes and header (in rings), control messages (on the control socket).
 * Little-endian everywhere; doc/wire.md shows it as a table. The header is final: later operations
 * take the opcodes kept free for them here.
 *
 *     word 0  sequence number of the message's envelope
 *     word 1  stream (low 32 bits), immediate (high 32 bits)
 *     word 2  low 48 bits: First, Only: length of the message; Middle, Last: offset of the payload
 *             high 16 bits: flags
 */
#ifndef SLMPM_WIRE_H
#define SLMPM_WIRE_H

#include <stdint.h>

#include "shm/compiler.h"

#define WIRE_MAJOR 1 /* other numbers are refused */
#define WIRE_MINOR 0 /* later ones may add features that the lower side does not see */

enum wire_opcode {
	WIRE_SEND_FIRST = 1,
	WIRE_SEND_MIDDLE = 2,
	WIRE_SEND_LAST = 3,
	WIRE_SEND_ONLY = 4,
	/* 5..8 Write First, Middle, Last, Only; 9 Read Request; 10..13 Read Response likewise;
	 * 14 FetchAdd, 15 CmpSwap, 16 Atomic Acknowledge: kept for one-sided operations. */
	WIRE_CLEAR = 32,     /* clear to send: the announced message `seq` has its receive */
	WIRE_CREDIT = 33,    /* word 2: total of eager bytes matched since connecting */
	WIRE_WITHDRAW = 34,  /* the sender gave the announced message `seq` up */
	WIRE_CLOSE = 35,     /* end of stream: nothing follows */
	WIRE_LOAN = 36,      /* a message in an area; payload: struct wire_loan */
	WIRE_LOAN_MORE = 37, /* more of it is ready */
	WIRE_LOAN_DONE = 38, /* the reader is through with area word 2 */
	/* Several messages of one route and one length in a packet, sent with SLMPM_MORE. `seq` is
	 * the first one's, word 2 the length of each; the payload is nothing but them. */
	WIRE_BUNDLE = 39,
	WIRE_OPCODES = 40
};

#define WIRE_LENGTH_MASK    ((UINT64_C(1) << 48) - 1)
#define WIRE_FLAG_CHECK     1u /* the payload ends with 4 bytes of CRC-32C over header and payload */
#define WIRE_FLAG_ANNOUNCED 2u /* First: the rest waits for WIRE_CLEAR */
#define WIRE_FLAGS          3u

struct wire_loan {
	uint64_t ready;    /* bytes that can be read */
	uint64_t capacity; /* never more than this */
	uint32_t area;
	uint32_t final; /* 1: ready is the message's length */
};
_Static_assert(sizeof(struct wire_loan) == 24, "wire layout");

#define WIRE_ENVELOPE 64

/* A message's charge against the credit: what it costs to keep it unreceived. */
static inline uint64_t wire_charge(uint64_t bytes)
{
	return bytes + WIRE_ENVELOPE;
}

static inline uint64_t wire_route(uint32_t stream, uint32_t imm)
{
	return (uint64_t)imm << 32 | stream;
}

static inline uint64_t wire_extent(uint64_t length_or_offset, uint32_t flags)
{
	return length_or_offset | (uint64_t)flags << 48;
}

/* ---- the control socket (SOCK_SEQPACKET); a packet of one byte is a doorbell ----------------- */

#define WIRE_MAGIC UINT64_C(0x31304d504d4c53) /* "SLMPM01" */

enum wire_control {
	WIRE_HELLO = 1, /* struct wire_hello */
	WIRE_NONCE = 2, /* the peer's nonce, after its pidfd was taken */
	WIRE_ROUND = 3, /* number, then a fabric's blob, with its descriptors */
	WIRE_AREA = 4,  /* struct wire_area, with the area's descriptor */
	WIRE_BYE = 5,   /* struct wire_bye: refused or poisoned, and why */
};

struct wire_control_head {
	uint32_t type;
	uint32_t length; /* of the whole packet */
};

/* What a side can do beyond the least of its version. */
#define WIRE_FEATURE_BUNDLE UINT64_C(1) /* takes WIRE_BUNDLE */
#define WIRE_FEATURES       WIRE_FEATURE_BUNDLE

struct wire_hello {
	struct wire_control_head head;
	uint64_t magic;
	uint16_t major, minor;
	uint32_t byte_order; /* 1: little-endian, 2: big-endian */
	uint64_t features;   /* WIRE_FEATURE_*; unknown bits do no harm */
	uint64_t required;   /* of the other side: unknown bits here refuse the connection */
	uint64_t nonce;
	int32_t pid;
	uint32_t element;
	uint64_t packet_max, eager_max, eager_credit, loan_max;
	char version[16], fabric[16];
};
_Static_assert(sizeof(struct wire_hello) == 120, "wire layout");

struct wire_nonce {
	struct wire_control_head head;
	uint64_t nonce;
};

struct wire_round {
	struct wire_control_head head;
	uint32_t round, blob_length;
	unsigned char blob[124];
	uint32_t zero;
};
_Static_assert(sizeof(struct wire_round) == 144, "wire layout");

struct wire_area {
	struct wire_control_head head;
	uint32_t area, zero;
	uint64_t size;
};

struct wire_bye {
	struct wire_control_head head;
	uint32_t error; /* enum slmpm_error: what the refused side's call returns */
	uint32_t zero;
	char reason[112]; /* for a person */
};
_Static_assert(sizeof(struct wire_bye) == 128, "wire layout");

#endif
