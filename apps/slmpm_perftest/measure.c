/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a job to its result: verify, calibrate, warm up, take samples, each between two probes of
 * the cache line, take those again whose placement changed, and the single messages' times apart.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_NS       20e6  /* what a sample should last where no count is given, ... */
#define LEAST           8     /* ... but it has so many, ... */
#define LONG_NS         1e9   /* ... unless it would last longer than that */
#define STAMPED_MAX     20000 /* single messages timed for the percentiles */
#define WARM_MAX        10000
#define CALIBRATIONS    4
#define PLACEMENT_RATIO 1.5
#define SAMPLE_TRIES    4
#define SAMPLES_MAX     1000
#define CALC_BYTES      (256u << 20) /* of a sample's calculations */
#define CALC_MOST       200000

struct runner { /* how a job is run: over a pair, or over DaCS */
	struct pair *pair;
	const struct setup *setup;
};

static int run(const struct runner *r, const struct job *j, struct figures *f, struct hist *stamps)
{
	if (j->test->kind == KIND_MAILBOX)
		return mailbox_run(j, r->setup->cpu, f, stamps);
	return pair_run(r->pair, j, f, stamps);
}

static bool placement_changed(const struct figures *f)
{
	double lo = f->before < f->after ? f->before : f->after;
	double hi = f->before < f->after ? f->after : f->before;

	return hi > PLACEMENT_RATIO * lo;
}

/* STAMPS holds this run's messages, out->hist those of all runs that were good. */
static int run_probed(const struct runner *r, const struct job *j, struct figures *f,
		      struct hist *stamps, struct result *out)
{
	int rc;

	for (int tries = 1;; tries++) {
		hist_clear(stamps);
		rc = run(r, j, f, stamps);
		if (rc < 0)
			return rc;
		if (!placement_changed(f))
			break;
		if (tries == SAMPLE_TRIES) {
			out->mixed++;
			break;
		}
		out->retaken++;
	}
	hist_merge(&out->hist, stamps);
	return 0;
}

/* Of tests in rounds, between which the engine's thread is waited for or another loop has its
 * turn. */
static uint64_t usual_count(const struct job *j)
{
	loop_fn *loop = j->test->loop;
	uint64_t n = CALC_BYTES / (j->size ? j->size : 1);

	if (test_calculates(j->test))
		return n > CALC_MOST ? CALC_MOST : n + 8;
	if (loop == loop_wq_chain)
		return 100000;
	return loop == loop_offload ? 4000 : 25600;
}

/* Each takes EACH_NS, and LASTS_NS with all that goes with it. */
static uint64_t count_for(double each_ns, double lasts_ns)
{
	double n = SAMPLE_NS / each_ns, most = LONG_NS / lasts_ns;

	n = n < LEAST ? LEAST : n;
	n = n > most ? most : n;
	return n < 1 ? 1 : (uint64_t)n;
}

/* How many messages make a sample; a known count is left alone. */
static int calibrate(const struct runner *r, struct job *j)
{
	struct job try = *j;
	struct figures f = {0};
	int rc;

	if (j->count)
		return 0;
	if (j->test->kind == KIND_LINE) {
		j->count = 1;
		return 0;
	}
	if (j->test->kind == KIND_OVERLAP) {
		j->count = 2;
		return 0;
	}
	if (j->test->by == BY_QUEUE) {
		j->count = usual_count(j);
		return 0;
	}
	try.probe = try.each = false;
	j->count = test_offloads(j->test) ? 1 : j->idle_us ? 4 : LEAST;
	for (int round = 0; round < CALIBRATIONS; round++) { /* colder ones took longer */
		uint64_t begun = now_ns();
		double lasted, n = (double)j->count;

		try.count = j->count;
		rc = run(r, &try, &f, NULL);
		if (rc < 0)
			return rc;
		lasted = test_offloads(j->test) ? (double)(now_ns() - begun) : f.ns;
		j->count = count_for(f.ns / n + 0.1, lasted / n + 0.1);
		if (lasted > LONG_NS)
			break;
		if (j->count > 20 * try.count && round < CALIBRATIONS - 1)
			j->count = 20 * try.count;
	}
	return 0;
}

