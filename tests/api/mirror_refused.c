/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/* Mirrors that do not fit, and what is refused. */
#include <string.h>

#include "tests/lib/mirror_ends.h"
#include "tests/lib/settings.h"

static void misfits(void)
{
	const struct slmpm_span span = {0, 8};
	const struct slmpm_mirror_options part = {
		.size = sizeof(part), .spans = &span, .span_count = 1};
	slmpm_mirror small = ends_new(ends.room[2], 64, NULL),
		     other = ends_new(ends.room[3], ends.bytes, &part);

	ends.leader = ends_new(ends.leads, ends.bytes, NULL);
	ends.follower = ends_new(ends.follows, ends.bytes, NULL);
	ends_ask(ends.leader, ends.near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(small, ends.far, 1, FOLLOWS, PATIENCE), SLMPM_EINVAL, "longer");
	REFUSED(slmpm_mirror_attach(ends.leader, ends.near, 1, LEADS, PATIENCE), SLMPM_EINVAL,
		"longer");
	ends_ask(ends.leader, ends.near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(ends.follower, ends.far, 1, LEADS, PATIENCE), SLMPM_EINVAL,
		"lead");
	REFUSED(slmpm_mirror_attach(ends.leader, ends.near, 1, LEADS, PATIENCE), SLMPM_EINVAL,
		"lead");
	ends_ask(ends.leader, ends.near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(ends.follower, ends.far, 1, FOLLOWS | BOTH, PATIENCE),
		SLMPM_EINVAL, "takes no changes");
	REFUSED(slmpm_mirror_attach(ends.leader, ends.near, 1, LEADS, PATIENCE), SLMPM_EINVAL,
		"changes");
	ends_ask(ends.leader, ends.near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(other, ends.far, 1, FOLLOWS, PATIENCE), SLMPM_EINVAL, "spans");
	REFUSED(slmpm_mirror_attach(ends.leader, ends.near, 1, LEADS, PATIENCE), SLMPM_EINVAL,
		"spans");
	/* One that gives up is no offence, and the next one finds nothing of it. */
	ends_ask(ends.leader, ends.near, 1, LEADS);
	EXPECT(ends_info(ends.leader, ends.near).state, SLMPM_MIRROR_ASKED);
	REFUSED(slmpm_mirror_attach(ends.leader, ends.near, 2, LEADS, 0), SLMPM_EBUSY, "otherwise");
	OK(slmpm_mirror_detach(ends.leader, ends.near));
	REFUSED(slmpm_mirror_detach(ends.leader, ends.near), SLMPM_EINVAL, "attached");
	ends_join(ends.leader, ends.near, ends.follower, ends.far, 1, 0);
	REFUSED(slmpm_mirror_attach(small, ends.far, 1, FOLLOWS, 0), SLMPM_EBUSY, "tag");
	REFUSED(slmpm_mirror_attach(ends.follower, ends.near, 5, FOLLOWS, 0), SLMPM_EBUSY,
		"leader");
	OK(slmpm_mirror_detach(ends.follower, ends.far));
	for (unsigned idle = 0; ends_info(ends.leader, ends.near).state != SLMPM_MIRROR_STALE;)
		if (!slmpm_progress(ends.ctx))
			actor_idle(ends.ctx, &idle);
	EXPECT(ends_info(ends.leader, ends.near).error, -SLMPM_ECLOSED);
	ends_join(ends.leader, ends.near, ends.follower, ends.far, 1, 0);
	ends_same("attached again");
	ends_unmirror();
	OK(slmpm_mirror_destroy(small));
	OK(slmpm_mirror_destroy(other));
}

/* Spans of 64 bytes, and sizes that no address space has. */
static void bad_extents(void)
{
	static const struct slmpm_span bad[][2] = {
		{{0, 8}, {16, 0}},                     /* empty */
		{{8, 8}, {0, 8}},                      /* not behind the one before */
		{{0, 16}, {8, 16}}, {{0, 8}, {72, 8}}, /* outside */
		{{0, 8}, {56, 9}},  {{0, 8}, {16, UINT64_MAX}},
	};
	struct slmpm_mirror_options o = {.size = sizeof(o), .span_count = 2};
	slmpm_mirror m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.spans = bad[i];
		REFUSED(slmpm_mirror_create(ends.ctx, ends.leads, 64, &o, &m), SLMPM_EINVAL,
			"span 1");
	}
	o.spans = NULL;
	REFUSED(slmpm_mirror_create(ends.ctx, ends.leads, 64, &o, &m), SLMPM_EINVAL, "NULL");
	EXPECT(slmpm_mirror_create(ends.ctx, ends.leads, UINT64_MAX / 2 + 1, NULL, &m),
	       -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ends.ctx, (void *)(UINTPTR_MAX - 7), 64, NULL, &m),
	       -SLMPM_EINVAL);
}

