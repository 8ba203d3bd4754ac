/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 150 */
/*
 * Events that nobody asks for: peers that come and go leave none, nor do strangers who are refused;
 * of a peer that is held the last state is told, however late.
 */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define CYCLES          4000
#define GROWTH          (1 << 20)
#define PER_CYCLE       (GROWTH / 10000) /* bytes of the heap */
#define WARM            64
#define UNAUTHENTICATED 2000

static char url[360];
static slmpm_listener listener;
static slmpm_ctx ctx;

static void open_at(bool tcp)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_open(&ctx, NULL));
	snprintf(url, sizeof(url), "shm:events-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, tcp ? "tcp://127.0.0.1:0" : url));
	OK(slmpm_listener_query(listener, &info));
	if (tcp)
		snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
}

/* Of this process: bytes that no cycle gives back. */
static int64_t held_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (int64_t)(m.uordblks + m.hblkhd);
}

/* Without the program's own pages, which come in as they are run. */
static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0, shared = 0;

	CHECK(f && fscanf(f, "%*d %ld %ld", &pages, &shared) == 2, "statm");
	fclose(f);
	return (pages - shared) * sysconf(_SC_PAGESIZE);
}

static int cycles(void)
{
	return CYCLES / actor_slow();
}

/* Grown since they were taken. */
struct size {
	int64_t heap;
	long resident;
};

static void measure(struct size *s)
{
	(void)malloc_trim(0);
	*s = (struct size){held_bytes(), resident()};
}

static void check(const struct size *before, const char *who, int64_t most)
{
	struct size now;

	measure(&now);
	printf("%s: heap %+lld, resident %+ld bytes\n", who, (long long)(now.heap - before->heap),
	       now.resident - before->resident);
	CHECK(now.heap - before->heap < most, "%s keeps %lld bytes", who,
	      (long long)(now.heap - before->heap));
	if (actor_slow() == 1)
		CHECK(now.resident - before->resident < GROWTH, "%s has grown by %ld bytes", who,
		      now.resident - before->resident);
}

