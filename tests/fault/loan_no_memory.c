/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * Who has no memory for the area of a loan ends the connection for that reason: the lender has
 * broken no rule, whether the area is offered before the message is seen or with it.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/memory_limit.h"
#include "tests/lib/settings.h"

#define LONG  ((size_t)64 << 20)
#define SPARE 65536 /* bytes of memory that are left */

static int receive_one(void *before)
{
	slmpm_peer a, b;
	slmpm_ctx ctx;
	char word[8];
	void *at;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_loan(a, 1, LONG, &at, PATIENCE));
	memcpy(at, "lent", 4);
	if (!before)
		OK(slmpm_commit(a, at, LONG, NULL));
	memory_limit(SPARE);
	EXPECT(slmpm_recv(b, 1, word, sizeof(word), NULL, PATIENCE), -SLMPM_ENOMEM);
	memory_limit(0);
	CHECK(strstr(slmpm_error_detail(), "no memory for a"), "%s", slmpm_error_detail());
	EXPECT(slmpm_recv(a, 1, word, sizeof(word), NULL, PATIENCE), -SLMPM_EDEAD);
	CHECK(!strstr(slmpm_error_detail(), "impossible"), "%s", slmpm_error_detail());
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
