/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over a network, as calls: sent, received, exchanged with all neighbours. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/network/network.h"
#include "slmpm/overlay/overlay.h"

#define SEND     "slmpm_overlay_send"
#define RECV     "slmpm_overlay_recv"
#define EXCHANGE "slmpm_overlay_exchange"

/* ---- sending --------------------------------------------------------------------------------- */

static struct overlay_send *send_new(uint32_t target, uint32_t stream, const void *data,
				     uint64_t len)
{
	struct overlay_send *s = malloc(sizeof(*s));

	if (!s) {
		(void)error_set(SLMPM_ENOMEM, "for a message over a network");
		return NULL;
	}
	*s = (struct overlay_send){.target = target,
				   .stream = stream,
				   .kind = OVERLAY_MESSAGE,
				   .data = data,
				   .len = len};
	list_init(&s->node);
	return s;
}

static bool has_result(void *arg)
{
	return *(const int *)arg != 0;
}

/* What has begun goes on from a copy, so that the call need not wait for it. */
static int send_copy(struct overlay *n, struct overlay_send *s)
{
	const uint64_t left = s->len - s->offset;

	s->copy = malloc(left);
	if (!s->copy) {
		overlay_break(n, -SLMPM_ENOMEM, (int32_t)n->rank,
			      "has no memory for half a message");
		return overlay_error(n);
	}
	memcpy(s->copy, s->data + s->offset, left);
	s->data = (const unsigned char *)s->copy - s->offset;
	s->result = NULL;
	return 0;
}

static int send_late(struct overlay *n, struct overlay_send *s, int timeout_ms)
{
	const uint32_t target = s->target;
	struct endpoint *ep = s->edge->ep;

	if (s->offset)
		return send_copy(n, s);
	s->result = NULL;
	overlay_send_end(s, -SLMPM_ECANCELED);
	return late_error(n->ctx, ep, timeout_ms, SEND ": no buffer for a message to rank %" PRIu32,
			  target);
}

static int send_and_wait(struct overlay *n, struct overlay_send *s, int timeout_ms)
{
	int result = 0;

	s->result = &result;
	overlay_submit(n, s);
	if (!result && !timeout_ms)
		progress_opportunistic(n->ctx);
	n->inside++;
	if (!result)
		(void)wait_until(n->ctx, has_result, &result, timeout_ms);
	n->inside--;
	if (!result)
		return send_late(n, s, timeout_ms);
	return result < 0 ? overlay_error(n) : 0;
}

/* To itself. */
static int send_here(struct overlay *n, const struct overlay_send *s)
{
	const struct overlay_head h = {
		.kind = OVERLAY_MESSAGE, .source = n->rank, .stream = s->stream, .total = s->len};
	struct overlay_arrival *a = arrival_new(n, &h, NULL);

	if (!a)
		return error_set(SLMPM_ENOMEM, "for a message over a network");
	if (s->len)
		memcpy(a->data, s->data, s->len);
	a->got = s->len;
	arrival_whole(n, a);
	return 0;
}

/* It ends with REQ, or by HOW. */
static int send_and_leave(struct overlay *n, struct overlay_send *s, const struct slmpm_how *how,
			  slmpm_req *req)
{
	struct request *r = request_new(n->ctx);
	int rc = -SLMPM_ENOMEM;

	if (r) {
		(void)request_init(r, REQUEST_OVERLAY, n->ctx, NULL, s->stream, NULL, 0);
		r->result.op = SLMPM_OP_SEND;
		r->result.stream = s->stream;
		r->result.len = s->len;
		rc = completion_bind(r, how, req);
	}
	if (rc < 0) {
		if (r)
			request_drop(r);
		free(s);
		return rc;
	}
	if (!r->bound)
		req->id = handle_id(r);
	if (s->target == n->rank) {
		rc = send_here(n, s);
		free(s);
		request_finish(r, rc);
		return 0;
	}
	s->request = r;
	overlay_submit(n, s);
	return 0;
}

static int check_send(const struct overlay *n, uint32_t rank, uint32_t stream, const void *data,
		      uint64_t len)
{
	if (rank >= n->shape.nodes)
		return error_set(SLMPM_EINVAL, SEND ": rank %" PRIu32 " of %" PRIu32 " nodes", rank,
				 n->shape.nodes);
	if (stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL, SEND ": stream 0x%" PRIx32, stream);
	if (!data && len)
		return error_set(SLMPM_EINVAL, SEND ": no data");
	if (len > n->limits.message_max)
		return error_set(SLMPM_ELIMIT, SEND ": %" PRIu64 " bytes, at most %" PRIu64, len,
				 n->limits.message_max);
	if (n->closing)
		return error_set(SLMPM_ECLOSED, SEND ": the network is being closed");
	/* Though one may wait for another message. */
	if (rank == n->rank && n->unread && n->unread + overlay_weight(len) > n->limits.unread_max)
		return error_set(SLMPM_ELIMIT,
				 SEND ": %" PRIu64 " bytes to itself: %" PRIu64
				      " are unread, at most %" PRIu64,
				 len, n->unread, n->limits.unread_max);
	return overlay_error(n);
}

