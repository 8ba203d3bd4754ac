/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What copying through memory that two processes share can give, and what that depends on: "laps
 * CPU,CPU [ROUNDS]" prints Markdown; "laps CPU,CPU ROUNDS SIZE PIECE LAP ORDER DISTANCE COPY TOUCH"
 * one row of its own. A message of SIZE bytes goes in pieces, each copied into a slot by the writer
 * and out of it by the reader; a line a piece says which slot. LAP is what the slots have together.
 *	ORDER     fifo: the slot that has been free longest is next; lifo: that freed last
 *	DISTANCE  pieces which the reader stays behind the writer, as long as more are to come
 *	COPY      plain: vector stores; movsb: rep movsb; memcpy: the C library's, which is either; two
 *	          words ("plain/movsb"): writer's, reader's
 *	TOUCH     y: the writer stores to all of a message before, the reader loads all of it after
 * Nothing else is around it: no checks, no library. A host moves processors: each sample lies
 * between two probes of the line's way, and counts where both are as they mostly are in that row.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/stats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LINE = 64, LINES = 4096, MOST = 8 << 20, ROUNDS = 15, ROUNDS_MOST = 64, ROWS = 256 };
enum { TRIES = 2, PROBES = 200, VECTOR = 32 };
enum copy { PLAIN, MOVSB, LIBRARY };

#define TURN_BYTES (24u << 20) /* of a sample of a stream */

struct row {
	size_t size, piece, lap;
	bool lifo, touch;
	unsigned distance; /* pieces */
	enum copy writes, reads;
};

struct line {
	_Alignas(LINE) _Atomic uint64_t word;
};

struct shared {
	_Alignas(2 * LINE) _Atomic uint64_t arrived;  /* at the beginning of a sample */
	_Alignas(2 * LINE) _Atomic uint64_t consumed; /* pieces; of all samples */
	_Alignas(2 * LINE) _Atomic uint64_t line;
	struct line said[LINES]; /* piece n's: n + 1 above, its slot below */
	_Alignas(4096) char slots[MOST];
};

static struct shared *shared;
static char *message;
static uint64_t pieces; /* of all samples: either side counts alike */
static uint64_t turn;
static volatile uint64_t sum;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#if defined(__x86_64__)
static inline void look(void)
{
	_mm_lfence();
}

static void copy_movsb(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* memcpy() takes rep movsb, too, from some length on. */
__attribute__((target("avx2"))) static void copy_plain(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i += 2 * VECTOR) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
		__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(from + i + VECTOR));

		_mm256_storeu_si256((__m256i *)(void *)(to + i), a);
		_mm256_storeu_si256((__m256i *)(void *)(to + i + VECTOR), b);
	}
}
#else /* what the C library has, in both names */
static inline void look(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static void copy_movsb(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}

static void copy_plain(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
}
#endif

static void copy(enum copy how, char *to, const char *from, size_t n)
{
	if (how == LIBRARY)
		memcpy(to, from, n);
	else if (how == MOVSB)
		copy_movsb(to, from, n);
	else
		copy_plain(to, from, n);
}

/* Both sides are there before either begins. Pairs with itself. */
static void meet(void)
{
	turn += 2;
	atomic_fetch_add_explicit(&shared->arrived, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&shared->arrived, memory_order_acquire) < turn)
		look();
}

/* Slots that the writer may use: a queue or a stack of their numbers. */
static struct {
	uint32_t number[LINES];
	uint64_t in, out; /* of the stack only in: its height */
	uint64_t returned;
	uint32_t used[LINES]; /* by piece, for as long as it is on its way */
} slots;

static void slots_begin(const struct row *r)
{
	uint64_t n = r->lap / r->piece;

	for (uint64_t i = 0; i < n; i++)
		slots.number[i] = (uint32_t)(r->lifo ? n - 1 - i : i);
	slots.in = n;
	slots.out = 0;
	slots.returned = pieces;
}

/* Pairs with the release of read_piece(): the slot's bytes have been read. */
static void slots_return(const struct row *r)
{
	uint64_t done = atomic_load_explicit(&shared->consumed, memory_order_acquire);

	for (; slots.returned < done; slots.returned++, slots.in++)
		slots.number[r->lifo ? slots.in : slots.in % LINES] =
			slots.used[slots.returned % LINES];
}

static uint32_t slots_take(const struct row *r)
{
	slots_return(r);
	while (slots.in == slots.out) {
		look();
		slots_return(r);
	}
	return r->lifo ? slots.number[--slots.in] : slots.number[slots.out++ % LINES];
}

static void touch_written(size_t n)
{
	uint64_t *w = (uint64_t *)(void *)message;

	for (size_t i = 0; i < n / sizeof(*w); i++)
		w[i] += i;
}

static void touch_read(size_t n)
{
	const uint64_t *w = (const uint64_t *)(const void *)message;
	uint64_t s = 0;

	for (size_t i = 0; i < n / sizeof(*w); i++)
		s += w[i];
	sum = s;
}