/* The first message of each size class must arrive whole. */
static int verify(const struct runner *r, const struct job *j)
{
	uint64_t bit = UINT64_C(1) << (j->size ? 63 - __builtin_clzll(j->size) : 0);
	enum means by = j->test->by;
	struct figures f;
	struct job once = *j;
	int rc;

	/* Each test of work queues has a program of its own, each of groups its operation. */
	if (by == BY_NOTHING)
		return 0;
	if (by != BY_QUEUE && by != BY_GROUP && r->pair->verified[by] & bit)
		return 0;
	once.probe = once.each = false;
	once.verify = true;
	rc = run(r, &once, &f, NULL);
	if (rc >= 0)
		r->pair->verified[by] |= bit;
	return rc;
}

static uint64_t warm_for(uint64_t count)
{
	uint64_t n = count / 8 + (count < 4 ? count : 4);

	return n > WARM_MAX ? WARM_MAX : n;
}

/* On a terminal, of samples that last: before the Ith of N; and what comes before these. */
static void show_sample(const struct job *j, unsigned i, unsigned n)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s: sample %u of %u", j->test->name, i + 1, n);
}

static void show_start(const struct job *j)
{
	if (isatty(STDERR_FILENO) && j->test->by == BY_GROUP)
		fprintf(stderr, "\r\033[K%s: %u members begin", j->test->name, j->members);
}

