/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer is killed, and its owner does nothing but give it keys: it hears of the end within some
 * calls, also where keys were refused before, or each is taken back at once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE   4096
#define CALLS  100  /* until the end is known; between two looks there are fewer */
#define KEYS   1100 /* more than a peer may hold */
#define END_MS 2000 /* an end that is only coming */

struct variant {
	const char *fabric;
	bool oversubscribed; /* the peer has been stopped until it was given no more keys */
	bool revokes;
};

static char url[400];

static int stay(void *arg)
{
	slmpm_ctx ctx;
	slmpm_peer peer;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&peer, ctx, url, PATIENCE));
	OK(slmpm_send(peer, 1, "up", 2, PATIENCE));
	(void)slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE);
	return 0;
}

static slmpm_peer meet(slmpm_ctx ctx, const char *fabric, pid_t *pid)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	bool tcp = !strcmp(fabric, "tcp");
	slmpm_listener listener;
	slmpm_peer peer;
	char up[2];

	snprintf(url, sizeof(url), "shm:kill-key-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, tcp ? "tcp://127.0.0.1:0" : url));
	OK(slmpm_listener_query(listener, &info));
	if (tcp)
		snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	*pid = child_start(stay, NULL, 30);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, up, sizeof(up), NULL, PATIENCE), 2);
	return peer;
}

static bool is_refusal(int rc)
{
	return rc == -SLMPM_EAGAIN || rc == -SLMPM_ELIMIT;
}

static void crowd(slmpm_mem mem, slmpm_peer peer, pid_t pid, int refusal)
{
	struct slmpm_key key;
	int rc = 0;

	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	for (int i = 0; i < KEYS && rc == 0; i++)
		rc = slmpm_mem_key(mem, peer, SLMPM_READ, &key);
	EXPECT(rc, refusal);
}

static int give_keys(const struct variant *v, slmpm_mem mem, slmpm_peer peer)
{
	int64_t until = actor_now_ms() + (int64_t)END_MS * actor_slow();
	struct slmpm_key key;
	int rc, calls = 0;

	do {
		rc = slmpm_mem_key(mem, peer, SLMPM_READ, &key);
		if (rc == 0 && v->revokes)
			OK(slmpm_mem_revoke(mem, peer, PATIENCE));
		CHECK(rc == 0 || is_refusal(rc) || rc == -SLMPM_EDEAD, "%d: %s", rc,
		      slmpm_error_detail());
	} while (rc != -SLMPM_EDEAD && (++calls < CALLS || actor_now_ms() < until));
	printf("%d calls before %d\n", calls, rc);
	return calls;
}

static int one(void *arg)
{
	const struct variant *v = arg;
	bool tcp = !strcmp(v->fabric, "tcp");
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	char reason[256];
	slmpm_peer peer;
	slmpm_ctx ctx;
	slmpm_mem mem;
	void *base;
	pid_t pid;

	settings_one_link(v->fabric);
	OK(slmpm_open(&ctx, NULL));
	peer = meet(ctx, v->fabric, &pid);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	if (v->oversubscribed)
		crowd(mem, peer, pid, tcp ? -SLMPM_ELIMIT : -SLMPM_EAGAIN);
	OK(kill(pid, SIGKILL));
	EXPECT(child_wait(pid), -SIGKILL);
	CHECK(give_keys(v, mem, peer) < CALLS, "the end was not told: %s", slmpm_error_detail());
	OK(slmpm_peer_query(peer, &info));
	CHECK(info.state == SLMPM_PEER_DEAD, "state %u", info.state);
	EXPECT(slmpm_send(peer, 1, "", 1, 0), -SLMPM_EDEAD);
	snprintf(reason, sizeof(reason), "%s", slmpm_error_detail());
	REFUSED(slmpm_mem_key(mem, peer, SLMPM_READ, &key), SLMPM_EDEAD, reason);
	OK(slmpm_mem_revoke(mem, peer, 0));
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static const char *const fabrics[] = {"shm", "tcp"};

	setenv("SLMPM_LOG_LEVEL", "none", 1);
	for (int i = 0; i < 8; i++) {
		struct variant v = {fabrics[i & 1], i & 2, i & 4};
		char what[64];

		snprintf(what, sizeof(what), "%s%s%s", v.fabric,
			 v.oversubscribed ? ", crowded" : "", v.revokes ? ", revoking" : "");
		settings_run(what, one, &v);
	}
	return 0;
}