static void write_piece(const struct row *r, size_t at)
{
	uint32_t slot = slots_take(r);

	copy(r->writes, shared->slots + slot * r->piece, message + at, r->piece);
	slots.used[pieces % LINES] = slot;
	/* Pairs with read_piece()'s acquire: the copy is there before its line says so. */
	atomic_store_explicit(&shared->said[pieces % LINES].word, (pieces + 1) << 16 | slot,
			      memory_order_release);
	pieces++;
}

/* Piece n has been said: the acquire pairs with write_piece()'s release. */
static uint32_t await_piece(uint64_t n)
{
	uint64_t word;

	while ((word = atomic_load_explicit(&shared->said[n % LINES].word, memory_order_acquire)) >>
		       16 !=
	       n + 1)
		look();
	return word & 0xffff;
}

static void read_piece(const struct row *r, size_t at, uint64_t last)
{
	uint32_t slot = await_piece(pieces);

	if (r->distance)
		await_piece(pieces + r->distance < last ? pieces + r->distance : last);
	copy(r->reads, message + at, shared->slots + slot * r->piece, r->piece);
	pieces++;
	atomic_store_explicit(&shared->consumed, pieces, memory_order_release);
}

static uint64_t messages_of(const struct row *r)
{
	return TURN_BYTES / r->size;
}

/* GB/s, of the writer. */
static double write_stream(const struct row *r)
{
	double from;

	slots_begin(r);
	meet();
	from = seconds();
	for (uint64_t i = 0; i < messages_of(r); i++) {
		if (r->touch)
			touch_written(r->size);
		for (size_t at = 0; at < r->size; at += r->piece)
			write_piece(r, at);
	}
	while (atomic_load_explicit(&shared->consumed, memory_order_acquire) < pieces)
		look();
	return (double)(messages_of(r) * r->size) / (seconds() - from) / 1e9;
}

static void read_stream(const struct row *r)
{
	uint64_t last = pieces + messages_of(r) * (r->size / r->piece) - 1;

	meet();
	for (uint64_t i = 0; i < messages_of(r); i++) {
		for (size_t at = 0; at < r->size; at += r->piece)
			read_piece(r, at, last);
		if (r->touch)
			touch_read(r->size);
	}
}

/* A line's way, ns: the best of some tries; the answer goes into the same line. */
static double probe(bool first)
{
	static uint64_t said;
	double from, best = 0;

	for (int try = 0; try < TRIES; try++) {
		meet();
		from = seconds();
		for (int i = 0; i < PROBES; i++, said += 2) {
			if (first)
				atomic_store_explicit(&shared->line, said + 1,
						      memory_order_release);
			while (atomic_load_explicit(&shared->line, memory_order_acquire) <
			       said + 1 + first)
				look();
			if (!first)
				atomic_store_explicit(&shared->line, said + 2,
						      memory_order_release);
		}
		from = (seconds() - from) * 1e9 / PROBES / 2;
		best = try && best < from ? best : from;
	}
	return best;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct row rows[ROWS];
static int row_count;

static void add(size_t size, size_t piece, size_t lap, bool lifo, unsigned distance,
		enum copy writes, enum copy reads, bool touch)
{
	if (piece > size || lap < piece || lap / piece <= distance || row_count == ROWS)
		return;
	rows[row_count++] = (struct row){.size = size,
					 .piece = piece,
					 .lap = lap,
					 .lifo = lifo,
					 .distance = distance,
					 .writes = writes,
					 .reads = reads,
					 .touch = touch};
}

/* One of them varies, the others are as in the first of a block. */
static void add_all(void)
{
	static const size_t sizes[] = {16 << 10, 64 << 10, 1 << 20};
	static const size_t laps[] = {32 << 10,  64 << 10, 128 << 10, 256 << 10,
				      512 << 10, 1 << 20,  2 << 20,   4 << 20};
	static const size_t cuts[] = {4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10};

	for (int touch = 0; touch < 2; touch++)
		for (int lifo = 0; lifo < 2; lifo++)
			for (size_t i = 0; i < sizeof(laps) / sizeof(*laps); i++)
				add(1 << 20, 16 << 10, laps[i], lifo, 0, PLAIN, PLAIN, touch);
	for (int k = 1; k < 4; k++)
		for (int lifo = 0; lifo < 2; lifo++)
			for (size_t i = 1; i < sizeof(laps) / sizeof(*laps); i += 2)
				add(1 << 20, 16 << 10, laps[i], lifo, 0, k & 1 ? MOVSB : PLAIN,
				    k & 2 ? MOVSB : PLAIN, false);
	for (int k = 0; k < 4; k++)
		for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++)
			add(sizes[j], 16 << 10, 1 << 20, false, 0, k & 1 ? LIBRARY : PLAIN,
			    k & 2 ? LIBRARY : PLAIN, false);
	for (int lifo = 0; lifo < 2; lifo++)
		for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++)
			for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++)
				add(sizes[j], cuts[i], 512 << 10, lifo, 0, PLAIN, PLAIN, false);
	for (int lifo = 0; lifo < 2; lifo++)
		for (unsigned d = 1; d <= 32; d *= 2)
			add(1 << 20, 16 << 10, 1 << 20, lifo, d, PLAIN, PLAIN, false);
}

