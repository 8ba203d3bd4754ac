/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: dacs_send hands over to SLMPM at once; dacs_recv queues, and the receive meets its
 * message here: first posted, first served, for each partner and stream.
 */
#include "slmpm/dacs/dacs_message.h"

#include <stdlib.h>
#include <string.h>

#define SHORT 4096 /* bytes */

/* ---- byte order ------------------------------------------------------------------------------ */

/* Elements need not be aligned, hence memcpy; compilers make vector code of each loop. */
#define SWAP_LOOP(type, reverse)                                                                   \
	for (size_t at = 0; at + sizeof(type) <= len; at += sizeof(type)) {                        \
		type element;                                                                      \
		memcpy(&element, bytes + at, sizeof(element));                                     \
		element = reverse(element);                                                        \
		memcpy(bytes + at, &element, sizeof(element));                                     \
	}

void dacsi_swap(void *data, size_t len, DACS_BYTE_SWAP_T swap)
{
	unsigned char *bytes = data;

	switch (swap) {
	case DACS_BYTE_SWAP_DISABLE: break;
	case DACS_BYTE_SWAP_HALF_WORD: SWAP_LOOP(uint16_t, __builtin_bswap16) break;
	case DACS_BYTE_SWAP_WORD: SWAP_LOOP(uint32_t, __builtin_bswap32) break;
	case DACS_BYTE_SWAP_DOUBLE_WORD: SWAP_LOOP(uint64_t, __builtin_bswap64) break;
	}
}

/* Something has come from there, so the peer is connected and its byte order known. */
bool dacsi_foreign(const struct dacsi_process *process)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	return slmpm_peer_query(process->peer, &info) == 0 &&
	       (info.big_endian != 0) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* ---- messages under way ---------------------------------------------------------------------- */

/* Ends T, which is on no list any more. */
static void finish_transfer(struct dacsi_transfer *t, const struct slmpm_done *done)
{
	DACS_ERR_T error = t->verdict;

	/* A message that is thrown away is truncated on purpose. */
	if (error == DACS_SUCCESS && done->status < 0)
		error = dacsi_code(done->status);
	if (error == DACS_SUCCESS && t->foreign)
		dacsi_swap(t->buf, done->len, (DACS_BYTE_SWAP_T)t->swap);
	dacsi_wid_end(t->wid, error);
	free(t);
}

/* T has been handed to SLMPM, or refused with RC. */
static void run_transfer(struct dacsi_transfer *t, int64_t rc)
{
	struct slmpm_done done = {.status = (int32_t)rc};

	if (rc < 0 || !t->req.id || slmpm_test(&t->req, &done) > 0) {
		finish_transfer(t, &done);
		return;
	}
	t->next = t->wid->running;
	t->wid->running = t;
}

bool dacsi_message_poll(struct dacsi_wid *wid)
{
	struct dacsi_transfer **link = &wid->running, *t;
	bool news = false;

	while ((t = *link)) {
		struct slmpm_done done = {0};
		int rc = slmpm_test(&t->req, &done);

		if (rc == 0) {
			link = &t->next;
			continue;
		}
		if (rc < 0)
			done.status = rc;
		*link = t->next;
		finish_transfer(t, &done);
		news = true;
	}
	return news;
}

/* Takes T off the queue; the next one on its stream moves up. */
static void unpost_receive(struct dacsi_process *process, struct dacsi_transfer *t)
{
	struct dacsi_transfer **link = &process->posted;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	for (struct dacsi_transfer *later = t->next; later; later = later->next)
		if (later->stream == t->stream) {
			later->behind = false;
			break;
		}
}

/* The message that DONE describes stands first on its stream and is T's. */
static void receive_into(struct dacsi_process *process, struct dacsi_transfer *t,
			 const struct slmpm_done *done)
{
	struct slmpm_iov iov = {.base = t->buf, .len = t->len};

	if (done->imm != t->swap)
		t->verdict = DACS_ERR_BYTESWAP_MISMATCH;
	else if (done->len > t->len)
		t->verdict = DACS_ERR_BUF_OVERFLOW;
	if (t->verdict != DACS_SUCCESS)
		iov.len = 0; /* nothing moves */
	t->foreign = t->swap != DACS_BYTE_SWAP_DISABLE && dacsi_foreign(process);
	run_transfer(t, slmpm_recvv(process->peer, done->stream, &iov, 1, NULL, &t->req));
}

/* No message for T will come any more. */
static void fail_receive(struct dacsi_process *process, struct dacsi_transfer *t, DACS_ERR_T error)
{
	unpost_receive(process, t);
	dacsi_wid_end(t->wid, error);
	free(t);
}

/* Whom the message on STREAM is for: the first posted that takes it. */
static struct dacsi_transfer *taker(const struct dacsi_process *process, uint32_t stream)
{
	for (struct dacsi_transfer *t = process->posted; t; t = t->next)
		if (t->stream == stream || t->stream == DACS_STREAM_ALL)
			return t;
	return NULL;
}

