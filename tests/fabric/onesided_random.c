/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Two processes storm each other with random one-sided operations on every way, many under way at
 * once; each has a model of the other's region, which nobody else changes. Between them go messages
 * that say what a finished put has left behind. SLMPM_TEST_SEED repeats a run, SLMPM_TEST_MS
 * lengthens each way's share.
 */
#include <byteswap.h>
#include <endian.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/way.h"

#define LIVE    40          /* operations under way */
#define PAGE    4096        /* dirty or clean */
#define BULK    (512 << 10) /* bytes of puts and gets */
#define WORDS   64          /* then words for atomic operations */
#define MAIL    8           /* then what messages tell of */
#define LETTER  (40 << 10)
#define LETTERS (BULK + WORDS * 8)
#define SIZE    (LETTERS + MAIL * LETTER)
#define SPANS   12

enum { KEY = 1, TOLD, READ, OVER };

struct letter { /* little-endian */
	uint64_t seed, offset, length;
};

struct live { /* what it covers of the region, and what must come of it */
	slmpm_req req;
	enum { FREE, PUT, GET, ATOMIC } kind;
	struct slmpm_span spans[SPANS];
	int n;
	unsigned char *data, *want;
	int bits;
	union {
		uint64_t all;
		uint32_t half;
	} old;
	uint64_t before;
};

static slmpm_peer peer;
static slmpm_rmem rmem;
static unsigned char *own, model[SIZE];
static bool turned; /* the other side's byte order is not ours */
static bool dirty[SIZE / PAGE + 1];
static struct live live[LIVE];
static struct rng chance;
static uint64_t operations, sent, notified, seen;

static uint32_t below(uint64_t n)
{
	return rng_below(&chance, (uint32_t)n);
}

/* ---- ranges that no operation under way has -------------------------------------------------- */

static bool meets(const struct live *l, const struct slmpm_span *s)
{
	for (int i = 0; i < l->n; i++)
		if (s->offset < l->spans[i].offset + l->spans[i].len &&
		    l->spans[i].offset < s->offset + s->len)
			return true;
	return false;
}

static bool is_taken(const struct live *mine, const struct slmpm_span *s)
{
	for (const struct live *l = live; l < live + LIVE; l++)
		if ((l == mine || l->kind != FREE) && meets(l, s))
			return true;
	return false;
}

static uint64_t choose_length(void)
{
	switch (below(6)) {
	case 0: return 8;
	case 1: return below(64);
	case 2:
	case 3: return below(3000);
	case 4: return below(20000);
	default: return below(way_current()->slow ? 20000 : 80000);
	}
}

static bool choose_spans(struct live *l, int n, uint64_t *total)
{
	l->n = 0;
	*total = 0;
	for (int tries = 0; l->n < n && tries < 3 * n; tries++) {
		uint64_t len = choose_length() / (uint64_t)n;
		struct slmpm_span s = {below(BULK - len), len};

		if (is_taken(l, &s))
			continue;
		l->spans[l->n++] = s;
		*total += len;
	}
	return l->n > 0;
}

static bool is_dirty(const struct live *l)
{
	bool any = false;

	for (int i = 0; i < l->n; i++)
		for (uint64_t p = l->spans[i].offset / PAGE;
		     p <= (l->spans[i].offset + l->spans[i].len) / PAGE; p++)
			any |= dirty[p];
	return any;
}

static void make_dirty(const struct live *l, bool is)
{
	for (int i = 0; i < l->n; i++)
		for (uint64_t p = l->spans[i].offset / PAGE;
		     p <= (l->spans[i].offset + l->spans[i].len) / PAGE; p++)
			dirty[p] |= is;
}

/* ---- operations ------------------------------------------------------------------------------ */

static int cut(struct slmpm_iov *pieces, unsigned char *data, uint64_t total)
{
	uint64_t done = 0;
	int m = 0;

	while (done < total) {
		uint64_t step = m == SPANS - 1 ? total - done : below(total - done) + 1;

		pieces[m++] = (struct slmpm_iov){data + done, step};
		done += step;
	}
	return m;
}

static void end(struct live *l)
{
	uint64_t at = 0;

	operations++;
	for (int i = 0; i < l->n && l->kind == GET; at += l->spans[i++].len)
		CHECK(!memcmp(l->data + at, l->want + at, l->spans[i].len),
		      "operation %d: %d bytes got at %d differ", (int)operations,
		      (int)l->spans[i].len, (int)l->spans[i].offset);
	if (l->kind == ATOMIC) {
		uint64_t old = l->bits == 64 ? l->old.all : l->old.half;

		CHECK(old == l->before, "operation %d: an atomic one found %llx, not %llx",
		      (int)operations, (unsigned long long)old, (unsigned long long)l->before);
	}
	free(l->data);
	free(l->want);
	l->data = l->want = NULL;
	l->kind = FREE;
	l->n = 0;
}

