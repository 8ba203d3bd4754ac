/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * A side without an engine leaves long puts and gets to the peer's: engines on one side, on the other, on both
 * and on none; processes that were started and that were connected; memory of the caller's own, in a region that the
 * peer has mapped, and out of the peer's reach; waited for and not. What the caller's processor has to do
 * with it; a peer that does not come, stops, or dies amidst it; a region that is taken back meanwhile.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE   ((size_t)4 << 20)
#define LONG   ((size_t)64 << 20)
#define SHORT  ((size_t)512 << 10)
#define ENGINE "SLMPM_ENGINE=thread"

enum memory { OWN, MAPPED };
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

/* ---- the other side ----------------------------------------------------------------------------- */

struct order {
	uint32_t word, seed;
};

/* Owns a region, and does what it is told. */
static int own(slmpm_peer host)
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

static int own_spawned(slmpm_peer host, char **words)
{
	(void)words;
	return own(host);
}

static uint32_t tell(enum word word, uint32_t seed)
{
	struct order o = {word, seed};

	OK(slmpm_send(peer, 2, &o, sizeof(o), PATIENCE));
	if (word == END)
		return END;
	EXPECT(slmpm_recv(peer, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
	return o.word;
}

/* ---- meeting -------------------------------------------------------------------------------------- */

static pid_t guest;
static int urls[2];

static int connect_and_own(void *arg)
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

static void meet(const struct cell *c)
{
	char engine[] = "SLMPM_ENGINE=none",
	     *envp[] = {c->there ? (char *)(uintptr_t)ENGINE : engine, NULL};
	const struct slmpm_spawn_options options = {.size = sizeof(options), .envp = envp};
	char url[256] = "";
	slmpm_listener listener;

	setenv("SLMPM_ATTACH", c->attach ? "y" : "n", 1);
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
static bool open_regions(void)
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

static void part(const struct cell *c)
{
	tell(END, 0);
	if (c->connected) {
		OK(slmpm_close(peer, PATIENCE));
		EXPECT(child_wait(guest), 0);
	} else {
		actor_join(peer, 0);
	}
	OK(slmpm_shut(ctx, PATIENCE));
}

/* ---- all placements ------------------------------------------------------------------------------- */

static enum slmpm_reason last_reason(int protocol)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_peer_mode(peer, &mode));
	CHECK(mode.protocol == protocol, "by %d", mode.protocol);
	return (enum slmpm_reason)mode.reason;
}

/* Waited for (NULL), or not. */
static void operate(bool put, unsigned char *at, size_t n, bool waits)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_done done = {.status = 1};
	slmpm_req req = {0}, *r = waits ? NULL : &req;

	OK(put ? slmpm_put(rmem, 0, at, n, &how, r) : slmpm_get(rmem, 0, at, n, &how, r));
	if (waits)
		return;
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0 && done.len == n, "status %d, %llu bytes", done.status,
	      (unsigned long long)done.len);
}

/* For that REASON (-1: not looked at). A busy machine may let the peer be late, and it is copied. */
static void operate_for(bool put, unsigned char *at, bool waits, int reason)
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
		tell(READY, 0); /* it is there, and has said that it is through */
	}
	CHECK(false, "it never comes");
}

/* Forth and back, all of it right. */
static void both_ways(unsigned char *at, uint32_t seed, bool waits, int reason)
{
	actor_fill(at, seed, SIZE);
	operate_for(true, at, waits, reason);
	EXPECT(tell(CHECK_FIRST, seed), READY);
	tell(FILL, seed + 1);
	operate_for(false, at, waits, reason);
	CHECK(actor_filled(at, seed + 1, SIZE), "what the get has brought");
}

static int place(void *arg)
{
	const struct cell *c = arg;
	unsigned char *own_bytes;
	bool mapped, asks;
	uint64_t asked;

	meet(c);
	mapped = open_regions();
	own_bytes = malloc(SIZE);
	CHECK(own_bytes, "no memory");
	asks = mapped && c->there && !c->here;
	for (int waits = 0; waits < 2; waits++) {
		both_ways(bytes, 10, waits, asks ? SLMPM_REASON_ENGINE : -1);
		both_ways(own_bytes, 20, waits,
			  !asks     ? -1 :
			  c->attach ? SLMPM_REASON_ENGINE :
				      SLMPM_REASON_UNREACHABLE);
	}
	asked = actor_stats(peer).asked;
	operate(true, own_bytes, SHORT, true);
	EXPECT(actor_stats(peer).asked, asked); /* that is this side's own */
	free(own_bytes);
	part(c);
	return 0;
}

