/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets: one at a time or many on a wid, their order, and byte swapping, which is done on
 * this side: a put's by way of private copies, a get's in place once the bytes have arrived.
 *
 * Order is kept for each wid and partner, as DaCS has it: what has to wait is kept here until its
 * turn has come. SLMPM gets it, too, as it alone knows what the target can see already; that is
 * stronger than needed, because it counts transfers on other wids as well.
 */
#include "slmpm/dacs/dacs_dma.h"

#include <stdlib.h>
#include <string.h>

#define COPY_MAX (UINT64_C(256) << 10) /* bytes of a private copy; whole elements of any width */

struct dacsi_dma {
	struct dacsi_dma *next;
	struct dacsi_region *remote, *local; /* local: or NULL */
	slmpm_req req;
	bool put, started;
	DACS_ORDER_ATTR_T order;
	DACS_BYTE_SWAP_T swap; /* disabled where both ends have one byte order */
	struct slmpm_span *spans;
	struct slmpm_iov *pieces;
	int span_count, piece_count;
	/* A put with swap: the copy, where it goes, and how far spans and pieces are through. */
	unsigned char *copy;
	struct slmpm_span part;
	struct slmpm_iov copied;
	int span, piece;
	uint64_t in_span, in_piece;
};

/* ---- one transfer --------------------------------------------------------------------------- */

/* More than asking SLMPM whether it is done is to be done for it. */
static bool needs_attention(const struct dacsi_dma *d)
{
	return !d->started || d->copy;
}

static int start_dma(struct dacsi_dma *d, const struct slmpm_span *spans, int n,
		     const struct slmpm_iov *pieces, int m)
{
	struct slmpm_how how = {.size = sizeof(how)};

	if (!d->started && d->order == DACS_ORDER_ATTR_FENCE)
		how.flags = SLMPM_FENCE;
	if (!d->started && d->order == DACS_ORDER_ATTR_BARRIER)
		how.flags = SLMPM_BARRIER;
	if (n > 1 || m > 1)
		return d->put ? slmpm_putv(d->remote->rmem, spans, n, pieces, m, &how, &d->req) :
				slmpm_getv(d->remote->rmem, spans, n, pieces, m, &how, &d->req);
	return d->put ? slmpm_put(d->remote->rmem, spans->offset, pieces->base, pieces->len, &how,
				  &d->req) :
			slmpm_get(d->remote->rmem, spans->offset, pieces->base, pieces->len, &how,
				  &d->req);
}

/* The next LEN bytes of the pieces, swapped, as the one piece to be sent. */
static void copy_swapped(struct dacsi_dma *d, uint64_t len)
{
	uint64_t at = 0;

	while (at < len) {
		const struct slmpm_iov *piece = &d->pieces[d->piece];
		uint64_t n = piece->len - d->in_piece;

		if (n > len - at)
			n = len - at;
		memcpy(d->copy + at, (unsigned char *)piece->base + d->in_piece, n);
		at += n;
		d->in_piece += n;
		if (d->in_piece == piece->len) {
			d->in_piece = 0;
			d->piece++;
		}
	}
	dacsi_swap(d->copy, len, d->swap);
	d->copied = (struct slmpm_iov){d->copy, len};
}

/* Sends as many whole spans as one copy holds, or a part of one. */
static int start_copy(struct dacsi_dma *d)
{
	const struct slmpm_span *spans = &d->spans[d->span];
	uint64_t len = 0;
	int n = 0;

	while (!d->in_span && d->span + n < d->span_count && len + spans[n].len <= COPY_MAX)
		len += spans[n++].len;
	d->span += n;
	if (!n) {
		len = spans->len - d->in_span;
		if (len > COPY_MAX)
			len = COPY_MAX;
		d->part = (struct slmpm_span){spans->offset + d->in_span, len};
		d->in_span += len;
		if (d->in_span == spans->len) {
			d->in_span = 0;
			d->span++;
		}
		spans = &d->part;
		n = 1;
	}
	copy_swapped(d, len);
	return start_dma(d, spans, n, &d->copied, 1);
}

/* Moves D on: 1 done, 0 under way, or how it failed; before it has started, as if never called. */
static int run_dma(struct dacsi_dma *d)
{
	struct slmpm_done done = {0};
	int rc;

	do {
		if (!d->req.id) {
			rc = d->copy ? start_copy(d) :
				       start_dma(d, d->spans, d->span_count, d->pieces,
						 d->piece_count);
			if (rc < 0)
				return rc;
			d->started = true;
		}
		rc = d->req.id ? slmpm_test(&d->req, &done) : 1;
		if (rc <= 0)
			return rc;
		d->req.id = 0;
		if (done.status < 0)
			return done.status;
	} while (d->copy && d->span < d->span_count);
	return 1;
}

static DACS_ERR_T dma_code(int rc)
{
	if (rc > 0)
		return DACS_SUCCESS;
	/* The ranges have been checked: memory that was there when the region was made is not. */
	return rc == -SLMPM_EINVAL ? DACS_ERR_INVALID_ADDR : dacsi_code(rc);
}

static void discard_dma(struct dacsi_dma *d)
{
	d->remote->active--;
	if (d->local)
		d->local->active--;
	free(d->copy);
	free(d);
}

