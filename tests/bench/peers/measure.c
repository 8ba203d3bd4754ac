/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests: what is between two readings of the clock, and the probe of the line around it. */
#include "tests/bench/peers/measure.h"

#include <sched.h>
#include <string.h>
#include <time.h>

struct pair pair;

static uint64_t now_ns(void)
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
		uint64_t t0 = now_ns();

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
		double ns = (double)(now_ns() - t0) / 2 / ROUNDS;
		if (t == 0 || ns < best)
			best = ns;
	}
	measure_meet();
	return best;
}

/* ---- the tests: each returns ns for the whole count, valid on side 0 ---- */

static void say(uint64_t i, const struct order *o)
{
	if (o->touch && !(pair.peer->flags & PAIR_IN_PLACE))
		pair_produce(pair.tx, o->size, i);
	pair.peer->send(pair.tx, o->size);
}

static void hear(const struct order *o)
{
	pair.peer->recv(pair.rx, o->size);
	if (o->touch && !(pair.peer->flags & PAIR_IN_PLACE))
		pair_consume(pair.rx, o->size);
}

static double pingpong(const struct order *o, uint64_t n)
{
	uint64_t t0 = now_ns(), last = t0;

	for (uint64_t i = 0; i < n; i++) {
		if (pair.side == 0) {
			say(i, o);
			hear(o);
		} else {
			hear(o);
			say(i, o);
		}
		if (o->each && pair.side == 0 && i < EACH_MAX) {
			uint64_t t = now_ns();

			pair.area->each_us[i] = (double)(t - last) / 2e3;
			last = t;
		}
	}
	return (double)(now_ns() - t0);
}

static double stream(const struct order *o, uint64_t n)
{
	int own = !o->touch || (pair.peer->flags & PAIR_TOUCHES);

	measure_meet();
	uint64_t t0 = now_ns();
	if (pair.side == 0) {
		if (own && pair.peer->stream_send)
			pair.peer->stream_send(pair.tx, o->size, n, o->touch);
		else
			for (uint64_t i = 0; i < n; i++)
				say(i, o);
	} else {
		if (own && pair.peer->stream_recv)
			pair.peer->stream_recv(pair.rx, o->size, n, o->touch);
		else
			for (uint64_t i = 0; i < n; i++)
				hear(o);
		pair.area->end_ns = now_ns();
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
			uint64_t now, until = now_ns() + o->idle_ns;

			while ((now = now_ns()) < until)
				relax();
			memcpy(pair.tx, &now, sizeof now);
			pair.peer->send(pair.tx, o->size);
		} else {
			uint64_t left;

			pair.peer->recv(pair.rx, o->size);
			memcpy(&left, pair.rx, sizeof left);
			pair.area->each_us[i] = (double)(now_ns() - left) / 1e3;
		}
	measure_meet();
	for (uint64_t i = 0; i < n; i++)
		sum += pair.area->each_us[i] * 2e3; /* as if it were a round trip */
	return sum;
}

static double copy(const struct order *o, uint64_t n)
{
	uint64_t t0 = now_ns();

	for (uint64_t i = 0; i < n && pair.side == 0; i++) {
		memcpy(pair.rx, pair.tx, o->size);
		__asm__ volatile("" : : "r"(pair.rx) : "memory");
	}
	return (double)(now_ns() - t0);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void exchange(const struct order *o, uint64_t i)
{
	if (pair.side == 0) {
		say(i, o);
		hear(o);
	} else {
		hear(o);
		say(i, o);
	}
}

/* A burst of round trips, or one way with an answer behind it; times on side 0. */
static void burst(const struct order *o, uint64_t i)
{
	uint64_t t0 = now_ns(), first = t0, n = o->burst;

	for (uint64_t k = 0; k < n; k++) {
		if (o->test == TEST_PAUSE)
			exchange(o, k);
		else if (pair.side == 0)
			say(k, o);
		else
			hear(o);
		if (k == 0)
			first = now_ns();
	}
	if (o->test == TEST_PAUSE_BW && pair.side == 0)
		hear(o);
	else if (o->test == TEST_PAUSE_BW)
		say(n, o);
	if (pair.side || i >= EACH_MAX)
		return;
	pair.area->each_us[i] = (double)(first - t0) / 2e3;
	if (o->test == TEST_PAUSE_BW)
		pair.area->rest_us[i] = (double)(now_ns() - t0) / (double)n / 1e3;
	else
		pair.area->rest_us[i] = n > 1 ? (double)(now_ns() - first) / (double)(n - 1) / 2e3 :
						pair.area->each_us[i];
}

static double pauses(const struct order *o, uint64_t n)
{
	const struct timespec rest = {(time_t)(o->idle_ns / 1000000000),
				      (long)(o->idle_ns % 1000000000)};
	uint64_t t0, worked;

	measure_meet();
	t0 = now_ns();
	worked = cpu_ns();
	for (uint64_t i = 0; i < n; i++) {
		if (pair.side == 0)
			nanosleep(&rest, NULL);
		burst(o, i);
	}
	pair.area->cpu_ns[pair.side] = cpu_ns() - worked;
	measure_meet();
	return (double)(now_ns() - t0);
}

double measure_run(const struct order *o, uint64_t n)
{
	switch (o->test) {
	case TEST_LAT: return o->idle_ns ? lone(o, n) : pingpong(o, n);
	case TEST_BW: return stream(o, n);
	case TEST_COPY: return copy(o, n);
	case TEST_PAUSE:
	case TEST_PAUSE_BW: return pauses(o, n);
	default: return 0;
	}
}
