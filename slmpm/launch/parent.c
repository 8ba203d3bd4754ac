/* SPDX-License-Identifier: BSD-3-Clause */
/* The host, seen by its accelerator: the inherited connection or way back; the death pipe. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "slmpm/launch/arrive.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/base/error.h"
#include "slmpm/launch/launch.h"
#include "slmpm/base/log.h"
#include "slmpm/link/wait.h"

/* SIGKILL when the host's end of the pipe closes, however that comes about; no thread needed. */
static void open_death_pipe(void)
{
	const char *text = secure_getenv(DEATH_PIPE_VARIABLE);
	struct pollfd p;

	if (!text)
		return;
	p = (struct pollfd){.fd = atoi(text), .events = POLLIN};
	if (fcntl(p.fd, F_SETFD, FD_CLOEXEC) != 0)
		return;
	if (fcntl(p.fd, F_SETOWN, getpid()) != 0 || fcntl(p.fd, F_SETSIG, SIGKILL) != 0 ||
	    fcntl(p.fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
		log_line(SLMPM_LOG_WARN, "this process cannot be made to end with its host");
	if (poll(&p, 1, 0) == 1) /* it ended before we could ask */
		(void)kill(getpid(), SIGKILL);
}

static int inherited_socket(void)
{
	const char *text = secure_getenv(PARENT_VARIABLE);
	unsigned long long inode;
	struct stat st;
	int fd;

	if (!text || sscanf(text, "%d:%llu", &fd, &inode) != 2)
		return error_set(SLMPM_ESTATE, "this program was not started by slmpm_spawn");
	if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_ino != inode)
		return error_set(SLMPM_ESTATE, "the connection to the host was not inherited");
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* not for this process's own children */
	return fd;
}

static pthread_mutex_t parent_lock = PTHREAD_MUTEX_INITIALIZER;
static slmpm_peer parent;

/* The host runs elsewhere: the secret it gave this process alone shows both who they are. */
static int open_way_back(const char *url, struct secret *secret)
{
	int rc = secret_configured(secret);

	if (rc == 0 && !secret->known)
		rc = error_set(SLMPM_ESTATE, "SLMPM_PARENT without SLMPM_SECRET");
	return rc < 0 ? rc : arrive_connect(url, clock_deadline((int)config_get()->handshake_ms));
}

static int await_handshake(struct endpoint *ep, int rc)
{
	if (rc < 0)
		return error_system(rc, "the control connection cannot be set up");
	(void)wait_connected(ep, -1); /* ends by the handshake's own deadline */
	return ep->life->was_up ? 0 : endpoint_error(ep);
}

static int connect_parent(slmpm_ctx handle)
{
	const char *text = secure_getenv(PARENT_VARIABLE);
	bool far = text && !strncmp(text, "tcp://", 6);
	struct secret secret;
	struct context *ctx;
	struct endpoint *ep;
	int rc = 0, fd;

	if (!far && (fd = inherited_socket()) < 0)
		return fd;
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	if (far && (fd = open_way_back(text, &secret)) < 0)
		return fd;
	if (!far)
		open_death_pipe();
	context_lock(ctx);
	ep = endpoint_new(ctx, fabric_find(mode_fabric(far ? MODE_THERE : MODE_HERE, NULL,
						       config_get()->fabric)));
	if (ep) {
		ep->life->is_parent = true;
		ep->life->related = !far;
		rc = await_handshake(ep, far ? bootstrap_start_stream(ep, fd, -1, true, &secret) :
					       bootstrap_start(ep, fd, -1));
		if (rc < 0)
			endpoint_free(ep);
		else
			parent.id = handle_id(ep);
	} else if (far) {
		close(fd);
	}
	context_unlock(ctx);
	return ep ? rc : -SLMPM_ENOMEM;
}

void parent_forked(void)
{
	parent_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int slmpm_parent_in(slmpm_ctx ctx, slmpm_peer *peer)
{
	int rc = 0;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_parent: no peer");
	pthread_mutex_lock(&parent_lock);
	if (!parent.id)
		rc = connect_parent(ctx);
	if (rc == 0)
		*peer = parent;
	pthread_mutex_unlock(&parent_lock);
	return rc;
}

int slmpm_parent(slmpm_peer *peer)
{
	slmpm_ctx none = {0};

	return slmpm_parent_in(none, peer);
}
