/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The monitor read from outside: another process that sleeps or dies, links that have ended, a
 * child; and beside the thread that writes it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"

/* The link of PID whose peer is PEER_PID: 1, or 0. */
static int find(int pid, struct slmpm_monitor *m, uint64_t sent)
{
	struct slmpm_monitors *monitors;
	int found = 0, rc;

	if (slmpm_monitors_open(pid, &monitors) < 0)
		return 0;
	for (int i = 0; !found; i++) {
		rc = slmpm_monitors_read(monitors, i, m, sizeof(*m));
		if (rc == -SLMPM_ENOENT)
			break;
		found = rc == 1 && m->sent_messages == sent;
	}
	slmpm_monitors_close(monitors);
	return found;
}

static int chatter(slmpm_peer host, char **words)
{
	char word[8] = {0};

	(void)words;
	for (int i = 0; i < 7; i++)
		OK(slmpm_send(host, 1, word, sizeof(word), PATIENCE));
	(void)slmpm_recv(host, 1, word, sizeof(word), NULL, -1); /* asleep, until the end */
	return 0;
}

/* One that has sent and sleeps shows all of it; and what was read before it died can still be. */
static void shows_a_sleeper(void)
{
	slmpm_peer peer = actor_spawn("chatter", NULL, NULL);
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_monitors *monitors;
	struct slmpm_monitor m;
	char word[8];

	for (int i = 0; i < 7; i++)
		EXPECT(slmpm_recv(peer, 1, word, sizeof(word), NULL, PATIENCE), sizeof(word));
	OK(slmpm_peer_query(peer, &info));
	while (!find(info.pid, &m, 7) && actor_now_ms() < until)
		(void)slmpm_recv(peer, 1, word, sizeof(word), NULL, 1);
	CHECK(find(info.pid, &m, 7), "seven messages are not shown");
	EXPECT(m.pid, getpid());
	OK(slmpm_monitors_open(info.pid, &monitors));
	OK(slmpm_kill(peer, 0));
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	EXPECT(slmpm_monitors_read(monitors, 0, &m, sizeof(m)), 1);
	EXPECT(m.sent_messages, 7);
	slmpm_monitors_close(monitors);
	REFUSED(slmpm_monitors_open(info.pid, &monitors), SLMPM_ENOENT, "no process");
}

static void shows_ended_ones(slmpm_ctx ctx)
{
	struct slmpm_monitor m;
	slmpm_peer a, b;

	actor_pair(ctx, &a, &b);
	for (int i = 0; i < 77; i++)
		OK(slmpm_send(a, 1, NULL, 0, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	CHECK(find(getpid(), &m, 77), "an ended link is not shown");
	CHECK(m.state == SLMPM_PEER_CLOSED, "state %u", m.state);
	for (int i = 0; i < 100; i++) { /* places are used again */
		OK(slmpm_close(b, PATIENCE));
		actor_pair(ctx, &a, &b);
		OK(slmpm_close(a, PATIENCE));
	}
	CHECK(!find(getpid(), &m, 77), "it is still shown");
	OK(slmpm_close(b, PATIENCE));
}

static void child_shows_nothing(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct slmpm_monitors *monitors;

		_exit(slmpm_monitors_open(getpid(), &monitors) == -SLMPM_ENOENT ? 0 : 1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "a child shows its parent's links");
}

static int count_places(void)
{
	struct slmpm_monitors *monitors;
	struct slmpm_monitor m;
	int n = 0;

	OK(slmpm_monitors_open(getpid(), &monitors));
	while (slmpm_monitors_read(monitors, n, &m, sizeof(m)) >= 0)
		n++;
	slmpm_monitors_close(monitors);
	return n;
}

/* Its own pages, which it opens to read them, are not found twice: however many descriptors it has,
 * also where the kernel's table of them grows meanwhile. */
static void finds_its_own_pages_once(void)
{
	int places = count_places(), used[300];

	for (int i = 0; i < 300; i++) {
		used[i] = dup(STDIN_FILENO);
		CHECK(used[i] >= 0, "no descriptor");
		EXPECT(count_places(), places);
	}
	for (int i = 0; i < 300; i++)
		close(used[i]);
}

static _Atomic bool over;

/* What is read is always of one moment. */
static void *read_all_the_time(void *count)
{
	struct slmpm_monitors *monitors;
	uint64_t *reads = count, last = 0;

	OK(slmpm_monitors_open(getpid(), &monitors));
	while (!over) {
		for (int i = 0, rc; i < 64; i++) {
			struct slmpm_monitor m;

			rc = slmpm_monitors_read(monitors, i, &m, sizeof(m));
			if (rc == -SLMPM_ENOENT)
				break;
			if (rc != 1)
				continue;
			CHECK(m.size == sizeof(m), "size %u", m.size);
			CHECK(m.sent_bytes == 8 * m.sent_messages, "torn");
			*reads += m.taken_ns != last;
			last = m.taken_ns;
		}
	}
	slmpm_monitors_close(monitors);
	return NULL;
}

static void readers_beside_the_writer(void)
{
	int64_t until;
	pthread_t reader;
	slmpm_ctx ctx;
	slmpm_peer a, b;
	uint64_t reads = 0;
	char word[8] = {0};

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	CHECK(!pthread_create(&reader, NULL, read_all_the_time, &reads), "no thread");
	for (until = actor_now_ms() + 300; actor_now_ms() < until;) {
		OK(slmpm_send(a, 3, word, sizeof(word), PATIENCE));
		EXPECT(slmpm_recv(b, 3, word, sizeof(word), NULL, PATIENCE), sizeof(word));
		EXPECT(slmpm_progress(ctx) >= 0, 1);
		(void)slmpm_arm(ctx);
	}
	over = true;
	pthread_join(reader, NULL);
	CHECK(reads > 10, "%llu different ones", (unsigned long long)reads);
	OK(slmpm_shut(ctx, PATIENCE));
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"chatter", chatter}, {NULL, NULL}};
	slmpm_ctx ctx;

	CHECK(!setenv("SLMPM_MONITOR_MS", "5", 1), "environment");
	actor_begin(argc, argv, roles);
	OK(slmpm_open(&ctx, NULL));
	shows_ended_ones(ctx);
	child_shows_nothing();
	finds_its_own_pages_once();
	OK(slmpm_shut(ctx, PATIENCE));
	readers_beside_the_writer();
	shows_a_sleeper();
	return 0;
}
