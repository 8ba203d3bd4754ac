/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * One put to many: 2 to 16 members, both forms of the request, all members as targets or some, in
 * order one after the other; by the table or by a function of the application; refused, with the
 * others told or served; with completions of each kind. Bytes along the line, and to each.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm_deposit.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define SPACE  7
#define OFFSET 24
#define LONG   300001
#define MARK   0x5a
#define ROUNDS 3

static unsigned char *memory;
static size_t room;

static void set_space(const struct crew *c, int rank)
{
	room = OFFSET + LONG + (size_t)rank * 8;
	memory = malloc(room);
	CHECK(memory, "no memory");
	memset(memory, MARK, room);
	OK(slmpm_group_space(c->group[0], SPACE, memory, room));
}

static bool is_marked(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (memory[i] != MARK)
			return false;
	return true;
}

/* All of it is there, and nothing beside it. */
static void has(uint64_t seed, size_t len)
{
	CHECK(actor_filled(memory + OFFSET, seed, len), "%zu bytes are others", len);
	CHECK(is_marked(0, OFFSET) && is_marked(OFFSET + len, room), "bytes beside them");
	memset(memory + OFFSET, MARK, len);
}

static struct slmpm_put_spec put_of(const unsigned char *from, size_t len, uint32_t flags)
{
	return (struct slmpm_put_spec){.size = sizeof(struct slmpm_put_spec),
				       .flags = flags,
				       .space = SPACE,
				       .imm = (uint32_t)len + 1,
				       .offset = OFFSET,
				       .len = len,
				       .from = from};
}

static const struct slmpm_how blocking = {.size = sizeof(blocking), .timeout_ms = PATIENCE};

static struct slmpm_done next_of(slmpm_cq cq)
{
	struct slmpm_done done = {.len = 0};

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	return done;
}

static slmpm_cq take_into_queue(const struct crew *c)
{
	struct slmpm_deposits how = {.size = sizeof(how)};

	OK(slmpm_cq_create(c->ctx, &how.cq));
	OK(slmpm_group_deposits(c->group[0], &how));
	return how.cq;
}

static void took(const struct slmpm_done *d, int status, int origin, size_t len)
{
	CHECK(d->op == SLMPM_OP_DEPOSIT && d->status == status && d->flags == (uint32_t)origin &&
		      d->stream == SPACE && d->cookie == OFFSET && d->len == len &&
		      d->imm == (uint32_t)len + 1,
	      "op %u, status %d, origin %u, space %u, %llu bytes at %llu, imm %u", d->op, d->status,
	      d->flags, d->stream, (unsigned long long)d->len, (unsigned long long)d->cookie,
	      d->imm);
}

/* ---- all, and some --------------------------------------------------------------------------- */

static const size_t lengths[] = {LONG, 1, 0, 8, 4096, 70000};

#define LENGTHS (int)(sizeof(lengths) / sizeof(lengths[0]))

static const uint32_t forms[] = {0,
				 SLMPM_PUT_ALL_BROADCAST,
				 SLMPM_PUT_ALL_FORWARD,
				 SLMPM_PUT_ALL_LINE,
				 SLMPM_PUT_ALL_DIRECT,
				 SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_DIRECT,
				 SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_DIRECT};

#define FORMS (int)(sizeof(forms) / sizeof(forms[0]))

/* Each member in turn, so that the line begins anywhere. */
static void all_do(const struct crew *c, int rank)
{
	unsigned char *from = malloc(LONG);
	slmpm_cq cq = take_into_queue(c);

	CHECK(from, "no memory");
	set_space(c, rank);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	for (int i = 0; i < LENGTHS * c->members; i++) {
		const size_t len = lengths[i % LENGTHS];
		const int origin = i % c->members;
		struct slmpm_put_spec put = put_of(from, len, forms[i % FORMS]);
		struct slmpm_done done;

		if (rank != origin) {
			done = next_of(cq);
			took(&done, 0, origin, len);
			has((uint64_t)i, len);
		} else {
			actor_fill(from, (uint64_t)i, len);
			OK(slmpm_put_all(c->group[0], &put, &blocking, NULL));
		}
		OK(slmpm_barrier(c->group[0], PATIENCE));
	}
	OK(slmpm_group_deposits(c->group[0], NULL));
	OK(slmpm_cq_destroy(cq));
	free(from);
}

