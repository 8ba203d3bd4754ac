/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading what the other side changes: side 1 stores a word a million times a second, side 0 loads
 * the words of a mirror, or gets the word of a region, as fast as it can.
 */
#include "apps/slmpm_perftest/perftest.h"

#define LOADS     16384
#define CHANGE_NS 1000

/* ---- side 1 ---- */

static int change_mirror(struct pair *p, uint64_t i)
{
	struct mirrored *m = &p->mirror[1];
	char *at = m->base + i % MIRROR_WORDS * sizeof(i);
	int rc = 0;

	if (m->track)
		__atomic_store_n((uint64_t *)(void *)at, i, __ATOMIC_RELAXED);
	else
		rc = slmpm_mirror_store64(m->mirror, at, i);

	return rc < 0 ? rc : slmpm_mirror_flush(m->mirror, -1);
}

static int change_region(struct pair *p, uint64_t i)
{
	__atomic_store_n((uint64_t *)(void *)p->region.base, i, __ATOMIC_RELAXED);
	return 0;
}

static int change_on(struct pair *p, int (*change)(struct pair *p, uint64_t i))
{
	uint64_t next = now_ns(), i = 0, spins = 0;
	int64_t got = -SLMPM_EAGAIN;
	int rc = 0;
	char end;

	while (rc >= 0 && got == -SLMPM_EAGAIN) {
		if (now_ns() >= next) {
			rc = change(p, ++i);
			next += CHANGE_NS;
		}
		got = slmpm_recv(p->peer, STREAM_DATA, &end, 1, NULL, 0);
		if (rc >= 0 && got == -SLMPM_EAGAIN)
			rc = pair_idle(p, &spins);
	}
	return rc < 0 ? rc : got < 0 ? (int)got : 0;
}

/* ---- side 0 ---- */

static ALWAYS_INLINE uint64_t word(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* N loads, a multiple of 4. Sums side by side, so that none waits for what is done with another. */
static __attribute__((noinline)) void load(const uint64_t *words, uint64_t n)
{
	uint64_t a = 0, b = 0, c = 0, d = 0;

	for (const uint64_t *at, *end; n; n -= (uint64_t)(end - words)) {
		end = words + (n < MIRROR_WORDS ? n : MIRROR_WORDS);
		for (at = words; at < end; at += 4) {
			a += word(at);
			b += word(at + 1);
			c += word(at + 2);
			d += word(at + 3);
		}
	}
	__asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d)); /* they are wanted */
}

int loop_mirror_read(struct pair *p, const struct job *j, struct hist *stamps)
{
	static uint64_t bare[MIRROR_WORDS];
	uint64_t taken[2] = {0}, rounds = j->count / LOADS + 1, from, until;

	if (p->side)
		return change_on(p, change_mirror);
	for (uint64_t i = 0; i < rounds; i++) {
		for (int what = 0; what < 2; what++) {
			const uint64_t *words = what ? bare : (void *)p->mirror[1].base;

			load(words, LOADS); /* what progress has moved away is back */
			from = now_ns();
			load(words, LOADS);
			until = now_ns();
			taken[what] += until - from;
			if (stamps && !what)
				hist_add(stamps, (until - from) / LOADS);
		}
		(void)slmpm_progress(p->ctx);
	}
	p->extra.each_ns = (double)taken[0] / (double)(rounds * LOADS);
	p->extra.bare_ns = (double)taken[1] / (double)(rounds * LOADS);
	return pair_signal(p);
}

/* As a program reads that does nothing else: what has come in meanwhile is let in after each
 * turn. */
int loop_mirror_reads(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc = 0;

	(void)stamps;
	if (p->side)
		return change_on(p, change_mirror);
	for (uint64_t left = j->count & ~UINT64_C(3), n; left && rc >= 0; left -= n) {
		n = left < LOADS ? left : LOADS;
		load((void *)p->mirror[1].base, n);
		rc = slmpm_progress(p->ctx);
	}
	return rc < 0 ? rc : pair_signal(p);
}

int loop_get_reads(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t value;
	int rc = 0;

	(void)stamps;
	if (p->side)
		return change_on(p, change_region);
	for (uint64_t i = 0; i < j->count && rc >= 0; i++)
		rc = slmpm_get(p->region.remote, 0, &value, sizeof(value), NULL, NULL);
	return rc < 0 ? rc : pair_signal(p);
}
