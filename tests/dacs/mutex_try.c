/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* A try of a mutex does not wait for it: whoever had it and died, and whatever other threads do. */
#include "tests/dacs/pair.h"

#include <pthread.h>
#include <sched.h>

#define TURNS 400

/* Has the mutex when it says so, and dies with it at the next word. */
static int role_dies(int argc, char **argv)
{
	dacs_mutex_t mutex;
	uint32_t word = 1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_accept(UP, &mutex));
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mailbox_write(&word, UP));
	OK(dacs_mailbox_read(&word, UP));
	_exit(0);
}

/* Tries it, at each word but 0, and answers with what the try said. */
static int role_tries(int argc, char **argv)
{
	dacs_mutex_t mutex;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_accept(UP, &mutex));
	for (;;) {
		OK(dacs_mailbox_read(&word, UP));
		if (!word)
			break;
		word = (uint32_t)dacs_mutex_try_lock(mutex);
		if (word == DACS_SUCCESS)
			OK(dacs_mutex_unlock(mutex));
		OK(dacs_mailbox_write(&word, UP));
	}
	OK(dacs_exit());
	return 0;
}

static dacs_mutex_t both;
static pthread_barrier_t begin, tried;

static void *locks(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_barrier_wait(&begin);
		OK(dacs_mutex_lock(both));
		pthread_barrier_wait(&tried); /* has it until the try has returned */
		OK(dacs_mutex_unlock(both));
	}
	return arg;
}

static int role_beside(int argc, char **argv)
{
	uint32_t got = 0;
	pthread_t thread;

	(void)argc, (void)argv;
	setenv("SLMPM_TIMEOUT", "5000", 1);
	OK(dacs_init(0));
	OK(dacs_mutex_accept(UP, &both));
	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&tried, NULL, 2);
	CHECK(!pthread_create(&thread, NULL, locks, NULL), "thread");
	for (int i = 0; i < TURNS; i++) {
		DACS_ERR_T rc;

		pthread_barrier_wait(&begin);
		rc = dacs_mutex_try_lock(both);
		CHECK(rc == DACS_SUCCESS || rc == DACS_ERR_MUTEX_BUSY, "turn %d: %s", i,
		      dacs_strerror(rc));
		got += rc == DACS_SUCCESS;
		if (rc == DACS_SUCCESS)
			OK(dacs_mutex_unlock(both));
		pthread_barrier_wait(&tried);
	}
	pthread_join(thread, NULL);
	OK(dacs_mutex_lock(both));
	OK(dacs_mutex_unlock(both));
	OK(dacs_mutex_release(&both));
	printf("(%u tries got it)", got);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

/* The holder ends while nobody waits: not reaped, it has the mutex no more. */
static struct child end_of_holder(dacs_mutex_t mutex)
{
	struct child c = pair_start("dies", NULL);
	uint32_t word = 0, running = 1;

	OK(dacs_mutex_share(AT(c), mutex));
	OK(dacs_mailbox_read(&word, AT(c)));
	EXPECT(dacs_mutex_try_lock(mutex), DACS_ERR_MUTEX_BUSY);
	OK(dacs_mailbox_write(&word, AT(c)));
	while (running) {
		OK(dacs_num_processes_running(c.de, &running));
		sched_yield();
	}
	return c;
}

static int death_of_a_holder(int argc, char **argv)
{
	int64_t until;
	struct child c;
	dacs_mutex_t mutex;
	DACS_ERR_T rc;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	c = end_of_holder(mutex);
	until = pair_now_ms() + 2000;
	while ((rc = dacs_mutex_try_lock(mutex)) == DACS_ERR_MUTEX_BUSY && pair_now_ms() < until)
		sched_yield();
	EXPECT(rc, DACS_SUCCESS);
	OK(dacs_mutex_unlock(mutex));
	OK(dacs_mutex_destroy(&mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int death_and_another_that_tries(int argc, char **argv)
{
	struct child c, other;
	dacs_mutex_t mutex;
	uint32_t word;
	int64_t until;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	other = pair_start("tries", NULL);
	OK(dacs_mutex_share(AT(other), mutex));
	c = end_of_holder(mutex);
	until = pair_now_ms() + 2000;
	do {
		word = 1;
		OK(dacs_mailbox_write(&word, AT(other)));
		OK(dacs_mailbox_read(&word, AT(other)));
	} while (word == (uint32_t)DACS_ERR_MUTEX_BUSY && pair_now_ms() < until);
	EXPECT((DACS_ERR_T)(int32_t)word, DACS_SUCCESS);
	word = 0;
	OK(dacs_mailbox_write(&word, AT(other)));
	pair_end(other, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_mutex_destroy(&mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* What a try was granted, another thread of the process may take. */
static int beside_a_lock(int argc, char **argv)
{
	struct child c;
	dacs_mutex_t mutex;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	c = pair_start("beside", NULL);
	OK(dacs_mutex_share(AT(c), mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_mutex_destroy(&mutex));
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"dies", role_dies},
	{"tries", role_tries},
	{"beside", role_beside},
	{0},
};

static const struct pair_entry cases[] = {
	{"death of a holder", death_of_a_holder},
	{"death, and another that tries", death_and_another_that_tries},
	{"beside a lock", beside_a_lock},
	{0},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
