/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* What is no calculation is refused, and said by name; which memory may overlap, against what each
 * byte says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/calc/calc.h"
#include "tests/lib/actor.h"
#include "tests/lib/random.h"

/* Three dimensions of doubles in two arguments and two targets, all apart. */
#define COUNT 24

static double memory[8][COUNT];
static uint64_t indices[4][COUNT];
static struct slmpm_operand args[SLMPM_CALC_ARGS_MAX + 1], targets[SLMPM_CALC_TARGETS_MAX + 1];
static struct slmpm_calc c;

static void sound(void)
{
	memset(args, 0, sizeof(args));
	memset(targets, 0, sizeof(targets));
	c = (struct slmpm_calc){
		.size = sizeof(c),
		.op = SLMPM_CALC_MAX,
		.type = SLMPM_DOUBLE,
		.count = {2, 3, 4},
		.args = args,
		.targets = targets,
		.arg_count = 2,
		.target_count = 2,
	};
	for (int i = 0; i < 2; i++) {
		args[i].at = memory[i];
		args[i].indices = indices[i];
		targets[i].at = memory[2 + i];
		targets[i].indices = indices[2 + i];
	}
}

static void is_sound(void)
{
	if (calc_check(&c, "slmpm_post") < 0)
		fail_msg("refused: %s", slmpm_error_detail());
}

static void is_refused(int error, const char *why)
{
	int rc = calc_check(&c, "slmpm_post");
	struct calc_plain plain;

	assert_false(calc_plain_take(&plain, &c));
	assert_false(calc_plain_at_once(&c, UINT64_MAX));
	if (rc != -error || !strstr(slmpm_error_detail(), why) ||
	    !strstr(slmpm_error_detail(), ": slmpm_post: "))
		fail_msg("%d (%s), not \"%s\"", rc, slmpm_error_detail(), why);
	sound();
}

#define REFUSED_WITH(change, error, why)                                                           \
	do {                                                                                       \
		change;                                                                            \
		is_refused(error, why);                                                            \
	} while (0)

static void words(void **state)
{
	(void)state;
	sound();
	is_sound();
	REFUSED_WITH(c.op = 0, SLMPM_EINVAL, "calculation 0");
	REFUSED_WITH(c.op = 11, SLMPM_EINVAL, "calculation 11 is none");
	REFUSED_WITH(c.type = 0, SLMPM_EINVAL, "type 0");
	REFUSED_WITH(c.type = 11, SLMPM_EINVAL, "type 11");
	REFUSED_WITH(c.op = SLMPM_CALC_AND, SLMPM_EINVAL, "integers alone");
	REFUSED_WITH((c.op = SLMPM_CALC_XOR, c.type = SLMPM_FLOAT), SLMPM_EINVAL, "integers alone");
	REFUSED_WITH(c.reserved = 7, SLMPM_EINVAL, ".reserved is 7");
	REFUSED_WITH(c.arg_count = 0, SLMPM_EINVAL, "0 arguments");
	REFUSED_WITH(c.arg_count = -1, SLMPM_EINVAL, "-1 arguments");
	REFUSED_WITH(c.args = NULL, SLMPM_EINVAL, "the arguments are NULL, their number is 2");
	REFUSED_WITH(c.arg_count = SLMPM_CALC_ARGS_MAX + 1, SLMPM_ELIMIT, "65 arguments");
	REFUSED_WITH(c.target_count = 0, SLMPM_EINVAL, "0 targets");
	REFUSED_WITH(c.targets = NULL, SLMPM_EINVAL, "the targets are NULL, their number is 2");
	REFUSED_WITH(c.target_count = SLMPM_CALC_TARGETS_MAX + 1, SLMPM_ELIMIT, "17 targets");
	REFUSED_WITH(c.size = 0, SLMPM_EINVAL, ".size");
	REFUSED_WITH(c.size = sizeof(c) - 2, SLMPM_EINVAL, ".size");
	REFUSED_WITH(c.size = offsetof(struct slmpm_calc, target_count), SLMPM_EINVAL, ".size");
}

/* A caller's with a newer header: as long as it sets nothing there. */
static void sizes(void **state)
{
	struct {
		struct slmpm_calc known;
		uint64_t later;
	} newer;

	(void)state;
	sound();
	memset(&newer, 0, sizeof(newer));
	newer.known = c;
	newer.known.size = sizeof(newer);
	assert_int_equal(calc_check(&newer.known, "slmpm_post"), 0);
	newer.later = 1;
	assert_int_equal(calc_check(&newer.known, "slmpm_post"), -SLMPM_EINVAL);
	assert_non_null(strstr(slmpm_error_detail(), "does not know"));
}

