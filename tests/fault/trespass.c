/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that asks for what it has no right to, by wrong, stale and revoked keys and at every edge
 * of the range: refused, counted, and without a trace. Then one that says anything that begins
 * well: what lies around the region stays as it is. R9 of doc/reliability.md.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/guarded.h"
#include "tests/lib/honest.h"
#include "tests/lib/offence.h"
#include "tests/lib/random.h"
#include "tests/lib/raw_key.h"

#define SIZE 200000

static unsigned char bytes[64 << 10];
static const char *address;

/* The next answer: its opcode and error. */
static uint8_t hear_answer(struct raw_peer *p, uint64_t seq, uint64_t *error)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;
	uint64_t head[3];

	for (;;) {
		int rc = ring_peek(&p->r, &packet);

		CHECK(rc >= 0 && actor_now_ms() < until, "no answer to request %d", (int)seq);
		if (rc == 0) {
			usleep(100);
			continue;
		}
		memcpy(head, packet.data, sizeof(head));
		ring_release(&p->r, &packet);
		ring_publish_consumed(&p->r, RING_FLUSH);
		if (packet.kind >= WIRE_READ_FIRST && packet.kind <= WIRE_ACKNOWLEDGE &&
		    LITTLE_64(head[0]) == seq) {
			*error = LITTLE_64(head[2]) & WIRE_LENGTH_MASK;
			return packet.kind;
		}
	}
}

static void expect_answer(struct raw_peer *p, uint8_t opcode, uint64_t seq, struct raw_request r,
			  uint64_t want, const char *what)
{
	uint64_t length = LITTLE_64(r.target.length), error;
	bool is_write = opcode == WIRE_WRITE_ONLY, is_read = opcode == WIRE_READ_REQUEST;
	uint8_t answer;

	r.atomic = (struct wire_atomic){LITTLE_64(1), 0, LITTLE_32((uint32_t)length * 8), 0};
	raw_request(p, opcode, seq, is_write ? WIRE_FLAG_ANSWER : 0, &r, length,
		    is_write ? (uint32_t)(RAW_LEAD + (length < 100 ? length : 100)) :
		    is_read  ? RAW_LEAD :
			       (uint32_t)sizeof(r));
	raw_push(p);
	answer = hear_answer(p, seq, &error);
	if (want)
		CHECK(answer == WIRE_ACKNOWLEDGE && error == wire_error(-(int)want),
		      "%s: answer %d, error %d", what, answer, (int)error);
	else
		CHECK(answer != WIRE_ACKNOWLEDGE || !error, "%s: answer %d, error %d", what, answer,
		      (int)error);
}

/* Rights, keys, ranges: R9. */
static int trespass(void *arg)
{
	const uint8_t opcodes[] = {WIRE_WRITE_ONLY, WIRE_READ_REQUEST, WIRE_FETCH_ADD};
	struct raw_peer p;
	uint64_t n = 0, error;

	(void)arg;
	raw_keys_come(&p, address);
	for (int i = 0; i < 3; i++) {
		uint8_t op = opcodes[i];
		struct raw_request r;

		for (int bit = 3 * i; bit < 128; bit += 60) { /* few: a guesser is shut out */
			r = raw_ask(8, 8);
			r.target.secret[bit / 8] ^= (unsigned char)(1 << bit % 8);
			expect_answer(&p, op, ++n, r, SLMPM_EACCES, "a wrong secret");
		}
		r = raw_ask(8, 8);
		r.target.grant = LITTLE_32(i ? UINT32_MAX : 0);
		expect_answer(&p, op, ++n, r, SLMPM_EACCES, "a wrong grant");
		expect_answer(&p, op, ++n, raw_ask_with(&raw_keys->revoked, 8, 8), SLMPM_EACCES,
			      "what was taken back");
		expect_answer(&p, op, ++n, raw_ask_with(&raw_keys->read_only, 8, 8),
			      op == WIRE_READ_REQUEST ? 0 : SLMPM_EACCES, "a key to read");
		if (op != WIRE_WRITE_ONLY)
			expect_answer(&p, op, ++n, raw_ask_with(&raw_keys->write_only, 8, 8),
				      SLMPM_EACCES, "a key to write");
		expect_answer(&p, op, ++n, raw_ask(SIZE, 8), SLMPM_EINVAL, "behind the end");
		expect_answer(&p, op, ++n, raw_ask(SIZE - 4, 8), SLMPM_EINVAL, "across the end");
		expect_answer(&p, op, ++n, raw_ask(UINT64_MAX - 7, 8), SLMPM_EINVAL,
			      "round the world");
		expect_answer(&p, op, ++n, raw_ask(UINT64_MAX - 3, 8), SLMPM_EINVAL, "and beyond");
		if (op == WIRE_FETCH_ADD) {
			expect_answer(&p, op, ++n, raw_ask(4, 8), SLMPM_EINVAL, "not aligned");
			expect_answer(&p, op, ++n, raw_ask(2, 4), SLMPM_EINVAL, "not aligned");
			continue;
		}
		expect_answer(&p, op, ++n, raw_ask(SIZE, 0), 0, "nothing at the end");
		expect_answer(&p, op, ++n, raw_ask(SIZE + 1, 0), SLMPM_EINVAL, "nothing behind it");
		expect_answer(&p, op, ++n, raw_ask(UINT64_MAX, 0), SLMPM_EINVAL,
			      "nothing far away");
	}
	/* Unasked failures are told by the next flush, once. */
	raw_request(&p, WIRE_WRITE_ONLY, ++n, 0,
		    &(struct raw_request){.target = raw_ask(SIZE, 8).target}, 8, RAW_LEAD + 8);
	for (int i = 0; i < 2; i++) {
		raw_post(&p, WIRE_WRITE_ONLY, ++n, 0, wire_extent(0, WIRE_FLAG_ANSWER), NULL, 0);
		ring_publish_produced(&p.w);
		raw_ring_bell(&p);
		CHECK(hear_answer(&p, n, &error) == WIRE_ACKNOWLEDGE &&
			      error == wire_error(i ? 0 : -SLMPM_EINVAL),
		      "a flush says %d", (int)error);
	}
	raw_end(&p);
	return 0;
}

