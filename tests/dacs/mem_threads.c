/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Regions under several threads: shared, used and ended at once, and calls that others cut
 * short. */
#include "tests/dacs/pair.h"

#include <pthread.h>

#define THREADS 5
#define TURNS   40
#define WORDS   1000

static void run_threads(void *(*run)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i) == 0, "thread");
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0, "join");
}

/* ---- roles ---- */

/* Shares one region after another with the parent; what it is when all have let go is known. */
static void *owner_thread(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg, words[WORDS];
	dacs_remote_mem_t mem;

	for (uint32_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = 0; i < WORDS; i++)
			words[i] = i * (me + 1) + turn;
		OK(dacs_remote_mem_create(words, sizeof(words), DACS_READ_WRITE, &mem));
		OK(dacs_remote_mem_share(UP, mem));
		OK(dacs_remote_mem_destroy(&mem));
		for (uint32_t i = 0; i < WORDS; i++)
			CHECK(words[i] == ~(i * (me + 1) + turn), "word %u of turn %u", i, turn);
	}
	return NULL;
}

static int role_owners(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	run_threads(owner_thread);
	OK(dacs_exit());
	return 0;
}

static int role_silent(int argc, char **argv)
{
	uint32_t word;
	DACS_ERR_T rc;

	(void)argc, (void)argv;
	rc = dacs_init(0);
	if (rc == DACS_ERR_DACSD_FAILURE) /* its host has gone already */
		return 0;
	OK(rc);
	EXPECT(dacs_mailbox_read(&word, UP), DACS_ERR_DE_TERM);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

static struct child partner;

/* Takes whatever region comes next and turns its words over. */
static void *user_thread(void *arg)
{
	uint32_t words[WORDS];
	dacs_remote_mem_t mem;
	dacs_wid_t wid;

	(void)arg;
	OK(dacs_wid_reserve(&wid));
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		OK(dacs_remote_mem_accept(AT(partner), &mem));
		OK(dacs_get(words, mem, 0, sizeof(words), wid, PLAIN));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		for (uint32_t i = 0; i < WORDS; i++)
			words[i] = ~words[i];
		OK(dacs_put(mem, 0, words, sizeof(words), wid, PLAIN));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		OK(dacs_remote_mem_release(&mem));
	}
	OK(dacs_wid_release(&wid));
	return NULL;
}

static int each_thread_has_its_region(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int ring = 0; ring < 2; ring++) {
		setenv("SLMPM_RMA", ring ? "ring" : "auto", 1); /* the accelerator's, this once */
		OK(dacs_init(0));
		partner = pair_start("owners", NULL);
		run_threads(user_thread);
		pair_end(partner, DACS_STS_PROC_FINISHED, 0);
		OK(dacs_exit());
	}
	unsetenv("SLMPM_RMA");
	return 0;
}

static dacs_remote_mem_t shared;
static uint32_t counts[2]; /* destroyers that succeeded, that came too late */

static void *share_thread(void *arg)
{
	(void)arg;
	EXPECT(dacs_remote_mem_share(AT(partner), shared), DACS_ERR_INVALID_HANDLE);
	return NULL;
}

static void *destroy_thread(void *arg)
{
	dacs_remote_mem_t copy = shared;
	DACS_ERR_T rc = dacs_remote_mem_destroy(&copy);

	(void)arg;
	CHECK(rc == DACS_SUCCESS || rc == DACS_ERR_INVALID_HANDLE, "%s", dacs_strerror(rc));
	__atomic_fetch_add(&counts[rc != DACS_SUCCESS], 1, __ATOMIC_RELAXED);
	return NULL;
}

/* A region goes under the threads that share it, and goes once. */
static int a_region_ends_once(int argc, char **argv)
{
	pthread_t sharers[2];
	char byte;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	partner = pair_start("silent", NULL);
	OK(dacs_remote_mem_create(&byte, 1, DACS_READ_WRITE, &shared));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&sharers[i], NULL, share_thread, NULL) == 0, "thread");
	run_threads(destroy_thread);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(sharers[i], NULL) == 0, "join");
	CHECK(counts[0] == 1 && counts[1] == THREADS - 1, "%u destroyed it, %u were late",
	      counts[0], counts[1]);
	OK(dacs_exit());
	return 0;
}

static void *blocked_thread(void *arg)
{
	dacs_remote_mem_t mem;
	dacs_mem_t newer;

	switch ((uintptr_t)arg) {
	case 0: EXPECT(dacs_remote_mem_share(AT(partner), shared), DACS_ERR_NOT_INITIALIZED); break;
	case 1: EXPECT(dacs_remote_mem_accept(AT(partner), &mem), DACS_ERR_NOT_INITIALIZED); break;
	default: EXPECT(dacs_mem_accept(AT(partner), &newer), DACS_ERR_NOT_INITIALIZED);
	}
	return NULL;
}

static void *exit_thread(void *arg)
{
	(void)arg;
	OK(dacs_exit());
	return NULL;
}

/* dacs_exit cuts calls short that wait for the partner, however far they have come. */
static int exit_cuts_short(int argc, char **argv)
{
	pthread_t threads[THREADS], last;
	char byte;

	(void)argc, (void)argv;
	for (int turn = 0; turn < 5; turn++) {
		OK(dacs_init(0));
		partner = pair_start("silent", NULL);
		OK(dacs_remote_mem_create(&byte, 1, DACS_READ_WRITE, &shared));
		for (int i = 0; i < THREADS; i++)
			CHECK(pthread_create(&threads[i], NULL, blocked_thread,
					     (void *)(uintptr_t)i) == 0,
			      "thread");
		CHECK(pthread_create(&last, NULL, exit_thread, NULL) == 0, "thread");
		for (int i = 0; i < THREADS; i++)
			CHECK(pthread_join(threads[i], NULL) == 0, "join");
		CHECK(pthread_join(last, NULL) == 0, "join");
		EXPECT(dacs_remote_mem_destroy(&shared), DACS_ERR_NOT_INITIALIZED);
	}
	return 0;
}

static const struct pair_entry roles[] = {
	{"owners", role_owners}, {"silent", role_silent}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"each thread has its region", each_thread_has_its_region},
	{"a region ends once", a_region_ends_once},
	{"exit cuts short", exit_cuts_short},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
