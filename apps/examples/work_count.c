/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A barrier by counters of other processes: each accelerator counts at the host and waits for a
 * counter of its own, at which the host's work queue counts once all are there. No message is sent.
 * work_count [ACCELERATORS]
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW    3
#define MOST   16
#define ROUNDS 100

/* A counter that PEER may count. */
static int give(slmpm_ctr counter, slmpm_peer peer)
{
	slmpm_mem word;

	if (slmpm_ctr_mem(counter, &word) < 0)
		return -1;
	return slmpm_mem_share(word, peer, SLMPM_COUNT, 5000);
}

static int queue(struct slmpm_wq_options *options, slmpm_wq *wq)
{
	options->size = sizeof(*options);
	if (slmpm_cq_create((slmpm_ctx){0}, &options->cq) < 0)
		return -1;
	return slmpm_wq_create((slmpm_ctx){0}, options, wq);
}

/* One more at a peer's counter. */
static struct slmpm_wr count(slmpm_rmem counter)
{
	return (struct slmpm_wr){
		.size = sizeof(struct slmpm_wr),
		.op = SLMPM_OP_COUNT,
		.flags = SLMPM_RELATIVE | SLMPM_SILENT,
		.rctr = counter,
		.value = 1,
	};
}

static int accelerator(void)
{
	struct slmpm_wq_options options = {0};
	slmpm_rmem arrived;
	struct slmpm_wr wr;
	slmpm_peer host;
	slmpm_ctr go;
	slmpm_wq wq;

	if (slmpm_parent(&host) < 0 || slmpm_ctr_create((slmpm_ctx){0}, &go) < 0 ||
	    queue(&options, &wq) < 0 || give(go, host) < 0 ||
	    slmpm_mem_accept(host, &arrived, 5000) < 0)
		return slmpm_perror("accelerator");
	wr = count(arrived);
	for (uint64_t round = 1; round <= ROUNDS; round++)
		if (slmpm_post(wq, &wr, 1) != 1 || slmpm_ctr_wait(go, round, 5000) < 0)
			return slmpm_perror("meet");
	return slmpm_wq_drain(wq, 5000) < 0 ? slmpm_perror("slmpm_wq_drain") : 0;
}

/* All are waited for, then each may go on. */
static int post_round(slmpm_wq wq, slmpm_ctr arrived, const slmpm_rmem *go, int n)
{
	struct slmpm_wr wr[1 + MOST] = {{.op = SLMPM_OP_WAIT}};

	wr[0].size = sizeof(wr[0]);
	wr[0].flags = SLMPM_RELATIVE | SLMPM_SILENT;
	wr[0].ctr = arrived;
	wr[0].value = (uint64_t)n;
	for (int i = 0; i < n; i++)
		wr[1 + i] = count(go[i]);
	return slmpm_post(wq, wr, 1 + n) == 1 + n ? 0 : -1;
}

static int meet(const slmpm_peer *accels, int n)
{
	struct slmpm_wq_options options = {.flags = SLMPM_WQ_KEPT};
	slmpm_rmem go[MOST];
	slmpm_ctr arrived;
	slmpm_wq wq;

	if (slmpm_ctr_create((slmpm_ctx){0}, &arrived) < 0 || queue(&options, &wq) < 0)
		return slmpm_perror("slmpm_wq_create");
	for (int i = 0; i < n; i++)
		if (slmpm_mem_accept(accels[i], &go[i], 5000) < 0)
			return slmpm_perror("slmpm_mem_accept");
	/* What is counted before the first WAIT is posted is not waited for: so they may only now. */
	if (post_round(wq, arrived, go, n) < 0)
		return slmpm_perror("slmpm_post");
	for (int i = 0; i < n; i++)
		if (give(arrived, accels[i]) < 0)
			return slmpm_perror("slmpm_mem_share");
	for (int round = 1; round <= ROUNDS; round++)
		if (slmpm_wq_drain(wq, 5000) < 0 || (round < ROUNDS && slmpm_wq_arm(wq) < 0))
			return slmpm_perror("meet");
	printf("%d accelerators have met %d times\n", n, ROUNDS);
	return slmpm_wq_destroy(wq) < 0 || slmpm_ctr_destroy(arrived) < 0;
}

int main(int argc, char **argv)
{
	char *words[] = {"accelerator", NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h"), n = argc > 1 ? atoi(argv[1]) : FEW, failed;
	slmpm_peer accels[MOST];

	if (argc > 1 && !strcmp(argv[1], words[0]))
		return accelerator();
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: work_count [ACCELERATORS]  (1 to %d)\n",
			MOST);
		return help ? 0 : 2;
	}
	for (int i = 0; i < n; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	failed = meet(accels, n);
	for (int i = 0; i < n; i++)
		failed |= slmpm_join(accels[i], NULL, 5000) != 0;
	return failed;
}
