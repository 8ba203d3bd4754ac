/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of two processes, by a call that waits and by the engines' threads. When
 * these have ended an operation, one of the program's own behind it says, which they call: no call
 * of the application's looks for it.
 */
#include <slmpm.h>
#include <slmpm_group.h>
#include <slmpm_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/stats.h"
#include "tests/bench/work.h"

enum { CALLS_WARM = 2000, CALLS_TIMED = 20000, CHAIN = 1000, CHAINS = 5, BESIDES_TIMED = 20 };
enum {
	MS = 400,
	MS_WARM = 20,
	FIRST = 8,
	PATIENCE_MS = 20000,
	LONG = 1 << 20,
	LARGE = 1 << 17,
	REST_MS = 10
};

#define MS_NS 1e6

/* How an operation is done. */
static uint32_t kind;
static const char *engine, *wait_mode;
static bool starts, calls_progress;

static slmpm_group group;
static slmpm_ctr ended;
static uint64_t begun;
static double from[LONG], to[LONG], stamps[2];

/* ---- two members ----------------------------------------------------------------------------- */

static void form_group(int number)
{
	slmpm_ctx ctx = {0};
	slmpm_peer all[2] = {{0}, {0}};
	slmpm_listener listener = {0};
	char url[48];

	setenv("SLMPM_ENGINE", engine, 1);
	setenv("SLMPM_WAIT", wait_mode, 1);
	snprintf(url, sizeof url, "shm:offloaded-%d", (int)getppid());
	bind_to_both();
	if (number)
		ok(slmpm_listen(&listener, ctx, url), "slmpm_listen");
	meet(2);
	if (number) {
		ok(slmpm_accept(listener, &all[1], PATIENCE_MS), "slmpm_accept");
		ok(slmpm_group_join(&group, all[1], 1, PATIENCE_MS), "slmpm_group_join");
	} else {
		ok(slmpm_connect(&all[1], ctx, url, PATIENCE_MS), "slmpm_connect");
		ok(slmpm_group_create(&group, ctx, all, 2, 1, PATIENCE_MS), "slmpm_group_create");
	}
	ok(slmpm_ctr_create(ctx, &ended), "slmpm_ctr_create");
}

static struct slmpm_coll operation(uint64_t count)
{
	struct slmpm_coll c = {.size = sizeof c, .kind = kind};

	if (kind == SLMPM_COLL_BARRIER)
		return c;
	c.type = SLMPM_DOUBLE;
	c.op = SLMPM_CALC_SUM;
	c.from = from;
	c.to = to;
	c.count = count;
	return c;
}

static void start(const struct slmpm_coll *c)
{
	const struct slmpm_how how = {.size = sizeof how, .ctr = ended, .timeout_ms = -1};

	ok(slmpm_collective_start(group, c, &how, NULL), "slmpm_collective_start");
	begun++;
}

static void stamp(void *out, const void *left, const void *right, uint64_t count, void *at)
{
	(void)left;
	(void)right;
	(void)count;
	*(uint64_t *)out = 0;
	*(double *)at = now_ns();
}

/* The thread that does it notes when. */
static void start_stamp(double *at)
{
	static uint64_t nothing, result;
	const struct slmpm_combine combine = {.size = sizeof combine,
					      .flags = SLMPM_COLL_SAFE,
					      .width = sizeof nothing,
					      .function = stamp,
					      .arg = at};
	const struct slmpm_coll c = {.size = sizeof c,
				     .kind = SLMPM_COLL_ALLREDUCE,
				     .from = &nothing,
				     .to = &result,
				     .count = 1,
				     .combine = &combine};

	start(&c);
}

static void rest(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	nanosleep(&t, NULL);
}

static void wait_for_all(void)
{
	ok(slmpm_ctr_wait(ended, begun, PATIENCE_MS), "slmpm_ctr_wait");
}

static bool two_processes(void (*body)(int number), double *figures, int count)
{
	bool well = run_processes(2, body);

	memcpy(figures, common->result, sizeof *figures * (size_t)count);
	return well;
}

/* ---- one behind the other, each waited for --------------------------------------------------- */

static void operate(const struct slmpm_coll *c)
{
	struct slmpm_done done;
	slmpm_req req;

	if (!starts) {
		ok(slmpm_collective(group, c, -1), "slmpm_collective");
		return;
	}
	ok(slmpm_collective_start(group, c, NULL, &req), "slmpm_collective_start");
	ok(slmpm_wait(&req, 1, &done, -1), "slmpm_wait");
}

