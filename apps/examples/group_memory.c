/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram by all accelerators, in memory that they share and that the host does not map: each
 * counts in its own part, and the sums take the place of the counts. group_memory [ACCELERATORS]
 */
#include <slmpm_group.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW   3
#define MOST  15
#define BINS  1024
#define DRAWN 1000000
#define TAG   1

/* The sums of two draws each: not all are as frequent. */
static void count(int64_t *bins, unsigned seed)
{
	for (int i = 0; i < DRAWN; i++) {
		unsigned a = seed = seed * 1664525 + 1013904223;
		unsigned b = seed = seed * 1664525 + 1013904223;

		bins[(a >> 23) + (b >> 23)]++;
	}
}

static int accelerator(void)
{
	struct slmpm_group_info own = {.size = sizeof(own)};
	slmpm_group_memory memory;
	slmpm_group group;
	slmpm_peer host;
	void *part;
	uint64_t len;
	int most = 0;

	if (slmpm_parent(&host) < 0 || slmpm_group_join(&group, host, TAG, 5000) < 0 ||
	    slmpm_group_query(group, &own) < 0)
		return slmpm_perror("slmpm_group_join");
	if (slmpm_group_alloc(&memory, group, BINS * sizeof(int64_t), 0, 0, 5000) < 0 ||
	    slmpm_group_part(memory, own.rank, &part, &len) < 0)
		return slmpm_perror("slmpm_group_alloc");
	count(part, (unsigned)own.rank);
	if (slmpm_allreduce(group, SLMPM_IN_PLACE, part, BINS, SLMPM_INT64, SLMPM_CALC_SUM, 5000) <
		    0 ||
	    slmpm_group_query(group, &own) < 0)
		return slmpm_perror("slmpm_allreduce");
	for (int i = 1; i < BINS; i++)
		if (((int64_t *)part)[i] > ((int64_t *)part)[most])
			most = i;
	if (own.rank == 0)
		printf("%d of %u million draws are %d, by %llu operation in memory\n",
		       (int)((int64_t *)part)[most], own.members, most,
		       (unsigned long long)own.in_memory);
	return slmpm_group_free(memory) < 0 || slmpm_group_destroy(group) < 0;
}

int main(int argc, char **argv)
{
	char *words[] = {"accelerator", NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h"), n = argc > 1 ? atoi(argv[1]) : FEW,
	    failed = 0;
	slmpm_peer accels[MOST];
	slmpm_group group;

	if (argc == 2 && !strcmp(argv[1], words[0]))
		return accelerator();
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: group_memory [ACCELERATORS]  (1 to %d)\n",
			MOST);
		return help ? 0 : 2;
	}
	for (int i = 0; i < n; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	if (slmpm_group_create(&group, (slmpm_ctx){0}, accels, n, TAG, 5000) < 0)
		return slmpm_perror("slmpm_group_create");
	for (int i = 0; i < n; i++)
		failed |= slmpm_join(accels[i], NULL, 5000) != 0;
	return failed;
}
