/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scene: one or two processes, each with an application, whose calls a script lists with their
 * alternatives, and a thread of the library's that makes progress and sleeps. Each call and each
 * pass of progress is a step, as the context's lock makes them one; any may die in between.
 */
#ifndef TESTS_MODEL_QUEUE_SCENE_H
#define TESTS_MODEL_QUEUE_SCENE_H

#include <slmpm_queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/queue/cable.h"

#define SCRIPT_MAX 8

struct scene {
	const char *name;
	/* Of each side: at each step one of these letters, all tried; `~`: a second goes by. NULL: the
	 * end. */
	const char *scripts[SIDES][SCRIPT_MAX];
	bool dies[SIDES]; /* at any moment */
	unsigned room;    /* packets under way each way */
	bool bound;       /* the receive queue is there and known before */
	bool shared;      /* it is of any peer */
	bool kept;        /* the first queue keeps its entries */
	bool spread;      /* the first queue is, over two links */
	const struct play *play;
};

struct play { /* what scenes of one kind have in common */
	void *state;
	size_t size;
	void (*set_up)(void);
	/* SIDE's application makes the call that LETTER stands for. */
	void (*act)(int side, char letter);
	/* One of SIDE's completions has come. */
	void (*ended)(int side, const struct slmpm_done *done);
	void (*step_over)(void); /* after each step, its completions judged */
	void (*settled)(void);   /* nothing moves any more */
};

extern const struct scene *scene;
extern const struct scene scenes[];
extern const unsigned scene_count;
extern const struct play play_stream, play_local, play_counted, play_pipe;

struct search;

/* Who sleeps has nothing to do: NULL, or that there is (struct search.fresh). */
const char *scene_sleep(const struct search *search);

/* ---- for plays ---- */

struct side {
	struct context *ctx;
	struct endpoint *ep;
	slmpm_ctx handle;
	slmpm_peer peer;
	slmpm_cq cq;
	uint64_t judged; /* of its completions */
	uint8_t step;    /* of its script */
	bool dead;
};

extern struct side sides[SIDES];

/* The present path ends with a fault, if WRONG. */
void scene_require(bool right, const char *wrong);
/* Progress of both until nothing moves; while a scene is set up. */
void scene_rest(void);

#endif
