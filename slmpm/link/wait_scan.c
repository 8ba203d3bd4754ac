/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that polls for several, and finds nothing, would keep the lock and the context's lines
 * from the others. What can arrive without them shows in one word a link: so these are noted, under
 * the lock, and scanned without it. Passes are made when one of them changes, when another thread
 * leaves work or ends a link, and when the descriptors are due.
 */
#include "slmpm/link/wait.h"

#include <sched.h>

#include "slmpm/link/idle.h"
#include "slmpm/scan.h"

#define SLICE_TICKS 3000 /* between yields: about a microsecond */

/* ---- under the lock ------------------------------------------------------------------------- */

static bool note_word(struct scan *s, const struct endpoint *ep)
{
	const struct fabric *fabric = ep->link.fabric;
	struct scan_word *w = &s->words[s->count];

	if (!endpoint_is_at_rest(ep) || !fabric->awaited || s->count == SCAN_WORDS)
		return false;
	w->at = fabric->awaited(ep->link.port, &w->nothing);
	s->count++;
	return w->at;
}

static bool note_words(struct context *ctx, struct scan *s)
{
	/* Boards show in other words, and room in none. */
	if (!list_empty(&ctx->ready) || ctx->collecting || ctx->lacking)
		return false;
	for (uint32_t i = 0; i < ctx->live; i++)
		if (!note_word(s, ctx->endpoints[i]))
			return false;
	return true;
}

static void set_away(struct context *ctx, struct scan *s)
{
	ctx->scan = s;
	ctx->away = s;
	ctx->wakes = s && !lock_is_guest(&ctx->lock);
	ctx->ready_since = false;
}

/* ---- without it ----------------------------------------------------------------------------- */

/* A hint alone, hence relaxed: the pass that follows looks for itself. */
static bool has_changed(const struct scan *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (atomic_load_explicit(s->words[i].at, memory_order_relaxed) !=
		    s->words[i].nothing)
			return true;
	return atomic_load_explicit(&s->over, memory_order_relaxed);
}

static bool scan_slice(const struct scan *s)
{
	uint64_t begin = clock_ticks();

	do {
		if (has_changed(s))
			return true;
		clock_between_polls();
	} while (clock_ticks() - begin < SLICE_TICKS);
	return false;
}

uint64_t wait_scan(struct context *ctx, struct idle *i, uint64_t now, uint64_t until)
{
	struct scan s = {.inside = true};
	uint64_t back = now;
	bool changed, switched = false;

	if (!note_words(ctx, &s))
		return 0;
	set_away(ctx, &s);
	lock_leave(&ctx->lock);
	do {
		now = back;
		changed = scan_slice(&s);
		if (changed)
			break; /* the last yield has been counted */
		now = clock_now();
		sched_yield();
		back = clock_now();
		idle_away(i, now, back);
		switched = yield_was_switched(now, back);
	} while (back < until && !switched && !yield_was_slice(now, back));
	/* Pairs with the acquire in context_end_scan. */
	atomic_store_explicit(&s.inside, false, memory_order_release);
	context_lock_shared(ctx);
	set_away(ctx, NULL);
	yield_taken(ctx, now, back, switched);
	return back;
}
