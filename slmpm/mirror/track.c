/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic tracking: the first finder that works is taken, and scanned. Finders watch the whole
 * pages of the mirror's alone; the bytes before and behind these are always compared.
 */
#include "slmpm/mirror/track.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/base/error.h"
#include "slmpm/link/landing.h"
#include "slmpm/base/log.h"
#include "slmpm/base/clock.h"

#define DUE_TICKS 2000000 /* between scans that progress makes */
#define FINDERS   (SLMPM_TRACK_TWIN - SLMPM_TRACK_PAGEMAP)

static const struct finder *const finders[FINDERS] = {&track_pagemap, &track_fault, &track_signal};
static _Atomic unsigned guarding; /* trackers whose pages system calls may not write */

/* ---- does it work? -------------------------------------------------------------------------- */

/* The second of two pages is written: it is found. */
static int try_pages(const struct finder *finder, const struct range *range)
{
	struct pages *pages;
	uintptr_t at = range->lo, lo = 0, hi = 0;
	int rc = finder->open(&pages, range), found;

	if (rc < 0)
		return rc;
	while ((rc = finder->next(pages, &at, &lo, &hi)) > 0)
		;
	((volatile unsigned char *)range->lo)[range->page] = 1;
	at = range->lo;
	found = rc < 0 ? rc : finder->next(pages, &at, &lo, &hi);
	finder->close(pages);
	if (found < 0)
		return found;
	return found && lo == range->lo + range->page && hi == range->hi ? 0 : -ENOTSUP;
}

static int retry(const struct finder *finder)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct range range = {.page = page, .protection = PROT_READ | PROT_WRITE};
	void *at = mmap(NULL, 2 * page, range.protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (at == MAP_FAILED)
		return -errno;
	range.lo = (uintptr_t)at;
	range.hi = range.lo + 2 * page;
	rc = try_pages(finder, &range);
	(void)munmap(at, 2 * page);
	return rc;
}

static const char *reason(const struct finder *finder, int rc)
{
	if (finder == &track_signal && rc == -EBUSY)
		return "a handler of SIGSEGV has been installed over the library's";
	if (finder == &track_signal && rc == -EDEADLK)
		return "this thread blocks SIGSEGV";
	return strerror(-rc);
}

const char *track_try(int how)
{
	const struct finder *finder;
	int rc;

	if (how < SLMPM_TRACK_PAGEMAP || how >= SLMPM_TRACK_TWIN)
		return NULL;
	finder = finders[how - SLMPM_TRACK_PAGEMAP];
	rc = retry(finder);
	return rc < 0 ? reason(finder, rc) : NULL;
}

int slmpm_mirror_track_works(int track)
{
	const char *why;

	if (track < SLMPM_TRACK_NONE || track > SLMPM_TRACK_TWIN)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_track_works: %d", track);
	why = track_try(track);
	return why ? error_set(SLMPM_ENOTSUP, "tracking by %s: %s",
			       finders[track - SLMPM_TRACK_PAGEMAP]->name, why) :
		     0;
}

/* ---- which one ------------------------------------------------------------------------------ */

static void track_guard(struct tracker *t, bool on)
{
	atomic_fetch_add(&guarding, (unsigned)on - t->guards);
	t->guards = on;
}

/* What is just coming in from a socket goes elsewhere from now on. */
static int open_finder(struct mirror *m, int i, const struct range *range)
{
	static _Atomic bool works[FINDERS]; /* what has worked once does */
	const struct finder *finder = finders[i];
	struct tracker *t = m->tracker;
	int rc = atomic_load(&works[i]) ? 0 : retry(finder);

	if (rc < 0)
		return rc;
	atomic_store(&works[i], true);
	t->lo = range->lo;
	t->hi = range->hi;
	if (finder->lies) {
		track_guard(t, true);
		landing_moved_all(m->ctx);
	}
	rc = finder->open(&t->pages, range);
	if (rc < 0)
		track_guard(t, false);
	return rc;
}

/* The setting counts for who leaves it open. */
static int open_any(struct mirror *m, int how, const struct range *range)
{
	const char *why;
	int rc;

	for (int i = 0; i < FINDERS; i++) {
		if (how != SLMPM_TRACK_AUTO && how != SLMPM_TRACK_PAGEMAP + i)
			continue;
		rc = open_finder(m, i, range);
		if (rc == 0)
			return 0;
		why = reason(finders[i], rc);
		if (how != SLMPM_TRACK_AUTO)
			return error_set(SLMPM_ENOTSUP, "the mirror cannot be tracked by %s: %s",
					 finders[i]->name, why);
		log_line(SLMPM_LOG_INFO, "a mirror is not tracked by %s: %s", finders[i]->name,
			 why);
	}
	return 0;
}

