/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process is killed after instructions all over what the thread of its engine does for its puts
 * and gets. What it had been told was done is there, the rest in part and nothing beside it; the
 * end is definite and known soon; another peer goes on; nothing stays held. A fault planted in the
 * victim must be noticed. SLMPM_TEST_SWEEP=all takes every instruction.
 */
#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/settings.h"
#include "tests/lib/sweep.h"

#define BYTES  300 /* of an operation, in two spans */
#define HALF   130
#define ROUNDS 2
#define KILLS  60 /* where not all of them */
#define GUARD  0x5a

enum { KEY = 1, ECHO };

struct block { /* the region, which the victim maps */
	unsigned char before[64];
	unsigned char first[HALF], between[64], second[BYTES - HALF]; /* what is put */
	unsigned char given[BYTES];
	unsigned char behind[64];
};

static struct common { /* by a way that SLMPM knows nothing of */
	_Atomic uint64_t done;
	_Atomic pid_t engine; /* the thread */
	_Atomic bool wrong;   /* something else was got */
} * common;

static unsigned char patterns[ROUNDS + 2][BYTES], given[BYTES];
static slmpm_ctx ctx;
static slmpm_listener listener;
static char url[64];
static slmpm_peer victim, bystander;
static slmpm_mem mem;
static struct block *here;

static bool is_end(int64_t rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

static slmpm_rmem open_next(slmpm_peer peer)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(peer, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	return rmem;
}

static void give(slmpm_peer peer)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(peer, KEY, &key, sizeof(key), PATIENCE));
}

/* ---- the victim ------------------------------------------------------------------------------ */

static struct {
	slmpm_peer host;
	slmpm_rmem rmem;
	slmpm_ctx ctx;
} asker;

static const struct slmpm_span halves[2] = {
	{offsetof(struct block, first), HALF},
	{offsetof(struct block, second), BYTES - HALF},
};

/* Puts pattern N, or gets what is given; the engine's thread does it, whoever waits might as well:
 * nobody does before it is done. */
static void move(uint64_t n, unsigned char *got)
{
	static unsigned char there[BYTES];
	struct slmpm_iov piece = {n ? patterns[n] : got, BYTES};
	struct slmpm_done done;
	slmpm_req req;

	if (n)
		OK(slmpm_putv(asker.rmem, halves, 2, &piece, 1, NULL, &req));
	else
		OK(slmpm_get(asker.rmem, offsetof(struct block, given), got, BYTES, NULL, &req));
	do {
		struct slmpm_iov inspect = {there, BYTES};

		(void)sched_yield();
		if (n)
			OK(slmpm_getv(asker.rmem, halves, 2, &inspect, 1, NULL, NULL));
	} while (n ? memcmp(there, patterns[n], BYTES) != 0 :
		     ((volatile unsigned char *)got)[BYTES - 1] != given[BYTES - 1]);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, 0);
}

static pid_t find_engine(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	pid_t tid = 0;

	CHECK(dir, "no threads");
	while ((d = readdir(dir)))
		if (atoi(d->d_name) && atoi(d->d_name) != getpid())
			tid = atoi(d->d_name);
	closedir(dir);
	CHECK(tid, "the engine has no thread");
	return tid;
}

static void come(void *arg)
{
	unsigned char got[BYTES] = {0};

	(void)arg;
	OK(slmpm_open(&asker.ctx, NULL));
	OK(slmpm_connect(&asker.host, asker.ctx, url, PATIENCE));
	asker.rmem = open_next(asker.host);
	move(0, got); /* which starts the thread */
	atomic_store(&common->engine, find_engine());
}

static void count(void *arg)
{
	const bool *early = arg; /* the planted fault */

	for (uint64_t n = 1; n <= ROUNDS; n++) {
		unsigned char got[BYTES] = {0};

		if (*early)
			atomic_store(&common->done, n);
		move(n, NULL);
		atomic_store(&common->done, n);
		move(0, got);
		if (memcmp(got, given, BYTES) != 0)
			atomic_store(&common->wrong, true);
	}
}

/* ---- the survivor ---------------------------------------------------------------------------- */

static void let_come(void *arg)
{
	(void)arg;
	OK(slmpm_accept(listener, &victim, PATIENCE));
	give(victim);
}

static pid_t await_engine(void *arg)
{
	int64_t until = actor_now_ms() + PATIENCE;

	(void)arg;
	while (!atomic_load(&common->engine)) {
		CHECK(actor_now_ms() < until, "the engine has no thread");
		(void)slmpm_progress(ctx);
		(void)sched_yield();
	}
	return atomic_load(&common->engine);
}

