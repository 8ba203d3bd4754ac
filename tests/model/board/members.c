/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the members do: slmpm/board/agree.c, board.c and reach.c as they are, but that an access to
 * a board, or a fence, is the scheduler's. A member announces its sleep, makes a pass, and sleeps.
 */
#include "tests/model/board/members.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/doorbell.h"
#include "shm/mapping.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/board/bell.h"
#include "slmpm/board/flat.h"

static uint64_t shared_load(const volatile void *word, memory_order order);
static void shared_store(const volatile void *word, uint64_t value, memory_order order);
static void shared_fence(memory_order order);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_thread_fence
#define atomic_load_explicit(word, order)         shared_load((word), (order))
#define atomic_store_explicit(word, value, order) shared_store((word), (value), (order))
#define atomic_thread_fence(order)                shared_fence(order)
#define bell_ring(bell)                           (model_ring((unsigned)(bell)), true)
#include "slmpm/board/board.c"
#define board_unmap(board) ((void)(board))
#define close(fd)          ((void)(fd))
#include "slmpm/board/agree.c"
#undef close
/* No time goes by; who waits is woken by what it waits for. */
#define clock_now()              ((uint64_t)0)
#define clock_deadline(ms)       ((uint64_t)(ms))
#define nanosleep(moment, left)  ((void)(moment), await_writer(r, number))
#define poll(process, n, ms)     has_ended((process)->fd)
#define attach_finds(pid, probe) 1
static int await_writer(uint32_t r, uint64_t number);
static int has_ended(int process);
#include "slmpm/board/reach.c"

/* Only addresses on them are used. */
static struct board boards[MEMBERS];

static struct private
{
	struct boards b;
	struct agreement a;
	const struct board *of[MEMBERS];
	int bells[MEMBERS];
	uint64_t answered[MEMBERS];
	uint32_t seats[MEMBERS];
	int32_t processes[MEMBERS];
	int watched[MEMBERS];
	struct attach_probe probes[MEMBERS];
	int32_t numbers[MEMBERS];
}
private[MEMBERS];

unsigned char *members_private = (unsigned char *)private;
const size_t members_private_size = sizeof(private);

/* ---- memory ---------------------------------------------------------------------------------- */

static unsigned word_at(size_t at)
{
	static const size_t words[BOARD_USED] = {
		offsetof(struct board, asleep),
		offsetof(struct board, ended),
		offsetof(struct board, view.version),
		offsetof(struct board, view.generation),
		offsetof(struct board, view.posted),
		offsetof(struct board, view.gone[0]),
		offsetof(struct board, verdict.generation),
		offsetof(struct board, verdict.base),
		offsetof(struct board, verdict.gone[0]),
		offsetof(struct board, claims),
		offsetof(struct board, withdrawn),
		offsetof(struct board, ring),
	};

	for (unsigned w = 0; w < BOARD_USED; w++)
		if (words[w] == at)
			return w;
	model_wrong("the checker: a word of a board that is not known");
}

static struct asked ask_of(const volatile void *word, uint8_t kind)
{
	size_t at = (size_t)((const volatile char *)word - (const volatile char *)boards);
	unsigned of = (unsigned)(at / sizeof(struct board));

	if (of >= MEMBERS)
		model_wrong("an access to no board");
	return (struct asked){.kind = kind,
			      .of = (uint8_t)of,
			      .word = (uint8_t)word_at(at % sizeof(struct board))};
}

static uint64_t shared_load(const volatile void *word, memory_order order)
{
	struct asked asked = ask_of(word, ASK_LOAD);

	if (asked.of == model.running)
		return model_own(asked.word);
	if (!model_scene->fine && order != memory_order_acquire)
		return model.words[asked.of][asked.word];
	if (asked.word == WORD_ENDED && model_scene->leaver == MEMBERS)
		return 0;
	return model_ask(asked);
}

static void shared_store(const volatile void *word, uint64_t value, memory_order order)
{
	struct asked asked = ask_of(word, ASK_LOAD);

	if (asked.of != model.running)
		model_wrong("a store to another's board");
	asked.value = value;
	asked.release = order == memory_order_release;
	member_store(asked);
}

static void shared_fence(memory_order order)
{
	if (order == memory_order_release)
		model.members[model.running].fences++;
	else if (order == memory_order_seq_cst)
		(void)model_ask((struct asked){.kind = ASK_FENCE});
}

/* ---- what is judged -------------------------------------------------------------------------- */

static bool is_gone_now(void *arg, uint32_t rank)
{
	const struct private *p = arg;

	return model_ask((struct asked){.kind = ASK_IS_GONE, .of = (uint8_t)p->b.seats[rank]});
}

