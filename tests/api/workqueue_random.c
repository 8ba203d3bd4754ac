/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 200 */
/*
 * Random programs over several work queues against an interpreter (workqueue_model.h): which
 * entries end, how, in which order in their channel, and what they leave in counters, here and as a
 * peer has granted them, totals and memory. What the interpreter cannot end stands still, is
 * cancelled, and everything is told once. SLMPM_TEST_SEED repeats a program, SLMPM_TEST_PROGRAMS
 * sets how many; one that fails is printed without the entries that it fails without.
 */
#include <stdatomic.h>

#include "tests/api/workqueue.h"
#include "tests/api/workqueue_model.h"
#include "tests/lib/settings.h"

#define PROGRAMS 120
#define BATCH    20
#define LATE     2000 /* ms, times actor_slow(): what is to come has not */
#define BOTH     200  /* what handlers are told: an entry's active message */

struct run {
	struct program program;
	_Atomic uint32_t next; /* of a batch: the program that runs */
	bool engine;
};

static struct run *run; /* shared with the children */
static struct model model;
static slmpm_wq queue[QUEUES];
static slmpm_cq ends[QUEUES];
static slmpm_ctr counters[COUNTERS];
static slmpm_rmem granted[COUNTERS][2]; /* the same, as A reaches B's and B A's */
static uint64_t place[ENTRIES];
static struct slmpm_iov whole, wholes[ENTRIES];
static uint32_t told[ENTRIES], failures[ENTRIES];
static _Atomic uint64_t handled, posted_by_handler;

/* ---- posting ------------------------------------------------------------------------------- */

/* What earlier programs of a batch have sent may still lie there. */
static uint32_t stream_of(const struct entry *e)
{
	return atomic_load(&run->next) * ENTRIES + e->stream;
}

static struct slmpm_wr request(const struct entry *e, struct slmpm_iov *iov)
{
	uint32_t i = (uint32_t)(e - run->program.e);
	bool receives = e->op == SLMPM_OP_RECV;
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = e->op,
			      .flags = e->flags,
			      .channel = e->channel,
			      .cookie = i,
			      .value = e->value,
			      .index = e->index};

	if (e->counts != NO_COUNTER)
		wr.ctr = counters[e->counts];
	if (e->rcounts != NO_COUNTER)
		wr.rctr = granted[e->rcounts][e->reverse];
	if (e->op == SLMPM_OP_COUNT && e->remote)
		wr.rctr = granted[e->which][e->reverse];
	else if (e->op == SLMPM_OP_COUNT || (e->op == SLMPM_OP_WAIT && !e->on_cq && !e->index))
		wr.ctr = counters[e->which];
	if (e->op == SLMPM_OP_ENABLE || (e->op == SLMPM_OP_WAIT && e->index))
		wr.wq = queue[e->which];
	if (e->op == SLMPM_OP_WAIT && e->on_cq)
		wr.cq = ends[e->which];
	if (e->op >= SLMPM_OP_WAIT)
		return wr;
	if (e->op == SLMPM_OP_AM || e->op == SLMPM_OP_SEND || receives) {
		wr.peer = e->reverse != receives ? b : a;
		wr.stream = e->op == SLMPM_OP_AM ? BOTH : stream_of(e);
	} else {
		wr.rmem = far;
		wr.offset = 8 * (uint64_t)(e->bad ? WORDS : e->word);
	}
	*iov = (struct slmpm_iov){receives || e->op == SLMPM_OP_GET ? &place[i] : &here[i], 8};
	if (e->is_long)
		*iov = receives ? wholes[i] : whole;
	wr.iov = iov;
	wr.iov_count = e->op != SLMPM_OP_ATOMIC;
	if (e->op == SLMPM_OP_ATOMIC) {
		wr.atomic = SLMPM_FETCH_ADD;
		wr.bits = 64;
		wr.operand = 1 + i;
		wr.old = &place[i];
	}
	return wr;
}

static struct slmpm_wq_info look(uint32_t q)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(queue[q], &info));
	return info;
}

static uint64_t counted(uint32_t c)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(counters[c], &info));
	return info.done;
}

static uint64_t come(uint32_t c)
{
	struct slmpm_cq_info info = {.size = sizeof(info)};

	OK(slmpm_cq_query(ends[c], &info));
	return info.total;
}

static uint64_t total_of(const struct entry *e)
{
	return e->index ? look(e->which).done : e->on_cq ? come(e->which) : counted(e->which);
}

