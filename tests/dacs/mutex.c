/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Mutexes: one process at a time has it, in the order asked, and whoever ends gives it back. */
#include "tests/dacs/pair.h"

#include <pthread.h>
#include <sched.h>

#define TURNS 300

/* ---- roles ---- */

/* Adds to the parent's number, TURNS times, by three steps that only the mutex keeps together. */
static int role_add(int argc, char **argv)
{
	dacs_remote_mem_t mem;
	dacs_mutex_t mutex;
	dacs_wid_t wid;
	uint64_t sum;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	OK(dacs_mutex_accept(UP, &mutex));
	OK(dacs_remote_mem_accept(UP, &mem));
	for (int i = 0; i < TURNS; i++) {
		OK(dacs_mutex_lock(mutex));
		OK(dacs_get(&sum, mem, 0, sizeof(sum), wid, DACS_ORDER_ATTR_NONE,
			    DACS_BYTE_SWAP_DOUBLE_WORD));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		sum++;
		OK(dacs_put(mem, 0, &sum, sizeof(sum), wid, DACS_ORDER_ATTR_NONE,
			    DACS_BYTE_SWAP_DOUBLE_WORD));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		OK(dacs_mutex_unlock(mutex));
	}
	OK(dacs_remote_mem_release(&mem));
	OK(dacs_mutex_release(&mutex));
	CHECK(mutex == 0, "a handle is left");
	OK(dacs_exit());
	return 0;
}

/* What words tell: 1 lock, 2 try, 3 unlock, 4 release, 5 die, 6 exit; each is answered, lock twice.
 * An answer to 2 and 3 is what the call said. */
static int role_obey(int argc, char **argv)
{
	struct child up = pair_parent();
	dacs_mutex_t mutex;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_accept(UP, &mutex));
	for (;;) {
		OK(dacs_mailbox_read(&word, UP));
		if (word == 1)
			pair_tell(up, 1);
		if (word == 1)
			OK(dacs_mutex_lock(mutex));
		if (word == 5)
			_exit(0);
		if (word == 6)
			break;
		if (word == 4)
			OK(dacs_mutex_release(&mutex));
		pair_tell(up, word == 2 ? (uint32_t)dacs_mutex_try_lock(mutex) :
			      word == 3 ? (uint32_t)dacs_mutex_unlock(mutex) :
					  word);
	}
	OK(dacs_exit());
	return 0;
}

static int role_refused(int argc, char **argv)
{
	dacs_mutex_t mutex, none = 0, stale, own;

	(void)argc, (void)argv;
	EXPECT(dacs_mutex_accept(UP, &mutex), DACS_ERR_NOT_INITIALIZED);
	OK(dacs_init(0));
	EXPECT(dacs_mutex_accept(UP, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mutex_accept(DACS_DE_PARENT, 7, &mutex), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mutex_accept(DACS_DE_SELF, DACS_PID_SELF, &mutex), DACS_ERR_INVALID_TARGET);
	OK(dacs_mutex_accept(UP, &mutex));
	EXPECT(dacs_mutex_share(UP, mutex), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mutex_destroy(&mutex), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mutex_unlock(mutex), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mutex_release(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mutex_release(&none), DACS_ERR_INVALID_HANDLE);
	OK(dacs_mutex_init(&own));
	EXPECT(dacs_mutex_release(&own), DACS_ERR_OWNER);
	OK(dacs_mutex_destroy(&own));
	stale = mutex;
	OK(dacs_mutex_release(&mutex));
	EXPECT(dacs_mutex_lock(stale), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mutex_release(&stale), DACS_ERR_INVALID_HANDLE);
	OK(dacs_exit());
	return 0;
}

/* Has a deadline, and does not get the mutex within it. */
static int role_late(int argc, char **argv)
{
	struct child up = pair_parent();
	dacs_mutex_t mutex;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	LATE(dacs_mutex_accept(UP, &mutex), DACS_SUCCESS);
	pair_await(up, 1);
	EXPECT(dacs_mutex_lock(mutex), DACS_ERR_DACSD_FAILURE);
	EXPECT(dacs_mutex_unlock(mutex), DACS_ERR_NOT_OWNER);
	pair_tell(up, 2);
	pair_await(up, 3);
	LATE(dacs_mutex_lock(mutex), DACS_SUCCESS);
	OK(dacs_mutex_unlock(mutex));
	LATE(dacs_mutex_release(&mutex), DACS_SUCCESS);
	OK(dacs_exit());
	return 0;
}

static dacs_mutex_t shared_by_threads;
static uint32_t counted;

static void *count(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		OK(dacs_mutex_lock(shared_by_threads));
		*(volatile uint32_t *)&counted += 1;
		OK(dacs_mutex_unlock(shared_by_threads));
	}
	return arg;
}

static int role_threads(int argc, char **argv)
{
	pthread_t threads[3];

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_accept(UP, &shared_by_threads));
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, count, NULL), "thread");
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(counted == 3 * TURNS, "%u", counted);
	OK(dacs_mutex_release(&shared_by_threads));
	OK(dacs_exit());
	return 0;
}

