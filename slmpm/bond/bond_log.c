/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log is a ring of bytes in which no packet wraps: what is left before the end and too short is
 * an entry without kind.
 */
#include "slmpm/bond/bond_log.h"

#include <errno.h>
#include <sys/mman.h>

static struct bond_entry *entry_at(const struct bond_log *l, uint64_t place)
{
	return (struct bond_entry *)(void *)(l->base + (place & (l->size - 1)));
}

int bond_log_open(struct bond_log *l, uint64_t least)
{
	void *base;

	*l = (struct bond_log){.size = 4096};
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

struct bond_entry *bond_log_reserve(struct bond_log *l, uint32_t length, uint64_t spare)
{
	uint64_t size = bond_entry_size(length);
	uint64_t left = l->size - (l->head & (l->size - 1));
	uint64_t skip = size > left ? left : 0;

	if (l->head - l->tail + skip + size + spare > l->size)
		return NULL;
	l->open = l->head + skip;
	return entry_at(l, l->open);
}

void bond_log_commit(struct bond_log *l, const struct fabric_wr *wr)
{
	struct bond_entry *e = entry_at(l, l->open);

	if (l->open != l->head) {
		struct bond_entry *pad = entry_at(l, l->head);

		pad->size = l->open - l->head;
		pad->kind = 0;
	}
	e->size = bond_entry_size(wr->length);
	e->length = wr->length;
	e->kind = wr->kind;
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		e->head[i] = wr->head[i];
	l->head = l->open + e->size;
}

struct bond_entry *bond_log_next(const struct bond_log *l, uint64_t *at)
{
	struct bond_entry *e = entry_at(l, *at);

	if (!e->kind) {
		*at += e->size;
		e = entry_at(l, *at);
	}
	*at += e->size;
	return e;
}

void bond_log_retire(struct bond_log *l, uint64_t n)
{
	while (n--)
		(void)bond_log_next(l, &l->tail);
}
