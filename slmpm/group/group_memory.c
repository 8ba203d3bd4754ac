/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a group that is there, and others' parts as they come by the bell (alloc.c). */
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/board/layout.h"
#include "slmpm/group/alloc.h"
#include "slmpm/group/tags.h"

struct group_memory {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of its group's */
	struct group *group;
	struct shared *shared;
};

static struct handle_table memory_table =
	HANDLE_TABLE_FROM("memory of a group", struct group_memory, node);

/* ---- as it comes ----------------------------------------------------------------------------- */

/* Rank R has not had the own part, which had been passed to it. */
static void pass_again(const struct allocation *a, uint32_t r)
{
	const struct boards *b = &a->group->boards;

	if (r < a->unsent && r != b->rank && a->own.fd >= 0)
		(void)bell_pass(b->bells[r], b->seats[b->rank], a->own.fd);
}

/* R's part, perhaps, or another's question for the own one. */
static bool came_without(struct allocation *a, uint32_t r, const struct bell_word *word)
{
	if (word->lost)
		a->lost = true;
	else if (word->unwanted && a->fds[r] < 0)
		a->fds[r] = ALLOC_MISSED;
	else if (!word->unwanted)
		pass_again(a, r);
	a->group->ctx->news |= word->lost;
	return word->lost;
}

bool alloc_came(struct group *g, const struct bell_word *word)
{
	struct allocation *a = g->allocation;
	const int fd = word->fd;
	struct stat st;
	uint32_t r = 0;

	while (r < g->boards.size && g->boards.seats[r] != word->rank)
		r++;
	if (!a || r == g->boards.size)
		return false;
	if (fd < 0)
		return came_without(a, r, word);
	/* fstat: of sealed memory alone. Acquire pairs with the release in make_own. */
	if (a->fds[r] >= 0 || !mapping_seals_closed(fd) || fstat(fd, &st) != 0 ||
	    (uint64_t)st.st_ino !=
		    atomic_load_explicit(&g->boards.of[r]->object, memory_order_acquire))
		return false;
	a->fds[r] = fd;
	g->ctx->news = true;
	context_changed(g->ctx);
	return true;
}

void alloc_forked(const struct group *g)
{
	const struct allocation *a = g->allocation;

	for (uint32_t r = 0; a && r < g->boards.size; r++)
		if (a->fds[r] >= 0)
			close(a->fds[r]);
	if (a && a->own.fd >= 0)
		close(a->own.fd);
}

/* ---- as it is there -------------------------------------------------------------------------- */

uint64_t memory_new(struct group *g, struct shared *s)
{
	struct group_memory *m = handle_new(&memory_table);

	if (!m)
		return 0;
	context_own(&m->ctx, g->ctx);
	list_append(&g->memories, &m->node);
	m->group = g;
	m->shared = s;
	shared_add(&g->boards, s);
	return handle_id(m);
}

int slmpm_group_part(slmpm_group_memory memory, int rank, void **base, uint64_t *len)
{
	int rc = 0;
	struct group_memory *m = context_lock_object(&memory_table, memory.id, &rc);
	const struct shared_part *p;
	struct context *ctx;

	if (!m)
		return error_name_call("slmpm_group_part", rc);
	ctx = m->ctx;
	if (!base || !len) {
		rc = error_set(SLMPM_EINVAL, "slmpm_group_part: no place for what it is");
	} else if (rank < 0 || (uint32_t)rank >= m->group->boards.size) {
		rc = error_set(SLMPM_EINVAL, "slmpm_group_part: no rank %d", rank);
	} else {
		p = &m->shared->part[m->group->boards.seats[rank]];
		/* Cast: the own one is written by its owner. */
		*base = (void *)(uintptr_t)p->base;
		*len = p->len;
	}
	context_unlock(ctx);
	return rc;
}

static void memory_free(struct group_memory *m)
{
	list_remove(&m->node);
	shared_remove(&m->group->boards, m->shared);
	handle_free(&memory_table, m);
}

void memories_free(struct group *g)
{
	LIST_EACH_ENTRY(struct group_memory, m, &g->memories, node)
		memory_free(m);
}

int slmpm_group_free(slmpm_group_memory memory)
{
	int rc = 0;
	struct group_memory *m = context_lock_object(&memory_table, memory.id, &rc);
	struct context *ctx;

	if (!m)
		return error_name_call("slmpm_group_free", rc);
	ctx = m->ctx;
	if (m->group->begun != m->group->done || tags_wait(m->group))
		rc = error_set(SLMPM_EBUSY, "slmpm_group_free: an operation is under way");
	else
		memory_free(m);
	context_unlock(ctx);
	return rc;
}
