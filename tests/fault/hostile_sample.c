/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are timed, and a peer that lies about when it had them: by any clock, twice, for
 * one that was not asked about. No latency is longer than the lie took to tell, and who has not
 * said that it answers is not asked.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/actor.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define LIES 5

/* The next packet, its head; false: the other side is gone. */
static bool next_packet(struct raw_peer *p, uint8_t *kind, uint64_t head[3])
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;
	char bells[64];

	while (ring_peek(&p->r, &packet) != 1) {
		struct pollfd end = {.fd = p->fd, .events = POLLIN};

		CHECK(actor_now_ms() < until, "nothing comes");
		(void)poll(&end, 1, 1);
		if (end.revents && recv(p->fd, bells, sizeof(bells), MSG_DONTWAIT) == 0)
			return false;
	}
	*kind = packet.kind;
	memcpy(head, packet.data, 24);
	ring_release(&p->r, &packet);
	ring_publish_consumed(&p->r, RING_FLUSH);
	return true;
}

static void answer(struct raw_peer *p, uint64_t seq, uint64_t clock)
{
	clock = LITTLE_64(clock);
	raw_post(p, WIRE_ECHO_ANSWER, seq, 0, 1, &clock, sizeof(clock));
}

/* Lies to what is timed; FEATURES it has. How often it was asked. */
static int converse(uint64_t features)
{
	static const uint64_t clocks[LIES] = {0, 1, UINT64_MAX, UINT64_MAX / 2, UINT64_MAX - 1};
	struct raw_peer p;
	uint64_t head[3];
	uint8_t kind;
	int asked = 0;

	raw_begin(&p, raw_inherited());
	p.hello.features = LITTLE_64(features);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	while (next_packet(&p, &kind, head)) {
		char notified = (char)asked;

		if (kind == WIRE_CLOSE)
			break;
		if (kind != WIRE_SEND_ONLY)
			continue;
		if (LITTLE_64(head[2]) >> 48 & WIRE_FLAG_TIMED) {
			answer(&p, LITTLE_64(head[0]), clocks[asked % LIES]);
			answer(&p, LITTLE_64(head[0]), 12345); /* once more: nobody listens */
			asked++;
		}
		raw_send(&p, 1, &notified, 1);
		raw_ring_bell(&p);
	}
	raw_end(&p);
	return asked;
}

static int lie(slmpm_peer none, char **words)
{
	(void)none;
	return converse(!strcmp(words[0], "all") ? WIRE_FEATURES :
						   WIRE_FEATURES & ~WIRE_FEATURE_TIMED);
}

static struct slmpm_timing sum(slmpm_peer peer)
{
	struct slmpm_timing all = {.samples = 0};
	struct slmpm_monitor m;

	OK(slmpm_monitor(peer, &m, sizeof(m)));
	for (int w = 0; w < SLMPM_WARMTH; w++) {
		const struct slmpm_timing *t = &m.timing[SLMPM_BY_SMT][0][w];

		all.samples += t->samples;
		all.latency_ns = t->latency_ns > all.latency_ns ? t->latency_ns : all.latency_ns;
	}
	return all;
}

static void exchange(slmpm_peer peer, char *asked)
{
	OK(slmpm_send(peer, 1, asked, 1, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, asked, 1, NULL, PATIENCE), 1);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-lie", lie}, {NULL, NULL}};
	int64_t begin = actor_now_ms(), until = begin + PATIENCE * actor_slow();
	struct slmpm_timing all;
	slmpm_peer liar, deaf;
	char asked = 0;

	settings_one_link("shm"); /* as the raw peer\'s */
	CHECK(!setenv("SLMPM_MONITOR_MS", "40", 1), "environment");
	actor_begin(argc, argv, roles);
	deaf = actor_spawn("-lie", "some", NULL);
	liar = actor_spawn("-lie", "all", NULL);
	while (asked < 2 * LIES) {
		char none = 0;

		CHECK(actor_now_ms() < until, "asked %d times", asked);
		exchange(liar, &asked);
		exchange(deaf, &none);
		EXPECT(none, 0);
	}
	exchange(liar, &asked); /* what was answered before is in */
	all = sum(liar);
	CHECK(all.samples >= 2 * LIES, "%llu samples", (unsigned long long)all.samples);
	CHECK(all.latency_ns && all.latency_ns / 1000000 <= actor_now_ms() - begin + 1, "%u ns",
	      all.latency_ns);
	EXPECT(sum(deaf).samples, 0);
	OK(slmpm_close(deaf, PATIENCE));
	EXPECT(slmpm_join(deaf, NULL, PATIENCE), 0);
	OK(slmpm_close(liar, PATIENCE));
	CHECK(slmpm_join(liar, NULL, PATIENCE) >= 2 * LIES, "it was asked less often");
	return 0;
}
