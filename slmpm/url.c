/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets at an address. A path left by a crashed listener is recognised by nobody answering there,
 * and replaced.
 */
#include "slmpm/url.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "slmpm/error.h"
#include "slmpm/wait.h"

/* shm:NAME lies in the abstract space of this user, shm:/path in the file system. */
static int parse(struct url *url, const char *text)
{
	struct sockaddr_un *sa = &url->sa;
	const char *name;
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (!text || strncmp(text, "shm:", 4) != 0 || !text[4])
		return error_set(SLMPM_EADDRESS, "\"%.60s\": write shm:NAME or shm:/path",
				 text ? text : "(null)");
	name = text + 4;
	if (strlen(name) > 80)
		return error_set(SLMPM_EADDRESS, "\"%.60s...\": at most 80 characters", text);
	if (*name == '/') {
		snprintf(sa->sun_path, sizeof(sa->sun_path), "%s", name);
		url->length = sizeof(*sa);
		return 0;
	}
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "slmpm/%u/%s", (unsigned)getuid(),
		     name);
	url->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return 0;
}

int url_open(struct url *url, const char *text, int flags)
{
	int fd, rc = parse(url, text);

	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	return fd < 0 ? error_system(-errno, text) : fd;
}

const char *url_path(const struct url *url)
{
	return url->sa.sun_path;
}

static bool answers(const struct url *url)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes;

	if (fd < 0)
		return true; /* who knows */
	yes = connect(fd, (const struct sockaddr *)&url->sa, url->length) == 0 ||
	      errno == EAGAIN; /* its queue is full */
	close(fd);
	return yes;
}

static int bind_once(const struct url *url, int fd)
{
	return bind(fd, (const struct sockaddr *)&url->sa, url->length) == 0 ? 0 : -errno;
}

/* A path belongs to this user alone: its mode comes from the socket, as umask is everybody's. */
int url_listen(const struct url *url, int fd, int backlog)
{
	bool path = *url_path(url);
	int rc = path && fchmod(fd, 0600) != 0 ? -errno : bind_once(url, fd);
	struct stat st;

	/* Left by a crash: nobody listens there. */
	if (rc == -EADDRINUSE && path && !answers(url) && lstat(url_path(url), &st) == 0 &&
	    S_ISSOCK(st.st_mode) && unlink(url_path(url)) == 0)
		rc = bind_once(url, fd);
	if (rc == 0 && listen(fd, backlog) != 0)
		rc = -errno;
	return rc;
}

/* The kernel waits while a listener's queue is full, and that one may be stopped. */
int url_connect(const struct url *url, int fd, uint64_t deadline)
{
	int rc;

	do {
		int ms = wait_ms(wait_now(), deadline, -1);
		/* 0 would be no limit */
		struct timeval limit = {ms / 1000, ms % 1000 ? ms % 1000 * 1000 : 1};

		if (ms >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0)
			return -errno;
		rc = connect(fd, (const struct sockaddr *)&url->sa, url->length) == 0 ? 0 : -errno;
	} while (rc == -EINTR);
	return rc;
}
