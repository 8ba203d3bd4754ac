/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP fabric's own structures. tcp.c is the table, tcp_socket.c has the calls on sockets,
 * tcp_connect.c brings two ends together, tcp_inlet.c receives, tcp_outlet.c sends, tcp_uring.c
 * does both by io_uring.
 *
 * A frame is a header and its payload, padded to whole segments; the stream is so the image of the
 * peer's ring. A long payload begins 64 bytes behind the frame's first: the kernel copies it
 * quicker where both places agree in their last six bits. The header's first word, little-endian
 * like the rest:
 *
 *     bit 63..55   54..47  46..25   24..0
 *         check    kind    length   consumed total of the other direction, its low bits
 *
 * Kind 0: a credit, 64 bytes with nothing but a header; it takes no segment. The check is of the
 * whole header: a stream that was tampered with or is out of step must not be waited for.
 */
#ifndef FABRICS_TCP_H
#define FABRICS_TCP_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "fabrics/publication.h"
#include "shm/mapping.h"

#define TCP_HEADER   (RING_WORD + FABRIC_HEAD_SIZE)
#define TCP_LEAST    64    /* bytes of any frame */
#define TCP_EVEN     4096  /* payloads from this length on begin behind so many */
#define TCP_LAND_MIN 65536 /* below, a copy costs less than a second call */
#define TCP_TOKEN    16
#define TCP_TRAIN    4  /* packets */
#define TCP_LINGER   16 /* sockets of a domain that have sent all and not yet received all */

/* Where a payload begins in its frame. */
static inline uint32_t tcp_lead(uint32_t length)
{
	return length < TCP_EVEN ? TCP_HEADER : TCP_LEAST;
}

/* Segments of a packet. */
static inline uint32_t tcp_span(uint32_t length, uint32_t shift)
{
	return ring_span(tcp_lead(length) - RING_WORD + length, shift);
}

/* Of the longest: in all but short rings the payload alone may fill a quarter. */
static inline uint32_t tcp_packet_max(const struct ring_shape *shape)
{
	uint32_t k = ring_packet_max(shape) + shape->segments / 1024;
	uint32_t limit = RING_LENGTH_MAX / shape->segment_size;

	return k < limit ? k : limit;
}

/* Its bytes of payload. */
static inline uint32_t tcp_payload_max(const struct ring_shape *shape)
{
	uint32_t bytes = tcp_packet_max(shape) * shape->segment_size;

	return bytes > TCP_EVEN + TCP_HEADER ? bytes - TCP_LEAST : bytes - TCP_HEADER;
}

struct tcp_link;
struct tcp_uring;

struct tcp_domain {
	struct fabric_domain base;            /* its descriptor is an epoll set */
	LIST_HEAD(tcp_links, tcp_link) links; /* connected */
	uint32_t count;                       /* of them */
	uint32_t inspections; /* polls of quiet links since the epoll set was asked */
	struct {
		int socket;
		uint64_t since;  /* ns */
	} lingering[TCP_LINGER]; /* the oldest first */
	uint32_t lingerers;
	struct tcp_uring *uring;
	bool no_uring; /* not wanted, not to be had, or not any more */
	bool uring_sends;
	bool asleep;    /* armed */
	uint32_t armed; /* links that are received by it now */
};

/* What io_uring has received for a link. */
struct tcp_intake {
	bool armed;   /* a receive lies with the kernel; the epoll set does not look for data */
	bool used;    /* that, or something is here: */
	uint8_t calm; /* times that nothing must have come before it is armed again */
	int error;    /* how the socket failed behind what is here */
	uint32_t first, last,
		at; /* buffers, counted from 1, and bytes of the first that are taken */
};

/* What arrives. */
struct tcp_inlet {
	struct double_mapping memory;
	struct ring_reader reader; /* of packets handed out: its totals and their publication */
	_Atomic uint64_t arrived;  /* what it takes for the peer's total: complete frames */
	_Atomic uint64_t notified; /* where it publishes its own */
	unsigned char *ring;
	size_t size;
	size_t read_at; /* of the next packet to hand out */
	size_t scan_at; /* of the first frame that is not complete, */
	size_t tail;    /* bytes received from there on, */
	uint64_t total; /* and the segments before it */
	bool headed;    /* its header is there and sound: */
	uint32_t length, segments;
	bool large; /* so was the one before it */
	bool alone; /* nothing followed that at once */
	/* Of long ones that follow each other: */
	bool flows;        /* the one that has begun is such a one */
	uint64_t whole_at; /* ns, when the last was whole */
	uint64_t pause;    /* and until when nothing is looked for; 0 */
	/* Of the next packet, while it has been handed out without data. */
	struct tcp_landing {
		bool waits, said;     /* it is there; the core has said where to put it */
		unsigned char *place; /* NULL: the ring, at read_at */
	} landing;
};

