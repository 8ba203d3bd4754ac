/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints results: one line a result for people, one JSON object a line for programs. */
#include "apps/slmpm_perftest/perftest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ,"NAME":VALUE, or null where it does not apply. */
static void key(const char *name, double value)
{
	if (value < 0)
		printf(",\"%s\":null", name);
	else
		printf(",\"%s\":%.6g", name, value);
}

/* In digits alone: scripts without a JSON parser stumble over exponents. */
static void rate(const char *name, double value)
{
	if (value < 0)
		printf(",\"%s\":null", name);
	else
		printf(",\"%s\":%.*f", name, value < 1e3 ? 3 : 0, value);
}

static void json_hist(const struct hist *h)
{
	const char *comma = "";

	printf(",\"hist\":{\"count\":%" PRIu64 ",\"us\":[", h->count);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		if (h->bucket[i]) {
			printf("%s[%.6g,%" PRIu64 "]", comma, (double)hist_floor(i) / 1e3,
			       h->bucket[i]);
			comma = ",";
		}
	printf("]}");
}

/* How both sides waited; unless told otherwise, the environment or the library decides. */
static const char *waited(const struct job *j)
{
	const char *said = getenv("SLMPM_WAIT");

	if (j->wait != WAIT_DEFAULT)
		return wait_name(j->wait);
	return said ? said : wait_name(SLMPM_WAIT_ADAPTIVE);
}

static void json(const struct result *r, bool hist)
{
	const struct job *j = &r->job;

	printf("{\"test\":\"%s\",\"fabric\":\"%s\",\"mode\":\"%s\",\"wait\":\"%s\",\"size\":%" PRIu64
	       ",\"count\":%" PRIu64,
	       j->test->name, r->fabric, r->mode, waited(j), j->size, j->count);
	key("lat_us", r->lat_us);
	key("lat_us_min", r->min_us);
	key("lat_us_p50", r->p50_us);
	key("lat_us_p90", r->p90_us);
	key("lat_us_p99", r->p99_us);
	key("lat_us_p999", r->p999_us);
	key("lat_us_max", r->max_us);
	key("hops", r->hops);
	rate("messages_per_s", r->messages_per_s);
	rate("bytes_per_s", r->bytes_per_s);
	printf(",\"remote_reads\":%" PRIu64 ",\"remote_writes\":%" PRIu64, r->reads, r->writes);
	key("line_ns", r->line_ns > 0 ? r->line_ns : -1);
	key("bare_us", r->bare_us);
	key("bare_ratio", r->bare_ratio);
	key("hidden", r->hidden);
	key("arm_us", r->arm_us);
	key("post_us", r->post_us);
	key("by_engine", r->by_engine);
	key("kept", r->kept);
	key("far_cpu", r->far_cpu);
	key("first_us", r->first_us);
	key("to10_us", r->to10_us);
	key("to100_us", r->to100_us);
	key("cpu_us", r->cpu_us);
	key("near_cpu_us", r->spent_us[0]);
	key("far_cpu_us", r->spent_us[1]);
	printf(",\"path\":");
	printf(*r->path ? "\"%s\"" : "null", r->path);
	key("link", (double)r->job.link - 1);
	key("members", j->test->by == BY_GROUP ? (double)j->members : -1);
	printf(",\"algorithm\":");
	printf(r->algorithm ? "\"%s\"" : "null", r->algorithm);
	printf(",\"touch\":%s,\"burst\":%" PRIu64 ",\"idle_us\":%" PRIu64
	       ",\"samples\":%u,\"retaken\":%u,\"mixed\":%u",
	       j->touch ? "true" : "false", j->burst, j->idle_us, r->samples, r->retaken, r->mixed);
	if (hist && r->hist.count)
		json_hist(&r->hist);
	printf("}\n");
}

