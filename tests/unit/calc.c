/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 600 */
/* has-time */
/* Calculations: the same as element by element, whatever the operation, type, shape, strides, byte
 * orders and indices, in steps; and what special values make. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/calc/calc.h"
#include "tests/lib/actor.h"
#include "tests/lib/random.h"

#define SLOT     (64 * 1024) /* bytes for an operand, and as many for its indices behind them */
#define OPERANDS 16
#define LONG     20000 /* bytes of the elements of a long vector: more than a step's */
#define MOST     8000  /* of them */
#define CASES    40    /* of each operation on each type */

static unsigned char memory[OPERANDS * 2 * SLOT], model[sizeof(memory)], before[sizeof(memory)];
static unsigned char drawn[sizeof(memory)]; /* what operands begin with */

static uint32_t width_of(uint32_t type)
{
	const uint32_t width[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};

	return width[type];
}

/* ---- element by element ---------------------------------------------------------------------- */

static uint64_t turned(uint64_t bits, uint32_t width)
{
	return __builtin_bswap64(bits) >> (64 - 8 * width);
}

static bool is_foreign(const struct slmpm_operand *o)
{
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;

	return o->flags & (little ? SLMPM_OPERAND_BIG_ENDIAN : SLMPM_OPERAND_LITTLE_ENDIAN);
}

/* Bits of WIDTH bytes, in the lowest. */
static uint64_t peek(const void *at, uint32_t width, bool foreign)
{
	uint8_t b;
	uint16_t h;
	uint32_t w;
	uint64_t bits;

	switch (width) {
	case 1: memcpy(&b, at, 1); return b;
	case 2: memcpy(&h, at, 2); return foreign ? turned(h, 2) : h;
	case 4: memcpy(&w, at, 4); return foreign ? turned(w, 4) : w;
	default: memcpy(&bits, at, 8); return foreign ? turned(bits, 8) : bits;
	}
}

static void poke(void *at, uint64_t bits, uint32_t width, bool foreign)
{
	for (uint32_t i = 0; i < width; i++) {
		const uint16_t one = 1;
		bool little = (*(const unsigned char *)&one == 1) != foreign;

		((unsigned char *)at)[little ? i : width - 1 - i] = (unsigned char)(bits >> 8 * i);
	}
}

static double real_of(uint64_t bits, uint32_t type)
{
	uint32_t half = (uint32_t)bits;
	double d;
	float f;

	memcpy(&f, &half, 4);
	memcpy(&d, &bits, 8);
	return type == SLMPM_FLOAT ? (double)f : d;
}

static uint64_t bits_of(double value, uint32_t type)
{
	float f = (float)value;
	uint32_t half;
	uint64_t bits;

	memcpy(&half, &f, 4);
	memcpy(&bits, &value, 8);
	return type == SLMPM_FLOAT ? half : bits;
}

static bool is_real(uint32_t type)
{
	return type >= SLMPM_FLOAT;
}

