/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 40 */
/*
 * slmpm_sim does the very programs that a group has: those of five members that meet by messages,
 * held before they begin and written by slmpm_wq_dump, have the entries of the plans that it
 * interprets, one by one, and as many of each kind as it says that it has done.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm_plan.h>

#include "slmpm/workqueue/workqueue.h"
#include "tests/lib/child.h"
#include "tests/lib/circle.h"

#define TAG      6
#define MEMBERS  5
#define CHANNELS 4 /* of a group's queue */
#define DONE     2
#define TEXT     (64 * 1024)
#define MOST     (64 * 1024) /* elements that come together at a member */

/* In the order of slmpm_sim's. */
enum { SEND, RECV, WAIT, CALC, COUNT, KINDS };
static const char *const words[KINDS] = {"send", "recv", "wait", "calc", "count"};

static const struct operation {
	uint32_t kind;
	const char *algorithm; /* that slmpm_sim is to take */
	uint64_t count;
	int root;
} operations[] = {
	{SLMPM_COLL_BARRIER, "auto", 0, 0},
	{SLMPM_COLL_BROADCAST, "auto", 1, 2},
	{SLMPM_COLL_BROADCAST, "auto", 60000, 4},
	{SLMPM_COLL_REDUCE, "auto", 1, 4},
	{SLMPM_COLL_REDUCE, "auto", 60000, 1},
	{SLMPM_COLL_ALLREDUCE, "auto", 1, 0},
	{SLMPM_COLL_ALLREDUCE, "auto", 1024, 0},
	{SLMPM_COLL_ALLREDUCE, "auto", 60000, 0},
	{SLMPM_COLL_SCATTER, "flat", 7, 3}, /* a group's only way */
	{SLMPM_COLL_GATHER, "flat", 7, 3},
	{SLMPM_COLL_ALLGATHER, "auto", 1, 0},
	{SLMPM_COLL_ALLGATHER, "auto", 10000, 0},
	{SLMPM_COLL_ALLTOALL, "auto", 5, 0},
	{SLMPM_COLL_REDUCE_SCATTER, "auto", 10000, 0},
	{SLMPM_COLL_SCAN, "auto", 1, 0},
	{SLMPM_COLL_EXSCAN, "auto", 1, 0},
};
#define OPERATIONS ((int)(sizeof(operations) / sizeof(operations[0])))

/* Entries by kind, of each member. */
static uint32_t (*had)[MEMBERS][KINDS];

/* ---- what a member has -------------------------------------------------------------------- */

struct hold {
	slmpm_wq wq, own;
	slmpm_ctr gate;
	uint64_t value;
	char text[TEXT];
};

/* The queue of the only group. */
static slmpm_wq queue_of_group(void)
{
	int rc = 0;
	const struct context *ctx = context_get(circle_own, &rc);
	slmpm_wq wq = {0};

	CHECK(ctx, "no context: %d", rc);
	LIST_EACH_ENTRY(struct workqueue, own, &ctx->work_queues, node)
		wq.id = handle_id(own);
	CHECK(wq.id, "the group has no work queue");
	return wq;
}

/* In all channels, for the next operation comes into one of them. */
static void close_gates(struct hold *h)
{
	struct slmpm_wr wr[CHANNELS];

	h->value++;
	for (uint32_t i = 0; i < CHANNELS; i++)
		wr[i] = (struct slmpm_wr){.size = sizeof(wr[i]),
					  .op = SLMPM_OP_WAIT,
					  .flags = SLMPM_SILENT,
					  .channel = i,
					  .ctr = h->gate,
					  .value = h->value};
	EXPECT(slmpm_post(h->wq, wr, CHANNELS), CHANNELS);
}

static void open_gates(struct hold *h)
{
	const struct slmpm_wr wr = {.size = sizeof(wr),
				    .op = SLMPM_OP_COUNT,
				    .flags = SLMPM_SILENT,
				    .ctr = h->gate,
				    .value = h->value};

	EXPECT(slmpm_post(h->own, &wr, 1), 1);
}

/* Until the program is behind its gate; then it may begin. */
static void *watch(void *arg)
{
	struct hold *h = arg;

	do {
		int64_t len = slmpm_wq_dump(&h->wq, 1, NULL, 0, 0, h->text, TEXT);

		CHECK(len > 0 && len < TEXT, "%lld bytes of text", (long long)len);
		usleep(500);
	} while (!strstr(h->text, "calc"));
	open_gates(h);
	return NULL;
}

static int kind_of(const char *line)
{
	for (int k = 0; k < KINDS; k++)
		if (!strncmp(line, words[k], strlen(words[k])))
			return k;
	CHECK(false, "no entry: %s", line);
	return 0;
}

/* ---- what the plan has --------------------------------------------------------------------- */

static int kind_of_step(uint32_t op)
{
	switch (op) {
	case SLMPM_PLAN_SEND: return SEND;
	case SLMPM_PLAN_RECV: return RECV;
	case SLMPM_PLAN_WAIT: return WAIT;
	case SLMPM_PLAN_GATE: return COUNT;
	default: return CALC;
	}
}

static struct slmpm_plan *plan_of(const struct operation *o, uint32_t rank)
{
	struct slmpm_plan_spec spec = {.size = sizeof(spec),
				       .kind = o->kind,
				       .members = MEMBERS,
				       .rank = rank,
				       .root = (uint32_t)o->root,
				       .flags = SLMPM_PLAN_PROGRAM,
				       .width = 8,
				       .count = o->count};
	struct slmpm_plan *plan;

