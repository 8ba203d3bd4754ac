/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -luring */
/*
 * io_uring as the engine of a domain's links. A receive that stays lies with the kernel for each
 * quiet link; what comes is put into buffers of the domain, and a word in memory tells of it. From
 * there it is copied to where the inlet wants it: the kernel writes nowhere else, and whatever
 * becomes of a link or its ring, no request has to be waited for. Task work runs only when asked
 * for (DEFER_TASKRUN): no call of the application's is interrupted, and nothing is read from a
 * socket behind its back.
 *
 * Such a ring is one thread's. When another comes with the context, it is given up and made again,
 * a few times.
 */
#include <errno.h>
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
#define ATTEMPTS    100  /* to leave it, of 10 ms: a cancelled receive ends at once */
#define CALM        8    /* receives that find nothing, after a long packet */
/* Of requests that are not a link's receive. */
#define NONE        0
#define SENT        1
#define FLAGS                                                                                      \
	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |     \
	 IORING_SETUP_CQSIZE)

/* ---- the ring ------------------------------------------------------------------------------- */

/* Buffer I is the kernel's. */
static void provide(struct tcp_uring *u, uint32_t i)
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
			provide(u, i);
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
	void *memory;

	if (!u)
		return -ENOMEM;
	u->completions = COMPLETIONS;
	u->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u->memory = memory == MAP_FAILED ? NULL : memory;
	if (u->bell < 0 || !u->memory) {
		int rc = -errno;

		tcp_uring_discard(u);
		return rc;
	}
	u->provided = (struct io_uring_buf_ring *)(void *)(u->memory + MEMORY - 4096);
	(void)madvise(memory, MEMORY, MADV_DONTFORK);
	*out = u;
	return 0;
}

/* ---- what comes ----------------------------------------------------------------------------- */

/* Plain calls serve the link from now on; something may have come meanwhile. */
static void loosen(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_domain(l);

	l->intake.armed = false;
	d->armed--;
	l->ready = true;
	if (!l->ended)
		(void)tcp_watch_link(l, l->interest | EPOLLIN);
}

static void keep(struct tcp_uring *u, struct tcp_link *l, uint32_t i, int length)
{
	struct tcp_intake *k = &l->intake;

	if (i >= TCP_URING_BUFFERS || u->buffers[i].held)
		return;
	if (length <= 0) {
		provide(u, i);
		return;
	}
	u->buffers[i] = (struct tcp_uring_buffer){.length = (uint32_t)length, .held = true};
	if (k->first)
		u->buffers[k->last - 1].next = i + 1;
	else
		k->first = i + 1;
	k->last = i + 1;
}

/* What a plain call on the socket would say all the same, or has nothing to do with it. */
static bool passes(int result)
{
	return result >= 0 || result == -ENOBUFS || result == -ECANCELED || result == -EINTR ||
	       result == -EAGAIN || result == -ENOMEM || result == -EINVAL || result == -EOPNOTSUPP;
}

/* What a link's receive says. */
static void received(struct tcp_uring *u, const struct io_uring_cqe *e)
{
	struct tcp_link *l = io_uring_cqe_get_data(e);

	if (e->flags & IORING_CQE_F_BUFFER)
		keep(u, l, e->flags >> IORING_CQE_BUFFER_SHIFT, e->res);
	if (!passes(e->res))
		l->intake.error = -e->res;
	if (!(e->flags & IORING_CQE_F_MORE))
		loosen(l);
	l->ready = true;
}

/* Some link has bytes, or an error, that are not taken yet. */
static bool has_something(const struct tcp_domain *d)
{
	struct tcp_link *l;

	LIST_FOREACH(l, &d->links, entry)
		if ((l->intake.first || l->intake.error) && !l->ended && !l->base.over)
			return true;
	return false;
}

/* ---- what it tells -------------------------------------------------------------------------- */

/* Takes in what memory tells. */
static void reap(struct tcp_uring *u)
{
	struct io_uring_cqe *e;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, e)
	{
		n++;
		if (e->user_data == SENT)
			u->sent = e->res;
		else if (e->user_data != NONE)
			received(u, e);
	}
	io_uring_cq_advance(&u->ring, n);
}

/*
 * Without it until it is opened again; its links go by plain calls. Another thread has the context:
 * none of the requests will do anything any more, for they would only where their own thread asked
 * for it. What they have done stands in memory.
 */
static COLD void give_up(struct tcp_domain *d)
{
	struct tcp_uring *u = d->uring;
	struct tcp_link *l;

	reap(u);
	LIST_FOREACH(l, &d->links, entry)
		if (l->intake.armed)
			loosen(l);
	io_uring_queue_exit(&u->ring);
	u->open = u->asleep = false;
	if (++u->threads >= THREADS)
		d->no_uring = true;
}

/* Another thread's is given up first. */
static bool tcp_uring_is_ours(struct tcp_domain *d)
{
	if (d->uring->open && !pthread_equal(d->uring->owner, pthread_self()))
		give_up(d);
	return d->uring->open;
}

/* With what found no room at once: it would be lost if another thread were the next to ask. */
static void reap_all(struct tcp_uring *u)
{
	do
		reap(u);
	while (IO_URING_READ_ONCE(*u->ring.sq.kflags) & IORING_SQ_CQ_OVERFLOW &&
	       io_uring_get_events(&u->ring) >= 0);
}

/* RC: the kernel's answer. -EEXIST: a thread that has ended had the number of this one. What it
 * refuses now it will refuse again. */
