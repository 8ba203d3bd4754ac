/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor by which the kernel tells of faults (userfaultfd), and the thread that reads it. It
 * touches no memory that is protected.
 */
#ifndef SLMPM_TRACK_FAULT_SERVER_H
#define SLMPM_TRACK_FAULT_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* By the thread, where there is something to read from FD. */
typedef void fault_take(int fd);

struct fault_server {
	pthread_t thread;
	int fd, stop; /* descriptors */
	fault_take *take;
	uint64_t features; /* that fd has */
	bool of_kernel;    /* what the kernel writes for a system call waits, too; else it fails */
};

/* A negative errno. */
int fault_server_start(struct fault_server **server, fault_take *take);
/* Waits for the thread: with no lock that TAKE asks for. */
void fault_server_end(struct fault_server *s);
/* In a child, which has no such thread. */
void fault_server_forget(struct fault_server *s);

#endif
