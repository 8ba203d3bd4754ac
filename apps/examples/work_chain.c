/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain that runs by itself: what an accelerator sends back goes on to the next one. The host
 * posts the whole chain to a work queue, then waits for its end only. work_chain [ACCELERATORS]
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW  3
#define MOST 16
#define WORD 1 /* the stream */

/* Adds one to what comes, and sends it back. */
static int accelerator(void)
{
	slmpm_peer host;
	uint64_t word;

	if (slmpm_parent(&host) < 0 || slmpm_recv(host, WORD, &word, sizeof(word), NULL, -1) < 0)
		return slmpm_perror("receive");
	word++;
	return slmpm_send(host, WORD, &word, sizeof(word), -1) < 0 ? slmpm_perror("send") : 0;
}

/* The word goes to ACCEL; its answer comes into the same place, is counted, and waited for. */
static int post_hop(slmpm_wq wq, slmpm_ctr answers, slmpm_peer accel, struct slmpm_iov *word)
{
	struct slmpm_wr send = {.op = SLMPM_OP_SEND}, receive = {.op = SLMPM_OP_RECV};
	struct slmpm_wr wait = {.op = SLMPM_OP_WAIT, .value = 1}, all[3];

	send.size = receive.size = wait.size = sizeof(send);
	send.peer = receive.peer = accel;
	send.stream = receive.stream = WORD;
	send.iov = receive.iov = word;
	send.iov_count = receive.iov_count = 1;
	receive.ctr = wait.ctr = answers;
	send.flags = receive.flags = SLMPM_SILENT;
	wait.flags = SLMPM_SILENT | SLMPM_RELATIVE;
	all[0] = send;
	all[1] = receive;
	all[2] = wait;
	return slmpm_post(wq, all, 3) == 3 ? 0 : -1;
}

static int chain(const slmpm_peer *accels, int n)
{
	struct slmpm_wq_options options = {.size = sizeof(options)};
	uint64_t word = 0;
	struct slmpm_iov place = {&word, sizeof(word)};
	slmpm_ctr answers;
	slmpm_wq wq;

	if (slmpm_cq_create((slmpm_ctx){0}, &options.cq) < 0 ||
	    slmpm_ctr_create((slmpm_ctx){0}, &answers) < 0 ||
	    slmpm_wq_create((slmpm_ctx){0}, &options, &wq) < 0)
		return slmpm_perror("slmpm_wq_create");
	for (int i = 0; i < n; i++)
		if (post_hop(wq, answers, accels[i], &place) < 0)
			return slmpm_perror("slmpm_post");
	if (slmpm_wq_drain(wq, -1) < 0)
		return slmpm_perror("slmpm_wq_drain");
	printf("%llu accelerators have had it\n", (unsigned long long)word);
	return slmpm_wq_destroy(wq) < 0 || word != (uint64_t)n;
}

int main(int argc, char **argv)
{
	char *words[] = {"accelerator", NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h"), n = argc > 1 ? atoi(argv[1]) : FEW, failed;
	slmpm_peer accels[MOST];

	if (argc > 1 && !strcmp(argv[1], words[0]))
		return accelerator();
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: work_chain [ACCELERATORS]  (1 to %d)\n",
			MOST);
		return help ? 0 : 2;
	}
	for (int i = 0; i < n; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	failed = chain(accels, n);
	for (int i = 0; i < n; i++)
		failed |= slmpm_join(accels[i], NULL, 5000) != 0;
	return failed;
}
