/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -ljansson */
/* slmpm_perftest's JSON: one object a line with the promised keys, null where they do not apply. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ANSWERS 32

static const char *fabric = "shm"; /* of SLMPM_FABRIC */

struct answers {
	json_t *at[ANSWERS];
	int count, status;
};

/* Runs slmpm_perftest with ARGUMENTS, its standard input from INPUT; every line must be JSON. */
static struct answers ask(const char *input, const char *arguments)
{
	struct answers a = {.count = 0};
	const char *build = getenv("SLMPM_BUILD");
	char command[1024], *line = NULL;
	size_t room = 0;
	FILE *out;

	snprintf(command, sizeof(command), "printf '%s' | '%s/bin/slmpm_perftest' %s", input,
		 build ? build : "build", arguments);
	out = popen(command, "r");
	assert_non_null(out);
	while (getline(&line, &room, out) > 0 && a.count < ANSWERS) {
		json_error_t why;

		a.at[a.count] = json_loads(line, 0, &why);
		if (!a.at[a.count])
			fail_msg("%s: not JSON, %s: %s", arguments, why.text, line);
		a.count++;
	}
	free(line);
	a.status = pclose(out);
	a.status = WIFEXITED(a.status) ? WEXITSTATUS(a.status) : -1;
	return a;
}

static void forget(struct answers *a)
{
	for (int i = 0; i < a->count; i++)
		json_decref(a->at[i]);
}

static double number(const json_t *answer, const char *key)
{
	const json_t *value = json_object_get(answer, key);

	if (!json_is_number(value))
		fail_msg("%s is no number in %s", key, json_dumps(answer, 0));
	return json_number_value(value);
}

static void is_null(const json_t *answer, const char *key)
{
	if (!json_is_null(json_object_get(answer, key)))
		fail_msg("%s is not null in %s", key, json_dumps(answer, 0));
}

static void is_text(const json_t *answer, const char *key, const char *want)
{
	const char *value = json_string_value(json_object_get(answer, key));

	if (!value || (want && strcmp(value, want) != 0))
		fail_msg("%s is not \"%s\" in %s", key, want ? want : "...", json_dumps(answer, 0));
}

static void check_latency(const json_t *a)
{
	double mean = number(a, "lat_us"), min = number(a, "lat_us_min");

	assert_true(mean > 0 && min > 0);
	assert_true(min <= number(a, "lat_us_p50"));
	assert_true(number(a, "lat_us_p50") <= number(a, "lat_us_p99"));
	assert_true(number(a, "lat_us_p99") <= number(a, "lat_us_max") * 1.04);
	is_null(a, "messages_per_s");
	is_null(a, "bytes_per_s");
}

static void check_stream(const json_t *a)
{
	double bytes = number(a, "bytes_per_s"), messages = number(a, "messages_per_s");

	assert_true(bytes > 0 && messages > 0);
	assert_true(bytes / messages > 0.99 * number(a, "size"));
	assert_true(bytes / messages < 1.01 * number(a, "size"));
	is_null(a, "lat_us");
	is_null(a, "lat_us_p99");
	is_null(a, "hops");
}

/* Of the other side's memory: each get and atomic operation; what is large may be fetched or
 * shared, or lie in a loan's area. */
static void check_reads(const char *test, double size, double reads)
{
	if (!strncmp(test, "get_", 4) || !strcmp(test, "fadd") || !strcmp(test, "cswap"))
		assert_true(reads > 0);
	else if (size < (strncmp(test, "loan_", 5) ? 65536 : 4096))
		assert_true(reads == 0);
}

/* One sample, where MORE does not want others. */
static void check_named(const char *test, const char *more, void (*check)(const json_t *))
{
	char arguments[256];
	struct answers a;

	snprintf(arguments, sizeof(arguments), "--json --samples 1 -t %s %s", test, more);
	a = ask("", arguments);
	assert_int_equal(a.status, 0);
	assert_true(a.count > 0);
	for (int i = 0; i < a.count; i++) {
		is_text(a.at[i], "test", test);
		is_text(a.at[i], "fabric", strncmp(test, "mailbox", 7) ? fabric : "dacs");
		is_text(a.at[i], "mode", NULL);
		assert_true(number(a.at[i], "count") > 0);
		check_reads(test, number(a.at[i], "size"), number(a.at[i], "remote_reads"));
		check(a.at[i]);
	}
	forget(&a);
}

