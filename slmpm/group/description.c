/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked for, checked, and copied where it stays behind the call. Elements of an operation
 * of the program's own are bytes from here on, whole elements at a time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/sized.h"
#include "slmpm/group/operation.h"
#include "slmpm/plan/plan.h"

#define SPARES 16 /* are kept, once others begin */
#define FLAGS  (SLMPM_COLL_COMMUTES | SLMPM_COLL_SAFE)

struct described {
	struct collective operation; /* first: it is freed by that */
	struct slmpm_coll coll;
	struct slmpm_combine combine;
	uint64_t counts[]; /* and places, as far as there are any */
};

const char *operation_call(const char *call, uint32_t kind)
{
	const char *name = call ? call : plan_kind_name(kind);

	return name ? name : "slmpm_collective";
}

COLD int operation_refused(const struct slmpm_coll *c, const char *call, int rc)
{
	return plan_kind_name(c->kind) ? rc : error_name_call(operation_call(call, c->kind), rc);
}

/* ---- operations of the program's own --------------------------------------------------------- */

static int take_combine(struct slmpm_combine *full, const struct slmpm_combine *given,
			const char *call)
{
	char what[64];
	int rc;

	(void)snprintf(what, sizeof(what), "%s: .combine", call);
	rc = sized_take(what, full, given, sizeof(*full));
	if (rc < 0)
		return rc;
	if (!full->function)
		return error_set(SLMPM_EINVAL, "%s has no function", what);
	if (full->flags & ~FLAGS)
		return error_set(SLMPM_EINVAL, "%s has unknown flags", what);
	if (!full->width)
		return error_set(SLMPM_EINVAL, "%s has a width of 0", what);
	if (full->width > SLMPM_COLL_WIDTH)
		return error_set(SLMPM_ELIMIT, "%s has a width of %" PRIu64 ", more than %d", what,
				 full->width, SLMPM_COLL_WIDTH);
	return 0;
}

/* Too many elements stay so. */
static uint64_t own_bytes(uint64_t count, uint64_t width)
{
	return count > UINT64_MAX / width ? UINT64_MAX : count * width;
}

static void in_bytes(struct described *d, uint32_t n)
{
	d->coll.type = SLMPM_UINT8;
	d->coll.op = 0;
	d->coll.combine = &d->combine;
	d->coll.count = own_bytes(d->coll.count, d->combine.width);
	for (uint32_t i = 0; i < n; i++)
		d->counts[i] = own_bytes(d->counts[i], d->combine.width);
}

static void in_elements(struct described *d, uint32_t n)
{
	d->coll.count /= d->combine.width;
	for (uint32_t i = 0; i < n; i++)
		d->counts[i] /= d->combine.width;
}

/* ---- copied ---------------------------------------------------------------------------------- */

static uint32_t arrays_of(const struct slmpm_coll *c)
{
	return (uint32_t)(!!c->counts + !!c->places + !!c->to_counts + !!c->to_places);
}

static const uint64_t *array_copy(uint64_t **to, const uint64_t *from, uint32_t n)
{
	uint64_t *copy = *to;

	if (!from)
		return NULL;
	memcpy(copy, from, n * sizeof(*from));
	*to += n;
	return copy;
}

static struct collective *take_spare(struct group *g, struct list *at)
{
	list_remove(at);
	g->spare_count--;
	return LIST_ENTRY(at, struct collective, node);
}

/* Those that are kept have room for no arrays, as far as is known. There may be as many as have
 * ever been outstanding: they are given back by the calls that begin others, as who ends them is
 * mostly another thread than who has allocated them, and has the others wait. */
static struct described *described_room(struct group *g, uint32_t words)
{
	if (g->spare_count > SPARES)
		free(take_spare(g, g->spares.prev));
	if (words || !g->spare_count)
		return malloc(sizeof(struct described) + words * sizeof(uint64_t));
	return (struct described *)take_spare(g, g->spares.next); /* its first member */
}

void operation_free(struct collective *op)
{
	list_prepend(&op->group->spares, &op->node);
	op->group->spare_count++;
}

void operation_claim(const struct collective *op)
{
	const unsigned char *at = (const unsigned char *)op;

	for (size_t i = 0; i < offsetof(struct described, combine); i += CACHE_LINE)
		claim_ahead(at + i);
}

void operations_free(struct group *g)
{
	while (g->spare_count)
		free(take_spare(g, g->spares.next));
}

static struct described *described_new(struct group *g, const struct slmpm_coll *c)
{
	uint32_t n = g->boards.size;
	struct described *d = described_room(g, arrays_of(c) * n);
	uint64_t *to;

	if (!d)
		return NULL;
	to = d->counts;
	d->coll = *c;
	d->coll.counts = array_copy(&to, c->counts, n);
	d->coll.places = array_copy(&to, c->places, n);
	d->coll.to_counts = array_copy(&to, c->to_counts, n);
	d->coll.to_places = array_copy(&to, c->to_places, n);
	d->operation = (struct collective){.group = g, .coll = &d->coll, .deadline = UINT64_MAX};
	list_init(&d->operation.node);
	return d;
}

int operation_new(struct group *g, const struct slmpm_coll *c, const char *call,
		  struct collective **op)
{
	struct slmpm_combine combine;
	struct described *d = NULL;
	int rc = c->combine ? take_combine(&combine, c->combine, operation_call(call, c->kind)) : 0;

	if (rc == 0 && !(d = described_new(g, c)))
		rc = error_set(SLMPM_ENOMEM, "for a collective operation");
	if (rc == 0 && c->combine) {
		d->combine = combine;
		in_bytes(d, arrays_of(c) * g->boards.size);
		rc = flat_check(&d->coll, g->boards.size, g->boards.rank);
		if (rc == 0 && g->apart) /* plans have them, of any width */
			in_elements(d, arrays_of(c) * g->boards.size);
	}
	if (rc < 0) {
		free(d);
		return rc;
	}
	*op = &d->operation;
	return 0;
}
