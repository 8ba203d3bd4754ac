/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -Wl,--wrap=domain_bells,--wrap=sched_yield */
/* How many passes a wait makes before it reads the clock: few where waits have slept and polling
 * has not paid. And which wait a bell belongs to, and what yields show. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "slmpm/link/idle.h"

static struct context ctx;

static uint64_t rung;

uint64_t __wrap_domain_bells(const struct context *c);
uint64_t __wrap_domain_bells(const struct context *c)
{
	(void)c;
	return rung;
}

#define SOME 3 /* yields, behind which none waits for the lock */

static int yields;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	if (++yields == SOME)
		atomic_store(&ctx.lock.wanted, 0);
	return __real_sched_yield();
}

static void start(void)
{
	rung = 0;
	ctx = (struct context){.wait = SLMPM_WAIT_ADAPTIVE, .scans = IDLE_SCANS};
	list_init(&ctx.groups);
	spin_init(&ctx.spin, SPIN_AUTO);
}

/* A millisecond: neither a short wait nor one so long that it earns credit. */
static uint64_t begun(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - 1000000;
}

static uint64_t now_ns(void)
{
	return begun() + 1000000;
}

/* Empty passes until the clock is read. */
static int passes(struct idle *i)
{
	int n = 1;

	while (idle_is_new(&ctx, i, 1))
		n++;
	return n;
}

static void a_sleep_without_credit_makes_passes_few(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	ctx.spin.ended = begun();
	ctx.spin.credit[0] = ctx.spin.credit[1] =
		-200000; /* what an emulator takes for this pays a part of it back */
	assert_int_equal(passes(&i), IDLE_SCANS / 4);
	assert_int_equal(idle_next(&ctx, &i, begun()), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, true);
	assert_int_equal(ctx.scans, IDLE_SCANS_BRIEF);
	assert_int_equal(passes(&i), IDLE_SCANS_BRIEF / 4);
}

/* The answers that come behind the first may need some microseconds. */
static void a_sleep_with_credit_leaves_passes_many(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	(void)passes(&i);
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_YIELD);
	assert_int_equal(idle_next(&ctx, &i, 1000000000), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, true);
	assert_int_equal(ctx.scans, IDLE_SCANS);
}

/* Time in which others had the processor is no polling; but it ends some time. */
static void yielding_to_others_puts_sleep_off(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_YIELD);
	idle_away(&i, 0, i.spin);
	assert_int_equal(idle_next(&ctx, &i, i.spin + i.spin / 2), SLMPM_SPIN_YIELD);
	assert_int_equal(idle_next(&ctx, &i, 2 * i.spin + 2), SLMPM_SPIN_SLEEP);
	idle_away(&i, 0, 1000 * i.spin);
	assert_int_equal(idle_next(&ctx, &i, 4 * i.spin), SLMPM_SPIN_YIELD);
	assert_int_equal(idle_next(&ctx, &i, 100 * i.spin), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, true);
	assert_int_equal(i.away, 0);
}

static void an_answer_before_sleep_makes_passes_many(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	ctx.scans = IDLE_SCANS_BRIEF;
	assert_true(idle_is_new(&ctx, &i, 1));
	idle_over(&ctx, &i, true); /* before the clock was read */
	assert_int_equal(ctx.scans, IDLE_SCANS);

	ctx.scans = IDLE_SCANS_BRIEF;
	(void)passes(&i);
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_YIELD);
	idle_over(&ctx, &i, true);
	assert_int_equal(ctx.scans, IDLE_SCANS);
}

/* That says nothing of how the next ends. */
static void a_timeout_leaves_passes_as_they_were(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	ctx.spin.ended = begun();
	ctx.spin.credit[0] = ctx.spin.credit[1] = -50000;
	(void)passes(&i);
	assert_int_equal(idle_next(&ctx, &i, begun()), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, false);
	assert_int_equal(ctx.scans, IDLE_SCANS);
}

/* Of one that reads the clock: its peer was asleep when last sent to. */
static bool rang(struct idle *i, uint64_t now)
{
	(void)passes(i);
	(void)idle_next(&ctx, i, now);
	return ctx.spin.rang;
}