/* Entry FIRST and those of its chunk: the next one. */
static uint32_t post_chunk(uint32_t first)
{
	const struct program *p = &run->program;
	struct slmpm_iov iov[ENTRIES];
	struct slmpm_wr wr[ENTRIES];
	uint32_t i, n = 0;

	for (i = first; i < p->count && p->e[i].chunk == p->e[first].chunk; i++) {
		const struct entry *e = &p->e[i];

		if (e->dropped)
			continue;
		wr[n] = request(e, &iov[n]);
		model_add(&model, e,
			  !p->gated && e->op == SLMPM_OP_WAIT && is_relative(e) ? total_of(e) : 0);
		n++;
	}
	if (n)
		EXPECT(slmpm_post(queue[p->e[first].queue], wr, (int)n), n);
	return i;
}

static void handle(const struct slmpm_am *am, void *arg)
{
	uint32_t first;

	(void)arg;
	if (am->id == BOTH) {
		atomic_fetch_add(&handled, 1);
		return;
	}
	memcpy(&first, am->head, sizeof(first));
	(void)post_chunk(first);
	atomic_fetch_add(&posted_by_handler, 1);
}

static void await_handler(uint64_t n)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (atomic_load(&posted_by_handler) < n) {
		CHECK(actor_now_ms() < until, "%llu handlers have posted, of %llu",
		      (unsigned long long)atomic_load(&posted_by_handler), (unsigned long long)n);
		(void)slmpm_progress(ctx);
	}
}

static void post_program(struct rng *g)
{
	const struct program *p = &run->program;
	uint64_t by_handler = 0;

	for (uint32_t i = 0; i < p->count;) {
		uint32_t next = i + 1;

		if (!p->e[i].by_handler) {
			next = post_chunk(i);
		} else {
			OK(slmpm_am(b, 1, &i, sizeof(i), NULL, 0, NULL, NULL));
			await_handler(++by_handler);
			while (next < p->count && p->e[next].chunk == p->e[i].chunk)
				next++;
		}
		for (uint32_t n = rng_below(g, 3); n > 1; n--)
			(void)slmpm_progress(ctx);
		i = next;
	}
}

/* ---- what has come of it ------------------------------------------------------------------- */

static void take(const struct slmpm_done *done)
{
	uint32_t i = (uint32_t)done->cookie;
	const struct entry *e = &run->program.e[i];

	CHECK(i < run->program.count && !e->dropped && done->op == e->op, "cookie %u, op %u", i,
	      done->op);
	CHECK(!(e->flags & SLMPM_SILENT) || done->status < 0, "entry %u is silent", i);
	told[i]++;
	failures[i] += done->status < 0;
	if (e->op == SLMPM_OP_RECV)
		return;
	for (uint32_t o = i + 1; o < run->program.count; o++)
		CHECK(run->program.e[o].queue != e->queue ||
			      run->program.e[o].channel != e->channel ||
			      run->program.e[o].op == SLMPM_OP_RECV || told[o] < told[i] ||
			      run->program.e[o].flags & SLMPM_SILENT || (e->flags & SLMPM_SILENT),
		      "entry %u has been told before %u", o, i);
}

static void poll_all(void)
{
	struct slmpm_done done[8];

	for (uint32_t c = 0; c < run->program.queues; c++)
		for (int n; (n = slmpm_cq_poll(ends[c], done, 8)) > 0;)
			for (int i = 0; i < n; i++)
				take(&done[i]);
}

static bool is_as_told(char *why, size_t size)
{
	for (uint32_t q = 0; q < model.p->queues; q++) {
		struct slmpm_wq_info info = look(q);

		snprintf(why, size,
			 "queue %u: %llu posted, %llu enabled, %llu begun, %llu done, %llu failed; "
			 "expected %llu, %llu, %llu, %llu, %llu",
			 q, (unsigned long long)info.posted, (unsigned long long)info.enabled,
			 (unsigned long long)info.begun, (unsigned long long)info.done,
			 (unsigned long long)info.failed, (unsigned long long)model.posted[q],
			 (unsigned long long)model_enabled(&model, q),
			 (unsigned long long)model.begun[q], (unsigned long long)model.done[q],
			 (unsigned long long)model.failed[q]);
		if (info.posted != model.posted[q] || info.enabled != model_enabled(&model, q) ||
		    info.begun != model.begun[q] || info.done != model.done[q] ||
		    info.failed != model.failed[q])
			return false;
		snprintf(why, size, "completion queue %u: %llu have come, expected %llu", q,
			 (unsigned long long)come(q), (unsigned long long)model.total[q]);
		if (come(q) != model.total[q])
			return false;
	}
	for (uint32_t c = 0; c < COUNTERS; c++) {
		snprintf(why, size, "counter %u: %llu, expected %llu", c,
			 (unsigned long long)counted(c), (unsigned long long)model.counter[c]);
		if (counted(c) != model.counter[c])
			return false;
	}
	snprintf(why, size, "%llu active messages, expected %llu",
		 (unsigned long long)atomic_load(&handled), (unsigned long long)model.handled);
	return atomic_load(&handled) == model.handled;
}

