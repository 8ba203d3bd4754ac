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

/*
 * With one more label that is one of ours, and one that may be anything. Numbers that come again
 * tell links apart; names, which peers choose, stand in slmpm_link_info alone, for each name would
 * make one more series of every figure.
 */
static void print_labels_of(const struct link *l, const char *more, const char *value,
			    const char *text, const char *any)
{
	printf("{pid=\"%d\",place=\"%d\"", l->pid, l->place);
	if (more)
		printf(",%s=\"%s\"", more, value);
	if (text) {
		printf(",%s=\"", text);
		print_quoted(any);
		putchar('"');
	}
	putchar('}');
}

static void print_labels(const struct link *l, const char *more, const char *value)
{
	print_labels_of(l, more, value, NULL, NULL);
}

struct metric {
	const char *name, *type, *help;
	size_t at;   /* in a struct slmpm_monitor */
	size_t size; /* of the figure */
	double unit;
};

#define FIGURE_OF(what, name, type, help, field, unit)                                             \
	{                                                                                          \
		name, type, help, offsetof(struct what, field), sizeof(((struct what *)0)->field), \
			unit                                                                       \
	}
#define FIGURE(name, type, help, field, unit)                                                      \
	FIGURE_OF(slmpm_monitor, name, type, help, field, unit)
static const struct metric metrics[] = {
	FIGURE("queue_depth_requests", "gauge", "Requests that the link has not accepted yet",
	       queue_depth, 1),
	FIGURE("awaiting_messages", "gauge", "Messages begun that wait for their receive", awaiting,
	       1),
	FIGURE("one_sided_operations", "gauge", "One-sided operations under way", one_sided, 1),
	FIGURE("ring_out_segments", "gauge", "Segments of the peer's ring", out_segments, 1),
	FIGURE("ring_out_unread_segments", "gauge", "Of them written and not read", out_unread, 1),
	FIGURE("ring_in_segments", "gauge", "Segments of this side's ring", in_segments, 1),
	FIGURE("ring_in_unread_segments", "gauge", "Of them written and not read", in_unread, 1),
	FIGURE("echo_seconds", "gauge", "Half of a packet's way to the peer and back", echo_ns,
	       1e-9),
	FIGURE("sent_messages_total", "counter", "Messages sent", sent_messages, 1),
	FIGURE("sent_bytes_total", "counter", "Bytes of them", sent_bytes, 1),
	FIGURE("received_messages_total", "counter", "Messages received", received_messages, 1),
	FIGURE("received_bytes_total", "counter", "Bytes of them", received_bytes, 1),
	FIGURE("violations_total", "counter", "Rules that the peer has broken", violations, 1),
	FIGURE("misaddressed_total", "counter",
	       "Of these, packets for another accelerator, process or place", misaddressed, 1),
	FIGURE("copied_put_operations_total", "counter", "Puts that the calls copied", copied_puts,
	       1),
	FIGURE("copied_put_bytes_total", "counter", "Bytes of them", copied_put_bytes, 1),
	FIGURE("copied_get_operations_total", "counter", "Gets that the calls copied", copied_gets,
	       1),
	FIGURE("copied_get_bytes_total", "counter", "Bytes of them", copied_get_bytes, 1),
	FIGURE("engine_out_operations_total", "counter", "Transfers of the engine to the peer",
	       engine_out, 1),
	FIGURE("engine_out_bytes_total", "counter", "Bytes that it moved", engine_out_bytes, 1),
	FIGURE("engine_in_operations_total", "counter", "Transfers of the engine to here",
	       engine_in, 1),
	FIGURE("engine_in_bytes_total", "counter", "Bytes that it moved", engine_in_bytes, 1),
	FIGURE("helped_out_bytes_total", "counter", "Bytes to the peer that calls moved for it",
	       helped_out_bytes, 1),
	FIGURE("helped_in_bytes_total", "counter", "Bytes to here that calls moved for it",
	       helped_in_bytes, 1),
	FIGURE("asked_operations_total", "counter", "Puts and gets that the peer's engine did",
	       asked, 1),
	FIGURE("asked_bytes_total", "counter", "Bytes of them", asked_bytes, 1),
	FIGURE("asked_here_operations_total", "counter", "The peer's that the engine here did",
	       asked_here, 1),
	FIGURE("asked_here_bytes_total", "counter", "Bytes of them", asked_here_bytes, 1),
};