/* Every second one, by any completion, several begun at once. */
static void some_do(const struct crew *c, int rank)
{
	static unsigned char from[ROUNDS][5000];
	int32_t odd[8] = {7, 3, 1, 5};
	slmpm_cq cq = take_into_queue(c), own;
	slmpm_ctr ctr;
	slmpm_req req;
	struct slmpm_done done;

	set_space(c, rank);
	OK(slmpm_cq_create(c->ctx, &own));
	OK(slmpm_ctr_create(c->ctx, &ctr));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 2) {
		struct slmpm_how how[ROUNDS] = {{.size = sizeof(how[0]), .cq = own, .cookie = 77},
						{.size = sizeof(how[0]), .ctr = ctr},
						{.size = sizeof(how[0])}};

		for (int i = 0; i < ROUNDS; i++) {
			struct slmpm_put_spec put = put_of(from[i], sizeof(from[i]), forms[i]);

			actor_fill(from[i], (uint64_t)i, sizeof(from[i]));
			put.rank = odd;
			put.count = 4;
			put.answers = i == 1 ? own : (slmpm_cq){0};
			OK(slmpm_put_all(c->group[0], &put, &how[i], i == 2 ? &req : NULL));
		}
		REFUSED(slmpm_group_destroy(c->group[0]), SLMPM_EBUSY, "under way");
		REFUSED(slmpm_cancel(req), SLMPM_EBUSY, "taken back");
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.op == SLMPM_OP_PUT_ALL && done.status == 0 && done.stream == SPACE &&
			      done.len == sizeof(from[0]),
		      "op %u, status %d", done.op, done.status);
		OK(slmpm_ctr_wait(ctr, 1, PATIENCE));
		done = next_of(own);
		CHECK(done.op == SLMPM_OP_PUT_ALL && done.cookie == 77, "op %u", done.op);
		for (int i = 0, seen = 0; i < 4; i++) {
			done = next_of(own);
			CHECK(done.op == SLMPM_OP_ANSWER && done.status == 0 && done.imm % 2 &&
				      !(seen & 1 << done.imm),
			      "op %u, status %d, rank %u", done.op, done.status, done.imm);
			seen |= 1 << done.imm;
		}
	} else if (rank % 2) {
		for (int i = 0; i < ROUNDS; i++) {
			done = next_of(cq);
			took(&done, 0, 2, sizeof(from[0]));
		}
		has(ROUNDS - 1, sizeof(from[0]));
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	CHECK(rank % 2 || is_marked(0, room), "rank %d has got something", rank);
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

/* ---- which form ------------------------------------------------------------------------------ */

#define LONGER (2 << 20)

static uint32_t form_of(const struct crew *c, const struct slmpm_put_spec *put)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	const uint32_t form = SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_FORWARD,
		       way = SLMPM_PUT_ALL_LINE | SLMPM_PUT_ALL_DIRECT;
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_put_all(c->group[0], put, &how, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0, "status %d", done.status);
	CHECK((done.flags & form) != 0 && (done.flags & form) != form && (done.flags & way) != 0 &&
		      (done.flags & way) != way && !(done.flags & ~(form | way)),
	      "flags 0x%x", done.flags);
	return done.flags;
}