/* D has ended as RC says, and is on no list any more. */
static void finish_dma(struct dacsi_wid *wid, struct dacsi_dma *d, int rc)
{
	if (rc > 0 && !d->put)
		for (int i = 0; i < d->piece_count; i++)
			dacsi_swap(d->pieces[i].base, d->pieces[i].len, d->swap);
	if (rc > 0 && d->put && d->remote->is.process)
		d->remote->is.process->puts++;
	dacsi_wid_end(wid, dma_code(rc));
	discard_dma(d);
}

/* ---- the transfers of a wid ----------------------------------------------------------------- */

/* Of earlier transfers to a partner: one, a barrier that waits. */
enum { PENDING = 1, BLOCKED = 2 };

bool dacsi_dma_poll(struct dacsi_wid *wid)
{
	struct dacsi_dma **link = &wid->dma, *d;
	uint32_t pass = ++dacsi.dma_pass, attended = 0, barriers = 0, before;
	bool news = false;

	while ((d = *link)) {
		struct dacsi_process *process = d->remote->is.process, nobody = {.dma_pass = pass};
		int rc = 0;

		if (!process)
			process = &nobody; /* reaped: it fails at once */
		if (process->dma_pass != pass)
			process->dma_mark = 0;
		process->dma_pass = pass;
		before = d->order == DACS_ORDER_ATTR_NONE ? process->dma_mark & BLOCKED :
							    process->dma_mark;
		if (d->started || !before)
			rc = run_dma(d);
		if (rc) {
			*link = d->next;
			finish_dma(wid, d, rc);
			news = true;
			continue;
		}
		process->dma_mark |= PENDING;
		if (d->order == DACS_ORDER_ATTR_BARRIER && !d->started) {
			process->dma_mark |= BLOCKED;
			barriers++;
		}
		attended += needs_attention(d);
		link = &d->next;
	}
	wid->dma_last = link;
	dacsi.attended += attended - wid->attended;
	wid->attended = attended;
	wid->barriers = barriers;
	return news;
}

bool dacsi_dma_poll_all(void)
{
	bool news = false;

	for (uint32_t i = 0; i < dacsi.wid_places; i++)
		if (dacsi.wids[i].dma)
			news |= dacsi_dma_poll(&dacsi.wids[i]);
	return news;
}

void dacsi_dma_abandon(struct dacsi_wid *wid)
{
	struct dacsi_dma *d;

	while ((d = wid->dma)) {
		wid->dma = d->next;
		discard_dma(d);
	}
}

/* ---- the call ------------------------------------------------------------------------------- */

static struct dacsi_dma *make_dma(const struct dacsi_dma_call *call, struct dacsi_region *remote,
				  struct dacsi_region *local, uint64_t total)
{
	size_t spans = call->remote->count * sizeof(struct slmpm_span);
	size_t pieces = call->local->count * sizeof(struct slmpm_iov);
	struct dacsi_dma *d = calloc(1, sizeof(*d) + spans + pieces);

	if (!d)
		return NULL;
	d->put = call->what & DACSI_PUT;
	d->order = call->order;
	if (call->swap != DACS_BYTE_SWAP_DISABLE && dacsi_foreign(remote->is.process))
		d->swap = call->swap;
	if (d->put && d->swap != DACS_BYTE_SWAP_DISABLE) {
		d->copy = malloc(total < COPY_MAX ? total : COPY_MAX);
		if (!d->copy) {
			free(d);
			return NULL;
		}
	}
	d->spans = (struct slmpm_span *)(d + 1);
	d->pieces = (struct slmpm_iov *)(d->spans + call->remote->count);
	d->span_count = (int)call->remote->count;
	d->piece_count = (int)call->local->count;
	dacsi_dma_convert(call, local, d->spans, d->pieces);
	d->remote = remote;
	d->local = local;
	remote->active++;
	if (local)
		local->active++;
	return d;
}

/* Starts D at once, or queues it. */
static DACS_ERR_T submit_dma(struct dacsi_wid *wid, struct dacsi_dma *d)
{
	bool now = !wid->dma || (d->order == DACS_ORDER_ATTR_NONE && !wid->barriers);
	int rc = now ? run_dma(d) : 0;

	if (rc < 0 && !d->started) {
		discard_dma(d);
		return dma_code(rc);
	}
	dacsi_wid_begin(wid);
	if (rc) {
		finish_dma(wid, d, rc);
		return DACS_SUCCESS;
	}
	*wid->dma_last = d;
	wid->dma_last = &d->next;
	wid->attended += needs_attention(d);
	dacsi.attended += needs_attention(d);
	/* What stands before it may go to other partners, or have ended. */
	if (!d->started && d->order != DACS_ORDER_ATTR_NONE)
		(void)dacsi_dma_poll(wid);
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_dma(enum dacsi_family family, uint32_t what, const struct dacsi_dma_side *to,
		     const struct dacsi_dma_side *from, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
		     DACS_BYTE_SWAP_T swap)
{
	const bool put = what & DACSI_PUT;
	const struct dacsi_dma_call call = {
		family, what, put ? to : from, put ? from : to, wid, order, swap,
	};
	struct dacsi_region *remote, *local;
	struct dacsi_dma *d;
	uint64_t total;
	DACS_ERR_T rc;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	rc = dacsi_dma_check(&call, &remote, &local, &total);
	if (rc != DACS_SUCCESS)
		return dacsi_leave_fast(rc);
	d = make_dma(&call, remote, local, total);
	return dacsi_leave_fast(d ? submit_dma(dacsi_wid_find(wid), d) : DACS_ERR_NO_RESOURCE);
}
