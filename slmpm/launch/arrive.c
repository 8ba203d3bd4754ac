/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one accelerator at a socket where anybody may knock. */
#include "slmpm/launch/arrive.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/base/error.h"
#include "slmpm/base/log.h"
#include "slmpm/launch/launch.h"
#include "slmpm/net/net.h"
#include "slmpm/net/url.h"
#include "slmpm/region/memory.h"
#include "slmpm/base/clock.h"

#define URL_MAX 1024

/* ---- the place ------------------------------------------------------------------------------ */

static watch_ready arrive_ready;

static void init_watches(struct arrive *a)
{
	a->listening = a->process = (struct watch){.ready = arrive_ready, .fd = -1, .owner = a};
	for (int i = 0; i < UNAUTHENTICATED; i++)
		a->unauthenticated[i].watch =
			(struct watch){.ready = arrive_ready, .fd = -1, .owner = a};
}

/* An IPv6 number, unless it is written as in a URL. */
static bool wants_brackets(const char *address)
{
	return *address != '[' && strchr(address, ':');
}

int arrive_listen(struct arrive *a, const char *address)
{
	struct url url;
	char text[320];
	int rc;

	init_watches(a);
	snprintf(text, sizeof(text),
		 address && wants_brackets(address) ? "tcp://[%.280s]:0" : "tcp://%.280s:0",
		 address ? address : "*");
	rc = url_parse(&url, text);
	if (rc == 0)
		rc = secret_make(&a->secret) < 0 || secret_make(&a->ticket) < 0 ?
			     error_set(SLMPM_ESYSTEM, "no random numbers") :
			     url_listen(&url, UNAUTHENTICATED);
	if (rc < 0)
		return rc;
	a->listening.fd = rc;
	return 0;
}

