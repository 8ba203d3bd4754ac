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

void links_warm(slmpm_ctx ctx, slmpm_peer a, slmpm_peer b)
{
	struct slmpm_link_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE;
	unsigned idle = 0;

	for (uint32_t link = 0; slmpm_link_query(a, link, &info) == 0; link++) {
		OK(slmpm_link_use(a, link));
		while (info.state != SLMPM_LINK_UP) {
			CHECK(actor_now_ms() < until, "link %u does not stand: %s", link,
			      info.reason);
			if (slmpm_progress(ctx) <= 0)
				actor_idle(ctx, &idle);
			OK(slmpm_link_query(a, link, &info));
		}
	}
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	actor_nap(ctx); /* what lingers is closed */
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
