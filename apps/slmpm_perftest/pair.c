/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two processes of a measurement: how side 0 gets its side 1, and one run of a job on both.
 * Side 0 says on a stream of its own what comes.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- CPUs ---- */

int pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -1 : cpu;
}

void choose_cpus(struct setup *setup)
{
	int found[MEMBERS_MAX] = {0}, n = 0;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		CPU_ZERO(&allowed);
	for (int c = 0; n < MEMBERS_MAX && c < CPU_SETSIZE; c++)
		if (CPU_ISSET((size_t)c, &allowed))
			found[n++] = c;
	if (n < 2)
		found[1] = found[0];
	for (int i = setup->chosen ? MEMBERS_MAX : 0; i < n || i < 2; i++)
		setup->cpu[i] = setup->cpu[i] < 0 || i > 1 ? found[i] : setup->cpu[i];
	if (!setup->chosen)
		setup->cpus = (unsigned)n;
}

/* ---- the parts of a pair ---- */

#define CROWDING_NS 12000000

static uint64_t physical_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);

	return pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;
}

/* Buffers of SIZE bytes, of so many processes. */
static bool fits_memory(uint64_t size, unsigned processes)
{
	if (size <= physical_memory() / 2 / processes)
		return true;
	fprintf(stderr, "slmpm_perftest: messages of %llu bytes do not fit in memory\n",
		(unsigned long long)size);
	return false;
}

static void release_buffers(struct pair *p)
{
	if (!p->room)
		return;
	munmap(p->tx, p->room);
	munmap(p->rx, p->room);
	p->room = 0;
}

int pair_buffers(struct pair *p, uint64_t size)
{
	char *area;

	if (p->room && p->room >= size)
		return 0;
	release_buffers(p);
	size = (size + 65536 + 4095) & ~UINT64_C(4095);
	if (!fits_memory(size, 2))
		return -SLMPM_ENOMEM;
	for (int i = 0; i < 2; i++) {
		area = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (area == MAP_FAILED) {
			fprintf(stderr, "slmpm_perftest: no memory for a message of %llu bytes\n",
				(unsigned long long)size);
			return -SLMPM_ENOMEM;
		}
		memset(area, 1, size);
		*(i ? &p->rx : &p->tx) = area;
	}
	p->room = size;
	return 0;
}

int pair_open(struct pair *p, unsigned wait)
{
	struct slmpm_options how = {.size = sizeof(how), .wait = wait};

	*p = (struct pair){.side = 0, .wait = wait};
	if (slmpm_open(&p->ctx, wait == WAIT_DEFAULT ? NULL : &how) < 0)
		return slmpm_perror("slmpm_perftest: open");
	return 0;
}

int pair_limits(struct pair *p)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	if (slmpm_peer_query(p->peer, &info) < 0)
		return slmpm_perror("slmpm_perftest: query");
	p->packet_max = info.packet_max;
	p->loan_max = info.loan_max;
	p->fifo_max = info.eager_max < 56 ? 0 : info.eager_max - 56;
	return 0;
}

int pair_say(struct pair *p, const char *text)
{
	return slmpm_send(p->peer, STREAM_CONTROL, text, strlen(text), ANSWER_MS);
}

int pair_hear(struct pair *p, char *text, size_t size, int timeout_ms)
{
	int64_t len = slmpm_recv(p->peer, STREAM_CONTROL, text, size - 1, NULL, timeout_ms);

	text[len > 0 ? len : 0] = '\0';
	return len < 0 ? (int)len : 0;
}

static int alive(void *arg)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct pair *p = arg;

	slmpm_progress(p->ctx);
	return slmpm_peer_query(p->peer, &info) >= 0 && info.state <= SLMPM_PEER_UP;
}

/* ---- side 0 ---- */

