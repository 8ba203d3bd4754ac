/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a run found: a row a system, a verdict a cell. */
#include "tests/bench/results.h"

#include <math.h>
#include <string.h>

#include "tests/bench/stats.h"

static const char *figure(double v)
{
	static char text[8][32];
	static unsigned turn;
	char *t = text[turn++ % 8];
	int digits = v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;

	if (isnan(v))
		return "-";
	snprintf(t, sizeof text[0], "%.*f", digits, v);
	return t;
}

static double first_median(const struct results *r, int system, enum metric m, int size)
{
	const struct series *s = &r->first[system][m][size];

	return s->n ? median(s->v, s->n) : NAN;
}

int results_best(const struct results *r, enum metric m, int size, const char *class)
{
	int best = -1;

	for (int i = 0; i < r->systems; i++) {
		double v = first_median(r, i, m, size), b;

		if (isnan(v) || !system_is(&r->system[i], class))
			continue;
		b = best < 0 ? NAN : first_median(r, best, m, size);
		if (best < 0 || (KIND[m].more ? v > b : v < b))
			best = i;
	}
	return best;
}

static int measured(const struct results *r, int system, enum metric m)
{
	for (int z = 0; z < SIZES; z++)
		if (r->first[system][m][z].n)
			return 1;
	return 0;
}

static void metric_table(const struct results *r, enum metric m, FILE *to)
{
	int any = 0;

	for (int i = 0; i < r->systems; i++)
		any |= measured(r, i, m);
	if (!any)
		return;
	fprintf(to, "\n%-22s", "");
	for (int z = 0; z < SIZES; z++)
		fprintf(to, "%9s", size_name(z));
	fprintf(to, "   %s, %s\n", KIND[m].title, KIND[m].unit);
	for (int i = 0; i < r->systems; i++) {
		if (!measured(r, i, m))
			continue;
		fprintf(to, "%-22s", r->system[i].name);
		for (int z = 0; z < SIZES; z++)
			fprintf(to, "%9s", figure(first_median(r, i, m, z)));
		fputc('\n', to);
	}
}

void report_systems(const struct results *r, FILE *to)
{
	const struct series *l = &r->line_ns;

	fprintf(to, "\nEvery system in one run, medians; ours first, the bare copies last.\n");
	for (int m = 0; m < METRICS; m++)
		metric_table(r, (enum metric)m, to);
	if (l->n) {
		struct estimate e = typical(l->v, l->n);

		fprintf(to, "\nA cache line one way: %.1f ns (%.1f to %.1f).\n", e.mid, e.low,
			e.high);
	}
}

/* Passed only when the whole interval is on the right side of the bar. */
static const char *verdict(struct estimate e, double bar, int more)
{
	if (bar == 0)
		return "";
	if (more ? e.low >= bar : e.high <= bar)
		return "pass";
	return (more ? e.high < bar : e.low > bar) ? "FAIL" : "undecided";
}

struct tally {
	int bars, passed;
};

static void count(struct tally *t, const char *v)
{
	t->bars += *v != 0;
	t->passed += strcmp(v, "pass") == 0;
}

static void duel_row(const struct results *r, enum metric m, int z, FILE *to, struct tally *t)
{
	const struct duel *d = &r->duel[m][z];
	double bar = KIND[m].bar[z];
	struct estimate e;
	const char *v;

	if (!d->a.n)
		return;
	e = ratio(d->a.v, d->b.v, d->a.n);
	v = verdict(e, bar, KIND[m].more);
	count(t, v);
	fprintf(to, "%-14s %5s %9s %9s  %-22s %4d %7.3f  %6.3f to %6.3f  ", KIND[m].name,
		size_name(z), figure(median(d->a.v, d->a.n)), figure(median(d->b.v, d->b.n)),
		r->system[d->rival].name, d->a.n, e.mid, e.low, e.high);
	if (bar > 0)
		fprintf(to, "%s %-5g %s", KIND[m].more ? ">=" : "<=", bar, v);
	if (d->moved)
		fprintf(to, " (%d moved)", d->moved);
	fputc('\n', to);
}