bool dacsi_message_match(struct dacsi_process *process)
{
	struct dacsi_transfer *t = process->posted;
	bool news = false;

	while (t) {
		struct slmpm_done done = {0};
		int rc = t->behind ? 0 : slmpm_probe(process->peer, t->stream, &done, 0);

		if (rc == 0 || rc == -SLMPM_EAGAIN) {
			/* What comes from here on must not pass a receive that takes anything. */
			if (!t->behind && t->stream == DACS_STREAM_ALL)
				break;
			t = t->next;
			continue;
		}
		if (rc < 0) { /* messages of other streams may still be there */
			fail_receive(process, t, dacsi_code(rc));
		} else {
			/* It may have come after an earlier receive was checked: hence not just T. */
			t = taker(process, done.stream);
			unpost_receive(process, t);
			receive_into(process, t, &done);
		}
		news = true;
		t = process->posted;
	}
	return news;
}

void dacsi_message_fail(struct dacsi_process *process, DACS_ERR_T error)
{
	while (process->posted)
		fail_receive(process, process->posted, error);
}

void dacsi_message_abandon(struct dacsi_wid *wid)
{
	struct dacsi_transfer *t;

	while ((t = wid->running)) {
		wid->running = t->next;
		free(t);
	}
}

/* What both calls check before they start; *T is new and filled in. */
static DACS_ERR_T prepare_transfer(void *data, uint32_t len, de_id_t de, dacs_process_id_t pid,
				   dacs_wid_t wid, DACS_BYTE_SWAP_T swap,
				   struct dacsi_process **process, struct dacsi_transfer **t)
{
	struct dacsi_wid *w = dacsi_wid_find(wid);
	DACS_ERR_T rc = dacsi_partner(de, pid, process);

	if (rc != DACS_SUCCESS)
		return rc;
	if (!data)
		return DACS_ERR_INVALID_ADDR;
	if (!len)
		return DACS_ERR_INVALID_SIZE;
	if (!w)
		return DACS_ERR_INVALID_WID;
	if ((unsigned)swap > DACS_BYTE_SWAP_DOUBLE_WORD)
		return DACS_ERR_INVALID_ATTR;
	*t = calloc(1, sizeof(**t));
	if (!*t)
		return DACS_ERR_NO_RESOURCE;
	(*t)->wid = w;
	(*t)->buf = data;
	(*t)->len = len;
	(*t)->swap = (uint32_t)swap;
	return DACS_SUCCESS;
}

DACS_ERR_T dacs_send(void *src_data, uint32_t len, de_id_t dst_de, dacs_process_id_t dst_pid,
		     uint32_t stream, dacs_wid_t wid, DACS_BYTE_SWAP_T swap)
{
	struct slmpm_iov iov = {.base = src_data, .len = len};
	struct slmpm_how how = {.size = sizeof(how), .imm = (uint32_t)swap};
	struct dacsi_process *process;
	struct dacsi_transfer *t;
	DACS_ERR_T rc;
	int sent;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	if (stream > DACS_STREAM_UB)
		return dacsi_leave_fast(DACS_ERR_INVALID_STREAM);
	rc = prepare_transfer(src_data, len, dst_de, dst_pid, wid, swap, &process, &t);
	if (rc != DACS_SUCCESS)
		return dacsi_leave_fast(rc);
	/* Most short messages fit the ring at once and need no request. */
	sent = -SLMPM_EAGAIN;
	if (len <= SHORT)
		sent = slmpm_sendv(process->peer, stream, &iov, 1, &how, NULL);
	if (sent == -SLMPM_EAGAIN)
		sent = slmpm_sendv(process->peer, stream, &iov, 1, &how, &t->req);
	if (sent < 0) {
		free(t);
		return dacsi_leave_fast(dacsi_code(sent));
	}
	dacsi_wid_begin(t->wid);
	run_transfer(t, 0);
	return dacsi_leave_fast(DACS_SUCCESS);
}

DACS_ERR_T dacs_recv(void *dst_data, uint32_t len, de_id_t src_de, dacs_process_id_t src_pid,
		     uint32_t stream, dacs_wid_t wid, DACS_BYTE_SWAP_T swap)
{
	struct dacsi_process *process;
	struct dacsi_transfer *t, **link;
	DACS_ERR_T rc;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	if (stream > DACS_STREAM_UB && stream != DACS_STREAM_ALL)
		return dacsi_leave_fast(DACS_ERR_INVALID_STREAM);
	rc = prepare_transfer(dst_data, len, src_de, src_pid, wid, swap, &process, &t);
	if (rc != DACS_SUCCESS)
		return dacsi_leave_fast(rc);
	t->stream = stream;
	for (link = &process->posted; *link; link = &(*link)->next)
		t->behind |= (*link)->stream == stream;
	*link = t;
	dacsi_wid_begin(t->wid);
	(void)dacsi_message_match(process);
	return dacsi_leave_fast(DACS_SUCCESS);
}
