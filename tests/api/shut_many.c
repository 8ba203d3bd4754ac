/* SPDX-License-Identifier: BSD-3-Clause */
/* A context with many peers is shut: each gets all that was sent to it, however early another has
 * ended. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define PEERS    5
#define MESSAGES 40
#define SIZE     ((size_t)100000) /* more than any ring takes, all together */

static char url[400];

static int read_all(void *arg)
{
	static unsigned char got[SIZE];
	slmpm_ctx ctx;
	slmpm_peer peer;
	int id = *(const int *)arg;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&peer, ctx, url, PATIENCE));
	OK(slmpm_send(peer, 0, &id, sizeof(id), PATIENCE));
	for (uint64_t i = 0; i < MESSAGES; i++) {
		usleep(200 * (unsigned)id);
		EXPECT(slmpm_recv(peer, 1, got, SIZE, NULL, PATIENCE), SIZE);
		CHECK(actor_filled(got, i, SIZE), "%d: message %llu is damaged", id,
		      (unsigned long long)i);
	}
	EXPECT(slmpm_recv(peer, 1, got, SIZE, NULL, PATIENCE), -SLMPM_ECLOSED);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int shut_many(void *arg)
{
	static unsigned char bytes[MESSAGES][SIZE];
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_peer peers[PEERS];
	pid_t pids[PEERS];
	slmpm_ctx ctx;
	bool tcp = !strcmp(arg, "tcp");

	settings_one_link(arg);
	for (uint64_t i = 0; i < MESSAGES; i++)
		actor_fill(bytes[i], i, SIZE);
	snprintf(url, sizeof(url), "shm:shut-many-%d", (int)getpid());
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, tcp ? "tcp://127.0.0.1:0" : url));
	OK(slmpm_listener_query(listener, &info));
	if (tcp)
		snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	for (int i = 0; i < PEERS; i++) {
		int id = -1;

		pids[i] = child_start(read_all, &i, 60);
		OK(slmpm_accept(listener, &peers[i], PATIENCE));
		EXPECT(slmpm_recv(peers[i], 0, &id, sizeof(id), NULL, PATIENCE), sizeof(id));
	}
	for (int i = 0; i < PEERS; i++)
		for (int k = 0; k < MESSAGES; k++) {
			const struct slmpm_iov iov = {bytes[k], SIZE};
			slmpm_req req;

			OK(slmpm_sendv(peers[i], 1, &iov, 1, NULL, &req));
		}
	OK(slmpm_shut(ctx, PATIENCE));
	for (int i = 0; i < PEERS; i++)
		CHECK(child_wait(pids[i]) == 0, "peer %d: see above", i);
	return 0;
}

int main(void)
{
	settings_run("shared memory", shut_many, "shm");
	settings_run("TCP", shut_many, "tcp");
	return 0;
}
