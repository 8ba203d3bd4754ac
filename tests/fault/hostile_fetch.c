/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Announcements that lie: ranges that do not add up or are nobody's memory, shares out of bounds,
 * ends of what never was. What is impossible ends the channel by its name; what is only not there
 * is asked for in packets.
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

struct announcement {
	struct wire_fetch head;
	struct wire_range ranges[WIRE_RANGES + 1];
};

static void announce(struct raw_peer *p, uint32_t count, uint64_t at, uint64_t each, uint64_t total)
{
	struct announcement a = {.head = {.count = LITTLE_32(count)}};

	for (uint32_t i = 0; i < WIRE_RANGES + 1; i++)
		a.ranges[i] = (struct wire_range){LITTLE_64(at), LITTLE_64(each)};
	raw_post(p, WIRE_FETCH, ++p->sent, wire_route(1, 0), total, &a,
		 (uint32_t)(sizeof(a.head) +
			    (count > WIRE_RANGES ? WIRE_RANGES + 1 : count) * sizeof(a.ranges[0])));
}

static void of_nothing(struct raw_peer *p)
{
	announce(p, 0, 4096, LENGTH, LENGTH);
}

static void of_too_many(struct raw_peer *p)
{
	announce(p, WIRE_RANGES + 1, 4096, LENGTH, LENGTH * (WIRE_RANGES + 1));
}

static void uneven(struct raw_peer *p)
{
	announce(p, 2, 4096, LENGTH, LENGTH);
}

static void of_an_empty_range(struct raw_peer *p)
{
	announce(p, 1, 4096, 0, 0);
}

static void around_the_end(struct raw_peer *p)
{
	announce(p, 1, UINT64_MAX - 10, LENGTH, LENGTH);
}

static void of_everything(struct raw_peer *p)
{
	announce(p, 1, 4096, SLMPM_MESSAGE_MAX + 1, SLMPM_MESSAGE_MAX + 1);
}

static void half(struct raw_peer *p)
{
	raw_post(p, WIRE_FETCH, ++p->sent, wire_route(1, 0), LENGTH, room, 4);
}

static void out_of_order(struct raw_peer *p)
{
	p->sent++;
	announce(p, 1, 4096, LENGTH, LENGTH);
}

static void introduced_by_noise(struct raw_peer *p)
{
	unsigned char a[sizeof(struct wire_fetch) + sizeof(struct wire_range) + 40];
	struct announcement one = {.head = {.count = LITTLE_32(1)},
				   .ranges = {{LITTLE_64(4096), LITTLE_64(LENGTH)}}};

	memset(a, 0x77, sizeof(a));
	memcpy(a, &one, sizeof(struct wire_fetch) + sizeof(struct wire_range));
	raw_post(p, WIRE_FETCH, ++p->sent, wire_route(1, 0), LENGTH, a, sizeof(a));
}

static void gives_nothing_announced(struct raw_peer *p)
{
	struct wire_give give = {.claim = 0};

	raw_post(p, WIRE_FETCH_GIVE, p->sent + 1, 0, 0, &give, sizeof(give));
}

static void gives_half(struct raw_peer *p)
{
	announce(p, 1, 4096, LENGTH, LENGTH);
	raw_post(p, WIRE_FETCH_GIVE, p->sent, 0, 0, room, 10);
}

static void takes_nothing_sent(struct raw_peer *p)
{
	struct wire_take take = {.turn = LITTLE_32(1)};

	announce(p, 1, 4096, LENGTH, LENGTH);
	raw_post(p, WIRE_FETCH_TAKE, 1000, 0, 0, &take, sizeof(take));
}

static void ends_nothing_sent(struct raw_peer *p)
{
	raw_post(p, WIRE_FETCH_DONE, 1000, 0, 0, NULL, 0);
}

static void withdraws_nothing_sent(struct raw_peer *p)
{
	announce(p, 1, 4096, LENGTH, LENGTH);
	raw_post(p, WIRE_WITHDRAW, p->sent + 1, 0, WIRE_WITHDRAW_END, NULL, 0);
}

static void sends_another_length(struct raw_peer *p)
{
	announce(p, 1, 4096, 20000, 20000);
	raw_post(p, WIRE_FETCH_SEND, p->sent, 0, 20001, NULL, 0);
}

static void sends_beyond_the_eager(struct raw_peer *p)
{
	announce(p, 1, 4096, LENGTH, LENGTH);
	raw_post(p, WIRE_FETCH_SEND, p->sent, 0, LENGTH, NULL, 0);
}

