/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -luring */
/*
 * io_uring as the engine of a domain's links: the ring and its completions. A receive that stays lies with the
 * kernel for each quiet link; what comes is put into buffers of the domain, and a word in memory tells of it.
 * From there it is copied to where the inlet wants it: the kernel writes nowhere else, and whatever becomes of
 * a link or its ring, no request has to be waited for. Task work runs only when we ask for it (DEFER_TASKRUN): no call of the
 * application's is interrupted, and nothing is read from a socket behind its back.
 *
 * Such a ring is one thread's. When another comes with the context, it is given up and made again, a few times.
 */
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/tcp_uring.h"

#define MEMORY      ((size_t)TCP_URING_BUFFERS * TCP_URING_STRIDE / 4096 * 4096 + 2 * 4096)
#define SUBMISSIONS 8    /* each goes at once */
#define COMPLETIONS 1024 /* beyond, the kernel keeps them until it is asked */
#define THREADS     4    /* that it is made again for */
#define FLAGS                                                                                      \
	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |     \
	 IORING_SETUP_CQSIZE)

/* ---- the ring ------------------------------------------------------------------------------- */

void tcp_uring_provide(struct tcp_uring *u, uint32_t i)
{
	u->buffers[i].held = false;
	if (!u->open)
		return;
	io_uring_buf_ring_add(u->provided, u->memory + (size_t)i * TCP_URING_STRIDE,
			      TCP_URING_BUFFER_SIZE, (unsigned short)i, TCP_URING_BUFFERS - 1, 0);
	io_uring_buf_ring_advance(u->provided, 1);
}

static int tcp_uring_set_up(struct tcp_uring *u)
{
	struct io_uring_params p = {.flags = FLAGS, .cq_entries = u->completions};
	struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)u->provided,
				       .ring_entries = TCP_URING_BUFFERS};
	int rc = io_uring_queue_init_params(SUBMISSIONS, &u->ring, &p);

	if (rc < 0)
		return rc;
	io_uring_buf_ring_init(u->provided);
	rc = io_uring_ring_dontfork(&u->ring);
	if (rc == 0)
		rc = io_uring_register_buf_ring(&u->ring, &reg, 0);
	if (rc == 0)
		rc = io_uring_register_eventfd(&u->ring, u->bell);
	if (rc == 0)
		rc = io_uring_cq_eventfd_toggle(&u->ring, false);
	if (rc < 0) {
		io_uring_queue_exit(&u->ring);
		return rc;
	}
	u->open = true;
	u->owner = pthread_self();
	for (uint32_t i = 0; i < TCP_URING_BUFFERS; i++)
		if (!u->buffers[i].held)
			tcp_uring_provide(u, i);
	return 0;
}

static void tcp_uring_discard(struct tcp_uring *u)
{
	if (!u)
		return;
	if (u->open)
		io_uring_queue_exit(&u->ring);
	if (u->memory)
		munmap(u->memory, MEMORY);
	if (u->bell >= 0)
		close(u->bell);
	free(u);
}

/* Its memory and bell, without the ring. */
static int tcp_uring_create(struct tcp_uring **out)
{
	struct tcp_uring *u = calloc(1, sizeof(*u));
	size_t size = MEMORY;
	void *memory;
	int rc = -ENOMEM;

	if (!u)
		return rc;
	u->completions = COMPLETIONS;
	u->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->bell < 0) {
		rc = -errno;
		tcp_uring_discard(u);
		return rc;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		tcp_uring_discard(u);
		return rc;
	}
	u->memory = memory;
	u->provided = (struct io_uring_buf_ring *)(void *)(u->memory + MEMORY - 4096);
	(void)madvise(memory, size, MADV_DONTFORK);
	*out = u;
	return 0;
}

/* ---- what it tells -------------------------------------------------------------------------- */

void tcp_uring_reap(struct tcp_uring *u)
{
	struct io_uring_cqe *e;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, e)
	{
		n++;
		if (e->user_data == TCP_URING_SENT)
			u->sent = e->res;
		else if (e->user_data != TCP_URING_NONE)
			tcp_uring_received(u, e);
	}
	io_uring_cq_advance(&u->ring, n);
}

/* Another thread has the context: none of the requests will do anything any more, for they would do so only
 * where their own thread asked for it. What they have done is told in memory. */
COLD void tcp_uring_give_up(struct tcp_domain *d)
{
	struct tcp_uring *u = d->uring;

	tcp_uring_reap(u);
	for (struct tcp_link *l = d->links; l; l = l->next)
		if (l->intake.armed)
			tcp_uring_loosen(l);
	io_uring_queue_exit(&u->ring);
	u->open = u->asleep = false;
	if (++u->threads >= THREADS)
		d->no_uring = true;
}

bool tcp_uring_is_ours(struct tcp_domain *d)
{
	if (d->uring->open && !pthread_equal(d->uring->owner, pthread_self()))
		tcp_uring_give_up(d);
	return d->uring->open;
}

