/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders and answers of one system: words, counts, readings. */
#include "tests/bench/system.h"

#include <stdio.h>
#include <string.h>

#define START_MS  30000
#define ANSWER_MS 30000
#define EACH_MOST 10000 /* messages timed one by one in a sample */

int systems_read(const char *path, struct system *s)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	int n = 0;

	if (!f)
		return -1;
	while (n < SYSTEMS && fgets(line, sizeof line, f)) {
		s[n] = (struct system){0};
		if (sscanf(line, "%63[^\t]\t%31[^\t]\t%511[^\n]", s[n].classes, s[n].name,
			   s[n].command) == 3)
			n++;
	}
	fclose(f);
	return n;
}

int system_is(const struct system *s, const char *class)
{
	size_t len = strlen(class);

	for (const char *p = s->classes; (p = strstr(p, class)); p += len)
		if ((p == s->classes || p[-1] == ',') && (p[len] == ',' || p[len] == 0))
			return 1;
	return 0;
}

static int stands(const struct system *s, enum metric m, int size)
{
	const struct metric_kind *k = &KIND[m];
	const char *rival = cell_rival(m, size);

	return system_is(s, k->ours) || (rival && system_is(s, rival)) ||
	       (k->shown && system_is(s, k->shown));
}

int system_is_wanted(const struct system *s)
{
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES; z++)
			if (cell_chosen((enum metric)m, z) && stands(s, (enum metric)m, z))
				return 1;
	return 0;
}

int system_plays(const struct system *s, enum metric m, int size)
{
	return s->child.pid && !s->refused[m][size] && stands(s, m, size);
}

static void drop(struct system *s, const char *why)
{
	printf("skipped from here on: %s %s (see log.txt)\n", s->name, why);
	fflush(stdout);
	child_stop(&s->child);
}

int system_start(struct system *s, int log)
{
	const char *why = "cannot be started";

	if (child_start(&s->child, s->command, log) == 0 &&
	    child_ask(&s->child, "copy_bw 64 1\n", START_MS, &why))
		return 0;
	drop(s, why);
	return -1;
}

/* Bars and tables are in MB/s. */
static double figure_of(const char *key, const char *answer)
{
	double value = answer_number(answer, key);

	return strcmp(key, "bytes_per_s") == 0 ? value / 1e6 : value;
}

static void order_of(const struct system *s, enum metric m, int size, uint64_t count, char *text)
{
	const struct metric_kind *k = &KIND[m];
	int ours = system_is(s, k->ours) || system_is(s, "unchecked");

	if (k->column_order[size])
		snprintf(text, ORDER_ROOM, "%s %s\n", k->order, k->column_order[size]);
	else
		snprintf(text, ORDER_ROOM, "%s %s %llu%s%s\n",
			 k->rival_order && !system_is(s, k->ours) ? k->rival_order : k->order,
			 cell_word(m, size), (unsigned long long)count, k->options,
			 ours && SIZE[size] <= (size_t)k->at_once ? " burst 32" : "");
}

/* ---- answers that serve several cells ---- */

static const char *kept_answer(const struct system *s, const char *order)
{
	for (int i = 0; i < s->kept_count; i++)
		if (strcmp(s->kept[i].order, order) == 0)
			return s->kept[i].answer;
	return NULL;
}

static void keep(struct system *s, const char *order, const char *answer)
{
	struct kept *k = &s->kept[s->kept_count];

	if (s->kept_count == KEPT)
		return;
	s->kept_count++;
	snprintf(k->order, sizeof k->order, "%s", order);
	snprintf(k->answer, sizeof k->answer, "%s", answer);
}

int system_keeps(const struct system *s, enum metric m, int size)
{
	char order[ORDER_ROOM];

	order_of(s, m, size, 0, order);
	return kept_answer(s, order) != NULL;
}

void system_forget(struct system *s)
{
	s->kept_count = 0;
}

int system_tell(struct system *s, enum metric m, int size)
{
	char order[ORDER_ROOM];

	order_of(s, m, size, 0, order);
	return child_tell(&s->child, order);
}

int system_hear(struct system *s, enum metric m, int size)
{
	char order[ORDER_ROOM];
	const char *why, *answer = child_hear(&s->child, ANSWER_MS, &why);

	if (!answer) {
		drop(s, why);
		return -1;
	}
	order_of(s, m, size, 0, order);
	keep(s, order, answer);
	return 0;
}

static int ask(struct system *s, enum metric m, int size, uint64_t count, struct reading *r)
{
	const struct metric_kind *k = &KIND[m];
	char order[ORDER_ROOM];
	const char *answer, *why;

	order_of(s, m, size, count, order);
	answer = cell_shares(m, size) ? kept_answer(s, order) : NULL;
	if (!answer) {
		answer = child_ask(&s->child, order, ANSWER_MS, &why);
		if (!answer) {
			drop(s, why);
			return -1;
		}
		if (cell_shares(m, size))
			keep(s, order, answer);
	}
	r->value = figure_of(cell_key(m, size), answer);
	r->line_ns = answer_number(answer, "line_ns");
	r->hops = answer_number(answer, "hops");
	r->remote_reads = answer_number(answer, "remote_reads");
	r->far_cpu = answer_number(answer, "far_cpu");
	if (r->value > 0 || (r->value == 0 && k->judgement == ONCE))
		return 0;
	printf("skipped: %s, %s: %s answers %s\n", s->name, k->name, k->order, answer);
	s->refused[m][size] = 1;
	return -1;
}

/* So many messages that they last sample_ms, going by a first small sample. */
static int settle(struct system *s, enum metric m, int size, double sample_ms)
{
	const struct metric_kind *k = &KIND[m];
	uint64_t few = SIZE[size] > (size_t)1 << 20 ? 4 : SIZE[size] > 16384 ? 16 : 128;
	int large = SIZE[size] > (size_t)1 << 20;
	double each_us, want, least = (k->more ? 64 : 16) / (large ? 4 : 1), most = 1e7;
	struct reading r;

	if (k->count || k->column_order[size]) {
		s->count[m][size] = k->count ? (uint64_t)k->count : 1;
		return 0;
	}
	if (ask(s, m, size, few, &r))
		return -1;
	each_us = k->more ? (double)SIZE[size] / r.value : 2 * r.value;
	want = sample_ms * 1e3 / each_us;
	if (m == P99) {
		least = 200; /* below that a percentile says nothing */
		most = EACH_MOST;
	}
	s->count[m][size] = (uint64_t)(want < least ? least : want > most ? most : want);
	return 0;
}

int system_sample(struct system *s, enum metric m, int size, double sample_ms, struct reading *r)
{
	if (!system_plays(s, m, size) || (!s->count[m][size] && settle(s, m, size, sample_ms)))
		return -1;
	return ask(s, m, size, s->count[m][size], r);
}

int system_sample_long(struct system *s, enum metric m, int size, int ms, struct reading *r)
{
	return system_plays(s, m, size) ? ask(s, m, size, (uint64_t)ms, r) : -1;
}
