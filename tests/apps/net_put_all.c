/* SPDX-License-Identifier: BSD-3-Clause */
/* helper: of net_group.sh */
/*
 * One put to many whose members are on two hosts, in turns: the host makes its four accelerators a
 * group; rank 0 puts LEN bytes to all others, along the line or to each, and each says so if it has
 * them.
 */
#include <slmpm_deposit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS 4
#define LEN     (4 << 20)
#define WAIT_MS 10000
#define TAG     1

static unsigned char bytes[LEN];

static unsigned char byte_of(size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + 1);
}

static int is_whole(void)
{
	for (size_t i = 0; i < LEN; i++)
		if (bytes[i] != byte_of(i))
			return 0;
	return 1;
}

static int put(slmpm_group group, uint32_t flags)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = WAIT_MS};
	const struct slmpm_put_spec spec = {
		.size = sizeof(spec), .flags = flags, .space = TAG, .len = LEN, .from = bytes};

	for (size_t i = 0; i < LEN; i++)
		bytes[i] = byte_of(i);
	return slmpm_put_all(group, &spec, &how, NULL);
}

static int accelerator(uint32_t flags)
{
	struct slmpm_group_info own = {.size = sizeof(own)};
	slmpm_group group;
	slmpm_peer host;

	if (slmpm_parent(&host) < 0 || slmpm_group_join(&group, host, TAG, WAIT_MS) < 0 ||
	    slmpm_group_query(group, &own) < 0 || slmpm_group_space(group, TAG, bytes, LEN) < 0 ||
	    slmpm_barrier(group, WAIT_MS) < 0)
		return slmpm_perror("group");
	if (own.rank == 0 && put(group, flags) < 0)
		return slmpm_perror("slmpm_put_all");
	if (slmpm_barrier(group, WAIT_MS) < 0)
		return slmpm_perror("slmpm_barrier");
	if (!is_whole())
		return 1;
	printf("%d has it\n", own.rank);
	return slmpm_group_destroy(group) < 0;
}

int main(int argc, char **argv)
{
	char *words[] = {argc > 1 ? argv[1] : "8", "accelerator", NULL};
	slmpm_peer accels[MEMBERS];
	slmpm_group group;
	int failed = 0;

	if (argc == 3)
		return accelerator((uint32_t)atoi(argv[1]));
	for (int i = 0; i < MEMBERS; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	if (slmpm_group_create(&group, (slmpm_ctx){0}, accels, MEMBERS, TAG, WAIT_MS) < 0)
		return slmpm_perror("slmpm_group_create");
	for (int i = 0; i < MEMBERS; i++)
		failed |= slmpm_join(accels[i], NULL, WAIT_MS) != 0;
	return failed;
}
