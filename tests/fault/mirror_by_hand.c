/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * A leader made by hand that breaks no rule: of a publication that is here in part nobody reads
 * anything, and what it sends, or asks for, before it knows that its follower has left is no
 * offence and stored nowhere.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define TAG   7
#define BYTES 4096

static _Alignas(8) unsigned char room[BYTES];
static char address[64];

/* ---- the leader ------------------------------------------------------------------------------ */

static void change(struct raw_peer *p, uint8_t opcode, uint64_t number, uint64_t at)
{
	static const unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	raw_post(p, opcode, number, wire_route(0, 0), at, bytes, sizeof(bytes));
	raw_ring_bell(p);
}

static void ask(struct raw_peer *p)
{
	const struct wire_mirror w = {.size = LITTLE_64(BYTES),
				      .tag = LITTLE_32(TAG),
				      .how = LITTLE_32(SLMPM_MIRROR_LEAD)};

	raw_post(p, WIRE_MIRROR_ASK, 0, 0, 0, &w, sizeof(w));
	raw_ring_bell(p);
}

static void await(struct raw_peer *p, uint8_t kind)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet = {.kind = 0};

	while (packet.kind != kind) {
		while (ring_peek(&p->r, &packet) != 1)
			CHECK(actor_now_ms() < until, "no packet of kind %u comes", kind);
		ring_release(&p->r, &packet);
	}
}

static int lead(void *unused)
{
	const struct wire_mirror end = {0};
	struct raw_peer p;

	(void)unused;
	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURE_MIRROR);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	await(&p, WIRE_MIRROR_ASK);
	ask(&p);
	change(&p, WIRE_MIRROR_LAST, 1, 0);
	await(&p, WIRE_SEND_ONLY);
	change(&p, WIRE_MIRROR_PART, 2, 8);
	await(&p, WIRE_SEND_ONLY); /* it has seen the part */
	change(&p, WIRE_MIRROR_LAST, 2, 16);
	await(&p, WIRE_MIRROR_END);
	change(&p, WIRE_MIRROR_PART, 3, 24); /* as if all of that had been on its way */
	change(&p, WIRE_MIRROR_LAST, 3, 32);
	raw_post(&p, WIRE_MIRROR_STORED, 0, wire_route(0, 0), 0, NULL, 0);
	raw_post(&p, WIRE_MIRROR_END, 0, wire_route(TAG, 0), 0, &end, 0);
	ask(&p);
	raw_send(&p, 1, "left", 4);
	raw_ring_bell(&p);
	await(&p, WIRE_SEND_ONLY);
	raw_post(&p, WIRE_MIRROR_END, 1, wire_route(TAG, 0), 0, &end, 0);
	raw_ring_bell(&p);
	await(&p, WIRE_MIRROR_ASK); /* for a new one */
	ask(&p);
	change(&p, WIRE_MIRROR_LAST, 9, 40);
	await(&p, WIRE_SEND_ONLY);
	raw_end(&p);
	return 0;
}

/* ---- its follower ---------------------------------------------------------------------------- */

static struct slmpm_mirror_info info_of(slmpm_mirror m, slmpm_peer peer)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	OK(slmpm_mirror_query(m, peer, &info));
	return info;
}

static void of_a_part(slmpm_ctx ctx, slmpm_mirror m, slmpm_peer peer)
{
	const struct slmpm_span all = {0, BYTES};
	static unsigned char copy[BYTES];
	int64_t until = actor_now_ms() + PATIENCE;
	uint64_t turn, before, sequence = 1;

	OK(slmpm_mirror_enter(m, &before));
	OK(slmpm_send(peer, 1, "go on", 5, PATIENCE));
	while (info_of(m, peer).received_packets < 2) {
		(void)slmpm_progress(ctx);
		CHECK(actor_now_ms() < until, "no part comes");
	}
	CHECK(room[8] == 1 && !info_of(m, peer).whole && info_of(m, peer).sequence == 1,
	      "publication %d is said to be whole", (int)info_of(m, peer).sequence);
	EXPECT(slmpm_mirror_enter(m, &turn), -SLMPM_EAGAIN);
	EXPECT(slmpm_mirror_leave(m, before), -SLMPM_EAGAIN);
	EXPECT(slmpm_mirror_snapshot(m, peer, &all, 1, copy, NULL, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_mirror_wait(m, peer, &sequence, 0), -SLMPM_EAGAIN);
	OK(slmpm_send(peer, 1, "the rest", 8, PATIENCE));
	OK(slmpm_mirror_wait(m, peer, &sequence, PATIENCE));
	EXPECT(sequence, 2);
	OK(slmpm_mirror_enter(m, &turn));
	CHECK(info_of(m, peer).whole && room[16] == 1, "publication 2 is not whole");
	OK(slmpm_mirror_leave(m, turn));
	OK(slmpm_mirror_snapshot(m, peer, &all, 1, copy, NULL, 0));
	CHECK(!memcmp(copy, room, BYTES), "another snapshot");
}

int main(void)
{
	struct slmpm_peer_info peer_info = {.size = sizeof(peer_info)};
	slmpm_listener listener;
	slmpm_mirror m;
	slmpm_peer peer;
	slmpm_ctx ctx;
	char url[80], said[8];
	pid_t pid;

	settings_one_link("shm"); /* as the raw peer's */
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	snprintf(address, sizeof(address), "mirror-by-hand-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(lead, NULL, 25);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_mirror_create(ctx, room, BYTES, NULL, &m));
	OK(slmpm_mirror_attach(m, peer, TAG, SLMPM_MIRROR_FOLLOW, PATIENCE));
	of_a_part(ctx, m, peer);
	OK(slmpm_mirror_detach(m, peer));
	EXPECT(slmpm_recv(peer, 1, said, sizeof(said), NULL, PATIENCE), 4);
	OK(slmpm_peer_query(peer, &peer_info));
	CHECK(peer_info.state == SLMPM_PEER_UP, "it is no offence: state %u", peer_info.state);
	for (size_t i = 24; i < BYTES; i++)
		CHECK(!room[i], "byte %zu was stored after the end", i);
	OK(slmpm_send(peer, 1, "answer", 6, PATIENCE));
	OK(slmpm_mirror_attach(m, peer, TAG, SLMPM_MIRROR_FOLLOW, PATIENCE));
	EXPECT(info_of(m, peer).sequence, 9);
	CHECK(room[40] == 1 && !room[24], "the new one");
	OK(slmpm_send(peer, 1, "end", 3, PATIENCE));
	CHECK(child_wait(pid) == 0, "the leader: see above");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
