/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two sides of which one may have an engine: a process that owns a region that serves orders, and
 * one that puts into it and gets from it, from a region that the owner maps or from other memory.
 */
#ifndef TESTS_API_ASK_H
#define TESTS_API_ASK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE ((size_t)4 << 20)
/* With a thread sanitizer each byte that is set is several of its own. */
#ifdef __SANITIZE_THREAD__
#define LONG ((size_t)16 << 20)
#else
#define LONG ((size_t)64 << 20)
#endif
#define ENGINE "SLMPM_ENGINE=thread"

enum word { CHECK_FIRST = 1, FILL, BUSY, REVOKE, READY, END }; /* with a seed */

struct cell {
	const char *what;
	bool here, there, connected, attach; /* engines; how they met; SLMPM_ATTACH */
};

static slmpm_ctx ctx;
static slmpm_peer peer;
static slmpm_rmem rmem;
static unsigned char *bytes; /* the caller's */
static slmpm_mem mem;        /* where they are in a region */

/* ---- the other side -------------------------------------------------------------------------- */

struct order {
	uint32_t word, seed;
};

/* Owns a region, and serves orders. */
static inline int own(slmpm_peer host)
{
	struct slmpm_key key;
	struct order o = {READY, 0};
	slmpm_rmem theirs = {0};
	slmpm_mem region;
	void *base;

	OK(slmpm_mem_alloc((slmpm_ctx){0}, LONG, SLMPM_READ_WRITE, &region, &base));
	OK(slmpm_mem_key(region, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(host, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(host, &key, &theirs));
	OK(slmpm_send(host, 2, &o, sizeof(o), PATIENCE));
	for (;;) {
		EXPECT(slmpm_recv(host, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
		if (o.word == END)
			break;
		if (o.word == CHECK_FIRST)
			o.word = actor_filled(base, o.seed, SIZE) ? READY : 0;
		if (o.word == FILL)
			actor_fill(base, o.seed, SIZE);
		if (o.word == REVOKE) {
			OK(slmpm_mem_revoke(region, host, PATIENCE));
			memset(base, 0, LONG);
		}
		OK(slmpm_send(host, 2, &o, sizeof(o), PATIENCE));
		if (o.word == BUSY)
			usleep(o.seed * 1000);
		if (o.word == REVOKE)
			for (size_t i = 0; i < LONG; i += 512)
				CHECK(!((unsigned char *)base)[i], "written after it was revoked");
	}
	OK(slmpm_mem_release(theirs));
	OK(slmpm_mem_destroy(region, PATIENCE));
	return 0;
}

static inline int own_spawned(slmpm_peer host, char **words)
{
	(void)words;
	return own(host);
}

static inline uint32_t order(enum word word, uint32_t seed)
{
	struct order o = {word, seed};

	OK(slmpm_send(peer, 2, &o, sizeof(o), PATIENCE));
	if (word == END)
		return END;
	EXPECT(slmpm_recv(peer, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
	return o.word;
}

/* ---- meeting --------------------------------------------------------------------------------- */

static pid_t guest;
static int urls[2];

static inline int connect_and_own(void *arg)
{
	const struct cell *c = arg;
	slmpm_peer host;
	char url[256];

	setenv("SLMPM_ENGINE", c->there ? "thread" : "none", 1);
	CHECK(read(urls[0], url, sizeof(url)) == (ssize_t)sizeof(url), "no address");
	OK(slmpm_connect(&host, (slmpm_ctx){0}, url, PATIENCE));
	own(host);
	OK(slmpm_close(host, PATIENCE));
	return 0;
}

/* By itself only what is much longer is asked for. */
static inline void settle(const struct cell *c)
{
	setenv("SLMPM_ATTACH", c->attach ? "y" : "n", 1);
	setenv("SLMPM_ASK_MIN", "1m", 1);
}

static inline void meet(const struct cell *c)
{
	char engine[] = "SLMPM_ENGINE=none",
	     *envp[] = {c->there ? (char *)(uintptr_t)ENGINE : engine, NULL};
	const struct slmpm_spawn_options options = {.size = sizeof(options), .envp = envp};
	char url[256] = "";
	slmpm_listener listener;

	settle(c);
	if (c->connected) {
		CHECK(pipe(urls) == 0, "no pipe");
		guest = child_start(connect_and_own, (void *)(uintptr_t)c, 60);
	}
	setenv("SLMPM_ENGINE", c->here ? "thread" : "none", 1);
	OK(slmpm_default(&ctx));
	if (!c->connected) {
		peer = actor_spawn_with(&options, "own", NULL, NULL);
		return;
	}
	snprintf(url, sizeof(url), "shm:slmpm-ask-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, url));
	CHECK(write(urls[1], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_accept(listener, &peer, PATIENCE));
}

/* False: over this fabric nothing is mapped, and nobody is asked. */
static inline bool open_regions(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	struct order o;
	void *base;

	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	bytes = base;
	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(peer, 1, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(peer, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
	OK(slmpm_rmem_query(rmem, &info));
	return info.mapped;
}

static inline void part(const struct cell *c)
{
	order(END, 0);
	if (c->connected) {
		OK(slmpm_close(peer, PATIENCE));
		EXPECT(child_wait(guest), 0);
	} else {
		actor_join(peer, 0);
	}
	OK(slmpm_shut(ctx, PATIENCE));
}

/* ---- puts and gets --------------------------------------------------------------------------- */

static inline enum slmpm_reason last_reason(int protocol)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_peer_mode(peer, &mode));
	CHECK(mode.protocol == protocol, "by %d", mode.protocol);
	return (enum slmpm_reason)mode.reason;
}

static bool hinted; /* past the ring */

/* Waited for (NULL), or not. */
static inline void operate(bool put, unsigned char *at, size_t n, bool waits)
{
	const uint32_t protocol = put ? SLMPM_BY_PUT : SLMPM_BY_GET;
	const struct slmpm_how how = {.size = sizeof(how),
				      .flags = hinted ? SLMPM_VIA(protocol) : 0,
				      .timeout_ms = PATIENCE};
	struct slmpm_done done = {.status = 1};
	slmpm_req req = {0}, *r = waits ? NULL : &req;

	OK(put ? slmpm_put(rmem, 0, at, n, &how, r) : slmpm_get(rmem, 0, at, n, &how, r));
	if (waits)
		return;
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0 && done.len == n, "status %d, %llu bytes", done.status,
	      (unsigned long long)done.len);
}

/* For that REASON (-1: not checked). A busy machine may let the peer be late, and it is copied. */
static inline void operate_for(bool put, unsigned char *at, bool waits, int reason)
{
	for (int i = 0; i < 20; i++) {
		uint64_t before = actor_stats(peer).asked;
		int why;

		operate(put, at, SIZE, waits);
		why = reason < 0 ? -1 : (int)last_reason(put ? SLMPM_BY_PUT : SLMPM_BY_GET);
		EXPECT(actor_stats(peer).asked - before, why == SLMPM_REASON_ENGINE);
		if (why == reason)
			return;
		EXPECT(why, SLMPM_REASON_ABSENT);
		order(READY, 0); /* it is there, and has said that it is through */
	}
	CHECK(false, "it never comes");
}

/* Forth and back, all of it right. */
static inline void both_ways(unsigned char *at, uint32_t seed, bool waits, int reason)
{
	actor_fill(at, seed, SIZE);
	operate_for(true, at, waits, reason);
	EXPECT(order(CHECK_FIRST, seed), READY);
	order(FILL, seed + 1);
	operate_for(false, at, waits, reason);
	CHECK(actor_filled(at, seed + 1, SIZE), "what the get has brought");
}

static inline void run(const char *what, int (*body)(void *), const struct cell *cell)
{
	printf("%s\n", what);
	fflush(stdout);
	CHECK(child_run(body, (void *)(uintptr_t)cell, 30 * (unsigned)actor_slow()) == 0,
	      "%s: see above", what);
}

#endif