/* With what found no room at once: it would be lost if another thread were the next to ask. */
static void reap_all(struct tcp_uring *u)
{
	do
		tcp_uring_reap(u);
	while (IO_URING_READ_ONCE(*u->ring.sq.kflags) & IORING_SQ_CQ_OVERFLOW &&
	       io_uring_get_events(&u->ring) >= 0);
}

/* The kernel's answer. -EEXIST: a thread that has ended had the number of this one. What it refuses now it
 * will refuse again. */
void tcp_uring_asked(struct tcp_domain *d, int rc)
{
	if (rc >= 0 || rc == -EINTR || rc == -ETIME || rc == -EAGAIN || rc == -EBUSY ||
	    rc == -ENOMEM) {
		reap_all(d->uring);
	} else {
		d->no_uring |= rc != -EEXIST;
		tcp_uring_give_up(d);
	}
}

void tcp_uring_inspect(struct tcp_domain *d)
{
	struct tcp_uring *u = d->uring;

	if (!u || !u->open)
		return;
	if (IO_URING_READ_ONCE(*u->ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) {
		if (tcp_uring_is_ours(d))
			tcp_uring_asked(d, io_uring_get_events(&u->ring));
	} else if (io_uring_cq_ready(&u->ring)) {
		tcp_uring_reap(u);
	}
}

/* ---- a domain's, and its links' ------------------------------------------------------------- */

bool tcp_uring_open(struct tcp_domain *d)
{
	int rc = 0;

	if (d->no_uring)
		return false;
	if (!d->uring) {
		rc = tcp_uring_create(&d->uring);
		if (rc == 0)
			rc = tcp_watch(d, d->uring->bell, NULL, 0, EPOLLIN);
	}
	if (rc == 0 && !tcp_uring_is_ours(d) && !d->no_uring)
		rc = tcp_uring_set_up(d->uring);
	if (rc < 0)
		d->no_uring = true;
	return !d->no_uring;
}

void tcp_uring_close(struct tcp_domain *d)
{
	struct tcp_uring *u = d->uring;

	d->uring = NULL;
	if (u && d->base.forked) { /* of its memory a child has nothing */
		if (u->open)
			close(u->ring.ring_fd);
		u->open = false;
		u->memory = NULL;
	}
	tcp_uring_discard(u);
}

bool tcp_uring_submitted(struct tcp_domain *d, struct io_uring_sqe *e)
{
	struct tcp_uring *u = d->uring;
	int rc = io_uring_submit(&u->ring);

	if (!io_uring_sq_ready(&u->ring))
		return true;
	io_uring_prep_nop(e);
	io_uring_sqe_set_data64(e, TCP_URING_NONE);
	tcp_uring_asked(d, rc);
	return false;
}

/* ---- sleeping ------------------------------------------------------------------------------- */

void tcp_uring_sleep(struct tcp_domain *d)
{
	struct tcp_uring *u = d->uring;
	uint64_t n = 1;

	if (!d->asleep) {
		if (u->open)
			(void)io_uring_cq_eventfd_toggle(&u->ring, false);
		if (u->asleep)
			(void)!read(u->bell, &n, sizeof(n));
	} else if (tcp_uring_is_ours(d)) {
		/* First the bell, then what came without one. */
		(void)io_uring_cq_eventfd_toggle(&u->ring, true);
		tcp_uring_asked(d, io_uring_get_events(&u->ring));
	}
	if (d->asleep && tcp_uring_has_something(d))
		(void)!write(u->bell, &n, sizeof(n));
	u->asleep = d->asleep;
}

/* ---- can it be had? ------------------------------------------------------------------------- */

/* A byte, all the way. */
static int receive_one(struct tcp_uring *u, const int pair[2])
{
	struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);
	struct io_uring_cqe *c;
	int rc;

	io_uring_prep_recv_multishot(e, pair[0], NULL, 0, 0);
	e->flags |= IOSQE_BUFFER_SELECT;
	rc = io_uring_submit(&u->ring);
	if (rc != 1)
		return rc < 0 ? rc : -EIO;
	if (write(pair[1], "x", 1) != 1 || io_uring_get_events(&u->ring) < 0 ||
	    io_uring_peek_cqe(&u->ring, &c) != 0)
		return -EIO;
	return c->res < 0 ? c->res : c->res == 1 && c->flags & IORING_CQE_F_BUFFER ? 0 : -EIO;
}

int tcp_uring_try(void)
{
	struct tcp_uring *u;
	int pair[2], rc = tcp_uring_create(&u);

	if (rc < 0)
		return rc;
	rc = tcp_uring_set_up(u);
	if (rc == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
		rc = receive_one(u, pair);
		close(pair[0]);
		close(pair[1]);
	}
	tcp_uring_discard(u);
	return rc;
}
