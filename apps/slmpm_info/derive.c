/* SPDX-License-Identifier: BSD-3-Clause */
/* Thresholds out of what was measured: for each, one rule that can be said in a sentence. */
#include <slmpm_plan.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/slmpm_info/calibrate.h"

#define WORTH_LEAVING 3.0  /* a fetched message may take so many times what packets take ... */
#define WORTH_ASKING  2.0  /* ... and a put by request what one by the engine takes */
#define NO_SLOWER     1.1  /* what the other side's engine may take of what the call takes */
#define WORTH_A_RING  0.95 /* what io_uring may take of the time of plain calls */
#define SIZE_TEXT     24

static uint64_t size_of(int i)
{
	return (uint64_t)TRIAL_LEAST << i;
}

static const char *text_of(uint64_t size, char text[SIZE_TEXT])
{
	if (size >= 1 << 20)
		snprintf(text, SIZE_TEXT, "%llu MiB", (unsigned long long)size >> 20);
	else
		snprintf(text, SIZE_TEXT, "%llu KiB", (unsigned long long)size >> 10);
	return text;
}

static double us(double ns)
{
	return ns / 1000;
}

static bool is_less(const struct figures *f, enum trial_of a, double factor, enum trial_of b, int i)
{
	return i >= TRIAL_SIZES ||
	       (f->ns[a][i] > 0 && f->ns[a][i] <= factor * f->ns[b][i] && f->ns[b][i] > 0);
}

/* The shortest size from FROM on where A takes at most FACTOR times what B takes, and the next one,
 * too, for chance wins once; TRIAL_SIZES: none. */
static int first_less(const struct figures *f, enum trial_of a, double factor, enum trial_of b,
		      int from)
{
	for (int i = from; i < TRIAL_SIZES; i++)
		if (is_less(f, a, factor, b, i) && is_less(f, a, factor, b, i + 1))
			return i;
	return TRIAL_SIZES;
}

__attribute__((format(printf, 4, 5))) static void found(struct threshold *t, bool size,
							uint64_t value, const char *format, ...)
{
	va_list args;

	t->found = true;
	t->size = size;
	t->value = value;
	va_start(args, format);
	vsnprintf(t->measured, sizeof(t->measured), format, args);
	va_end(args);
}

/* ---- one each ------------------------------------------------------------------------------- */

/* Shorter ones are not even tried, so the best case for fetching counts. */
static void fetch_min(const struct figures *f, int n, struct threshold *t)
{
	static const enum trial_of pairs[][2] = {
		{TRIAL_RGET, TRIAL_SMT},
		{TRIAL_RGET_STREAM, TRIAL_SMT_STREAM},
		{TRIAL_RGET_TOUCHED, TRIAL_SMT_TOUCHED},
	};
	static const char *const cases[] = {"", ", in a stream", ", just written and read"};
	int least = TRIAL_SIZES;
	char size[SIZE_TEXT];

	snprintf(t->measured, sizeof(t->measured),
		 "fetched messages have not been faster at any length");
	for (int p = 0; p < n; p++)
		for (int k = 0; k < 3; k++) {
			int i = first_less(&f[p], pairs[k][0], 1, pairs[k][1], 0);

			if (i >= least)
				continue;
			least = i;
			found(t, true, size_of(i), "%s fetched %.1f us, in packets %.1f us%s",
			      text_of(size_of(i), size), us(f[p].ns[pairs[k][0]][i]),
			      us(f[p].ns[pairs[k][1]][i]), cases[k]);
		}
}

static void least_of(const struct figures *f, int n, struct threshold *t, enum trial_of a,
		     double factor, enum trial_of b, int from, const char *format)
{
	int least = TRIAL_SIZES;
	char size[SIZE_TEXT];

	for (int p = 0; p < n; p++) {
		int i = first_less(&f[p], a, factor, b, from);

		if (i >= least)
			continue;
		least = i;
		t->found = t->size = true;
		t->value = size_of(i);
		snprintf(t->measured, sizeof(t->measured), format, text_of(size_of(i), size),
			 us(f[p].ns[a][i]), us(f[p].ns[b][i]));
	}
}

/* By the best placement, for what was found to be worse is still left to the moment. */
static void share_min(const struct figures *f, int n, struct threshold *t)
{
	snprintf(t->measured, sizeof(t->measured),
		 "puts copied by both sides have not been faster at any length");
	least_of(f, n, t, TRIAL_SHARED, 1, TRIAL_COPY, 3,
		 "a put of %s by both sides %.1f us, by the call %.1f us");
}

static void engine_min(const struct figures *f, int n, struct threshold *t)
{
	snprintf(
		t->measured, sizeof(t->measured),
		"leaving a put to the engine has taken the caller as long as copying at any length");
	least_of(f, n, t, TRIAL_HANDED, 0.5, TRIAL_COPY, 0,
		 "to leave a put of %s to the engine takes %.1f us, to copy it %.1f us");
}

