/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages are made read-only; who stores there gets a signal, whose handler notes the page and opens
 * it. The handler takes no lock and allocates nothing: it finds the page by a table of fixed size,
 * whose entries are taken away only when no handler reads them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "slmpm/track/chain.h"
#include "slmpm/track/written.h"

#define ENTRIES 256

struct signal_pages {
	struct written written;
	int protection; /* when open */
	unsigned entry;
};

struct entry {
	_Atomic uintptr_t lo, hi; /* hi 0: nothing is here */
	struct signal_pages *_Atomic pages;
	_Atomic unsigned users; /* handlers and others that read it */
	bool used;              /* the lock's */
};

static struct {
	pthread_mutex_t lock;
	_Atomic unsigned top; /* none from here on has ever been used */
	struct entry entries[ENTRIES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- in the handler ------------------------------------------------------------------------- */

enum doing { INSPECT, UNPROTECT, TAKE };

/* Do any lie there? And what is to be done about them. */
static bool track_signal_each_there(uintptr_t lo, uintptr_t hi, enum doing doing)
{
	unsigned top = atomic_load(&table.top);
	bool any = false;

	for (unsigned i = 0; i < top; i++) {
		struct entry *e = &table.entries[i];

		/* Counted first, so that what is found stays. */
		atomic_fetch_add(&e->users, 1);
		if (atomic_load(&e->lo) < hi && atomic_load(&e->hi) > lo) {
			struct written *w = &atomic_load(&e->pages)->written;

			any = true;
			if (doing == UNPROTECT)
				written_unprotect(&w->pages, lo, hi);
			else if (doing == TAKE && lo >= w->pages.lo && lo < w->pages.hi)
				(void)written_open_at(w, lo); /* the entry is not just being made */
		}
		atomic_fetch_sub(&e->users, 1);
	}
	return any;
}

static bool track_signal_lies(uintptr_t lo, uintptr_t hi, bool unprotect)
{
	return track_signal_each_there(lo, hi, unprotect ? UNPROTECT : INSPECT);
}

static bool track_signal_take(uintptr_t at)
{
	return track_signal_each_there(at, at + 1, TAKE);
}

/* ---- entries -------------------------------------------------------------------------------- */

static int track_signal_enter(struct signal_pages *p)
{
	unsigned i = 0;

	pthread_mutex_lock(&table.lock);
	while (i < ENTRIES && table.entries[i].used)
		i++;
	if (i < ENTRIES) {
		struct entry *e = &table.entries[i];

		e->used = true;
		p->entry = i;
		atomic_store(&e->pages, p);
		atomic_store(&e->lo, p->written.pages.lo);
		atomic_store(&e->hi, p->written.pages.hi);
		if (atomic_load(&table.top) <= i)
			atomic_store(&table.top, i + 1);
	}
	pthread_mutex_unlock(&table.lock);
	return i < ENTRIES ? 0 : -ENOSPC;
}

static void track_signal_leave(struct signal_pages *p)
{
	struct entry *e = &table.entries[p->entry];

	atomic_store(&e->hi, 0);
	while (atomic_load(&e->users))
		sched_yield();
	pthread_mutex_lock(&table.lock);
	e->used = false;
	pthread_mutex_unlock(&table.lock);
}

/* ---- the finder ----------------------------------------------------------------------------- */

/* Where the kernel will not cut the mapping once more, all of it is opened. */
static int signal_protect(struct written *w, uintptr_t lo, uintptr_t hi, bool on)
{
	int protection = ((const struct signal_pages *)w)->protection;

	if (on)
		return mprotect((void *)lo, hi - lo, protection & ~PROT_WRITE) == 0 ? 0 : -errno;
	if (mprotect((void *)lo, hi - lo, protection) == 0)
		return 0;
	lo = w->pages.lo;
	hi = w->pages.hi;
	written_mark(w, lo, hi);
	return mprotect((void *)lo, hi - lo, protection) == 0 ? 0 : -errno;
}

static int open_signal(struct pages **pages, const struct range *range)
{
	struct signal_pages *p = written_new(sizeof(*p), &track_signal, range, signal_protect);
	int rc;

	if (!p)
		return -ENOMEM;
	p->protection = range->protection;
	rc = chain_install(track_signal_take);
	if (rc == 0)
		rc = track_signal_enter(p);
	if (rc == 0) {
		rc = signal_protect(&p->written, range->lo, range->hi, true);
		if (rc < 0)
			track_signal_leave(p);
	}
	if (rc < 0)
		written_free(&p->written);
	else
		*pages = &p->written.pages;
	return rc;
}

/* Opened before the entry goes: who has faulted and finds none finds the page open. */
static void track_signal_give_up(struct signal_pages *p)
{
	(void)signal_protect(&p->written, p->written.pages.lo, p->written.pages.hi, false);
	track_signal_leave(p);
}

static void close_signal(struct pages *pages)
{
	struct signal_pages *p = (struct signal_pages *)pages;

	track_signal_give_up(p);
	written_free(&p->written);
}

/* A child has one thread, which is in no handler; what others of its parent's were is nothing. */
static void track_signal_forked(struct pages *pages)
{
	struct signal_pages *p = (struct signal_pages *)pages;

	(void)pthread_mutex_init(&table.lock, NULL);
	for (unsigned i = 0; i < ENTRIES; i++)
		atomic_store(&table.entries[i].users, 0);
	track_signal_give_up(p);
}

const struct finder track_signal = {
	.name = "signal",
	.open = open_signal,
	.close = close_signal,
	.forked = track_signal_forked,
	.next = written_next,
	.unprotect = written_unprotect,
	.lies = track_signal_lies,
};