/* ---- processor time ------------------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Of 64 MiB: less than a tenth of what a copy takes. */
static int cost(void *arg)
{
	const struct cell *c = arg;
	unsigned char *from, *to;
	uint64_t copy = UINT64_MAX, put = UINT64_MAX, get = UINT64_MAX;

	meet(c);
	if (!open_regions()) {
		part(c);
		return 0;
	}
	from = malloc(LONG);
	to = malloc(LONG);
	CHECK(from && to, "no memory");
	memset(from, 1, LONG);
	memset(to, 2, LONG);
	for (int i = 0; i < 5; i++) {
		uint64_t t0 = cpu_ns(), t1, t2, t3;

		memcpy(to, from, LONG);
		t1 = cpu_ns();
		operate(true, from, LONG, true);
		t2 = cpu_ns();
		operate(false, to, LONG, true);
		t3 = cpu_ns();
		from[i] = to[LONG - 1];
		copy = smaller(copy, t1 - t0);
		put = smaller(put, t2 - t1);
		get = smaller(get, t3 - t2);
	}
	printf("processor time of 64 MiB: memcpy %llu us, put %llu us (%.1f %%), get %llu us (%.1f %%)\n",
	       (unsigned long long)copy / 1000, (unsigned long long)put / 1000,
	       100.0 * (double)put / (double)copy, (unsigned long long)get / 1000,
	       100.0 * (double)get / (double)copy);
	CHECK(actor_stats(peer).asked, "nothing was asked for");
	CHECK(put * 10 < copy && get * 10 < copy, "more than a tenth of a copy");
	free(from);
	free(to);
	part(c);
	return 0;
}

/* ---- ends ----------------------------------------------------------------------------------------- */

/* Computes outside of the library: the caller copies, soon; and asks again when it is back. */
static int absent(void *arg)
{
	int64_t began;

	meet(arg);
	if (open_regions()) {
		actor_fill(bytes, 1, SIZE);
		EXPECT(tell(BUSY, 1500), BUSY);
		began = actor_now_ms();
		operate(true, bytes, SIZE, true);
		EXPECT(last_reason(SLMPM_BY_PUT), SLMPM_REASON_ABSENT);
		operate(false, bytes, SIZE, false);
		EXPECT(last_reason(SLMPM_BY_GET), SLMPM_REASON_ABSENT);
		CHECK(actor_now_ms() - began < 1000, "it waited");
		EXPECT(tell(CHECK_FIRST, 1), READY);
		both_ways(bytes, 5, true, SLMPM_REASON_ENGINE);
	}
	part(arg);
	return 0;
}

static int pid_of(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

/* Stopped at any moment: each call ends near its deadline, and says what of it; when it goes on, all works. */
static int stopped(void *arg)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 200};
	unsigned char *from;
	int pid;

	meet(arg);
	if (!open_regions()) {
		part(arg);
		return 0;
	}
	from = malloc(LONG);
	CHECK(from, "no memory");
	memset(from, 1, LONG);
	pid = pid_of();
	for (int i = 0; i < 6; i++) {
		int64_t began;
		pid_t stopper;
		int rc;

		stopper = fork();
		if (!stopper) {
			usleep((useconds_t)i * 1500);
			kill(pid, SIGSTOP);
			_exit(0);
		}
		began = actor_now_ms();
		rc = i % 2 ? slmpm_get(rmem, 0, from, LONG, &how, NULL) :
			     slmpm_put(rmem, 0, from, LONG, &how, NULL);
		CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EBUSY, "%d: %s", rc,
		      slmpm_error_detail());
		CHECK(actor_now_ms() - began < 3000 * actor_slow(), "%lld ms",
		      (long long)(actor_now_ms() - began));
		CHECK(waitpid(stopper, NULL, 0) == stopper, "the stopper");
		kill(pid, SIGCONT);
		EXPECT(tell(READY, 0), READY);
	}
	free(from);
	both_ways(bytes, 40, true, SLMPM_REASON_ENGINE);
	part(arg);
	return 0;
}

