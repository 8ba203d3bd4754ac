/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that who has founded a group has its members do: asked of each, begun, ended. */
#include "slmpm/group/drive.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/late.h"
#include "slmpm/connect/control.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/wait.h"
#include "slmpm/request.h"

#define CALL     "slmpm_group_drive"
#define ASKED_MS 200 /* for an answer of members, who is late */

enum drive_at { AT_ASKED, AT_AGREED, AT_WAITS, AT_ENDED };

struct drive {
	struct list node; /* of the group's */
	struct group *group;
	uint64_t number;
	struct wire_drive asked;
	struct request *request;
	uint64_t deadline; /* ns; UINT64_MAX: none */
	int timeout_ms;
	uint32_t agreed, ended; /* members */
	bool begun;
	bool stops;       /* it has begun, and is to break the group */
	uint32_t awaited; /* by one that has been asked */
	bool asks;        /* its deadline has passed: members are to name who is late */
	int status;       /* negative: why it ends */
	uint32_t culprit;
	char text[ERROR_DETAIL];
	uint8_t at[]; /* by rank: enum drive_at */
};

static struct endpoint *drive_endpoint(const struct group *g, uint32_t rank)
{
	return endpoint_get((slmpm_peer){g->members[rank].peer});
}

/* ---- what members get ------------------------------------------------------------------------ */

/* The first error stays. */
__attribute__((format(printf, 4, 5), cold)) static void drive_fail(struct drive *d, int status,
								   uint32_t culprit,
								   const char *format, ...)
{
	char text[ERROR_DETAIL];
	va_list args;

	if (d->status < 0)
		return;
	d->status = status;
	d->culprit = culprit;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_fit(d->text, sizeof(d->text), text);
}

static struct drive_address address_for(const struct drive *d, uint32_t rank)
{
	const struct group *g = d->group;

	return (struct drive_address){.group = LITTLE_64(handle_id(g)),
				      .number = LITTLE_64(d->number),
				      .join = LITTLE_32(g->members[rank].join),
				      .rank = LITTLE_32(rank)};
}

/* To RANK, another process; one that has gone needs none. */
static void drive_send(struct drive *d, uint32_t rank, uint16_t id, const void *head, size_t length)
{
	struct endpoint *ep = drive_endpoint(d->group, rank);
	int rc = ep && ep->state == SLMPM_PEER_UP ? am_answer(ep, id, head, length, NULL, 0) : 0;

	if (rc < 0)
		drive_fail(d, rc, rank, "rank %u (%s) does not take what it is sent", rank,
			   ep->life->name);
}

/* To all; to this process last, as D may be gone then. */
static void drive_say(struct drive *d, enum drive_word word)
{
	struct group *g = d->group;
	const uint32_t culprit = d->status < 0 ? d->culprit : UINT32_MAX;
	struct wire_drive_word w = {.word = LITTLE_32(word),
				    .error = LITTLE_32(wire_error(d->status)),
				    .culprit = LITTLE_32(culprit)};

	error_fit(w.text, sizeof(w.text), d->status < 0 ? d->text : "");
	for (uint32_t r = 0; r < g->boards.size; r++) {
		w.which = address_for(d, r);
		if (r != g->boards.rank)
			drive_send(d, r, DRIVE_WORD, &w, sizeof(w));
	}
	if (g->boards.own)
		(void)driven_word(g, d->number, word, d->status, culprit, w.text);
}

static void drive_ask(struct drive *d)
{
	struct group *g = d->group;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		d->asked.which = address_for(d, r);
		if (r != g->boards.rank)
			drive_send(d, r, DRIVE_PREPARE, &d->asked, sizeof(d->asked));
	}
	if (!g->boards.own)
		return;
	d->asked.which = address_for(d, g->boards.rank);
	d->asked.which.group = handle_id(g);
	driven_prepare(NULL, &d->asked);
}

/* ---- what follows from answers --------------------------------------------------------------- */

static void drive_finish(struct drive *d)
{
	struct request *r = d->request;
	int status = d->status;

	if (status < 0) {
		r->result.imm = d->culprit;
		r->owned = strdup(d->text);
	}
	list_remove(&d->node);
	d->group->ctx->news = true;
	free(d);
	request_finish(r, status);
}

/* True: it has ended. */
static bool drive_settle(struct drive *d)
{
	uint32_t size = d->group->boards.size;

	if (d->status < 0) {
		if (!d->begun || d->stops)
			drive_say(d, DRIVE_STOP);
		return true;
	}
	if (d->begun)
		return d->ended == size;
	if (d->agreed < size)
		return false;
	d->begun = true;
	drive_say(d, DRIVE_GO);
	return false;
}

