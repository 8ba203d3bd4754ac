/* SPDX-License-Identifier: BSD-3-Clause */
/* As one JSON object: links, what they come to, and jobs. Counts beyond 2^63 - 1 are cut there. */
#include "apps/lib/queues.h"
#include "apps/slmpm_stat/stat.h"

#include <inttypes.h>
#include <slmpm_plan.h>

#include <jansson.h>

static json_t *number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static void set(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, number(value));
}

static json_t *timing(int p, int s, int w, const struct slmpm_timing *t)
{
	json_t *o = json_pack("{ss ss sb}", "protocol", slmpm_protocol_name(p), "size",
			      word_class(s), "warm", w == SLMPM_WARM);

	set(o, "samples", t->samples);
	set(o, "bytes", t->bytes);
	set(o, "busy_ns", t->busy_ns);
	set(o, "latency_ns", t->latency_ns);
	set(o, "latency_least_ns", t->latency_least_ns);
	json_object_set_new(o, "throughput_bytes_per_second",
			    json_real(t->busy_ns ? (double)t->bytes * 1e9 / (double)t->busy_ns :
						   0));
	return o;
}

static json_t *timings(const struct slmpm_monitor *m)
{
	json_t *all = json_array();

	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			for (int w = 0; w < SLMPM_WARMTH; w++)
				if (m->timing[p][s][w].samples)
					json_array_append_new(all,
							      timing(p, s, w, &m->timing[p][s][w]));
	return all;
}

static json_t *by_protocol(const uint64_t *values)
{
	json_t *o = json_object();

	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		set(o, slmpm_protocol_name(p), values[p]);
	return o;
}

static json_t *by_reason(const struct slmpm_monitor *m)
{
	json_t *all = json_object();

	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		json_t *o = json_object();

		for (int r = 0; r < SLMPM_REASONS; r++)
			if (m->reasons[p][r])
				set(o, slmpm_reason_name(r), m->reasons[p][r]);
		json_object_set_new(all, slmpm_protocol_name(p), o);
	}
	return all;
}

static json_t *paths(const struct slmpm_monitor *m)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < m->path_count; i++) {
		const struct slmpm_monitor_path *p = &m->paths[i];
		json_t *o = json_pack("{si ss ss sb}", "number", (int)i, "link", p->link, "state",
				      word_path(p->state), "used", p->used != 0);

		set(o, "queue_depth", p->queue_depth);
		set(o, "out_unread", p->out_unread);
		set(o, "out_segments", p->out_segments);
		set(o, "in_unread", p->in_unread);
		set(o, "in_segments", p->in_segments);
		set(o, "out_permille", p->out_permille);
		set(o, "in_permille", p->in_permille);
		set(o, "echo_ns", p->echo_ns);
		set(o, "echo_least_ns", p->echo_least_ns);
		json_array_append_new(all, o);
	}
	return all;
}

/* Who moved the bytes of puts and gets. */
static void set_movers(json_t *o, const struct slmpm_monitor *m)
{
	set(o, "copied_puts", m->copied_puts);
	set(o, "copied_put_bytes", m->copied_put_bytes);
	set(o, "copied_gets", m->copied_gets);
	set(o, "copied_get_bytes", m->copied_get_bytes);
	set(o, "engine_out", m->engine_out);
	set(o, "engine_out_bytes", m->engine_out_bytes);
	set(o, "engine_in", m->engine_in);
	set(o, "engine_in_bytes", m->engine_in_bytes);
	set(o, "helped_out_bytes", m->helped_out_bytes);
	set(o, "helped_in_bytes", m->helped_in_bytes);
	set(o, "asked", m->asked);
	set(o, "asked_bytes", m->asked_bytes);
	set(o, "asked_here", m->asked_here);
	set(o, "asked_here_bytes", m->asked_here_bytes);
}

