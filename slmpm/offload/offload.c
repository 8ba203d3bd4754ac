/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of collective operations: begun, ended, failed. */
#include "slmpm/offload/program_steps.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/calc/calc.h"
#include "slmpm/completion/queue.h"
#include "slmpm/workqueue/program.h"
#include "slmpm/workqueue/workqueue.h"

#define DEPTH 1024
#define ENDS  16 /* completions taken at a time */

/* ---- opening, closing ------------------------------------------------------------------------ */

static void offload_free(struct offload *o)
{
	for (uint32_t i = 0; i < OFFLOAD_RUNS; i++) {
		for (uint32_t k = 0; k < PLAN_LANES; k++)
			if (o->slot[i].lane[k].id)
				(void)slmpm_ctr_destroy(o->slot[i].lane[k]);
		free(o->slot[i].scratch);
		free(o->slot[i].own);
	}
	if (o->cq.id)
		(void)slmpm_cq_destroy(o->cq);
	free(o->peers);
	free(o->came);
	free(o);
}

void offload_forget(struct offload *o)
{
	for (uint32_t i = 0; i < OFFLOAD_RUNS; i++) {
		free(o->slot[i].scratch);
		free(o->slot[i].own);
	}
	free(o->peers);
	free(o->came);
	free(o);
}

static int open_lanes(struct offload *o, slmpm_ctx ctx)
{
	int rc = 0;

	for (uint32_t i = 0; i < OFFLOAD_RUNS; i++)
		for (uint32_t k = 0; rc == 0 && k < PLAN_LANES; k++)
			rc = slmpm_ctr_create(ctx, &o->slot[i].lane[k]);
	return rc;
}

static int open_queue(struct offload *o, const struct offload_options *options)
{
	struct slmpm_wq_options w = {.size = sizeof(w),
				     .depth = options->depth ? options->depth : DEPTH,
				     .channels = OFFLOAD_RUNS};
	int rc = slmpm_cq_create(options->ctx, &o->cq);

	if (rc == 0)
		rc = open_lanes(o, options->ctx);
	if (rc < 0)
		return rc;
	o->depth = w.depth;
	w.cq = o->cq;
	rc = slmpm_wq_create(options->ctx, &w, &o->wq);
	return rc < 0 ? rc : workqueue_hide(o->wq);
}

int offload_open(struct offload **out, const struct offload_options *options)
{
	struct offload *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return error_set(SLMPM_ENOMEM, "for an offload");
	o->size = options->size;
	o->rank = options->rank;
	o->stream = options->stream;
	o->culprit = -1;
	o->peers = malloc(options->size * sizeof(*o->peers));
	o->came = calloc(options->size, sizeof(*o->came));
	if (o->peers)
		memcpy(o->peers, options->peers, options->size * sizeof(*o->peers));
	rc = o->peers && o->came ? open_queue(o, options) :
				   error_set(SLMPM_ENOMEM, "for an offload");
	if (rc < 0)
		offload_free(o);
	else
		*out = o;
	return rc;
}

int offload_close(struct offload *o)
{
	int rc;

	for (uint32_t i = 0; i < OFFLOAD_RUNS; i++)
		if (o->slot[i].busy)
			return error_set(SLMPM_EBUSY, "a run has not ended");
	rc = slmpm_wq_destroy(o->wq);
	if (rc == 0)
		offload_free(o);
	return rc;
}

void offload_peer(struct offload *o, uint32_t rank, slmpm_peer peer)
{
	o->peers[rank] = peer;
}

uint64_t offload_came(const struct offload *o, uint32_t rank)
{
	return o->came[rank];
}

uint32_t offload_mark(const struct offload *o)
{
	return o->mark;
}

uint64_t offload_sent(const struct offload *o, uint64_t *due)
{
	*due = o->due;
	return o->sent;
}

uint32_t offload_stream(const struct offload *o)
{
	return o->stream + (uint32_t)((o->begun - 1) % OFFLOAD_RUNS);
}

