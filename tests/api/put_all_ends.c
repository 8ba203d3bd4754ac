/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* timeout: 150 */
/*
 * One put to many while all applications sleep; and while a target, or the origin, is killed: at
 * the request, in the middle of the bytes, when it has them. Those that live have all of it or
 * none, and the origin names the dead one.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm_deposit.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/settings.h"

#define SPACE 3
#define LEN   (3 << 20)
#define SEED  11

static unsigned char *memory;
static _Atomic int *ended; /* of all members */

static void set_space(const struct crew *c)
{
	memory = calloc(1, LEN);
	CHECK(memory, "no memory");
	OK(slmpm_group_space(c->group[0], SPACE, memory, LEN));
}

static struct slmpm_put_spec put_of(const unsigned char *from, uint32_t flags)
{
	return (struct slmpm_put_spec){.size = sizeof(struct slmpm_put_spec),
				       .flags = flags,
				       .space = SPACE,
				       .len = LEN,
				       .from = from};
}

static unsigned char *filled(void)
{
	unsigned char *from = malloc(LEN);

	CHECK(from, "no memory");
	actor_fill(from, SEED, LEN);
	return from;
}

/* ---- all asleep ------------------------------------------------------------------------------ */

static void await_ended(int n)
{
	const int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(ended) < n && actor_now_ms() < end)
		usleep(1000);
	CHECK(atomic_load(ended) >= n, "%d have ended, of %d", atomic_load(ended), n);
}

/* No call of the library's, from the beginning to the end. */
static void asleep(const struct crew *c, int rank)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	const int64_t end = actor_now_ms() + PATIENCE;
	struct slmpm_done done;
	slmpm_req req;

	set_space(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 1) {
		unsigned char *from = filled();
		struct slmpm_put_spec put = put_of(from, *(const uint32_t *)c->arg);

		OK(slmpm_put_all(c->group[0], &put, &how, &req));
		await_ended(c->members - 1);
		usleep(50000);
		EXPECT(slmpm_test(&req, &done), 1);
		CHECK(done.status == 0, "status %d", done.status);
		atomic_store(ended, c->members);
	} else {
		while (!actor_filled(memory, SEED, LEN) && actor_now_ms() < end)
			usleep(2000);
		CHECK(actor_filled(memory, SEED, LEN), "not all has come");
		atomic_fetch_add(ended, 1);
		await_ended(c->members);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- one is late ----------------------------------------------------------------------------- */

struct lateness {
	uint32_t flags;
	bool amid; /* the bytes: else it does not even answer */
	uint64_t apart;
};

/* Rank 2 computes, and makes no progress: of those of the line that wait for it none is named. */
static void be_late(const struct crew *c, int rank)
{
	const struct lateness *l = c->arg;
	const struct slmpm_how how = {.size = sizeof(how),
				      .timeout_ms = (l->amid ? 500 : 100) * actor_slow()};

	set_space(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 0) {
		unsigned char *from = filled();
		const struct slmpm_put_spec put = put_of(from, l->flags);

		memset(from, 1, LEN);
		REFUSED(slmpm_put_all(c->group[0], &put, &how, NULL), SLMPM_ETIMEOUT,
			"nothing yet from rank 2");
		CHECK(!l->amid == !strstr(slmpm_error_detail(), "in doubt: "), "%s",
		      slmpm_error_detail());
		EXPECT(circle_query(c->group[0]).status, 0);
		atomic_store(ended, 1);
	} else if (rank == 2) {
		while (l->amid && !*(volatile unsigned char *)memory)
			(void)slmpm_progress(c->ctx);
		await_ended(1);
	} else {
		while (!atomic_load(ended))
			(void)slmpm_progress(c->ctx);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

static void each_late(void)
{
	static const struct lateness all[] = {
		{SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE, true, 0},
		{SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE, false, 0},
		{SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE, false, 0xff}};
	struct crew c = {.members = 4, .groups = 1, .body = be_late};

	for (int i = 0; i < 3; i++) {
		atomic_store(ended, 0);
		c.arg = &all[i];
		c.apart = all[i].apart;
		crew_run(&c, 20);
	}
}

/* ---- deaths ---------------------------------------------------------------------------------- */

enum when { AT_REQUEST, IN_THE_MIDDLE, AT_THE_END, WHENS };

struct scene {
	enum when when;
	uint32_t flags;
	int origin, victim;
};

static const struct scene *scene;

static int die_at_request(struct slmpm_deposit *d, char text[SLMPM_REFUSAL], void *arg)
{
	(void)d;
	(void)text;
	(void)arg;
	raise(SIGKILL);
	return 0;
}

static void die_at_the_end(const struct slmpm_deposit *d, int status, void *arg)
{
	(void)d;
	(void)status;
	(void)arg;
	raise(SIGKILL);
}

static void be_killed(const struct crew *c)
{
	struct slmpm_deposits how = {.size = sizeof(how)};

	if (scene->when == AT_REQUEST)
		how.prepare = die_at_request;
	if (scene->when == AT_THE_END)
		how.done = die_at_the_end;
	OK(slmpm_group_deposits(c->group[0], &how));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	for (;;) {
		(void)slmpm_progress(c->ctx);
		if (scene->when == IN_THE_MIDDLE && memory[LEN / 4])
			raise(SIGKILL);
	}
}

/* Until all that live are through: whoever leaves breaks the group of the others. */
static void stay(const struct crew *c)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	unsigned times = 0;

	atomic_fetch_add(ended, 1);
	while (atomic_load(ended) < c->members - 1 && actor_now_ms() < end)
		if (!slmpm_progress(c->ctx))
			actor_idle(c->ctx, &times);
	CHECK(atomic_load(ended) >= c->members - 1, "%d have ended", atomic_load(ended));
}

static void is_whole(bool whole)
{
	for (int i = 0; !whole && i < LEN; i++)
		CHECK(!memory[i], "byte %d has come", i);
	CHECK(!whole || actor_filled(memory, SEED, LEN), "not all has come");
}

static void target(const struct crew *c)
{
	const bool none = scene->when == AT_REQUEST && !(scene->flags & SLMPM_PUT_ALL_ANYWAY);
	struct slmpm_deposits how = {.size = sizeof(how)};
	struct slmpm_done done;

	OK(slmpm_cq_create(c->ctx, &how.cq));
	OK(slmpm_group_deposits(c->group[0], &how));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (scene->victim == scene->origin) {
		EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == -SLMPM_EDEAD || done.status == -SLMPM_ECLOSED ||
			      (done.status == 0 && scene->when == IN_THE_MIDDLE),
		      "status %d", done.status);
		if (done.status == 0)
			is_whole(true);
	} else if (slmpm_cq_wait(how.cq, &done, 1, none ? 1000 : PATIENCE) == 1) {
		CHECK(done.status == (none ? -SLMPM_ECANCELED : 0), "status %d", done.status);
		is_whole(!none);
	} else {
		CHECK(none, "nothing has come: %s", slmpm_error_detail());
		is_whole(false);
	}
	stay(c);
	EXPECT(slmpm_cq_poll(how.cq, &done, 1), 0);
}

static int agreed;

static int all_have_agreed(void *arg)
{
	(void)arg;
	if (scene->when == AT_REQUEST)
		raise(SIGKILL);
	agreed = 1;
	return 0;
}

static void die_as_origin(const struct crew *c, struct slmpm_put_spec *p)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	slmpm_req req;

	p->ready = all_have_agreed;
	OK(slmpm_put_all(c->group[0], p, &how, &req));
	while (!agreed)
		(void)slmpm_progress(c->ctx);
	for (int i = 0; i < 20; i++)
		(void)slmpm_progress(c->ctx);
	raise(SIGKILL);
}

