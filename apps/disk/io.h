/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The controller's input and output: many requests at once through io_uring; where that is refused,
 * one after the other by plain calls.
 */
#ifndef DISK_IO_H
#define DISK_IO_H

#include <stdbool.h>
#include <stdint.h>

enum io_op { IO_READ, IO_WRITE, IO_SYNC };

struct io;

/* DEPTH requests at most are under way. PLAIN: do not even try io_uring. NULL: no memory. */
struct io *io_open(unsigned depth, bool plain);
/* Waits for what is under way: nothing touches its memory any more. */
void io_close(struct io *io);
/* NULL, or why it is not io_uring. */
const char *io_plain(const struct io *io);
/* Readable when something may have finished; -1: nothing is ever left unfinished. */
int io_fd(const struct io *io);
/* Begins; the end is io_next's to tell. */
void io_begin(struct io *io, enum io_op op, int fd, void *buf, uint32_t len, uint64_t offset,
	      void *cookie);
/* Hands what was begun to the kernel: once for many. 0 or -errno. */
int io_submit(struct io *io);
/* One that has finished: its COOKIE and RESULT, bytes or -errno. False: none has. */
bool io_next(struct io *io, void **cookie, int *result);

#endif
