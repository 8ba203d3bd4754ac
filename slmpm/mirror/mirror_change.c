/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory access functions: they change memory of this process and note it for the peers. */
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/track.h"
#include "slmpm/request.h"

/* ---- single accesses of 1 to 8 bytes: what is aligned nobody sees in parts ------------------ */

typedef uint64_t any64 __attribute__((may_alias, aligned(1)));
typedef uint32_t any32 __attribute__((may_alias, aligned(1)));
typedef uint16_t any16 __attribute__((may_alias, aligned(1)));
typedef uint32_t word32 __attribute__((may_alias));
typedef uint16_t word16 __attribute__((may_alias));
typedef unsigned char octet;

/* The longest step that is one access at T: as it is aligned, and no more than N. */
static inline uint64_t word_step(const void *t, uint64_t n)
{
	uint64_t most = 8;

	if ((uintptr_t)t & 7)
		most = (uintptr_t)t & -(uintptr_t)t & 7;
	while (most > n)
		most /= 2;
	return most;
}

static inline void word_store(void *t, const void *f, uint64_t n)
{
	switch (n) {
	case 8: __atomic_store_n((mirror_word *)t, *(const any64 *)f, __ATOMIC_RELAXED); return;
	case 4: __atomic_store_n((word32 *)t, *(const any32 *)f, __ATOMIC_RELAXED); return;
	case 2: __atomic_store_n((word16 *)t, *(const any16 *)f, __ATOMIC_RELAXED); return;
	default: __atomic_store_n((octet *)t, *(const octet *)f, __ATOMIC_RELAXED);
	}
}

static inline void word_load(void *t, const void *f, uint64_t n)
{
	switch (n) {
	case 8: *(any64 *)t = __atomic_load_n((const mirror_word *)f, __ATOMIC_RELAXED); return;
	case 4: *(any32 *)t = __atomic_load_n((const word32 *)f, __ATOMIC_RELAXED); return;
	case 2: *(any16 *)t = __atomic_load_n((const word16 *)f, __ATOMIC_RELAXED); return;
	default: *(octet *)t = __atomic_load_n((const octet *)f, __ATOMIC_RELAXED);
	}
}

void mirror_store(void *to, const void *from, uint64_t n)
{
	const octet *f = from;
	octet *t = to;

	for (uint64_t k; n; n -= k, t += k, f += k) {
		k = word_step(t, n);
		word_store(t, f, k);
	}
}

void mirror_load(void *to, const void *from, uint64_t n)
{
	const octet *f = from;
	octet *t = to;

	for (uint64_t k; n; n -= k, t += k, f += k) {
		k = word_step(f, n);
		word_load(t, f, k);
	}
}

/* From the end, where that is what overlapping asks for. */
static void mirror_move(octet *to, const octet *from, uint64_t n)
{
	octet word[8];

	if (to <= from || (uint64_t)(to - from) >= n) {
		for (uint64_t k; n; n -= k, to += k, from += k) {
			k = word_step(to, n);
			mirror_load(word, from, k);
			word_store(to, word, k);
		}
		return;
	}
	while (n) {
		uint64_t k = 8;

		while (k > n || ((uintptr_t)to + n) % k)
			k /= 2;
		n -= k;
		mirror_load(word, from + n, k);
		word_store(to + n, word, k);
	}
}

/* ---- notes ---------------------------------------------------------------------------------- */

static void note_spans(struct attachment *a, uint64_t lo, uint64_t hi)
{
	for (uint32_t i = 0; i < a->mirror->span_count; i++) {
		uint64_t from = lo, to = hi;

		if (mirror_clip(a->mirror, i, &from, &to))
			mirror_note_for(a, from, to);
	}
}

void mirror_note(struct mirror *m, uint64_t lo, uint64_t hi, const struct attachment *from)
{
	if (lo == hi)
		return;
	m->loose |= !m->group;
	LIST_EACH_ENTRY(struct attachment, a, &m->attachments, of_mirror)
		if (a != from && attachment_sends(a))
			note_spans(a, lo, hi);
}

void mirror_landed(struct context *ctx, const void *at, uint64_t n)
{
	LIST_EACH_ENTRY(struct mirror, m, &ctx->mirrors, node) {
		uintptr_t base = (uintptr_t)m->base, from = (uintptr_t)at;
		uint64_t lo, hi;

		if (from < base ? base - from >= n : from - base >= m->size)
			continue;
		lo = from < base ? 0 : from - base;
		hi = from + n - base < m->size ? from + n - base : m->size;
		if (m->tracker)
			track_notified(m, lo, hi);
		mirror_note(m, lo, hi, NULL);
	}
}

