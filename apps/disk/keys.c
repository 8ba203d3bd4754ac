/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's keys: opened at first use, kept while they are of use. */
#include "apps/disk/controller.h"

#include <string.h>

static void release(struct open_key *o)
{
	if (o->region.id)
		slmpm_mem_release(o->region);
	*o = (struct open_key){0};
}

/* The entry that has been idle for longest; NULL: all are in use. */
static struct open_key *oldest(struct keys *k)
{
	struct open_key *found = NULL;

	for (int i = 0; i < KEYS; i++)
		if (!k->at[i].users && (!found || k->at[i].last < found->last))
			found = &k->at[i];
	return found;
}

struct open_key *keys_take(struct keys *k, const struct slmpm_key *key, int *error)
{
	struct open_key *o = NULL;

	for (int i = 0; i < KEYS && !o; i++)
		if (k->at[i].region.id && !memcmp(&k->at[i].key, key, sizeof(*key)))
			o = &k->at[i];
	if (!o) {
		o = oldest(k);
		*error = -SLMPM_ELIMIT;
		if (!o)
			return NULL;
		release(o);
		*error = slmpm_mem_open(k->host, key, &o->region);
		if (*error < 0) {
			o->region.id = 0;
			return NULL;
		}
		o->key = *key;
	}
	o->users++;
	o->last = ++k->clock;
	return o;
}

void keys_drop(struct open_key *o, bool forget)
{
	o->users--;
	if (forget)
		memset(&o->key, 0, sizeof(o->key)); /* found by nobody, and so soon the oldest */
	if (forget && !o->users)
		release(o);
}
