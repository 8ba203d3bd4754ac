/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens drives, and finds a request's bytes in them. */
#include "apps/disk/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const struct drive *d, const char *why)
{
	fprintf(stderr, "disk_controller: %s: %s\n", d->path, why);
	return -1;
}

/* An end between a sector's two is the drive's own; one far beyond it would hide data. */
static int check_geometry(struct drive *d)
{
	uint64_t room;

	if (!d->given)
		d->geometry = disk_geometry_for(d->bytes);
	room = disk_sectors(&d->geometry) * d->geometry.sector;
	if (d->bytes <= room)
		return 0;
	fprintf(stderr,
		"disk_controller: %s: its geometry has %llu bytes, the file %llu: some would be "
		"out of reach\n",
		d->path, (unsigned long long)room, (unsigned long long)d->bytes);
	return -1;
}

int drive_open(struct drive *d)
{
	const char *wrong = d->given ? disk_geometry_check(&d->geometry) : NULL;
	int flags = O_CLOEXEC | O_NOCTTY | (d->read_only ? O_RDONLY : O_RDWR);
	struct stat st;
	off_t end;

	if (wrong)
		return refuse(d, wrong);
	d->fd = open(d->path, d->wants >= 0 ? flags | O_CREAT : flags, 0666);
	if (d->fd < 0 || fstat(d->fd, &st))
		return refuse(d, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return refuse(d, "neither a file nor a block device");
	if (d->wants >= 0 && S_ISREG(st.st_mode) && ftruncate(d->fd, d->wants))
		return refuse(d, strerror(errno));
	end = lseek(d->fd, 0, SEEK_END);
	if (end < 0)
		return refuse(d, strerror(errno));
	d->bytes = (uint64_t)end;
	if (d->wants > end)
		return refuse(d, "the device is too small");
	if (d->wants >= 0)
		d->bytes = (uint64_t)d->wants;
	return check_geometry(d);
}

enum disk_status drive_locate(const struct drive *d, const struct disk_request *r, uint64_t *offset,
			      uint32_t *there)
{
	uint64_t number, len = (uint64_t)r->sectors * d->geometry.sector;

	if (!disk_locate(&d->geometry, &r->place, r->sectors, &number))
		return DISK_OUTSIDE;
	if (!r->sectors)
		return DISK_EMPTY;
	if (len > DISK_MOST)
		return DISK_TOO_LONG;
	*offset = number * d->geometry.sector;
	if (*offset + len >= d->bytes + d->geometry.sector)
		return DISK_SHORT; /* a sector of which nothing is there */
	*there = (uint32_t)(*offset + len <= d->bytes ? len : d->bytes - *offset);
	return r->op == DISK_WRITE && d->read_only ? DISK_READ_ONLY : DISK_OK;
}
