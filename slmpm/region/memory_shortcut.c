/* SPDX-License-Identifier: BSD-3-Clause */
/* Shortcuts: what the fast paths of puts, gets and atomic operations know of a mapped region. */
#include "slmpm/bond/secondary_state.h"
#include "slmpm/region/memory.h"

_Atomic(unsigned char *) remote_guesses[REMOTE_GUESSES];

static void guess(const struct remote *r, unsigned char *base)
{
	atomic_store_explicit(&remote_guesses[r->handle.index % REMOTE_GUESSES], base,
			      memory_order_relaxed);
}

/* Of OPS what brings bytes here goes the slow path where they are to be noted for a mirror, or may be the peer's to bring. The next
 * operation is measured. */
static void memory_shortcut_guard(struct remote *r, uint32_t ops)
{
	r->guarded = list_empty(&r->ctx->mirrors) ? 0 : ops & ~(UINT32_C(1) << FABRIC_WRITE);
	if (r->ep->ask_min != UINT64_MAX) /* their length is looked at there */
		r->guarded |= ops & UINT32_C(1) << FABRIC_READ;
	r->direct.ops = 0;
	r->measured = ops;
}

/* Operations that go by another fabric than the mapping's, unless they ask for one. */
static uint32_t memory_shortcut_elsewhere(const struct remote *r)
{
	const struct config *c = config_get();

	if (r->asked)
		return 0;
	return (uint32_t)secondary_is_elsewhere(r->ep, c->default_put) << FABRIC_WRITE |
	       (uint32_t)secondary_is_elsewhere(r->ep, c->default_rget) << FABRIC_READ;
}

void remote_shortcut(struct remote *r)
{
	uint32_t ops = r->memory.ops;

	if (!r->memory.base || r->ctx->multiple || mode_limits()->force == MODE_SMT || r->hint)
		return;
	if (!(r->access & SLMPM_READ))
		ops &= ~(UINT32_C(1) << FABRIC_READ | UINT32_C(1) << FABRIC_ATOMIC);
	if (!(r->access & SLMPM_WRITE))
		ops &= ~(UINT32_C(1) << FABRIC_WRITE | UINT32_C(1) << FABRIC_ATOMIC);
	if ((r->address | (uintptr_t)r->memory.base) % sizeof(uint64_t))
		ops &= ~(UINT32_C(1) << FABRIC_ATOMIC); /* a word here may be none there */
	ops &= ~memory_shortcut_elsewhere(r);
	r->direct = (struct shortcut){
		.base = r->memory.base,
		.size = r->memory.size,
		.rma = r->ep->rma,
		.stats = r->ep->stats,
		.access = r->access_word,
	};
	memory_shortcut_guard(r, ops);
	guess(r, r->memory.base);
}

void remote_close_shortcut(struct remote *r)
{
	if (!r->direct.base)
		return;
	guess(r, NULL);
	r->direct = (struct shortcut){0};
	r->measured = r->guarded = 0;
}

void remote_close_shortcuts(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		LIST_EACH(at, &ctx->endpoints[i]->rooms->regions->open)
			remote_close_shortcut(LIST_ENTRY(at, struct remote, node));
}

void remote_guard_shortcuts(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		LIST_EACH_ENTRY(struct remote, r, &ctx->endpoints[i]->rooms->regions->open, node) {
			uint32_t ops = r->direct.ops | r->measured | r->guarded;

			if (ops) /* else other threads may look */
				memory_shortcut_guard(r, ops);
		}
}
