/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a DaCS call waits: spin and yield for a while, then one thread sleeps on SLMPM's descriptor
 * for all that wait; the others wait for it.
 */
#include "slmpm/dacsbase/dacs_internal.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SERVE_NS   INT64_C(1000000)
#define SUSPECT_NS INT64_C(20000000)

int64_t dacsi_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool progress_of(struct dacsi_process *process)
{
	if (process->unreturned)
		dacsi_parts.settle_mail(process);
	return process->posted && dacsi_parts.match(process);
}

bool dacsi_progress(void)
{
	bool news = false;

	/* Once it has had an object, partners may wait for it to serve transfers, or for a word. */
	if (dacsi.handle_places)
		news = slmpm_progress(dacsi.ctx) > 0;
	if (dacsi.attended)
		news |= dacsi_parts.attend();
	if (dacsi.due || dacsi.awaited)
		news |= dacsi_parts.settle();
	for (struct dacsi_process *p = dacsi.children; p; p = p->next)
		news |= progress_of(p);
	if (dacsi.parent)
		news |= progress_of(dacsi.parent);
	return news;
}

void dacsi_pause_begin(struct dacsi_pause *p)
{
	*p = (struct dacsi_pause){.deadline = -1};
	if (dacsi.set.timeout_ms >= 0)
		p->deadline = dacsi_now() + dacsi.set.timeout_ms * INT64_C(1000000);
}

void dacsi_kick(void)
{
	uint64_t one = 1;

	(void)!write(dacsi.kick, &one, sizeof(one));
}

/* The earliest instant at which a condition has to be checked again, or -1. SLMPM's descriptor
 * shows the end of a suspect, but not of one that is traced, nor on a kernel without pidfds. */
static int64_t wake_at(const struct dacsi_pause *p)
{
	int64_t soon = dacsi_now() + SUSPECT_NS;

	return dacsi.suspects && (p->deadline < 0 || soon < p->deadline) ? soon : p->deadline;
}

static void notify_others(void)
{
	if (dacsi.threads && dacsi.inside)
		pthread_cond_broadcast(&dacsi.changed);
}

/* Sleeps for all threads: no other may do so meanwhile, and an SLMPM call, which disarms the
 * descriptors, has to kick. */
static void sleep_on_descriptors(const struct dacsi_pause *p)
{
	struct pollfd fds[2] = {{.fd = slmpm_fd(dacsi.ctx), .events = POLLIN},
				{.fd = dacsi.kick, .events = POLLIN}};
	struct timespec span = {0};
	int64_t at = wake_at(p), left = at < 0 ? 0 : at - dacsi_now();
	uint64_t count;

	if (at >= 0 && left <= 0)
		return;
	/* 1 also when something came since the last time: probing for one message may bring in
	 * another, for which a thread has probed before. A child's end shows but once. */
	if (slmpm_arm(dacsi.ctx) != 0 || dacsi_process_watch(false)) {
		notify_others();
		return;
	}
	span.tv_sec = left / 1000000000;
	span.tv_nsec = left % 1000000000;
	dacsi.sleeping = true;
	dacsi.inside++;
	dacsi_unlock();
	(void)ppoll(fds, 2, at < 0 ? NULL : &span, NULL);
	dacsi_lock();
	dacsi.inside--;
	dacsi.sleeping = false;
	/* A kick says nothing but that the descriptors were disarmed. */
	(void)!read(dacsi.kick, &count, sizeof(count));
}

static void wait_for_sleeper(const struct dacsi_pause *p)
{
	struct timespec at = {.tv_sec = p->deadline / 1000000000,
			      .tv_nsec = p->deadline % 1000000000};

	dacsi.inside++;
	if (p->deadline < 0)
		pthread_cond_wait(&dacsi.changed, &dacsi.lock);
	else
		pthread_cond_timedwait(&dacsi.changed, &dacsi.lock, &at);
	dacsi.inside--;
}

