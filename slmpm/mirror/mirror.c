/* SPDX-License-Identifier: BSD-3-Clause */
/* Mirrors: made, described, ended. */
#include "slmpm/mirror/mirror.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slmpm/base/checksum.h"
#include "slmpm/base/error.h"
#include "slmpm/region/memory.h"
#include "slmpm/mirror/track.h"
#include "slmpm/base/sized.h"

struct handle_table mirror_table = HANDLE_TABLE_FROM("mirror", struct mirror, node);

uint64_t mirror_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool mirror_covers(const struct mirror *m, uint64_t lo, uint64_t hi)
{
	for (uint32_t i = 0; i < m->span_count; i++)
		if (lo >= m->spans[i].offset && hi <= m->spans[i].offset + m->spans[i].len)
			return true;
	return false;
}

/* ---- coming to be --------------------------------------------------------------------------- */

static int mirror_check_spans(const struct slmpm_mirror_options *o, uint64_t size)
{
	uint64_t end = 0;

	if (!o->span_count)
		return 0;
	if (!o->spans)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_create: %u spans at NULL",
				 o->span_count);
	for (uint32_t i = 0; i < o->span_count; i++) {
		const struct slmpm_span *s = &o->spans[i];

		if (!s->len || s->offset < end || s->offset > size || s->len > size - s->offset)
			return error_set(SLMPM_EINVAL,
					 "slmpm_mirror_create: span %u, %llu bytes at %llu: "
					 "empty, outside, or not behind the one before",
					 i, (unsigned long long)s->len,
					 (unsigned long long)s->offset);
		end = s->offset + s->len;
	}
	return 0;
}

static int mirror_check(const void *base, size_t size, const struct slmpm_mirror_options *o,
			const slmpm_mirror *mirror)
{
	if (!mirror)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_create: nowhere to put the handle");
	if (!base || (uintptr_t)base % sizeof(uint64_t) || !size || size > INT64_MAX ||
	    size > UINTPTR_MAX - (uintptr_t)base)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_create: %zu bytes at %p", size, base);
	if (!o)
		return 0;
	if (o->reserved)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_create: .reserved is %u, not 0",
				 o->reserved);
	if (o->track > SLMPM_TRACK_TWIN)
		return error_set(SLMPM_EINVAL, "slmpm_mirror_create: track %u", o->track);
	return mirror_check_spans(o, size);
}

static bool overlap(const void *a, uint64_t n, const void *b, uint64_t m)
{
	uintptr_t from = (uintptr_t)a, other = (uintptr_t)b;

	return from < other ? other - from < n : from - other < m;
}

bool mirror_lies(const struct context *ctx, const void *at, uint64_t n)
{
	LIST_EACH_ENTRY(const struct mirror, m, &ctx->mirrors, node)
		if (overlap(m->base, m->size, at, n))
			return true;
	return false;
}

/* What a peer writes there by itself is not noticed here. */
static int may_lie(const struct context *ctx, const void *base, size_t size)
{
	if (mirror_lies(ctx, base, size))
		return error_set(SLMPM_EBUSY, "another mirror lies there");
	LIST_EACH_ENTRY(const struct region, region, &ctx->regions, node) {
		if (!overlap(region->memory.base, region->memory.size, base, size))
			continue;
		if (region->exposed)
			return error_set(SLMPM_EBUSY, "peers have had the memory mapped");
		LIST_EACH(at, &region->grants) {
			const struct grant *g = LIST_ENTRY(at, struct grant, of_region);

			if (g->mapped || g->attached)
				return error_set(SLMPM_EBUSY,
						 "%s reaches the memory by itself: make the mirror "
						 "before the key",
						 g->ep->life->name);
		}
	}
	return 0;
}

static int mirror_copy_spans(struct mirror *m, const struct slmpm_mirror_options *o)
{
	const struct slmpm_span all = {0, m->size};
	uint32_t given = o ? o->span_count : 0;

	m->span_count = given ? given : 1;
	m->spans = malloc(m->span_count * sizeof(*m->spans));
	if (!m->spans)
		return error_set(SLMPM_ENOMEM, "for %u spans", m->span_count);
	memcpy(m->spans, given ? o->spans : &all, m->span_count * sizeof(*m->spans));
	for (uint32_t i = 0; i < given; i++) {
		const uint64_t words[2] = {LITTLE_64(o->spans[i].offset),
					   LITTLE_64(o->spans[i].len)};

		m->span_sum = checksum(m->span_sum, words, sizeof(words));
	}
	return 0;
}

/* What lands in memory is noted from the first mirror on until there is none. */
static void mind(struct context *ctx)
{
	bool careful = ctx->multiple || !list_empty(&ctx->mirrors);

	if (ctx->careful == careful)
		return;
	ctx->careful = careful;
	remote_guard_shortcuts(ctx);
}

static void mirror_free(struct mirror *m)
{
	LIST_EACH(at, &m->attachments)
		attachment_leave(LIST_ENTRY(at, struct attachment, of_mirror));
	read_end(m);
	if (m->tracker)
		track_close(m);
	list_remove(&m->node);
	mind(m->ctx);
	free(m->spans);
	handle_free(&mirror_table, m);
}