/* Within the time that it may take. */
static void await_that(bool (*is_so)(char *why, size_t size))
{
	int64_t until = actor_now_ms() + LATE * actor_slow();
	char why[256];

	while (!is_so(why, sizeof(why))) {
		CHECK(actor_now_ms() < until, "%s", why);
		if (run->program.asleep)
			usleep(100);
		else
			(void)slmpm_progress(ctx);
	}
}

static void await_end(void)
{
	char why[256];

	await_that(is_as_told);
	/* Nothing more ends. */
	settle();
	usleep(run->engine ? 300 : 0);
	CHECK(is_as_told(why, sizeof(why)), "more has come: %s", why);
}

static void check_entry(uint32_t n)
{
	const struct entry *e = &run->program.e[n];
	uint32_t ended = 0, failed = 0;

	for (const struct instance *i = model.i; i < model.i + model.n; i++)
		if (i->e == e && i->told) {
			ended += !(e->flags & SLMPM_SILENT) || i->status < 0;
			failed += i->status < 0;
		}
	CHECK(told[n] == ended && failures[n] == failed,
	      "entry %u: told %u times, failed %u; expected %u, %u", n, told[n], failures[n], ended,
	      failed);
}

static bool was_done(const struct entry *e)
{
	for (const struct instance *i = model.i; i < model.i + model.n; i++)
		if (i->e == e && i->told && !i->status)
			return true;
	return false;
}

/* One that asks for no answer is done before it is there. */
static bool puts_are_there(char *why, size_t size)
{
	for (uint32_t i = 0; i < model.p->count; i++) {
		const struct entry *e = &model.p->e[i];

		snprintf(why, size, "put %u is not there", i);
		if (e->op == SLMPM_OP_PUT && !e->dropped && was_done(e) &&
		    *(volatile uint64_t *)&there[e->word] != here[i])
			return false;
	}
	return true;
}

static void check_memory(void)
{
	uint64_t sums[4] = {0};

	for (const struct instance *i = model.i; i < model.i + model.n; i++)
		if (i->e->op == SLMPM_OP_ATOMIC && i->told && !i->status)
			sums[i->e->word - ENTRIES] += 1 + (uint64_t)(i->e - model.p->e);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(there[ENTRIES + i] == sums[i], "word %u: %llu of %llu", i,
		      (unsigned long long)there[ENTRIES + i], (unsigned long long)sums[i]);
	for (uint32_t i = 0; i < model.p->count; i++) {
		const struct entry *e = &model.p->e[i];

		if (e->dropped || !was_done(e))
			continue;
		CHECK(e->op != SLMPM_OP_GET || !e->source || model.p->e[e->source - 1].dropped ||
			      place[i] == here[e->source - 1],
		      "get %u read %llx", i, (unsigned long long)place[i]);
		CHECK(e->op != SLMPM_OP_RECV || e->is_long || place[i] >> 32 == e->stream + 1,
		      "receive %u has %llx", i, (unsigned long long)place[i]);
		CHECK(e->op != SLMPM_OP_RECV || !e->is_long ||
			      !memcmp(wholes[i].base, whole.base, whole.len),
		      "long receive %u", i);
	}
}

static void check_all(void)
{
	model_run(&model);
	await_end();
	poll_all();
	for (uint32_t i = 0; i < model.p->count; i++)
		check_entry(i);
	await_that(puts_are_there);
	check_memory();
	for (uint32_t q = 0; q < model.p->queues; q++) {
		const struct channel_state *s = model_stopped(&model, q);
		struct slmpm_wq_info info = look(q);

		CHECK(s ? info.status == s->status && info.first_failed == s->failed : !info.status,
		      "queue %u stopped at %llu: %d", q, (unsigned long long)info.first_failed,
		      info.status);
	}
}

/* ---- again, and the end -------------------------------------------------------------------- */

