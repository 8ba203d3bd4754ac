/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues of a context without peers: who waits for a counter or a completion waits for their
 * entries, and learns that nothing is left when these have ended. By the application's calls, and
 * by the engine's thread, which is not woken for what cannot begin.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ELEMENTS (UINT64_C(1) << 19) /* some 250 pieces */

#define MANY 200

static slmpm_ctx ctx;

static slmpm_wq create(uint32_t flags, slmpm_cq *cq)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags};
	slmpm_wq wq;

	OK(slmpm_cq_create(ctx, cq));
	o.cq = *cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	return wq;
}

static void post(slmpm_wq wq, struct slmpm_wr wr)
{
	wr.size = sizeof(wr);
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

/* Of both arrays. */
static void post_sum(slmpm_wq wq, double *to, double *from)
{
	struct slmpm_operand operands[2] = {{.at = to}, {.at = from}};
	struct slmpm_calc calc = {.size = sizeof(calc),
				  .op = SLMPM_CALC_SUM,
				  .type = SLMPM_DOUBLE,
				  .count = {ELEMENTS},
				  .args = operands,
				  .targets = operands,
				  .arg_count = 2,
				  .target_count = 1};

	post(wq, (struct slmpm_wr){.op = SLMPM_OP_CALC, .flags = SLMPM_SILENT, .calc = &calc});
}

static int alone(void *unused)
{
	double *to = calloc(ELEMENTS, sizeof(*to)), *from = calloc(ELEMENTS, sizeof(*from));
	struct slmpm_wr late = {.op = SLMPM_OP_WAIT, .value = 100, .timeout_ms = 30};
	struct slmpm_done done;
	slmpm_cq cq, other;
	slmpm_wq wq, managed;
	slmpm_ctr ctr;

	(void)unused;
	CHECK(to && from, "out of memory");
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_ctr_create(ctx, &ctr));
	wq = create(0, &cq);
	managed = create(SLMPM_WQ_MANAGED, &other);
	REFUSED(slmpm_ctr_wait(ctr, 1, -1), SLMPM_ECLOSED, "no peer is left");
	post_sum(wq, to, from);
	post(wq, (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = ctr, .value = 1});
	OK(slmpm_ctr_wait(ctr, 1, -1));
	post(managed, (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = ctr, .value = 2});
	post_sum(wq, to, from);
	post(wq, (struct slmpm_wr){.op = SLMPM_OP_ENABLE, .wq = managed, .value = 1});
	EXPECT(slmpm_cq_wait(other, &done, 1, -1), 1);
	late.ctr = ctr;
	post(wq, late);
	REFUSED(slmpm_ctr_wait(ctr, 3, -1), SLMPM_ECLOSED, "no peer is left");
	while (slmpm_cq_poll(cq, &done, 1) > 0)
		;
	REFUSED(slmpm_cq_wait(cq, &done, 1, -1), SLMPM_ECLOSED, "no peer is left");
	OK(slmpm_shut(ctx, PATIENCE));
	free(to);
	free(from);
	return 0;
}

/* What the process has slept and woken so far. */
static long switches(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
	return u.ru_nvcsw;
}

/* Nothing can be done for what is disabled, or stands behind a WAIT: the thread sleeps on. */
static int wakes_no_thread(void *unused)
{
	const struct timespec while_ = {.tv_nsec = 50000000};
	struct slmpm_wr wait = {.op = SLMPM_OP_WAIT, .value = 1};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	slmpm_wq wq, managed;
	slmpm_cq cq, other;
	long before;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_ctr_create(ctx, &wait.ctr));
	wq = create(0, &cq);
	managed = create(SLMPM_WQ_MANAGED, &other);
	post(wq, wait);
	nanosleep(&while_, NULL);
	before = switches();
	for (unsigned i = 0; i < MANY; i++) {
		struct slmpm_wr enable = {.op = SLMPM_OP_ENABLE, .wq = managed, .value = MANY};

		post(wq, enable);
		post(managed, (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = wait.ctr, .value = 2});
		usleep(100); /* it would be awake, and asleep again */
	}
	before = switches() - before - MANY; /* this thread's own */
	printf("woken %ld times\n", before);
	CHECK(before < MANY / 2, "woken %ld times for nothing", before);
	post(create(0, &cq), (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = wait.ctr, .value = 1});
	OK(slmpm_wq_drain(managed, PATIENCE));
	OK(slmpm_wq_query(managed, &info));
	CHECK(info.done == MANY, "%llu done", (unsigned long long)info.done);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	settings_run("by calls", alone, NULL);
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("by the engine", alone, NULL);
	settings_set("SLMPM_WAIT", "block");
	settings_run("by the engine, asleep", alone, NULL);
	settings_run("nothing to do", wakes_no_thread, NULL);
	return 0;
}