/* Can other machines reach it, as far as it says itself? */
static bool is_reachable(const struct ifaddrs *at)
{
	const struct sockaddr_in6 *six = (const void *)at->ifa_addr;

	if (!at->ifa_addr || !(at->ifa_flags & IFF_UP) || at->ifa_flags & IFF_LOOPBACK)
		return false;
	if (at->ifa_addr->sa_family == AF_INET)
		return true;
	return at->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

/* All of this machine's, by PORT: which of them is reached from there shows when one is. */
static bool add_addresses(char *url, uint16_t port)
{
	struct ifaddrs *list, *at;
	bool any = false;

	if (getifaddrs(&list) != 0)
		return false;
	for (int turn = 0; turn < 2; turn++)
		for (at = list; at; at = at->ifa_next) {
			struct sockaddr_in6 six;
			char name[NET_NAME];
			size_t n = strlen(url);

			if (!is_reachable(at) ||
			    (at->ifa_addr->sa_family == AF_INET) != (turn == 0))
				continue;
			memcpy(&six, at->ifa_addr,
			       turn ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
			six.sin6_port = htons(port); /* in the same place in both */
			net_name((struct sockaddr *)&six, name);
			if (n + strlen(name) + SECRET_TEXT + 3 > URL_MAX)
				continue;
			snprintf(url + n, URL_MAX - n, "%s%s", any ? "," : "", name);
			any = true;
		}
	freeifaddrs(list);
	return any;
}

char *arrive_url(const struct arrive *a, const char *address)
{
	char *url = malloc(URL_MAX);
	uint16_t port = net_port(a->listening.fd);
	bool good = url != NULL;

	if (!good)
		return NULL;
	snprintf(url, URL_MAX, "tcp://");
	if (address)
		snprintf(url + 6, URL_MAX - 6,
			 wants_brackets(address) ? "[%.280s]:%u" : "%.280s:%u", address,
			 (unsigned)port);
	else
		good = add_addresses(url, port);
	if (!good) {
		free(url);
		return NULL;
	}
	strcat(url, "/");
	secret_text(&a->ticket, url + strlen(url));
	return url;
}

/* ---- who comes ------------------------------------------------------------------------------ */

/* Everything but the process is over. */
static void shut_door(struct arrive *a)
{
	watch_close(a->ep->ctx, &a->listening);
	for (int i = 0; i < UNAUTHENTICATED; i++)
		watch_close(a->ep->ctx, &a->unauthenticated[i].watch);
}

static void arrive_refuse(struct arrive *a, int error, const char *why)
{
	shut_door(a);
	endpoint_refused(a->ep, error, why);
}

static void arrive_ended(struct arrive *a)
{
	char why[96], text[128];

	watch_remove(a->ep->ctx, &a->process); /* it stays readable for ever */
	(void)process_describe(a->ep, why, sizeof(why));
	snprintf(text, sizeof(text), "%.90s before it connected", why);
	arrive_refuse(a, SLMPM_EDEAD, text);
}

/* Who has waited longest makes room: an accelerator says its ticket at once. */
static struct caller *arrive_find_place(struct arrive *a)
{
	struct caller *oldest = &a->unauthenticated[0];

	for (int i = 0; i < UNAUTHENTICATED; i++) {
		struct caller *s = &a->unauthenticated[i];

		if (s->watch.fd < 0)
			return s;
		if (s->since < oldest->since)
			oldest = s;
	}
	watch_close(a->ep->ctx, &oldest->watch);
	return oldest;
}

static bool has_ticket(const struct arrive *a, const struct caller *s)
{
	return key_same_secret(a->ticket.bytes, s->said.ticket) &&
	       !memcmp(s->said.magic, ARRIVAL_MAGIC, sizeof(s->said.magic));
}

static void let_in(struct arrive *a, struct caller *s)
{
	struct endpoint *ep = a->ep;
	int fd = s->watch.fd, rc;

	watch_remove(ep->ctx, &s->watch);
	s->watch.fd = -1;
	shut_door(a);
	watch_remove(ep->ctx, &a->process);
	rc = bootstrap_start_stream(ep, fd, a->process.fd, false, &a->secret);
	a->process.fd = -1;      /* the control connection's from now on */
	if (!ep->rooms->control) /* and closed with that */
		ep->rooms->process->pidfd = -1;
	if (rc < 0)
		endpoint_refused(ep, -error_system(rc, "handshake"), slmpm_error_detail());
}

/* Never more than it has to say: what follows is the handshake's. */
static void arrive_hear(struct arrive *a, struct caller *s)
{
	ssize_t n = recv(s->watch.fd, (char *)&s->said + s->have, sizeof(s->said) - s->have,
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->have += n > 0 ? (size_t)n : 0;
	if (n > 0 && s->have < sizeof(s->said))
		return;
	if (n > 0 && has_ticket(a, s)) {
		let_in(a, s);
		return;
	}
	if (n > 0)
		log_limited(&a->knocks, SLMPM_LOG_WARN, "%s: a stranger knocked and was sent away",
			    a->ep->life->name);
	watch_close(a->ep->ctx, &s->watch);
}

static void arrive_take_connection(struct arrive *a)
{
	int fd = accept4(a->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct caller *s;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		arrive_refuse(a, SLMPM_ENOFILE, "no descriptor for its connection");
	if (fd < 0)
		return;
	s = arrive_find_place(a);
	s->watch.fd = fd;
	s->since = clock_now();
	s->have = 0;
	if (net_prepare(fd) < 0 || watch_add(a->ep->ctx, &s->watch) < 0) {
		close(fd);
		s->watch.fd = -1;
		return;
	}
	arrive_hear(a, s); /* before another one comes */
}

static void arrive_ready(struct context *ctx, struct watch *w)
{
	struct arrive *a = w->owner;

	(void)ctx;
	if (w->fd < 0)
		return; /* closed by what was handled just before */
	if (a->ep->state != SLMPM_PEER_CONNECTING) {
		shut_door(a);
		watch_remove(a->ep->ctx, &a->process);
	} else if (w == &a->process) {
		arrive_ended(a);
	} else if (w == &a->listening) {
		arrive_take_connection(a);
	} else {
		arrive_hear(a, (struct caller *)(void *)w);
	}
}

int arrive_begin(struct arrive *a, struct endpoint *ep)
{
	int rc;

	a->ep = ep;
	a->process.fd = ep->rooms->process->pidfd;
	rc = watch_add(ep->ctx, &a->listening);
	return rc == 0 && a->process.fd >= 0 ? watch_add(ep->ctx, &a->process) : rc;
}

void arrive_free(struct arrive *a)
{
	if (a && a->ep) {
		shut_door(a);
		watch_close(a->ep->ctx, &a->process);
	} else if (a && a->listening.fd >= 0) {
		close(a->listening.fd);
	}
	free(a);
}

void arrive_forked(struct arrive *a)
{
	if (a->listening.fd >= 0)
		close(a->listening.fd);
	if (a->process.fd >= 0)
		close(a->process.fd);
	for (int i = 0; i < UNAUTHENTICATED; i++)
		if (a->unauthenticated[i].watch.fd >= 0)
			close(a->unauthenticated[i].watch.fd);
}

/* ---- the accelerator's side ----------------------------------------------------------------- */

static int show_ticket(int fd, const struct secret *ticket)
{
	struct arrival say;

	memcpy(say.magic, ARRIVAL_MAGIC, sizeof(say.magic));
	memcpy(say.ticket, ticket->bytes, SECRET_SIZE);
	/* The first bytes of a fresh connection: there is room for them. */
	return send(fd, &say, sizeof(say), MSG_NOSIGNAL) == (ssize_t)sizeof(say) ? 0 : -EPIPE;
}

int arrive_connect(const char *text, uint64_t deadline)
{
	struct secret ticket;
	const char *slash = strrchr(text, '/'), *at = text + 6;
	int rc = error_set(SLMPM_EADDRESS, "SLMPM_PARENT: no address of the host");
	unsigned left = 1;

	if (strncmp(text, "tcp://", 6) != 0 || slash <= at || !secret_parse(&ticket, slash + 1))
		return rc;
	for (const char *c = at; c < slash; c++)
		left += *c == ',';
	while (at < slash) {
		size_t n = strcspn(at, ",/");
		uint64_t now = clock_now();
		uint64_t until = now < deadline ? now + (deadline - now) / left-- : deadline;
		struct url url;
		char one[320];

		snprintf(one, sizeof(one), "tcp://%.*s", (int)(n < 300 ? n : 300), at);
		rc = url_parse(&url, one);
		rc = rc < 0 ? rc : url_connect(&url, until);
		if (rc >= 0 && show_ticket(rc, &ticket) == 0)
			return rc;
		if (rc >= 0) {
			close(rc);
			rc = error_set(SLMPM_ECLOSED, "%s: the host has left", one);
		}
		at += n + 1;
	}
	/* Where it listened nobody does, or who was let in has been sent away. */
	if (rc == -SLMPM_ENOENT || rc == -SLMPM_ESYSTEM)
		return error_set(SLMPM_ECLOSED, "no way back to the host: %.*s",
				 (int)(slash - text), text);
	return rc;
}
