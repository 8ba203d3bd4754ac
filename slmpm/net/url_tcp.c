/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp://host:port: a name's addresses in turn, each with its share of the time that is left. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/base/error.h"
#include "slmpm/net/net.h"
#include "slmpm/net/url.h"
#include "slmpm/base/clock.h"

/* ---- names ---- */

/* The C library's look-up has no deadline, so names that are no plain addresses are looked up by a
 * thread that ends with the answer; of it and the caller the last to leave cleans up. */
struct question {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	char host[256], port[8];
	struct addrinfo *found;
	int rc, holders;
	bool done;
};

static void question_leave(struct question *q)
{
	bool last;

	pthread_mutex_lock(&q->lock);
	last = !--q->holders;
	pthread_mutex_unlock(&q->lock);
	if (!last)
		return;
	if (q->found)
		freeaddrinfo(q->found);
	free(q);
}

static void *question_answer(void *arg)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	struct question *q = arg;
	int rc = getaddrinfo(q->host, q->port, &hints, &found);

	pthread_mutex_lock(&q->lock);
	q->rc = rc;
	q->found = found;
	q->done = true;
	pthread_cond_signal(&q->answered);
	pthread_mutex_unlock(&q->lock);
	question_leave(q);
	return NULL;
}

/* The application's signals are not for its thread. */
static struct question *question_start(const char *host, const char *port)
{
	struct question *q = malloc(sizeof(*q));
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (!q)
		return NULL;
	*q = (struct question){.lock = PTHREAD_MUTEX_INITIALIZER,
			       .answered = PTHREAD_COND_INITIALIZER,
			       .holders = 2};
	snprintf(q->host, sizeof(q->host), "%s", host);
	snprintf(q->port, sizeof(q->port), "%s", port);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, question_answer, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		free(q);
		return NULL;
	}
	pthread_detach(thread);
	return q;
}

/* EAI_AGAIN with *LATE: not until DEADLINE. */
static int look_up(const char *host, const char *port, uint64_t deadline, struct addrinfo **out,
		   bool *late)
{
	struct timespec until = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
	struct question *q = question_start(host, port);
	int rc = 0;

	if (!q)
		return EAI_MEMORY;
	pthread_mutex_lock(&q->lock);
	while (!q->done && rc == 0)
		rc = deadline == UINT64_MAX ? pthread_cond_wait(&q->answered, &q->lock) :
					      pthread_cond_clockwait(&q->answered, &q->lock,
								     CLOCK_MONOTONIC, &until);
	*late = !q->done;
	rc = *late ? EAI_AGAIN : q->rc;
	if (q->done) {
		*out = q->found;
		q->found = NULL;
	}
	pthread_mutex_unlock(&q->lock);
	question_leave(q);
	return rc;
}

/* Addresses for HOST, empty: every one of this machine to LISTEN at, else this machine's own. 0, or
 * an EAI_* code: EAI_AGAIN with *LATE when the deadline came. */
static int find_addresses(const char *host, const char *port, bool listening, uint64_t deadline,
			  struct addrinfo **out, bool *late)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | (listening ? AI_PASSIVE : 0),
	};
	int rc;

	*out = NULL;
	*late = false;
	if (!*host)
		return getaddrinfo(NULL, port, &hints, out);
	if (!strcasecmp(host, "localhost")) {
		hints.ai_flags = AI_NUMERICSERV;
		return getaddrinfo(NULL, port, &hints, out);
	}
	rc = getaddrinfo(host, port, &hints, out);
	return rc == EAI_NONAME ? look_up(host, port, deadline, out, late) : rc;
}

static int url_tcp_find(const struct url *url, bool listening, uint64_t deadline,
			struct addrinfo **found)
{
	bool late;
	int rc = find_addresses(url->host, url->port, listening, deadline, found, &late);

	if (rc == 0)
		return 0;
	if (late)
		return error_set(SLMPM_ETIMEOUT, "%s: the name was not found out in time",
				 url->text);
	if (rc == EAI_MEMORY)
		return error_set(SLMPM_ENOMEM, "%s", url->text);
	if (rc == EAI_SYSTEM)
		return error_system(-errno, url->text);
	return error_set(SLMPM_EADDRESS, "%s: %s", url->text, gai_strerror(rc));
}

