/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests: what is between two readings of the clock, and the probe of the line around it. */
#include "tests/bench/peers/measure.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct pair pair;

uint64_t measure_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void pair_produce(void *buf, size_t len, uint64_t i)
{
	memset(buf, (int)(i & 127), len);
}

static volatile uint64_t sink; /* keeps the reads */

void pair_consume(const void *buf, size_t len)
{
	const uint64_t *p = buf;
	uint64_t sum = 0;

	for (size_t k = 0; k < len / 8; k++)
		sum += p[k];
	sink = sum;
}

void measure_meet(void)
{
	uint64_t mine = atomic_fetch_add(&pair.area->arrived[pair.side][0], 1) + 1;

	for (unsigned spins = 0; atomic_load(&pair.area->arrived[!pair.side][0]) < mine; spins++)
		if (pair.one_cpu || spins > 20000)
			sched_yield();
		else
			relax();
}

double measure_line(void)
{
	enum { ROUNDS = 300, TRIES = 4 };
	double best = 0;

	if (pair.one_cpu)
		return 0;
	if (pair.side == 0)
		atomic_store(&pair.area->line, 0);
	measure_meet();
	for (uint64_t t = 0, seq = 0; t < TRIES; t++) {
		uint64_t t0 = measure_now();

		for (int i = 0; i < ROUNDS; i++, seq += 2) {
			if (pair.side == 0)
				atomic_store_explicit(&pair.area->line, seq + 1,
						      memory_order_release);
			while (atomic_load_explicit(&pair.area->line, memory_order_acquire) <
			       seq + 2 - (uint64_t)pair.side)
				relax();
			if (pair.side == 1)
				atomic_store_explicit(&pair.area->line, seq + 2,
						      memory_order_release);
		}
		double ns = (double)(measure_now() - t0) / 2 / ROUNDS;
		if (t == 0 || ns < best)
			best = ns;
	}
	measure_meet();
	return best;
}

/* ---- the tests: each returns ns for the whole count, valid on side 0 ---- */

void measure_say(uint64_t i, const struct order *o)
{
	if (o->touch && !(pair.peer->flags & PAIR_IN_PLACE))
		pair_produce(pair.tx, o->size, i);
	pair.peer->send(pair.tx, o->size);
}

void measure_hear(const struct order *o)
{
	pair.peer->recv(pair.rx, o->size);
	if (o->touch && !(pair.peer->flags & PAIR_IN_PLACE))
		pair_consume(pair.rx, o->size);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void measure_sort(double *x, size_t n)
{
	qsort(x, n, sizeof *x, by_value);
}

static double pingpong(const struct order *o, uint64_t n)
{
	uint64_t t0 = measure_now(), last = t0;

	for (uint64_t i = 0; i < n; i++) {
		if (pair.side == 0) {
			measure_say(i, o);
			measure_hear(o);
		} else {
			measure_hear(o);
			measure_say(i, o);
		}
		if (o->each && pair.side == 0 && i < EACH_MAX) {
			uint64_t t = measure_now();

			pair.area->each_us[i] = (double)(t - last) / 2e3;
			last = t;
		}
	}
	return (double)(measure_now() - t0);
}

static double stream(const struct order *o, uint64_t n)
{
	int own = !o->touch || (pair.peer->flags & PAIR_TOUCHES);

	measure_meet();
	uint64_t t0 = measure_now();
	if (pair.side == 0) {
		if (own && pair.peer->stream_send)
			pair.peer->stream_send(pair.tx, o->size, n, o->touch);
		else
			for (uint64_t i = 0; i < n; i++)
				measure_say(i, o);
	} else {
		if (own && pair.peer->stream_recv)
			pair.peer->stream_recv(pair.rx, o->size, n, o->touch);
		else
			for (uint64_t i = 0; i < n; i++)
				measure_hear(o);
		pair.area->end_ns = measure_now();
	}
	measure_meet();
	return (double)(pair.area->end_ns - t0);
}

/* Lone messages, each to a receiver that has waited idle_ns; the message tells when it left. */
static double lone(const struct order *o, uint64_t n)
{
	double sum = 0;

	measure_meet();
	for (uint64_t i = 0; i < n; i++)
		if (pair.side == 0) {
			uint64_t now, until = measure_now() + o->idle_ns;

			while ((now = measure_now()) < until)
				relax();
			memcpy(pair.tx, &now, sizeof now);
			pair.peer->send(pair.tx, o->size);
		} else {
			uint64_t left;

			pair.peer->recv(pair.rx, o->size);
			memcpy(&left, pair.rx, sizeof left);
			pair.area->each_us[i] = (double)(measure_now() - left) / 1e3;
		}
	measure_meet();
	for (uint64_t i = 0; i < n; i++)
		sum += pair.area->each_us[i] * 2e3; /* as if it were a round trip */
	return sum;
}

static double copy(const struct order *o, uint64_t n)
{
	uint64_t t0 = measure_now();

	for (uint64_t i = 0; i < n && pair.side == 0; i++) {
		memcpy(pair.rx, pair.tx, o->size);
		__asm__ volatile("" : : "r"(pair.rx) : "memory");
	}
	return (double)(measure_now() - t0);
}

double measure_run(const struct order *o, uint64_t n)
{
	switch (o->test) {
	case TEST_LAT: return o->idle_ns ? lone(o, n) : pingpong(o, n);
	case TEST_BW: return stream(o, n);
	case TEST_COPY: return copy(o, n);
	case TEST_PAUSE:
	case TEST_PAUSE_BW: return pauses_run(o, n);
	default: return 0;
	}
}
