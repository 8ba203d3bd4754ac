/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics page of a context and its view from other processes, which open it through the
 * owner's /proc entry: no name, nothing to clean up, and only the owner can write.
 */
#include "slmpm/stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/base/error.h"
#include "slmpm/base/places.h"
#include "slmpm/base/sized.h"

#define LABEL   "slmpm-stats"
#define MAGIC   UINT64_C(0x3154534d504d4c53) /* "SLMPMST1" */
#define RULES   128
#define VERSION 2 /* of the page; changes with what stands in a struct slmpm_stats */

struct row { /* of a work queue, behind the peers */
	_Atomic uint64_t turn;
	struct slmpm_stats_queue places[2];
};
_Static_assert(sizeof(struct slmpm_stats_queue) % 8 == 0, "page layout");
_Static_assert(SLMPM_STATS_QUEUES_MAX <= 32, "a bit of context.stats_queues for each");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const char *rule;
	uint64_t count;
} rules[RULES];

void stats_open(struct context *ctx)
{
	struct slmpm_stats_page *page;
	size_t size = sizeof(*page) + SLMPM_STATS_PEERS_MAX * sizeof(struct slmpm_stats) +
		      SLMPM_STATS_QUEUES_MAX * sizeof(struct row);

	if (mapping_create_sparse(&ctx->stats, LABEL, size, sizeof(*page)) < 0)
		return;
	/* This mapping stays writable, no other can become so. */
	(void)mapping_close_seals(&ctx->stats);
	page = ctx->stats.base;
	page->version = VERSION;
	page->pid = (uint32_t)getpid();
	page->peer_size = sizeof(struct slmpm_stats);
	page->queues = SLMPM_STATS_QUEUES_MAX;
	page->queue_size = sizeof(struct slmpm_stats_queue);
	page->absent = UINT32_MAX;
	page->magic = MAGIC;
}

void stats_close(struct context *ctx)
{
	if (ctx->stats.base)
		mapping_destroy(&ctx->stats);
}

static struct slmpm_stats *stats_entry(const struct context *ctx, uint32_t i)
{
	return (struct slmpm_stats *)((struct slmpm_stats_page *)ctx->stats.base + 1) + i;
}

static bool stats_is_live(const struct context *ctx, const struct slmpm_stats *s)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		if (ctx->endpoints[i]->stats == s)
			return true;
	return false;
}

/* What is never shown takes no memory. */
static bool has_memory(const struct context *ctx, const void *at, size_t size)
{
	size_t offset = (size_t)((const unsigned char *)at - (unsigned char *)ctx->stats.base);

	return mapping_fill_part(&ctx->stats, offset, size) == 0;
}

/* A fresh one; when there is none any more, that of an ended peer, in turn. */
static struct slmpm_stats *free_entry(struct context *ctx)
{
	for (uint32_t i = 0; i < SLMPM_STATS_PEERS_MAX; i++) {
		struct slmpm_stats *s = stats_entry(ctx, ctx->stats_used++ % SLMPM_STATS_PEERS_MAX);

		if (!stats_is_live(ctx, s))
			return s;
	}
	return NULL;
}

void stats_assign(struct endpoint *ep)
{
	struct context *ctx = ep->ctx;
	struct slmpm_stats_page *page = ctx->stats.base;
	struct slmpm_stats *s = page ? free_entry(ctx) : NULL;

	if (s && !has_memory(ctx, s, sizeof(*s)))
		ctx->stats_used--; /* readers know those behind one another */
	else if (s) {
		*s = (struct slmpm_stats){.size = 0};
		ep->stats = s;
		if (page->peers < SLMPM_STATS_PEERS_MAX)
			page->peers++;
	}
	ep->stats->size = sizeof(struct slmpm_stats);
	snprintf(ep->stats->link, sizeof(ep->stats->link), "%s", ep->link.fabric->name);
}

static void count_copied(const struct endpoint *ep, struct slmpm_stats *s)
{
	s->copied_puts = s->puts - ep->rooms->figures->puts - s->fifo_puts;
	s->copied_put_bytes = s->put_bytes - ep->rooms->figures->put_bytes - s->fifo_bytes;
	s->copied_gets = s->gets - ep->rooms->figures->gets;
	s->copied_get_bytes = s->get_bytes - ep->rooms->figures->get_bytes;
}

