/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of slmpm_perftest share: the pair, a job for it, and a job's result. */
#ifndef PERFTEST_H
#define PERFTEST_H

#include <slmpm.h>
#include <slmpm_group.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "apps/lib/hist.h"

#define STREAM_DATA    0u
#define STREAM_CONTROL 1u
#define CONTROL_MAX    65536
#define MEMBERS_MAX    64

struct pair;
struct job;
struct setup;

/* ---- tests (table.c) ---- */

enum kind {
	KIND_LATENCY, /* a ping-pong */
	KIND_PAUSE,   /* bursts, each after a pause: a count is one of them */
	KIND_SINGLE,  /* one operation after the other */
	KIND_STREAM,
	KIND_OVERLAP,
	KIND_LINE,
	KIND_COPY,
	KIND_MAILBOX
};

/* Both sides run the same function; it does count messages and returns 0 or a negative code. */
typedef int loop_fn(struct pair *pair, const struct job *job, struct hist *stamps);

enum means {
	BY_MESSAGE,
	BY_LOAN,
	BY_PUT,
	BY_GET,
	BY_AM,
	BY_ATOMIC,
	BY_FIFO,
	BY_MIRROR,
	BY_QUEUE,
	BY_GROUP,
	BY_NOTHING,
	MEANS
};

/* Options that some tests alone use. */
enum takes {
	TAKES_BURST = 1 << 0,
	TAKES_MORE = 1 << 1,
	TAKES_IDLE = 1 << 2,
	TAKES_STEP = 1 << 3,
	TAKES_WORK = 1 << 4,
	TAKES_TRACK = 1 << 5,
	TAKES_MEMBERS = 1 << 6,
	TAKES_SHARED = 1 << 7,
	TAKES_MODES = 1 << 8,
	TAKES_TOUCH = 1 << 9,
	TAKES_FEW = 1 << 10 | TAKES_BURST, /* at most BURST_MAX at once */
	/* By what they measure (given.c): */
	TAKES_MODE = 1 << 11,
	TAKES_TO = 1 << 12,
	TAKES_HEADER = 1 << 13,
	TAKES_WAIT = 1 << 14,
	TAKES_FABRIC = 1 << 15,
	TAKES_CPU = 1 << 16,
	TAKES_DECISIONS = 1 << 17,
	TAKES_ANYHOW = 1 << 18 /* each does */
};

struct test {
	const char *name, *text;
	enum kind kind;
	enum means by;
	uint64_t size; /* when none is given */
	loop_fn *loop;
	unsigned takes;
};

extern const struct test tests[];
const struct test *test_find(const char *name);
bool test_has_one_size(const struct test *test); /* that of the table */
bool test_has_region(const struct test *test);   /* it works on regions of both sides */
bool test_calculates(const struct test *test);   /* on this side alone, and checks itself */
/* What it is where the members of a group are said: the same, or a collective operation. */
const struct test *test_in_group(const struct test *test);
bool test_offloads(const struct test *test); /* that */
/* One transfer with a pattern; who receives it fails unless it arrived whole (verify.c). */
loop_fn loop_verify;
/* loops.c, onesided.c, atomics.c, active.c, overlap.c */
loop_fn loop_send_lat, loop_send_stream, loop_loan_lat, loop_loan_stream, loop_copy, loop_nothing;
loop_fn loop_put_lat, loop_put_stream, loop_get_lat, loop_get_stream;
loop_fn loop_fetch_add, loop_compare_swap, loop_am_lat, loop_am_remote, loop_am_stream,
	loop_overlap;
/* bursts.c: a stream of messages, in bursts or one by one; and the bytes of their buffers, for any
 * job. */
loop_fn loop_bursts;
#define BURST_MAX 64 /* messages at once, at most */
uint64_t burst_room(const struct job *job);
uint64_t burst_of(const struct job *job); /* so many at once, each in a buffer of its own, ... */
uint64_t burst_stride(const struct job *job);                 /* ... so far apart */
loop_fn loop_pause_lat, loop_pause_stream;                    /* pauses.c */
loop_fn loop_mixed, loop_slow_reader, loop_tide, loop_duplex; /* loads.c */
/* "Touched": every byte written before, every byte read after. */
void fill(void *buf, uint64_t len, uint64_t i);
void consume(const void *buf, uint64_t len);
loop_fn loop_fifo_lat, loop_fifo_stream;                     /* fifo.c */
loop_fn loop_mirror_lat, loop_mirror_stream;                 /* mirrors.c */
loop_fn loop_mirror_read, loop_mirror_reads, loop_get_reads; /* reads.c */
loop_fn loop_wq_chain, loop_wq_hop, loop_offload;            /* chain.c, hop.c, offload.c */
loop_fn loop_wq_calc, loop_wq_apart;                         /* calc.c */
loop_fn loop_collective;                                     /* collective.c */
/* Of offload in a group: started, and waited for behind a computation (beside.c). */
int collective_beside(struct pair *pair, const struct slmpm_coll *coll, const struct job *job,
		      struct hist *stamps);
