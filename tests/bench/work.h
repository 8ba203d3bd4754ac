/* SPDX-License-Identifier: BSD-3-Clause */
/* What the measurements of work queues share: processes, processors, time, a row's two figures. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One sample of a row: ours, and what it is held against. */
struct figures {
	double ours, against;
};

/* ---- work_process.c ------------------------------------------------------------------------- */

enum { RESULTS = 8, RING = 4, MEMBERS = 64, PROCESSES = MEMBERS }; /* of rings, groups, any */

/* What the processes of a sample have in common, zero before each. */
struct common {
	double result[RESULTS];
	atomic_uint arrived; /* at barriers */
	_Alignas(128) _Atomic uint32_t there;
	_Alignas(128) _Atomic uint32_t back;
	_Alignas(128) _Atomic uint64_t stamp;
};

extern struct common *common;
extern unsigned cpus[2];

bool common_make(void);
/* COUNT processes, each with its number from 0, until all have ended: whether all did so well. */
bool run_processes(int count, void (*body)(int number));
/* Until so many have come in all, the processes of a sample counted together. */
void meet(unsigned arrived);

/* Between two looks at what another processor writes. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

void bind_to(unsigned cpu);
void bind_to_both(void);
double now_ns(void);
/* Time goes by without a sleep. */
void busy_ns(double ns);
/* Ends the process unless RC is one of success. */
void ok(int64_t rc, const char *what);

/* ---- work_bare.c: without the library ------------------------------------------------------- */

/* One way of a cache line between the two processors; from a futex call to the woken process. */
bool bare_hop(double *ns);
bool bare_wake(double *ns);
/* A hop of a token from process to process, four in a ring on two processors, that yield. */
bool bare_ring(double *ns);
/* BYTES from process to process to process, copied by the middle one through four mapped buffers
 * of SIZE bytes on each side. */
bool bare_forward(uint64_t bytes, uint64_t size, double *ns);

/* ---- through the library -------------------------------------------------------------------- */

/* work_queue.c: an entry of a chain; running 1,000 entries again; from slmpm_post to the begin.
 * BY_ENGINE: the share of entries that its thread has begun, 0 to 1. */
bool chain_inline(double *entry_ns);
bool chain_by_thread(double *entry_ns, double *by_engine);
bool arming(double *ns);
bool beginning(const char *wait, double *ns, double *by_engine);

/* work_ring.c: a hop of a token in a ring of four. */
enum ring { RING_BY_QUEUES, RING_YIELDING, RING_ASLEEP };
bool ring_hop(enum ring how, double *ns);

/* work_call.c: one way of 8 bytes beside an engine. */
enum beside { BESIDE_NOTHING, BESIDE_ENGINE, BESIDE_OTHER, BESIDE_SAME, BESIDES };
enum call { CALL_SEND, CALL_PUT, CALLS };
bool call_beside(enum beside what, double ns[CALLS]);

/* work_perftest.c: a fresh slmpm_perftest for each; false: there is no answer. Rates: bytes a
 * second; all else in microseconds. */
extern const char *perftest_path, *links_path, *before_path;

/* The answer to COMMAND, a line of the shell: the numbers behind KEYS. */
bool answer_of(const char *command, const char *const keys[], double *values, int count);
/* TEST, and what it has done bare in turn with it. */
bool perftest_pair(const char *test, const char *options, const char *settings, struct figures *f);
/* wq_hop with sleeping processes; ENGINE: of the relay alone. */
bool perftest_asleep(const char *engine, struct figures *f);
bool perftest_pipe(uint64_t size, uint64_t count, struct figures *rates);
bool perftest_offload(double *kept, struct figures *f);
bool perftest_latency(const char *path, const char *test, double *us);

/* ---- collective operations ------------------------------------------------------------------- */

/* offloaded.c: an operation KIND of 8 bytes at most of two processes, one behind the other: by the
 * call; started and waited for, beside an engine's thread; by these threads alone. */
bool coll_fast(uint32_t kind, double *ns);
bool coll_started(uint32_t kind, double *ns);
bool coll_chained(uint32_t kind, double *ns);
/* Beside a computation: the speed that this keeps, and keeps beside a bare loop on the other
 * processor; the operation's end beside it and alone. */
bool coll_beside(struct figures *kept, struct figures *end);
/* While both compute, from the last call to the last result. */
bool coll_computing(bool by_progress, double *p50, double *p99);

/* forming.c: a group of MEMBERS, until its first operations have ended; and of each of them. */
bool forming(double *ns, double *bytes);

/* ---- work_group.c, offloaded_group.c: what is measured together, and the bars ---------------- */

enum { ROWS = 4 };

/* How ours is held against a bar: by itself, by the ratio, by the difference. */
enum kind { ITSELF, RATIO, DIFFERENCE };

struct row {
	const char *name, *bar, *against, *unit; /* bar "": shown only */
	enum kind kind;
	bool at_least;       /* else at most */
	double limit, scale; /* in units; of a figure as sampled */
};

struct group {
	const char *name;
	/* FIRST: ours goes first, where two follow each other. */
	bool (*take)(bool first, struct figures *f);
	const struct row *rows;
	int count;
};

extern const struct group groups[];
extern const int group_count;

#endif
