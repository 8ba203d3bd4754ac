/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of regions, mutexes and groups: the table. A handle is a place, the family, a count of
 * handles given out, and a number of this process: so stale ones, those of other families and those
 * of other processes are noticed.
 */
#include "slmpm/dacs/dacs_object.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define PLACE_BITS  16
#define FAMILY_BITS 2
#define GIVEN_SHIFT (PLACE_BITS + FAMILY_BITS)
#define GIVEN_BITS  22
#define SALT_SHIFT  (GIVEN_SHIFT + GIVEN_BITS)
#define SALT_BITS   (64 - SALT_SHIFT)

_Static_assert(DACSI_HANDLES < 1 << PLACE_BITS, "a place is not 0");
_Static_assert(DACSI_GROUP < 1 << FAMILY_BITS, "so many families");

static uint64_t own_salt(void)
{
	uint32_t random;

	if (!dacsi.handle_salt) {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			random = (uint32_t)dacsi_now() ^ (uint32_t)getpid() << 8;
		dacsi.handle_salt = random | 1;
	}
	return dacsi.handle_salt & ((UINT64_C(1) << SALT_BITS) - 1);
}

static uint64_t make_number(uint32_t place, enum dacsi_family family)
{
	static uint64_t given; /* under the lock; goes on through dacs_exit */
	uint64_t count = ++given & ((UINT64_C(1) << GIVEN_BITS) - 1);

	return own_salt() << SALT_SHIFT | count << GIVEN_SHIFT | (uint64_t)family << PLACE_BITS |
	       (place + 1);
}

void *dacsi_handle_find(uint64_t handle, enum dacsi_family family)
{
	uint64_t place = (handle & ((UINT64_C(1) << PLACE_BITS) - 1)) - 1;
	struct dacsi_object *object;

	if (place >= dacsi.handle_places)
		return NULL;
	object = dacsi.handles[place];
	if (!object || object->number != handle)
		return NULL;
	return family == DACSI_ANY || object->family == family ? object : NULL;
}

void *dacsi_handle_find_as(uint64_t handle, enum dacsi_family family, bool own, DACS_ERR_T *rc)
{
	struct dacsi_object *object = dacsi_handle_find(handle, family);

	*rc = DACS_ERR_INVALID_HANDLE;
	if (object)
		*rc = own ? DACS_ERR_NOT_OWNER : DACS_ERR_OWNER;
	return object && object->owner == own ? object : NULL;
}

static bool grow_table(void)
{
	uint32_t places = dacsi.handle_places ? dacsi.handle_places * 2 : 16;
	struct dacsi_object **handles;

	if (places > DACSI_HANDLES)
		places = DACSI_HANDLES;
	if (places == dacsi.handle_places)
		return false;
	handles = realloc(dacsi.handles, places * sizeof(*handles));
	if (!handles)
		return false;
	for (uint32_t i = dacsi.handle_places; i < places; i++)
		handles[i] = NULL;
	dacsi.handle_next = dacsi.handle_places;
	dacsi.handles = handles;
	dacsi.handle_places = places;
	return true;
}

bool dacsi_handle_give(struct dacsi_object *object, enum dacsi_family family)
{
	if (dacsi.handle_count == dacsi.handle_places && !grow_table())
		return false;
	while (dacsi.handles[dacsi.handle_next])
		dacsi.handle_next = (dacsi.handle_next + 1) % dacsi.handle_places;
	dacsi.handles[dacsi.handle_next] = object;
	dacsi.handle_count++;
	object->family = family;
	object->number = make_number(dacsi.handle_next, family);
	return true;
}

void dacsi_handle_take(const struct dacsi_object *object)
{
	dacsi.handles[(object->number & ((1U << PLACE_BITS) - 1)) - 1] = NULL;
	dacsi.handle_count--;
}

void dacsi_handle_end(void)
{
	free(dacsi.handles);
	dacsi.handles = NULL;
	dacsi.handle_places = dacsi.handle_next = 0;
}
