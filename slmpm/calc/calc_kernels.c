/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inner loops of calculations: a function for each operation on each type. Compilers make
 * vector instructions of loops without gaps. The target may be an argument: told that no element
 * depends on another one, they need not find out. Where only some processors of a kind have the
 * instructions that count, each function is made twice: with them, and small.
 */
#include "slmpm/calc/calc.h"

#include <string.h>

#include "shm/compiler.h"

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* without optimization it need not be told */
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

/* Elements as they lie in memory, aligned or not. */
#define LYING __attribute__((aligned(1), may_alias))
typedef u8 u8_at LYING;
typedef u16 u16_at LYING;
typedef u32 u32_at LYING;
typedef u64 u64_at LYING;
typedef i8 i8_at LYING;
typedef i16 i16_at LYING;
typedef i32 i32_at LYING;
typedef i64 i64_at LYING;
typedef f32 f32_at LYING;
typedef f64 f64_at LYING;

/* ---- loops ----------------------------------------------------------------------------------- */

#define ARGUMENT(t, k) ((const t##_at *)(const void *)f->from[k])

#define PAIR_LOOP(t, of)                                                                           \
	{                                                                                          \
		const t##_at *a = ARGUMENT(t, 0), *b = ARGUMENT(t, 1);                             \
		t##_at *to = (void *)f->to;                                                        \
		size_t n = f->n;                                                                   \
                                                                                                   \
		EACH_ALONE for (size_t i = 0; i < n; i++) to[i] = of(a[i], b[i]);                  \
		return;                                                                            \
	}

#define QUAD_LOOP(t, of)                                                                           \
	{                                                                                          \
		const t##_at *a = ARGUMENT(t, 0), *b = ARGUMENT(t, 1);                             \
		const t##_at *c = ARGUMENT(t, 2), *d = ARGUMENT(t, 3);                             \
		t##_at *to = (void *)f->to;                                                        \
		size_t n = f->n;                                                                   \
                                                                                                   \
		EACH_ALONE for (size_t i = 0; i < n; i++) to[i] =                                  \
			of(of(of(a[i], b[i]), c[i]), d[i]);                                        \
		return;                                                                            \
	}

