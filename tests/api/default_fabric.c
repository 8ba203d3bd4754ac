/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMPM_DEFAULT_SMT, _PUT and _RGET: messages, puts and gets without a hint go by the fabric that
 * is named, what has one by its link; while no link stands over that fabric, as without the
 * setting. A full ring or a long queue does not change that, unless the user has set when they are.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define LONG 200000
#define MANY 100 /* puts of so much fill a ring, messages a queue */

static slmpm_peer peer;
static slmpm_rmem plain, mapped; /* opened without a hint; by the address of link 0 */
static unsigned char bytes[LONG];

static int serve(slmpm_peer host, char **words)
{
	static unsigned char got[LONG];
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	int64_t n;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, LONG, SLMPM_READ_WRITE, &mem, &base));
	for (int i = 0; i < 2; i++) {
		OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
		OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	}
	while ((n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), NULL, PATIENCE)) >= 0)
		OK(slmpm_send(host, 1, NULL, 0, PATIENCE));
	return 0;
}

static slmpm_rmem open_by(uint64_t link)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open((slmpm_peer){peer.id | link << 24}, &key, &rmem));
	return rmem;
}

static uint64_t written(uint32_t link)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	OK(slmpm_link_query(peer, link, &info));
	return info.written;
}

static void expect(slmpm_req req, int link, enum slmpm_reason reason, const char *what)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
	CHECK(done.reason == reason, "%s: %s, not %s", what, slmpm_reason_name(done.reason),
	      slmpm_reason_name((int)reason));
	if (reason != SLMPM_REASON_SHORT)
		CHECK(links_told(&done) == link, "%s by link %d", what, links_told(&done));
}

static void messages(int link)
{
	const struct slmpm_iov piece = {bytes, LONG};
	uint64_t before = written((uint32_t)link);
	slmpm_req req;

	for (int i = 0; i < 20; i++) {
		OK(slmpm_send(peer, 2, bytes, 4000, PATIENCE));
		EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
	}
	CHECK(written((uint32_t)link) - before >= 20, "messages not by link %d", link);
	OK(slmpm_sendv(peer, 2, &piece, 1, NULL, &req));
	expect(req, link, link ? SLMPM_REASON_SETTING : SLMPM_REASON_CALL, "a message");
	EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
}

static void one_sided(bool put, int link)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};
	const struct slmpm_how near = {.size = sizeof(near),
				       .flags = SLMPM_REMOTE | SLMPM_ON_LINK(0)};
	const slmpm_rmem regions[] = {plain, mapped, plain};
	int (*get)(slmpm_rmem, uint64_t, void *, size_t, const struct slmpm_how *, slmpm_req *) =
		slmpm_get;
	uint64_t before = written(1);
	slmpm_req req;

	for (int i = 0; i < 3; i++) {
		const struct slmpm_how *h = i == 2 ? &near : &how;
		int by = i ? 0 : link;

		if (put)
			OK(slmpm_put(regions[i], 0, bytes, 4000, h, &req));
		else
			OK(get(regions[i], 0, bytes, 4000, h, &req));
		expect(req, by,
		       i == 2 ? SLMPM_REASON_HINT :
		       by     ? SLMPM_REASON_SETTING :
				SLMPM_REASON_SHORT,
		       put ? "a put" : "a get");
	}
	for (int i = 0; i < 20; i++) /* the fast path, where it is one */
		OK(put ? slmpm_put(plain, 0, bytes, 8, NULL, NULL) :
			 slmpm_get(plain, 0, bytes, 8, NULL, NULL));
	if (!link)
		CHECK(written(1) - before < 15, "by link 1");
	else
		CHECK(written(1) - before >= 20, "not by link 1");
}

static slmpm_req post(bool put)
{
	const struct slmpm_iov piece = {bytes, LONG};
	slmpm_req req;

	if (put)
		OK(slmpm_put(plain, 0, bytes, LONG, NULL, &req));
	else
		OK(slmpm_sendv(peer, 2, &piece, 1, NULL, &req));
	return req;
}

/* Did it go by link 1? */
static bool end(slmpm_req req)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
	return links_told(&done) == 1;
}