/* Packets of a message that go by one call, behind what is staged. */
struct tcp_train {
	uint32_t count;
	size_t bytes;
	struct tcp_car {
		unsigned char head[TCP_LEAST];
		uint32_t lead, length, pad;
		const void *data;
	} cars[TCP_TRAIN];
};

/* What leaves. */
struct tcp_outlet {
	struct ring_writer writer; /* its totals alone: the peer's ring is a stream's image */
	/* Taken by post and not by the socket: from head to tail. Behind SIZE reserve has a payload
	 * built. */
	unsigned char *staging;
	size_t head, tail, size, credits;
	struct tcp_train train; /* empty but between two posts of a message */
	bool deferred;          /* a credit that found no room in the staging buffer */
	const char *failed;     /* the socket takes nothing more, and why */
};

#define TCP_CONSUMED_BITS 25 /* a ring has up to 2^24 segments, all or none of them read */
#define TCP_LENGTH_SHIFT  TCP_CONSUMED_BITS
#define TCP_KIND_SHIFT    (TCP_LENGTH_SHIFT + RING_LENGTH_BITS)
#define TCP_CHECK_SHIFT   (TCP_KIND_SHIFT + 8)
_Static_assert(TCP_CHECK_SHIFT == 55, "wire layout");

/* What the word is with its check, REST being the others' XOR: any one bit of the header, and any
 * nine in a row, that differ are noticed. */
static inline uint64_t tcp_checked(uint64_t word, uint64_t rest)
{
	uint64_t x = word & ((UINT64_C(1) << TCP_CHECK_SHIFT) - 1), fold = x ^ rest;

	fold ^= fold >> 36;
	fold ^= fold >> 18;
	fold ^= fold >> 9;
	return x | (fold ^ 0x155) << TCP_CHECK_SHIFT;
}

enum tcp_step { TCP_NEW, TCP_LISTENS, TCP_CALLS, TCP_AWAITS };

#define TCP_UNAUTHENTICATED 8

struct tcp_hello {
	unsigned char magic[8], to[TCP_TOKEN], from[TCP_TOKEN];
};

/* Connecting, until it is done. */
struct tcp_meeting {
	enum tcp_step step;
	int listener; /* where it LISTENS */
	unsigned char token[TCP_TOKEN], peer_token[TCP_TOKEN];
	struct ring_shape peer_shape;
	struct tcp_unauthenticated {
		int socket;
		uint32_t got;
		struct tcp_hello hello;
	} unauthenticated[TCP_UNAUTHENTICATED]; /* the oldest first */
	uint32_t count;
	uint32_t answered; /* bytes of the answer that have come */
	unsigned char answer[TCP_TOKEN];
};

struct tcp_link {
	struct fabric_link base;
	struct tcp_inlet in;
	struct tcp_outlet out;
	struct tcp_intake intake;
	int socket;
	bool open;         /* there is one */
	bool ready;        /* the epoll set says that something is there */
	uint32_t interest; /* what the epoll set waits for; 0: it is out of it, and just read */
	uint32_t streak;   /* in it: receives since then; out of it: vain ones since the last */
	const char *ended; /* nothing more will come, and why */
	bool far;          /* the other end is on another machine, */
	bool prompt;  /* and the kernel never waits for long before it tries again to send to it */
	bool by_bell; /* whether that was asked by the bell the last time */
	const char *broken; /* a rule of the stream that the peer broke */
	struct tcp_meeting *meeting;
	LIST_ENTRY(tcp_link) entry; /* le_prev: NULL where it is not connected */
};

static inline struct tcp_domain *tcp_domain(const struct tcp_link *l)
{
	return (struct tcp_domain *)l->base.domain;
}

/* What the domain sleeps for has changed. */
static inline void tcp_rouse(const struct tcp_link *l)
{
	if (UNLIKELY(tcp_domain(l)->asleep))
		l->base.domain->roused = true;
}

static inline bool tcp_is_over(const struct tcp_link *l)
{
	return l->broken || l->ended || l->out.failed;
}

static inline bool tcp_stages(const struct tcp_link *l)
{
	return l->out.head != l->out.tail || l->out.train.count;
}

/* ---- tcp_socket.c: each a negative errno where it fails ---- */

