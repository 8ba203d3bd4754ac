/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime: init and exit, settings. */
#include "slmpm/dacs/dacs_dma.h"
#include "slmpm/dacsbase/dacs_start.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A forked child has no runtime: what it holds is its parent's, and stays untouched. */
static void forget_after_fork(void)
{
	if (dacsi.kick >= 0)
		close(dacsi.kick);
	dacsi = (struct dacsi_runtime)DACSI_AT_START;
}

static struct slmpm_setting setting; /* asked for last; under the lock */

static const char *text_setting(const char *name)
{
	setting = (struct slmpm_setting){.size = sizeof(setting)};
	for (int i = 0; slmpm_setting_at(i, &setting) == 0; i++)
		if (strcmp(setting.name, name) == 0)
			return setting.value;
	return "";
}

static int number_setting(const char *name, int otherwise)
{
	const char *text = text_setting(name);

	return *text ? (int)strtol(text, NULL, 0) : otherwise;
}

static bool yes_setting(const char *name)
{
	char first = *text_setting(name);

	return first == 'y' || first == 'Y';
}

static DACS_ERR_T read_settings(struct dacsi_settings *set)
{
	const char *prefix;

	set->timeout_ms = number_setting("TIMEOUT", -1);
	set->kill_ms = number_setting("DACS_KILL_MS", 1000);
	set->abort = yes_setting("DACS_ABORT");
	set->keep_cwd = yes_setting("DACS_KEEP_CWD");
	set->strict = yes_setting("DACS_STRICT");
	set->serve = strcasecmp(text_setting("ENGINE"), "thread") == 0;
	prefix = text_setting("DACS_CWD_PREFIX");
	if (strlen(prefix) >= sizeof(setting.value) - 1) /* perhaps cut off */
		return DACS_ERR_TOO_LONG;
	if (!*prefix)
		prefix = secure_getenv("TMPDIR");
	if (!prefix || !*prefix)
		prefix = "/tmp";
	if (strlen(prefix) >= sizeof(set->cwd_prefix))
		return DACS_ERR_TOO_LONG;
	strcpy(set->cwd_prefix, prefix);
	return DACS_SUCCESS;
}

/* Connects an accelerator. What the parent sends may come before this is over. */
static DACS_ERR_T find_parent(void)
{
	const char *cwd = secure_getenv("AE_CWD");
	int rc;

	dacsi.parent = dacsi_process_new(DACS_DE_PARENT);
	if (!dacsi.parent)
		return DACS_ERR_NO_RESOURCE;
	dacsi.parent->pid = DACS_PID_PARENT;
	rc = slmpm_parent_in(dacsi.ctx, &dacsi.parent->peer);
	if (rc < 0) {
		free(dacsi.parent);
		dacsi.parent = NULL;
	}
	if (rc == -SLMPM_ESTATE)
		return DACS_SUCCESS;
	if (rc == -SLMPM_EVERSION || rc == -SLMPM_ENOMEM || rc == -SLMPM_ENOFILE)
		return dacsi_code(rc);
	if (rc < 0)
		return DACS_ERR_DACSD_FAILURE;
	dacsi.child = true;
	if (cwd)
		dacsi.own_cwd_lock = dacsi_cwd_hold(cwd);
	return DACS_SUCCESS;
}

/* What dacs_exit ends with, and a failed dacs_init. */
static void tear_down_runtime(int timeout_ms)
{
	if (dacsi.parent) {
		dacsi_message_fail(dacsi.parent, DACS_ERR_NOT_INITIALIZED);
		(void)slmpm_close(dacsi.parent->peer, timeout_ms);
		dacsi_object_forget(dacsi.parent);
	}
	free(dacsi.parent);
	dacsi.parent = NULL;
	dacsi_element_release_all();
	(void)slmpm_shut(dacsi.ctx, timeout_ms);
	if (dacsi.kick >= 0)
		close(dacsi.kick);
	dacsi.kick = -1;
	for (uint32_t i = 0; i < dacsi.wid_places; i++) {
		dacsi_message_abandon(&dacsi.wids[i]);
		dacsi_dma_abandon(&dacsi.wids[i]);
	}
	free(dacsi.wids);
	dacsi.wids = NULL;
	dacsi.wid_places = dacsi.attended = 0;
	dacsi_object_end();
	dacsi_error_reset();
	if (dacsi.own_cwd_lock >= 0)
		close(dacsi.own_cwd_lock);
	dacsi.own_cwd_lock = -1;
	dacsi.suspects = 0;
	dacsi.swept = false;
	dacsi.idle = false;
}

