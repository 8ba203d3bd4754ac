/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages in which a context shows its links to others (monitor_layout.h): the owner's side. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/mapping.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor_layout.h"
#include "slmpm/monitor/monitor.h"

#define PLACE     sizeof(struct slmpm_monitor)
#define ENTRY     (sizeof(struct monitor_entry) + 2 * PLACE)
#define AGGREGATE (sizeof(struct monitor_entry) + 2 * sizeof(struct slmpm_aggregate))
#define BYTES     (sizeof(struct monitor_page) + MONITOR_ENTRIES * ENTRY + AGGREGATE)

struct monitor_pages { /* of a context */
	struct mapping page;
	bool taken[MONITOR_ENTRIES];
	uint32_t turn;              /* which place of an ended link is given away next */
	struct monitor_pages *next; /* NULL: the first, which stays also while unused */
};

static struct monitor_entry *monitor_page_entry_of(const struct monitor_pages *p, uint32_t i)
{
	return (struct monitor_entry *)(void *)((unsigned char *)p->page.base +
						sizeof(struct monitor_page) + i * ENTRY);
}

static struct monitor_pages *new_page(struct context *ctx)
{
	struct monitor_pages *p = calloc(1, sizeof(*p));
	struct monitor_page *page;

	if (!p || mapping_create_sparse(&p->page, MONITOR_LABEL, BYTES, sizeof(*page)) < 0 ||
	    mapping_fill_part(&p->page, BYTES - AGGREGATE, AGGREGATE) < 0) {
		if (p)
			mapping_destroy(&p->page);
		free(p);
		return NULL;
	}
	/* This mapping stays writable, no other can become so. */
	(void)mapping_close_seals(&p->page);
	page = p->page.base;
	*page = (struct monitor_page){
		.version = MONITOR_VERSION,
		.pid = (uint32_t)getpid(),
		.entries = MONITOR_ENTRIES,
		.entry_size = ENTRY,
		.place_size = PLACE,
		.known = sizeof(struct slmpm_monitor),
		.aggregate_place = sizeof(struct slmpm_aggregate),
		.aggregate_known = sizeof(struct slmpm_aggregate),
		.absent = UINT32_MAX,
	};
	/* Pairs with the load in map_page. */
	__atomic_store_n(&page->magic, MONITOR_MAGIC, __ATOMIC_RELEASE);
	p->next = ctx->monitor.pages;
	ctx->monitor.pages = p;
	return p;
}

uint64_t monitor_memory(void)
{
	return sizeof(struct monitor) + ENTRY + sizeof(struct aggregate_part);
}

int monitor_open(struct context *ctx)
{
	(void)new_page(ctx);
	return 0;
}

/* Unused pages. */
static void drop_empty(struct context *ctx)
{
	for (struct monitor_pages **at = &ctx->monitor.pages; *at;) {
		struct monitor_pages *p = *at;

		if (!p->next || memchr(p->taken, true, sizeof(p->taken))) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		mapping_destroy(&p->page);
		free(p);
	}
}

/* What is never used takes no memory. */
static bool make_entry(struct monitor_pages *p, uint32_t i)
{
	struct monitor_page *page = p->page.base;

	if (!(page->absent >> i & 1))
		return true;
	if (mapping_fill_part(&p->page, sizeof(*page) + i * ENTRY, ENTRY) < 0)
		return false;
	/* Pairs with the load in is_absent (monitor_view.c). */
	__atomic_and_fetch(&page->absent, ~(1u << i), __ATOMIC_RELEASE);
	return true;
}

/* One that was never used, or else, where ENDED, that of an ended link. */
static bool take_free(struct monitor_pages *p, bool ended, struct monitor *m)
{
	for (uint32_t n = 0; n < MONITOR_ENTRIES; n++) {
		uint32_t i = (p->turn + n) % MONITOR_ENTRIES;
		struct monitor_entry *e = monitor_page_entry_of(p, i);

		if (p->taken[i] || !make_entry(p, i))
			continue;
		if (!ended && atomic_load_explicit(&e->turn, memory_order_relaxed))
			continue;
		p->turn = ended ? i + 1 : p->turn;
		m->entry = e;
		m->taken = &p->taken[i];
		*m->taken = true;
		return true;
	}
	return false;
}

void monitor_page_assign(struct endpoint *ep)
{
	struct monitor *m = ep->rooms->monitor;
	struct monitor_pages *p, *first = ep->ctx->monitor.pages;
	bool found = false;
	uint32_t count = 0;

	for (int ended = 0; ended < 2; ended++)
		for (p = first; p && !found; p = p->next)
			found = take_free(p, ended, m);
	for (p = first; p; p = p->next)
		count++;
	if (!found && count < MONITOR_PAGES && (p = new_page(ep->ctx)))
		found = take_free(p, false, m);
	if (found)
		monitor_publish(ep);
}

void monitor_page_release(struct endpoint *ep)
{
	struct monitor *m = ep->rooms->monitor;

	if (m->entry)
		*m->taken = false;
	m->entry = NULL;
	drop_empty(ep->ctx);
}

/* SIZE bytes into the place of E that is not the whole one; then it is. */
static void monitor_page_fill(struct monitor_entry *e, const void *from, size_t size)
{
	places_fill(&e->turn, e + 1, size, from, size);
}

void monitor_publish(struct endpoint *ep)
{
	struct slmpm_monitor now;

	if (!ep->rooms->monitor->entry)
		return;
	monitor_take(ep, &now);
	monitor_page_fill(ep->rooms->monitor->entry, &now, sizeof(now));
}

void monitor_publish_aggregate(struct context *ctx)
{
	struct slmpm_aggregate now;

	aggregate_take(&now);
	for (struct monitor_pages *p = ctx->monitor.pages; p; p = p->next)
		monitor_page_fill(monitor_page_entry_of(p, MONITOR_ENTRIES), &now, sizeof(now));
}

void monitor_shut(struct context *ctx)
{
	aggregate_shut(ctx);
	while (ctx->monitor.pages) {
		struct monitor_pages *p = ctx->monitor.pages;

		ctx->monitor.pages = p->next;
		mapping_destroy(&p->page);
		free(p);
	}
}

void monitor_forked(struct context *ctx)
{
	for (struct monitor_pages *p = ctx->monitor.pages; p; p = p->next)
		if (p->page.fd >= 0)
			close(p->page.fd);
}