static void continues_unasked(struct raw_peer *p)
{
	announce(p, 1, 4096, LENGTH, LENGTH);
	raw_post(p, WIRE_SEND_MIDDLE, p->sent, wire_route(1, 0), 0, room, 8192);
}

/* As many announcements as cost nothing but their envelope: they are bounded all the same. */
static void never_stops(struct raw_peer *p)
{
	for (int i = 0; i < 1 << 16; i++)
		announce(p, 1, 4096, LENGTH, LENGTH);
}

static const struct offence offences[] = {
	{"R5", "an announcement of nothing", of_nothing, "announcement", 0},
	{"R10", "of too many ranges", of_too_many, "announcement", 0},
	{"R5", "of ranges that do not add up", uneven, "announcement", 0},
	{"R5", "of an empty range", of_an_empty_range, "announcement", 0},
	{"R5", "of a range around the end", around_the_end, "announcement", 0},
	{"R5", "of more than a message", of_everything, "announcement", 0},
	{"R5", "half an announcement", half, "announcement", 0},
	{"R8", "an announcement ahead", out_of_order, "sequence number", 0},
	{"R5", "an introduction of noise", introduced_by_noise, "announcement", 0},
	{"R8", "a share of nothing", gives_nothing_announced, "share of a message", 0},
	{"R5", "half a share", gives_half, "share of a message", 0},
	{"R8", "taking of nothing", takes_nothing_sent, "taking of a message", 0},
	{"R8", "the end of nothing", ends_nothing_sent, "end of fetching", 0},
	{"R8", "the withdrawal of nothing", withdraws_nothing_sent, "withdrawal of no message", 0},
	{"R5", "sending of another length", sends_another_length, "sending of an announced message",
	 0},
	{"R10", "sending beyond the eager limit", sends_beyond_the_eager,
	 "sending of an announced message", 0},
	{"R8", "a continuation unasked", continues_unasked, "continuation of no message", 0},
	{"R10", "announcements without end", never_stops, "credit overrun", 0},
};

/* Nothing of stream 2 is announced: what lies waits. */
static int64_t inspect(slmpm_peer peer, const struct offence *o)
{
	(void)o;
	return slmpm_recv(peer, 2, room, sizeof(room), NULL, 5);
}

/* ---- memory that is not there --------------------------------------------------------------- */

/* Behind the introduction there is nothing at the address: the receiver asks for packets. */
static int point_nowhere(void *arg)
{
	struct raw_peer p;
	struct ring_packet packet;
	char reason[112];
	bool cleared = false;

	(void)arg;
	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURES | WIRE_FEATURE_ATTACH);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	announce(&p, 1, 4096, LENGTH, LENGTH);
	raw_ring_bell(&p);
	while (!cleared) {
		int rc = ring_peek(&p.r, &packet);

		CHECK(rc >= 0, "the ring is broken");
		if (rc != 1)
			continue;
		cleared = packet.kind == WIRE_CLEAR;
		ring_release(&p.r, &packet);
	}
	for (uint64_t at = 0; at < LENGTH; at += 8192) {
		bool last = LENGTH - at <= 8192;

		raw_post(&p, last ? WIRE_SEND_LAST : WIRE_SEND_MIDDLE, p.sent, wire_route(1, 0), at,
			 room, last ? (uint32_t)(LENGTH - at) : 8192);
		raw_ring_bell(&p);
	}
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "it was called \"%s\"", reason);
	raw_end(&p);
	return 0;
}

static void ask_for_packets(slmpm_listener listener)
{
	pid_t child = child_start(point_nowhere, NULL, 20);
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, room, sizeof(room), NULL, PATIENCE), LENGTH);
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(child) == 0, "see above");
}

/* ---- shares without end --------------------------------------------------------------------- */

/* How this process's memory is reached, as doc/wire.md has it. */
struct reach {
	uint32_t how, zero;
	uint64_t size, address, probe, echo;
	unsigned char value[16];
};

#define CLAIMED (8 << 20)

static unsigned char large[CLAIMED], probe[16] = "where is my page", echo[16];

/* With an introduction, the first time: a second one would be a lie. */
static void announce_truly(struct raw_peer *p)
{
	bool first = !p->sent;
	struct {
		struct wire_fetch head;
		struct wire_range range;
		struct reach reach;
	} a = {
		.head = {.count = LITTLE_32(1)},
		.range = {LITTLE_64((uint64_t)(uintptr_t)large), LITTLE_64(CLAIMED)},
		.reach = {.how = LITTLE_32(2),
			  .size = UINT64_MAX,
			  .probe = LITTLE_64((uint64_t)(uintptr_t)probe),
			  .echo = LITTLE_64((uint64_t)(uintptr_t)echo)},
	};

	memcpy(a.reach.value, probe, sizeof(probe));
	raw_post(p, WIRE_FETCH, ++p->sent, wire_route(1, 0), CLAIMED, &a,
		 (uint32_t)(first ? sizeof(a) : sizeof(a) - sizeof(a.reach)));
	raw_ring_bell(p);
}

