/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meetings: barriers that outlive members and deadlines. All members decide each one alike, without
 * a word more than the boards have, for by what they decide nothing changes any more: how many
 * meetings a member has come to before it left (then it counts as being at all) or died. Those that
 * have no boards agree on that first (attendance.c).
 */
#include "slmpm/group/operation.h"

#include <inttypes.h>

#include "slmpm/completion/late.h"
#include "slmpm/context.h"
#include "slmpm/group/page.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"

#define CALL "slmpm_group_meet"

/* ---- decided --------------------------------------------------------------------------------- */

/* Rank R comes to no more: its process has ended, or its context. */
static bool has_ended(const struct group *g, uint32_t r)
{
	uint32_t culprit;

	return member_of(g, r)->ended ||
	       (boards_ended(&g->boards, r, &culprit) == -SLMPM_ECLOSED && culprit == r);
}

/* Rank R died, or its context ended, on the way to the meeting. What it came to is final then. */
static bool has_missed(const struct group *g, uint32_t r)
{
	return has_ended(g, r) && boards_came(&g->boards, r) == g->meeting.number - 1;
}

/* The same of one that has been left out since: others may have decided by it before. */
static bool one_was_lost(struct group *g)
{
	struct meeting *m = &g->meeting;

	for (uint32_t s = 0; s < g->seats; s++)
		if (g->members[s].out && g->members[s].came == m->number - 1) {
			m->lost = g->members[s].pid;
			return true;
		}
	return false;
}

/* 1: all are there, but those that had ended before; 0: m->next is waited for; or negative. */
static int meeting_decide(struct group *g)
{
	struct meeting *m = &g->meeting;

	if (UNLIKELY(g->apart))
		return attendance_decide(g);
	if (UNLIKELY(g->boards.generation) && one_was_lost(g))
		return -SLMPM_EDEAD;
	for (;; m->next++) {
		m->next = boards_missing(&g->boards, m->number, m->next);
		if (m->next == g->boards.size)
			return 1;
		if (LIKELY(!has_ended(g, m->next)))
			return 0;
		if (has_missed(g, m->next))
			return -SLMPM_EDEAD;
	}
}

/* Nor need the others be waited for where one has missed it. */
static int meeting_inspect(struct group *g)
{
	struct meeting *m = &g->meeting;
	int rc = meeting_decide(g);

	for (uint32_t r = m->next + 1; rc == 0 && !g->apart && r < g->boards.size; r++)
		if (r != g->boards.rank && has_missed(g, r)) {
			m->next = r;
			rc = -SLMPM_EDEAD;
		}
	return rc;
}

static void meeting_settle(struct group *g, int result)
{
	struct meeting *m = &g->meeting;

	m->result = result;
	if (UNLIKELY(g->apart))
		attendance_settled(g, result > 0);
	if (!m->waits)
		return;
	m->waits = false;
	g->ctx->collecting--;
	group_announce_no_more(g);
}

bool meeting_advance(struct group *g)
{
	while (g->meeting.waits) {
		int rc = meeting_inspect(g);

		if (rc) {
			meeting_settle(g, rc);
			return true;
		}
		/* What came before it was announced has rung no bell (operation.c). */
		if (!g->ctx->armed || g->apart || group_is_announced(g))
			break;
		group_announce(g);
	}
	return false;
}

static void meeting_come(struct group *g, uint64_t number)
{
	if (UNLIKELY(g->apart))
		attendance_come(g, number);
	else
		boards_come(&g->boards, number);
}