/* Between the host and a child of its own: makes a mutex that all three know. */
static int role_middle(int argc, char **argv)
{
	struct child up = pair_parent(), leaf;
	dacs_mutex_t mutex;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	OK(dacs_mutex_share(UP, mutex));
	leaf = pair_start("obey", NULL);
	OK(dacs_mutex_share(AT(leaf), mutex));
	pair_await(up, 1); /* it has it */
	pair_tell(leaf, 2);
	pair_await(leaf, (uint32_t)DACS_ERR_MUTEX_BUSY);
	pair_tell(leaf, 1);
	pair_await(leaf, 1);
	pair_tell(up, 2);
	pair_await(leaf, 1); /* the host has unlocked it */
	EXPECT(dacs_mutex_try_lock(mutex), DACS_ERR_MUTEX_BUSY);
	pair_tell(leaf, 6);
	pair_end(leaf, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mutex_destroy(&mutex));
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

static int one_at_a_time(int argc, char **argv)
{
	static uint64_t sum;
	struct child c[3];
	dacs_remote_mem_t mem;
	dacs_mutex_t mutex;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	OK(dacs_remote_mem_create(&sum, sizeof(sum), DACS_READ_WRITE, &mem));
	for (int i = 0; i < 3; i++)
		c[i] = pair_start("add", NULL);
	for (int i = 0; i < 3; i++) {
		OK(dacs_mutex_share(AT(c[i]), mutex));
		OK(dacs_remote_mem_share(AT(c[i]), mem));
	}
	for (int i = 0; i < TURNS; i++) {
		OK(dacs_mutex_lock(mutex));
		*(volatile uint64_t *)&sum += 1;
		OK(dacs_mutex_unlock(mutex));
	}
	OK(dacs_mutex_destroy(&mutex));
	CHECK(mutex == 0, "a handle is left");
	OK(dacs_remote_mem_destroy(&mem));
	CHECK(sum == 4 * TURNS, "%" PRIu64, sum);
	for (int i = 0; i < 3; i++)
		pair_end(c[i], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int refused(int argc, char **argv)
{
	dacs_mutex_t mutex, none = 0;
	dacs_group_t group;
	struct child c;

	(void)argc, (void)argv;
	EXPECT(dacs_mutex_init(&mutex), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_mutex_share(1, 1, 1), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_mutex_lock(1), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_mutex_try_lock(1), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_mutex_unlock(1), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_mutex_release(&none), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_mutex_destroy(&none), DACS_ERR_NOT_INITIALIZED);
	OK(dacs_init(0));
	EXPECT(dacs_mutex_init(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mutex_destroy(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mutex_destroy(&none), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mutex_lock(0), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mutex_try_lock(0), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mutex_unlock(UINT64_MAX), DACS_ERR_INVALID_HANDLE);
	OK(dacs_mutex_init(&mutex));
	OK(dacs_group_init(&group, 0));
	EXPECT(dacs_mutex_lock(group), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mutex_unlock(mutex), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mutex_release(&mutex), DACS_ERR_OWNER);
	EXPECT(dacs_mutex_share(UP, mutex), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_mutex_share(DACS_DE_SELF, DACS_PID_SELF, mutex), DACS_ERR_INVALID_TARGET);
	c = pair_start("refused", NULL);
	EXPECT(dacs_mutex_share(c.de, c.pid + 1, mutex), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mutex_share(AT(c), 0), DACS_ERR_INVALID_HANDLE);
	OK(dacs_mutex_share(AT(c), mutex));
	OK(dacs_mutex_destroy(&mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);

	/* One that ends without accepting. */
	OK(dacs_mutex_init(&mutex));
	c = pair_start("leaves", NULL);
	EXPECT(dacs_mutex_share(AT(c), mutex), DACS_ERR_DE_TERM);
	OK(dacs_mutex_destroy(&mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int role_leaves(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	return 0;
}

static int tries(int argc, char **argv)
{
	dacs_mutex_t mutex;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	c = pair_start("obey", NULL);
	OK(dacs_mutex_share(AT(c), mutex));
	EXPECT(dacs_mutex_share(AT(c), mutex), DACS_ERR_RESOURCE_BUSY);
	OK(dacs_mutex_try_lock(mutex));
	EXPECT(dacs_mutex_try_lock(mutex), DACS_ERR_MUTEX_BUSY);
	pair_tell(c, 2);
	pair_await(c, (uint32_t)DACS_ERR_MUTEX_BUSY);
	pair_tell(c, 3);
	pair_await(c, (uint32_t)DACS_ERR_NOT_OWNER);
	OK(dacs_mutex_unlock(mutex));
	pair_tell(c, 2);
	pair_await(c, DACS_SUCCESS);
	pair_tell(c, 2);
	pair_await(c, (uint32_t)DACS_ERR_MUTEX_BUSY);
	EXPECT(dacs_mutex_try_lock(mutex), DACS_ERR_MUTEX_BUSY);
	pair_tell(c, 3);
	pair_await(c, DACS_SUCCESS);
	OK(dacs_mutex_try_lock(mutex));
	OK(dacs_mutex_unlock(mutex));

	/* Released while it is held, and destroyed while it is held. */
	pair_tell(c, 1);
	pair_await(c, 1);
	pair_await(c, 1);
	pair_tell(c, 4);
	pair_await(c, 4);
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mutex_destroy(&mutex));
	pair_tell(c, 6);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Of the two that wait: each asks behind its word, so either may be the first. */
static int next_holder(const struct child *c)
{
	int32_t said = 0;
	int i = 1;

	for (;; i = 3 - i) {
		OK(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c[i]), &said));
		if (said)
			return i;
		sched_yield();
	}
}

/* A holder dies while this process and another one wait; and one that waits, before its turn. */
static int death_gives_it_back(int argc, char **argv)
{
	struct child c[3];
	dacs_mutex_t mutex;
	int next;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	for (int i = 0; i < 3; i++) {
		c[i] = pair_start("obey", NULL);
		OK(dacs_mutex_share(AT(c[i]), mutex));
	}
	pair_tell(c[0], 1);
	pair_await(c[0], 1);
	pair_await(c[0], 1);
	pair_tell(c[1], 1);
	pair_await(c[1], 1);
	pair_tell(c[2], 1);
	pair_await(c[2], 1);
	pair_tell(c[0], 5); /* the holder */
	next = next_holder(c);
	pair_await(c[next], 1);
	OK(dacs_de_kill(AT(c[3 - next]), DACS_KILL_TYPE_ASYNC)); /* in the queue */
	pair_end(c[3 - next], DACS_STS_PROC_KILLED, 15);
	pair_tell(c[next], 5);
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mutex_unlock(mutex));
	OK(dacs_mutex_destroy(&mutex)); /* without a release */
	pair_end(c[0], DACS_STS_PROC_FINISHED, 0);
	pair_end(c[next], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int deadline(int argc, char **argv)
{
	dacs_mutex_t mutex;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	setenv("SLMPM_TIMEOUT", "300", 1);
	c = pair_start("late", NULL);
	unsetenv("SLMPM_TIMEOUT");
	OK(dacs_mutex_share(AT(c), mutex));
	OK(dacs_mutex_lock(mutex));
	pair_tell(c, 1);
	pair_await(c, 2);
	OK(dacs_mutex_unlock(mutex));
	OK(dacs_mutex_lock(mutex)); /* who has given up does not get it */
	OK(dacs_mutex_unlock(mutex));
	pair_tell(c, 3);
	OK(dacs_mutex_destroy(&mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int threads(int argc, char **argv)
{
	pthread_t thread;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&shared_by_threads));
	c = pair_start("threads", NULL);
	OK(dacs_mutex_share(AT(c), shared_by_threads));
	CHECK(!pthread_create(&thread, NULL, count, NULL), "thread");
	count(NULL);
	pthread_join(thread, NULL);
	CHECK(counted == 2 * TURNS, "%u", counted);
	OK(dacs_mutex_destroy(&shared_by_threads));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int up_and_down(int argc, char **argv)
{
	dacs_mutex_t mutex;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("middle", NULL);
	OK(dacs_mutex_accept(AT(c), &mutex));
	OK(dacs_mutex_lock(mutex));
	pair_tell(c, 1);
	pair_await(c, 2);
	OK(dacs_mutex_unlock(mutex));
	OK(dacs_mutex_release(&mutex));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"add", role_add},         {"obey", role_obey},
	{"refused", role_refused}, {"leaves", role_leaves},
	{"late", role_late},       {"threads", role_threads},
	{"middle", role_middle},   {0},
};

static const struct pair_entry cases[] = {
	{"one at a time", one_at_a_time},
	{"refused", refused},
	{"tries", tries},
	{"death gives it back", death_gives_it_back},
	{"a deadline", deadline},
	{"threads", threads},
	{"up and down", up_and_down},
	{0},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
