/* SPDX-License-Identifier: BSD-3-Clause */
/* The log is a ring of bytes in which no packet wraps: what is left before the end and too short is
 * an entry without kind. */
#include "slmpm/bond/bond_log.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "slmpm/base/wire.h"

int bond_log_open(struct bond_log *l, uint64_t least, uint64_t start)
{
	uint64_t place = bond_log_place(start);
	void *base;

	*l = (struct bond_log){
		.size = 4096, .head = place, .tail = place, .put = start, .given = start};
	while (l->size < least)
		l->size *= 2;
	/* Only what is used becomes memory. */
	base = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	l->base = base;
	return 0;
}

void bond_log_close(struct bond_log *l)
{
	if (l->base)
		munmap(l->base, l->size);
	l->base = NULL;
}

void bond_log_pad(struct bond_log *l)
{
	struct bond_entry *pad = bond_log_at(l, l->head);

	pad->length = (uint32_t)(l->open - l->head) - BOND_ENTRY;
	pad->kind = 0;
}

struct bond_entry *bond_log_next(const struct bond_log *l, uint64_t *at)
{
	struct bond_entry *e = bond_log_at(l, *at);

	if (!e->kind) {
		*at += bond_entry_size(e->length);
		e = bond_log_at(l, *at);
	}
	*at += bond_entry_size(e->length);
	return e;
}

void bond_log_mark(struct bond_log *l)
{
	if (l->marks == BOND_MARKS)
		return; /* the next one does */
	l->mark[l->marks].packet = l->put;
	l->mark[l->marks++].place = l->head;
}

void bond_log_retire(struct bond_log *l, uint64_t n)
{
	uint32_t passed = 0;

	while (passed < l->marks && !wire_is_before(n, l->mark[passed].packet)) {
		l->tail = l->mark[passed].place;
		l->given = l->mark[passed++].packet;
	}
	l->marks -= passed;
	memmove(l->mark, l->mark + passed, l->marks * sizeof(*l->mark));
	if (n == l->put) {
		l->tail = l->head;
		l->given = l->put;
	}
}

void bond_log_trim(struct bond_log *l, uint64_t n)
{
	bond_log_retire(l, n);
	for (; wire_is_before(l->given, n); l->given++)
		(void)bond_log_next(l, &l->tail);
}