static double value_of(const void *all, const struct metric *metric)
{
	const unsigned char *at = (const unsigned char *)all + metric->at;
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
		printf(" %.17g\n", value_of(&g->links[i].m, metric));
	}
}

/* Names, to be joined by: FIGURE * on(pid, place) group_left(peer) slmpm_link_info */
static void print_names(const struct gathered *g)
{
	print_head("link_info", "gauge", "Names of the link with this pid and place");
	for (size_t i = 0; i < g->count; i++) {
		const struct link *l = &g->links[i];

		printf("slmpm_link_info{pid=\"%d\",place=\"%d\",context=\"%" PRIu32 "\",program=\"",
		       l->pid, l->place, l->m.context);
		print_quoted(l->program);
		printf("\",peer=\"");
		print_quoted(l->m.name);
		printf("\",link=\"");
		print_quoted(l->m.link);
		printf("\"} 1\n");
	}
}

/* Is the peer there, and how old is all that is told of it here? */
static void print_states(const struct gathered *g)
{
	print_head("link_up", "gauge", "The peer is there");
	for (size_t i = 0; i < g->count; i++) {
		printf("slmpm_link_up");
		print_labels(&g->links[i], NULL, NULL);
		printf(" %d\n", g->links[i].m.state == SLMPM_PEER_UP);
	}
	print_head("age_seconds", "gauge", "Since the figures of the link were taken");
	for (size_t i = 0; i < g->count; i++) {
		printf("slmpm_age_seconds");
		print_labels(&g->links[i], NULL, NULL);
		printf(" %.9g\n", g->links[i].age);
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

	print_head("chosen_requests_total", "counter",
		   "Requests by protocol and the reason for it");
	for (size_t i = 0; i < g->count; i++)
		for (int p = 0; p < SLMPM_PROTOCOLS; p++)
			for (int r = 0; r < SLMPM_REASONS; r++) {
				if (!g->links[i].m.reasons[p][r])
					continue;
				snprintf(both, sizeof(both), "%s\",reason=\"%s",
					 slmpm_protocol_name(p), slmpm_reason_name(r));
				printf("slmpm_chosen_requests_total");
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

/* ---- each of several links ------------------------------------------------------------------- */

#define PATH(name, help, field, unit)                                                              \
	FIGURE_OF(slmpm_monitor_path, name, "gauge", help, field, unit)
static const struct metric path_metrics[] = {
	PATH("path_used", "What is sent now goes by this one", used, 1),
	PATH("path_queue_depth_requests", "Requests that wait for it", queue_depth, 1),
	PATH("path_ring_out_segments", "Segments of the peer's ring", out_segments, 1),
	PATH("path_ring_out_unread_segments", "Of them written and not read", out_unread, 1),
	PATH("path_ring_in_segments", "Segments of this side's ring", in_segments, 1),
	PATH("path_ring_in_unread_segments", "Of them written and not read", in_unread, 1),
	PATH("path_echo_seconds", "Half of a packet's way to the peer and back", echo_ns, 1e-9),
};

static void print_path_metric(const struct gathered *g, const struct metric *metric)
{
	print_head(metric->name, metric->type, metric->help);
	for (size_t i = 0; i < g->count; i++)
		for (uint32_t k = 0; k < g->links[i].m.path_count; k++) {
			const struct slmpm_monitor_path *p = &g->links[i].m.paths[k];
			char number[2] = {(char)('0' + k), 0};

			printf("slmpm_%s", metric->name);
			print_labels_of(&g->links[i], "path", number, "fabric", p->link);
			printf(" %.17g\n", value_of(p, metric));
		}
}

/* ---- jobs ------------------------------------------------------------------------------------ */

#define JOB(name, help, field, unit) FIGURE_OF(slmpm_aggregate, name, "gauge", help, field, unit)
static const struct metric job_metrics[] = {
	JOB("job_instances", "Processes that are known of", instances, 1),
	JOB("job_jobs", "Jobs in this aggregate", jobs, 1),
	JOB("job_links", "Their links", links, 1),
	JOB("job_queue_depth_requests", "Requests queued on them", queue_depth, 1),
	JOB("job_ring_out_ratio", "Of the rings written and not read, mean", out_permille, 1e-3),
	JOB("job_ring_in_ratio", "The same of inbound ones", in_permille, 1e-3),
};
#define TYPE(name, type, help, field, unit)                                                        \
	FIGURE_OF(slmpm_aggregate_fabric, name, type, help, field, unit)
static const struct metric fabric_metrics[] = {
	TYPE("job_fabric_requests_total", "counter", "Requests by fabric", requests, 1),
	TYPE("job_fabric_links", "gauge", "Links by fabric", links, 1),
	TYPE("job_fabric_ring_out_ratio", "gauge", "Of their rings written and not read, mean",
	     out_permille, 1e-3),
	TYPE("job_fabric_ring_in_ratio", "gauge", "The same of inbound ones", in_permille, 1e-3),
	TYPE("job_fabric_echo_seconds", "gauge", "Half of a packet's way there and back, mean",
	     echo_ns, 1e-9),
};

/* Of job I, and more labels, whose last one goes through print_quoted. */
static void print_job_name(const struct gathered *g, size_t i, const char *name, const char *label,
			   const char *value)
{
	printf("slmpm_%s{job=\"%012" PRIx64 "\"", name, g->jobs[i].m.job);
	if (label) {
		printf(",%s=\"", label);
		print_quoted(value);
		putchar('"');
	}
	putchar('}');
}

static void print_job_metric(const struct gathered *g, const struct metric *metric)
{
	print_head(metric->name, metric->type, metric->help);
	for (size_t i = 0; i < g->job_count; i++) {
		print_job_name(g, i, metric->name, NULL, NULL);
		printf(" %.17g\n", value_of(&g->jobs[i].m, metric));
	}
}

static void print_fabric_metric(const struct gathered *g, const struct metric *metric)
{
	print_head(metric->name, metric->type, metric->help);
	for (size_t i = 0; i < g->job_count; i++)
		for (int f = 0; f < SLMPM_AGGREGATE_FABRICS; f++) {
			const struct slmpm_aggregate_fabric *fabric = &g->jobs[i].m.fabrics[f];

			if (!fabric->name[0])
				continue;
			print_job_name(g, i, metric->name, "fabric", fabric->name);
			printf(" %.17g\n", value_of(fabric, metric));
		}
}

static void print_job_latencies(const struct gathered *g)
{
	static const char name[] = "job_latency_seconds";

	print_head(name, "gauge", "Until the peer had it, mean over the instances");
	for (size_t i = 0; i < g->job_count; i++)
		for (int p = 0; p < SLMPM_PROTOCOLS; p++)
			for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
				uint32_t ns = g->jobs[i].m.latency_ns[p][s];

				if (ns)
					printf("slmpm_%s{job=\"%012" PRIx64
					       "\",protocol=\"%s\",size=\"%s\"} %.9g\n",
					       name, g->jobs[i].m.job, slmpm_protocol_name(p),
					       word_class(s), ns * 1e-9);
			}
}

static void print_jobs(const struct gathered *g)
{
	for (size_t i = 0; i < sizeof(job_metrics) / sizeof(job_metrics[0]); i++)
		print_job_metric(g, &job_metrics[i]);
	for (size_t i = 0; i < sizeof(fabric_metrics) / sizeof(fabric_metrics[0]); i++)
		print_fabric_metric(g, &fabric_metrics[i]);
	print_job_latencies(g);
}

/* Ids, which peers choose, stand in slmpm_peer_total_info alone: a place in the table, of which
 * there are 1025, is given again. */
static void print_totals(const struct gathered *g)
{
	print_head("peer_total_info", "gauge", "Id of the totals with this pid and entry");
	for (size_t i = 0; i < g->total_count; i++) {
		printf("slmpm_peer_total_info{pid=\"%d\",entry=\"%d\",program=\"", g->totals[i].pid,
		       g->totals[i].place);
		print_quoted(g->totals[i].program);
		printf("\",id=\"");
		print_quoted(g->totals[i].t.id);
		printf("\"} 1\n");
	}
	for (size_t k = 0; k < total_figure_count; k++) {
		char name[64];

		snprintf(name, sizeof(name), "peer_%s_total", total_figures[k].name);
		print_head(name, "counter", total_figures[k].help);
		for (size_t i = 0; i < g->total_count; i++)
			printf("slmpm_%s{pid=\"%d\",entry=\"%d\"} %" PRIu64 "\n", name,
			       g->totals[i].pid, g->totals[i].place,
			       total_value(&g->totals[i].t, k));
	}
}

void prometheus_print(const struct gathered *g)
{
	print_names(g);
	print_states(g);
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
	for (size_t i = 0; i < sizeof(path_metrics) / sizeof(path_metrics[0]); i++)
		print_path_metric(g, &path_metrics[i]);
	print_jobs(g);
	print_totals(g);
	queues_prometheus(g);
	groups_prometheus(g);
}
