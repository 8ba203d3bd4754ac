/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads order lines and writes answers. */
#include "tests/bench/peers/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum order_test test;
	int loan, put;
} TESTS[] = {
	{"send_lat", TEST_LAT, 0, 0},    {"send_bw", TEST_BW, 0, 0},
	{"loan_lat", TEST_LAT, 1, 0},    {"loan_bw", TEST_BW, 1, 0},
	{"put_lat", TEST_LAT, 0, 1},     {"put_bw", TEST_BW, 0, 1},
	{"line_lat", TEST_LINE, 0, 0},   {"copy_bw", TEST_COPY, 0, 0},
	{"pause_lat", TEST_PAUSE, 0, 0}, {"pause_rate", TEST_PAUSE_BW, 0, 0},
};

static int number_of(const char *word, const char *value, struct order *o)
{
	uint64_t n = value ? strtoull(value, NULL, 10) : 0;

	if (value && strcmp(word, "idle") == 0)
		o->idle_ns = n * 1000;
	else if (n && strcmp(word, "burst") == 0)
		o->burst = n;
	else if (value && strcmp(word, "warm") == 0)
		o->warm = n;
	else
		return -1;
	return 0;
}

const char *order_parse(const char *text, struct order *o)
{
	char words[256], *save, *word;
	size_t t;

	*o = (struct order){.burst = 1, .warm = UINT64_MAX};
	snprintf(words, sizeof words, "%s", text);
	if (sscanf(words, "%15s %zu %" SCNu64, o->name, &o->size, &o->count) != 3)
		return "want TEST SIZE COUNT";
	for (t = 0; t < sizeof TESTS / sizeof *TESTS; t++)
		if (strcmp(TESTS[t].name, o->name) == 0)
			break;
	if (t == sizeof TESTS / sizeof *TESTS)
		return "unknown test";
	o->test = TESTS[t].test;
	o->loan = TESTS[t].loan;
	o->put = TESTS[t].put;
	strtok_r(words, " \n", &save);
	strtok_r(NULL, " \n", &save);
	strtok_r(NULL, " \n", &save);
	while ((word = strtok_r(NULL, " \n", &save))) {
		if (strcmp(word, "touch") == 0) {
			o->touch = 1;
		} else if (strcmp(word, "each") == 0) {
			o->each = 1;
		} else if (number_of(word, strtok_r(NULL, " \n", &save), o) < 0) {
			return "unknown option";
		}
	}
	return NULL;
}

static void number(const char *key, double v)
{
	if (v > 0)
		printf(",\"%s\":%.6g", key, v);
	else
		printf(",\"%s\":null", key);
}

void order_answer(const struct order *o, const char *who, const struct answer *a)
{
	printf("{\"test\":\"%s\",\"fabric\":\"%s\",\"mode\":null,\"size\":%zu,\"count\":%" PRIu64,
	       o->name, who, o->size, o->count);
	number("lat_us", a->lat_us);
	number("lat_us_min", a->lat_us_min);
	number("lat_us_p50", a->lat_us_p50);
	number("lat_us_p99", a->lat_us_p99);
	number("hops", a->line_ns > 0 ? a->lat_us * 1e3 / a->line_ns : 0);
	number("messages_per_s", a->messages_per_s);
	number("bytes_per_s", a->bytes_per_s);
	printf(",\"remote_reads\":null");
	number("line_ns", a->line_ns);
	number("first_us", a->first_us);
	number("to10_us", a->to10_us);
	number("to100_us", a->to100_us);
	number("cpu_us", a->cpu_us);
	puts("}");
}