/* To a peer that reads nothing, and when it goes on: how many went by link 1. */
static int overfill(bool put)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_req reqs[MANY];
	int n = 0;

	OK(slmpm_peer_query(peer, &info));
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
	for (int i = 0; i < MANY; i++)
		reqs[i] = post(put);
	OK(kill(info.pid, SIGCONT));
	for (int i = 0; i < MANY; i++) {
		n += end(reqs[i]);
		if (!put)
			EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
	}
	return n;
}

/* The user's own thresholds move them, but not for longer than ring or queue are beyond those. */
static void leave_and_come_back(bool put)
{
	int64_t until = actor_now_ms() + PATIENCE;
	bool back;

	CHECK(overfill(put) < MANY, "it stays on a full link");
	do {
		back = end(post(put));
		if (!put)
			EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
	} while (!back && actor_now_ms() < until);
	CHECK(back, "it does not come back");
}

static int overfilled(void *which)
{
	const char *name = which;
	bool put = !strcmp(name, "SLMPM_DEFAULT_PUT");

	CHECK(setenv(name, "tcp", 1) == 0, "setenv");
	peer = actor_spawn("serve", NULL, NULL);
	links_await();
	plain = open_by(0);
	mapped = open_by(1);
	if (getenv("SLMPM_MODE_RING"))
		leave_and_come_back(put);
	else
		EXPECT(overfill(put), MANY);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int run(void *which)
{
	const char *name = which;

	CHECK(setenv(name, "tcp", 1) == 0, "setenv");
	peer = actor_spawn("serve", NULL, NULL);
	links_await();
	plain = open_by(0);
	mapped = open_by(1);
	messages(!strcmp(name, "SLMPM_DEFAULT_SMT"));
	one_sided(true, !strcmp(name, "SLMPM_DEFAULT_PUT"));
	one_sided(false, !strcmp(name, "SLMPM_DEFAULT_RGET"));
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* A single link: the fabric is not to be had. */
static int without(void *unused)
{
	uint64_t word = 0;

	(void)unused;
	peer = actor_spawn("serve", NULL, NULL);
	plain = open_by(0);
	OK(slmpm_put(plain, 0, bytes, 8, NULL, NULL));
	OK(slmpm_get(plain, 0, &word, 8, NULL, NULL));
	OK(slmpm_send(peer, 2, bytes, 8, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, bytes, LONG, NULL, PATIENCE), sizeof(struct slmpm_key));
	EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int unknown(void *unused)
{
	slmpm_peer none;

	(void)unused;
	REFUSED(slmpm_connect(&none, (slmpm_ctx){0}, "shm:nobody", 10), SLMPM_EINVAL,
		"SLMPM_DEFAULT_PUT=pigeon: there is no fabric");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"serve", serve}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_LINKS", "shm,tcp");
	settings_set("SLMPM_FETCH", "never");
	settings_run("messages", run, "SLMPM_DEFAULT_SMT");
	settings_run("puts", run, "SLMPM_DEFAULT_PUT");
	settings_run("gets", run, "SLMPM_DEFAULT_RGET");
	settings_run("more messages than there is room for", overfilled, "SLMPM_DEFAULT_SMT");
	settings_run("more puts than there is room for", overfilled, "SLMPM_DEFAULT_PUT");
	settings_set("SLMPM_MODE_RING", "40");
	settings_set("SLMPM_MODE_QUEUE", "8");
	settings_run("messages beyond thresholds", overfilled, "SLMPM_DEFAULT_SMT");
	settings_run("puts beyond thresholds", overfilled, "SLMPM_DEFAULT_PUT");
	CHECK(unsetenv("SLMPM_MODE_QUEUE") == 0, "unsetenv");
	CHECK(unsetenv("SLMPM_MODE_RING") == 0, "unsetenv");
	settings_set("SLMPM_LINKS", "1");
	settings_set("SLMPM_DEFAULT_PUT", "tcp");
	settings_set("SLMPM_DEFAULT_SMT", "tcp");
	settings_run("a single link", without, NULL);
	settings_set("SLMPM_DEFAULT_PUT", "pigeon");
	settings_run("an unknown fabric", unknown, NULL);
	return 0;
}
