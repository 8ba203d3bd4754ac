/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * The table of totals cannot be had when the first peers connect: once it can be, they are counted
 * with all that they have carried, those that have ended meanwhile, too, as long as they are not
 * closed.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

static bool refused = true;

int memfd_create(const char *name, unsigned flags)
{
	if (refused && !strcmp(name, "slmpm-totals")) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

static void expect(slmpm_ctx ctx, uint64_t connections, uint32_t live, uint64_t messages)
{
	struct slmpm_totals all[4], sum = {.size = 0};
	int n = slmpm_totals(ctx, all, sizeof(*all), 4);

	for (int i = 0; i < n; i++) {
		sum.connections += all[i].connections;
		sum.live += all[i].live;
		sum.sent_messages += all[i].sent_messages;
	}
	CHECK(sum.connections == connections && sum.live == live && sum.sent_messages == messages,
	      "%llu connections, %u live, %llu messages", (unsigned long long)sum.connections,
	      sum.live, (unsigned long long)sum.sent_messages);
}

int main(void)
{
	slmpm_peer a[2], b[2];
	slmpm_ctx ctx;

	settings_one_link("shm");
	OK(slmpm_open(&ctx, NULL));
	for (int i = 0; i < 2; i++) {
		actor_pair(ctx, &a[i], &b[i]);
		OK(slmpm_peer_id(a[i], "one"));
		OK(slmpm_send(a[i], 1, NULL, 0, PATIENCE));
		EXPECT(slmpm_recv(b[i], 1, NULL, 0, NULL, PATIENCE), 0);
	}
	expect(ctx, 0, 0, 0);
	OK(slmpm_close(a[0], PATIENCE)); /* nobody can count it */
	EXPECT(slmpm_recv(b[0], 1, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	refused = false;
	expect(ctx, 3, 2, 1);
	OK(slmpm_close(a[1], PATIENCE));
	OK(slmpm_close(b[1], PATIENCE));
	OK(slmpm_close(b[0], PATIENCE));
	expect(ctx, 3, 0, 1);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