void endpoint_stats(struct endpoint *ep)
{
	const struct fabric_counts *c = &ep->link.port->counts;
	struct slmpm_stats *s = ep->stats;
	/* Read, and not released yet: packets of one after another wait for each other. */
	uint64_t read = c->consumed + ep->link.due.span;

	s->out_produced = c->produced;
	s->out_consumed = c->consumed_seen;
	s->out_segments = c->out_segments;
	s->out_room = c->out_segments - (c->produced - c->consumed_seen);
	s->in_produced = c->in_produced_seen;
	s->in_consumed = read;
	s->in_segments = c->in_segments;
	s->in_unread = c->in_produced_seen > read ? c->in_produced_seen - read : 0;
	s->remote_writes = c->remote_writes;
	s->remote_reads = s->gets + s->atomics + ep->rooms->figures->pieces_read;
	for (int i = 0; i < SLMPM_CAUSE_COUNT; i++)
		s->publications[i] = c->publications[i];
	s->produced_publications = c->produced_publications;
	s->bells = c->bells;
	s->sleeps = ep->ctx->sleeps;
	s->queue_depth = ep->link.depth;
	count_copied(ep, s);
}

/* ---- work queues ---------------------------------------------------------------------------- */

static struct row *queue_row_of(const struct context *ctx, uint32_t place)
{
	return (struct row *)(void *)stats_entry(ctx, SLMPM_STATS_PEERS_MAX) + place - 1;
}

uint32_t stats_queue_take(struct context *ctx)
{
	struct slmpm_stats_page *page = ctx->stats.base;

	for (uint32_t i = 0; ctx->stats.base && i < SLMPM_STATS_QUEUES_MAX; i++) {
		if (ctx->stats_queues >> i & 1)
			continue;
		if (!has_memory(ctx, queue_row_of(ctx, i + 1), sizeof(struct row)))
			break;
		/* Pairs with the load in slmpm_stats_queue. */
		__atomic_and_fetch(&page->absent, ~(1u << i), __ATOMIC_RELEASE);
		ctx->stats_queues |= 1u << i;
		return i + 1;
	}
	return 0;
}

void stats_queue_fill(struct context *ctx, uint32_t place, const struct slmpm_stats_queue *now)
{
	struct row *row = queue_row_of(ctx, place);

	places_fill(&row->turn, row->places, sizeof(row->places[0]), now, sizeof(*now));
}

void stats_queue_drop(struct context *ctx, uint32_t place)
{
	static const struct slmpm_stats_queue none;

	if (!place)
		return;
	if (ctx->stats.base)
		stats_queue_fill(ctx, place, &none);
	ctx->stats_queues &= ~(1u << (place - 1));
}

/* ---- violations by name --------------------------------------------------------------------- */

void stats_violation(const char *rule)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < RULES; i++) {
		if (rules[i].rule && strcmp(rules[i].rule, rule) != 0)
			continue;
		rules[i].rule = rule;
		rules[i].count++;
		break;
	}
	pthread_mutex_unlock(&lock);
}

void stats_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int slmpm_violation_at(int i, const char **name, uint64_t *violations)
{
	bool there;

	pthread_mutex_lock(&lock);
	there = i >= 0 && i < RULES && rules[i].rule;
	if (there && name)
		*name = rules[i].rule;
	if (there && violations)
		*violations = rules[i].count;
	pthread_mutex_unlock(&lock);
	return there ? 0 : error_set(SLMPM_ENOENT, "violation %d", i);
}

/* ---- from outside --------------------------------------------------------------------------- */

int stats_find(int pid, const char *label, int skip, int *numbers, int n)
{
	char folder[64], path[384], target[64];
	struct dirent *entry;
	int found = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	if (!dir)
		return -errno;
	while (found < n && (entry = readdir(dir))) {
		ssize_t length;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = 0;
		if (strncmp(target, "/memfd:", 7) != 0 ||
		    strncmp(target + 7, label, strlen(label)) != 0 || skip-- > 0)
			continue;
		numbers[found++] = atoi(entry->d_name);
	}
	closedir(dir);
	return found;
}

int stats_open_found(int pid, int number)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	/* It may be another file by now, which nobody waits for. */
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void *stats_map(int fd, size_t least, size_t *size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	void *base = MAP_FAILED;
	struct stat st;

	*size = seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
	if (*size >= least)
		base = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return base == MAP_FAILED ? NULL : base;
}