/* A signed type's, its sign in all bits above. */
static uint64_t extended(uint64_t bits, uint32_t type)
{
	uint32_t unused = 64 - 8 * width_of(type);

	return type <= SLMPM_INT64 ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

/* Less than 0: A goes before B, more: behind; a NaN behind all. SIGN: 1, or -1 for the largest
 * first. */
static int order(uint64_t a, uint64_t b, uint32_t type, int sign)
{
	if (is_real(type)) {
		double x = real_of(a, type), y = real_of(b, type);

		if (isnan(x) || isnan(y))
			return !isnan(y) - !isnan(x);
		if (x == y)
			return sign * (!signbit(x) - !signbit(y));
		return x < y ? -sign : sign;
	}
	a = extended(a, type);
	b = extended(b, type);
	if (a == b)
		return 0;
	if (type <= SLMPM_INT64)
		return (int64_t)a < (int64_t)b ? -sign : sign;
	return a < b ? -sign : sign;
}

static bool truth(uint64_t bits, uint32_t type)
{
	return is_real(type) ? real_of(bits, type) != 0 : bits != 0;
}

static uint64_t from_truth(bool value, uint32_t type)
{
	return is_real(type) ? bits_of(value, type) : value;
}

static uint64_t arithmetic(uint32_t op, uint32_t type, uint64_t a, uint64_t b)
{
	double x = real_of(a, type), y = real_of(b, type);

	if (type == SLMPM_FLOAT) {
		float f = op == SLMPM_CALC_SUM ? (float)x + (float)y : (float)x * (float)y;

		return bits_of((double)f, type);
	}
	if (type == SLMPM_DOUBLE)
		return bits_of(op == SLMPM_CALC_SUM ? x + y : x * y, type);
	return op == SLMPM_CALC_SUM ? a + b : a * b;
}

static uint64_t combined(uint32_t op, uint32_t type, uint64_t a, uint64_t b)
{
	switch (op) {
	case SLMPM_CALC_MIN: return order(a, b, type, 1) <= 0 ? a : b;
	case SLMPM_CALC_MAX: return order(a, b, type, -1) <= 0 ? a : b;
	case SLMPM_CALC_AND: return a & b;
	case SLMPM_CALC_OR: return a | b;
	case SLMPM_CALC_XOR: return a ^ b;
	case SLMPM_CALC_LAND: return from_truth(truth(a, type) && truth(b, type), type);
	case SLMPM_CALC_LOR: return from_truth(truth(a, type) || truth(b, type), type);
	case SLMPM_CALC_LXOR: return from_truth(truth(a, type) != truth(b, type), type);
	default: return arithmetic(op, type, a, b);
	}
}

static uint64_t count_of(const struct slmpm_calc *c, int d)
{
	return c->count[d] ? c->count[d] : 1;
}

/* Where operand O has the element of number I, from its first. */
static int64_t offset_of(const struct slmpm_calc *c, const struct slmpm_operand *o, uint64_t i)
{
	int64_t packed = (int64_t)(i * width_of(c->type)), offset = 0;

	for (int d = 2; d >= 0; d--) {
		offset += (int64_t)(i % count_of(c, d)) * o->stride[d];
		i /= count_of(c, d);
	}
	return o->stride[0] || o->stride[1] || o->stride[2] ? offset : packed;
}

/* The same place in another copy of the memory. */
static unsigned char *in(unsigned char *copy, const void *at, int64_t offset)
{
	return copy + ((const unsigned char *)at - memory) + offset;
}

struct value {
	uint64_t bits, index;
};

static struct value argument(const struct slmpm_calc *c, const struct slmpm_operand *o, uint64_t i)
{
	struct value v = {peek(in(before, o->at, offset_of(c, o, i)), width_of(c->type),
			       is_foreign(o)),
			  o->index};

	if (o->indices)
		v.index = peek(in(before, o->indices, (int64_t)(8 * i)), 8, is_foreign(o));
	return v;
}

static struct value outcome(const struct slmpm_calc *c, uint64_t i)
{
	struct value best = argument(c, &c->args[0], i);

	if (c->arg_count == 1 && c->op >= SLMPM_CALC_LAND)
		best.bits = from_truth(truth(best.bits, c->type), c->type);
	for (int k = 1; k < c->arg_count; k++) {
		struct value v = argument(c, &c->args[k], i);
		int way = order(best.bits, v.bits, c->type, c->op == SLMPM_CALC_MAX ? -1 : 1);

		best.bits = combined(c->op, c->type, best.bits, v.bits);
		if (way > 0 || (way == 0 && v.index < best.index))
			best.index = v.index;
	}
	return best;
}

static void calculate(const struct slmpm_calc *c)
{
	uint64_t total = count_of(c, 0) * count_of(c, 1) * count_of(c, 2);

	for (uint64_t i = 0; i < total; i++) {
		struct value v = outcome(c, i);

		for (int k = 0; k < c->target_count; k++) {
			const struct slmpm_operand *o = &c->targets[k];

			poke(in(model, o->at, offset_of(c, o, i)), v.bits, width_of(c->type),
			     is_foreign(o));
			if (o->indices)
				poke(in(model, o->indices, (int64_t)(8 * i)), v.index, 8,
				     is_foreign(o));
		}
	}
}

/* Which NaN it is nobody promises. */
static void one_nan(const struct slmpm_calc *c, unsigned char *copy)
{
	uint64_t total = count_of(c, 0) * count_of(c, 1) * count_of(c, 2);

	for (int k = 0; is_real(c->type) && k < c->target_count; k++)
		for (uint64_t i = 0; i < total; i++) {
			const struct slmpm_operand *o = &c->targets[k];
			unsigned char *at = in(copy, o->at, offset_of(c, o, i));

			if (isnan(real_of(peek(at, width_of(c->type), is_foreign(o)), c->type)))
				memset(at, 0xff, width_of(c->type));
		}
}

/* ---- by the library -------------------------------------------------------------------------- */

static struct slmpm_operand *copy_of(const struct slmpm_operand *list, int n)
{
	struct slmpm_operand *copy = malloc((size_t)n * sizeof(*copy));

	assert_non_null(copy);
	memcpy(copy, list, (size_t)n * sizeof(*copy));
	return copy;
}

/* Once begun, it needs the caller's arrays no more. */
static struct calc_job *job_of(struct slmpm_calc c)
{
	struct slmpm_operand *args = copy_of(c.args, c.arg_count);
	struct slmpm_operand *targets = copy_of(c.targets, c.target_count);
	struct calc_job *job = malloc(calc_job_size(&c));

	assert_non_null(job);
	c.args = args;
	c.targets = targets;
	calc_begin(job, &c);
	free(args);
	free(targets);
	return job;
}

static void run(struct slmpm_calc c, bool vectors)
{
	struct calc_job *job = job_of(c);
	uint64_t done = 0;
	bool more = true;

	if (!vectors && c.arg_count > 1) {
		job->vectors = false;
		job->kernel = calc_kernel_of(c.op, c.type, false);
	}
	while (more) {
		more = calc_step(job);
		assert_true(job->done > done || !more);
		assert_true((job->done - done) * width_of(c.type) <= CALC_STEP);
		assert_int_equal(more, job->done < job->total);
		done = job->done;
	}
	assert_int_equal(done, count_of(&c, 0) * count_of(&c, 1) * count_of(&c, 2));
	assert_false(calc_step(job));
	free(job);
}

/* The plain way, where C may go it; or, AT_ONCE, the shortest. */
static bool run_plainly(struct slmpm_calc c, bool at_once)
{
	struct slmpm_operand *args = copy_of(c.args, c.arg_count);
	struct slmpm_operand *targets = copy_of(c.targets, c.target_count);
	uint64_t done = 0, total = count_of(&c, 0) * count_of(&c, 1) * count_of(&c, 2);
	uint64_t bytes = total * width_of(c.type);
	struct calc_plain plain;
	bool more, is_plain;

	c.args = args;
	c.targets = targets;
	is_plain = calc_plain_take(&plain, &c);
	if (at_once) {
		assert_false(calc_plain_at_once(&c, bytes - 1));
		more = calc_plain_at_once(&c, bytes);
		assert_int_equal(more, is_plain && c.arg_count <= 2);
		is_plain = more;
	}
	free(args);
	free(targets);
	if (at_once)
		return is_plain;
	for (more = is_plain; more; done = plain.done) {
		more = calc_plain_step(&plain);
		assert_true(plain.done > done);
		assert_true((plain.done - done) * width_of(c.type) <= CALC_STEP);
	}
	if (is_plain)
		assert_int_equal(done, total);
	return is_plain;
}

/* ---- any of them ----------------------------------------------------------------------------- */

/* Few values, so that some are equal, and special ones, between others; few indices. */
static void fill(struct rng *g, uint32_t type)
{
	const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -1, 1e30, 5e-324};
	uint32_t width = width_of(type);

	for (size_t at = 0; at < sizeof(memory); at += at / SLOT % 2 ? 8 : width) {
		uint64_t x = rng_next(g);

		if (at / SLOT % 2)
			poke(memory + at, x % 4, 8, x >> 62 == 0);
		else if (is_real(type) && x % 4)
			poke(memory + at, bits_of(special[(x >> 8) % 9], type), width,
			     x >> 62 == 0);
		else if (x % 2)
			poke(memory + at, (x >> 8) % 5 - 2, width, x >> 62 == 0);
		else
			poke(memory + at, x >> 1, width, false);
	}
}

