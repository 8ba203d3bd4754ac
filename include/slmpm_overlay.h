/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks over links: a torus, mesh or tree (<slmpm_network.h>) laid over a group, of which each
 * node has connections with its neighbours alone. What is sent to other nodes goes from node to
 * node; those between pass it on in any call of theirs that makes progress, and with
 * SLMPM_ENGINE=thread while their applications sleep. Not a part of <slmpm.h>: include it beside
 * that.
 *
 * Each network has its own packet buffers, a number for each channel of each link, and a packet
 * goes on only when the next node has one for it: so it cannot deadlock (slmpm_network_channel),
 * nor is one network in the way of another over the same group. Source: row D6.
 */
#ifndef SLMPM_API_OVERLAY_H
#define SLMPM_API_OVERLAY_H

#include <slmpm.h>
#include <slmpm_group.h>
#include <slmpm_network.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	uint64_t id;
} slmpm_overlay; /* a network over a group, as this node has it */

struct slmpm_overlay_options { /* NULL, or 0: as said; all but UNREAD_MAX the same at all nodes */
	uint32_t size;
	uint32_t buffers;     /* packets that a node keeps for a channel of a link: 8 */
	uint32_t packet;      /* bytes of a message that go at once: 4096; at least 16 */
	uint32_t flags;       /* zero, or SLMPM_EINVAL */
	uint64_t message_max; /* bytes of a message: 16 MiB */
	/* Bytes of messages that have come and that no call takes, each 64 at least: 64 MiB. More
	 * stay in the buffers, where they are in the way of others, until a call receives. */
	uint64_t unread_max;
};

#define SLMPM_OVERLAY_BUFFERS 1024  /* at most */
#define SLMPM_OVERLAY_PACKET  32768 /* at most */
#define SLMPM_OVERLAY_MAX     1024  /* networks that a group has in its life */

/*
 * Lays NETWORK over GROUP: rank r of the group is its node r, and it has as many nodes as the group
 * members. All members do so, with the same network and options, several in the same order. Blocks
 * until the neighbours have: connections with them are made by need (slmpm_group_peer). The group
 * stays until its networks are closed. SLMPM_EINVAL, also where a neighbour has laid another one;
 * SLMPM_ETIMEOUT, SLMPM_EAGAIN, SLMPM_EDEAD, SLMPM_ECLOSED: the detail names who has not; the
 * number of networks that the group has had has grown all the same. SLMPM_ELIMIT, SLMPM_ESTATE,
 * SLMPM_ENOMEM.
 */
SLMPM_API int slmpm_overlay_open(slmpm_overlay *overlay, slmpm_group group,
				 const struct slmpm_network *network,
				 const struct slmpm_overlay_options *options, int timeout_ms);
/*
 * Blocks until all nodes have come to it: until then this one passes on what others send. What has
 * come and was not received is gone. A network that is broken is closed at once. SLMPM_EBUSY: a
 * call waits in it, or what it has begun has not ended; SLMPM_ETIMEOUT, SLMPM_EAGAIN (TIMEOUT_MS
 * is 0): it has come, and another call goes on.
 */
SLMPM_API int slmpm_overlay_close(slmpm_overlay overlay, int timeout_ms);

/*
 * Sends LEN bytes at DATA to node RANK. Those from one node to another come in the order of the
 * calls. Without HOW and REQ, or by how->timeout_ms, blocks until DATA is the caller's again; else
 * as slmpm_sendv (SLMPM_OP_SEND, .stream, .len; .imm of an error the rank that it is about). It
 * cannot be taken back. SLMPM_ETIMEOUT, SLMPM_EAGAIN: nothing of it has gone, for want of buffers;
 * SLMPM_ELIMIT: longer than message_max, or to this node itself, which leaves too much unread;
 * SLMPM_EINVAL.
 * This call and all that follow: where a node dies, ends its context, or breaks the rules, the
 * network is broken: SLMPM_EDEAD, SLMPM_ECLOSED, SLMPM_EPROTO, and the detail names the node.
 */
