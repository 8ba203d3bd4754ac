/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a short conversation, either of which is killed at every system call. */
#include "tests/lib/kill_connect.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/links.h"
#include "tests/lib/sweep.h"

#define BOUND_MS 6000 /* no call of the survivor lasts longer, on a crowded machine, too */

static struct shared {
	_Atomic int listening; /* somebody is */
	_Atomic int killed;    /* the victim is no more */
	_Atomic int spoken;    /* conversations that came to their end */
	char url[400];         /* where somebody listens */
} * shared;

static const char *address; /* to listen at */
static long most;
static pid_t survivor;
static char answer[8];

static void pause_for(_Atomic int *flag)
{
	for (int i = 0; !*flag; i++) {
		CHECK(i < 10000, "no end to waiting");
		(void)poll(NULL, 0, 1);
	}
}

/* The call, which may not last. */
#define SOON(call)                                                                                 \
	__extension__({                                                                            \
		int64_t begin_ = actor_now_ms();                                                   \
		int64_t rc_ = (int64_t)(call);                                                     \
		CHECK(actor_now_ms() - begin_ < BOUND_MS, "%s was stuck", #call);                  \
		rc_;                                                                               \
	})

/* Where others find it; over TCP the port is any. */
static void listen_somewhere(slmpm_ctx ctx, slmpm_listener *listener)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_listen(listener, ctx, address));
	OK(slmpm_listener_query(*listener, &info));
	snprintf(shared->url, sizeof(shared->url), "%s%s%s", info.url, info.secret[0] ? "#" : "",
		 info.secret);
	shared->listening = 1;
}

