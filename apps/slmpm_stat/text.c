/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain form: a line a link, a block of timings where that is asked for, what they come to. */
#include "apps/slmpm_stat/stat.h"

#include <inttypes.h>

static void print_link(const struct link *l)
{
	char sent[16], received[16], bytes_out[16], bytes_in[16], echo[16], age[16];
	const struct slmpm_monitor *m = &l->m;

	printf("%7d %-15.15s %-26.26s %-5.5s %-10s %6" PRIu64
	       " %5.1f %5.1f %8s %7s %7s %7s %7s %8s\n",
	       l->pid, l->program, m->name, m->link, word_state(m->state), m->queue_depth,
	       word_permille(m->out_unread, m->out_segments) / 10.0,
	       word_permille(m->in_unread, m->in_segments) / 10.0, word_time(echo, m->echo_ns),
	       word_amount(sent, (double)m->sent_rate),
	       word_amount(received, (double)m->received_rate),
	       word_amount(bytes_out, (double)m->sent_byte_rate),
	       word_amount(bytes_in, (double)m->received_byte_rate), word_time(age, l->age * 1e9));
}

/* Each of several links of the peer, by its number. */
static void print_paths(const struct slmpm_monitor *m)
{
	char echo[16];

	for (uint32_t i = 0; i < m->path_count; i++) {
		const struct slmpm_monitor_path *p = &m->paths[i];

		printf("%7s %-15s link %-2" PRIu32 "%-19s %-5.5s %-10s %6" PRIu64
		       " %5.1f %5.1f %8s\n",
		       "", "", i, p->used ? "in use" : "", p->link, word_path(p->state),
		       p->queue_depth, word_permille(p->out_unread, p->out_segments) / 10.0,
		       word_permille(p->in_unread, p->in_segments) / 10.0,
		       word_time(echo, p->echo_ns));
	}
}

static void print_timing(int p, int s, int w, const struct slmpm_timing *t)
{
	char samples[16], busy[16], latency[16], least[16];

	if (!t->samples)
		return;
	printf("        %-8s %5s %-6s %8s samples  call %8s  latency %8s  least %8s  %8.3g GB/s\n",
	       slmpm_protocol_name(p), word_class(s), w == SLMPM_WARM ? "warm" : "fresh",
	       word_amount(samples, (double)t->samples),
	       word_time(busy, (double)t->busy_ns / (double)t->samples),
	       word_time(latency, t->latency_ns), word_time(least, t->latency_least_ns),
	       t->busy_ns ? (double)t->bytes / (double)t->busy_ns : 0);
}

/* Who moved the bytes of puts and gets. */
static void print_movers(const struct slmpm_monitor *m)
{
	if (m->copied_puts | m->copied_gets)
		printf("        moved by calls: %" PRIu64 " puts, %" PRIu64 " bytes; %" PRIu64
		       " gets, %" PRIu64 "\n",
		       m->copied_puts, m->copied_put_bytes, m->copied_gets, m->copied_get_bytes);
	if (m->engine_out | m->engine_in)
		printf("        by the engine: %" PRIu64 " out, %" PRIu64 " bytes; %" PRIu64
		       " in, %" PRIu64 "; calls helped with %" PRIu64 ", %" PRIu64 "\n",
		       m->engine_out, m->engine_out_bytes, m->engine_in, m->engine_in_bytes,
		       m->helped_out_bytes, m->helped_in_bytes);
	if (m->asked | m->asked_here)
		printf("        by the peer's engine: %" PRIu64 ", %" PRIu64
		       " bytes; for the peer: %" PRIu64 ", %" PRIu64 "\n",
		       m->asked, m->asked_bytes, m->asked_here, m->asked_here_bytes);
}