uint64_t tcp_ns(void);
/* Where a peer finds this side: at LINK's own address, else its bell's, else on loopback. */
int tcp_listen(const struct fabric_link *link, uint16_t *port, uint8_t *family);
/* A socket that is connecting to it. */
int tcp_call(const struct fabric_link *link, uint16_t port, uint8_t family);
/* No gathering delay; another machine that has gone is noticed. */
int tcp_tune(struct tcp_link *l);
/* Bytes read, 0 none yet, -EPIPE the end. */
int tcp_read(int socket, void *to, size_t n);
/* In the epoll set of the domain, for EVENTS; 0: not any more. */
int tcp_watch(struct tcp_domain *d, int socket, struct tcp_link *l, uint32_t before,
	      uint32_t events);
/* Of a connected link: sets its interest. */
int tcp_watch_link(struct tcp_link *l, uint32_t events);
/* All has been sent: closes it once the peer has, too. */
void tcp_linger(struct tcp_domain *d, int socket);
/* Bytes that the socket has taken and the peer's machine has not confirmed, and that an end of this
 * process may take back; negative: not known. */
int tcp_unconfirmed(int socket);
/* Closes the lingering sockets that have received all; or, LAST, all of them. */
void tcp_linger_inspect(struct tcp_domain *d, bool last);
const char *tcp_reason(int error);
/* One option of a socket: 0 or a negative errno. */
int tcp_set(int socket, int level, int name, int value);
/* FABRIC_STATUS with FABRIC_SIGN and these flags. */
void tcp_keepalive(struct tcp_link *l, uint32_t flags);

/* ---- tcp_connect.c ---- */

int tcp_address(struct fabric_link *link, int round, struct fabric_blob *out);
int tcp_connect(struct fabric_link *link, int round, struct fabric_blob *in);
void tcp_disconnect(struct fabric_link *link);

/* ---- tcp_inlet.c ---- */

int tcp_inlet_open(struct tcp_link *l);
void tcp_inlet_close(struct tcp_link *l);
/* Bytes of its ring of that shape, and its bits. */
size_t tcp_inlet_memory(const struct ring_shape *shape);
/* One receive at most: whether anything came. */
bool tcp_receive(struct tcp_link *l);
/* Nothing more will be received. */
void tcp_end(struct tcp_link *l, const char *why);
/* Nothing is worth looking for right now. */
bool tcp_pauses(struct tcp_link *l);
/* Up to N of what has come. */
int tcp_hand_out(struct tcp_link *l, struct fabric_arrival *arrivals, int n);
/* The one that came without data belongs there; NULL: into the ring. */
int tcp_land(struct tcp_link *l, void *place);

/* ---- tcp_outlet.c ---- */

int tcp_outlet_open(struct tcp_link *l, const struct ring_shape *peer);
void tcp_outlet_close(struct tcp_link *l);
/* Bytes that are staged at the most, to a peer whose ring is of that shape. */
size_t tcp_outlet_memory(const struct ring_shape *peer);
/* It takes nothing more. */
void tcp_outlet_fail(struct tcp_link *l, const char *why);
int tcp_send(struct tcp_link *l, const struct fabric_wr *wr);
void *tcp_reserve(struct fabric_link *link, uint32_t length);
/* Our read total, to the peer. */
void tcp_credit(struct tcp_link *l);
/* What is staged, as far as the socket takes it: whether all of it has gone. */
bool tcp_flush(struct tcp_link *l);
/* The peer's read total, in the header's first WORD: is it possible? */
bool tcp_credited(struct ring_writer *w, uint64_t word);

/* ---- tcp_uring.c ---- */

/* Can it be had? By a real try. */
int tcp_uring_try(void);
/* There is one, and it is this thread's. */
bool tcp_uring_open(struct tcp_domain *d);
void tcp_uring_close(struct tcp_domain *d);
/* Takes in what it has received: loads from memory where that is nothing. */
void tcp_uring_inspect(struct tcp_domain *d);
/* The domain is asleep, or awake again. */
void tcp_uring_sleep(struct tcp_domain *d);
/* A plain receive has found nothing: is the link to be received by it from now on? */
bool tcp_uring_wanted(struct tcp_link *l);
void tcp_uring_join(struct tcp_link *l);
/* By plain calls again, behind what has been received. */
void tcp_uring_leave(struct tcp_link *l);
/* And forgets that. */
void tcp_uring_drop(struct tcp_link *l);
/* As recvmsg and sendmsg. */
ssize_t tcp_uring_take(struct tcp_link *l, struct msghdr *msg);
ssize_t tcp_uring_send(struct tcp_link *l, const struct msghdr *msg);

#endif