/* One round without sleep; false when it is time to sleep. */
static bool spin_once(struct dacsi_pause *p)
{
	int how = slmpm_spin(dacsi.ctx, 0);

	dacsi.idle = true;
	if (how == SLMPM_SPIN_SLEEP)
		return false;
	p->rounds++;
	p->slept = false;
	dacsi.inside++;
	dacsi_unlock();
	if (how == SLMPM_SPIN_YIELD)
		sched_yield();
	dacsi_lock();
	dacsi.inside--;
	if (how == SLMPM_SPIN_YIELD)
		(void)slmpm_spin(dacsi.ctx, 0);
	return true;
}

void dacsi_pause_over(void)
{
	dacsi.idle = false;
	(void)slmpm_spin(dacsi.ctx, 1);
}

DACS_ERR_T dacsi_pause(struct dacsi_pause *p)
{
	uint32_t life = dacsi.life;

	if (dacsi.leaving)
		return DACS_ERR_NOT_INITIALIZED;
	if (dacsi_progress()) {
		if (dacsi.idle)
			dacsi_pause_over();
		notify_others();
	} else if (dacsi_process_watch(p->rounds % 64 == 63 || p->slept)) {
		notify_others();
	} else if (!spin_once(p)) {
		if (p->deadline >= 0 && dacsi_now() >= p->deadline)
			return DACS_ERR_DACSD_FAILURE;
		p->rounds = 0;
		p->slept = true;
		if (dacsi.sleeping) {
			dacsi_kick();
			wait_for_sleeper(p);
		} else {
			sleep_on_descriptors(p);
		}
	}
	if (dacsi.errors) { /* handlers may do anything, dacs_exit too */
		dacsi_unlock();
		dacsi_error_handle();
		dacsi_lock();
	}
	if (dacsi.leaving) /* dacs_exit waits for the last to come out */
		pthread_cond_broadcast(&dacsi.changed);
	return dacsi.up && !dacsi.leaving && dacsi.life == life ? DACS_SUCCESS :
								  DACS_ERR_NOT_INITIALIZED;
}

/* ---- the thread of SLMPM_ENGINE=thread ------------------------------------------------------ */

/* Sleeps on the descriptors unless a call was made within a millisecond. *SEEN: calls so far. */
static void serve_turn(uint32_t *seen)
{
	struct dacsi_pause turn = {.deadline = -1};

	if (dacsi.sleeping) {
		wait_for_sleeper(&turn);
	} else if (*seen != dacsi.entered) {
		*seen = dacsi.entered;
		/* Who waits for this thread to sleep has to do so itself. */
		pthread_cond_broadcast(&dacsi.changed);
		turn.deadline = dacsi_now() + SERVE_NS;
		wait_for_sleeper(&turn);
	} else if (dacsi_progress() || dacsi_process_watch(true)) {
		notify_others();
	} else {
		sleep_on_descriptors(&turn);
	}
	if (dacsi.leaving)
		pthread_cond_broadcast(&dacsi.changed);
}

/* Serves partners, their puts and gets by requests above all, while the application makes no call.
 * No error handlers run here. */
static void *serve_partners(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	pthread_mutex_lock(&dacsi.lock);
	while (!dacsi.leaving)
		serve_turn(&seen);
	pthread_mutex_unlock(&dacsi.lock);
	return NULL;
}

DACS_ERR_T dacsi_serve_begin(void)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);         /* they are the application's */
	sigdelset(&all, SIGSEGV); /* but what a store of its own causes */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&dacsi.server, NULL, serve_partners, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	dacsi.served = rc == 0;
	return rc ? DACS_ERR_NO_RESOURCE : DACS_SUCCESS;
}

void dacsi_serve_end(void)
{
	if (!dacsi.served)
		return;
	pthread_mutex_unlock(&dacsi.lock);
	pthread_join(dacsi.server, NULL);
	pthread_mutex_lock(&dacsi.lock);
	dacsi.served = false;
}
