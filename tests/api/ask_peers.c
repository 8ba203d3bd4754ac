/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * Several peers leave their puts and gets to one engine: who has a thousand long ones gets no more
 * of it than who has one, and holds up nobody's messages; and an asker that is killed amidst one
 * leaves nothing behind: no transfer, no hold on the region, nothing that another could not ask
 * for.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

/* With a thread sanitizer each byte that is set is several of its own. */
#ifdef __SANITIZE_THREAD__
#define LONG ((size_t)16 << 20)
#else
#define LONG ((size_t)64 << 20)
#endif
#define SHORT ((size_t)1 << 20)
#define MANY  1000
#define FEW   20

enum stream { KEYS = 1, WORDS };

static slmpm_ctx ctx;
static slmpm_mem mem;

/* ---- who asks -------------------------------------------------------------------------------- */

static slmpm_rmem open_theirs(slmpm_peer host, bool *asks)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(host, KEYS, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(host, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	*asks = info.mapped;
	OK(slmpm_send(host, WORDS, &info.mapped, sizeof(info.mapped), PATIENCE));
	return rmem;
}

/* Its own memory, in a region that the host's engine maps. */
static void *lend(slmpm_peer host, size_t n)
{
	struct slmpm_key key;
	slmpm_mem own;
	void *base;

	OK(slmpm_mem_alloc((slmpm_ctx){0}, n, SLMPM_READ_WRITE, &own, &base));
	OK(slmpm_mem_key(own, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, KEYS, &key, sizeof(key), PATIENCE));
	memset(base, 7, n);
	return base;
}

/* A thousand at once, until it is told to end; or is killed. */
static int storm(slmpm_peer host, char **words)
{
	static slmpm_req req[MANY];
	bool asks;
	slmpm_rmem rmem = open_theirs(host, &asks);
	void *bytes = lend(host, LONG);
	char byte;
	int rc = 0;

	(void)words;
	for (int i = 0; i < MANY && asks && rc != -SLMPM_ECLOSED; i++) {
		rc = i % 2 ? slmpm_get(rmem, 0, bytes, LONG, NULL, &req[i]) :
			     slmpm_put(rmem, 0, bytes, LONG, NULL, &req[i]);
		CHECK(rc == 0 || rc == -SLMPM_ECLOSED, "%s", slmpm_error_detail());
	}
	EXPECT(slmpm_recv(host, WORDS, &byte, 1, NULL, PATIENCE), 1);
	_exit(0); /* with all that is left of them */
}

/* A few, each waited for; then messages. */
static int calm(slmpm_peer host, char **words)
{
	bool asks;
	slmpm_rmem rmem = open_theirs(host, &asks);
	void *bytes = lend(host, SHORT);
	char byte;

	(void)words;
	EXPECT(slmpm_recv(host, WORDS, &byte, 1, NULL, PATIENCE), 1);
	for (int i = 0; i < FEW; i++)
		OK(slmpm_put(rmem, LONG, bytes, SHORT, NULL, NULL));
	OK(slmpm_send(host, WORDS, "x", 1, PATIENCE));
	for (int i = 0; i < FEW; i++) {
		EXPECT(slmpm_recv(host, WORDS, &byte, 1, NULL, PATIENCE), 1);
		OK(slmpm_send(host, WORDS, &byte, 1, PATIENCE));
	}
	return 0;
}

/* ---- whose engine it is ---------------------------------------------------------------------- */

static void open_region(void)
{
	void *base;

	OK(slmpm_default(&ctx));
	OK(slmpm_mem_alloc(ctx, LONG + SHORT, SLMPM_READ_WRITE, &mem, &base));
	memset(base, 1, LONG + SHORT);
}

/* False: over this fabric nobody is asked. */
static bool start(const char *role, slmpm_peer *peer)
{
	char *const envp[] = {(char *)(uintptr_t) "SLMPM_ENGINE=none", NULL};
	const struct slmpm_spawn_options options = {.size = sizeof(options), .envp = envp};
	struct slmpm_key key;
	slmpm_rmem theirs;
	uint32_t mapped;

	*peer = actor_spawn_with(&options, role, NULL, NULL);
	OK(slmpm_mem_key(mem, *peer, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(*peer, KEYS, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(*peer, WORDS, &mapped, sizeof(mapped), NULL, PATIENCE), sizeof(mapped));
	EXPECT(slmpm_recv(*peer, KEYS, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(*peer, &key, &theirs));
	return mapped;
}

static void end(slmpm_peer peer)
{
	OK(slmpm_send(peer, WORDS, "x", 1, PATIENCE));
	OK(slmpm_join(peer, NULL, PATIENCE));
}

static void await_transfers(slmpm_peer peer, uint64_t n)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (actor_stats(peer).asked_here < n) {
		CHECK(actor_now_ms() < until, "it asks for nothing");
		(void)slmpm_progress(ctx);
	}
}

/*
 * While one has FEW short ones done, one after the other, the engine does about as many bytes of
 * the other's long ones: not one of these for each.
 */
static int shares(void *unused)
{
	slmpm_peer many, few;
	uint64_t before, done;
	char byte;

	(void)unused;
	open_region();
	if (start("storm", &many)) {
		CHECK(start("calm", &few), "not mapped");
		await_transfers(many, 1);
		before = actor_stats(many).asked_here;
		OK(slmpm_send(few, WORDS, "x", 1, PATIENCE));
		EXPECT(slmpm_recv(few, WORDS, &byte, 1, NULL, PATIENCE), 1);
		done = actor_stats(many).asked_here - before;
		printf("%d MiB of one peer's, and meanwhile %llu times %zu MiB of the other's\n",
		       FEW, (unsigned long long)done, LONG >> 20);
		CHECK(done < FEW, "the other had all of it");
		before = actor_stats(many).asked_here;
		for (int i = 0; i < FEW; i++) {
			OK(slmpm_send(few, WORDS, "x", 1, PATIENCE));
			EXPECT(slmpm_recv(few, WORDS, &byte, 1, NULL, PATIENCE), 1);
		}
		done = actor_stats(many).asked_here - before;
		CHECK(done < FEW, "%d messages, and meanwhile %llu transfers", FEW,
		      (unsigned long long)done);
		actor_join(few, 0);
	}
	end(many);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* The region can be had back, and the next asks as if nothing had been. */
static int killed(void *unused)
{
	(void)unused;
	open_region();
	for (int i = 0; i < 8; i++) {
		struct slmpm_peer_info info = {.size = sizeof(info)};
		int64_t began;
		slmpm_peer peer;
		char byte;

		if (!start("storm", &peer)) {
			end(peer);
			break;
		}
		OK(slmpm_peer_query(peer, &info));
		began = actor_now_ms(); /* where the machine is slow it may copy, as nobody comes in time */
		while (i % 2 && !actor_stats(peer).asked_here && actor_now_ms() - began < 500)
			(void)slmpm_progress(ctx);
		for (began = actor_now_ms(); actor_now_ms() - began < i;)
			(void)slmpm_progress(ctx);
		kill(info.pid, SIGKILL);
		EXPECT(slmpm_recv(peer, 9, &byte, 1, NULL, PATIENCE), -SLMPM_EDEAD);
		(void)slmpm_join(peer, NULL, PATIENCE);
		OK(slmpm_mem_destroy(mem, PATIENCE));
		OK(slmpm_shut(ctx, PATIENCE));
		open_region();
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"storm", storm}, {"calm", calm}, {NULL, NULL}};
	const unsigned seconds = 30 * (unsigned)actor_slow();

	actor_begin(argc, argv, roles);
	settings_one_link(NULL);
	CHECK(setenv("SLMPM_ENGINE", "thread", 1) == 0 && setenv("SLMPM_ASK_MIN", "512k", 1) == 0,
	      "setenv");
	CHECK(child_run(shares, NULL, seconds) == 0, "shares: see above");
	CHECK(child_run(killed, NULL, seconds) == 0, "killed: see above");
	return 0;
}
