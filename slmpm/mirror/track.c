/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic tracking by a twin: a second copy of the memory tells which bytes have changed; the
 * kernel, where it can, in which pages to look.
 */
#include "slmpm/mirror/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slmpm/error.h"
#include "slmpm/mirror/pagemap.h"
#include "slmpm/wait.h"

#define PIECE     4096    /* compared as one first */
#define DUE_TICKS 2000000 /* between looks that progress makes */

struct tracker {
	unsigned char *twin;
	uint64_t size;
	uint64_t found;
	uint64_t looked; /* ticks */
	bool mapped;     /* the kernel says which pages have been written */
	struct pagemap pagemap;
};

/* The pages are asked for before the twin is made: what is written meanwhile is told. */
static int open_pages(struct tracker *t, struct mirror *m, int how)
{
	int rc = how == SLMPM_TRACK_TWIN ? -ENOTSUP : pagemap_works();

	if (rc == 0)
		rc = pagemap_open(&t->pagemap, m->base, m->size);
	t->mapped = rc == 0;
	if (rc == 0 || how != SLMPM_TRACK_PAGEMAP)
		return 0;
	return error_set(SLMPM_ENOTSUP, "pages written cannot be told apart here: %s",
			 strerror(-rc));
}

static int open_twin(struct tracker *t, const struct mirror *m)
{
	void *twin =
		mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (twin == MAP_FAILED)
		return error_set(SLMPM_ENOMEM, "for the twin of %llu bytes",
				 (unsigned long long)m->size);
	t->twin = twin;
	t->size = m->size;
	mirror_load(twin, m->base, m->size);
	return 0;
}

int track_open(struct mirror *m, int how)
{
	struct tracker *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return error_set(SLMPM_ENOMEM, "for tracking");
	rc = open_pages(t, m, how);
	if (rc == 0 && (rc = open_twin(t, m)) < 0 && t->mapped)
		pagemap_close(&t->pagemap);
	if (rc < 0)
		free(t);
	else
		m->tracker = t;
	return rc;
}

void track_close(struct mirror *m)
{
	if (m->tracker->mapped)
		pagemap_close(&m->tracker->pagemap);
	(void)munmap(m->tracker->twin, m->tracker->size);
	free(m->tracker);
	m->tracker = NULL;
}

void track_forked(struct tracker *t)
{
	if (t->mapped)
		pagemap_close(&t->pagemap);
}

const char *track_name(const struct tracker *t)
{
	return !t ? "explicit" : t->mapped ? "pagemap" : "twin";
}

int slmpm_mirror_track_works(int track)
{
	int rc;

	if (track < SLMPM_TRACK_NONE || track > SLMPM_TRACK_TWIN)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_track_works: %d", track);
	rc = track == SLMPM_TRACK_PAGEMAP ? pagemap_works() : 0;
	return rc < 0 ?
		       error_set(SLMPM_ENOTSUP, "userfaultfd and PAGEMAP_SCAN: %s", strerror(-rc)) :
		       0;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* Do peers change it, too? */
static bool is_shared(const struct mirror *m)
{
	LIST_EACH(at, &m->attachments)
		if (LIST_ENTRY(at, struct attachment, of_mirror)->both)
			return true;
	return false;
}

/* Whole words, so that nobody sees a part of one; where peers may have changed the rest of a word, only
 * the bytes that are ours. */
static void note_words(struct mirror *m, uint64_t lo, uint64_t hi)
{
	const uint64_t word = sizeof(uint64_t);

	if (!is_shared(m)) {
		lo = lo / word * word;
		hi = (hi + word - 1) / word * word;
	}
	mirror_note(m, lo, hi < m->size ? hi : m->size, NULL);
}

/* The run of bytes at *AT that differ; *AT goes behind it. */
static void note_run(struct mirror *m, uint64_t *at, uint64_t hi)
{
	struct tracker *t = m->tracker;
	uint64_t lo = *at, end = lo;

	while (end < hi && __atomic_load_n(m->base + end, __ATOMIC_RELAXED) != t->twin[end])
		end++;
	mirror_load(t->twin + lo, m->base + lo, end - lo);
	note_words(m, lo, end);
	t->found += end - lo;
	*at = end;
}

static bool same_words(const struct mirror *m, uint64_t at, uint64_t n)
{
	return !memcmp(m->base + at, m->tracker->twin + at, n);
}

void track_look_at(struct mirror *m, uint64_t lo, uint64_t hi)
{
	while (lo < hi) {
		uint64_t n = hi - lo < PIECE ? hi - lo : PIECE;

		if (same_words(m, lo, n)) {
			lo += n;
			continue;
		}
		while (lo < hi &&
		       __atomic_load_n(m->base + lo, __ATOMIC_RELAXED) == m->tracker->twin[lo])
			lo++;
		if (lo < hi)
			note_run(m, &lo, hi);
	}
}

/* Of what belongs to the mirror. */
static void look_between(struct mirror *m, uint64_t lo, uint64_t hi)
{
	if (!m->span_count)
		track_look_at(m, lo, hi);
	for (uint32_t i = 0; i < m->span_count; i++) {
		uint64_t from = m->spans[i].offset, to = from + m->spans[i].len;

		if (from < hi && to > lo)
			track_look_at(m, from < lo ? lo : from, to > hi ? hi : to);
	}
}

/* False: the kernel does not say, after all. */
static bool look_at_pages(struct mirror *m)
{
	struct pagemap *p = &m->tracker->pagemap;
	uintptr_t at = p->lo, base = (uintptr_t)m->base, lo, hi;
	int rc;

	while ((rc = pagemap_next(p, &at, &lo, &hi)) > 0) {
		lo = lo < base ? base : lo;
		hi = hi > base + m->size ? base + m->size : hi;
		look_between(m, lo - base, hi - base);
	}
	return rc == 0;
}

uint64_t track_look(struct mirror *m)
{
	struct tracker *t = m->tracker;
	uint64_t before = t->found;

	t->looked = wait_ticks();
	if (!t->mapped || !look_at_pages(m))
		look_between(m, 0, m->size);
	return t->found - before;
}

bool track_is_due(const struct mirror *m)
{
	return wait_ticks() - m->tracker->looked >= DUE_TICKS;
}

void track_told(struct mirror *m, uint64_t lo, uint64_t hi)
{
	mirror_load(m->tracker->twin + lo, m->base + lo, hi - lo);
}

void track_stored(struct mirror *m, uint64_t lo, uint64_t hi, const void *from)
{
	memcpy(m->tracker->twin + lo, from, hi - lo);
}
