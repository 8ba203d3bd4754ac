/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting by address; both sides check the other's user. */
#include "slmpm/connect.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/bootstrap.h"
#include "slmpm/error.h"
#include "slmpm/url.h"
#include "slmpm/wait.h"

bool connect_allowed(int fd)
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

struct endpoint *connect_adopt(struct context *ctx, int fd, struct listener *l, int *rc)
{
	struct endpoint *ep = endpoint_new(ctx, NULL);

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

static bool has_connected(void *arg)
{
	return ((struct endpoint *)arg)->state != SLMPM_PEER_CONNECTING;
}

static int not_connected(int rc, const char *url)
{
	if (rc == -ECONNREFUSED || rc == -ENOENT)
		return error_set(SLMPM_ENOENT, "%s: nobody listens there", url);
	if (rc == -EAGAIN)
		return error_set(SLMPM_ETIMEOUT, "%s: the listener takes nobody in", url);
	return error_system(rc, url);
}

static int open_connected(const char *url, uint64_t deadline)
{
	struct url address;
	int fd = url_open(&address, url, 0), rc;

	if (fd < 0)
		return fd;
	rc = url_connect(&address, fd, deadline);
	if (rc < 0)
		rc = not_connected(rc, url);
	else if (!connect_allowed(fd))
		rc = error_set(SLMPM_EACCES, "%s: the listener runs as another user", url);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int slmpm_connect(slmpm_peer *peer, slmpm_ctx handle, const char *url, int timeout_ms)
{
	uint64_t deadline = wait_deadline(timeout_ms);
	struct context *ctx;
	struct endpoint *ep;
	int fd, rc = 0;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_connect: no peer");
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	rc = wait_forbidden(ctx, "slmpm_connect");
	if (rc < 0)
		return rc;
	fd = open_connected(url, deadline);
	if (fd < 0)
		return fd;
	context_lock(ctx);
	ep = connect_adopt(ctx, fd, NULL, &rc);
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
