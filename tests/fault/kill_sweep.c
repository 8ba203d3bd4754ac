/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process is killed after every single instruction of sending, receiving and releasing, on rings
 * prepared to be awkward. What the survivor then finds must be whole: the committed packets and
 * nothing else, totals that are true, and work that goes on. Two planted faults must be noticed.
 */
#include <string.h>
#include <sys/mman.h>

#include "shm/mapping.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/sweep.h"
#include "tests/lib/test.h"

#define SEGMENTS_MOST 64
#define OBJECT        (RING_SEGMENTS_OFFSET + SEGMENTS_MOST * 64)
#define MESSAGES      160
#define BYTES_MOST    1024

struct message {
	uint32_t bytes;
	uint64_t end; /* the total after it; 0 while it is not sent */
};

/* All private state of both sides; a run starts from a copy of it. */
struct stage {
	struct ring_writer w;
	struct ring_reader r;
	uint64_t stale[2], done[2];
	struct message messages[MESSAGES]; /* in order; the seed is the index */
	int taken;                         /* read before the scene */
	int sent;                          /* written before the scene */
	int last;                          /* the scene sends up to here */
	struct ring_packet held[4];
	int holding;
};

struct scene {
	const char *name;
	uint32_t segments;
	uint64_t start;
	uint32_t threshold;
	void (*prepare)(void);
	void (*run)(void *);
	const char *(*check)(long *progress); /* NULL or what is wrong */
	bool planted;
};

static struct stage stage, prepared;
static struct mapping shared, shared_back, shared_out; /* the ring, the way back, what was read */
static unsigned char *image;                           /* of the ring as prepared */
static uint64_t prepared_consumed;                     /* the word on the way back, then */
static unsigned char payload[MESSAGES][BYTES_MOST];

/* ---- preparing ---- */

static void add(uint32_t bytes)
{
	stage.messages[stage.last++].bytes = bytes;
}

static void send_now(uint32_t bytes)
{
	int i = stage.last;

	add(bytes);
	CHECK(ring_put(&stage.w, (uint64_t)i, bytes), "no room to prepare message %d", i);
	stage.messages[i].end = stage.w.produced;
	stage.sent = stage.last;
}

static void take_now(void)
{
	ring_take(&stage.r, (uint64_t)stage.taken, stage.messages[stage.taken].bytes);
	stage.taken++;
}

static void three_lengths(void)
{
	add(8);
	add(100);
	add(248);
}

static void at_the_end(void)
{
	add(248); /* three segments are left: a pad */
	add(40);
}

/* Interior words hold payload wherever the next commit words go. */
static void after_a_lap(void)
{
	for (int i = 0; i < 25; i++) {
		send_now(i % 2 ? 248 : 120);
		take_now();
	}
	three_lengths();
	add(56);
}

static void full(void)
{
	for (int i = 0; i < 16; i++)
		send_now(50);
	add(50);
}

static void total_due(void)
{
	for (int i = 0; i < 3; i++)
		send_now(8);
	add(8); /* the fourth segment of 64: a sixteenth */
	add(1000);
}

static void some_unread(void)
{
	for (int i = 0; i < 3; i++) {
		send_now(120);
		take_now();
	}
	send_now(8);
	send_now(200);
	send_now(56); /* pads lie between */
	send_now(248);
}

static void nothing_unread(void)
{
	send_now(8);
	take_now();
}

static void four_held(void)
{
	for (int i = 0; i < 4; i++)
		send_now(i % 2 ? 100 : 20);
	for (int i = 0; i < 4; i++)
		ring_expect(&stage.r, &stage.held[i], (uint64_t)i, stage.messages[i].bytes);
	stage.holding = 4;
}

/* ---- what the child does until it is killed ---- */

static void send_all(void *arg)
{
	(void)arg;
	for (int i = stage.sent; i < stage.last; i++) {
		void *data = ring_reserve(&stage.w, stage.messages[i].bytes);

		if (!data)
			break;
		memcpy(data, payload[i], stage.messages[i].bytes);
		ring_commit(&stage.w, stage.messages[i].bytes, (uint8_t)(i % 255 + 1));
	}
	ring_publish_produced(&stage.w);
}