static void latencies_have_a_mean_and_a_spread(void **state)
{
	(void)state;
	check_named("send_lat", "-s 8:64 -n 500 --samples 3", check_latency);
	check_named("send_lat", "-s 1m -n 10 --touch", check_latency);
	check_named("send_lat", "-s 0 -n 100 --wait block", check_latency);
	check_named("send_lat", "-s 64 -n 10 --idle-us 1000", check_latency);
	check_named("loan_lat", "-s 64 -n 500", check_latency);
	check_named("loan_lat", "-s 200000 -n 20 --touch", check_latency);
}

static void streams_have_two_rates(void **state)
{
	(void)state;
	check_named("send_bw", "-s 100:1000 -n 1000 --samples 3", check_stream);
	check_named("send_bw", "-s 300000 -n 30 --touch", check_stream);
	check_named("send_rate", "-n 5001 --burst 32", check_stream);
	check_named("send_rate", "-n 5001 --burst 32 --more", check_stream);
	check_named("send_bw", "-s 100 -n 501 --burst 64 --touch", check_stream);
	check_named("send_bw", "-s 300000 -n 40 --burst 32", check_stream);
	check_named("loan_bw", "-s 4k -n 500 --touch", check_stream);
	check_named("loan_bw", "-s 100000 -n 50", check_stream);
}

static void check_single(const json_t *a)
{
	assert_true(number(a, "lat_us") > 0 && number(a, "lat_us_min") > 0);
	is_null(a, "bytes_per_s");
	is_text(a, "path", NULL);
}

static void check_atomic(const json_t *a)
{
	check_single(a);
	assert_true(number(a, "size") == 8);
	assert_true(number(a, "bare_us") > 0 && number(a, "bare_ratio") > 0);
}

static void check_overlap(const json_t *a)
{
	check_single(a);
	assert_true(number(a, "hidden") >= 0); /* how much depends on what else runs */
}

static void check_put_stream(const json_t *a)
{
	check_stream(a);
	is_text(a, "path", NULL);
	assert_true(number(a, "far_cpu") >= 0);
}

/* Only memory shared by both processes is mapped. */
static bool maps(void)
{
	return !strcmp(fabric, "shm");
}

/* Regions that both map, and each other way there is; every way carries and checks the same
 * pattern. */
static void puts_and_gets_go_every_way(void **state)
{
	static const char *const ways[] = {"auto", "map", "ring", "am", "tag"};
	char more[128];

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (!strcmp(ways[i], "map") && !maps())
			continue;
		snprintf(more, sizeof(more), "-s 1:64 -n 60 --mode %s", ways[i]);
		check_named("put_lat", more, check_latency);
		check_named("put_rate", more, check_put_stream);
		snprintf(more, sizeof(more), "-s 100k -n 20 --touch --mode %s", ways[i]);
		check_named("put_lat", more, check_latency);
		check_named("get_lat", more, check_single);
		snprintf(more, sizeof(more), "-s 300000 -n 10 --burst 8 --mode %s", ways[i]);
		check_named("put_bw", more, check_put_stream);
		check_named("get_bw", more, check_put_stream);
	}
	check_named("overlap", "-s 1m", check_overlap);
}

static void atomic_operations_stand_beside_the_bare_instruction(void **state)
{
	(void)state;
	check_named("fadd", "-n 2000 --samples 2", check_atomic);
	check_named("cswap", maps() ? "-n 2000 --mode map" : "-n 2000", check_atomic);
	check_named("fadd", "-n 2000 --mode ring", check_atomic);
	check_named("cswap", "-n 2000 --mode am", check_atomic);
}

static void active_messages_have_a_latency_and_a_rate(void **state)
{
	(void)state;
	check_named("am_lat", "-s 0:16 -n 200", check_latency);
	check_named("am_lat", "-s 300000 -n 10 --touch --wait block", check_latency);
	check_named("am_rate", "-n 3000 --burst 16", check_stream);
	check_named("am_rate", "-s 100000 -n 50 --touch", check_stream);
}

static void fifos_have_a_latency_and_a_stream(void **state)
{
	(void)state;
	check_named("fifo_lat", "-s 0:16 -n 200", check_latency);
	check_named("fifo_lat", "-s 100000 -n 10 --touch --wait block", check_latency);
	check_named("fifo_bw", "-s 4k -n 500", check_stream);
	check_named("fifo_bw", "-s 100000 -n 50 --touch --mode ring", check_stream);
}