/* By the worst placement: it is to be no slower wherever the two are. */
static void ask_min(const struct figures *f, int n, struct threshold *t)
{
	int least = 0, of = 0;
	char size[SIZE_TEXT];

	for (int p = 0; p < n; p++) {
		int i = first_less(&f[p], TRIAL_ASKED, NO_SLOWER, TRIAL_NOT_ASKED, 0);

		of = i > least ? p : of;
		least = i > least ? i : least;
	}
	snprintf(
		t->measured, sizeof(t->measured),
		"a put by the other side's engine has taken more than %.1f times as long at any length",
		NO_SLOWER);
	if (least == TRIAL_SIZES)
		return;
	found(t, true, (uint64_t)TRIAL_ASKED_LEAST << least,
	      "a put of %s by the other side's engine %.1f us, by the call %.1f us",
	      text_of((uint64_t)TRIAL_ASKED_LEAST << least, size), us(f[of].ns[TRIAL_ASKED][least]),
	      us(f[of].ns[TRIAL_NOT_ASKED][least]));
}

static void mode_bulk(const struct figures *f, int n, struct threshold *t)
{
	snprintf(t->measured, sizeof(t->measured),
		 "fetched messages have taken more than %.0f times as long at any length",
		 WORTH_LEAVING);
	least_of(f, n, t, TRIAL_RGET_STREAM, WORTH_LEAVING, TRIAL_SMT_STREAM, 0,
		 "past the ring a message of %s takes %.1f us, through it %.1f us");
}

/* ---- one after the other -------------------------------------------------------------------- */

static int place_of(const struct threshold *t)
{
	int i = 0;

	while (t->found && i < TRIAL_SIZES - 1 && size_of(i) < t->value)
		i++;
	return t->found ? i : TRIAL_SIZES;
}

/* Nor more than keeps the ring light, for otherwise it would go by that one alone. */
static void mode_small(const struct figures *f, double light, struct threshold *t)
{
	char size[SIZE_TEXT];
	int most = -1;

	for (int i = 0;
	     i < TRIAL_SIZES && is_less(f, TRIAL_REQUEST, WORTH_ASKING, TRIAL_ENGINE, i) &&
	     (double)size_of(i) <= light * f->ring_bytes / 100 * 1.1;
	     i++)
		most = i;
	if (most < 0)
		snprintf(t->measured, sizeof(t->measured),
			 "requests have taken more than %.0f times as long as the engine",
			 WORTH_ASKING);
	else
		found(t, true, size_of(most),
		      "a put of %s by request %.1f us, by the engine %.1f us; longer ones fill more "
		      "than the light part of the ring, or take more than %.0f times as long",
		      text_of(size_of(most), size), us(f->ns[TRIAL_REQUEST][most]),
		      us(f->ns[TRIAL_ENGINE][most]), WORTH_ASKING);
}

/* How many before it take as long as going past them costs. */
static uint64_t worth(double more, double each)
{
	return more > each && each > 0 ? (uint64_t)(more / each + 0.5) : 1;
}

static void mode_queue(const struct figures *f, const struct threshold *bulk, struct threshold *t)
{
	double more, each = f->ns[TRIAL_SMT_STREAM][0];
	int i = place_of(bulk);

	snprintf(t->measured, sizeof(t->measured), "nothing goes past the ring");
	if (i == TRIAL_SIZES)
		return;
	more = f->ns[TRIAL_RGET][i] - f->ns[TRIAL_SMT][i];
	found(t, false, worth(more, each),
	      "fetching costs %.1f us more than packets, a message of 4 KiB before it %.1f us",
	      us(more), us(each));
}

static void mode_dma(const struct figures *f, const struct threshold *engine, struct threshold *t)
{
	int i = place_of(engine);
	double by_ring, each;

	snprintf(t->measured, sizeof(t->measured), "nothing is left to the engine");
	if (i == TRIAL_SIZES)
		return;
	by_ring = f->ns[TRIAL_REQUEST][i];
	each = f->ns[TRIAL_ENGINE][i];
	found(t, false, worth(by_ring, each),
	      "a put by request %.1f us, each that the engine has before it %.1f us", us(by_ring),
	      us(each));
}

static void mode_ring(const struct figures *f, struct threshold *full, struct threshold *light)
{
	snprintf(full->measured, sizeof(full->measured), "the ring was not looked at");
	*light = (struct threshold){.name = light->name};
	memcpy(light->measured, full->measured, sizeof(light->measured));
	if (f->ring_most <= 0)
		return;
	found(full, false, (uint64_t)(f->ring_most + 100) / 2,
	      "up to %.0f percent seem unread though the reader keeps up; half of the way from there",
	      f->ring_most);
	found(light, false, (uint64_t)(f->ring_mean + 0.5),
	      "%.0f percent seem unread on the mean though the reader keeps up", f->ring_mean);
}

/* The mean, over all placements and sizes, of what messages take by WHICH over what they take by
 * plain calls: those that are waited for (0), or of a stream; 0: not measured. */
