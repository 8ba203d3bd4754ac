/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calculations: arguments combined element by element into targets, all in this process's memory.
 * One is checked (calc_check.c), prepared, and done step by step (calc.c) by the kernels
 * (calc_kernels.c), each of which has one operation on one type; most are plain (calc_plain.c),
 * which costs less. They know no queue and no peer.
 */
#ifndef SLMPM_CALC_H
#define SLMPM_CALC_H

#include <slmpm_queue.h>
#include <stdbool.h>
#include <stddef.h>

#define CALC_STEP 16384 /* bytes of each target that a step writes, at most */
#define CALC_DIMS 3

/* ---- checking -------------------------------------------------------------------------------- */

/* 0, or -SLMPM_EINVAL, -SLMPM_ELIMIT with the detail set: CALL, and which operand is wrong. Of a
 * target in a peer's memory its words alone are checked. */
int calc_check(const struct slmpm_calc *c, const char *call);

/* C is right, and its operands, however many, are as those of struct calc_plain are. */
bool calc_is_plain(const struct slmpm_calc *c);

/* The shape of a calculation's operands. */
struct calc_shape {
	uint64_t count[CALC_DIMS]; /* from 1 */
	uint64_t total;            /* elements */
	int64_t packed[CALC_DIMS]; /* strides without gaps; 0 in dimensions of one element */
	uint32_t width;            /* bytes of an element */
};

/* C's type is one. False: there are too many elements. */
bool calc_shape_of(struct calc_shape *shape, const struct slmpm_calc *c);
/* O's elements lie from *LO to below *HI. False: beyond all addresses. */
bool calc_reach(const struct slmpm_operand *o, const struct calc_shape *shape, uint64_t *lo,
		uint64_t *hi);
/* O's strides, also where it leaves them out; 0 in dimensions of one element. */
void calc_strides(int64_t stride[CALC_DIMS], const struct slmpm_operand *o,
		  const struct calc_shape *shape);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define CALC_FOREIGN_FLAG SLMPM_OPERAND_LITTLE_ENDIAN
#else
#define CALC_FOREIGN_FLAG SLMPM_OPERAND_BIG_ENDIAN
#endif

static inline bool calc_is_foreign(uint32_t flags)
{
	return flags == CALC_FOREIGN_FLAG;
}

/* An argument that is a message. */
static inline bool calc_arrives(const struct slmpm_operand *o)
{
	return o->peer.id | o->wq.id;
}

static inline bool calc_is_packed(const struct slmpm_operand *o)
{
	return !(o->stride[0] | o->stride[1] | o->stride[2]);
}

static inline bool calc_is_type(uint32_t type)
{
	return type - SLMPM_INT8 <= SLMPM_DOUBLE - SLMPM_INT8;
}

/* Bytes of an element are so many bits from 1. */
static inline uint32_t calc_shift(uint32_t type)
{
	return type < SLMPM_FLOAT ? (type - SLMPM_INT8) % 4 : type - SLMPM_FLOAT + 2;
}

static inline uint32_t calc_width(uint32_t type)
{
	return 1u << calc_shift(type);
}

/* ---- kernels --------------------------------------------------------------------------------- */

enum calc_form {
	CALC_PAIR,    /* of two, all without gaps */
	CALC_QUAD,    /* of four */
	CALC_STRIDED, /* of two, by their strides */
	CALC_INDEXED  /* MIN and MAX of two, without gaps, with an index each */
};

/* What a kernel does: to[i] = from[0][i] OP from[1][i], and so on. `to` may be each of `from`, and
 * overlaps none otherwise. */
struct calc_fold {
	enum calc_form form;
	size_t n;
	unsigned char *to;
	const unsigned char *from[4];
	int64_t to_stride, stride[2];
	uint64_t *to_index;
	const uint64_t *index[2];
};

typedef void calc_kernel(const struct calc_fold *f);

#define CALC_ROOM 16 /* for operations, and for types */
_Static_assert(SLMPM_CALC_LXOR < CALC_ROOM && SLMPM_DOUBLE < CALC_ROOM, "it is enough");

extern calc_kernel *const calc_kernels[2][CALC_ROOM][CALC_ROOM];

/* NULL: no such operation, no such type, or not both together. VECTORS: for processors that have
 * those; else it does not know CALC_QUAD. */
