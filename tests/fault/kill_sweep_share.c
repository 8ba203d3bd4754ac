/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process is killed after instructions all over its part in puts that both sides copy, as their
 * origin and as their target. A put that was done is there whole, whoever copied it, and nothing
 * beside it; the end is definite and known soon; another peer goes on; nothing stays held. Faults
 * planted in the victim must be noticed. SLMPM_TEST_SWEEP=all takes every instruction.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/settings.h"
#include "tests/lib/share_pair.h"
#include "tests/lib/sweep.h"

#define LENGTH (8 * SHARE_PAGE) /* each byte is a step */
#define PUTS   2
#define SIZE   ((PUTS + 1) * LENGTH)
#define AT     SHARE_PAGE /* of what is put; guards around it */
#define GUARD  0x5a
#define KILLS  24 /* of a scene, where not all of them */

enum { GO = 1, ECHO, ORDER, REPORT };

static struct common {               /* by a way that SLMPM knows nothing of */
	_Atomic uint64_t done;       /* puts that were acknowledged */
	_Atomic unsigned char first; /* byte of what has landed */
	_Atomic bool gone, through;
	_Atomic bool counted;    /* all steps, of a scene */
	_Atomic uint64_t shared; /* puts */
} * common;

static slmpm_ctx ctx;
static slmpm_listener listener;
static char url[64], other_url[64];
static slmpm_peer other; /* the bystander, and the origin that survives */
static unsigned char patterns[PUTS + 1][LENGTH];

