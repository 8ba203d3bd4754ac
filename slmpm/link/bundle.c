/* SPDX-License-Identifier: BSD-3-Clause */
/* Bundles: posting what is staged, taking apart what arrives. */
#include "slmpm/link/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"

#define ONE_COPY 2048

/* Of N messages of LEN bytes: how many a packet and the credit take now. */
static uint32_t affordable(const struct endpoint *ep, uint32_t n, size_t len)
{
	uint64_t most = len < BUNDLE_FEW / BUNDLE_BURST ? BUNDLE_FEW : BUNDLE_BURST * len;
	uint64_t credit = ep->credit - (ep->charged - ep->credited);
	uint64_t k = n;

	if (most > ep->bundle.most)
		most = ep->bundle.most;
	if (k * len > most)
		k = most / len;
	if (k * wire_charge(len) > credit)
		k = credit / wire_charge(len);
	return (uint32_t)k;
}

/* Memory for the messages of one packet, which nothing is staged in; NULL: there is none. */
static inline unsigned char *staging_of(struct bundle *b)
{
	if (UNLIKELY(!b->data))
		b->data = malloc(BUNDLE_BYTES);
	return b->data;
}

void bundle_free(struct endpoint *ep)
{
	free(ep->bundle.data);
	ep->bundle.data = NULL;
}

bool bundle_begin(struct endpoint *ep, uint64_t route, size_t len)
{
	struct bundle *b = &ep->bundle;

	b->route = route;
	b->length = (uint32_t)len;
	b->count = 0;
	b->left = affordable(ep, UINT32_MAX, len);
	b->at = b->left ? staging_of(b) : NULL;
	if (UNLIKELY(!b->at))
		b->left = 0;
	return b->left > 0;
}

static inline void count_sent(struct endpoint *ep, uint32_t n, uint64_t bytes)
{
	ep->link.run = 0;
	ep->sent += n;
	ep->charged += bytes + (uint64_t)n * WIRE_ENVELOPE;
	ep->stats->sent_messages += n;
	ep->stats->sent_bytes += bytes;
}

bool bundle_flush(struct endpoint *ep)
{
	struct bundle *b = &ep->bundle;
	uint64_t bytes = (uint64_t)(b->at - b->data);
	struct packet p = {
		.opcode = b->count == 1 ? WIRE_SEND_ONLY : WIRE_BUNDLE,
		.length = (uint32_t)bytes,
		.data = b->data,
		.seq = ep->sent + 1,
		.route = b->route,
		.extent = b->length,
	};

	if (link_lags(ep) || link_post_request(ep, &p, NULL) != 1)
		return false;
	count_sent(ep, b->count, bytes);
	b->count = b->left = 0;
	return true;
}

/* ---- from several buffers, to several buffers ----------------------------------------------- */

/* How many of N go together from the first on: of its length, each from a buffer. */
static int alike(const struct slmpm_iov *m, int n)
{
	int k = 1;

	while (k < n && m[k].len == m[0].len && m[k].base)
		k++;
	return k;
}

static INLINE void gather_alike(unsigned char *to, const struct slmpm_iov *m, int n, size_t len)
{
	for (int i = 0; i < n; i++)
		copy_payload(to + (size_t)i * len, m[i].base, len);
}

static void gather_each(unsigned char *to, const struct slmpm_iov *m, int n, size_t len)
{
	switch (len) { /* those copied by a few moves, if the compiler knows their number */
	case 8: gather_alike(to, m, n, 8); break;
	case 16: gather_alike(to, m, n, 16); break;
	case 32: gather_alike(to, m, n, 32); break;
	case 64: gather_alike(to, m, n, 64); break;
	default: gather_alike(to, m, n, len);
	}
}

/* The first of M, if the others lie behind it without a gap. */
static const void *in_a_row(const struct slmpm_iov *m, int n, size_t len)
{
	const char *first = m[0].base;

	for (int i = 1; i < n; i++)
		if (m[i].base != first + (size_t)i * len)
			return NULL;
	return first;
}

/*
 * Into the peer's memory TO. From some KiB on one long copy goes there so much faster than many
 * short ones that collecting the messages beside it first is the shorter way.
 */
static void gather_all(unsigned char *to, const struct slmpm_iov *m, int n, size_t len,
		       struct bundle *b)
{
	const void *from = in_a_row(m, n, len);
	unsigned char *beside;

	if (!from && (size_t)n * len >= ONE_COPY) {
		beside = staging_of(b);
		if (LIKELY(beside != NULL))
			gather_each(beside, m, n, len);
		from = beside;
	}
	if (from)
		memcpy(to, from, (size_t)n * len);
	else
		gather_each(to, m, n, len);
}

