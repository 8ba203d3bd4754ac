/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that was given a counter, and asks for more: to read and write it, to count half of it,
 * what is beside it, another's, with a guessed key, without end. Refusals are counted and move
 * nothing, violations have their names.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_region.h"

#define COUNTED 7 /* what each has moved it by, rightly */

static slmpm_ctr counter;
static slmpm_mem word;
static uint64_t before;

struct count {
	struct wire_target target;
	struct wire_atomic atomic;
};

static struct count counted(uint64_t offset, uint32_t bits)
{
	struct count c = {
		.target = {.offset = LITTLE_64(offset),
			   .length = LITTLE_64((uint64_t)bits / 8),
			   .grant = raw_region.granted.key.grant},
		.atomic = {.operand = LITTLE_64(COUNTED), .bits = LITTLE_32(bits)},
	};

	memcpy(c.target.secret, raw_region.granted.key.secret, sizeof(c.target.secret));
	return c;
}

static int ask(struct raw_peer *p, uint8_t opcode, uint32_t flags, struct count c, uint32_t length)
{
	uint64_t bytes;

	raw_post(p, opcode, ++raw_region.requests, 0,
		 wire_extent(LITTLE_64(c.target.length), flags), &c, length);
	return raw_answer(p, &bytes);
}

static int add(struct raw_peer *p, struct count c)
{
	return ask(p, WIRE_FETCH_ADD, 0, c, sizeof(c));
}

/* It has counted, which it may; nothing of the rest moves it. */
static void at_each_edge(struct raw_peer *p)
{
	struct count c = counted(0, 64);
	const unsigned char *secret = raw_region.granted.key.secret;
	uint32_t id = LITTLE_32(raw_region.granted.key.grant);

	EXPECT(add(p, c), 0);
	EXPECT(add(p, counted(0, 32)), SLMPM_EINVAL);
	EXPECT(add(p, counted(4, 32)), SLMPM_EINVAL);
	EXPECT(add(p, counted(8, 64)), SLMPM_EINVAL);
	EXPECT(add(p, counted(4, 64)), SLMPM_EINVAL);
	EXPECT(add(p, counted(UINT64_MAX - 7, 64)), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, secret, 0, 8), SLMPM_EACCES);
	EXPECT(raw_read(p, id, secret, 0, 0), SLMPM_EACCES);
	EXPECT(ask(p, WIRE_WRITE_ONLY, WIRE_FLAG_ANSWER, c, 48), SLMPM_EACCES);
	EXPECT(ask(p, WIRE_WRITE_ONLY, WIRE_FLAG_ANSWER | WIRE_FLAG_NOTIFY, c, 48), SLMPM_EACCES);
	EXPECT(ask(p, WIRE_NOTIFY, WIRE_FLAG_ANSWER, c, 40), SLMPM_EACCES);
	c.target.grant = LITTLE_32(id + 1);
	EXPECT(add(p, c), SLMPM_EACCES);
	c.target.grant = 0;
	EXPECT(add(p, c), SLMPM_EACCES);
	/* Of sixteen guesses the last costs the connection. */
	for (int i = 0; i < 14; i++) {
		c = counted(0, 64);
		c.target.secret[i] ^= (unsigned char)(1u << i % 8);
		raw_post(p, WIRE_FETCH_ADD, ++raw_region.requests, 0, 8, &c, sizeof(c));
	}
}

/* More than may be under way, and none of the answers is read. */
static void without_end(struct raw_peer *p)
{
	struct count c = counted(0, 64);

	c.atomic.operand = 0;
	EXPECT(add(p, counted(0, 64)), 0);
	for (int i = 0; i < 4 * RAW_SEGMENTS; i++)
		raw_post(p, WIRE_FETCH_ADD, ++raw_region.requests, 0, 8, &c, sizeof(c));
}

static const struct offence offences[] = {
	{"R9", "at each edge", at_each_edge, "key to a region", 26},
	{"R10", "without end", without_end, "number of requests under way", 0},
};

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	slmpm_peer peer;

	(void)o;
	OK(slmpm_ctr_query(counter, &info));
	before = info.done;
	*pid = child_start(body, arg, 30);
	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	OK(slmpm_mem_key(word, peer, SLMPM_COUNT, &key));
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	EXPECT(stats.refused, o->note);
	OK(slmpm_ctr_query(counter, &info));
	CHECK(info.done == before + COUNTED && info.posted == info.done && !info.failed,
	      "%s: it is %llu", o->name, (unsigned long long)info.done);
}

int main(void)
{
	static const struct trial trial = {
		.come = raw_region_come, .leave = raw_region_leave, .meet = meet, .see = see};
	struct victim v;

	victim_begin(&v, "hostile-counter");
	OK(slmpm_ctr_create(v.ctx, &counter));
	OK(slmpm_ctr_mem(counter, &word));
	SURVIVE(&v, &trial, offences);
	OK(slmpm_ctr_destroy(counter));
	victim_end(&v);
	return 0;
}