static void check_tracked(const json_t *a)
{
	check_latency(a);
	is_text(a, "path", NULL);
}

static void check_tracked_stream(const json_t *a)
{
	check_stream(a);
	is_text(a, "path", "twin");
}

static void mirrors_have_a_latency_and_a_stream(void **state)
{
	(void)state;
	check_named("mirror_lat", "-s 1:16 -n 200", check_latency);
	check_named("mirror_lat", "-s 100000 -n 10 --touch --wait block", check_latency);
	check_named("mirror_rate", "-n 3000 --burst 16 --samples 2", check_stream);
	check_named("mirror_rate", "-s 100000 -n 50", check_stream);
	check_named("mirror_reads", "-n 100000", check_stream);
	check_named("mirror_lat", "-s 8:16 -n 10 --track auto", check_tracked);
	check_named("mirror_lat", "-s 10000 -n 10 --track twin", check_tracked);
	check_named("mirror_rate", "-n 500 --burst 16 --track twin", check_tracked_stream);
	check_named("mirror_reads", "-n 50000 --track twin", check_tracked_stream);
	check_named("get_reads", "-n 1000", check_stream);
}

static void mailbox_words_have_a_latency(void **state)
{
	(void)state;
	check_named("mailbox_lat", "-n 200", check_latency);
}

static void sizes_double_up_to_the_last(void **state)
{
	static const double want[] = {0, 1, 2, 4};
	struct answers a = ask("", "--json --samples 1 -t send_bw -n 10 -s 0:7");

	(void)state;
	assert_int_equal(a.count, 4);
	for (int i = 0; i < a.count; i++)
		assert_true(number(a.at[i], "size") == want[i]);
	forget(&a);
}

static void a_histogram_holds_every_message(void **state)
{
	struct answers a = ask("", "--json --hist --samples 3 -t send_lat -n 400");
	const json_t *hist, *pairs, *pair;
	double sum = 0;
	size_t i;

	(void)state;
	assert_int_equal(a.count, 1);
	hist = json_object_get(a.at[0], "hist");
	assert_true(number(hist, "count") == 400);
	pairs = json_object_get(hist, "us");
	json_array_foreach(pairs, i, pair) sum += json_number_value(json_array_get(pair, 1));
	assert_true(sum == 400);
	forget(&a);
}

static void serving_answers_each_line(void **state)
{
	struct answers a = ask("send_lat 8 200 each\\n"
			       "nonsense 8 1\\n"
			       "send_bw 64 1000 burst 32\\n\\n"
			       "send_lat 64 5 idle 500 wait block\\n"
			       "send_lat 8 200\\n"
			       "send_lat eight 1\\n"
			       "loan_lat 100g 1\\n"
			       "copy_bw 4096 100\\n",
			       "--serve 2>/dev/null");

	(void)state;
	assert_int_equal(a.status, 0);
	assert_int_equal(a.count, 8);
	check_latency(a.at[0]);
	is_text(a.at[1], "error", NULL);
	check_stream(a.at[2]);
	assert_true(number(a.at[2], "burst") == 32);
	check_latency(a.at[3]);
	is_text(a.at[3], "wait", "block");
	assert_true(number(a.at[4], "lat_us") > 0);
	is_null(a.at[4], "lat_us_p99");
	is_text(a.at[5], "error", NULL);
	is_text(a.at[6], "error", NULL);
	assert_true(number(a.at[7], "bytes_per_s") > 0);
	forget(&a);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(latencies_have_a_mean_and_a_spread),
		cmocka_unit_test(streams_have_two_rates),
		cmocka_unit_test(puts_and_gets_go_every_way),
		cmocka_unit_test(atomic_operations_stand_beside_the_bare_instruction),
		cmocka_unit_test(active_messages_have_a_latency_and_a_rate),
		cmocka_unit_test(fifos_have_a_latency_and_a_stream),
		cmocka_unit_test(mirrors_have_a_latency_and_a_stream),
		cmocka_unit_test(mailbox_words_have_a_latency),
		cmocka_unit_test(sizes_double_up_to_the_last),
		cmocka_unit_test(a_histogram_holds_every_message),
		cmocka_unit_test(serving_answers_each_line),
	};

	if (getenv("SLMPM_FABRIC"))
		fabric = getenv("SLMPM_FABRIC");
	return cmocka_run_group_tests(all, NULL, NULL);
}
