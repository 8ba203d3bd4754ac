/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers with several links (links.h). */
#include "tests/lib/links.h"

#include <string.h>

void links_await(void)
{
	struct slmpm_event event = {.size = sizeof(event)};

	do
		EXPECT(slmpm_next_event((slmpm_ctx){0}, &event, PATIENCE), 1);
	while (event.type != SLMPM_EVENT_LINK_UP);
}

int links_told(const struct slmpm_done *done)
{
	return (int)((done->flags & SLMPM_ON_LINK_MASK) / SLMPM_ON_LINK(0)) - 1;
}

void links_expect(slmpm_req req, int link, const char *what)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0, "%s: ended with %d (%s)", what, done.status, slmpm_error_detail());
	CHECK(links_told(&done) == link, "%s: by link %d, not %d (%s)", what, links_told(&done),
	      link, slmpm_reason_name(done.reason));
}