/* What is sent within the pass that brought a message is answered in the next wait. */
static void a_bell_of_the_last_pass_is_the_next_waits(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	assert_false(rang(&i, 1));
	rung++;
	idle_over(&ctx, &i, true);
	assert_true(rang(&i, 2));
	idle_over(&ctx, &i, true);
	assert_false(rang(&i, 3));
	rung++; /* by a pass that found nothing: of this one */
	(void)idle_next(&ctx, &i, 4);
	idle_over(&ctx, &i, true);
	assert_false(rang(&i, 5));
}

/* ---- the engine's thread --------------------------------------------------------------------- */

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define LATER  (10 * SECOND) /* accounts are full by then */

/* The whole of another wait: what it does first, and then something comes. */
static int wait_met(uint64_t now)
{
	struct idle i = {0};
	int next = idle_next(&ctx, &i, now);

	if (next == SLMPM_SPIN_YIELD)
		i.read = now;
	idle_over(&ctx, &i, true);
	return next;
}

/* In a context of several threads, too. */
static void long_yields_end_the_servers_polling(void **state)
{
	uint64_t back = LATER + MS;

	(void)state;
	start();
	ctx.multiple = true;
	ctx.server = lock_self();
	yield_taken(&ctx, LATER, back, false);
	assert_int_equal(ctx.preempted, 0); /* that is the application's */
	assert_int_equal(wait_met(back + 1), SLMPM_SPIN_SLEEP);
	back += MS;
	assert_int_equal(wait_met(back), SLMPM_SPIN_YIELD); /* one is soon forgotten, ... */
	yield_taken(&ctx, back, back + MS, false);
	assert_int_equal(wait_met(back + 3 * MS), SLMPM_SPIN_YIELD);
	yield_taken(&ctx, back + 3 * MS, back + 4 * MS, false);
	yield_taken(&ctx, back + 5 * MS, back + 6 * MS, false); /* ... two in a row are not */
	assert_int_equal(wait_met(back + SECOND), SLMPM_SPIN_SLEEP);
	assert_int_equal(wait_met(back + SECOND + 7 * MS), SLMPM_SPIN_YIELD);
}

/* Polling has not paid so far. */
static int first_of_a_wait(struct idle *i, bool server)
{
	start();
	ctx.spin.ended = begun();
	ctx.spin.credit[0] = ctx.spin.credit[1] = -200000;
	ctx.server = server ? lock_self() : 0;
	ctx.collecting = 1;
	*i = (struct idle){0};
	return idle_next(&ctx, i, begun());
}

static void the_server_yields_once_for_an_operation(void **state)
{
	struct idle i;

	(void)state;
	assert_int_equal(first_of_a_wait(&i, false), SLMPM_SPIN_SLEEP);
	assert_int_equal(first_of_a_wait(&i, true), SLMPM_SPIN_YIELD);
	assert_int_equal(idle_next(&ctx, &i, begun() + MS), SLMPM_SPIN_SLEEP);
}

#define SHARERS 32

/* Once all sleep each has to be woken; and most of the time is the others'. */
static void members_that_share_processors_poll(void **state)
{
	struct idle i = {0};
	uint64_t began = begun();

	(void)state;
	start();
	ctx.spin.ended = began;
	ctx.spin.credit[0] = ctx.spin.credit[1] = -200000;
	ctx.depositing = true;
	assert_int_equal(idle_next(&ctx, &i, began), SLMPM_SPIN_SLEEP);
	i = (struct idle){0};
	ctx.sharers = SHARERS;
	assert_int_equal(idle_next(&ctx, &i, began), SLMPM_SPIN_YIELD);
	idle_away(&i, 0, SHARERS * i.spin);
	assert_int_equal(idle_next(&ctx, &i, began + SHARERS * i.spin), SLMPM_SPIN_YIELD);
	assert_int_equal(idle_next(&ctx, &i, began + 2 * SHARERS * i.spin), SLMPM_SPIN_SLEEP);
}

#define HELD_UP 50000 /* ns: the host gave the processor away, or the lock was waited for */
#define DEAR    900   /* ns of a yield, where a system call costs much */

static uint64_t away_by(uint64_t ns)
{
	struct idle i = {0};

	idle_away(&i, LATER, LATER + ns);
	return i.away;
}

