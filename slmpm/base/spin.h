/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a wait polls before it sleeps, by what being woken costs here and by what polling has
 * brought of late. doc/decisions/0027-time-before-sleep.md has the reasons.
 */
#ifndef SLMPM_BASE_SPIN_H
#define SLMPM_BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_AUTO     UINT64_MAX
#define SPIN_NO_BELLS UINT64_MAX

/* A context's. Times in ns. */
struct spin {
	uint64_t fixed; /* SLMPM_SPIN_US, or SPIN_AUTO */
	uint64_t wake;  /* from a bell until the peer that slept has answered, of late */
	/* What polling has saved less what it has cost, by the kind of wait before. */
	int64_t credit[2];
	uint64_t ended; /* time of the last spin_end */
	uint64_t bells; /* rung by then */
	uint32_t quick; /* waits begun since then; most end before the clock is read */
	bool was_long;  /* the last one was longer than polling pays */
	/* Of the wait under way: */
	bool rang;   /* the peer was asleep when last sent to */
	bool talks;  /* and slept because this side did: they had just exchanged something */
	uint8_t row; /* of `credit` */
};

/*
 * How often a receive scans the ring before it becomes a request; a quarter as many passes of
 * progress follow before the clock is read, or half as many scans of one ring (idle_polls).
 * BRIEF: where the last wait slept and polling has not paid of late (decision 0027).
 */
#define IDLE_SCANS       200
#define IDLE_SCANS_BRIEF 40

/* What a wait that finds nothing knows of itself. */
struct idle {
	uint32_t turns; /* passes that found nothing */
	bool slept;
	uint64_t since; /* there has been nothing; 0: the clock has not been looked at since then */
	uint64_t spin;  /* so long it polls from then on */
	uint64_t bells; /* rung by the last pass that found nothing */
	uint64_t away;  /* of the time since then: yielded to others, which had the processor */
	uint64_t read;  /* the clock, last */
};

/* A wait that is over. */
struct spin_wait {
	uint64_t took; /* since spin_begin */
	uint64_t away; /* of that, others had the processor: it cost nothing */
	uint64_t
		bells; /* rung by the last pass without it: one that rang behind is of the next wait */
	bool met;      /* it has brought something; else it was given up */
	bool asleep; /* for a part of it */
};

void spin_init(struct spin *s, uint64_t fixed);
/* A wait has brought nothing by the time that the clock is read, NOW: it polls for so long. BELLS:
 * rung so far, or SPIN_NO_BELLS where peers are woken otherwise. */
uint64_t spin_begin(struct spin *s, uint64_t now, uint64_t bells);
void spin_end(struct spin *s, uint64_t now, const struct spin_wait *w);

/* May the next wait poll, unless quick ones come first? */
bool spin_may_pay(const struct spin *s);

#endif