static void serve(void *arg)
{
	(void)arg;
	(void)slmpm_progress(ctx);
}

static void reset(void)
{
	if (victim.id) /* all steps were counted */
		OK(slmpm_close(victim, PATIENCE));
	victim.id = 0;
	atomic_store(&common->done, 0);
	atomic_store(&common->engine, 0);
	memset(here, GUARD, sizeof(*here));
	memcpy(here->given, given, BYTES);
	memcpy(here->first, patterns[0], HALF);
	memcpy(here->second, patterns[0] + HALF, BYTES - HALF);
}

/* Each byte is the one of pattern N, or of the next. */
static bool is_between(uint64_t n)
{
	for (int i = 0; i < BYTES; i++) {
		unsigned char is = i < HALF ? here->first[i] : here->second[i - HALF];

		if (is != patterns[n][i] && is != patterns[n + 1][i])
			return false;
	}
	return true;
}

static bool is_guarded(void)
{
	for (unsigned i = 0; i < 64; i++)
		if (here->before[i] != GUARD || here->between[i] != GUARD ||
		    here->behind[i] != GUARD)
			return false;
	return !memcmp(here->given, given, BYTES);
}

static const char *check(long *progress)
{
	uint64_t n = atomic_load(&common->done);
	int64_t begin = actor_now_ms();
	char byte;

	*progress = (long)n;
	if (!is_end(slmpm_recv(victim, ECHO, &byte, 1, NULL, PATIENCE)) ||
	    !is_end(slmpm_send(victim, ECHO, NULL, 0, PATIENCE)))
		return "its end is not told";
	if (actor_now_ms() - begin > 500 * actor_slow())
		return "its end was known late";
	OK(slmpm_close(victim, PATIENCE));
	victim.id = 0;
	if (atomic_load(&common->wrong))
		return "what was got is not what is there";
	if (!is_between(n))
		return "a put that was done is not whole";
	if (!is_guarded())
		return "something else was written";
	if (slmpm_send(bystander, ECHO, NULL, 0, PATIENCE) != 0 ||
	    slmpm_recv(bystander, ECHO, NULL, 0, NULL, PATIENCE) != 0)
		return "another peer is cut off";
	return NULL;
}

static int stand_by(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_peer host;
	int64_t n;

	(void)arg;
	OK(slmpm_connect(&host, none, url, PATIENCE));
	while ((n = slmpm_recv(host, ECHO, NULL, 0, NULL, -1)) == 0)
		OK(slmpm_send(host, ECHO, NULL, 0, PATIENCE));
	return is_end(n) ? 0 : 1;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static long sweep(const char *name, bool *early)
{
	struct sweep s = {
		.name = name,
		.unit = STEP_INSTRUCTION,
		.body = {count, early, come, let_come, serve, await_engine},
		.reset = reset,
		.check = check,
		.planted = *early,
		.loose = true,
		.most = *early ? KILLS / 4 : KILLS,
	};

	return sweep_run(&s);
}

static int scenes(void *unused)
{
	static bool wrong = true, right = false;
	struct holdings before;
	void *base;
	long faults;
	pid_t pid;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	OK(slmpm_mem_alloc(ctx, sizeof(*here), SLMPM_READ_WRITE, &mem, &base));
	here = base;
	pid = child_start(stand_by, NULL, 600);
	OK(slmpm_accept(listener, &bystander, PATIENCE));
	before = holdings_now();
	(void)sweep("done early", &wrong);
	faults = sweep("moved by a thread", &right);
	reset();
	holdings_expect(before, "the victims");
	OK(slmpm_close(bystander, PATIENCE));
	CHECK(child_wait(pid) == 0, "the bystander failed");
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(faults == 0, "%ld kills left a wronged survivor", faults);
	return 0;
}

int main(void)
{
	sweep_begin(STEP_INSTRUCTION);
	common = child_common(sizeof(*common));
	snprintf(url, sizeof(url), "shm:kill-sweep-engine-%d", (int)getpid());
	actor_fill(given, 77, BYTES);
	for (uint64_t n = 0; n < ROUNDS + 2; n++)
		actor_fill(patterns[n], n * 1000, BYTES);
	settings_one_link("shm"); /* an engine has nothing to do elsewhere */
	setenv("SLMPM_ENGINE", "thread", 1);
	setenv("SLMPM_ENGINE_MIN", "1", 1);
	return child_run(scenes, NULL, sweep_seconds(50)) ? 1 : 0;
}
