/* SPDX-License-Identifier: BSD-3-Clause */
/* The table at the end, on standard error: plain text, whoever reads it. */
#include <string.h>

#include "apps/slmpm_demo/demo.h"

static void line(const char *name, const char *value)
{
	fprintf(stderr, "  %-18s %s\n", name, value);
}

static void number(const char *name, uint64_t value)
{
	fprintf(stderr, "  %-18s %llu\n", name, (unsigned long long)value);
}

static void print_files(const struct files *files, const struct tally *t)
{
	number("files", t->files);
	if (files->failed)
		number("not readable", files->failed);
	if (t->redone)
		number("done again", t->redone);
	if (t->here)
		number("hashed by the host", t->here);
	number("bytes", t->bytes);
}

static void print_messages(const struct tally *t)
{
	uint64_t ended = traffic_count(&t->traffic, SLMPM_BY_SMT) +
			 traffic_count(&t->traffic, SLMPM_BY_RGET) +
			 traffic_count(&t->traffic, TRAFFIC_LOAN) + t->ballast_messages;
	char text[128], part[24];

	snprintf(text, sizeof(text), "%llu sent, %llu received", (unsigned long long)t->sent,
		 (unsigned long long)t->received);
	line("messages", text);
	number("puts", t->puts);
	if (t->sent > ended) /* to those that were lost, or when it was interrupted */
		number("  not ended", t->sent - ended);
	if (t->pushed_messages) {
		snprintf(text, sizeof(text), "%llu messages, %s",
			 (unsigned long long)t->pushed_messages,
			 screen_amount(part, (double)t->pushed_bytes));
		line("share pushed", text);
	}
}

static void print_speed(const struct tally *t)
{
	double seconds = t->seconds > 0 ? t->seconds : 1e-9;
	char text[128], part[24];

	snprintf(text, sizeof(text), "%s/s, %.0f files/s",
		 screen_amount(part, (double)t->bytes / seconds), (double)t->files / seconds);
	line("throughput", text);
	snprintf(text, sizeof(text), "-");
	if (t->latency.count)
		snprintf(text, sizeof(text), "p50 %.0f us, p90 %.0f us, p99 %.0f us, max %.0f us",
			 hist_quantile(&t->latency, 0.5) / 1e3,
			 hist_quantile(&t->latency, 0.9) / 1e3,
			 hist_quantile(&t->latency, 0.99) / 1e3, (double)t->latency.max / 1e3);
	line("latency", text);
	snprintf(text, sizeof(text), "mean %.1f %%, at most %.1f %%",
		 t->ring_samples ? 100 * t->ring_sum / (double)t->ring_samples : 0,
		 100 * t->ring_most);
	line("ring utilization", text);
	number("remote writes", t->remote_writes);
	number("remote reads", t->remote_reads);
}

static void print_stress(const struct options *o, const struct tally *t)
{
	static const char *const names[STRESSES] = {"", "ring", "queue", "link"};
	char text[160], part[24];

	if (!o->stress)
		return;
	snprintf(text, sizeof(text), "%s: %llu bursts, %llu moved the selector", names[o->stress],
		 (unsigned long long)t->bursts, (unsigned long long)t->moved);
	line("stress", text);
	snprintf(text, sizeof(text), "%llu messages, %llu puts, %s",
		 (unsigned long long)t->ballast_messages, (unsigned long long)t->ballast_puts,
		 screen_amount(part, (double)t->ballast_bytes));
	line("  ballast", text);
}

static int print_reduced(const struct options *o, const struct tally *t)
{
	bool equal = memcmp(&t->reduced, &t->counts, sizeof(t->counts)) == 0;
	char text[256], part[24];

	if (!o->reduce || t->interrupted)
		return 0;
	snprintf(text, sizeof(text), "%llu files, %s, %s", (unsigned long long)t->reduced.files,
		 screen_amount(part, (double)t->reduced.bytes),
		 equal ? "equal to the host's own count" : "NOT EQUAL to the host's own count");
	line("reduced", *t->not_reduced ? t->not_reduced : text);
	if (*t->not_reduced)
		return 1;
	line("  sizes", counts_text(&t->reduced, text, sizeof(text)));
	return !equal;
}

/* Why, and how often. */
static const char *reasons(const struct traffic_row *row, char *text, size_t size)
{
	size_t at = 0;

	*text = 0;
	for (int r = 0; r < SLMPM_REASONS && at < size; r++)
		if (row->reasons[r])
			at += (size_t)snprintf(text + at, size - at, "%s%s %llu", at ? ", " : "",
					       slmpm_reason_name(r),
					       (unsigned long long)row->reasons[r]);
	return text;
}

static void print_traffic(const struct traffic *t)
{
	char why[256], part[24], strip[TRAFFIC_SLICES + 1];

	if (!t->count)
		return;
	fprintf(stderr, "\n  %-6s  %-8s  %8s  %8s  because\n", "fabric", "protocol", "count",
		"bytes");
	for (unsigned r = 0; r < t->count; r++)
		fprintf(stderr, "  %-6s  %-8s  %8llu  %8s  %s\n", t->rows[r].fabric,
			traffic_protocol(t->rows[r].protocol), (unsigned long long)t->rows[r].count,
			screen_amount(part, (double)t->rows[r].bytes),
			reasons(&t->rows[r], why, sizeof(why)));
	fprintf(stderr, "\n  %-6s  %-8s  share of the bytes, each %.0f ms\n", "fabric", "protocol",
		(double)t->slice / 1e6);
	for (unsigned r = 0; r < t->count; r++)
		fprintf(stderr, "  %-6s  %-8s  |%s|\n", t->rows[r].fabric,
			traffic_protocol(t->rows[r].protocol), traffic_strip(t, r, strip));
}

int table_print(const struct options *options, const struct files *files, const struct tally *t)
{
	int failed;

	screen_clear();
	output_flush();
	fprintf(stderr, "slmpm_demo: %u accelerators, %u lost, %.3f s%s\n", t->accelerators,
		t->lost, t->seconds, t->interrupted ? ", interrupted" : "");
	print_files(files, t);
	print_messages(t);
	print_speed(t);
	print_stress(options, t);
	failed = print_reduced(options, t);
	print_traffic(&t->traffic);
	return failed;
}
