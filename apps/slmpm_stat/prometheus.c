/* SPDX-License-Identifier: BSD-3-Clause */
/* As Prometheus reads it: node-exporter's textfile folder takes it as it is. */
#include "apps/slmpm_stat/stat.h"

#include <inttypes.h>

/* Inside of quotes; control characters are none any more. */
static void print_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void print_labels(const struct link *l, const char *more, const char *value)
{
	printf("{pid=\"%d\",program=\"", l->pid);
	print_quoted(l->program);
	printf("\",peer=\"");
	print_quoted(l->m.name);
	printf("\",link=\"");
	print_quoted(l->m.link);
	printf("\",context=\"%" PRIu32 "\"", l->m.context);
	if (more)
		printf(",%s=\"%s\"", more, value);
	putchar('}');
}

struct metric {
	const char *name, *type, *help;
	size_t at;   /* in a struct slmpm_monitor */
	size_t size; /* of the figure */
	double unit;
};

#define FIGURE(name, type, help, field, unit)                                                      \
	{                                                                                          \
		name, type, help, offsetof(struct slmpm_monitor, field),                           \
			sizeof(((struct slmpm_monitor *)0)->field), unit                           \
	}
static const struct metric metrics[] = {
	FIGURE("queue_depth", "gauge", "Requests that the link has not accepted yet", queue_depth,
	       1),
	FIGURE("awaiting", "gauge", "Messages begun that wait for their receive", awaiting, 1),
	FIGURE("one_sided", "gauge", "One-sided operations under way", one_sided, 1),
	FIGURE("ring_out_segments", "gauge", "Segments of the peer's ring", out_segments, 1),
	FIGURE("ring_out_unread", "gauge", "Of them written and not read", out_unread, 1),
	FIGURE("ring_in_segments", "gauge", "Segments of this side's ring", in_segments, 1),
	FIGURE("ring_in_unread", "gauge", "Of them written and not read", in_unread, 1),
	FIGURE("echo_seconds", "gauge", "Half of a packet's way to the peer and back", echo_ns,
	       1e-9),
	FIGURE("sent_messages_total", "counter", "Messages sent", sent_messages, 1),
	FIGURE("sent_bytes_total", "counter", "Bytes of them", sent_bytes, 1),
	FIGURE("received_messages_total", "counter", "Messages received", received_messages, 1),
	FIGURE("received_bytes_total", "counter", "Bytes of them", received_bytes, 1),
};

static double value_of(const struct link *l, const struct metric *metric)
{
	const unsigned char *at = (const unsigned char *)&l->m + metric->at;
	const void *figure = at;

	return (metric->size == 4 ? (double)*(const uint32_t *)figure :
				    (double)*(const uint64_t *)figure) *
	       metric->unit;
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP slmpm_%s %s.\n# TYPE slmpm_%s %s\n", name, help, name, type);
}

static void print_metric(const struct gathered *g, const struct metric *metric)
{
	print_head(metric->name, metric->type, metric->help);
	for (size_t i = 0; i < g->count; i++) {
		printf("slmpm_%s", metric->name);
		print_labels(&g->links[i], NULL, NULL);
		printf(" %.17g\n", value_of(&g->links[i], metric));
	}
}

static void print_by(const struct gathered *g, const char *name, const char *help, size_t at,
		     const char *label, const char *name_of(int), int n)
{
	print_head(name, "counter", help);
	for (size_t i = 0; i < g->count; i++)
		for (int k = 0; k < n; k++) {
			const unsigned char *m = (const unsigned char *)&g->links[i].m;
			const void *value = m + at + 8 * (size_t)k;

			printf("slmpm_%s", name);
			print_labels(&g->links[i], label, name_of(k));
			printf(" %" PRIu64 "\n", *(const uint64_t *)value);
		}
}

static void print_reasons(const struct gathered *g)
{
	char both[64];

	print_head("chosen_total", "counter", "Requests by protocol and the reason for it");
	for (size_t i = 0; i < g->count; i++)
		for (int p = 0; p < SLMPM_PROTOCOLS; p++)
			for (int r = 0; r < SLMPM_REASONS; r++) {
				if (!g->links[i].m.reasons[p][r])
					continue;
				snprintf(both, sizeof(both), "%s\",reason=\"%s",
					 slmpm_protocol_name(p), slmpm_reason_name(r));
				printf("slmpm_chosen_total");
				print_labels(&g->links[i], "protocol", both);
				printf(" %" PRIu64 "\n", g->links[i].m.reasons[p][r]);
			}
}

static void print_timing(const struct link *l, const char *name, double value, int p, int s, int w)
{
	char size[48];

	snprintf(size, sizeof(size), "%s\",size=\"%s\",warm=\"%d", slmpm_protocol_name(p),
		 word_class(s), w == SLMPM_WARM);
	printf("slmpm_%s", name);
	print_labels(l, "protocol", size);
	printf(" %.9g\n", value);
}

static void print_timings(const struct gathered *g, bool latency)
{
	const char *name = latency ? "latency_seconds" : "throughput_bytes_per_second";

	print_head(name, "gauge",
		   latency ? "Until the peer had it, recent mean" : "Of the caller's own time");
	for (size_t i = 0; i < g->count; i++)
		for (int p = 0; p < SLMPM_PROTOCOLS; p++)
			for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
				for (int w = 0; w < SLMPM_WARMTH; w++) {
					const struct slmpm_timing *t =
						&g->links[i].m.timing[p][s][w];

					if (latency ? t->latency_ns != 0 : t->busy_ns != 0)
						print_timing(&g->links[i], name,
							     latency ? t->latency_ns * 1e-9 :
								       (double)t->bytes * 1e9 /
									       (double)t->busy_ns,
							     p, s, w);
				}
}

void prometheus_print(const struct gathered *g)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		print_metric(g, &metrics[i]);
	print_by(g, "requests_total", "Requests by protocol",
		 offsetof(struct slmpm_monitor, requests), "protocol", slmpm_protocol_name,
		 SLMPM_PROTOCOLS);
	print_by(g, "request_bytes_total", "Bytes of them",
		 offsetof(struct slmpm_monitor, request_bytes), "protocol", slmpm_protocol_name,
		 SLMPM_PROTOCOLS);
	print_reasons(g);
	print_timings(g, true);
	print_timings(g, false);
}