/* VALUE in WIDTH columns: with fewer decimals, or an exponent, rather than too wide. */
static void cell(int width, int decimals, double value)
{
	char text[32];
	int tens = 0;

	if (value < 0) {
		printf(" %*s", width, "-");
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*f", decimals, value);
	while ((int)strlen(text) > width && decimals-- > 0);
	if ((int)strlen(text) > width) {
		for (; value >= 9.5; tens++)
			value /= 10;
		snprintf(text, sizeof(text), "%.0fe%d", value, tens);
	}
	printf(" %*s", width, text);
}

void report_heading(const struct setup *setup)
{
	if (setup->json)
		return;
	printf("%-11s %8s %8s %8s %5s %8s %8s %5s %7s %3s\n", "test", "bytes", "us", "us p99",
	       "hops", "M msg/s", "MB/s", "line", "path", "cpu");
	fflush(stdout);
}

/* One more of what the table has no column for, on a line under the result's. */
__attribute__((format(printf, 2, 3))) static void remark(int *count, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf((*count)++ ? ", " : "  ");
	vprintf(format, args);
	va_end(args);
}

static const char *beside(const struct test *test)
{
	if (test->loop == loop_wq_pipe)
		return "straight";
	if (test_calculates(test))
		return "a bare loop";
	if (test->loop == loop_offload || test_offloads(test))
		return "alone";
	if (test->by == BY_GROUP)
		return "a message of 8 bytes";
	return test->by == BY_QUEUE ? "by hand" : "the bare instruction";
}

static void queue_remarks(const struct result *r, int *count)
{
	if (r->arm_us >= 0)
		remark(count, "entry %.1f ns, posting %.0f ns, re-arming 1,000 %.2f us",
		       r->lat_us * 1e3, r->post_us * 1e3, r->arm_us);
	if (r->kept >= 0)
		remark(count, "kept %.0f %%", 100 * r->kept);
	if (r->by_engine >= 0)
		remark(count, "by the thread %.0f %%", 100 * r->by_engine);
}

static void remarks(const struct result *r)
{
	int count = 0;

	if (r->job.link)
		remark(&count, "link %u, %s", (unsigned)r->job.link - 1, r->fabric);
	if (r->job.test->by == BY_GROUP)
		remark(&count, "%u members", r->job.members);
	if (r->bare_us >= 0)
		remark(&count, "%s %.3f us, ratio %.2f", beside(r->job.test), r->bare_us,
		       r->bare_ratio);
	queue_remarks(r, &count);
	if (r->hidden >= 0)
		remark(&count, "hidden %.0f %%", 100 * r->hidden);
	if (r->first_us >= 0)
		remark(&count, "the first %.3f us", r->first_us);
	if (r->job.test->kind == KIND_PAUSE)
		remark(&count, "processor time of a burst %.1f us", r->cpu_us);
	if (r->reads)
		remark(&count, "%" PRIu64 " remote reads", r->reads);
	if (r->mixed)
		remark(&count, "placement changed meanwhile");
	if (count)
		putchar('\n');
}

static void processor_time(const struct result *r)
{
	static const char *const sides[] = {"here", "there"};
	double bytes = (double)r->job.size;

	for (int side = 0; side < 2 && r->spent_us[side] >= 0; side++) {
		printf("  processor time %-5s %.3f us a message", sides[side], r->spent_us[side]);
		if (r->job.size)
			printf(", %.3g ns a byte", r->spent_us[side] * 1e3 / bytes);
		putchar('\n');
	}
}

static void bars(const struct hist *h)
{
	static const double at[] = {0.5, 0.9, 0.99, 0.999, 1};
	uint64_t octave[64] = {0}, most = 1;

	for (unsigned i = 0; i < sizeof(at) / sizeof(*at); i++)
		printf("  p%-6g %10.3f us\n", at[i] * 100, hist_quantile(h, at[i]) / 1e3);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		unsigned o = 63u - (unsigned)__builtin_clzll(hist_floor(i) | 1);

		octave[o] += h->bucket[i];
		most = octave[o] > most ? octave[o] : most;
	}
	for (unsigned o = 0; o < 64; o++)
		if (octave[o])
			printf("  %12.3f us %9" PRIu64 " %.*s\n", (double)(UINT64_C(1) << o) / 1e3,
			       octave[o], (int)(octave[o] * 50 / most),
			       "##################################################");
}

void report(const struct setup *setup, const struct result *r)
{
	if (setup->json) {
		json(r, setup->hist);
		fflush(stdout);
		return;
	}
	printf("%s %*" PRIu64, r->job.test->name, 19 - (int)strlen(r->job.test->name), r->job.size);
	cell(8, 3, r->lat_us);
	cell(8, 3, r->p99_us);
	cell(5, 1, r->hops);
	cell(8, 3, r->messages_per_s >= 0 ? r->messages_per_s / 1e6 : -1);
	cell(8, 1, r->bytes_per_s >= 0 ? r->bytes_per_s / 1e6 : -1);
	cell(5, 1, r->line_ns > 0 ? r->line_ns : -1);
	printf(" %7s", *r->path ? r->path : "-");
	cell(3, 0, r->job.test->kind == KIND_STREAM && *r->path ? 100 * r->far_cpu : -1);
	putchar('\n');
	remarks(r);
	if (setup->processor_time)
		processor_time(r);
	if (setup->hist && r->hist.count)
		bars(&r->hist);
	fflush(stdout);
}