/* Planted: the commit word goes out before the payload. */
static void send_too_early(void *arg)
{
	(void)arg;
	for (int i = stage.sent; i < stage.last; i++) {
		void *data = ring_reserve(&stage.w, stage.messages[i].bytes);

		if (!data)
			break;
		ring_commit(&stage.w, stage.messages[i].bytes, (uint8_t)(i % 255 + 1));
		__asm__ volatile("" ::: "memory");
		memcpy(data, payload[i], stage.messages[i].bytes);
	}
}

static unsigned char *out_slot(int i)
{
	return (unsigned char *)shared_out.base + (size_t)i * BYTES_MOST;
}

static void receive_all(void *arg)
{
	struct ring_packet p;

	(void)arg;
	for (int i = stage.taken; ring_peek(&stage.r, &p) == 1; i++) {
		memcpy(out_slot(i), p.data, p.length);
		ring_release(&stage.r, &p);
	}
	ring_publish_consumed(&stage.r, RING_FLUSH);
}

/* Planted: the place is given back before the payload is out of it. */
static void release_too_early(void *arg)
{
	struct ring_packet p;

	(void)arg;
	for (int i = stage.taken; ring_peek(&stage.r, &p) == 1; i++) {
		ring_release(&stage.r, &p);
		__asm__ volatile("" ::: "memory");
		memcpy(out_slot(i), p.data, p.length);
	}
}

static void release_out_of_order(void *arg)
{
	static const int order[] = {2, 0, 3, 1};

	(void)arg;
	for (int i = 0; i < 4; i++)
		ring_release(&stage.r, &stage.held[order[i]]);
	ring_publish_consumed(&stage.r, RING_FLUSH);
}

/* ---- what the survivor finds ---- */

/* The writer died: the reader drains by commit words. *PROGRESS: messages delivered. */
static const char *check_reader(long *progress)
{
	struct ring_packet p;
	int i = stage.taken;
	int rc;

	while ((rc = ring_peek(&stage.r, &p)) == 1) {
		if (i >= stage.last)
			return "more arrived than was sent";
		if (p.length != stage.messages[i].bytes || p.kind != i % 255 + 1)
			return "another message arrived";
		if (!ring_filled(p.data, (uint64_t)i, p.length))
			return "a torn message arrived";
		ring_release(&stage.r, &p);
		i++;
	}
	if (rc < 0)
		return "the dead writer left a violation";
	if (i < stage.sent)
		return "a committed message was lost";
	if (ring_unread(&stage.r) != 0 || stage.r.violation)
		return "the total counts what was never committed";
	*progress = i;
	return NULL;
}

/* The reader died: the writer believes its K, and works on. *PROGRESS: K. */
static const char *check_writer(long *progress)
{
	uint64_t room = ring_room(&stage.w), start = prepared.w.consumed;
	bool boundary = stage.w.consumed == start;

	if (stage.w.violation)
		return "the dead reader left a violation";
	if (memcmp(shared.base, image, OBJECT) != 0)
		return "the reader wrote into the ring";
	for (int i = stage.taken; i < stage.sent; i++) {
		uint64_t next = stage.messages[i].end;

		boundary |= stage.w.consumed == next;
		if ((int64_t)(stage.w.consumed - next) < 0)
			continue;
		if (!stage.holding &&
		    !ring_filled(out_slot(i), (uint64_t)i, stage.messages[i].bytes))
			return "a place was given back before it was read";
	}
	if (!boundary && stage.holding)
		return "K is in the middle of a packet";
	for (uint64_t i = 0; i < room; i++)
		if (!ring_put(&stage.w, 999, 8))
			return "the writer is refused the room it was given";
	*progress = (long)(stage.w.consumed - start);
	return NULL;
}