/* Steps of at least what lies within, dimensions in any order and direction. */
static void make_strides(struct rng *g, const struct slmpm_calc *c, struct slmpm_operand *o,
			 bool target, int64_t *lowest)
{
	int dims[] = {0, 1, 2};
	int64_t within = width_of(c->type);
	int64_t unit = rng_one_in(g, 3) ? 1 : within;
	bool few = count_of(c, 0) * count_of(c, 1) * count_of(c, 2) < 300;

	*lowest = 0;
	if (rng_one_in(g, 2))
		return;
	for (int i = 2; i > 0 && rng_one_in(g, 2); i--) {
		int k = (int)rng_below(g, (uint32_t)i + 1), d = dims[i];

		dims[i] = dims[k];
		dims[k] = d;
	}
	for (int i = 2; i >= 0; i--) {
		int64_t n = (int64_t)count_of(c, dims[i]) - 1, gap = rng_below(g, 3);

		o->stride[dims[i]] = within + gap * (few && rng_one_in(g, 2) ? within : unit);
		if (!target && rng_one_in(g, 6))
			o->stride[dims[i]] = 0;
		within += n * o->stride[dims[i]];
		if (rng_one_in(g, 4)) {
			o->stride[dims[i]] = -o->stride[dims[i]];
			*lowest += n * o->stride[dims[i]];
		}
	}
	assert_true(within <= SLOT - 64);
}

