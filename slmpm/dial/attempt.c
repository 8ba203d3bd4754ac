/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A socket to an address, by a thread that ends with it: a name and a machine that does not answer
 * take their time. It touches no context; of it and who began it the last to leave cleans up.
 */
#include "slmpm/dial/dial.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "slmpm/base/error.h"
#include "slmpm/connect/listener.h"

struct attempt {
	_Atomic int holders;
	_Atomic bool done; /* pairs the result with who takes it */
	int bell;
	uint64_t deadline;
	struct url url;
	struct attempt_result result;
};

static void attempt_leave(struct attempt *a)
{
	if (atomic_fetch_sub_explicit(&a->holders, 1, memory_order_acq_rel) > 1)
		return;
	if (a->result.rc >= 0)
		close(a->result.rc);
	close(a->bell);
	free(a);
}

static void *attempt_run(void *arg)
{
	static const uint64_t one = 1;
	struct attempt *a = arg;
	int rc = connect_socket(&a->url, a->deadline);

	if (rc < 0)
		snprintf(a->result.detail, sizeof(a->result.detail), "%s", slmpm_error_detail());
	a->result.rc = rc;
	atomic_store_explicit(&a->done, true, memory_order_release);
	(void)!write(a->bell, &one, sizeof(one));
	attempt_leave(a);
	return NULL;
}

/* The application's signals are not for it. 0, or a negative errno. */
static int attempt_thread(struct attempt *a)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, attempt_run, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc == 0 ? 0 : -ENOMEM;
}

int attempt_begin(struct attempt **out, const char *url, uint64_t deadline)
{
	struct attempt *a = malloc(sizeof(*a));
	int rc = -EINVAL;

	*out = NULL;
	if (!a)
		return -ENOMEM;
	*a = (struct attempt){.holders = 2, .deadline = deadline, .result.rc = -1};
	a->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->bell < 0)
		rc = -errno;
	else if (url_parse(&a->url, url) == 0)
		rc = attempt_thread(a);
	if (rc == 0) {
		*out = a;
		return a->bell;
	}
	if (a->bell >= 0)
		close(a->bell);
	free(a);
	return rc;
}

void attempt_take(struct attempt *a, struct attempt_result *result)
{
	if (atomic_load_explicit(&a->done, memory_order_acquire))
		*result = a->result;
	a->result.rc = -1;
	attempt_leave(a);
}

void attempt_drop(struct attempt *a)
{
	attempt_leave(a);
}
