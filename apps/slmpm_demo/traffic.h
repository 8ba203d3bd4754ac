/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host has sent and put: by fabric and protocol, for which reasons, and when. */
#ifndef DEMO_TRAFFIC_H
#define DEMO_TRAFFIC_H

#include <slmpm.h>
#include <stdint.h>

#define TRAFFIC_ROWS   12
#define TRAFFIC_LOAN   SLMPM_PROTOCOL_ROOM /* among protocols: messages read where they lie */
#define TRAFFIC_SLICES 40 /* of time; their length doubles whenever there are too few */

struct traffic_row {
	char fabric[16];
	int protocol;
	uint64_t count, bytes, reasons[SLMPM_REASONS];
	uint64_t slices[TRAFFIC_SLICES]; /* bytes */
};

struct traffic {
	struct traffic_row rows[TRAFFIC_ROWS];
	unsigned count;
	uint64_t bytes;
	uint64_t began, slice; /* ns */
};

void traffic_begin(struct traffic *t);
/* An operation of BYTES has ended. */
void traffic_add(struct traffic *t, const char *fabric, int protocol, int reason, uint64_t bytes);
/* Its name, or that of loans. */
const char *traffic_protocol(int protocol);
/* Of all rows with this protocol. */
uint64_t traffic_count(const struct traffic *t, int protocol);
uint64_t traffic_reason(const struct traffic *t, int reason);

/* A line of what has gone by which row since the last call, for a screen. */
const char *traffic_now(const struct traffic *t, char *text, size_t size);
/* ROW's share of the bytes in each slice of time, a character each. */
const char *traffic_strip(const struct traffic *t, unsigned row, char text[TRAFFIC_SLICES + 1]);

#endif
