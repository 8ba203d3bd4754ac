/* SPDX-License-Identifier: BSD-3-Clause */
/* helper: of net_group.sh */
/*
 * Collective operations of members of which several are on each host: what they come to, and by
 * which algorithms. "net_hosts [ROUNDS]" prints those, and microseconds of a round of all.
 */
#include <slmpm_group.h>
#include <slmpm_plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMBERS 6
#define WAIT_MS 10000
#define TAG     1

static slmpm_group group;
static struct slmpm_group_info own = {.size = sizeof(own)};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", own.rank, what, slmpm_error_detail());
	exit(1);
}

/* The algorithm of the last operation, once. */
static void say(const char *what, int first)
{
	check(slmpm_group_query(group, &own) == 0, "slmpm_group_query");
	if (first && own.rank == 0)
		printf("%s by %s\n", what, slmpm_plan_algorithm(own.algorithm));
}

static void round_of(int64_t k, int first)
{
	const int root = (int)(k % MEMBERS);
	int64_t word = own.rank == root ? k : -1, one = own.rank + k, sum = -1;
	double part = 0.1 * own.rank, all = 0, right = 0;

	check(slmpm_barrier(group, WAIT_MS) == 0, "barrier");
	say("barrier", first);
	check(slmpm_broadcast(group, &word, 1, SLMPM_INT64, root, WAIT_MS) == 0, "broadcast");
	check(word == k, "broadcast: another word");
	say("broadcast", first);
	check(slmpm_reduce(group, &one, &sum, 1, SLMPM_INT64, SLMPM_CALC_SUM, root, WAIT_MS) == 0,
	      "reduce");
	check(own.rank != root || sum == MEMBERS * k + MEMBERS * (MEMBERS - 1) / 2,
	      "reduce: another sum");
	say("reduce", first);
	check(slmpm_allreduce(group, &one, &sum, 1, SLMPM_INT64, SLMPM_CALC_SUM, WAIT_MS) == 0,
	      "allreduce");
	check(sum == MEMBERS * k + MEMBERS * (MEMBERS - 1) / 2, "allreduce: another sum");
	say("allreduce", first);
	check(slmpm_allreduce(group, &part, &all, 1, SLMPM_DOUBLE, SLMPM_CALC_SUM, WAIT_MS) == 0,
	      "allreduce");
	say("allreduce in the order of the ranks", first);
	for (int r = 0; r < MEMBERS; r++)
		right += 0.1 * r;
	check(all == right, "allreduce: not in the order of the ranks");
}

static int accelerator(int rounds)
{
	slmpm_peer host;
	double begin;

	check(slmpm_parent(&host) >= 0, "slmpm_parent");
	check(slmpm_group_join(&group, host, TAG, WAIT_MS) == 0, "slmpm_group_join");
	check(slmpm_group_query(group, &own) == 0, "slmpm_group_query");
	round_of(0, 1);
	begin = now_us();
	for (int k = 1; k <= rounds; k++)
		round_of(k, 0);
	if (own.rank == 0)
		printf("%.1f us\n", (now_us() - begin) / rounds);
	for (int k = 0; k < 3; k++)
		check(slmpm_group_meet(group, WAIT_MS) == 0, "meet");
	return slmpm_group_destroy(group) < 0;
}

int main(int argc, char **argv)
{
	char *words[] = {argc > 1 ? argv[1] : "20", "accelerator", NULL};
	slmpm_peer accels[MEMBERS];
	int failed = 0;

	if (argc == 3)
		return accelerator(atoi(argv[1]));
	for (int i = 0; i < MEMBERS; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	if (slmpm_group_create(&group, (slmpm_ctx){0}, accels, MEMBERS, TAG, WAIT_MS) < 0)
		return slmpm_perror("slmpm_group_create");
	for (int i = 0; i < MEMBERS; i++)
		failed |= slmpm_join(accels[i], NULL, WAIT_MS) != 0;
	return failed;
}
