/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers with a region that take what comes, for chains of work queues. PEERS: how many. */
#ifndef TESTS_FAULT_CHAIN_H
#define TESTS_FAULT_CHAIN_H

#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE    4096 /* of each region */
#define LONGEST (1 << 20)

static slmpm_peer peers[PEERS];
static slmpm_rmem far[PEERS];
static int pids[PEERS];

/* Takes what comes on stream 1 until the host closes. */
static int role_target(slmpm_peer host, char **words)
{
	static unsigned char data[LONGEST];
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	int64_t n;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 0, &key, sizeof(key), PATIENCE));
	do
		n = slmpm_recv(host, 1, data, sizeof(data), NULL, -1);
	while (n >= 0);
	EXPECT(n, -SLMPM_ECLOSED);
	return 0;
}

static inline void start(uint32_t p)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;

	peers[p] = actor_spawn("target", NULL, NULL);
	EXPECT(slmpm_recv(peers[p], 0, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peers[p], &key, &far[p]));
	OK(slmpm_peer_query(peers[p], &info));
	pids[p] = info.pid;
}

static inline void join(uint32_t p, int code)
{
	EXPECT(slmpm_join(peers[p], NULL, PATIENCE), code);
	pids[p] = 0;
}

/* BODY in a child of its own over each fabric, whose name it is given. */
static inline int over_both(int argc, char **argv, int (*body)(void *fabric))
{
	static const struct actor roles[] = {{"target", role_target}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++)
		settings_run(fabrics[i], body, fabrics[i]);
	return 0;
}

#endif
