/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining: a program that has yet to connect, one that others waited for. */
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/lib/actor.h"

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

static int pid_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

/* ---- not connected yet ---- */

static int role_late(slmpm_peer host, char **words)
{
	(void)words;
	pause_ms(200);
	OK(slmpm_parent(&host));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 3;
}

static void joined_at_once(void)
{
	slmpm_peer child = actor_spawn("-late", NULL, NULL);

	REFUSED(slmpm_join(child, NULL, 0), SLMPM_EAGAIN, "still runs");
	actor_join(child, 3);
}

static int role_left(slmpm_peer host, char **words)
{
	(void)words;
	pause_ms(100);
	REFUSED(slmpm_parent(&host), SLMPM_ECLOSED, "connect");
	return 4;
}

static void closed_at_once(void)
{
	slmpm_peer child = actor_spawn("-left", NULL, NULL);

	OK(slmpm_close(child, 0));
	actor_join(child, 4);
}

/* ---- ended, but not for us ---- */

static int role_exit(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	(void)slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE);
	return 0;
}

static void reaped_elsewhere(void)
{
	slmpm_peer child = actor_spawn_ready("exit");
	int pid = pid_of(child), status;

	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	EXPECT(waitpid(pid, &status, 0), pid);
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), -SLMPM_EDEAD);
	OK(slmpm_kill(child, 0));
	REFUSED(slmpm_join(child, NULL, PATIENCE), SLMPM_ESTATE, "not known");
	EXPECT(slmpm_join(child, NULL, 0), -SLMPM_EHANDLE);
}

static const struct actor roles[] = {
	{"-late", role_late}, {"-left", role_left}, {"exit", role_exit}, {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	joined_at_once();
	closed_at_once();
	reaped_elsewhere();
	return 0;
}
