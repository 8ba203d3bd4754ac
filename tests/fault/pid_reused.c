/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process whose memory is reached by its number (cross-memory attach) dies, and another process
 * has that number at once, with memory of its own at the same address: it is neither read nor
 * written in the dead one's stead, and the end is told as that of the one that died.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define ROUNDS 40
#define OWNED  UINT64_C(0x1111)
#define DECOY  UINT64_C(0x2222)
#define PUT    UINT64_C(0x3333)

static _Alignas(4096) uint64_t words[512]; /* at one address in all processes here */
static int notified[2], go[2], over[2]; /* pipes: the host has read; it may go on; it has ended */
static char url[64];

static void pass(const int *pipe_ends, char what)
{
	CHECK(write(pipe_ends[1], &what, 1) == 1, "the pipe");
}

static void await(const int *pipe_ends)
{
	char what;

	CHECK(read(pipe_ends[0], &what, 1) == 1, "nobody is left");
}

/* Owns the words, lends them, and waits to be killed. */
static int owner(void *arg)
{
	slmpm_peer host;
	slmpm_mem mem;

	(void)arg;
	words[0] = OWNED;
	OK(slmpm_connect(&host, (slmpm_ctx){0}, url, PATIENCE));
	OK(slmpm_mem_register((slmpm_ctx){0}, words, sizeof(words), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_share(mem, host, SLMPM_READ_WRITE, PATIENCE));
	(void)slmpm_recv(host, 1, words + 8, 8, NULL, -1);
	return 1;
}

/* Has the number that the owner had; who reads or writes its words takes it for that one. */
static int decoy(void *arg)
{
	(void)arg;
	words[0] = DECOY;
	pass(notified, 'd');
	await(over);
	return words[0] == DECOY ? 0 : 2;
}

static int host(void *arg)
{
	const char *by = arg;
	struct slmpm_mem_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_rmem there;
	slmpm_peer peer;
	uint64_t word = 0, put = PUT;
	int rc;

	OK(slmpm_listen(&listener, (slmpm_ctx){0}, url));
	pass(notified, 'l');
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_mem_accept(peer, &there, PATIENCE));
	OK(slmpm_get(there, 0, &word, sizeof(word), NULL, NULL));
	CHECK(word == OWNED, "%llx", (unsigned long long)word);
	OK(slmpm_rmem_query(there, &info));
	if (strcmp(info.path, "attach"))
		_exit(TEST_SKIPPED); /* refused by the machine */
	pass(notified, 'r');
	await(go);
	rc = *by == 'g' ? slmpm_get(there, 0, &word, sizeof(word), NULL, NULL) :
			  slmpm_put(there, 0, &put, sizeof(put), NULL, NULL);
	CHECK(rc == -SLMPM_EDEAD && word == OWNED, "%s: %d, %llx (%s)", by, rc,
	      (unsigned long long)word, slmpm_error_detail());
	return 0;
}

/* The next process gets the number PID. */
static void choose_number(pid_t pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");

	if (!f || fprintf(f, "%d", (int)pid - 1) < 0 || fclose(f))
		test_skip("numbers of processes cannot be chosen here");
}

static int round_of(const char *by)
{
	pid_t first, second, listens;
	int rc, status;

	listens = child_start(host, (void *)(uintptr_t)by, 30);
	await(notified);
	first = child_start(owner, NULL, 30);
	if (read(notified[0], &(char){0}, 1) != 1)
		return 1;
	(void)kill(first, SIGKILL);
	CHECK(waitpid(first, &status, 0) == first, "waitpid");
	choose_number(first);
	second = child_start(decoy, NULL, 30);
	CHECK(second == first, "%d in place of %d", second, first);
	await(notified);
	pass(go, 'g');
	rc = child_wait(listens);
	pass(over, 'o');
	CHECK(child_wait(second) == 0, "%s: another process was written to", by);
	return rc;
}

/* The first process of a namespace of its own: numbers are chosen there alone. */
static int try_all(void)
{
	alarm(50);
	CHECK(mount("proc", "/proc", "proc", 0, NULL) == 0, "no /proc");
	for (int i = 0; i < ROUNDS; i++) {
		int rc = round_of(i % 2 ? "get" : "put");

		if (rc == TEST_SKIPPED)
			test_skip("cross-memory attach is refused here");
		CHECK(rc == 0, "round %d ended with %d", i, rc);
	}
	return 0;
}

int main(void)
{
	pid_t first;
	int rc;

	settings_one_link("shm");
	settings_set("SLMPM_ATTACH", "y");
	snprintf(url, sizeof(url), "shm:pid-reused-%d", (int)getpid());
	CHECK(pipe(notified) == 0 && pipe(go) == 0 && pipe(over) == 0, "no pipe");
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		test_skip("no namespace of processes can be had here");
	first = fork(); /* not child_start: its parent has no number there */
	if (!first)
		_exit(try_all());
	rc = child_wait(first);
	CHECK(rc == 0 || rc == TEST_SKIPPED, "ended with %d", rc);
	return rc;
}
