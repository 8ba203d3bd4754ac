/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Long packets over TCP that say of themselves what is not so: their bytes would go straight to
 * where the header says, before anybody else looks at it. What lies around a region, or in one that
 * may only be read, stays as it is; each ends the channel by its name.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/guarded.h"
#include "tests/lib/raw_key.h"
#include "tests/lib/raw_net_trial.h"

#define PACKET 100000u /* the longest, as agreed: it lands */
#define FIRST  PACKET  /* bytes of a Write in the first one */
#define SIZE   (2 * PACKET + RAW_LEAD)
#define WRITE  "length or offset of a Write"

/* Notes: how many bytes of the region may have changed. */
enum { NOTHING, BEGUN };

static int go[2]; /* a pipe: the keys are there */
static unsigned char *base;
static unsigned char before; /* each byte of it */
static slmpm_mem mem;

static void say(uint8_t kind, uint64_t seq, uint64_t extent, const void *lead, uint32_t length)
{
	static unsigned char packet[SIZE];
	const uint64_t head[3] = {seq, wire_route(7, 0), wire_extent(extent, 0)};

	memset(packet, 0x77, length);
	if (lead)
		memcpy(packet, lead, RAW_LEAD);
	raw_net_post(&net, kind, head, packet, length);
}

/* ---- Writes ---------------------------------------------------------------------------------- */

/* TOTAL bytes, up to the region's end. */
static void begin(const struct slmpm_key *key, uint64_t total)
{
	struct raw_request r = raw_ask_with(key, SIZE - total, total);

	say(WIRE_WRITE_FIRST, 1, total, &r, RAW_LEAD + PACKET);
}

static void middle_beyond(struct raw_peer *p)
{
	(void)p;
	begin(&raw_keys->read_write, FIRST + 70000);
	say(WIRE_WRITE_MIDDLE, 1, FIRST, NULL, PACKET);
}

static void last_beyond(struct raw_peer *p)
{
	(void)p;
	begin(&raw_keys->read_write, FIRST + 70000);
	say(WIRE_WRITE_LAST, 1, FIRST, NULL, PACKET);
}

static void middle_elsewhere(struct raw_peer *p)
{
	(void)p;
	begin(&raw_keys->read_write, SIZE);
	say(WIRE_WRITE_MIDDLE, 1, FIRST + 8, NULL, PACKET);
}

static void middle_again(struct raw_peer *p)
{
	(void)p;
	begin(&raw_keys->read_write, SIZE);
	say(WIRE_WRITE_MIDDLE, 1, 0, NULL, PACKET);
}

static void middle_of_another(struct raw_peer *p)
{
	(void)p;
	begin(&raw_keys->read_write, SIZE);
	say(WIRE_WRITE_MIDDLE, 2, FIRST, NULL, PACKET);
}

/* Legal, and refused; then it ends by another lie. */
static void may_only_read(struct raw_peer *p)
{
	(void)p;
	begin(&raw_keys->read_only, SIZE);
	say(WIRE_WRITE_MIDDLE, 1, FIRST, NULL, PACKET);
	say(WIRE_WRITE_LAST, 1, FIRST + PACKET, NULL, RAW_LEAD);
	say(WIRE_WITHDRAW, 2, 1, NULL, 0);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The second message; the first was legal. */
static void part_beyond(struct raw_peer *p)
{
	(void)p;
	say(WIRE_SEND_FIRST, 2, PACKET + 70000, NULL, PACKET);
	say(WIRE_SEND_MIDDLE, 2, PACKET, NULL, PACKET);
}

static void part_elsewhere(struct raw_peer *p)
{
	(void)p;
	say(WIRE_SEND_FIRST, 2, 3 * PACKET, NULL, PACKET);
	say(WIRE_SEND_MIDDLE, 2, 2 * PACKET, NULL, PACKET);
}

/* So far beyond its end that what is left would come out large. */
static void part_far_away(struct raw_peer *p)
{
	(void)p;
	say(WIRE_SEND_FIRST, 2, 2 * PACKET + 1, NULL, PACKET);
	say(WIRE_SEND_MIDDLE, 2, UINT64_C(1) << 40, NULL, PACKET);
}

/* clang-format off */
static const struct offence offences[] = {
	{"R5", "a Write beyond its end", middle_beyond, WRITE, BEGUN},
	{"R5", "its last packet likewise", last_beyond, WRITE, BEGUN},
	{"R5", "a Write with a gap", middle_elsewhere, WRITE, BEGUN},
	{"R5", "a Write over what it has written", middle_again, WRITE, BEGUN},
	{"R8", "a Write of another number", middle_of_another, "continuation of no Write", BEGUN},
	{"R9", "a Write where none is allowed", may_only_read, "withdrawal of no Write", NOTHING},
	{"R5", "a message beyond its end", part_beyond, "length or offset", NOTHING},
	{"R5", "a message with a gap", part_elsewhere, "length or offset", NOTHING},
	{"R5", "a message far away", part_far_away, "length or offset", NOTHING},
};
/* clang-format on */

/* ---- how they meet --------------------------------------------------------------------------- */

static void come(struct raw_peer *p, const char *at)
{
	char ready;

	net_trial_connect(p, at, 1);
	net.control.hello.features = LITTLE_64(WIRE_FEATURE_MEMORY | WIRE_FEATURE_ACTIVE);
	net.control.hello.packet_max = LITTLE_64(PACKET);
	net.control.hello.eager_max = LITTLE_64(1 << 20);
	net_trial_greet();
	raw_net_send(&net, "legal", 5);
	CHECK(read(go[0], &ready, 1) == 1, "no key comes");
}

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);

	(void)o;
	OK(slmpm_mem_key(mem, peer, SLMPM_READ, &raw_keys->read_only));
	CHECK(write(go[1], "", 1) == 1, "it has left");
	return peer;
}

/* A Write that begins in the region's front half may have changed that. */
static void see(slmpm_peer peer, const struct offence *o)
{
	size_t at = o->note == BEGUN ? SIZE : 0;

	(void)peer;
	if (o->commit != middle_beyond && o->commit != last_beyond && o->note == BEGUN)
		at = FIRST;
	for (; at < SIZE; at++)
		CHECK(base[at] == before, "%s: byte %zu was written", o->name, at);
	CHECK(guarded_is_whole(base, SIZE), "%s: what lies around the region", o->name);
	memset(base, before, SIZE);
}

int main(void)
{
	static const struct trial trial = {come, net_trial_hear_end, net_trial_leave, meet, NULL,
					   see};
	struct victim v;

	net_trial_one_link();
	setenv("SLMPM_EAGER_MAX", "1m", 1);
	setenv("SLMPM_EAGER_CREDIT", "4m", 1);
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