static void clear_shown(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static int prepare(const struct runner *r, struct job *j)
{
	struct job warm = *j;
	struct figures f;
	int rc = verify(r, j);

	if (rc >= 0)
		rc = calibrate(r, j);
	warm.probe = warm.each = false;
	warm.count = j->warm;
	if (j->warm == UINT64_MAX && j->test->kind == KIND_OVERLAP)
		warm.count = 1;
	else if (j->warm == UINT64_MAX)
		warm.count = warm_for(j->count);
	if (rc < 0 || !warm.count || j->test->kind == KIND_LINE)
		return rc;
	return run(r, &warm, &f, NULL);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* How often a message crosses in one count: a ping-pong's count is a round trip. */
static double crossings(const struct job *j)
{
	if (j->test->kind == KIND_MAILBOX)
		return 2;
	return j->test->kind == KIND_LATENCY && !j->idle_us ? 2 : 1;
}

static bool is_latency(const struct job *j)
{
	return j->test->kind != KIND_STREAM;
}

/* One sample's mean time of a crossing, us. */
static double sample_us(const struct job *j, const struct figures *f, const struct hist *stamps)
{
	if (j->test->kind == KIND_PAUSE)
		return f->extra.rest_ns / 1e3;
	if (j->test->kind == KIND_LINE)
		return (f->before + f->after) / 2e3;
	if (j->idle_us)
		return (double)stamps->sum / (double)(stamps->count ? stamps->count : 1) / 1e3;
	return f->ns / (double)j->count / crossings(j) / 1e3;
}

/* Of what is no message's, or of the neighbours that compute beside the pair, it says nothing. */
static bool has_processor_time(const struct job *j, int side)
{
	return j->test->kind != KIND_LINE && j->test->kind != KIND_MAILBOX &&
	       (side == 0 || j->test->kind != KIND_COPY) && !j->busy;
}

static bool has_bare(const struct test *t)
{
	return t->by == BY_ATOMIC || t->by == BY_MIRROR || t->by == BY_QUEUE || t->by == BY_GROUP ||
	       t->loop == loop_wq_pipe;
}

/* Processors may be few for so many: what holds one up now and then moves the mean, and in one run
 * more than in another. So the figure is a percentile, too, of the same operations. */
static bool is_of_singles(const struct job *j, const struct setup *setup)
{
	return setup->spread && j->test->by == BY_GROUP && j->members > 2 &&
	       !test_offloads(j->test);
}

static int take_samples(const struct runner *r, struct job *j, unsigned n, struct result *out)
{
	static double us[SAMPLES_MAX], hops[SAMPLES_MAX], line[SAMPLES_MAX];
	static double bare[SAMPLES_MAX], ratio[SAMPLES_MAX], hidden[SAMPLES_MAX], cpu[SAMPLES_MAX];
	static double first[SAMPLES_MAX], to10[SAMPLES_MAX], to100[SAMPLES_MAX], both[SAMPLES_MAX];
	static double spent[2][SAMPLES_MAX], all[SAMPLES_MAX];
	static double arm[SAMPLES_MAX], post[SAMPLES_MAX], engine[SAMPLES_MAX], kept[SAMPLES_MAX];
	static struct hist stamps;
	struct figures f = {0};
	bool long_ones = j->test->by == BY_GROUP;
	int rc = 0;

	n = n > SAMPLES_MAX ? SAMPLES_MAX : n;
	/* There are only single times, or such of rounds, which are taken anyway. */
	if (j->idle_us || j->test->kind == KIND_LINE || j->test->kind == KIND_PAUSE ||
	    (j->test->by == BY_QUEUE && is_latency(j)) || test_offloads(j->test) ||
	    is_of_singles(j, r->setup))
		j->each = true;
	for (unsigned i = 0; i < n && rc >= 0; i++) {
		uint64_t begun = now_ns();

		if (long_ones)
			show_sample(j, i, n);
		rc = run_probed(r, j, &f, &stamps, out);
		us[i] = sample_us(j, &f, &stamps);
		line[i] = (f.before + f.after) / 2;
		hops[i] = line[i] > 0 ? us[i] * 1e3 / line[i] : -1;
		out->reads += f.reads;
		out->writes += f.writes;
		bare[i] = f.extra.bare_ns / 1e3;
		ratio[i] = bare[i] > 0 ? us[i] / bare[i] : -1;
		hidden[i] = f.extra.hidden;
		cpu[i] = f.extra.far_cpu;
		first[i] = f.extra.first_ns / 1e3;
		to10[i] = f.extra.to10_ns / 1e3;
		to100[i] = f.extra.to100_ns / 1e3;
		both[i] = f.extra.cpu_ns / 1e3 / (double)j->count;
		all[i] = f.extra.group_ns / 1e3 / (double)j->count;
		arm[i] = f.extra.arm_ns / 1e3;
		post[i] = f.extra.post_ns / 1e3;
		engine[i] = f.extra.by_engine;
		kept[i] = f.extra.kept;
		long_ones |= (double)(now_ns() - begun) > LONG_NS / 4;
		spent[0][i] = f.extra.near_ns / 1e3 / (double)j->count / crossings(j);
		spent[1][i] = both[i] / crossings(j) - spent[0][i];
	}
	if (long_ones)
		clear_shown();
	if (rc < 0)
		return rc;
	out->samples = n;
	out->algorithm = f.extra.algorithm;
	/* Where the placement did not stand still there is no one figure for it. */
	out->line_ns = out->mixed ? -1 : median(line, n);
	out->hops = is_latency(j) && out->line_ns > 0 ? median(hops, n) : -1;
	out->lat_us = median(us, n);
	if (has_bare(j->test) && median(bare, n) > 0) {
		out->bare_us = median(bare, n);
		out->bare_ratio = median(ratio, n);
	}
	if (j->test->by == BY_QUEUE) {
		out->arm_us = median(arm, n) > 0 ? median(arm, n) : -1;
		out->post_us = median(post, n) > 0 ? median(post, n) : -1;
		out->by_engine = median(engine, n);
	}
	if (j->test->by == BY_QUEUE || test_offloads(j->test))
		out->kept = median(kept, n);
	if (j->test->kind == KIND_OVERLAP || test_offloads(j->test))
		out->hidden = median(hidden, n);
	if (j->test->by == BY_GROUP && !test_offloads(j->test))
		out->cpu_us = median(all, n);
	if (j->test->kind == KIND_PAUSE) {
		out->cpu_us = median(both, n);
		out->first_us = median(first, n);
		out->to10_us = median(to10, n);
		out->to100_us = median(to100, n);
	}
	if (j->test->kind != KIND_LINE && j->test->kind != KIND_COPY)
		out->far_cpu = median(cpu, n);
	for (int side = 0; side < 2 && has_processor_time(j, side); side++)
		out->spent_us[side] = median(spent[side], n);
	return 0;
}

/* A run of its own for the spread, so that reading the clock burdens no sample. */
static int take_spread(const struct runner *r, const struct job *j, struct result *out)
{
	static struct hist stamps;
	struct job single = *j;
	struct figures f;

	single.each = true;
	single.count = j->count < STAMPED_MAX ? j->count : STAMPED_MAX;
	return run_probed(r, &single, &f, &stamps, out);
}

static void tell_spread(struct result *out)
{
	const struct hist *h = &out->hist;

	out->min_us = (double)h->min / 1e3;
	out->max_us = (double)h->max / 1e3;
	out->p50_us = hist_quantile(h, 0.5) / 1e3;
	out->p90_us = hist_quantile(h, 0.9) / 1e3;
	out->p99_us = hist_quantile(h, 0.99) / 1e3;
	out->p999_us = hist_quantile(h, 0.999) / 1e3;
}

static void name_path(struct pair *pair, const struct setup *setup, struct result *out)
{
	struct slmpm_stats stats = {.size = sizeof(stats)};
	struct slmpm_link_info link = {.size = sizeof(link)};

	snprintf(out->fabric, sizeof(out->fabric), "%s",
		 pair ? "" : "dacs"); /* which does not tell */
	if (pair && slmpm_peer_stats(pair->peer, &stats, sizeof(stats)) >= 0)
		memcpy(out->fabric, stats.link, sizeof(out->fabric));
	if (out->job.link)
		(void)slmpm_link_query(pair->peer, (uint32_t)out->job.link - 1, &link);
	else if (pair && !test_has_region(out->job.test)) /* its own way has one, too */
		(void)pair_link_in_use(pair, &link);
	if (out->job.link || link.used)
		memcpy(out->fabric, link.fabric, sizeof(out->fabric));
	out->fabric[sizeof(out->fabric) - 1] = '\0';
	out->mode = setup->mode ? setup->mode : "auto";
	if (pair && test_has_region(out->job.test) && out->job.test->by != BY_FIFO)
		memcpy(out->path, pair->region.path, sizeof(out->path));
	if (pair && out->job.test->by == BY_GROUP)
		snprintf(out->path, sizeof(out->path), "%s", collective_path(pair, &out->job));
	if (pair && out->job.test->by == BY_MIRROR)
		pair_mirror_way(pair, out->path, sizeof(out->path));
}

/* The other side would end at it. */
static int refuse_link(const struct job *j, const struct pair *pair)
{
	struct slmpm_link_info link = {.size = sizeof(link)};

	if (!pair)
		fprintf(stderr, "slmpm_perftest: no link can be chosen for %s\n", j->test->name);
	else if (slmpm_link_query(pair->peer, (uint32_t)j->link - 1, &link) < 0)
		(void)slmpm_perror("slmpm_perftest: link");
	else
		return 0;
	return -SLMPM_ENOTSUP;
}

static int refuse(const struct job *j, const struct pair *pair)
{
	if (j->link && refuse_link(j, pair) < 0)
		return -SLMPM_ENOTSUP;
	if (j->test->kind == KIND_MAILBOX && j->wait != WAIT_DEFAULT && !getenv("SLMPM_WAIT")) {
		fprintf(stderr, "slmpm_perftest: mailbox_lat waits in one mode only: start with "
				"--wait and without --serve\n");
		return -SLMPM_ENOTSUP;
	}
	if (j->test->by == BY_LOAN && pair && j->size > pair->loan_max) {
		fprintf(stderr, "slmpm_perftest: a loan holds at most %llu bytes: choose -s\n",
			(unsigned long long)pair->loan_max);
		return -SLMPM_ELIMIT;
	}
	if (j->test->by == BY_FIFO && pair && j->size > pair->fifo_max) {
		fprintf(stderr,
			"slmpm_perftest: an entry of a FIFO holds at most %llu bytes: choose -s\n",
			(unsigned long long)pair->fifo_max);
		return -SLMPM_ELIMIT;
	}
	if (j->test->by == BY_MIRROR && !j->size) {
		fprintf(stderr, "slmpm_perftest: a change has a byte: choose -s\n");
		return -SLMPM_ENOTSUP;
	}
	if (j->test->by == BY_MIRROR && j->track && slmpm_mirror_track_works((int)j->track) < 0) {
		(void)slmpm_perror("slmpm_perftest: --track");
		return -SLMPM_ENOTSUP;
	}
	if (j->test->by == BY_PUT && !j->size) {
		fprintf(stderr, "slmpm_perftest: a put that is waited for has a byte: choose -s\n");
		return -SLMPM_ENOTSUP;
	}
	if (j->test->kind == KIND_LINE && pair && !pair->probes) {
		fprintf(stderr, "slmpm_perftest: line_lat needs both sides on one machine, each on "
				"a CPU of its own: choose -c\n");
		return -SLMPM_ENOTSUP;
	}
	return 0;
}

int measure(struct pair *pair, const struct setup *setup, const struct job *job, struct result *out)
{
	const struct runner r = {pair, setup};
	struct job *j = &out->job;
	int rc;

	memset(out, 0, sizeof(*out));
	hist_clear(&out->hist);
	out->lat_us = out->min_us = out->p50_us = out->p90_us = out->p99_us = -1;
	out->p999_us = out->max_us = out->hops = out->messages_per_s = out->bytes_per_s = -1;
	out->bare_us = out->bare_ratio = out->hidden = out->far_cpu = -1;
	out->first_us = out->to10_us = out->to100_us = out->cpu_us = -1;
	out->spent_us[0] = out->spent_us[1] = -1;
	out->arm_us = out->post_us = out->by_engine = out->kept = -1;
	*j = *job;
	if (test_has_one_size(j->test))
		j->size = j->test->size;
	j->probe = pair && pair->probes && j->test->kind != KIND_COPY;
	rc = refuse(j, pair);
	show_start(j);
	if (rc >= 0)
		rc = prepare(&r, j);
	clear_shown();
	if (rc >= 0)
		rc = take_samples(&r, j, setup->samples, out);
	if (rc < 0)
		return rc;
	name_path(pair, setup, out);
	if (is_latency(j) && setup->spread && !j->each)
		rc = take_spread(&r, j, out);
	if (is_latency(j) && out->hist.count)
		tell_spread(out);
	if (is_of_singles(j, setup) && out->hist.count) {
		out->lat_us = out->p50_us;
		out->hops = out->line_ns > 0 ? out->lat_us * 1e3 / out->line_ns : -1;
	}
	if (j->test->kind == KIND_STREAM || j->test->kind == KIND_COPY) {
		out->messages_per_s = 1e6 / out->lat_us;
		out->bytes_per_s = (double)j->size * 1e6 / out->lat_us;
	}
	if (j->test->by == BY_GROUP && j->size)
		out->bytes_per_s = (double)j->size * 1e6 / out->lat_us;
	if (j->test->kind == KIND_STREAM)
		out->lat_us = -1;
	return rc;
}