/* Tells the other side where the board is and which CPU to take; each side pins itself. */
static int greet(struct pair *p, const int cpu[2])
{
	char board[64], text[256];
	int mine = pin(cpu[0]), theirs = -1;

	p->board = board_create(board, sizeof(board));
	snprintf(text, sizeof(text), GREETING " %s %d", board, cpu[1]);
	if (pair_say(p, text) < 0 || pair_hear(p, text, sizeof(text), ANSWER_MS) < 0)
		return slmpm_perror("slmpm_perftest: the other side does not answer");
	if (sscanf(text, "ready %63s %d", board, &theirs) != 2) {
		fprintf(stderr,
			"slmpm_perftest: the other side says \"%s\"; are both of one "
			"version?\n",
			text);
		return 1;
	}
	if (strcmp(board, "board") != 0)
		p->board = NULL;
	p->probes = p->board && mine >= 0 && theirs >= 0 && mine != theirs;
	return pair_limits(p);
}

int pair_spawn(struct pair *p, unsigned wait, const int cpu[2], uint32_t element)
{
	char mode[16];
	char *const argv[] = {"--far", "--wait", mode, NULL};
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};

	if (pair_open(p, wait))
		return -1;
	snprintf(mode, sizeof(mode), "%s", wait_name(wait));
	how.ctx = p->ctx;
	how.element = element;
	p->spawned = true;
	if (slmpm_spawn(&p->peer, "/proc/self/exe", argv, &how) < 0)
		return slmpm_perror("slmpm_perftest: start of the second process");
	return greet(p, cpu) ? -1 : 0;
}

int pair_connect(struct pair *p, const char *url, unsigned wait, const int cpu[2])
{
	if (pair_open(p, wait))
		return -1;
	if (slmpm_connect(&p->peer, p->ctx, url, 5000) < 0)
		return slmpm_perror("slmpm_perftest: connect (is slmpm_perftest --listen there?)");
	return greet(p, cpu) ? -1 : 0;
}

void pair_leave(struct pair *p)
{
	crew_end(p);
	slmpm_close(p->peer, 1000);
	pair_region_end(p);
	pair_mirror_end(p);
	if (p->spawned)
		slmpm_join(p->peer, NULL, 5000);
	release_buffers(p);
	*p = (struct pair){.ctx = p->ctx, .wait = p->wait};
}

void pair_end(struct pair *p)
{
	if (!p->ctx.id)
		return;
	pair_leave(p);
	slmpm_shut(p->ctx, 1000);
	p->ctx.id = 0;
}

void pair_drop(struct pair *p)
{
	if (p->ctx.id)
		crew_kill(p);
	if (p->ctx.id && p->spawned)
		slmpm_kill(p->peer, 0);
	pair_end(p);
}

/* ---- one run, both sides ---- */

static void count_remote(struct pair *p, uint64_t *reads, uint64_t *writes)
{
	struct slmpm_stats stats = {.size = sizeof(stats)};

	if (slmpm_peer_stats(p->peer, &stats, sizeof(stats)) < 0)
		return;
	*reads = stats.remote_reads - *reads;
	*writes = stats.remote_writes - *writes;
}

/* Side 1's report: its counts, its share of the CPU, and the histogram of what it timed as
 * INDEX:COUNT. */
static int report_back(struct pair *p, const struct figures *f, const struct hist *stamps)
{
	static char text[CONTROL_MAX];
	size_t at = (size_t)snprintf(text, sizeof(text), "done %" PRIu64 " %" PRIu64 " %.6f",
				     f->reads, f->writes, f->extra.far_cpu);

	for (unsigned i = 0; stamps && i < HIST_BUCKETS && at < sizeof(text) - 64; i++)
		if (stamps->bucket[i])
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       " %" PRIu64 ":%" PRIu64, hist_floor(i),
					       stamps->bucket[i]);
	return pair_say(p, text);
}

static int take_report(struct pair *p, char *text)
{
	return pair_hear(p, text, CONTROL_MAX, -1);
}

static int read_report(const char *text, struct figures *f, struct hist *stamps)
{
	uint64_t reads, writes, value, n;
	int used;

	if (sscanf(text, "done %" SCNu64 " %" SCNu64 " %lf%n", &reads, &writes, &f->extra.far_cpu,
		   &used) != 3)
		return -SLMPM_EPROTO;
	f->reads += reads;
	f->writes += writes;
	for (text += used; sscanf(text, " %" SCNu64 ":%" SCNu64 "%n", &value, &n, &used) == 2;
	     text += used)
		if (stamps)
			hist_add_n(stamps, value, n);
	return 0;
}