static bool is_end(int64_t rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

/* ---- both sides ------------------------------------------------------------------------------ */

static void open_target(struct share_side *s, slmpm_ctx own, slmpm_peer peer)
{
	share_side_open(s, own, peer, SIZE);
	memset(s->landed, GUARD, SIZE);
	OK(slmpm_send(peer, GO, NULL, 0, PATIENCE));
}

static void open_origin(struct share_side *s, slmpm_ctx own, slmpm_peer peer)
{
	share_side_open(s, own, peer, SIZE);
	memcpy(s->from, patterns, SIZE);
	share_side_await(s, GO);
}

static void serve(const struct share_side *s)
{
	(void)slmpm_progress(s->ctx);
	atomic_store(&common->first, s->landed[AT]);
}

/* The target has taken its part, or will not any more. */
static bool has_taken(void *n)
{
	return atomic_load(&common->first) == patterns[*(uint64_t *)n][0] ||
	       atomic_load(&common->gone);
}

static int put_one(const struct share_side *s, uint64_t n)
{
	unsigned char *from = s->from + n * LENGTH;
	int rc;

	share_gate(from + LENGTH - SHARE_PAGE, has_taken, &n);
	rc = slmpm_put(s->to, AT, from, LENGTH, NULL, NULL);
	share_gate_open();
	return rc;
}

static void count_shared(const struct share_side *s, const struct slmpm_stats *before)
{
	struct slmpm_stats now;

	OK(slmpm_peer_stats(s->peer, &now, sizeof(now)));
	atomic_fetch_add(&common->shared, now.shared_puts - before->shared_puts);
}

/* Put N is there; or, UNDER WAY, each byte is of it or of the next. */
static const char *check_landed(const unsigned char *base, uint64_t n, bool in_flight)
{
	for (unsigned i = 0; i < SIZE; i++) {
		unsigned at = i - AT;
		unsigned char was = n && at < LENGTH ? patterns[n][at] : GUARD;

		if (base[i] == was)
			continue;
		if (at >= LENGTH)
			return "something else was written";
		if (!in_flight || n == PUTS || base[i] != patterns[n + 1][at])
			return "a put that was done is not whole";
	}
	return NULL;
}

static bool is_told_the_end(slmpm_peer peer)
{
	char byte;

	return is_end(slmpm_recv(peer, ECHO, &byte, 1, NULL, PATIENCE)) &&
	       is_end(slmpm_send(peer, ECHO, NULL, 0, PATIENCE));
}

static void leave(struct share_side *s)
{
	share_side_close(s);
	OK(slmpm_close(s->peer, PATIENCE));
}

static const char *ask_other(void)
{
	if (slmpm_send(other, ECHO, NULL, 0, PATIENCE) != 0 ||
	    slmpm_recv(other, ECHO, NULL, 0, NULL, PATIENCE) != 0)
		return "another peer is cut off";
	return NULL;
}

/* ---- the origin is killed -------------------------------------------------------------------- */

static struct share_side victim, here;
static bool met; /* and not yet left */

static void come(struct share_side *s, const char *to)
{
	slmpm_peer peer;
	slmpm_ctx own;

	OK(slmpm_open(&own, NULL));
	OK(slmpm_connect(&peer, own, to, PATIENCE));
	s->ctx = own;
	s->peer = peer;
}

static void come_to_put(void *arg)
{
	(void)arg;
	come(&victim, url);
	open_origin(&victim, victim.ctx, victim.peer);
}

static void let_put(void *arg)
{
	slmpm_peer peer;

	(void)arg;
	OK(slmpm_accept(listener, &peer, PATIENCE));
	open_target(&here, ctx, peer);
	met = true;
}

static void put_all(void *arg)
{
	const bool *early = arg; /* the planted fault */
	struct slmpm_stats before;

	OK(slmpm_peer_stats(victim.peer, &before, sizeof(before)));
	for (uint64_t n = 1; n <= PUTS; n++) {
		if (*early)
			atomic_store(&common->done, n);
		OK(put_one(&victim, n));
		atomic_store(&common->done, n);
	}
	count_shared(&victim, &before);
}

static void take(void *arg)
{
	(void)arg;
	serve(&here);
}

static const char *check_target(long *progress)
{
	uint64_t n = atomic_load(&common->done);
	int64_t begin = actor_now_ms();
	const char *fault = NULL;

	*progress = (long)n;
	if (!is_told_the_end(here.peer))
		fault = "its end is not told";
	else if (actor_now_ms() - begin > 500 * actor_slow())
		fault = "its end was known late";
	else
		fault = check_landed(here.landed, n, true);
	leave(&here);
	met = false;
	return fault ? fault : ask_other();
}

/* ---- the target is killed -------------------------------------------------------------------- */

static bool ordered; /* a report of the other's is to come */

static void come_to_take(void *arg)
{
	(void)arg;
	come(&victim, other_url);
	open_target(&victim, victim.ctx, victim.peer);
}

static void order(void *arg)
{
	(void)arg;
	OK(slmpm_send(other, ORDER, NULL, 0, PATIENCE));
	ordered = true;
}

/* Behind all puts there are as many passes as there were when each was a step. */
static bool is_late(void)
{
	static int64_t until;

	if (atomic_load(&common->counted) && !until)
		until = actor_now_ms() + 50;
	return actor_now_ms() >= until;
}

static void take_all(void *arg)
{
	const bool *spoils = arg; /* the planted fault */

	if (*spoils)
		victim.landed[0] = (unsigned char)~GUARD;
	while (!atomic_load(&common->through) || !is_late())
		serve(&victim);
}

static void inspect(void *arg)
{
	(void)arg;
	(void)slmpm_progress(ctx);
}

/* Of the origin that survives: what is wrong. */
enum { RIGHT, NO_END, NOT_TOLD, NOT_WHOLE };

static const char *await_report(void)
{
	static const char *const faults[] = {NULL, "a put has no definite end",
					     "the end is not told",
					     "a put that was done is not whole, or more"};
	uint32_t is = RIGHT;

	ordered = false;
	if (slmpm_recv(other, REPORT, &is, sizeof(is), NULL, PATIENCE) != sizeof(is))
		return "the origin has no end";
	return faults[is];
}

static const char *check_origin(long *progress)
{
	int64_t begin = actor_now_ms();
	const char *fault;

	*progress = 0;
	atomic_store(&common->counted, true);
	atomic_store(&common->gone, true);
	fault = await_report();
	if (!fault && actor_now_ms() - begin > 1000 * actor_slow())
		fault = "the end was known late";
	return fault ? fault : ask_other();
}

/* What is there when a put is done: read by the origin's mapping, whoever lives. */
static uint32_t put_and_look(const struct share_side *s)
{
	static unsigned char got[SIZE];
	struct slmpm_stats before;
	const char *fault = NULL;
	int rc = 0;

	OK(slmpm_peer_stats(s->peer, &before, sizeof(before)));
	for (uint64_t n = 1; n <= PUTS && rc == 0 && !fault; n++) {
		rc = put_one(s, n);
		if (rc == 0)
			rc = slmpm_get(s->to, 0, got, SIZE, NULL, NULL);
		if (rc == 0)
			fault = check_landed(got, n, false);
	}
	count_shared(s, &before);
	return fault ? NOT_WHOLE : rc == 0 || is_end(rc) ? RIGHT : NO_END;
}

/* One victim after the other. */
static void outlive(slmpm_ctx own, slmpm_listener at, slmpm_peer host)
{
	struct share_side s;
	slmpm_peer peer;
	uint32_t is;

	OK(slmpm_accept(at, &peer, PATIENCE));
	open_origin(&s, own, peer);
	is = put_and_look(&s);
	atomic_store(&common->through, true);
	if (!is && !is_told_the_end(peer))
		is = NOT_TOLD;
	leave(&s);
	OK(slmpm_send(host, REPORT, &is, sizeof(is), PATIENCE));
}

static int stand_by(void *arg)
{
	struct holdings before;
	slmpm_listener at;
	slmpm_peer host;
	slmpm_ctx own;
	int64_t n = 0;

	(void)arg;
	OK(slmpm_open(&own, NULL));
	OK(slmpm_listen(&at, own, other_url));
	atomic_store(&common->through, true);
	OK(slmpm_accept(at, &host, PATIENCE));
	before = holdings_now();
	while (!is_end(n)) {
		n = slmpm_recv(host, ECHO, NULL, 0, NULL, 1);
		if (n == 0)
			OK(slmpm_send(host, ECHO, NULL, 0, PATIENCE));
		else if (slmpm_recv(host, ORDER, NULL, 0, NULL, 0) == 0)
			outlive(own, at, host);
	}
	OK(slmpm_close(host, PATIENCE));
	holdings_expect(before, "targets that were killed");
	return 0;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void reset(void)
{
	if (ordered) /* all steps were counted, nobody was killed */
		(void)await_report();
	if (met)
		leave(&here);
	met = false;
	atomic_store(&common->done, 0);
	atomic_store(&common->first, 0);
	atomic_store(&common->gone, false);
	atomic_store(&common->through, false);
}

static long sweep(const char *name, struct step_body body, const char *(*check)(long *),
		  bool planted)
{
	struct sweep s = {
		.name = name,
		.unit = STEP_INSTRUCTION,
		.body = body,
		.reset = reset,
		.check = check,
		.planted = planted,
		.loose = true,
		.most = planted ? KILLS / 3 : KILLS,
	};
	long faults;

	atomic_store(&common->counted, false);
	atomic_store(&common->shared, 0);
	faults = sweep_run(&s);
	CHECK(atomic_load(&common->shared), "%s: nothing was shared", name);
	return faults;
}

static long sweep_all(void)
{
	static bool wrong = true, right = false;
	struct step_body putting = {put_all, &wrong, come_to_put, let_put, take, NULL};
	struct step_body taking = {take_all, &wrong, come_to_take, order, inspect, NULL};
	long faults;

	(void)sweep("done early", putting, check_target, true);
	(void)sweep("spoiled", taking, check_origin, true);
	putting.arg = taking.arg = &right;
	faults = sweep("putting", putting, check_target, false);
	return faults + sweep("put to", taking, check_origin, false);
}

static int scenes(void *unused)
{
	struct holdings before;
	long faults;
	pid_t pid;

	(void)unused;
	pid = child_start(stand_by, NULL, 600);
	while (!atomic_load(&common->through))
		(void)sched_yield();
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	OK(slmpm_connect(&other, ctx, other_url, PATIENCE));
	before = holdings_now();
	faults = sweep_all();
	holdings_expect(before, "origins that were killed");
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the bystander failed");
	CHECK(faults == 0, "%ld kills left a wronged survivor", faults);
	return 0;
}

int main(void)
{
	sweep_begin(STEP_INSTRUCTION);
	common = child_common(sizeof(*common));
	snprintf(url, sizeof(url), "shm:kill-sweep-share-%d", (int)getpid());
	snprintf(other_url, sizeof(other_url), "shm:kill-sweep-share-other-%d", (int)getpid());
	for (uint64_t n = 0; n <= PUTS; n++) {
		actor_fill(patterns[n], n * 1000, LENGTH);
		patterns[n][0] = (unsigned char)(n + 1);
	}
	settings_one_link("shm"); /* nothing is shared elsewhere */
	setenv("SLMPM_SHARE", "always", 1);
	setenv("SLMPM_SHARE_MIN", "32k", 1);
	setenv("SLMPM_WAIT", "spin", 1);
	return child_run(scenes, NULL, sweep_seconds(50)) ? 1 : 0;
}
