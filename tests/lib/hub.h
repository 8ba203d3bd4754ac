/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hub and three leaves in one process and one thread, so that a seed gives the same run again:
 * what is under way between them, beside a model of what must arrive where.
 */
#ifndef TESTS_LIB_HUB_H
#define TESTS_LIB_HUB_H

#include <slmpm.h>

#include "tests/lib/mail_model.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define LEAVES   3
#define CHANNELS (2 * LEAVES) /* 0.. from the hub to leaf i, LEAVES.. from it to the hub */
#define WANTS    24
#define SENDS    24
#define HELD     6
#define LONGEST  ((size_t)200000)
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

struct hub_receive {
	slmpm_req req;
	unsigned char *buf;
	size_t cap;
	int side; /* who posted it: LEAVES is the hub */
};

struct hub_send {
	slmpm_req req;
	unsigned char *buf;
	int channel;
	size_t number;
};

struct hub_hold {
	const void *data;
	slmpm_peer peer;
	int channel;
	size_t number, len;
	bool growing;
};

struct hub_loan { /* at most one open a channel */
	void *buf;
	size_t len;
	uint64_t seed;
	uint32_t stream, imm;
	size_t ready, number; /* once a part of it is out */
	bool begun;
};

struct hub {
	struct rng rng;
	slmpm_ctx contexts[LEAVES + 1];
	slmpm_peer to_leaf[LEAVES], to_hub[LEAVES];
	struct mail_channel channels[CHANNELS];
	struct mail_want wants[WANTS];
	struct hub_receive receives[WANTS];
	struct hub_send sends[SENDS];
	struct hub_hold holds[HELD];
	struct hub_loan loans[CHANNELS];
	uint64_t orders;
	bool any_peer, take_back, ghosts[CHANNELS];
	uint32_t packet_max[CHANNELS];
	unsigned char *scratch; /* LONGEST bytes */
	struct {
		uint64_t sent, taken, truncated, canceled, timeouts, probed, held, loaned;
	} total;
};

extern struct hub hub;

/* All four open and connected, as chance has it; and all closed. */
void hub_begin(void);
void hub_end(void);

uint32_t hub_below(uint32_t n);
size_t hub_length(void);
uint32_t hub_stream(bool receiving);
/* Cuts N bytes at BUF into up to five pieces. */
int hub_cut(struct slmpm_iov iov[5], void *buf, size_t n);
slmpm_peer hub_sender(int channel);
/* The channel on which SIDE hears from PEER. */
int hub_channel(int side, slmpm_peer peer);

/* ---- hub_send.c ---- */

/* Some way or other, or a step of what is lent. */
void hub_send_some(int channel);
void hub_finish_send(struct hub_send *s, bool taken_back);
void hub_cancel_send(struct hub_send *s);
/* False: what was sent before it has not gone yet. */
bool hub_settle_loan(int channel);

/* ---- hub_receive.c ---- */

void hub_receive_some(int side);
void hub_receive_now(int side);
void hub_finish_receive(size_t at, bool taken_back);
void hub_cancel_receive(size_t at);
/* As far as it is known to have come. */
void hub_look_again(struct hub_hold *h);
void hub_let_go(struct hub_hold *h);

#endif