/* By RANK, which is suspect for WHY, or NULL. */
static COLD void drive_blame(struct drive *d, uint32_t rank, const char *why)
{
	const struct group *g = d->group;

	d->stops = true;
	drive_fail(d, -SLMPM_ETIMEOUT, rank, "group %u: rank %u (process %d) has not %s%s%s",
		   g->tag, rank, g->boards.processes[rank], d->begun ? "ended it" : "agreed",
		   why ? ", suspect: " : "", why ? why : "");
}

/* All but one of those that have not ended wait, and say so: that one is late. */
static COLD void drive_found(struct drive *d)
{
	uint32_t silent = 0, n = 0;

	for (uint32_t r = 0; r < d->group->boards.size; r++)
		if (d->at[r] < AT_WAITS) {
			silent = r;
			n++;
		}
	if (n == 1)
		drive_blame(d, silent, NULL);
	else if (!n && d->awaited < d->group->boards.size)
		drive_blame(d, d->awaited, NULL);
}

/* In order: none begins before those that were asked for earlier. */
static void settle_all(struct group *g)
{
	bool waits = false;

	LIST_EACH_ENTRY(struct drive, d, &g->drives, node) {
		if (waits && d->status == 0)
			continue;
		if (drive_settle(d))
			drive_finish(d);
		else
			waits |= !d->begun;
	}
}

void drives_settle(struct group *g)
{
	g->unsettled = true;
	if (g->settling)
		return;
	g->settling = true;
	while (g->unsettled) {
		g->unsettled = false;
		settle_all(g);
	}
	g->settling = false;
}

static struct drive *drive_find(const struct group *g, uint64_t number)
{
	LIST_EACH_ENTRY(struct drive, d, &g->drives, node)
		if (d->number == number)
			return d;
	return NULL;
}

void drive_answer(struct group *g, uint32_t rank, uint64_t number, enum drive_word word, int status,
		  uint32_t culprit, const char *text)
{
	struct drive *d = drive_find(g, number);
	struct endpoint *ep = drive_endpoint(g, rank);

	if (!d || d->at[rank] == AT_ENDED) /* it has failed by another */
		return;
	if (word == DRIVE_AGREED) {
		d->agreed += d->at[rank] == AT_ASKED;
		d->at[rank] = AT_AGREED;
		return;
	}
	if (word == DRIVE_AWAITS) {
		if (!d->asks)
			return;
		d->at[rank] = AT_WAITS;
		d->awaited = culprit < d->awaited ? culprit : d->awaited;
		drive_found(d);
		return;
	}
	d->at[rank] = AT_ENDED;
	d->ended++;
	if (status == 0 && !d->begun)
		status = -SLMPM_EPROTO;
	if (status < 0)
		drive_fail(d, status, culprit < g->boards.size ? culprit : rank,
			   "rank %u (%s) says: %s", rank, ep ? ep->life->name : "this process",
			   text);
}

/* ---- what arrives ---------------------------------------------------------------------------- */

static bool take_address(struct drive_address *a)
{
	a->group = LITTLE_64(a->group);
	a->number = LITTLE_64(a->number);
	a->join = LITTLE_32(a->join);
	a->rank = LITTLE_32(a->rank);
	return a->number;
}

/* The group of this process's that EP is RANK of, by the handle that it was given. */
static struct group *group_driven(const struct endpoint *ep, const struct drive_address *a)
{
	struct group *g = handle_get(&group_table, a->group);

	if (!g || g->ctx != ep->ctx || a->rank >= g->boards.size || !g->members)
		return NULL;
	return g->members[a->rank].peer == handle_id(ep) ? g : NULL;
}

static struct group *group_driving(const struct endpoint *ep, uint32_t join)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node)
		if (g->founder == handle_id(ep) && g->join == join)
			return g;
	return NULL;
}

static void drive_word_arrived(struct endpoint *ep, struct wire_drive_word *w)
{
	uint32_t word = LITTLE_32(w->word), error = LITTLE_32(w->error);
	bool sound =
		take_address(&w->which) && error <= WIRE_ERROR_LAST && word && word < DRIVE_WORDS;
	char text[DRIVE_TEXT];
	struct group *g;

	if (endpoint_broke(ep, "word of a driven operation", !sound))
		return;
	control_text(text, sizeof(text), w->text, sizeof(w->text));
	if (word <= DRIVE_STOP || word == DRIVE_LATE) {
		g = group_driving(ep, w->which.join);
		if (g && !driven_word(g, w->which.number, word, wire_status(error),
				      LITTLE_32(w->culprit), text))
			(void)endpoint_broke(ep, "order of operations", true);
		return;
	}
	g = group_driven(ep, &w->which);
	if (!g) /* it has gone */
		return;
	drive_answer(g, w->which.rank, w->which.number, word, wire_status(error),
		     LITTLE_32(w->culprit), text);
	drives_settle(g);
}

