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

/* Why a wait has not come to what it was for. */
static COLD int read_failed(slmpm_mirror mirror, slmpm_peer peer, const char *call, int timeout_ms)
{
	const struct mirror *m = handle_get(&mirror_table, mirror.id);
	const struct attachment *a = m ? mirror_find(m, peer) : NULL;
	const struct endpoint *ep = a ? handle_get(&endpoint_table, a->peer) : NULL;
	char what[128];

	if (!m)
		return handle_error(&mirror_table, mirror.id);
	if (!a)
		return mirror_not_attached(call);
	if (a->error)
		return error_set(-a->error, "%s: publication %llu was the last as a whole from %s",
				 call, (unsigned long long)a->sequence,
				 ep ? ep->life->name : "a peer that was closed");
	if (a->coming)
		snprintf(what, sizeof(what), "%s: of publication %llu only a part has come from",
			 call, (unsigned long long)a->coming);
	else
		snprintf(what, sizeof(what), "%s: publication %llu is still the last from", call,
			 (unsigned long long)a->sequence);
	return late_from(m->ctx, a->ep, timeout_ms, what);
}

/* ---- waiting for a publication -------------------------------------------------------------- */

struct waiting {
	slmpm_mirror mirror;
	slmpm_peer peer;
	uint64_t after, passed; /* 0: none behind AFTER yet */
};

static bool has_passed(void *arg)
{
	struct waiting *w = arg;
	const struct mirror *m = handle_get(&mirror_table, w->mirror.id);
	const struct attachment *a = m ? mirror_find(m, w->peer) : NULL;

	w->passed = a && a->sequence > w->after ? a->sequence : 0;
	return !a || w->passed || a->error;
}

int slmpm_mirror_wait(slmpm_mirror mirror, slmpm_peer peer, uint64_t *sequence, int timeout_ms)
{
	struct waiting w = {.mirror = mirror, .peer = peer};
	struct context *ctx;
	struct mirror *m;
	int rc = 0;

	if (!sequence)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_wait: no number");
	w.after = *sequence;
	m = mirror_lock(mirror, &rc);
	if (!m)
		return rc;
	ctx = m->ctx;
	rc = timeout_ms ? context_forbids(ctx, "slmpm_mirror_wait") : 0;
	if (rc == 0) {
		(void)wait_until(ctx, has_passed, &w, timeout_ms);
		if (w.passed)
			*sequence = w.passed;
		else
			rc = read_failed(mirror, peer, "slmpm_mirror_wait", timeout_ms);
	}
	context_unlock(ctx);
	return rc;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static void try_to_take(const struct mirror *m, struct snapshot *s)
{
	const struct attachment *a = mirror_find(m, s->peer);
	unsigned char *to = s->to;

	if (!a) {
		s->status = -SLMPM_EINVAL;
	} else if (a->sequence && !a->coming && !a->cut) {
		for (int i = 0; i < s->n; to += s->spans[i++].len)
			mirror_load(to, m->base + s->spans[i].offset, s->spans[i].len);
		s->sequence = a->sequence;
		s->status = 0;
	} else if (a->error) {
		s->status = a->error;
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
	s->status = 1;
	list_append(&m->snapshots, &s->node);
	read_serve(m);
	(void)wait_until(m->ctx, is_taken, s, timeout_ms);
	list_remove(&s->node);
	if (s->status != 0)
		return read_failed(s->mirror, s->peer, "slmpm_mirror_snapshot", timeout_ms);
	if (sequence)
		*sequence = s->sequence;
	return 0;
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
	struct mirror *m = mirror_get(mirror);

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
	struct mirror *m = mirror_get(mirror);

	if (!m)
		return handle_error(&mirror_table, mirror.id);
	/* Pairs with the fence in open_up. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&m->turn, memory_order_relaxed) == turn ? 0 : -SLMPM_EAGAIN;
}
