/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of groups that wait for room, by peer: their groups may be gone by then. */
#include "slmpm/group/group.h"

#include <errno.h>
#include <stdlib.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"

struct unsent {
	struct list node;
	struct wire_group packet;
};

struct groups *groups_of(struct endpoint *ep)
{
	struct groups *of = ep->rooms->groups;

	if (of)
		return of;
	of = calloc(1, sizeof(*of));
	if (!of)
		return NULL;
	list_init(&of->stalled);
	list_init(&of->unsent);
	list_init(&of->ours);
	list_init(&of->theirs);
	of->ep = ep;
	ep->rooms->groups = of;
	return of;
}

bool groups_reserve(struct endpoint *ep)
{
	struct groups *of = groups_of(ep);

	if (of && !of->spare)
		of->spare = calloc(1, sizeof(*of->spare));
	return of && of->spare;
}

void groups_await_room(struct groups *of, int rc)
{
	bootstrap_await_room(of->ep, rc == -EAGAIN);
	/* No descriptor says when; where the peer has gone its end says so. */
	if (rc == -ETOOMANYREFS || rc == -ENOBUFS || rc == -ENOMEM) {
		list_remove(&of->stalled);
		list_append(&of->ep->ctx->stalled, &of->stalled);
	}
	if (rc < 0)
		context_changed(of->ep->ctx); /* a sleeper knows of neither */
}

bool groups_are_full(int rc)
{
	return rc == -EAGAIN || rc == -ETOOMANYREFS || rc == -ENOBUFS || rc == -ENOMEM;
}

static int pass_group(struct endpoint *ep, struct wire_group *packet)
{
	return bootstrap_pass(ep, packet, sizeof(*packet), WIRE_GROUP, NULL, 0);
}

int groups_send_unsent(struct groups *of)
{
	LIST_EACH_ENTRY(struct unsent, u, &of->unsent, node) {
		int rc = pass_group(of->ep, &u->packet);

		if (groups_are_full(rc))
			return rc;
		list_remove(&u->node);
		if (of->spare)
			free(u);
		else
			of->spare = u;
	}
	return 0;
}

bool groups_send(struct endpoint *ep, struct wire_group *packet)
{
	struct groups *of = ep->rooms->groups;
	int rc = of && !list_empty(&of->unsent) ? -EAGAIN : pass_group(ep, packet);
	struct unsent *u;

	if (!groups_are_full(rc))
		return true;
	of = groups_of(ep);
	u = of ? calloc(1, sizeof(*u)) : NULL;
	if (!u && of) {
		u = of->spare;
		of->spare = NULL;
	}
	if (!u)
		return false;
	u->packet = *packet;
	list_append(&of->unsent, &u->node);
	groups_await_room(of, rc);
	return true;
}

void groups_drop_unsent(struct groups *of)
{
	LIST_EACH_ENTRY(struct unsent, u, &of->unsent, node) {
		list_remove(&u->node);
		free(u);
	}
	free(of->spare);
	of->spare = NULL;
}
