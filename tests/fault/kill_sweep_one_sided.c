/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process is killed after instructions all over its puts, gets and atomic operations, and over
 * its serving of them, on each way that they can go. Of those that were killed the memory holds
 * what was acknowledged and a part of what is in doubt; the end is definite and known soon; another
 * peer goes on. Faults planted in the victim must be noticed. SLMPM_TEST_SWEEP=all takes every
 * instruction.
 */
#include <stdatomic.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/sweep.h"
#include "tests/lib/way.h"

#define BYTES  300 /* of a put or get that is no word */
#define ROUNDS 2   /* of who asks */
#define ASKED  3   /* operations of a kind under way at who is asked */
#define KILLS  60  /* of a scene, where not all of them */

enum { KEY = 1, ECHO };

struct words { /* the region */
	uint64_t sum, acknowledged;
	uint64_t other; /* of the bystander */
	uint64_t guard[2];
	unsigned char block[ASKED][BYTES];
	uint64_t rear;
	unsigned char given[BYTES]; /* what is got */
};

#define AT(member) offsetof(struct words, member)
#define GUARD      UINT64_C(0x5afe5afe5afe5afe)

static slmpm_ctx ctx;
static slmpm_listener listener;
static char url[64];
static slmpm_peer victim, bystander;
static slmpm_mem mem;
static struct words *here; /* what is reached while who asks is killed */
static uint64_t turn;      /* of the bystander */

/* ---- both sides ------------------------------------------------------------------------------ */

/* What is put: [0] lies there before. */
static unsigned char patterns[ROUNDS + 2][BYTES], given[BYTES];

static void lay_out(struct words *w)
{
	memset(w, 0, sizeof(*w));
	w->guard[0] = w->guard[1] = w->rear = GUARD;
	memcpy(w->given, given, BYTES);
}

/* Each byte is the one of pattern N, or of pattern M. */
static bool is_between(const unsigned char *block, uint64_t n, uint64_t m)
{
	for (int i = 0; i < BYTES; i++)
		if (block[i] != patterns[n][i] && block[i] != patterns[m][i])
			return false;
	return true;
}

static bool is_guarded(const struct words *w)
{
	return w->guard[0] == GUARD && w->guard[1] == GUARD && w->rear == GUARD &&
	       !memcmp(w->given, given, BYTES);
}

