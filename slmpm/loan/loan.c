/* SPDX-License-Identifier: BSD-3-Clause */
/* Loans: messages built in place. A short one is a reservation in the peer's ring; a longer one
 * lies in an area, of which parts can be handed over while it grows. Their ends: commit.c. */
#include "slmpm/loan/area.h"
#include "slmpm/link/bundle.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"
#include "slmpm/link/wait.h"
#include "slmpm/mode/mode_hint.h"

struct loan_ask {
	struct endpoint *ep;
	slmpm_peer peer;
	uint64_t length;
	uint32_t stream;
	uint8_t link; /* mode_hint() */
	void *data;
	struct area *area;
	int rc;
};

/* Before one in the ring nothing can be sent, and so no entry be claimed for it. */
static bool short_loan(const struct endpoint *ep, uint32_t stream, uint64_t length)
{
	return length <= ep->packet_max && !ep->link.check && !binding_is_shared(ep, stream);
}

/* Bytes in an area do not count against the credit: the area itself is the bound. */
static uint64_t loan_charge(const struct endpoint *ep, uint32_t stream, uint64_t length)
{
	return wire_charge(short_loan(ep, stream, length) ? length : 0);
}

/* Memory for the loan that is asked for, or a reason not to wait for it any longer. */
static bool get_loan(void *arg)
{
	struct loan_ask *w = arg;
	struct endpoint *ep = w->ep;

	if (w->data)
		return true;
	/* Meanwhile another thread may have closed the peer or been first. */
	if (endpoint_of(w->peer) != ep)
		w->rc = endpoint_bad_handle(w->peer);
	else if (ep->lent)
		w->rc = error_set(SLMPM_EBUSY, "a loan to %s is open already", ep->life->name);
	if (w->rc < 0)
		return true;
	if (ep->state == SLMPM_PEER_CONNECTING)
		return false;
	if (ep->state != SLMPM_PEER_UP) {
		w->rc = endpoint_error(ep);
		return true;
	}
	if (!list_empty(&ep->link.queue) || !list_empty(&ep->link.deferred) || ep->link.active ||
	    link_lags(ep) || (ep->bundle.count && !bundle_flush(ep)))
		return false; /* in order: what was sent before goes first */
	if (ep->charged - ep->credited + loan_charge(ep, w->stream, w->length) > ep->credit)
		return false;
	if (short_loan(ep, w->stream, w->length)) {
		w->data = link_reserve(ep, (uint32_t)w->length);
		return w->data != NULL;
	}
	w->area = area_take(ep, w->length, &w->rc);
	if (w->area)
		w->data = w->area->map.base;
	else if (w->rc == -SLMPM_EAGAIN)
		w->rc = 0;
	return w->data || w->rc < 0;
}

static int wait_for_loan(struct context *ctx, struct loan_ask *w, int timeout_ms)
{
	int rc;

	ctx->lacking++;
	rc = wait_until(ctx, get_loan, w, timeout_ms);
	ctx->lacking--;
	return rc;
}

int slmpm_loan(slmpm_peer peer, uint32_t stream, size_t len, void **buf, int timeout_ms)
{
	struct endpoint *ep = endpoint_of(peer);
	struct loan_ask w = {.ep = ep, .peer = peer, .length = len, .stream = stream};
	struct context *ctx;
	int rc;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (!buf || stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL, "slmpm_loan: %s",
				 buf ? "stream" : "no place for the pointer");
	if (len > SLMPM_MESSAGE_MAX)
		return error_set(SLMPM_ELIMIT, "slmpm_loan: %zu bytes, at most %llu in a message",
				 len, (unsigned long long)SLMPM_MESSAGE_MAX);
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	w.link = mode_hint(endpoint_hint(peer));
	if (ep->closing) {
		rc = error_set(SLMPM_ECLOSED, "%s is being closed", ep->life->name);
	} else {
		rc = get_loan(&w) ? 0 : wait_for_loan(ctx, &w, timeout_ms);
		if (w.rc < 0)
			rc = w.rc;
		else if (rc < 0 && !context_forbids(ctx, "slmpm_loan"))
			rc = late_from(ctx, ep, timeout_ms, "no room for a loan to");
	}
	if (rc == 0) {
		struct loans *l = ep->rooms->loans;

		loan_place(ep, w.area ? LENT_AREA : LENT_PACKET);
		l->data = w.data;
		l->area = w.area;
		l->length = len;
		l->ready = 0;
		l->stream = stream;
		l->begun = false;
		l->hint = w.link;
		l->charge = loan_charge(ep, stream, len);
		ep->charged += l->charge;
		*buf = w.data;
	}
	context_unlock(ctx);
	return rc;
}
