/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 170 */
/* waits */
/*
 * Collectives as programs of work queues, among two to eight processes that are connected pairwise,
 * over shared memory and TCP: every kind by every algorithm, several at once, the application
 * waiting for them, or asleep in read() all the time. One that fails, fails everywhere.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "slmpm/offload/offload.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define MOST    8
#define STREAM  100
#define ENTRIES 4096
#define LONGEST 40000 /* elements: messages that are not sent unasked */
#define HUGE    (1 << 18)
#define EARLY   40 /* pieces: more than are posted at a time */

struct shared {
	char url[MOST][400];
	int ready[MOST];
	int pids[MOST];
};

static struct shared *shared;
static const char *fabric;
static uint32_t size, rank;
static bool asleep;
static slmpm_peer peers[MOST];
static const slmpm_ctx ctx;

/* ---- members --------------------------------------------------------------------------------- */

static void offer_url(slmpm_listener *listener)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	char url[400];

	snprintf(url, sizeof(url), "shm:offload-%d", (int)getpid());
	OK(slmpm_listen(listener, ctx, strcmp(fabric, "tcp") ? url : "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(*listener, &info));
	snprintf(shared->url[rank], sizeof(shared->url[rank]), "%s%s%s", info.url,
		 info.secret[0] ? "#" : "", info.secret);
	shared->pids[rank] = getpid();
	__atomic_store_n(&shared->ready[rank], 1, __ATOMIC_RELEASE);
}

/* Those below are connected to, those above connect. */
static void meet_all(void)
{
	slmpm_listener listener;
	uint32_t who = 0;
	slmpm_peer peer;

	offer_url(&listener);
	for (uint32_t r = 0; r < rank; r++) {
		while (!__atomic_load_n(&shared->ready[r], __ATOMIC_ACQUIRE))
			usleep(1000);
		OK(slmpm_connect(&peers[r], ctx, shared->url[r], PATIENCE));
		OK(slmpm_send(peers[r], 0, &rank, sizeof(rank), PATIENCE));
	}
	for (uint32_t n = rank + 1; n < size; n++) {
		OK(slmpm_accept(listener, &peer, PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &who, sizeof(who), NULL, PATIENCE), sizeof(who));
		CHECK(who > rank && who < size, "rank %u", who);
		peers[who] = peer;
	}
}

static struct offload *open_one(uint32_t depth)
{
	const struct offload_options options = {
		.peers = peers, .size = size, .rank = rank, .stream = STREAM, .depth = depth};
	struct offload *o = NULL;

	OK(offload_open(&o, &options));
	return o;
}

/* ---- cases ----------------------------------------------------------------------------------- */

struct trial {
	struct offload_run run;
	uint32_t number;
	uint64_t counts[MOST], places[MOST], to_counts[MOST], to_places[MOST];
	uint64_t all, to_all; /* elements that all blocks need */
	int64_t *from, *to;
};

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

static bool in_blocks(uint32_t kind)
{
	return kind == PLAN_SCATTER || kind == PLAN_GATHER || kind == PLAN_ALLGATHER ||
	       kind == PLAN_ALLTOALL || kind == PLAN_REDUCE_SCATTER;
}

/* As doubles these are added exactly. */
static int64_t value_of(const struct trial *t, uint32_t from, uint32_t to, uint64_t i)
{
	const double d = (double)(mixed(t->number * 977u + from * 64 + to + i * 8191) % 1000);
	int64_t bits;

	if (t->run.type != SLMPM_DOUBLE)
		return (int64_t)mixed(t->number * 977u + from * 64 + to + i * 8191);
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static int64_t sum_of(const struct trial *t, int64_t a, int64_t b)
{
	double x, y;

	if (t->run.type != SLMPM_DOUBLE)
		return (int64_t)((uint64_t)a + (uint64_t)b);
	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&a, &x, sizeof(a));
	return a;
}

static int64_t reduced(const struct trial *t, uint32_t end, uint32_t to, uint64_t i)
{
	int64_t sum = value_of(t, 0, to, i);

	for (uint32_t r = 1; r < end; r++)
		sum = sum_of(t, sum, value_of(t, r, to, i));
	return sum;
}

static uint64_t len_of(const struct trial *t, uint32_t from, uint32_t to)
{
	const uint64_t some = mixed(t->number + (t->run.spec.kind == PLAN_ALLTOALL ? from : 0) * 8);

	return (some >> to * 7) % (t->run.spec.count + 2);
}

static uint64_t lay_out(const struct trial *t, uint64_t *counts, uint64_t *places, bool sends)
{
	uint64_t end = 0;

	for (uint32_t r = 0; r < size; r++) {
		counts[r] = t->run.spec.count;
		if (t->number % 2 && in_blocks(t->run.spec.kind))
			counts[r] = sends ? len_of(t, rank, r) : len_of(t, r, rank);
		if (t->number % 2 && t->run.spec.kind != PLAN_ALLTOALL)
			counts[r] = len_of(t, 0, r);
		places[r] = end;
		end += counts[r] + t->number % 4 / 3;
	}
	return end;
}

static void fill_blocks(struct trial *t, int64_t *at)
{
	const uint32_t kind = t->run.spec.kind;
	const bool all = kind == PLAN_ALLTOALL || kind == PLAN_REDUCE_SCATTER ||
			 (kind == PLAN_SCATTER && rank == t->run.spec.root);

	if (!all && kind == PLAN_SCATTER)
		return;
	for (uint32_t r = 0; all && r < size; r++)
		for (uint64_t i = 0; i < t->counts[r]; i++)
			at[t->places[r] + i] = value_of(t, rank, r, i);
	for (uint64_t i = 0; !all && i < t->counts[rank]; i++)
		at[i] = value_of(t, rank, 0, i);
}

static void trial_make(struct trial *t, uint32_t kind, uint32_t algorithm, uint32_t number)
{
	static const uint64_t counts[] = {1, 0, 7, 1000, 3, 2, LONGEST};
	const bool blocks = in_blocks(kind);
	struct plan_spec *s = &t->run.spec;

	*t = (struct trial){.number = number};
	*s = (struct plan_spec){.kind = kind,
				.algorithm = algorithm,
				.root = number % size,
				.count = counts[number % 7] / (blocks ? 4 : 1)};
	t->run.type = number % 3 ? SLMPM_INT64 : SLMPM_DOUBLE;
	t->run.mark = number % 2 ? number : 0;
	t->run.op = SLMPM_CALC_SUM;
	t->run.cookie = number;
	t->all = lay_out(t, t->counts, t->places, true);
	t->to_all = lay_out(t, t->to_counts, t->to_places, false);
	t->from = calloc(t->all + s->count + 1, sizeof(*t->from));
	t->to = calloc(t->to_all + t->all + s->count + 1, sizeof(*t->to));
	t->run.from = t->from;
	t->run.to = t->to;
	if (number % 2 && blocks) {
		s->counts = t->counts;
		s->places = t->places;
		s->to_counts = t->to_counts;
		s->to_places = t->to_places;
	}
	/* In place, where the contribution lies at the beginning of the result's memory. */
	if (number % 5 == 1 && (!blocks || kind == PLAN_REDUCE_SCATTER)) {
		s->flags = PLAN_IN_PLACE;
		t->run.from = NULL;
		memset(t->from, 0, sizeof(*t->from));
		free(t->from);
		t->from = t->to;
	}
	if (blocks)
		fill_blocks(t, t->from);
	for (uint64_t i = 0; !blocks && i < s->count; i++)
		t->from[i] = value_of(t, rank, 0, i);
}

static int64_t result_of(const struct trial *t, uint64_t i)
{
	switch (t->run.spec.kind) {
	case PLAN_BROADCAST: return value_of(t, t->run.spec.root, 0, i);
	case PLAN_SCATTER: return value_of(t, t->run.spec.root, rank, i);
	case PLAN_SCAN: return reduced(t, rank + 1, 0, i);
	case PLAN_EXSCAN: return reduced(t, rank, 0, i);
	case PLAN_REDUCE_SCATTER: return reduced(t, size, rank, i);
	default: return reduced(t, size, 0, i);
	}
}

static bool result_here(const struct trial *t)
{
	const bool root = rank == t->run.spec.root;

	switch (t->run.spec.kind) {
	case PLAN_BARRIER: return false;
	case PLAN_BROADCAST: return !root;
	case PLAN_REDUCE:
	case PLAN_GATHER: return root;
	case PLAN_EXSCAN: return rank > 0;
	default: return true;
	}
}

static void compare(const struct trial *t, uint64_t at, int64_t want)
{
	CHECK(t->to[at] == want, "%s by %s, case %u, rank %u of %u over %s: element %llu",
	      plan_kind_name(t->run.spec.kind), plan_name(t->run.spec.algorithm), t->number, rank,
	      size, fabric, (unsigned long long)at);
}

static void trial_check(const struct trial *t)
{
	const uint32_t kind = t->run.spec.kind;
	const uint64_t len = in_blocks(kind) ? t->to_counts[rank] : t->run.spec.count;
	const bool all = kind == PLAN_GATHER || kind == PLAN_ALLGATHER || kind == PLAN_ALLTOALL;

	if (!result_here(t))
		return;
	for (uint32_t r = 0; all && r < size; r++)
		for (uint64_t i = 0; i < t->to_counts[r]; i++)
			compare(t, t->to_places[r] + i,
				value_of(t, r, kind == PLAN_ALLTOALL ? rank : 0, i));
	for (uint64_t i = 0; !all && i < len; i++)
		compare(t, i, result_of(t, i));
}

static void trial_free(struct trial *t)
{
	if (t->from != t->to)
		free(t->from);
	free(t->to);
}

/* ---- running --------------------------------------------------------------------------------- */

static int ends_of_pipe[2];

static void rouse(int signal)
{
	(void)signal;
}

/* No call of the library's but one that makes no progress. */
static void sleep_until(slmpm_ctr ctr, uint64_t value)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();
	char byte;

	do {
		CHECK(read(ends_of_pipe[0], &byte, 1) < 0 && errno == EINTR, "read");
		OK(slmpm_ctr_query(ctr, &info));
	} while (info.done < value && actor_now_ms() < until);
	CHECK(info.done == value, "%llu of %llu have ended", (unsigned long long)info.done,
	      (unsigned long long)value);
}