static json_t *link_object(const struct link *l)
{
	const struct slmpm_monitor *m = &l->m;
	json_t *o = json_pack("{si ss ss ss ss si sf}", "pid", l->pid, "program", l->program,
			      "peer", m->name, "link", m->link, "state", word_state(m->state),
			      "peer_pid", (int)m->pid, "age", l->age);

	set(o, "element", m->element);
	set(o, "context", m->context);
	set(o, "instances", m->instances);
	set(o, "queue_depth", m->queue_depth);
	set(o, "awaiting", m->awaiting);
	set(o, "one_sided", m->one_sided);
	set(o, "out_unread", m->out_unread);
	set(o, "out_segments", m->out_segments);
	set(o, "in_unread", m->in_unread);
	set(o, "in_segments", m->in_segments);
	set(o, "out_permille", m->out_permille);
	set(o, "in_permille", m->in_permille);
	set(o, "echoes", m->echoes);
	set(o, "echo_ns", m->echo_ns);
	set(o, "echo_least_ns", m->echo_least_ns);
	set(o, "sent_messages", m->sent_messages);
	set(o, "sent_bytes", m->sent_bytes);
	set(o, "received_messages", m->received_messages);
	set(o, "received_bytes", m->received_bytes);
	set(o, "sent_rate", m->sent_rate);
	set(o, "sent_byte_rate", m->sent_byte_rate);
	set(o, "received_rate", m->received_rate);
	set(o, "received_byte_rate", m->received_byte_rate);
	set(o, "violations", m->violations);
	set(o, "misaddressed", m->misaddressed);
	json_object_set_new(o, "header", json_string(word_header(m->header)));
	json_object_set_new(o, "requests", by_protocol(m->requests));
	json_object_set_new(o, "request_bytes", by_protocol(m->request_bytes));
	json_object_set_new(o, "request_rate", by_protocol(m->request_rate));
	json_object_set_new(o, "request_byte_rate", by_protocol(m->request_byte_rate));
	json_object_set_new(o, "reasons", by_reason(m));
	set_movers(o, m);
	json_object_set_new(o, "timing", timings(m));
	json_object_set_new(o, "paths", paths(m));
	return o;
}

static json_t *means_object(const struct gathered *g)
{
	struct aggregate m;
	json_t *o, *latency = json_object(), *fabrics = json_object();

	means_of(g, &m);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		if (m.protocol[p].samples)
			json_object_set_new(latency, slmpm_protocol_name(p),
					    json_real(m.protocol[p].latency_ns));
	for (int f = 0; f < m.fabrics; f++) {
		json_t *one = json_object();

		set(one, "requests", m.fabric[f].requests);
		set(one, "bytes", m.fabric[f].bytes);
		json_object_set_new(fabrics, m.fabric[f].name, one);
	}
	o = json_pack("{si si sf sf sf so so}", "processes", m.processes, "links", m.links,
		      "out_permille", m.out_permille, "in_permille", m.in_permille, "echo_ns",
		      m.echo_ns, "latency_ns", latency, "fabrics", fabrics);
	set(o, "queue_depth", m.queue_depth);
	return o;
}

/* By protocol what was measured. */
static json_t *latencies(const uint32_t *ns)
{
	json_t *o = json_object();

	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		if (ns[p])
			set(o, slmpm_protocol_name(p), ns[p]);
	return o;
}

static json_t *job_fabrics(const struct slmpm_aggregate *m)
{
	json_t *all = json_object();

	for (int i = 0; i < SLMPM_AGGREGATE_FABRICS; i++) {
		const struct slmpm_aggregate_fabric *f = &m->fabrics[i];
		json_t *o = json_pack("{so}", "latency_ns", latencies(f->latency_ns));

		set(o, "requests", f->requests);
		set(o, "links", f->links);
		set(o, "queue_depth", f->queue_depth);
		set(o, "busy_links", f->busy_links);
		set(o, "out_permille", f->out_permille);
		set(o, "in_permille", f->in_permille);
		set(o, "echo_ns", f->echo_ns);
		if (f->name[0])
			json_object_set(all, f->name, o);
		json_decref(o);
	}
	return all;
}

static json_t *job_latencies(const struct slmpm_aggregate *m)
{
	json_t *all = json_object();

	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		json_t *o = json_object();

		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			if (m->latency_ns[p][s])
				set(o, word_class(s), m->latency_ns[p][s]);
		json_object_set_new(all, slmpm_protocol_name(p), o);
	}
	return all;
}

static json_t *job_object(const struct job *job)
{
	const struct slmpm_aggregate *m = &job->m;
	char number[24];
	json_t *o;

	snprintf(number, sizeof(number), "%012" PRIx64, m->job);
	o = json_pack("{ss si so so}", "job", number, "processes", job->processes, "latency_ns",
		      job_latencies(m), "fabrics", job_fabrics(m));
	set(o, "instances", m->instances);
	set(o, "jobs", m->jobs);
	set(o, "links", m->links);
	set(o, "queue_depth", m->queue_depth);
	set(o, "out_permille", m->out_permille);
	set(o, "in_permille", m->in_permille);
	return o;
}

static json_t *total_object(const struct total *total)
{
	const struct slmpm_totals *t = &total->t;
	json_t *o = json_pack("{si ss ss si}", "pid", total->pid, "program", total->program, "id",
			      t->id, "live", (int)t->live);

	for (size_t i = 0; i < total_figure_count; i++)
		set(o, total_figures[i].name, total_value(t, i));
	return o;
}

static json_t *totals_array(const struct gathered *g)
{
	json_t *all = json_array();

	for (size_t i = 0; i < g->total_count; i++)
		json_array_append_new(all, total_object(&g->totals[i]));
	return all;
}

