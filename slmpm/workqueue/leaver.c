/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that were closed while entries named them. Those entries fail as SLMPM_ECLOSED in their
 * turn, however late that is, and their queue still knows what the peer was called.
 */
#include "slmpm/workqueue/leaver.h"

#include <stdio.h>
#include <stdlib.h>

#include "slmpm/workqueue/workqueue.h"

struct leaver {
	struct list node; /* of its queue's */
	uint64_t peer;
	char name[sizeof(((struct life *)NULL)->name)];
};

static struct leaver *find_leaver(const struct workqueue *wq, uint64_t peer)
{
	LIST_EACH_ENTRY(struct leaver, l, &wq->leavers, node)
		if (l->peer == peer)
			return l;
	return NULL;
}

const char *leaver_name(const struct workqueue *wq, slmpm_peer peer)
{
	const struct leaver *l = find_leaver(wq, peer.id);

	return l ? l->name : NULL;
}

void leavers_forget(struct workqueue *wq)
{
	LIST_EACH(at, &wq->leavers) {
		list_remove(at);
		free(LIST_ENTRY(at, struct leaver, node));
	}
}

void leaver_note(struct workqueue *wq, const struct endpoint *ep)
{
	struct leaver *l = malloc(sizeof(*l));

	if (!l) /* it has no name then */
		return;
	l->peer = handle_id(ep);
	snprintf(l->name, sizeof(l->name), "%s", ep->life->name);
	list_append(&wq->leavers, &l->node);
}
