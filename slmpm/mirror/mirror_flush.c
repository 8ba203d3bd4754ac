/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that send changes off: flush, and the publications between begin and end. */
#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/track.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/wait.h"

/* ---- the fast path -------------------------------------------------------------------------- */

/* Does nothing stand before a packet of the mirror's? */
static inline bool mirror_flush_is_free(const struct endpoint *ep)
{
	return ep->state == SLMPM_PEER_UP && list_empty(&ep->link.deferred) &&
	       list_empty(&ep->link.queue) && !ep->bundle.count && !ep->lent && !ep->link.check;
}

/* One change that fits a packet is a publication, and out. False: not by this route. */
static inline bool send_shortly(struct attachment *a)
{
	struct endpoint *ep = a->ep;
	struct mirror *m = a->mirror;
	uint64_t lo = a->dirty.lo, n = a->dirty.hi - lo;
	struct packet p = {
		.opcode = WIRE_MIRROR_LAST,
		.length = (uint32_t)n,
		.data = m->source + lo,
		.seq = m->sequence + (m->loose || m->sequence == a->sent),
		.route = wire_route(a->peer_slot, a->taken),
		.extent = lo,
	};

	if (UNLIKELY(!n || n > attachment_room(a) || a->dirty.many || a->sending ||
		     !attachment_may_fly(a) || !mirror_flush_is_free(ep) || link_post(ep, &p) != 1))
		return false;
	ep->stats->sent_packets++;
	m->sequence = a->sent = p.seq;
	m->loose = false;
	a->dirty.lo = a->dirty.hi = 0;
	a->sent_bytes += n;
	attachment_posted(a);
	attachment_fly(a, lo, lo + n);
	attachment_pend(a, m->tracker != NULL);
	return true;
}

/* ---- flush ---------------------------------------------------------------------------------- */

struct flushing {
	struct context *ctx;
	slmpm_mirror mirror;
};

/* The first to whom something that has changed is not out; NULL, also when the mirror has ended. */
static struct attachment *first_behind(const struct flushing *f)
{
	const struct mirror *m = handle_get(&mirror_table, f->mirror.id);

	if (!m)
		return NULL;
	LIST_EACH_ENTRY(struct attachment, a, &m->attachments, of_mirror)
		if (attachment_sends(a) && (a->sending || !dirty_is_empty(&a->dirty)))
			return a;
	return NULL;
}

static bool mirror_flush_all_sent(void *arg)
{
	return !first_behind(arg);
}

static COLD int mirror_flush_too_late(const struct flushing *f, const char *call, int timeout_ms)
{
	const struct attachment *a = first_behind(f);
	char what[96];

	snprintf(what, sizeof(what), "%s: not all changes could be sent to", call);
	return late_from(f->ctx, a ? a->ep : NULL, timeout_ms, what);
}

static int mirror_flush_all(struct mirror *m, slmpm_mirror handle, const char *call, int timeout_ms)
{
	struct flushing f = {m->ctx, handle};
	bool sent = true;
	int rc;

	if (m->tracker)
		(void)track_scan(m);
	LIST_EACH_ENTRY(struct attachment, a, &m->attachments, of_mirror) {
		if (LIKELY(a->pending && send_shortly(a)))
			continue;
		sent &= !a->pending && dirty_is_empty(&a->dirty);
		if (a->pending)
			(void)link_push(a->ep);
	}
	if (LIKELY(sent) || mirror_flush_all_sent(&f))
		return 0;
	rc = wait_until(m->ctx, mirror_flush_all_sent, &f, timeout_ms);
	return rc == -SLMPM_ETIMEOUT ? mirror_flush_too_late(&f, call, timeout_ms) : rc;
}

static int in_group(const char *call)
{
	return error_set(SLMPM_ESTATE, "%s: between slmpm_mirror_begin and its end", call);
}

/* Of what is deferred only acknowledgements of changes may go meanwhile: the peers could be waiting
 * for them. */
static int open_group(slmpm_mirror mirror, const char *call)
{
	struct mirror *m = handle_get(&mirror_table, mirror.id);

	if (!m)
		return handle_error(&mirror_table, mirror.id);
	if (m->group) /* another thread was first */
		return in_group(call);
	m->group = true;
	LIST_EACH_ENTRY(struct attachment, a, &m->attachments, of_mirror)
		attachment_pend(a, a->pending && attachment_has_deferred(a));
	return 0;
}

static NOINLINE int flush_slow_path(slmpm_mirror mirror, int timeout_ms, const char *call,
				    bool begin)
{
	struct context *ctx;
	int rc = 0;
	struct mirror *m = mirror_lock(mirror, &rc);

	if (!m)
		return rc;
	ctx = m->ctx;
	rc = m->group ? in_group(call) : mirror_flush_all(m, mirror, call, timeout_ms);
	if (rc == 0 && begin)
		rc = open_group(mirror, call);
	monitor_pass(ctx);
	context_unlock(ctx);
	return rc;
}

int slmpm_mirror_flush(slmpm_mirror mirror, int timeout_ms)
{
	struct mirror *m = mirror_get(mirror);

	if (LIKELY(m && m->to && m->to->pending && !m->group && send_shortly(m->to))) {
		monitor_pass(m->ctx);
		return 0;
	}
	return flush_slow_path(mirror, timeout_ms, "slmpm_mirror_flush", false);
}

int slmpm_mirror_begin(slmpm_mirror mirror, int timeout_ms)
{
	return flush_slow_path(mirror, timeout_ms, "slmpm_mirror_begin", true);
}

int slmpm_mirror_end(slmpm_mirror mirror)
{
	int rc = 0;
	struct mirror *m = mirror_lock(mirror, &rc);

	if (!m)
		return rc;
	if (!m->group) {
		rc = error_set(SLMPM_ESTATE, "slmpm_mirror_end: without slmpm_mirror_begin");
	} else {
		if (m->tracker)
			(void)track_scan(m);
		m->group = false;
		m->sequence++;
		LIST_EACH_ENTRY(struct attachment, a, &m->attachments, of_mirror) {
			if (attachment_sends(a) && (!dirty_is_empty(&a->dirty) || m->tracker))
				attachment_pend(a, true);
			if (a->pending && !send_shortly(a))
				(void)link_push(a->ep);
		}
	}
	monitor_pass(m->ctx);
	context_unlock(m->ctx);
	return rc;
}