static void operands(void **state)
{
	(void)state;
	sound();
	REFUSED_WITH(args[1].at = NULL, SLMPM_EINVAL, "argument 1 is NULL");
	REFUSED_WITH(targets[0].at = NULL, SLMPM_EINVAL, "target 0 is NULL");
	REFUSED_WITH(args[0].reserved[0] = 1, SLMPM_EINVAL, ".reserved of argument 0");
	REFUSED_WITH(targets[1].reserved[1] = 1, SLMPM_EINVAL, ".reserved of target 1");
	REFUSED_WITH(args[0].flags = 3, SLMPM_EINVAL, "flags 0x3 of argument 0");
	REFUSED_WITH(targets[1].flags = 4, SLMPM_EINVAL, "flags 0x4 of target 1");
	REFUSED_WITH(c.op = SLMPM_CALC_SUM, SLMPM_EINVAL, "an index of argument 0");
	REFUSED_WITH(targets[1].index = 1, SLMPM_EINVAL, "an index of target 1");
	REFUSED_WITH((c.op = SLMPM_CALC_SUM, args[0].indices = NULL, args[0].index = 1),
		     SLMPM_EINVAL, "an index of argument 0");
	REFUSED_WITH((c.op = SLMPM_CALC_LOR, args[0].indices = args[1].indices = NULL),
		     SLMPM_EINVAL, "an index of target 0");
	REFUSED_WITH(c.count[1] = UINT64_MAX, SLMPM_EINVAL, " elements");
	REFUSED_WITH((c.count[0] = c.count[1] = UINT64_C(1) << 30), SLMPM_EINVAL, " elements");
	REFUSED_WITH((c.count[0] = c.count[1] = UINT64_C(1) << 29), SLMPM_EINVAL, " elements");
	REFUSED_WITH((args[0].at = (void *)(UINTPTR_MAX - 100)), SLMPM_EINVAL,
		     "argument 0 reaches beyond");
	REFUSED_WITH(args[1].stride[2] = INT64_MAX, SLMPM_EINVAL, "argument 1 reaches beyond");
	REFUSED_WITH(args[1].stride[0] = INT64_MAX / 2, SLMPM_EINVAL, "argument 1 reaches beyond");
	REFUSED_WITH(targets[0].stride[0] = INT64_MIN, SLMPM_EINVAL, "target 0 reaches beyond");
	REFUSED_WITH(args[0].indices = (uint64_t *)UINTPTR_MAX, SLMPM_EINVAL,
		     "argument 0 reaches beyond");
}

static unsigned char *bytes_of(double *at, int64_t n)
{
	return (unsigned char *)at + n;
}

static void strides(struct slmpm_operand *o, int64_t a, int64_t b, int64_t d)
{
	o->stride[0] = a;
	o->stride[1] = b;
	o->stride[2] = d;
}

static void overlaps(void **state)
{
	(void)state;
	sound();
	REFUSED_WITH(targets[0].at = bytes_of(memory[0], 8), SLMPM_EINVAL,
		     "target 0 overlaps argument 0");
	REFUSED_WITH(targets[1].at = bytes_of(memory[1], -1), SLMPM_EINVAL,
		     "target 1 overlaps argument 0");
	REFUSED_WITH(targets[1].at = targets[0].at, SLMPM_EINVAL, "target 1 overlaps target 0");
	REFUSED_WITH(targets[1].at = bytes_of(memory[2], 16), SLMPM_EINVAL,
		     "target 1 overlaps target 0");
	REFUSED_WITH(targets[1].indices = targets[0].indices, SLMPM_EINVAL,
		     "target 1 overlaps target 0");
	REFUSED_WITH(targets[1].indices = indices[0] + 1, SLMPM_EINVAL,
		     "target 1 overlaps argument 0");
	REFUSED_WITH(targets[0].indices = targets[0].at, SLMPM_EINVAL,
		     "target 0 overlaps its indices");
	REFUSED_WITH(targets[0].indices = args[1].at, SLMPM_EINVAL, "target 0 overlaps argument 1");
	REFUSED_WITH(targets[0].at = args[1].indices, SLMPM_EINVAL, "target 0 overlaps argument 1");
	REFUSED_WITH(targets[1].at = targets[0].indices, SLMPM_EINVAL,
		     "target 1 overlaps target 0");
	REFUSED_WITH(strides(&targets[0], 64, 16, 7), SLMPM_EINVAL, "elements of target 0 overlap");
	REFUSED_WITH(strides(&targets[1], 8, 0, 16), SLMPM_EINVAL, "elements of target 1 overlap");
	REFUSED_WITH(strides(&targets[1], -64, 32, 8), SLMPM_EINVAL,
		     "elements of target 1 overlap");
	/* The same place, but element for element another one. */
	REFUSED_WITH((targets[0].at = args[0].at, strides(&targets[0], 32, 64, 8)), SLMPM_EINVAL,
		     "target 0 overlaps argument 0");
	REFUSED_WITH((targets[0].at = args[0].at, strides(&targets[0], 8, 64, 16)), SLMPM_EINVAL,
		     "target 0 overlaps argument 0");
}

static void exact(void **state)
{
	(void)state;
	sound();
	targets[0].at = args[0].at;
	targets[0].indices = args[0].indices;
	targets[1].at = args[1].at;
	strides(&targets[1], 96, 32, 8); /* what 0 stands for */
	targets[1].flags = SLMPM_OPERAND_BIG_ENDIAN;
	is_sound();
	args[0].at = args[1].at;
	is_sound();
}