static void run_waiting(int number)
{
	struct slmpm_coll c;
	double begin = 0;

	form_group(number);
	bind_to(cpus[number]);
	c = operation(1);
	for (int i = 0; i < CALLS_WARM + CALLS_TIMED; i++) {
		if (i == CALLS_WARM)
			begin = now_ns();
		operate(&c);
	}
	if (number == 0)
		common->result[0] = (now_ns() - begin) / CALLS_TIMED;
	meet(4);
}

bool coll_fast(uint32_t what, double *ns)
{
	kind = what;
	engine = "none";
	wait_mode = "spin";
	starts = false;
	return two_processes(run_waiting, ns, 1);
}

bool coll_started(uint32_t what, double *ns)
{
	kind = what;
	engine = "thread";
	wait_mode = "spin";
	starts = true;
	return two_processes(run_waiting, ns, 1);
}

/* ---- by the engines' threads alone ----------------------------------------------------------- */

/* Long ones come first: all is posted, and the applications are asleep, before they have ended. */
static double chain(const struct slmpm_coll *c)
{
	const struct slmpm_coll first = {.size = sizeof first,
					 .kind = SLMPM_COLL_ALLREDUCE,
					 .type = SLMPM_DOUBLE,
					 .op = SLMPM_CALC_SUM,
					 .from = from,
					 .to = to,
					 .count = LONG};
	const volatile double *end = &stamps[1];
	double posted;

	stamps[1] = 0;
	for (int i = 0; i < FIRST; i++)
		start(&first);
	start_stamp(&stamps[0]);
	for (int i = 0; i < CHAIN; i++)
		start(c);
	start_stamp(&stamps[1]);
	posted = now_ns();
	while (*end <= 0)
		rest(REST_MS);
	wait_for_all();
	return stamps[0] > posted ? (stamps[1] - stamps[0]) / CHAIN : -1;
}

/* It took NS, or began while this member posted it, or the other one did: what that took is in it
 * then. */
static bool chain_counts(int i, double ns)
{
	uint32_t number = (uint32_t)i + 1;

	if (ns <= 0)
		atomic_store(&common->there, number);
	meet(2 * (number + 1)); /* form_group was the first */
	return atomic_load(&common->there) != number;
}

static void run_chains(int number)
{
	double taken[CHAINS], ns;
	struct slmpm_coll c;
	int n = 0;

	form_group(number);
	bind_to(cpus[number]);
	c = operation(1);
	for (int i = 0; i < CHAINS; i++) {
		ns = chain(&c);
		if (chain_counts(i, ns))
			taken[n++] = ns;
	}
	ok(n ? 0 : -1, "all chains began too early");
	if (number == 0)
		common->result[0] = median(taken, n);
	meet(2 * (CHAINS + 2));
}

bool coll_chained(uint32_t what, double *ns)
{
	kind = what;
	engine = "thread";
	wait_mode = "spin";
	return two_processes(run_chains, ns, 1);
}

/* ---- beside a computation -------------------------------------------------------------------- */

enum { UNIT = 1000 };

static volatile uint64_t sink;

/* In registers only. */
static void compute(uint64_t units)
{
	uint64_t x = units | 1;

	for (uint64_t i = 0; i < units * UNIT; i++)
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	sink = x;
}

static double time_computing(uint64_t units)
{
	double begin = now_ns();

	compute(units);
	return now_ns() - begin;
}

struct beside_times {
	double op, computing;
};

/* The operation beside so many units, from the call of the last member, which is this one, or else
 * sleeps, until its engine has ended it. */
static struct beside_times run_one(int number, const struct slmpm_coll *c, uint64_t units,
				   unsigned *met)
{
	struct beside_times t = {0, 0};
	double begin;

	if (number == 0)
		meet(*met += 2);
	rest(1);
	begin = now_ns();
	start(c);
	start_stamp(&stamps[0]);
	if (number)
		meet(*met += 2);
	if (units)
		t.computing = time_computing(units);
	rest(REST_MS);
	wait_for_all();
	t.op = stamps[0] - begin;
	return t;
}

/* The other one adds meanwhile on the other processor, as the engines do, without the library: what
 * that alone costs a computation. */
