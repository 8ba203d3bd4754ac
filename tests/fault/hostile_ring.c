/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that stores anything anywhere at any time, as a process of its own and once more between
 * our steps. The survivor never crashes, hangs or leaves its memory; each violation has a name.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "shm/doorbell.h"
#include "shm/mapping.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/test.h"

#define SEGMENTS_MOST 64
#define OBJECT        (RING_SEGMENTS_OFFSET + (size_t)SEGMENTS_MOST * 64)
#define PAGE          4096
#define HELD_MOST     6
#define SECONDS       3

/* What the survivor tells the attacker, so that its lies come close to the truth. */
struct hints {
	_Atomic uint32_t segments;
	_Atomic uint32_t epoch;
	_Atomic uint32_t pace; /* attack only every so many looks: some rings live longer */
};

static struct mapping ours, theirs, hinted; /* our object, the peer's, and the hints */

/* ---- the attacker ---- */

struct target {
	unsigned char *object;   /* the survivor's */
	struct ring_words *peer; /* where the survivor's totals arrive */
	const struct hints *hints;
	struct rng g;
};

static uint64_t load(const _Atomic uint64_t *word)
{
	return LITTLE_64(atomic_load_explicit(word, memory_order_relaxed));
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, LITTLE_64(value), memory_order_relaxed);
}

/* A commit word for a segment that the survivor soon looks at. */
static void forge_packet(struct target *t, uint32_t n)
{
	uint64_t total =
		load(&t->peer->consumed) + 1 + rng_below(&t->g, rng_one_in(&t->g, 2) ? 2 : n);
	uint32_t epoch = atomic_load_explicit(&t->hints->epoch, memory_order_relaxed);
	uint32_t length = rng_below(&t->g, rng_one_in(&t->g, 4) ? RING_LENGTH_MAX : n * 20);
	uint64_t word = ring_word(total, epoch, length, (uint8_t)rng_next(&t->g));

	if (rng_one_in(&t->g, 8))
		word |= UINT64_C(1) << 62;
	if (rng_one_in(&t->g, 8))
		word = RING_PAD | (rng_one_in(&t->g, 4) ? word : (uint32_t)word);
	store((_Atomic uint64_t *)(void *)(t->object + RING_SEGMENTS_OFFSET +
					   (total & (n - 1)) * 64),
	      word);
}

static void attack(struct target *t)
{
	uint32_t n = atomic_load_explicit(&t->hints->segments, memory_order_relaxed);
	struct ring_words *words = ring_words_of(t->object);
	uint64_t near = rng_below(&t->g, 2 * n) - (uint64_t)(n / 2);
	_Atomic uint64_t *any =
		(_Atomic uint64_t *)(void *)t->object + rng_below(&t->g, OBJECT / 8);

	switch (rng_below(&t->g, 16)) {
	case 0: store(any, rng_next(&t->g)); break;
	case 1: store(any, load(any) ^ UINT64_C(1) << rng_below(&t->g, 64)); break;
	case 2: store(&words->produced, load(&t->peer->consumed) + near); break;
	case 3: store(&words->consumed, load(&t->peer->produced) - near); break;
	case 4: store(&words->asleep, rng_next(&t->g)); break;
	case 5: store(&words->consumed, load(&t->peer->produced)); break; /* the truth */
	case 6: store(any, 0); break;
	default: forge_packet(t, n);
	}
}

static int attack_for_ever(void *arg)
{
	struct mapping object, peer, hints;
	struct target t = {.g = {*(uint64_t *)arg}};

	CHECK(mapping_attach(&object, ours.fd, OBJECT, MAPPING_WRITE) == 0 &&
		      mapping_attach(&peer, theirs.fd, OBJECT, MAPPING_WRITE) == 0 &&
		      mapping_attach(&hints, hinted.fd, PAGE, MAPPING_READ) == 0,
	      "cannot attach");
	t.object = object.base;
	t.peer = peer.base;
	t.hints = hints.base;
	for (;;)
		if (rng_one_in(&t.g, atomic_load_explicit(&t.hints->pace, memory_order_relaxed)))
			attack(&t);
}