/* Anything that begins well. */
static int babble(void *arg)
{
	struct rng g = {*(uint64_t *)arg};
	uint64_t seq = 0;
	struct raw_peer p;
	char reason[112];

	raw_keys_come(&p, address);
	for (int i = 0; i < 60; i++) {
		static const uint64_t edges[] = {
			0,        1,    8,        RAW_LEAD,   RAW_PACKET - RAW_LEAD, RAW_PACKET,
			SIZE - 8, SIZE, SIZE + 1, UINT64_MAX, UINT64_MAX - 7};
		uint64_t offset = edges[rng_below(&g, 11)], length = edges[rng_below(&g, 8)];
		struct raw_request r = raw_ask(offset, length);
		uint8_t opcode = (uint8_t)(WIRE_WRITE_FIRST + rng_below(&g, 15));

		if (rng_one_in(&g, 20))
			((unsigned char *)&r)[rng_below(&g, sizeof(r))] ^= 1;
		r.atomic = (struct wire_atomic){rng_next(&g), rng_next(&g),
						LITTLE_32(rng_one_in(&g, 2) ? 64 : 32), 0};
		seq += !rng_one_in(&g, 10);
		raw_request(&p, opcode, seq,
			    rng_one_in(&g, 3) ? (uint32_t)rng_below(&g, 64) & ~1u : 0, &r,
			    rng_one_in(&g, 8) ? offset : length,
			    (uint32_t)(rng_one_in(&g, 3) ? rng_below(&g, RAW_PACKET) :
				       opcode == WIRE_WRITE_ONLY && length < RAW_PACKET ?
							   RAW_LEAD + length :
							   RAW_LEAD));
	}
	raw_ring_bell(&p);
	raw_keys->ready = 2;
	raw_hear_end(p.fd, reason);
	raw_end(&p);
	return 0;
}

/* ---- the victim ----------------------------------------------------------------------------- */

static unsigned char *base;
static slmpm_mem mem, gone;

static void refuse_all(slmpm_listener listener, slmpm_peer honest)
{
	static unsigned char was[SIZE];
	struct slmpm_stats stats;
	unsigned char got[8];
	slmpm_peer peer;
	pid_t pid;
	int64_t n;

	peer = raw_keys_meet(listener, mem, trespass, NULL, &pid);
	OK(slmpm_mem_key(mem, peer, SLMPM_READ, &raw_keys->read_only));
	OK(slmpm_mem_key(mem, peer, SLMPM_WRITE, &raw_keys->write_only));
	OK(slmpm_mem_key(gone, peer, SLMPM_READ_WRITE, &raw_keys->revoked));
	/* It does not say that it has let go; it is refused all the same. */
	(void)slmpm_mem_revoke(gone, peer, 20);
	memcpy(was, base, SIZE);
	raw_keys->ready = 1;
	while ((n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 50)) == -SLMPM_ETIMEOUT)
		honest_works(honest);
	CHECK(n == -SLMPM_EDEAD || n == -SLMPM_ECLOSED, "it ended with %lld: %s", (long long)n,
	      slmpm_error_detail());
	CHECK(child_wait(pid) == 0, "trespassing: see above");
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(stats.refused > 30 && !stats.violations, "%d refused, %d violations",
	      (int)stats.refused, (int)stats.violations);
	CHECK(guarded_is_whole(base, SIZE) && !memcmp(was, base, SIZE),
	      "what was refused has left a trace");
	OK(slmpm_close(peer, PATIENCE));
}

static void bear(slmpm_listener listener, slmpm_peer honest, uint64_t seed)
{
	unsigned char got[8];
	slmpm_peer peer;
	pid_t pid;
	int rounds = 0;

	peer = raw_keys_meet(listener, mem, babble, &seed, &pid);
	raw_keys->ready = 1;
	while (slmpm_recv(peer, 1, got, sizeof(got), NULL, 2) == -SLMPM_ETIMEOUT)
		if (raw_keys->ready == 2 && ++rounds > 3)
			break;
	honest_works(honest);
	CHECK(guarded_is_whole(base, SIZE), "seed %d: what lies around the region", (int)seed);
	(void)slmpm_close(peer, 1000); /* what it babbles may end it either way */
	CHECK(child_wait(pid) == 0, "seed %d: see above", (int)seed);
}

int main(void)
{
	slmpm_ctr none = {0};
	struct victim v;
	slmpm_cq cq;

	raw_keys_make();
	victim_begin(&v, "trespass");
	address = v.address;
	base = guarded_new(SIZE);
	OK(slmpm_mem_register(v.ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_register(v.ctx, bytes, sizeof(bytes), SLMPM_READ_WRITE, &gone));
	OK(slmpm_cq_create(v.ctx, &cq));
	OK(slmpm_mem_notify(mem, none, cq));
	refuse_all(v.listener, v.honest);
	for (uint64_t seed = 1; seed <= 150; seed++)
		bear(v.listener, v.honest, seed);
	OK(slmpm_mem_notify(mem, none, (slmpm_cq){0}));
	OK(slmpm_cq_destroy(cq));
	victim_end(&v);
	return 0;
}
