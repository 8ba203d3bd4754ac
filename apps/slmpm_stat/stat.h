/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_stat: links of running processes, gathered and then shown in one form or another. */
#ifndef APPS_SLMPM_STAT_H
#define APPS_SLMPM_STAT_H

#include <slmpm.h>
#include <slmpm_group.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum sort { SORT_PID, SORT_QUEUE, SORT_RING, SORT_LATENCY, SORT_RATE, SORT_BYTES };

struct link { /* of one process, as it showed it */
	int pid;
	int place; /* in what that shows: two links may have one name */
	uid_t uid;
	char program[32]; /* printable */
	struct slmpm_monitor m;
	double age; /* seconds since its figures were taken */
};

struct job {
	struct slmpm_aggregate m;
	int processes; /* of it that were looked at */
};

struct total { /* of one process's peers, by id */
	int pid;
	int place; /* in what that shows; 0: the others */
	char program[32];
	struct slmpm_totals t;
};

struct queue { /* a work queue of one process */
	int pid, context;
	int place; /* in what its context shows */
	char program[32];
	struct slmpm_stats_queue q;
};

struct group { /* of one process */
	int pid;
	int place; /* in what that shows */
	char program[32];
	struct slmpm_group_shown g;
};

struct gathered {
	struct group *groups;
	size_t group_count;
	struct queue *queues;
	size_t queue_count;
	struct total *totals;
	size_t total_count;
	struct link *links;
	size_t count, room;
	struct job *jobs;
	size_t job_count;
	int processes; /* that show links */
	bool all;      /* ended links, too */
};

/* ---- gather.c ---- */

/* The links of process PID: 0, or what slmpm_monitors_open said. */
int gather_process(struct gathered *g, int pid);
/* Those of every process that may be looked at. */
void gather_all(struct gathered *g);
void gather_sort(struct gathered *g, enum sort by);
void gather_drop(struct gathered *g);

/* ---- jobs.c ---- */

/* That of the process which shows MONITORS, if it tells. */
void jobs_add(struct gathered *g, struct slmpm_monitors *monitors);
/* No more than a thousand. */
unsigned job_permille(uint32_t value);

/* ---- totals.c ---- */

/* Those of process PID, whose name is PROGRAM; nothing of one that shows none. */
void gather_totals(struct gathered *g, int pid, const char *program);
void totals_text(const struct gathered *g);
/* Their counters, as JSON and Prometheus name them. */
extern const struct total_figure {
	const char *name, *help;
	size_t at;
} total_figures[];
extern const size_t total_figure_count;
uint64_t total_value(const struct slmpm_totals *t, size_t figure);

/* ---- queues.c ---- */

/* Those of process PID, whose name is PROGRAM. */
void gather_queues(struct gathered *g, int pid, const char *program);
void queues_text(const struct gathered *g, FILE *to);
void queues_prometheus(const struct gathered *g);

/* ---- groups.c ---- */

/* Those of process PID, whose name is PROGRAM. */
void gather_groups(struct gathered *g, int pid, const char *program);
void groups_text(const struct gathered *g, FILE *to);
void groups_prometheus(const struct gathered *g);
const char *group_kind(uint32_t kind);
/* Seconds until it was shown, for then what it shows was so; and since. 0 of what cannot be. */
double group_seconds(const struct slmpm_group_shown *g, uint64_t since_ns);
double group_age(const struct slmpm_group_shown *g);
/* "ended", "left", "stopped" or "traced"; NULL: none of them. */
const char *group_member_state(const struct slmpm_shown_member *m);

/* ---- aggregate.c: over several links ---- */

struct mean {
	double latency_ns;
	uint64_t samples;
};

struct aggregate {
	int processes, links;
	uint64_t queue_depth;
	double out_permille, in_permille, echo_ns;
	struct mean protocol[SLMPM_PROTOCOLS];
	struct {
		char name[16];
		uint64_t requests, bytes;
	} fabric[8];
	int fabrics;
};

void means_of(const struct gathered *g, struct aggregate *m);

/* ---- forms ---- */

void text_print(const struct gathered *g, bool detailed);
/* 0; 1: it could not be written. */
int json_print(const struct gathered *g);
void prometheus_print(const struct gathered *g);
/* Until `q`, or a signal. PID 0: all. */
int screen_run(int pid, bool all, enum sort by, double interval, unsigned rounds);

/* ---- words.c ---- */

const char *word_state(uint32_t state);
/* Of one of a peer's links: "up", "lost", "-". */
const char *word_path(uint32_t state);
/* What packets say of their addressee: "none", "ids", "address". */
const char *word_header(uint32_t header);
/* Visible ASCII, for terminals and other formats. */
void word_tame(char *text);
/* 1234567 as "1.23M"; nanoseconds as "1.23 us". */
const char *word_amount(char text[16], double amount);
const char *word_time(char text[16], double ns);
/* Thousandths of a ring, now. */
unsigned word_permille(uint64_t part, uint64_t all);
/* "64", "256", "1k", ... ">4m". */
const char *word_class(int size_class);

#endif