slmpm_wq offload_queue(const struct offload *o)
{
	return o->wq;
}

/* ---- beginning a run ------------------------------------------------------------------------- */

/* So that no entry is refused when others have been posted. */
static int check_types(const struct offload_run *run)
{
	const struct slmpm_operand operand = {.at = (void *)&operand};
	const struct slmpm_calc calc = {.size = sizeof(calc),
					.op = run->op,
					.type = run->type,
					.args = &operand,
					.targets = &operand,
					.arg_count = 1,
					.target_count = 1};

	if (run->spec.kind == PLAN_BARRIER || run->combine)
		return 0;
	if (!calc_is_type(run->type))
		return error_set(SLMPM_EINVAL, "%u is no type", run->type);
	if (!(plan_takes(run->spec.kind) & PLAN_COMBINES))
		return 0;
	return calc_check(&calc, "a reduction");
}

static int offload_plan(const struct offload *o, struct plan *p, const struct offload_run *run)
{
	const char *kind = plan_kind_name(run->spec.kind);
	struct plan_spec spec = run->spec;
	int rc;

	if (!spec.members) {
		spec.size = o->size;
		spec.rank = o->rank;
	}
	spec.flags |= PLAN_PROGRAM;
	if (!spec.algorithm)
		spec.algorithm = plan_choose(&spec, run_width(run));
	rc = plan_begin(p, &spec);
	if (rc < 0)
		return error_set(-rc, "no %s by %s of rank %u of %u", kind ? kind : "collective",
				 plan_name(spec.algorithm), o->rank, o->size);
	return 0;
}

static int scratch_room(struct offload_slot *s, uint64_t elements, uint32_t width)
{
	uint64_t bytes;
	void *room;

	if (__builtin_mul_overflow(elements, width, &bytes))
		return error_set(SLMPM_ELIMIT, "%llu elements", (unsigned long long)elements);
	if (bytes <= s->scratch_len)
		return 0;
	room = malloc(bytes);
	if (!room)
		return error_set(SLMPM_ENOMEM, "for what is received on the way");
	free(s->scratch);
	s->scratch = room;
	s->scratch_len = bytes;
	return 0;
}

static int queue_room(const struct offload *o, uint64_t entries)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};
	int rc;

	if (entries > o->depth)
		return error_set(SLMPM_ELIMIT, "%llu steps, the queue has a depth of %u",
				 (unsigned long long)entries, o->depth);
	rc = slmpm_wq_query(o->wq, &info);
	if (rc == 0 && info.posted - info.done - info.failed + entries > o->depth)
		rc = error_set(SLMPM_EAGAIN, "other runs have the queue's entries");
	return rc;
}

static int steps_post(struct steps *s)
{
	int rc = 0, at, n;

	while (rc == 0 && (n = steps_take(s)))
		rc = program_enter(s->queues, s->wr, n, false, &at);
	return rc;
}

/* The first entries are refused as a whole; where others are, those are under way. */
static int run_post(struct offload *o, struct offload_slot *slot, struct steps *s)
{
	int rc;

	slot->busy = true;
	slot->ended = slot->differs = false;
	slot->cookie = s->run->cookie;
	slot->mark = s->run->mark;
	slot->width = s->width;
	o->begun++;
	rc = steps_post(s);
	if (rc == 0)
		memcpy(slot->waited, s->waited, sizeof(slot->waited));
	if (rc < 0 && s->posted) {
		offload_break(o, rc, -1);
		return 0;
	}
	if (rc < 0) {
		slot->busy = false;
		o->begun--;
	}
	return rc;
}

static int run_prepare(struct offload *o, struct offload_slot *slot, const struct offload_run *run,
		       struct plan *p)
{
	int rc = check_types(run);

	if (rc == 0)
		rc = offload_plan(o, p, run);
	if (rc == 0)
		rc = scratch_room(slot, p->scratch, run_width(run));
	if (rc == 0) {
		rc = queue_room(o, steps_count(p));
		plan_again(p);
	}
	return rc;
}

