/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks over links. A node has an edge to each neighbour; over one go packets, in channels that
 * have buffers of their own at its other end, and credit for these. Packets are active messages
 * with a number of the library's own; they cost no credit of the connection, their own bounds them.
 *
 * overlay.c has their life, edge.c what goes out, passage.c what comes in, mail.c the calls that
 * send and receive, tree.c the operations along a tree.
 */
#ifndef SLMPM_OVERLAY_H
#define SLMPM_OVERLAY_H

#include <slmpm_overlay.h>

#include "slmpm/am/am.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/group.h"

struct offload;
struct request;

#define OVERLAY_ID       WIRE_AM_OVERLAY /* the handler's number */
#define OVERLAY_CHANNELS 2

/* ---- on the wire ----------------------------------------------------------------------------- */

enum overlay_kind {
	OVERLAY_HELLO = 1, /* struct overlay_hello */
	OVERLAY_MESSAGE,
	OVERLAY_EXCHANGE,
	OVERLAY_CREDIT, /* `count` buffers of `channel` are free again */
	OVERLAY_BREAK,  /* `count`: SLMPM_E*, by node `source` */
	OVERLAY_CAME,   /* to close, with all nodes behind it */
	OVERLAY_OVER,   /* all have come */
	OVERLAY_KINDS
};

struct overlay_head {    /* little-endian */
	uint32_t number; /* of the group's network, from 1 */
	uint8_t kind, channel;
	uint16_t zero;
	uint32_t source, target, stream, count;
	uint64_t total, offset; /* bytes of the message */
};
_Static_assert(sizeof(struct overlay_head) == 40, "wire layout");

struct overlay_hello { /* little-endian */
	uint32_t kind, nodes, wrap, extent[3], buffers, packet;
	uint64_t message_max;
};
_Static_assert(sizeof(struct overlay_hello) == 40, "wire layout");

/* ---- a node ---------------------------------------------------------------------------------- */

struct overlay_packet { /* in a buffer */
	struct list node;
	struct edge *from;
	struct overlay_head head; /* of this machine's byte order */
	uint32_t len;
	unsigned char data[];
};

struct overlay_send { /* a message of this node's */
	struct list node;
	struct edge *edge;
	uint32_t target, stream;
	uint8_t kind;
	const unsigned char *data;
	uint64_t len, offset;
	void *copy;              /* of what is left of it */
	struct request *request; /* which ends with it, or NULL */
	int *result;             /* where a call that waits finds its end, or NULL */
};

struct overlay_arrival { /* a message that has come, or comes */
	struct list node;
	uint32_t source, stream;
	uint64_t total, got;
	bool exchanged;
	struct edge *from; /* by which it comes */
	unsigned char data[];
};

/* What one of N bytes counts as among those that are unread: it takes memory, too. */
static inline uint64_t overlay_weight(uint64_t n)
{
	return n < 64 ? 64 : n;
}

struct edge_channel {
	uint32_t room;       /* packets that the neighbour has buffers for */
	uint32_t owed;       /* buffers here of which it does not know yet that they are free */
	uint32_t held;       /* those that are not */
	bool turn;           /* the own messages' */
	struct list through; /* struct overlay_packet: of others, to go out here */
	struct list own;     /* struct overlay_send */
	struct list unused;  /* struct overlay_packet: buffers */
};

struct edge {
	struct list node;    /* of its network's */
	struct list of_peer; /* of its endpoint's */
	struct overlay *net;
	struct endpoint *ep; /* NULL: it has ended */
	uint32_t link, rank;
	bool ready;   /* the neighbour has laid the network, too */
	uint32_t due; /* bits of enum overlay_kind: to be sent */
	struct edge_channel channel[OVERLAY_CHANNELS];
	struct list exchanged; /* struct overlay_arrival */
	uint32_t ahead;        /* those, and the one that comes */
	uint64_t over;         /* packets */
	unsigned char *buffers;
};

struct overlay {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of the context's */
	struct group *group;
	uint32_t number, rank, tag;
	struct slmpm_network shape;
	struct slmpm_overlay_options limits;
	struct edge *edges[SLMPM_NETWORK_LINKS]; /* NULL: the link leads nowhere */
	struct list all;                         /* of them */
	int status;                              /* why it is broken; 0 */
	int32_t culprit;
	char detail[ERROR_DETAIL];
	struct list arrivals; /* struct overlay_arrival, whole */
	struct list waiting;  /* struct overlay_packet: for this node, which has no room */
	struct overlay_arrival **partial; /* by source */
	uint64_t unread;                  /* overlay_weight of all of them */
	uint32_t takers;                  /* calls that wait for messages: there is room */
	uint32_t inside;                  /* calls that wait */
	uint32_t sends;                   /* not ended */
	/* Bits of links: those behind which the tree of routes to node 0 goes on; of them, those where
	 * all nodes are to close. */
	uint32_t children, came;
	bool closing, reported, over; /* this node is; with all behind it; all are */
	uint64_t sent, delivered, forwarded;
	struct offload *offload; /* of a tree, once it is needed */
	uint32_t runs;           /* of it */
	bool reducing;           /* a thread is in one of its calls */
};

