/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * What a member may do to the others by its board: nothing but an error that names it, or a wait.
 * Posts that are impossible, one by one; then any words at all, at any time, all kinds over them.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define ROUNDS 60000
#define MOST   (600u * 1024)

static struct boards b;
static struct board *liar;
static unsigned char from[MOST], to[MOST];

/* Both boards are this process's: rank 1's is written by the test. */
static void meet(void)
{
	struct board *own;
	int fd;

	CHECK(board_make(&own, &fd) == 0, "no board");
	close(fd);
	CHECK(board_make(&liar, &fd) == 0, "no board");
	close(fd);
	CHECK(boards_open(&b, own, 2, 0) == 0, "no boards");
	b.of[1] = liar;
	boards_met(&b);
}

static struct slmpm_coll coll(uint32_t kind, uint64_t count)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = kind,
				   .type = SLMPM_UINT64,
				   .op = flat_combines(kind) ? SLMPM_CALC_SUM : 0,
				   .root = flat_has_root(kind) ? 1 : 0,
				   .from = from,
				   .to = to,
				   .count = count};
}

/* What rank 1 posts as operation NUMBER. */
static struct post *posts(uint64_t number, uint64_t what, uint64_t count)
{
	struct post *p = &liar->posts[number % BOARD_SLOTS];

	memset(liar->posts, 0, sizeof(liar->posts)); /* the lies before are forgotten */
	p->what = what;
	p->count = count;
	p->number = number;
	return p;
}

static uint64_t what_of(uint32_t kind)
{
	struct slmpm_coll c = coll(kind, 0);

	return (b.history & POST_HISTORY) | post_lap(b.posted + 1) | kind |
	       (uint64_t)c.type << POST_TYPE | (uint64_t)c.op << POST_OP |
	       (uint64_t)(uint32_t)c.root << POST_ROOT;
}

/* Operation KIND of COUNT, to which rank 1 has posted P: how that ends. */
static void ends(uint32_t kind, uint64_t count, int want, const char *text)
{
	struct slmpm_coll c = coll(kind, count);
	struct flat f;
	int rc;

	CHECK(flat_check(&c, 2, 0) == 0, "%s", slmpm_error_detail());
	CHECK(flat_begin(&f, &b, &c) == 0, "no memory");
	rc = flat_step(&f);
	CHECK(rc == want, "kind %u: %d, not %d: %s", kind, rc, want, slmpm_error_detail());
	if (rc < 0) {
		CHECK(strstr(slmpm_error_detail(), text) && strstr(slmpm_error_detail(), "rank 1"),
		      "%s: no %s", slmpm_error_detail(), text);
		CHECK(f.culprit == 1, "by %u", f.culprit);
	} else if (!rc) {
		CHECK(f.waits_for == 1 && flat_waits_for(&f, 1), "waits for %u", f.waits_for);
	}
	flat_drop(&f);
}

static uint64_t next(void)
{
	return b.posted + 1;
}

static void on_ring(uint32_t kind, uint64_t count, uint64_t at, uint64_t length, uint64_t present)
{
	struct post *p = posts(next(), what_of(kind), count);

	p->at = at;
	p->length = length;
	p->present = present;
}

static void one_by_one(void)
{
	const uint32_t sum = SLMPM_COLL_ALLREDUCE, all = SLMPM_COLL_ALLGATHER;

	ends(SLMPM_COLL_BARRIER, 0, 0, "");
	posts(next() + BOARD_SLOTS, what_of(SLMPM_COLL_BARRIER), 0);
	ends(SLMPM_COLL_BARRIER, 0, -SLMPM_EPROTO, "number");
	posts(next(), 99, 0);
	ends(SLMPM_COLL_BARRIER, 0, -SLMPM_EINVAL, "an unknown kind");
	posts(next(), what_of(sum) | 99ull << POST_TYPE, 1);
	ends(sum, 1, -SLMPM_EINVAL, "an unknown type");
	posts(next(), what_of(sum) | 99ull << POST_OP, 1);
	ends(sum, 1, -SLMPM_EINVAL, "an unknown operation");
	posts(next(), what_of(sum) | POST_IN_LINE, 2);
	ends(sum, 1, -SLMPM_EINVAL, "count 2");
	posts(next(), what_of(sum), 1); /* not in the line */
	ends(sum, 1, -SLMPM_EPROTO, "flags");
	posts(next(), what_of(sum) | POST_IN_LINE, 100); /* so many are not */
	ends(sum, 100, -SLMPM_EPROTO, "length");
	posts(next(), what_of(all) | POST_TABLE, 100);
	ends(all, 100, -SLMPM_EPROTO, "flags");
	on_ring(all, 100, 8, 800, 800);
	ends(all, 100, -SLMPM_EPROTO, "place");
	on_ring(all, 100, 64, 799, 799);
	ends(all, 100, -SLMPM_EPROTO, "length");
	on_ring(all, 100, 64, 800, 801);
	ends(all, 100, -SLMPM_EPROTO, "place");
	on_ring(all, 100, 64, UINT64_MAX, 16);
	ends(all, 100, -SLMPM_EPROTO, "length");
	on_ring(all, 100, 64, 800, 16);
	ends(all, 100, 0, "");
	on_ring(all, 100, 64, 800, 800);
	ends(all, 100, 1, "");
	on_ring(all, 100, UINT64_MAX & ~UINT64_C(63), 800, 800); /* it wraps around */
	ends(all, 100, 1, "");
	liar->ended = ENDED_LEFT;
	ends(all, 100, -SLMPM_ECLOSED, "has left");
	liar->ended = (uint32_t)SLMPM_EINVAL | UINT64_C(77) << ENDED_CULPRIT;
	ends(all, 100, -SLMPM_EINVAL, "is broken");
	liar->ended = 0xffffffff;
	ends(all, 100, -SLMPM_EPROTO, "is broken");
	liar->ended = (uint32_t)SLMPM_EINVAL | UINT64_C(1) << ENDED_GENERATION;
	ends(all, 100, 0, ""); /* of another generation */
	liar->ended = 0;
}

