/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a link, as the core opens it; packets whose every byte can be checked. */
#ifndef TESTS_LIB_LINK_END_H
#define TESTS_LIB_LINK_END_H

#include <stdbool.h>
#include <stdint.h>

#include "fabrics/fabric.h"

struct link_end {
	struct fabric_domain *domain;
	struct fabric_link *link;
	int bell; /* what this side reads, and rings the other by */
};

/* Room and publication as the defaults have them. */
struct fabric_config link_config(uint32_t segments, uint32_t segment_size);
enum { LEFT, RIGHT, SIDES };

/* A domain opened, a link unconnected; SIDE may be another program's (far.h). BELL is its from here
 * on. */
void link_end_open(struct link_end *e, const struct fabric *f, const struct fabric_config *config,
		   int side, int bell);
/* Its addresses are this machine's of SLMPM_TEST_IP; link_end_open has seen to that. */
void link_place(struct fabric_link *l);
/* Up to ROUNDS rounds with the process at the other end of SOCKET: what the last connect said. */
int link_end_meet(struct link_end *e, int socket, int rounds);
void link_end_close(struct link_end *e);

/*
 * Until the fabric may find something new, where a descriptor says so; what this process's ends
 * have taken and not sent goes on meanwhile. false: where none does, or when patience is at an end.
 */
bool link_await(struct fabric_domain *domain);
/* The same with something that the peer wakes this side by: the descriptor, or else the bell. Takes
 * the bell's bytes. */
bool link_awaits_bell(struct link_end *e, int ms);
/* RC is -EPIPE, with a reason. */
bool link_is_lost(const struct fabric_link *l, int rc);

/* What this side says in that round, with descriptors of its own; and closing what is left of
 * them. */
void link_ask(struct fabric_link *l, int round, struct fabric_blob *out);
void link_forget(struct fabric_blob *blob);

/* A blob through SOCKET, its descriptors along; they stay the sender's, and are the receiver's. */
void link_send_blob(int socket, const struct fabric_blob *blob);
void link_receive_blob(int socket, struct fabric_blob *blob);

/* Sends LENGTH bytes of SEED with FLAGS: what post said. */
int link_put(struct fabric_link *l, uint64_t seed, uint32_t length, uint16_t flags);
/* There is room for it, or word of it is on its way. */
void link_send(struct fabric_link *l, uint64_t seed, uint32_t length, uint16_t flags);
/* Something comes for a link of DOMAIN: a packet takes no longer than a second. */
bool link_comes_soon(struct fabric_domain *domain);
/* Poll, and what comes without data goes into the ring: up to N that have some. */
int link_poll(struct fabric_link *l, struct fabric_arrival *arrivals, int n);
/* That is what arrived. */
void link_check(const struct fabric_arrival *a, uint64_t seed, uint32_t length);
/* The next arrival is that, and is released. */
void link_take(struct fabric_link *l, uint64_t seed, uint32_t length);
/* Nothing is there. */
void link_expect_nothing(struct fabric_link *l);
/* And nothing will be: the other side has gone. */
void link_expect_no_more(struct fabric_link *l);
void link_flush_totals(struct fabric_link *l);
/* All that was sent is known to be read. */
void link_await_totals(struct fabric_link *l);

/*
 * The same for a stream of packets whose lengths follow from their numbers, from 1, and from MOST,
 * the longest: all that fit; the next, left or released.
 */
uint32_t link_length(uint32_t most, uint64_t seed);
void link_fill(struct fabric_link *l, uint64_t *sent);
/* The peer has read all: at least one fits. */
void link_fill_empty(struct fabric_link *l, uint64_t *sent);
void link_expect_next(struct fabric_link *l, struct fabric_arrival *a, uint64_t *taken);
void link_take_next(struct fabric_link *l, uint64_t *taken);

#endif
