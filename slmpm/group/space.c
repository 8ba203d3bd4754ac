/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * References: memory of a member that others name without an address, as a space and an offset
 * there. Each member says for itself where a space lies.
 */
#include "slmpm/group/space.h"

#include <inttypes.h>
#include <stdlib.h>

#include "slmpm/engine/engine.h"

#define CALL "slmpm_group_space"

struct space *space_find(const struct group *g, uint32_t number)
{
	LIST_EACH_ENTRY(struct space, s, &g->spaces, node)
		if (s->number == number)
			return s;
	return NULL;
}

void *space_at(const struct space *s, uint64_t offset, uint64_t len)
{
	if (offset > s->len || len > s->len - offset)
		return NULL;
	return s->base + offset;
}

static void space_free(struct space *s)
{
	list_remove(&s->node);
	free(s);
}

void spaces_free(struct group *g)
{
	LIST_EACH_ENTRY(struct space, s, &g->spaces, node)
		space_free(s);
}

static int check_space(const struct group *g, uint32_t number, const void *base, uint64_t len)
{
	const struct space *s = space_find(g, number);

	if (!g->boards.own)
		return founder_refused(CALL);
	if (!number || number > SLMPM_GROUP_SPACES)
		return error_set(SLMPM_EINVAL, CALL ": space %" PRIu32 ", they are 1 to %d", number,
				 SLMPM_GROUP_SPACES);
	if (!base && len)
		return error_set(SLMPM_EINVAL, CALL ": no base");
	if ((uintptr_t)base > UINTPTR_MAX - len)
		return error_set(SLMPM_EINVAL, CALL ": %" PRIu64 " bytes at %p", len, base);
	if (s && s->users)
		return error_set(SLMPM_EBUSY, CALL ": an operation uses space %" PRIu32, number);
	return 0;
}

static int space_set(struct group *g, uint32_t number, void *base, uint64_t len)
{
	struct space *s = space_find(g, number);

	if (!len) {
		if (s)
			space_free(s);
		return 0;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return error_set(SLMPM_ENOMEM, "for a space");
		s->number = number;
		list_append(&g->spaces, &s->node);
	}
	s->base = base;
	s->len = len;
	return 0;
}

/* What others do with it is done while the application does something else. */
static int serve(struct context *ctx)
{
	int rc = engine_stand_by(ctx);

	if (rc == 0 && ctx->parked)
		engine_come_in(ctx);
	return rc;
}

int slmpm_group_space(slmpm_group group, uint32_t space, void *base, uint64_t len)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);

	if (!g)
		return rc;
	rc = check_space(g, space, base, len);
	if (rc == 0)
		rc = space_set(g, space, base, len);
	if (rc == 0 && len)
		rc = serve(ctx);
	context_unlock(ctx);
	return rc;
}