static const char *size_text(size_t n)
{
	static char text[4][16];
	static unsigned next;
	char *t = text[next++ % 4];

	snprintf(t, sizeof(text[0]), "%u %s", (unsigned)(n >> 20 ? n >> 20 : n >> 10),
		 n >> 20 ? "MiB" : "KiB");
	return t;
}

static const char *copy_text(enum copy how)
{
	static const char *const words[] = {"plain", "movsb", "memcpy"};

	return words[how];
}

struct sample {
	double rate, before, after; /* GB/s, and the line's way, ns */
};

/* Near enough: at another distance it is longer or shorter by half at least. */
static bool is_as_far(double line, double mostly)
{
	return line < 1.5 * mostly && mostly < 1.5 * line;
}

/* Those of one distance; *WAY is the line's way there. */
static int select_samples(const struct sample *all, int rounds, double *rates, double *way)
{
	double lines[ROUNDS_MOST];
	int n = 0;

	for (int i = 0; i < rounds; i++)
		lines[i] = all[i].before;
	*way = median(lines, rounds);
	for (int i = 0; i < rounds; i++)
		if (is_as_far(all[i].before, *way) && is_as_far(all[i].after, *way))
			rates[n++] = all[i].rate;
	return n;
}

static void print_rows(struct sample got[][ROUNDS_MOST], int rounds)
{
	printf("| message | piece | lap | order | distance | copies | touched | line | GB/s |\n");
	printf("| --: | --: | --: | --- | --: | --- | --- | --: | --: |\n");
	for (int i = 0; i < row_count; i++) {
		const struct row *r = &rows[i];
		double rates[ROUNDS_MOST], way;
		int n = select_samples(got[i], rounds, rates, &way);
		struct estimate e = {0};

		if (n)
			e = central(rates, n);
		printf("| %s | %s | %s | %s | %u | %s, %s | %s | %.0f ns | %.1f (%.1f to %.1f) |\n",
		       size_text(r->size), size_text(r->piece), size_text(r->lap),
		       r->lifo ? "lifo" : "fifo", r->distance, copy_text(r->writes),
		       copy_text(r->reads), r->touch ? "yes" : "no", way, e.mid, e.low, e.high);
	}
}

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0) {
		perror("sched_setaffinity");
		_exit(1);
	}
}

static void *memory_of(size_t n, int how)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void reader(int cpu, int rounds)
{
	pin(cpu);
	message = memory_of(MOST, MAP_PRIVATE);
	for (int i = 0; i < rounds; i++) {
		for (int j = 0; j < row_count; j++) {
			probe(false);
			read_stream(&rows[j]);
			probe(false);
		}
	}
	_exit(0);
}

static int writer(int cpu, int rounds)
{
	static struct sample got[ROWS][ROUNDS_MOST];

	pin(cpu);
	message = memory_of(MOST, MAP_PRIVATE);
	memset(message, 1, MOST);
	for (int i = 0; i < rounds; i++) {
		for (int j = 0; j < row_count; j++) {
			struct sample *s = &got[j][i];

			s->before = probe(true);
			s->rate = write_stream(&rows[j]);
			s->after = probe(true);
		}
	}
	print_rows(got, rounds);
	return 0;
}

static enum copy copy_of(const char *word)
{
	if (strncmp(word, "memcpy", 6) == 0)
		return LIBRARY;
	return strncmp(word, "movsb", 5) == 0 ? MOVSB : PLAIN;
}

static void add_given(char **a)
{
	const char *second = strchr(a[5], '/');

	add(strtoull(a[0], NULL, 0), strtoull(a[1], NULL, 0), strtoull(a[2], NULL, 0),
	    strcmp(a[3], "lifo") == 0, (unsigned)strtoul(a[4], NULL, 0), copy_of(a[5]),
	    copy_of(second ? second + 1 : a[5]), a[6][0] == 'y');
}

int main(int argc, char **argv)
{
	int cpu[2], rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;

	if ((argc > 3 && argc != 10) || argc < 2 ||
	    sscanf(argv[1], "%d,%d", &cpu[0], &cpu[1]) != 2 || rounds < 1 || rounds > ROUNDS_MOST) {
		fprintf(stderr,
			"usage: laps CPU,CPU [ROUNDS [SIZE PIECE LAP ORDER DISTANCE COPY TOUCH]]\n");
		return 1;
	}
	if (argc == 10)
		add_given(argv + 3);
	else
		add_all();
	shared = memory_of(sizeof(*shared), MAP_SHARED);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		reader(cpu[1], rounds);
	}
	return writer(cpu[0], rounds);
}
