/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * Who sleeps on the context's descriptor himself, for as long as it takes, wakes at the deadlines
 * that the library keeps, and not all the time before.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define SOON_MS 100 /* deadlines here */
#define SOON    "100"
#define FEW     100 /* rounds of a loop that sleeps */

static const slmpm_ctx none;

/* A loop as in slmpm_arm(3), until STATE is the peer's: in how many rounds. */
static unsigned sleep_until(slmpm_peer peer, uint32_t state)
{
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_UP};
	struct pollfd p = {.fd = slmpm_fd(none), .events = POLLIN};
	unsigned rounds = 0;

	while (info.state != state) {
		rounds++;
		if (slmpm_arm(none) == 0)
			CHECK(poll(&p, 1, PATIENCE) == 1, "it slept on");
		(void)slmpm_progress(none);
		OK(slmpm_peer_query(peer, &info));
	}
	return rounds;
}

/* ---- the SIGKILL behind a grace ---- */

static int role_stubborn(slmpm_peer host, char **words)
{
	(void)words;
	signal(SIGTERM, SIG_IGN);
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	for (;;)
		pause();
	return 1;
}

static void killed_in_time(void)
{
	slmpm_peer child = actor_spawn_ready("stubborn");

	OK(slmpm_kill(child, SOON_MS));
	CHECK(sleep_until(child, SLMPM_PEER_DEAD) < FEW, "awake while it waited for the kill");
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

/* ---- who has left, and may tell why ---- */

static int role_leaver(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	execlp("sleep", "sleep", "60", (char *)NULL);
	return 1;
}

static void left_in_time(void)
{
	slmpm_peer child = actor_spawn_ready("leaver");

	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	CHECK(sleep_until(child, SLMPM_PEER_DEAD) < FEW, "awake through its grace");
	OK(slmpm_kill(child, 0));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

/* ---- a stranger who says nothing ---- */

static int refuse_in_time(void *arg)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLRDHUP}};
	slmpm_listener listener;
	char name[32], url[48];

	(void)arg;
	settings_set("SLMPM_HANDSHAKE_MS", SOON);
	p[0].fd = slmpm_fd(none);
	snprintf(name, sizeof(name), "alarm-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", name);
	OK(slmpm_listen(&listener, none, url));
	p[1].fd = raw_connect(name);
	CHECK(p[1].fd >= 0, "not let in");
	for (unsigned rounds = 0; !p[1].revents; rounds++) {
		CHECK(rounds < FEW, "awake while it says nothing");
		if (slmpm_arm(none) == 0)
			CHECK(poll(p, 2, PATIENCE) > 0, "it is never refused");
		(void)slmpm_progress(none);
	}
	close(p[1].fd);
	OK(slmpm_unlisten(listener));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"stubborn", role_stubborn}, {"leaver", role_leaver}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	/* Before this process reads its settings. */
	EXPECT(child_run(refuse_in_time, NULL, 2 * PATIENCE / 1000), 0);
	killed_in_time();
	left_in_time();
	return 0;
}