static bool is_end(int64_t rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

/* Adds and says so whenever it is asked to. */
static int stand_by(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_rmem rmem;
	slmpm_peer host;
	int64_t n;
	char byte;

	(void)arg;
	OK(slmpm_connect(&host, none, url, PATIENCE));
	rmem = way_open(host, KEY);
	while ((n = slmpm_recv(host, ECHO, &byte, 1, NULL, -1)) == 0) {
		OK(slmpm_atomic(rmem, AT(other), SLMPM_FETCH_ADD, 64, 1, 0, NULL, NULL, NULL));
		OK(slmpm_flush(host, PATIENCE));
		OK(slmpm_send(host, ECHO, NULL, 0, PATIENCE));
	}
	return is_end(n) ? 0 : 1;
}

static const char *ask_bystander(void)
{
	if (slmpm_send(bystander, ECHO, NULL, 0, PATIENCE) != 0 ||
	    slmpm_recv(bystander, ECHO, NULL, 0, NULL, PATIENCE) != 0)
		return "another peer is cut off";
	return here->other == ++turn ? NULL : "another peer's operation got lost";
}

/* What every survivor finds: the end, soon; nobody else harmed. */
static const char *see_the_end(void)
{
	int64_t begin = actor_now_ms();
	char byte;

	if (!is_end(slmpm_recv(victim, ECHO, &byte, 1, NULL, PATIENCE)) ||
	    !is_end(slmpm_send(victim, ECHO, NULL, 0, PATIENCE)))
		return "its end is not told";
	if (actor_now_ms() - begin > 500 * actor_slow())
		return "its end was known late";
	OK(slmpm_close(victim, PATIENCE));
	return ask_bystander();
}

static void accept_victim(void)
{
	OK(slmpm_accept(listener, &victim, PATIENCE));
}

static void serve(void *arg)
{
	(void)arg;
	(void)slmpm_progress(ctx);
}

/* ---- who asks is killed ---------------------------------------------------------------------- */

static struct {
	slmpm_rmem rmem;
	slmpm_peer host;
} asker;

static void come(void *arg)
{
	slmpm_ctx none = {0};

	(void)arg;
	OK(slmpm_connect(&asker.host, none, url, PATIENCE));
	asker.rmem = way_open(asker.host, KEY);
	way_check(asker.rmem);
}

static void let_come(void *arg)
{
	(void)arg;
	accept_victim();
	way_give(mem, victim, KEY);
}

static void acknowledge(uint64_t n)
{
	OK(slmpm_put(asker.rmem, AT(acknowledged), &n, sizeof(n), NULL, NULL));
}

static void count(void *arg)
{
	const bool *early = arg; /* the planted fault */
	unsigned char got[BYTES];
	uint64_t old;

	for (uint64_t n = 1; n <= ROUNDS; n++) {
		if (*early)
			acknowledge(n);
		OK(slmpm_atomic(asker.rmem, AT(sum), SLMPM_FETCH_ADD, 64, 1, 0, &old, NULL, NULL));
		EXPECT(old, n - 1);
		OK(slmpm_put(asker.rmem, AT(block), patterns[n], BYTES, NULL, NULL));
		acknowledge(n);
		OK(slmpm_get(asker.rmem, AT(given), got, BYTES, NULL, NULL));
		CHECK(!memcmp(got, given, BYTES), "what was got");
	}
	OK(slmpm_flush(asker.host, PATIENCE));
}

static void reset_asker(void)
{
	uint64_t other = here->other;

	lay_out(here);
	here->other = other;
}

static const char *check_asker(long *progress)
{
	const char *fault = see_the_end();
	uint64_t n = here->acknowledged;

	*progress = (long)n;
	if (fault)
		return fault;
	if (here->sum != n && here->sum != n + 1)
		return "the sum is neither what was acknowledged nor one more";
	if (!is_between(here->block[0], n, n + 1))
		return "an acknowledged put is not whole";
	return is_guarded(here) ? NULL : "something else was written";
}

/* ---- who is asked is killed ------------------------------------------------------------------ */

static struct {
	struct words *
		words; /* its region; shared with this test, by a way that SLMPM knows nothing of */
	_Atomic bool *through;
	slmpm_peer host;
	slmpm_ctx ctx;
	slmpm_rmem rmem;
	slmpm_req req[3][ASKED]; /* additions, puts, gets */
	uint64_t old[ASKED];
	unsigned char got[ASKED][BYTES];
	int status[3][ASKED]; /* 1: under way */
} asked;

static void offer(void *arg)
{
	slmpm_mem own;

	(void)arg;
	OK(slmpm_open(&asked.ctx, NULL));
	OK(slmpm_connect(&asked.host, asked.ctx, url, PATIENCE));
	OK(slmpm_mem_register(asked.ctx, asked.words, sizeof(struct words), SLMPM_READ_WRITE,
			      &own));
	way_give(own, asked.host, KEY);
}

static void ask(void *arg)
{
	struct slmpm_how remote = {.size = sizeof(remote), .flags = SLMPM_REMOTE};

	(void)arg;
	accept_victim();
	asked.rmem = way_open(victim, KEY);
	way_check(asked.rmem);
	for (int i = 0; i < ASKED; i++) {
		OK(slmpm_atomic(asked.rmem, AT(sum), SLMPM_FETCH_ADD, 64, 1, 0, &asked.old[i], NULL,
				&asked.req[0][i]));
		OK(slmpm_put(asked.rmem, AT(block) + (uint64_t)i * BYTES, patterns[1], BYTES,
			     &remote, &asked.req[1][i]));
		OK(slmpm_get(asked.rmem, AT(given), asked.got[i], BYTES, NULL, &asked.req[2][i]));
		for (int kind = 0; kind < 3; kind++)
			asked.status[kind][i] = 1;
	}
}

/* Those that have ended are told; true when all have. */
static bool gather(int timeout)
{
	struct slmpm_done done;
	bool all = true;

	for (int kind = 0; kind < 3; kind++)
		for (int i = 0; i < ASKED; i++) {
			if (asked.status[kind][i] != 1)
				continue;
			if (slmpm_wait(&asked.req[kind][i], 1, &done, timeout) == 0)
				asked.status[kind][i] = done.status;
			else
				all = false;
		}
	return all;
}

static void inspect(void *arg)
{
	serve(arg);
	if (gather(0))
		atomic_store(asked.through, true);
}

static void answer(void *arg)
{
	const bool *more = arg; /* the planted fault */

	if (*more)
		asked.words->sum += ASKED;
	while (!atomic_load(asked.through))
		(void)slmpm_progress(asked.ctx);
}

static void reset_asked(void)
{
	lay_out(asked.words);
	atomic_store(asked.through, false);
}

static const char *check_sum(void)
{
	uint64_t acknowledged = 0;

	for (int i = 0; i < ASKED; i++) {
		if (asked.status[0][i] != 0)
			continue;
		acknowledged++;
		if (asked.old[i] >= asked.words->sum)
			return "an addition that was acknowledged is not in the sum";
		for (int k = 0; k < i; k++)
			if (asked.status[0][k] == 0 && asked.old[k] == asked.old[i])
				return "two additions found the same";
	}
	return asked.words->sum >= acknowledged && asked.words->sum <= ASKED ?
		       NULL :
		       "the sum is less than was acknowledged, or more than was asked";
}

static const char *check_asked(long *progress)
{
	int64_t begin = actor_now_ms();
	const char *fault;

	*progress = 0;
	if (!gather(PATIENCE) || actor_now_ms() - begin > 500 * actor_slow())
		return "an operation has no end, or a late one";
	for (int i = 0; i < ASKED; i++) {
		for (int kind = 0; kind < 3; kind++)
			if (asked.status[kind][i] && !is_end(asked.status[kind][i]))
				return "an operation's end is not definite";
		if (!is_between(asked.words->block[i], asked.status[1][i] ? 0 : 1, 1))
			return "an acknowledged put is not whole";
		if (!asked.status[2][i] && memcmp(asked.got[i], given, BYTES) != 0)
			return "what was got is not what is there";
	}
	fault = see_the_end();
	if (!fault)
		fault = check_sum();
	if (!fault && !is_guarded(asked.words))
		fault = "something else was written";
	return fault;
}

/* ---- all scenes of a way --------------------------------------------------------------------- */

static long sweep(const char *what, struct step_body body, void (*reset)(void),
		  const char *(*check)(long *), bool planted)
{
	struct sweep s = {
		.unit = STEP_INSTRUCTION,
		.body = body,
		.reset = reset,
		.check = check,
		.planted = planted,
		.loose = true,
		.most = KILLS,
	};
	char name[96];

	snprintf(name, sizeof(name), "%s, %s", way_current()->name, what);
	s.name = name;
	return sweep_run(&s);
}

static long sweep_all(void)
{
	static bool wrong = true, right = false;
	struct step_body asking = {count, &right, come, let_come, serve, NULL};
	struct step_body serving = {answer, &right, offer, ask, inspect, NULL};
	const char *path = way_current()->path;
	long faults = sweep("asking", asking, reset_asker, check_asker, false);

	asking.arg = serving.arg = &wrong;
	if (!strcmp(path, "map"))
		(void)sweep("acknowledged early", asking, reset_asker, check_asker, true);
	if (way_is_direct())
		return faults; /* who is asked does nothing */
	if (!strcmp(path, "ring"))
		(void)sweep("one too many", serving, reset_asked, check_asked, true);
	serving.arg = &right;
	return faults + sweep("asked", serving, reset_asked, check_asked, false);
}

/* Those that differ in which instructions move the bytes. */
static bool is_another(const struct way *w)
{
	static const char *const names[] = {"mapped", "attached", "by requests",
					    "by active messages", "by tag"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(w->name, names[i]))
			return true;
	return false;
}

static int body(const struct way *w)
{
	long faults;
	pid_t pid;

	if (!is_another(w))
		return 0;
	asked.words = child_common(sizeof(struct words));
	asked.through = child_common(sizeof(*asked.through));
	snprintf(url, sizeof(url), "shm:kill-sweep-%d", (int)getpid());
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	here = (struct words *)(void *)way_region(ctx, sizeof(*here), SLMPM_READ_WRITE, &mem);
	lay_out(here);
	pid = child_start(stand_by, NULL, 60);
	OK(slmpm_accept(listener, &bystander, PATIENCE));
	way_give(mem, bystander, KEY);
	faults = sweep_all();
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
	actor_fill(given, 77, BYTES);
	for (uint64_t n = 1; n < ROUNDS + 2; n++)
		actor_fill(patterns[n], n * 1000, BYTES);
	return way_each(body, 50);
}