static double over_plain(const struct figures *f, int n, int which, int stream)
{
	double sum = 0;

	for (int p = 0; p < n; p++)
		for (int i = 0; i < TRIAL_SIZES; i++) {
			if (f[p].socket_ns[which][stream][i] <= 0 ||
			    f[p].socket_ns[SOCKETS_PLAIN][stream][i] <= 0)
				return 0;
			sum += f[p].socket_ns[which][stream][i] /
			       f[p].socket_ns[SOCKETS_PLAIN][stream][i];
		}
	return sum / (n * TRIAL_SIZES);
}

/* Each direction by itself. */
static void tcp_engine(const struct figures *f, int n, struct threshold *t)
{
	double ratio[2][2];
	int by_uring = SOCKETS_PLAIN;

	for (int way = 0; way < 2; way++) {
		for (int stream = 0; stream < 2; stream++)
			ratio[way][stream] = over_plain(f, n, SOCKETS_URING_RECV + way, stream);
		if (ratio[way][0] <= WORTH_A_RING && ratio[way][1] <= WORTH_A_RING)
			by_uring |= SOCKETS_URING_RECV + way;
	}
	snprintf(t->measured, sizeof(t->measured), "io_uring is refused here");
	if (ratio[0][0] <= 0 || ratio[0][1] <= 0 || ratio[1][0] <= 0 || ratio[1][1] <= 0)
		return;
	found(t, false, 0,
	      "receiving by io_uring, messages take %.2f of the time of plain calls, in a stream %.2f; "
	      "sending by it %.2f and %.2f",
	      ratio[0][0], ratio[0][1], ratio[1][0], ratio[1][1]);
	t->word = calibrate_sockets[by_uring];
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* The longest of a kind's vectors up to which the algorithm for short ones takes no more: the one
 * before that at which it takes longer, and at the next one, too. */
static int last_short(const double *brief, const double *lengthy)
{
	int i = 0;

	while (i < COLLECT_SIZES && (brief[i] <= lengthy[i] ||
				     (i + 1 < COLLECT_SIZES && brief[i + 1] <= lengthy[i + 1])))
		i++;
	return i - 1;
}

static void coll_short(const struct figures *f, int set, char *words, size_t size,
		       struct threshold *t)
{
	size_t n = 0;

	words[0] = 0;
	snprintf(t->measured, sizeof(t->measured), "collectives were not measured");
	for (uint32_t kind = 1; kind < COLLECT_KINDS; kind++) {
		const double *brief = f->collect_ns[set][kind];
		const double *lengthy = f->collect_ns[set + 1][kind];
		uint64_t bytes = (uint64_t)COLLECT_LEAST / 2;
		int i;

		if (brief[0] <= 0 || lengthy[0] <= 0)
			continue;
		i = last_short(brief, lengthy);
		bytes <<= i + 1;
		n += (size_t)snprintf(words + n, size - n, "%s%s:%llu%s", n ? "," : "",
				      slmpm_plan_kind(kind),
				      (unsigned long long)(bytes < 1024 ? bytes : bytes / 1024),
				      bytes < 1024 ? "" : "k");
		i = i + 1 < COLLECT_SIZES ? i + 1 : i;
		found(t, false, 0,
		      "4 processes over loopback; %s of %llu bytes: %.0f us as of short vectors, "
		      "%.0f us as of long ones, and so on",
		      slmpm_plan_kind(kind), (unsigned long long)COLLECT_LEAST << i, us(brief[i]),
		      us(lengthy[i]));
	}
	t->word = words;
}

void derive(const struct figures *shm, const struct figures *tcp, int n, struct threshold *t)
{
	static const char *const names[THRESHOLDS] = {
		"FETCH_MIN",  "SHARE_MIN",  "ENGINE_MIN",      "MODE_BULK",  "MODE_SMALL",
		"MODE_QUEUE", "MODE_DMA",   "MODE_RING",       "MODE_LIGHT", "TCP_ENGINE",
		"ASK_MIN",    "COLL_SHORT", "COLL_SHORT_RANK",
	};

	static char words[2][200];

	for (int i = 0; i < THRESHOLDS; i++)
		t[i] = (struct threshold){.name = names[i]};
	fetch_min(shm, n, &t[0]);
	share_min(shm, n, &t[1]);
	engine_min(shm, n, &t[2]);
	mode_bulk(shm, n, &t[3]);
	mode_queue(shm, &t[3], &t[5]);
	mode_dma(shm, &t[2], &t[6]);
	mode_ring(shm, &t[7], &t[8]);
	mode_small(shm, shm->ring_mean, &t[4]);
	tcp_engine(tcp, n, &t[9]);
	ask_min(shm, n, &t[10]);
	coll_short(tcp, COLLECT_SHORT, words[0], sizeof(words[0]), &t[11]);
	coll_short(tcp, COLLECT_RANKED_SHORT, words[1], sizeof(words[1]), &t[12]);
}
