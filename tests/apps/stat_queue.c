/* SPDX-License-Identifier: BSD-3-Clause */
/* helper */
/*
 * A process with two work queues that others look at: one waits in channel 3 for a counter that is
 * at 1, the other one has failed. It sleeps in read() until its standard input ends.
 */
#include <slmpm.h>
#include <stdio.h>
#include <unistd.h>

static int post(slmpm_wq wq, uint32_t op, uint32_t channel, slmpm_ctr ctr, uint64_t value)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .flags = SLMPM_SILENT};

	wr.op = op;
	wr.channel = channel;
	wr.ctr = ctr;
	wr.value = value;
	return slmpm_post(wq, &wr, 1) == 1 ? 0 : slmpm_perror("slmpm_post");
}

int main(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_event event = {.size = sizeof(event)};
	slmpm_wq waits, fails;
	slmpm_ctr ctr;
	slmpm_ctx ctx;
	char byte;

	if (slmpm_open(&ctx, NULL) < 0 || slmpm_cq_create(ctx, &o.cq) < 0 ||
	    slmpm_ctr_create(ctx, &ctr) < 0 || slmpm_wq_create(ctx, &o, &waits) < 0 ||
	    slmpm_wq_create(ctx, &o, &fails) < 0)
		return slmpm_perror("slmpm_wq_create");
	if (post(waits, SLMPM_OP_COUNT, 0, ctr, 1) || post(waits, SLMPM_OP_WAIT, 3, ctr, 5) ||
	    post(fails, SLMPM_OP_WAIT, 1, ctr, 9) || slmpm_wq_cancel(fails, 1) < 0)
		return 1;
	(void)slmpm_next_event(ctx, &event, 20); /* sleeps: what it shows is up to date */
	puts("ready");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	return slmpm_shut(ctx, 0) < 0;
}
