/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the model: two threads, and for each shared word the messages stored there that
 * the other thread may still read.
 *
 * Every word has one storing thread, so the modification order of each is that thread's program
 * order, and what a thread knows of the other is a single number: how many of its stores. Two are
 * kept: `hb`, what an acquire has made happen before (the race check uses it), and `seen`, at
 * least that, which fences of seq_cst order and membarrier raise too. A load may return any message
 * from the newest one that is `seen`, or was read before, onward.
 */
#ifndef TESTS_MODEL_MACHINE_H
#define TESTS_MODEL_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/hooks.h"

#define MACHINE_SEGMENTS 16
#define MACHINE_HISTORY  16
#define SEGMENT_BYTES    64

enum { WRITER, READER, THREADS };

/* Locations: these words, then the first word of each segment. */
enum machine_word {
	WORD_PRODUCED,
	WORD_CONSUMED,
	WORD_WRITER_ASLEEP, /* stored by the writer, looked at by the reader */
	WORD_READER_ASLEEP,
	WORDS
};
#define LOCATIONS (WORDS + MACHINE_SEGMENTS)

struct message {
	uint64_t value;
	uint16_t number; /* of the storing thread's stores */
	uint16_t view;   /* an acquire of it learns of so many of them */
	uint16_t plain;  /* payload, not an atomic store */
	uint16_t zero;
};

struct location {
	uint16_t owner;     /* the thread that stores here */
	uint16_t count;     /* messages that the other may still read, oldest first */
	uint16_t last;      /* number of the message it read last */
	uint16_t inspected; /* stamp of its last atomic load here */
	uint16_t read;      /* stamp of its last payload read here */
	/* The bytes of a segment behind its first word: one plain variable. */
	uint16_t body_written, body_read; /* stamps */
	uint64_t body;
	struct message messages[MACHINE_HISTORY];
};

struct knowledge {
	uint16_t stores;  /* of this thread */
	uint16_t hb;      /* of the other's stores: these happened before */
	uint16_t seen;    /* ... these are visible */
	uint16_t pending; /* ... an acquire fence would make these happen before */
	uint16_t fenced;  /* own stores before the last release fence */
	uint16_t global;  /* own stores that the order of seq_cst fences has made known */
	uint16_t bell;    /* a byte has arrived */
	uint16_t dead;
};

struct machine {
	struct knowledge threads[THREADS];
	uint64_t early; /* what machine_prefetch found */
	unsigned used;  /* locations */
	struct location locations[LOCATIONS];
};

/* Where the ring under test believes its memory to be; only addresses are used. */
extern unsigned char machine_segments[MACHINE_SEGMENTS * SEGMENT_BYTES];
extern _Atomic uint64_t machine_words[WORDS];

/* REVERSE: a bit for each segment that the reader stores into, as in a ring the other way. */
void machine_init(struct machine *m, unsigned segments, unsigned reverse, uint64_t start);
/* The location at an address of the ring, -1 when there is none. */
int machine_location(const volatile void *address);
const char *machine_name(int location);

/* How many messages thread T may read at a location; machine_load takes the Nth, oldest first. */
unsigned machine_readable(const struct machine *m, int t, int location);
/* Is there a message newer than what the other thread read last? */
bool machine_news(const struct machine *m, int location);
uint64_t machine_load(struct machine *m, int t, int location, unsigned n, memory_order order);
void machine_store(struct machine *m, int t, int location, uint64_t value, memory_order order);
/* T comes to a store: what could a look at the sleeper that is moved up to here return? */
void machine_prefetch(struct machine *m, int t);
void machine_fence(struct machine *m, int t, memory_order order);
/* membarrier(2): a full fence in every thread, wherever it is. */
void machine_barrier(struct machine *m);
/* The kernel's word that the other is dead: all its stores are there. */
void machine_mourn(struct machine *m, int t);

/* Payload, written by the segment's owner and read by the other; NULL or the fault. FIRST: the
 * first word of a segment (its location), else the rest of it. */
const char *machine_write_plain(struct machine *m, unsigned segment, bool first, uint64_t value);
const char *machine_read_plain(struct machine *m, unsigned segment, bool first, uint64_t *value);

/* A hash of everything that can still matter; PRIVATE is what it is mixed with. */
uint64_t machine_hash(const struct machine *m, uint64_t private);
/* The leading bytes of a machine that are in use. */
size_t machine_size(const struct machine *m);
uint64_t hash_bytes(uint64_t hash, const void *bytes, unsigned long size);

#endif
