/* SPDX-License-Identifier: BSD-3-Clause */
/* What will happen, in the order of time: a heap of which each has four below it. */
#include "apps/slmpm_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

#define WAYS 4

void *grown(void *array, uint32_t *room, uint32_t count, size_t size)
{
	void *more;

	if (count < *room)
		return array;
	if (*room > UINT32_MAX / 2 - 1) { /* an event's number has 31 bits */
		fprintf(stderr, "slmpm_sim: more than 2^31 events, messages or packets at once\n");
		exit(1);
	}
	*room = *room ? *room * 2 : 1024;
	more = realloc(array, *room * size);
	if (!more) {
		fprintf(stderr, "slmpm_sim: out of memory: %u of %zu bytes each\n", *room, size);
		exit(1);
	}
	return more;
}

static bool is_before(const struct event *a, const struct event *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return (int32_t)(a->order - b->order) < 0;
}

void events_add(struct events *e, uint64_t time, enum event_kind kind, uint32_t number)
{
	const struct event event = {time, e->order++, number * 2 + kind};
	uint32_t at = e->count, above;

	e->heap = grown(e->heap, &e->room, e->count, sizeof(*e->heap));
	e->count++;
	for (; at; at = above) {
		above = (at - 1) / WAYS;
		if (!is_before(&event, &e->heap[above]))
			break;
		e->heap[at] = e->heap[above];
	}
	e->heap[at] = event;
}

/* The first of those below AT; COUNT: there is none. */
static uint32_t first_below(const struct events *e, uint32_t at)
{
	const uint32_t from = at * WAYS + 1;
	uint32_t first = from, end = from + WAYS;

	if (from >= e->count)
		return e->count;
	if (end > e->count)
		end = e->count;
	for (uint32_t i = from + 1; i < end; i++)
		if (is_before(&e->heap[i], &e->heap[first]))
			first = i;
	return first;
}

bool events_take(struct events *e, struct event *first)
{
	struct event last;
	uint32_t at = 0, below;

	if (!e->count)
		return false;
	*first = e->heap[0];
	last = e->heap[--e->count];
	while ((below = first_below(e, at)) < e->count && is_before(&e->heap[below], &last)) {
		e->heap[at] = e->heap[below];
		at = below;
	}
	e->heap[at] = last;
	e->taken++;
	return true;
}