SLMPM_API int slmpm_overlay_send(slmpm_overlay overlay, uint32_t rank, uint32_t stream,
				 const void *data, uint64_t len, const struct slmpm_how *how,
				 slmpm_req *req);

struct slmpm_overlay_message {
	uint32_t size;
	uint32_t source; /* the node */
	uint32_t stream;
	uint32_t reserved;
	uint64_t len;
};

#define SLMPM_OVERLAY_ANY UINT32_MAX

/*
 * Takes the first message from node RANK, or from any, on STREAM or SLMPM_ANY_STREAM, into ROOM
 * bytes at DATA: its length. MESSAGE, or NULL: what it is. SLMPM_ETRUNC: it is longer, MESSAGE says
 * what it is, and it stays. SLMPM_ETIMEOUT, SLMPM_EAGAIN. What has come can still be received when
 * the network is broken.
 */
SLMPM_API int64_t slmpm_overlay_recv(slmpm_overlay overlay, uint32_t rank, uint32_t stream,
				     void *data, uint64_t room,
				     struct slmpm_overlay_message *message, int timeout_ms);

/*
 * Each node with all its neighbours at once: OUT[l] goes over link l, and what the neighbour over
 * there sends so comes into IN[l], whose len is then what came. Of links that lead nowhere both are
 * left. All neighbours make as many of these calls; messages are apart from those. Blocks until
 * all has come, and OUT is the caller's again. SLMPM_ETRUNC: one is longer than IN[l], of which
 * that much came. SLMPM_ETIMEOUT: and the network is broken, for half of it may have come.
 */
SLMPM_API int slmpm_overlay_exchange(slmpm_overlay overlay,
				     const struct slmpm_iov out[SLMPM_NETWORK_LINKS],
				     struct slmpm_iov in[SLMPM_NETWORK_LINKS], int timeout_ms);

/*
 * Over a tree, all nodes in the same order: COLL is a barrier, or a broadcast, reduce or allreduce
 * (of any root given as 0), which goes along the tree's links as entries of work queues: with
 * SLMPM_ENGINE=thread while all applications sleep. Its buffers stay with the library until it has
 * ended. CTR, or {0}, counts that; slmpm_overlay_wait takes it. SLMPM_EAGAIN: as many as may be are
 * under way; SLMPM_ENOTSUP: another kind, one with COMBINE or counts, or a network that is no tree.
 */
SLMPM_API int slmpm_overlay_start(slmpm_overlay overlay, const struct slmpm_coll *coll,
				  uint64_t cookie, slmpm_ctr ctr);
/* The next of these that has ended: 0 and *COOKIE; or its error, *COOKIE and the detail.
 * SLMPM_ENOENT: none is under way; SLMPM_ETIMEOUT, SLMPM_EAGAIN; *COOKIE is left. SLMPM_EBUSY:
 * another thread is in one of these two. */
SLMPM_API int slmpm_overlay_wait(slmpm_overlay overlay, uint64_t *cookie, int timeout_ms);

struct slmpm_overlay_info {
	uint32_t size;
	uint32_t rank;
	int32_t status;  /* 0; or why it is broken, ... */
	int32_t culprit; /* ... and by which node; -1: none */
	uint32_t buffers, packet;
	uint32_t held[2];                   /* packets in this node's buffers, by channel */
	uint64_t sent;                      /* packets of this node's own messages */
	uint64_t delivered;                 /* packets for this node */
	uint64_t forwarded;                 /* of others, passed on */
	uint64_t over[SLMPM_NETWORK_LINKS]; /* packets that went over each link, own and others' */
	uint64_t unread; /* bytes of messages that have come: each counts as 64 at least */
};

SLMPM_API int slmpm_overlay_query(slmpm_overlay overlay, struct slmpm_overlay_info *info);

#ifdef __cplusplus
}
#endif

#endif
