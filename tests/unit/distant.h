/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 of two members of a group without boards, and its connection with rank 1, by which packets
 * come. */
#ifndef TESTS_UNIT_DISTANT_H
#define TESTS_UNIT_DISTANT_H

#include <stdlib.h>

#include "slmpm/group/pairing.h"

static struct context distant_ctx;
static struct group distant_group;
static struct endpoint distant_ep;

static void distant_set_up(void)
{
	static struct member members[2];
	static struct distant distant;
	static struct pair pair;
	static struct rooms rooms = {.pair = &pair};
	static uint32_t seats[2] = {0, 1};
	static int32_t processes[2] = {100, 101};
	struct group *g = &distant_group;

	*g = (struct group){.ctx = &distant_ctx,
			    .state = GROUP_HAS_FORMED,
			    .members = members,
			    .seats = 2,
			    .apart = true,
			    .boards = {.size = 2, .seats = seats, .processes = processes}};
	list_init(&g->operations);
	free(distant.stands);
	distant = (struct distant){.stands = NULL};
	members[0] = (struct member){.group = g};
	members[1] = (struct member){.group = g, .distant = &distant, .pair = &pair};
	pair = (struct pair){.ep = &distant_ep, .member = &members[1]};
	distant_ep.ctx = &distant_ctx;
	distant_ep.rooms = &rooms;
}

#endif
