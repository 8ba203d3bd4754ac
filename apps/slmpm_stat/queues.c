/* SPDX-License-Identifier: BSD-3-Clause */
/* The work queues of each process: a line a queue, and a line for each channel that waits. */
#include "apps/slmpm_stat/stat.h"

#include <stdlib.h>

#include "apps/lib/queues.h"

#define CONTEXTS_MAX 256 /* of a process */

static struct queue *queues_add(struct gathered *g)
{
	struct queue *more = realloc(g->queues, (g->queue_count + 1) * sizeof(*more));

	if (!more)
		return NULL;
	g->queues = more;
	return &more[g->queue_count++];
}

void gather_queues(struct gathered *g, int pid, const char *program)
{
	const struct slmpm_stats_page *page;
	struct queue next = {.pid = pid}, *to;

	snprintf(next.program, sizeof(next.program), "%s", program);
	for (int c = 0; c < CONTEXTS_MAX && slmpm_stats_attach(pid, c, &page) >= 0; c++) {
		next.context = c;
		for (uint32_t i = 0; i < page->queues; i++) {
			next.place = (int)i;
			if (slmpm_stats_queue(page, i, &next.q, sizeof(next.q)) == 1 &&
			    (to = queues_add(g)))
				*to = next;
		}
		slmpm_stats_detach(page);
	}
}

static void print_wait(FILE *to, const struct slmpm_stats_wait *w)
{
	fprintf(to,
		"        waits: channel %" PRIu32 ", entry %" PRIu64 ": %s %" PRIu64 " at %" PRIu64
		" of %" PRIu64 ", for %.3f s\n",
		w->channel, w->entry, queue_subject(w), w->subject, w->total, w->value,
		queue_seconds(w));
}

void queues_text(const struct gathered *g, FILE *to)
{
	if (g->queue_count)
		fprintf(to, "%7s %-15s %8s %9s %9s %9s %9s %9s %9s %7s\n", "PID", "PROGRAM",
			"WORK Q", "POSTED", "ENABLED", "BEGUN", "DONE", "FAILED", "BY ENGINE",
			"WAITING");
	for (size_t i = 0; i < g->queue_count; i++) {
		const struct queue *q = &g->queues[i];

		fprintf(to, "%7d %-15.15s %8" PRIu64, q->pid, q->program, q->q.queue);
		for (size_t k = 0; k < QUEUE_FIGURES; k++) {
			char text[16];

			fprintf(to, " %9s", word_amount(text, (double)queue_figure(&q->q, k)));
		}
		fprintf(to, " %7" PRIu32 "\n", q->q.waiting);
		if (q->q.status)
			fprintf(to,
				"        stopped at entry %" PRIu64 " of channel %" PRIu32 ": %s\n",
				q->q.first_failed, q->q.channel, slmpm_strerror(q->q.status));
		for (int k = 0; k < queue_links(&q->q); k++)
			fprintf(to, "        by link %d: %" PRIu64 " bytes\n", k, q->q.by_link[k]);
		for (uint32_t k = 0; k < q->q.wait_count; k++)
			print_wait(to, &q->q.waits[k]);
	}
}

/* Labels of queue Q: numbers that come again. */
static void print_labels(const struct queue *q)
{
	printf("{pid=\"%d\",context=\"%d\",queue=\"%d\"}", q->pid, q->context, q->place);
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP slmpm_work_queue_%s %s.\n# TYPE slmpm_work_queue_%s %s\n", name, help, name,
	       type);
}

void queues_prometheus(const struct gathered *g)
{
	for (size_t k = 0; k < QUEUE_FIGURES; k++) {
		char name[64];

		snprintf(name, sizeof(name), "%s_requests_total", queue_figures[k].name);
		print_head(name, "counter", queue_figures[k].help);
		for (size_t i = 0; i < g->queue_count; i++) {
			printf("slmpm_work_queue_%s", name);
			print_labels(&g->queues[i]);
			printf(" %" PRIu64 "\n", queue_figure(&g->queues[i].q, k));
		}
	}
	print_head("waiting_requests", "gauge", "Entries at which a channel stands and waits");
	for (size_t i = 0; i < g->queue_count; i++) {
		printf("slmpm_work_queue_waiting_requests");
		print_labels(&g->queues[i]);
		printf(" %" PRIu32 "\n", g->queues[i].q.waiting);
	}
	print_head("wait_seconds", "gauge", "How long the one that has waited longest has");
	for (size_t i = 0; i < g->queue_count; i++) {
		const struct slmpm_stats_queue *q = &g->queues[i].q;
		double longest = 0;

		for (uint32_t k = 0; k < q->wait_count; k++)
			if (queue_seconds(&q->waits[k]) > longest)
				longest = queue_seconds(&q->waits[k]);
		printf("slmpm_work_queue_wait_seconds");
		print_labels(&g->queues[i]);
		printf(" %.9g\n", longest);
	}
}
