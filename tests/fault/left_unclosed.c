/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process ends well without slmpm_close, with something unread: over shared memory all that it
 * sent is there. Over TCP what comes is whole and in order, and the detail says that it need not be
 * all; of one that has closed it does not.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LENGTH 30000
#define MANY   100
#define LOST   "may be lost"

static unsigned char bytes[LENGTH];

static int leave(slmpm_peer host, char **words)
{
	for (uint64_t i = 0; i < MANY; i++) {
		memcpy(bytes, &i, sizeof(i));
		OK(slmpm_send(host, 1, bytes, LENGTH, PATIENCE));
	}
	actor_hear(host, 1);
	if (!strcmp(words[0], "close"))
		OK(slmpm_close(host, PATIENCE));
	_exit(0);
}

static int see_off(const char *how, bool over_tcp)
{
	slmpm_peer peer = actor_spawn("leave", how, NULL);
	bool closes = !strcmp(how, "close");
	uint64_t n = 0, number;
	int64_t rc;

	actor_tell(peer, 1);
	for (int i = 0; i < 50; i++) /* which is not read */
		(void)slmpm_send(peer, 2, bytes, 100, 100);
	for (; (rc = slmpm_recv(peer, 1, bytes, LENGTH, NULL, PATIENCE)) == LENGTH; n++) {
		memcpy(&number, bytes, sizeof(number));
		CHECK(number == n, "%d instead of %d", (int)number, (int)n);
	}
	printf("%d messages, then: %s\n", (int)n, slmpm_error_detail());
	EXPECT(rc, -SLMPM_ECLOSED);
	CHECK(n == MANY || (over_tcp && !closes), "%d messages", (int)n);
	CHECK(!strstr(slmpm_error_detail(), LOST) == (closes || !over_tcp), "what is said of it");
	OK(slmpm_join(peer, NULL, PATIENCE));
	return 0;
}

static int both(void *over_tcp)
{
	return see_off("close", over_tcp) || see_off("exit", over_tcp);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"leave", leave}, {NULL, NULL}};
	static char tcp[] = "tcp";

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_EAGER_CREDIT", "16m");
	settings_set("SLMPM_FABRIC", "shm");
	settings_run("shared memory", both, NULL);
	settings_set("SLMPM_FABRIC", tcp);
	settings_run("TCP", both, tcp);
	return 0;
}
