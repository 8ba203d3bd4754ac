/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/* libs: -lcrypto */
/*
 * Long answers over TCP, whose bytes would go straight to where the operation they name has its
 * memory: one to a put, whose source is only read, and ones that are longer than what was asked
 * for.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/guarded.h"
#include "tests/lib/raw_key.h"
#include "tests/lib/raw_net_trial.h"

#define PACKET 100000u /* the longest, as agreed: it lands */
#define SIZE   80000u  /* of each operation */

enum { PUT, GET }; /* notes: what is under way */

static int go[2]; /* a pipe: it is under way */
static unsigned char *base;
static unsigned char before; /* each byte of it */
static slmpm_mem mem;
static slmpm_req req;

/* To the first operation there is. */
static void answer(uint8_t kind, uint64_t extent, uint32_t length)
{
	static unsigned char packet[PACKET];
	const uint64_t head[3] = {1, wire_route(0, 0), wire_extent(extent, 0)};

	memset(packet, 0x77, sizeof(packet));
	raw_net_post(&net, kind, head, packet, length);
}

static void as_much(struct raw_peer *p)
{
	(void)p;
	answer(WIRE_READ_ONLY, SIZE, SIZE);
}

static void more(struct raw_peer *p)
{
	(void)p;
	answer(WIRE_READ_ONLY, PACKET, PACKET);
}

static void more_than_it_says(struct raw_peer *p)
{
	(void)p;
	answer(WIRE_READ_ONLY, SIZE, PACKET);
}

static void a_part_of_more(struct raw_peer *p)
{
	(void)p;
	answer(WIRE_READ_FIRST, SIZE, PACKET);
}

/* clang-format off */
static const struct offence offences[] = {
	{"R8", "bytes of a put", as_much, "response to no read", PUT},
	{"R5", "more than was asked for", more, "length or offset of a read", GET},
	{"R5", "more than it says", more_than_it_says, "length or offset of a read", GET},
	{"R5", "a part that is more", a_part_of_more, "length or offset of a read", GET},
};
/* clang-format on */

/* ---- how they meet --------------------------------------------------------------------------- */

static void come(struct raw_peer *p, const char *at)
{
	struct wire_grant g = raw_keys_grant(SIZE);
	const uint64_t head[3] = {0, 0, wire_extent(1, 0)};
	char ready;

	net_trial_connect(p, at, 1);
	net.control.hello.features = LITTLE_64(WIRE_FEATURE_MEMORY | WIRE_FEATURE_ACTIVE);
	net.control.hello.packet_max = LITTLE_64(PACKET);
	net_trial_greet();
	raw_net_post(&net, WIRE_REGION_GRANT, head, &g.key, sizeof(g.key));
	raw_net_send(&net, "legal", 5);
	CHECK(read(go[0], &ready, 1) == 1, "nothing is asked");
}

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	struct slmpm_how answered = {.size = sizeof(answered), .flags = SLMPM_REMOTE};
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);
	slmpm_rmem rmem;

	OK(slmpm_mem_open(peer, &raw_keys->foreign, &rmem));
	if (o->note == PUT)
		OK(slmpm_put(rmem, 0, base, SIZE, &answered, &req));
	else
		OK(slmpm_get(rmem, 0, base, SIZE, NULL, &req));
	CHECK(write(go[1], "", 1) == 1, "it has left");
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_done ended;

	(void)peer;
	for (size_t i = 0; i < SIZE && o->note == PUT; i++)
		CHECK(base[i] == before, "%s: byte %zu was written", o->name, i);
	CHECK(guarded_is_whole(base, SIZE), "%s: what lies around it", o->name);
	EXPECT(slmpm_wait(&req, 1, &ended, PATIENCE), 0);
	EXPECT(ended.status, -SLMPM_EPROTO);
	memset(base, before, SIZE);
}

int main(void)
{
	static const struct trial trial = {come, net_trial_hear_end, net_trial_leave, meet, NULL,
					   see};
	struct victim v;

	net_trial_one_link();
	setenv("SLMPM_RMA", "ring", 1);
	CHECK(pipe(go) == 0, "no pipe");
	raw_keys_make();
	victim_open(&v, "tcp:");
	base = guarded_new(SIZE);
	before = base[0];
	OK(slmpm_mem_register(v.ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	SURVIVE(&v, &trial, offences);
	victim_end(&v);
	return 0;
}