static void bad_arguments(void)
{
	struct slmpm_mirror_options o = {.size = sizeof(o)};
	struct slmpm_mirror_info info = {.size = 1};
	struct slmpm_span span = {8, 8};
	uint64_t sequence = 0;
	slmpm_mirror none = {0}, m;

	EXPECT(slmpm_mirror_create(ends.ctx, ends.leads, 8, NULL, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ends.ctx, NULL, 8, NULL, &m), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ends.ctx, ends.leads + 1, 8, NULL, &m), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ends.ctx, ends.leads, 0, NULL, &m), -SLMPM_EINVAL);
	o.track = 99;
	REFUSED(slmpm_mirror_create(ends.ctx, ends.leads, 8, &o, &m), SLMPM_EINVAL, "track 99");
	o = (struct slmpm_mirror_options){.size = sizeof(o), .reserved = 1};
	REFUSED(slmpm_mirror_create(ends.ctx, ends.leads, 8, &o, &m), SLMPM_EINVAL, "reserved");
	o = (struct slmpm_mirror_options){.size = sizeof(o), .spans = &span, .span_count = 1};
	EXPECT(slmpm_mirror_create(ends.ctx, ends.leads, 8, &o, &m), -SLMPM_EINVAL);
	o.size = 3;
	EXPECT(slmpm_mirror_create(ends.ctx, ends.leads, 8, &o, &m), -SLMPM_EINVAL);
	ends.leader = ends_new(ends.leads, 64, NULL);
	REFUSED(slmpm_mirror_create(ends.ctx, ends.leads + 56, 8, NULL, &m), SLMPM_EBUSY,
		"another");
	REFUSED(slmpm_mirror_store8(ends.leader, ends.leads + 64, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_store64(ends.leader, ends.leads + 57, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_store32(ends.leader, (void *)((uintptr_t)ends.leads - 1), 1),
		SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_store16(ends.leader, ends.leads + 63, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_copy(ends.leader, ends.leads, NULL, 1), SLMPM_EINVAL, "NULL");
	OK(slmpm_mirror_copy(ends.leader, ends.leads, NULL, 0));
	REFUSED(slmpm_mirror_enter(ends.leader, NULL), SLMPM_EINVAL, "turn");
	REFUSED(slmpm_mirror_set(ends.leader, ends.leads, 0, 65), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_move(ends.leader, ends.leads, (void *)((uintptr_t)ends.leads - 8), 8),
		SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_changed(ends.leader, ends.leads + 1, SIZE_MAX), SLMPM_EINVAL,
		"mirror");
	EXPECT(slmpm_mirror_attach(ends.leader, ends.near, 1, 3, 0), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_attach(ends.leader, ends.near, 1, 9, 0), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_attach(ends.leader, (slmpm_peer){0}, 1, LEADS, 0), -SLMPM_EHANDLE);
	REFUSED(slmpm_mirror_query(ends.leader, ends.near, &info), SLMPM_EINVAL, "mirror");
	info.size = sizeof(info);
	REFUSED(slmpm_mirror_query(ends.leader, ends.near, &info), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_wait(ends.leader, ends.near, NULL, 0), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_wait(ends.leader, ends.near, &sequence, 0), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_snapshot(ends.leader, ends.near, &span, 1, NULL, NULL, 0),
		SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_snapshot(ends.leader, ends.near, &span, 1, ends.room[2], NULL, 0),
		SLMPM_EINVAL, "mirror");
	span.len = 64;
	REFUSED(slmpm_mirror_snapshot(ends.leader, ends.near, &span, 1, ends.room[2], NULL, 0),
		SLMPM_EINVAL, "mirror");
	OK(slmpm_mirror_flush(ends.leader, 0));
	OK(slmpm_mirror_destroy(ends.leader));
	REFUSED(slmpm_mirror_destroy(ends.leader), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_store64(none, ends.leads, 1), SLMPM_EHANDLE, "mirror");
	EXPECT(slmpm_mirror_flush(ends.leader, 0), -SLMPM_EHANDLE);
	EXPECT(slmpm_mirror_begin(ends.leader, 0), -SLMPM_EHANDLE);
	EXPECT(slmpm_mirror_end(ends.leader), -SLMPM_EHANDLE);
	EXPECT(slmpm_mirror_detach(ends.leader, ends.near), -SLMPM_EHANDLE);
	REFUSED(slmpm_mirror_enter(ends.leader, &sequence), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_leave(ends.leader, 0), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_scan(ends.leader), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_track_works(SLMPM_TRACK_TWIN + 1), SLMPM_EINVAL, "track");
	OK(slmpm_mirror_track_works(SLMPM_TRACK_TWIN));
}

static int under(const struct setting *s)
{
	ends_open(s);
	misfits();
	bad_arguments();
	bad_extents();
	ends.leader = ends_new(ends.leads, ends.bytes, NULL); /* ends with the context */
	return ends_close();
}

int main(void)
{
	return settings_each(under, 20);
}
