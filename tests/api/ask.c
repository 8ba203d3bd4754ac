/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * A side without an engine leaves long puts and gets to the peer's: engines on one side, on the
 * other, on both and on none; processes that were started and that were connected; memory of the
 * caller's own, in a region that the peer has mapped, and out of the peer's reach; waited for and
 * not. And what the caller's processor has to do with it.
 */
#include "tests/api/ask.h"

#include <time.h>

#define SHORT ((size_t)512 << 10)

/* ---- all placements -------------------------------------------------------------------------- */

static void exercise(const struct cell *c)
{
	bool asks = open_regions() && c->there && !c->here;
	unsigned char *own_bytes = malloc(SIZE);
	uint64_t asked;

	CHECK(own_bytes, "no memory");
	for (int waits = 0; waits < 2; waits++) {
		both_ways(bytes, 10, waits, asks ? SLMPM_REASON_ENGINE : -1);
		/* To attach takes longer than to copy here: for a hint alone. */
		both_ways(own_bytes, 20, waits, !asks || c->attach ? -1 : SLMPM_REASON_UNREACHABLE);
		hinted = true;
		both_ways(own_bytes, 30, waits, asks && c->attach ? SLMPM_REASON_ENGINE : -1);
		hinted = false;
	}
	asked = actor_stats(peer).asked;
	operate(true, own_bytes, SHORT, true);
	EXPECT(actor_stats(peer).asked, asked); /* that is this side's own */
	free(own_bytes);
}

static int place(void *arg)
{
	meet(arg);
	exercise(arg);
	part(arg);
	return 0;
}

/* ---- the same the other way round: who was started, or has connected, asks ------------------- */

static int ask_spawned(slmpm_peer host, char **words)
{
	const char *w = words[0];
	const struct cell c = {.here = w[0] == 'y', .there = w[1] == 'y', .attach = w[2] == 'y'};

	OK(slmpm_default(&ctx));
	peer = host;
	exercise(&c);
	order(END, 0);
	return 0;
}

static int connect_and_ask(void *arg)
{
	const struct cell *c = arg;
	char url[256];

	setenv("SLMPM_ENGINE", c->here ? "thread" : "none", 1);
	CHECK(read(urls[0], url, sizeof(url)) == (ssize_t)sizeof(url), "no address");
	OK(slmpm_default(&ctx));
	OK(slmpm_connect(&peer, ctx, url, PATIENCE));
	exercise(c);
	order(END, 0);
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static void own_for_connected(const struct cell *c)
{
	char url[256] = "";
	slmpm_listener listener;
	slmpm_peer asker;

	CHECK(pipe(urls) == 0, "no pipe");
	guest = child_start(connect_and_ask, (void *)(uintptr_t)c, 60);
	snprintf(url, sizeof(url), "shm:slmpm-ask-%d", (int)getpid());
	OK(slmpm_listen(&listener, (slmpm_ctx){0}, url));
	CHECK(write(urls[1], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_accept(listener, &asker, PATIENCE));
	own(asker);
	OK(slmpm_close(asker, PATIENCE));
	EXPECT(child_wait(guest), 0);
}

static void own_for_spawned(const struct cell *c)
{
	char engine[] = "SLMPM_ENGINE=none",
	     *envp[] = {c->here ? (char *)(uintptr_t)ENGINE : engine, NULL};
	const struct slmpm_spawn_options options = {.size = sizeof(options), .envp = envp};
	const char what[] = {c->here ? 'y' : 'n', c->there ? 'y' : 'n', c->attach ? 'y' : 'n', 0};
	slmpm_peer asker = actor_spawn_with(&options, "ask", what, NULL);

	own(asker);
	actor_join(asker, 0);
}

static int place_turned(void *arg)
{
	const struct cell *c = arg;

	settle(c);
	setenv("SLMPM_ENGINE", c->there ? "thread" : "none", 1);
	if (c->connected)
		own_for_connected(c);
	else
		own_for_spawned(c);
	return 0;
}

/* ---- processor time -------------------------------------------------------------------------- */

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

/* Of a long one that the peer's engine does: on a busy machine it may be late, and it is copied. */
static uint64_t asked_ns(bool put, unsigned char *at)
{
	for (int i = 0; i < 20; i++) {
		uint64_t before = actor_stats(peer).asked, began = cpu_ns(), took;

		operate(put, at, LONG, true);
		took = cpu_ns() - began;
		if (actor_stats(peer).asked > before)
			return took;
		order(READY, 0); /* it is there, and has said that it is through */
	}
	CHECK(false, "it never comes");
	return 0;
}

/* Less than a tenth of what a copy takes. */
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
	hinted = c->attach;
	memset(from, 1, LONG);
	memset(to, 2, LONG);
	for (int i = 0; i < (actor_slow() > 1 ? 2 : 5); i++) {
		uint64_t began = cpu_ns();

		memcpy(to, from, LONG);
		copy = smaller(copy, cpu_ns() - began);
		put = smaller(put, asked_ns(true, from));
		get = smaller(get, asked_ns(false, to));
		from[i] = to[LONG - 1];
	}
	printf("processor time of %zu MiB: memcpy %llu us, put %llu us (%.1f %%), get %llu us (%.1f %%)\n",
	       LONG >> 20, (unsigned long long)copy / 1000, (unsigned long long)put / 1000,
	       100.0 * (double)put / (double)copy, (unsigned long long)get / 1000,
	       100.0 * (double)get / (double)copy);
	CHECK(put * 10 < copy && get * 10 < copy, "more than a tenth of a copy");
	free(from);
	free(to);
	part(c);
	return 0;
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
	static const struct actor roles[] = {
		{"own", own_spawned}, {"ask", ask_spawned}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_one_link(NULL);
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		run(cells[i].what, place, &cells[i]);
		run("the other way round", place_turned, &cells[i]);
	}
	run("processor time", cost, &cells[0]);
	run("processor time, connected", cost, &cells[1]);
	return 0;
}
