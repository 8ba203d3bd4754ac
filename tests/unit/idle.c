/* SPDX-License-Identifier: BSD-3-Clause */
/* How many looks a wait has before it reads the clock: few where waits have slept, and polled in vain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "slmpm/idle.h"

static struct context ctx;

static void start(void)
{
	ctx = (struct context){.wait = SLMPM_WAIT_ADAPTIVE, .looks = IDLE_LOOKS};
	spin_init(&ctx.spin, SPIN_AUTO);
}

/* Empty passes until the clock is read. */
static int passes(struct idle *i)
{
	int n = 1;

	while (idle_is_new(&ctx, i))
		n++;
	return n;
}

static void who_sleeps_and_may_not_poll_looks_briefly(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	ctx.spin.credit[0] = ctx.spin.credit[1] = -1000;
	assert_int_equal(passes(&i), IDLE_LOOKS / 4);
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, true);
	assert_int_equal(ctx.looks, IDLE_LOOKS_BRIEF);
	assert_int_equal(passes(&i), IDLE_LOOKS_BRIEF / 4);
}

/* The answers that come behind the first may need some microseconds. */
static void who_sleeps_and_may_poll_looks_longer(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	(void)passes(&i);
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_YIELD);
	assert_int_equal(idle_next(&ctx, &i, 1000000000), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, true);
	assert_int_equal(ctx.looks, IDLE_LOOKS);
}

static void who_was_answered_before_sleep_looks_longer(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	ctx.looks = IDLE_LOOKS_BRIEF;
	assert_true(idle_is_new(&ctx, &i));
	idle_over(&ctx, &i, true); /* before the clock was read */
	assert_int_equal(ctx.looks, IDLE_LOOKS);

	ctx.looks = IDLE_LOOKS_BRIEF;
	(void)passes(&i);
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_YIELD);
	idle_over(&ctx, &i, true);
	assert_int_equal(ctx.looks, IDLE_LOOKS);
}

/* That says nothing of how the next ends. */
static void who_gave_up_looks_as_before(void **state)
{
	struct idle i = {0};

	(void)state;
	start();
	ctx.spin.credit[0] = ctx.spin.credit[1] = -1000;
	(void)passes(&i);
	assert_int_equal(idle_next(&ctx, &i, 1), SLMPM_SPIN_SLEEP);
	idle_over(&ctx, &i, false);
	assert_int_equal(ctx.looks, IDLE_LOOKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_sleeps_and_may_not_poll_looks_briefly),
		cmocka_unit_test(who_sleeps_and_may_poll_looks_longer),
		cmocka_unit_test(who_was_answered_before_sleep_looks_longer),
		cmocka_unit_test(who_gave_up_looks_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
