/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A process with peers forks. The child's handles are refused, it may begin again, and nothing that
 * it does or keeps hides the parent's end from its peers or breaks the parent's channels.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"

static char byte;

static int echo(slmpm_peer host, char **words)
{
	char text[64];
	int64_t n;

	(void)words;
	alarm(60);
	while ((n = slmpm_recv(host, 1, text, sizeof(text), NULL, PATIENCE)) >= 0)
		OK(slmpm_send(host, 2, text, (size_t)n, PATIENCE));
	return n == -SLMPM_ECLOSED ? 0 : 1;
}

/* The same, with memory of its own that the host reads. */
static int lend(slmpm_peer host, char **words)
{
	static uint64_t lent = 7;
	slmpm_mem mem;

	OK(slmpm_mem_register((slmpm_ctx){0}, &lent, sizeof(lent), SLMPM_READ, &mem));
	OK(slmpm_mem_share(mem, host, SLMPM_READ, PATIENCE));
	return echo(host, words);
}

static void borrow(slmpm_peer peer)
{
	uint64_t word = 0;
	slmpm_rmem there;

	OK(slmpm_mem_accept(peer, &there, PATIENCE));
	OK(slmpm_get(there, 0, &word, sizeof(word), NULL, NULL));
	CHECK(word == 7, "%llu", (unsigned long long)word);
}

static void still_works(slmpm_peer peer)
{
	static uint32_t turn;
	uint32_t back = 0;

	turn++;
	OK(slmpm_send(peer, 1, &turn, sizeof(turn), PATIENCE));
	EXPECT(slmpm_recv(peer, 2, &back, sizeof(back), NULL, PATIENCE), sizeof(back));
	CHECK(back == turn, "%u came back as %u", turn, back);
}

/* ---- the host forks ---- */

struct inherited {
	slmpm_ctx ctx;
	slmpm_peer peer;
	slmpm_listener listener;
	slmpm_req request;
	int descriptors; /* before any of these */
};

/* Those that actor_mappings leaves out. */
static bool has_totals(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	bool has = false;

	CHECK(f, "no /proc/self/maps");
	while (!has && fgets(line, sizeof(line), f))
		has = strstr(line, "memfd:slmpm-totals");
	fclose(f);
	return has;
}

