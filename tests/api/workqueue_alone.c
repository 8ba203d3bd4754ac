/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues of a context without peers: who waits for a counter or a completion waits for their
 * entries, and learns that nothing is left when these have ended. By the application's calls, and
 * by the engine's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ELEMENTS (UINT64_C(1) << 19) /* some 250 pieces */

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

int main(void)
{
	settings_run("by calls", alone, NULL);
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("by the engine", alone, NULL);
	settings_set("SLMPM_WAIT", "block");
	settings_run("by the engine, asleep", alone, NULL);
	return 0;
}
