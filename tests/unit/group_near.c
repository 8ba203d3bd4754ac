/* SPDX-License-Identifier: BSD-3-Clause */
/* How many members share a machine's processors, which its part of a group alone does not show:
 * hosts may be namespaces of one kernel. As long as there is such a group. */
#include "slmpm/group/messages.h"

#include <unistd.h>

#include "tests/lib/test.h"

#define SHARERS 32

int main(void)
{
	const uint32_t processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	static struct context ctx;
	struct messages m = {0};
	struct group whole = {.messages = &m}, part = {.ctx = &ctx, .whole = &whole};

	whole.boards.size = SHARERS * processors;
	group_met(&part);
	CHECK(!ctx.sharers && !part.boards.crowded, "hosts of their own share");
	m.processors = processors;
	group_met(&part);
	CHECK(ctx.sharers == SHARERS, "%u share", ctx.sharers);
	CHECK(part.boards.crowded, "the part is not crowded");
	list_init(&ctx.groups);
	list_append(&ctx.groups, &part.node);
	group_goes(&part);
	CHECK(!ctx.sharers, "%u share, of a group that has gone", ctx.sharers);
	return 0;
}