static void model_gather(const struct live *l, unsigned char *to)
{
	for (int i = 0; i < l->n; to += l->spans[i++].len)
		memcpy(to, model + l->spans[i].offset, l->spans[i].len);
}

static void transfer(struct live *l, bool put)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	slmpm_req *req = below(4) ? &l->req : NULL;
	struct slmpm_iov pieces[SPANS];
	uint64_t total, at = 0;
	int m, rc;

	if (!choose_spans(l, below(3) ? 1 : 1 + (int)below(SPANS), &total))
		return;
	l->data = malloc(total + 1);
	l->want = malloc(total + 1);
	if (is_dirty(l) || !below(8))
		how.flags |= below(5) ? SLMPM_FENCE : SLMPM_BARRIER;
	if (!below(5))
		how.flags |= SLMPM_REMOTE;
	if (put && !below(5))
		how.flags |= SLMPM_NOTIFY;
	if (put)
		actor_fill(l->data, rng_next(&chance), total);
	else
		model_gather(l, l->want);
	for (int i = 0; i < l->n && put; at += l->spans[i++].len)
		memcpy(model + l->spans[i].offset, l->data + at, l->spans[i].len);
	m = cut(pieces, l->data, total);
	l->kind = put ? PUT : GET;
	make_dirty(l, put && !(how.flags & SLMPM_REMOTE));
	if (l->n == 1 && m == 1)
		rc = put ? slmpm_put(rmem, l->spans[0].offset, l->data, total, &how, req) :
			   slmpm_get(rmem, l->spans[0].offset, l->data, total, &how, req);
	else
		rc = put ? slmpm_putv(rmem, l->spans, l->n, pieces, m, &how, req) :
			   slmpm_getv(rmem, l->spans, l->n, pieces, m, &how, req);
	OK(rc);
	if (!req)
		end(l);
}

/* The word of BITS in the model, whose bytes are in the other side's order. */
static uint64_t word_at(uint64_t offset, int bits)
{
	uint64_t whole;
	uint32_t half;

	memcpy(&whole, model + offset, 8);
	memcpy(&half, model + offset, 4);
	if (bits == 64)
		return turned ? bswap_64(whole) : whole;
	return turned ? bswap_32(half) : half;
}

static void set_word(uint64_t offset, int bits, uint64_t value)
{
	uint64_t whole = turned ? bswap_64(value) : value;
	uint32_t half = turned ? bswap_32((uint32_t)value) : (uint32_t)value;

	memcpy(model + offset, bits == 64 ? (void *)&whole : &half, (size_t)bits / 8);
}

static void atomic(struct live *l)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	slmpm_req *req = below(2) ? &l->req : NULL;
	uint64_t operand = rng_next(&chance), compare = below(2) ? operand : 0, at;
	int bits = below(2) ? 64 : 32, op = 1 + (int)below(3);
	uint64_t mask = bits == 64 ? UINT64_MAX : UINT32_MAX;

	l->spans[0] = (struct slmpm_span){BULK + 8 * below(WORDS), 8};
	l->n = 0;
	if (is_taken(l, &l->spans[0]))
		return;
	l->n = 1;
	l->kind = ATOMIC;
	l->bits = bits;
	at = l->spans[0].offset;
	l->before = word_at(at, bits);
	l->old.all = 0;
	if (!below(2))
		compare = l->before;
	if (op == SLMPM_FETCH_ADD)
		set_word(at, bits, l->before + operand);
	else if (op == SLMPM_SWAP || l->before == (compare & mask))
		set_word(at, bits, operand);
	OK(slmpm_atomic(rmem, at, op, bits, operand, compare, &l->old, &how, req));
	if (!req)
		end(l);
}

static void flush(void)
{
	bool in_flight = false;

	OK(slmpm_flush(peer, PATIENCE));
	for (int i = 0; i < LIVE; i++)
		in_flight |= live[i].kind != FREE;
	if (!in_flight)
		memset(dirty, 0, sizeof(dirty));
}

/* ---- messages -------------------------------------------------------------------------------- */

