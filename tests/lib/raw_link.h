/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer made by hand says about links to be (LINK), and hears; over shared memory. */
#ifndef TESTS_LIB_RAW_LINK_H
#define TESTS_LIB_RAW_LINK_H

#include "tests/lib/raw_peer.h"

/* What is offered for a link; made when it is needed. */
extern struct mapping raw_link_memory;

struct wire_round raw_link_about(uint32_t round, unsigned link, unsigned life);
void raw_link_blob(struct wire_round *w, const void *blob, uint32_t n);
void raw_link_say(struct raw_peer *p, struct wire_round *w, int fd);
/* Without a blob. */
void raw_link_say_plain(struct raw_peer *p, uint32_t round, unsigned link, unsigned life);
/* Round 0, to be said with the memory's descriptor. */
struct wire_round raw_link_ring(struct raw_peer *p, unsigned link, unsigned life);
void raw_link_begin(struct raw_peer *p, unsigned link, unsigned life);
/* A later round of link 1, life 0. */
void raw_link_echo(struct raw_peer *p, uint32_t round, uint64_t epoch, int fd);
/* Link 1 with all its rounds, as the rules are. */
void raw_link_join(struct raw_peer *p);
/* The same from where both have offered, and EPOCH was heard. */
void raw_link_finish(struct raw_peer *p, uint64_t epoch);

/* The next about a link; and that is of that round. */
struct wire_round raw_link_hear(struct raw_peer *p);
struct wire_round raw_link_hear_round(struct raw_peer *p, uint32_t round);
uint64_t raw_link_epoch(const struct wire_round *w);
/* W, however it came, refuses that LIFE of LINK, and says WHY. */
void raw_link_refusal(const struct wire_round *w, unsigned link, unsigned life, const char *why);
/* Such a refusal comes. */
void raw_link_refused(struct raw_peer *p, unsigned link, unsigned life, const char *why);
/* Rings that lie unread; it is all read then. While it is, one more may come. */
unsigned raw_link_unread(struct raw_peer *p);
/* All that was said so far has been read. */
void raw_link_await_read(struct raw_peer *p);
/* Reads all that has been answered until now, for which link 1's LIFE is spent: rings that were
 * given; *REFUSED as too many at once. */
unsigned raw_link_answers(struct raw_peer *p, unsigned life, unsigned *refused);
/* What is refused leaves the channel as it was: a message "still" goes. It ends here, by another lie. */
void raw_link_go_on(struct raw_peer *p);

#endif
