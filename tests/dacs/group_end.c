/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* A member leaves its group, or dies, before another has made a call since the group was closed. */
#include "tests/dacs/pair.h"

#define QUIET 150000 /* us without a call */

/* Goes at once, when the group is closed. argv[0]: "leaves" or "dies". */
static int role_goes(int argc, char **argv)
{
	dacs_group_t group;
	uint32_t word;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_group_accept(UP, &group));
	OK(dacs_mailbox_read(&word, UP));
	if (argv[0][0] == 'd')
		_exit(0);
	OK(dacs_group_leave(&group));
	OK(dacs_exit());
	return 0;
}

/* argv[0]: what its first barrier is to return. */
static int role_stays(int argc, char **argv)
{
	dacs_group_t group;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_group_accept(UP, &group));
	usleep(QUIET);
	EXPECT(dacs_barrier_wait(group), (DACS_ERR_T)atoi(argv[0]));
	for (int i = 0; i < 100; i++)
		OK(dacs_barrier_wait(group));
	OK(dacs_group_leave(&group));
	OK(dacs_exit());
	return 0;
}

static int one_goes(const char *how, bool member, DACS_ERR_T outcome)
{
	struct child goes, stays[2];
	dacs_group_t group;
	char first[16];

	snprintf(first, sizeof(first), "%d", (int)outcome);
	OK(dacs_init(0));
	OK(dacs_group_init(&group, 0));
	goes = pair_start("goes", how);
	for (int i = 0; i < 2; i++) {
		stays[i] = pair_start("stays", first);
		OK(dacs_group_add_member(AT(stays[i]), group));
	}
	OK(dacs_group_add_member(AT(goes), group));
	if (member)
		OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	OK(dacs_group_close(group));
	pair_tell(goes, 1);
	pair_end(goes, DACS_STS_PROC_FINISHED, 0);
	if (member)
		EXPECT(dacs_barrier_wait(group), outcome);
	for (int i = 0; member && i < 100; i++)
		OK(dacs_barrier_wait(group));
	for (int i = 0; i < 2; i++)
		pair_end(stays[i], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_group_destroy(&group));
	OK(dacs_exit());
	return 0;
}

static int one_leaves(int argc, char **argv)
{
	(void)argc, (void)argv;
	return one_goes("leaves", false, DACS_SUCCESS) || one_goes("leaves", true, DACS_SUCCESS);
}

static int one_dies(int argc, char **argv)
{
	(void)argc, (void)argv;
	return one_goes("dies", false, DACS_ERR_DE_TERM) ||
	       one_goes("dies", true, DACS_ERR_DE_TERM);
}

static const struct pair_entry roles[] = {
	{"goes", role_goes},
	{"stays", role_stays},
	{0},
};

static const struct pair_entry cases[] = {
	{"one leaves", one_leaves},
	{"one dies", one_dies},
	{0},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
