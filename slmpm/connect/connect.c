/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting by address; both sides check the other's user. */
#include "slmpm/connect/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/base/error.h"
#include "slmpm/net/url.h"
#include "slmpm/link/wait.h"

/* Of nobody, and of no process, where the kernel does not know. */
static struct ucred peer_of(int fd)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);

	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	return peer;
}

bool connect_allowed(int fd)
{
	uid_t uid = peer_of(fd).uid;

	return uid == geteuid() || uid == 0;
}

bool connect_is_user(int fd, uid_t user)
{
	return peer_of(fd).uid == user;
}

int connect_pid(int fd)
{
	return peer_of(fd).pid;
}

static int connect_begin(struct endpoint *ep, const struct connection *from)
{
	if (from->pair)
		return bootstrap_start_pair(ep, from->fd, from->process, from->pid, from->active);
	if (from->stream) {
		int rc = bootstrap_start_stream(ep, from->fd, -1, !ep->rooms->listener,
						from->secret);

		if (rc == 0)
			ep->rooms->control->stream->stays = from->stays;
		return rc;
	}
	return bootstrap_start(ep, from->fd, -1);
}

const char *connect_fabric(bool stream)
{
	return mode_fabric(stream ? MODE_THERE : MODE_HERE, NULL, config_get()->fabric);
}

struct endpoint *connect_adopt(struct context *ctx, const struct connection *from,
			       struct listener *l, int *rc)
{
	const char *name = connect_fabric(from->stream);
	const struct fabric *fabric = fabric_find(name);
	struct endpoint *ep = from->stream && !fabric ? NULL : endpoint_new(ctx, fabric);

	if (!ep) {
		*rc = from->stream && !fabric ?
			      error_set(SLMPM_ENOTSUP, "this library has no fabric \"%s\"", name) :
			      -SLMPM_ENOMEM;
		close(from->fd);
		if (from->pair)
			close(from->process);
		return NULL;
	}
	ep->rooms->listener = l;
	endpoint_block(ep, BLOCK_ACCEPT, l);
	*rc = connect_begin(ep, from);
	if (*rc < 0) {
		*rc = error_system(*rc, "the control connection cannot be set up");
		endpoint_free(ep);
		return NULL;
	}
	return ep;
}

/* ---- connecting ----------------------------------------------------------------------------- */

int connect_find_secret(const struct url *url, struct secret *secret)
{
	int rc = 0;

	*secret = url->secret;
	if (!secret->known)
		rc = secret_configured(secret);
	if (rc == 0 && !secret->known)
		rc = error_set(SLMPM_EACCES, "%s: no secret: set SLMPM_SECRET, or write %s#SECRET",
			       url->text, url->text);
	return rc;
}

int connect_socket(const struct url *url, uint64_t deadline)
{
	int fd = url_connect(url, deadline);

	if (fd < 0 || url->kind == URL_TCP || connect_allowed(fd))
		return fd;
	close(fd);
	return error_set(SLMPM_EACCES, "%s: the listener runs as another user", url->text);
}

bool connect_is_stream(const struct endpoint *ep)
{
	return ep->rooms->control->stream;
}

int connect_verdict(struct endpoint *ep, const struct url *url, bool same_user)
{
	int rc = endpoint_error(ep);

	if (rc == -SLMPM_ECLOSED && !same_user) /* no listener tells another user why */
		rc = error_set(SLMPM_EACCES, "%s: the listener began as root, and refused user %u",
			       url->text, geteuid());
	return rc;
}

static struct endpoint *try_to_connect(struct context *ctx, struct connection *to,
				       const struct url *url, uint64_t deadline, int *rc)
{
	struct endpoint *ep;
	bool same_user;

	to->is_near = false;
	/* A name and a connection that nobody answers take their time: not at others' cost. */
	context_unlock(ctx);
	to->fd = connect_socket(url, deadline);
	context_lock(ctx);
	if (to->fd < 0) {
		*rc = to->fd;
		return NULL;
	}
	same_user = url->kind == URL_TCP || connect_is_user(to->fd, geteuid());
	ep = connect_adopt(ctx, to, NULL, rc);
	if (!ep)
		return NULL;
	if (wait_connected(ep, clock_ms(clock_now(), deadline, -1)) < 0)
		*rc = error_set(SLMPM_ETIMEOUT, "%s: handshake not finished in time", url->text);
	else if (ep->life->was_up)
		return ep;
	else
		*rc = connect_verdict(ep, url, same_user);
	to->is_near = to->stream && !connect_is_stream(ep);
	endpoint_free(ep);
	return NULL;
}

int connect_was_full(const struct url *url)
{
	return error_set(SLMPM_ELIMIT, "%s: too many connect to it, or wait to be accepted",
			 url->text);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* The peer at TEXT, its handshake through. A listener that has its hands full is asked again, for
 * as long as a handshake may take. */
static struct endpoint *connect_to_here(struct context *ctx, const char *text, uint64_t deadline,
					int *rc)
{
	uint64_t until = clock_deadline((int)config_get()->handshake_ms);
	struct connection to;
	struct secret secret;
	struct endpoint *ep;
	struct url url;
	bool full = false;

	*rc = url_parse(&url, text);
	to = (struct connection){.stream = url.kind == URL_TCP, .secret = &secret};
	if (*rc == 0 && to.stream)
		*rc = connect_find_secret(&url, &secret);
	if (*rc < 0)
		return NULL;
	until = until < deadline ? until : deadline;
	for (;;) {
		to.stays = false;
		ep = try_to_connect(ctx, &to, &url, deadline, rc);
		/* It is near, and cannot be reached so after all: once more over the network. */
		if (!ep && to.is_near && *rc != -SLMPM_ETIMEOUT) {
			to.stays = true;
			ep = try_to_connect(ctx, &to, &url, deadline, rc);
		}
		if (!ep && full && *rc == -SLMPM_ETIMEOUT)
			*rc = connect_was_full(&url);
		if (ep || *rc != -SLMPM_ELIMIT || clock_now() >= until)
			return ep;
		full = true;
		(void)wait_until(ctx, never, NULL, CONNECT_AGAIN_MS);
	}
}

int slmpm_connect(slmpm_peer *peer, slmpm_ctx handle, const char *url, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct context *ctx;
	struct endpoint *ep;
	int rc = 0;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_connect: no peer");
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	rc = context_forbids(ctx, "slmpm_connect");
	if (rc < 0)
		return rc;
	context_lock(ctx);
	ep = connect_to_here(ctx, url, deadline, &rc);
	if (ep)
		peer->id = handle_id(ep);
	else if (rc == -SLMPM_ETIMEOUT && !timeout_ms)
		rc = error_set(SLMPM_EAGAIN, "%s: not connected at once", url);
	context_unlock(ctx);
	return rc;
}