static void hops_row(const struct results *r, int z, FILE *to, struct tally *t)
{
	const struct series *h = &r->duel[LAT][z].hops;
	struct estimate e;
	const char *v;

	if (!h->n || HOPS_BAR[z] == 0)
		return;
	e = typical(h->v, h->n);
	v = verdict(e, HOPS_BAR[z], 0);
	count(t, v);
	fprintf(to, "%-14s %5s %9s %9s  %-22s %4d %7s  %6.3f to %6.3f  <= %-5g %s\n", "hops",
		size_name(z), figure(e.mid), "", "", h->n, "", e.low, e.high, HOPS_BAR[z], v);
}

void report_duels(const struct results *r, FILE *to)
{
	struct tally t = {0, 0};

	fprintf(to, "\nOurs against the best peer of each cell, sample by sample in turn.\n\n");
	fprintf(to, "%-14s %5s %9s %9s  %-22s %4s %7s  %16s  %s\n", "cell", "size", "ours", "peer",
		"which", "n", "ratio", "95 % interval", "bar");
	for (int z = 0; z < SIZES; z++)
		hops_row(r, z, to, &t);
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES; z++)
			duel_row(r, (enum metric)m, z, to, &t);
	if (r->remote_reads >= 0)
		fprintf(to, "%-14s %5s %9g%62s<= 0     %s\n", "remote reads", "", r->remote_reads,
			"", r->remote_reads > 0 ? "FAIL" : "pass");
	fprintf(to, "\n%d of %d bars passed.\n", t.passed, t.bars);
}

/* One block for each system, its name first: what gnuplot calls an index. */
static void plot_data(const struct results *r, enum metric m, FILE *to)
{
	for (int i = 0; i < r->systems; i++) {
		if (!measured(r, i, m))
			continue;
		fprintf(to, "\"%s\" x\n", r->system[i].name);
		for (int z = 0; z < SIZES; z++)
			if (r->first[i][m][z].n)
				fprintf(to, "%zu\t%g\n", SIZE[z], first_median(r, i, m, z));
		fprintf(to, "\n\n");
	}
}

static void tables(const struct results *r, FILE *table, FILE *ratios)
{
	fprintf(table, "metric\tsize\tsystem\tsamples\tmedian\n");
	fprintf(ratios,
		"metric\tsize\tpeer\tsamples\tours\ttheirs\tratio\tlow\thigh\tbar\tverdict\n");
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES; z++) {
			const struct duel *d = &r->duel[m][z];
			struct estimate e;

			for (int i = 0; i < r->systems; i++)
				if (r->first[i][m][z].n)
					fprintf(table, "%s\t%zu\t%s\t%d\t%g\n", KIND[m].name,
						SIZE[z], r->system[i].name, r->first[i][m][z].n,
						first_median(r, i, (enum metric)m, z));
			if (!d->a.n)
				continue;
			e = ratio(d->a.v, d->b.v, d->a.n);
			fprintf(ratios, "%s\t%zu\t%s\t%d\t%g\t%g\t%g\t%g\t%g\t%g\t%s\n",
				KIND[m].name, SIZE[z], r->system[d->rival].name, d->a.n,
				median(d->a.v, d->a.n), median(d->b.v, d->b.n), e.mid, e.low,
				e.high, KIND[m].bar[z], verdict(e, KIND[m].bar[z], KIND[m].more));
		}
}

static FILE *file_in(const char *dir, const char *name, const char *suffix)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s%s", dir, name, suffix);
	return fopen(path, "w");
}

int report_files(const struct results *r, const char *dir)
{
	FILE *table = file_in(dir, "table", ".tsv"), *ratios = file_in(dir, "ratios", ".tsv");
	int rv = table && ratios ? 0 : -1;

	if (rv == 0)
		tables(r, table, ratios);
	if (table)
		fclose(table);
	if (ratios)
		fclose(ratios);
	for (int m = LAT; m <= LOAN; m++) {
		FILE *f = file_in(dir, KIND[m].name, ".dat");

		if (!f)
			return -1;
		plot_data(r, (enum metric)m, f);
		fclose(f);
	}
	return rv;
}
