/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of a listener: who is taken in, who is refused, and why. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/connect/listener.h"
#include "slmpm/base/log.h"
#include "slmpm/net/net.h"
#include "slmpm/base/clock.h"

#define IDLE_MS  250 /* without a proof of the secret, after which a connection makes room */
#define AGAIN_MS 100 /* after which a paused listener is tried again */

/* By shared memory none is needed, and who has moved there from the network has given one. */
static bool has_proved_itself(const struct control *c)
{
	return !c->stream || (c->step != WAIT_HELLO && c->step != WAIT_PROOF);
}

/* Is there room for one more, at L or a listener of its kind? Connections over the network are not
 * to keep out local ones. Who has proved nothing in a while must go where others wait. */
static bool listener_door_has_room(const struct listener *l)
{
	uint64_t idle = IDLE_MS * UINT64_C(1000000);
	struct control *oldest = NULL;
	uint32_t n = 0;

	LIST_EACH_ENTRY(struct control, c, &l->ctx->deadlines, node) {
		const struct listener *its = c->ep->rooms->listener;

		if (c->step == HUNG_UP || !its || its->tcp != l->tcp)
			continue;
		n++;
		if (!has_proved_itself(c) && (!oldest || c->deadline < oldest->deadline))
			oldest = c;
	}
	if (n < LISTENER_HALF_OPEN)
		return true;
	if (!oldest || clock_deadline((int)config_get()->handshake_ms) <= oldest->deadline + idle)
		return false;
	endpoint_refused(oldest->ep, SLMPM_ETIMEOUT, "it says nothing, and others wait");
	return true;
}

static int listener_door_take_connection(struct listener *l)
{
	return accept4(l->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* Of a listener; of all those of groups, for a process may have hundreds of them. */
static struct log_limit *refusals_of(struct listener *l)
{
	static struct log_limit of_groups;

	return l->home ? &of_groups : &l->refusals;
}

static void listener_door_refuse(struct listener *l, int fd, int error, const char *why)
{
	/* Those of a group come at once, by the library's own doing, and come again. */
	int level = l->home && error == SLMPM_ELIMIT ? SLMPM_LOG_INFO : SLMPM_LOG_WARN;

	log_limited(refusals_of(l), level, "%s: a connection was refused: %s", l->url, why);
	if (error) /* nothing is said to another user */
		control_refuse(fd, error, why);
	if (l->tcp)
		control_leave(fd);
	close(fd);
}

static void listener_door_adopt(struct listener *l, int fd)
{
	struct connection from = {.fd = fd, .stream = l->tcp, .secret = &l->secret};
	int rc = l->tcp ? net_prepare(fd) : 0;

	if (rc < 0)
		close(fd);
	else
		(void)connect_adopt(l->ctx, &from, l, &rc);
}

/* Any file would do. */
static int listener_spare(const struct listener *l)
{
	return fcntl(l->ctx->epoll, F_DUPFD_CLOEXEC, 0);
}

/* One that cannot be taken stays readable, and would keep its context awake for ever: the spare
 * descriptor makes room to refuse it. */
static void refuse_for_want(struct listener *l)
{
	int fd = -1;

	if (l->spare >= 0) {
		close(l->spare);
		fd = listener_door_take_connection(l);
	}
	if (fd >= 0)
		listener_door_refuse(l, fd, SLMPM_ENOFILE, "out of file descriptors");
	l->spare = listener_spare(l);
	if (fd < 0 && l->spare < 0) {
		watch_remove(l->ctx, &l->watch);
		l->paused = l->ctx->paused = true;
		l->again = clock_now() + AGAIN_MS * UINT64_C(1000000);
	}
}

/* Descriptors may be had again. */
void listener_resume(struct listener *l)
{
	if (l->spare < 0)
		l->spare = listener_spare(l);
	if (l->paused && l->spare >= 0)
		l->paused = watch_add(l->ctx, &l->watch) < 0;
}

uint64_t listener_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (!ctx->paused)
		return next;
	LIST_EACH_ENTRY(struct listener, l, &ctx->listeners, node) {
		if (l->paused && now_ns >= l->again) {
			l->again = now_ns + AGAIN_MS * UINT64_C(1000000);
			listener_resume(l);
		}
		if (l->paused && l->again < next)
			next = l->again;
	}
	ctx->paused = next != UINT64_MAX;
	return next;
}

void listener_ready(struct context *ctx, struct watch *w)
{
	struct listener *l = w->owner;
	int fd = listener_door_take_connection(l);

	(void)ctx;
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		refuse_for_want(l);
	else if (fd >= 0 && !l->tcp && !connect_allowed(fd))
		listener_door_refuse(l, fd, 0, "another user");
	else if (fd >= 0 && l->waiting >= (uint64_t)config_get()->backlog)
		listener_door_refuse(l, fd, SLMPM_ELIMIT,
				     "as many as SLMPM_BACKLOG wait to be accepted");
	else if (fd >= 0 && !listener_door_has_room(l))
		listener_door_refuse(l, fd, SLMPM_ELIMIT, "too many handshakes at a time");
	else if (fd >= 0)
		listener_door_adopt(l, fd);
}