int bundle_gather(struct endpoint *ep, uint64_t route, const struct slmpm_iov *m, int n)
{
	size_t len = m[0].len;
	struct packet p = {.opcode = WIRE_BUNDLE, .seq = ep->sent + 1, .route = route};
	unsigned char *at;

	if (!m[0].base || !len || len > BUNDLE_MESSAGE_MAX)
		return 0;
	n = alike(m, (int)affordable(ep, (uint32_t)n, len));
	if (n < 2)
		return 0;
	p.extent = len;
	p.length = (uint32_t)((size_t)n * len);
	at = link_reserve(ep, p.length);
	if (!at)
		return 0;
	gather_all(at, m, n, len, &ep->bundle);
	if (link_post_built(ep, &p) != 1)
		return 0;
	count_sent(ep, (uint32_t)n, p.length);
	return n;
}

static INLINE int scatter(struct slmpm_iov *m, int n, const unsigned char *from, size_t len)
{
	int i = 0;

	for (; i < n && m[i].len >= len && m[i].base; i++) {
		copy_payload(m[i].base, from + (size_t)i * len, len);
		m[i].len = len;
	}
	return i;
}

static int scatter_any(struct slmpm_iov *m, int n, const unsigned char *from, size_t len)
{
	switch (len) {
	case 8: return scatter(m, n, from, 8);
	case 16: return scatter(m, n, from, 16);
	case 32: return scatter(m, n, from, 32);
	case 64: return scatter(m, n, from, 64);
	default: return scatter(m, n, from, len);
	}
}

int bundle_scatter(struct endpoint *ep, struct slmpm_iov *m, int n, struct slmpm_done *done)
{
	struct unpack *u = &ep->unpack;

	if ((uint32_t)n > u->left)
		n = (int)u->left;
	n = scatter_any(m, n, u->at, u->length);
	for (int i = 0; done && i < n; i++)
		bundle_fill_done(&done[i], ep, u->length, u->route, 0);
	u->at += (size_t)n * u->length;
	u->left -= (uint32_t)n;
	if (n && !u->left)
		bundle_end(ep);
	return n;
}

/* ---- what arrives --------------------------------------------------------------------------- */

bool bundle_open(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct unpack *u = &ep->unpack;
	uint64_t length = a->head[2];

	if (PEER_FAULT(!length || length > BUNDLE_MESSAGE_MAX || a->length > BUNDLE_BYTES ||
		       a->length % length || !a->length ||
		       (uint32_t)a->head[1] == SLMPM_ANY_STREAM ||
		       a->head[0] != ep->received + 1)) {
		endpoint_poison(ep, "bundle");
		return false;
	}
	u->at = a->data;
	u->length = (uint32_t)length;
	u->left = u->unaccounted = a->length / u->length;
	u->route = a->head[1];
	u->arrival = *a;
	return true;
}

void bundle_arrived(struct endpoint *ep, const struct head *h)
{
	ep->link.kept = bundle_open(ep, h->arrival); /* released by its last message */
	if (ep->link.kept)
		(void)bundle_unpack(ep, false);
}

/* One message, as if it had come alone. */
static void dispatch(struct endpoint *ep, uint64_t route, const void *data, uint32_t length)
{
	const struct head h = {
		.seq = ep->received + 1,
		.extent = length,
		.stream = (uint32_t)route,
		.imm = (uint32_t)(route >> 32),
		.length = length,
		.data = data,
		.opcode = WIRE_SEND_ONLY,
	};

	ep->ctx->news = true;
	packet_kinds[WIRE_SEND_ONLY].take(ep, &h);
}

/* Accounts for what bundle_take has taken so far. */
static void bundle_account(struct endpoint *ep)
{
	struct unpack *u = &ep->unpack;
	uint32_t n = u->unaccounted - u->left;

	u->unaccounted = u->left;
	ep->received += n;
	ep->stats->received_messages += n;
	ep->stats->received_bytes += (uint64_t)n * u->length;
	link_matched(ep, n * wire_charge(u->length));
}

int64_t bundle_end(struct endpoint *ep)
{
	int64_t len = ep->unpack.length;

	progress_release(ep, &ep->unpack.arrival);
	bundle_account(ep);
	return len;
}

int bundle_unpack(struct endpoint *ep, bool all)
{
	struct unpack *u = &ep->unpack;
	bool news = ep->ctx->news;
	int n = 0;

	if (!u->left)
		return 0;
	bundle_account(ep);
	while (u->left && ep->state == SLMPM_PEER_UP && (all || !ep->ctx->finished)) {
		u->unaccounted = --u->left;
		dispatch(ep, u->route, u->at, u->length);
		if (UNLIKELY(ep->link.enomem)) { /* it comes again */
			ep->link.enomem = false;
			ep->ctx->news = news || n;
			if (ep->state == SLMPM_PEER_UP) /* else none of it does */
				u->unaccounted = ++u->left;
			break;
		}
		u->at += u->length;
		n++;
		if (!u->left)
			progress_release(ep, &u->arrival);
	}
	return n;
}
