/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a group that wait, in the order of the calls: the first is under way, the others
 * begin as those before them end. Each belongs to a request, a counter or a completion queue, or to
 * a call that waits for it.
 */
#ifndef SLMPM_OPERATION_H
#define SLMPM_OPERATION_H

#include "slmpm/completion/completion.h"
#include "slmpm/group/group.h"

struct collective {
	struct list node; /* of its group's */
	struct group *group;
	const struct slmpm_coll *coll; /* stays until it has ended */
	struct request *request;       /* which ends with it, or NULL */
	struct notified notified;      /* which counter or queue its end is for, if any */
	int *result;                   /* where a call that waits finds its end, or NULL */
	/* Called last, with 0 or its error; it may free it. NULL: none. */
	void (*ended)(struct collective *op, int result);
	uint64_t deadline; /* ns; UINT64_MAX: none */
	int timeout_ms;    /* what that was */
	bool kept;         /* not freed at its end */
};

/* ---- beginning ------------------------------------------------------------------------------- */

/* Whether any, of KIND, can be done in G, for CALL, or for slmpm_collective and those by the kind's
 * name where it is NULL: 0, or negative with the detail set; whether C can be. */
COLD int operation_may_begin(struct group *g, uint32_t kind, const char *call);
/* The same though it is driven. */
COLD int operation_may_be_driven(struct group *g, uint32_t kind, const char *call);
COLD int operation_check(struct group *g, const struct slmpm_coll *c, const char *call);
/* As errors name the call: CALL, or by KIND. */
COLD const char *operation_call(const char *call, uint32_t kind);
/* C is refused by RC, whose text begins with the name of C's kind: where there is none, with
 * CALL. */
COLD int operation_refused(const struct slmpm_coll *c, const char *call, int rc);
COLD int operation_lacks_memory(const struct slmpm_coll *c);

/* C, which has been checked, where none is under way, of a group with boards. 0, or -SLMPM_ENOMEM
 * with the detail set. */
static inline int operation_begin_flat(struct group *g, const struct slmpm_coll *c)
{
	return LIKELY(flat_begin(&g->flat, &g->boards, c) == 0) ? 0 : operation_lacks_memory(c);
}

/* The same of any. 0, or negative with the detail set. */
static inline int operation_begin(struct group *g, const struct slmpm_coll *c)
{
	g->boards.doing = c->tag;
	if (g->apart)
		return messages_begin(g, c);
	if (c->combine || g->boards.call || !flat_repeats(&g->flat, &g->boards, c))
		return operation_begin_flat(g, c);
	flat_repeat(&g->flat, &g->boards, c);
	return 0;
}

/* ---- one step -------------------------------------------------------------------------------- */

/* What flat_step has not done (RC) breaks the group: its error. */
COLD int operation_broken(struct group *g, int rc);
/* G's detail says, once, which member of BY, G or its local group, is stopped as it writes. */
COLD void operation_warn(struct group *g, const struct group *by);

/* A member that has left has done its part in all that it was needed for, or flat_step says that
 * it has not. */
static inline bool group_is_broken(const struct group *g)
{
	return UNLIKELY(g->status) && !g->left;
}

/* RC of flat_step, of a group with boards; negative: the group is broken. */
static inline int operation_stepped(struct group *g, int rc)
{
	if (LIKELY(rc > 0) || LIKELY(rc == 0 && !group_is_broken(g)))
		return rc;
	return operation_broken(g, rc);
}

