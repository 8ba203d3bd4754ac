/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a one-sided operation is sound, and the region allows it. */
#include "slmpm/base/error.h"
#include "slmpm/rma/rma_operate.h"
#include "slmpm/message/message.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"

#define FLAGS                                                                                      \
	(SLMPM_MORE | SLMPM_FENCE | SLMPM_BARRIER | SLMPM_REMOTE | SLMPM_NOTIFY | SLMPM_FIFO |     \
	 MODE_LINK_MASK)

static int rma_check_spans(struct operation *o)
{
	const struct remote *remote = o->remote;
	uint64_t here = 0;

	o->length = 0;
	for (int i = 0; i < o->span_count; i++) {
		const struct slmpm_span *s = &o->spans[i];

		if (s->offset > remote->memory.size || s->len > remote->memory.size - s->offset)
			return error_set(SLMPM_EINVAL, "%s: %llu bytes at %llu of a region of %llu",
					 o->call, (unsigned long long)s->len,
					 (unsigned long long)s->offset,
					 (unsigned long long)remote->memory.size);
		if (s->len > SLMPM_MESSAGE_MAX - o->length)
			return error_set(SLMPM_ELIMIT, "%s: more than %llu bytes", o->call,
					 (unsigned long long)SLMPM_MESSAGE_MAX);
		o->length += s->len;
	}
	for (int i = 0; i < o->piece_count; i++) {
		if (o->pieces[i].len && !o->pieces[i].base)
			return error_set(SLMPM_EINVAL, "%s: piece %d is NULL", o->call, i);
		if (o->pieces[i].len > o->length - here)
			here = UINT64_MAX; /* whatever it would be */
		else if (here != UINT64_MAX)
			here += o->pieces[i].len;
		if (here == UINT64_MAX)
			break;
	}
	if (!o->atomic && here != o->length)
		return error_set(SLMPM_EINVAL, "%s: the bytes here are not the %llu there", o->call,
				 (unsigned long long)o->length);
	return 0;
}

int rma_check(struct operation *o)
{
	const struct remote *remote = o->remote;
	uint32_t flags = o->kind == REQUEST_PUT ? FLAGS : FLAGS & ~(SLMPM_NOTIFY | SLMPM_FIFO);
	int rc = how_take(o->call, &o->full, o->how, flags);

	if (rc < 0)
		return rc;
	if (!(o->full.flags & (SLMPM_ON_LINK_MASK | SLMPM_FIFO)))
		o->full.flags |= remote->hint;
	if (o->span_count < 0 || o->piece_count < 0 || (o->span_count && !o->spans) ||
	    (o->piece_count && !o->pieces))
		return error_set(SLMPM_EINVAL, "%s: %d spans and %d pieces", o->call, o->span_count,
				 o->piece_count);
	rc = rma_check_spans(o);
	if (rc < 0)
		return rc;
	if (remote->ep->state != SLMPM_PEER_UP)
		return endpoint_error(remote->ep);
	if (remote_is_revoked(remote))
		return error_set(SLMPM_EACCES, "%s: %s has taken the region back", o->call,
				 remote->ep->life->name);
	if (o->access & ~remote->access)
		return error_set(SLMPM_EACCES, "%s: %s allows no %s", o->call,
				 remote->ep->life->name,
				 o->access & ~remote->access & SLMPM_WRITE ? "writing" : "reading");
	return 0;
}