#define STRIDED_ONE(t, of, i)                                                                      \
	(*(t##_at *)(to + i * to_stride) =                                                         \
		 of(*(const t##_at *)(a + i * s), *(const t##_at *)(b + i * r)))

/* In pairs, where PAIRS says so: the strides are added less often. */
#define STRIDED_LOOP(t, of, pairs)                                                                 \
	{                                                                                          \
		const int64_t to_stride = f->to_stride, s = f->stride[0], r = f->stride[1];        \
		const unsigned char *a = f->from[0], *b = f->from[1];                              \
		unsigned char *to = f->to;                                                         \
		size_t n = f->n, alone = (pairs) ? n & 1 : n;                                      \
                                                                                                   \
		for (n -= alone; alone; alone--, a += s, b += r, to += to_stride)                  \
			STRIDED_ONE(t, of, 0);                                                     \
		for (; n; n -= 2, a += 2 * s, b += 2 * r, to += 2 * to_stride) {                   \
			STRIDED_ONE(t, of, 0);                                                     \
			STRIDED_ONE(t, of, 1);                                                     \
		}                                                                                  \
		return;                                                                            \
	}

/* Of equal ones the lowest index wins. */
#define INDEXED_LOOP(t, takes, how, each)                                                          \
	{                                                                                          \
		const t##_at *a = ARGUMENT(t, 0), *b = ARGUMENT(t, 1);                             \
		const u64_at *a_index = f->index[0], *b_index = f->index[1];                       \
		t##_at *to = (void *)f->to;                                                        \
		u64_at *index = f->to_index;                                                       \
		size_t n = f->n;                                                                   \
                                                                                                   \
		how for (size_t i = 0; i < n; i++)                                                 \
		{                                                                                  \
			t x = a[i], y = b[i];                                                      \
			u64 u = a_index[i], v = b_index[i];                                        \
			bool equal = same_##t(x, y);                                               \
			bool second = (equal & (v < u)) | (!equal & takes(x, y));                  \
                                                                                                   \
			to[i] = second ? y : x;                                                    \
			index[i] = second ? v : u;                                                 \
			each;                                                                      \
		}                                                                                  \
		return;                                                                            \
	}

/* Elements one by one: vectors of short ones beside their indices are little faster, and long. */
#define ALONE __asm__ volatile("" : : : "memory")

/* ---- kernels --------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define WIDE       __attribute__((target("avx2")))
#define MADE(name) ONCE(, name, name##_plain, false) ONCE(WIDE, name, name##_wide, true)
#else
#define MADE(name) ONCE(, name, name##_plain, true)
#endif

#define ONCE(target, name, made, vectors)                                                          \
	target static void made(const struct calc_fold *f)                                         \
	{                                                                                          \
		name(f, vectors);                                                                  \
	}

#define ROWS(t, of)                                                                                \
	if (vectors && f->form == CALC_PAIR)                                                       \
		PAIR_LOOP(t, of)                                                                   \
	if (vectors && f->form == CALC_QUAD)                                                       \
	QUAD_LOOP(t, of)

/* NAME_t: RESULT of `a`, all before, and `b`. */
#define COMBINE(name, t, result)                                                                   \
	static INLINE t name##_##t##_of(t a, t b)                                                  \
	{                                                                                          \
		return (t)(result);                                                                \
	}                                                                                          \
	static INLINE void name##_##t(const struct calc_fold *f, bool vectors){                    \
		ROWS(t, name##_##t##_of) STRIDED_LOOP(t, name##_##t##_of,                          \
						      vectors && sizeof(t) >= 4)} MADE(name##_##t)

/* NAME_t: `b` where it BEATS `a`, else `a`; where they are the same BEATS may say either. */
#define PICK(name, t, beats)                                                                       \
	static INLINE bool name##_##t##_takes(t a, t b)                                            \
	{                                                                                          \
		return beats;                                                                      \
	}                                                                                          \
	static INLINE t name##_##t##_of(t a, t b)                                                  \
	{                                                                                          \
		return name##_##t##_takes(a, b) ? b : a;                                           \
	}                                                                                          \
	static INLINE void name##_##t(const struct calc_fold *f, bool vectors)                     \
	{                                                                                          \
		ROWS(t, name##_##t##_of)                                                           \
		if (vectors && sizeof(t) >= 4 && f->form == CALC_INDEXED)                          \
			INDEXED_LOOP(t, name##_##t##_takes, EACH_ALONE, )                          \
		if (f->form == CALC_INDEXED)                                                       \
			INDEXED_LOOP(t, name##_##t##_takes, , ALONE)                               \
		STRIDED_LOOP(t, name##_##t##_of, vectors && sizeof(t) >= 4)                        \
	}                                                                                          \
	MADE(name##_##t)

#define LOGICAL(t)                                                                                 \
	COMBINE(land, t, (a != 0) & (b != 0))                                                      \
	COMBINE(lor, t, (a != 0) | (b != 0))                                                       \
	COMBINE(lxor, t, (a != 0) ^ (b != 0))

/* What is the same in both kinds of integers: unsigned ones wrap around. By 1u products of short
 * ones do not become those of signed integers. */
#define INTEGER(t)                                                                                 \
	COMBINE(sum, t, a + b)                                                                     \
	COMBINE(product, t, 1u * a * b)                                                            \
	COMBINE(and, t, a &b)                                                                      \
	COMBINE(or, t, a | b)                                                                      \
	COMBINE(xor, t, a ^ b)                                                                     \
	LOGICAL(t)

#define ORDERED(t)                                                                                 \
	static INLINE bool same_##t(t a, t b)                                                      \
	{                                                                                          \
		return a == b;                                                                     \
	}                                                                                          \
	PICK(min, t, b < a)                                                                        \
	PICK(max, t, a < b)

/* A NaN loses against any number, and -0 stands before +0. */
#define FLOATING(t, bits)                                                                          \
	static INLINE bool minus_##t(t a)                                                          \
	{                                                                                          \
		bits sign;                                                                         \
                                                                                                   \
		memcpy(&sign, &a, sizeof(sign));                                                   \
		return sign < 0;                                                                   \
	}                                                                                          \
	static INLINE bool upto_##t(t a, t b)                                                      \
	{                                                                                          \
		return (a < b) | ((a == b) & minus_##t(a));                                        \
	}                                                                                          \
	static INLINE bool same_##t(t a, t b)                                                      \
	{                                                                                          \
		return ((a == b) & (minus_##t(a) == minus_##t(b))) | ((a != a) & (b != b));        \
	}                                                                                          \
	PICK(min, t, upto_##t(b, a) | (a != a))                                                    \
	PICK(max, t, upto_##t(a, b) | (a != a))                                                    \
	COMBINE(sum, t, a + b)                                                                     \
	COMBINE(product, t, a *b)                                                                  \
	LOGICAL(t)

INTEGER(u8)
INTEGER(u16)
INTEGER(u32)
INTEGER(u64)
ORDERED(u8)
ORDERED(u16)
ORDERED(u32)
ORDERED(u64)
ORDERED(i8)
ORDERED(i16)
ORDERED(i32)
ORDERED(i64)
FLOATING(f32, i32)
FLOATING(f64, i64)

/* ---- which ----------------------------------------------------------------------------------- */

#define WIDTHS(name, sign, made, first)                                                            \
	[first] = name##_##sign##8_##made, [first + 1] = name##_##sign##16_##made,                 \
	[first + 2] = name##_##sign##32_##made, [first + 3] = name##_##sign##64_##made
#define INTEGERS(name, made) WIDTHS(name, u, made, SLMPM_INT8), WIDTHS(name, u, made, SLMPM_UINT8)
#define SIGNS(name, made)    WIDTHS(name, i, made, SLMPM_INT8), WIDTHS(name, u, made, SLMPM_UINT8)
#define FLOATS(name, made)   [SLMPM_FLOAT] = name##_f32_##made, [SLMPM_DOUBLE] = name##_f64_##made

#define KERNELS(made)                                                                              \
	{                                                                                          \
		[SLMPM_CALC_SUM] = {INTEGERS(sum, made), FLOATS(sum, made)},                       \
		[SLMPM_CALC_PRODUCT] = {INTEGERS(product, made), FLOATS(product, made)},           \
		[SLMPM_CALC_MIN] = {SIGNS(min, made), FLOATS(min, made)},                          \
		[SLMPM_CALC_MAX] = {SIGNS(max, made), FLOATS(max, made)},                          \
		[SLMPM_CALC_AND] = {INTEGERS(and, made)}, [SLMPM_CALC_OR] = {INTEGERS(or, made)},  \
		[SLMPM_CALC_XOR] = {INTEGERS(xor, made)},                                          \
		[SLMPM_CALC_LAND] = {INTEGERS(land, made), FLOATS(land, made)},                    \
		[SLMPM_CALC_LOR] = {INTEGERS(lor, made), FLOATS(lor, made)},                       \
		[SLMPM_CALC_LXOR] = {INTEGERS(lxor, made), FLOATS(lxor, made)},                    \
	}

calc_kernel *const calc_kernels[2][CALC_ROOM][CALC_ROOM] = {
	KERNELS(plain),
#ifdef WIDE
	KERNELS(wide),
#else
	KERNELS(plain),
#endif
};

calc_kernel *calc_kernel_alone(uint32_t op, uint32_t type, bool vectors)
{
	if (op >= SLMPM_CALC_LAND)
		return calc_kernel_of(SLMPM_CALC_LOR, type, vectors);
	return calc_kernel_of(SLMPM_CALC_OR, SLMPM_UINT8 + calc_shift(type), vectors);
}

/* ---- moving ---------------------------------------------------------------------------------- */

#define MOVE_LOOP(t, turned)                                                                       \
	for (; n; n--, from += stride, to += to_stride) {                                          \
		t x = *(const t##_at *)from;                                                       \
                                                                                                   \
		*(t##_at *)to = turn ? turned(x) : x;                                              \
	}                                                                                          \
	return;

void calc_move(unsigned char *to, int64_t to_stride, const unsigned char *from, int64_t stride,
	       uint32_t width, bool turn, size_t n)
{
	if (!turn && stride == width && to_stride == width) {
		memmove(to, from, n * width);
		return;
	}
	switch (width) {
	case 1: MOVE_LOOP(u8, )
	case 2: MOVE_LOOP(u16, __builtin_bswap16)
	case 4: MOVE_LOOP(u32, __builtin_bswap32)
	default: MOVE_LOOP(u64, __builtin_bswap64)
	}
}