static uint32_t displacement(struct rng *g, uint32_t most)
{
	return rng_one_in(g, 2) ? 0 : rng_below(g, most);
}

/* PLAIN: without all that may be left out. */
static void make_operand(struct rng *g, const struct slmpm_calc *c, struct slmpm_operand *o,
			 int slot, bool target, bool plain)
{
	bool picks = c->op == SLMPM_CALC_MIN || c->op == SLMPM_CALC_MAX;
	int64_t lowest;

	memset(o, 0, sizeof(*o));
	o->at = memory + slot * 2 * SLOT + displacement(g, 64);
	if (plain)
		return;
	make_strides(g, c, o, target, &lowest);
	o->at = (unsigned char *)o->at - lowest;
	if (rng_one_in(g, 3))
		o->flags = 1 + rng_below(g, 2);
	if (picks && rng_one_in(g, 2))
		o->indices = (void *)(memory + (slot * 2 + 1) * SLOT + displacement(g, 9));
	else if (picks && !target)
		o->index = rng_below(g, 4);
}

static void make_shape(struct rng *g, struct slmpm_calc *c, bool plain)
{
	uint32_t bytes = plain ? 3 * LONG : LONG;
	uint32_t most = rng_one_in(g, plain ? 2 : 6) ? bytes / width_of(c->type) : 40;

	most = most < MOST ? most : MOST;
	memset(c->count, 0, sizeof(c->count));
	if (rng_one_in(g, 8))
		return;
	if (rng_one_in(g, 2))
		c->count[rng_below(g, 3)] = 1 + rng_below(g, most);
	else
		for (int d = 0; d < 3; d++)
			c->count[d] = rng_below(g, 7);
}