void stats_tame(char *text, size_t size)
{
	text[size - 1] = 0;
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* What slmpm_stats_attach hands out: the header as it was then, which its owner cannot change. */
struct view {
	struct slmpm_stats_page page;
	const struct slmpm_stats_page *shared;
	size_t size;
};

/* Its owner cannot have the entries lie beyond its size. */
static bool stats_is_sound(const struct view *v)
{
	const struct slmpm_stats_page *p = &v->page;

	return p->magic == MAGIC && p->version == VERSION && p->peer_size >= 8 &&
	       p->peer_size % 8 == 0 &&
	       (v->size - sizeof(*p)) / p->peer_size >= SLMPM_STATS_PEERS_MAX;
}

static size_t row_size(const struct slmpm_stats_page *p)
{
	return sizeof(_Atomic uint64_t) + 2 * (size_t)p->queue_size;
}

static size_t rows_at(const struct slmpm_stats_page *p)
{
	return sizeof(*p) + SLMPM_STATS_PEERS_MAX * (size_t)p->peer_size;
}

/* Likewise; an owner that knows of no queues shows none. */
static void check_queues(struct view *v)
{
	struct slmpm_stats_page *p = &v->page;

	if (p->queues > SLMPM_STATS_QUEUES_MAX)
		p->queues = SLMPM_STATS_QUEUES_MAX;
	if (p->queue_size < 8 || p->queue_size % 8 || p->queue_size > 1 << 16 ||
	    (v->size - rows_at(p)) / row_size(p) < p->queues)
		p->queues = 0;
}

static int other_version(int pid)
{
	return error_set(SLMPM_EVERSION, "process %d: statistics of another version", pid);
}

static int map_view(struct view *v, int fd, int pid)
{
	v->shared = stats_map(fd, sizeof(*v->shared), &v->size);
	if (!v->shared && v->size >= sizeof(*v->shared))
		return error_set(SLMPM_ENOMEM, "process %d: its statistics cannot be mapped", pid);
	if (!v->shared)
		return other_version(pid);
	memcpy(&v->page, v->shared, sizeof(v->page));
	if (v->page.peers > SLMPM_STATS_PEERS_MAX)
		v->page.peers = SLMPM_STATS_PEERS_MAX;
	if (stats_is_sound(v)) {
		check_queues(v);
		return 0;
	}
	munmap((void *)(uintptr_t)v->shared, v->size);
	return other_version(pid);
}

int slmpm_stats_attach(int pid, int index, const struct slmpm_stats_page **out)
{
	int number, rc, fd = -1;
	struct view *v;

	if (!out || index < 0)
		return error_set(SLMPM_EINVAL, "slmpm_stats_attach: page %p, index %d",
				 (const void *)out, index);
	if (stats_find(pid, LABEL, index, &number, 1) == 1)
		fd = stats_open_found(pid, number);
	if (fd < 0 && index)
		return error_set(SLMPM_ENOENT, "process %d shows no statistics number %d", pid,
				 index);
	if (fd < 0)
		return error_set(SLMPM_ENOENT, "process %d shows no statistics (is it yours?)",
				 pid);
	v = calloc(1, sizeof(*v));
	if (!v) {
		close(fd);
		return error_set(SLMPM_ENOMEM, "for statistics");
	}
	rc = map_view(v, fd, pid);
	if (rc == 0)
		*out = &v->page;
	else
		free(v);
	return rc;
}

const struct slmpm_stats *slmpm_stats_of(const struct slmpm_stats_page *page, uint32_t i)
{
	const struct view *v = (const struct view *)page;

	if (!v || i >= SLMPM_STATS_PEERS_MAX || (i >= page->peers && i >= v->shared->peers))
		return NULL;
	return (const struct slmpm_stats *)(const void *)((const unsigned char *)(v->shared + 1) +
							  (size_t)i * page->peer_size);
}

int slmpm_stats_queue(const struct slmpm_stats_page *page, uint32_t i,
		      struct slmpm_stats_queue *out, size_t size)
{
	const struct view *v = (const struct view *)page;
	struct slmpm_stats_queue all = {.size = 0};
	const unsigned char *row;
	size_t known;
	int rc;

	if (!v)
		return error_set(SLMPM_EINVAL, "slmpm_stats_queue: no page");
	if (sized_check("slmpm_stats_queue", out, size, sizeof(all)) < 0)
		return -SLMPM_EINVAL;
	if (i >= page->queues)
		return error_set(SLMPM_ENOENT, "process %u: work queue %u", page->pid, i);
	/* A look at one without memory would take some, of which there may be none left. Pairs with the
	 * release in stats_queue_take. */
	if (__atomic_load_n(&v->shared->absent, __ATOMIC_ACQUIRE) >> i & 1)
		return 0;
	row = (const unsigned char *)v->shared + rows_at(page) + i * row_size(page);
	known = page->queue_size < sizeof(all) ? page->queue_size : sizeof(all);
	rc = places_read((const void *)row, row + sizeof(_Atomic uint64_t), page->queue_size, &all,
			 known);
	if (rc < 0)
		return error_set(SLMPM_EAGAIN, "process %u: work queue %u changes all the time",
				 page->pid, i);
	if (rc == 0 || !all.size)
		return 0;
	if (all.wait_count > SLMPM_STATS_WAITS_MAX)
		all.wait_count = SLMPM_STATS_WAITS_MAX;
	sized_give(out, size, &all, sizeof(all));
	return 1;
}

void slmpm_stats_detach(const struct slmpm_stats_page *page)
{
	struct view *v = (struct view *)(uintptr_t)page;

	if (!v)
		return;
	munmap((void *)(uintptr_t)v->shared, v->size);
	free(v);
}
