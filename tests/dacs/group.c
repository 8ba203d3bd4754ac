/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Groups: nobody passes a barrier before all have come; who ends or leaves is not waited for. */
#include "tests/dacs/pair.h"

#include <pthread.h>

#define ROUNDS 200
#define MOST   4

/* ---- roles ---- */

/* Writes the round it is in beside those of the others, and finds all of them there behind the
 * barrier. argv[0]: its place. */
static int role_rounds(int argc, char **argv)
{
	uint32_t place = (uint32_t)atoi(argv[0]), at[MOST];
	dacs_remote_mem_t mem;
	dacs_group_t group;
	dacs_wid_t wid;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	OK(dacs_remote_mem_accept(UP, &mem));
	OK(dacs_group_accept(UP, &group));
	for (uint32_t r = 1; r <= ROUNDS; r++) {
		OK(dacs_put(mem, place * sizeof(r), &r, sizeof(r), wid, DACS_ORDER_ATTR_NONE,
			    DACS_BYTE_SWAP_WORD));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		OK(dacs_barrier_wait(group));
		OK(dacs_get(at, mem, 0, sizeof(at), wid, DACS_ORDER_ATTR_NONE,
			    DACS_BYTE_SWAP_WORD));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		for (int i = 0; i < MOST; i++)
			CHECK(at[i] == r || at[i] == r + 1, "%u in round %u", at[i], r);
	}
	OK(dacs_group_leave(&group));
	CHECK(group == DACS_NULL_GROUP, "a handle is left");
	OK(dacs_remote_mem_release(&mem));
	OK(dacs_exit());
	return 0;
}

/* What words tell: 1 the barrier, 2 leave, 3 exit without leaving, 4 exit. The first is answered
 * before and after, with what the call said; leaving too. */
static int role_obey(int argc, char **argv)
{
	struct child up = pair_parent();
	dacs_group_t group;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_group_accept(UP, &group));
	for (;;) {
		OK(dacs_mailbox_read(&word, UP));
		if (word == 3)
			_exit(0);
		if (word == 4)
			break;
		if (word == 1)
			pair_tell(up, 1);
		pair_tell(up, (uint32_t)(word == 1 ? dacs_barrier_wait(group) :
						     dacs_group_leave(&group)));
	}
	OK(dacs_exit());
	return 0;
}

