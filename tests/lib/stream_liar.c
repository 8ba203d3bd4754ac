/* SPDX-License-Identifier: BSD-3-Clause */
/* Lies over TCP, one by one. */
#include "tests/lib/stream_liar.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/child.h"
#include "tests/lib/honest.h"
#include "tests/lib/settings.h"
#include "tests/lib/stranger.h"

/* The deadline: silence meets it soon; who speaks must not, however busy the machine is. */
#define SOON_MS  "400"
#define LATER_MS "10000"

uint16_t stream_lie_port;
char stream_lie_secret[33];

/* Tells it and hears what comes of it. */
static int tell(void *arg)
{
	const struct stream_lie *lie = arg;
	struct raw_stream s;
	char reason[112] = "";

	raw_stream_begin(&s, stream_lie_port, stream_lie_secret);
	lie->tell(&s);
	if (s.fd >= 0)
		raw_stream_hear_end(s.fd, reason);
	CHECK(!lie->word || strstr(reason, lie->word), "%s: the answer was \"%s\"", lie->name,
	      reason);
	close(s.fd);
	return 0;
}

static uint64_t violations(const char *rule)
{
	const char *name;
	uint64_t count;

	for (int i = 0; slmpm_violation_at(i, &name, &count) == 0; i++)
		if (!strcmp(name, rule))
			return count;
	return 0;
}

void stream_liar_listen(slmpm_ctx ctx, slmpm_listener *listener, char url[80])
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_listen(listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(*listener, &info));
	stream_lie_port = (uint16_t)info.port;
	memcpy(stream_lie_secret, info.secret, sizeof(stream_lie_secret));
	snprintf(url, 80, "tcp://127.0.0.1:%u#%s", stream_lie_port, stream_lie_secret);
}

static int tell_all(void *arg)
{
	const struct stream_lies *all = arg;
	slmpm_listener listener;
	slmpm_peer honest;
	char url[80];
	slmpm_ctx ctx;
	pid_t pid;

	setenv("SLMPM_HANDSHAKE_MS", all->silent ? SOON_MS : LATER_MS, 1);
	OK(slmpm_open(&ctx, NULL));
	stream_liar_listen(ctx, &listener, url);
	pid = child_start(honest_peer, url, 60);
	OK(slmpm_accept(listener, &honest, PATIENCE));
	for (size_t i = 0; i < all->count; i++) {
		const struct stream_lie *lie = &all->lies[i];

		stranger_visits(lie->name, tell, (void *)(uintptr_t)lie, listener, honest);
		printf("%-28s refused\n", lie->name);
	}
	CHECK(violations("secret") == all->secrets, "%d without the secret were counted",
	      (int)violations("secret"));
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}

void stream_liar_tell(const struct stream_lies *all)
{
	CHECK(child_run(tell_all, (void *)(uintptr_t)all, 50) == 0, "those who %s: see above",
	      all->silent ? "fall silent" : "speak");
}

void stream_liar_begin(void)
{
	settings_one_link(NULL);
	if (!fabric_find("tcp"))
		test_skip("this library has no fabric \"tcp\"");
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	unsetenv("SLMPM_SECRET");
	setenv("SLMPM_FABRIC", "tcp", 1); /* else both ends, on one machine, leave the network */
}