static inline calc_kernel *calc_kernel_of(uint32_t op, uint32_t type, bool vectors)
{
	return (op | type) < CALC_ROOM ? calc_kernels[vectors][op][type] : NULL;
}
/* Likewise for one argument, which is combined with itself: of both OR makes the argument; logical,
 * 0 or 1. */
calc_kernel *calc_kernel_alone(uint32_t op, uint32_t type, bool vectors);
static inline bool calc_has_vectors(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx2");
#else
	return true;
#endif
}
/* N elements of WIDTH bytes, their bytes turned round where TURN says so. */
void calc_move(unsigned char *to, int64_t to_stride, const unsigned char *from, int64_t stride,
	       uint32_t width, bool turn, size_t n);

/* ---- doing it -------------------------------------------------------------------------------- */

struct calc_operand {
	unsigned char *at;
	int64_t stride[CALC_DIMS];
	uint64_t index, *indices;
	bool foreign;  /* in the other byte order */
	uint8_t flags; /* as given */
};

/* A calculation under way. Its dimensions are as few as its operands allow, the last ones. */
struct calc_job {
	calc_kernel *kernel;
	uint32_t width, args, targets;
	bool vectors; /* the kernel is made for them */
	bool indexed; /* indices are wanted */
	bool direct;  /* the first target may be written before all arguments have been read */
	bool gapless; /* all operands, along the last dimension */
	bool foreign; /* an operand is */
	bool alone;   /* the first argument is the second, too */
	uint8_t op, type;
	uint64_t step, block; /* elements: of a step; of all operands at a time */
	uint64_t count[CALC_DIMS], at[CALC_DIMS];
	uint64_t done, total;
	struct calc_operand operand[]; /* arguments, then targets */
};

/* C, its lists in OPERANDS, does the same as JOB: in as few dimensions as that has, with strides
 * where there are gaps. */
void calc_given(const struct calc_job *job, struct slmpm_calc *c,
		struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX]);

/* Bytes of the job of C, which has been checked. */
size_t calc_job_size(const struct slmpm_calc *c);
/* JOB has so many bytes, aligned as malloc does, and no end of its own. */
void calc_begin(struct calc_job *job, const struct slmpm_calc *c);
/* Its first element is the next again. */
void calc_again(struct calc_job *job);
/* Argument K, which lies without gaps, is at AT; of a single argument each number is that. */
void calc_read(struct calc_job *job, uint32_t k, const void *at);
/* The elements of target K, which lie without gaps, are written at AT from the next one on. */
void calc_aim(struct calc_job *job, uint32_t k, void *at);
/* Does some more of it, CALC_STEP bytes of each target at most, fewer of many operands. False: it
 * is done. */
bool calc_step(struct calc_job *job);

/* ---- plain ones ------------------------------------------------------------------------------ */

#define CALC_PLAIN_ARGS 4

/* A calculation as most are: of few arguments to one target, without gaps and indices, in this
 * process's byte order, and the target may be written before all arguments have been read. So small
 * that it lies in what has it. */
struct calc_plain {
	calc_kernel *kernel; /* NULL: it is not such a one */
	unsigned char *to;
	const unsigned char *from[CALC_PLAIN_ARGS]; /* of one argument: twice */
	uint64_t total, done;                       /* elements */
	uint32_t op, type, args;                    /* as they were given */
	uint32_t shift;                             /* of an element's bytes */
	bool vectors;                               /* the kernel is made for them */
};

/* Whether C is a plain one, and right; else it is to be checked. */
bool calc_plain_take(struct calc_plain *p, const struct slmpm_calc *c);
/* Whether it is one of at most two arguments and MOST bytes of each operand: it is done by now. */
bool calc_plain_at_once(const struct slmpm_calc *c, uint64_t most);
/* Elements of a step, at most. */
static inline uint64_t calc_plain_most(const struct calc_plain *p)
{
	return (uint64_t)CALC_STEP >> (p->shift + (p->args > 2));
}
/* As calc_again and calc_step. */
static inline void calc_plain_again(struct calc_plain *p)
{
	p->done = 0;
}
bool calc_plain_step(struct calc_plain *p);
/* As calc_given. */
void calc_plain_given(const struct calc_plain *p, struct slmpm_calc *c,
		      struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX]);

#endif
