/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of machines to their addresses. The C library's look-up has no deadline, so names that are
 * no plain addresses are left to its own helper thread; one that does not come back in time is put
 * aside and freed when it has.
 */
#include "slmpm/lookup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slmpm/list.h"
#include "slmpm/wait.h"

struct question {
	struct list node;
	struct gaicb asked;
	struct addrinfo hints;
	char host[256], port[8];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list late_ones = {&late_ones, &late_ones};

static void forget(struct question *q)
{
	if (q->asked.ar_result)
		freeaddrinfo(q->asked.ar_result);
	free(q);
}

static void forget_answered(void)
{
	pthread_mutex_lock(&lock);
	LIST_EACH(at, &late_ones) {
		struct question *q = LIST_ENTRY(at, struct question, node);

		if (gai_error(&q->asked) == EAI_INPROGRESS)
			continue;
		list_remove(at);
		forget(q);
	}
	pthread_mutex_unlock(&lock);
}

static void put_aside(struct question *q)
{
	pthread_mutex_lock(&lock);
	list_append(&late_ones, &q->node);
	pthread_mutex_unlock(&lock);
}

/* Until it has been answered, or DEADLINE. */
static void await(const struct question *q, uint64_t deadline)
{
	const struct gaicb *list[] = {&q->asked};
	int rc;

	do {
		int ms = wait_ms(wait_now(), deadline, -1);
		struct timespec left = {ms / 1000, ms % 1000 * 1000000L};

		rc = gai_suspend(list, 1, ms < 0 ? NULL : &left);
	} while (gai_error((struct gaicb *)(uintptr_t)&q->asked) == EAI_INPROGRESS &&
		 (rc == EAI_INTR || rc == 0 || wait_now() < deadline));
}

static int ask(const char *host, const char *port, const struct addrinfo *hints, uint64_t deadline,
	       struct addrinfo **out, bool *late)
{
	struct question *q = calloc(1, sizeof(*q));
	struct gaicb *list[1];
	int rc;

	if (!q)
		return EAI_MEMORY;
	q->hints = *hints;
	strncpy(q->host, host, sizeof(q->host) - 1);
	strncpy(q->port, port, sizeof(q->port) - 1);
	q->asked =
		(struct gaicb){.ar_name = q->host, .ar_service = q->port, .ar_request = &q->hints};
	list[0] = &q->asked;
	rc = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
	if (rc != 0) {
		free(q);
		return rc;
	}
	await(q, deadline);
	rc = gai_error(&q->asked);
	if (rc == EAI_INPROGRESS) {
		*late = true;
		if (gai_cancel(&q->asked) == EAI_CANCELED)
			forget(q);
		else
			put_aside(q);
		return EAI_AGAIN;
	}
	*out = q->asked.ar_result;
	q->asked.ar_result = NULL;
	forget(q);
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
	forget_answered();
	if (!*host)
		return getaddrinfo(NULL, port, &hints, out);
	if (!strcasecmp(host, "localhost")) {
		hints.ai_flags = AI_NUMERICSERV;
		return getaddrinfo(NULL, port, &hints, out);
	}
	rc = getaddrinfo(host, port, &hints, out);
	if (rc != EAI_NONAME)
		return rc;
	hints.ai_flags = AI_NUMERICSERV;
	return ask(host, port, &hints, deadline, out, late);
}
