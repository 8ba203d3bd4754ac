/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages that have no receive leave room for others: as if only their first packets had
 * gone. Those that are not taken back come whole and in order.
 */
#include <stdlib.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LONG     ((size_t)1 << 20)
#define MEDIUM   200000 /* within the eager limit */
#define LONGS    32
#define MEDIUMS  8
#define FIRST_OF 1000 /* numbers of the long ones */

static unsigned char bytes[LONGS][LONG], medium[MEDIUM], got[LONG];
static slmpm_ctx ctx;
static slmpm_peer a, b;

static void send_medium_ones(void)
{
	for (int i = 0; i < MEDIUMS; i++) {
		struct slmpm_iov iov = {medium, sizeof(medium)};
		struct slmpm_done done;
		slmpm_req req;

		actor_fill(medium, (uint64_t)i, sizeof(medium));
		OK(slmpm_sendv(a, 2, &iov, 1, NULL, &req));
		EXPECT(slmpm_recv(b, 2, got, sizeof(got), NULL, PATIENCE), sizeof(medium));
		CHECK(actor_filled(got, (uint64_t)i, sizeof(medium)), "medium message %d", i);
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	}
}

static int others_pass(void *unused)
{
	slmpm_req req[LONGS];
	struct slmpm_done done;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	for (int i = 0; i < LONGS; i++) {
		struct slmpm_iov iov = {bytes[i], LONG};

		actor_fill(bytes[i], FIRST_OF + (uint64_t)i, LONG);
		OK(slmpm_sendv(a, 1, &iov, 1, NULL, &req[i]));
	}
	send_medium_ones();
	for (int i = 0; i < LONGS; i += 2)
		OK(slmpm_cancel(req[i]));
	send_medium_ones();
	for (int i = 1; i < LONGS; i += 2) {
		EXPECT(slmpm_recv(b, 1, got, sizeof(got), NULL, PATIENCE), LONG);
		CHECK(actor_filled(got, FIRST_OF + (uint64_t)i, LONG), "long message %d", i);
	}
	for (int i = 0; i < LONGS; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		EXPECT(done.status, i % 2 ? 0 : -SLMPM_ECANCELED);
	}
	EXPECT(slmpm_recv(b, SLMPM_ANY_STREAM, got, sizeof(got), NULL, 0), -SLMPM_EAGAIN);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	settings_set("SLMPM_FETCH", "never");
	settings_one_link("shm");
	settings_run("messages", others_pass, NULL);
	return 0;
}