void offload_pass(struct offload *o)
{
	o->begun++; /* streams go by it */
}

static int run_start(struct offload *o, uint32_t index, const struct offload_run *run,
		     struct plan *p)
{
	struct steps s;

	steps_begin(&s, o, index, run, p);
	return run_post(o, &o->slot[index], &s);
}

static int run_start_own(struct offload *o, uint32_t index, const struct offload_run *run,
			 const struct plan *p)
{
	struct offload_slot *slot = &o->slot[index];
	struct own_run *own = malloc(sizeof(*own));
	int rc;

	if (!own)
		return error_set(SLMPM_ENOMEM, "for a run");
	own->run = *run;
	own->plan = *p;
	own->folds = own->goes_on = false;
	steps_begin(&own->steps, o, index, &own->run, &own->plan);
	slot->own = own;
	rc = run_post(o, slot, &own->steps);
	if (rc == 0)
		return 0;
	slot->own = NULL;
	free(own);
	return rc;
}

int offload_start(struct offload *o, const struct offload_run *run)
{
	const uint32_t index = (uint32_t)(o->begun % OFFLOAD_RUNS);
	struct offload_slot *slot = &o->slot[index];
	struct plan p;
	int rc;

	if (o->status < 0)
		return error_set(-o->status, "an earlier run has failed");
	if (slot->busy)
		return error_set(SLMPM_EAGAIN, "%d runs are under way", OFFLOAD_RUNS);
	rc = run_prepare(o, slot, run, &p);
	if (rc < 0)
		return rc;
	return run->combine ? run_start_own(o, index, run, &p) : run_start(o, index, run, &p);
}

/* ---- a function of the program's own --------------------------------------------------------- */

bool offload_awaits_fold(const struct offload *o)
{
	for (uint32_t i = 0; i < OFFLOAD_RUNS && o->status == 0; i++)
		if (o->slot[i].own && o->slot[i].own->folds)
			return true;
	return false;
}

void offload_fold(struct offload *o)
{
	for (uint32_t i = 0; i < OFFLOAD_RUNS; i++) {
		struct own_run *own = o->slot[i].own;

		if (!own || !own->folds)
			continue;
		steps_fold(&own->steps);
		own->folds = false;
		own->goes_on = true;
	}
}

/* As far as the next one. */
static void runs_go_on(struct offload *o)
{
	for (uint32_t i = 0; i < OFFLOAD_RUNS && o->status == 0; i++) {
		struct own_run *own = o->slot[i].own;
		int rc;

		if (!own || !own->goes_on)
			continue;
		own->goes_on = own->steps.stands = false;
		rc = steps_post(&own->steps);
		memcpy(o->slot[i].waited, own->steps.waited, sizeof(own->steps.waited));
		if (rc < 0)
			offload_break(o, rc, -1);
	}
}

/* ---- ends ------------------------------------------------------------------------------------ */

void offload_break(struct offload *o, int status, int culprit)
{
	if (o->status == 0) {
		o->status = status;
		o->culprit = culprit;
	}
	(void)slmpm_wq_reset(o->wq);
}

static int rank_of_peer(const struct offload *o, slmpm_peer peer)
{
	for (uint32_t r = 0; peer.id && r < o->size; r++)
		if (r != o->rank && o->peers[r].id == peer.id)
			return (int)r;
	return -1;
}

/* What a message of the run's own mark is: 0, or why it is none of the run. */
static int length_differs(const struct slmpm_done *done)
{
	if (done->status < 0)
		return done->status;
	return done->len == message_len(done->cookie) ? 0 : -SLMPM_EINVAL;
}

/* A message of a marked run has come. */
static void note_message(struct offload *o, const struct slmpm_done *done)
{
	struct offload_slot *slot = &o->slot[message_slot(done->cookie)];
	int rank = rank_of_peer(o, done->peer);
	int rc = done->imm == slot->mark ? length_differs(done) : -SLMPM_EINVAL;

	if (rank >= 0)
		o->came[rank]++;
	if (rc == 0)
		return;
	if (o->status == 0) {
		o->mark = done->imm;
		o->sent = done->len / slot->width;
		o->due = message_len(done->cookie) / slot->width;
	}
	slot->differs = true;
	offload_break(o, rc, rank);
}