/* Bytes of a member's buffers for such a job. */
uint64_t collective_room(const struct job *job);
/* How its members meet: "memory" or "tcp"; "": that is not known. */
const char *collective_path(const struct pair *pair, const struct job *job);
/* So many units of work in registers only; what one takes (overlap.c). */
void compute(uint64_t units);
double compute_unit_ns(void);
loop_fn loop_wq_pipe; /* pipe.c */
int pipe_sink(void);  /* the third process of that; returns the exit code */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- jobs (job.c) ---- */

enum { WAIT_DEFAULT = 3, WAIT_MODES }; /* behind SLMPM_WAIT_ADAPTIVE, _SPIN, _BLOCK */

struct job {
	const struct test *test;
	uint64_t size, count,
		warm;     /* count 0: as many as fill a sample; warm UINT64_MAX: default */
	uint64_t burst;   /* a stream's messages go so many in a call ... */
	uint64_t idle_us; /* the receiver waits that long before each message */
	uint64_t step;    /* touched loans become readable in steps of so many bytes */
	uint64_t link;    /* both ways by link N, from 0, of several: N + 1; or 0 */
	uint64_t work_us; /* a slow reader computes so long after each message; 0: default */
	unsigned busy;    /* something else computes beside side 1; 2: and beside side 0 */
	unsigned wait;    /* SLMPM_WAIT_* or WAIT_DEFAULT */
	unsigned members; /* of the group that a collective operation is of, ... */
	bool grouped;     /* ... and that has been said */
	unsigned track;   /* enum slmpm_mirror_track: mirrors find plain stores by themselves */
	bool more;        /* ... or in a call each, of which all but each burst-th say MORE */
	bool touch, probe, verify;
	bool each;      /* messages are timed one by one */
	bool shared;    /* collective operations are of memory of their group */
	unsigned given; /* enum takes: what has been said */
};

void job_init(struct job *job);
/* "TEST SIZE COUNT [touch] [burst N] ...": 0, or -1 and WHY says what is wrong. Changes TEXT. */
int job_parse(struct job *job, char *text, char *why, size_t why_size);
void job_print(const struct job *job, char *text, size_t size);
/* 0: JOB's test uses all that its line says; else -1, with WHY (given.c). */
int job_check(const struct job *job, char *why, size_t size);
/* "64", "4k", "1m", "2g": 0 or -1. */
int parse_number(const char *text, uint64_t *value);
int parse_wait(const char *text, unsigned *mode);
int parse_busy(const char *text, unsigned *busy);
int parse_members(const char *text, unsigned *members);
int parse_track(const char *text, unsigned *way);
const char *wait_name(unsigned mode);

/* ---- the board: memory of both sides, never on a measured path (board.c) ---- */

struct board;
struct board *board_create(char *name, size_t size);
struct board *board_open(const char *name);
/* Waits for the other side; ALIVE (or NULL) is asked now and then. Negative: it is gone. */
typedef int alive_fn(void *arg);
int board_meet(struct board *board, int side, alive_fn *alive, void *arg);
/* One way of a cache line between the two CPUs, ns (on side 0); negative: the other side is
 * gone. */
double board_probe(struct board *board, int side, alive_fn *alive, void *arg, struct hist *each);
/* Side 1 leaves its remote reads and writes for side 0. */
void board_leave(struct board *board, uint64_t reads, uint64_t writes);
void board_fetch(const struct board *board, uint64_t *reads, uint64_t *writes);
/* Cache lines for a test's own use. */
enum { SPOT_ASK, SPOT_ANSWER, SPOT_WORD, SPOTS };
struct spot {
	_Alignas(128) uint64_t word[16];
};
struct spot *board_spots(struct board *board);

/* ---- the pair (pair.c) ---- */

