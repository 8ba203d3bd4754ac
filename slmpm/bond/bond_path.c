/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bond's paths: what is posted to one, and how one is lost. First it takes nothing more, and what
 * it still holds is read; then, if the present packets came by it, the peer is asked for the
 * others.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/bond/bond_parts.h"

COLD int bond_poison(struct bond *b, const char *violation)
{
	b->base.violation = violation;
	return -EPROTO;
}

int bond_path_post(struct bond *b, struct bond_path *p, const struct fabric_wr *wr)
{
	struct fabric_wr alone;
	int rc;

	if (UNLIKELY(wr->flags & FABRIC_STAYS)) { /* the next one may go by another path */
		alone = *wr;
		alone.flags &= (uint16_t)~FABRIC_STAYS;
		wr = &alone;
	}
	rc = p->fabric->post(p->port, wr);
	if (LIKELY(rc > 0))
		return 1;
	if (rc == 0) {
		b->base.lags = true;
		return 1;
	}
	if (rc == -EPROTO)
		return bond_poison(b, p->port->violation);
	if (rc == -EPIPE) {
		bond_path_lost(b, p, false, p->port->lost);
		return -EAGAIN;
	}
	return rc;
}

int bond_path_send(struct bond *b, struct bond_path *p, uint8_t kind, uint64_t a, uint64_t c,
		   uint64_t d)
{
	struct fabric_wr wr = {.op = FABRIC_SEND, .kind = kind, .head = {a, c, d}};

	if (p->state != PATH_UP)
		return -EAGAIN;
	/* Who waits for an acknowledgement asks for it again. */
	p->watch.said |= kind != WIRE_BOND_ACK && kind != WIRE_BOND_PROBE;
	return bond_path_post(b, p, &wr);
}

int bond_send_control(struct bond *b, uint8_t kind, uint64_t a, uint64_t c, uint64_t d)
{
	int rc = -EAGAIN;

	/* First by that which others go by, too: the peer looks there most often. */
	for (uint32_t i = 0; i < BOND_PATHS && rc == -EAGAIN; i++)
		rc = bond_path_send(b, &b->paths[(b->out.path + i) % BOND_PATHS], kind, a, c, d);
	return rc;
}

/* ---- loss ----------------------------------------------------------------------------------- */

COLD void bond_path_leave(struct bond *b, struct bond_path *p)
{
	if (p->state != PATH_LOST || p->unreleased || p->gone || p == b->memory)
		return;
	p->fabric->disconnect(p->port);
	p->gone = true;
}

static void bond_path_shut(struct bond *b, struct bond_path *p, const char *why)
{
	uint32_t index = bond_index(b, p);

	bond_tell(b);
	p->state = PATH_SHUT;
	p->reason = why ? why : "it is lost";
	b->lost |= (uint8_t)(1u << index);
	/* What was said by it last may be lost with it. */
	b->has_deferred |= DEFER_LOST | DEFER_ACK | DEFER_ASK;
	if (b->out.path == index)
		b->out.stopped = true;
	if (b->out.wanted == (int32_t)index)
		b->out.wanted = -1;
	if (p == b->memory)
		b->memory_lost = true;
	if (p->port->lags) {
		b->out.in_part = b->out.sent != b->base.domain->config.start;
		b->out.again = b->out.sent;
		b->out.resumed = false;
	}
}

/* What is landing comes again by another path: this one must not write there any more. */
static void leave_place(struct bond_path *p)
{
	struct fabric_wr wr = {.op = FABRIC_LAND};

	if (p->lands && !p->port->lost)
		(void)p->fabric->post(p->port, &wr);
	p->lands = false;
}

/* Operations on memory that were under way: no poll of the link's tells of them any more. */
static void end_operations(struct bond *b, struct bond_path *p)
{
	struct fabric_wr wr = {.op = FABRIC_FLUSH, .flags = FABRIC_CANCEL};
	struct fabric_done *ops = b->base.ops;

	(void)p->fabric->post(p->port, &wr);
	for (int i = 0; ops && i < FABRIC_OPS; i++)
		if (ops[i].status == FABRIC_PENDING)
			ops[i].status = -ENOLINK;
}

COLD void bond_path_lost(struct bond *b, struct bond_path *p, bool drained, const char *why)
{
	b->busy = true;
	if (p->state == PATH_UP)
		bond_path_shut(b, p, why);
	if (p->state != PATH_SHUT || !drained)
		return;
	bond_tell(b);
	p->state = PATH_LOST;
	leave_place(p);
	if (p == b->memory)
		end_operations(b, p);
	/* Also when it was by this one that RESUME went, or RESTART was to come. */
	if (b->in.waiting || bond_index(b, p) == b->in.path)
		bond_await_restart(b);
	bond_path_leave(b, p);
}

static void give_reasons(struct bond *b)
{
	size_t at = 0;

	PATH_EACH(p, b)
		if (p->reason && at < sizeof(b->reasons))
			at += (size_t)snprintf(b->reasons + at, sizeof(b->reasons) - at,
					       "%slink %u: %s", at ? "; " : "", bond_index(b, p),
					       p->reason);
	b->base.lost = b->reasons;
}

int bond_check_paths(struct bond *b)
{
	if (bond_up(&b->base) || b->may_reconnect)
		return 0;
	if (!b->base.lost)
		give_reasons(b);
	return -EPIPE;
}

int bond_is_lost(struct bond *b)
{
	PATH_EACH(p, b)
		if (bond_is_live(p))
			return 0;
	return bond_check_paths(b);
}
