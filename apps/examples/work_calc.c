/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sum over all accelerators for all of them: each sends its part, and one entry of a work queue
 * at the host waits for these messages, adds them up where they lie, and puts the sums to every
 * accelerator while they are made. The host has no memory for a part. work_calc [ACCELERATORS]
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW      3
#define MOST     15 /* and the host's own part is a target, too */
#define ELEMENTS 10000

enum { KEY = 1, PART, READY }; /* the streams */

static double sums[ELEMENTS];

/* Where the sums are to be is the host's to write. */
static int offer(slmpm_peer host, double **place)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	if (slmpm_mem_alloc((slmpm_ctx){0}, sizeof(sums), SLMPM_READ_WRITE, &mem, &base) < 0 ||
	    slmpm_mem_key(mem, host, SLMPM_WRITE, &key) < 0)
		return -1;
	*place = base;
	return slmpm_send(host, KEY, &key, sizeof(key), -1);
}

/* Of the first, the second, ... of N. Its part is multiples of its number. */
static int accelerator(int number, int n)
{
	static double part[ELEMENTS];
	double *place, all = n * (n + 1) / 2;
	slmpm_peer host;

	if (slmpm_parent(&host) < 0 || offer(host, &place) < 0)
		return slmpm_perror("a region");
	for (int i = 0; i < ELEMENTS; i++)
		part[i] = (double)i * number;
	if (slmpm_send(host, PART, part, sizeof(part), -1) < 0 ||
	    slmpm_recv(host, READY, NULL, 0, NULL, -1) < 0)
		return slmpm_perror("the sums");
	for (int i = 0; i < ELEMENTS; i++)
		if (place[i] != all * i)
			return fprintf(stderr, "element %d is %g\n", i, place[i]) > 0;
	return 0;
}

/* The places of the sums: one here, one at each accelerator. */
static int open_targets(struct slmpm_operand *targets, const slmpm_peer *accels, int n)
{
	struct slmpm_key key;

	targets[0].at = sums;
	for (int i = 0; i < n; i++)
		if (slmpm_recv(accels[i], KEY, &key, sizeof(key), NULL, -1) < 0 ||
		    slmpm_mem_open(accels[i], &key, &targets[1 + i].rmem) < 0)
			return -1;
	return 0;
}

/* In the order of the channel: the sums; a word to each that has them. */
static int post_sums(slmpm_wq wq, const slmpm_peer *accels, int n, const struct slmpm_calc *calc)
{
	struct slmpm_wr sum = {.size = sizeof(sum), .op = SLMPM_OP_CALC, .calc = calc};
	struct slmpm_wr word = {.size = sizeof(word), .op = SLMPM_OP_SEND, .stream = READY};
	int posted = slmpm_post(wq, &sum, 1) == 1;

	for (int i = 0; i < n; i++) {
		word.peer = accels[i];
		posted += slmpm_post(wq, &word, 1) == 1;
	}
	return posted == n + 1 ? 0 : -1;
}

static int host(const slmpm_peer *accels, int n)
{
	struct slmpm_wq_options options = {.size = sizeof(options)};
	struct slmpm_operand args[MOST], targets[1 + MOST];
	struct slmpm_calc calc = {.size = sizeof(calc), .op = SLMPM_CALC_SUM};
	slmpm_wq wq;

	memset(args, 0, sizeof(args));
	memset(targets, 0, sizeof(targets));
	for (int i = 0; i < n; i++) {
		args[i].peer = accels[i];
		args[i].stream = PART;
	}
	calc.type = SLMPM_DOUBLE;
	calc.count[0] = ELEMENTS;
	calc.args = args;
	calc.arg_count = n;
	calc.targets = targets;
	calc.target_count = 1 + n;
	if (open_targets(targets, accels, n) < 0)
		return slmpm_perror("slmpm_mem_open");
	if (slmpm_cq_create((slmpm_ctx){0}, &options.cq) < 0 ||
	    slmpm_wq_create((slmpm_ctx){0}, &options, &wq) < 0)
		return slmpm_perror("slmpm_wq_create");
	if (post_sums(wq, accels, n, &calc) < 0)
		return slmpm_perror("slmpm_post");
	if (slmpm_wq_drain(wq, -1) < 0)
		return slmpm_perror("slmpm_wq_drain");
	printf("the last of %d sums of %d parts is %.0f\n", ELEMENTS, n, sums[ELEMENTS - 1]);
	return 0;
}

int main(int argc, char **argv)
{
	char number[16], count[16], *words[] = {"accelerator", number, count, NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h"), n = argc > 1 ? atoi(argv[1]) : FEW, failed;
	slmpm_peer accels[MOST];

	if (argc == 4 && !strcmp(argv[1], words[0]))
		return accelerator(atoi(argv[2]), atoi(argv[3]));
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: work_calc [ACCELERATORS]  (1 to %d)\n",
			MOST);
		return help ? 0 : 2;
	}
	snprintf(count, sizeof(count), "%d", n);
	for (int i = 0; i < n; i++) {
		snprintf(number, sizeof(number), "%d", i + 1);
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	}
	failed = host(accels, n);
	for (int i = 0; i < n; i++)
		failed |= slmpm_join(accels[i], NULL, 5000) != 0;
	return failed;
}
