/* SPDX-License-Identifier: BSD-3-Clause */
/* The twin: a second copy of a mirror's memory, by which it is found what has changed there.
 * Without help all of it is compared. */
#include <string.h>
#include <sys/mman.h>

#include "slmpm/base/error.h"
#include "slmpm/mirror/track.h"

#define PIECE 256 /* compared as one first */
#define WORD  sizeof(uint64_t)

/* Two words at a time, each loaded once: memcmp may load again at what differs, and find it the
 * same by then. ThreadSanitizer need not see that threads store meanwhile: what is changed behind
 * this is found by the next scan. */
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

__attribute__((no_sanitize("thread"))) static bool same(const unsigned char *a,
							const unsigned char *b, uint64_t n)
{
	const volatile pair *at = (const volatile pair *)(const volatile void *)a;
	const pair *twin = (const pair *)(const void *)b;
	pair other = {0, 0};

	for (uint64_t i = 0; i < n / sizeof(pair); i++)
		other |= at[i] ^ twin[i];
	return !(other[0] | other[1]);
}

int twin_open(struct tracker *t, struct mirror *m)
{
	void *twin =
		mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (twin == MAP_FAILED)
		return error_set(SLMPM_ENOMEM, "for the twin of %llu bytes",
				 (unsigned long long)m->size);
	t->twin = twin;
	t->size = m->size;
	mirror_load(twin, m->base, m->size);
	m->source = twin;
	return 0;
}

void twin_close(struct tracker *t)
{
	if (t->twin)
		(void)munmap(t->twin, t->size);
}

/* Do peers change it, too? */
static bool is_shared(const struct mirror *m)
{
	LIST_EACH_ENTRY(const struct attachment, a, &m->attachments, of_mirror)
		if (a->both)
			return true;
	return false;
}

struct finding {
	bool whole;      /* words: nobody else changes a part of them */
	uint64_t lo, hi; /* what has been found and not noted */
};

static void found(struct mirror *m, struct finding *f, uint64_t lo, uint64_t hi)
{
	if (lo > f->hi || !f->hi) {
		mirror_note(m, f->lo, f->hi, NULL);
		f->lo = lo;
	}
	f->hi = hi;
}

/* The word at AT, as far as it lies from LO to before HI. */
static void compare_word(struct mirror *m, struct finding *f, uint64_t at, uint64_t lo, uint64_t hi)
{
	struct tracker *t = m->tracker;
	uint64_t n = m->size - at < WORD ? m->size - at : WORD;
	unsigned char now[WORD];

	mirror_load(now, m->base + at, n);
	lo = lo > at ? lo : at;
	hi = hi < at + n ? hi : at + n;
	for (uint64_t i = lo; i < hi; i++) {
		if (now[i - at] == t->twin[i])
			continue;
		t->twin[i] = now[i - at];
		t->found++;
		if (f->whole)
			found(m, f, at, at + n);
		else
			found(m, f, i, i + 1);
	}
}

/* All of the word at AT. */
static inline bool same_word(const struct mirror *m, uint64_t at)
{
	const mirror_word *now = (const void *)(m->base + at);

	return __atomic_load_n(now, __ATOMIC_RELAXED) ==
	       *(const mirror_word *)(const void *)(m->tracker->twin + at);
}

/* What is sent is what the twin has. Whole words, so that nobody sees a part of one; where peers
 * may have changed the rest of a word, only the bytes that are ours. */
void twin_compare(struct mirror *m, uint64_t lo, uint64_t hi)
{
	struct finding f = {.whole = !is_shared(m)};

	for (uint64_t end; lo < hi; lo = end) {
		end = lo / PIECE * PIECE + PIECE;
		end = end < hi ? end : hi;
		if (lo % WORD == 0 && (end - lo) % sizeof(pair) == 0 &&
		    same(m->base + lo, m->tracker->twin + lo, end - lo))
			continue;
		for (uint64_t at = lo / WORD * WORD; at < end; at += WORD)
			if (at + WORD > m->size || !same_word(m, at))
				compare_word(m, &f, at, lo, end);
	}
	mirror_note(m, f.lo, f.hi, NULL);
}

void track_notified(struct mirror *m, uint64_t lo, uint64_t hi)
{
	mirror_load(m->tracker->twin + lo, m->base + lo, hi - lo);
}

void track_stored(struct mirror *m, uint64_t lo, uint64_t hi, const void *from)
{
	memcpy(m->tracker->twin + lo, from, hi - lo);
	(void)m;
}