void drive_arrived(struct endpoint *ep, const struct slmpm_am *am)
{
	union {
		struct wire_drive drive;
		struct wire_drive_word word;
	} w;
	size_t length = am->id == DRIVE_PREPARE ? sizeof(w.drive) : sizeof(w.word);

	if (ep->closing)
		return;
	if (endpoint_broke(ep, "length of a driven operation",
			   am->head_len != length || am->data_len))
		return;
	memcpy(&w, am->head, length);
	if (am->id == DRIVE_PREPARE)
		driven_prepare(ep, &w.drive);
	else
		drive_word_arrived(ep, &w.word);
}

/* ---- those that go, or are late -------------------------------------------------------------- */

static void drives_lost(struct group *g, uint32_t rank, const struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct drive, d, &g->drives, node)
		if (d->at[rank] != AT_ENDED)
			drive_fail(d, ep->life->error ? -ep->life->error : -SLMPM_ECLOSED, rank,
				   "rank %u (%s) of group %u: %s", rank, ep->life->name, g->tag,
				   ep->life->reason[0] ? ep->life->reason : "it has been closed");
	drives_settle(g);
}

void drive_peer_ended(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node) {
		if (g->founder == handle_id(ep))
			driven_orphaned(g, ep);
		for (uint32_t r = 0; !list_empty(&g->drives) && r < g->boards.size; r++)
			if (g->members[r].peer == handle_id(ep))
				drives_lost(g, r, ep);
	}
}

/* Who has not answered yet: one that is suspect, or the first; the group's size: none. */
static uint32_t late_rank(const struct drive *d, const char **why)
{
	uint32_t size = d->group->boards.size, first = size;

	*why = NULL;
	for (uint32_t r = 0; r < size && !*why; r++) {
		if (d->at[r] == AT_ENDED || (!d->begun && d->at[r] == AT_AGREED))
			continue;
		*why = r == d->group->boards.rank ? NULL : member_suspicion(d->group, r);
		first = *why || first == size ? r : first;
	}
	return first;
}

static COLD void drive_late(struct drive *d)
{
	const struct drive *by = d;
	const char *why;
	uint32_t r = late_rank(d, &why);

	for (uint32_t s = 0; d->asks && !why && s < d->group->boards.size; s++)
		if (d->at[s] < AT_WAITS) { /* the first that does not answer */
			r = s;
			break;
		}
	/* It waits for one before it, to which a member has not agreed. */
	for (; r == d->group->boards.size; r = late_rank(by, &why))
		by = LIST_ENTRY(by->node.prev, struct drive, node);
	if (!d->begun || why || d->asks || d->group->boards.size - d->ended == 1) {
		drive_blame(d, r, why);
		return;
	}
	/* Which of these the others wait for they know alone. */
	d->asks = true;
	d->deadline = clock_deadline(ASKED_MS);
	drive_say(d, DRIVE_LATE);
}

uint64_t drives_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		bool late = false;

		if (list_empty(&g->drives))
			continue;
		g->settling = true; /* this process may answer at once */
		LIST_EACH_ENTRY(struct drive, d, &g->drives, node) {
			if (d->deadline <= now) {
				drive_late(d);
				late = true;
			}
			if (d->deadline > now)
				next = d->deadline < next ? d->deadline : next;
		}
		g->settling = false;
		if (late)
			drives_settle(g);
	}
	return next;
}

void drives_shut(struct group *g)
{
	LIST_EACH_ENTRY(struct drive, d, &g->drives, node) {
		drive_fail(d, -SLMPM_ECLOSED, UINT32_MAX, "the context has been closed");
		drive_finish(d);
	}
}

/* ---- the call -------------------------------------------------------------------------------- */

static int check_connections(const struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct endpoint *ep = drive_endpoint(g, r);

		if (r == g->boards.rank)
			continue;
		if (!ep || ep->closing)
			return error_set(SLMPM_ECLOSED, CALL ": rank %u: it has been closed", r);
		if (ep->state != SLMPM_PEER_UP)
			return error_set(ep->life->error ? ep->life->error : SLMPM_ECLOSED,
					 CALL ": rank %u (%s): %s", r, ep->life->name,
					 ep->life->reason);
		if (!ep->active)
			return error_set(SLMPM_ENOTSUP,
					 CALL ": rank %u (%s) does not know active messages", r,
					 ep->life->name);
	}
	return 0;
}

static uint32_t drives_count(const struct group *g)
{
	uint32_t n = 0;

	LIST_EACH(at, &g->drives)
		n++;
	return n;
}

/* Who has founded it, and is no member, knows nothing of a group's later forms. */
int drive_suits(const struct group *g, const char *call)
{
	return g->boards.generation ?
		       error_set(SLMPM_ESTATE, "%s: the group has been shrunk", call) :
		       0;
}

