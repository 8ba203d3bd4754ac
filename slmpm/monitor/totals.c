/* SPDX-License-Identifier: BSD-3-Clause */
/* Lifetime totals by peer: the owner's side (totals.h). */
#include "slmpm/monitor/totals.h"

#include <ctype.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shm/mapping.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/monitor/monitor_layout.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"
#include "slmpm/base/clock.h"

static const struct {
	size_t total, stat; /* of the same figure in both structures */
} figures[] = {
#define FIGURE(totals_name, stat)                                                                  \
	{                                                                                          \
		offsetof(struct slmpm_totals, totals_name), offsetof(struct slmpm_stats, stat)     \
	}
	FIGURE(sent_messages, sent_messages),
	FIGURE(sent_packets, sent_packets),
	FIGURE(sent_bytes, sent_bytes),
	FIGURE(sent_segments, out_produced),
	FIGURE(received_messages, received_messages),
	FIGURE(received_packets, received_packets),
	FIGURE(received_bytes, received_bytes),
	FIGURE(received_segments, in_consumed),
	FIGURE(puts, puts),
	FIGURE(put_bytes, put_bytes),
	FIGURE(gets, gets),
	FIGURE(get_bytes, get_bytes),
	FIGURE(atomics, atomics),
	FIGURE(served, served),
	FIGURE(remote_reads, remote_reads),
	FIGURE(violations, violations),
	FIGURE(checksum_errors, checksum_errors),
	FIGURE(misaddressed, misaddressed),
#undef FIGURE
};
#define FIGURES (sizeof(figures) / sizeof(*figures))
_Static_assert(FIGURES == TOTALS_FIGURES, "a peer keeps as many");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping page;              /* of the table, once there is one */
static uint32_t made;                    /* of its places: those behind take no memory yet */
static uint32_t tenants[TOTALS_ENTRIES]; /* ids that each of its places has had */

/* ---- the table ------------------------------------------------------------------------------ */

static bool have_table(void)
{
	size_t size = sizeof(struct totals_page) + TOTALS_ENTRIES * sizeof(struct slmpm_totals);
	struct totals_page *head;

	if (page.base)
		return true;
	page.fd = -1;
	if (mapping_create_sparse(&page, TOTALS_LABEL, size,
				  sizeof(*head) + sizeof(struct slmpm_totals)) < 0)
		return false;
	/* This mapping stays writable, no other can become so. */
	(void)mapping_close_seals(&page);
	head = page.base;
	*head = (struct totals_page){
		.version = TOTALS_VERSION,
		.pid = (uint32_t)getpid(),
		.entries = 1,
		.entry_size = sizeof(struct slmpm_totals),
	};
	made = 1;
	/* Pairs with the load in is_sound (totals_view.c). */
	__atomic_store_n(&head->magic, TOTALS_MAGIC, __ATOMIC_RELEASE);
	return true;
}

static struct slmpm_totals *totals_entry(uint32_t i)
{
	return (struct slmpm_totals *)(void *)((struct totals_page *)page.base + 1) + i;
}

/* One place more: 0, there is none to be had. */
static uint32_t make_place(void)
{
	struct totals_page *head = page.base;
	size_t at = sizeof(*head) + made * sizeof(struct slmpm_totals);

	if (made == TOTALS_ENTRIES || mapping_fill_part(&page, at, sizeof(struct slmpm_totals)) < 0)
		return 0;
	/* Once it has memory: pairs with the load in totals_view_is_sound. */
	__atomic_store_n(&head->entries, made + 1, __ATOMIC_RELEASE);
	return made++;
}

/* What a reader copies between these two it copies again. */
static void begin_writing(void)
{
	struct totals_page *head = page.base;
	uint64_t turn = atomic_load_explicit(&head->turn, memory_order_relaxed);

	atomic_store_explicit(&head->turn, turn + 1, memory_order_relaxed);
	/* Words behind it are seen after the odd turn: pairs with the fence in copy_table. */
	atomic_thread_fence(memory_order_release);
}

static void end_writing(void)
{
	struct totals_page *head = page.base;
	uint64_t turn = atomic_load_explicit(&head->turn, memory_order_relaxed);

	/* Pairs with the acquire in copy_table. */
	atomic_store_explicit(&head->turn, turn + 1, memory_order_release);
}

static uint64_t *figure(struct slmpm_totals *t, size_t i)
{
	return (uint64_t *)(void *)((unsigned char *)t + figures[i].total);
}

