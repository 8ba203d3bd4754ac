/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages that cannot go at once, or whose end is told: requests, checked, filled and begun. */
#include "slmpm/am/am.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/message/message.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"

int am_check(const char *call, uint16_t id, const void *head, size_t head_len, const void *data,
	     size_t len)
{
	if (id > SLMPM_AM_ID_MAX)
		return error_set(SLMPM_EINVAL, "%s: handler 0x%x, the highest is 0x%x", call, id,
				 SLMPM_AM_ID_MAX);
	if ((!head && head_len) || (!data && len))
		return error_set(SLMPM_EINVAL, "%s: %s is NULL", call,
				 !data && len ? "data" : "head");
	if (head_len > SLMPM_AM_HEAD_MAX)
		return error_set(SLMPM_ELIMIT, "%s: a head of %zu bytes, at most %d", call,
				 head_len, SLMPM_AM_HEAD_MAX);
	if (len > SLMPM_MESSAGE_MAX - head_len)
		return error_set(SLMPM_ELIMIT, "%s: %zu bytes, at most %llu with the head", call,
				 len, (unsigned long long)SLMPM_MESSAGE_MAX);
	return 0;
}

#define PIECES 4 /* without asking for memory */

int am_fill(struct request *r, struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
	    const struct slmpm_iov *iov, int n, bool copy)
{
	struct slmpm_iov few[PIECES + 1], *all = few;
	size_t bytes = head_len + (copy && n ? iov[0].len : 0);
	int rc;

	if (n < 0 || (n && !iov))
		return error_set(SLMPM_EINVAL, "%d pieces at %p", n, (const void *)iov);
	if (n > PIECES)
		all = malloc(((size_t)n + 1) * sizeof(*all));
	r->owned = bytes ? malloc(bytes) : NULL;
	if (!all || (bytes && !r->owned)) {
		rc = error_set(SLMPM_ENOMEM, "for an active message");
	} else {
		if (head_len)
			memcpy(r->owned, head, head_len);
		all[0] = (struct slmpm_iov){r->owned, head_len};
		if (n)
			memcpy(all + 1, iov, (size_t)n * sizeof(*iov));
		if (copy && n && iov[0].len) {
			all[1].base = (unsigned char *)r->owned + head_len;
			memcpy(all[1].base, iov[0].base, iov[0].len);
		}
		rc = request_init(r, REQUEST_SEND, ep->ctx, ep, am_stream(id, head_len), all,
				  n + 1);
		r->wire = WIRE_FLAG_ACTIVE;
		r->result.op = SLMPM_OP_AM;
	}
	if (all != few)
		free(all);
	return rc;
}

int am_check_peer(const struct endpoint *ep)
{
	return ep->active ?
		       0 :
		       error_set(SLMPM_ENOTSUP, "%s does not know active messages", ep->life->name);
}

void am_refuse(struct endpoint *ep)
{
	ep->active = false;
	LIST_EACH_ENTRY(struct request, r, &ep->link.queue, node) {
		if (!(r->wire & WIRE_FLAG_ACTIVE))
			continue;
		link_dequeue(ep, r);
		request_finish(r, -SLMPM_ENOTSUP);
	}
}

int am_sendv(struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
	     const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req)
{
	struct request stack = {.piece_count = 0}, *r = &stack;
	int rc = am_check_peer(ep);

	if (rc < 0)
		return rc;
	if (!completion_blocks(how, req))
		r = request_new();
	if (!r)
		return -SLMPM_ENOMEM;
	rc = am_fill_as(r, ep, id, head, head_len, iov, n, how ? how->flags : 0);
	r->flags = how ? (uint8_t)(how->flags & SLMPM_MORE) : 0;
	r->hint = how ? mode_hint(how->flags) : 0;
	return message_begin(r, rc, how, req);
}