static int be_refused(void *arg)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_event e = {.size = sizeof(e)};
	struct inherited *i = arg;
	slmpm_peer other;

	EXPECT(slmpm_send(i->peer, 1, "x", 1, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_recv(i->peer, 1, &byte, 1, NULL, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_recv(slmpm_any(i->ctx), 1, &byte, 1, NULL, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_probe(i->peer, 1, NULL, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_peer_query(i->peer, &info), -SLMPM_EFORKED);
	EXPECT(slmpm_test(&i->request, NULL), -SLMPM_EFORKED);
	EXPECT(slmpm_wait(&i->request, 1, NULL, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_cancel(i->request), -SLMPM_EFORKED);
	EXPECT(slmpm_accept(i->listener, &other, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_unlisten(i->listener), -SLMPM_EFORKED);
	EXPECT(slmpm_next_event(i->ctx, &e, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_progress(i->ctx), -SLMPM_EFORKED);
	EXPECT(slmpm_kill(i->peer, 0), -SLMPM_EFORKED);
	EXPECT(slmpm_join(i->peer, NULL, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_close(i->peer, PATIENCE), -SLMPM_EFORKED);
	EXPECT(slmpm_shut(i->ctx, PATIENCE), -SLMPM_EFORKED);
	CHECK(actor_mappings() == 0, "the child has %d of the parent's mappings", actor_mappings());
	return 0;
}

static int inherit_nothing(void *arg)
{
	const struct inherited *i = arg;

	CHECK(!has_totals(), "the child has the parent's totals mapped");
	CHECK(actor_descriptors() == i->descriptors, "the child has %d descriptors, not %d",
	      actor_descriptors(), i->descriptors);
	return be_refused(arg);
}

static int begin_anew(void *arg)
{
	struct holdings before = holdings_now();
	slmpm_ctx ctx;
	slmpm_peer peer;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	peer = actor_spawn_with(
		&(struct slmpm_spawn_options){.size = sizeof(struct slmpm_spawn_options),
					      .ctx = ctx},
		"echo", NULL, NULL);
	still_works(peer);
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
	OK(slmpm_shut(ctx, PATIENCE));
	holdings_expect(before, "the child's own");
	return be_refused(arg);
}

static int be_killed(void *arg)
{
	(void)arg;
	death_now();
}

static int leave_by_exit(void *arg)
{
	(void)arg;
	exit(7); /* exit handlers and all */
}

static void fork_host(void)
{
	static int (*const children[])(void *) = {inherit_nothing, begin_anew, be_killed,
						  leave_by_exit};
	struct slmpm_spawn_options options = {.size = sizeof(options)};
	struct slmpm_iov iov = {&byte, 1};
	struct inherited i;
	slmpm_peer guest;
	char url[64];

	i.descriptors = actor_descriptors();
	OK(slmpm_open(&i.ctx, NULL));
	snprintf(url, sizeof(url), "shm:forked-%d", (int)getpid());
	OK(slmpm_listen(&i.listener, i.ctx, url));
	options.ctx = i.ctx;
	i.peer = actor_spawn_with(&options, "lend", NULL, NULL);
	borrow(i.peer);
	OK(slmpm_recvv(i.peer, 9, &iov, 1, NULL, &i.request));
	for (int n = 0; n < 4; n++) {
		pid_t pid = child_start(children[n], &i, 60);
		int rc;

		for (int turn = 0; turn < 100; turn++) /* while the child does what it does */
			still_works(i.peer);
		rc = child_wait(pid);
		CHECK(rc == (n < 2 ? 0 : n == 2 ? -SIGKILL : 7), "child %d ended with %d", n, rc);
		still_works(i.peer);
	}
	/* Nobody took the listener along. */
	OK(slmpm_connect(&guest, i.ctx, url, PATIENCE));
	OK(slmpm_close(guest, PATIENCE));
	OK(slmpm_cancel(i.request));
	EXPECT(slmpm_join(i.peer, NULL, PATIENCE), 0);
	OK(slmpm_shut(i.ctx, PATIENCE));
}

/* ---- the host forks while another thread has a lock of the library's ---- */

enum { FREE, ASKED, AMIDST };

static _Atomic int probing;

/* In place of the C library's: a probe, with the lock of what is known of fabrics, takes long. */
int memfd_create(const char *name, unsigned flags)
{
	int asked = ASKED;

	if (!strcmp(name, "slmpm-probe") &&
	    atomic_compare_exchange_strong(&probing, &asked, AMIDST))
		while (atomic_load(&probing) == AMIDST)
			usleep(1000);
	return (int)syscall(SYS_memfd_create, name, flags);
}

static int connect_once(void *none)
{
	slmpm_peer peers[2];
	slmpm_ctx ctx;

	(void)none;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &peers[0], &peers[1]);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static void *connect_beside(void *none)
{
	(void)connect_once(none);
	return NULL;
}

static int fork_amidst(void *none)
{
	pthread_t other;
	slmpm_ctx ctx;
	int rc;

	OK(slmpm_open(&ctx, NULL));
	atomic_store(&probing, ASKED);
	CHECK(pthread_create(&other, NULL, connect_beside, none) == 0, "no thread");
	while (atomic_load(&probing) != AMIDST)
		usleep(1000);
	rc = child_run(connect_once, none, 10 * (unsigned)actor_slow());
	atomic_store(&probing, FREE);
	CHECK(rc == 0, "the child: %d", rc);
	CHECK(pthread_join(other, NULL) == 0, "the thread");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- the accelerator forks, and dies before its child ---- */

_Noreturn static void sleep_long(void)
{
	alarm(50);
	for (;;)
		(void)poll(NULL, 0, -1);
}

static int leave_child_behind(slmpm_peer host, char **words)
{
	pid_t pid;

	if (words[0]) /* past the C library: no handler runs, everything stays open */
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	else
		pid = fork();
	if (pid == 0)
		sleep_long();
	OK(slmpm_send(host, 1, &pid, sizeof(pid), PATIENCE));
	EXPECT(slmpm_recv(host, 2, &byte, 1, NULL, PATIENCE), 1);
	death_now();
}

static void outlive(const char *how)
{
	struct slmpm_spawn_options options = {.size = sizeof(options)};
	struct holdings before;
	slmpm_peer peer;
	int64_t begin;
	slmpm_ctx ctx;
	pid_t child;

	OK(slmpm_open(&ctx, NULL));
	before = holdings_now();
	options.ctx = ctx;
	peer = actor_spawn_with(&options, "leave", how, NULL);
	EXPECT(slmpm_recv(peer, 1, &child, sizeof(child), NULL, PATIENCE), sizeof(child));
	OK(slmpm_send(peer, 2, "x", 1, PATIENCE));
	begin = actor_now_ms();
	EXPECT(slmpm_recv(peer, 1, &byte, 1, NULL, PATIENCE), -SLMPM_EDEAD);
	CHECK(actor_now_ms() - begin < 1500 * actor_slow(), "the end was known after %lld ms",
	      (long long)(actor_now_ms() - begin));
	death_expect(ctx, peer, SLMPM_EVENT_DEAD, SLMPM_EDEAD, "signal 9");
	CHECK(kill(child, 0) == 0, "the child did not stay behind");
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	holdings_expect(before, "left behind");
	OK(kill(child, SIGKILL));
	CHECK(waitpid(child, NULL, 0) == child, "the orphan");
	OK(slmpm_shut(ctx, PATIENCE));
}

/* The accelerator starts programs, and one of them replaces nobody: its own life goes on. */
static int use_programs(slmpm_peer host, char **words)
{
	(void)words;
	for (int i = 0; i < 3; i++) {
		/* SLMPM_PARENT=descriptor:inode of the connection */
		CHECK(system("ls -l /proc/self/fd | grep -e slmpm "
			     "-e \"socket:.${SLMPM_PARENT#*:}\"") != 0,
		      "a program got our descriptors");
		EXPECT(slmpm_recv(host, 1, &byte, 1, NULL, PATIENCE), 1);
		OK(slmpm_send(host, 2, &byte, 1, PATIENCE));
	}
	return 0;
}

static void feed(void)
{
	slmpm_peer peer = actor_spawn("programs", NULL, NULL);

	for (int i = 0; i < 3; i++) {
		OK(slmpm_send(peer, 1, "x", 1, PATIENCE));
		EXPECT(slmpm_recv(peer, 2, &byte, 1, NULL, PATIENCE), 1);
	}
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"echo", echo},
					     {"lend", lend},
					     {"leave", leave_child_behind},
					     {"programs", use_programs},
					     {NULL, NULL}};

	actor_begin(argc, argv, roles);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "orphans cannot be adopted");
	EXPECT(child_run(fork_amidst, NULL, 30 * (unsigned)actor_slow()), 0);
	fork_host();
	outlive(NULL);
	outlive("raw");
	feed();
	return 0;
}