/* ---- each byte ------------------------------------------------------------------------------- */

#define PLACE 400

/* How often operand O has each byte; and by which element it begins. */
static void stain(const struct slmpm_operand *o, const unsigned char *from, uint64_t width,
		  uint8_t *times, int *first)
{
	uint64_t i[3];
	int n = 0;

	memset(times, 0, PLACE);
	memset(first, -1, PLACE * sizeof(*first));
	for (i[0] = 0; i[0] < c.count[0]; i[0]++)
		for (i[1] = 0; i[1] < c.count[1]; i[1]++)
			for (i[2] = 0; i[2] < c.count[2]; i[2]++, n++) {
				int64_t at = (const unsigned char *)o->at - from;

				for (int d = 0; d < 3; d++)
					at += (int64_t)i[d] * o->stride[d];
				assert_true(at >= 0 && at + (int64_t)width <= PLACE);
				first[at] = n;
				for (uint64_t b = 0; b < width; b++)
					times[(uint64_t)at + b]++;
			}
}

static void place(struct rng *g, struct slmpm_operand *o, unsigned char *from, int64_t width)
{
	int64_t lowest = 0, highest = width, fit;

	for (int d = 0; d < 3; d++) {
		int64_t n = (int64_t)c.count[d] - 1;

		o->stride[d] = (int64_t)rng_below(g, 8) * (rng_one_in(g, 2) ? width : 3 * width);
		if (rng_one_in(g, 4))
			o->stride[d] += 1;
		if (rng_one_in(g, 3))
			o->stride[d] = -o->stride[d];
		*(o->stride[d] < 0 ? &lowest : &highest) += n * o->stride[d];
	}
	if (!(o->stride[0] | o->stride[1] | o->stride[2]))
		o->stride[0] = width;
	fit = PLACE - (highest - lowest) - width;
	o->at = from + (fit > 0 ? (int64_t)rng_below(g, (uint32_t)fit) : 0) - lowest;
}

static bool fits(const struct slmpm_operand *o, const unsigned char *from, int64_t width)
{
	int64_t lo = (const unsigned char *)o->at - from, hi = lo + width;

	for (int d = 0; d < 3; d++)
		*(o->stride[d] < 0 ? &lo : &hi) += ((int64_t)c.count[d] - 1) * o->stride[d];
	return lo >= 0 && hi <= PLACE;
}

/* What is taken overlaps nowhere but element on element; what has the same strides and is refused
 * does overlap. */
static void each_byte(void **state)
{
	struct rng g = {rng_run_seed(3)};
	static unsigned char at[PLACE];
	static uint8_t own[PLACE], other[PLACE];
	static int first[2][PLACE];
	int taken = 0, refused = 0, sharing = 0, rounds = 200000 / actor_slow();

	(void)state;
	for (int round = 0; round < rounds; round++) {
		const int64_t width = INT64_C(1) << rng_below(&g, 4);
		bool twice = false, both = false, same, strided;
		int rc;

		sound();
		c.op = SLMPM_CALC_SUM;
		c.type = (uint32_t)(SLMPM_INT8 + __builtin_ctz((uint32_t)width));
		c.arg_count = c.target_count = 1;
		args[0].indices = targets[0].indices = NULL;
		for (int d = 0; d < 3; d++)
			c.count[d] = 1 + rng_below(&g, 4);
		place(&g, &targets[0], at, width);
		if (rng_one_in(&g, 4)) {
			place(&g, &args[0], at, width);
		} else {
			args[0] = targets[0];
			args[0].at = (unsigned char *)args[0].at +
				     (int64_t)rng_below(&g, 60) * (rng_one_in(&g, 2) ? width : 1) -
				     30;
		}
		if (!fits(&targets[0], at, width) || !fits(&args[0], at, width))
			continue;
		stain(&targets[0], at, (uint64_t)width, own, first[0]);
		stain(&args[0], at, (uint64_t)width, other, first[1]);
		for (int i = 0; i < PLACE; i++) {
			twice |= own[i] > 1;
			both |= own[i] && other[i];
		}
		same = !memcmp(first[0], first[1], sizeof(first[0]));
		strided = true;
		for (int d = 0; d < 3; d++)
			strided &= c.count[d] == 1 || args[0].stride[d] == targets[0].stride[d];
		rc = calc_check(&c, "slmpm_post");
		taken += rc == 0;
		refused += rc < 0;
		sharing += rc == 0 && same;
		if (rc == 0)
			assert_true(!twice && (!both || same));
		else if (strided && !strstr(slmpm_error_detail(), "elements of target"))
			assert_true(both && !same);
	}
	assert_true(taken > rounds / 200 && refused > rounds / 200 && sharing > rounds / 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),    cmocka_unit_test(sizes), cmocka_unit_test(operands),
		cmocka_unit_test(overlaps), cmocka_unit_test(exact), cmocka_unit_test(each_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