static json_t *wait_object(const struct slmpm_stats_wait *w)
{
	json_t *o = json_pack("{ss sf}", "for", queue_subject(w), "seconds", queue_seconds(w));

	set(o, "channel", w->channel);
	set(o, "entry", w->entry);
	set(o, "subject", w->subject);
	set(o, "value", w->value);
	set(o, "total", w->total);
	return o;
}

static json_t *queue_object(const struct queue *queue)
{
	const struct slmpm_stats_queue *q = &queue->q;
	json_t *waits = json_array(), *links = json_array(), *o;

	for (uint32_t i = 0; i < q->wait_count; i++)
		json_array_append_new(waits, wait_object(&q->waits[i]));
	for (int i = 0; i < queue_links(q); i++)
		json_array_append_new(links, number(q->by_link[i]));
	o = json_pack("{si ss si si so so}", "pid", queue->pid, "program", queue->program,
		      "context", queue->context, "status", q->status, "waits", waits, "by_link",
		      links);
	set(o, "queue", q->queue);
	for (size_t i = 0; i < QUEUE_FIGURES; i++)
		set(o, queue_figures[i].name, queue_figure(q, i));
	set(o, "first_failed", q->first_failed);
	set(o, "waiting", q->waiting);
	return o;
}

static json_t *queues_array(const struct gathered *g)
{
	json_t *all = json_array();

	for (size_t i = 0; i < g->queue_count; i++)
		json_array_append_new(all, queue_object(&g->queues[i]));
	return all;
}

static json_t *operations_array(const struct slmpm_group_shown *g)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < g->operation_count; i++) {
		json_t *o = json_pack("{ss sf}", "kind", group_kind(g->operation[i].kind),
				      "seconds", group_seconds(g, g->operation[i].since_ns));

		set(o, "number", g->operation[i].number);
		if (g->operation[i].tag)
			set(o, "tag", g->operation[i].tag);
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *member_object(const struct slmpm_group_shown *g, const struct slmpm_shown_member *m)
{
	const char *state = group_member_state(m);
	json_t *o = json_pack("{si si sb}", "rank", (int)m->rank, "pid", m->pid, "awaited",
			      m->since_ns != 0);

	if (m->since_ns)
		json_object_set_new(o, "seconds", json_real(group_seconds(g, m->since_ns)));
	if (m->kind)
		json_object_set_new(o, "kind", json_string(group_kind(m->kind)));
	if (m->host[0])
		json_object_set_new(o, "host", json_string(m->host));
	json_object_set_new(o, "state", json_string(state ? state : "-"));
	set(o, "step", m->step);
	if (m->flags & SLMPM_SHOWN_WAITS) {
		set(o, "waits_in", m->present);
		set(o, "waits_for", m->length);
		return o;
	}
	set(o, "present", m->present);
	set(o, "length", m->length);
	return o;
}

static json_t *group_object(const struct group *group)
{
	const struct slmpm_group_shown *g = &group->g;
	const char *algorithm = slmpm_plan_algorithm(g->algorithm);
	json_t *members = json_array(), *o;

	for (uint32_t i = 0; i < g->member_count; i++)
		json_array_append_new(members, member_object(g, &g->member[i]));
	o = json_pack("{si ss si si si sb sf so so}", "pid", group->pid, "program", group->program,
		      "rank", g->rank, "status", g->status, "culprit", g->culprit, "apart",
		      g->apart != 0, "age", group_age(g), "operations", operations_array(g),
		      "members", members);
	set(o, "group", g->tag);
	set(o, "size", g->members);
	set(o, "begun", g->begun);
	set(o, "done", g->done);
	set(o, "generation", g->generation);
	set(o, "under_way", g->under_way);
	set(o, "waiting", g->waiting);
	json_object_set_new(o, "algorithm", json_string(algorithm ? algorithm : "-"));
	return o;
}

static json_t *groups_array(const struct gathered *g)
{
	json_t *all = json_array();

	for (size_t i = 0; i < g->group_count; i++)
		json_array_append_new(all, group_object(&g->groups[i]));
	return all;
}

int json_print(const struct gathered *g)
{
	json_t *links = json_array(), *jobs = json_array(), *all;
	int rc;

	for (size_t i = 0; i < g->count; i++)
		json_array_append_new(links, link_object(&g->links[i]));
	for (size_t i = 0; i < g->job_count; i++)
		json_array_append_new(jobs, job_object(&g->jobs[i]));
	all = json_pack("{so so so so so so}", "links", links, "mean", means_object(g), "jobs",
			jobs, "totals", totals_array(g), "queues", queues_array(g), "groups",
			groups_array(g));
	rc = all ? json_dumpf(all, stdout, JSON_INDENT(2)) : -1;
	putchar('\n');
	json_decref(all);
	return rc != 0;
}