struct pair {
	slmpm_ctx ctx;
	slmpm_peer peer;
	int side; /* 0 drives, 1 follows */
	bool spawned;
	struct board *board; /* NULL: the sides share no memory */
	bool probes;         /* the board is there and each side has a CPU to itself */
	uint32_t packet_max;
	uint64_t loan_max, fifo_max;
	char *tx, *rx; /* page-aligned, warm */
	size_t room;
	uint64_t verified[MEANS]; /* a bit for each power of two */
	unsigned wait;
	uint64_t by; /* the link that `peer` asks for, as job.link; 0: none, and else ... */
	struct {
		slmpm_peer peer;
		uint32_t link;
	} usual;          /* ... what it was before */
	bool foreign;     /* regions are memory of the application's own */
	const char *path; /* that they are to be reached by; NULL: any */
	struct region {
		slmpm_mem mem;
		slmpm_rmem remote;
		slmpm_ctr ctr;
		char *base;   /* this side's: what the other writes and reads ... */
		char *source; /* ... and, as long, what this one puts */
		size_t size;
		char path[16];  /* to the other side's */
		bool serves;    /* the other side's operations need this one's doing */
		uint64_t value; /* of the word that atomic operations change */
	} region;
	struct mirrored { /* by side: who leads it */
		slmpm_mirror mirror;
		char *base;
		uint64_t size;
		unsigned track; /* of those that this side leads */
	} mirror[2];
	struct crew { /* the group of collective operations, in which `side` is the rank */
		slmpm_group group;
		unsigned members;             /* of the group; 0: there is none yet */
		unsigned more;                /* those that side 0 has started beside side 1 */
		slmpm_peer peer[MEMBERS_MAX]; /* theirs */
	} crew;
	const struct setup *setup; /* where these are to run; NULL: anywhere */
	uint64_t ams;              /* active messages that have come */
	bool no_thread;      /* their handler keeps the engine's out of the context, or what else */
	struct trace *trace; /* of what is chosen; NULL: nobody wants it */
	struct extra {
		double each_ns; /* of a single operation, where the loop knows it better; else 0 */
		double bare_ns; /* the same by the bare instruction, by hand, alone or straight; 0: not
				 * measured */
		double hidden; /* share of a transfer behind a computation; negative: not measured */
		double far_cpu;         /* share of the time that side 1 was at work */
		double cpu_ns, near_ns; /* processor time of both sides, in all, and of side 0 */
		double group_ns;        /* the same of all members, of the operations alone */
		const char *algorithm;  /* of these, where they send messages; or NULL */
		/* After a pause: the first message, the others, and of these the first 9 and 99. */
		double first_ns, rest_ns, to10_ns, to100_ns;
		/* Work queues: re-arming 1,000 entries, posting one; shares of the entries that the
		 * engine's thread has begun, and of a computation's speed that was left to it. */
		double arm_ns, post_ns, by_engine, kept; /* shares negative: not measured */
	} extra;
};

struct figures {              /* of one run */
	double ns;            /* all messages together */
	double before, after; /* the line's probes; 0: none */
	uint64_t reads, writes;
	struct extra extra;
};

/* ELEMENT: what the second process is to be, or 0. */
int pair_spawn(struct pair *pair, unsigned wait, const int cpu[2], uint32_t element);
int pair_connect(struct pair *pair, const char *url, unsigned wait, const int cpu[2]);
void pair_end(struct pair *pair);
/* pair_end without the context's end: another peer may follow. */
void pair_leave(struct pair *pair);
/* pair_end for a pair that does not work any more. */
void pair_drop(struct pair *pair);
/* Both sides of one run; side 0 tells side 1 first. STAMPS takes the times of single messages. */
int pair_run(struct pair *pair, const struct job *job, struct figures *f, struct hist *stamps);
int pair_buffers(struct pair *pair, uint64_t size);
/* Regions of SIZE bytes on both sides, each open to the other (region.c). */
int pair_region(struct pair *pair, uint64_t size);
void pair_region_end(struct pair *pair);
#define MIRROR_WORDS 512 /* of 8 bytes, at least */
/* Mirrors of SIZE bytes, one led by each side (mirrors.c), that find changes in way TRACK. */
int pair_mirror(struct pair *pair, uint64_t size, unsigned track);
/* How this side's finds them, where it does by itself; or "". */
void pair_mirror_way(const struct pair *pair, char *way, size_t size);
void pair_mirror_end(struct pair *pair);
/* In a loop that waits without calling the library: now and then gives way, lets the library work
 * and looks whether the other side lives. Negative: it does not. */
int pair_idle(struct pair *pair, uint64_t *spins);
/* A group of so many processes, both sides among them (crew.c). Each member calls it, but those
 * that side 0 has started for it: they join, once. */
