/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what each system reached: a row a system, a table a metric. */
#include "tests/bench/results.h"

#include <math.h>
#include <string.h>

#include "tests/bench/stats.h"

static char *text(void)
{
	static char texts[8][32];
	static unsigned turn;

	return texts[turn++ % 8];
}

const char *figure(double v)
{
	int digits = v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;
	char *t = text();

	if (isnan(v))
		return "-";
	snprintf(t, 32, "%.*f", v == 0 ? 0 : digits, v);
	return t;
}

const char *figure3(double v)
{
	char *t = text();

	snprintf(t, 32, "%.3f", v);
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
		if (cell_exists(m, z))
			fprintf(to, "%9s", cell_name(m, z));
	fprintf(to, "   %s, %s\n", KIND[m].title, KIND[m].unit);
	for (int i = 0; i < r->systems; i++) {
		if (!measured(r, i, m))
			continue;
		fprintf(to, "%-22s", r->system[i].name);
		for (int z = 0; z < SIZES; z++)
			if (cell_exists(m, z))
				fprintf(to, "%9s", figure(first_median(r, i, m, z)));
		fputc('\n', to);
	}
}

void report_systems(const struct results *r, FILE *to)
{
	const struct series *l = &r->line_ns;

	fprintf(to, "\nEvery system in one run, medians; ours first.\n");
	for (int m = 0; m < METRICS; m++)
		metric_table(r, (enum metric)m, to);
	if (l->n) {
		struct estimate e = typical(l->v, l->n);

		fprintf(to, "\nA cache line one way: %.1f ns (%.1f to %.1f).\n", e.mid, e.low,
			e.high);
	}
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

/* A picture of what comes after a pause: the columns of its first message and, in a row, of the
 * others. */
struct pause {
	const char *name;
	enum metric first;
	int lone;
	enum metric others;
	int ten;
};

static void table(const struct results *r, FILE *to)
{
	fprintf(to, "metric\tsize\tsystem\tsamples\tmedian\n");
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES; z++)
			for (int i = 0; i < r->systems; i++)
				if (r->first[i][m][z].n)
					fprintf(to, "%s\t%s\t%s\t%d\t%g\n", KIND[m].name,
						cell_word((enum metric)m, z), r->system[i].name,
						r->first[i][m][z].n,
						first_median(r, i, (enum metric)m, z));
}

/* A block for each system: the first message of a burst, and the mean to the 10th, the 100th and
 * the 1000th. */
static void pause_data(const struct results *r, const struct pause *p, FILE *to)
{
	for (int i = 0; i < r->systems; i++) {
		if (!r->first[i][p->first][p->lone].n)
			continue;
		fprintf(to, "\"%s\" x\n1\t%g\n", r->system[i].name,
			first_median(r, i, p->first, p->lone));
		for (int k = 0, x = 10; k < 3; k++, x *= 10)
			fprintf(to, "%d\t%g\n", x, first_median(r, i, p->others, p->ten + k));
		fprintf(to, "\n\n");
	}
}

static int pause_files(const struct results *r, const char *dir)
{
	static const struct pause pauses[] = {
		{"pause-lat-1ms.dat", PAUSE_FIRST, 2, PAUSE_LAT, 0},
		{"pause-lat-10ms.dat", PAUSE_FIRST, 6, PAUSE_LAT, 3},
		{"pause-lat-1s.dat", PAUSE_FIRST, 8, PAUSE_LAT, 6},
		{"pause-rate-1ms.dat", RATE_FIRST, 0, PAUSE_RATE, 0},
		{"pause-rate-10ms.dat", RATE_FIRST, 1, PAUSE_RATE, 3},
		{"pause-rate-1s.dat", RATE_FIRST, 2, PAUSE_RATE, 6},
	};

	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		FILE *f = results_file(dir, pauses[i].name);

		if (!f)
			return -1;
		pause_data(r, &pauses[i], f);
		fclose(f);
	}
	return 0;
}

FILE *results_file(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return fopen(path, "we");
}

int report_files(const struct results *r, const char *dir)
{
	FILE *f = results_file(dir, "table.tsv");
	char name[32];

	if (!f)
		return -1;
	table(r, f);
	fclose(f);
	for (int m = 0; m < METRICS; m++) {
		if (KIND[m].judgement != RATIO || KIND[m].column[0])
			continue;
		snprintf(name, sizeof name, "%s.dat", KIND[m].name);
		f = results_file(dir, name);
		if (!f)
			return -1;
		plot_data(r, (enum metric)m, f);
		fclose(f);
	}
	return pause_files(r, dir);
}
