/* SPDX-License-Identifier: BSD-3-Clause */
/* Wait identifiers: each counts the transfers started on it and keeps their first error. */
#include "slmpm/dacs/dacs_dma.h"

/* A number is a place and how often it was given out, so that a released one is noticed. Places
 * stay below 1024, so no number looks like DACS_INVALID_WID; from 1, so none is 0. */
#define PLACE_BITS 12
#define PLACE_MASK ((1U << PLACE_BITS) - 1)

struct dacsi_wid *dacsi_wid_find(dacs_wid_t wid)
{
	uint32_t place = (wid & PLACE_MASK) - 1;

	if (place >= DACSI_WIDS || !dacsi.wids || dacsi.wids[place].number != wid)
		return NULL;
	return &dacsi.wids[place];
}

void dacsi_wid_begin(struct dacsi_wid *wid)
{
	wid->pending++;
	wid->active = true;
}

void dacsi_wid_end(struct dacsi_wid *wid, DACS_ERR_T error)
{
	wid->pending--;
	if (error != DACS_SUCCESS && wid->error == DACS_SUCCESS)
		wid->error = error;
}

static void poll(struct dacsi_wid *wid)
{
	if (wid->running)
		(void)dacsi_message_poll(wid);
	if (wid->dma)
		(void)dacsi_dma_poll(wid);
}

DACS_ERR_T dacs_wid_reserve(dacs_wid_t *wid)
{
	static uint32_t given; /* under the lock */
	DACS_ERR_T rc = dacsi_enter_with(wid);

	if (rc != DACS_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < DACSI_WIDS; i++) {
		struct dacsi_wid *w = &dacsi.wids[i];

		if (w->number)
			continue;
		*w = (struct dacsi_wid){.number = ++given << PLACE_BITS | (i + 1),
					.dma_last = &w->dma};
		if (i >= dacsi.wid_places)
			dacsi.wid_places = i + 1;
		*wid = w->number;
		return dacsi_leave_fast(DACS_SUCCESS);
	}
	return dacsi_leave_fast(DACS_ERR_NO_WIDS);
}

DACS_ERR_T dacs_wid_release(dacs_wid_t *wid)
{
	DACS_ERR_T rc = dacsi_enter_with(wid);
	struct dacsi_wid *w;

	if (rc != DACS_SUCCESS)
		return rc;
	w = dacsi_wid_find(*wid);
	if (!w)
		return dacsi_leave_fast(DACS_ERR_INVALID_WID);
	if (w->pending) {
		(void)dacsi_progress();
		poll(w);
	}
	if (w->pending)
		return dacsi_leave_fast(DACS_ERR_WID_ACTIVE);
	w->number = 0;
	*wid = DACS_INVALID_WID;
	return dacsi_leave_fast(DACS_SUCCESS);
}

/* What the wid reports now; DACS_WID_BUSY while a transfer is under way. */
static DACS_ERR_T report(struct dacsi_wid *w)
{
	if (!w->active)
		return DACS_ERR_WID_NOT_ACTIVE;
	if (w->pending)
		poll(w);
	if (w->pending)
		return DACS_WID_BUSY;
	w->reported = w->error;
	w->error = DACS_SUCCESS;
	w->active = false;
	w->round++;
	return w->reported;
}

DACS_ERR_T dacs_test(dacs_wid_t wid)
{
	struct dacsi_wid *w;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	w = dacsi_wid_find(wid);
	if (w && w->pending)
		(void)dacsi_progress();
	return dacsi_leave_fast(w ? report(w) : DACS_ERR_INVALID_WID);
}

DACS_ERR_T dacs_wait(dacs_wid_t wid)
{
	struct dacsi_pause pause;
	struct dacsi_wid *w;
	uint32_t round;
	DACS_ERR_T rc;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	w = dacsi_wid_find(wid);
	round = w ? w->round : 0;
	dacsi_pause_begin(&pause);
	do {
		w = dacsi_wid_find(wid); /* another thread may have released it meanwhile, ... */
		if (!w)
			rc = DACS_ERR_INVALID_WID;
		else /* ... or have had the report first: both get the same */
			rc = w->round == round ? report(w) : w->reported;
	} while (rc == DACS_WID_BUSY && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	return dacsi_leave_fast(rc);
}