static void print_more(const struct slmpm_monitor *m)
{
	char rate[16], bytes[16];

	printf("        sent %" PRIu64 " messages, %" PRIu64 " bytes; received %" PRIu64
	       ", %" PRIu64 "\n",
	       m->sent_messages, m->sent_bytes, m->received_messages, m->received_bytes);
	if (m->header || m->violations)
		printf("        header %s; refused %" PRIu64 " violations, %" PRIu64
		       " of them misaddressed\n",
		       word_header(m->header), m->violations, m->misaddressed);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		if (m->requests[p])
			printf("        by %-8s %" PRIu64 " requests, %" PRIu64
			       " bytes; %s, %s bytes a second\n",
			       slmpm_protocol_name(p), m->requests[p], m->request_bytes[p],
			       word_amount(rate, (double)m->request_rate[p]),
			       word_amount(bytes, (double)m->request_byte_rate[p]));
		for (int r = 0; r < SLMPM_REASONS; r++)
			if (m->reasons[p][r])
				printf("        by %-8s %" PRIu64 " chosen: %s\n",
				       slmpm_protocol_name(p), m->reasons[p][r],
				       slmpm_reason_name(r));
	}
	print_movers(m);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			for (int w = 0; w < SLMPM_WARMTH; w++)
				print_timing(p, s, w, &m->timing[p][s][w]);
}

static void print_means(const struct gathered *g)
{
	char text[16], bytes[16];
	struct aggregate m;

	means_of(g, &m);
	printf("%d process%s, %d link%s: %" PRIu64
	       " requests queued, rings out %.1f %%, in %.1f %%, "
	       "echo %s\n",
	       m.processes, m.processes == 1 ? "" : "es", m.links, m.links == 1 ? "" : "s",
	       m.queue_depth, m.out_permille / 10, m.in_permille / 10, word_time(text, m.echo_ns));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		if (m.protocol[p].samples)
			printf("  by %-8s latency %s\n", slmpm_protocol_name(p),
			       word_time(text, m.protocol[p].latency_ns));
	for (int f = 0; f < m.fabrics; f++)
		printf("  over %-6s %s requests, %s bytes\n", m.fabric[f].name,
		       word_amount(text, (double)m.fabric[f].requests),
		       word_amount(bytes, (double)m.fabric[f].bytes));
}

static void print_job_fabric(const struct slmpm_aggregate_fabric *f)
{
	char text[16];

	printf("  over %-6s %" PRIu64 " links, %s requests, rings out %.1f %%, in %.1f %%", f->name,
	       f->links, word_amount(text, (double)f->requests),
	       job_permille(f->out_permille) / 10.0, job_permille(f->in_permille) / 10.0);
	if (f->busy_links)
		printf(", %" PRIu64 " busy, %" PRIu64 " queued", f->busy_links, f->queue_depth);
	printf(", echo %s", word_time(text, f->echo_ns));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		if (f->latency_ns[p])
			printf(", %s %s", slmpm_protocol_name(p),
			       word_time(text, f->latency_ns[p]));
	putchar('\n');
}

static void print_job(const struct job *job)
{
	const struct slmpm_aggregate *m = &job->m;
	char text[16];

	printf("job %012" PRIx64 ": %" PRIu32 " instance%s of %" PRIu32 " job%s, %" PRIu64
	       " link%s: %" PRIu64 " requests queued, rings out %.1f %%, in %.1f %%\n",
	       m->job, m->instances, m->instances == 1 ? "" : "s", m->jobs, m->jobs == 1 ? "" : "s",
	       m->links, m->links == 1 ? "" : "s", m->queue_depth,
	       job_permille(m->out_permille) / 10.0, job_permille(m->in_permille) / 10.0);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		bool any = false;

		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
			if (!m->latency_ns[p][s])
				continue;
			if (!any)
				printf("  by %-8s", slmpm_protocol_name(p));
			printf(" %s: %s ", word_class(s), word_time(text, m->latency_ns[p][s]));
			any = true;
		}
		if (any)
			putchar('\n');
	}
	for (int f = 0; f < SLMPM_AGGREGATE_FABRICS; f++)
		if (m->fabrics[f].name[0])
			print_job_fabric(&m->fabrics[f]);
}

void text_print(const struct gathered *g, bool detailed)
{
	printf("%7s %-15s %-26s %-5s %-10s %6s %5s %5s %8s %7s %7s %7s %7s %8s\n", "PID", "PROGRAM",
	       "PEER", "LINK", "STATE", "QUEUE", "OUT%", "IN%", "ECHO", "OUT/s", "IN/s", "OUTB/s",
	       "INB/s", "AGE");
	for (size_t i = 0; i < g->count; i++) {
		print_link(&g->links[i]);
		print_paths(&g->links[i].m);
		if (detailed)
			print_more(&g->links[i].m);
	}
	print_means(g);
	queues_text(g, stdout);
	groups_text(g, stdout);
	for (size_t i = 0; i < g->job_count; i++)
		print_job(&g->jobs[i]);
}