int crew_ready(struct pair *pair, unsigned members);
int crew_join(struct pair *pair);
/* To those, and when they have done it. */
int crew_say(struct pair *pair, const struct job *job);
int crew_hear(struct pair *pair);
void crew_kill(struct pair *pair);
void crew_end(struct pair *pair);
/* From now on side 0's peer is the handle that ADDRESS finds; each side's one of link job.link
 * (link.c). */
#define LINK_MS 5000 /* in which all links have come */
int pair_to(struct pair *pair, const char *address);
int pair_by_link(struct pair *pair, uint64_t link);
/* The number of the one by which it sends now, and what it is; not .used: none does. */
uint32_t pair_link_in_use(const struct pair *pair, struct slmpm_link_info *link);
/* An empty message, by which one side tells the other that a loop is at its end. */
int pair_signal(struct pair *pair);
int pair_signaled(struct pair *pair);
/* Parts of the above that both sides need. */
#define GREETING  "slmpm_perftest 4" /* the version of what the sides say to each other */
#define ANSWER_MS 10000
int pair_open(struct pair *pair, unsigned wait);
int pair_limits(struct pair *pair);
int pair_say(struct pair *pair, const char *text);
int pair_hear(struct pair *pair, char *text, size_t size, int timeout_ms);
int pair_run_side(struct pair *pair, const struct job *job, struct figures *f, struct hist *stamps);

/* Side 1 (follow.c): started by pair_spawn, or waiting at URL, AGAIN for one after another. Returns
 * the exit code. */
int follow_parent(unsigned wait);
/* A further member of side 0's group, on this CPU if it is not negative. */
int follow_group(unsigned wait, int cpu);
int follow_listen(const char *url, unsigned wait, int cpu, bool again);
/* Pins the calling process to CPU, which it returns; -1 where that is not allowed. */
int pin(int cpu);
/* Of all threads of this process. */
uint64_t cpu_ns(void);
/* What is not chosen becomes the first (cpu[0]) or second CPU that this process may use, and so on.
 */
void choose_cpus(struct setup *setup);

/* ---- the mailbox pair, through dacs.h (mailbox.c) ---- */

int mailbox_run(const struct job *job, const int cpu[2], struct figures *f, struct hist *stamps);
void mailbox_end(void);
int mailbox_follow(const char *board, int cpu);

/* ---- what was chosen (trace.c) ---- */

struct trace *trace_open(const char *path);
void trace_begin(struct trace *trace); /* of a run: it is its notes that are kept */
/* DONE of a request, or NULL: of a call that blocked. */
void trace_note(struct trace *trace, slmpm_peer peer, const struct slmpm_done *done);
int trace_write(const struct trace *trace);
/* ---- decisions.c: after the last sample; 0, or 1 with the reason printed. */
int decisions_print(struct pair *pair, bool json);

/* Somebody who computes on this processor; NULL: cannot be started (loads.c). */
struct neighbour *neighbour_begin(void);
void neighbour_end(struct neighbour *neighbour);

/* ---- results (measure.c, report.c) ---- */

struct result {
	struct job job;
	char fabric[16];
	const char *mode;
	double lat_us, min_us, p50_us, p90_us, p99_us, p999_us,
		max_us; /* negative: does not apply */
	double hops, line_ns, messages_per_s, bytes_per_s;
	double bare_us, bare_ratio, hidden, far_cpu;
	double first_us, to10_us, to100_us; /* after a pause */
	double cpu_us;      /* processor time of a burst, or of all members for an operation */
	double spent_us[2]; /* the same of a message, by side */
	double arm_us, post_us, by_engine, kept; /* of work queues */
	/* Of one-sided operations, how a mirror finds changes, or members of a group meet; "" else */
	char path[16];
	const char *algorithm; /* of collective operations by messages; else NULL */
	uint64_t reads, writes;
	unsigned samples, retaken, mixed;
	struct hist hist;
};

struct setup { /* what holds for all jobs */
	int cpu[MEMBERS_MAX];
	unsigned cpus; /* so many of them are known ... */
	bool chosen;   /* ... and by -c */
	const char *mode;
	unsigned samples;
	bool json, hist;
	bool processor_time; /* for people; for programs it is always there */
	bool spread;         /* time single messages in a run of their own */
};

/* Measures JOB over PAIR (NULL where the test needs none). 0, or negative: explained on stderr. */
int measure(struct pair *pair, const struct setup *setup, const struct job *job,
	    struct result *result);
/* The table's, before the first measurement; nothing as JSON. */
void report_heading(const struct setup *setup);
void report(const struct setup *setup, const struct result *result);

int serve(const struct setup *setup, unsigned wait);
/* Prints a file of SLMPM_TRACE: the exit status. */
int dump(const char *path);

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
