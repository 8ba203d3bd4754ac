/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies drive 0 to drive 1 of one controller. A block is read into its slot of the region, which
 * the controller writes to, and sent from there to the other drive; so many blocks are under way at
 * once.
 */
#include "apps/disk/copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "apps/disk/client.h"

enum { FROM, TO };

struct copy {
	const struct copy_options *options;
	struct disk_client *client;
	struct disk_info info[2];
	uint64_t next, done; /* bytes that are asked for, and that are written */
	double begin;
	struct slot {
		uint64_t at;
		bool busy, writing;
	} * slot;
};

static int complain(const struct copy *c, int drive, uint64_t at, const struct disk_result *r)
{
	progress_clear();
	fprintf(stderr, "disk_copy: %s, byte %llu: %s%s%s\n",
		drive == FROM ? c->options->from : c->options->to, (unsigned long long)at,
		disk_status_text(r->status), *r->detail ? ": " : "", r->detail);
	return -1;
}

/* Bytes of the block at AT, and the sectors that hold them. */
static uint32_t block_at(const struct copy *c, uint64_t at, int drive, uint32_t *sectors)
{
	uint64_t left = c->options->bytes - at;
	uint32_t sector = c->info[drive].geometry.sector;

	*sectors = (uint32_t)(((left < c->options->block ? left : c->options->block) + sector - 1) /
			      sector);
	return *sectors * sector;
}

static int read_next(struct copy *c, unsigned k)
{
	const struct disk_geometry *g = &c->info[FROM].geometry;
	uint32_t sectors, bytes = block_at(c, c->next, FROM, &sectors);
	struct slot *s = &c->slot[k];

	*s = (struct slot){.at = c->next, .busy = true};
	c->next += bytes;
	return disk_read(c->client, FROM, disk_place_of(g, s->at / g->sector), sectors,
			 (uint64_t)k * c->options->block, bytes, k);
}

static int write_block(struct copy *c, unsigned k)
{
	const struct disk_geometry *g = &c->info[TO].geometry;
	struct slot *s = &c->slot[k];
	uint32_t sectors, bytes = block_at(c, s->at, TO, &sectors);

	s->writing = true;
	return disk_write(c->client, TO, disk_place_of(g, s->at / g->sector), sectors,
			  disk_memory(c->client) + (uint64_t)k * c->options->block, bytes, k);
}

static int take(struct copy *c, const struct disk_result *r)
{
	unsigned k = (unsigned)r->cookie;
	struct slot *s = &c->slot[k];

	if (r->status != DISK_OK)
		return complain(c, s->writing ? TO : FROM, s->at, r);
	if (!s->writing)
		return write_block(c, k);
	s->busy = false;
	c->done += r->bytes;
	if (!c->options->quiet)
		progress_show(c->done, c->options->bytes, progress_now() - c->begin);
	return c->next < c->options->bytes ? read_next(c, k) : 0;
}

static int copy_blocks(struct copy *c)
{
	struct disk_result r;
	int rc = 0;

	for (unsigned k = 0; k < c->options->window && c->next < c->options->bytes && rc >= 0; k++)
		rc = read_next(c, k);
	while (rc >= 0 && (rc = disk_next(c->client, &r)) == 1)
		rc = take(c, &r);
	if (rc >= 0 && c->options->sync) {
		rc = disk_sync(c->client, TO, 0);
		if (rc >= 0)
			rc = disk_next(c->client, &r);
		if (rc == 1 && r.status != DISK_OK)
			rc = complain(c, TO, c->options->bytes, &r);
	}
	return rc < 0 ? -1 : 0;
}

/* From the beginning, without a hole: blocks end in any order. */
static uint64_t whole(const struct copy *c)
{
	uint64_t until = c->next;

	for (unsigned k = 0; k < c->options->window; k++)
		if (c->slot[k].busy && c->slot[k].at < until)
			until = c->slot[k].at;
	return until < c->options->bytes ? until : c->options->bytes;
}

/* The drives are what they were said to be. */
static int identify(struct copy *c)
{
	struct disk_result r;

	for (int d = FROM; d <= TO; d++) {
		if (disk_identify(c->client, (uint32_t)d, &r) < 0)
			return -1;
		if (r.status != DISK_OK)
			return complain(c, d, 0, &r);
		c->info[d] = r.info;
		if (c->options->block % r.info.geometry.sector) {
			fprintf(stderr, "disk_copy: -b %u: no whole sectors of %u bytes\n",
				c->options->block, r.info.geometry.sector);
			return -1;
		}
		if (r.info.bytes != c->options->bytes && d == FROM) {
			fprintf(stderr, "disk_copy: %s: changes while it is copied\n",
				c->options->from);
			return -1;
		}
	}
	return 0;
}

static int start(struct copy *c)
{
	const struct copy_options *o = c->options;
	char bytes[24], *argv[16];
	struct disk_client_options how = {.controller = o->controller,
					  .argv = argv,
					  .memory = (size_t)o->window * o->block,
					  .foreign = o->foreign};
	int n = 0;

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)o->bytes);
	for (int d = FROM; d <= TO; d++) {
		argv[n++] = (char *)(uintptr_t) "-d";
		argv[n++] = (char *)(uintptr_t)(d == FROM ? o->from : o->to);
		argv[n++] = (char *)(uintptr_t)(d == FROM ? "-r" : "-n");
		if (d == TO)
			argv[n++] = bytes;
		if (o->geometry) {
			argv[n++] = (char *)(uintptr_t) "-g";
			argv[n++] = (char *)(uintptr_t)o->geometry;
		}
	}
	if (o->plain)
		argv[n++] = (char *)(uintptr_t) "--plain";
	argv[n] = NULL;
	return disk_start(&c->client, &how);
}

int copy_run(const struct copy_options *o, double *seconds)
{
	struct copy c = {.options = o, .slot = calloc(o->window, sizeof(*c.slot))};
	int rc = c.slot ? start(&c) : -1, status;

	if (rc >= 0)
		rc = identify(&c);
	c.begin = progress_now();
	if (rc >= 0)
		rc = copy_blocks(&c);
	*seconds = progress_now() - c.begin;
	progress_clear();
	if (!c.client) {
		free(c.slot);
		return 1;
	}
	status = disk_stop(c.client);
	if (rc >= 0 && status) {
		fprintf(stderr, "disk_copy: the controller did not end well\n");
		rc = -1;
	}
	if (rc < 0 && whole(&c) < o->bytes)
		fprintf(stderr,
			"disk_copy: %s is not complete: its first %llu of %llu bytes are there\n",
			o->to, (unsigned long long)whole(&c), (unsigned long long)o->bytes);
	free(c.slot);
	return rc < 0;
}