static inline int operation_step(struct group *g)
{
	return operation_stepped(g, flat_step(&g->flat));
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* OP is the last one: not begun, unless it is the only one. */
void operation_append(struct collective *op);
/* They go on, as far as they can: how many have ended. */
int operations_go_on(struct group *g);
/* OP, which has been checked, is the last one; where the group is broken it ends at once. */
void operation_go(struct collective *op);
/* The group is broken by what the thread's detail says, by CULPRIT or BOARD_NONE, and all of them
 * end. */
COLD void operations_fail(struct group *g, int error, uint32_t culprit);
COLD void operations_break(struct group *g, int error);
/* STEP, which runs OWN, the program's function, as a handler is run: it calls nothing that blocks.
 * 0 at once, where OWN does not run in this thread of the library's: the application is to poll. */
int operation_combine(struct group *g, const struct slmpm_combine *own,
		      int (*step)(struct group *g));
/* OP ends, with 1 or the error of the group. */
void operation_end(struct collective *op, int result);
/* By boards, rank R is waited for in the end, which BEHIND, of the first function, is for. */
COLD uint64_t operations_behind(const struct group *g);
COLD bool operations_await(const struct group *g, uint32_t r, uint64_t behind);
/* For whom the one under way waits in the end, as far as is known; or BOARD_NONE. */
COLD uint32_t operations_suspect(struct group *g);
/* The deadline of one has passed: the group is broken, and all of them end. */
COLD void operations_late(struct group *g, int timeout_ms);
/* C is done behind them, or at once, and the call waits for it. CALL as above. */
int collective_await(struct group *g, const struct slmpm_coll *c, const char *call, int timeout_ms);
/* The same of a step of CALL, which all errors name in its place; may one of KIND begin? */
int step_may_begin(struct group *g, uint32_t kind, enum board_call call);
int step_await(struct group *g, const struct slmpm_coll *c, enum board_call call, int timeout_ms);
/* The same, outside of handlers, of one that has been checked; of the program's own, by
 * operation_new. */
int operation_await(struct group *g, const struct slmpm_coll *c, const char *call, int timeout_ms);
/* *OP is C, which operation_check has passed, with a copy of all that it names but its buffers, for
 * `free`. 0, or negative with the detail set. */
int operation_new(struct group *g, const struct slmpm_coll *c, const char *call,
		  struct collective **op);
/* Kept for the next ones. */
void operation_free(struct collective *op);
/* It is the next one: another processor may have all of it, where the call was made. */
void operation_claim(const struct collective *op);
/* Those that G has kept. */
void operations_free(struct group *g);
/* What has been left to progress is its from now on, in whatever thread; one that sleeps does not
 * know of it, if that WAKES. */
void operation_leave(struct context *ctx, bool wakes);
/* OP, which has been checked, ends by HOW or REQ. */
int operation_start(struct collective *op, const struct slmpm_how *how, slmpm_req *req);
static inline bool operation_is_outstanding(const struct collective *op)
{
	return !list_empty(&op->node);
}

/* For others: an operation, a meeting, or those that shrink it with this member. */
static inline bool group_waits(const struct group *g)
{
	return g->under_way || g->holds || g->meeting.waits || g->shrinking;
}

/* Who is waited for now rings; a rank, or BOARD_ANY. */
void group_announce(struct group *g);
/* The same, but for the barrier. True: barrier_all is to follow. */
bool group_announce_unfenced(struct group *g);
bool group_is_announced(const struct group *g);
/* Unless something else of G is waited for. */
void group_announce_no_more(struct group *g);
/* How often others are inspected before the rest of the context is. */
int collective_passes(const struct context *ctx);

/* The context closes. */
void operations_shut(struct group *g);

/* ---- blocked.c: calls that block ------------------------------------------------------------- */

/* One is in OP; and over. */
void blocked_begin(struct group *g, const struct collective *op);
void blocked_end(struct group *g);
/* Do it and that of another member wait for each other? Then the group is broken. */
COLD void blocked_inspect(struct group *g, uint64_t now);

/* ---- prepared.c ------------------------------------------------------------------------------ */

/* Those of G, which goes. */
void prepared_free_all(struct group *g);

/* ---- turn.c: what contexts do with them (parts.c) -------------------------------------------- */

/* Operations of all groups go on: how many have ended. */
int group_advance(struct context *ctx);
/* The context is to sleep: who is waited for rings; or it is awake again. True: barrier_all is to
 * follow. */
bool group_arm(struct context *ctx, bool asleep);
uint64_t operations_deadlines(struct context *ctx, uint64_t now);
/* The same of one group; something has *PASSED. And of its operations without tags alone. */
uint64_t group_next_deadline(struct group *g, uint64_t now, bool *passed);
uint64_t operation_deadlines(struct group *g, uint64_t now, bool *passed);
bool operation_arm(struct group *g, bool asleep);
/* As request_ops.explain. */
int operation_failed(const struct request *r);
/* As request_ops.late. */
COLD int operation_late(const struct request *r, int timeout_ms, const char *what);

#endif
