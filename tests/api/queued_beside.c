/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* native-only */
/*
 * Requests wait for a peer that has stopped, 1,100 of them, whatever their kind: messages with another peer cost what
 * they did, at most 5 % more. Times are the shortest of many, before and after, until they agree.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define REQUESTS 1100
#define TRIPS    1000
#define TRIES    200
#define LONG     200000

static const slmpm_ctx none;
static unsigned char memory[LONG];

static int role_echo(slmpm_peer host, char **words)
{
	uint64_t word;

	(void)words;
	while (slmpm_recv(host, 0, &word, sizeof(word), NULL, -1) >= 0)
		OK(slmpm_send(host, 0, &word, sizeof(word), PATIENCE));
	return 0;
}

/* Its memory is reached by request. */
static int role_idle(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_mem mem;

	(void)words;
	OK(slmpm_mem_register(none, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 5, &key, sizeof(key), PATIENCE));
	(void)slmpm_recv(host, 0, NULL, 0, NULL, -1);
	return 0;
}

/* ---- requests ---- */

static int queue_send(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_iov iov = {memory, 4000};

	(void)rmem;
	return slmpm_sendv(to, 0, &iov, 1, NULL, req);
}

static int queue_long(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_iov iov = {memory, LONG};

	(void)rmem;
	return slmpm_sendv(to, 0, &iov, 1, NULL, req);
}

static int queue_put(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};

	(void)to;
	return slmpm_put(rmem, 0, memory, 100, &how, req);
}

static int queue_get(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	(void)to;
	return slmpm_get(rmem, 0, memory, 100, NULL, req);
}

static int queue_recv(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_iov iov = {memory, 8};

	(void)rmem;
	return (int)slmpm_recvv(to, 3, &iov, 1, NULL, req);
}

static const struct kind {
	const char *name;
	int (*queue)(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req);
} kinds[] = {{"sends", queue_send},
	     {"long sends", queue_long},
	     {"puts", queue_put},
	     {"gets", queue_get},
	     {"receives", queue_recv}};

/* ---- what they cost others ---- */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void look(slmpm_peer peer, bool any, int64_t *best)
{
	slmpm_peer from = any ? slmpm_any(none) : peer;
	int64_t began = now_ns(), took;
	uint64_t word = 1;

	for (int i = 0; i < TRIPS; i++) {
		OK(slmpm_send(peer, 0, &word, sizeof(word), PATIENCE));
		EXPECT(slmpm_recv(from, 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	}
	took = now_ns() - began;
	*best = took < *best ? took : *best;
}

static int beside(void *arg)
{
	const struct kind *k = arg;
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int64_t before[2] = {INT64_MAX, INT64_MAX}, after[2] = {INT64_MAX, INT64_MAX};
	slmpm_peer echo = actor_spawn("echo", NULL, NULL), idle = actor_spawn("idle", NULL, NULL);
	static slmpm_req reqs[REQUESTS];
	struct slmpm_key key;
	slmpm_rmem rmem;
	bool good = false;

	EXPECT(slmpm_recv(idle, 5, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(idle, &key, &rmem));
	OK(slmpm_peer_query(idle, &info));
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
	for (int i = 0; i < 40; i++) {
		look(echo, false, &before[0]);
		look(echo, true, &before[1]);
	}
	for (int i = 0; i < REQUESTS; i++)
		OK(k->queue(idle, rmem, &reqs[i]));
	for (int i = 0; i < TRIES && !good; i++) {
		look(echo, false, &after[0]);
		look(echo, true, &after[1]);
		good = after[0] * 100 <= before[0] * 105 && after[1] * 100 <= before[1] * 105;
	}
	printf("%s: %+.1f %%, from any %+.1f %%\n", k->name,
	       100. * (double)(after[0] - before[0]) / (double)before[0],
	       100. * (double)(after[1] - before[1]) / (double)before[1]);
	CHECK(good, "%s for a stopped peer slow another", k->name);
	OK(slmpm_kill(idle, 0));
	EXPECT(slmpm_join(idle, NULL, PATIENCE), 128 + SIGKILL);
	OK(slmpm_close(echo, PATIENCE));
	actor_join(echo, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"echo", role_echo}, {"idle", role_idle}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_one_link("shm");
	OK(setenv("SLMPM_ATTACH", "n", 1));
	OK(setenv("SLMPM_WAIT", "spin", 1));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		settings_run(kinds[i].name, beside, &kinds[i]);
	return 0;
}
