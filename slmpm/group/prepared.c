/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepared operations: checked and copied once, started again and again. */
#include <stdlib.h>

#include "slmpm/base/sized.h"
#include "slmpm/completion/completion.h"
#include "slmpm/group/operation.h"

#define PREPARE "slmpm_collective_prepare"
#define START   "slmpm_prepared_start"
#define DESTROY "slmpm_prepared_destroy"

struct prepared {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of its group's */
	struct collective *operation;
	uint32_t generation; /* of the group: others have other ranks */
	bool awaited;        /* a call does it, and blocks */
};

static struct handle_table prepared_table =
	HANDLE_TABLE_FROM("prepared operation", struct prepared, node);

static void prepared_free(struct prepared *p)
{
	list_remove(&p->node);
	free(p->operation);
	handle_free(&prepared_table, p);
}

void prepared_free_all(struct group *g)
{
	LIST_EACH_ENTRY(struct prepared, p, &g->prepared, node)
		prepared_free(p);
}

/* Its last run has ended, or 0 of them: 0, or -SLMPM_EBUSY with the detail set. */
static int prepared_is_free(const struct prepared *p, const char *call)
{
	if (p->awaited || operation_is_outstanding(p->operation))
		return error_set(SLMPM_EBUSY, "%s: its last run has not ended", call);
	return 0;
}

static int prepare_in(struct group *g, const struct slmpm_coll *c, slmpm_prepared *out)
{
	struct collective *op;
	struct prepared *p;
	int rc = operation_check(g, c, PREPARE);

	if (rc == 0)
		rc = operation_new(g, c, PREPARE, &op);
	if (rc < 0)
		return rc;
	p = handle_new(&prepared_table);
	if (!p) {
		free(op);
		return error_set(SLMPM_ENOMEM, "for a prepared operation");
	}
	context_own(&p->ctx, g->ctx);
	list_append(&g->prepared, &p->node);
	op->kept = true;
	p->operation = op;
	p->generation = g->boards.generation;
	out->id = handle_id(p);
	return 0;
}

int slmpm_collective_prepare(slmpm_prepared *out, slmpm_group group, const struct slmpm_coll *coll)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, PREPARE, &ctx, &rc);
	struct slmpm_coll full;

	if (!g)
		return rc;
	rc = sized_take(PREPARE, &full, coll, sizeof(full));
	if (rc == 0 && !out)
		rc = error_set(SLMPM_EINVAL, PREPARE ": no place for the handle");
	if (rc == 0)
		rc = prepare_in(g, &full, out);
	context_unlock(ctx);
	return rc;
}

/* Another thread may destroy the group, and what is prepared with it, as soon as it has ended. */
static int run_awaited(struct prepared *p, int timeout_ms)
{
	uint64_t id = handle_id(p);
	int rc = context_forbids(p->ctx, START);

	if (rc < 0)
		return rc;
	p->awaited = true;
	rc = operation_await(p->operation->group, p->operation->coll, START, timeout_ms);
	if (handle_get(&prepared_table, id) == p)
		p->awaited = false;
	return rc;
}

int slmpm_prepared_start(slmpm_prepared prepared, const struct slmpm_how *how, slmpm_req *req)
{
	int rc = 0;
	struct prepared *p = context_lock_object(&prepared_table, prepared.id, &rc);
	struct slmpm_how all;
	struct context *ctx;

	if (!p)
		return error_name_call(START, rc);
	ctx = p->ctx;
	rc = how_take(START, &all, how, 0);
	if (rc == 0)
		rc = prepared_is_free(p, START);
	if (rc == 0)
		rc = operation_may_begin(p->operation->group, p->operation->coll->kind, START);
	if (rc == 0 && p->generation != p->operation->group->boards.generation)
		rc = error_set(SLMPM_ESTATE, START ": it was prepared before "
						   "slmpm_group_shrink, for other members");
	if (rc == 0)
		rc = completion_blocks(&all, req) ? run_awaited(p, all.timeout_ms) :
						    operation_start(p->operation, &all, req);
	context_unlock(ctx);
	return rc;
}

int slmpm_prepared_destroy(slmpm_prepared prepared)
{
	int rc = 0;
	struct prepared *p = context_lock_object(&prepared_table, prepared.id, &rc);
	struct context *ctx;

	if (!p)
		return error_name_call(DESTROY, rc);
	ctx = p->ctx;
	rc = prepared_is_free(p, DESTROY);
	if (rc == 0)
		prepared_free(p);
	context_unlock(ctx);
	return rc;
}
