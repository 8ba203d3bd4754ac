/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that lies at random: legal packets with one figure wrong, stores anywhere in the ring,
 * control packets of any kind, at any pace. It is poisoned or borne; the process goes on, keeps
 * nothing, and an honest peer's messages stay whole. SLMPM_TEST_SECONDS: how long.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/random.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define SECONDS  2
#define BOUND_MS 3000
#define PACKET   8192
#define LOANS    (1u << 20)
#define MIRRORED 4096
#define TAG      3

static unsigned char bytes[PACKET * 2];
static char address[64];

/* ---- the liar ---- */

static uint64_t near(struct rng *g, uint64_t truth)
{
	switch (rng_below(g, 8)) {
	case 0: return truth + 1;
	case 1: return truth - 1;
	case 2: return rng_next(g);
	case 3: return rng_below(g, 70000);
	case 4: return truth ^ UINT64_C(1) << rng_below(g, 64);
	case 5: return UINT64_MAX;
	default: return truth;
	}
}

static const uint8_t opcodes[] = {
	WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST, WIRE_SEND_ONLY, WIRE_SEND_ONLY,
	WIRE_CLEAR,      WIRE_CREDIT,      WIRE_WITHDRAW,  WIRE_LOAN,      WIRE_LOAN_MORE,
	WIRE_LOAN_DONE,  WIRE_BUNDLE,      WIRE_CLOSE,     WIRE_OPCODES,   WIRE_BIND,
	WIRE_BOUND,      WIRE_CLAIM,
};

/* Mostly what a peer might say, with one figure in doubt. */
static void lie_in_packet(struct raw_peer *p, struct rng *g)
{
	uint8_t opcode = opcodes[rng_below(g, sizeof(opcodes))];
	uint32_t length = rng_below(g, rng_one_in(g, 4) ? PACKET + 8 : 200);
	uint64_t extent = length, seq = p->sent + 1, bundled = 0;
	struct wire_loan loan = {
		.ready = near(g, 100),
		.capacity = near(g, 65536),
		.area = rng_below(g, 3),
		.final = rng_below(g, 2),
	};

	if (opcode == WIRE_SEND_FIRST) {
		length = PACKET;
		extent = PACKET + rng_below(g, 100000);
		if (extent > 32768)
			extent = wire_extent(extent, WIRE_FLAG_ANNOUNCED);
	} else if (opcode == WIRE_SEND_MIDDLE || opcode == WIRE_SEND_LAST) {
		seq = p->sent;
		extent = PACKET;
		length = opcode == WIRE_SEND_MIDDLE ? PACKET : length;
	} else if (opcode == WIRE_BUNDLE) {
		extent = 1 + rng_below(g, 128);
		bundled = 1 + rng_below(g, 2048 / (uint32_t)extent);
		length = (uint32_t)(extent * bundled);
	} else if (opcode != WIRE_SEND_ONLY && opcode != WIRE_LOAN) {
		seq = rng_below(g, 5);
		extent = rng_below(g, 3);
		length = opcode == WIRE_LOAN_MORE ? length : 0;
	}
	if (rng_one_in(g, 4))
		seq = near(g, seq);
	if (rng_one_in(g, 4))
		extent = near(g, extent);
	if (opcode == WIRE_LOAN || opcode == WIRE_LOAN_MORE)
		raw_post(p, opcode, seq, wire_route(1, 0), extent, &loan, sizeof(loan));
	else
		raw_post(p, opcode, seq, wire_route(1 + rng_below(g, 3), 7), extent, bytes, length);
	if (opcode == WIRE_SEND_ONLY || opcode == WIRE_SEND_FIRST || opcode == WIRE_LOAN)
		p->sent++;
	else if (opcode == WIRE_BUNDLE)
		p->sent += bundled;
}

/* Of the monitor, and of mirrors: one is attached, and mostly what is said about it fits. */
static void lie_about_mirror(struct raw_peer *p, struct rng *g)
{
	static const uint8_t kinds[] = {
		WIRE_ECHO,        WIRE_ECHO_ANSWER, WIRE_AGGREGATE,        WIRE_MIRROR_ASK,
		WIRE_MIRROR_END,  WIRE_MIRROR_PART, WIRE_MIRROR_LAST,      WIRE_MIRROR_LIST,
		WIRE_MIRROR_LAST, WIRE_MIRROR_LAST, WIRE_MIRROR_LIST_LAST, WIRE_MIRROR_STORED,
	};
	uint8_t opcode = kinds[rng_below(g, sizeof(kinds))];
	uint64_t number = p->sent + rng_below(g, 1 << 20), place = rng_below(g, MIRRORED);
	uint32_t length = 1 + rng_below(g, 64), slot = rng_below(g, 2);
	unsigned char list[64] = {0};
	const void *data = bytes;

	if (opcode <= WIRE_AGGREGATE)
		length = opcode == WIRE_AGGREGATE ? 64 : 0;
	if (opcode <= WIRE_MIRROR_END)
		number = place = rng_below(g, 2);
	if (opcode == WIRE_MIRROR_END || opcode == WIRE_MIRROR_STORED)
		length = 0;
	if (opcode == WIRE_MIRROR_LIST || opcode == WIRE_MIRROR_LIST_LAST) {
		uint64_t head = LITTLE_64(WIRE_MIRROR_RUN(near(g, place), near(g, 56)));

		memcpy(list, &head, sizeof(head));
		data = list;
		length = sizeof(list);
	}
	if (rng_one_in(g, 4))
		number = near(g, number);
	if (rng_one_in(g, 4))
		place = near(g, place);
	raw_post(p, opcode, number, wire_route(slot, rng_below(g, 3)), place, data, length);
}

