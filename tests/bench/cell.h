/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured: the metrics, the sizes, and the bar of each cell. */
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include <stddef.h>
#include <stdio.h>

enum metric {
	LAT,
	TLAT,
	BW,
	TBW,
	LOAN,
	PUT,
	PUT_BW,
	P99,
	ASLEEP_SOCKET,
	ASLEEP_UCX,
	ONE_CPU,
	CHECKS,
	AM,
	FETCH_ADD,
	MIRROR,
	MIRROR_READ,
	MIRROR_READS,
	SETUP,
	DEATH,
	FAIR,
	IDLE,
	IDLE_CPU,
	PAUSE_FIRST,
	PAUSE_LAT,
	RATE_FIRST,
	PAUSE_RATE,
	PAUSE_BARE,
	PAUSE_CPU,
	PAUSE_TURNS,
	CROWD,
	BUSY,
	NET_LAT,
	NET_BW,
	NET_RAW,
	NET_STREAM,
	NET_RATE,
	NET_ASLEEP,
	NET_MIRROR,
	NET_MIRROR_READS,
	METRICS
};
enum { SIZES = 10 };

extern const size_t SIZE[SIZES];

enum judgement {
	RATIO,      /* ours over the best rival's */
	DIFFERENCE, /* ours less the only rival's */
	ALONE,      /* ours as it is: the median, and perhaps the worst */
	ONCE        /* the same from one long sample */
};

struct metric_kind {
	const char *name, *title, *unit;
	const char *order, *options; /* the words of the order */
	const char *rival_order;     /* where it is another one */
	const char *key;             /* of the answer */
	const char *ours, *rival;    /* class of systems that stand for us, and against us */
	const char *shown; /* and of those that the table shows beside, without competing */
	enum judgement judgement;
	int net;                   /* over loopback TCP: only where asked for */
	int more;                  /* more is better */
	int count;                 /* of a sample, where it is not what fills the time */
	int at_once;               /* streams: ours may say MORE up to this size */
	const char *column[SIZES]; /* what there is instead of sizes, each with a bar */
	/* What columns have of their own: the order behind its test, the key, the rival. */
	const char *column_order[SIZES], *column_key[SIZES], *column_rival[SIZES];
	int rounds; /* of the first pass, at most; 0: all */
	int every;  /* in each so many rounds of the second pass it is sampled once; 0: in each */
	int turns;  /* the columns are sampled for a while each, by turns, after the second pass */
	double bar[SIZES]; /* 0: none, but for metrics with columns */
	double worst;      /* bar of the worst sample of all columns; 0: none */
};

extern const struct metric_kind KIND[METRICS];
extern const double HOPS_BAR[SIZES]; /* latency of ours in hops, at most */

/* Keeps only the cells of a list such as "lat:8,tlat:64K,bw", where "net" is all that go over TCP; 0, or -1 naming
 * the bad word. Without a list it is all others. */
int cells_choose(const char *list, const char **bad);
/* All there are. */
void cells_list(FILE *to);
int cell_chosen(enum metric m, int size);
/* Whether the metric is measured at that size at all. */
int cell_exists(enum metric m, int size);
int cell_has_bar(enum metric m, int size);
/* The size or column for people ("64K"), and as orders and files have it ("65536"). */
const char *cell_name(enum metric m, int size);
const char *cell_word(enum metric m, int size);
/* The key of an answer, and the class of who stands against us; NULL: nobody. */
const char *cell_key(enum metric m, int size);
const char *cell_rival(enum metric m, int size);
/* Whether one answer serves all cells of a round with the same order: it takes long. */
int cell_shares(enum metric m, int size);
/* Whether it is preceded by a second of silence. */
int cell_is_silent(enum metric m, int size);

#endif
