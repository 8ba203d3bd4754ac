/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets between processes of one machine. A path left by a crashed listener is recognised by
 * nobody answering there, and replaced.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "slmpm/net/url.h"
#include "slmpm/base/clock.h"

static int url_local_new_socket(int flags)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	return fd < 0 ? -errno : fd;
}

static bool answers(const struct url *url)
{
	int fd = url_local_new_socket(SOCK_NONBLOCK);
	bool yes;

	if (fd < 0)
		return true; /* who knows */
	yes = connect(fd, (const struct sockaddr *)&url->local, url->length) == 0 ||
	      errno == EAGAIN; /* its queue is full */
	close(fd);
	return yes;
}

static int bind_once(const struct url *url, int fd)
{
	return bind(fd, (const struct sockaddr *)&url->local, url->length) == 0 ? 0 : -errno;
}

/* A path belongs to this user alone: its mode comes from the socket, as umask is everybody's. */
static int bind_it(const struct url *url, int fd)
{
	bool path = *url_path(url);
	int rc = path && fchmod(fd, 0600) != 0 ? -errno : bind_once(url, fd);
	struct stat st;

	/* Left by a crash: nobody listens there. */
	if (rc == -EADDRINUSE && path && !answers(url) && lstat(url_path(url), &st) == 0 &&
	    S_ISSOCK(st.st_mode) && unlink(url_path(url)) == 0)
		rc = bind_once(url, fd);
	return rc;
}

int url_listen_local(const struct url *url, int backlog)
{
	int fd = url_local_new_socket(SOCK_NONBLOCK), rc;

	if (fd < 0)
		return url_not_listening(url, fd);
	rc = bind_it(url, fd);
	if (rc == 0 && listen(fd, backlog) != 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return url_not_listening(url, rc);
}

/* The kernel waits while a listener's queue is full, and that one may be stopped. */
static int connect_until(const struct url *url, int fd, uint64_t deadline)
{
	int rc;

	do {
		int ms = clock_ms(clock_now(), deadline, -1);
		/* 0 would be no limit */
		struct timeval limit = {ms / 1000, ms % 1000 ? ms % 1000 * 1000 : 1};

		if (ms >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0)
			return -errno;
		rc = connect(fd, (const struct sockaddr *)&url->local, url->length) == 0 ? 0 :
											   -errno;
	} while (rc == -EINTR);
	return rc;
}

int url_connect_local(const struct url *url, uint64_t deadline)
{
	int fd = url_local_new_socket(0), rc;

	if (fd < 0)
		return url_not_connected(url, fd);
	rc = connect_until(url, fd, deadline);
	if (rc == 0)
		return fd;
	close(fd);
	return url_not_connected(url, rc);
}
