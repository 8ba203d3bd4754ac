/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies as bytes, low ones first, whatever the two machines' byte orders. */
#include "apps/disk/disk.h"

#include <string.h>

#define REQUEST_MAGIC 0x3151534bu /* "KSQ1": disk, question, first version */
#define REPLY_MAGIC   0x3141534bu

struct cursor {
	unsigned char *to;
	const unsigned char *from;
};

static void put(struct cursor *c, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*c->to++ = (unsigned char)(value >> 8 * i);
}

static uint64_t get64(struct cursor *c, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)*c->from++ << 8 * i;
	return value;
}

static uint32_t get32(struct cursor *c)
{
	return (uint32_t)get64(c, 4);
}

const char *disk_status_text(enum disk_status status)
{
	static const char *const texts[] = {
#define TEXT(name, text) [DISK_##name] = text,
		DISK_STATUS(TEXT)
#undef TEXT
	};

	return (unsigned)status < DISK_STATUS_COUNT ? texts[status] : "unknown status";
}

void disk_request_pack(const struct disk_request *r, unsigned char at[DISK_REQUEST_SIZE])
{
	struct cursor c = {.to = at};

	put(&c, REQUEST_MAGIC, 4);
	put(&c, r->op, 4);
	put(&c, r->tag, 4);
	put(&c, r->drive, 4);
	put(&c, r->place.cylinder, 4);
	put(&c, r->place.surface, 4);
	put(&c, r->place.sector, 4);
	put(&c, r->sectors, 4);
	put(&c, 0, 4);
	put(&c, r->address, 8);
	memcpy(c.to, r->key.bytes, SLMPM_KEY_SIZE);
}

bool disk_request_unpack(struct disk_request *r, const unsigned char at[DISK_REQUEST_SIZE])
{
	struct cursor c = {.from = at};

	if (get32(&c) != REQUEST_MAGIC)
		return false;
	r->op = get32(&c);
	r->tag = get32(&c);
	r->drive = get32(&c);
	r->place.cylinder = get32(&c);
	r->place.surface = get32(&c);
	r->place.sector = get32(&c);
	r->sectors = get32(&c);
	get32(&c);
	r->address = get64(&c, 8);
	memcpy(r->key.bytes, c.from, SLMPM_KEY_SIZE);
	return r->op >= DISK_READ && r->op <= DISK_SYNC;
}

void disk_reply_pack(const struct disk_reply *r, unsigned char at[DISK_REPLY_SIZE])
{
	struct cursor c = {.to = at};

	put(&c, REPLY_MAGIC, 4);
	put(&c, r->op, 4);
	put(&c, r->tag, 4);
	put(&c, r->status, 4);
	put(&c, r->info.geometry.cylinders, 4);
	put(&c, r->info.geometry.surfaces, 4);
	put(&c, r->info.geometry.track, 4);
	put(&c, r->info.geometry.sector, 4);
	put(&c, r->info.drives, 4);
	put(&c, r->info.read_only, 4);
	put(&c, r->info.bytes, 8);
	memcpy(c.to, r->detail, sizeof(r->detail));
}

bool disk_reply_unpack(struct disk_reply *r, const unsigned char at[DISK_REPLY_SIZE])
{
	struct cursor c = {.from = at};

	if (get32(&c) != REPLY_MAGIC)
		return false;
	r->op = get32(&c);
	r->tag = get32(&c);
	r->status = get32(&c);
	r->info.geometry.cylinders = get32(&c);
	r->info.geometry.surfaces = get32(&c);
	r->info.geometry.track = get32(&c);
	r->info.geometry.sector = get32(&c);
	r->info.drives = get32(&c);
	r->info.read_only = get32(&c);
	r->info.bytes = get64(&c, 8);
	memcpy(r->detail, c.from, sizeof(r->detail));
	r->detail[sizeof(r->detail) - 1] = '\0';
	return (unsigned)r->status < DISK_STATUS_COUNT;
}