/* A target in an argument's place, or between its elements. */
static void share(struct rng *g, const struct slmpm_calc *c, struct slmpm_operand *target,
		  const struct slmpm_operand *arg)
{
	struct slmpm_operand given = *target;

	*target = *arg;
	target->index = 0;
	target->flags = given.flags;
	target->indices = rng_one_in(g, 2) ? given.indices : arg->indices;
	if (rng_one_in(g, 3))
		target->at = (unsigned char *)arg->at + width_of(c->type);
	if (calc_check(c, "test") < 0) /* it is stored to more than once, or overlaps */
		*target = given;
}

static int plain_ones, plain_long_ones;

/* One way or another. */
static void run_somehow(struct rng *g, const struct slmpm_calc *c)
{
	if (rng_one_in(g, 2) || !run_plainly(*c, rng_one_in(g, 2))) {
		run(*c, rng_one_in(g, 2));
		return;
	}
	plain_ones++;
	plain_long_ones +=
		count_of(c, 0) * count_of(c, 1) * count_of(c, 2) * width_of(c->type) > CALC_STEP;
}

static void one_case(struct rng *g, uint32_t op, uint32_t type)
{
	struct slmpm_operand args[OPERANDS], targets[OPERANDS];
	struct slmpm_calc c = {.size = sizeof(c), .op = op, .type = type};
	bool plain = rng_one_in(g, 4);
	int slot = 0;

	c.args = args;
	c.targets = targets;
	c.arg_count = 1 + (int)rng_below(g, rng_one_in(g, 4) ? 12 : 4);
	c.target_count = 1 + (int)rng_below(g, rng_one_in(g, 3) && !plain ? 4 : 1);
	make_shape(g, &c, plain);
	for (int i = 0; i < c.arg_count; i++)
		make_operand(g, &c, &args[i], slot++, false, plain);
	for (int i = 0; i < c.target_count; i++)
		make_operand(g, &c, &targets[i], slot++, true, plain);
	for (int i = 0; i < c.target_count; i++)
		if (rng_one_in(g, 2))
			share(g, &c, &targets[i], &args[rng_below(g, (uint32_t)c.arg_count)]);
	if (calc_check(&c, "test") < 0)
		fail_msg("%s", slmpm_error_detail());
	memcpy(before, memory, (size_t)slot * 2 * SLOT);
	memcpy(model, memory, (size_t)slot * 2 * SLOT);
	calculate(&c);
	one_nan(&c, model);
	run_somehow(g, &c);
	one_nan(&c, memory);
	assert_memory_equal(memory, model, (size_t)slot * 2 * SLOT);
}

static void any(void **state)
{
	struct rng g = {rng_run_seed(1)};
	const int cases = CASES / actor_slow();

	(void)state;
	for (uint32_t type = SLMPM_INT8; type <= SLMPM_DOUBLE; type++) {
		fill(&g, type);
		memcpy(drawn, memory, sizeof(drawn));
		for (uint32_t op = SLMPM_CALC_SUM; op <= SLMPM_CALC_LXOR; op++)
			for (int i = 0; i < cases && calc_kernel_of(op, type, true); i++) {
				if (i % 10 == 0)
					memcpy(memory, drawn, sizeof(memory));
				one_case(&g, op, type);
			}
	}
	if (plain_ones < 5 * cases || plain_long_ones < cases / 4)
		fail_msg("%d plain ones, %d of them long", plain_ones, plain_long_ones);
}

/* ---- special values -------------------------------------------------------------------------- */

#define NONE                                                                                       \
	{                                                                                          \
		0                                                                                  \
	}