static void leaves(void *arg, uint32_t rank)
{
	(void)arg;
	(void)rank;
}

static void judge(const struct private *p)
{
	struct agreed *agreed = &model.agreed[p->b.generation];
	uint8_t members = 0;

	for (uint32_t r = 0; r < p->b.size; r++)
		members |= (uint8_t)(1 << p->b.seats[r]);
	if (p->b.seats[p->b.rank] != model.running)
		model_wrong("a member has another's rank");
	for (unsigned m = 0; m < model_scene->members; m++)
		if (!(members >> m & 1) && !model.members[m].dead && !model.words[m][WORD_ENDED])
			model_wrong("one that lives is left out");
	/* Each has posted as many as its number says, times ten. */
	for (unsigned m = 0; m < model_scene->members; m++)
		if (members >> m & 1 && p->b.posted < 10 * m)
			model_wrong("operations count from numbers that have been");
	if (agreed->known && agreed->members != members)
		model_wrong("two have left out others");
	if (agreed->known && agreed->base != p->b.posted)
		model_wrong("two count their operations from other numbers");
	*agreed = (struct agreed){1, members, p->b.posted};
}

/* ---- a life ---------------------------------------------------------------------------------- */

void members_start(void)
{
	memset(private, 0, sizeof(private));
	for (unsigned m = 0; m < MEMBERS; m++) {
		struct private *p = &private[m];

		p->b = (struct boards){.size = model_scene->members,
				       .rank = m,
				       .fences = true,
				       .own = &boards[m],
				       .of = p->of,
				       .bells = p->bells,
				       .answered = p->answered,
				       .seats = p->seats,
				       .processes = p->processes,
				       .watched = p->watched,
				       .probes = p->probes,
				       .numbers = p->numbers,
				       .posted = 10 * m};
		for (unsigned r = 0; r < MEMBERS; r++) {
			p->of[r] = &boards[r];
			p->bells[r] = (int)r;
			p->seats[r] = r;
			p->watched[r] = (int)r;
		}
	}
}

static void notice(struct private *p)
{
	uint64_t noticed = model.members[model.running].noticed;
	bool news = false;

	for (unsigned m = 0; m < MEMBERS; m++)
		news |= model.members[m].dead && !(noticed >> m & 1);
	if (news)
		(void)model_ask((struct asked){.kind = ASK_NOTICE});
	noticed = model.members[model.running].noticed;
	for (uint32_t r = 0; r < p->b.size; r++)
		if (noticed >> p->b.seats[r] & 1)
			agree_mark(&p->a, r);
}

static void shrink_once(struct private *p)
{
	int rc;

	agree_begin(&p->a, &p->b, is_gone_now, leaves, p);
	for (;;) {
		if (boards_announce(&p->b, BOARD_ANY))
			barrier_all();
		notice(p);
		rc = agree_step(&p->a);
		if (rc < 0)
			model_wrong("an honest member lies");
		if (rc)
			break;
		(void)model_ask((struct asked){.kind = ASK_SLEEP});
		boards_awake(&p->b);
	}
	boards_awake(&p->b);
	agree_end(&p->a);
	judge(p);
}

/* ---- who writes ------------------------------------------------------------------------------ */

static int await_writer(uint32_t r, uint64_t number)
{
	return (int)model_ask((struct asked){
		.kind = ASK_WRITER, .of = (uint8_t)r, .word = WORD_CLAIMS, .value = number});
}

static int has_ended(int process)
{
	return (int)model_ask((struct asked){.kind = ASK_IS_GONE, .of = (uint8_t)process});
}

/* In operation 1. */
static void write_twice(struct boards *b)
{
	reach_claim(b, 1);
	for (uint64_t i = 1; i <= 2 && !reach_is_withdrawn(b, 0, 1); i++)
		shared_store(b->own->ring, i, memory_order_relaxed);
	reach_release(b);
}

static void take_back(struct boards *b)
{
	if (reach_take_back(b, 1) != BOARD_NONE)
		model_wrong("a writer is given up");
	model.taken_back = 1;
}

/* ---- all lives ------------------------------------------------------------------------------- */

void members_live(void)
{
	struct private *p = &private[model.running];

	if (model_scene->writes && model.running) {
		write_twice(&p->b);
	} else if (model_scene->writes) {
		take_back(&p->b);
	} else if (model.running == model_scene->leaver) {
		(void)model_ask((struct asked){.kind = ASK_FENCE}); /* at any time */
		boards_end(&p->b, 0, BOARD_NONE, NULL);
	} else {
		for (unsigned i = 0; i < model_scene->shrinks; i++)
			shrink_once(p);
	}
	for (;;)
		(void)model_ask((struct asked){.kind = ASK_END});
}
