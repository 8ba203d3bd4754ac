/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs written as graphs, for Graphviz. */
#include "slmpm/workqueue/dump.h"

static void graph_entry(struct dump *d, const struct work *w)
{
	dump_add(d, "\"");
	dump_handle(d, SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, " %llu\"", (unsigned long long)work_number(d->wq, w));
}

/* A total that entries wait for and move. */
static void graph_total(struct dump *d, const char *kind, uint32_t of, uint64_t id)
{
	dump_add(d, "\"%s ", kind);
	dump_handle(d, of, id);
	dump_add(d, "\"");
}

static void graph_named(struct dump *d, const struct slmpm_wr *wr)
{
	if (wr->ctr.id)
		graph_total(d, "counter", SLMPM_NAME_CTR, wr->ctr.id);
	else if (wr->cq.id)
		graph_total(d, "completions", SLMPM_NAME_CQ, wr->cq.id);
	else
		graph_total(d, "queue", SLMPM_NAME_WQ, wr->wq.id);
}

static void graph_edge(struct dump *d, const struct work *w)
{
	const struct slmpm_wr *wr = &w->wr;
	bool waits = wr->op == SLMPM_OP_WAIT, relative = wr->flags & SLMPM_RELATIVE;
	bool ends = !waits && wr->op != SLMPM_OP_ENABLE && wr->op != SLMPM_OP_COUNT;
	const char *index = waits && wr->wq.id ? text_choice(TEXT_INDEX, wr->index) : "";

	if (!(wr->ctr.id | wr->cq.id | wr->wq.id))
		return;
	dump_add(d, "\t");
	if (waits)
		graph_named(d, wr);
	else
		graph_entry(d, w);
	dump_add(d, " -> ");
	if (waits)
		graph_entry(d, w);
	else
		graph_named(d, wr);
	dump_add(d, " [style=dashed, label=\"%s%s%s%llu\"];\n", index, *index ? " " : "",
		 ends || relative ? "+" : "", ends ? 1 : (unsigned long long)wr->value);
}

/* Its completion moves a total, too: where that has a name. */
static void graph_completion(struct dump *d, const struct work *w)
{
	uint64_t id = handle_id(d->wq->queue);

	if (w->wr.flags & SLMPM_SILENT || !text_find_handle(&d->names, SLMPM_NAME_CQ, id))
		return;
	dump_add(d, "\t");
	graph_entry(d, w);
	dump_add(d, " -> ");
	graph_total(d, "completions", SLMPM_NAME_CQ, id);
	dump_add(d, " [style=dashed, label=\"+1\"];\n");
}

/* To the next of its channel. */
static void graph_next(struct dump *d, const struct work *w)
{
	if (!w->next)
		return;
	dump_add(d, "\t");
	graph_entry(d, w);
	dump_add(d, " -> ");
	graph_entry(d, w->next);
	dump_add(d, ";\n");
}

/* A managed queue's first from its total. */
static void graph_enabled(struct dump *d)
{
	if (!(d->wq->flags & SLMPM_WQ_MANAGED) || !d->count)
		return;
	dump_add(d, "\t");
	graph_total(d, "queue", SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, " -> ");
	graph_entry(d, d->entries[0]);
	dump_add(d, " [style=dotted];\n");
}

void dump_graph(struct dump *d)
{
	dump_add(d, "\tsubgraph \"cluster ");
	dump_handle(d, SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, "\" {\n\t\tlabel=\"");
	dump_handle(d, SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, "\";\n");
	for (uint32_t i = 0; i < d->count; i++) {
		dump_add(d, "\t\t");
		graph_entry(d, d->entries[i]);
		dump_add(d, " [shape=box, label=\"");
		dump_request(d, d->entries[i], "\\n");
		dump_add(d, "\"];\n");
	}
	dump_add(d, "\t}\n");
	graph_enabled(d);
	for (uint32_t i = 0; i < d->count; i++) {
		graph_next(d, d->entries[i]);
		graph_edge(d, d->entries[i]);
		graph_completion(d, d->entries[i]);
	}
}
