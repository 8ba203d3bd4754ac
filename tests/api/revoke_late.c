/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* timeout: 90 */
/*
 * A revoke whose time is over has revoked nothing, of nobody: what peers do goes on to reach the
 * region, and the call can be made again. It ends at its time, however large the region and whoever
 * does not answer.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE ((size_t)96 << 20)
#define SOON 50 /* ms */

enum { KEY = 1, ORDER, ANSWER };

/* ---- a peer: does what it is told, once ------------------------------------------------------ */

struct order {
	char what; /* put, add, get, query, or open and release */
	uint64_t value;
};

static int obey(slmpm_rmem rmem, const struct order *o, uint64_t *value)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};

	switch (o->what) {
	case 'p': return slmpm_put(rmem, SIZE - 8, &o->value, 8, &how, NULL);
	case 'a': return slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, o->value, 0, value, NULL, NULL);
	case 'g': return slmpm_get(rmem, SIZE / 2, value, 8, NULL, NULL);
	default: strncpy((char *)value, way_path(rmem), 7); return 0;
	}
}

static int peer(slmpm_peer host, char **words)
{
	slmpm_rmem rmem = way_open(host, KEY);
	struct order o;
	(void)words;

	while (slmpm_recv(host, ORDER, &o, sizeof(o), NULL, -1) == (int64_t)sizeof(o)) {
		uint64_t answer[2] = {0};

		answer[0] = (uint64_t)obey(rmem, &o, &answer[1]);
		OK(slmpm_send(host, ANSWER, answer, sizeof(answer), PATIENCE));
	}
	return 0;
}

/* ---- the owner ------------------------------------------------------------------------------- */

static slmpm_ctx ctx;
static slmpm_peer peers[2];
static slmpm_mem mem;
static uint64_t *base, turn;

static int tell(int i, char what, uint64_t value, uint64_t *answer)
{
	struct order o = {.what = what, .value = value};
	uint64_t got[2];

	OK(slmpm_send(peers[i], ORDER, &o, sizeof(o), PATIENCE));
	EXPECT(slmpm_recv(peers[i], ANSWER, got, sizeof(got), NULL, PATIENCE), sizeof(got));
	if (answer)
		*answer = got[1];
	return (int)got[0];
}

/* All that it does reaches the region. */
static void works(int i)
{
	uint64_t was = base[0], got = 0;

	turn++;
	base[SIZE / 16] = turn;
	EXPECT(tell(i, 'p', turn, NULL), 0);
	EXPECT(base[SIZE / 8 - 1], turn);
	EXPECT(tell(i, 'a', 3, &got), 0);
	EXPECT(got, was);
	EXPECT(base[0], was + 3);
	EXPECT(tell(i, 'g', 0, &got), 0);
	EXPECT(got, turn);
}

static void is_refused(int i)
{
	uint64_t was = base[0];

	EXPECT(tell(i, 'p', 1, NULL), -SLMPM_EACCES);
	EXPECT(tell(i, 'a', 1, NULL), -SLMPM_EACCES);
	EXPECT(tell(i, 'g', 1, NULL), -SLMPM_EACCES);
	EXPECT(base[0], was);
}

static void path_is(int i, const char *path)
{
	char got[8] = "";

	EXPECT(tell(i, 'q', 0, (uint64_t *)(void *)got), 0);
	CHECK(!strcmp(got, path), "peer %d reaches it by %s", i, got);
}

static void begin(bool allocated)
{
	void *at;

	if (allocated) {
		OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &at));
	} else {
		at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(at != MAP_FAILED, "memory");
		OK(slmpm_mem_register(ctx, at, SIZE, SLMPM_READ_WRITE, &mem));
	}
	base = at;
	for (int i = 0; i < 2; i++) {
		peers[i] = actor_spawn("peer", NULL, NULL);
		way_give(mem, peers[i], KEY);
		works(i);
	}
}

static void end(bool allocated)
{
	for (int i = 0; i < 2; i++) {
		OK(slmpm_close(peers[i], PATIENCE));
		actor_join(peers[i], 0);
	}
	OK(slmpm_mem_destroy(mem, PATIENCE));
	if (!allocated)
		munmap(base, SIZE);
}

static void signal_to(int i, int number)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peers[i], &info));
	OK(kill(info.pid, number));
	if (number == SIGSTOP)
		actor_await_state(info.pid, "T");
}

static int take_back(int i, int timeout_ms)
{
	int64_t began = actor_now_ms(), took;
	int rc = slmpm_mem_revoke(mem, peers[i], timeout_ms);

	took = actor_now_ms() - began;
	/* A step of fresh pages and one of copies, and the pages given back. */
	CHECK(took <= timeout_ms + 400 * actor_slow(), "%d ms took %lld", timeout_ms,
	      (long long)took);
	return rc;
}

/* Without time for a large region's pages, with time for them but not for the copy, with enough. */
static void too_large_for_its_time(void)
{
	int rc, timeout_ms = 0, late = 0;

	begin(true);
	rc = take_back(0, 0);
	EXPECT(rc, -SLMPM_EAGAIN);
	CHECK(strstr(slmpm_error_detail(), "nothing is revoked"), "%s", slmpm_error_detail());
	path_is(0, way_mapped());
	path_is(1, way_mapped());
	EXPECT(way_acceptors(mem), 2);
	for (; rc; timeout_ms += 1 + timeout_ms / 4, late++) {
		works(0);
		works(1);
		rc = take_back(0, timeout_ms);
		CHECK(!rc || rc == (timeout_ms ? -SLMPM_ETIMEOUT : -SLMPM_EAGAIN), "%d: %s", rc,
		      slmpm_error_detail());
	}
	printf("    revoked by call %d, with %d ms\n", late + 1, timeout_ms);
	is_refused(0);
	works(1);
	EXPECT(way_acceptors(mem), 1);
	end(true);
}

/* Another one, who has the pages, does not answer: he is revoked as well, in time for the copy. */
static void beside_one_who_is_stopped(void)
{
	int rc, timeout_ms = 500;

	begin(true);
	signal_to(1, SIGSTOP);
	while ((rc = take_back(0, timeout_ms)) == -SLMPM_ETIMEOUT) /* a slow machine */
		timeout_ms *= 2;
	OK(rc);
	signal_to(1, SIGCONT);
	is_refused(0);
	is_refused(1);
	end(true);
}

/* Own memory: he himself does not let go. */
static void of_own_memory(void)
{
	char path[8] = "";

	begin(false);
	EXPECT(tell(0, 'q', 0, (uint64_t *)(void *)path), 0);
	signal_to(0, SIGSTOP);
	EXPECT(take_back(0, SOON), !strcmp(path, "attach") ? -SLMPM_ETIMEOUT : 0);
	signal_to(0, SIGCONT);
	if (!strcmp(path, "attach")) {
		works(0);
		works(1);
		path_is(1, "attach");
		OK(take_back(0, PATIENCE));
	}
	is_refused(0);
	works(1);
	end(false);
}

static int body(void *arg)
{
	(void)arg;
	OK(slmpm_default(&ctx));
	too_large_for_its_time();
	beside_one_who_is_stopped();
	of_own_memory();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"peer", peer}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	if (!way_maps()) {
		printf("nobody maps anything over this fabric: nothing is copied or waited for\n");
		return 77;
	}
	return child_run(body, NULL, 60 * (unsigned)actor_slow());
}