static int role_refused(int argc, char **argv)
{
	dacs_group_t group, none = 0, own;

	(void)argc, (void)argv;
	EXPECT(dacs_group_accept(UP, &group), DACS_ERR_NOT_INITIALIZED);
	OK(dacs_init(0));
	EXPECT(dacs_group_accept(UP, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_group_accept(DACS_DE_PARENT, 7, &group), DACS_ERR_INVALID_PID);
	OK(dacs_group_init(&own, 0));
	EXPECT(dacs_group_add_member(UP, own), DACS_ERR_INVALID_TARGET);
	OK(dacs_group_accept(UP, &group));
	EXPECT(dacs_group_add_member(UP, group), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_group_close(group), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_group_destroy(&group), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_group_leave(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_group_leave(&none), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_group_leave(&own), DACS_ERR_OWNER);
	OK(dacs_group_leave(&group)); /* once it is closed */
	EXPECT(dacs_barrier_wait(group), DACS_ERR_INVALID_HANDLE);
	OK(dacs_exit());
	return 0;
}

/* A barrier that ends at a deadline is gone on with by the next call. */
static int role_late(int argc, char **argv)
{
	struct child up = pair_parent();
	dacs_group_t group;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	LATE(dacs_group_accept(UP, &group), DACS_SUCCESS);
	EXPECT(dacs_barrier_wait(group), DACS_ERR_DACSD_FAILURE);
	pair_tell(up, 1);
	pair_await(up, 2); /* the parent has passed */
	LATE(dacs_barrier_wait(group), DACS_SUCCESS);
	LATE(dacs_barrier_wait(group), DACS_SUCCESS); /* and this is the second one */
	LATE(dacs_group_leave(&group), DACS_SUCCESS);
	OK(dacs_exit());
	return 0;
}

/* Is offered a group, and looks for it when it has been closed. */
static int role_too_late(int argc, char **argv)
{
	dacs_group_t group;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	while (dacs_mailbox_read(&word, UP) == DACS_ERR_DACSD_FAILURE)
		;
	EXPECT(dacs_group_accept(UP, &group), DACS_ERR_DACSD_FAILURE);
	OK(dacs_exit());
	return 0;
}

/* A host with a deadline: its offer stands, and is taken back when it closes the group. */
static int role_host(int argc, char **argv)
{
	struct child c;
	dacs_group_t group;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	setenv("SLMPM_TIMEOUT", "100", 1); /* the child's */
	c = pair_start("too late", NULL);
	OK(dacs_group_init(&group, 0));
	EXPECT(dacs_group_add_member(AT(c), group), DACS_ERR_DACSD_FAILURE);
	EXPECT(dacs_group_add_member(AT(c), group), DACS_ERR_DACSD_FAILURE);
	OK(dacs_group_close(group));
	EXPECT(dacs_group_add_member(AT(c), group), DACS_ERR_GROUP_CLOSED);
	pair_tell(c, 1);
	OK(dacs_group_destroy(&group));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

static int nobody_passes_early(int argc, char **argv)
{
	static uint32_t at[MOST];
	struct child c[MOST - 1];
	dacs_remote_mem_t mem;
	dacs_group_t group;
	char place[16];

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_remote_mem_create(at, sizeof(at), DACS_READ_WRITE, &mem));
	OK(dacs_group_init(&group, 0));
	CHECK(group != DACS_NULL_GROUP, "a null group");
	for (int i = 0; i < MOST - 1; i++) {
		snprintf(place, sizeof(place), "%d", i);
		c[i] = pair_start("rounds", place);
		OK(dacs_remote_mem_share(AT(c[i]), mem));
		OK(dacs_group_add_member(AT(c[i]), group));
	}
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	OK(dacs_group_close(group));
	for (uint32_t r = 1; r <= ROUNDS; r++) {
		__atomic_store_n(&at[MOST - 1], r, __ATOMIC_RELEASE);
		OK(dacs_barrier_wait(group));
		for (int i = 0; i < MOST; i++) {
			uint32_t now = __atomic_load_n(&at[i], __ATOMIC_ACQUIRE);

			CHECK(now == r || now == r + 1, "%u in round %u", now, r);
		}
	}
	OK(dacs_group_destroy(&group));
	CHECK(group == DACS_NULL_GROUP, "a handle is left");
	OK(dacs_remote_mem_destroy(&mem));
	for (int i = 0; i < MOST - 1; i++)
		pair_end(c[i], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int refused(int argc, char **argv)
{
	dacs_group_t group, none = 0;
	dacs_mutex_t mutex;
	struct child c;

	(void)argc, (void)argv;
	EXPECT(dacs_group_init(&group, 0), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_group_add_member(1, 1, 1), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_group_close(1), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_group_leave(&none), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_group_destroy(&none), DACS_ERR_NOT_INITIALIZED);
	EXPECT(dacs_barrier_wait(1), DACS_ERR_NOT_INITIALIZED);
	OK(dacs_init(0));
	EXPECT(dacs_group_init(NULL, 0), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_group_init(&group, 1), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_group_accept(UP, &group), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_barrier_wait(DACS_NULL_GROUP), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_group_close(UINT64_MAX), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_group_destroy(&none), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_group_destroy(NULL), DACS_ERR_INVALID_ADDR);
	OK(dacs_mutex_init(&mutex));
	EXPECT(dacs_barrier_wait(mutex), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_group_close(mutex), DACS_ERR_INVALID_HANDLE);
	OK(dacs_mutex_destroy(&mutex));

	OK(dacs_group_init(&group, 0));
	EXPECT(dacs_group_leave(&group), DACS_ERR_OWNER);
	EXPECT(dacs_group_destroy(&group), DACS_ERR_GROUP_OPEN);
	EXPECT(dacs_barrier_wait(group), DACS_ERR_NO_PERM);
	c = pair_start("refused", NULL);
	EXPECT(dacs_group_accept(AT(c), &none), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_group_add_member(c.de, c.pid + 1, group), DACS_ERR_INVALID_PID);
	EXPECT(dacs_group_add_member(0, c.pid, group), DACS_ERR_INVALID_DE);
	EXPECT(dacs_group_add_member(AT(c), 0), DACS_ERR_INVALID_HANDLE);
	OK(dacs_group_add_member(AT(c), group));
	EXPECT(dacs_group_add_member(AT(c), group), DACS_ERR_GROUP_DUPLICATE);
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	EXPECT(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group), DACS_ERR_GROUP_DUPLICATE);
	OK(dacs_group_close(group));
	EXPECT(dacs_group_close(group), DACS_ERR_GROUP_CLOSED);
	EXPECT(dacs_group_add_member(AT(c), group), DACS_ERR_GROUP_CLOSED);
	EXPECT(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group), DACS_ERR_GROUP_CLOSED);
	OK(dacs_group_destroy(&group)); /* without the owner's leaving */
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Two that obey, in a group that is not closed yet; the owner is no member. */
static dacs_group_t two(struct child c[2])
{
	dacs_group_t group;

	OK(dacs_group_init(&group, 0));
	for (int i = 0; i < 2; i++) {
		c[i] = pair_start("obey", NULL);
		OK(dacs_group_add_member(AT(c[i]), group));
	}
	return group;
}

static int not_before_it_is_closed(int argc, char **argv)
{
	struct child c[2];
	dacs_group_t group;
	int32_t there = -1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	group = two(c);
	for (int i = 0; i < 2; i++) {
		pair_tell(c[i], 1);
		pair_await(c[i], 1);
	}
	for (int i = 0; i < 20; i++) { /* answers would have come */
		usleep(1000);
		OK(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c[i % 2]), &there));
		CHECK(!there, "passed an open group's barrier");
	}
	OK(dacs_group_close(group));
	for (int i = 0; i < 2; i++) {
		pair_await(c[i], DACS_SUCCESS);
		pair_tell(c[i], 2);
		pair_await(c[i], DACS_SUCCESS);
		pair_tell(c[i], 4);
	}
	OK(dacs_group_destroy(&group));
	for (int i = 0; i < 2; i++)
		pair_end(c[i], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int who_leaves_is_not_waited_for(int argc, char **argv)
{
	struct child c[2];
	dacs_group_t group;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	group = two(c);
	OK(dacs_group_close(group));
	pair_tell(c[0], 1);
	pair_await(c[0], 1);
	pair_tell(c[1], 2);
	pair_await(c[1], DACS_SUCCESS);
	pair_await(c[0], DACS_SUCCESS); /* of the barrier */
	pair_tell(c[0], 4); /* without leaving: the owner waits for nobody who has ended */
	pair_tell(c[1], 4);
	OK(dacs_group_destroy(&group));
	for (int i = 0; i < 2; i++)
		pair_end(c[i], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Both who wait and who come later learn of it, once each. */
static int death_ends_one_barrier(int argc, char **argv)
{
	struct child c[2];
	dacs_group_t group;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	group = two(c);
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	OK(dacs_group_close(group));
	pair_tell(c[0], 1);
	pair_await(c[0], 1);
	pair_tell(c[1], 3);
	pair_await(c[0], (uint32_t)DACS_ERR_DE_TERM);
	EXPECT(dacs_barrier_wait(group), DACS_ERR_DE_TERM);
	pair_tell(c[0], 1);
	pair_await(c[0], 1);
	OK(dacs_barrier_wait(group));
	pair_await(c[0], DACS_SUCCESS);
	pair_end(c[1], DACS_STS_PROC_FINISHED, 0);

	/* The owner's end is every member's. */
	pair_tell(c[0], 2);
	pair_await(c[0], DACS_SUCCESS);
	pair_tell(c[0], 4);
	pair_end(c[0], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_group_destroy(&group));
	OK(dacs_exit());
	return 0;
}

static int deadline(int argc, char **argv)
{
	dacs_group_t group;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_group_init(&group, 0));
	setenv("SLMPM_TIMEOUT", "300", 1);
	c = pair_start("late", NULL);
	unsetenv("SLMPM_TIMEOUT");
	OK(dacs_group_add_member(AT(c), group));
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	OK(dacs_group_close(group));
	pair_await(c, 1);
	OK(dacs_barrier_wait(group));
	pair_tell(c, 2);
	OK(dacs_barrier_wait(group));
	OK(dacs_group_destroy(&group));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());

	CHECK(pair_host("SLMPM_TIMEOUT=200", "host") == 0, "a host with a deadline");
	return 0;
}

static dacs_group_t met;
static int back, busy;

static void *at_the_barrier(void *arg)
{
	DACS_ERR_T rc = dacs_barrier_wait(met);

	CHECK(rc == DACS_SUCCESS || rc == DACS_ERR_RESOURCE_BUSY, "%s", dacs_strerror(rc));
	__atomic_add_fetch(&busy, rc == DACS_ERR_RESOURCE_BUSY, __ATOMIC_RELAXED);
	__atomic_add_fetch(&back, 1, __ATOMIC_RELEASE);
	return arg;
}

/* The second of two threads is refused while the first waits. */
static int one_thread_at_a_time(int argc, char **argv)
{
	struct child c[2];
	pthread_t thread[2];

	(void)argc, (void)argv;
	OK(dacs_init(0));
	met = two(c);
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, met));
	OK(dacs_group_close(met));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, at_the_barrier, NULL), "thread");
	while (!__atomic_load_n(&back, __ATOMIC_ACQUIRE))
		usleep(100);
	CHECK(busy == 1, "a thread has passed alone");
	for (int i = 0; i < 2; i++) {
		pair_tell(c[i], 1);
		pair_await(c[i], 1);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK(busy == 1, "both were refused");
	for (int i = 0; i < 2; i++) {
		pair_await(c[i], DACS_SUCCESS);
		pair_tell(c[i], 2);
		pair_await(c[i], DACS_SUCCESS);
		pair_tell(c[i], 4);
		pair_end(c[i], DACS_STS_PROC_FINISHED, 0);
	}
	OK(dacs_group_destroy(&met));
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"rounds", role_rounds},
	{"obey", role_obey},
	{"refused", role_refused},
	{"late", role_late},
	{"too late", role_too_late},
	{"host", role_host},
	{0},
};

static const struct pair_entry cases[] = {
	{"nobody passes early", nobody_passes_early},
	{"refused", refused},
	{"not before it is closed", not_before_it_is_closed},
	{"who leaves is not waited for", who_leaves_is_not_waited_for},
	{"death ends one barrier", death_ends_one_barrier},
	{"a deadline", deadline},
	{"one thread at a time", one_thread_at_a_time},
	{0},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