static void arm_all(void)
{
	for (uint32_t q = 0; q < model.p->queues; q++) {
		bool ended = has_ended(&model, q), stopped = model_stopped(&model, q);

		if (!(model.p->flags[q] & SLMPM_WQ_KEPT))
			continue;
		if (ended && !stopped) {
			model_arm(&model, q);
			model_run(&model);
			EXPECT(slmpm_wq_arm(queue[q]), 0);
		} else if (!stopped) {
			REFUSED(slmpm_wq_arm(queue[q]), SLMPM_EBUSY, "not ended");
		}
		await_end(); /* the next one is armed when nothing runs, or not at all */
	}
}

/* Long messages that nobody takes. */
static void drain_messages(void)
{
	for (uint32_t i = 0; i < model.p->count; i++) {
		const struct entry *e = &model.p->e[i];

		if (e->op == SLMPM_OP_SEND && e->is_long)
			(void)slmpm_recv(e->reverse ? a : b, stream_of(e), wholes[i].base,
					 wholes[i].len, NULL, 0);
	}
}

static void end_all(struct rng *g)
{
	int64_t until = actor_now_ms() + LATE * actor_slow();
	bool left = true;

	for (uint32_t q = 0; q < model.p->queues; q++)
		if (rng_one_in(g, 2))
			(void)slmpm_wq_cancel(queue[q], 1 + rng_below(g, 20));
	while (left) {
		left = false;
		for (uint32_t q = 0; q < model.p->queues; q++) {
			int rc = slmpm_wq_reset(queue[q]);

			CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%s", slmpm_error_detail());
			left |= rc < 0;
		}
		drain_messages();
		(void)slmpm_progress(ctx);
		CHECK(!left || actor_now_ms() < until, "%s", slmpm_error_detail());
	}
	for (uint32_t q = 0; q < model.p->queues; q++) {
		struct slmpm_wq_info info = look(q);

		CHECK(info.posted == info.done + info.failed && !info.status, "queue %u", q);
	}
	poll_all();
	for (uint32_t n = 0; n < model.p->count; n++) {
		uint32_t instances = 0, at_least = 0;

		for (const struct instance *i = model.i; i < model.i + model.n; i++) {
			instances += i->e == &model.p->e[n];
			at_least += i->e == &model.p->e[n] &&
				    (!(i->e->flags & SLMPM_SILENT) || i->status < 0);
		}
		CHECK(told[n] <= instances && told[n] >= at_least, "entry %u: told %u times of %u",
		      n, told[n], instances);
	}
	for (uint32_t q = 0; q < model.p->queues; q++)
		OK(slmpm_wq_destroy(queue[q]));
	for (uint32_t q = 0; q < model.p->queues; q++)
		OK(slmpm_cq_destroy(ends[q]));
	for (uint32_t c = 0; c < COUNTERS; c++) {
		for (int to = 0; c != GATE && to < 2; to++)
			OK(slmpm_mem_release(granted[c][to]));
		OK(slmpm_ctr_destroy(counters[c]));
	}
}

/* ---- one program --------------------------------------------------------------------------- */

static void grant(uint32_t c)
{
	const slmpm_peer peers[] = {a, b};
	struct slmpm_key key;
	slmpm_mem word;

	OK(slmpm_ctr_mem(counters[c], &word));
	for (int to = 0; to < 2; to++) {
		OK(slmpm_mem_key(word, peers[!to], SLMPM_COUNT, &key));
		OK(slmpm_mem_open(peers[to], &key, &granted[c][to]));
	}
}

static void set_up(void)
{
	const struct program *p = &run->program;

	memset(&model, 0, sizeof(model));
	memset(told, 0, sizeof(told));
	memset(failures, 0, sizeof(failures));
	memset(place, 0, sizeof(place));
	memset(there, 0, WORDS * 8);
	model.p = p;
	handled = posted_by_handler = 0;
	for (uint32_t q = 0; q < p->queues; q++)
		OK(slmpm_cq_create(ctx, &ends[q]));
	for (uint32_t q = 0; q < p->queues; q++) {
		struct slmpm_wq_options o = {.size = sizeof(o),
					     .flags = p->flags[q],
					     .channels = CHANNELS,
					     .cq = ends[p->cq[q]]};

		OK(slmpm_wq_create(ctx, &o, &queue[q]));
	}
	for (uint32_t c = 0; c < COUNTERS; c++)
		OK(slmpm_ctr_create(ctx, &counters[c]));
	for (uint32_t c = 0; c < COUNTERS; c++)
		if (c != GATE)
			grant(c);
	for (uint32_t i = 0; i < p->count; i++) {
		here[i] = (uint64_t)(p->e[i].stream + 1) << 32 | i;
		if (p->e[i].is_long)
			memset(wholes[i].base, 0, wholes[i].len);
	}
}