static uint64_t scalar(uint32_t op, uint32_t type, int n, const uint64_t *values)
{
	struct slmpm_operand args[3], target = {.at = model};
	struct slmpm_calc c = {.size = sizeof(c),
			       .op = op,
			       .type = type,
			       .args = args,
			       .targets = &target,
			       .arg_count = n,
			       .target_count = 1};
	uint64_t bits;

	memset(args, 0, sizeof(args));
	for (int i = 0; i < n; i++) {
		args[i].at = memory + 8 * i;
		poke(args[i].at, values[i], width_of(type), false);
	}
	assert_int_equal(calc_check(&c, "test"), 0);
	run(c, true);
	bits = peek(model, width_of(type), false);
	memset(model, 0, sizeof(bits));
	assert_true(run_plainly(c, false));
	if (bits != peek(model, width_of(type), false)) /* which NaN it is, is not said */
		assert_true(is_real(type) && isnan(real_of(bits, type)) &&
			    isnan(real_of(peek(model, width_of(type), false), type)));
	return bits;
}

static void integers_wrap(void **state)
{
	const struct {
		uint32_t op, type;
		uint64_t a, b, is;
	} rows[] = {
		{SLMPM_CALC_SUM, SLMPM_INT8, 0x80, 0xff, 0x7f},
		{SLMPM_CALC_SUM, SLMPM_INT32, 0x80000000, 0xffffffff, 0x7fffffff},
		{SLMPM_CALC_SUM, SLMPM_INT64, UINT64_C(1) << 63, UINT64_MAX, INT64_MAX},
		{SLMPM_CALC_SUM, SLMPM_UINT8, 0xff, 2, 1},
		{SLMPM_CALC_PRODUCT, SLMPM_INT8, 0x80, 0xff, 0x80},
		{SLMPM_CALC_PRODUCT, SLMPM_UINT16, 0xffff, 0xffff, 1},
		{SLMPM_CALC_PRODUCT, SLMPM_INT64, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 63},
		{SLMPM_CALC_MIN, SLMPM_INT16, 0x8000, 0x7fff, 0x8000},
		{SLMPM_CALC_MIN, SLMPM_UINT16, 0x8000, 0x7fff, 0x7fff},
		{SLMPM_CALC_MAX, SLMPM_INT64, UINT64_MAX, 0, 0},
		{SLMPM_CALC_MAX, SLMPM_UINT64, UINT64_MAX, 0, UINT64_MAX},
		{SLMPM_CALC_XOR, SLMPM_INT32, 0xf0f0f0f0, 0xffff0000, 0x0f0ff0f0},
		{SLMPM_CALC_LAND, SLMPM_INT8, 0x80, 2, 1},
		{SLMPM_CALC_LXOR, SLMPM_UINT32, 7, 9, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t values[] = {rows[i].a, rows[i].b};

		assert_int_equal(scalar(rows[i].op, rows[i].type, 2, values), rows[i].is);
	}
}

static void floats_are_ieee(void **state)
{
	const struct {
		uint32_t op;
		double a, b, is;
	} rows[] = {
		{SLMPM_CALC_SUM, INFINITY, -INFINITY, NAN},
		{SLMPM_CALC_SUM, -0.0, -0.0, -0.0},
		{SLMPM_CALC_SUM, -0.0, 0.0, 0.0},
		{SLMPM_CALC_SUM, NAN, 1, NAN},
		{SLMPM_CALC_PRODUCT, 1e300, -1e300, -INFINITY},
		{SLMPM_CALC_PRODUCT, 0.0, INFINITY, NAN},
		{SLMPM_CALC_PRODUCT, -0.0, 3, -0.0},
		{SLMPM_CALC_MIN, NAN, 3, 3},
		{SLMPM_CALC_MIN, 3, NAN, 3},
		{SLMPM_CALC_MIN, NAN, NAN, NAN},
		{SLMPM_CALC_MIN, 0.0, -0.0, -0.0},
		{SLMPM_CALC_MIN, -0.0, 0.0, -0.0},
		{SLMPM_CALC_MAX, 0.0, -0.0, 0.0},
		{SLMPM_CALC_MAX, -0.0, 0.0, 0.0},
		{SLMPM_CALC_MAX, NAN, -INFINITY, -INFINITY},
		{SLMPM_CALC_LAND, NAN, -1, 1},
		{SLMPM_CALC_LOR, -0.0, 0.0, 0.0},
		{SLMPM_CALC_LXOR, 5e-324, 0.0, 1},
	};

	(void)state;
	for (uint32_t type = SLMPM_FLOAT; type <= SLMPM_DOUBLE; type++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const uint64_t values[] = {bits_of(rows[i].a, type),
						   bits_of(rows[i].b, type)};
			uint64_t bits = scalar(rows[i].op, type, 2, values);

			if (type == SLMPM_FLOAT && fabs(rows[i].a) < 1e-300 && rows[i].a != 0)
				continue; /* there it is 0 */
			if (isnan(rows[i].is))
				assert_true(isnan(real_of(bits, type)));
			else
				assert_int_equal(bits, bits_of(rows[i].is, type));
		}
}

static void in_order(void **state)
{
	const double values[] = {1e20, 1, -1e20};
	const uint64_t bits[] = {bits_of(values[0], SLMPM_DOUBLE), bits_of(values[1], SLMPM_DOUBLE),
				 bits_of(values[2], SLMPM_DOUBLE)};

	(void)state;
	assert_int_equal(scalar(SLMPM_CALC_SUM, SLMPM_DOUBLE, 3, bits), 0);
	assert_int_equal(scalar(SLMPM_CALC_SUM, SLMPM_DOUBLE, 1, bits), bits[0]);
	assert_int_equal(scalar(SLMPM_CALC_LXOR, SLMPM_DOUBLE, 1, bits), bits[1]);
	assert_int_equal(scalar(SLMPM_CALC_MAX, SLMPM_INT8, 1, bits), bits[0] & 0xff);
}

/* Of the winners of two calculations a third one finds the winner of all; of equal ones, and where
 * all are NaN, it is the lowest index, wherever it stands. */
static void indices_go_on(void **state)
{
	enum { N = 1000 };
	static double values[4][N], best[3][N];
	static uint64_t winners[3][N];
	const uint64_t own[] = {10, 30, 20, 15};

	(void)state;
	for (int i = 0; i < N; i++)
		for (int k = 0; k < 4; k++)
			values[k][i] = (const double[]){NAN, -1, 0, 5}[(i >> 2 * k) % 4];
	for (int t = 0; t < 3; t++) {
		struct slmpm_operand args[2], target = {.at = best[t], .indices = winners[t]};
		struct slmpm_calc c = {.size = sizeof(c),
				       .op = SLMPM_CALC_MAX,
				       .type = SLMPM_DOUBLE,
				       .count = {N},
				       .args = args,
				       .targets = &target,
				       .arg_count = 2,
				       .target_count = 1};

		memset(args, 0, sizeof(args));
		for (int k = 0; k < 2; k++) {
			args[k].at = t < 2 ? values[2 * t + k] : best[k];
			args[k].index = t < 2 ? own[2 * t + k] : 0;
			args[k].indices = t < 2 ? NULL : winners[k];
		}
		assert_int_equal(calc_check(&c, "test"), 0);
		run(c, true);
	}
	for (int i = 0; i < N; i++) {
		double most = NAN;
		uint64_t index = UINT64_MAX;

		for (int k = 0; k < 4; k++) {
			int way = order(bits_of(most, SLMPM_DOUBLE),
					bits_of(values[k][i], SLMPM_DOUBLE), SLMPM_DOUBLE, -1);

			if (way > 0 || (way == 0 && own[k] < index))
				index = own[k];
			most = way > 0 ? values[k][i] : most;
		}
		assert_true(isnan(most) ? isnan(best[2][i]) : best[2][i] == most);
		assert_int_equal(winners[2][i], index);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any),
		cmocka_unit_test(integers_wrap),
		cmocka_unit_test(floats_are_ieee),
		cmocka_unit_test(in_order),
		cmocka_unit_test(indices_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
