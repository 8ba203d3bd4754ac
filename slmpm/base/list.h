/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubly linked lists through a member of their elements. */
#ifndef SLMPM_BASE_LIST_H
#define SLMPM_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Elements may be taken out of the list in the body. */
#define LIST_EACH(at, head)                                                                        \
	for (struct list *at = (head)->next, *at##_next = at->next; at != (head);                  \
	     at = at##_next, at##_next = at->next)

/* The same with each element itself, a TYPE whose MEMBER is in the list. */
#define LIST_EACH_ENTRY(type, e, head, member)                                                     \
	for (type *e##_at = (void *)(head)->next, *e##_next = list_after(e##_at), *e;              \
	     (void *)e##_at != (void *)(head) && (e = LIST_ENTRY(e##_at, type, member), true);     \
	     e##_at = e##_next, e##_next = list_after(e##_at))

static inline void *list_after(const void *node)
{
	return ((const struct list *)node)->next;
}

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_insert(struct list *before, struct list *node)
{
	node->next = before;
	node->prev = before->prev;
	before->prev->next = node;
	before->prev = node;
}

static inline void list_append(struct list *head, struct list *node)
{
	list_insert(head, node);
}

static inline void list_prepend(struct list *head, struct list *node)
{
	list_insert(head->next, node);
}

/* Leaves the node as a list of its own, so that removing it twice does no harm. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* The same where it is mostly in none: one that is alone is not written to. */
static inline void list_withdraw(struct list *node)
{
	if (node->next != node)
		list_remove(node);
}

#endif
