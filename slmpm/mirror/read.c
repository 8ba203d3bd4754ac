/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading what belongs together. A snapshot that has to wait is taken where the publication ends
 * that it waits for, before anything of the next is stored: whoever publishes without a pause
 * starves nobody.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/message/message.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/link/wait.h"

struct snapshot {
	struct list node;
	slmpm_mirror mirror;
	slmpm_peer peer;
	const struct slmpm_span *spans;
	int n;
	unsigned char *to;
	uint64_t sequence;
	int status; /* 1: it waits */
};

/* ---- what is here --------------------------------------------------------------------------- */

/* Nothing will come any more: its error, else 0. */
static int read_is_over(const struct attachment *a)
{
	return a->state == ATTACHMENT_STALE ? a->error : 0;
}

static int explain(const struct attachment *a, const char *what)
{
	const struct endpoint *ep = handle_get(&endpoint_table, a->peer);

	return error_set(-a->error, "%s: publication %llu was the last as a whole from %s", what,
			 (unsigned long long)a->sequence,
			 ep ? ep->life->name : "a peer that was closed");
}

/* Nothing has come in time from A, which is not over. */
static COLD int read_too_late(const struct attachment *a, const char *call, int timeout_ms)
{
	char what[128];

	if (a->coming)
		snprintf(what, sizeof(what), "%s: of publication %llu only a part has come from",
			 call, (unsigned long long)a->coming);
	else
		snprintf(what, sizeof(what), "%s: publication %llu is still the last from", call,
			 (unsigned long long)a->sequence);
	return late_from(a->ep->ctx, a->ep, timeout_ms, what);
}

/* ---- waiting for a publication -------------------------------------------------------------- */

struct waiting {
	slmpm_mirror mirror;
	slmpm_peer peer;
	uint64_t sequence;
	struct attachment *found;
};

static bool has_passed(void *arg)
{
	struct waiting *w = arg;
	const struct mirror *m = handle_get(&mirror_table, w->mirror.id);

	w->found = m ? mirror_find(m, w->peer) : NULL;
	return !w->found || w->found->sequence > w->sequence || read_is_over(w->found);
}

static int wait_for(struct context *ctx, struct waiting *w, uint64_t *sequence, int timeout_ms)
{
	int rc = wait_until(ctx, has_passed, w, timeout_ms);

	if (!handle_get(&mirror_table, w->mirror.id))
		return handle_error(&mirror_table, w->mirror.id);
	if (!w->found)
		return mirror_not_attached("slmpm_mirror_wait");
	if (w->found->sequence > w->sequence) {
		*sequence = w->found->sequence;
		return 0;
	}
	if (rc == 0)
		return explain(w->found, "slmpm_mirror_wait");
	return read_too_late(w->found, "slmpm_mirror_wait", timeout_ms);
}