/* ---- the survivor ---- */

struct survivor {
	struct rng g;
	uint32_t n;
	uint32_t pace;
	unsigned char *own, *peer; /* each between two pages that nobody may touch */
	uint64_t stale[1], done[1];
	struct ring_writer w;
	struct ring_reader r;
	struct doorbell bell;
	struct ring_packet held[HELD_MOST];
	uint32_t holding;
	uint64_t delivered, sent, pads_or_nothing, connections;
	uint64_t violations[RING_VIOLATIONS];
};

static unsigned char *map_between_guards(const struct mapping *m)
{
	unsigned char *space =
		mmap(NULL, OBJECT + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(space != MAP_FAILED, "no address space");
	CHECK(mmap(space + PAGE, OBJECT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd,
		   0) == space + PAGE,
	      "cannot map");
	return space + PAGE;
}

/* A new connection on the same memory: other geometry, other epoch, other totals. */
static void connect_again(struct survivor *s)
{
	struct hints *hints = hinted.base;
	struct ring_setup setup = {
		.start = rng_next(&s->g),
		.epoch = (uint32_t)rng_next(&s->g),
	};
	uint32_t n = 2u << rng_below(&s->g, 6);

	s->n = n;
	setup.shape = (struct ring_shape){n, 64};
	setup.threshold = rng_below(&s->g, n);
	setup.batch = rng_below(&s->g, n);
	memset(s->own, 0, OBJECT);
	memset(s->peer, 0, sizeof(struct ring_words));
	memset(s->stale, 0, sizeof(s->stale));
	memset(s->done, 0, sizeof(s->done));
	setup.bits = s->stale;
	ring_lay_writer(&s->w, setup, s->peer, s->own);
	setup.bits = s->done;
	ring_lay_reader(&s->r, setup, s->own, s->peer);
	store(&ring_words_of(s->peer)->consumed, setup.start);
	store(&ring_words_of(s->peer)->produced, setup.start);
	s->bell.rung = 0;
	s->holding = 0;
	s->connections++;
	s->pace = 4u << 3 * rng_below(&s->g, 4);
	atomic_store(&hints->pace, s->pace);
	atomic_store(&hints->epoch, setup.epoch);
	atomic_store(&hints->segments, n);
}

static void poisoned(struct survivor *s, enum ring_violation v)
{
	CHECK(v > RING_SOUND && v < RING_VIOLATIONS, "a violation without a name: %d", (int)v);
	s->violations[v]++;
	connect_again(s);
}

/* Reads every byte into a buffer of exactly that size. */
static void read_packet(struct survivor *s, const struct ring_packet *p)
{
	size_t first = (size_t)(p->total & (s->n - 1)) * 64;
	unsigned char *copy;

	CHECK(p->data == s->r.segments + first + RING_WORD, "data is elsewhere");
	CHECK(p->segments >= 1 && p->segments <= s->r.max, "%u segments", p->segments);
	CHECK(p->length + RING_WORD <= p->segments * 64u, "%u bytes in %u segments", p->length,
	      p->segments);
	CHECK(first + (size_t)p->segments * 64 <= (size_t)s->n * 64, "a packet that wraps");
	copy = malloc(p->length + 1u);
	CHECK(copy, "out of memory");
	memcpy(copy, p->data, p->length);
	free(copy);
}

static void receive(struct survivor *s)
{
	struct ring_packet p;
	int rc = ring_peek(&s->r, &p);

	if (rc < 0) {
		poisoned(s, s->r.violation);
		return;
	}
	CHECK(s->r.read - s->r.consumed <= s->n, "more is held than the ring has");
	if (rc == 0) {
		s->pads_or_nothing++;
		return;
	}
	read_packet(s, &p);
	s->delivered++;
	s->held[s->holding++] = p;
}

static void release(struct survivor *s)
{
	uint32_t i;

	if (!s->holding)
		return;
	i = rng_below(&s->g, s->holding);
	ring_release(&s->r, &s->held[i]);
	s->held[i] = s->held[--s->holding];
	CHECK(s->r.read - s->r.consumed <= s->n, "more was released than read");
	if (s->r.violation)
		poisoned(s, s->r.violation);
}

static void send_one(struct survivor *s)
{
	uint32_t bytes = rng_below(&s->g, s->w.max * 64 - 7);
	unsigned char *data = ring_reserve(&s->w, bytes);

	if (data) {
		CHECK(data >= s->w.segments && data + bytes <= s->w.segments + (size_t)s->n * 64,
		      "reserved outside the ring");
		memset(data, 0x77, bytes);
		ring_commit(&s->w, bytes, 1);
		doorbell_check(&s->bell);
		s->sent++;
	}
	CHECK(s->w.produced - s->w.consumed <= s->n, "more is written than the ring has");
	if (s->w.violation)
		poisoned(s, s->w.violation);
}

static void inspect(struct survivor *s)
{
	uint64_t unread = ring_unread(&s->r), room = ring_room(&s->w);

	CHECK(unread <= s->n && room <= s->n, "%llu unread, room for %llu of %u",
	      (unsigned long long)unread, (unsigned long long)room, s->n);
	if (s->r.violation)
		poisoned(s, s->r.violation);
	else if (s->w.violation)
		poisoned(s, s->w.violation);
}

static bool enough(const struct survivor *s)
{
	for (int v = RING_SOUND + 1; v < RING_VIOLATIONS; v++)
		if (!s->violations[v])
			return false;
	return s->delivered > 1000 && s->sent > 1000;
}

static void survive(struct survivor *s, struct target *t)
{
	time_t end = time(NULL) + SECONDS;

	/* Longer where processors are short. */
	while (time(NULL) < end || (!enough(s) && time(NULL) < end + 10 * SECONDS))
		for (int i = 0; i < 1000; i++) {
			if (rng_one_in(&s->g, s->pace))
				attack(t);
			switch (rng_below(&s->g, 8)) {
			case 0:
			case 1:
			case 2:
				if (s->holding < HELD_MOST)
					receive(s);
				break;
			case 3:
			case 4: release(s); break;
			case 5:
			case 6: send_one(s); break;
			default: inspect(s);
			}
		}
}

int main(void)
{
	static const char *const names[] = {"sound", "bad tag", "bad length", "bad produced",
					    "bad consumed"};
	static struct survivor s;
	uint64_t seed = rng_run_seed(0x686f7374696c6521);
	struct target t;
	pid_t attacker;
	static atomic_int bell;
	int fds[2];

	alarm(50); /* an endless loop ends here, and is a failure */
	CHECK(mapping_create(&ours, "hostile", OBJECT) == 0 &&
		      mapping_create(&theirs, "hostile", OBJECT) == 0 &&
		      mapping_create(&hinted, "hostile", PAGE) == 0,
	      "no shared memory");
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0, "no sockets");
	s.g.state = seed;
	bell = fds[0];
	s.own = map_between_guards(&ours);
	s.peer = map_between_guards(&theirs);
	s.bell = (struct doorbell){.asleep_in = &ring_words_of(s.own)->asleep,
				   .asleep_out = &ring_words_of(s.peer)->asleep,
				   .fd = &bell};
	connect_again(&s);
	t = (struct target){.object = s.own,
			    .peer = ring_words_of(s.peer),
			    .hints = hinted.base,
			    .g = {seed ^ 1}};
	attacker = child_start(attack_for_ever, &seed, 50);
	survive(&s, &t);
	CHECK(kill(attacker, SIGKILL) == 0 && child_wait(attacker) == -SIGKILL,
	      "the attacker did not last");
	printf("%llu packets taken, %llu sent, %llu bells, %llu connections\n",
	       (unsigned long long)s.delivered, (unsigned long long)s.sent,
	       (unsigned long long)s.bell.bells, (unsigned long long)s.connections);
	for (int v = RING_SOUND + 1; v < RING_VIOLATIONS; v++) {
		printf("%-12s %llu times\n", names[v], (unsigned long long)s.violations[v]);
		CHECK(s.violations[v] > 0, "%s never met: the attack is too weak", names[v]);
	}
	CHECK(s.delivered > 1000 && s.sent > 1000, "hardly anything happened");
	return 0;
}
