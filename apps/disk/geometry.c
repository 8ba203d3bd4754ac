/* SPDX-License-Identifier: BSD-3-Clause */
/* Cylinders, surfaces and sectors, and the one number of a sector that they stand for. */
#include "apps/disk/disk.h"

#define TRACK_USUAL    63u
#define SURFACES_USUAL 16u
#define SECTOR_USUAL   512u

const char *disk_geometry_check(const struct disk_geometry *g)
{
	uint64_t plane;

	if (!g->cylinders || !g->surfaces || !g->track)
		return "cylinders, surfaces and sectors of a track begin at 1";
	if (g->sector < 512 || g->sector > 65536 || (g->sector & (g->sector - 1)))
		return "a sector has 512, 1024, 2048 ... 65536 bytes";
	plane = (uint64_t)g->cylinders * g->surfaces;
	if (g->track > ((uint64_t)INT64_MAX / g->sector) / plane)
		return "more bytes than a file can have";
	return NULL;
}

uint64_t disk_sectors(const struct disk_geometry *g)
{
	return (uint64_t)g->cylinders * g->surfaces * g->track;
}

struct disk_geometry disk_geometry_for(uint64_t bytes)
{
	struct disk_geometry g = {
		.surfaces = SURFACES_USUAL, .track = TRACK_USUAL, .sector = SECTOR_USUAL};
	uint64_t cylinder = (uint64_t)SURFACES_USUAL * TRACK_USUAL * SECTOR_USUAL;
	uint64_t cylinders = bytes / cylinder + (bytes % cylinder != 0);

	/* A file so long that 32 bits do not count its cylinders has larger ones. */
	for (; cylinders > UINT32_MAX; cylinders = cylinders / 2 + 1)
		g.surfaces *= 2;
	g.cylinders = cylinders ? (uint32_t)cylinders : 1;
	return g;
}

bool disk_locate(const struct disk_geometry *g, const struct disk_place *p, uint32_t n,
		 uint64_t *number)
{
	if (p->cylinder >= g->cylinders || p->surface >= g->surfaces || p->sector >= g->track)
		return false;
	*number = ((uint64_t)p->cylinder * g->surfaces + p->surface) * g->track + p->sector;
	return n <= disk_sectors(g) - *number;
}

struct disk_place disk_place_of(const struct disk_geometry *g, uint64_t number)
{
	uint64_t tracks = number / g->track;

	return (struct disk_place){.cylinder = (uint32_t)(tracks / g->surfaces),
				   .surface = (uint32_t)(tracks % g->surfaces),
				   .sector = (uint32_t)(number % g->track)};
}
