/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pi by all accelerators: the host makes them a group and leaves them alone; each learns from rank
 * 0 how many steps there are, sums its share of them, and has the whole sum. group_pi
 * [ACCELERATORS]
 */
#include <slmpm_group.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW   3
#define MOST  15
#define STEPS 3000000
#define TAG   1

/* The integral of 4 / (1 + x * x) from 0 to 1, as far as it is this member's. */
static double share_of(int64_t steps, const struct slmpm_group_info *own)
{
	double sum = 0;

	for (int64_t i = own->rank; i < steps; i += own->members) {
		double x = ((double)i + 0.5) / (double)steps;

		sum += 4 / (1 + x * x);
	}
	return sum / (double)steps;
}

static int accelerator(void)
{
	struct slmpm_group_info own = {.size = sizeof(own)};
	int64_t steps = 0;
	double share, pi;
	slmpm_group group;
	slmpm_peer host;

	if (slmpm_parent(&host) < 0 || slmpm_group_join(&group, host, TAG, 5000) < 0 ||
	    slmpm_group_query(group, &own) < 0)
		return slmpm_perror("slmpm_group_join");
	if (own.rank == 0)
		steps = STEPS;
	if (slmpm_broadcast(group, &steps, 1, SLMPM_INT64, 0, 5000) < 0)
		return slmpm_perror("slmpm_broadcast");
	share = share_of(steps, &own);
	if (slmpm_allreduce(group, &share, &pi, 1, SLMPM_DOUBLE, SLMPM_CALC_SUM, 5000) < 0)
		return slmpm_perror("slmpm_allreduce");
	if (own.rank == 0)
		printf("pi is %.6f, by %u\n", pi, own.members);
	return slmpm_group_destroy(group) < 0;
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
		fprintf(help ? stdout : stderr, "usage: group_pi [ACCELERATORS]  (1 to %d)\n",
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
