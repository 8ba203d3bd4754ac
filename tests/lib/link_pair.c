/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core does while connecting, for both sides at once. */
#include "tests/lib/link_pair.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/actor.h"

int link_pair_active = LEFT;

void link_pair_make(struct link_pair *p, const struct fabric *f, const struct fabric_config *config)
{
	int fds[2];

	memset(p, 0, sizeof(*p));
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0,
	      "no socket pair");
	for (int side = 0; side < SIDES; side++) {
		link_end_open(&p->end[side], f, &config[side], side, fds[side]);
		p->domain[side] = p->end[side].domain;
		p->link[side] = p->end[side].link;
		p->link[side]->active = side == link_pair_active;
	}
}

void link_pair_round(struct link_pair *p, int round, int rc[SIDES])
{
	struct fabric_blob blob[SIDES];

	for (int side = 0; side < SIDES; side++)
		link_ask(p->link[side], round, &blob[side]);
	for (int side = 0; side < SIDES; side++) {
		rc[side] = p->domain[side]->fabric->connect(p->link[side], round, &blob[!side]);
		link_forget(&blob[!side]);
	}
	link_pair_settle(p, round, rc, PATIENCE);
}

void link_pair_settle(struct link_pair *p, int round, int rc[SIDES], int ms)
{
	int64_t until = actor_now_ms() + ms;

	while (rc[LEFT] >= 0 && rc[RIGHT] >= 0 && (rc[LEFT] == 2 || rc[RIGHT] == 2) &&
	       actor_now_ms() < until) {
		struct pollfd fds[SIDES];

		for (int side = 0; side < SIDES; side++) {
			if (rc[side] == 2)
				rc[side] = p->domain[side]->fabric->connect(p->link[side], round,
									    NULL);
			fds[side] = (struct pollfd){
				.fd = rc[side] == 2 ? p->domain[side]->fd : -1,
				.events = POLLIN,
			};
		}
		if (fds[LEFT].fd >= 0 || fds[RIGHT].fd >= 0)
			(void)poll(fds, SIDES, 20);
	}
}

void link_pair_connect(struct link_pair *p)
{
	int rc[SIDES] = {1, 1};

	for (p->rounds = 0; rc[LEFT] == 1; p->rounds++) {
		CHECK(p->rounds < 16, "connecting goes on and on");
		link_pair_round(p, p->rounds, rc);
		CHECK(rc[LEFT] >= 0 && rc[RIGHT] == rc[LEFT], "round %d: %d and %d", p->rounds,
		      rc[LEFT], rc[RIGHT]);
	}
}

void link_pair_open(struct link_pair *p, const struct fabric *f, uint32_t segments,
		    uint32_t segment_size)
{
	struct fabric_config config[SIDES] = {link_config(segments, segment_size),
					      link_config(segments, segment_size)};

	link_pair_make(p, f, config);
	link_pair_connect(p);
}

void link_pair_close(struct link_pair *p)
{
	/* Each has heard the other's end by the time it closes: none waits for it. */
	for (int side = 0; side < SIDES; side++)
		p->domain[side]->fabric->disconnect(p->link[side]);
	for (int side = 0; side < SIDES; side++)
		link_end_close(&p->end[side]);
}

int link_pair_rounds(const struct fabric *f)
{
	struct link_pair p;

	link_pair_open(&p, f, 64, 64);
	link_pair_close(&p);
	return p.rounds;
}
