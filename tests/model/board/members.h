/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of boards: members of a group, each a coroutine that runs the library's own code on the
 * boards of all. Where that touches a word of a board, it asks the scheduler (step.c).
 */
#ifndef TESTS_MODEL_BOARD_MEMBERS_H
#define TESTS_MODEL_BOARD_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMBERS     3 /* at most */
#define GENERATIONS 3

/* A way of going through it: all members do the same, but for those named here. */
struct scene {
	const char *name;
	unsigned members;
	unsigned kills;   /* members that may die, before any of their steps */
	unsigned shrinks; /* that each makes */
	unsigned leaver;  /* a rank that leaves instead, or MEMBERS: none */
	bool writes;      /* instead, all write to rank 0's buffer, which it withdraws */
	/* Each store is a step, and may become visible late, in any order that is allowed; each load
	 * is. Else a step is what lies between two fences or acquires. */
	bool fine;
};

/* Words of a board that are used here. */
enum board_word {
	WORD_ASLEEP,
	WORD_ENDED,
	WORD_VERSION,
	WORD_GENERATION,
	WORD_POSTED,
	WORD_GONE,
	WORD_VERDICT,
	WORD_BASE,
	WORD_LEFT_OUT,
	WORD_CLAIMS,
	WORD_WITHDRAWN,
	WORD_BUFFER, /* what its member has written to rank 0's */
	BOARD_USED
};

enum asks { ASK_LOAD, ASK_FENCE, ASK_NOTICE, ASK_SLEEP, ASK_IS_GONE, ASK_WRITER, ASK_END };

struct asked {
	uint8_t kind, of, word, release; /* OF: a member; WORD of its board */
	uint64_t value;
};

struct late_store {
	uint8_t word, release, fenced; /* FENCED: how many release fences before it */
	uint64_t value;
};
#define LATE_MOST 24

struct model_member {
	struct asked asked;
	uint64_t result;
	uint8_t dead, bell, over;
	uint8_t noticed; /* deaths, a bit for each member */
	uint8_t woken;   /* by a death alone: it looks who that was */
	uint8_t spun;    /* by nothing: once */
	uint8_t late_count, fences;
	struct late_store late[LATE_MOST];
};

struct agreed {
	uint8_t known;
	uint8_t members; /* bits, as at first */
	uint64_t base;
};

struct model_world {
	struct model_member members[MEMBERS];
	uint64_t words[MEMBERS][BOARD_USED];
	struct agreed agreed[GENERATIONS];
	uint8_t deaths, taken_back; /* rank 0's buffer is its own again */
	uint8_t running;
	const char *fault;
};

extern struct model_world model;
extern const struct scene *model_scene;

/* members.c: what each keeps outside its stack; its life. */
extern unsigned char *members_private;
extern const size_t members_private_size;
void members_start(void);
void members_live(void);

/* step.c: for what is judged, and what is run. */
bool model_stands(void);
uint64_t model_ask(struct asked asked);
_Noreturn void model_wrong(const char *text);
/* An ask that none other can see: no step. */
uint64_t model_own(unsigned word);
void model_ring(unsigned member);
void member_store(struct asked asked);

#endif
