/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of references of a group: what it takes, and what it refuses. */
#include <slmpm_group.h>

#include "tests/lib/actor.h"

#include <string.h>

int main(void)
{
	slmpm_ctx ctx;
	slmpm_group group, none = {0};
	static char memory[2][64];

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_group_create(&group, ctx, &(slmpm_peer){0}, 1, 1, 0));
	REFUSED(slmpm_group_space(none, 1, memory[0], 64), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_group_space(group, 0, memory[0], 64), SLMPM_EINVAL, "space 0");
	REFUSED(slmpm_group_space(group, SLMPM_GROUP_SPACES + 1, memory[0], 64), SLMPM_EINVAL,
		"space 65537");
	REFUSED(slmpm_group_space(group, 1, NULL, 64), SLMPM_EINVAL, "no base");
	REFUSED(slmpm_group_space(group, 1, memory[0], UINT64_MAX), SLMPM_EINVAL, "bytes");
	OK(slmpm_group_space(group, 1, memory[0], 64));
	OK(slmpm_group_space(group, SLMPM_GROUP_SPACES, memory[1], 64));
	OK(slmpm_group_space(group, 1, memory[1], 8));
	OK(slmpm_group_space(group, 1, NULL, 0));
	OK(slmpm_group_space(group, 1, NULL, 0));
	OK(slmpm_group_destroy(group));
	OK(slmpm_shut(ctx, 0));
	return 0;
}
