/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on a word that lies in the other core's cache: before each one side 1 writes to
 * the word's cache line. In turns with the library's call the bare instruction does the same to a
 * word of the board, and nothing at all is timed: what reading the clock costs.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

#define INTERRUPTED 20000              /* ns: what took longer has lost its CPU meanwhile */
#define WRONG       (-SLMPM_ECHECKSUM) /* another value was there than the last one plus one */
#define RUN         32 /* of one kind before the next: what is called in turns is mispredicted */

enum what { CALL, BARE, NOTHING, END, WHATS };

static ALWAYS_INLINE int call(struct pair *p, bool swap, uint64_t *value)
{
	uint64_t old;
	int rc = swap ? slmpm_atomic(p->region.remote, 0, SLMPM_COMPARE_SWAP, 64, *value + 1,
				     *value, &old, NULL, NULL) :
			slmpm_atomic(p->region.remote, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, NULL,
				     NULL);

	return rc < 0 ? rc : old == (*value)++ ? 0 : WRONG;
}

static ALWAYS_INLINE int bare(uint64_t *word, bool swap, uint64_t *value)
{
	uint64_t old = *value;

	if (swap)
		__atomic_compare_exchange_n(word, &old, *value + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	else
		old = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	return old == (*value)++ ? 0 : WRONG;
}

/* Side 1 takes the line of what comes next. */
static ALWAYS_INLINE int ask(struct pair *p, struct spot *spot, uint64_t turn)
{
	uint64_t spins = 0;
	int rc = 0;

	__atomic_store_n(spot[SPOT_ASK].word, turn, __ATOMIC_RELEASE);
	while (__atomic_load_n(spot[SPOT_ANSWER].word, __ATOMIC_ACQUIRE) != turn && rc >= 0)
		rc = pair_idle(p, &spins);
	return rc;
}

/* What follows does not begin while the clock is still being read. */
static ALWAYS_INLINE void clock_is_read(void)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("isb" : : : "memory");
#endif
}

static int reported(int rc)
{
	if (rc == WRONG)
		fprintf(stderr, "slmpm_perftest: atomic: another value was there than expected\n");
	return rc;
}

static double mean(const uint64_t *sum, const uint64_t *n, enum what what)
{
	return (double)sum[what] / (double)(n[what] ? n[what] : 1);
}

static ALWAYS_INLINE int lead(struct pair *p, const struct job *j, struct hist *stamps, bool swap)
{
	struct spot *spot = board_spots(p->board);
	uint64_t sum[WHATS] = {0}, n[WHATS] = {0}, before, took;
	uint64_t values[2] = {p->region.value, spot[SPOT_WORD].word[0]};
	uint64_t turn = spot[SPOT_ASK].word[0] / WHATS, rounds = (j->count + RUN - 1) / RUN;
	int rc = 0;

	for (uint64_t i = 0; i < rounds * 3 * RUN && rc >= 0; i++) {
		enum what what = (enum what)(i / RUN % 3);

		rc = ask(p, spot, ++turn * WHATS + what);
		before = now_ns();
		clock_is_read();
		if (what == CALL && rc >= 0)
			rc = call(p, swap, &values[CALL]);
		else if (what == BARE && rc >= 0)
			rc = bare(spot[SPOT_WORD].word, swap, &values[BARE]);
		took = now_ns() - before;
		if (took > INTERRUPTED)
			continue;
		sum[what] += took;
		n[what]++;
		if (stamps && what == CALL)
			hist_add(stamps, took);
	}
	if (rc < 0)
		return reported(rc);
	p->extra.each_ns = mean(sum, n, CALL) - mean(sum, n, NOTHING);
	p->extra.bare_ns = mean(sum, n, BARE) - mean(sum, n, NOTHING);
	return ask(p, spot, ++turn * WHATS + END);
}

static int follow(struct pair *p)
{
	struct spot *spot = board_spots(p->board);
	uint64_t seen = __atomic_load_n(spot[SPOT_ANSWER].word, __ATOMIC_RELAXED), turn, spins = 0;
	uint64_t *word[WHATS] = {
		[CALL] = (uint64_t *)(void *)p->region.base, [BARE] = spot[SPOT_WORD].word};
	int rc = 0;

	while (rc >= 0) {
		turn = __atomic_load_n(spot[SPOT_ASK].word, __ATOMIC_ACQUIRE);
		if (turn == seen) {
			if (p->region.serves)
				slmpm_progress(p->ctx);
			rc = pair_idle(p, &spins);
			continue;
		}
		seen = turn;
		if (word[turn % WHATS]) /* its neighbour, in the same line */
			__atomic_store_n(word[turn % WHATS] + 1, turn, __ATOMIC_SEQ_CST);
		__atomic_store_n(spot[SPOT_ANSWER].word, turn, __ATOMIC_RELEASE);
		if (turn % WHATS == END)
			return 0;
	}
	return rc;
}

/* Without memory in common there is nothing to compare with: the calls alone. */
static int alone(struct pair *p, const struct job *j, struct hist *stamps, bool swap)
{
	uint64_t before;
	int rc = 0;

	if (p->side)
		return pair_signaled(p);
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		before = stamps ? now_ns() : 0;
		rc = call(p, swap, &p->region.value);
		if (stamps)
			hist_add(stamps, now_ns() - before);
	}
	return rc < 0 ? reported(rc) : pair_signal(p);
}

/* Both sides know what is there at the beginning. */
static int begin(struct pair *p)
{
	p->region.value = 0;
	memset(p->region.base, 0, sizeof(uint64_t));
	return p->side ? pair_signal(p) : pair_signaled(p);
}

int loop_fetch_add(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc = begin(p);

	if (rc < 0 || !p->board)
		return rc < 0 ? rc : alone(p, j, stamps, false);
	return p->side ? follow(p) : lead(p, j, stamps, false);
}

int loop_compare_swap(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc = begin(p);

	if (rc < 0 || !p->board)
		return rc < 0 ? rc : alone(p, j, stamps, true);
	return p->side ? follow(p) : lead(p, j, stamps, true);
}