/* The next packet, which is of KIND or, with OTHER, is OTHER and ends it: false. */
static bool await(struct raw_peer *p, uint8_t kind, uint8_t other, struct wire_take *take)
{
	struct ring_packet packet;

	for (;;) {
		int rc = ring_peek(&p->r, &packet);

		CHECK(rc >= 0, "the ring is broken");
		if (rc != 1)
			continue;
		if (take && packet.kind == WIRE_FETCH_TAKE)
			memcpy(take, packet.data + 24, sizeof(*take));
		ring_release(&p->r, &packet);
		if (packet.kind == kind || packet.kind == other)
			return packet.kind == kind;
	}
}

static void give(struct raw_peer *p, uint64_t claim, uint64_t done)
{
	struct wire_give g = {LITTLE_64(claim), LITTLE_64(done), LITTLE_32(1), 0};

	raw_post(p, WIRE_FETCH_GIVE, p->sent, 0, 0, &g, sizeof(g));
	raw_ring_bell(p);
}

/* Says that it writes, and says nothing more for a long time. */
static int claim_for_ever(void *arg)
{
	struct wire_take take = {.upto = 0};
	struct raw_peer p;
	char reason[112];

	(void)arg;
	actor_fill(large, 1, CLAIMED);
	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURES | WIRE_FEATURE_ATTACH);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	for (bool claimed = false; !claimed;) {
		announce_truly(&p);
		if (!await(&p, WIRE_FETCH_TAKE, WIRE_CLEAR, &take))
			break;
		give(&p, LITTLE_64(take.upto), CLAIMED);
		claimed = await(&p, WIRE_SEND_ONLY, WIRE_FETCH_DONE, NULL); /* too late */
		if (!claimed)
			continue;
		give(&p, CLAIMED, CLAIMED);
		(void)await(&p, WIRE_FETCH_DONE, 0, NULL); /* it has read it all by itself */
		raw_post(&p, WIRE_WITHDRAW, p.sent, 0, WIRE_WITHDRAW_END, NULL, 0); /* too late */
		raw_send(&p, 2, "end", 4);
		raw_ring_bell(&p);
	}
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "it was called \"%s\"", reason);
	raw_end(&p);
	return 0;
}

static void claimed_for_ever(slmpm_listener listener)
{
	pid_t child = child_start(claim_for_ever, NULL, 20);
	static unsigned char again[CLAIMED];
	int64_t begin, rc;
	slmpm_peer peer;
	char end[4];

	OK(slmpm_accept(listener, &peer, PATIENCE));
	do {
		begin = actor_now_ms();
		rc = slmpm_recv(peer, 1, again, CLAIMED, NULL, 200);
	} while (rc == CLAIMED);
	if (rc == -SLMPM_ETIMEOUT) {
		printf("attaching does not work here: nothing is fetched\n");
	} else {
		EXPECT(rc, -SLMPM_EBUSY);
		CHECK(strstr(slmpm_error_detail(), "writing"), "%s", slmpm_error_detail());
		CHECK(actor_now_ms() - begin < 2000 * actor_slow(), "it took %d ms",
		      (int)(actor_now_ms() - begin));
		EXPECT(slmpm_probe(peer, 1, NULL, 0), 0);
		OK(slmpm_send(peer, 3, "go on", 5, PATIENCE));
		EXPECT(slmpm_recv(peer, 1, again, CLAIMED, NULL, PATIENCE), CLAIMED);
		CHECK(actor_filled(again, 1, CLAIMED), "other bytes");
		EXPECT(slmpm_recv(peer, 2, end, sizeof(end), NULL, PATIENCE), 4);
	}
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(child) == 0, "see above");
}

int main(void)
{
	static const struct trial trial = {.inspect = inspect};
	struct victim v;

	setenv("SLMPM_PACKET_MAX", "8k", 1);
	setenv("SLMPM_ATTACH", "y", 1);
	setenv("SLMPM_EAGER_MAX", "32k", 1);
	victim_begin(&v, "hostile-fetch");
	address = v.address;
	SURVIVE(&v, &trial, offences);
	ask_for_packets(v.listener);
	claimed_for_ever(v.listener);
	victim_end(&v);
	return 0;
}
