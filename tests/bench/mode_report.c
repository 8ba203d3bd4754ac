/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges the library's choice: nowhere far behind the best fixed mode, and ahead of each
 * somewhere. */
#include <math.h>
#include <string.h>

#include "tests/bench/modes.h"
#include "tests/bench/results.h"
#include "tests/bench/stats.h"

#define WITHIN       0.95 /* of the best fixed mode */
#define SETTLED_FROM 8    /* generations */
#define LOST_MOST    3    /* samples */

static const char *const GROUP[GROUPS] = {
	[PROTOCOLS] = "one link",
	[LINKS] = "two links",
	[ENGINE] = "with an engine",
};

/* How much more the choice does. */
static struct estimate gain(const struct contest *c)
{
	struct estimate e = middle(c->gain, c->n);

	return (struct estimate){exp(e.mid), exp(e.low), exp(e.high)};
}

static int is_fixed(int m)
{
	return m && MODE[m - 1].group == MODE[m].group && !MODE[m].twin;
}

/* ---- within reach of the best ---------------------------------------------------------------- */

enum verdict { PASSED, UNDECIDED, FAILED, VERDICTS };

static const char *const VERDICT[VERDICTS] = {"pass", "undecided", "FAIL"};

static enum verdict judge(const struct contest *c)
{
	struct estimate e = gain(c);

	if (e.high < WITHIN)
		return FAILED;
	return c->lost || !(e.low >= WITHIN) ? UNDECIDED : PASSED;
}

/* Looked at again and again: so by a wider interval than a verdict. */
bool modes_settled(const struct contest *c)
{
	struct estimate e;

	if (c->lost || c->n < SETTLED_FROM)
		return c->lost > LOST_MOST;
	e = middle_surely(c->gain, c->n);
	return exp(e.low) >= WITHIN || exp(e.high) < WITHIN;
}

/* The fixed mode that comes off best, or -1. */
static int best_of(const struct comparison *c, int l)
{
	int best = -1;

	for (int m = 0; m < MODES; m++)
		if (is_fixed(m) && c->of[l][m].n &&
		    (best < 0 || gain(&c->of[l][m]).mid < gain(&c->of[l][best]).mid))
			best = m;
	return best;
}

static void cell(const struct contest *c, FILE *to)
{
	struct estimate e = gain(c);

	if (!c->n)
		fprintf(to, " |");
	else if (e.mid >= 10)
		fprintf(to, " %.0f |", e.mid);
	else
		fprintf(to, " %.2f (%.2f-%.2f)%s |", e.mid, e.low, e.high,
			c->lost ? ", some lost" : "");
}

/* The choice beside itself: only where that was asked for. */
static bool is_shown(const struct comparison *c, enum group g, int m)
{
	for (int l = 0; l < LOADS && MODE[m].twin; l++)
		if (MODE[m].group == g && c->of[l][m].n)
			return true;
	return MODE[m].group == g && is_fixed(m);
}

static enum verdict row(const struct comparison *c, int l, enum group g, FILE *to)
{
	enum verdict worst = PASSED, one;
	int best = best_of(c, l);
	const struct load *load = &LOAD[l];
	double own;

	if (best < 0)
		return UNDECIDED;
	own = median(c->of[l][best].own, c->of[l][best].n);
	if (load->time)
		fprintf(to, "| %s | %s us |", load->name, figure(own));
	else if (load->size < 1024)
		fprintf(to, "| %s | %s M/s |", load->name, figure(own));
	else
		fprintf(to, "| %s | %s GB/s |", load->name, figure(own * (double)load->size / 1e3));
	for (int m = 0; m < MODES; m++) {
		if (!is_shown(c, g, m))
			continue;
		cell(&c->of[l][m], to);
		if (MODE[m].twin)
			continue;
		one = c->of[l][m].n ? judge(&c->of[l][m]) : PASSED;
		worst = one > worst ? one : worst;
	}
	fprintf(to, " %s | %s |\n", MODE[best].name, VERDICT[worst]);
	return worst;
}

static void heading(const struct comparison *c, enum group g, FILE *to)
{
	fprintf(to, "\n| %s | auto |", GROUP[g]);
	for (int m = 0; m < MODES; m++)
		if (is_shown(c, g, m))
			fprintf(to, " over %s |", MODE[m].name);
	fprintf(to, " best | within 5 %% |\n| --- | --: |");
	for (int m = 0; m < MODES; m++)
		if (is_shown(c, g, m))
			fprintf(to, " --: |");
	fprintf(to, " --- | --- |\n");
}

static int is_measured(const struct comparison *c, enum group g)
{
	for (int l = 0; l < LOADS; l++)
		if (LOAD[l].group == g && best_of(c, l) >= 0)
			return 1;
	return 0;
}

/* ---- ahead of each --------------------------------------------------------------------------- */

static void ahead(const struct comparison *c, int m, FILE *to)
{
	struct estimate e, most = {0, 0, 0};
	int at = -1;

	for (int l = 0; l < LOADS; l++) {
		if (!c->of[l][m].n)
			continue;
		e = gain(&c->of[l][m]);
		if (at < 0 || e.low > most.low) {
			most = e;
			at = l;
		}
	}
	if (at >= 0)
		fprintf(to, "* %s of %s (`%s`): %.2f (%.2f-%.2f) under \"%s\"\n",
			most.low > 1 ? "ahead" : "NOT ahead", MODE[m].name, MODE[m].settings,
			most.mid, most.low, most.high, LOAD[at].name);
}

/* ---- the report ------------------------------------------------------------------------------ */

static void numbers(const struct comparison *c, FILE *table)
{
	fprintf(table, "group\tload\tmode\tn\town\tfixed\tgain\tlow\thigh\tlost\n");
	for (int l = 0; l < LOADS; l++)
		for (int m = 0; m < MODES; m++) {
			const struct contest *x = &c->of[l][m];
			struct estimate e = gain(x);

			if (x->n)
				fprintf(table, "%s\t%s\t%s\t%d\t%g\t%g\t%.4f\t%.4f\t%.4f\t%d\n",
					GROUP[LOAD[l].group], LOAD[l].name, MODE[m].name, x->n,
					median(x->own, x->n), median(x->fixed, x->n), e.mid, e.low,
					e.high, x->lost);
		}
}

void modes_report(const struct comparison *c, FILE *to, FILE *table)
{
	int verdicts[VERDICTS] = {0};

	for (int g = 0; g < GROUPS; g++) {
		if (!is_measured(c, (enum group)g))
			continue;
		heading(c, (enum group)g, to);
		for (int l = 0; l < LOADS; l++)
			if (LOAD[l].group == (enum group)g && best_of(c, l) >= 0)
				verdicts[row(c, l, (enum group)g, to)]++;
	}
	fprintf(to, "\n%d loads passed, %d undecided, %d failed.\n\n", verdicts[PASSED],
		verdicts[UNDECIDED], verdicts[FAILED]);
	for (int m = 0; m < MODES; m++)
		if (is_fixed(m))
			ahead(c, m, to);
	numbers(c, table);
}
