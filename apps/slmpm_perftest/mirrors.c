/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of mirrored memory: each side leads a mirror that the other follows. A change has come
 * where a plain load sees it; nothing else tells.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <stdlib.h>
#include <string.h>

#define TAG 1u /* and that of side 1's */

void pair_mirror_end(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->mirror[i].mirror.id)
			slmpm_mirror_destroy(p->mirror[i].mirror);
		free(p->mirror[i].base);
		p->mirror[i] = (struct mirrored){.size = 0};
	}
}

static int make(struct pair *p, int whose, uint64_t size, unsigned track)
{
	struct mirrored *m = &p->mirror[whose];
	uint32_t how = whose == p->side ? SLMPM_MIRROR_LEAD : SLMPM_MIRROR_FOLLOW;
	const struct slmpm_mirror_options options = {
		.size = sizeof(options),
		.track = whose == p->side ? track : SLMPM_TRACK_NONE,
	};
	int rc;

	m->base = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	if (!m->base)
		return -SLMPM_ENOMEM;
	memset(m->base, 0, size);
	m->size = size;
	m->track = track;
	rc = slmpm_mirror_create(p->ctx, m->base, size, &options, &m->mirror);
	return rc < 0 ? rc :
			slmpm_mirror_attach(m->mirror, p->peer, TAG + (uint32_t)whose, how,
					    ANSWER_MS);
}

int pair_mirror(struct pair *p, uint64_t size, unsigned track)
{
	int rc = 0;

	size = size < MIRROR_WORDS * sizeof(uint64_t) ? MIRROR_WORDS * sizeof(uint64_t) : size;
	if (p->mirror[0].size == size && p->mirror[0].track == track)
		return 0;
	pair_mirror_end(p);
	for (int i = 0; i < 2 && rc >= 0; i++)
		rc = make(p, i, size, track);
	if (rc < 0)
		pair_mirror_end(p);
	return rc;
}

void pair_mirror_way(const struct pair *p, char *way, size_t size)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	*way = '\0';
	if (p->mirror[p->side].track &&
	    slmpm_mirror_query(p->mirror[p->side].mirror, p->peer, &info) >= 0)
		snprintf(way, size, "%s", info.track);
}

/* The other side's doing, as in a program that has other things to do: now and then it looks. */
static ALWAYS_INLINE int await(struct pair *p, const unsigned char *at, unsigned char want)
{
	uint64_t spins = 0;
	int rc = 0;

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != want && rc >= 0) {
		rc = slmpm_progress(p->ctx);
		if (rc == 0)
			rc = pair_idle(p, &spins);
	}
	return rc;
}

static int change_plainly(char *at, unsigned char mark, uint64_t size)
{
	memset(at, mark, size);
	__asm__ volatile("" : : : "memory"); /* now, and not once for all */
	return 0;
}

/* By plain stores, where the mirror finds them. */
static ALWAYS_INLINE int change(struct pair *p, const struct job *j, char *at, unsigned char mark)
{
	struct mirrored *m = &p->mirror[p->side];
	uint64_t word = mark * UINT64_C(0x0101010101010101);

	if (j->track)
		return change_plainly(at, mark, j->size);
	if (j->size == sizeof(word))
		return slmpm_mirror_store64(m->mirror, at, word);
	return slmpm_mirror_set(m->mirror, at, mark, j->size);
}

/* No byte of an earlier run looks like this one's first. */
static int clear(struct pair *p, const struct job *j)
{
	struct mirrored *mine = &p->mirror[p->side];
	int rc = p->side ? pair_signaled(p) : 0;

	if (rc >= 0)
		rc = slmpm_mirror_store8(mine->mirror, mine->base + j->size - 1, 0);
	if (rc >= 0)
		rc = slmpm_mirror_flush(mine->mirror, -1);
	if (rc >= 0)
		rc = pair_signal(p);
	return rc < 0 || p->side ? rc : pair_signaled(p);
}

int loop_mirror_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	struct mirrored *mine = &p->mirror[p->side], *theirs = &p->mirror[!p->side];
	const unsigned char *last = (unsigned char *)theirs->base + j->size - 1;
	int rc = clear(p, j);
	uint64_t before = stamps ? now_ns() : 0, now;
	unsigned char mark = 1;

	for (uint64_t i = 0; i < 2 * j->count && rc >= 0; i++) {
		if ((i & 1) == (uint64_t)p->side) {
			rc = change(p, j, mine->base, mark);
			if (rc >= 0)
				rc = slmpm_mirror_flush(mine->mirror, -1);
		} else {
			rc = await(p, last, mark);
			if (j->touch)
				consume(theirs->base, j->size);
		}
		if (i & 1)
			mark = mark % 251 + 1;
		if (stamps && (i & 1)) {
			now = now_ns();
			hist_add(stamps, (now - before) / 2);
			before = now;
		}
	}
	return rc;
}

/* One change after the other, each on its way before the next, or so many at a time. */
int loop_mirror_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	struct mirrored *m = &p->mirror[0];
	uint64_t places = m->size / j->size, burst = j->burst ? j->burst : 1;
	int rc = 0;

	(void)stamps;
	if (p->side)
		return pair_signaled(p);
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = change(p, j, m->base + i % places * j->size, (unsigned char)i);
		if (rc >= 0 && i % burst == burst - 1)
			rc = slmpm_mirror_flush(m->mirror, -1);
	}
	if (rc >= 0)
		rc = slmpm_mirror_flush(m->mirror, -1);
	return rc < 0 ? rc : pair_signal(p);
}
