/* SPDX-License-Identifier: BSD-3-Clause */
/* io_uring as the engine of a domain's links: which links it receives for, and where their bytes go. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fabrics/tcp_uring.h"

#define LEAVE_ATTEMPTS 100 /* of 10 ms: a cancelled receive ends at once */
#define CALM           8   /* receives that find nothing, after a long packet */

/* ---- what comes ----------------------------------------------------------------------------- */

void tcp_uring_loosen(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_uring_domain(l);

	l->intake.armed = false;
	d->armed--;
	l->ready = true;
	if (!l->ended)
		(void)tcp_watch_link(l, l->interest | EPOLLIN);
}

static void tcp_uring_link_keep(struct tcp_uring *u, struct tcp_link *l, uint32_t i, int length)
{
	struct tcp_intake *k = &l->intake;

	if (i >= TCP_URING_BUFFERS || u->buffers[i].held)
		return;
	if (length <= 0) {
		tcp_uring_provide(u, i);
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

void tcp_uring_received(struct tcp_uring *u, const struct io_uring_cqe *e)
{
	struct tcp_link *l = io_uring_cqe_get_data(e);

	if (e->flags & IORING_CQE_F_BUFFER)
		tcp_uring_link_keep(u, l, e->flags >> IORING_CQE_BUFFER_SHIFT, e->res);
	if (!passes(e->res))
		l->intake.error = -e->res;
	if (!(e->flags & IORING_CQE_F_MORE))
		tcp_uring_loosen(l);
	l->ready = true;
}

bool tcp_uring_has_something(const struct tcp_domain *d)
{
	for (const struct tcp_link *l = d->links; l; l = l->next)
		if ((l->intake.first || l->intake.error) && !l->ended && !l->base.over)
			return true;
	return false;
}

/* ---- joining and leaving -------------------------------------------------------------------- */

void tcp_uring_join(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_uring_domain(l);
	struct io_uring_sqe *e;

	if (l->intake.armed || !tcp_uring_open(d) || !(e = io_uring_get_sqe(&d->uring->ring)))
		return;
	io_uring_prep_recv_multishot(e, l->socket, NULL, 0, 0);
	e->flags |= IOSQE_BUFFER_SELECT;
	io_uring_sqe_set_data(e, l);
	if (!tcp_uring_submitted(d, e))
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
	struct tcp_domain *d = tcp_uring_domain(l);
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
	struct tcp_domain *d = tcp_uring_domain(l);
	struct __kernel_timespec ms = {.tv_nsec = 10000000};
	struct io_uring_cqe *any;
	struct io_uring_sqe *e;

	if (!l->intake.armed || !tcp_uring_is_ours(d))
		return;
	e = io_uring_get_sqe(&d->uring->ring);
	if (e) {
		io_uring_prep_cancel(e, l, 0);
		io_uring_sqe_set_data64(e, TCP_URING_NONE);
		tcp_uring_asked(d, io_uring_submit_and_get_events(&d->uring->ring));
	}
	for (int i = 0; i < LEAVE_ATTEMPTS && l->intake.armed; i++)
		tcp_uring_asked(d, io_uring_wait_cqe_timeout(&d->uring->ring, &any, &ms));
	if (l->intake.armed)
		tcp_uring_give_up(d);
}

void tcp_uring_drop(struct tcp_link *l)
{
	struct tcp_intake *k = &l->intake;
	struct tcp_domain *d = tcp_uring_domain(l);

	tcp_uring_leave(l);
	while (k->first) {
		uint32_t i = k->first - 1;

		k->first = d->uring->buffers[i].next;
		tcp_uring_provide(d->uring, i);
	}
	*k = (struct tcp_intake){0};
}

/* ---- moving bytes --------------------------------------------------------------------------- */

/* Up to N bytes of what has come. */
static size_t tcp_uring_link_copy_out(struct tcp_uring *u, struct tcp_intake *k, unsigned char *to,
				      size_t n)
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
			tcp_uring_provide(u, i);
		}
	}
	return done;
}

ssize_t tcp_uring_take(struct tcp_link *l, struct msghdr *msg)
{
	struct tcp_intake *k = &l->intake;
	struct tcp_domain *d = tcp_uring_domain(l);
	size_t done = 0;

	if (!k->first && k->armed)
		tcp_uring_inspect(d);
	for (size_t i = 0; i < (size_t)msg->msg_iovlen && k->first; i++)
		done += tcp_uring_link_copy_out(d->uring, k, msg->msg_iov[i].iov_base,
						msg->msg_iov[i].iov_len);
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
	struct tcp_domain *d = tcp_uring_domain(l);
	struct io_uring_sqe *e = NULL;

	if (!d->asleep && tcp_uring_open(d)) /* asleep, its end would ring our own bell */
		e = io_uring_get_sqe(&d->uring->ring);
	if (!e)
		return sendmsg(l->socket, msg, MSG_NOSIGNAL);
	/* So it is done, or refused, when the call returns. */
	io_uring_prep_sendmsg(e, l->socket, msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	io_uring_sqe_set_data64(e, TCP_URING_SENT);
	d->uring->sent = -EAGAIN;
	if (!tcp_uring_submitted(d, e))
		return sendmsg(l->socket, msg, MSG_NOSIGNAL);
	tcp_uring_reap(d->uring);
	if (d->uring->sent >= 0)
		return d->uring->sent;
	errno = -d->uring->sent;
	return -1;
}
