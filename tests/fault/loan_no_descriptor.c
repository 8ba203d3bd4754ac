/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * Who has no descriptor left for the area of a loan ends the connection for that reason: the lender
 * has broken no rule, whether the area is offered before the message is seen or with it.
 */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LONG 65536

static void limit_descriptors(rlim_t most)
{
	struct rlimit r;

	(void)getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = most < r.rlim_max ? most : r.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0, "setrlimit");
}

static int receive_one(void *before)
{
	slmpm_peer a, b;
	slmpm_ctx ctx;
	char word[8];
	void *at;
	int least;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_loan(a, 1, LONG, &at, PATIENCE));
	memcpy(at, "lent", 4);
	if (!before)
		OK(slmpm_commit(a, at, LONG, NULL));
	least = dup(1);
	close(least);
	limit_descriptors((rlim_t)least);
	REFUSED(slmpm_recv(b, 1, word, sizeof(word), NULL, PATIENCE), SLMPM_ENOFILE,
		"no descriptor is left for the area of a loan");
	limit_descriptors(RLIM_INFINITY);
	REFUSED(slmpm_recv(a, 1, word, sizeof(word), NULL, PATIENCE), SLMPM_EDEAD,
		"it says: no descriptor is left for the area of a loan");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static char before[] = "before";

	settings_one_link("shm");
	settings_run("offered before", receive_one, before);
	settings_run("offered with it", receive_one, NULL);
	return 0;
}
