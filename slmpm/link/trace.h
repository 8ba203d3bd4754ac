/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces: the heads of the packets that pass, in the file that SLMPM_TRACE names. What is noted
 * never includes an application's bytes or a key's secret. doc/wire.md has the file's layout.
 */
#ifndef SLMPM_TRACE_H
#define SLMPM_TRACE_H

#include <stdint.h>

#include "slmpm/base/wire.h"

struct fabric;

#define TRACE_VERSION 2
#define TRACE_LEAD    64

struct trace_head {               /* of the file; little-endian, as what follows */
	char magic[8];            /* "SLMPMTR" */
	uint32_t version, record; /* bytes of a record */
	uint32_t pid, zero;
	uint64_t start; /* nanoseconds of the real-time clock when the first packet passed */
};
_Static_assert(sizeof(struct trace_head) == 32, "file layout");

struct trace_record {
	uint64_t ns;   /* since the start */
	uint32_t link; /* counts the process's links from 1, in the order of their first packet */
	uint8_t received, opcode;
	uint16_t zero;
	uint32_t length; /* of the payload */
	uint32_t lead;   /* bytes of it that are here: the library's own */
	uint64_t head[3];
	unsigned char payload[TRACE_LEAD];
	struct wire_addressee addressee; /* where the head has WIRE_FLAG_ADDRESSED; else 0 */
};
_Static_assert(sizeof(struct trace_record) == 128, "file layout");

/* Where traces are wanted, what passes by TABLE is noted from now on. */
bool trace_before(struct fabric *table);
/* In the child after fork: the file is the parent's. */
void trace_fork(void);

#endif
