/* SPDX-License-Identifier: BSD-3-Clause */
/* Bonds: several links of one pair of processes joined into one, which the core uses like any
 * other. Each packet is delivered exactly once and in order as long as one of them is left. */
#ifndef SLMPM_BOND_H
#define SLMPM_BOND_H

#include <stdbool.h>
#include <stdint.h>

struct fabric;
struct fabric_domain;
struct fabric_link;

#define BOND_PATHS        4     /* places for links of a pair */
#define BOND_INCARNATIONS 32767 /* of each */

enum bond_state {
	PATH_NONE,
	PATH_UP,
	PATH_SHUT, /* takes nothing more; what came before is still to be read */
	PATH_LOST, /* and has been */
};

/* A bond's table; address, connect and alloc it has none: its paths are connected when they
 * come. */
extern const struct fabric bond_fabric;

/* Is PORT a bond of several links? */
bool bond_is(const struct fabric_link *port);

/* LINK (zeroed, bond_fabric.link_size bytes, domain and start set) gets a log of LOG bytes at least
 * for what the peer has not acknowledged, and path 0: PORT, connected over FABRIC and from malloc,
 * which is the bond's from here on. 0, -ENOMEM or -EINVAL; PORT stays the caller's then. */
int bond_open(struct fabric_link *link, uint64_t log, const struct fabric *fabric,
	      struct fabric_link *port);
/* Another, under the number that it has at the peer's end, too, which adds it at any other time.
 * -EINVAL: no such number, or in use; -EMSGSIZE: its packets are shorter than those before. */
int bond_add(struct fabric_link *link, uint32_t path, const struct fabric *fabric,
	     struct fabric_link *port);
/* It will not come here; the peer may have it already. */
void bond_reject(struct fabric_link *link, uint32_t path);
/* The next to be added as PATH is its LIFE-th link, from 0, once both ends have said so. -EBUSY: of
 * the one before not all has been read; -EINVAL: no such number, or LIFE is over. */
int bond_expect(struct fabric_link *link, uint32_t path, uint32_t life);
/* Disconnects all paths for good: nothing but their states, counts and reasons is asked for from
 * here on. */
void bond_shut(struct fabric_link *link);
/* ON: with all links lost the bond goes on, for another may come. */
void bond_may_reconnect(struct fabric_link *link, bool on);
/* Packets that ask for none (FABRIC_BY) go by PATH from now on, whatever others ask for; -ENOENT
 * where it is not up. */
int bond_use(struct fabric_link *link, uint32_t path);
/* Or by whichever brings them sooner, where the one in use needs longer than so much for what it
 * has been given; UINT64_MAX, as in the beginning: they stay. */
void bond_spread(struct fabric_link *link, uint64_t patience_us);
/* May packets be, and over several? */
bool bond_spreads(const struct fabric_link *link);
/* And was another one found to bring them sooner at the last inspection? */
bool bond_is_spread(const struct fabric_link *link);

/* Is what is posted now in the peer's memory, and read next, whatever becomes of other paths? While
 * room is held back (FABRIC_HOLD_BACK) this comes true in time, and only packets that ask for one
 * (FABRIC_BY) go by a path that does not store. True where no path stores. */
bool bond_is_read_next(const struct fabric_link *link);
/* And has what the peer has posted by such a path all been read, but for what lies in memory? Then
 * it has posted nothing by another one since. */
bool bond_reads_stored(const struct fabric_link *link);

/* As link_mark and link_passed; of BOND_PATHS each. */
void bond_mark(const struct fabric_link *link, uint64_t *left);
bool bond_passed(const struct fabric_link *link, const uint64_t *left);

/*
 * At NOW: a path by which something is unanswered, and by which nothing comes for longer than DEAD
 * while the peer answers by another one, is lost. When to be called again; UINT64_MAX: nothing is
 * unanswered.
 */
uint64_t bond_keepalive(struct fabric_link *link, uint64_t now_ns, uint64_t dead_ns);

/* A bit for each path that is up. */
uint32_t bond_up(const struct fabric_link *link);
enum bond_state bond_state(const struct fabric_link *link, uint32_t path);
uint32_t bond_life(const struct fabric_link *link, uint32_t path);
/* Why it was lost last; NULL where it never was. */
const char *bond_reason(const struct fabric_link *link, uint32_t path);
/* Has the state of any path in DOMAIN changed since this was last asked? */
bool bond_news(struct fabric_domain *domain);
/* Payload bytes that have been given to the bond, or handed out by it. */
uint64_t bond_moved(const struct fabric_link *link);
/* Packets that have been given to it, and those of them that the peer is known to have. */
void bond_position(const struct fabric_link *link, uint64_t *sent, uint64_t *acknowledged);
/* By which the last packet went out, and by which those go that ask for none. */
uint32_t bond_path(const struct fabric_link *link);
uint32_t bond_home(const struct fabric_link *link);
/* A path's own link, for its counts and reasons; NULL where there is none. */
struct fabric_link *bond_port(const struct fabric_link *link, uint32_t path);
/* Segments of the least of its rings: that of a path which only it may fill up. The counts have
 * their sums. */
uint64_t bond_ring_out(const struct fabric_link *link);
uint64_t bond_ring_in(const struct fabric_link *link);
/* Whose memory operations a bond forwards: its first path's; NULL: that has none. */
struct fabric_domain *bond_memory(const struct fabric_link *link);

#endif