static void tcp_uring_asked(struct tcp_domain *d, int rc)
{
	if (rc >= 0 || rc == -EINTR || rc == -ETIME || rc == -EAGAIN || rc == -EBUSY ||
	    rc == -ENOMEM) {
		reap_all(d->uring);
	} else {
		d->no_uring |= rc != -EEXIST;
		give_up(d);
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
		reap(u);
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

/* Whether the one request that was prepared is with the kernel. */
static bool submitted(struct tcp_domain *d, struct io_uring_sqe *e)
{
	struct tcp_uring *u = d->uring;
	int rc = io_uring_submit(&u->ring);

	if (!io_uring_sq_ready(&u->ring))
		return true;
	io_uring_prep_nop(e);
	io_uring_sqe_set_data64(e, NONE);
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
	if (d->asleep && has_something(d))
		(void)!write(u->bell, &n, sizeof(n));
	u->asleep = d->asleep;
}

/* ---- joining and leaving -------------------------------------------------------------------- */

void tcp_uring_join(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_domain(l);
	struct io_uring_sqe *e;

	if (l->intake.armed || !tcp_uring_open(d) || !(e = io_uring_get_sqe(&d->uring->ring)))
		return;
	io_uring_prep_recv_multishot(e, l->socket, NULL, 0, 0);
	e->flags |= IOSQE_BUFFER_SELECT;
	io_uring_sqe_set_data(e, l);
	if (!submitted(d, e))
		return;
	l->intake.armed = l->intake.used = true;
	l->base.quiet = false; /* that the epoll set has had nothing says nothing from now on */
	d->armed++;
	(void)tcp_watch_link(l, l->interest & ~(uint32_t)EPOLLIN);
	if (d->asleep)
		tcp_uring_sleep(d);
}

bool tcp_uring_wanted(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_domain(l);
	struct tcp_intake *k = &l->intake;
	uint8_t engine = d->base.config.engine;

	if (d->no_uring || (engine != FABRIC_ENGINE_URING && engine != FABRIC_ENGINE_URING_RECV))
		return false;
	/* Where long ones come, joining and leaving would cost more than it brings. */
	if (l->in.headed || l->in.large)
		k->calm = CALM;
	else if (k->calm)
		k->calm--;
	else
		return true;
	return false;
}

void tcp_uring_leave(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_domain(l);
	struct __kernel_timespec ms = {.tv_nsec = 10000000};
	struct io_uring_cqe *any;
	struct io_uring_sqe *e;

	if (!l->intake.armed || !tcp_uring_is_ours(d))
		return;
	e = io_uring_get_sqe(&d->uring->ring);
	if (e) {
		io_uring_prep_cancel(e, l, 0);
		io_uring_sqe_set_data64(e, NONE);
		tcp_uring_asked(d, io_uring_submit_and_get_events(&d->uring->ring));
	}
	for (int i = 0; i < ATTEMPTS && l->intake.armed; i++)
		tcp_uring_asked(d, io_uring_wait_cqe_timeout(&d->uring->ring, &any, &ms));
	if (l->intake.armed)
		give_up(d);
}

void tcp_uring_drop(struct tcp_link *l)
{
	struct tcp_intake *k = &l->intake;
	struct tcp_domain *d = tcp_domain(l);

	tcp_uring_leave(l);
	while (k->first) {
		uint32_t i = k->first - 1;

		k->first = d->uring->buffers[i].next;
		provide(d->uring, i);
	}
	*k = (struct tcp_intake){0};
}

/* ---- moving bytes --------------------------------------------------------------------------- */

/* Up to N bytes of what has come. */
static size_t copy_out(struct tcp_uring *u, struct tcp_intake *k, unsigned char *to, size_t n)
{
	size_t done = 0;

	while (k->first && done < n) {
		uint32_t i = k->first - 1;
		struct tcp_uring_buffer *b = &u->buffers[i];
		size_t part = b->length - k->at;

		part = part < n - done ? part : n - done;
		memcpy(to + done, u->memory + (size_t)i * TCP_URING_STRIDE + k->at, part);
		done += part;
		k->at += (uint32_t)part;
		if (k->at == b->length) {
			k->at = 0;
			k->first = b->next;
			provide(u, i);
		}
	}
	return done;
}

ssize_t tcp_uring_take(struct tcp_link *l, struct msghdr *msg)
{
	struct tcp_intake *k = &l->intake;
	struct tcp_domain *d = tcp_domain(l);
	size_t done = 0;

	if (!k->first && k->armed)
		tcp_uring_inspect(d);
	for (size_t i = 0; i < (size_t)msg->msg_iovlen && k->first; i++)
		done += copy_out(d->uring, k, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	if (done)
		return (ssize_t)done;
	if (!k->armed && !k->error) {
		k->used = false;
		return recvmsg(l->socket, msg, 0);
	}
	errno = k->error ? k->error : EAGAIN;
	return -1;
}

ssize_t tcp_uring_send(struct tcp_link *l, const struct msghdr *msg)
{
	struct tcp_domain *d = tcp_domain(l);
	struct io_uring_sqe *e = NULL;

	if (!d->asleep && tcp_uring_open(d)) /* asleep, its end would ring our own bell */
		e = io_uring_get_sqe(&d->uring->ring);
	if (!e)
		return sendmsg(l->socket, msg, MSG_NOSIGNAL);
	/* So it is done, or refused, when the call returns. */
	io_uring_prep_sendmsg(e, l->socket, msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	io_uring_sqe_set_data64(e, SENT);
	d->uring->sent = -EAGAIN;
	if (!submitted(d, e))
		return sendmsg(l->socket, msg, MSG_NOSIGNAL);
	reap(d->uring);
	if (d->uring->sent >= 0)
		return d->uring->sent;
	errno = -d->uring->sent;
	return -1;
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
