/* SPDX-License-Identifier: BSD-3-Clause */
/* All numbers are 64 bits, the lowest byte first; bytes follow their number. */
#include "tests/lib/parcel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/test.h"

#define HEAD 8 /* the length of what follows */

static unsigned char *room_for(struct parcel *p, size_t n)
{
	size_t end = p->length + n;

	if (end > p->room) {
		p->room = end * 2 + 256;
		p->bytes = realloc(p->bytes, p->room);
		CHECK(p->bytes, "out of memory");
	}
	p->length = end;
	return p->bytes + end - n;
}

static void store(unsigned char *at, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		at[i] = (unsigned char)(number >> (8 * i));
}

static uint64_t load(const unsigned char *at)
{
	uint64_t number = 0;

	for (int i = 8; i-- > 0;)
		number = number << 8 | at[i];
	return number;
}

void parcel_clear(struct parcel *p)
{
	p->length = p->taken = 0;
	p->fd_count = p->fds_taken = 0;
}

void parcel_put(struct parcel *p, uint64_t number)
{
	store(room_for(p, 8), number);
}

void parcel_put_bytes(struct parcel *p, const void *bytes, size_t n)
{
	parcel_put(p, n);
	if (n)
		memcpy(room_for(p, n), bytes, n);
}

void parcel_put_text(struct parcel *p, const char *text)
{
	parcel_put_bytes(p, text, text ? strlen(text) : 0);
}

void parcel_put_fd(struct parcel *p, int fd)
{
	CHECK(p->fd_count < PARCEL_FDS, "too many descriptors");
	p->fds[p->fd_count++] = fd;
}

static const unsigned char *next(struct parcel *p, size_t n)
{
	CHECK(n <= p->length - p->taken, "a parcel too short by %zu bytes",
	      n - (p->length - p->taken));
	p->taken += n;
	return p->bytes + p->taken - n;
}

uint64_t parcel_get(struct parcel *p)
{
	return load(next(p, 8));
}

const void *parcel_get_bytes(struct parcel *p, size_t *n)
{
	*n = (size_t)parcel_get(p);
	return next(p, *n);
}

void parcel_get_text(struct parcel *p, char *text, size_t size)
{
	size_t n;
	const void *bytes = parcel_get_bytes(p, &n);

	n = n < size ? n : size - 1;
	memcpy(text, bytes, n);
	text[n] = '\0';
}

int parcel_get_fd(struct parcel *p)
{
	CHECK(p->fds_taken < p->fd_count, "a parcel without the descriptor");
	return p->fds[p->fds_taken++];
}

/* ---- the way -------------------------------------------------------------------------------- */

#define SPACE CMSG_SPACE(PARCEL_FDS * sizeof(int))

/* The first bytes carry the descriptors. */
void parcel_send(int socket, const struct parcel *p)
{
	_Alignas(struct cmsghdr) char space[SPACE] = {0};
	unsigned char head[HEAD];
	struct iovec iov[] = {{head, HEAD}, {p->bytes, p->length}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	size_t size = (size_t)p->fd_count * sizeof(int), sent = 0;

	store(head, p->length);
	if (size) {
		struct cmsghdr *c;

		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(size);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(c), p->fds, size);
	}
	while (sent < HEAD + p->length) {
		ssize_t n = sendmsg(socket, &msg, MSG_NOSIGNAL);

		CHECK(n > 0, "the other program is gone: %s", strerror(errno));
		sent += (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		iov[0].iov_len = sent < HEAD ? HEAD - sent : 0;
		iov[0].iov_base = head + HEAD - iov[0].iov_len;
		iov[1].iov_len = HEAD + p->length - sent - iov[0].iov_len;
		iov[1].iov_base = p->bytes + p->length - iov[1].iov_len;
	}
}

static void take_fds(struct parcel *p, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (!c)
		return;
	CHECK(!(msg->msg_flags & MSG_CTRUNC), "descriptors have been lost");
	p->fd_count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(p->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
}

/* Signals and stops cut even a call short that waits for all. */
static bool receive_rest(int socket, unsigned char *at, size_t n)
{
	while (n) {
		ssize_t got = recv(socket, at, n, MSG_WAITALL);

		if (got <= 0 && !(got < 0 && errno == EINTR))
			return false;
		at += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return true;
}

/* What stands where the head begins, with the descriptors; -1: nothing will come. */
static ssize_t receive_begin(int socket, struct parcel *p, unsigned char head[HEAD])
{
	_Alignas(struct cmsghdr) char space[SPACE] = {0};
	struct iovec iov = {head, HEAD};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	ssize_t got;

	do
		got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		take_fds(p, &msg);
	return got > 0 ? got : -1;
}

bool parcel_receive(int socket, struct parcel *p)
{
	unsigned char head[HEAD];
	ssize_t got;
	size_t n;

	parcel_clear(p);
	got = receive_begin(socket, p, head);
	if (got < 0)
		return false;
	CHECK(receive_rest(socket, head + got, HEAD - (size_t)got), "half a head of a parcel");
	n = (size_t)load(head);
	CHECK(receive_rest(socket, room_for(p, n), n), "a parcel of %zu bytes broke off: %s", n,
	      strerror(errno));
	return true;
}
