/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slmpm_sim's parts: events in the order of their time, wires on which messages go, nodes that do
 * the entries of their programs, and what comes of it. Time is in picoseconds.
 */
#ifndef SLMPM_SIM_H
#define SLMPM_SIM_H

#include <slmpm.h>
#include <slmpm_network.h>
#include <slmpm_plan.h>
#include <stdbool.h>
#include <stdint.h>

#define STEP_KINDS 8 /* behind the last enum slmpm_plan_op */

enum topology { TOPOLOGY_FULL, TOPOLOGY_TORUS, TOPOLOGY_MESH, TOPOLOGY_TREE };

struct setting {
	uint32_t kind, algorithm; /* of the collective */
	const char *text;         /* in place of an algorithm, or NULL */
	uint64_t bytes, piece; /* of a contribution or block; of a message of a chain, 0: chosen */
	uint32_t root;
	enum topology topology;
	uint32_t nodes;
	uint32_t extent[3];
	double latency;    /* of a link */
	double byte;       /* how long a byte takes on one */
	double gap;        /* between messages that a node begins */
	double fold, copy; /* how long a byte takes that is combined, or copied */
	uint64_t packet;   /* bytes, at most */
	uint64_t eager;    /* bytes of a message whose SEND is done as it begins, at most */
	bool json;
};

struct result {
	uint32_t algorithm;
	uint64_t first, last; /* when the first and the last node were done */
	uint64_t messages, bytes, hops, events;
	uint64_t steps[STEP_KINDS]; /* by enum slmpm_plan_op */
	uint64_t busy, carried;     /* of the busiest link: how long, and bytes */
	uint32_t node, link;        /* which that is; UINT32_MAX: none */
};

/* ---- events ---------------------------------------------------------------------------------- */

enum event_kind { EVENT_NODE, EVENT_PARCEL };

struct event {
	uint64_t time;
	uint32_t order; /* of those of one time: as they were added */
	uint32_t what;  /* a number, and the kind in the lowest bit */
};

struct events {
	struct event *heap;
	uint32_t count, room, order;
	uint64_t taken;
};

void events_add(struct events *e, uint64_t time, enum event_kind kind, uint32_t number);
/* False: there is none left. */
bool events_take(struct events *e, struct event *first);

/* ---- wires ----------------------------------------------------------------------------------- */

/* A message, or a packet of one. */
struct parcel {
	uint32_t from, to;
	uint32_t at;    /* where it is, or will be when its event comes */
	uint32_t whole; /* a packet's message; a message's own number */
	uint32_t next;  /* of the eager messages that are leaving its node */
	uint64_t bytes;
	uint64_t unsent, missing; /* bytes of a message that have not left, that have not come */
};

struct wires {
	struct slmpm_network net; /* not of a full topology */
	uint32_t links;           /* of a node */
	uint64_t *free;           /* by link: from when on it is */
	uint64_t *busy, *carried; /* how long it was not, and bytes */
	uint32_t *leaving; /* by node: the first eager message, in the order of their SENDs */
	uint64_t hops;
	struct parcel *parcels;
	uint32_t used, room,
		unused; /* parcels; the first of a list of those that can be used again */
};

/* ---- pairs of a receive and a message -------------------------------------------------------- */

struct matches {
	struct item *items;
	uint32_t used, room; /* items, those that can be used again with them */
	uint32_t unused;     /* the first of these, if */
	bool has_unused;     /* there is one */
	uint32_t count;      /* that are waiting */
	uint32_t *heads, buckets;
};

void match_add(struct matches *m, uint32_t node, uint32_t peer, uint32_t lane);
/* The first one that was added. False: there is none. */
bool match_take(struct matches *m, uint32_t node, uint32_t peer, uint32_t *lane);
void match_drop(struct matches *m);

/* ---- all of it ------------------------------------------------------------------------------- */

struct sim {
	struct setting set;
	struct events events;
	struct wires wires;
	struct node *nodes;
	struct matches posted, early; /* receives; messages that came before theirs was posted */
	uint32_t done;                /* nodes */
	uint64_t now;
	struct result result;
};

/* 0, or 1 with the reason on standard error. */
int wires_open(struct sim *sim);
void wires_close(struct sim *sim);
/* Begins a message. nodes_sent follows, now or later, and nodes_arrived. */
void wires_send(struct sim *sim, uint32_t from, uint32_t to, uint64_t bytes);
void wires_event(struct sim *sim, uint32_t parcel);
/* Which link was the busiest. */
void wires_judge(struct sim *sim);

/* ---- nodes ----------------------------------------------------------------------------------- */

int nodes_open(struct sim *sim);
void nodes_close(struct sim *sim);
void nodes_start(struct sim *sim);
void nodes_event(struct sim *sim, uint32_t rank);
/* The last byte of what RANK sends will have left at WHEN. */
void nodes_sent(struct sim *sim, uint32_t rank, uint64_t when);
/* A message of PEER's is at RANK. */
void nodes_arrived(struct sim *sim, uint32_t rank, uint32_t peer);

/* ---- the rest -------------------------------------------------------------------------------- */

/* 0, or 1 with the reason on standard error. The extents that were left open are given. */
int simulate(struct setting *set, struct result *result);
/* SPAN picoseconds after TIME, and BYTES of which each takes PACE; ends beyond 2^64. */
uint64_t clock_after(uint64_t time, double span);
uint64_t clock_bytes(uint64_t time, uint64_t bytes, double pace);
/* "node", or "nodes" of so many. */
const char *nodes_word(uint32_t nodes);
/* ARRAY for at least one element more than COUNT, each SIZE bytes long, up to 2^31; ends without
 * memory. */
void *grown(void *array, uint32_t *room, uint32_t count, size_t size);
int print_result(const struct setting *set, const struct result *result);

#endif
