/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listening, accepting, connecting by URL. Both sides check the other's user; a path left by a
 * crashed listener is recognised by nobody answering there, and replaced.
 */
#include "slmpm/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "slmpm/bootstrap.h"
#include "slmpm/control.h"
#include "slmpm/error.h"
#include "slmpm/log.h"
#include "slmpm/message.h"
#include "slmpm/wait.h"

#define HALF_OPEN_MAX 64 /* connections that have not finished their handshake */

struct handle_table listener_table = HANDLE_TABLE("listener", struct listener);

/* shm:NAME lies in the abstract space of this user, shm:/path in the file system. */
static int parse_url(const char *url, struct sockaddr_un *sa, socklen_t *length)
{
	const char *name;
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (!url || strncmp(url, "shm:", 4) != 0 || !url[4])
		return error_set(SLMPM_EADDRESS, "\"%.60s\": write shm:NAME or shm:/path",
				 url ? url : "(null)");
	name = url + 4;
	if (strlen(name) > 80)
		return error_set(SLMPM_EADDRESS, "\"%.60s...\": at most 80 characters", url);
	if (*name == '/') {
		snprintf(sa->sun_path, sizeof(sa->sun_path), "%s", name);
		*length = sizeof(*sa);
		return 0;
	}
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "slmpm/%u/%s", (unsigned)getuid(),
		     name);
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return 0;
}

static bool allowed(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == getuid() || peer.uid == 0);
}

static int peer_pid(int fd)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	return peer.pid;
}

static struct endpoint *adopt(struct context *ctx, int fd, struct listener *l, int *rc)
{
	struct endpoint *ep = endpoint_new(ctx);

	if (!ep) {
		*rc = -SLMPM_ENOMEM;
		close(fd);
		return NULL;
	}
	ep->pid = peer_pid(fd);
	ep->listener = l;
	endpoint_name(ep);
	*rc = bootstrap_start(ep, fd, -1);
	if (*rc < 0) {
		*rc = error_system(*rc, "the control connection cannot be set up");
		endpoint_free(ep);
		return NULL;
	}
	return ep;
}

static uint32_t half_open(struct context *ctx)
{
	uint32_t n = 0;

	LIST_EACH(at, &ctx->deadlines)
		n += LIST_ENTRY(at, struct control, node)->step != HUNG_UP;
	return n;
}

