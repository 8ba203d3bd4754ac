/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions behind the handles of both remote-memory families: the table, how they begin and end.
 * A handle is a place, the family, a count of handles given out, and a number of this process: so
 * stale ones, those of the other family and those of other processes are noticed.
 */
#include "slmpm/dacs_internal.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define PLACE_BITS  16
#define GIVEN_SHIFT (PLACE_BITS + 1)
#define GIVEN_BITS  23
#define SALT_SHIFT  (GIVEN_SHIFT + GIVEN_BITS)
#define SALT_BITS   (64 - SALT_SHIFT)

_Static_assert(DACSI_REGIONS < 1 << PLACE_BITS, "a place is not 0");

/* ---- the table ------------------------------------------------------------------------------ */

static uint64_t salt(void)
{
	uint32_t random;

	if (!dacsi.region_salt) {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			random = (uint32_t)dacsi_now() ^ (uint32_t)getpid() << 8;
		dacsi.region_salt = random | 1;
	}
	return dacsi.region_salt & ((UINT64_C(1) << SALT_BITS) - 1);
}

static uint64_t number(uint32_t place, enum dacsi_family family)
{
	static uint64_t given; /* under the lock; goes on through dacs_exit */
	uint64_t count = ++given & ((UINT64_C(1) << GIVEN_BITS) - 1);

	return salt() << SALT_SHIFT | count << GIVEN_SHIFT | (uint64_t)family << PLACE_BITS |
	       (place + 1);
}

struct dacsi_region *dacsi_region_find(uint64_t handle, enum dacsi_family family)
{
	uint64_t place = (handle & ((UINT64_C(1) << PLACE_BITS) - 1)) - 1;
	struct dacsi_region *region;

	if (place >= dacsi.region_places)
		return NULL;
	region = dacsi.regions[place];
	return region && region->number == handle && region->family == family ? region : NULL;
}

static bool grow(void)
{
	uint32_t places = dacsi.region_places ? dacsi.region_places * 2 : 16;
	struct dacsi_region **regions;

	if (places > DACSI_REGIONS)
		places = DACSI_REGIONS;
	if (places == dacsi.region_places)
		return false;
	regions = realloc(dacsi.regions, places * sizeof(*regions));
	if (!regions)
		return false;
	for (uint32_t i = dacsi.region_places; i < places; i++)
		regions[i] = NULL;
	dacsi.region_next = dacsi.region_places;
	dacsi.regions = regions;
	dacsi.region_places = places;
	return true;
}

struct dacsi_region *dacsi_region_new(enum dacsi_family family)
{
	struct dacsi_region *region = calloc(1, sizeof(*region));

	if (!region)
		return NULL;
	if (dacsi.region_count == dacsi.region_places && !grow()) {
		free(region);
		return NULL;
	}
	while (dacsi.regions[dacsi.region_next])
		dacsi.region_next = (dacsi.region_next + 1) % dacsi.region_places;
	dacsi.regions[dacsi.region_next] = region;
	dacsi.region_count++;
	region->family = family;
	region->number = number(dacsi.region_next, family);
	return region;
}

void dacsi_region_free(struct dacsi_region *region)
{
	uint32_t place = (uint32_t)(region->number & ((1U << PLACE_BITS) - 1)) - 1;

	dacsi.regions[place] = NULL;
	dacsi.region_count--;
	dacsi_mem_unregister(region, NULL);
	free(region);
}

void dacsi_region_orphan(const struct dacsi_process *process)
{
	for (uint32_t i = 0; i < dacsi.region_places; i++) {
		struct dacsi_region *region = dacsi.regions[i];

		if (!region)
			continue;
		if (region->process == process)
			region->process = NULL;
		dacsi_mem_unregister(region, process);
	}
}

/* SLMPM's side of them has ended with the context. */
void dacsi_region_end(void)
{
	for (uint32_t i = 0; i < dacsi.region_places; i++)
		if (dacsi.regions[i])
			dacsi_region_free(dacsi.regions[i]);
	free(dacsi.regions);
	dacsi.regions = NULL;
	dacsi.region_places = dacsi.region_next = 0;
}

/* ---- begin and end -------------------------------------------------------------------------- */

uint32_t dacsi_region_rights(uint32_t access)
{
	return (access & DACS_MEM_READ_ONLY ? SLMPM_READ : 0) |
	       (access & DACS_MEM_WRITE_ONLY ? SLMPM_WRITE : 0);
}

DACS_ERR_T dacsi_region_create(enum dacsi_family family, void *addr, uint64_t size,
			       uint32_t remote_access, uint32_t local_access, uint64_t *handle)
{
	struct dacsi_region *region;
	int rc = 0;

	if (!addr || !handle)
		return DACS_ERR_INVALID_ADDR;
	if (!size || size > INT64_MAX || (uintptr_t)addr + size < (uintptr_t)addr)
		return DACS_ERR_INVALID_SIZE;
	region = dacsi_region_new(family);
	if (!region)
		return DACS_ERR_NO_RESOURCE;
	region->owner = true;
	region->remote_access = remote_access;
	region->local_access = local_access;
	region->address = (uintptr_t)addr;
	region->size = size;
	if (remote_access)
		rc = slmpm_mem_register(dacsi.ctx, addr, size, dacsi_region_rights(remote_access),
					&region->mem);
	if (rc < 0) {
		dacsi_region_free(region);
		return rc == -SLMPM_EINVAL ? DACS_ERR_INVALID_ADDR : dacsi_code(rc);
	}
	*handle = region->number;
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_region_release(enum dacsi_family family, uint64_t *handle)
{
	struct dacsi_region *region;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	region = dacsi_region_find(*handle, family);
	if (!region)
		return DACS_ERR_INVALID_HANDLE;
	if (region->owner)
		return DACS_ERR_OWNER;
	/* The wid of a transfer that has ended may not have been asked. */
	if (region->active)
		dacsi_dma_poll_all();
	/* What else goes wrong means that the owner is gone: nobody has to be told. */
	if (region->active || slmpm_mem_release(region->rmem) == -SLMPM_EBUSY)
		return DACS_ERR_RESOURCE_BUSY;
	dacsi_region_free(region);
	*handle = 0;
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY while acceptors hold it, or a transfer of this process uses it. */
static DACS_ERR_T try_destroy(struct dacsi_region *region)
{
	int rc = 0;

	if (region->active)
		dacsi_dma_poll_all();
	if (region->active)
		return DACS_WID_BUSY;
	if (region->mem.id)
		rc = slmpm_mem_destroy(region->mem, 0);
	if (rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EAGAIN)
		return DACS_WID_BUSY;
	if (rc < 0)
		return dacsi_code(rc);
	dacsi_region_free(region);
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_region_destroy(enum dacsi_family family, uint64_t *handle)
{
	struct dacsi_region *region;
	struct dacsi_pause pause;
	uint64_t wanted;
	DACS_ERR_T rc;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	wanted = *handle;
	dacsi_pause_begin(&pause);
	for (;;) {
		region =
			dacsi_region_find(wanted, family); /* another thread may have been faster */
		if (!region)
			return DACS_ERR_INVALID_HANDLE;
		if (!region->owner)
			return DACS_ERR_NOT_OWNER;
		dacsi_share_withdraw(region);
		rc = try_destroy(region);
		if (rc != DACS_WID_BUSY)
			break;
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return rc;
	}
	if (rc == DACS_SUCCESS)
		*handle = 0;
	return rc;
}
