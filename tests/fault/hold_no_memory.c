/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * A hold without memory for a long message has lost that, and nothing else: its sender is done with
 * it, and what is sent behind it comes.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/memory_limit.h"
#include "tests/lib/settings.h"

#define LONG  ((size_t)64 << 20)
#define SPARE 65536 /* bytes of memory that are left */

static int hold_one(void *fabric)
{
	void *bytes = mmap(NULL, LONG, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct slmpm_iov iov = {bytes, LONG};
	struct slmpm_done done;
	const void *held;
	slmpm_peer a, b;
	slmpm_req req;
	slmpm_ctx ctx;
	char word[8];

	settings_one_link(fabric);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_sendv(a, 1, &iov, 1, NULL, &req));
	OK(slmpm_send(a, 2, "here", 4, PATIENCE));
	EXPECT(slmpm_recv(b, 2, word, sizeof(word), NULL, PATIENCE), 4);
	memory_limit(SPARE);
	EXPECT(slmpm_hold(b, 1, &held, NULL, PATIENCE), -SLMPM_ENOMEM);
	memory_limit(0);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, 0);
	OK(slmpm_send(a, 1, "next", 4, PATIENCE));
	EXPECT(slmpm_recv(b, 1, word, sizeof(word), NULL, PATIENCE), 4);
	CHECK(!memcmp(word, "next", 4), "another message");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static char shm[] = "shm", tcp[] = "tcp";

	settings_set("SLMPM_FETCH", "never");
	settings_run("in packets", hold_one, shm);
	settings_run("in packets over TCP", hold_one, tcp);
	settings_set("SLMPM_FETCH", "always");
	settings_run("fetched", hold_one, shm);
	return 0;
}
