/* SPDX-License-Identifier: BSD-3-Clause */
/* Automatic tracking by a twin: a second copy of the memory tells which bytes have changed. */
#include "slmpm/mirror/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slmpm/error.h"

#define PIECE 4096 /* compared as one first */

struct tracker {
	unsigned char *twin;
	uint64_t size;
	uint64_t found;
};

int track_open(struct mirror *m, int how)
{
	struct tracker *t;
	void *twin;

	if (how != SLMPM_TRACK_AUTO && how != SLMPM_TRACK_TWIN)
		return error_set(SLMPM_ENOTSUP, "tracking %d", how);
	t = calloc(1, sizeof(*t));
	twin = t ? mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
		   MAP_FAILED;
	if (twin == MAP_FAILED) {
		free(t);
		return error_set(SLMPM_ENOMEM, "for the twin of %llu bytes",
				 (unsigned long long)m->size);
	}
	t->twin = twin;
	t->size = m->size;
	mirror_load(twin, m->base, m->size);
	m->tracker = t;
	return 0;
}

void track_close(struct mirror *m)
{
	(void)munmap(m->tracker->twin, m->tracker->size);
	free(m->tracker);
	m->tracker = NULL;
}

const char *track_name(const struct tracker *t)
{
	return t ? "twin" : "explicit";
}

/* The run of bytes at *AT that differ; *AT goes behind it. */
static void note_run(struct mirror *m, uint64_t *at, uint64_t hi)
{
	struct tracker *t = m->tracker;
	uint64_t lo = *at, end = lo;

	while (end < hi && __atomic_load_n(m->base + end, __ATOMIC_RELAXED) != t->twin[end])
		end++;
	mirror_load(t->twin + lo, m->base + lo, end - lo);
	mirror_note(m, lo, end, NULL);
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

uint64_t track_look(struct mirror *m)
{
	uint64_t before = m->tracker->found;

	if (!m->span_count)
		track_look_at(m, 0, m->size);
	for (uint32_t i = 0; i < m->span_count; i++)
		track_look_at(m, m->spans[i].offset, m->spans[i].offset + m->spans[i].len);
	return m->tracker->found - before;
}

void track_told(struct mirror *m, uint64_t lo, uint64_t hi)
{
	mirror_load(m->tracker->twin + lo, m->base + lo, hi - lo);
}
