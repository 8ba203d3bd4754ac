/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges every cell that was asked for against its bar; what was not measured has not passed. */
#include <math.h>
#include <string.h>

#include "tests/bench/results.h"
#include "tests/bench/stats.h"

struct output {
	FILE *text, *table;
	int bars, passed, failed, missing;
};

struct row {
	const char *name, *cell;
	const char *against;   /* rival or unit */
	double ours, theirs;   /* medians; NAN: none */
	struct estimate value; /* what is compared with the bar */
	double bar;            /* NAN: none */
	double far_cpu;        /* the target's share of a CPU; NAN: not measured */
	int more, n, moved, lost;
};

/* Passed only when the whole interval is on the right side of the bar, and no sample was
 * refused. */
static const char *verdict(const struct row *r)
{
	if (isnan(r->bar))
		return "";
	if (!r->n)
		return "not measured";
	if (!r->lost && (r->more ? r->value.low >= r->bar : r->value.high <= r->bar))
		return "pass";
	return (r->more ? r->value.high < r->bar : r->value.low > r->bar) ? "FAIL" : "undecided";
}

static void count(struct output *o, const char *v)
{
	o->bars += *v != 0;
	o->passed += strcmp(v, "pass") == 0;
	o->failed += strcmp(v, "FAIL") == 0;
	o->missing += strcmp(v, "not measured") == 0;
}

static void put(struct output *o, const struct row *r)
{
	const char *v = verdict(r);
	char range[40] = "";

	count(o, v);
	if (r->value.low < r->value.high)
		snprintf(range, sizeof range, "%6.3f to %6.3f", r->value.low, r->value.high);
	fprintf(o->text, "%-16s %7s %9s %9s  %-22s %4d %7s  %16s  ", r->name, r->cell,
		figure(r->ours), figure(r->theirs), r->against, r->n,
		isnan(r->theirs) ? "" : figure3(r->value.mid), range);
	if (*v)
		fprintf(o->text, "%s %-5g %s", r->more ? ">=" : "<=", r->bar, v);
	if (r->far_cpu >= 0)
		fprintf(o->text, " (the target's processor %.0f %%)", 100 * r->far_cpu);
	if (r->moved)
		fprintf(o->text, " (%d moved)", r->moved);
	if (r->lost)
		fprintf(o->text, " (%d lost)", r->lost);
	fputc('\n', o->text);
	fprintf(o->table, "%s\t%s\t%s\t%d\t%g\t%g\t%g\t%g\t%g\t%g\t%s\t%g\n", r->name, r->cell,
		r->against, r->n, r->ours, r->theirs, r->value.mid, r->value.low, r->value.high,
		r->bar, v, r->far_cpu);
}

static struct estimate judge(enum metric m, const struct duel *d)
{
	switch (KIND[m].judgement) {
	case RATIO: return ratio(d->a.v, d->b.v, d->a.n);
	case DIFFERENCE: return difference(d->a.v, d->b.v, d->a.n);
	default: return central(d->a.v, d->a.n);
	}
}

static void duel_row(const struct results *r, enum metric m, int z, struct output *o)
{
	const struct duel *d = &r->duel[m][z];
	int paired = KIND[m].judgement <= DIFFERENCE && d->a.n;

	if (!d->a.n && !cell_has_bar(m, z))
		return;
	put(o, &(struct row){
		       .name = KIND[m].name,
		       .cell = cell_name(m, z),
		       .against = paired ? r->system[d->rival].name :
				  d->a.n ? KIND[m].unit :
					   "",
		       .ours = median(d->a.v, d->a.n),
		       .theirs = median(d->b.v, d->b.n),
		       .value = judge(m, d),
		       .bar = cell_has_bar(m, z) ? KIND[m].bar[z] : NAN,
		       .far_cpu = d->far_cpu.n ? median(d->far_cpu.v, d->far_cpu.n) : NAN,
		       .more = KIND[m].more,
		       .n = d->a.n,
		       .moved = d->moved,
		       .lost = d->lost,
	       });
}

static void hops_row(const struct results *r, int z, struct output *o)
{
	const struct series *h = &r->duel[LAT][z].hops;
	struct estimate e = typical(h->v, h->n);

	put(o, &(struct row){
		       .name = "hops",
		       .cell = cell_name(LAT, z),
		       .against = "",
		       .ours = e.mid,
		       .theirs = NAN,
		       .value = e,
		       .bar = HOPS_BAR[z],
		       .far_cpu = NAN,
		       .n = h->n,
	       });
}

/* The worst of all samples of a metric, whichever column it is in. */
static void worst_row(const struct results *r, enum metric m, struct output *o)
{
	double worst = 0;
	int n = 0, chosen = 0;

	for (int z = 0; z < SIZES; z++) {
		const struct series *s = &r->duel[m][z].a;

		chosen |= cell_chosen(m, z);
		for (int i = 0; i < s->n; i++)
			worst = s->v[i] > worst ? s->v[i] : worst;
		n += s->n;
	}
	if (chosen)
		put(o, &(struct row){
			       .name = KIND[m].name,
			       .cell = "worst",
			       .against = n ? KIND[m].unit : "",
			       .ours = n ? worst : NAN,
			       .theirs = NAN,
			       .value = {worst, worst, worst},
			       .bar = KIND[m].worst,
			       .far_cpu = NAN,
			       .n = n,
		       });
}

static void reads_row(const struct results *r, struct output *o)
{
	double reads = r->remote_reads;

	if (reads >= 0)
		put(o, &(struct row){
			       .name = "remote-reads",
			       .cell = "",
			       .against = "loads, runs below 64 KiB",
			       .ours = reads,
			       .theirs = NAN,
			       .value = {reads, reads, reads},
			       .bar = 0,
			       .far_cpu = NAN,
			       .n = 1,
		       });
}

static void all_rows(const struct results *r, struct output *o)
{
	for (int z = 0; z < SIZES; z++)
		if (HOPS_BAR[z] > 0 && cell_chosen(LAT, z))
			hops_row(r, z, o);
	for (int m = 0; m < METRICS; m++) {
		for (int z = 0; z < SIZES; z++)
			if (cell_chosen((enum metric)m, z))
				duel_row(r, (enum metric)m, z, o);
		if (KIND[m].worst > 0)
			worst_row(r, (enum metric)m, o);
	}
	reads_row(r, o);
}

static int takes_part(const struct results *r, const char *class)
{
	for (int i = 0; i < r->systems; i++)
		if (system_is(&r->system[i], class))
			return 1;
	return 0;
}

int report_verdicts(const struct results *r, const char *dir, FILE *to)
{
	struct output o = {.text = to, .table = results_file(dir, "ratios.tsv")};

	if (!o.table)
		return -1;
	fprintf(o.table,
		"metric\tsize\tpeer\tsamples\tours\ttheirs\tratio\tlow\thigh\tbar\tverdict\tfar_cpu\n");
	if (takes_part(r, "ours") || takes_part(r, "net-ours") || takes_part(r, "life")) {
		fprintf(to, "\nOurs against the best peer of each cell, sample by sample in turn;"
			    " below that what is ours alone.\n\n");
		fprintf(to, "%-16s %7s %9s %9s  %-22s %4s %7s  %16s  %s\n", "cell", "size", "ours",
			"peer", "which, or unit", "n", "ratio", "95 % interval", "bar");
		all_rows(r, &o);
		fprintf(to, "\n%d of %d bars passed, %d failed, %d undecided, %d not measured.\n",
			o.passed, o.bars, o.failed, o.bars - o.passed - o.failed - o.missing,
			o.missing);
	}
	fclose(o.table);
	return 0;
}