static double beside_bare(int number, uint64_t units, unsigned *met)
{
	double until;

	meet(*met += 2);
	if (number == 0)
		return time_computing(units);
	bind_to(cpus[1]);
	for (until = now_ns() + 2 * MS_NS; now_ns() < until;)
		for (int i = 0; i < LARGE; i++)
			to[i] = from[i] + from[LARGE + i];
	bind_to(cpus[0]);
	return 0;
}

/* Both applications have one processor, for one sleeps; so the engines' threads have the other. */
static void run_beside(int number)
{
	double alone = 0, beside = 0, computing = 0, slowed = 0, bare = 0, unit;
	uint64_t units = 0;
	const struct slmpm_coll c = operation(LARGE);
	unsigned met = 2;

	form_group(number);
	bind_to(cpus[0]);
	unit = time_computing(UNIT) / UNIT;
	(void)run_one(number, &c, 0, &met);
	for (int i = 0; i < BESIDES_TIMED; i++) {
		struct beside_times one = run_one(number, &c, 0, &met), both;

		if (number == 0)
			units = (uint64_t)(one.op / unit) + 1;
		both = run_one(number, &c, units, &met);
		alone += one.op;
		beside += both.op;
		slowed += both.computing;
		if (number)
			rest(REST_MS);
		computing += time_computing(units); /* the other one sleeps, and has none */
		bare += beside_bare(number, units, &met);
	}
	if (number == 0) {
		common->result[0] = computing / slowed;
		common->result[1] = computing / bare;
		common->result[2] = beside / BESIDES_TIMED;
		common->result[3] = alone / BESIDES_TIMED;
	}
	meet(met + 2);
}

bool coll_beside(struct figures *kept, struct figures *end)
{
	double taken[4];
	bool well;

	kind = SLMPM_COLL_ALLREDUCE;
	engine = "thread";
	wait_mode = "adaptive";
	well = two_processes(run_beside, taken, 4);
	*kept = (struct figures){taken[0], taken[1]};
	*end = (struct figures){taken[2], taken[3]};
	return well;
}

/* ---- while all compute ----------------------------------------------------------------------- */

static int try(int rc, const char *what)
{
	ok(rc, what);
	return rc;
}

static struct when { /* of each member, each operation */
	double begin[2][MS_WARM + MS], end[2][MS_WARM + MS];
} * when;

/* Until its result is there, which its memory says: when. */
static double compute_until(const volatile double *result, slmpm_req *req)
{
	double next = now_ns() + MS_NS, now, seen = 0;
	bool done = false;

	while (!done) {
		now = now_ns();
		if (seen <= 0 && *result > 0)
			seen = now;
		if (now < next)
			continue;
		if (calls_progress)
			done = try(slmpm_test(req, NULL), "slmpm_test") > 0;
		else if (seen > 0)
			done = try(slmpm_wait(req, 1, NULL, -1), "slmpm_wait") >= 0;
		next = now_ns() + MS_NS;
	}
	return seen > 0 ? seen : now_ns();
}

/* Each comes at any time of the other's millisecond. */
static void run_computing(int number)
{
	unsigned seed = (unsigned)getpid();
	struct slmpm_coll c = operation(1);
	volatile double *result = to;
	slmpm_req req;

	form_group(number);
	bind_to(cpus[number]);
	from[0] = 1;
	for (int i = 0; i < MS_WARM + MS; i++) {
		*result = 0;
		busy_ns(MS_NS * (rand_r(&seed) % 1000) / 1000);
		when->begin[number][i] = now_ns();
		ok(slmpm_collective_start(group, &c, NULL, &req), "slmpm_collective_start");
		when->end[number][i] = compute_until(result, &req);
	}
	meet(4);
}

static double later(double times[2][MS_WARM + MS], int i)
{
	return times[0][i] > times[1][i] ? times[0][i] : times[1][i];
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

bool coll_computing(bool by_progress, double *p50, double *p99)
{
	double taken[MS];

	if (!when)
		when = mmap(NULL, sizeof *when, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	kind = SLMPM_COLL_ALLREDUCE;
	engine = by_progress ? "none" : "thread";
	wait_mode = "adaptive";
	calls_progress = by_progress;
	if (when == MAP_FAILED || !run_processes(2, run_computing))
		return false;
	for (int i = 0; i < MS; i++)
		taken[i] = later(when->end, MS_WARM + i) - later(when->begin, MS_WARM + i);
	qsort(taken, MS, sizeof *taken, by_size);
	*p50 = taken[MS / 2];
	*p99 = taken[MS * 99 / 100];
	return true;
}
