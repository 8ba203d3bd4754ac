/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many tries for links a peer may cause. Each costs a ring or a listener, and a ring lives on as long
 * as its descriptor lies in the peer's socket: there are never more of those than the pair may have
 * links, and no more tries in the pause that an honest peer makes before it tries a link again.
 */
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "slmpm/connect/secondary_parts.h"
#include "slmpm/base/clock.h"

/* Nothing that was said lies unread, or there is no telling. */
static bool has_read(const struct secondary *f)
{
	const struct control *c = f->ep->control;
	int unread = 0;

	return c->socket.fd < 0 || c->stream || ioctl(c->socket.fd, SIOCOUTQ, &unread) != 0 ||
	       unread == 0;
}

uint64_t secondary_bound(struct secondary *f)
{
	uint64_t now = clock_now();

	if (f->given && has_read(f))
		f->given = 0;
	if (f->given >= f->links)
		return now + SECONDARY_PAUSE;
	if (now >= f->since + SECONDARY_PAUSE) {
		f->since = now;
		f->begun = 0;
	}
	if (f->begun == f->links)
		return f->since + SECONDARY_PAUSE;
	f->begun++;
	return 0;
}

void secondary_address_due(struct secondary *f)
{
	f->given++;
}