static int refused(const struct url *url, const struct sockaddr *sa)
{
	char name[NET_NAME];

	net_name(sa, name);
	return error_set(SLMPM_EACCES,
			 "%s: %s is not of this machine alone, and nothing protects what travels "
			 "there; SLMPM_INSECURE=y allows it",
			 url->text, name);
}

static int url_tcp_new_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	rc = net_prepare(fd);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* ---- listening ------------------------------------------------------------------------------ */

/* One that says every address takes IPv4 along. Who was connected here may still linger. */
static int listen_at(const struct addrinfo *at, int backlog)
{
	int fd = url_tcp_new_socket(at->ai_family), yes = 1, no = 0;

	if (fd < 0)
		return fd;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (at->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, backlog) != 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Every address: by IPv6 where there is any. Of a name, IPv4 first: most are written so. */
static int listen_at_one(const struct url *url, const struct addrinfo *found, int backlog)
{
	int first = *url->host ? AF_INET : AF_INET6, rc = -EADDRNOTAVAIL;

	for (int turn = 0; turn < 2; turn++)
		for (const struct addrinfo *at = found; at; at = at->ai_next) {
			if ((at->ai_family == first) == (turn == 1))
				continue;
			if (!net_allowed(at->ai_addr))
				return refused(url, at->ai_addr);
			rc = listen_at(at, backlog);
			if (rc >= 0 || rc == -EADDRINUSE)
				return rc < 0 ? url_not_listening(url, rc) : rc;
		}
	return url_not_listening(url, rc);
}

int url_listen_tcp(const struct url *url, int backlog)
{
	struct addrinfo *found;
	int rc = url_tcp_find(url, true, clock_deadline((int)config_get()->handshake_ms), &found);

	if (rc < 0)
		return rc;
	rc = listen_at_one(url, found, backlog);
	freeaddrinfo(found);
	return rc;
}

/* ---- connecting ----------------------------------------------------------------------------- */

/* To a port where nobody listens, and that this end was given itself: nobody is there. */
static bool is_itself(int fd)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t a = sizeof(here), b = sizeof(there);

	return getsockname(fd, (struct sockaddr *)&here, &a) == 0 &&
	       getpeername(fd, (struct sockaddr *)&there, &b) == 0 && a == b &&
	       !memcmp(&here, &there, a);
}

static int url_tcp_await_connected(int fd, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0, n;
	socklen_t size = sizeof(error);

	do
		n = poll(&p, 1, clock_ms(clock_now(), deadline, -1));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		return -errno;
	return error ? -error : is_itself(fd) ? -ECONNREFUSED : 0;
}

static int url_tcp_connect_to(const struct addrinfo *to, uint64_t deadline)
{
	int fd = url_tcp_new_socket(to->ai_family), rc = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS && errno != EINTR)
		rc = -errno;
	if (rc == 0)
		rc = url_tcp_await_connected(fd, deadline);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* The time that is left, shared among those that are. Without a deadline each has that of a
 * handshake. */
static uint64_t url_tcp_share_of(uint64_t deadline, const struct addrinfo *at)
{
	uint64_t now = clock_now(), left = 1;

	if (deadline == UINT64_MAX)
		return now + (uint64_t)config_get()->handshake_ms * 1000000;
	for (; at->ai_next; at = at->ai_next)
		left++;
	return deadline > now ? now + (deadline - now) / left : now;
}

/* Of several failures the first that says most: somebody was there, or might have been. */
static int connect_to_one(const struct url *url, const struct addrinfo *found, uint64_t deadline)
{
	const struct addrinfo *forbidden = NULL;
	int why = 0;

	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		int rc;

		if (!net_allowed(at->ai_addr)) {
			forbidden = at;
			continue;
		}
		rc = url_tcp_connect_to(at, url_tcp_share_of(deadline, at));
		if (rc >= 0)
			return rc;
		if (!why || why == -ECONNREFUSED)
			why = rc;
	}
	return why || !forbidden ? url_not_connected(url, why ? why : -EADDRNOTAVAIL) :
				   refused(url, forbidden->ai_addr);
}

int url_connect_tcp(const struct url *url, uint64_t deadline)
{
	struct addrinfo *found;
	int rc = url_tcp_find(url, false, deadline, &found);

	if (rc < 0)
		return rc;
	rc = connect_to_one(url, found, deadline);
	freeaddrinfo(found);
	return rc;
}