void meeting_formed(struct group *g)
{
	if (g->meeting.pending)
		meeting_come(g, g->meeting.number);
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool meeting_is_over(void *arg)
{
	struct group *g = arg;

	if (g->meeting.waits)
		(void)meeting_advance(g);
	return g->meeting.result;
}

/* The deadline has passed; the meeting stands. */
static COLD int meeting_late(struct group *g, int timeout_ms)
{
	uint32_t r = g->meeting.next;
	const char *why = distant_unreached(g, r);
	char waited[GROUP_WAITED];

	group_page_waited(g, timeout_ms, waited);
	return late_error(g->ctx, NULL, timeout_ms,
			  CALL ": meeting %" PRIu64 " of group %u: " BOARD_MEMBER
			       " has not come%s%s%s",
			  g->meeting.number, g->tag, BOARD_MEMBER_OF(&g->boards, r),
			  *why ? ", and is not reached: " : "", why, waited);
}

static int meeting_wait(struct group *g, int timeout_ms)
{
	struct meeting *m = &g->meeting;

	if (!m->waits) {
		m->waits = true;
		g->ctx->collecting++;
	}
	if (UNLIKELY(g->ctx->away)) /* another thread, which knows nothing of it */
		context_wake(g->ctx);
	m->inside = true;
	(void)wait_until(g->ctx, meeting_is_over, g, timeout_ms);
	m->inside = false;
	return m->result ? 0 : meeting_late(g, timeout_ms);
}

/* Of this process, the end of what it has come to. */
static int meeting_conclude(struct group *g)
{
	struct meeting *m = &g->meeting;
	const char *why;
	int rc = m->result;

	m->result = 0;
	m->pending = false;
	if (LIKELY(rc > 0))
		return 0;
	if (m->lost)
		return error_set(-rc,
				 CALL ": meeting %" PRIu64 " of group %u: a former member (process "
				      "%d) died before it had come",
				 m->number, g->tag, m->lost);
	why = distant_unreached(g, m->next);
	return error_set(-rc,
			 CALL ": meeting %" PRIu64 " of group %u: " BOARD_MEMBER
			      " died before it had come%s%s",
			 m->number, g->tag, BOARD_MEMBER_OF(&g->boards, m->next), *why ? ": " : "",
			 why);
}

static void meeting_begin(struct group *g)
{
	struct meeting *m = &g->meeting;

	m->pending = true;
	m->next = 0;
	m->lost = 0;
	m->number++;
	if (LIKELY(g->state == GROUP_HAS_FORMED)) /* else when it has */
		meeting_come(g, m->number);
}

static COLD int meeting_forbidden(struct group *g)
{
	if (g->ctx->handling)
		return context_forbids(g->ctx, CALL);
	if (g->state == GROUP_HAS_FAILED)
		return group_unformed(g, CALL);
	if (!g->boards.own)
		return founder_refused(CALL);
	return error_set(SLMPM_EBUSY, CALL ": another thread waits in it");
}

/* Before the first one: what it takes counts. */
static COLD int meeting_form(struct group *g, int *timeout_ms)
{
	uint64_t deadline = clock_deadline(*timeout_ms);
	int rc;

	g->meeting.inside = true;
	rc = group_await(g, *timeout_ms);
	g->meeting.inside = false;
	if (*timeout_ms > 0)
		*timeout_ms = clock_ms(clock_now(), deadline, -1);
	if (rc < 0)
		return error_name_call(CALL, rc);
	return g->state == GROUP_HAS_FAILED ? meeting_forbidden(g) : 0;
}

static int meet_or_stand(struct group *g, int timeout_ms)
{
	struct meeting *m = &g->meeting;
	int passes = collective_passes(g->ctx), rc = 0;

	if (UNLIKELY(g->ctx->handling || g->state == GROUP_HAS_FAILED || !g->boards.own ||
		     m->inside))
		return meeting_forbidden(g);
	if (!m->pending)
		meeting_begin(g);
	if (UNLIKELY(g->state == GROUP_IS_FORMING))
		rc = meeting_form(g, &timeout_ms);
	if (UNLIKELY(rc < 0))
		return rc;
	if (UNLIKELY(g->apart)) { /* another's word comes by progress alone */
		passes = 1;
		m->inside = true;
		if (!timeout_ms)
			(void)wait_inspect(g->ctx);
		m->inside = false;
	}
	while (!m->result && (m->result = meeting_decide(g)) == 0 && --passes > 0)
		clock_between_polls();
	if (LIKELY(m->result))
		meeting_settle(g, m->result);
	else
		rc = meeting_wait(g, timeout_ms);
	return rc < 0 ? rc : meeting_conclude(g);
}

int slmpm_group_meet(slmpm_group group, int timeout_ms)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);

	if (!g)
		return rc;
	rc = meet_or_stand(g, timeout_ms);
	context_unlock(ctx);
	return rc;
}
