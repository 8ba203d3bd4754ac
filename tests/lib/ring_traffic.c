/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a checked stream, awake or asleep. */
#include "tests/lib/ring_traffic.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/lib/ring_pair.h"
#include "tests/lib/test.h"

#define CLOSING       255   /* the kind of the last packet */
#define LOST_AFTER_MS 20000 /* a sleeper that nobody woke for so long was forgotten */
#define HELD_MOST     16

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The stream's next packet, the same on both sides. */
struct next {
	uint64_t seed;
	uint32_t bytes;
	uint8_t kind;
};

static struct next next_of(struct rng *g, uint32_t longest)
{
	uint32_t bytes = rng_below(g, rng_one_in(g, 4) ? longest + 1 : 57);

	return (struct next){rng_next(g), bytes, (uint8_t)(1 + rng_below(g, CLOSING - 1))};
}

bool ring_traffic_next(struct rng *stream, const struct ring_reader *r, const struct ring_packet *p)
{
	struct next n = next_of(stream, (r->max << r->shift) - RING_WORD);

	return p->length == n.bytes && p->kind == n.kind && ring_filled(p->data, n.seed, n.bytes);
}

/* Sleeps on the socket until somebody rings. */
static void sleep_on(struct doorbell *bell, struct ring_tally *tally, const char *who)
{
	struct pollfd p = {.fd = *bell->fd, .events = POLLIN};
	char bytes[64];
	int rc;

	tally->sleeps++;
	do
		rc = poll(&p, 1, LOST_AFTER_MS);
	while (rc < 0 && errno == EINTR);
	CHECK(rc == 1, "the sleeping %s was not woken", who);
	while (recv(*bell->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* "I sleep", made visible: what follows it is the look that decides. */
static void fall_asleep(struct doorbell *bell)
{
	doorbell_announce(bell);
	doorbell_announced();
	if (doorbell_unfenced(bell))
		barrier_all();
}

static void wake_up(struct doorbell *bell)
{
	doorbell_retract(bell);
	doorbell_retracted();
	doorbell_resume(bell);
}

static unsigned char *reserve_or_wait(struct ring_writer *w, struct doorbell *bell,
				      const struct ring_traffic *t, struct ring_tally *tally,
				      uint32_t bytes)
{
	unsigned char *data = ring_reserve(w, bytes);

	for (uint32_t inspections = 0; !data; inspections++) {
		CHECK(!w->violation, "the reader was called violation %d", w->violation);
		ring_publish_produced(w);
		doorbell_check(bell); /* a pad may have gone out, and the total */
		if (!t->sleep || inspections < t->spins) {
			sched_yield();
			data = ring_reserve(w, bytes);
			continue;
		}
		fall_asleep(bell);
		data = ring_reserve(w, bytes);
		doorbell_check(bell);
		if (!data)
			sleep_on(bell, tally, "writer");
		wake_up(bell);
		if (!data)
			data = ring_reserve(w, bytes);
	}
	return data;
}

/* Sometimes more is reserved than sent, or a reservation given back. */
static void send_next(struct ring_writer *w, struct doorbell *bell, const struct ring_traffic *t,
		      struct ring_tally *tally, const struct next *n, struct rng *whim)
{
	uint32_t longest = (w->max << w->shift) - RING_WORD;
	uint32_t more = rng_one_in(whim, 8) ? rng_below(whim, longest - n->bytes + 1) : 0;
	unsigned char *data = reserve_or_wait(w, bell, t, tally, n->bytes + more);

	if (rng_one_in(whim, 16)) {
		memset(data, 0xff, n->bytes + more);
		ring_abort(w);
		data = reserve_or_wait(w, bell, t, tally, n->bytes);
	}
	ring_fill(data, n->seed, n->bytes);
	ring_commit(w, n->bytes, n->kind);
	doorbell_check(bell);
	tally->packets++;
	tally->bytes += n->bytes;
}

void ring_send_traffic(struct ring_writer *w, struct doorbell *bell, const struct ring_traffic *t,
		       struct ring_tally *tally)
{
	uint32_t longest = (w->max << w->shift) - RING_WORD;
	struct rng stream = {t->seed}, whim = {~t->seed};
	struct next closing = {0, 0, CLOSING};
	uint64_t end = now_ms() + t->milliseconds;

	while ((tally->packets & 31) != 0 || now_ms() < end) {
		struct next n = next_of(&stream, longest);

		send_next(w, bell, t, tally, &n, &whim);
		if (rng_one_in(&whim, 32)) /* let the ring run empty now and then */
			sched_yield();
	}
	send_next(w, bell, t, tally, &closing, &whim);
	ring_publish_produced(w);
	doorbell_check(bell);
}

struct holding {
	struct ring_packet packets[HELD_MOST];
	struct next expected[HELD_MOST];
	uint32_t count;
};

static void release_one(struct ring_reader *r, struct doorbell *bell, struct holding *h,
			struct rng *whim)
{
	uint32_t i = rng_below(whim, h->count);
	uint64_t before = r->writes;

	CHECK(ring_filled(h->packets[i].data, h->expected[i].seed, h->expected[i].bytes),
	      "a held packet changed");
	ring_release(r, &h->packets[i]);
	h->count--;
	h->packets[i] = h->packets[h->count];
	h->expected[i] = h->expected[h->count];
	if (r->writes != before)
		doorbell_check(bell);
}

/* Nothing there: everything is given back and made known, then the receiver may sleep. */
static int peek_or_wait(struct ring_reader *r, struct doorbell *bell, const struct ring_traffic *t,
			struct ring_tally *tally, struct ring_packet *p, uint32_t *inspections)
{
	int rc = ring_peek(r, p);

	if (rc != 0) {
		*inspections = 0;
		return rc;
	}
	if (!t->sleep || (*inspections)++ < t->spins) {
		sched_yield();
		return 0;
	}
	ring_settle(r);
	doorbell_check(bell);
	fall_asleep(bell); /* no other fence from here to the look: it must do alone */
	rc = ring_peek(r, p);
	if (rc == 0) {
		ring_settle(r); /* the look may have taken a pad */
		doorbell_check(bell);
		sleep_on(bell, tally, "reader");
	}
	wake_up(bell);
	return rc;
}

void ring_receive_traffic(struct ring_reader *r, struct doorbell *bell,
			  const struct ring_traffic *t, struct ring_tally *tally)
{
	uint32_t longest = (r->max << r->shift) - RING_WORD;
	struct rng stream = {t->seed}, whim = {t->seed ^ 0x5555};
	struct holding h = {.count = 0};
	struct next n = next_of(&stream, longest);
	uint32_t inspections = 0;

	for (;;) {
		struct ring_packet *p = &h.packets[h.count];
		int rc = peek_or_wait(r, bell, t, tally, p, &inspections);

		CHECK(rc >= 0, "the writer was called violation %d", r->violation);
		if (rc == 0) {
			while (h.count)
				release_one(r, bell, &h, &whim);
			continue;
		}
		tally->packets++;
		if (p->kind == CLOSING)
			break;
		CHECK(p->kind == n.kind && p->length == n.bytes,
		      "packet %llu is another: kind %u for %u, %u bytes for %u",
		      (unsigned long long)tally->packets, p->kind, n.kind, p->length, n.bytes);
		CHECK(ring_filled(p->data, n.seed, n.bytes), "packet %llu of %u bytes is torn",
		      (unsigned long long)tally->packets, n.bytes);
		tally->bytes += n.bytes;
		h.expected[h.count++] = n;
		n = next_of(&stream, longest);
		while (h.count > t->hold_most || h.count == HELD_MOST)
			release_one(r, bell, &h, &whim);
	}
	h.count++; /* the closing one */
	h.expected[h.count - 1] = (struct next){0, 0, CLOSING};
	while (h.count)
		release_one(r, bell, &h, &whim);
	ring_publish_consumed(r, RING_FLUSH);
	doorbell_check(bell);
	CHECK(ring_peek(r, &h.packets[0]) == 0, "something came after the closing packet");
}
