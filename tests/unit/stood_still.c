/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a peer without links has for another one, by a clock of the test's: SLMPM_DEAD_MS while
 * this process looks. How long it stood still does not count, up to a limit.
 */
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "slmpm/connect/secondary.h"
#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"

#define LOOKS_EACH 8 /* in a patience, of who does not stand still */
#define BEGIN      UINT64_C(1000000000000)
#define DEAD_MS    "10000"

static const struct rig_shape shape = {
	.segments = 128, .segment_size = 64, .log = 4096, .land_min = UINT32_MAX, .paths = 1};

struct lonely { /* an endpoint whose only link is lost, as far as secondary_events.c looks at it */
	struct rig rig;
	struct context ctx;
	struct endpoint ep;
	struct rooms rooms;
	struct control control;
	struct secondary secondary;
	uint64_t patience, now;
};

static void inspect(struct lonely *l, uint64_t later)
{
	l->now += later;
	(void)secondary_deadlines(&l->ctx, l->now);
}

static bool hopes(const struct lonely *l)
{
	return l->secondary.alone != NEVER;
}

static void begin(struct lonely *l)
{
	struct fabric_arrival a;

	memset(l, 0, sizeof(*l));
	rig_open(&l->rig, fabric_find("shm"), &shape);
	bond_may_reconnect(l->rig.link[LEFT], true);
	list_init(&l->ctx.secondary);
	l->control.socket.fd = 0; /* there is one; nobody uses it */
	l->rooms = (struct rooms){.secondary = &l->secondary, .control = &l->control};
	l->ep = (struct endpoint){.ctx = &l->ctx,
				  .state = SLMPM_PEER_UP,
				  .rooms = &l->rooms,
				  .link.port = l->rig.link[LEFT]};
	l->secondary = (struct secondary){
		.ep = &l->ep, .links = 1, .wanted = -1, .may_reconnect = true, .alone = NEVER};
	l->secondary.link[0].due = l->secondary.link[0].tell = NEVER;
	list_append(&l->ctx.secondary, &l->secondary.node);
	l->patience = strtoull(DEAD_MS, NULL, 10) * 1000000;
	l->now = BEGIN;
	rig_cut(&l->rig, 0, true);
	CHECK(bond_fabric.poll(l->rig.link[LEFT], &a, 1) == 0, "a packet, or no hope");
	inspect(l, 0);
	CHECK(hopes(l), "it does not hope at first");
}

/* Looks on, and hopes for a patience by now; then no more. */
static void looks_on(struct lonely *l, int inspections, const char *what)
{
	for (int i = 1; i <= inspections; i++) {
		CHECK(hopes(l), "%s: no hope after %d looks", what, i - 1);
		inspect(l, l->patience / LOOKS_EACH);
	}
	CHECK(!hopes(l), "%s: it hopes still", what);
	CHECK(bond_fabric.poll(l->rig.link[LEFT], &(struct fabric_arrival){.data = NULL}, 1) < 0,
	      "%s: it is not lost", what);
	rig_close(&l->rig);
}

static struct lonely lonely;

static void who_looks(void)
{
	begin(&lonely);
	looks_on(&lonely, LOOKS_EACH, "who looks");
}

static void who_stands_still(void)
{
	begin(&lonely);
	inspect(&lonely, lonely.patience / 4);
	inspect(&lonely, 2 * lonely.patience);
	looks_on(&lonely, LOOKS_EACH - LOOKS_EACH / 4, "who stood still");
}

/* Each time it stands still for a patience. */
static void who_only_stands_still(void)
{
	int inspections = 0;

	begin(&lonely);
	for (; hopes(&lonely) && inspections < 100; inspections++)
		inspect(&lonely, lonely.patience);
	CHECK(inspections > 2 && inspections < 10, "who only stands still: no hope after %d looks",
	      inspections);
	rig_close(&lonely.rig);
}

int main(void)
{
	setenv("SLMPM_DEAD_MS", DEAD_MS, 1);
	who_looks();
	who_stands_still();
	who_only_stands_still();
	return 0;
}