/* ---- its own memory -------------------------------------------------------------------------- */

/* What is copied straight to and from rank 1 is a process of its own's: it says where it is. */
static int victim(void *arg)
{
	_Atomic bool *there = arg;

	while (!*there)
		*there = attach_own_probe((struct attach_probe *)&there[16]);
	for (;;)
		pause();
	return 0;
}

static pid_t offers(void)
{
	_Atomic bool *there = child_common(256);
	pid_t pid = child_start(victim, there, 50);

	while (!*there)
		usleep(100);
	reach_offer(&b);
	memcpy(&liar->probe, (const void *)&there[16], sizeof(liar->probe));
	liar->reach = BOARD_REACHES;
	b.processes[1] = pid;
	b.reach = 0;
	return pid;
}

/* A block that both have, of which rank 1 says that its own is at AT. */
static void straight_as(uint32_t kind, uint64_t at)
{
	struct post *p = posts(next(), what_of(kind) | POST_DIRECT, MOST / 16);

	p->from = p->to = at;
}

static void straight(uint64_t at)
{
	straight_as(SLMPM_COLL_ALLGATHER, at);
}

static void not_straight(void)
{
	const uint32_t all = SLMPM_COLL_ALLGATHER;

	straight(UINT64_MAX - 100);
	ends(all, MOST / 16, -SLMPM_EPROTO, "address");
	straight(4096); /* nothing is there: by the ring, and rank 1 is to say that it knows */
	ends(all, MOST / 16, 0, "");
	CHECK(liar->through == 0 && b.own->failed == b.posted, "it was written to");
	straight((uint64_t)(uintptr_t)to);
	ends(all, MOST / 16, 0, "");
	CHECK(b.own->failed < b.posted && b.own->through == b.posted, "it was not written to");
	straight((uint64_t)(uintptr_t)to); /* taken back */
	liar->through = liar->withdrawn = next();
	ends(all, MOST / 16, 0, "");
	CHECK(b.own->through < b.posted, "it was written to");
	straight_as(SLMPM_COLL_BROADCAST, (uint64_t)(uintptr_t)to); /* while it was read */
	liar->through = liar->withdrawn = next();
	ends(SLMPM_COLL_BROADCAST, MOST / 16, 0, "");
	CHECK(b.own->through == b.posted, "it was not read");
	straight((uint64_t)(uintptr_t)to);
	liar->through = next();
	ends(all, MOST / 16, 1, "");
	b.probes[1].value[3] ^= 1; /* it has become another process */
	straight((uint64_t)(uintptr_t)to);
	ends(all, MOST / 16, 0, "");
	CHECK(b.own->through < b.posted, "another process was written to");
	b.reach = 0; /* as it was when it offered that */
	liar->probe.value[3] ^= 1;
	CHECK(!reach_works(&b), "another process was tried");
	liar->probe.value[3] ^= 1;
	b.reach = 0;
	b.own->reach = BOARD_REACHES;
}

/* It says for ever that it is about to write, and dies. */
static void dies(pid_t pid, bool works)
{
	straight((uint64_t)(uintptr_t)to);
	liar->claims = next();
	kill(pid, SIGKILL);
	(void)child_wait(pid);
	if (works)
		ends(SLMPM_COLL_ALLGATHER, MOST / 16, 0, "");
	liar->claims = 0;
	liar->reach = 0;
}

