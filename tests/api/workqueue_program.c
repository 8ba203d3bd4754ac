/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * Programs, entries of several queues posted together: all or none, and refused with the first
 * entry that can never run. Random ones against an interpreter that takes one step after another;
 * those that are taken end as it does.
 */
#include "tests/api/workqueue_entry.h"
#include "tests/lib/random.h"

static slmpm_wq queue_for(slmpm_cq to, uint32_t flags, uint32_t depth)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = flags, .depth = depth, .channels = 4, .cq = to};
	slmpm_wq made;

	OK(slmpm_wq_create(ctx, &o, &made));
	return made;
}

/* ---- one by one ----------------------------------------------------------------------------- */

/* Two queues that wait for each other's counts, in the one order that works. */
static void together(void)
{
	slmpm_ctr ping, pong;
	slmpm_wq second, queues[5];
	struct slmpm_wr wr[5];

	begin(0, 0);
	second = queue_for(cq, 0, 0);
	ping = counter();
	pong = counter();
	wr[0] = on_counter(SLMPM_OP_WAIT, pong, 0, 1, SLMPM_SILENT);
	wr[1] = on_counter(SLMPM_OP_COUNT, ping, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	wr[2] = on_counter(SLMPM_OP_COUNT, pong, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	wr[3] = on_counter(SLMPM_OP_WAIT, ping, 0, 1, SLMPM_SILENT);
	wr[4] = on_counter(SLMPM_OP_COUNT, pong, 0, 8, SLMPM_SILENT | SLMPM_RELATIVE);
	for (int i = 0; i < 5; i++)
		queues[i] = i < 2 ? wq : second;
	OK(slmpm_program_post(queues, wr, 5));
	OK(slmpm_wq_drain(second, PATIENCE));
	CHECK(counted(ping) == 1 && counted(pong) == 9, "%llu, %llu",
	      (unsigned long long)counted(ping), (unsigned long long)counted(pong));
	wr[0].value = 100; /* now neither comes: 1 + 8 more */
	REFUSED(slmpm_program_post(queues, wr, 5), SLMPM_EINVAL,
		"entry 0: it can never run: it waits until the counter is 100, which will be 18");
	CHECK(look(wq).posted == 2 && look(second).posted == 3, "posted all the same");
	OK(slmpm_ctr_destroy(ping)); /* nothing names it */
	empty();
	end();
}

/* What is refused, and where, when all before it is in order: nothing of it stays. */
static void refusals(void)
{
	slmpm_wq small, none = {0x123}, queues[4];
	struct slmpm_wr wr[4];
	slmpm_ctr in;

	begin(3, 0);
	small = queue_for(cq, 0, 2);
	in = counter();
	for (int i = 0; i < 4; i++) {
		wr[i] = on_counter(SLMPM_OP_COUNT, in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
		queues[i] = wq;
	}
	REFUSED(slmpm_program_post(queues, wr, 0), SLMPM_EINVAL, "0 work requests");
	REFUSED(slmpm_program_post(NULL, wr, 1), SLMPM_EINVAL, "the queues are NULL");
	REFUSED(slmpm_program_post(queues, NULL, 1), SLMPM_EINVAL, "slmpm_program_post");
	REFUSED(slmpm_program_post(&none, wr, 1), SLMPM_EHANDLE, "entry 0: ");
	REFUSED(slmpm_program_post(queues, wr, 4), SLMPM_ELIMIT, "entry 3: the queue has a depth");
	queues[2] = none;
	REFUSED(slmpm_program_post(queues, wr, 3), SLMPM_EHANDLE, "entry 2: ");
	queues[2] = small;
	wr[2].channel = 4;
	REFUSED(slmpm_program_post(queues, wr, 3), SLMPM_EINVAL, "entry 2: channel 4 of 4");
	wr[2].channel = 0;
	wr[1].size += 4;
	REFUSED(slmpm_program_post(queues, wr, 3), SLMPM_EINVAL, "entry 1: ");
	wr[1].size -= 4;
	post(on_counter(SLMPM_OP_WAIT, in, 1, 1, SLMPM_SILENT));
	REFUSED(slmpm_program_post((slmpm_wq[]){wq, wq, wq}, wr, 3), SLMPM_EAGAIN,
		"entry 2: no room for it now: 1 of at most 3 entries");
	CHECK(counted(in) == 0 && look(wq).posted == 1 && look(small).posted == 0, "some ran");
	OK(slmpm_program_post(queues, wr, 3));
	OK(slmpm_wq_drain(wq, PATIENCE));
	CHECK(counted(in) == 3 && look(wq).done == 3 && look(small).done == 1, "not all ran");
	empty();
	end();
}

/* A refused one has taken nothing from the totals that its relative WAITs are for. */
static void nothing_taken(void)
{
	slmpm_wq queues[2];
	struct slmpm_wr wr[2];
	slmpm_ctr in;

	begin(0, 0);
	in = counter();
	queues[0] = queues[1] = wq;
	wr[0] = on_counter(SLMPM_OP_WAIT, in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	wr[1] = wr[0];
	REFUSED(slmpm_program_post(queues, wr, 2), SLMPM_EINVAL, "entry 0: it can never run");
	wr[1].value = UINT64_MAX;
	REFUSED(slmpm_program_post(queues, wr, 2), SLMPM_EINVAL, "entry 0: it can never run");
	wr[1].value = 1;
	post(on_counter(SLMPM_OP_COUNT, in, 1, 5, SLMPM_SILENT));
	REFUSED(slmpm_program_post(queues, wr, 1), SLMPM_EINVAL, "counter is 6, which will be 5");
	post(wr[0]);
	REFUSED(slmpm_program_post(queues, wr, 1), SLMPM_EINVAL,
		"entry 2 of its queue, before it in its channel, waits until the counter is 6, which will be 5");
	post(on_counter(SLMPM_OP_COUNT, in, 1, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	CHECK(look(wq).waiting == 0, "6 are 6");
	wr[1] = on_counter(SLMPM_OP_COUNT, in, 1, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	OK(slmpm_program_post(queues, wr, 2));
	CHECK(look(wq).done == look(wq).posted, "it waits");
	end();
}

/* What is pending in queues that are named counts, too; what the order decides is refused. */
static void pending(void)
{
	slmpm_wq managed, queues[3];
	struct slmpm_wr wr[3];
	slmpm_ctr in;

	begin(0, 0);
	managed = queue_for(cq, SLMPM_WQ_MANAGED, 0);
	in = counter();
	wr[0] = on_counter(SLMPM_OP_COUNT, in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	EXPECT(slmpm_post(managed, wr, 1), 1);
	queues[0] = queues[1] = queues[2] = wq;
	wr[0] = entry(SLMPM_OP_ENABLE, 0, 2, SLMPM_SILENT);
	wr[0].wq = managed;
	wr[1] = on_counter(SLMPM_OP_WAIT, in, 0, 2, SLMPM_SILENT);
	wr[2] = on_counter(SLMPM_OP_COUNT, in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	REFUSED(slmpm_program_post(queues, wr, 2), SLMPM_EINVAL, "entry 1: ");
	queues[2] = managed;
	OK(slmpm_program_post(queues, wr, 3));
	OK(slmpm_wq_drain(wq, PATIENCE));
	REFUSED(slmpm_program_post(&managed, wr + 2, 1), SLMPM_EINVAL,
		"entry 0: it can never run: it is number 3 of its queue, whose enabled will be 2");
	wr[1] = wr[0];
	wr[1].flags |= SLMPM_RELATIVE;
	REFUSED(slmpm_program_post(queues, wr, 3), SLMPM_EINVAL,
		"entry 1: the same queue is enabled up to a number");
	wr[1].value = (UINT64_C(1) << 32) + 1;
	REFUSED(slmpm_program_post(queues, wr, 3), SLMPM_ELIMIT, "entry 1: it is more than 2^32");
	wr[0] = on_counter(SLMPM_OP_WAIT, in, 0, 7, SLMPM_SILENT);
	wr[1] = on_counter(SLMPM_OP_COUNT, in, 1, 7, SLMPM_SILENT);
	REFUSED(slmpm_program_post(queues, wr, 2), SLMPM_EINVAL, "entry 1: it sets a counter");
	OK(slmpm_program_post(queues, wr + 1, 1)); /* nobody waits */
	CHECK(counted(in) == 7, "it sets");
	post(on_counter(SLMPM_OP_WAIT, in, 2, 9, SLMPM_SILENT));
	post(on_counter(SLMPM_OP_COUNT, in, 2, 1, SLMPM_SILENT | SLMPM_RELATIVE));
	OK(slmpm_wq_cancel(wq, look(wq).posted));
	wr[2].channel = 2;
	wr[2].value = 2;
	queues[2] = wq;
	REFUSED(slmpm_program_post(&wq, wr + 2, 1), SLMPM_EINVAL, "waits until the counter is 9");
	wr[1] = on_counter(SLMPM_OP_COUNT, in, 0, 2, SLMPM_SILENT | SLMPM_RELATIVE);
	REFUSED(slmpm_program_post(&queues[1], wr + 1, 2), SLMPM_EINVAL,
		"of its queue, before it in its channel, is cancelled");
	OK(slmpm_wq_reset(wq));
	end();
}

static struct slmpm_wr until_done(slmpm_wq which, uint64_t value)
{
	struct slmpm_wr wr = entry(SLMPM_OP_WAIT, 0, value, SLMPM_SILENT);

	wr.wq = which;
	wr.index = SLMPM_WQ_DONE;
	return wr;
}

/* What waits behind what is named, and a receive whose message has yet to come. */
static void further(void)
{
	struct slmpm_iov place = {here, 8};
	slmpm_wq second, third, queues[3];
	struct slmpm_wr wr[3], pending_one;
	slmpm_ctr go;

	begin(0, 0);
	second = queue_for(cq, 0, 0);
	third = queue_for(cq, 0, 0);
	go = counter();
	pending_one = on_counter(SLMPM_OP_WAIT, go, 0, 2, SLMPM_SILENT);
	EXPECT(slmpm_post(third, &pending_one, 1), 1);
	pending_one = until_done(third, 1);
	EXPECT(slmpm_post(second, &pending_one, 1), 1);
	queues[0] = queues[1] = queues[2] = wq;
	wr[0] = until_done(second, 1);
	wr[1] = on_counter(SLMPM_OP_COUNT, go, 1, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	REFUSED(slmpm_program_post(queues, wr, 2), SLMPM_EINVAL,
		"entry 0: it can never run: it waits until the work queue's done is 1, which will "
		"be 0");
	wr[2] = receive(3, &place, 0);
	wr[2].flags = SLMPM_SILENT;
	wr[2].channel = 2;
	wr[2].ctr = go;
	EXPECT(slmpm_post(wq, wr + 2, 1), 1);
	OK(slmpm_program_post(queues, wr, 2));
	REFUSED(slmpm_wq_drain(wq, 0), SLMPM_EAGAIN, "1 of 3");
	OK(slmpm_send(b, 3, here, 8, PATIENCE));
	OK(slmpm_wq_drain(wq, PATIENCE));
	OK(slmpm_wq_drain(third, PATIENCE));
	end();
}

/* A program of kept queues runs again; with receives, which are taken to end. */
static void kept(void)
{
	struct slmpm_iov place = {here, 8};
	slmpm_wq second, queues[4];
	struct slmpm_wr wr[4];
	slmpm_ctr in;

	begin(0, SLMPM_WQ_KEPT);
	second = queue_for(cq, SLMPM_WQ_KEPT, 0);
	in = counter();
	wr[0] = on_counter(SLMPM_OP_WAIT, in, 0, 2, SLMPM_SILENT | SLMPM_RELATIVE);
	wr[1] = message(4, &place, 0);
	wr[1].flags = SLMPM_SILENT;
	wr[2] = receive(3, &place, 0);
	wr[2].flags = SLMPM_SILENT;
	wr[2].ctr = in;
	wr[3] = on_counter(SLMPM_OP_COUNT, in, 0, 1, SLMPM_SILENT | SLMPM_RELATIVE);
	queues[0] = queues[1] = wq;
	queues[2] = queues[3] = second;
	OK(slmpm_program_post(queues, wr, 4));
	for (uint64_t i = 1; i <= 3; i++) {
		uint64_t back = 0;

		settle();
		CHECK(counted(in) == 2 * i - 1, "%llu", (unsigned long long)counted(in));
		OK(slmpm_send(b, 3, &i, 8, PATIENCE));
		EXPECT(slmpm_recv(b, 4, &back, 8, NULL, PATIENCE), 8);
		CHECK(back == i, "%llu", (unsigned long long)back);
		OK(slmpm_wq_drain(wq, PATIENCE));
		OK(slmpm_wq_drain(second, PATIENCE));
		if (i < 3) {
			OK(slmpm_wq_arm(wq));
			OK(slmpm_wq_arm(second));
		}
	}
	end();
}

/* ---- random ones ---------------------------------------------------------------------------- */

#define QUEUES   3
#define CHANNELS 4
#define COUNTERS 4 /* the last is set, and not waited for */
#define CQS      2
#define ENTRIES  512
#define TOTALS   (COUNTERS + CQS + 4 * QUEUES)

struct step {
	struct slmpm_wr wr;
	uint64_t number, target;
	uint32_t queue, total; /* that it waits for, or moves */
	bool begun, ended;
};

static struct world {
	slmpm_wq queues[QUEUES];
	bool managed[QUEUES], by_some[QUEUES]; /* how it is enabled */
	bool involved[QUEUES];
	slmpm_cq cqs[CQS];
	slmpm_ctr counters[COUNTERS];
	uint64_t totals[TOTALS];
	/* Of relative WAITs. */
	bool known[QUEUES][TOTALS];
	uint64_t taken[QUEUES][TOTALS];
	struct step steps[ENTRIES];
	uint32_t count;
	uint64_t received;
} world, before;

static struct rng rng;

static uint32_t of_queue(uint32_t queue, uint32_t index)
{
	return COUNTERS + CQS + 4 * queue + index - SLMPM_WQ_POSTED;
}

static uint32_t cq_of(uint32_t queue)
{
	return COUNTERS + queue % CQS;
}

/* ---- the interpreter ---- */

static bool is_next(const struct step *s)
{
	if (s->ended)
		return false;
	for (const struct step *p = world.steps; p < s; p++)
		if (p->queue == s->queue && p->wr.channel == s->wr.channel && !p->ended)
			return false;
	return !world.managed[s->queue] ||
	       s->number <= world.totals[of_queue(s->queue, SLMPM_WQ_ENABLED)];
}

static void act(const struct step *s)
{
	uint64_t *t = &world.totals[s->total];
	bool more = s->wr.flags & SLMPM_RELATIVE;

	if (s->wr.op == SLMPM_OP_COUNT)
		*t = s->wr.value + (more ? *t : 0);
	else if (s->wr.op == SLMPM_OP_ENABLE && more)
		*t += s->wr.value;
	else if (s->wr.op == SLMPM_OP_ENABLE)
		*t = s->wr.value > *t ? s->wr.value : *t;
	else if (s->wr.op != SLMPM_OP_WAIT && s->wr.ctr.id)
		++*t;
	world.received += s->wr.op == SLMPM_OP_RECV;
}

static bool take_step(struct step *s)
{
	if (!world.involved[s->queue] || !is_next(s))
		return false;
	if (!s->begun) {
		s->begun = true;
		world.totals[of_queue(s->queue, SLMPM_WQ_BEGUN)]++;
		return true;
	}
	if (s->wr.op == SLMPM_OP_WAIT && world.totals[s->total] < s->target)
		return false;
	act(s);
	s->ended = true;
	world.totals[of_queue(s->queue, SLMPM_WQ_DONE)]++;
	if (!(s->wr.flags & SLMPM_SILENT))
		world.totals[cq_of(s->queue)]++;
	return true;
}

static bool any_step(void)
{
	uint32_t from = rng_below(&rng, world.count);

	for (uint32_t i = 0; i < world.count; i++)
		if (take_step(&world.steps[(from + i) % world.count]))
			return true;
	return false;
}

/* Queues that steps from FIRST on are for or name, that pending steps of these name, and so on. */
static void involve(uint32_t first)
{
	bool more = true;

	for (uint32_t i = 0; i < QUEUES; i++)
		world.involved[i] = false;
	for (uint32_t i = first; i < world.count; i++)
		world.involved[world.steps[i].queue] = true;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < world.count; i++) {
			const struct step *s = &world.steps[i];
			uint32_t q = 0;

			while (q < QUEUES && s->wr.wq.id != world.queues[q].id)
				q++;
			if (s->ended || q == QUEUES || !world.involved[s->queue] ||
			    world.involved[q])
				continue;
			world.involved[q] = more = true;
		}
	}
}

static void involve_all(void)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		world.involved[i] = true;
}

/* The first from FIRST on that does not end, or `count`. */
static uint32_t interpret(uint32_t first)
{
	while (any_step())
		;
	while (first < world.count && world.steps[first].ended)
		first++;
	return first;
}

/* ---- what is made up ---- */

static uint32_t any_total(struct slmpm_wr *wr)
{
	uint32_t which = rng_below(&rng, TOTALS), queue, at;

	if (which < COUNTERS) {
		which %= COUNTERS - 1;
		wr->ctr = world.counters[which];
		return which;
	}
	if (which < COUNTERS + CQS) {
		wr->cq = world.cqs[which - COUNTERS];
		return which;
	}
	queue = (which - COUNTERS - CQS) / 4;
	at = (which - COUNTERS - CQS) % 4;
	wr->wq = world.queues[queue];
	wr->index = at + SLMPM_WQ_POSTED;
	return of_queue(queue, wr->index);
}

static void make_wait(struct step *s)
{
	uint64_t *taken;
	uint32_t subject;

	s->wr.op = SLMPM_OP_WAIT;
	s->total = subject = any_total(&s->wr);
	if (s->wr.wq.id && s->wr.index == SLMPM_WQ_ENABLED &&
	    !world.managed[(subject - COUNTERS - CQS) / 4])
		subject--; /* all that are posted are enabled: the same total */
	s->wr.value = rng_below(&rng, 2);
	if (rng_one_in(&rng, 2)) {
		s->wr.value += world.totals[s->total];
		s->target = s->wr.value;
		return;
	}
	s->wr.flags |= SLMPM_RELATIVE;
	taken = &world.taken[s->queue][subject];
	if (!world.known[s->queue][subject])
		*taken = before.totals[subject];
	world.known[s->queue][subject] = true;
	*taken += s->wr.value;
	s->target = *taken;
}

static void make_enable(struct step *s)
{
	uint32_t q = rng_below(&rng, QUEUES);

	if (!world.managed[q]) {
		make_wait(s);
		return;
	}
	s->wr.op = SLMPM_OP_ENABLE;
	s->wr.wq = world.queues[q];
	s->total = of_queue(q, SLMPM_WQ_ENABLED);
	s->wr.value = rng_below(&rng, 6);
	if (world.by_some[q])
		s->wr.flags |= SLMPM_RELATIVE;
	else
		s->wr.value += world.totals[of_queue(q, SLMPM_WQ_POSTED)];
}

static void make_count(struct step *s)
{
	s->wr.op = SLMPM_OP_COUNT;
	s->total = rng_below(&rng, COUNTERS);
	s->wr.ctr = world.counters[s->total];
	s->wr.value = rng_below(&rng, 3);
	if (s->total < COUNTERS - 1 || rng_one_in(&rng, 2))
		s->wr.flags |= SLMPM_RELATIVE;
}

static void make_operation(struct step *s)
{
	static struct slmpm_iov place = {here, 8};
	static const uint32_t ops[] = {SLMPM_OP_SEND, SLMPM_OP_RECV, SLMPM_OP_PUT, SLMPM_OP_GET,
				       SLMPM_OP_ATOMIC};
	uint32_t op = ops[rng_below(&rng, 5)], flags = s->wr.flags, channel = s->wr.channel;

	s->wr = op == SLMPM_OP_SEND   ? message(4, &place, 0) :
		op == SLMPM_OP_RECV   ? receive(3, &place, 0) :
		op == SLMPM_OP_ATOMIC ? add(0, 1, NULL, 0) :
					one_sided(op, 0, &place, 0);
	s->wr.flags = flags;
	s->wr.channel = channel;
	s->total = rng_below(&rng, COUNTERS);
	if (rng_one_in(&rng, 2))
		s->wr.ctr = world.counters[s->total];
}

static void make_step(void)
{
	struct step *s = &world.steps[world.count++];
	uint32_t kind = rng_below(&rng, 8), q = rng_below(&rng, QUEUES);

	*s = (struct step){.queue = q};
	s->wr = entry(0, rng_below(&rng, CHANNELS), 0, rng_one_in(&rng, 2) ? SLMPM_SILENT : 0);
	s->number = world.totals[of_queue(q, SLMPM_WQ_POSTED)] + 1;
	if (kind < 2)
		make_wait(s);
	else if (kind < 3)
		make_enable(s);
	else if (kind < 6)
		make_count(s);
	else
		make_operation(s);
	world.totals[of_queue(q, SLMPM_WQ_POSTED)]++;
	if (!world.managed[q])
		world.totals[of_queue(q, SLMPM_WQ_ENABLED)]++;
}

/* ---- against the library ---- */

static void make_world(void)
{
	memset(&world, 0, sizeof(world));
	for (int i = 0; i < CQS; i++)
		OK(slmpm_cq_create(ctx, &world.cqs[i]));
	for (int i = 0; i < COUNTERS; i++)
		world.counters[i] = counter();
	for (uint32_t i = 0; i < QUEUES; i++) {
		world.managed[i] = rng_one_in(&rng, 4);
		world.by_some[i] = rng_one_in(&rng, 2);
		world.queues[i] = queue_for(world.cqs[i % CQS],
					    world.managed[i] ? SLMPM_WQ_MANAGED : 0, ENTRIES);
	}
}

static void end_world(void)
{
	for (int i = 0; i < QUEUES; i++)
		OK(slmpm_wq_reset(world.queues[i]));
	for (int i = 0; i < QUEUES; i++)
		OK(slmpm_wq_destroy(world.queues[i]));
	for (int i = 0; i < CQS; i++)
		OK(slmpm_cq_destroy(world.cqs[i]));
	for (int i = 0; i < COUNTERS; i++)
		OK(slmpm_ctr_destroy(world.counters[i]));
}

/* True: all totals are as the interpreter has left them. */
static bool compare(uint32_t *which, uint64_t *is)
{
	for (*which = 0; *which < TOTALS; ++*which) {
		uint32_t at = *which - COUNTERS - CQS;

		if (*which < COUNTERS) {
			*is = counted(world.counters[*which]);
		} else if (*which < COUNTERS + CQS) {
			struct slmpm_cq_info info = {.size = sizeof(info)};

			OK(slmpm_cq_query(world.cqs[*which - COUNTERS], &info));
			*is = info.total;
		} else {
			struct slmpm_wq_info info = look(world.queues[at / 4]);

			*is = (const uint64_t[]){info.posted, info.enabled, info.begun,
						 info.done}[at % 4];
		}
		if (*is != world.totals[*which] && *which != COUNTERS - 1)
			return false; /* that one depends on who sets it last */
	}
	return true;
}

static void expect_totals(uint64_t *sent)
{
	uint32_t which;
	uint64_t is;

	for (int i = 0; !compare(&which, &is); i++) {
		while (slmpm_recv(b, 4, here + 8, 8, NULL, 0) >= 0)
			;
		for (; *sent < world.received; ++*sent)
			OK(slmpm_send(b, 3, here + 16, 8, PATIENCE));
		(void)slmpm_progress(ctx);
		CHECK(i < 100000, "total %u is %llu, not %llu", which, (unsigned long long)is,
		      (unsigned long long)world.totals[which]);
	}
}

static void post_pending(uint64_t *sent)
{
	uint32_t n = rng_below(&rng, 8);

	for (uint32_t i = 0; i < n; i++) {
		const struct step *s = &world.steps[world.count];

		before = world;
		make_step();
		EXPECT(slmpm_post(world.queues[s->queue], &s->wr, 1), 1);
		involve_all();
		(void)interpret(0);
		expect_totals(sent);
	}
}

/* True: it was taken. */
static bool one_program(uint64_t *sent)
{
	static const uint32_t most[] = {2, 2, 4, 10, 40};
	uint32_t first, n = 1 + rng_below(&rng, most[rng_below(&rng, 5)]), stuck;
	slmpm_wq queues[ENTRIES];
	struct slmpm_wr wr[ENTRIES];
	char blame[32];

	if (rng_one_in(&rng, 3))
		post_pending(sent);
	before = world;
	first = world.count;
	for (uint32_t i = 0; i < n; i++) {
		make_step();
		queues[i] = world.queues[world.steps[first + i].queue];
		wr[i] = world.steps[first + i].wr;
	}
	involve(first);
	stuck = interpret(first);
	if (stuck < world.count) {
		snprintf(blame, sizeof(blame), "entry %u: it can never run", stuck - first);
		REFUSED(slmpm_program_post(queues, wr, (int)n), SLMPM_EINVAL, blame);
		world = before;
		return false;
	}
	OK(slmpm_program_post(queues, wr, (int)n));
	involve_all();
	(void)interpret(0);
	expect_totals(sent);
	return true;
}

static void random_ones(void)
{
	const uint32_t programs = 10000 / (uint32_t)actor_slow();
	uint32_t taken = 0;
	uint64_t sent = 0;

	rng.state = rng_run_seed(18);
	begin(0, 0);
	for (uint32_t i = 0; i < programs; i++) {
		if (i % 8 == 0) {
			if (i)
				end_world();
			make_world();
			sent = 0;
		}
		taken += one_program(&sent);
	}
	expect_totals(&sent);
	end_world();
	printf("%u of %u programs were taken\n", taken, programs);
	CHECK(taken > programs / 8 && taken < programs / 8 * 7, "the others say nothing");
	end();
}

int main(void)
{
	alarm(230);
	together();
	refusals();
	nothing_taken();
	pending();
	further();
	kept();
	random_ones();
	return 0;
}