static void note_last(struct offload_slot *slot)
{
	if (slot->own && slot->own->steps.stands)
		slot->own->folds = true;
	else
		slot->ended = true;
}

/* A run ends with the completion of its last entry; others complete only where they fail, or what
 * comes is compared. */
static void note_end(struct offload *o, const struct slmpm_done *done)
{
	if (done->cookie > OFFLOAD_RUNS && (done->status >= 0 || done->status == -SLMPM_ETRUNC))
		note_message(o, done);
	else if (done->status < 0)
		offload_break(o, done->status, rank_of_peer(o, done->peer));
	else if (done->cookie < OFFLOAD_RUNS)
		note_last(&o->slot[done->cookie]);
}

/* Those that have ended; ALL: that are not any more under way. */
static int take_ends(struct offload *o, struct offload_end *ends, int n, bool all)
{
	int taken = 0;

	for (uint32_t i = 0; i < OFFLOAD_RUNS && taken < n; i++) {
		struct offload_slot *slot = &o->slot[i];
		const bool failed = !slot->ended || slot->differs;

		if (!slot->busy || (!slot->ended && !all))
			continue;
		slot->busy = slot->ended = false;
		free(slot->own);
		slot->own = NULL;
		ends[taken++] = (struct offload_end){slot->cookie, failed ? o->status : 0,
						     failed ? o->culprit : -1};
	}
	return taken;
}

/* Once one has failed the others do, when nothing of them is under way any more. */
static bool has_stopped(struct offload *o)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	return o->status < 0 && slmpm_wq_reset(o->wq) == 0 && slmpm_wq_query(o->wq, &info) == 0 &&
	       info.posted == info.done + info.failed;
}

typedef int take_done(slmpm_cq cq, struct slmpm_done *done, int n);

static int offload_ends(struct offload *o, struct offload_end *ends, int n, take_done *take)
{
	struct slmpm_done done[ENDS];
	bool stopped;
	int got;

	runs_go_on(o);
	stopped = has_stopped(o);
	while ((got = take(o->cq, done, ENDS)) > 0)
		for (int i = 0; i < got; i++)
			note_end(o, &done[i]);
	return take_ends(o, ends, n, stopped);
}

int offload_poll(struct offload *o, struct offload_end *ends, int n)
{
	return offload_ends(o, ends, n, slmpm_cq_poll);
}

int offload_take(struct offload *o, struct offload_end *ends, int n)
{
	return offload_ends(o, ends, n, queue_take_come);
}

/* As of slmpm_cq_wait; where a run has failed, a moment for what is under way to end. */
static int wait_more(struct offload *o, uint64_t deadline, int timeout_ms)
{
	const uint64_t now = clock_now();
	struct slmpm_done done;
	int rc, left = timeout_ms;

	if (timeout_ms > 0)
		left = now < deadline ? (int)((deadline - now) / 1000000) + 1 : 0;
	rc = slmpm_cq_wait(o->cq, &done, 1, o->status < 0 && left ? 1 : left);
	if (rc == 1)
		note_end(o, &done);
	if (rc == -SLMPM_EAGAIN &&
	    timeout_ms > 0) /* the deadline has passed before it could wait */
		rc = error_set(SLMPM_ETIMEOUT, "no run has ended");
	return rc < 0 && (o->status == 0 || left == 0) ? rc : 0;
}

int offload_wait(struct offload *o, struct offload_end *ends, int n, int timeout_ms)
{
	const uint64_t deadline = timeout_ms > 0 ? clock_deadline(timeout_ms) : 0;
	int ended = offload_poll(o, ends, n), rc = 0;

	while (!ended && rc == 0) {
		rc = wait_more(o, deadline, timeout_ms);
		ended = offload_poll(o, ends, n);
	}
	return ended ? ended : rc;
}
