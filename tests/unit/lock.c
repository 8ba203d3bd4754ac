/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A context's lock: its owner and the guest, another thread, are never in together, though the
 * owner is favoured most of the time and then takes no mutex.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "slmpm/base/lock.h"

enum { VISITS = 4000, BURST = 300, LONG_TURNS = 3000, AWAY_NS = 1000000, LONGEST_NS = 500000000 };

static struct lock lock;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* What the lock guards. */
static uint64_t first, second, broken, claims, visits;
static bool over, news;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void enter(void)
{
	if (!lock_enter(&lock))
		(void)lock_take(&lock);
}

static bool is_favoured(void)
{
	return !atomic_load_explicit(&lock.shared, memory_order_relaxed);
}

static void pass_time(int turns)
{
	for (volatile int turn = 0; turn < turns; turn++)
		;
}

static void work(int turns)
{
	broken += first != second;
	first++;
	__asm__ volatile("" : : : "memory");
	pass_time(turns);
	second++;
}

static void make(bool fences)
{
	lock = (struct lock){.inside = 0};
	lock_init(&lock);
	if (fences)
		lock_prepare(&lock);
	first = second = broken = claims = visits = 0;
	over = news = false;
}

static void await_favour(void)
{
	uint64_t until = now_ns() + AWAY_NS;

	while (!is_favoured() && now_ns() < until)
		sched_yield();
}

/* Most visits end a favour, each after another while. */
static void *visit_often(void *unused)
{
	uint64_t until = now_ns() + LONGEST_NS;

	lock_admit(&lock);
	lock_leave(&lock);
	for (int i = 0; i < VISITS && now_ns() < until; i++) {
		await_favour();
		pass_time(i % 97);
		claims += is_favoured();
		enter();
		work(0);
		enter(); /* again */
		lock_leave(&lock);
		visits++;
		lock_leave(&lock);
	}
	enter();
	over = true;
	lock_leave(&lock);
	return unused;
}

static uint64_t own(pthread_t *guest, void *(*visit)(void *))
{
	uint64_t entries = 0;

	assert_int_equal(pthread_create(guest, NULL, visit, NULL), 0);
	for (bool ends = false; !ends;) {
		enter();
		work(entries % 4 ? 0 : LONG_TURNS); /* some are longer than it takes to fence */
		enter();
		work(0);
		lock_leave(&lock);
		work(0);
		ends = over;
		lock_leave(&lock);
		entries++;
	}
	return entries;
}

static void never_both(void **unused)
{
	pthread_t guest;
	uint64_t entries;

	(void)unused;
	make(true);
	entries = own(&guest, visit_often);
	assert_int_equal(pthread_join(guest, NULL), 0);
	lock_dismiss(&lock);
	assert_true(!broken && first == second && first == 3 * entries + visits);
	if (lock.fences)
		assert_true(claims > 10);
}

/* Without the barrier all go by the mutex. */
static void not_favoured(void **unused)
{
	pthread_t guest;

	(void)unused;
	make(false);
	(void)own(&guest, visit_often);
	assert_int_equal(pthread_join(guest, NULL), 0);
	assert_true(claims == 0 && !is_favoured() && first == second);
}

/* A guest that waits, and tells. */
static void *answer(void *unused)
{
	lock_admit(&lock);
	while (!news)
		(void)lock_wait(&lock, &changed, UINT64_MAX);
	news = false;
	over = true;
	pthread_cond_broadcast(&changed);
	lock_leave(&lock);
	return unused;
}

static void get_favoured(void)
{
	struct timespec moment = {.tv_nsec = 1000000};

	for (int i = 0; i < 2000 && !is_favoured(); i++) {
		for (int k = 0; k < BURST; k++) {
			enter();
			lock_leave(&lock);
		}
		if (!is_favoured())
			nanosleep(&moment, NULL); /* the guest is on its way */
	}
}

/* Once more, while the owner is in by the favour that it had beside the guest before. */
static void another_guest(void **unused)
{
	pthread_t guest;
	uint64_t until;

	(void)unused;
	make(true);
	(void)own(&guest, visit_often);
	assert_int_equal(pthread_join(guest, NULL), 0);
	if (lock.fences)
		get_favoured();
	lock_dismiss(&lock);
	enter();
	over = false;
	news = true; /* nothing is waited for */
	assert_int_equal(pthread_create(&guest, NULL, answer, NULL), 0);
	for (until = now_ns() + 20 * (uint64_t)AWAY_NS; now_ns() < until;)
		assert_false(*(volatile bool *)&over);
	lock_leave(&lock);
	assert_int_equal(pthread_join(guest, NULL), 0);
	assert_true(over);
}

/* The owner waits from within a favour, with the mutex from then on; the guest ends one. */
static void waits(void **unused)
{
	pthread_t guest;
	int turns = 0;

	(void)unused;
	make(true);
	assert_int_equal(pthread_create(&guest, NULL, answer, NULL), 0);
	if (lock.fences)
		get_favoured();
	assert_true(is_favoured() == lock.fences);
	enter();
	news = true;
	pthread_cond_broadcast(&changed);
	for (; !over; turns++)
		assert_int_equal(lock_wait(&lock, &changed, UINT64_MAX), 0);
	assert_false(news);
	lock_leave(&lock);
	assert_int_equal(pthread_join(guest, NULL), 0);
	assert_true(turns >= 1);
}

/* The filter is the calling thread's. */
static bool refuse_membarrier(void)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(lines) / sizeof(lines[0]), lines};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static bool refused;

static void *visit_refused(void *unused)
{
	refused = refuse_membarrier();
	return visit_often(unused);
}

/* Refused since it was prepared: the owner is favoured up to the first visit that ends that. */
static void favoured_no_more(void **unused)
{
	pthread_t guest;
	uint64_t entries;

	(void)unused;
	make(true);
	if (!lock.fences)
		skip();
	entries = own(&guest, visit_refused);
	assert_int_equal(pthread_join(guest, NULL), 0);
	lock_dismiss(&lock);
	if (!refused)
		skip();
	assert_true(!broken && first == second && first == 3 * entries + visits);
	assert_true(claims <= 1 && !is_favoured());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_both),       cmocka_unit_test(not_favoured),
		cmocka_unit_test(another_guest),    cmocka_unit_test(waits),
		cmocka_unit_test(favoured_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