/* What is asked for is done; else what is known at first, and later whatever has cost less. */
static void chosen(const struct crew *c, int rank)
{
	unsigned char *from = calloc(1, LONGER);
	struct slmpm_put_spec put = put_of(from, 8, 0);
	uint32_t got = 0;

	CHECK(from, "no memory");
	OK(slmpm_group_space(c->group[0], SPACE, from, LONGER));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	put.offset = 0;
	for (int i = 0; rank == 0 && i < FORMS; i++) {
		put.flags = forms[i];
		got = form_of(c, &put);
		CHECK((got & forms[i]) == forms[i], "flags 0x%x, not 0x%x", got, forms[i]);
	}
	put.flags = 0;
	put.len = LONGER;
	if (rank == 0)
		got = form_of(c, &put);
	CHECK(rank || got & SLMPM_PUT_ALL_LINE, "%d bytes to each", LONGER);
	put.len = 100;
	for (int i = 0; rank == 0 && i < 1000; i++)
		got |= form_of(c, &put);
	CHECK(rank || (got & SLMPM_PUT_ALL_LINE && got & SLMPM_PUT_ALL_DIRECT),
	      "always the same: 0x%x", got);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	free(from);
}

#define CALLS 6 /* behind which the other route would have been tried */

/* One origin connects with all its targets; where another puts, too, that would make each member
 * connect with each. */
static void many_put(const struct crew *c, int rank)
{
	unsigned char bytes[8] = {0};
	struct slmpm_put_spec put = put_of(bytes, sizeof(bytes), 0);
	uint32_t got;

	put.offset = 0;
	OK(slmpm_group_space(c->group[0], SPACE, bytes, sizeof(bytes)));
	for (int origin = 0; origin < 2; origin++) {
		OK(slmpm_barrier(c->group[0], PATIENCE));
		for (int i = 0; rank == origin && i < CALLS; i++) {
			got = form_of(c, &put);
			CHECK(origin ? got == (SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE) :
				       i || got & SLMPM_PUT_ALL_DIRECT,
			      "origin %d, flags 0x%x", origin, got);
		}
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

static volatile bool *begun;

/* Rank 1's request goes before rank 0's, and so comes to rank 0 before the answer to its own. */
static void first_at_once(const struct crew *c, int rank)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	unsigned char bytes[8] = {0};
	struct slmpm_put_spec put = put_of(bytes, sizeof(bytes), 0);
	struct slmpm_done done = {0};
	slmpm_req req;

	put.offset = 0;
	OK(slmpm_group_space(c->group[0], SPACE, bytes, sizeof(bytes)));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	while (rank == 0 && !*begun)
		usleep(100);
	if (rank < 2) {
		OK(slmpm_put_all(c->group[0], &put, &how, &req));
		*begun = true;
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	}
	CHECK(rank || done.flags == (SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE), "flags 0x%x",
	      done.flags);
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- functions of the application ------------------------------------------------------------ */

struct asked {
	int prepares, dones, status, refuses;
	struct slmpm_deposit last;
	slmpm_group group;
};

static struct asked asked;

static int prepare(struct slmpm_deposit *d, char text[SLMPM_REFUSAL], void *arg)
{
	struct asked *a = arg;
	int rc = slmpm_barrier((slmpm_group){0}, 0);

	CHECK(rc < 0, "it may block");
	REFUSED(slmpm_group_destroy(a->group), SLMPM_ESTATE, "slmpm_group_destroy");
	a->prepares++;
	a->last = *d;
	if (a->refuses) {
		strcpy(text, "the disk is full");
		return -SLMPM_ELIMIT;
	}
	d->base = memory; /* none is in the table */
	return 0;
}

static void is_done(const struct slmpm_deposit *d, int status, void *arg)
{
	struct asked *a = arg;

	CHECK(d->base == memory, "base %p", d->base);
	a->dones++;
	a->status = status;
}

/* Without a space: memory and room are the application's alone. */
static void take_by_functions(const struct crew *c, bool refuses)
{
	struct slmpm_deposits how = {
		.size = sizeof(how), .prepare = prepare, .done = is_done, .arg = &asked};

	asked = (struct asked){.refuses = refuses, .group = c->group[0]};
	OK(slmpm_group_space(c->group[0], SPACE, NULL, 0));
	OK(slmpm_group_deposits(c->group[0], &how));
}

static void until_asked(const struct crew *c, int dones)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	unsigned times = 0;

	while ((!asked.prepares || asked.dones < dones) && actor_now_ms() < end)
		if (!slmpm_progress(c->ctx))
			actor_idle(c->ctx, &times);
	CHECK(asked.prepares && asked.dones == dones, "%d requests, %d ends", asked.prepares,
	      asked.dones);
}

static int ready_calls;

static int is_ready(void *arg)
{
	ready_calls++;
	return *(const int *)arg;
}

static void by_functions(const struct crew *c, int rank)
{
	static unsigned char from[9000];
	struct slmpm_put_spec put = put_of(from, sizeof(from), *(const uint32_t *)c->arg);
	int rc = 0;

	set_space(c, rank);
	if (rank)
		take_by_functions(c, false);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank) {
		until_asked(c, 1);
		CHECK(asked.last.origin == 0 && asked.last.space == SPACE &&
			      asked.last.offset == OFFSET && asked.last.len == sizeof(from) &&
			      asked.last.imm == sizeof(from) + 1 && !asked.last.base,
		      "asked for %llu bytes of rank %d's", (unsigned long long)asked.last.len,
		      asked.last.origin);
		has(5, sizeof(from));
	} else {
		actor_fill(from, 5, sizeof(from));
		put.ready = is_ready;
		put.arg = &rc;
		OK(slmpm_put_all(c->group[0], &put, &blocking, NULL));
		CHECK(ready_calls == 1, "%d calls", ready_calls);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	/* The origin's own does not begin it. */
	asked = (struct asked){.group = c->group[0]};
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank) {
		until_asked(c, 1);
		CHECK(asked.status == -SLMPM_ECANCELED, "status %d", asked.status);
	} else {
		rc = -SLMPM_EBUSY;
		REFUSED(slmpm_put_all(c->group[0], &put, &blocking, NULL), SLMPM_EBUSY, "origin");
	}
	CHECK(is_marked(0, room), "something has come");
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define REFUSER 2

static void refused_as(const struct crew *c, const struct slmpm_put_spec *put, int error,
		       const char *text)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_put_all(c->group[0], put, &how, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == -error && done.imm == REFUSER, "status %d, rank %u", done.status,
	      done.imm);
	REFUSED(slmpm_put_all(c->group[0], put, &blocking, NULL), error, text);
	REFUSED(slmpm_put_all(c->group[0], put, &blocking, NULL), error, "rank 2");
}

