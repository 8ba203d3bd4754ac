/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations: accelerators (this same program, started again) share out work among
 * themselves. The host counts primes; all it does is to give them a region: they take numbers of
 * pieces from it, read there how long a piece is, and write their results into it.
 * put_get [ACCELERATORS]
 */
#include <slmpm.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST   16
#define PIECES 512

struct board {         /* the host's region */
	uint64_t next; /* piece that nobody has taken */
	uint32_t length;
	uint32_t primes[PIECES];
};

static uint32_t count_primes(uint64_t from, uint64_t to)
{
	uint32_t count = 0;

	for (uint64_t n = from < 2 ? 2 : from; n < to; n++) {
		uint64_t d = 2;

		while (d * d <= n && n % d)
			d++;
		count += d * d > n;
	}
	return count;
}

static int accelerator(void)
{
	uint32_t length, primes;
	slmpm_rmem board;
	slmpm_peer host;
	uint64_t piece;

	if (slmpm_parent(&host) < 0 || slmpm_mem_accept(host, &board, 5000) < 0 ||
	    slmpm_get(board, offsetof(struct board, length), &length, sizeof(length), NULL, NULL) <
		    0)
		return slmpm_perror("accelerator");
	for (;;) {
		if (slmpm_atomic(board, offsetof(struct board, next), SLMPM_FETCH_ADD, 64, 1, 0,
				 &piece, NULL, NULL) < 0)
			return slmpm_perror("slmpm_atomic");
		if (piece >= PIECES)
			break;
		primes = count_primes(piece * length, (piece + 1) * length);
		if (slmpm_put(board, offsetof(struct board, primes) + piece * sizeof(primes),
			      &primes, sizeof(primes), NULL, NULL) < 0)
			return slmpm_perror("slmpm_put");
	}
	/* What is sent after a put arrives after it: the end of this connection, too. */
	return slmpm_close(host, 5000) < 0 ? slmpm_perror("close") : 0;
}

int main(int argc, char **argv)
{
	char *words[] = {"accelerator", NULL};
	int n = argc > 1 ? atoi(argv[1]) : 2, rc = 0;
	int help = argc > 1 && !strcmp(argv[1], "-h");
	slmpm_peer accels[MOST];
	struct board *board;
	uint64_t sum = 0;
	slmpm_mem mem;
	void *base;

	if (argc > 1 && !strcmp(argv[1], words[0]))
		return accelerator();
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: put_get [1 to %d accelerators]\n", MOST);
		return help ? 0 : 2;
	}
	if (slmpm_mem_alloc((slmpm_ctx){0}, sizeof(*board), SLMPM_READ_WRITE, &mem, &base) < 0)
		return slmpm_perror("slmpm_mem_alloc");
	board = base;
	board->length = 1000;
	for (int i = 0; i < n; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0 ||
		    slmpm_mem_share(mem, accels[i], SLMPM_READ_WRITE, 5000) < 0)
			return slmpm_perror("accelerator");
	for (int i = 0; i < n; i++) /* a join alone would close what they still use */
		if (slmpm_recv(accels[i], 0, NULL, 0, NULL, -1) != -SLMPM_ECLOSED ||
		    slmpm_join(accels[i], NULL, 5000) != 0)
			rc = slmpm_perror("accelerator");
	for (int i = 0; i < PIECES; i++)
		sum += board->primes[i];
	printf("%llu primes below %u\n", (unsigned long long)sum, PIECES * board->length);
	return rc;
}