/* The victim asks for it as well. */
static void ask_for_mirror(struct raw_peer *p, struct rng *g)
{
	const struct wire_mirror ask = {
		.size = LITTLE_64(rng_one_in(g, 8) ? near(g, MIRRORED) : MIRRORED),
		.tag = LITTLE_32(TAG),
		.how = LITTLE_32(SLMPM_MIRROR_LEAD | SLMPM_MIRROR_BOTH),
	};

	raw_post(p, WIRE_MIRROR_ASK, 0, 0, 0, &ask, sizeof(ask));
}

static void lie_in_ring(struct raw_peer *p, struct rng *g)
{
	struct ring_words *words = raw_words(p);
	uint64_t total = p->w.produced + 1;

	switch (rng_below(g, 5)) {
	case 0: atomic_store(&words->produced, LITTLE_64(near(g, p->w.produced))); break;
	case 1: atomic_store(&words->consumed, LITTLE_64(near(g, p->r.consumed))); break;
	case 2: atomic_store(&words->asleep, rng_next(g)); break;
	case 3:
		atomic_store(raw_commit_word(p, total),
			     LITTLE_64(near(g, (uint64_t)WIRE_SEND_ONLY << 54 |
						       (uint64_t)rng_below(g, 9000) << 32 |
						       ((uint32_t)total ^ p->w.epoch))));
		break;
	default: atomic_store(raw_commit_word(p, rng_next(g)), rng_next(g));
	}
}

static void lie_on_socket(struct raw_peer *p, struct rng *g)
{
	union {
		struct wire_control_head head;
		struct wire_area area;
		unsigned char bytes[200];
	} packet;
	size_t n = rng_one_in(g, 2) ? sizeof(packet.area) : 1 + rng_below(g, 200);
	int fds[3] = {p->own.fd, p->own.fd, p->fd};

	for (size_t i = 0; i < sizeof(packet.bytes); i++)
		packet.bytes[i] = (unsigned char)rng_next(g);
	packet.head.type = LITTLE_32(rng_one_in(g, 2) ? WIRE_AREA : rng_below(g, 7));
	packet.head.length = LITTLE_32((uint32_t)near(g, n));
	packet.area.area = rng_below(g, 3);
	packet.area.size = LITTLE_64(near(g, p->own.size));
	(void)raw_say(p->fd, &packet, n, fds, (int)rng_below(g, 3));
}

/* Takes what comes, so that the other side has room. */
static void read_some(struct raw_peer *p)
{
	struct ring_packet packet;

	while (ring_peek(&p->r, &packet) == 1)
		ring_release(&p->r, &packet);
	ring_publish_consumed(&p->r, RING_FLUSH);
}

static int lie(void *arg)
{
	struct rng g = {*(uint64_t *)arg};
	struct pollfd end;
	struct raw_peer p;
	char reason[112];
	/* Some lie at once, some are honest for long. */
	uint32_t rarely = 1u << rng_below(&g, 10);
	int fd = raw_connect(address);

	if (fd < 0)
		return 0;
	raw_begin(&p, fd);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	ask_for_mirror(&p, &g);
	end = (struct pollfd){.fd = fd};
	for (int i = 0; i < 4000 && poll(&end, 1, 0) == 0; i++) {
		if (!rng_one_in(&g, rarely))
			raw_send(&p, 1 + rng_below(&g, 3), bytes, rng_below(&g, 500));
		else if (rng_one_in(&g, 8))
			lie_on_socket(&p, &g);
		else if (rng_one_in(&g, 3))
			lie_in_ring(&p, &g);
		else if (rng_one_in(&g, 3))
			lie_about_mirror(&p, &g);
		else
			lie_in_packet(&p, &g);
		if (rng_one_in(&g, 4))
			raw_ring_bell(&p);
		if (rng_one_in(&g, 4))
			ring_publish_produced(&p.w);
		read_some(&p);
	}
	if (rng_one_in(&g, 2))
		death_now();
	raw_hear_end(fd, reason);
	raw_end(&p);
	return 0;
}

/* ---- who is lied to ---- */

static const void *held[4];
static _Alignas(8) unsigned char mirrored[3][MIRRORED]; /* it, and what lies beside it */

static slmpm_mirror attach_mirror(slmpm_ctx ctx, slmpm_peer peer)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = SLMPM_TRACK_TWIN};
	slmpm_mirror m;

	OK(slmpm_mirror_create(ctx, mirrored[1], MIRRORED, &o, &m));
	(void)slmpm_mirror_attach(m, peer, TAG, SLMPM_MIRROR_FOLLOW | SLMPM_MIRROR_BOTH, 0);
	return m;
}