/* Killed at any moment: an error at once. */
static int killed(void *arg)
{
	struct cell c = *(const struct cell *)arg;
	unsigned char *from = malloc(LONG);

	CHECK(from, "no memory");
	memset(from, 1, LONG);
	for (int i = 0; i < 8; i++) {
		slmpm_req req = {0};
		struct slmpm_done done = {.status = 1};
		int rc, pid;

		meet(&c);
		if (!open_regions()) {
			part(&c);
			break;
		}
		pid = pid_of();
		if (i % 2) {
			OK(slmpm_get(rmem, 0, from, LONG, NULL, &req));
			usleep((useconds_t)i * 500);
			kill(pid, SIGKILL);
			EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
			rc = done.status;
		} else {
			pid_t killer = fork();

			if (!killer) {
				usleep((useconds_t)i * 700);
				kill(pid, SIGKILL);
				_exit(0);
			}
			rc = slmpm_put(rmem, 0, from, LONG, NULL, NULL);
			CHECK(waitpid(killer, NULL, 0) == killer, "the killer");
		}
		CHECK(rc == 0 || rc == -SLMPM_EDEAD, "%d: %s", rc, slmpm_error_detail());
		(void)slmpm_join(peer, NULL, PATIENCE);
		OK(slmpm_shut(ctx, PATIENCE));
	}
	free(from);
	return 0;
}

/* Taken back amidst it: nothing of it is written once the owner has it back. */
static int revoked(void *arg)
{
	unsigned char *from = malloc(LONG);
	struct slmpm_done done = {.status = 1};
	slmpm_req req = {0};

	CHECK(from, "no memory");
	memset(from, 1, LONG);
	meet(arg);
	if (open_regions()) {
		struct order o = {REVOKE, 0};

		OK(slmpm_put(rmem, 0, from, LONG, NULL, &req));
		OK(slmpm_send(peer, 2, &o, sizeof(o), PATIENCE));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == 0 || done.status == -SLMPM_EACCES, "status %d", done.status);
		EXPECT(slmpm_recv(peer, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
		REFUSED(slmpm_put(rmem, 0, from, LONG, NULL, NULL), SLMPM_EACCES, "back");
	}
	free(from);
	part(arg);
	return 0;
}

/* A cancelled one leaves the memory alone; so does one whose peer is closed. */
static int cancelled(void *arg)
{
	meet(arg);
	if (open_regions())
		for (int i = 0; i < 40 / actor_slow(); i++) {
			unsigned char *gone = malloc(LONG);
			struct slmpm_done done = {.status = 1};
			slmpm_req req[2];
			int rc;

			CHECK(gone, "no memory");
			OK(slmpm_get(rmem, 0, gone, LONG, NULL, &req[0]));
			OK(slmpm_put(rmem, 0, gone, SIZE, NULL, &req[1]));
			usleep((useconds_t)i * 50);
			rc = slmpm_cancel(req[0]);
			CHECK(rc == 0 || rc == -SLMPM_EBUSY, "cancel: %d", rc);
			EXPECT(slmpm_wait(&req[0], 1, &done, PATIENCE), 0);
			CHECK(done.status == (rc ? 0 : -SLMPM_ECANCELED), "ended with %d",
			      done.status);
			EXPECT(slmpm_wait(&req[1], 1, &done, PATIENCE), 0);
			CHECK(done.status == 0, "the other one ended with %d", done.status);
			free(gone);
		}
	part(arg);
	return 0;
}

static void run(const char *what, int (*body)(void *), const struct cell *cell)
{
	printf("%s\n", what);
	fflush(stdout);
	CHECK(child_run(body, (void *)(uintptr_t)cell, 30 * (unsigned)actor_slow()) == 0,
	      "%s: see above", what);
}

static const struct cell cells[] = {
	{"an engine there", false, true, false, true},
	{"an engine there, connected", false, true, true, true},
	{"an engine there, no attaching", false, true, false, false},
	{"an engine there, no attaching, connected", false, true, true, false},
	{"an engine here", true, false, false, true},
	{"an engine here, connected", true, false, true, true},
	{"engines on both sides", true, true, false, true},
	{"engines on both sides, connected", true, true, true, true},
	{"no engine", false, false, false, true},
	{"no engine, connected", false, false, true, true},
};

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"own", own_spawned}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_one_link(NULL);
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		run(cells[i].what, place, &cells[i]);
	run("processor time", cost, &cells[0]);
	run("processor time, connected", cost, &cells[1]);
	run("a peer that computes", absent, &cells[0]);
	run("a peer that computes, connected", absent, &cells[1]);
	run("a stopped peer", stopped, &cells[0]);
	run("a peer that dies", killed, &cells[0]);
	run("a region that is taken back", revoked, &cells[0]);
	run("cancelled", cancelled, &cells[0]);
	return 0;
}