	for (uint32_t a = 1; strcmp(o->algorithm, "auto") && !spec.algorithm; a++)
		if (!strcmp(slmpm_plan_algorithm(a), o->algorithm))
			spec.algorithm = a;
	OK(slmpm_plan_open(&plan, &spec));
	return plan;
}

/* TEXT's entries, behind the gates, are the steps of the plan. */
static void compare(const struct operation *o, uint32_t rank, char *text, uint32_t count[KINDS])
{
	struct slmpm_plan_step step = {.size = sizeof(step)};
	struct slmpm_plan *plan = plan_of(o, rank);
	int lines = 0, k;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (lines++ < CHANNELS)
			continue;
		k = kind_of(line);
		EXPECT(slmpm_plan_next(plan, &step), 1);
		CHECK(kind_of_step(step.op) == k, "%s, rank %u, entry %d: step %u is \"%s\"",
		      slmpm_plan_kind(o->kind), rank, lines - CHANNELS, step.op, line);
		count[k]++;
	}
	EXPECT(slmpm_plan_next(plan, &step), 0);
	slmpm_plan_close(plan);
}

/* ---- members -------------------------------------------------------------------------------- */

static void carry_out(struct hold *h, slmpm_group group, int number)
{
	static uint64_t from[MOST], to[MOST];
	const struct operation *o = &operations[number];
	const struct slmpm_group_info info = circle_query(group);
	pthread_t thread;

	close_gates(h);
	EXPECT(pthread_create(&thread, NULL, watch, h), 0);
	if (o->kind == SLMPM_COLL_BARRIER)
		OK(slmpm_barrier(group, PATIENCE));
	else
		OK(slmpm_collect(group, o->kind, from, to, o->count, SLMPM_UINT64, SLMPM_CALC_SUM,
				 o->root, PATIENCE));
	EXPECT(pthread_join(thread, NULL), 0);
	compare(o, (uint32_t)info.rank, h->text, had[number][info.rank]);
}

static void member(slmpm_peer founder, int i, void *unused)
{
	struct slmpm_wq_options options = {.size = sizeof(options)};
	struct hold *h = calloc(1, sizeof(*h));
	slmpm_group group;

	(void)i;
	(void)unused;
	CHECK(h, "no memory");
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE)); /* the first operation makes the queue */
	OK(slmpm_ctr_create(circle_own, &h->gate));
	h->wq = queue_of_group();
	OK(slmpm_cq_create(circle_own, &options.cq));
	OK(slmpm_wq_create(circle_own, &options, &h->own));
	for (int n = 0; n < OPERATIONS; n++)
		carry_out(h, group, n);
	OK(slmpm_barrier(group, PATIENCE));
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
	free(h);
}

/* ---- the simulation ------------------------------------------------------------------------- */

static void simulate(const struct operation *o, uint64_t count[KINDS])
{
	const char *build = getenv("SLMPM_BUILD"), *emulator = getenv("SLMPM_EMULATOR"), *found;
	char command[500], text[2000] = "";
	FILE *out;

	snprintf(command, sizeof(command),
		 "%s %s/bin/slmpm_sim --json -n %d -c %s -a %s -s %llu --root %d",
		 emulator ? emulator : "", build ? build : "build", MEMBERS,
		 slmpm_plan_kind(o->kind), o->algorithm, (unsigned long long)o->count * 8, o->root);
	out = popen(command, "r");
	CHECK(out && fgets(text, sizeof(text), out), "nothing of %s", command);
	EXPECT(pclose(out), 0);
	found = strstr(text, "\"entries\"");
	for (int k = 0; k < KINDS; k++) {
		char word[20];

		snprintf(word, sizeof(word), "\"%s\":", words[k]);
		CHECK(found && strstr(found, word), "no %s in %s", word, text);
		count[k] = strtoull(strstr(found, word) + strlen(word), NULL, 10);
	}
}

static void compare_all(int number, uint64_t of_kind[KINDS])
{
	const struct operation *o = &operations[number];
	uint64_t simulated[KINDS];

	simulate(o, simulated);
	for (int k = 0; k < KINDS; k++) {
		uint64_t all = 0;

		for (int r = 0; r < MEMBERS; r++)
			all += had[number][r][k];
		CHECK(all == simulated[k], "%s of %llu: %llu entries %s, simulated %llu",
		      slmpm_plan_kind(o->kind), (unsigned long long)o->count,
		      (unsigned long long)all, words[k], (unsigned long long)simulated[k]);
		of_kind[k] += all;
	}
}

int main(void)
{
	struct circle c = {.flags = SLMPM_THREADS, .apart = 1};
	const char *build = getenv("SLMPM_BUILD");
	uint64_t of_kind[KINDS] = {0};
	slmpm_group group;
	char path[400];

	snprintf(path, sizeof(path), "%s/bin/slmpm_sim", build ? build : "build");
	if (access(path, X_OK) != 0) {
		puts("slmpm_sim was left out");
		return 77;
	}
	had = child_common(OPERATIONS * sizeof(*had));
	circle_begin(&c, MEMBERS, member, NULL, 30);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MEMBERS, TAG, PATIENCE));
	for (int i = 0; i < MEMBERS; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	for (int n = 0; n < OPERATIONS; n++)
		compare_all(n, of_kind);
	for (int k = 0; k < KINDS; k++)
		CHECK(of_kind[k], "no program has a %s", words[k]);
	return 0;
}