static void takes_three(slmpm_cq cq, int rank, int status, size_t len)
{
	struct slmpm_done done;

	for (int i = 0; i < 3 && rank != REFUSER; i++) {
		done = next_of(cq);
		took(&done, status, 0, len);
	}
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

/* No space; one that is too short; by a function. */
static void refuse_all(const struct crew *c, int rank, uint32_t flags)
{
	static const struct {
		int error;
		const char *text;
	} want[] = {{SLMPM_ENOENT, "no space 7"},
		    {SLMPM_ELIMIT, "space 7 has 100 bytes"},
		    {SLMPM_ELIMIT, "the disk is full"}};
	static unsigned char from[9000];
	struct slmpm_put_spec put = put_of(from, sizeof(from), flags);
	slmpm_cq cq = take_into_queue(c);

	set_space(c, rank);
	actor_fill(from, 6, sizeof(from));
	for (int i = 0; i < 3; i++) {
		if (rank == REFUSER && i < 2)
			OK(slmpm_group_space(c->group[0], SPACE, memory, i ? 100 : 0));
		if (rank == REFUSER && i == 2)
			take_by_functions(c, true);
		OK(slmpm_barrier(c->group[0], PATIENCE));
		if (rank == 0)
			refused_as(c, &put, want[i].error, want[i].text);
		else
			takes_three(cq, rank, flags & SLMPM_PUT_ALL_ANYWAY ? 0 : -SLMPM_ECANCELED,
				    sizeof(from));
		OK(slmpm_barrier(c->group[0], PATIENCE));
		if (rank && rank != REFUSER && flags & SLMPM_PUT_ALL_ANYWAY)
			has(6, sizeof(from));
		CHECK(is_marked(0, room), "something has come");
	}
}

/* After a refusal the origin's own does not begin it: the error and its text are that. */
static void refused_twice(const struct crew *c, int rank, uint32_t flags)
{
	static unsigned char byte;
	struct slmpm_put_spec put = put_of(&byte, 1, flags);
	int rc = -SLMPM_ECANCELED;

	put.ready = is_ready;
	put.arg = &rc;
	if (rank == 0 && flags & SLMPM_PUT_ALL_ANYWAY)
		REFUSED(slmpm_put_all(c->group[0], &put, &blocking, NULL), SLMPM_ECANCELED,
			"origin does not begin it; rank 2: the disk");
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

static void refusals(const struct crew *c, int rank)
{
	refuse_all(c, rank, *(const uint32_t *)c->arg);
	refused_twice(c, rank, *(const uint32_t *)c->arg);
}

/* Rank 1 has agreed by the table, and then sets a function: that has not been asked. */
static void set_meanwhile(const struct crew *c, int rank)
{
	static unsigned char from[100];
	const struct slmpm_put_spec put = put_of(from, sizeof(from), *(const uint32_t *)c->arg);
	const struct slmpm_deposits how = {.size = sizeof(how), .done = is_done, .arg = &asked};

	asked = (struct asked){.group = c->group[0]};
	set_space(c, rank);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 0)
		OK(slmpm_put_all(c->group[0], &put, &blocking, NULL));
	while (rank == 1 && is_marked(0, room) &&
	       slmpm_group_space(c->group[0], SPACE, memory, room) != -SLMPM_EBUSY)
		(void)slmpm_progress(c->ctx);
	if (rank == 1)
		OK(slmpm_group_deposits(c->group[0], &how));
	if (rank == 2)
		usleep(50000); /* until then not all have agreed */
	OK(slmpm_barrier(c->group[0], PATIENCE));
	CHECK(!asked.dones, "a function that was not there is called");
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void arguments(const struct crew *c, int rank)
{
	const slmpm_group g = c->group[0];
	unsigned char byte = 1;
	struct slmpm_put_spec put;
	struct slmpm_deposits how = {.size = sizeof(how), .reserved = 1};
	const int32_t own[] = {1, rank}, twice[] = {1 - rank, 1 - rank}, none[] = {2};

#define BAD(change, word)                                                                          \
	do {                                                                                       \
		put = put_of(&byte, 1, 0);                                                         \
		change;                                                                            \
		REFUSED(slmpm_put_all(g, &put, &blocking, NULL), SLMPM_EINVAL, word);              \
	} while (0)

	BAD(put.size = 3, "size");
	BAD(put.flags = 32, "flags 0x20");
	BAD(put.flags = SLMPM_PUT_ALL_LINE | SLMPM_PUT_ALL_DIRECT, "_LINE and _DIRECT");
	BAD(put.flags = SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_FORWARD, "_BROADCAST and _FORWARD");
	BAD(put.space = 0, "space 0");
	BAD(put.from = NULL, "from is NULL");
	BAD(put.reserved = 1, "reserved");
	BAD(put.offset = UINT64_MAX, "end beyond");
	BAD(put.count = 1, "count is 1, and .rank is NULL");
	BAD((put.rank = own, put.count = -1), "count is -1");
	BAD((put.rank = own, put.count = 2), rank == 1 ? "rank 1 is this" : "rank 0 is this");
	BAD((put.rank = twice, put.count = 2), "twice");
	BAD((put.rank = none, put.count = 1), "rank 2, there is none");
	put = put_of(&byte, 1, 0);
	REFUSED(slmpm_put_all((slmpm_group){0}, &put, &blocking, NULL), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_put_all(g, &put, &(struct slmpm_how){.size = sizeof(struct slmpm_how)}, NULL),
		SLMPM_EAGAIN, "timeout");
	put.answers.id = 77;
	REFUSED(slmpm_put_all(g, &put, &blocking, NULL), SLMPM_EHANDLE, "queue");
	REFUSED(slmpm_group_deposits(g, &how), SLMPM_EINVAL, "reserved");
	REFUSED(slmpm_group_deposits((slmpm_group){0}, NULL), SLMPM_EHANDLE, "group");
	/* To nobody. */
	put = put_of(&byte, 1, 0);
	put.rank = own;
	OK(slmpm_put_all(g, &put, &blocking, NULL));
	OK(slmpm_barrier(g, PATIENCE));
}

/* A member that is stopped. */
static void late(const struct crew *c, int rank)
{
	static unsigned char from[100];
	struct slmpm_put_spec put = put_of(from, sizeof(from), *(const uint32_t *)c->arg);
	const struct slmpm_how soon = {.size = sizeof(soon), .timeout_ms = 100};
	slmpm_cq cq = take_into_queue(c);
	struct slmpm_done done;

	int32_t own = (int32_t)getpid(), pid[16];

	set_space(c, rank);
	OK(slmpm_allgather(c->group[0], &own, pid, 1, SLMPM_INT32, PATIENCE));
	if (rank == 0) {
		int64_t began;

		actor_await_state(pid[1], "T");
		began = actor_now_ms();
		REFUSED(slmpm_put_all(c->group[0], &put, &soon, NULL), SLMPM_ETIMEOUT,
			"nothing yet from rank");
		CHECK(strstr(slmpm_error_detail(), ", suspect is rank 1: its process is stopped"),
		      "%s", slmpm_error_detail());
		CHECK(actor_now_ms() - began < 2000, "it took long");
		EXPECT(kill(pid[1], SIGCONT), 0);
	} else if (rank == 1) {
		raise(SIGSTOP);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	for (int i = 0; i < 10; i++)
		(void)slmpm_progress(c->ctx);
	if (slmpm_cq_poll(cq, &done, 1) == 1)
		CHECK(done.status == -SLMPM_ECANCELED, "status %d", done.status);
	CHECK(is_marked(0, room), "something has come");
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

int main(void)
{
	static const int members[] = {2, 3, 5, 16};
	static const uint32_t ways[] = {
		SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE,
		SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_DIRECT,
		SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_DIRECT | SLMPM_PUT_ALL_ANYWAY,
		SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_LINE | SLMPM_PUT_ALL_ANYWAY};
	struct crew c = {.members = 2, .groups = 1, .body = arguments};

	crew_run(&c, 20);
	for (int i = 0; i < 4; i++) {
		c.body = all_do;
		c.members = members[i];
		crew_run(&c, 60);
	}
	c = (struct crew){.members = 9, .groups = 1, .body = some_do};
	crew_run(&c, 30);
	c = (struct crew){.members = 4, .groups = 1, .body = chosen};
	crew_run(&c, 30);
	c = (struct crew){.members = 18, .groups = 1, .body = many_put};
	crew_run(&c, 30);
	c.body = first_at_once;
	begun = child_common(sizeof(*begun));
	crew_run(&c, 30);
	for (int i = 0; i < 4; i++) {
		c = (struct crew){.members = 5, .groups = 1, .body = refusals, .arg = &ways[i]};
		crew_run(&c, 30);
		if (i > 1)
			continue;
		c.body = by_functions;
		crew_run(&c, 30);
		c.body = late;
		crew_run(&c, 30);
		c.body = set_meanwhile;
		c.members = 3;
		crew_run(&c, 30);
	}
	return 0;
}
