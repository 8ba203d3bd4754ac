/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/* A mirror is flushed while a loan lies open in the ring: its change goes behind the loan, not into
 * it. */
#include <string.h>

#include "tests/lib/mirror_ends.h"

#define N 32

static void beside_a_loan(void)
{
	unsigned char got[N];
	void *loan;

	OK(slmpm_loan(ends.near, 1, N, &loan, PATIENCE));
	memset(loan, 'l', N);
	OK(slmpm_mirror_store64(ends.leader, ends.leads, 0x1111111111111111));
	(void)slmpm_mirror_flush(ends.leader, 10);
	EXPECT(slmpm_recv(ends.far, 1, got, sizeof(got), NULL, 0), -SLMPM_EAGAIN);
	OK(slmpm_commit(ends.near, loan, N, NULL));
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	EXPECT(slmpm_recv(ends.far, 1, got, sizeof(got), NULL, PATIENCE), N);
	for (int i = 0; i < N; i++)
		CHECK(got[i] == 'l', "byte %d of the loan", i);
	ends_same("beside a loan");
}

int main(void)
{
	static const struct setting small = {.name = "small"};

	ends_open(&small);
	ends_mirror(NULL, 0);
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	beside_a_loan();
	ends_unmirror();
	return ends_close();
}