/* What is sent after a put has ended arrives after it. */
static void write_letter(void)
{
	struct letter l = {rng_next(&chance), LETTERS + sent % MAIL * LETTER, 1 + below(LETTER)};
	struct letter out = {htole64(l.seed), htole64(l.offset), htole64(l.length)};

	if (sent - notified == MAIL)
		return;
	actor_fill(model + l.offset, l.seed, l.length);
	OK(slmpm_put(rmem, l.offset, model + l.offset, l.length, NULL, NULL));
	OK(slmpm_send(peer, TOLD, &out, sizeof(out), PATIENCE));
	sent++;
	operations++;
}

static bool read_mail(int wait)
{
	struct slmpm_done done;
	struct letter l;

	if (slmpm_probe(peer, SLMPM_ANY_STREAM, &done, wait) != 1)
		return false;
	EXPECT(slmpm_recv(peer, done.stream, &l, sizeof(l), NULL, PATIENCE), done.len);
	if (done.stream == TOLD) {
		uint64_t length = le64toh(l.length);

		CHECK(actor_filled(own + le64toh(l.offset), le64toh(l.seed), length),
		      "a put of %d bytes has not come before the message behind it", (int)length);
		OK(slmpm_send(peer, READ, NULL, 0, PATIENCE));
	} else if (done.stream == READ) {
		notified++;
	} else {
		seen++;
	}
	return true;
}

/* ---- both sides ------------------------------------------------------------------------------ */

static void end_some(bool all)
{
	for (struct live *l = live; l < live + LIVE; l++) {
		struct slmpm_done done;

		if (l->kind == FREE)
			continue;
		if (all)
			EXPECT(slmpm_wait(&l->req, 1, &done, PATIENCE), 0);
		else if (slmpm_test(&l->req, &done) != 1)
			continue;
		CHECK(!done.status, "an operation ended with %d", done.status);
		end(l);
	}
}

static void step(void)
{
	struct live *l = &live[below(LIVE)];

	if (l->kind == FREE)
		switch (below(10)) {
		case 0:
		case 1: atomic(l); break;
		case 2: write_letter(); break;
		case 3:
			if (!below(4))
				flush();
			break;
		default: transfer(l, below(2)); break;
		}
	(void)read_mail(0);
	if (!below(4))
		end_some(false);
}

static int storm(slmpm_peer other, uint64_t seed, int64_t ms)
{
	int64_t until = actor_now_ms() + ms;
	uint16_t order = 1;
	struct slmpm_key key;
	slmpm_ctx ctx;
	slmpm_mem mem;
	unsigned char *all = malloc(SIZE);

	peer = other;
	chance.state = seed;
	OK(slmpm_default(&ctx));
	own = way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(peer, KEY, &key, sizeof(key), PATIENCE));
	OK(slmpm_send(peer, KEY, &order, sizeof(order), PATIENCE));
	EXPECT(slmpm_recv(peer, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	EXPECT(slmpm_recv(peer, KEY, &order, sizeof(order), NULL, PATIENCE), sizeof(order));
	turned = order != 1;
	OK(slmpm_mem_open(peer, &key, &rmem));
	way_check(rmem);
	while (actor_now_ms() < until)
		step();
	end_some(true);
	flush();
	OK(slmpm_get(rmem, 0, all, SIZE, NULL, NULL));
	for (int i = 0; i < SIZE; i++)
		CHECK(all[i] == model[i], "byte %d is %02x, not %02x", i, all[i], model[i]);
	OK(slmpm_send(peer, OVER, NULL, 0, PATIENCE));
	while (!seen || notified < sent)
		CHECK(read_mail(PATIENCE), "the other side's end: %s", slmpm_error_detail());
	OK(slmpm_mem_release(rmem));
	free(all);
	printf("%d operations, %d letters\n", (int)operations, (int)sent);
	return 0;
}

static int accelerate(slmpm_peer host, char **words)
{
	return storm(host, strtoull(words[0], NULL, 10), strtoll(words[1], NULL, 10));
}

static int body(const struct way *w)
{
	const char *given = getenv("SLMPM_TEST_MS");
	uint64_t seed = rng_run_seed(UINT64_C(0x51ded));
	char text[2][32];

	(void)w;
	snprintf(text[0], sizeof(text[0]), "%llu", (unsigned long long)(seed ^ 1));
	snprintf(text[1], sizeof(text[1]), "%s", given ? given : "100");
	slmpm_peer other = actor_spawn("storm", text[0], text[1]);
	CHECK(storm(other, seed, strtoll(text[1], NULL, 10)) == 0, "the host");
	actor_join(other, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"storm", accelerate}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return way_each(body, 20);
}
