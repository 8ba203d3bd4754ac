/* SPDX-License-Identifier: BSD-3-Clause */
/* C11's release and acquire between two threads, as far as a ring can tell (machine.h). */
#include "tests/model/machine.h"

#include <string.h>

#include "tests/model/explore.h"

unsigned char machine_segments[MACHINE_SEGMENTS * SEGMENT_BYTES]
	__attribute__((aligned(SEGMENT_BYTES)));
_Atomic uint64_t machine_words[WORDS];

static uint16_t later(uint16_t a, uint16_t b)
{
	return a > b ? a : b;
}

void machine_init(struct machine *m, unsigned segments, unsigned reverse, uint64_t start)
{
	memset(m, 0, sizeof(*m));
	m->used = WORDS + segments;
	for (unsigned i = 0; i < m->used; i++)
		m->locations[i].count = 1;
	m->locations[WORD_CONSUMED].owner = READER;
	m->locations[WORD_READER_ASLEEP].owner = READER;
	for (unsigned i = 0; i < segments; i++)
		m->locations[WORDS + i].owner = reverse >> i & 1 ? READER : WRITER;
	m->locations[WORD_PRODUCED].messages[0].value = start;
	m->locations[WORD_CONSUMED].messages[0].value = start;
}

int machine_location(const volatile void *address)
{
	uintptr_t at = (uintptr_t)address;
	uintptr_t segments = (uintptr_t)machine_segments;
	uintptr_t words = (uintptr_t)machine_words;

	if (at - segments < sizeof(machine_segments))
		return (at - segments) % SEGMENT_BYTES ?
			       -1 :
			       (int)(WORDS + (at - segments) / SEGMENT_BYTES);
	if (at - words < sizeof(machine_words) && (at - words) % 8 == 0)
		return (int)((at - words) / 8);
	return -1;
}

const char *machine_name(int location)
{
	static const char *const names[] = {
		"produced",   "consumed",   "writer's asleep", "reader's asleep", "segment 0",
		"segment 1",  "segment 2",  "segment 3",       "segment 4",       "segment 5",
		"segment 6",  "segment 7",  "segment 8",       "segment 9",       "segment 10",
		"segment 11", "segment 12", "segment 13",      "segment 14",      "segment 15"};

	return names[location];
}

/* Drops the messages that can no longer be read: those before the first FLOOR ones. */
static void forget(struct location *l, unsigned floor)
{
	if (!floor)
		return;
	l->count = (uint16_t)(l->count - floor);
	memmove(l->messages, l->messages + floor, l->count * sizeof(l->messages[0]));
}

/* Thread T now sees so many stores of the other: what they replaced is history. */
static void see(struct machine *m, int t, uint16_t stores)
{
	struct knowledge *k = &m->threads[t];

	if (stores <= k->seen)
		return;
	k->seen = stores;
	for (unsigned i = 0; i < m->used; i++) {
		struct location *l = &m->locations[i];
		unsigned floor = 0;

		if (l->owner == t)
			continue;
		while (floor + 1 < l->count && l->messages[floor + 1].number <= stores)
			floor++;
		forget(l, floor);
	}
}

static void learn(struct machine *m, int t, uint16_t stores)
{
	m->threads[t].hb = later(m->threads[t].hb, stores);
	see(m, t, stores);
}

unsigned machine_readable(const struct machine *m, int t, int location)
{
	return m->locations[location].owner == t ? 0 : m->locations[location].count;
}

bool machine_news(const struct machine *m, int location)
{
	const struct location *l = &m->locations[location];

	return l->messages[l->count - 1].number != l->last;
}

uint64_t machine_load(struct machine *m, int t, int location, unsigned n, memory_order order)
{
	struct location *l = &m->locations[location];
	struct message got = l->messages[n];

	forget(l, n); /* coherence: never an older one again */
	l->last = got.number;
	l->inspected = (uint16_t)(m->threads[t].stores + 1);
	m->threads[t].pending = later(m->threads[t].pending, got.view);
	if (order != memory_order_relaxed)
		learn(m, t, got.view);
	for (unsigned i = 0; i < l->count; i++) {
		if (l->messages[i].plain && l->messages[i].number > m->threads[t].hb)
			explore_fault("race: a commit word looked for where payload is written");
	}
	return got.value;
}

static void append(struct location *l, struct message message)
{
	if (l->count == MACHINE_HISTORY) {
		explore_fault("the checker: too many messages unread at one word");
		return;
	}
	l->messages[l->count++] = message;
}

void machine_store(struct machine *m, int t, int location, uint64_t value, memory_order order)
{
	struct knowledge *k = &m->threads[t];

	k->stores++;
	append(&m->locations[location],
	       (struct message){
		       .value = value,
		       .number = k->stores,
		       .view = order == memory_order_relaxed ? k->fenced : k->stores,
	       });
}

void machine_prefetch(struct machine *m, int t)
{
	if (t == WRITER)
		m->early = m->locations[WORD_READER_ASLEEP].messages[0].value;
}

void machine_fence(struct machine *m, int t, memory_order order)
{
	struct knowledge *k = &m->threads[t], *other = &m->threads[!t];

	learn(m, t, k->pending);
	k->fenced = k->stores;
	if (order != memory_order_seq_cst)
		return;
	see(m, t, other->global);
	other->global = later(other->global, k->seen);
	k->global = k->stores;
}