void mirror_finished(struct request *r)
{
	struct request_walk walk = {r, 0, 0};
	uint64_t left =
		r->kind == REQUEST_RECV && r->result.len < r->length ? r->result.len : r->length;
	uint64_t n;
	void *run;

	if (list_empty(&r->ctx->mirrors))
		return;
	if (r->kind == REQUEST_ATOMIC && r->rma.old)
		mirror_landed(r->ctx, r->rma.old, r->rma.bits / 8);
	if (r->kind == REQUEST_PUT && r->rma.to)
		mirror_landed(r->ctx, r->rma.to, r->length);
	if (r->kind != REQUEST_RECV && r->kind != REQUEST_GET)
		return;
	for (; left && (run = request_walk_on(&walk, left, &n)); left -= n)
		mirror_landed(r->ctx, run, n);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static COLD int outside(struct mirror *m, const char *call, const void *at, uint64_t n)
{
	int rc = error_set(SLMPM_EINVAL, "%s: %llu bytes at %p do not lie in the mirror", call,
			   (unsigned long long)n, at);

	context_unlock(m->ctx);
	return rc;
}

/* As mirror_lock: the N bytes at AT are its, at *OFFSET. */
static inline struct mirror *lock_at(slmpm_mirror mirror, const void *at, uint64_t n,
				     const char *call, uint64_t *offset, int *rc)
{
	struct mirror *m = mirror_lock(mirror, rc);

	*offset = m ? mirror_offset(m, at, n) : 0;
	if (LIKELY(*offset != UINT64_MAX))
		return m;
	*rc = outside(m, call, at, n);
	return NULL;
}

/* That has been done there, and so is the call. */
static inline int unlock_changed(struct mirror *m, uint64_t offset, uint64_t n)
{
	if (UNLIKELY(m->tracker != NULL))
		track_notified(m, offset, offset + n);
	mirror_note(m, offset, offset + n, NULL);
	context_unlock(m->ctx);
	return 0;
}

static inline int mirror_change_store(slmpm_mirror mirror, void *at, const void *value, uint64_t n,
				      const char *call)
{
	uint64_t offset;
	int rc = 0;
	struct mirror *m = lock_at(mirror, at, n, call, &offset, &rc);

	if (UNLIKELY(!m))
		return rc;
	if (LIKELY(!(offset & (n - 1))))
		word_store(at, value, n);
	else
		mirror_store(at, value, n);
	return unlock_changed(m, offset, n);
}

int slmpm_mirror_store8(slmpm_mirror mirror, void *at, uint8_t value)
{
	return mirror_change_store(mirror, at, &value, sizeof(value), "slmpm_mirror_store8");
}

int slmpm_mirror_store16(slmpm_mirror mirror, void *at, uint16_t value)
{
	return mirror_change_store(mirror, at, &value, sizeof(value), "slmpm_mirror_store16");
}

int slmpm_mirror_store32(slmpm_mirror mirror, void *at, uint32_t value)
{
	return mirror_change_store(mirror, at, &value, sizeof(value), "slmpm_mirror_store32");
}

static NOINLINE int store_slow_path(slmpm_mirror mirror, void *at, uint64_t value)
{
	return mirror_change_store(mirror, at, &value, sizeof(value), "slmpm_mirror_store64");
}

/* One of several before they are flushed. */
static NOINLINE int note_further(struct attachment *a, uint64_t offset)
{
	mirror_note_for(a, offset, offset + sizeof(uint64_t));
	return 0;
}

/* All calls are its last, so that it has nothing to save. */
int slmpm_mirror_store64(slmpm_mirror mirror, void *at, uint64_t value)
{
	struct mirror *m = mirror_get(mirror);
	struct attachment *a;
	uint64_t offset;

	if (UNLIKELY(!m || !m->to))
		return store_slow_path(mirror, at, value);
	offset = mirror_offset(m, at, sizeof(value));
	if (UNLIKELY(!mirror_is_word(offset, sizeof(value))))
		return store_slow_path(mirror, at, value);
	mirror_store_word(at, &value);
	a = m->to;
	m->loose |= !m->group;
	if (UNLIKELY(a->pending || m->group || !dirty_is_empty(&a->dirty)))
		return note_further(a, offset);
	a->dirty.lo = offset;
	a->dirty.hi = offset + sizeof(value);
	attachment_pend(a, true);
	return 0;
}

int slmpm_mirror_copy(slmpm_mirror mirror, void *at, const void *from, size_t len)
{
	struct mirror *m;
	uint64_t offset;
	int rc = 0;

	if (!from && len)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_copy: %zu bytes from NULL", len);
	m = lock_at(mirror, at, len, "slmpm_mirror_copy", &offset, &rc);
	if (!m)
		return rc;
	mirror_store(at, from, len);
	return unlock_changed(m, offset, len);
}

int slmpm_mirror_set(slmpm_mirror mirror, void *at, int byte, size_t len)
{
	octet *t = at, word[8];
	uint64_t offset;
	int rc = 0;
	struct mirror *m = lock_at(mirror, at, len, "slmpm_mirror_set", &offset, &rc);

	if (!m)
		return rc;
	memset(word, byte, sizeof(word));
	for (uint64_t n = len, k; n; n -= k, t += k) {
		k = word_step(t, n);
		word_store(t, word, k);
	}
	return unlock_changed(m, offset, len);
}

int slmpm_mirror_move(slmpm_mirror mirror, void *at, const void *from, size_t len)
{
	uint64_t offset;
	int rc = 0;
	struct mirror *m = lock_at(mirror, at, len, "slmpm_mirror_move", &offset, &rc);

	if (!m)
		return rc;
	if (mirror_offset(m, from, len) == UINT64_MAX)
		return outside(m, "slmpm_mirror_move", from, len);
	mirror_move(at, from, len);
	return unlock_changed(m, offset, len);
}

int slmpm_mirror_changed(slmpm_mirror mirror, void *at, size_t len)
{
	uint64_t offset;
	int rc = 0;
	struct mirror *m = lock_at(mirror, at, len, "slmpm_mirror_changed", &offset, &rc);

	if (UNLIKELY(!m))
		return rc;
	if (UNLIKELY(m->tracker != NULL))
		track_unprotect(m, offset, offset + len);
	return unlock_changed(m, offset, len);
}
