/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses are taken apart; sockets between processes of one machine; what is said when nobody is
 * found. */
#include "slmpm/net/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"

/* shm:NAME lies in the abstract space of this user, shm:/path in the file system. */
static int parse_local(struct url *url, const char *name)
{
	struct sockaddr_un *sa = &url->local;
	int n;

	sa->sun_family = AF_UNIX;
	if (!name[strspn(name, "/")]) /* nothing, or slashes alone */
		return error_set(SLMPM_EADDRESS, "\"%s\": write shm:NAME or shm:/path", url->text);
	if (name[0] == '/' && name[1] == '/')
		return error_set(SLMPM_EADDRESS, "\"%.64s\": write shm:%.64s, or shm:/path",
				 url->text, name + 2);
	if (strlen(name) > 80)
		return error_set(SLMPM_EADDRESS, "\"%.64s...\": at most 80 characters", url->text);
	if (*name == '/') {
		snprintf(sa->sun_path, sizeof(sa->sun_path), "%s", name);
		url->length = sizeof(*sa);
		return 0;
	}
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "slmpm/%u/%s", (unsigned)geteuid(),
		     name);
	url->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return 0;
}

/* N bytes of FROM as HOST, an IPv6 address without its brackets, "*" as none. */
static bool take_host(struct url *url, const char *from, size_t n)
{
	bool brackets = n && from[0] == '[';

	if (brackets && (n < 4 || from[n - 1] != ']'))
		return false;
	if (brackets) {
		from++;
		n -= 2;
	}
	if (n >= sizeof(url->host) || (!brackets && memchr(from, ':', n)))
		return false;
	if (n == 1 && *from == '*')
		n = 0;
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)from[i]) || strchr("/[]@*", from[i]))
			return false;
	memcpy(url->host, from, n);
	url->host[n] = 0;
	return true;
}

static bool take_port(struct url *url, const char *from)
{
	size_t n = strlen(from);

	if (!n || n > 5 || strspn(from, "0123456789") != n || atoi(from) > 65535)
		return false;
	memcpy(url->port, from, n + 1);
	return true;
}

/* REST: host:port, and perhaps #secret, which is shown nowhere. */
static int parse_tcp(struct url *url, const char *rest)
{
	char *shown = url->text + (sizeof("tcp://") - 1), *mark = strchr(shown, '#');
	const char *colon;

	if (mark)
		*mark = 0;
	if (mark && !secret_parse(&url->secret, strchr(rest, '#') + 1))
		return error_set(SLMPM_EADDRESS, "\"%.160s#...\": a secret has 32 hex digits",
				 url->text);
	colon = strrchr(shown, ':');
	if (!colon || !take_host(url, shown, (size_t)(colon - shown)) || !take_port(url, colon + 1))
		return error_set(SLMPM_EADDRESS,
				 "\"%.160s\": write tcp://host:port or tcp://[::1]:port",
				 url->text);
	return 0;
}

int url_parse(struct url *url, const char *text)
{
	memset(url, 0, sizeof(*url));
	if (!text)
		return error_set(SLMPM_EADDRESS,
				 "NULL: write shm:NAME, shm:/path or tcp://host:port");
	if (strlen(text) >= sizeof(url->text))
		return error_set(SLMPM_EADDRESS, "\"%.60s...\": too long", text);
	snprintf(url->text, sizeof(url->text), "%s", text);
	if (!strncmp(text, "tcp://", 6)) {
		url->kind = URL_TCP;
		return parse_tcp(url, text + 6);
	}
	if (!strncmp(text, "shm:", 4))
		return parse_local(url, text + 4);
	return error_set(SLMPM_EADDRESS, "\"%.60s\": write shm:NAME, shm:/path or tcp://host:port",
			 text);
}

const char *url_path(const struct url *url)
{
	return url->kind == URL_LOCAL ? url->local.sun_path : "";
}

/* What lies at a path is no socket, and never will be one. */
static bool is_blocked(const struct url *url)
{
	struct stat st;

	return *url_path(url) && stat(url_path(url), &st) == 0 && !S_ISSOCK(st.st_mode);
}

static int blocked(const struct url *url)
{
	return error_set(SLMPM_EADDRESS, "%s: a file or folder lies there, not a socket",
			 url->text);
}

/* The kernel checks rights first: what lies there may be no socket at all. */
static int not_allowed(const struct url *url)
{
	struct stat st;

	if (is_blocked(url))
		return blocked(url);
	if (*url_path(url) && stat(url_path(url), &st) == 0)
		return error_set(SLMPM_EACCES, "%s: user %u may not use this socket of user %u",
				 url->text, geteuid(), st.st_uid);
	return error_set(SLMPM_EACCES, "%s: user %u may not use that folder", url->text, geteuid());
}

int url_not_listening(const struct url *url, int rc)
{
	if (rc == -EADDRINUSE && is_blocked(url))
		return blocked(url);
	if (rc == -EACCES && *url_path(url))
		return not_allowed(url);
	if ((rc == -ENOENT || rc == -ENOTDIR) && *url_path(url))
		return error_set(SLMPM_ENOENT, "%s: there is no such folder", url->text);
	if (rc == -EADDRINUSE)
		return error_set(SLMPM_EBUSY, "%s: somebody listens there already", url->text);
	return error_system(rc, url->text);
}

int url_not_connected(const struct url *url, int rc)
{
	if (rc == -ECONNREFUSED && is_blocked(url))
		return blocked(url);
	if (rc == -EACCES && *url_path(url))
		return not_allowed(url);
	if (rc == -EPROTOTYPE)
		return error_set(SLMPM_EADDRESS, "%s: another program's socket, of another type",
				 url->text);
	if (rc == -ECONNREFUSED || rc == -ENOENT || rc == -ENOTDIR)
		return error_set(SLMPM_ENOENT, "%s: nobody listens there", url->text);
	if (rc == -ECONNRESET)
		return error_set(SLMPM_EDEAD, "%s: the listener has left", url->text);
	if (rc == -EAGAIN)
		return error_set(SLMPM_ETIMEOUT, "%s: the listener takes nobody in", url->text);
	if (rc == -ETIMEDOUT)
		return error_set(SLMPM_ETIMEOUT, "%s: no answer", url->text);
	return error_system(rc, url->text);
}

/* ---- between processes of one machine ---- */

static int new_local_socket(int flags)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	return fd < 0 ? -errno : fd;
}

static bool answers(const struct url *url)
{
	int fd = new_local_socket(SOCK_NONBLOCK);
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

static int url_listen_local(const struct url *url, int backlog)
{
	int fd = new_local_socket(SOCK_NONBLOCK), rc;

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

static int url_connect_local(const struct url *url, uint64_t deadline)
{
	int fd = new_local_socket(0), rc;

	if (fd < 0)
		return url_not_connected(url, fd);
	rc = connect_until(url, fd, deadline);
	if (rc == 0)
		return fd;
	close(fd);
	return url_not_connected(url, rc);
}

int url_listen(const struct url *url, int backlog)
{
	return url->kind == URL_TCP ? url_listen_tcp(url, backlog) : url_listen_local(url, backlog);
}

int url_connect(const struct url *url, uint64_t deadline)
{
	return url->kind == URL_TCP ? url_connect_tcp(url, deadline) :
				      url_connect_local(url, deadline);
}
