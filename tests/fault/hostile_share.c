/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Shares of puts that nobody offered, out of order and out of bounds: each ends the channel by its
 * name. What merely names no region of the two is answered: nothing of it was copied.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabrics/fabric.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"

#define LENGTH 100000

static unsigned char room[LENGTH];
static const char *address;

static void offer(struct raw_peer *p, uint64_t seq, uint64_t at, uint64_t length, uint32_t how)
{
	struct wire_share w = {.target = {LITTLE_64(at), LITTLE_64(length), LITTLE_32(1), 0, {7}},
			       .offset = LITTLE_64(at),
			       .grant = LITTLE_32(1),
			       .how = LITTLE_32(how)};

	raw_post(p, WIRE_SHARE, seq, 0, 0, &w, sizeof(w));
}

static void half(struct raw_peer *p)
{
	raw_post(p, WIRE_SHARE, 1, 0, 0, room, sizeof(struct wire_share) - 1);
}

static void ahead(struct raw_peer *p)
{
	offer(p, 2, 0, LENGTH, 0);
}

static void unknown_how(struct raw_peer *p)
{
	offer(p, 1, 0, LENGTH, WIRE_SHARE_ENGINE | (WIRE_SHARE_HOW + 1));
}

static void without_engine(struct raw_peer *p)
{
	offer(p, 1, 0, LENGTH, WIRE_SHARE_GET);
}

static void by_grant_and_address(struct raw_peer *p)
{
	offer(p, 1, 0, LENGTH, WIRE_SHARE_ENGINE | WIRE_SHARE_ADDRESS);
}

static void past_all_memory(struct raw_peer *p)
{
	struct wire_share w = {.target = {0, LITTLE_64(LENGTH), LITTLE_32(1), 0, {7}},
			       .how = LITTLE_32(WIRE_SHARE_ENGINE | WIRE_SHARE_ADDRESS)};

	w.offset = LITTLE_64(UINT64_MAX - LENGTH / 2);
	raw_post(p, WIRE_SHARE, 1, 0, 0, &w, sizeof(w));
}

static void with_noise_behind(struct raw_peer *p)
{
	struct {
		struct wire_share w;
		uint64_t noise;
	} o = {.w = {.target = {0, LITTLE_64(LENGTH), LITTLE_32(1), 0, {7}},
		     .how = LITTLE_32(WIRE_SHARE_ENGINE)}};

	raw_post(p, WIRE_SHARE, 1, 0, 0, &o, sizeof(o));
}

static void of_nothing(struct raw_peer *p)
{
	offer(p, 1, 0, 0, 0);
}

static void of_everything(struct raw_peer *p)
{
	offer(p, 1, 0, SLMPM_MESSAGE_MAX + 1, 0);
}

static void flagged(struct raw_peer *p)
{
	raw_post(p, WIRE_SHARE_GIVE, 1, 0, wire_extent(0, WIRE_FLAG_NOTIFY), NULL, 0);
}

static void gives_nothing_offered(struct raw_peer *p)
{
	raw_post(p, WIRE_SHARE_GIVE, 0, 0, 0, NULL, 0);
}

static void gives_more(struct raw_peer *p)
{
	offer(p, 1, 0, LENGTH, 0);
	raw_post(p, WIRE_SHARE_GIVE, 1, 0, LENGTH + 1, NULL, 0);
}

static void gives_back_and_forth(struct raw_peer *p)
{
	offer(p, 1, 0, LENGTH, 0);
	raw_post(p, WIRE_SHARE_GIVE, 1, 0, 10, NULL, 0);
	raw_post(p, WIRE_SHARE_GIVE, 1, 0, 11, NULL, 0);
}

static void takes_nothing_offered(struct raw_peer *p)
{
	raw_post(p, WIRE_SHARE_TAKE, 0, 0, 0, NULL, 0);
}

static void ends_nothing_offered(struct raw_peer *p)
{
	raw_post(p, WIRE_SHARE_OVER, 1, 0, 0, NULL, 0);
}

static const struct offence offences[] = {
	{"R5", "half an offer", half, "offer of a share", 0},
	{"R8", "an offer ahead", ahead, "offer of a share", 0},
	{"R14", "an offer for what is not known", unknown_how, "offer of a share", 0},
	{"R14", "a get without engine", without_engine, "offer of a share", 0},
	{"R14", "an address and a grant", by_grant_and_address, "offer of a share", 0},
	{"R5", "an address past all memory", past_all_memory, "offer of a share", 0},
	{"R5", "an offer with noise behind", with_noise_behind, "offer of a share", 0},
	{"R5", "an offer of nothing", of_nothing, "offer of a share", 0},
	{"R5", "an offer of everything", of_everything, "offer of a share", 0},
	{"R6", "a flag", flagged, "share of a put", 0},
	{"R8", "giving of nothing", gives_nothing_offered, "share of a put", 0},
	{"R5", "giving of more", gives_more, "share of a put", 0},
	{"R5", "giving back and forth", gives_back_and_forth, "share of a put", 0},
	{"R8", "taking of nothing", takes_nothing_offered, "share of a put", 0},
	{"R8", "the end of nothing", ends_nothing_offered, "share of a put", 0},
};

/* ---- regions that are not there -------------------------------------------------------------- */

static int name_none(void *arg)
{
	static const uint64_t at[] = {0, 1, UINT64_MAX - LENGTH, UINT64_MAX};
	static const uint32_t how[] = {0, WIRE_SHARE_ENGINE, WIRE_SHARE_ENGINE | WIRE_SHARE_GET, 0};
	struct ring_packet packet;
	struct raw_peer p;

	(void)arg;
	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	for (uint64_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		bool over = false;
		uint64_t head[3];

		offer(&p, i + 1, at[i], LENGTH, how[i]);
		raw_ring_bell(&p);
		while (!over) {
			int rc = ring_peek(&p.r, &packet);

			CHECK(rc >= 0, "the ring is broken");
			if (rc != 1)
				continue;
			over = packet.kind == WIRE_SHARE_OVER;
			CHECK(packet.kind != WIRE_SHARE_TAKE, "it copies");
			memcpy(head, packet.data, sizeof(head));
			CHECK(!over || (head[0] == i + 1 && !head[1] && !head[2]), "its end");
			ring_release(&p.r, &packet);
		}
	}
	raw_send(&p, 1, room, 10);
	raw_ring_bell(&p);
	raw_end(&p);
	return 0;
}

static void answer(slmpm_listener listener)
{
	pid_t child = child_start(name_none, NULL, 20);
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, room, sizeof(room), NULL, PATIENCE), 10);
	(void)slmpm_close(peer, PATIENCE);
	CHECK(child_wait(child) == 0, "see above");
}

int main(void)
{
	static const struct trial trial = {0};
	struct victim v;

	setenv("SLMPM_PACKET_MAX", "8k", 1);
	setenv("SLMPM_EAGER_MAX", "32k", 1);
	setenv("SLMPM_ENGINE", "thread", 1);
	victim_begin(&v, "hostile-share");
	address = v.address;
	SURVIVE(&v, &trial, offences);
	answer(v.listener);
	victim_end(&v);
	return 0;
}
