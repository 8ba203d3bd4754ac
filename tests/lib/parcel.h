/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers, bytes and descriptors from one test process to another, whatever machines they are
 * for. */
#ifndef TESTS_LIB_PARCEL_H
#define TESTS_LIB_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARCEL_FDS 4

/* Zeroed, it is empty; its memory serves for the next one. */
struct parcel {
	unsigned char *bytes;
	size_t length, room, taken;
	int fds[PARCEL_FDS];
	int fd_count, fds_taken;
};

void parcel_clear(struct parcel *p);
void parcel_put(struct parcel *p, uint64_t number);
void parcel_put_bytes(struct parcel *p, const void *bytes, size_t n);
/* NULL: "". */
void parcel_put_text(struct parcel *p, const char *text);
/* It stays ours. */
void parcel_put_fd(struct parcel *p, int fd);

/* In the order in which they were put. */
uint64_t parcel_get(struct parcel *p);
/* They lie in the parcel, *N of them. */
const void *parcel_get_bytes(struct parcel *p, size_t *n);
/* Into SIZE bytes, cut. */
void parcel_get_text(struct parcel *p, char *text, size_t size);
/* It is ours. */
int parcel_get_fd(struct parcel *p);

/* Through a stream socket. Receive: false when nothing more comes. */
void parcel_send(int socket, const struct parcel *p);
bool parcel_receive(int socket, struct parcel *p);

#endif
