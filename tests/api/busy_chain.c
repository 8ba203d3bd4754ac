/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * The engine's thread runs a long program while no other thread wants the context: it does not give
 * its processor away, which on an oversubscribed machine costs it a turn for a few entries each
 * time. A thread that does want it gets it.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ENTRIES 60000 /* some 240 passes */
#define RUNS    10
#define MOST    RUNS /* yields: with one each 64 passes there were four a run */

static atomic_int yields;

/* In place of the C library's. */
int sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	return (int)syscall(SYS_sched_yield);
}

static void nap(void)
{
	const struct timespec while_ = {.tv_nsec = 100000000};

	nanosleep(&while_, NULL);
}

static int chain(void *unused)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_KEPT, .depth = ENTRIES, .channels = 1};
	struct slmpm_wr count = {.size = sizeof(count),
				 .op = SLMPM_OP_COUNT,
				 .flags = SLMPM_SILENT | SLMPM_RELATIVE,
				 .value = 1};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	slmpm_ctx ctx;
	slmpm_wq wq;
	int before;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_ctr_create(ctx, &count.ctr));
	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &wq));
	for (int i = 0; i < ENTRIES; i++)
		EXPECT(slmpm_post(wq, &count, 1), 1);
	OK(slmpm_wq_drain(wq, PATIENCE));
	before = atomic_load(&yields);
	for (int i = 0; i < RUNS; i++) {
		OK(slmpm_wq_arm(wq));
		do {
			nap(); /* this thread wants nothing meanwhile */
			OK(slmpm_wq_query(wq, &info));
		} while (info.done < info.posted);
	}
	printf("%d yields, %d of %d by the engine\n", atomic_load(&yields) - before,
	       (int)info.by_engine, (int)info.done);
	CHECK(info.by_engine > RUNS * (uint64_t)ENTRIES / 2, "not by the engine's thread");
	CHECK(atomic_load(&yields) - before <= MOST, "it yields to no other");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	settings_set("SLMPM_ENGINE", "thread");
	settings_set("SLMPM_WAIT", "block");
	settings_run("a long program", chain, NULL);
	return 0;
}