static int come_and_go(void *unused)
{
	struct size before = {0, 0};
	slmpm_ctx own;

	(void)unused;
	OK(slmpm_open(&own, NULL));
	for (int i = 0; i < cycles(); i++) {
		slmpm_peer host;
		int word = 0;

		if (i == WARM)
			measure(&before);
		OK(slmpm_connect(&host, own, url, PATIENCE));
		OK(slmpm_send(host, 0, &i, sizeof(i), PATIENCE));
		EXPECT(slmpm_recv(host, 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		EXPECT(word, i);
		OK(slmpm_close(host, PATIENCE));
	}
	check(&before, "who connects", PER_CYCLE * cycles());
	OK(slmpm_shut(own, PATIENCE));
	return 0;
}

static int many(void *tcp)
{
	struct size before = {0, 0};
	pid_t caller;

	settings_one_link(tcp ? "tcp" : "shm");
	open_at(tcp);
	caller = child_start(come_and_go, NULL, 100);
	for (int i = 0; i < cycles(); i++) {
		slmpm_peer peer;
		int word;

		if (i == WARM)
			measure(&before);
		OK(slmpm_accept(listener, &peer, PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		OK(slmpm_send(peer, 0, &word, sizeof(word), PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &word, sizeof(word), NULL, PATIENCE), -SLMPM_ECLOSED);
		OK(slmpm_close(peer, PATIENCE));
	}
	check(&before, "who accepts", PER_CYCLE * cycles());
	EXPECT(child_wait(caller), 0);
	EXPECT(slmpm_next_event(ctx, &(struct slmpm_event){.size = sizeof(struct slmpm_event)}, 0),
	       0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- strangers ---- */

static int caller(void *unused)
{
	slmpm_peer peer;
	slmpm_ctx own;
	char *secret = strchr(url, '#');

	(void)unused;
	OK(slmpm_open(&own, NULL));
	CHECK(secret, "no secret");
	secret[1] = secret[1] == '0' ? '1' : '0';
	for (int i = 0; i < UNAUTHENTICATED / actor_slow(); i++) {
		REFUSED(slmpm_connect(&peer, own, url, PATIENCE), SLMPM_EACCES, "secret");
		EXPECT(slmpm_next_event(
			       own, &(struct slmpm_event){.size = sizeof(struct slmpm_event)}, 0),
		       0);
	}
	OK(slmpm_shut(own, PATIENCE));
	return 0;
}

static int refused(void *unused)
{
	struct slmpm_event event = {.size = sizeof(event)};
	slmpm_peer peer;
	struct size before;
	pid_t other;

	(void)unused;
	settings_one_link("tcp");
	open_at(true);
	measure(&before);
	other = child_start(caller, NULL, 60);
	REFUSED(slmpm_accept(listener, &peer, 200), SLMPM_ETIMEOUT, "");
	while (kill(other, 0) == 0 && slmpm_next_event(ctx, &event, 10) == 0) {
		siginfo_t ended = {.si_pid = 0};

		if (waitid(P_PID, (id_t)other, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    ended.si_pid)
			break;
	}
	EXPECT(child_wait(other), 0);
	EXPECT(slmpm_next_event(ctx, &event, 0), 0);
	check(&before, "who refuses", GROWTH);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- of one that is held ---- */

static int role_idle(slmpm_peer host, char **words)
{
	(void)words;
	(void)slmpm_recv(host, 0, NULL, 0, NULL, -1);
	return 0;
}

static void stop_and_go(slmpm_peer child, pid_t pid)
{
	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, 1), -SLMPM_ETIMEOUT);
	OK(kill(pid, SIGCONT));
	actor_await_state(pid, "SR");
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, 1), -SLMPM_ETIMEOUT);
}

/* Each type once, in the order of the last of each. */
static void last_state(void)
{
	static const uint32_t want[] = {SLMPM_EVENT_UP, SLMPM_EVENT_SUSPECT, SLMPM_EVENT_DEAD};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_event event = {.size = sizeof(event)};
	slmpm_ctx none = {0};
	slmpm_peer child = actor_spawn("idle", NULL, NULL);

	OK(slmpm_peer_query(child, &info));
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, 500), -SLMPM_ETIMEOUT);
	for (int i = 0; i < 20; i++)
		stop_and_go(child, info.pid);
	OK(slmpm_kill(child, 0));
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), -SLMPM_EDEAD);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		EXPECT(slmpm_next_event(none, &event, 0), 1);
		EXPECT(event.type, want[i]);
		CHECK(event.peer.id == child.id, "of another peer");
	}
	EXPECT(slmpm_next_event(none, &event, 0), 0);
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

/* One that was started is held before it is up. */
static void never_up(void)
{
	struct slmpm_event event = {.size = sizeof(event)};
	slmpm_ctx none = {0};
	slmpm_peer child;

	OK(slmpm_spawn(&child, "/bin/false", NULL, NULL));
	EXPECT(slmpm_next_event(none, &event, PATIENCE), 1);
	EXPECT(event.type, SLMPM_EVENT_DEAD);
	CHECK(strstr(event.detail, "status 1"), "%s", event.detail);
	EXPECT(slmpm_join(child, NULL, PATIENCE), 1);
}

static int held(void *unused)
{
	(void)unused;
	settings_one_link("shm");
	last_state();
	never_up();
	return 0;
}

static void run(const char *what, int (*body)(void *), void *arg)
{
	printf("%s\n", what);
	CHECK(child_run(body, arg, 100) == 0, "%s: see above", what);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"idle", role_idle}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_RING_SEGMENTS", "128"); /* each cycle makes two */
	run("held", held, NULL);
	run("refused", refused, NULL);
	run("over shared memory", many, NULL);
	run("over TCP", many, url);
	return 0;
}
