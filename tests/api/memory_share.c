/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions shared and accepted, in order, or by nobody; by who dies, closes or calls nothing any
 * more; and their keys, as many as there may be, and while the region ends.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/way.h"

#define SIZE 65536
#define SOON 100

static slmpm_ctx ctx;

/* ---- sharing --------------------------------------------------------------------------------- */

/* Accepts as many regions as it is told, writes into each, releases them. */
static int role_accept(slmpm_peer host, char **words)
{
	slmpm_rmem rmem[8];
	int n = atoi(words[0]);

	for (int i = 0; i < n; i++) {
		OK(slmpm_mem_accept(host, &rmem[i], PATIENCE));
		OK(slmpm_put(rmem[i], (uint64_t)i, &"abcdefgh"[i], 1, NULL, NULL));
	}
	REFUSED(slmpm_mem_accept(host, &rmem[n], 0), SLMPM_EAGAIN, "no region");
	REFUSED(slmpm_mem_accept(host, NULL, 0), SLMPM_EINVAL, "handle");
	actor_tell(host, 1);
	actor_hear(host, 2);
	for (int i = 0; i < n; i++)
		OK(slmpm_mem_release(rmem[i]));
	EXPECT(slmpm_mem_accept(host, &rmem[0], PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static void shared_in_order(void)
{
	slmpm_peer a = actor_spawn("accept", "6", NULL);
	static char memory[3][64];
	slmpm_mem mem[6];
	char *base[6];

	for (int i = 0; i < 6; i++) {
		if (i % 2) {
			base[i] = memory[i / 2];
			OK(slmpm_mem_register(ctx, base[i], 64, SLMPM_READ_WRITE, &mem[i]));
		} else {
			OK(slmpm_mem_alloc(ctx, 64, SLMPM_READ_WRITE, &mem[i], (void **)&base[i]));
		}
		OK(slmpm_mem_share(mem[i], a, i == 3 ? SLMPM_WRITE : SLMPM_READ_WRITE, PATIENCE));
		EXPECT(way_acceptors(mem[i]), 1);
	}
	actor_hear(a, 1);
	for (int i = 0; i < 6; i++)
		CHECK(base[i][i] == "abcdefgh"[i], "region %d: %d", i, base[i][i]);
	REFUSED(slmpm_mem_destroy(mem[0], 0), SLMPM_EAGAIN, "1 acceptors");
	actor_tell(a, 2);
	for (int i = 0; i < 6; i++)
		OK(slmpm_mem_destroy(mem[i], PATIENCE)); /* waits for the release */
	OK(slmpm_close(a, PATIENCE));
	actor_join(a, 0);
}

/* An offer that nobody takes is taken back; what the other side accepts later is not there. */
static void not_accepted(void)
{
	slmpm_peer a, b;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	REFUSED(slmpm_mem_share(mem, b, SLMPM_READ_WRITE, 0), SLMPM_EAGAIN, "");
	REFUSED(slmpm_mem_share(mem, b, SLMPM_READ, SOON), SLMPM_ETIMEOUT, "not accepted");
	EXPECT(way_acceptors(mem), 0);
	actor_settle(a, b);
	REFUSED(slmpm_mem_accept(a, &rmem, 0), SLMPM_EAGAIN, "no region");
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
}

static int role_leave(slmpm_peer host, char **words)
{
	slmpm_rmem rmem;

	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	if (words[0][0] == 'k')
		(void)raise(SIGKILL);
	exit(0); /* without releasing */
}

static void acceptor_gone(const char *how)
{
	slmpm_peer a = actor_spawn("leave", how, NULL);
	static char memory[64];
	slmpm_mem mem, foreign;
	void *base;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_register(ctx, memory, 64, SLMPM_READ_WRITE, &foreign));
	OK(slmpm_mem_share(mem, a, SLMPM_READ_WRITE, PATIENCE));
	CHECK(slmpm_mem_share(foreign, a, SLMPM_READ_WRITE, PATIENCE) < 0, "nobody is there");
	OK(slmpm_mem_destroy(foreign, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	(void)slmpm_join(a, NULL, PATIENCE);
}

/* Holds a region, and calls nothing any more until it is killed. */
static int role_idle(slmpm_peer host, char **words)
{
	slmpm_rmem rmem;
	int path;

	(void)words;
	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	path = way_path(rmem)[0];
	OK(slmpm_send(host, ACTOR_WORDS, &path, sizeof(path), PATIENCE));
	alarm(60);
	pause();
	return 1;
}

/* Memory that can be freed after a close: or it says that it cannot. */
static void closed_while_attached(void)
{
	slmpm_peer idle = actor_spawn("idle", NULL, NULL), a, b;
	static char memory[64];
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;
	int path = 0;

	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_share(mem, idle, SLMPM_READ_WRITE, PATIENCE));
	EXPECT(slmpm_recv(idle, ACTOR_WORDS, &path, sizeof(path), NULL, PATIENCE), sizeof(path));
	if (path == 'a') {
		REFUSED(slmpm_mem_revoke(mem, idle, SOON), SLMPM_ETIMEOUT, "released");
		REFUSED(slmpm_mem_destroy(mem, SOON), SLMPM_ETIMEOUT, "released");
		REFUSED(slmpm_close(idle, SOON), SLMPM_ETIMEOUT, "not released");
	}
	OK(slmpm_kill(idle, 0));
	(void)slmpm_join(idle, NULL, PATIENCE);
	/* One that makes progress does let go. */
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_mem_destroy(mem, 0));
}

/* ---- many keys ------------------------------------------------------------------------------- */

#define AHEAD 20 /* keys that are given before the peer looks */

/* Some that go ahead of their keys, then as many as there can be: the last opens first. */
static void last_key_first(void)
{
	struct slmpm_key key = {.bytes = {0}};
	slmpm_rmem rmem;
	slmpm_peer a, b;
	slmpm_mem mem;
	void *base;
	int rc;

	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &mem, &base));
	for (int i = 0; i < AHEAD; i++)
		OK(slmpm_mem_key(mem, b, SLMPM_READ, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_mem_release(rmem));
	do
		rc = slmpm_mem_key(mem, b, SLMPM_READ, &key);
	while (rc == 0);
	EXPECT(rc, -SLMPM_ELIMIT); /* the calls themselves let the peer look */
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_mem_release(rmem));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* ---- a key given while its region ends ------------------------------------------------------- */

static slmpm_mem ending;
static int refused;

static void give_key(const struct slmpm_am *am, void *arg)
{
	struct slmpm_key key;

	(void)arg;
	refused = slmpm_mem_key(ending, am->peer, SLMPM_READ_WRITE, &key);
	OK(slmpm_am_reply(am, 2, NULL, 0, key.bytes, refused == 0 ? sizeof(key.bytes) : 0));
}

static void try_key(const struct slmpm_am *am, void *arg)
{
	struct slmpm_key *key = arg;

	if (am->data_len == sizeof(*key))
		memcpy(key, am->data, sizeof(*key));
}

/* Asks for a key when the region is about to end, and then uses what it gets. */
static int role_late(slmpm_peer host, char **words)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = SOON};
	struct slmpm_key key = {.bytes = {0}};
	slmpm_rmem rmem;

	(void)words;
	OK(slmpm_am_handler((slmpm_ctx){0}, 2, try_key, &key));
	actor_hear(host, 1);
	OK(slmpm_am(host, 1, NULL, 0, NULL, 0, NULL, NULL));
	actor_hear(host, 2);
	if (slmpm_mem_open(host, &key, &rmem) == 0)
		(void)slmpm_put(rmem, 0, "x", 1, &how, NULL);
	actor_tell(host, 3);
	return 0;
}

static void key_of_an_ending_region(void)
{
	slmpm_peer peer;
	static char memory[64];
	struct slmpm_key key;

	setenv("SLMPM_RMA", "ring", 1);
	peer = actor_spawn("late", NULL, NULL);
	unsetenv("SLMPM_RMA");
	OK(slmpm_am_handler(ctx, 1, give_key, NULL));
	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &ending));
	refused = 0;
	OK(slmpm_mem_key(ending, peer, SLMPM_READ, &key));
	actor_tell(peer, 1);
	OK(slmpm_mem_destroy(ending, PATIENCE));
	actor_tell(peer, 2);
	actor_hear(peer, 3);
	CHECK(refused == 0 || refused == -SLMPM_EBUSY || refused == -SLMPM_EHANDLE, "%d", refused);
	actor_join(peer, 0);
}

static const struct actor roles[] = {
	{"accept", role_accept}, {"idle", role_idle}, {"leave", role_leave},
	{"late", role_late},     {NULL, NULL},
};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	shared_in_order();
	not_accepted();
	acceptor_gone("exit");
	acceptor_gone("kill");
	closed_while_attached();
	last_key_first();
	key_of_an_ending_region();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
