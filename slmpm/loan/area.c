/* SPDX-License-Identifier: BSD-3-Clause */
/* Loan areas of both sides: made on demand, offered by descriptor or in the ring, used again. */
#include "slmpm/loan/area.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "slmpm/part.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/link/wait.h"

#define AREA_MIN (UINT64_C(64) << 10)

void area_begin(struct endpoint *ep)
{
	ep->rooms->loans->next = (uint32_t)endpoint_start(ep);
}

static struct area *best_free(struct endpoint *ep, uint64_t length)
{
	struct area *best = NULL;

	for (struct area *a = ep->rooms->loans->areas; a; a = a->next)
		if (!a->busy && a->map.size >= length && (!best || a->map.size < best->map.size))
			best = a;
	return best;
}

static uint64_t round_up(uint64_t length)
{
	uint64_t size = AREA_MIN;

	while (size < length)
		size *= 2;
	return size;
}

/* Memory of this process alone: its pages come as they are used. */
static int own_memory(struct mapping *m, uint64_t size)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*m = (struct mapping){.fd = -1};
	if (base == MAP_FAILED)
		return -errno;
	m->base = base;
	m->size = size;
	return 0;
}

/* Sealed before it leaves: the peer can only ever read it. */
static int area_share(struct endpoint *ep, struct area *a, uint64_t size)
{
	struct wire_area area = {.area = LITTLE_32(a->id), .size = LITTLE_64(size)};
	int rc = mapping_create(&a->map, "slmpm-loan", size);

	if (rc == 0)
		rc = mapping_close_seals(&a->map);
	return rc == 0 ? parts.offer(ep, &area, sizeof(area), WIRE_AREA, a->map.fd) : rc;
}

static int area_announce(struct endpoint *ep, struct area *a, uint64_t size)
{
	int rc = own_memory(&a->map, size);

	if (rc == 0)
		link_control(ep, WIRE_LOAN_AREA, a->id, size, NULL, 0);
	return rc;
}

static struct area *area_find(struct area *list, uint64_t id)
{
	for (struct area *a = list; a; a = a->next)
		if (a->id == id)
			return a;
	return NULL;
}

static struct area *area_make(struct endpoint *ep, uint64_t size, int *rc)
{
	struct loans *l = ep->rooms->loans;
	struct area *a = calloc(1, sizeof(*a));

	if (!a) {
		*rc = error_set(SLMPM_ENOMEM, "for a loan area");
		return NULL;
	}
	while (area_find(l->areas, l->next)) /* 2^32 ago */
		l->next++;
	a->id = l->next;
	*rc = link_maps(ep) ? area_share(ep, a, size) : area_announce(ep, a, size);
	if (*rc < 0) {
		/* The peer has hung up: calls that wait fail as soon as that is noticed. */
		*rc = *rc == -EPIPE || *rc == -ECONNRESET ?
			      -SLMPM_EAGAIN :
			      error_system(*rc, "a loan area cannot be made");
		mapping_destroy(&a->map);
		free(a);
		return NULL;
	}
	l->next++;
	l->bytes += size;
	a->next = l->areas;
	l->areas = a;
	return a;
}

struct area *area_take(struct endpoint *ep, uint64_t length, int *rc)
{
	struct area *a = best_free(ep, length);
	uint64_t size = round_up(length), most = ep->life->loan_max;

	if (!a && size > most)
		*rc = error_set(SLMPM_ELIMIT, "a loan of %llu bytes to %s; at most %llu",
				(unsigned long long)length, ep->life->name,
				(unsigned long long)most);
	else if (!a && ep->rooms->loans->bytes > most - size)
		*rc = error_set(SLMPM_EAGAIN, "all loan areas are still at %s", ep->life->name);
	else if (!a)
		a = area_make(ep, size, rc);
	if (a)
		a->busy = true;
	return a;
}

void area_returned(struct endpoint *ep, const struct head *h)
{
	struct area *a = area_find(ep->rooms->loans->areas, h->extent & WIRE_LENGTH_MASK);

	if (PEER_FAULT(!a || !a->busy || a->queued || ep->rooms->loans->area == a)) {
		endpoint_poison(ep, "return of an area");
		return;
	}
	a->busy = false;
	context_changed(ep->ctx);
}

int area_offered(struct endpoint *ep, uint64_t id, uint64_t size, int fd)
{
	struct loans *l = ep->rooms->loans;
	struct area *a;
	int rc;

	if (link_maps(ep) != (fd >= 0) || id > UINT32_MAX || area_find(l->peer_areas, id) ||
	    !size || size > ep->life->loan_max || l->peer_bytes > ep->life->loan_max - size)
		return -EPROTO;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	if (fd >= 0)
		rc = mapping_attach(&a->map, fd, size, MAPPING_READ);
	else
		rc = own_memory(&a->map, size) < 0 ? -ENOMEM : 0;
	if (rc < 0) {
		free(a);
		return rc;
	}
	a->id = (uint32_t)id;
	a->next = l->peer_areas;
	l->peer_areas = a;
	l->peer_bytes += size;
	return 0;
}

struct area *area_next(struct endpoint *ep, uint64_t id, uint64_t offset, uint64_t n)
{
	struct area *a = link_maps(ep) ? NULL : area_find(ep->rooms->loans->peer_areas, id);

	return a && offset == a->filled && n <= a->map.size - offset ? a : NULL;
}

struct area *area_lent(struct endpoint *ep, uint32_t id, uint64_t capacity)
{
	struct area *a = area_find(ep->rooms->loans->peer_areas, id);

	if (!a && link_maps(ep)) {
		/* Its descriptor was sent before; it may still wait in the socket. */
		parts.read_ahead(ep);
		a = area_find(ep->rooms->loans->peer_areas, id);
	}
	if (!a || a->busy || capacity > a->map.size)
		return NULL;
	a->busy = true;
	return a;
}

void area_done(struct endpoint *ep, struct area *a)
{
	a->busy = a->damaged = false;
	a->filled = 0;
	ep->ctx->ended |= ep->state != SLMPM_PEER_UP;
	link_control(ep, WIRE_LOAN_DONE, 0, a->id, NULL, 0);
}

static void free_first(struct area **list)
{
	struct area *a = *list;

	*list = a->next;
	mapping_destroy(&a->map);
	free(a);
}

/* Those of *LIST that nobody uses, at either end. */
static void free_unused(struct area **list, const struct area *open, bool own)
{
	while (*list)
		if (own ? *list == open : (*list)->busy)
			list = &(*list)->next;
		else
			free_first(list);
}

void area_reclaim(struct endpoint *ep)
{
	free_unused(&ep->rooms->loans->areas, ep->rooms->loans->area, true);
	free_unused(&ep->rooms->loans->peer_areas, NULL, false);
}

void area_free_all(struct endpoint *ep)
{
	struct loans *l = ep->rooms->loans;

	while (l->areas)
		free_first(&l->areas);
	while (l->peer_areas)
		free_first(&l->peer_areas);
}