static void open_gate(void)
{
	const struct program *p = &run->program;
	struct slmpm_wq_options o = {.size = sizeof(o), .cq = cq};
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = SLMPM_OP_COUNT,
			      .flags = SLMPM_SILENT,
			      .value = 1,
			      .ctr = counters[GATE]};
	slmpm_wq opener;

	for (uint32_t q = 0; q < p->queues; q++) {
		model.enabled[q] = p->enable[q];
		if (p->flags[q] & SLMPM_WQ_MANAGED)
			OK(slmpm_wq_enable(queue[q], p->enable[q]));
	}
	if (!p->gated)
		return;
	model.counter[GATE] = 1;
	OK(slmpm_wq_create(ctx, &o, &opener));
	EXPECT(slmpm_post(opener, &wr, 1), 1);
	OK(slmpm_wq_drain(opener, PATIENCE));
	OK(slmpm_wq_destroy(opener));
}

static void play(void)
{
	struct rng g = {run->program.seed + 1};

	set_up();
	post_program(&g);
	open_gate();
	check_all();
	for (uint32_t i = 1; i < RUNS; i++) {
		arm_all();
		check_all();
	}
	end_all(&g);
}

static void open_all(void)
{
	begin_in(run->engine ? SLMPM_THREADS : 0, 0, 0);

	OK(slmpm_am_handler(ctx, 1, handle, NULL));
	OK(slmpm_am_handler(ctx, BOTH, handle, NULL));
	whole = long_one();
	memset(whole.base, 0x5a, whole.len);
	for (uint32_t i = 0; i < ENTRIES; i++)
		wholes[i] = long_one();
}

static void close_all(void)
{
	end();
	free(whole.base);
	for (uint32_t i = 0; i < ENTRIES; i++)
		free(wholes[i].base);
}

static int play_one(void *arg)
{
	(void)arg;
	open_all();
	play();
	close_all();
	return 0;
}

static int play_batch(void *arg)
{
	const uint64_t *seed = arg;

	open_all();
	for (uint32_t n = 0; n < BATCH; n++) {
		atomic_store(&run->next, n);
		program_make(&run->program, *seed + n, run->engine);
		play();
	}
	close_all();
	return 0;
}

/* What of P fails without the rest of it. */
static void shrink(struct program *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		/* What may fail must not begin while others are posted. */
		if (p->e[i].op == SLMPM_OP_WAIT && p->e[i].which == GATE && !p->e[i].on_cq &&
		    !p->e[i].index)
			continue;
		p->e[i].dropped = true;
		run->program = *p;
		p->e[i].dropped = child_run(play_one, NULL, 60) != 0;
	}
	run->program = *p;
}

static void fail(uint64_t seed, int rc)
{
	struct program p;

	program_make(&p, seed, run->engine);
	run->program = p;
	atomic_store(&run->next, 0);
	fprintf(stderr, "program %#llx ended with %d\n", (unsigned long long)seed, rc);
	if (child_run(play_one, NULL, 60) != 0)
		shrink(&p);
	else
		fprintf(stderr, "alone it does not fail\n");
	program_print(&p);
	CHECK(false, "SLMPM_TEST_SEED=%#llx fails", (unsigned long long)seed);
}

static void play_all(const char *fabric, bool engine, uint64_t seed, uint32_t programs)
{
	settings_set("SLMPM_FABRIC", fabric);
	settings_set("SLMPM_ENGINE", engine ? "thread" : "inline");
	run->engine = engine;
	for (uint32_t n = 0; n < programs; n += BATCH) {
		uint64_t from = seed + n;
		int rc = child_run(play_batch, &from, 150);

		if (rc != 0) {
			fprintf(stderr, "SLMPM_FABRIC=%s SLMPM_ENGINE=%s\n", fabric,
				engine ? "thread" : "inline");
			fail(from + atomic_load(&run->next), rc);
		}
	}
}

int main(void)
{
	const char *given = getenv("SLMPM_TEST_PROGRAMS");
	uint32_t programs = given ? (uint32_t)atoi(given) : PROGRAMS / (uint32_t)actor_slow();
	uint64_t seed = rng_run_seed(18000);

	run = child_common(sizeof(*run));
	for (int i = 0; i < 4; i++)
		play_all(i & 1 ? "tcp" : "shm", i & 2, seed, programs ? programs : 1);
	return 0;
}