static int probe(struct pair *p, const struct job *j, double *ns, struct hist *stamps)
{
	struct hist *each = j->test->kind == KIND_LINE ? stamps : NULL;

	if (!j->probe)
		return 0;
	*ns = board_probe(p->board, p->side, alive, p, each);
	/* Side 0's first message must not find side 1 still in the probe. */
	return *ns < 0 ? -SLMPM_EDEAD : board_meet(p->board, p->side, alive, p);
}

uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Something else computes here, and has got its share of the processor, before the clock starts. */
static int crowd(struct pair *p, const struct job *j, struct neighbour **beside)
{
	uint64_t until = now_ns() + CROWDING_NS;

	if (j->busy >= 2u - (unsigned)p->side && !(*beside = neighbour_begin()))
		return -SLMPM_ENOMEM;
	while (now_ns() < until)
		relax();
	return p->board ? board_meet(p->board, p->side, alive, p) : 0;
}

int pair_run_side(struct pair *p, const struct job *j, struct figures *f, struct hist *stamps)
{
	static char text[CONTROL_MAX];
	loop_fn *loop = j->verify ? loop_verify : j->test->loop;
	uint64_t worked;
	/* Side 1 takes times only where it alone can: on arrival after an idle wait. */
	struct neighbour *beside = NULL;
	struct hist *mine = !j->each || (p->side == 1) != (j->idle_us > 0) ? NULL : stamps;
	uint64_t begin;
	int rc;

	*f = (struct figures){0};
	p->extra = (struct extra){.hidden = -1, .by_engine = -1, .kept = -1};
	rc = pair_by_link(p, j->link);
	if (rc >= 0 && test_has_region(j->test))
		rc = pair_region(p, j->size);
	if (j->test->by != BY_MIRROR)
		pair_mirror_end(p); /* what lands is noted where there are some */
	else if (rc >= 0)
		rc = pair_mirror(p, j->size, j->track);
	if (rc >= 0)
		rc = probe(p, j, &f->before, stamps);
	count_remote(p, &f->reads, &f->writes);
	if (rc >= 0 && j->busy)
		rc = crowd(p, j, &beside);
	if (p->trace)
		trace_begin(p->trace);
	worked = cpu_ns();
	begin = now_ns();
	if (rc >= 0)
		rc = loop(p, j, mine);
	if (rc >= 0 && p->side == 0)
		rc = take_report(p, text);
	f->ns = (double)(now_ns() - begin);
	neighbour_end(beside);
	f->extra = p->extra;
	worked = cpu_ns() - worked;
	f->extra.far_cpu = (double)worked / f->ns; /* on side 1 */
	if (f->extra.each_ns > 0)
		f->ns = f->extra.each_ns * (double)j->count;
	count_remote(p, &f->reads, &f->writes);
	if (rc >= 0)
		rc = p->side ? report_back(p, f, mine) : read_report(text, f, mine ? NULL : stamps);
	f->extra.near_ns = (double)worked;
	f->extra.cpu_ns = f->extra.near_ns + f->extra.far_cpu * f->ns;
	return rc < 0 ? rc : probe(p, j, &f->after, stamps);
}

int pair_run(struct pair *p, const struct job *job, struct figures *f, struct hist *stamps)
{
	char text[256];
	int rc;

	if (job->test->by == BY_GROUP && !fits_memory(burst_room(job), job->members))
		return -SLMPM_ENOMEM;
	rc = pair_buffers(p, burst_room(job));
	if (rc < 0)
		return rc;
	if (job->test->kind == KIND_COPY) { /* no business of the other side's */
		*f = (struct figures){.ns = (double)now_ns(), .extra.near_ns = (double)cpu_ns()};
		rc = job->test->loop(p, job, job->each ? stamps : NULL);
		f->ns = (double)now_ns() - f->ns;
		f->extra.cpu_ns = f->extra.near_ns = (double)cpu_ns() - f->extra.near_ns;
		return rc;
	}
	job_print(job, text, sizeof(text));
	rc = pair_say(p, text);
	if (rc >= 0)
		rc = pair_run_side(p, job, f, stamps);
	if (rc < 0 && rc != -SLMPM_ECHECKSUM && rc != -SLMPM_ENOTSUP) /* these have been told */
		slmpm_perror("slmpm_perftest: run");
	return rc;
}