static void await_ends(struct offload *o, struct trial *trials, int n)
{
	struct offload_end ends[OFFLOAD_RUNS];
	int ended = 0;

	while (ended < n) {
		int got = offload_wait(o, ends, OFFLOAD_RUNS, PATIENCE);

		CHECK(got > 0, "%s", slmpm_error_detail());
		for (int i = 0; i < got; i++) {
			CHECK(ends[i].status == 0, "a run has failed: %s, by %d",
			      slmpm_error_name(ends[i].status), ends[i].culprit);
			CHECK(ends[i].cookie - trials[0].number < (uint64_t)n, "another run");
		}
		ended += got;
	}
	CHECK(ended == n, "%d ends of %d runs", ended, n);
}

static void run_together(struct offload *o, struct trial *trials, int n, slmpm_ctr ctr,
			 uint64_t *counted)
{
	for (int i = 0; i < n; i++) {
		trials[i].run.ctr = ctr;
		OK(offload_start(o, &trials[i].run));
	}
	*counted += (uint64_t)n;
	if (asleep)
		sleep_until(ctr, *counted);
	await_ends(o, trials, n);
	OK(slmpm_ctr_wait(ctr, *counted, 0));
	for (int i = 0; i < n; i++) {
		trial_check(&trials[i]);
		trial_free(&trials[i]);
	}
}

