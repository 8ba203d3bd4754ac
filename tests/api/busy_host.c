/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/*
 * A host computes right after it has started an accelerator, or in the middle of the handshake, for
 * longer than that may take: the accelerator waits, asleep, as long as its host lives; strangers
 * are given no more time than before.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SOON    "200" /* ms: SLMPM_HANDSHAKE_MS */
#define COMPUTE 700   /* ms */
#define CASES   4     /* at once, at most */

static const slmpm_ctx none;

/* Processor time of this process so far. */
static int spent_ms(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
	return (int)((u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
		     (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000);
}

/* In no call: for the accelerator this is all that computing is, and it leaves the processors to
 * other tests. */
static void compute(void)
{
	usleep(COMPUTE * 1000);
}

/* It has slept while it waited for the host, which is busy until then; then it answers what it is
 * asked. */
static int role_waits(slmpm_peer unused, char **words)
{
	int before = spent_ms(), word;
	int64_t began = actor_now_ms(), until = atoll(words[1]);
	slmpm_peer host;

	(void)unused;
	OK(slmpm_parent(&host));
	CHECK(actor_now_ms() >= (until + began) / 2, "the host has not been busy");
	CHECK(spent_ms() - before < COMPUTE / 2 * actor_slow(), "%d ms of processor time",
	      spent_ms() - before);
	EXPECT(slmpm_recv(host, 1, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	EXPECT(word, atoi(words[0]));
	OK(slmpm_send(host, 1, &word, sizeof(word), PATIENCE));
	return 0;
}

static void talk(slmpm_peer child, int number)
{
	int word = 0;

	OK(slmpm_send(child, 1, &number, sizeof(number), PATIENCE));
	EXPECT(slmpm_recv(child, 1, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	EXPECT(word, number);
	actor_join(child, 0);
}

static uint32_t state(slmpm_peer child)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(child, &info));
	return info.state;
}

/* STEPS looks at the descriptors, each behind so much computing; then whatever a call does. */
static int busy(void *arg)
{
	const struct slmpm_spawn_options options = {.size = sizeof(options),
						    .element = getenv("SLMPM_TOPOLOGY") ? 1 : 0};
	int steps = *(const int *)arg;
	char text[8], until[24];
	slmpm_peer child;

	snprintf(text, sizeof(text), "%d", steps);
	snprintf(until, sizeof(until), "%lld", (long long)actor_now_ms() + COMPUTE);
	child = actor_spawn_with(&options, "-waits", text, until);
	compute();
	for (int i = 0; i < steps && state(child) == SLMPM_PEER_CONNECTING; i++) {
		(void)slmpm_arm(none);
		compute();
	}
	talk(child, steps);
	return 0;
}

/* As if it ran on another machine: started by way of an agent, which stays here. */
static int busy_far(void *arg)
{
	char path[] = "/tmp/slmpm-busy-XXXXXX";
	const char *build = getenv("SLMPM_BUILD");
	int fd = mkstemp(path);

	CHECK(fd >= 0 && build, "no file, or no SLMPM_BUILD");
	CHECK(dprintf(fd,
		      "remote env\nlisten 127.0.0.1\nagent %s/bin/slmpm_run\nhost beta\nship never\n",
		      build) > 0,
	      "%s", path);
	close(fd);
	OK(setenv("SLMPM_TOPOLOGY", path, 1));
	(void)busy(arg);
	OK(unlink(path));
	return 0;
}

/* ---- the host dies meanwhile ---- */

static int role_orphan(slmpm_peer unused, char **words)
{
	int64_t began = actor_now_ms(), until = atoll(words[1]);
	slmpm_peer host;
	int rc = slmpm_parent(&host);
	char end = rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED ? 'g' : 'b';

	(void)unused;
	if (actor_now_ms() < (until + began) / 2)
		end = 'e';
	return write(atoi(words[0]), &end, 1) == 1 ? 0 : 1;
}

static int start_and_die(void *arg)
{
	char text[16], until[24];

	snprintf(text, sizeof(text), "%d", *(const int *)arg);
	snprintf(until, sizeof(until), "%lld", (long long)actor_now_ms() + COMPUTE);
	(void)actor_spawn("-orphan", text, until);
	compute();
	_exit(0);
}

static int orphaned(void *unused)
{
	char end = 0;
	int fds[2];

	(void)unused;
	CHECK(pipe(fds) == 0, "no pipe");
	EXPECT(child_run(start_and_die, &fds[1], 20), 0);
	CHECK(read(fds[0], &end, 1) == 1 && end == 'g', "an orphan's end: %c", end);
	return 0;
}

/* ---- strangers ---- */

static int caller(void *url)
{
	slmpm_peer host;
	slmpm_ctx own;

	OK(slmpm_open(&own, NULL));
	REFUSED(slmpm_connect(&host, own, url, PATIENCE), SLMPM_ETIMEOUT, "handshake");
	return 0;
}

static int refuses(void *unused)
{
	slmpm_listener listener;
	char url[64];
	int64_t began;
	pid_t pid;

	(void)unused;
	snprintf(url, sizeof(url), "shm:busy-%d", (int)getpid());
	OK(slmpm_listen(&listener, none, url));
	pid = child_start(caller, url, 20);
	began = actor_now_ms();
	CHECK(child_wait(pid) == 0, "see above");
	CHECK(actor_now_ms() - began < COMPUTE + PATIENCE / 4, "it waited as for a parent");
	return 0;
}

/* BODY with 0 to COUNT - 1 steps, all at the same time: they sleep. */
static void run_at_once(const char *what, int (*body)(void *), int count)
{
	static const int steps[CASES] = {0, 1, 2, 3};
	pid_t pids[CASES];

	printf("%s\n", what);
	fflush(stdout);
	for (int i = 0; i < count; i++)
		pids[i] = child_start(body, (void *)(uintptr_t)&steps[i],
				      30 * (unsigned)actor_slow());
	for (int i = 0; i < count; i++)
		CHECK(child_wait(pids[i]) == 0, "%s, %d steps: see above", what, i);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"-waits", role_waits}, {"-orphan", role_orphan}, {NULL, NULL}};

	OK(setenv("SLMPM_HANDSHAKE_MS", SOON, 1));
	actor_begin(argc, argv, roles);
	run_at_once("busy", busy, CASES);
	run_at_once("busy, and far away", busy_far, 3);
	settings_run("orphaned", orphaned, NULL);
	settings_run("strangers", refuses, NULL);
	OK(setenv("SLMPM_WAIT", "block", 1));
	run_at_once("busy, sleeps at once", busy, CASES);
	return 0;
}