void machine_barrier(struct machine *m)
{
	for (int t = 0; t < THREADS; t++) {
		learn(m, t, m->threads[t].pending);
		see(m, t, m->threads[!t].stores);
		m->threads[t].fenced = m->threads[t].global = m->threads[t].stores;
	}
}

void machine_mourn(struct machine *m, int t)
{
	learn(m, t, m->threads[!t].stores);
}

const char *machine_write_plain(struct machine *m, unsigned segment, bool first, uint64_t value)
{
	struct location *l = &m->locations[WORDS + segment];
	struct knowledge *k = &m->threads[l->owner];

	if ((first ? later(l->inspected, l->read) : l->body_read) > k->hb)
		return "race: payload written while the reader may still look there";
	if (!first) {
		l->body = value;
		l->body_written = (uint16_t)(k->stores + 1);
		return NULL;
	}
	k->stores++;
	append(l, (struct message){.value = value, .number = k->stores, .view = 0, .plain = 1});
	return NULL;
}

const char *machine_read_plain(struct machine *m, unsigned segment, bool first, uint64_t *value)
{
	struct location *l = &m->locations[WORDS + segment];
	struct knowledge *k = &m->threads[!l->owner];
	uint16_t stamp = (uint16_t)(k->stores + 1);

	if (first) {
		const struct message *last = &l->messages[l->count - 1];

		if (last->number > k->hb)
			return "race: payload read that is not known to be written";
		l->read = stamp;
		*value = last->value;
		return last->plain ? NULL : "payload overwritten by a commit word";
	}
	if (l->body_written > k->hb)
		return "race: payload read that is not known to be written";
	l->body_read = stamp;
	*value = l->body;
	return NULL;
}

/* ---- hashing ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two words more; the last ones may be few bytes. */
static uint64_t take(uint64_t lane, const unsigned char *at, unsigned long size)
{
	uint64_t word[2] = {0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a};

	if (size >= sizeof(word)) /* of a known size: no call */
		memcpy(word, at, sizeof(word));
	else
		memcpy(word, at, size);
	return mix(word[0] ^ UINT64_C(0x9e3779b97f4a7c15), word[1] ^ lane) + lane * 5;
}

/* Four lanes, so that multiplications need not wait for each other. */
uint64_t hash_bytes(uint64_t hash, const void *bytes, unsigned long size)
{
	const unsigned char *at = bytes;
	uint64_t lane[4] = {hash, hash ^ UINT64_C(0x8bb84b93962eacc9),
			    hash ^ UINT64_C(0xd6e8feb86659fd93),
			    hash ^ UINT64_C(0x589965cc75374cc3)};

	for (; size >= 64; at += 64, size -= 64) {
		for (int i = 0; i < 4; i++)
			lane[i] = take(lane[i], at + 16 * i, 16);
	}
	for (int i = 0; size; i++) {
		unsigned long part = size < 16 ? size : 16;

		lane[i] = take(lane[i], at, part);
		at += part;
		size -= part;
	}
	return mix(mix(lane[0] ^ UINT64_C(0xa0761d6478bd642f), lane[1]),
		   lane[2] ^ lane[3] * UINT64_C(0xe7037ed1a0b428db));
}

/* Stores that the other knows of are all alike; later ones count from there. */
static uint64_t since(uint16_t store, uint16_t known)
{
	return store > known ? (uint64_t)(store - known) : 0;
}

uint64_t machine_hash(const struct machine *m, uint64_t hash)
{
	uint16_t known[THREADS] = {m->threads[READER].hb, m->threads[WRITER].hb};
	uint64_t flat[2 * THREADS + LOCATIONS * (2 * MACHINE_HISTORY + 3)];
	unsigned n = 0;

	for (int t = 0; t < THREADS; t++) {
		const struct knowledge *k = &m->threads[t];

		flat[n++] = since(k->stores, known[t]) | since(k->fenced, known[t]) << 16 |
			    since(k->global, known[t]) << 32 | (uint64_t)k->bell << 48 |
			    (uint64_t)k->dead << 56;
		flat[n++] = since(k->seen, k->hb) | since(k->pending, k->hb) << 16;
	}
	for (unsigned i = 0; i < m->used; i++) {
		const struct location *l = &m->locations[i];
		uint16_t base = known[l->owner], back = known[!l->owner];

		flat[n++] = l->count | since(l->inspected, back) << 16 |
			    since(l->read, back) << 32 | (uint64_t)machine_news(m, (int)i) << 48;
		if (i >= WORDS) {
			flat[n++] = l->body;
			flat[n++] = since(l->body_written, base) | since(l->body_read, back) << 16;
		}
		for (unsigned j = 0; j < l->count; j++) {
			const struct message *msg = &l->messages[j];

			flat[n++] = msg->value;
			flat[n++] = since(msg->number, base) | since(msg->view, base) << 16 |
				    (uint64_t)msg->plain << 32;
		}
	}
	if (model_weakened(SITE_bell_order, WEAK_OMITTED))
		hash = mix(hash ^ m->early, UINT64_C(0xa0761d6478bd642f));
	return hash_bytes(hash, flat, n * sizeof(flat[0]));
}

size_t machine_size(const struct machine *m)
{
	return offsetof(struct machine, locations) + m->used * sizeof(m->locations[0]);
}