static DACS_ERR_T set_up_runtime(bool threads)
{
	struct slmpm_options options = {.size = sizeof(options)};
	DACS_ERR_T rc = read_settings(&dacsi.set);
	int opened;

	if (rc != DACS_SUCCESS)
		return rc;
	/* One thread at a time is in SLMPM: the lock here sees to that. */
	opened = slmpm_open(&dacsi.ctx, &options);
	if (opened < 0)
		return opened == -SLMPM_EINVAL ? DACS_ERR_INVALID_ENV : dacsi_code(opened);
	dacsi.wids = calloc(DACSI_WIDS, sizeof(*dacsi.wids));
	dacsi.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!dacsi.wids || dacsi.kick < 0 || dacsi_word_begin() < 0 || dacsi_mailbox_begin() < 0)
		rc = DACS_ERR_NO_RESOURCE;
	else
		rc = find_parent();
	if (rc == DACS_SUCCESS && dacsi.set.serve && threads)
		rc = dacsi_serve_begin();
	if (rc != DACS_SUCCESS)
		tear_down_runtime(0);
	return rc;
}

/* Timed waits count monotonic time, in a forked child too; the fork hook is inherited. */
static void prepare_once(void)
{
	static bool hooked;
	pthread_condattr_t attr;

	if (dacsi.prepared)
		return;
	dacsi.prepared = true;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&dacsi.changed, &attr);
	pthread_condattr_destroy(&attr);
	if (!hooked)
		hooked = pthread_atfork(NULL, NULL, forget_after_fork) == 0;
}

DACS_ERR_T dacs_init(int config_flags)
{
	const bool threads = !(config_flags & DACS_INIT_SINGLE_THREADED);
	DACS_ERR_T rc = DACS_ERR_INITIALIZED;

	if (config_flags & ~DACS_INIT_SINGLE_THREADED)
		return DACS_ERR_INVALID_ATTR;
	pthread_mutex_lock(&dacsi.lock);
	if (!dacsi.up && !dacsi.child) {
		prepare_once();
		rc = set_up_runtime(threads);
	}
	if (rc == DACS_SUCCESS) {
		if (!threads)
			dacsi.threads = false; /* no other thread reads it */
		dacsi.life++;
		dacsi.up = true;
	}
	pthread_mutex_unlock(&dacsi.lock);
	return rc;
}

DACS_ERR_T dacs_exit(void)
{
	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	(void)dacsi_leave(DACS_SUCCESS); /* handlers run for what has happened until now */
	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	dacsi.leaving = true;
	while (dacsi.threads && dacsi.inside) {
		dacsi_kick();
		pthread_cond_broadcast(&dacsi.changed);
		pthread_cond_wait(&dacsi.changed, &dacsi.lock);
	}
	dacsi_serve_end();
	dacsi_process_exit_all();
	tear_down_runtime(DACSI_CLOSE_MS);
	dacsi.up = false;
	dacsi.leaving = false;
	if (dacsi.threads)
		pthread_mutex_unlock(&dacsi.lock);
	else
		dacsi.threads = true;
	return DACS_SUCCESS;
}

DACS_ERR_T dacs_runtime_init(void *arg1, void *arg2)
{
	return arg1 || arg2 ? DACS_ERR_INVALID_ADDR : dacs_init(DACS_INIT_FLAGS_NONE);
}

DACS_ERR_T dacs_runtime_exit(void)
{
	return dacs_exit();
}
