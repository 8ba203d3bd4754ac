/* SPDX-License-Identifier: BSD-3-Clause */
/* The twin: a second copy of a mirror's memory, by which it is found what has changed there. Without
 * help all of it is compared. */
#include <string.h>
#include <sys/mman.h>

#include "slmpm/error.h"
#include "slmpm/mirror/track_parts.h"

#define PIECE 4096 /* compared as one first */
#define WORD  sizeof(uint64_t)

/* The application's threads may store meanwhile: what has been compared too early is found by the
 * next look. ThreadSanitizer need not see that. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES 1
#endif
#endif
#if defined(RACES) || defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"))) static bool same(const unsigned char *a,
							const unsigned char *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (((const volatile unsigned char *)a)[i] != b[i])
			return false;
	return true;
}
#else
static inline bool same(const unsigned char *a, const unsigned char *b, uint64_t n)
{
	return !memcmp(a, b, n);
}
#endif

int twin_open(struct tracker *t, const struct mirror *m)
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

void twin_close(struct tracker *t)
{
	(void)munmap(t->twin, t->size);
}

/* Do peers change it, too? */
static bool is_shared(const struct mirror *m)
{
	LIST_EACH(at, &m->attachments)
		if (LIST_ENTRY(at, struct attachment, of_mirror)->both)
			return true;
	return false;
}

/* Whole words, so that nobody sees a part of one; where peers may have changed the rest of a word,
 * only the bytes that are ours. */
static void note_words(struct mirror *m, uint64_t lo, uint64_t hi)
{
	if (!is_shared(m)) {
		lo = lo / WORD * WORD;
		hi = (hi + WORD - 1) / WORD * WORD;
	}
	mirror_note(m, lo, hi < m->size ? hi : m->size, NULL);
}

static bool differs(const struct mirror *m, uint64_t at)
{
	return __atomic_load_n(m->base + at, __ATOMIC_RELAXED) != m->tracker->twin[at];
}

/* The run of bytes at *AT that differ; *AT goes behind it. */
static void note_run(struct mirror *m, uint64_t *at, uint64_t hi)
{
	struct tracker *t = m->tracker;
	uint64_t lo = *at, end = lo;

	while (end < hi && differs(m, end))
		end++;
	mirror_load(t->twin + lo, m->base + lo, end - lo);
	note_words(m, lo, end);
	t->found += end - lo;
	*at = end;
}

/* The first byte from LO on that differs, or HI. */
static uint64_t first_other(const struct mirror *m, uint64_t lo, uint64_t hi)
{
	const unsigned char *twin = m->tracker->twin;

	for (uint64_t end; lo < hi; lo = end) {
		end = lo / PIECE * PIECE + PIECE;
		end = end < hi ? end : hi;
		if (same(m->base + lo, twin + lo, end - lo))
			continue;
		while (lo < end && !differs(m, lo))
			lo += lo % WORD == 0 && end - lo >= WORD &&
					      same(m->base + lo, twin + lo, WORD) ?
				      WORD :
				      1;
		if (lo < end)
			return lo;
	}
	return hi;
}

void twin_compare(struct mirror *m, uint64_t lo, uint64_t hi)
{
	while ((lo = first_other(m, lo, hi)) < hi)
		note_run(m, &lo, hi);
}

void track_look_at(struct mirror *m, uint64_t lo, uint64_t hi)
{
	twin_compare(m, lo, hi);
}

void track_told(struct mirror *m, uint64_t lo, uint64_t hi)
{
	mirror_load(m->tracker->twin + lo, m->base + lo, hi - lo);
}

void track_stored(struct mirror *m, uint64_t lo, uint64_t hi, const void *from)
{
	memcpy(m->tracker->twin + lo, from, hi - lo);
	(void)m;
}
