/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread of SLMPM_ENGINE=thread: what partners ask of this process, puts and gets by requests
 * above all, is done while the application makes no DaCS call. It runs no error handlers.
 */
#include "slmpm/dacsbase/dacs_wait.h"

#include <signal.h>

static void *serve_partners(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	pthread_mutex_lock(&dacsi.lock);
	while (!dacsi.leaving)
		dacsi_serve_turn(&seen);
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
