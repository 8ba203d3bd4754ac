/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes, at their owner: who has it, and who asked when (dacs_pact.h). */
#include "slmpm/dacs/dacs_internal.h"
#include "slmpm/dacs/dacs_pact.h"

struct dacsi_seat *dacsi_mutex_seat(const struct dacsi_mutex *m)
{
	return dacsi_pact_seat(&m->pact, NULL);
}

void dacsi_mutex_ask(struct dacsi_mutex *m, struct dacsi_seat *seat)
{
	if (!seat->asks++)
		seat->ticket = ++m->tickets;
	dacsi.awaited++;
	dacsi_pact_due(&m->pact);
}

void dacsi_mutex_ask_less(struct dacsi_seat *seat)
{
	if (!seat->asks)
		return;
	seat->asks--;
	dacsi.awaited--;
}

static struct dacsi_seat *first_asker(const struct dacsi_mutex *m)
{
	struct dacsi_seat *first = NULL;

	for (struct dacsi_seat *seat = m->pact.seats; seat; seat = seat->next)
		if (seat->asks && (!first || seat->ticket < first->ticket))
			first = seat;
	return first;
}

void dacsi_mutex_let_go(struct dacsi_mutex *m, const struct dacsi_seat *seat)
{
	if (m->holder != seat)
		return;
	m->holder = NULL;
	dacsi_pact_due(&m->pact);
}

/* It is not settled while nobody waits, so whether the holder lives is looked at here. */
bool dacsi_mutex_is_free(struct dacsi_mutex *m)
{
	if (m->holder)
		dacsi_pact_look(&m->pact);
	return !m->holder && !first_asker(m);
}

/* To who has asked first: true when that is done, false when the next is to be looked for. */
static bool grant(struct dacsi_mutex *m, struct dacsi_seat *seat)
{
	DACS_ERR_T rc;

	dacsi_mutex_ask_less(seat);
	if (seat->asks)
		seat->ticket = ++m->tickets;
	m->holder = seat;
	if (!seat->process) {
		m->granted = dacsi_mutex_is_wanted(m);
		if (!m->granted)
			m->holder = NULL;
		return m->granted;
	}
	rc = dacsi_pact_tell(seat->process, DACSI_GRANT, 0, seat->theirs, m->pact.is.number);
	if (rc == DACS_SUCCESS)
		return true;
	m->holder = NULL;
	if (rc != DACS_ERR_NO_RESOURCE)
		return false;     /* it has ended */
	dacsi_mutex_ask(m, seat); /* once more, when there is memory */
	return true;
}

void dacsi_mutex_settle(struct dacsi_mutex *m)
{
	struct dacsi_seat *seat;

	if (!m->pact.owner)
		return;
	while (!m->holder && (seat = first_asker(m)))
		if (grant(m, seat))
			return;
}

uint32_t dacsi_mutex_asked(struct dacsi_mutex *m, struct dacsi_seat *seat, uint32_t type,
			   uint32_t *value)
{
	switch (type) {
	case DACSI_LOCK: dacsi_mutex_ask(m, seat); return 0;
	case DACSI_GIVE_UP: dacsi_mutex_ask_less(seat); return 0;
	case DACSI_UNLOCK: dacsi_mutex_let_go(m, seat); return 0;
	case DACSI_TRY:
		if (!dacsi_mutex_is_free(m))
			return DACSI_BUSY;
		m->holder = seat;
		*value = 1;
		return DACSI_GRANT;
	default: return 0;
	}
}
