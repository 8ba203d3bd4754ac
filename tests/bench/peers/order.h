/* SPDX-License-Identifier: BSD-3-Clause */
/* The order line and its answer, as tests/bench/README.md defines them, for programs that serve. */
#ifndef BENCH_ORDER_H
#define BENCH_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Probes of a cache line that differ by more than this say that the CPUs were moved. */
#define ORDER_SAME_PLACE 1.5

enum order_test { TEST_LAT, TEST_BW, TEST_LINE, TEST_COPY, TEST_PAUSE, TEST_PAUSE_BW, TEST_QUIT };

struct order {
	char name[16]; /* as it came */
	enum order_test test;
	int loan; /* loan_lat and loan_bw: payload in place */
	int put;  /* put_lat and put_bw: into memory that the target polls */
	int touch, each;
	size_t size;
	uint64_t count, idle_ns;
	uint64_t burst; /* of the tests with pauses: messages after each; a count is a burst */
	uint64_t warm;  /* before what counts; UINT64_MAX: an eighth */
};

struct answer { /* 0: does not apply, written as null */
	double line_ns, lat_us, lat_us_min, lat_us_p50, lat_us_p99, messages_per_s, bytes_per_s;
	double first_us, to10_us, to100_us, cpu_us; /* after a pause */
};

/* NULL, or what is wrong with the line. */
const char *order_parse(const char *text, struct order *o);
void order_answer(const struct order *o, const char *who, const struct answer *a);

#endif
