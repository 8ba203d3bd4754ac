/* SPDX-License-Identifier: BSD-3-Clause */
/* The regions of a pair: one on each side, each open to the other, as large as a test wants
 * them. */
#include "apps/slmpm_perftest/perftest.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LEAST    65536
#define PATIENCE 20000
#define END_MS   10000

/* What the sides tell each other: the kind of region to make, its key, and by which path it is
 * reached. */
struct offer {
	unsigned char foreign;
	struct slmpm_key key;
};

int pair_idle(struct pair *p, uint64_t *spins)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	if (++*spins % PATIENCE)
		return 0;
	sched_yield();
	if (*spins % (PATIENCE * 64))
		return 0;
	slmpm_progress(p->ctx);
	return slmpm_peer_query(p->peer, &info) < 0 || info.state > SLMPM_PEER_UP ? -SLMPM_EDEAD :
										    0;
}

int pair_signal(struct pair *p)
{
	return slmpm_send(p->peer, STREAM_DATA, "", 0, -1);
}

int pair_signaled(struct pair *p)
{
	char nothing;
	int64_t rc = slmpm_recv(p->peer, STREAM_DATA, &nothing, 1, NULL, -1);

	return rc < 0 ? (int)rc : 0;
}

static int make(struct pair *p, uint64_t size)
{
	struct region *r = &p->region;
	void *base;
	int rc = 0;

	size = size < LEAST ? LEAST : (size + 4095) & ~UINT64_C(4095);
	if (p->foreign) {
		base = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (base == MAP_FAILED)
			return -SLMPM_ENOMEM;
		rc = slmpm_mem_register(p->ctx, base, 2 * size, SLMPM_READ_WRITE, &r->mem);
	} else {
		rc = slmpm_mem_alloc(p->ctx, 2 * size, SLMPM_READ_WRITE, &r->mem, &base);
	}
	if (rc >= 0)
		rc = slmpm_ctr_create(p->ctx, &r->ctr);
	if (rc < 0)
		return rc;
	memset(base, 0, 2 * size);
	r->base = base;
	r->source = r->base + size;
	r->size = size;
	return 0;
}

static int give(struct pair *p)
{
	struct offer mine = {.foreign = p->foreign};
	int rc = slmpm_mem_key(p->region.mem, p->peer, SLMPM_READ_WRITE, &mine.key);

	return rc < 0 ? rc : slmpm_send(p->peer, STREAM_CONTROL, &mine, sizeof(mine), ANSWER_MS);
}

static int take(struct pair *p, struct offer *theirs)
{
	int64_t len = slmpm_recv(p->peer, STREAM_CONTROL, theirs, sizeof(*theirs), NULL, ANSWER_MS);

	return len < 0 ? (int)len : len != sizeof(*theirs) ? -SLMPM_EPROTO : 0;
}

/* What is reached directly goes by request over a link that does not map it: a byte of zeros shows
 * which. */
static int try_link(struct pair *p, char *path, size_t size)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_done done;
	slmpm_req req;
	int rc = slmpm_put(p->region.remote, 0, p->region.base, 1, &how, &req);

	if (rc >= 0)
		rc = slmpm_wait(&req, 1, &done, ANSWER_MS);
	if (rc < 0)
		return rc;
	if (done.protocol == SLMPM_BY_REQUEST && (!strcmp(path, "map") || !strcmp(path, "attach")))
		snprintf(path, size, "ring");
	return done.status;
}

/* Puts go by request although memory is mapped. */
static bool settings_serve(void)
{
	const char *mode = getenv("SLMPM_MODE");

	return getenv("SLMPM_DEFAULT_PUT") || (mode && strcmp(mode, "smt") == 0);
}

static int open_theirs(struct pair *p, const struct offer *theirs)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	char path[sizeof(info.path)] = "";
	int rc = slmpm_mem_open(p->peer, &theirs->key, &p->region.remote);
	int64_t len;

	if (rc >= 0)
		rc = slmpm_rmem_query(p->region.remote, &info);
	if (rc >= 0 && p->by)
		rc = try_link(p, info.path, sizeof(info.path));
	if (rc < 0)
		return rc;
	memcpy(p->region.path, info.path, sizeof(p->region.path));
	if (p->path && strcmp(p->path, p->region.path) != 0) {
		fprintf(stderr, "slmpm_perftest: wanted path \"%s\", but here it is \"%s\"\n",
			p->path, p->region.path);
		return -SLMPM_ENOTSUP;
	}
	rc = slmpm_send(p->peer, STREAM_CONTROL, info.path, sizeof(info.path), ANSWER_MS);
	len = rc < 0 ? rc :
		       slmpm_recv(p->peer, STREAM_CONTROL, path, sizeof(path), NULL, ANSWER_MS);
	/* An atomic operation on memory that is not mapped needs its owner, whatever else does not. */
	p->region.serves = strncmp(path, "map", sizeof(path)) != 0 || settings_serve();
	return len < 0 ? (int)len : 0;
}

void pair_region_end(struct pair *p)
{
	struct region *r = &p->region;

	if (r->remote.id)
		slmpm_mem_release(r->remote);
	if (r->mem.id)
		slmpm_mem_destroy(r->mem, END_MS);
	if (r->ctr.id)
		slmpm_ctr_destroy(r->ctr);
	if (p->foreign && r->base)
		munmap(r->base, 2 * r->size);
	*r = (struct region){.size = 0};
}

int pair_region(struct pair *p, uint64_t size)
{
	struct offer theirs;
	int rc;

	if (p->region.size >= size && p->region.size)
		return 0;
	pair_region_end(p);
	/* Side 0 decides what kind of memory it is. */
	if (p->side) {
		rc = take(p, &theirs);
		p->foreign = rc >= 0 && theirs.foreign;
		if (rc >= 0)
			rc = make(p, size);
		if (rc >= 0)
			rc = give(p);
	} else {
		rc = make(p, size);
		if (rc >= 0)
			rc = give(p);
		if (rc >= 0)
			rc = take(p, &theirs);
	}
	return rc < 0 ? rc : open_theirs(p, &theirs);
}
