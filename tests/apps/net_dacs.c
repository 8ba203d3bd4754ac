/* SPDX-License-Identifier: BSD-3-Clause */
/* helper: of net_group.sh */
/*
 * A DaCS group of two members, each on a host that the host program's reaches, and perhaps not the
 * other's. Each prints how its first barrier ends, and why; SLMPM_TIMEOUT ends it.
 */
#include <dacs.h>
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS 2

static void check(const char *what, DACS_ERR_T rc)
{
	if (rc == DACS_SUCCESS)
		return;
	printf("%s: %s\n", what, dacs_strerror(rc));
	exit(1);
}

/* However many deadlines pass. */
#define LATE(call)                                                                                 \
	do {                                                                                       \
		DACS_ERR_T got_;                                                                   \
		do                                                                                 \
			got_ = (call);                                                             \
		while (got_ == DACS_ERR_DACSD_FAILURE);                                            \
		check(#call, got_);                                                                \
	} while (0)

static int be_member(void)
{
	dacs_group_t group;
	DACS_ERR_T rc;

	check("init", dacs_init(0));
	LATE(dacs_group_accept(DACS_DE_PARENT, DACS_PID_PARENT, &group));
	do /* until it has formed */
		rc = dacs_barrier_wait(group);
	while (rc == DACS_ERR_DACSD_FAILURE && !strstr(slmpm_error_detail(), "is not reached"));
	printf("%s: %s\n", dacs_strerror(rc), rc == DACS_SUCCESS ? "" : slmpm_error_detail());
	LATE(dacs_group_leave(&group));
	check("exit", dacs_exit());
	return 0;
}

int main(int argc, char **argv)
{
	const char *member[] = {"member", NULL};
	de_id_t de[MEMBERS];
	dacs_process_id_t pid[MEMBERS];
	uint32_t n = MEMBERS;
	dacs_group_t group;
	int32_t status;

	if (argc > 1)
		return be_member();
	check("init", dacs_init(0));
	check("reserve", dacs_reserve_children(DACS_DE_CBE, &n, de));
	check("group", dacs_group_init(&group, 0));
	for (int i = 0; i < MEMBERS; i++) {
		check("start",
		      dacs_de_start(de[i], argv[0], member, NULL, DACS_PROC_REMOTE_FILE, &pid[i]));
		LATE(dacs_group_add_member(de[i], pid[i], group));
	}
	LATE(dacs_group_close(group));
	LATE(dacs_group_destroy(&group));
	for (int i = 0; i < MEMBERS; i++)
		do
			status = 0;
		while (dacs_de_wait(de[i], pid[i], &status) == DACS_ERR_DACSD_FAILURE);
	check("exit", dacs_exit());
	return 0;
}