int slmpm_mirror_wait(slmpm_mirror mirror, slmpm_peer peer, uint64_t *sequence, int timeout_ms)
{
	struct waiting w = {.mirror = mirror, .peer = peer};
	struct context *ctx;
	struct mirror *m;
	int rc = 0;

	if (!sequence)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_wait: no number");
	w.sequence = *sequence;
	m = mirror_lock(mirror, &rc);
	if (!m)
		return rc;
	ctx = m->ctx;
	rc = timeout_ms ? context_forbids(ctx, "slmpm_mirror_wait") : 0;
	if (rc == 0)
		rc = wait_for(ctx, &w, sequence, timeout_ms);
	context_unlock(ctx);
	return rc;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static void read_copy_out(const struct mirror *m, struct snapshot *s)
{
	unsigned char *to = s->to;

	for (int i = 0; i < s->n; i++) {
		mirror_load(to, m->base + s->spans[i].offset, s->spans[i].len);
		to += s->spans[i].len;
	}
}

static void try_to_take(const struct mirror *m, struct snapshot *s)
{
	const struct attachment *a = mirror_find(m, s->peer);

	if (!a) {
		s->status = -SLMPM_EINVAL;
	} else if (a->sequence && !a->coming && !a->cut) {
		read_copy_out(m, s);
		s->sequence = a->sequence;
		s->status = 0;
	} else if (read_is_over(a)) {
		s->status = read_is_over(a);
	}
}

void read_serve(struct mirror *m)
{
	LIST_EACH_ENTRY(struct snapshot, s, &m->snapshots, node) {
		if (s->status == 1)
			try_to_take(m, s);
		if (s->status != 1)
			list_remove(&s->node);
	}
}

void read_end(struct mirror *m)
{
	LIST_EACH(at, &m->snapshots) {
		LIST_ENTRY(at, struct snapshot, node)->status = -SLMPM_EHANDLE;
		list_remove(at);
	}
	context_changed(m->ctx);
}

static bool is_taken(void *arg)
{
	const struct snapshot *s = arg;

	return s->status != 1;
}

static int snapshot(struct mirror *m, struct snapshot *s, uint64_t *sequence, int timeout_ms)
{
	struct context *ctx = m->ctx;
	const struct attachment *a;

	s->status = 1;
	list_append(&m->snapshots, &s->node);
	read_serve(m);
	(void)wait_until(ctx, is_taken, s, timeout_ms);
	list_remove(&s->node);
	if (s->status == 0 && sequence)
		*sequence = s->sequence;
	if (s->status == 0)
		return 0;
	if (handle_get(&mirror_table, s->mirror.id) != m)
		return handle_error(&mirror_table, s->mirror.id);
	a = mirror_find(m, s->peer);
	if (!a)
		return mirror_not_attached("slmpm_mirror_snapshot");
	return s->status == 1 ? read_too_late(a, "slmpm_mirror_snapshot", timeout_ms) :
				explain(a, "slmpm_mirror_snapshot");
}

static int read_check_spans(const struct mirror *m, const struct snapshot *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->spans[i].offset > m->size || s->spans[i].len > m->size - s->spans[i].offset)
			return error_set(SLMPM_EINVAL,
					 "slmpm_mirror_snapshot: span %d is not in the mirror", i);
	return 0;
}

int slmpm_mirror_snapshot(slmpm_mirror mirror, slmpm_peer peer, const struct slmpm_span *spans,
			  int n, void *to, uint64_t *sequence, int timeout_ms)
{
	struct snapshot s = {.mirror = mirror, .peer = peer, .spans = spans, .n = n, .to = to};
	struct context *ctx;
	struct mirror *m;
	int rc = 0;

	if (n < 0 || (n && (!spans || !to)))
		return error_set(SLMPM_EINVAL, "slmpm_mirror_snapshot: %d spans at %p to %p", n,
				 (const void *)spans, to);
	m = mirror_lock(mirror, &rc);
	if (!m)
		return rc;
	ctx = m->ctx;
	list_init(&s.node);
	rc = timeout_ms ? context_forbids(ctx, "slmpm_mirror_snapshot") : 0;
	if (rc == 0)
		rc = read_check_spans(m, &s);
	if (rc == 0)
		rc = snapshot(m, &s, sequence, timeout_ms);
	context_unlock(ctx);
	return rc;
}

/* ---- without the lock ------------------------------------------------------------------------ */

int slmpm_mirror_enter(slmpm_mirror mirror, uint64_t *turn)
{
	struct mirror *m = handle_get_sized(&mirror_table, mirror.id, sizeof(*m));

	if (!m)
		return handle_error(&mirror_table, mirror.id);
	if (UNLIKELY(!turn))
		return error_set(SLMPM_EINVAL, "slmpm_mirror_enter: nowhere to put the turn");
	/* Pairs with the store in mirror_close. */
	*turn = atomic_load_explicit(&m->turn, memory_order_acquire);
	return *turn & 1 ? -SLMPM_EAGAIN : 0;
}

int slmpm_mirror_leave(slmpm_mirror mirror, uint64_t turn)
{
	struct mirror *m = handle_get_sized(&mirror_table, mirror.id, sizeof(*m));

	if (!m)
		return handle_error(&mirror_table, mirror.id);
	/* Pairs with the fence in open_up. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&m->turn, memory_order_relaxed) == turn ? 0 : -SLMPM_EAGAIN;
}
