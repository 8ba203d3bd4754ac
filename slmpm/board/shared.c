/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a group: what is mapped of it, and what lies where (shared.h). */
#include "slmpm/board/shared.h"

#include <stdlib.h>

#include "shm/mapping.h"

struct shared *shared_new(const struct boards *b)
{
	uint32_t seats = 0;
	struct shared *s;

	for (uint32_t r = 0; r < b->size; r++)
		seats = b->seats[r] >= seats ? b->seats[r] + 1 : seats;
	s = calloc(1, sizeof(*s) + seats * sizeof(s->part[0]));
	if (s)
		s->seats = seats;
	return s;
}

void shared_add(struct boards *b, struct shared *s)
{
	s->next = b->shared;
	b->shared = s;
}

void shared_free(struct shared *s)
{
	for (uint32_t i = 0; i < s->seats; i++) {
		struct shared_part *p = &s->part[i];
		/* Cast: to give it back is no store. */
		struct mapping m = {
			.base = (void *)(uintptr_t)p->base, .size = p->mapped, .fd = -1};

		mapping_destroy(&m);
	}
	free(s);
}

void shared_remove(struct boards *b, struct shared *s)
{
	struct shared **at = &b->shared;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	shared_free(s);
}

void shared_close(struct boards *b)
{
	while (b->shared)
		shared_remove(b, b->shared);
}

static bool part_holds(const struct shared_part *p, uint64_t address, uint64_t n)
{
	uint64_t offset = address - p->address;

	return address >= p->address && offset <= p->len && n <= p->len - offset;
}

uint32_t shared_id_of(const struct boards *b, const void *at, uint64_t n)
{
	for (const struct shared *s = b->shared; s; s = s->next) {
		const struct shared_part *own = &s->part[b->seats[b->rank]];

		if (own->base && part_holds(own, (uint64_t)(uintptr_t)at, n))
			return s->id;
	}
	return 0;
}

int shared_find(const struct boards *b, uint32_t r, uint32_t id, uint64_t address, uint64_t n,
		const unsigned char **at)
{
	const struct shared *s = b->shared;
	const struct shared_part *p;

	while (s && s->id != id)
		s = s->next;
	if (!s || b->seats[r] >= s->seats || !s->part[b->seats[r]].base)
		return 0;
	p = &s->part[b->seats[r]];
	if (!part_holds(p, address, n))
		return -1;
	*at = p->base + (address - p->address);
	return 1;
}
