/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a shared object: its members, its end. A word's handler notes what it says, no more;
 * what follows for others is carried out by dacsi_object_settle, from a call of DaCS. */
#include "slmpm/dacs/dacs_object.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define ROUNDS 16 /* of settling at once: words may come in meanwhile */

/* ---- handles -------------------------------------------------------------------------------- */

/* A handle is a place, the family, a count of handles given out, and a number of this process:
 * stale, of another family or of another process it is noticed. */
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

/* Gives OBJECT its number; false: no memory, or too many. */
static bool give_handle(struct dacsi_object *object, enum dacsi_family family)
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

/* ---- begin and end -------------------------------------------------------------------------- */

static const struct dacsi_kind *kind_of(const struct dacsi_object *object)
{
	return dacsi_parts.kinds[object->family];
}

struct dacsi_object *dacsi_object_new(enum dacsi_family family, struct dacsi_process *owner)
{
	struct dacsi_object *object = calloc(1, dacsi_parts.kinds[family]->size);

	if (!object || !give_handle(object, family)) {
		free(object);
		return NULL;
	}
	object->owner = !owner;
	object->process = owner;
	return object;
}

void dacsi_object_free(struct dacsi_object *object)
{
	struct dacsi_object **link = &dacsi.due;
	struct dacsi_member *member;

	while ((member = object->members)) {
		dacsi.awaited -= member->asks;
		if (member->process)
			member->process->member_count--;
		object->members = member->next;
		free(member);
	}
	while (*link && *link != object)
		link = &(*link)->due_next;
	if (*link)
		*link = object->due_next;
	if (kind_of(object)->forget)
		kind_of(object)->forget(object, NULL);
	dacsi.handles[(object->number & ((1U << PLACE_BITS) - 1)) - 1] = NULL;
	dacsi.handle_count--;
	free(object);
}

DACS_ERR_T dacsi_object_check(const struct dacsi_object *object)
{
	if (object->owner)
		return DACS_SUCCESS;
	if (object->unknown)
		return DACS_ERR_INVALID_HANDLE;
	return object->process ? dacsi_process_channel(object->process) : DACS_ERR_DE_TERM;
}

/* ---- members -------------------------------------------------------------------------------- */

struct dacsi_member *dacsi_member_find(const struct dacsi_object *object,
				       const struct dacsi_process *process)
{
	struct dacsi_member *member = object->members;

	while (member && (member->process != process || member->left))
		member = member->next;
	return member;
}

struct dacsi_member *dacsi_member_join(struct dacsi_object *object, struct dacsi_process *process)
{
	struct dacsi_member *member = calloc(1, sizeof(*member));

	if (!member)
		return NULL;
	member->process = process;
	member->outcome = DACS_WID_BUSY;
	member->next = object->members;
	object->members = member;
	if (process)
		process->member_count++;
	return member;
}

/* It is freed by settling: in a handler another caller may be using it. */
void dacsi_member_leave(struct dacsi_object *object, struct dacsi_member *member,
			DACS_ERR_T outcome)
{
	if (member->outcome == DACS_WID_BUSY)
		member->outcome = outcome;
	dacsi.awaited -= member->asks;
	member->asks = 0;
	member->left = true;
	if (member->process)
		member->process->member_count--;
	member->process = NULL;
	if (kind_of(object)->left)
		kind_of(object)->left(object, member, outcome == DACS_ERR_DE_TERM);
	dacsi_object_due(object);
}

void dacsi_member_check(struct dacsi_object *object)
{
	for (struct dacsi_member *member = object->members; member; member = member->next)
		if (member->process && dacsi_process_channel(member->process) != DACS_SUCCESS)
			dacsi_member_leave(object, member, DACS_ERR_DE_TERM);
}

static void leave_all(const struct dacsi_process *process)
{
	for (uint32_t i = 0; process->member_count && i < dacsi.handle_places; i++) {
		struct dacsi_object *object = dacsi.handles[i];
		struct dacsi_member *member = object ? object->members : NULL;

		for (; member; member = member->next)
			if (member->process == process)
				dacsi_member_leave(object, member, DACS_ERR_DE_TERM);
	}
}

static void leave_if_ended(struct dacsi_process *process)
{
	if (process->member_count && dacsi_process_channel(process) != DACS_SUCCESS)
		leave_all(process);
}

/* ---- settling ------------------------------------------------------------------------------- */

void dacsi_object_due(struct dacsi_object *object)
{
	if (object->due)
		return;
	object->due = true;
	object->due_next = dacsi.due;
	dacsi.due = object;
}

static void free_left(struct dacsi_object *object)
{
	struct dacsi_member **link = &object->members, *member;

	while ((member = *link)) {
		if (!member->left || member->watchers) {
			link = &member->next;
			continue;
		}
		*link = member->next;
		free(member);
	}
}

bool dacsi_object_settle(void)
{
	bool news;

	if (dacsi.awaited) {
		for (struct dacsi_process *p = dacsi.children; p; p = p->next)
			leave_if_ended(p);
		if (dacsi.parent)
			leave_if_ended(dacsi.parent);
	}
	news = dacsi.due != NULL;
	for (int i = 0; i < ROUNDS && dacsi.due; i++) {
		struct dacsi_object *object = dacsi.due, *next;

		for (dacsi.due = NULL; object; object = next) {
			next = object->due_next;
			object->due = false;
			free_left(object);
			if (kind_of(object)->settle)
				kind_of(object)->settle(object);
		}
	}
	return news;
}

/* ---- the end of a process, and of this one -------------------------------------------------- */

void dacsi_object_forget(struct dacsi_process *process)
{
	leave_all(process);
	dacsi_accept_drop(process);
	for (uint32_t i = 0; i < dacsi.handle_places; i++) {
		struct dacsi_object *object = dacsi.handles[i];

		if (!object)
			continue;
		if (object->process == process)
			object->process = NULL;
		if (kind_of(object)->forget)
			kind_of(object)->forget(object, process);
	}
}

/* SLMPM's side of them has ended with the context. */
void dacsi_object_end(void)
{
	for (uint32_t i = 0; i < dacsi.handle_places; i++)
		if (dacsi.handles[i])
			dacsi_object_free(dacsi.handles[i]);
	free(dacsi.handles);
	dacsi.handles = NULL;
	dacsi.handle_places = dacsi.handle_next = 0;
}

DACS_ERR_T dacsi_object_until(enum dacsi_family family, bool own, uint64_t *handle,
			      DACS_ERR_T (*ends)(struct dacsi_object *object))
{
	DACS_ERR_T rc = dacsi_enter_with(handle);
	struct dacsi_object *object;
	struct dacsi_pause pause;
	uint64_t wanted;

	if (rc != DACS_SUCCESS)
		return rc;
	wanted = *handle;
	dacsi_pause_begin(&pause);
	do {
		object = dacsi_handle_find_as(wanted, family, own,
					      &rc); /* another thread may be faster */
		if (object)
			rc = ends(object);
	} while (rc == DACS_WID_BUSY && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	if (rc == DACS_SUCCESS)
		*handle = 0;
	return dacsi_leave(rc);
}