static int send_by_how(struct overlay *n, struct overlay_send *s, const struct slmpm_how *how,
		       slmpm_req *req)
{
	const bool blocks = completion_blocks(how, req);
	int rc = blocks ? context_forbids(n->ctx, SEND) : 0;

	if (rc == 0 && s->target == n->rank && blocks)
		rc = send_here(n, s);
	else if (rc == 0 && blocks)
		return send_and_wait(n, s, how->timeout_ms);
	else if (rc == 0)
		return send_and_leave(n, s, how, req);
	free(s);
	return rc;
}

int slmpm_overlay_send(slmpm_overlay overlay, uint32_t rank, uint32_t stream, const void *data,
		       uint64_t len, const struct slmpm_how *how, slmpm_req *req)
{
	struct slmpm_how full = {.size = sizeof(full), .timeout_ms = -1};
	struct overlay_send *s = NULL;
	struct context *ctx;
	int rc = 0;
	struct overlay *n = overlay_lock(overlay, &rc);

	if (!n)
		return rc;
	ctx = n->ctx;
	rc = how ? how_take(SEND, &full, how, 0) : 0;
	if (rc == 0)
		rc = check_send(n, rank, stream, data, len);
	if (rc == 0 && !(s = send_new(rank, stream, data, len)))
		rc = -SLMPM_ENOMEM;
	if (rc == 0)
		rc = send_by_how(n, s, &full, req);
	context_unlock(ctx);
	return rc;
}

int overlay_send_failed(const struct request *r)
{
	return error_set(-r->result.status, "%s",
			 r->owned ? (const char *)r->owned : "a message over a network");
}

/* ---- receiving ------------------------------------------------------------------------------- */

struct taking {
	struct overlay *net;
	uint32_t rank, stream;
	struct overlay_arrival *found;
};

static bool find_arrival(void *arg)
{
	struct taking *t = arg;

	t->found = NULL;
	if (!list_empty(&t->net->waiting))
		overlay_admit(t->net);
	LIST_EACH_ENTRY(struct overlay_arrival, a, &t->net->arrivals, node) {
		if ((t->rank != SLMPM_OVERLAY_ANY && a->source != t->rank) ||
		    (t->stream != SLMPM_ANY_STREAM && a->stream != t->stream))
			continue;
		t->found = a;
		return true;
	}
	return t->net->status;
}

static int64_t arrival_take(struct overlay *n, struct overlay_arrival *a, void *data, uint64_t room,
			    struct slmpm_overlay_message *message)
{
	const struct slmpm_overlay_message m = {
		.source = a->source, .stream = a->stream, .len = a->total};
	const uint64_t len = a->total;

	if (message)
		sized_give_own(message, &m, sizeof(m));
	if (len > room)
		return error_set(SLMPM_ETRUNC,
				 RECV ": %" PRIu64
				      " bytes from rank %u, there is room for %" PRIu64,
				 len, a->source, room);
	if (len)
		memcpy(data, a->data, len);
	arrival_free(n, a);
	overlay_admit(n);
	return (int64_t)len;
}

static int64_t overlay_take(struct taking *t, void *data, uint64_t room,
			    struct slmpm_overlay_message *message, int timeout_ms)
{
	struct overlay *n = t->net;

	n->takers++;
	if (!find_arrival(t)) {
		if (!timeout_ms)
			progress_opportunistic(n->ctx);
		(void)wait_until(n->ctx, find_arrival, t, timeout_ms);
	}
	n->takers--;
	if (t->found)
		return arrival_take(n, t->found, data, room, message);
	if (n->status)
		return overlay_error(n);
	if (t->rank == SLMPM_OVERLAY_ANY)
		return late_error(n->ctx, NULL, timeout_ms, RECV ": nothing from any rank");
	return late_error(n->ctx, NULL, timeout_ms, RECV ": nothing from rank %u, process %d",
			  t->rank, n->group->boards.processes[t->rank]);
}

static int check_recv(const struct overlay *n, uint32_t rank, const void *data, uint64_t room,
		      const struct slmpm_overlay_message *message)
{
	if (rank != SLMPM_OVERLAY_ANY && rank >= n->shape.nodes)
		return error_set(SLMPM_EINVAL, RECV ": rank %" PRIu32 " of %" PRIu32 " nodes", rank,
				 n->shape.nodes);
	if (!data && room)
		return error_set(SLMPM_EINVAL, RECV ": no place for the message");
	if (message && sized_check_own(RECV, message, sizeof(*message)) < 0)
		return -SLMPM_EINVAL;
	return context_forbids(n->ctx, RECV);
}

int64_t slmpm_overlay_recv(slmpm_overlay overlay, uint32_t rank, uint32_t stream, void *data,
			   uint64_t room, struct slmpm_overlay_message *message, int timeout_ms)
{
	struct taking t = {.rank = rank, .stream = stream};
	struct context *ctx;
	int64_t len;
	int rc = 0;

	t.net = overlay_lock(overlay, &rc);
	if (!t.net)
		return rc;
	ctx = t.net->ctx;
	len = check_recv(t.net, rank, data, room, message);
	if (len == 0)
		len = overlay_take(&t, data, room, message, timeout_ms);
	context_unlock(ctx);
	return len;
}