static void detach_mirror(slmpm_mirror m)
{
	OK(slmpm_mirror_destroy(m));
	for (int i = 0; i < MIRRORED; i++)
		CHECK(!mirrored[0][i] && !mirrored[2][i], "a byte beside the mirror");
}

static int64_t take_something(slmpm_peer peer, struct rng *g)
{
	static unsigned char room[20000];
	uint32_t stream = rng_one_in(g, 3) ? SLMPM_ANY_STREAM : 1 + rng_below(g, 3);
	size_t i = rng_below(g, 4);
	struct slmpm_done done;
	struct slmpm_stats stats;
	int64_t rc;
	void *at;

	switch (rng_below(g, 8)) {
	case 0:
		if (held[i]) {
			OK(slmpm_release(peer, held[i]));
			held[i] = NULL;
			return 0;
		}
		rc = slmpm_hold(peer, stream, &held[i], &done, 0);
		if (rc < 0)
			held[i] = NULL;
		else /* every byte of it is ours to read */
			for (int64_t b = 0; b < rc; b++)
				room[0] ^= ((const volatile unsigned char *)held[i])[b];
		return rc;
	case 1: return slmpm_send(peer, 1, bytes, rng_below(g, 9000), 0);
	case 2: return slmpm_probe(peer, stream, &done, 0);
	case 3:
		rc = slmpm_loan(peer, 2, 1 + rng_below(g, 100000), &at, 0);
		return rc < 0 ? rc : slmpm_abort(peer, at);
	case 4: return slmpm_peer_stats(peer, &stats, sizeof(stats));
	default: return slmpm_recv(peer, stream, room, sizeof(room), &done, (int)rng_below(g, 2));
	}
}

static bool goes_on(int64_t rc)
{
	return rc >= 0 || rc == -SLMPM_ETIMEOUT || rc == -SLMPM_ETRUNC || rc == -SLMPM_EAGAIN ||
	       rc == -SLMPM_ECHECKSUM || rc == -SLMPM_ELIMIT;
}

/* Until it ends, one way or another. */
static int64_t bear(slmpm_ctx ctx, slmpm_peer peer, slmpm_peer honest, struct rng *g)
{
	bool mirrors = rng_one_in(g, 2); /* who has one goes no fast path */
	slmpm_mirror m = {0};
	int64_t until = actor_now_ms() + BOUND_MS * actor_slow(), rc = 0;
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_UP};

	if (mirrors)
		m = attach_mirror(ctx, peer);
	for (int i = 0; info.state == SLMPM_PEER_UP && actor_now_ms() < until; i++) {
		rc = take_something(peer, g);
		OK(slmpm_peer_query(peer, &info));
		CHECK(goes_on(rc) || info.state != SLMPM_PEER_UP, "%lld: %s", (long long)rc,
		      slmpm_error_detail());
		if (i % 64 == 0)
			honest_works(honest);
	}
	for (int i = 0; i < 4; i++)
		if (held[i]) {
			OK(slmpm_release(peer, held[i]));
			held[i] = NULL;
		}
	if (mirrors)
		detach_mirror(m);
	(void)slmpm_close(peer, 50);
	return info.state;
}

int main(void)
{
	const char *text = getenv("SLMPM_TEST_SECONDS");
	int64_t until = actor_now_ms() + 1000 * (text ? atoi(text) : SECONDS);
	struct rng g = {rng_run_seed((uint64_t)time(NULL))};
	int ends[8] = {0}, sessions = 0;
	slmpm_listener listener;
	struct holdings before;
	struct slmpm_event e = {.size = sizeof(e)};
	slmpm_peer honest, peer;
	const char *name;
	uint64_t count;
	slmpm_ctx ctx;
	char url[80];
	pid_t pid;

	settings_one_link("shm");
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_LOAN_MAX", "1m", 1);
	snprintf(address, sizeof(address), "hostile-random-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(honest_peer, address, 600);
	OK(slmpm_accept(listener, &honest, PATIENCE));
	before = holdings_now();
	for (; actor_now_ms() < until; sessions++) {
		uint64_t seed = rng_next(&g);
		pid_t liar = child_start(lie, &seed, 60);

		OK(slmpm_accept(listener, &peer, PATIENCE));
		ends[bear(ctx, peer, honest, &g)]++;
		(void)child_wait(liar);
		while (slmpm_next_event(ctx, &e, 0) == 1)
			;
		holdings_expect(before, "a liar");
	}
	honest_works(honest);
	printf("%d liars: %d poisoned, %d died, %d closed, %d borne\n", sessions,
	       ends[SLMPM_PEER_POISONED], ends[SLMPM_PEER_DEAD], ends[SLMPM_PEER_CLOSED],
	       ends[SLMPM_PEER_UP]);
	for (int i = 0; slmpm_violation_at(i, &name, &count) == 0; i++)
		printf("%6llu %s\n", (unsigned long long)count, name);
	CHECK(ends[SLMPM_PEER_POISONED] > sessions / 4, "hardly anybody lied");
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}