static uint64_t any_word(struct rng *g)
{
	uint64_t x = rng_next(g);

	switch (rng_below(g, 6)) {
	case 0: return 0;
	case 1: return x % 64;
	case 2: return x % 4096 * 64;
	case 3: return x % (2 * BOARD_RING);
	case 4: return UINT64_MAX - x % 4096;
	default: return x;
	}
}

/* As a member that knows what is under way, and changes some of what it says. */
static void lie(struct rng *g, const struct slmpm_coll *c, const struct flat *f)
{
	uint64_t number = f->number;
	struct post *p = &liar->posts[number % BOARD_SLOTS];
	uint64_t bytes = c->count * sizeof(uint64_t);

	if (rng_one_in(g, 3))
		return;
	p->what = ((what_of(c->kind) & ~POST_HISTORY) | (f->what & POST_HISTORY)) ^
		  (rng_one_in(g, 20) ? any_word(g) : 0);
	if (bytes <= BOARD_INLINE && rng_one_in(g, 2))
		p->what |= POST_IN_LINE;
	if (rng_one_in(g, 3))
		p->what ^= (uint64_t)(1 + rng_below(g, 7)) << 24;
	p->count = rng_one_in(g, 10) ? any_word(g) : c->count;
	if (!(p->what & POST_IN_LINE)) {
		p->at = rng_one_in(g, 4) ? any_word(g) : rng_next(g) * BOARD_LINE;
		p->length = rng_one_in(g, 4) ? any_word(g) : 2 * bytes + 64;
		p->present = rng_one_in(g, 2) ? any_word(g) : least_of(p->length, BOARD_PIECE);
	}
	if (bytes > BOARD_INLINE && rng_one_in(g, 2)) {
		p->what |= POST_DIRECT;
		p->from = rng_one_in(g, 2) ? any_word(g) : (uint64_t)(uintptr_t)from;
		p->to = rng_one_in(g, 2) ? any_word(g) : (uint64_t)(uintptr_t)to;
		liar->through = rng_one_in(g, 3) ? any_word(g) : number;
		liar->failed = rng_one_in(g, 3) ? number : 0;
		liar->withdrawn = rng_one_in(g, 9) ? any_word(g) : 0;
	}
	liar->written = rng_one_in(g, 2) ? any_word(g) : p->at + p->length;
	liar->taken[0] = rng_one_in(g, 2) ? any_word(g) : b.written;
	liar->ended = rng_one_in(g, 50) ? any_word(g) & UINT32_MAX : 0;
	p->number = rng_one_in(g, 10) ? any_word(g) : number;
	for (int i = 0; i < 64; i++)
		liar->ring[rng_below(g, BOARD_RING)] = (unsigned char)rng_next(g);
}

static void any_words(struct rng *g)
{
	uint32_t outcome[3] = {0};

	for (int i = 0; i < ROUNDS; i++) {
		static const uint64_t counts[2] = {3, 900};
		struct slmpm_coll c = coll(1 + rng_below(g, SLMPM_COLL_EXSCAN),
					   rng_below(g, rng_one_in(g, 9) ? MOST / 16 : 40));
		struct flat f;
		int rc = 0;

		if ((c.kind == SLMPM_COLL_ALLTOALL || c.kind == SLMPM_COLL_GATHER) &&
		    rng_one_in(g, 2)) {
			c.counts = counts;
			c.to_counts = c.kind == SLMPM_COLL_ALLTOALL ? counts : NULL;
		}
		if (flat_has_root(c.kind))
			c.root = (int32_t)rng_below(g, 2);
		if (rng_one_in(g, 3) && flat_combines(c.kind) && c.kind != SLMPM_COLL_REDUCE)
			c.from = SLMPM_IN_PLACE;
		CHECK(flat_check(&c, 2, 0) == 0, "%s", slmpm_error_detail());
		CHECK(flat_begin(&f, &b, &c) == 0, "no memory");
		for (int k = 0; k < 6 && !rc; k++) {
			lie(g, &c, &f);
			rc = flat_step(&f);
		}
		outcome[rc < 0 ? 0 : rc + 1]++;
		if (rc <= 0)
			flat_drop(&f);
		if (!f.posted) { /* rank 1 holds all up: it alone could */
			b.reached = b.posted;
		}
	}
	liar->ended = 0;
	printf("%u errors, %u waits, %u done\n", outcome[0], outcome[1], outcome[2]);
	CHECK(outcome[0] > ROUNDS / 20 && outcome[1] > ROUNDS / 100 && outcome[2] > ROUNDS / 20,
	      "one-sided");
}

int main(void)
{
	struct rng g = {rng_run_seed(7)};
	bool works;
	pid_t pid;

	meet();
	one_by_one();
	pid = offers();
	works = reach_works(&b);
	if (works)
		not_straight();
	else
		printf("no cross-memory attach here\n");
	any_words(&g);
	dies(pid, works);
	boards_close(&b);
	return 0;
}