/* ---- ids ------------------------------------------------------------------------------------ */

static struct slmpm_totals others_now(void)
{
	struct slmpm_totals others = *totals_entry(0);

	others.size = sizeof(others);
	snprintf(others.id, sizeof(others.id), SLMPM_TOTALS_OTHERS);
	return others;
}

/* The peer gone longest makes room, its figures go to the others. 0: all are connected. */
static uint32_t totals_make_room(void)
{
	struct slmpm_totals others, none = {.size = 0};
	struct slmpm_totals *oldest = NULL;

	for (uint32_t i = 1; i < made; i++)
		if (!totals_entry(i)->live &&
		    (!oldest || totals_entry(i)->seen_ns < oldest->seen_ns))
			oldest = totals_entry(i);
	if (!oldest)
		return 0;
	others = others_now();
	others.ids++;
	others.connections += oldest->connections;
	for (size_t i = 0; i < FIGURES; i++)
		*figure(&others, i) += *figure(oldest, i);
	words_store(totals_entry(0), &others, sizeof(others));
	words_store(oldest, &none, sizeof(none));
	return (uint32_t)(oldest - totals_entry(0));
}

/* The place of ID; 0, the others', for a peer without one. */
static uint32_t totals_place_of(const char *id)
{
	struct slmpm_totals fresh = {.size = sizeof(fresh)};
	uint32_t empty = 0;

	if (!*id || !strcmp(id, SLMPM_TOTALS_OTHERS))
		return 0;
	for (uint32_t i = 1; i < made; i++) {
		if (!strcmp(totals_entry(i)->id, id))
			return i;
		if (!empty && !totals_entry(i)->connections)
			empty = i;
	}
	empty = empty ? empty : make_place();
	empty = empty ? empty : totals_make_room();
	if (empty) {
		snprintf(fresh.id, sizeof(fresh.id), "%s", id);
		words_store(totals_entry(empty), &fresh, sizeof(fresh));
		tenants[empty]++;
	}
	return empty;
}

static void totals_settle(struct totals_peer *peer)
{
	peer->place = totals_place_of(peer->id);
	peer->tenant = tenants[peer->place];
}

/* Where its connection counts: among the others, once another id has had its place. */
static uint32_t own_place(const struct totals_peer *peer)
{
	return peer->tenant == tenants[peer->place] ? peer->place : 0;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* What has come since it was added last; with BACK all of it is taken out again. */
static void totals_own_add(struct endpoint *ep, struct slmpm_totals *t, bool back)
{
	uint64_t *added = ep->rooms->figures->totals->added;

	endpoint_stats(ep);
	for (size_t i = 0; i < FIGURES; i++) {
		uint64_t now = 0;

		if (!back)
			memcpy(&now, (const unsigned char *)ep->stats + figures[i].stat,
			       sizeof(now));
		*figure(t, i) += now - added[i];
		added[i] = now;
	}
}

static void change(struct endpoint *ep, uint32_t place, int connections, int live, bool back)
{
	struct slmpm_totals now = place ? *totals_entry(place) : others_now();

	now.size = sizeof(now);
	now.place = place;
	now.connections += (uint64_t)(int64_t)connections;
	now.live += (uint32_t)live;
	now.seen_ns = connections || live ? clock_now() : now.seen_ns;
	totals_own_add(ep, &now, back);
	words_store(totals_entry(place), &now, sizeof(now));
}

/* The peer's id: the program's, else its host's number, else what the peer calls itself. */
static void totals_name(const struct endpoint *ep, struct totals_peer *peer)
{
	if (!peer->id[0] && ep->life->element)
		snprintf(peer->id, sizeof(peer->id), "element %u", ep->life->element);
	if (!peer->id[0])
		snprintf(peer->id, sizeof(peer->id), "%s", peer->offered);
}

/* Brings the peer's place in the table up to date; takes one where there was no table yet. */
static void bring_up(struct endpoint *ep, int live)
{
	struct totals_peer *peer = ep->rooms->figures->totals;

	if (!have_table())
		return;
	begin_writing();
	if (!peer->counted)
		totals_settle(peer);
	if (peer->counted)
		change(ep, own_place(peer), 0, live - (int)peer->live, false);
	else
		change(ep, peer->place, 1, live, false);
	end_writing();
	peer->counted = true;
	peer->live = live;
}

void totals_begin(struct endpoint *ep)
{
	totals_name(ep, ep->rooms->figures->totals);
	pthread_mutex_lock(&lock);
	bring_up(ep, 1);
	pthread_mutex_unlock(&lock);
}

void totals_add(struct endpoint *ep)
{
	if (!ep->life->was_up)
		return;
	link_count(ep);
	pthread_mutex_lock(&lock);
	bring_up(ep, ep->state == SLMPM_PEER_UP);
	pthread_mutex_unlock(&lock);
}

/* An unauthenticated connection: its id is not believed, whatever it calls itself. */
static void totals_refuse(struct endpoint *ep)
{
	struct slmpm_totals others = others_now();

	others.refused++;
	words_store(totals_entry(0), &others, sizeof(others));
	change(ep, 0, 0, 0, false);
}

void totals_end(struct endpoint *ep)
{
	if (!ep->life->was_up && !ep->rooms->listener)
		return;
	pthread_mutex_lock(&lock);
	if (ep->life->was_up) {
		bring_up(ep, 0);
	} else if (have_table()) {
		begin_writing();
		totals_refuse(ep);
		end_writing();
	}
	pthread_mutex_unlock(&lock);
}

void totals_refresh(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		totals_add(ctx->endpoints[i]);
}

/* All of this connection counts for its new id, and none of it for the old one any more. */
static void move(struct endpoint *ep, struct totals_peer *peer)
{
	struct slmpm_totals none = {.size = 0};
	uint32_t old = own_place(peer);

	begin_writing();
	change(ep, old, -1, -(int)peer->live, true);
	if (old && !totals_entry(old)->connections)
		words_store(totals_entry(old), &none, sizeof(none));
	totals_settle(peer);
	change(ep, peer->place, 1, peer->live, false);
	end_writing();
}

static int check_id(const char *id)
{
	size_t n = id ? strlen(id) : 0;

	if (!n || n >= SLMPM_ID_SIZE)
		return error_set(SLMPM_EINVAL, "slmpm_peer_id: an id has 1 to %d bytes",
				 SLMPM_ID_SIZE - 1);
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)id[i]))
			return error_set(SLMPM_EINVAL, "slmpm_peer_id: byte %zu is not printable",
					 i);
	return 0;
}

