/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of two vectors of doubles by CALC entries on side 0, from posting to the completion polled;
 * in turns with the same loop as a compiler makes it for this processor.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <stdlib.h>
#include <string.h>

#define GAP         2             /* of elements that are apart, from one to the next */
#define ROUND_BYTES (64u * 1024)  /* of a target, before it is the other's turn */
#define ROUND_MAX   512           /* calculations */
#define APART       (2048u + 192) /* bytes: operands behind pages would meet in the cache */

enum { FIRST, SECOND, RESULT, BARE_RESULT, OPERANDS };

struct calculation {
	uint64_t n, gap; /* elements; from each to the next */
	slmpm_cq cq;
	slmpm_wq wq;
	struct slmpm_wr wr;
	struct slmpm_calc calc;
	struct slmpm_operand operand[OPERANDS - 1];
	double *at[OPERANDS];
	char *memory;
};

/* ---- the bare loop ---- */

#define BARE_LOOP(name)                                                                            \
	__attribute__((noinline)) static void name(double *restrict to, const double *a,           \
						   const double *b, uint64_t n)                    \
	{                                                                                          \
		for (uint64_t i = 0; i < n; i++)                                                   \
			to[i] = a[i] + b[i];                                                       \
	}                                                                                          \
	__attribute__((noinline)) static void name##_apart(double *restrict to, const double *a,   \
							   const double *b, uint64_t n)            \
	{                                                                                          \
		for (uint64_t i = 0; i < n; i++)                                                   \
			to[i * GAP] = a[i * GAP] + b[i * GAP];                                     \
	}

#if defined(__x86_64__)
#define FOR_THIS __attribute__((target("avx2,fma,bmi2")))
#define IS_THIS  (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
#else
#define FOR_THIS
#define IS_THIS false
#endif

BARE_LOOP(add)
FOR_THIS BARE_LOOP(add_here)

	static void calculate_bare(const struct calculation *c)
{
	double *to = c->at[BARE_RESULT];
	const double *a = c->at[FIRST], *b = c->at[SECOND];

	if (IS_THIS)
		(c->gap == 1 ? add_here : add_here_apart)(to, a, b, c->n);
	else
		(c->gap == 1 ? add : add_apart)(to, a, b, c->n);
	__asm__ volatile("" : : : "memory");
}

/* ---- by the queue ---- */

static int calculate_queued(const struct calculation *c)
{
	struct slmpm_done done;
	int rc = slmpm_post(c->wq, &c->wr, 1);

	while (rc >= 0 && (rc = slmpm_cq_poll(c->cq, &done, 1)) == 0)
		;
	return rc < 0 ? rc : done.status;
}

static void describe(struct calculation *c)
{
	for (int i = 0; i <= RESULT; i++) {
		c->operand[i].at = c->at[i];
		c->operand[i].stride[0] = c->gap == 1 ? 0 : (int64_t)(c->gap * sizeof(double));
	}
	c->calc.size = sizeof(c->calc);
	c->calc.op = SLMPM_CALC_SUM;
	c->calc.type = SLMPM_DOUBLE;
	c->calc.count[0] = c->n;
	c->calc.args = c->operand;
	c->calc.arg_count = 2;
	c->calc.targets = &c->operand[RESULT];
	c->calc.target_count = 1;
	c->wr.size = sizeof(c->wr);
	c->wr.op = SLMPM_OP_CALC;
	c->wr.calc = &c->calc;
}

static int calculation_make(struct calculation *c, struct pair *p, const struct job *j,
			    uint64_t gap)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	uint64_t bytes;
	int rc;

	memset(c, 0, sizeof(*c));
	c->n = j->size / sizeof(double) ? j->size / sizeof(double) : 1;
	c->gap = gap;
	bytes = c->n * gap * sizeof(double) / 64 * 64 + APART;
	c->memory = aligned_alloc(64, OPERANDS * bytes);
	if (!c->memory)
		return -SLMPM_ENOMEM;
	memset(c->memory, 0, OPERANDS * bytes);
	for (int i = 0; i < OPERANDS; i++)
		c->at[i] = (double *)(void *)(c->memory + (uint64_t)i * bytes);
	for (uint64_t i = 0; i < c->n * gap; i++) {
		c->at[FIRST][i] = (double)i;
		c->at[SECOND][i] = 1.0 / (double)(i + 1);
	}
	describe(c);
	rc = slmpm_cq_create(p->ctx, &c->cq);
	o.cq = c->cq;
	return rc < 0 ? rc : slmpm_wq_create(p->ctx, &o, &c->wq);
}

static void calculation_end(struct calculation *c)
{
	if (c->wq.id)
		(void)slmpm_wq_destroy(c->wq);
	if (c->cq.id)
		(void)slmpm_cq_destroy(c->cq);
	free(c->memory);
}

/* What lies between the elements was and is 0. */
static int compare_results(const struct calculation *c)
{
	size_t bytes = c->n * c->gap * sizeof(double);

	if (memcmp(c->at[RESULT], c->at[BARE_RESULT], bytes) == 0)
		return 0;
	fprintf(stderr, "slmpm_perftest: the entry's sums are not the bare loop's\n");
	return -SLMPM_ECHECKSUM;
}

/* ---- the measurement ---- */

static int run_round(const struct calculation *c, uint64_t n, double *queued, double *bare)
{
	uint64_t begin = now_ns(), middle;
	int rc = 0;

	for (uint64_t i = 0; i < n && rc >= 0; i++)
		rc = calculate_queued(c);
	middle = now_ns();
	for (uint64_t i = 0; i < n; i++)
		calculate_bare(c);
	*queued = (double)(middle - begin);
	*bare = (double)(now_ns() - middle);
	return rc;
}

static uint64_t round_of(const struct job *j)
{
	uint64_t n = ROUND_BYTES / (j->size ? j->size : 1);

	return n < 1 ? 1 : n > ROUND_MAX ? ROUND_MAX : n;
}

static int calculate_all(struct pair *p, const struct job *j, struct hist *stamps, uint64_t gap)
{
	double queued = 0, bare = 0, a = 0, b = 0;
	struct calculation c;
	int rc = p->side ? 0 : calculation_make(&c, p, j, gap);

	if (p->side)
		return 0;
	for (uint64_t left = j->count, n; left && rc >= 0; left -= n) {
		n = left < round_of(j) ? left : round_of(j);
		rc = run_round(&c, n, &a, &b);
		queued += a;
		bare += b;
		if (stamps)
			hist_add(stamps, (uint64_t)(a / (double)n + 0.5));
	}
	if (rc >= 0)
		rc = compare_results(&c);
	p->extra.each_ns = queued / (double)j->count;
	p->extra.bare_ns = bare / (double)j->count;
	calculation_end(&c);
	return rc;
}

int loop_wq_calc(struct pair *p, const struct job *j, struct hist *stamps)
{
	return calculate_all(p, j, stamps, 1);
}

int loop_wq_apart(struct pair *p, const struct job *j, struct hist *stamps)
{
	return calculate_all(p, j, stamps, GAP);
}