/* Each algorithm with each count; of all kinds some at a time. */
static void run_all(struct offload *o)
{
	struct trial trials[OFFLOAD_RUNS];
	uint64_t counted = 0;
	uint32_t number = 0;
	int n = 0;
	slmpm_ctr ctr;

	OK(slmpm_ctr_create(ctx, &ctr));
	for (uint32_t i = 0; i < 7; i++)
		for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
			for (uint32_t k = 0;; k++) {
				const uint32_t algorithm = plan_algorithm_at(kind, k);

				trial_make(&trials[n++], kind, algorithm, number++);
				if (n == OFFLOAD_RUNS) {
					run_together(o, trials, n, ctr, &counted);
					n = 0;
				}
				if (algorithm == PLAN_AUTO) /* it chooses */
					break;
			}
	run_together(o, trials, n, ctr, &counted);
	OK(slmpm_ctr_destroy(ctr));
}

static void wake_often(void)
{
	const struct itimerval often = {.it_interval = {.tv_usec = 2000},
					.it_value = {.tv_usec = 2000}};
	const struct sigaction action = {.sa_handler = rouse};

	CHECK(pipe(ends_of_pipe) == 0, "pipe");
	CHECK(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
}

/* All members have come here: nothing is closed before. */
static void part_from_all(struct offload *o)
{
	struct offload_end end;

	OK(offload_start(o, &(struct offload_run){.spec = {.kind = PLAN_BARRIER}}));
	EXPECT(offload_wait(o, &end, 1, PATIENCE), 1);
	EXPECT(end.status, 0);
	OK(offload_close(o));
	for (uint32_t r = 0; r < size; r++)
		if (r != rank)
			OK(slmpm_close(peers[r], PATIENCE));
}

static int play_all(void *arg)
{
	struct offload *o;

	rank = (uint32_t)(size_t)arg;
	meet_all();
	o = open_one(ENTRIES);
	if (asleep)
		wake_often();
	run_all(o);
	part_from_all(o);
	return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The first word of each entry that has not begun. */
static void words_of(const struct offload *o, char *words, size_t room)
{
	const slmpm_wq wq = offload_queue(o);
	char text[8192], *line, *rest = text;

	CHECK(slmpm_wq_dump(&wq, 1, NULL, 0, 0, text, sizeof(text)) < (int64_t)sizeof(text),
	      "a long text");
	words[0] = 0;
	while ((line = strsep(&rest, "\n")) && *line) {
		line[strcspn(line, " ")] = 0;
		CHECK(strlen(words) + strlen(line) + 2 < room, "many entries");
		strcat(strcat(words, line), " ");
	}
}

/* What comes replaces what is sent: it is not received into before that has gone. */
static int play_text(void *arg)
{
	static int64_t values[3 * HUGE];
	struct offload_run run = {.spec = {.kind = PLAN_REDUCE,
					   .algorithm = PLAN_CHAIN,
					   .count = 3 * HUGE,
					   .flags = PLAN_IN_PLACE,
					   .piece = HUGE},
				  .type = SLMPM_INT64,
				  .op = SLMPM_CALC_SUM,
				  .to = values};
	struct offload *o;
	struct offload_end end;
	char words[200];

	rank = (uint32_t)(size_t)arg;
	meet_all();
	o = open_one(0);
	for (int i = 0; i < 3 * HUGE; i++)
		values[i] = i * (1 + (int)rank);
	while (rank && __atomic_load_n(&shared->ready[0], __ATOMIC_ACQUIRE) < 2)
		usleep(1000);
	OK(offload_start(o, &run));
	words_of(o, words, sizeof(words));
	CHECK(rank || !strcmp(words, "count recv send count recv send count recv wait calc "),
	      "another program: %s", words);
	__atomic_store_n(&shared->ready[rank], 2, __ATOMIC_RELEASE);
	EXPECT(offload_wait(o, &end, 1, PATIENCE), 1);
	EXPECT(end.status, 0);
	for (int i = 0; rank == 0 && i < 3 * HUGE; i++)
		CHECK(values[i] == 3 * i, "element %d is %lld", i, (long long)values[i]);
	part_from_all(o);
	return 0;
}

/* ---- what comes early ------------------------------------------------------------------------ */

/* The other's part, by hand: all results are there before the first of them is asked for. */
static void send_early(void)
{
	int64_t value = 0;

	for (int64_t i = 0; i < EARLY; i++)
		OK(slmpm_send(peers[0], STREAM, &(int64_t){7 * i}, sizeof(i), PATIENCE));
	OK(slmpm_send(peers[0], 0, &value, sizeof(value), PATIENCE));
	for (int64_t i = 0; i < EARLY; i++) {
		EXPECT(slmpm_recv(peers[0], STREAM, &value, sizeof(value), NULL, PATIENCE),
		       sizeof(value));
		CHECK(value == i, "piece %lld is %lld", (long long)i, (long long)value);
	}
	OK(slmpm_send(peers[0], 0, &value, sizeof(value), PATIENCE));
	OK(slmpm_close(peers[0], PATIENCE));
}

/* Of a program that is posted in several parts receives end before their WAIT is posted. */
static int play_early(void *arg)
{
	int64_t from[EARLY], to[EARLY] = {0}, word;
	const struct offload_run run = {
		.spec = {.kind = PLAN_REDUCE, .algorithm = PLAN_CHAIN, .count = EARLY, .piece = 1},
		.type = SLMPM_INT64,
		.op = SLMPM_CALC_SUM,
		.from = from,
		.to = to};
	struct offload_end end;
	struct offload *o;

	rank = (uint32_t)(size_t)arg;
	meet_all();
	if (rank) {
		send_early();
		return 0;
	}
	for (int64_t i = 0; i < EARLY; i++)
		from[i] = i;
	o = open_one(0);
	EXPECT(slmpm_recv(peers[1], 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	OK(offload_start(o, &run));
	EXPECT(offload_wait(o, &end, 1, PATIENCE), 1);
	EXPECT(end.status, 0);
	for (int i = 0; i < EARLY; i++)
		CHECK(to[i] == 7 * i, "element %d is %lld", i, (long long)to[i]);
	EXPECT(slmpm_recv(peers[1], 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	OK(offload_close(o));
	OK(slmpm_close(peers[1], PATIENCE));
	return 0;
}

/* ---- failures -------------------------------------------------------------------------------- */

static void refuse_what_cannot_be(struct offload *o)
{
	struct offload_run run = {.spec = {.kind = PLAN_ALLREDUCE, .count = 1},
				  .type = SLMPM_FLOAT,
				  .op = SLMPM_CALC_XOR};

	EXPECT(offload_start(o, &run), -SLMPM_EINVAL);
	run.type = 99;
	EXPECT(offload_start(o, &run), -SLMPM_EINVAL);
	run.type = SLMPM_INT32;
	run.spec.algorithm = PLAN_BRUCK;
	EXPECT(offload_start(o, &run), -SLMPM_EINVAL);
	run.spec = (struct plan_spec){
		.kind = PLAN_BROADCAST, .algorithm = PLAN_CHAIN, .count = 1000, .piece = 1};
	EXPECT(offload_start(o, &run), -SLMPM_ELIMIT);
}

/* The last rank never begins, and is killed. */
static int play_killed(void *arg)
{
	static int64_t values[OFFLOAD_RUNS], sums[OFFLOAD_RUNS];
	struct offload_end ends[OFFLOAD_RUNS];
	int64_t begun;
	struct offload *o;
	int ended = 0;

	rank = (uint32_t)(size_t)arg;
	meet_all();
	o = open_one(100);
	refuse_what_cannot_be(o);
	for (uint32_t i = 0; rank + 1 < size && i < OFFLOAD_RUNS; i++)
		OK(offload_start(o, &(struct offload_run){.spec = {.kind = PLAN_ALLREDUCE,
								   .algorithm = PLAN_FLAT,
								   .count = 1},
							  .type = SLMPM_INT64,
							  .op = SLMPM_CALC_SUM,
							  .from = &values[i],
							  .to = &sums[i],
							  .cookie = i}));
	__atomic_store_n(&shared->ready[rank], 2, __ATOMIC_RELEASE);
	while (rank + 1 == size)
		(void)slmpm_progress(ctx);
	EXPECT(offload_start(o, &(struct offload_run){.spec = {.kind = PLAN_BARRIER}}),
	       -SLMPM_EAGAIN);
	EXPECT(offload_close(o), -SLMPM_EBUSY);
	EXPECT(offload_wait(o, ends, 1, 10), -SLMPM_ETIMEOUT);
	for (uint32_t r = 0; r + 1 < size; r++)
		while (__atomic_load_n(&shared->ready[r], __ATOMIC_ACQUIRE) < 2)
			usleep(1000);
	usleep(20000);
	begun = actor_now_ms();
	(void)kill(shared->pids[size - 1], SIGKILL);
	while (ended < OFFLOAD_RUNS) {
		int got = offload_wait(o, ends, OFFLOAD_RUNS, PATIENCE);

		CHECK(got > 0, "%d: %s", got, slmpm_error_detail());
		for (int i = 0; i < got; i++)
			CHECK(ends[i].status < 0 && ends[i].culprit == (int)size - 1,
			      "%s by rank %d", slmpm_error_name(ends[i].status), ends[i].culprit);
		ended += got;
	}
	CHECK(actor_now_ms() - begun < 1000 * actor_slow(), "%lld ms",
	      (long long)(actor_now_ms() - begun));
	CHECK(offload_start(o, &(struct offload_run){.spec = {.kind = PLAN_BARRIER}}) < 0,
	      "another begins");
	OK(offload_close(o));
	return 0;
}

/* ---- */

struct scene {
	const char *fabric, *engine;
	uint32_t size;
	bool asleep;
	int (*play)(void *);
};

static int run_scene(void *arg)
{
	const struct scene *s = arg;
	pid_t pids[MOST];

	fabric = s->fabric;
	size = s->size;
	asleep = s->asleep;
	settings_one_link(fabric);
	setenv("SLMPM_ENGINE", s->engine, 1);
	for (uint32_t r = 0; r < size; r++)
		pids[r] = child_start(s->play, (void *)(size_t)r, 60);
	for (uint32_t r = 0; r < size; r++) {
		const int code = child_wait(pids[r]);
		const bool killed = s->play == play_killed && r + 1 == size;

		CHECK(code == (killed ? -SIGKILL : 0), "rank %u of %u: %d", r, size, code);
	}
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"shm", "none", 2, false, play_all},      {"shm", "none", 5, false, play_all},
		{"shm", "thread", 3, true, play_all},     {"shm", "thread", 8, true, play_all},
		{"tcp", "none", 4, false, play_all},      {"tcp", "thread", 3, true, play_all},
		{"shm", "none", 2, false, play_text},     {"shm", "none", 2, false, play_early},
		{"tcp", "thread", 2, false, play_early},  {"shm", "none", 3, false, play_killed},
		{"tcp", "thread", 3, false, play_killed},
	};

	shared = child_common(sizeof(*shared));
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (TEST_THREADS_ALONE && strcmp(scenes[i].engine, "thread") != 0)
			continue;
		memset(shared, 0, sizeof(*shared));
		CHECK(child_run(run_scene, &scenes[i], 70) == 0,
		      "%u members over %s, %s: see above", scenes[i].size, scenes[i].fabric,
		      scenes[i].engine);
		printf("%u members over %s, engine %s\n", scenes[i].size, scenes[i].fabric,
		       scenes[i].engine);
		fflush(stdout);
	}
	return 0;
}
