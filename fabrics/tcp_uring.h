/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two halves of io_uring as an engine know of each other: the ring, and the links it receives for. */
#ifndef FABRICS_TCP_URING_H
#define FABRICS_TCP_URING_H

#include <liburing.h>
#include <pthread.h>

#include "fabrics/tcp.h"

#define TCP_URING_BUFFERS     32
#define TCP_URING_BUFFER_SIZE 65536
/* Else they share their places in a cache. */
#define TCP_URING_STRIDE      (TCP_URING_BUFFER_SIZE + 4096 + 192)

/* Of requests that are not a link's receive. */
#define TCP_URING_NONE 0
#define TCP_URING_SENT 1

struct tcp_uring_buffer {
	uint32_t next, length; /* of a link's that it is among; next counts from 1 */
	bool held;
};

struct tcp_uring {
	struct io_uring ring;
	bool open, asleep;
	pthread_t owner;
	uint32_t threads;     /* that it was one of */
	uint32_t completions; /* that it has room for */
	int bell;             /* rings while asleep, and only then */
	int sent;             /* result of the last send */
	struct io_uring_buf_ring *provided;
	unsigned char *memory;
	struct tcp_uring_buffer buffers[TCP_URING_BUFFERS];
};

static inline struct tcp_domain *tcp_uring_domain(const struct tcp_link *l)
{
	return (struct tcp_domain *)l->base.domain;
}

/* ---- tcp_uring.c: the ring ---- */

/* Buffer I is the kernel's. */
void tcp_uring_provide(struct tcp_uring *u, uint32_t i);
/* Takes in what memory tells. */
void tcp_uring_reap(struct tcp_uring *u);
/* Without it until it is opened again; its links go by plain calls. */
void tcp_uring_give_up(struct tcp_domain *d);
/* Another thread's is given up first. */
bool tcp_uring_is_ours(struct tcp_domain *d);
/* RC is the kernel's answer. */
void tcp_uring_asked(struct tcp_domain *d, int rc);
/* Whether the one request that was prepared is with the kernel. */
bool tcp_uring_submitted(struct tcp_domain *d, struct io_uring_sqe *e);

/* ---- tcp_uring_link.c: links and their bytes ---- */

/* What a link's receive says. */
void tcp_uring_received(struct tcp_uring *u, const struct io_uring_cqe *e);
/* Plain calls serve the link from now on; something may have come meanwhile. */
void tcp_uring_loosen(struct tcp_link *l);
/* Some link has bytes, or an error, that nobody has taken yet. */
bool tcp_uring_has_something(const struct tcp_domain *d);

#endif
