/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations on memory within direct reach, done at once.
 *
 * Order on direct memory. A put's bytes are plain stores, followed at the latest by the release
 * store with which the next packet to that peer is committed, so what is sent afterwards is
 * received after them. SLMPM_FENCE on a put is a release fence between them and its own stores; it
 * pairs with the acquire fence behind a get, or the target's own acquire load. A store must not be
 * overtaken by a later get or atomic operation: that fence, the one behind a barrier, and that of
 * slmpm_flush, are sequentially consistent. What went by requests before is settled by its answer;
 * until then fenced operations follow it through the ring.
 */
#include <errno.h>
#include <stdatomic.h>

#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/rma/direct.h"
#include "slmpm/rma/rma_operate.h"

static int explain_reach(const struct operation *o, int rc)
{
	const char *name = o->remote->ep->life->name;

	if (rc == -EFAULT)
		return error_set(SLMPM_EINVAL, "%s: no memory there, at %s or here", o->call, name);
	if (rc == -ESRCH)
		return error_set(SLMPM_EDEAD, "%s: %s is gone", o->call, name);
	return error_system(rc, o->call);
}

/* Each run of bytes that is one on both sides. 1, or what the fabric says. */
static int reach_spans(const struct operation *o, enum fabric_op op)
{
	struct remote *remote = o->remote;
	uint64_t in_piece = 0;
	int piece = 0, rc = 1;

	for (int i = 0; i < o->span_count && rc == 1; i++) {
		for (uint64_t at = 0, n; at < o->spans[i].len && rc == 1; at += n) {
			const struct slmpm_iov *p = &o->pieces[piece];
			uint64_t left = o->spans[i].len - at;

			n = p->len - in_piece < left ? p->len - in_piece : left;
			if (n)
				rc = link_reach(remote->ep, op, &remote->memory,
						o->spans[i].offset + at,
						(unsigned char *)p->base + in_piece, n);
			in_piece += n;
			if (in_piece == p->len) {
				piece++;
				in_piece = 0;
			}
		}
	}
	return rc;
}

static void fence_before(const struct operation *o)
{
	if (!(o->full.flags & (SLMPM_FENCE | SLMPM_BARRIER)))
		return;
	if (o->kind == REQUEST_PUT)
		atomic_thread_fence(memory_order_acq_rel);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

static void fence_behind(const struct operation *o)
{
	if (o->full.flags & SLMPM_BARRIER)
		atomic_thread_fence(memory_order_seq_cst);
	else if (o->kind == REQUEST_GET)
		atomic_thread_fence(memory_order_acquire);
}

int rma_reach(const struct operation *o)
{
	int rc;

	fence_before(o);
	rc = o->atomic ? link_reach(o->remote->ep, FABRIC_ATOMIC, &o->remote->memory,
				    o->spans->offset, o->atomic, o->spans->len) :
			 reach_spans(o, rma_fabric_op(o));
	fence_behind(o);
	if (rc == 1 && o->atomic)
		direct_give_old(o->old, (int)o->atomic->bits, o->atomic->old);
	if (rc == 1)
		return 1;
	return rc == -EPERM || rc == -ENOTSUP ? 0 : explain_reach(o, rc);
}