static int take_connection(struct listener *l)
{
	return accept4(l->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void refuse(struct listener *l, int fd, int error, const char *why)
{
	log_line(SLMPM_LOG_WARN, "%s: a connection was refused: %s", l->url, why);
	if (error) /* nothing is said to another user */
		control_refuse(fd, error, why);
	close(fd);
}

/* Any file would do. */
static int spare_descriptor(const struct listener *l)
{
	return fcntl(l->ctx->epoll, F_DUPFD_CLOEXEC, 0);
}

/*
 * A connection that cannot be taken stays readable, and so would keep its context awake for ever.
 * The spare descriptor makes room to refuse it.
 */
static void refuse_for_want(struct listener *l)
{
	int fd = -1;

	if (l->spare >= 0) {
		close(l->spare);
		fd = take_connection(l);
	}
	if (fd >= 0)
		refuse(l, fd, SLMPM_ENOFILE, "out of file descriptors");
	l->spare = spare_descriptor(l);
	if (fd < 0 && l->spare < 0) {
		watch_remove(l->ctx, &l->watch);
		l->paused = true;
	}
}

/* Descriptors may be had again. */
static void resume(struct listener *l)
{
	if (l->spare < 0)
		l->spare = spare_descriptor(l);
	if (l->paused && l->spare >= 0)
		l->paused = watch_add(l->ctx, &l->watch) < 0;
}

void listener_ready(struct listener *l)
{
	int rc, fd = take_connection(l);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		refuse_for_want(l);
	else if (fd >= 0 && !allowed(fd))
		refuse(l, fd, 0, "another user");
	else if (fd >= 0 && half_open(l->ctx) >= HALF_OPEN_MAX)
		refuse(l, fd, SLMPM_ELIMIT, "too many handshakes at a time");
	else if (fd >= 0)
		(void)adopt(l->ctx, fd, l, &rc);
}

static bool answers(const struct sockaddr_un *sa, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes = fd >= 0 && (connect(fd, (const struct sockaddr *)sa, length) == 0 ||
			       errno == EAGAIN /* its queue is full */);

	if (fd >= 0)
		close(fd);
	return yes;
}

static int bind_once(int fd, const struct sockaddr_un *sa, socklen_t length)
{
	return bind(fd, (const struct sockaddr *)sa, length) == 0 ? 0 : -errno;
}

/* A path belongs to this user alone: its mode comes from the socket, as umask is everybody's. */
static int bind_socket(int fd, const struct sockaddr_un *sa, socklen_t length)
{
	bool path = sa->sun_path[0];
	int rc = path && fchmod(fd, 0600) != 0 ? -errno : bind_once(fd, sa, length);
	struct stat st;

	/* Left by a crash: nobody listens there. */
	if (rc == -EADDRINUSE && path && !answers(sa, length) && lstat(sa->sun_path, &st) == 0 &&
	    S_ISSOCK(st.st_mode) && unlink(sa->sun_path) == 0)
		rc = bind_once(fd, sa, length);
	if (rc == 0 && listen(fd, HALF_OPEN_MAX) != 0)
		rc = -errno;
	return rc;
}

int slmpm_listen(slmpm_listener *out, slmpm_ctx handle, const char *url)
{
	struct sockaddr_un sa;
	struct listener *l;
	struct context *ctx;
	socklen_t length;
	int fd, rc = 0;

	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_listen: no listener");
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	rc = parse_url(url, &sa, &length);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_system(-errno, url);
	rc = bind_socket(fd, &sa, length);
	if (rc < 0) {
		close(fd);
		return rc == -EADDRINUSE ?
			       error_set(SLMPM_EBUSY, "%s: somebody listens there already", url) :
			       error_system(rc, url);
	}
	l = handle_new(&listener_table);
	if (!l) {
		close(fd);
		return error_set(SLMPM_ENOMEM, "for a listener");
	}
	l->ctx = ctx;
	l->watch = (struct watch){WATCH_LISTENER, fd, l};
	snprintf(l->url, sizeof(l->url), "%s", url);
	if (sa.sun_path[0])
		snprintf(l->path, sizeof(l->path), "%s", sa.sun_path);
	context_lock(ctx);
	list_append(&ctx->listeners, &l->node);
	l->spare = spare_descriptor(l);
	rc = watch_add(ctx, &l->watch);
	context_unlock(ctx);
	if (rc < 0) {
		listener_free(l);
		return error_system(rc, url);
	}
	out->id = handle_id(l);
	return 0;
}

void listener_forked(struct listener *l)
{
	close(l->watch.fd);
	if (l->spare >= 0)
		close(l->spare);
}

void listener_free(struct listener *l)
{
	for (uint32_t i = 0; i < l->ctx->count; i++)
		if (l->ctx->endpoints[i]->listener == l)
			l->ctx->endpoints[i]->listener = NULL;
	list_remove(&l->node);
	watch_remove(l->ctx, &l->watch);
	listener_forked(l);
	if (l->path[0])
		unlink(l->path);
	handle_free(&listener_table, l);
}

int slmpm_unlisten(slmpm_listener handle)
{
	struct listener *l = handle_get(&listener_table, handle.id);
	struct context *ctx;

	if (!l)
		return handle_error(&listener_table, handle.id);
	ctx = l->ctx;
	context_lock(ctx);
	listener_free(l);
	wait_changed(ctx);
	context_unlock(ctx);
	return 0;
}

/* ---- the next connection -------------------------------------------------------------------- */

static struct endpoint *accepted(struct listener *l)
{
	for (uint32_t i = 0; i < l->ctx->count; i++) {
		struct endpoint *ep = l->ctx->endpoints[i];

		if (ep->listener == l && ep->was_up)
			return ep;
	}
	return NULL;
}

/* Those that failed before anybody knew of them. */
static void forget_refused(struct listener *l)
{
	for (uint32_t i = 0; i < l->ctx->count; i++) {
		struct endpoint *ep = l->ctx->endpoints[i];

		if (ep->listener != l || ep->state == SLMPM_PEER_CONNECTING || ep->was_up)
			continue;
		endpoint_free(ep);
		i--;
	}
}

struct acceptance {
	slmpm_listener handle;
	struct listener *listener; /* NULL: closed by another thread */
	struct endpoint *ep;
};

static bool has_accepted(void *arg)
{
	struct acceptance *a = arg;

	a->listener = handle_get(&listener_table, a->handle.id);
	a->ep = a->listener ? accepted(a->listener) : NULL;
	return a->ep || !a->listener;
}

int slmpm_accept(slmpm_listener handle, slmpm_peer *peer, int timeout_ms)
{
	struct listener *l = handle_get(&listener_table, handle.id);
	struct acceptance a = {.handle = handle, .listener = l};
	struct context *ctx;
	int rc;

	if (!l)
		return handle_error(&listener_table, handle.id);
	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_accept: no peer");
	ctx = l->ctx;
	context_lock(ctx);
	if (handle_get(&listener_table, handle.id) == l) {
		forget_refused(l);
		resume(l);
	}
	if (!timeout_ms)
		(void)wait_look(ctx);
	rc = wait_until(ctx, has_accepted, &a, timeout_ms);
	if (a.ep) {
		a.ep->listener = NULL;
		peer->id = handle_id(a.ep);
	} else if (!a.listener) {
		rc = handle_error(&listener_table, handle.id);
	} else {
		rc = error_set(SLMPM_ETIMEOUT, "nobody connected to %s", a.listener->url);
	}
	context_unlock(ctx);
	return rc;
}

static bool has_connected(void *arg)
{
	return ((struct endpoint *)arg)->state != SLMPM_PEER_CONNECTING;
}

/* The kernel waits while a listener's queue is full, and that one may be stopped. */
static int connect_socket(int fd, const struct sockaddr_un *sa, socklen_t length, uint64_t deadline)
{
	int rc;

	do {
		int ms = wait_ms(wait_now(), deadline, -1);
		/* 0 would be no limit */
		struct timeval limit = {ms / 1000, ms % 1000 ? ms % 1000 * 1000 : 1};

		if (ms >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0)
			return -errno;
		rc = connect(fd, (const struct sockaddr *)sa, length) == 0 ? 0 : -errno;
	} while (rc == -EINTR);
	return rc;
}

static int not_connected(int rc, const char *url)
{
	if (rc == -ECONNREFUSED || rc == -ENOENT)
		return error_set(SLMPM_ENOENT, "%s: nobody listens there", url);
	if (rc == -EAGAIN)
		return error_set(SLMPM_ETIMEOUT, "%s: the listener takes nobody in", url);
	return error_system(rc, url);
}

int slmpm_connect(slmpm_peer *peer, slmpm_ctx handle, const char *url, int timeout_ms)
{
	uint64_t deadline = wait_deadline(timeout_ms);
	struct sockaddr_un sa;
	struct context *ctx;
	struct endpoint *ep;
	socklen_t length;
	int fd, rc = 0;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_connect: no peer");
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	rc = parse_url(url, &sa, &length);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_system(-errno, url);
	rc = connect_socket(fd, &sa, length, deadline);
	if (rc < 0) {
		close(fd);
		return not_connected(rc, url);
	}
	if (!allowed(fd)) {
		close(fd);
		return error_set(SLMPM_EACCES, "%s: the listener runs as another user", url);
	}
	context_lock(ctx);
	ep = adopt(ctx, fd, NULL, &rc);
	if (ep) {
		rc = wait_until(ctx, has_connected, ep, wait_ms(wait_now(), deadline, -1));
		if (rc < 0)
			rc = error_set(SLMPM_ETIMEOUT, "%s: handshake not finished in time", url);
		else if (!ep->was_up)
			rc = endpoint_error(ep);
		if (rc < 0)
			endpoint_free(ep);
		else
			peer->id = handle_id(ep);
	}
	context_unlock(ctx);
	return rc;
}