/* ---- sweeping ---- */

static void set_up(const struct scene *s)
{
	struct ring_setup setup = {
		.shape = {s->segments, 64},
		.epoch = 0x3c6ef372,
		.start = s->start,
		.threshold = s->threshold,
		.batch = 1,
	};

	memset(shared.base, 0, OBJECT);
	memset(shared_back.base, 0, sizeof(struct ring_words));
	memset(&stage, 0, sizeof(stage));
	setup.bits = stage.stale;
	ring_lay_writer(&stage.w, setup, shared.base, shared_back.base);
	setup.bits = stage.done;
	ring_lay_reader(&stage.r, setup, shared.base, shared_back.base);
	s->prepare();
	(void)ring_room(&stage.w);
	prepared = stage;
	prepared_consumed = atomic_load(&ring_words_of(shared_back.base)->consumed);
	memcpy(image, shared.base, OBJECT);
}

static void reset(void)
{
	stage = prepared;
	memcpy(shared.base, image, OBJECT);
	atomic_store(&ring_words_of(shared_back.base)->consumed, prepared_consumed);
	memset(shared_out.base, 0, shared_out.size);
}

static long sweep(const struct scene *s)
{
	struct sweep sweep = {
		.name = s->name,
		.unit = STEP_INSTRUCTION,
		.body = {.run = s->run},
		.reset = reset,
		.check = s->check,
		.planted = s->planted,
	};

	set_up(s);
	/* Once here, so that the child does not step through the linker's binding of it. */
	memcpy(shared_out.base, payload[s->segments % 2], s->segments);
	return sweep_run(&sweep);
}

static const struct scene scenes[] = {
	{"send into an empty ring", 16, UINT64_MAX - 1, 0, three_lengths, send_all, check_reader,
	 false},
	{"send at the end, a pad due", 16, 12, 0, at_the_end, send_all, check_reader, false},
	{"send over old payload", 16, UINT32_MAX - 60, 0, after_a_lap, send_all, check_reader,
	 false},
	{"send into a full ring", 16, 0, 0, full, send_all, check_reader, false},
	{"send with a publication due", 64, 0, 0, total_due, send_all, check_reader, false},
	{"receive from an empty ring", 16, 0, 0, nothing_unread, receive_all, check_writer, false},
	{"receive, publishing after every read", 16, 0, 0, some_unread, receive_all, check_writer,
	 false},
	{"receive, publishing at three quarters", 16, UINT64_MAX - 20, 12, some_unread, receive_all,
	 check_writer, false},
	{"release out of order, after every read", 16, 0, 0, four_held, release_out_of_order,
	 check_writer, false},
	{"release out of order, lazily", 16, 0, 8, four_held, release_out_of_order, check_writer,
	 false},
	{"commit before the payload", 16, 0, 0, three_lengths, send_too_early, check_reader, true},
	{"commit before the payload, over old payload", 16, 0, 0, after_a_lap, send_too_early,
	 check_reader, true},
	{"release before the payload is out", 16, 0, 0, some_unread, release_too_early,
	 check_writer, true},
};

static void share(struct mapping *m, size_t size)
{
	CHECK(mapping_create(m, "kill_sweep", size) == 0, "no shared memory");
	CHECK(madvise(m->base, size, MADV_DOFORK) == 0, "the child would not have it");
}

int main(void)
{
	long wrong = 0;

	if (!step_possible(STEP_INSTRUCTION))
		test_skip("no single-stepping on this machine");
	share(&shared, OBJECT);
	share(&shared_back, 4096);
	share(&shared_out, (size_t)MESSAGES * BYTES_MOST);
	image = malloc(OBJECT);
	CHECK(image, "out of memory");
	for (int i = 0; i < MESSAGES; i++)
		ring_fill(payload[i], (uint64_t)i, BYTES_MOST);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		wrong += sweep(&scenes[i]);
	free(image);
	CHECK(wrong == 0, "%ld kills left a wronged survivor", wrong);
	return 0;
}