static void put(const struct crew *c)
{
	unsigned char *from = filled();
	struct slmpm_put_spec p = put_of(from, scene->flags);
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	int64_t began;
	int rc;

	OK(slmpm_barrier(c->group[0], PATIENCE));
	began = actor_now_ms();
	if (scene->victim == scene->origin)
		die_as_origin(c, &p);
	rc = slmpm_put_all(c->group[0], &p, &how, NULL);
	/* At the end it has perhaps said that it has all. */
	CHECK(rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED || (rc == 0 && scene->when == AT_THE_END),
	      "%d: %s", rc, slmpm_error_detail());
	CHECK(rc == 0 || strstr(slmpm_error_detail(), scene->victim == 2 ? "rank 2" : "rank 3"),
	      "%s", slmpm_error_detail());
	CHECK(actor_now_ms() - began < 5000 * actor_slow(), "it took long");
	stay(c);
}

/* Those that live go on, by other ranks. */
static void again(const struct crew *c)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_group_info info = {.size = sizeof(info)};
	unsigned char *from = filled();
	struct slmpm_put_spec p = put_of(from, scene->flags);

	circle_breaks(c->group[0], -SLMPM_EDEAD, scene->victim);
	OK(slmpm_group_shrink(c->group[0], PATIENCE));
	OK(slmpm_group_query(c->group[0], &info));
	memset(memory, 0, LEN);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (info.rank == 2)
		OK(slmpm_put_all(c->group[0], &p, &how, NULL));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	is_whole(info.rank != 2);
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

static void dies(const struct crew *c, int rank)
{
	scene = c->arg;
	set_space(c);
	if (rank == scene->origin)
		put(c);
	else if (rank == scene->victim)
		be_killed(c);
	else
		target(c);
	again(c);
}

static void play(const struct scene *s, int members)
{
	struct crew c = {.members = members,
			 .groups = 1,
			 .body = dies,
			 .arg = s,
			 .victim = s->victim,
			 .code = -SIGKILL};

	atomic_store(ended, 0);
	crew_run(&c, 60);
}

static int all_asleep(void *unused)
{
	static const uint32_t forms[] = {SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE,
					 SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_DIRECT};

	(void)unused;
	for (int i = 0; i < 4; i++) {
		struct crew c = {.members = i < 2 ? 4 : 2,
				 .groups = 1,
				 .body = asleep,
				 .arg = &forms[i % 2]};

		atomic_store(ended, 0);
		crew_run(&c, 60);
	}
	return 0;
}

int main(void)
{
	static const uint32_t ways[] = {
		SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE,
		SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE,
		SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE | SLMPM_PUT_ALL_ANYWAY,
		SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_DIRECT | SLMPM_PUT_ALL_ANYWAY};

	ended = child_common(sizeof(*ended));
	each_late();
	for (int when = 0; when < WHENS; when++)
		for (int i = 0; i < 4; i++) {
			/* The first of the line; in its middle; the last but one of that of 4. */
			struct scene s = {(enum when)when, ways[i], 1, 2};

			play(&s, 5);
			s.victim = 3;
			play(&s, 6);
			play(&s, 4);
			s.origin = 3;
			if (when < AT_THE_END)
				play(&s, 5);
		}
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("asleep", all_asleep, NULL);
	return 0;
}