/* What a neighbour has sent of a network that is not laid here yet. */
struct overlay_early {
	uint32_t number;
	struct overlay_hello hello;
	int status; /* why it is broken again; 0 */
	int32_t culprit;
};

/* Of an endpoint. */
struct overlays {
	struct list edges; /* struct edge */
	uint32_t last;     /* the highest network laid here */
	uint32_t early;    /* of those after that, which it has laid ahead of this node: ... */
	uint32_t early_room;
	struct overlay_early *hellos;
	bool pushing;
};

extern struct handle_table overlay_table;

/* ---- overlay.c ------------------------------------------------------------------------------- */

/* It is broken, by CULPRIT or -1: the first cause stays. */
COLD void overlay_break(struct overlay *n, int status, int32_t culprit, const char *why);
/* Its error, where it is broken, with the detail. */
static inline int overlay_error(const struct overlay *n)
{
	return UNLIKELY(n->status) ? error_set(-n->status, "%s", n->detail) : 0;
}
/* OVERLAY, its context locked; NULL with *RC. */
struct overlay *overlay_lock(slmpm_overlay overlay, int *rc);
/* Something has happened that calls may wait for. */
void overlay_news(struct overlay *n);
/* All behind a link are to close: perhaps all are. */
void overlay_came(struct overlay *n);
void overlay_is_over(struct overlay *n);
/* Of EP, made when it is first needed; NULL: no memory. */
struct overlays *overlays_of(struct endpoint *ep);
/* The neighbour's network is as this one, or the network is broken. */
void overlay_met(struct edge *e, const struct overlay_hello *hello);

/* As of parts: its contexts and peers. */
void overlay_shut(struct context *ctx);
void overlay_ended(struct endpoint *ep);
void overlay_left(struct endpoint *ep);

/* ---- edge.c: what goes out ------------------------------------------------------------------- */

/* Does anything wait for room in EP's link? */
bool overlay_has_work(const struct endpoint *ep);
/* Sends it as far as there is room: packets. */
int overlay_push(struct endpoint *ep);
/* E has something to send. */
void edge_changed(struct edge *e);
/* A bit of DUE more. */
void edge_due(struct edge *e, enum overlay_kind kind);
/* E goes: that its network is broken still goes out by its connection, when there is room. */
void edge_bid_farewell(struct edge *e);
/* P has left its buffer. */
void packet_release(struct overlay_packet *p);
/* The link by which the route from FROM to TO begins. */
uint32_t overlay_next(const struct overlay *n, uint32_t from, uint32_t to);
/* The channel in which what is for TARGET goes over LINK of FROM. */
uint32_t overlay_channel(const struct overlay *n, uint32_t from, uint32_t link, uint32_t target);
/* E's link, as its neighbour has it. */
uint32_t overlay_back(const struct edge *e);
/* The edge by which the route to TARGET begins, and *CHANNEL. */
struct edge *overlay_edge_to(const struct overlay *n, uint32_t target, uint32_t *channel);
/* S goes, behind those before it. */
void overlay_submit(struct overlay *n, struct overlay_send *s);
/* S has ended. */
void overlay_send_end(struct overlay_send *s, int status);

/* ---- passage.c: what comes in ---------------------------------------------------------------- */

void overlay_arrived(struct endpoint *ep, const struct slmpm_am *am);
/* For a message that begins with H. */
bool overlay_has_room(const struct overlay *n, const struct overlay_head *h);
/* There is room for messages: those that wait come in. */
void overlay_admit(struct overlay *n);
/* Room for a message; NULL: there is no memory. */
struct overlay_arrival *arrival_new(struct overlay *n, const struct overlay_head *h,
				    struct edge *from);
/* It is whole. */
void arrival_whole(struct overlay *n, struct overlay_arrival *a);
void arrival_free(struct overlay *n, struct overlay_arrival *a);

/* ---- mail.c ---------------------------------------------------------------------------------- */

/* As request_ops.explain. */
int overlay_send_failed(const struct request *r);

/* ---- tree.c ---------------------------------------------------------------------------------- */

/* Not locked. 0, or -SLMPM_EBUSY. */
int overlay_tree_close(struct overlay *n);

#endif