static int track_open_pages(struct mirror *m, int how)
{
	const struct slmpm_span *first = m->spans, *last = first + m->span_count - 1;
	const struct config *config = config_get();
	uintptr_t base = (uintptr_t)m->base;
	struct range range;
	int rc;

	if (how == SLMPM_TRACK_AUTO && config)
		how += (int)config->track;
	if (how == SLMPM_TRACK_TWIN)
		return 0;
	rc = finder_range(base + first->offset, base + last->offset + last->len, &range);
	if (rc < 0 && how != SLMPM_TRACK_AUTO)
		return error_set(SLMPM_ENOTSUP, "the mirror's memory cannot be tracked: %s",
				 strerror(-rc));
	return rc > 0 ? open_any(m, how, &range) : 0;
}

/* ---- its life ------------------------------------------------------------------------------- */

void track_close(struct mirror *m)
{
	struct tracker *t = m->tracker;

	if (t->pages)
		t->pages->finder->close(t->pages);
	track_guard(t, false);
	twin_close(t);
	free(t);
	m->tracker = NULL;
}

/* The pages are asked for before the twin is made: what is written meanwhile is found. */
int track_open(struct mirror *m, int how)
{
	struct tracker *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return error_set(SLMPM_ENOMEM, "for tracking");
	m->tracker = t;
	rc = track_open_pages(m, how);
	if (rc == 0)
		rc = twin_open(t, m);
	if (rc < 0)
		track_close(m);
	return rc;
}

void track_forked(struct tracker *t)
{
	if (t->pages)
		t->pages->finder->forked(t->pages);
	track_guard(t, false);
}

const char *track_name(const struct tracker *t)
{
	return !t ? "explicit" : t->pages ? t->pages->finder->name : "twin";
}

/* ---- scans ---------------------------------------------------------------------------------- */

/* Of what belongs to the mirror. */
static void inspect_between(struct mirror *m, uint64_t lo, uint64_t hi)
{
	for (uint32_t i = 0; i < m->span_count; i++) {
		uint64_t from = lo, to = hi;

		if (mirror_clip(m, i, &from, &to))
			twin_compare(m, from, to);
	}
}

/* False: it is not known which have been written, after all. */
static bool inspect_pages(struct mirror *m)
{
	struct pages *p = m->tracker->pages;
	uintptr_t at = p->lo, base = (uintptr_t)m->base, lo, hi;
	int rc;

	while ((rc = p->finder->next(p, &at, &lo, &hi)) > 0)
		inspect_between(m, lo - base, hi - base);
	return rc == 0;
}

uint64_t track_scan(struct mirror *m)
{
	struct tracker *t = m->tracker;
	uint64_t before = t->found, base = (uintptr_t)m->base;

	t->inspected = clock_ticks();
	if (t->pages && inspect_pages(m)) {
		inspect_between(m, 0, t->pages->lo - base);
		inspect_between(m, t->pages->hi - base, m->size);
	} else {
		inspect_between(m, 0, m->size);
	}
	return t->found - before;
}

bool track_is_due(const struct mirror *m)
{
	return clock_ticks() - m->tracker->inspected >= DUE_TICKS;
}

/* ---- what the kernel writes for a system call ----------------------------------------------- */

bool track_guards(const struct context *ctx, const void *at, uint64_t n)
{
	uintptr_t lo = (uintptr_t)at, hi = lo + n;

	if (!atomic_load_explicit(&guarding, memory_order_relaxed))
		return false;
	LIST_EACH(node, &ctx->mirrors) {
		const struct tracker *t = LIST_ENTRY(node, struct mirror, node)->tracker;

		if (t && t->guards && t->lo < hi && lo < t->hi)
			return true;
	}
	for (int i = 0; i < FINDERS; i++)
		if (finders[i]->lies && finders[i]->lies(lo, hi, false))
			return true;
	return false;
}

void track_unprotect(struct mirror *m, uint64_t lo, uint64_t hi)
{
	struct pages *p = m->tracker->pages;
	uintptr_t base = (uintptr_t)m->base;

	if (p && p->finder->unprotect)
		p->finder->unprotect(p, base + lo, base + hi);
}

bool track_unprotect_any(void *at, uint64_t n)
{
	uintptr_t lo = (uintptr_t)at;
	bool any = false;

	/* Nor are locks taken that a process without mirrors would not renew in a child of fork. */
	if (!atomic_load_explicit(&guarding, memory_order_relaxed))
		return false;
	for (int i = 0; i < FINDERS; i++)
		any |= finders[i]->lies && finders[i]->lies(lo, lo + n, true);
	return any;
}
