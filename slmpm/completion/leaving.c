/* SPDX-License-Identifier: BSD-3-Clause */
/* What a link that lags has taken leaves this process later. */
#include "slmpm/completion/leaving.h"

#include "slmpm/link/link.h"
#include "slmpm/link/wait.h"

struct leaving {
	struct endpoint *ep;
	uint64_t id; /* another thread may free it */
	struct link_mark mark;
};

/* What others send behind it is not waited for. */
static bool leaving_has_left(void *arg)
{
	const struct leaving *l = arg;

	return handle_id(l->ep) != l->id || link_passed(l->ep, &l->mark);
}

void leaving_await(struct endpoint *ep, int timeout_ms)
{
	struct leaving l = {.ep = ep, .id = handle_id(ep)};

	if (ep->ctx->handling)
		return;
	link_mark(ep, &l.mark);
	(void)wait_until(ep->ctx, leaving_has_left, &l, timeout_ms);
}

bool leaving_tell(struct endpoint *ep, struct notified *notified, const struct slmpm_done *done)
{
	struct request *r = request_new();

	if (!r)
		return false;
	(void)request_init(r, REQUEST_SEND, ep->ctx, ep, done->stream, NULL, 0);
	completion_pass_on(notified, r);
	completion_copy(&r->result, done);
	r->length = r->offset = done->len;
	r->seq = ep->sent;
	r->numbered = true;
	link_enqueue(ep, r);
	link_streams(ep, r);
	return true;
}