static int check_drive(const struct group *g, const struct slmpm_drive *c)
{
	struct slmpm_coll coll = {
		.kind = c->kind, .type = c->type, .op = c->op, .root = c->root, .count = c->count};
	uint64_t from, to;
	int rc;

	if (g->state != GROUP_HAS_FORMED)
		return group_unformed(g, CALL);
	if (g->founder)
		return error_set(SLMPM_ESTATE, CALL ": this process has not founded the group");
	rc = drive_suits(g, CALL);
	if (rc < 0)
		return rc;
	if (c->flags & ~SLMPM_DRIVE_IN_PLACE)
		return error_set(SLMPM_EINVAL, CALL ": flags 0x%x", c->flags);
	rc = flat_needs(&coll, g->boards.size, 0, &from, &to);
	if (rc < 0)
		return operation_refused(&coll, CALL, rc);
	if (drives_count(g) >= SLMPM_DRIVES)
		rc = error_set(SLMPM_ELIMIT, CALL ": %d are outstanding", SLMPM_DRIVES);
	return rc < 0 ? rc : check_connections(g);
}

static struct drive *drive_new(struct group *g, const struct slmpm_drive *c,
			       const struct slmpm_how *how)
{
	struct drive *d = calloc(1, sizeof(*d) + g->boards.size);

	if (!d) {
		(void)error_set(SLMPM_ENOMEM, "for a driven operation");
		return NULL;
	}
	d->group = g;
	d->awaited = UINT32_MAX;
	d->number = ++g->driven_last;
	d->timeout_ms = how->timeout_ms;
	d->deadline = how->timeout_ms > 0 ? clock_deadline(how->timeout_ms) : UINT64_MAX;
	d->asked = (struct wire_drive){.from = LITTLE_64(c->from),
				       .to = LITTLE_64(c->to),
				       .count = LITTLE_64(c->count),
				       .kind = LITTLE_32(c->kind),
				       .type = LITTLE_32(c->type),
				       .op = LITTLE_32(c->op),
				       .root = LITTLE_32((uint32_t)c->root),
				       .flags = LITTLE_32(c->flags),
				       .from_space = LITTLE_32(c->from_space),
				       .to_space = LITTLE_32(c->to_space),
				       .imm = LITTLE_32(how->imm)};
	return d;
}

static bool drive_is_over(void *arg)
{
	const struct request *r = arg;

	return r->done;
}

static int drive_await(struct request *r)
{
	int rc;

	(void)wait_until(r->ctx, drive_is_over, r, -1); /* its deadline is its own */
	rc = r->result.status;
	if (rc < 0)
		rc = error_set(-rc, "%s", r->owned ? (const char *)r->owned : CALL);
	request_drop(r);
	return rc;
}

static int drive_begin(struct group *g, const struct slmpm_drive *c, const struct slmpm_how *how,
		       slmpm_req *req)
{
	struct context *ctx = g->ctx;
	struct request *r = request_new(ctx);
	struct drive *d;
	uint64_t id;
	bool bound;
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	(void)request_init(r, REQUEST_COLLECTIVE, ctx, NULL, 0, NULL, 0);
	r->result.stream = c->kind;
	id = handle_id(r);
	rc = completion_bind(r, how, req);
	d = rc == 0 ? drive_new(g, c, how) : NULL;
	if (!d) {
		request_drop(r);
		return rc < 0 ? rc : -SLMPM_ENOMEM;
	}
	bound = r->bound;
	d->request = r;
	list_append(&g->drives, &d->node);
	g->settling = true; /* a peer that ends meanwhile does not end it under the loop */
	drive_ask(d);
	g->settling = false;
	drives_settle(g);
	if (completion_blocks(how, req))
		return drive_await(r);
	if (!bound)
		req->id = id;
	operation_leave(ctx, how->timeout_ms > 0 || g->under_way);
	return 0;
}

int slmpm_group_drive(slmpm_group group, const struct slmpm_drive *drive,
		      const struct slmpm_how *how, slmpm_req *req)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);
	struct slmpm_drive full;
	struct slmpm_how all;

	if (!g)
		return rc;
	rc = sized_take(CALL, &full, drive, sizeof(full));
	if (rc == 0)
		rc = how_take(CALL, &all, how, 0);
	if (rc == 0)
		rc = check_drive(g, &full);
	if (rc == 0 && completion_blocks(&all, req)) {
		rc = context_forbids(ctx, CALL);
		if (rc == 0 && !all.timeout_ms)
			rc = error_set(SLMPM_EAGAIN, CALL ": members are to answer");
	} else if (rc == 0) {
		rc = engine_stand_by(ctx);
	}
	if (rc == 0)
		rc = drive_begin(g, &full, &all, req);
	if (rc < 0)
		rc = error_name_call(CALL, rc);
	context_unlock(ctx);
	return rc;
}
