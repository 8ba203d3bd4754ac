/* SPDX-License-Identifier: BSD-3-Clause */
/* io_uring as an engine: the ring of a domain. */
#ifndef FABRICS_TCP_URING_H
#define FABRICS_TCP_URING_H

#include <liburing.h>
#include <pthread.h>

#include "fabrics/tcp.h"

#define TCP_URING_BUFFERS     32
#define TCP_URING_BUFFER_SIZE 65536
/* Else they share their places in a cache. */
#define TCP_URING_STRIDE      (TCP_URING_BUFFER_SIZE + 4096 + 192)

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

#endif