/* ---- with all neighbours --------------------------------------------------------------------- */

struct exchange {
	struct overlay *net;
	int sent[SLMPM_NETWORK_LINKS];
};

static bool is_exchanged(void *arg)
{
	struct exchange *x = arg;
	const struct overlay *n = x->net;
	bool all = true;

	if (!list_empty(&n->waiting))
		overlay_admit(x->net);
	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++)
		if (n->edges[l])
			all = all && x->sent[l] && !list_empty(&n->edges[l]->exchanged);
	return all || n->status;
}

static void exchange_take_in(struct overlay *n, struct edge *e, struct slmpm_iov *in, int *rc)
{
	struct overlay_arrival *a = LIST_ENTRY(e->exchanged.next, struct overlay_arrival, node);
	const uint64_t len = a->total < in->len ? a->total : in->len;

	if (len < a->total)
		*rc = error_set(SLMPM_ETRUNC,
				EXCHANGE ": %" PRIu64 " bytes from rank %u, there is room for "
					 "%" PRIu64,
				a->total, e->rank, len);
	if (len)
		memcpy(in->base, a->data, len);
	in->len = len;
	arrival_free(n, a);
}

static int exchange_send_all(struct exchange *x, const struct slmpm_iov *out)
{
	struct overlay *n = x->net;
	struct overlay_send *s[SLMPM_NETWORK_LINKS] = {NULL};

	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++) {
		if (!n->edges[l])
			continue;
		s[l] = send_new(n->edges[l]->rank, 0, out[l].base, out[l].len);
		if (s[l])
			continue;
		while (l--)
			free(s[l]);
		return -SLMPM_ENOMEM;
	}
	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++)
		if (s[l]) {
			s[l]->kind = OVERLAY_EXCHANGE;
			s[l]->result = &x->sent[l];
			overlay_submit(n, s[l]);
		}
	return 0;
}

/* The first neighbour of which nothing has come, or that does not take what it is sent. */
static uint32_t exchange_culprit(const struct exchange *x)
{
	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++) {
		const struct edge *e = x->net->edges[l];

		if (e && (!x->sent[l] || list_empty(&e->exchanged)))
			return e->rank;
	}
	return x->net->rank;
}

static int exchange_all(struct exchange *x, const struct slmpm_iov *out, struct slmpm_iov *in,
			int timeout_ms)
{
	struct overlay *n = x->net;
	int rc = exchange_send_all(x, out);

	if (rc < 0)
		return rc;
	n->takers++;
	if (!timeout_ms)
		progress_opportunistic(n->ctx);
	(void)wait_until(n->ctx, is_exchanged, x, timeout_ms);
	n->takers--;
	if (!is_exchanged(x))
		overlay_break(n, -late_code(timeout_ms), (int32_t)exchange_culprit(x),
			      "its part of an exchange has not come, or it does not take this one");
	if (n->status)
		return overlay_error(n);
	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++)
		if (n->edges[l])
			exchange_take_in(n, n->edges[l], &in[l], &rc);
	return rc;
}

static int check_overlay_exchange(const struct overlay *n, const struct slmpm_iov *out,
				  const struct slmpm_iov *in)
{
	if (!out || !in)
		return error_set(SLMPM_EINVAL, EXCHANGE ": nothing to send or to receive into");
	for (uint32_t l = 0; l < SLMPM_NETWORK_LINKS; l++) {
		if (!n->edges[l])
			continue;
		if ((!out[l].base && out[l].len) || (!in[l].base && in[l].len))
			return error_set(SLMPM_EINVAL, EXCHANGE ": link %u: no memory", l);
		if (out[l].len > n->limits.message_max)
			return error_set(SLMPM_ELIMIT,
					 EXCHANGE ": link %u: %" PRIu64 " bytes, at most %" PRIu64,
					 l, (uint64_t)out[l].len, n->limits.message_max);
	}
	if (n->closing)
		return error_set(SLMPM_ECLOSED, EXCHANGE ": the network is being closed");
	if (overlay_error(n) < 0)
		return n->status;
	return context_forbids(n->ctx, EXCHANGE);
}

int slmpm_overlay_exchange(slmpm_overlay overlay, const struct slmpm_iov out[SLMPM_NETWORK_LINKS],
			   struct slmpm_iov in[SLMPM_NETWORK_LINKS], int timeout_ms)
{
	struct exchange x = {.sent = {0}};
	struct context *ctx;
	int rc = 0;

	x.net = overlay_lock(overlay, &rc);
	if (!x.net)
		return rc;
	ctx = x.net->ctx;
	rc = check_overlay_exchange(x.net, out, in);
	if (rc == 0)
		rc = exchange_all(&x, out, in, timeout_ms);
	context_unlock(ctx);
	return rc;
}
