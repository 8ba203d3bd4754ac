/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a wait polls before it sleeps.
 *
 * Whoever sleeps has to be woken; and the peer, which waits for that, may fall asleep meanwhile and
 * has to be woken as well. Bells, barriers and caches gone cold take half as much again. So sleep
 * costs three wake-ups, and a wait polls for as long as that and no longer: it never costs more
 * than twice what the best choice in hindsight would have.
 *
 * That bounds a single wait. Whether polling pays at all is kept in accounts: a wait that ended in
 * time earns half of a wake-up less what it took, in a conversation a whole one, for there each
 * sleep is waited for by the peer, too; one that did not costs what it polled in vain.
 * Where the account is empty a wait sleeps at once; its length is known all the same, so the
 * account goes on. Silence pays in, too: polling behind it is so small a part of that time that
 * nobody minds.
 */
#include "slmpm/base/spin.h"

#include "shm/compiler.h"

#define WAKE_NS  50000 /* before the first has been measured */
#define WAKE_MIN 10000
#define WAKE_MAX 250000 /* an idle pair sleeps within a millisecond */
#define SLEEP    3      /* wake-ups that it costs, all in all */
#define PART     256    /* polling may take this part of a time without waits, or of a long one */
/* The wait under way has added to `quick`: once in the receive's polls, once in the others. */
#define OWN      2

enum { AFTER_SHORT, AFTER_LONG };

/* What a wait that ends in time has saved. */
static uint64_t spin_saved(const struct spin *s)
{
	return s->talks ? s->wake : s->wake / 2;
}

static uint64_t spin_longest(const struct spin *s)
{
	return SLEEP * s->wake;
}

static void book(struct spin *s, int row, int64_t ns)
{
	int64_t most = (int64_t)(2 * spin_longest(s)), sum = s->credit[row] + ns;

	s->credit[row] = sum > most ? most : sum < -most ? -most : sum;
}

/* Whatever the kind of the next wait. */
static void book_silence(struct spin *s, uint64_t ns)
{
	book(s, AFTER_SHORT, (int64_t)(ns / PART));
	book(s, AFTER_LONG, (int64_t)(ns / PART));
}

void spin_init(struct spin *s, uint64_t fixed)
{
	*s = (struct spin){.fixed = fixed, .wake = WAKE_NS};
	s->credit[AFTER_SHORT] = s->credit[AFTER_LONG] = (int64_t)(2 * spin_longest(s));
}

uint64_t spin_begin(struct spin *s, uint64_t now, uint64_t bells)
{
	uint32_t met = s->quick > OWN ? s->quick - OWN : 0;

	if (s->fixed != SPIN_AUTO)
		return s->fixed;
	s->quick = 0;
	s->rang = bells != s->bells;
	book_silence(s, now - s->ended);
	s->talks = met || now - s->ended < spin_longest(s);
	s->row = !met && s->was_long ? AFTER_LONG : AFTER_SHORT;
	if (met)
		book(s, AFTER_SHORT, (int64_t)((met < 64 ? met : 64) * s->wake / 2));
	return s->credit[s->row] > 0 ? spin_longest(s) : 0;
}

/* Quickly up, slowly down: polling too briefly costs a wake-up, too long some of its time. */
static void learn(struct spin *s, uint64_t took)
{
	if (took > WAKE_MAX)
		return;
	if (took > s->wake)
		s->wake += (took - s->wake) / 4;
	else
		s->wake -= (s->wake - took) / 16;
	if (s->wake < WAKE_MIN)
		s->wake = WAKE_MIN;
}

/* How long it would have been, had nobody slept. Over sockets nobody sees whether the peer does. */
static uint64_t awake_time(const struct spin *s, const struct spin_wait *w)
{
	uint64_t took = w->took;

	if (w->asleep)
		took = excess_of(took, s->wake);
	if (s->talks && (s->rang || (w->asleep && w->bells == SPIN_NO_BELLS)))
		took = excess_of(took, s->wake);
	return took;
}

void spin_end(struct spin *s, uint64_t now, const struct spin_wait *w)
{
	uint64_t took;

	if (s->fixed != SPIN_AUTO || (!w->met && w->took <= spin_longest(s)))
		return;
	if (s->rang && w->met)
		learn(s, w->asleep ? w->took / 2 : w->took);
	took = excess_of(awake_time(s, w), w->away);
	s->was_long = took > spin_longest(s);
	/* Bursts have begun: their second messages would pay for all the lone ones before. */
	if (!s->was_long && s->row == AFTER_LONG && s->credit[AFTER_LONG] < 0)
		s->credit[AFTER_LONG] = 0;
	if (s->was_long)
		book_silence(s, took);
	book(s, s->row,
	     s->was_long ? -(int64_t)spin_longest(s) : (int64_t)spin_saved(s) - (int64_t)took);
	s->ended = now;
	s->bells = w->bells;
	s->quick = 0;
}

bool spin_may_pay(const struct spin *s)
{
	return s->credit[s->was_long ? AFTER_LONG : AFTER_SHORT] > 0;
}
