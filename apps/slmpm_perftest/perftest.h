/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of slmpm_perftest share: the pair, a job for it, and a job's result. */
#ifndef PERFTEST_H
#define PERFTEST_H

#include <slmpm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "apps/lib/hist.h"

#define STREAM_DATA    0u
#define STREAM_CONTROL 1u
#define CONTROL_MAX    65536

struct pair;
struct job;

/* ---- tests (loops.c) ---- */

enum kind { KIND_LATENCY, KIND_STREAM, KIND_LINE, KIND_COPY, KIND_MAILBOX };

/* Both sides run the same function; it does count messages and returns 0 or a negative code. */
typedef int loop_fn(struct pair *pair, const struct job *job, struct hist *stamps);

struct test {
	const char *name, *text;
	enum kind kind;
	bool loan;
	uint64_t size; /* when none is given */
	loop_fn *loop;
};

extern const struct test tests[];
const struct test *test_find(const char *name);
/* One message with a pattern; side 1 answers whether it arrived whole. */
loop_fn loop_verify;

/* ---- jobs (job.c) ---- */

enum { WAIT_DEFAULT = 3, WAIT_MODES }; /* behind SLMPM_WAIT_ADAPTIVE, _SPIN, _BLOCK */

struct job {
	const struct test *test;
	uint64_t size, count,
		warm;     /* count 0: as many as fill a sample; warm UINT64_MAX: default */
	uint64_t burst;   /* a stream's messages say MORE but for each burst-th */
	uint64_t idle_us; /* the receiver waits that long before each message */
	uint64_t step;    /* touched loans become readable in steps of so many bytes */
	unsigned wait;    /* SLMPM_WAIT_* or WAIT_DEFAULT */
	bool touch, probe, verify;
	bool each; /* messages are timed one by one */
};

void job_init(struct job *job);
/* "TEST SIZE COUNT [touch] [burst N] ...": 0, or -1 and WHY says what is wrong. Changes TEXT. */
int job_parse(struct job *job, char *text, char *why, size_t why_size);
void job_print(const struct job *job, char *text, size_t size);
/* "64", "4k", "1m", "2g": 0 or -1. */
int parse_number(const char *text, uint64_t *value);
int parse_wait(const char *text, unsigned *mode);
const char *wait_name(unsigned mode);

/* ---- the board: memory of both sides, never on a measured path (board.c) ---- */

struct board;
struct board *board_create(char *name, size_t size);
struct board *board_open(const char *name);
/* Waits for the other side; ALIVE (or NULL) is asked now and then. Negative: it is gone. */
typedef int alive_fn(void *arg);
int board_meet(struct board *board, int side, alive_fn *alive, void *arg);
/* One way of a cache line between the two CPUs, ns (on side 0); negative: the other side is gone. */
double board_probe(struct board *board, int side, alive_fn *alive, void *arg, struct hist *each);
/* Side 1 leaves its remote reads and writes for side 0. */
void board_leave(struct board *board, uint64_t reads, uint64_t writes);
void board_fetch(const struct board *board, uint64_t *reads, uint64_t *writes);

/* ---- the pair (pair.c) ---- */

struct pair {
	slmpm_ctx ctx;
	slmpm_peer peer;
	int side; /* 0 drives, 1 follows */
	bool spawned;
	struct board *board; /* NULL: the sides share no memory */
	bool probes;         /* the board is there and each side has a CPU to itself */
	uint32_t packet_max;
	uint64_t loan_max;
	char *tx, *rx; /* page-aligned, warm */
	size_t room;
	uint64_t verified[2]; /* a bit for each power of two; loans apart */
};

struct figures {              /* of one run */
	double ns;            /* all messages together */
	double before, after; /* the line's probes; 0: none */
	uint64_t reads, writes;
};

int pair_spawn(struct pair *pair, unsigned wait, const int cpu[2]);
int pair_connect(struct pair *pair, const char *url, unsigned wait, const int cpu[2]);
void pair_end(struct pair *pair);
/* The same for a pair that does not work any more. */
void pair_drop(struct pair *pair);
/* Both sides of one run; side 0 tells side 1 first. STAMPS takes the times of single messages. */
int pair_run(struct pair *pair, const struct job *job, struct figures *f, struct hist *stamps);
int pair_buffers(struct pair *pair, uint64_t size);
/* Parts of the above that both sides need. */
#define GREETING  "slmpm_perftest 1" /* the version of what the sides say to each other */
#define ANSWER_MS 10000
int pair_open(struct pair *pair, unsigned wait);
int pair_limits(struct pair *pair);
int pair_say(struct pair *pair, const char *text);
int pair_hear(struct pair *pair, char *text, size_t size, int timeout_ms);
int pair_run_side(struct pair *pair, const struct job *job, struct figures *f, struct hist *stamps);

/* Side 1 (follow.c): started by pair_spawn, or waiting at URL. Returns the exit code. */
int follow_parent(unsigned wait);
int follow_listen(const char *url, unsigned wait, int cpu);
/* Pins the calling process to CPU, which it returns; -1 where that is not allowed. */
int pin(int cpu);
/* What is negative becomes the first (cpu[0]) or second CPU that this process may use. */
void choose_cpus(int cpu[2]);

/* ---- the mailbox pair, through dacs.h (mailbox.c) ---- */

int mailbox_run(const struct job *job, const int cpu[2], struct figures *f, struct hist *stamps);
void mailbox_end(void);
int mailbox_follow(const char *board, int cpu);

/* ---- results (measure.c, report.c) ---- */

struct result {
	struct job job;
	char fabric[16];
	const char *mode;
	double lat_us, min_us, p50_us, p90_us, p99_us, p999_us,
		max_us; /* negative: does not apply */
	double hops, line_ns, rate_mps, bw_mbps;
	uint64_t reads, writes;
	unsigned samples, retaken, mixed;
	struct hist hist;
};

struct setup { /* what holds for all jobs */
	int cpu[2];
	const char *mode;
	unsigned samples;
	bool json, hist;
	bool spread; /* time single messages in a run of their own */
};

/* Measures JOB over PAIR (NULL where the test needs none). 0, or negative: explained on stderr. */
int measure(struct pair *pair, const struct setup *setup, const struct job *job,
	    struct result *result);
void report(const struct setup *setup, const struct result *result);

int serve(const struct setup *setup, unsigned wait);

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