static void pair_over_tcp(slmpm_ctx ctx, slmpm_peer *a, slmpm_peer *b)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	char url[400];

	OK(slmpm_listen(&listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	OK(slmpm_connect(a, ctx, url, PATIENCE));
	OK(slmpm_accept(listener, b, PATIENCE));
	OK(slmpm_unlisten(listener));
}

/* What a context opens once for all peers. */
static void open_ways(slmpm_ctx ctx)
{
	slmpm_peer a, b;

	if (strncmp(address, "tcp:", 4) == 0)
		pair_over_tcp(ctx, &a, &b);
	else
		actor_pair(ctx, &a, &b);
	links_warm(ctx, a, b);
}

static bool is_over(int64_t rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

/* Sockets linger, for a while, until the other end is closed, too. */
static void nothing_stays(slmpm_ctx ctx, struct holdings before, const char *when)
{
	int64_t until = actor_now_ms() + BOUND_MS;

	while (holdings_now().descriptors > before.descriptors && actor_now_ms() < until) {
		(void)poll(NULL, 0, 1);
		actor_nap(ctx);
	}
	holdings_expect(before, when);
}

/* ---- both sides of a conversation ---- */

static bool ask(slmpm_ctx ctx, const char *question)
{
	int64_t rc;
	slmpm_peer peer;

	rc = SOON(slmpm_connect(&peer, ctx, shared->url, BOUND_MS / 2));
	if (rc < 0) {
		CHECK(is_over(rc) || rc == -SLMPM_ENOENT || rc == -SLMPM_ETIMEOUT, "connect: %s",
		      slmpm_error_detail());
		return false;
	}
	rc = SOON(slmpm_send(peer, 1, question, strlen(question), PATIENCE));
	if (rc == 0)
		rc = slmpm_recv(peer, 2, answer, sizeof(answer), NULL, PATIENCE);
	CHECK(rc == 6 || is_over(rc), "speaking: %s", slmpm_error_detail());
	(void)SOON(slmpm_close(peer, BOUND_MS / 2));
	return rc == 6;
}

/* What was asked, or 0 when there was nobody to ask. */
static char reply(slmpm_listener listener)
{
	char question[8] = "";
	slmpm_peer peer;
	int64_t rc;

	if (slmpm_accept(listener, &peer, PATIENCE) < 0)
		return 0;
	rc = slmpm_recv(peer, 1, question, sizeof(question), NULL, PATIENCE);
	if (rc > 0)
		rc = SOON(slmpm_send(peer, 2, "answer", 6, PATIENCE));
	CHECK(rc == 0 || is_over(rc), "serving: %s", slmpm_error_detail());
	(void)SOON(slmpm_close(peer, BOUND_MS / 2));
	return question[0] ? question[0] : '?';
}

/* ---- the connecting one is killed ---- */

static void ask_once(void *arg)
{
	slmpm_ctx ctx;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	(void)ask(ctx, "victim");
	OK(slmpm_shut(ctx, PATIENCE));
}

static int serve(void *arg)
{
	struct holdings before;
	slmpm_listener listener;
	slmpm_ctx ctx;
	slmpm_peer nobody;
	char question;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	open_ways(ctx);
	listen_somewhere(ctx, &listener);
	before = holdings_now();
	while ((question = reply(listener)) != 'l') {
		CHECK(question, "nobody came");
		shared->spoken += question == 'v';
	}
	for (int i = 0; i < 2; i++) /* who never got through is noticed, then forgotten */
		EXPECT(slmpm_accept(listener, &nobody, 1), -SLMPM_ETIMEOUT);
	nothing_stays(ctx, before, "serving");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int ask_last(void *arg)
{
	slmpm_ctx ctx;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	CHECK(ask(ctx, "last"), "the survivor does not serve the next one");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* The count of steps is taken without a check. */
static void stop_survivor(void)
{
	if (!survivor)
		return;
	OK(kill(survivor, SIGKILL));
	(void)child_wait(survivor);
	survivor = 0;
}

static int join_survivor(void)
{
	int rc = child_wait(survivor);

	survivor = 0;
	return rc;
}

static void reset_listener(void)
{
	stop_survivor();
	memset(shared, 0, sizeof(*shared));
	survivor = child_start(serve, NULL, 20);
	pause_for(&shared->listening);
}

static const char *check_listener(long *progress)
{
	*progress = 0;
	if (child_run(ask_last, NULL, 20) != 0)
		return "the survivor does not serve";
	return join_survivor() == 0 ? NULL : "the survivor failed";
}

/* ---- the listening one is killed ---- */

static void serve_once(void *arg)
{
	slmpm_listener listener;
	slmpm_ctx ctx;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	listen_somewhere(ctx, &listener);
	(void)reply(listener);
	OK(slmpm_unlisten(listener));
	OK(slmpm_shut(ctx, PATIENCE));
}

static int keep_asking(void *arg)
{
	struct holdings before;
	slmpm_ctx ctx;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	open_ways(ctx);
	before = holdings_now();
	while (!(shared->listening && ask(ctx, "victim")) && !shared->killed)
		(void)poll(NULL, 0, 1);
	nothing_stays(ctx, before, "asking");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static void reset_asker(void)
{
	stop_survivor();
	memset(shared, 0, sizeof(*shared));
	survivor = child_start(keep_asking, NULL, 20);
}

/* And the place where it listened can be had again. */
static const char *check_asker(long *progress)
{
	slmpm_listener listener;
	slmpm_ctx ctx;
	int rc;

	*progress = 0;
	shared->killed = 1;
	if (join_survivor() != 0)
		return "the survivor failed";
	OK(slmpm_open(&ctx, NULL));
	rc = slmpm_listen(&listener, ctx, address);
	OK(slmpm_shut(ctx, PATIENCE));
	return rc == 0 ? NULL : slmpm_error_detail();
}

/* ---- the sweeps ---- */

static long sweep(const char *name, void (*run)(void *), void (*reset)(void),
		  const char *(*check)(long *))
{
	const struct sweep s = {
		.name = name,
		.unit = STEP_SYSTEM_CALL,
		.body = {.run = run},
		.most = most,
		.reset = reset,
		.check = check,
	};

	return sweep_run(&s);
}

void kill_connect_sweep(const char *at, long kills)
{
	long faults = 0;

	if (!step_possible(STEP_SYSTEM_CALL))
		test_skip("no ptrace on this machine");
	address = at;
	most = kills;
	setenv("SLMPM_WAIT", "block", 1); /* the same system calls each time */
	shared = child_common(sizeof(*shared));
	faults += sweep("connecting, asking, closing", ask_once, reset_listener, check_listener);
	stop_survivor();
	faults += sweep("listening, answering, closing", serve_once, reset_asker, check_asker);
	CHECK(faults == 0, "%ld kills left a wronged survivor", faults);
}
