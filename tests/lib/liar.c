/* SPDX-License-Identifier: BSD-3-Clause */
/* Lies, one by one. */
#include "tests/lib/liar.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/settings.h"
#include "tests/lib/stranger.h"

static const struct lie *lies;
static size_t count;
static char address[64]; /* without "shm:" */

/* Tells it and hears what comes of it. */
static int tell(const struct lie *lie, int fd)
{
	struct raw_peer p;
	char reason[112];

	raw_begin(&p, fd);
	lie->tell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!lie->word || strstr(reason, lie->word), "%s: the answer was \"%s\"", lie->name,
	      reason);
	raw_end(&p);
	return 0;
}

static int lie_to_listener(void *arg)
{
	int fd = raw_connect(address);

	CHECK(fd >= 0, "the listener is not there");
	return tell(arg, fd);
}

static int lie_as_child(slmpm_peer host, char **words)
{
	(void)host;
	return tell(&lies[atoi(words[0])], raw_inherited());
}

static void as_child(int i, slmpm_ctx ctx, slmpm_peer honest)
{
	struct slmpm_spawn_options options = {.size = sizeof(options), .ctx = ctx};
	const struct lie *lie = &lies[i];
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_CONNECTING};
	slmpm_peer peer;
	char number[16];
	int rc;

	snprintf(number, sizeof(number), "%d", i);
	peer = actor_spawn_with(&options, "-lie", number, NULL);
	while (info.state == SLMPM_PEER_CONNECTING) {
		honest_works(honest);
		OK(slmpm_peer_query(peer, &info));
		CHECK(actor_now_ms() < begin + STRANGER_BOUND_MS * actor_slow(), "%s: no end",
		      lie->name);
	}
	rc = slmpm_send(peer, 1, "x", 1, PATIENCE);
	/* A child that tells nobody why may be found gone, or gone with exit status 0. */
	CHECK(rc == -lie->error || (!lie->word && rc == -SLMPM_ECLOSED), "%s: %d (%s)", lie->name,
	      rc, slmpm_error_detail());
	CHECK(!lie->word || strstr(slmpm_error_detail(), lie->word), "%s: \"%s\"", lie->name,
	      slmpm_error_detail());
	EXPECT(slmpm_recv(peer, 1, number, 1, NULL, PATIENCE), rc);
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
	holdings_expect(before, lie->name);
}

static int tell_all(void *handshake_ms)
{
	bool soon = !strcmp(handshake_ms, LIAR_SOON_MS);
	slmpm_listener listener;
	slmpm_peer honest;
	slmpm_ctx ctx;
	char url[80];
	pid_t pid;

	setenv("SLMPM_HANDSHAKE_MS", handshake_ms, 1);
	snprintf(address, sizeof(address), "hostile-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(honest_peer, address, 60);
	OK(slmpm_accept(listener, &honest, PATIENCE));
	for (int i = 0; i < (int)count; i++) {
		if ((lies[i].error == SLMPM_ETIMEOUT) != soon)
			continue;
		stranger_visits(lies[i].name, lie_to_listener, (void *)(uintptr_t)&lies[i],
				listener, honest);
		as_child(i, ctx, honest);
		printf("%-28s refused\n", lies[i].name);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}

static bool some_meet(bool soon)
{
	for (size_t i = 0; i < count; i++)
		if ((lies[i].error == SLMPM_ETIMEOUT) == soon)
			return true;
	return false;
}

int liar_main(int argc, char **argv, const struct lie *all, size_t n)
{
	static const struct actor roles[] = {{"-lie", lie_as_child}, {NULL, NULL}};

	lies = all;
	count = n;
	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	if (some_meet(false))
		CHECK(child_run(tell_all, LIAR_LATER_MS, 50) == 0, "those who speak: see above");
	if (some_meet(true))
		CHECK(child_run(tell_all, LIAR_SOON_MS, 50) == 0,
		      "those who fall silent: see above");
	return 0;
}
