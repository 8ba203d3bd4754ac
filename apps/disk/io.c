/* SPDX-License-Identifier: BSD-3-Clause */
/* io_uring, or pread and pwrite behind the same calls. */
#include "apps/disk/io.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct finished {
	void *cookie;
	int result;
};

struct io {
	struct io_uring ring;
	int bell; /* -1: plain calls */
	const char *why;
	unsigned depth, in_flight;
	uint64_t first, last; /* of done, modulo depth */
	struct finished *done;
};

static const char *open_ring(struct io *io)
{
	int rc = io_uring_queue_init(io->depth, &io->ring, 0);

	if (rc < 0)
		return strerror(-rc);
	io->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = io->bell < 0 ? -errno : io_uring_register_eventfd(&io->ring, io->bell);
	if (rc == 0)
		return NULL;
	io_uring_queue_exit(&io->ring);
	if (io->bell >= 0)
		close(io->bell);
	io->bell = -1;
	return strerror(-rc);
}

struct io *io_open(unsigned depth, bool plain)
{
	struct io *io = calloc(1, sizeof(*io));

	if (!io)
		return NULL;
	io->bell = -1;
	io->depth = depth;
	io->why = plain ? "not wanted" : open_ring(io);
	if (io->why && !(io->done = calloc(depth, sizeof(*io->done)))) {
		free(io);
		return NULL;
	}
	return io;
}

void io_close(struct io *io)
{
	struct io_uring_cqe *e;

	if (!io->why) {
		io_uring_submit(&io->ring);
		for (; io->in_flight && !io_uring_wait_cqe(&io->ring, &e); io->in_flight--)
			io_uring_cqe_seen(&io->ring, e);
		io_uring_queue_exit(&io->ring);
		close(io->bell);
	}
	free(io->done);
	free(io);
}

const char *io_plain(const struct io *io)
{
	return io->why;
}

int io_fd(const struct io *io)
{
	return io->bell;
}

/* ---- plain calls ---- */

static void do_now(struct io *io, enum io_op op, int fd, void *buf, uint32_t len, uint64_t offset,
		   void *cookie)
{
	ssize_t n = op == IO_READ  ? pread(fd, buf, len, (off_t)offset) :
		    op == IO_WRITE ? pwrite(fd, buf, len, (off_t)offset) :
				     fdatasync(fd);

	io->done[io->last++ % io->depth] =
		(struct finished){.cookie = cookie, .result = n < 0 ? -errno : (int)n};
}

static bool next_done(struct io *io, void **cookie, int *result)
{
	const struct finished *f = &io->done[io->first % io->depth];

	if (io->first == io->last)
		return false;
	*cookie = f->cookie;
	*result = f->result;
	io->first++;
	return true;
}

/* ---- the ring ---- */

void io_begin(struct io *io, enum io_op op, int fd, void *buf, uint32_t len, uint64_t offset,
	      void *cookie)
{
	struct io_uring_sqe *e;

	if (io->why) {
		do_now(io, op, fd, buf, len, offset, cookie);
		return;
	}
	while (!(e = io_uring_get_sqe(&io->ring))) /* never: there are as many as requests */
		io_uring_submit(&io->ring);
	switch (op) {
	case IO_READ: io_uring_prep_read(e, fd, buf, len, offset); break;
	case IO_WRITE: io_uring_prep_write(e, fd, buf, len, offset); break;
	case IO_SYNC: io_uring_prep_fsync(e, fd, IORING_FSYNC_DATASYNC); break;
	}
	io_uring_sqe_set_data(e, cookie);
	io->in_flight++;
}

int io_submit(struct io *io)
{
	int rc;

	if (io->why)
		return 0;
	while (io_uring_sq_ready(&io->ring)) {
		rc = io_uring_submit(&io->ring);
		if (rc == -EAGAIN || rc == -EBUSY)
			return 0; /* what has finished is to be taken first */
		if (rc < 0 && rc != -EINTR)
			return rc;
	}
	return 0;
}

bool io_next(struct io *io, void **cookie, int *result)
{
	struct io_uring_cqe *e;
	uint64_t count;

	if (io->why)
		return next_done(io, cookie, result);
	if (io_uring_peek_cqe(&io->ring, &e)) {
		/* Quiet the bell, then look again: what came in between must not be slept over. */
		if (read(io->bell, &count, sizeof(count)) < 0 || io_uring_peek_cqe(&io->ring, &e))
			return false;
	}
	*cookie = io_uring_cqe_get_data(e);
	*result = e->res;
	io_uring_cqe_seen(&io->ring, e);
	io->in_flight--;
	return true;
}