/* What a yield takes that lets no other run depends on the machine: the kernel's count shows it. */
static void dear_yields_are_no_time_of_others(void **state)
{
	uint64_t now = LATER;

	(void)state;
	assert_int_equal(away_by(DEAR), DEAR); /* not known yet */
	for (int i = 0; i < 100; i++, now += DEAR)
		(void)yield_was_switched(now, now + DEAR);
	assert_int_equal(away_by(DEAR), 0);
	assert_int_equal(away_by(4 * DEAR), 4 * DEAR);
	for (int i = 0; i < 10000; i++)
		(void)yield_was_switched(now, now + 100);
	assert_int_equal(away_by(DEAR), DEAR); /* it ran on a slower processor */
	for (int i = 0; i < 100; i++, now += HELD_UP)
		(void)yield_was_switched(now, now + HELD_UP);
	assert_int_equal(away_by(DEAR), DEAR);
}

/* A turn's yields, where another thread has waited for the lock until the third. */
static int yields_of_a_turn(bool server)
{
	start();
	ctx.server = server ? lock_self() : 0;
	atomic_store(&ctx.lock.wanted, 1);
	yields = 0;
	(void)yield_turn(&ctx, now_ns());
	atomic_store(&ctx.lock.wanted, 0);
	return yields;
}

static void the_server_lets_the_application_in(void **state)
{
	int n = 0;

	(void)state;
	while (yields_of_a_turn(true) < SOME) /* others had the processor meanwhile */
		assert_true(++n < 100);
	assert_int_equal(yields_of_a_turn(false), 1);
}

/* ---- yields in a row ------------------------------------------------------------------------- */

#define TRUST   64  /* context.oversubscribed behind a yield that let another run */
#define LITTLE  600 /* us without a yield, at least, behind one that cost a turn */
#define TRIES   20000
#define NOTHING (1000 * (uint64_t)1000000)

static void yields_in_a_row_are_counted_now_and_then(void **state)
{
	int n = 0;

	(void)state;
	do { /* until nothing else that runs here has taken a slice meanwhile */
		start();
		ctx.oversubscribed = TRUST;
		for (int i = 0; i < TRUST / 2; i++)
			(void)yield_among(&ctx);
	} while (ctx.yielded && n++ < TRIES);
	assert_true(n < TRIES);
	assert_int_equal(ctx.oversubscribed, TRUST / 2);
	(void)yield_among(&ctx);
	assert_true(ctx.yielded > 0);
}

/* A process that computes on this processor. */
static pid_t compute(void)
{
	cpu_set_t one;
	pid_t pid;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(20);
	for (;;)
		;
}

static void one_that_computes_ends_them(void **state)
{
	uint64_t began;
	pid_t busy;
	int n = 0;

	(void)state;
	start();
	busy = compute();
	do {
		ctx.oversubscribed = TRUST;
		began = now_ns();
	} while (yield_among(&ctx) && n++ < TRIES);
	kill(busy, SIGKILL);
	(void)waitpid(busy, NULL, 0);
	assert_true(n < TRIES);
	assert_true(ctx.yielded - began >= 500000);
	assert_true(ctx.preempted >= ctx.yielded + LITTLE * 1000);
	assert_true(ctx.preempted < ctx.yielded + NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_without_credit_makes_passes_few),
		cmocka_unit_test(a_sleep_with_credit_leaves_passes_many),
		cmocka_unit_test(yielding_to_others_puts_sleep_off),
		cmocka_unit_test(an_answer_before_sleep_makes_passes_many),
		cmocka_unit_test(a_timeout_leaves_passes_as_they_were),
		cmocka_unit_test(a_bell_of_the_last_pass_is_the_next_waits),
		cmocka_unit_test(long_yields_end_the_servers_polling),
		cmocka_unit_test(the_server_yields_once_for_an_operation),
		cmocka_unit_test(members_that_share_processors_poll),
		cmocka_unit_test(dear_yields_are_no_time_of_others),
		cmocka_unit_test(the_server_lets_the_application_in),
		cmocka_unit_test(yields_in_a_row_are_counted_now_and_then),
		cmocka_unit_test(one_that_computes_ends_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
