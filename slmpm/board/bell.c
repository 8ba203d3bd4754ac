/* SPDX-License-Identifier: BSD-3-Clause */
/* Bells: by which members that sleep are woken (bell.h). */
#include "slmpm/board/bell.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int bell_make(int *own, int *other)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	*own = ends[0];
	*other = ends[1];
	return 0;
}

bool bell_is_local(int other)
{
	int domain = 0;
	socklen_t size = sizeof(domain);

	return getsockopt(other, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

bool bell_is(int other)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return bell_is_local(other) && getsockopt(other, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	       type == SOCK_DGRAM;
}

bool bell_ring(int other)
{
	/* Full: it rings. The flags are the call's own: those of the descriptor are not ours alone. */
	return send(other, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN ||
	       errno == ENOBUFS || errno == EINTR;
}

int bell_pass(int other, uint32_t rank, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} space = {.room = {0}};
	struct iovec iov = {.iov_base = &rank, .iov_len = sizeof(rank)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c = &space.align;

		msg.msg_control = space.room;
		msg.msg_controllen = sizeof(space.room);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(other, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

bool bell_is_busy(int rc)
{
	return rc == -EAGAIN || rc == -EINTR || rc == -ETOOMANYREFS || rc == -ENOBUFS ||
	       rc == -ENOMEM;
}

static void read_control(struct msghdr *msg, struct bell_word *word)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct ucred who;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&word->fd, CMSG_DATA(c), sizeof(int));
		if (c->cmsg_type != SCM_CREDENTIALS || c->cmsg_len != CMSG_LEN(sizeof(who)))
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		word->sender = who.pid;
	}
}

/* Room for one descriptor, behind who sends it where that is NOTED: of more the kernel drops the
 * others, and with room for more they would be installed. */
static bool bell_receive(int own, struct bell_word *word, bool wanted, bool noted, int flags)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	} space;
	struct iovec iov = {.iov_base = &word->rank, .iov_len = sizeof(word->rank)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space.room,
			     .msg_controllen = (noted ? CMSG_SPACE(sizeof(struct ucred)) : 0) +
					       (wanted ? CMSG_LEN(sizeof(int)) : 0)};
	ssize_t n;

	do {
		n = recvmsg(own, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
	} while (n < 0 && errno == EINTR);
	word->pair = n == sizeof(word->rank);
	word->sender = 0;
	word->fd = -1;
	word->unwanted = n >= 0 && !wanted && msg.msg_flags & MSG_CTRUNC;
	if (n >= 0)
		read_control(&msg, word);
	word->lost = n >= 0 && wanted && word->fd < 0 && msg.msg_flags & MSG_CTRUNC;
	return n >= 0;
}

bool bell_take(int own, struct bell_word *word, bool wanted, bool noted)
{
	return bell_receive(own, word, wanted, noted, 0);
}

bool bell_note_sender(int own)
{
	return setsockopt(own, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) == 0;
}

bool bell_peek(int own, struct bell_word *word)
{
	return bell_receive(own, word, false, true, MSG_PEEK);
}
