/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of a link, the first or a secondary one: from its fabric into packets and back. */
#include <string.h>

#include "slmpm/connect/control.h"
#include "slmpm/link/link.h"

int rounds_write(const struct rounds *t, struct wire_round *packet, int *fd)
{
	struct fabric_blob blob = {.fd = -1};
	int rc = t->port->domain->fabric->address(t->port, t->round, &blob);

	*packet = (struct wire_round){.round = LITTLE_32((uint32_t)t->round),
				      .link = LITTLE_16((uint16_t)t->link),
				      .life = LITTLE_16((uint16_t)t->life),
				      .blob_length = LITTLE_32(blob.length)};
	memcpy(packet->blob, blob.bytes, sizeof(blob.bytes));
	*fd = blob.fd;
	return rc < 0 ? rc : 0;
}

bool rounds_is_sound(const struct received *r)
{
	const struct wire_round *packet = &r->packet.round;

	return r->length == sizeof(*packet) && r->fd_count <= 1 &&
	       LITTLE_32(packet->blob_length) <= sizeof(packet->blob);
}

/* What somebody else called it for is counted, whatever became of it. */
static int rounds_answer(struct endpoint *ep, struct rounds *t, int rc)
{
	link_unauthenticated(ep, t->port);
	t->pending = rc == 2;
	t->round += rc == 0 || rc == 1;
	return rc;
}

int rounds_take(struct endpoint *ep, struct rounds *t, struct received *r)
{
	const struct wire_round *packet = &r->packet.round;
	struct fabric_blob blob = {.length = LITTLE_32(packet->blob_length),
				   .fd = r->fd_count ? r->fds[0] : -1};
	int rc;

	memcpy(blob.bytes, packet->blob, sizeof(blob.bytes));
	rc = t->port->domain->fabric->connect(t->port, t->round, &blob);
	r->fds[0] = blob.fd; /* what the fabric took is -1 now */
	return rounds_answer(ep, t, rc);
}

int rounds_ask(struct endpoint *ep, struct rounds *t)
{
	if (!t->pending)
		return 2;
	return rounds_answer(ep, t, t->port->domain->fabric->connect(t->port, t->round, NULL));
}