int slmpm_peer_id(slmpm_peer peer, const char *id)
{
	struct endpoint *ep = endpoint_of(peer);
	struct totals_peer *t;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (check_id(id) < 0)
		return -SLMPM_EINVAL;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	t = ep->rooms->figures->totals;
	snprintf(t->id, sizeof(t->id), "%s", id);
	pthread_mutex_lock(&lock);
	if (t->counted && page.base)
		move(ep, t);
	pthread_mutex_unlock(&lock);
	context_unlock(ep->ctx);
	return 0;
}

/* ---- asked for ------------------------------------------------------------------------------ */

int totals_check(const char *call, const struct slmpm_totals *all, size_t size, int n)
{
	if (n < 0)
		return error_set(SLMPM_EINVAL, "%s: %d of them", call, n);
	return n ? sized_check(call, all, size, sizeof(*all)) : 0;
}

int totals_give(struct slmpm_totals *all, size_t size, int n, const struct slmpm_totals *table,
		uint32_t entries)
{
	struct slmpm_totals others = {.size = sizeof(others)};
	int have = 0;

	for (uint32_t i = 0; i < entries; i++) {
		const struct slmpm_totals *t = &table[i];

		if (i && !t->connections)
			continue;
		if (!i) {
			others = *t;
			memcpy(others.id, SLMPM_TOTALS_OTHERS, sizeof(SLMPM_TOTALS_OTHERS));
			t = &others;
		}
		if (have < n)
			sized_give((unsigned char *)all + (size_t)have * size, size, t, sizeof(*t));
		have++;
	}
	return have;
}

int slmpm_totals(slmpm_ctx handle, struct slmpm_totals *all, size_t size, int n)
{
	static const struct slmpm_totals none;
	int rc = totals_check("slmpm_totals", all, size, n);
	struct context *ctx = rc == 0 ? context_get(handle, &rc) : NULL;

	if (!ctx)
		return rc;
	context_lock(ctx);
	totals_refresh(ctx);
	context_unlock(ctx);
	pthread_mutex_lock(&lock);
	rc = page.base ? totals_give(all, size, n, totals_entry(0), made) :
			 totals_give(all, size, n, &none, 1);
	pthread_mutex_unlock(&lock);
	return rc;
}

void totals_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	if (page.base && page.fd >= 0) /* its mapping has not come along */
		close(page.fd);
	page = (struct mapping){.fd = -1};
}
