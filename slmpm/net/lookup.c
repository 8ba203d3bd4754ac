/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of machines to their addresses. The C library's look-up has no deadline, so names that are
 * no plain addresses are looked up by a thread that ends with the answer; whoever comes last, it or
 * the caller, cleans up.
 */
#include "slmpm/net/url.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct question {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	char host[256], port[8];
	struct addrinfo hints, *found;
	int rc;
	bool done, left; /* answered; nobody waits for it any more */
};

static struct question *question_new(const char *host, const char *port)
{
	struct question *q = calloc(1, sizeof(*q));
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->answered, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&q->lock, NULL);
	strncpy(q->host, host, sizeof(q->host) - 1);
	strncpy(q->port, port, sizeof(q->port) - 1);
	q->hints = (struct addrinfo){
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	return q;
}

static void question_free(struct question *q)
{
	if (q->found)
		freeaddrinfo(q->found);
	pthread_cond_destroy(&q->answered);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void *lookup_answer(void *arg)
{
	struct question *q = arg;
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(q->host, q->port, &q->hints, &found);
	bool left;

	pthread_mutex_lock(&q->lock);
	q->rc = rc;
	q->found = found;
	q->done = true;
	left = q->left;
	pthread_cond_signal(&q->answered);
	pthread_mutex_unlock(&q->lock);
	if (left)
		question_free(q);
	return NULL;
}

/* The application's signals are not for it. */
static bool lookup_start(struct question *q)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, lookup_answer, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc == 0;
}

/* Until it has been answered, or DEADLINE: false, and the thread cleans up. */
static bool lookup_await(struct question *q, uint64_t deadline)
{
	struct timespec until = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
	int rc = 0;
	bool done;

	pthread_mutex_lock(&q->lock);
	while (!q->done && rc == 0)
		rc = deadline == UINT64_MAX ?
			     pthread_cond_wait(&q->answered, &q->lock) :
			     pthread_cond_timedwait(&q->answered, &q->lock, &until);
	done = q->done;
	q->left = !done;
	pthread_mutex_unlock(&q->lock);
	return done;
}

static int lookup_ask(const char *host, const char *port, uint64_t deadline, struct addrinfo **out,
		      bool *late)
{
	struct question *q = question_new(host, port);
	int rc;

	if (!q)
		return EAI_MEMORY;
	if (!lookup_start(q)) {
		question_free(q);
		return EAI_MEMORY;
	}
	*late = !lookup_await(q, deadline);
	if (*late)
		return EAI_AGAIN;
	rc = q->rc;
	*out = q->found;
	q->found = NULL;
	question_free(q);
	return rc;
}

int lookup(const char *host, const char *port, bool listening, uint64_t deadline,
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
	return rc == EAI_NONAME ? lookup_ask(host, port, deadline, out, late) : rc;
}