static int mirror_create(struct context *ctx, void *base, size_t size,
			 const struct slmpm_mirror_options *o, slmpm_mirror *mirror)
{
	int rc = may_lie(ctx, base, size);
	struct mirror *m = rc == 0 ? handle_new(&mirror_table) : NULL;

	if (rc < 0)
		return rc;
	if (!m)
		return error_set(SLMPM_ENOMEM, "for a mirror");
	if (m->ctx != ctx) /* else who reads the last one here is not disturbed */
		context_own(&m->ctx, ctx);
	m->source = m->base = base;
	m->size = size;
	m->sequence = (uint32_t)ctx->shape.start; /* of 0 the application knows that it is none */
	atomic_init(&m->turn, ctx->shape.start & ~UINT64_C(1));
	list_init(&m->attachments);
	list_init(&m->snapshots);
	list_append(&ctx->mirrors, &m->node);
	mind(ctx);
	rc = mirror_copy_spans(m, o);
	if (rc == 0 && o && o->track)
		rc = track_open(m, (int)o->track);
	if (rc < 0)
		mirror_free(m);
	else
		mirror->id = handle_id(m);
	return rc;
}

int slmpm_mirror_create(slmpm_ctx handle, void *base, size_t size,
			const struct slmpm_mirror_options *given, slmpm_mirror *mirror)
{
	struct slmpm_mirror_options full;
	const struct slmpm_mirror_options *options = given ? &full : NULL;
	int rc = given ? sized_take("slmpm_mirror_create", &full, given, sizeof(full)) : 0;
	struct context *ctx;

	if (rc == 0)
		rc = mirror_check(base, size, options, mirror);
	if (rc < 0)
		return rc;
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	context_lock(ctx);
	rc = mirror_create(ctx, base, size, options, mirror);
	context_unlock(ctx);
	return rc;
}

int slmpm_mirror_destroy(slmpm_mirror handle)
{
	int rc = 0;
	struct mirror *m = mirror_lock(handle, &rc);
	struct context *ctx;

	if (!m)
		return rc;
	ctx = m->ctx;
	mirror_free(m);
	context_unlock(ctx);
	return 0;
}

void mirror_shut(struct context *ctx)
{
	while (!list_empty(&ctx->mirrors))
		mirror_free(LIST_ENTRY(ctx->mirrors.next, struct mirror, node));
}

void mirror_forked(struct context *ctx)
{
	LIST_EACH_ENTRY(const struct mirror, m, &ctx->mirrors, node)
		if (m->tracker)
			track_forked(m->tracker);
}

/* ---- what it is like ------------------------------------------------------------------------ */

struct attachment *mirror_find(const struct mirror *m, slmpm_peer peer)
{
	uint64_t id = endpoint_plain(peer).id;

	LIST_EACH_ENTRY(struct attachment, a, &m->attachments, of_mirror)
		if (id ? a->peer == id : a->how & SLMPM_MIRROR_FOLLOW)
			return a;
	return NULL;
}

int mirror_not_attached(const char *call)
{
	return error_set(SLMPM_EINVAL, "%s: the mirror is not attached to that peer", call);
}

static uint32_t mirror_state_of(const struct attachment *a)
{
	if (a->state == ATTACHMENT_STALE)
		return SLMPM_MIRROR_STALE;
	if (a->state == ATTACHMENT_ASKED)
		return SLMPM_MIRROR_ASKED;
	return a->how & SLMPM_MIRROR_FOLLOW && !a->sequence ? SLMPM_MIRROR_FILLING :
							      SLMPM_MIRROR_LIVE;
}

static void mirror_describe(const struct attachment *a, struct slmpm_mirror_info *info)
{
	*info = (struct slmpm_mirror_info){
		.state = mirror_state_of(a),
		.how = a->how,
		.tag = a->tag,
		.error = a->error,
		.whole = !a->coming && !a->cut,
		.sequence = a->sequence,
		.sent = a->sent,
		.age_ns = a->came ? mirror_now() - a->came : UINT64_MAX,
		.waiting = dirty_count(&a->dirty),
		.sent_bytes = a->sent_bytes,
		.sent_packets = a->sent_packets,
		.received_bytes = a->received_bytes,
		.received_packets = a->received_packets,
	};
	strcpy(info->track, track_name(a->mirror->tracker));
}

int slmpm_mirror_query(slmpm_mirror handle, slmpm_peer peer, struct slmpm_mirror_info *info)
{
	const struct attachment *a;
	struct slmpm_mirror_info now;
	struct mirror *m;
	int rc;

	rc = sized_check_own("slmpm_mirror_query", info, sizeof(now));
	m = rc < 0 ? NULL : mirror_lock(handle, &rc);
	if (!m)
		return rc;
	a = mirror_find(m, peer);
	if (a)
		mirror_describe(a, &now);
	else
		rc = mirror_not_attached("slmpm_mirror_query");
	context_unlock(m->ctx);
	if (rc == 0)
		sized_give_own(info, &now, sizeof(now));
	return rc;
}

int64_t slmpm_mirror_scan(slmpm_mirror handle)
{
	int64_t found;
	int rc = 0;
	struct mirror *m = mirror_lock(handle, &rc);

	if (!m)
		return rc;
	found = m->tracker ? (int64_t)track_scan(m) : 0;
	context_unlock(m->ctx);
	return found;
}
