/* SPDX-License-Identifier: BSD-3-Clause */
/* Boards: made, mapped, given back; who has posted how much; who has left; who sleeps. */
#include "slmpm/board/board.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/barrier.h"
#include "shm/mapping.h"
#include "slmpm/base/error.h"
#include "slmpm/board/bell.h"
#include "slmpm/board/flat.h"
#include "slmpm/board/layout.h"
#include "slmpm/board/shared.h"
#include "slmpm/plan/plan.h"

/* ---- one ------------------------------------------------------------------------------------- */

/* Bytes that have memory from the start: most groups use little of their rings. */
#define PRESENT (offsetof(struct board, ring) + BOARD_FIRST)

int board_make(struct board **own, int *fd)
{
	struct mapping m;
	int rc = mapping_create_sparse(&m, "slmpm-board", BOARD_LANES * sizeof(struct board),
				       PRESENT);

	if (rc == 0)
		rc = mapping_close_seals(&m);
	if (rc < 0) {
		mapping_destroy(&m);
		return rc;
	}
	*own = m.base;
	*fd = m.fd;
	(*own)->magic = BOARD_MAGIC;
	(*own)->fences = !barrier_works();
	return 0;
}

/* That fault brings the pages behind, too, as far as its member has made them. */
static int inspect_magic(const struct mapping *m)
{
	uint64_t magic = *(const volatile uint64_t *)&((const struct board *)m->base)->magic;

	if (magic == BOARD_MAGIC)
		return 0;
	return __builtin_bswap64(magic) == BOARD_MAGIC ? -ENOTSUP : -EPROTO;
}

uint32_t boards_map(const struct board **boards, const int *fds, uint32_t n, int *error)
{
	struct mapping m[BOARD_MAPS];
	uint32_t mapped, i = 0;
	int rc = 0;

	mapped = (uint32_t)mapping_attach_all(m, fds, n, BOARD_LANES * sizeof(struct board), error);
	for (; i < mapped && (rc = inspect_magic(&m[i])) == 0; i++)
		boards[i] = m[i].base;
	for (uint32_t k = i; k < mapped; k++)
		mapping_destroy(&m[k]);
	*error = rc < 0 ? rc : *error == -EPERM ? -EPROTO : *error;
	return i;
}

int board_map(const struct board **board, int fd)
{
	int error;

	(void)boards_map(board, &fd, 1, &error);
	return error;
}

/* Pages of it that nothing comes for take no memory. */
struct board *board_copy(void)
{
	void *at = mmap(NULL, BOARD_LANES * sizeof(struct board), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

void board_unmap(const struct board *board)
{
	struct mapping m = {
		.base = (void *)(uintptr_t)board, .size = BOARD_LANES * sizeof(*board), .fd = -1};

	mapping_destroy(&m);
}

/* ---- those of a group ------------------------------------------------------------------------ */

static void free_arrays(struct boards *b)
{
	free(b->of);
	free(b->bells);
	free(b->processes);
	free(b->watched);
	free(b->probes);
	free(b->numbers);
	free(b->seats);
	free(b->answered);
	free(b->sources);
	free(b->scratch);
	free(b->costs);
}

/* Does this processor know CLDEMOTE? */
static bool processor_demotes(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 25 & 1;
#else
	return false;
#endif
}

int boards_open(struct boards *b, struct board *own, uint32_t size, uint32_t rank)
{
	*b = (struct boards){.size = size, .rank = rank, .own = own, .backed = BOARD_FIRST};
	b->demotes = processor_demotes();
	b->of = calloc(size, sizeof(struct board *));
	b->bells = calloc(size, sizeof(*b->bells));
	b->processes = calloc(size, sizeof(*b->processes));
	b->watched = calloc(size, sizeof(*b->watched));
	b->probes = calloc(size, sizeof(*b->probes));
	b->numbers = calloc(size, sizeof(*b->numbers));
	b->seats = calloc(size, sizeof(*b->seats));
	b->answered = calloc(size, sizeof(*b->answered));
	b->sources = calloc(size, sizeof(*b->sources));
	b->scratch = aligned_alloc(BOARD_LINE, BOARD_PIECE);
	if (!b->of || !b->bells || !b->processes || !b->watched || !b->probes || !b->numbers ||
	    !b->seats || !b->answered || !b->sources || !b->scratch) {
		free_arrays(b);
		*b = (struct boards){0};
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < size; r++) {
		b->bells[r] = b->watched[r] = -1;
		b->seats[r] = r;
	}
	if (own)
		b->of[rank] = own;
	return 0;
}

int boards_back(struct boards *b, uint64_t end)
{
	uint64_t least = 2 * (uint64_t)b->backed;

	end = end < least ? least : (end + BOARD_FIRST - 1) / BOARD_FIRST * BOARD_FIRST;
	end = end < BOARD_RING ? end : BOARD_RING;
	if (mapping_fill(b->own->ring + b->backed, end - b->backed, MAPPING_WRITE) < 0)
		return -SLMPM_ENOMEM;
	b->backed = (uint32_t)end;
	return 0;
}

void boards_met(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++)
		b->fences |= *(const volatile uint32_t *)&b->of[r]->fences != 0;
}

void boards_close(struct boards *b)
{
	shared_close(b);
	for (uint32_t r = 0; r < b->size; r++) {
		if (b->of[r])
			board_unmap(b->of[r]);
		if (b->bells[r] >= 0)
			close(b->bells[r]);
	}
	free_arrays(b);
	*b = (struct boards){0};
}

/* ---- lanes ----------------------------------------------------------------------------------- */

#define SAID_BY         64 /* bytes: "rank 1023 (process 2147483647) says: " */
#define LANE_GENERATION 40 /* bits of the numbers of one */

void boards_follow(struct boards *b, const struct boards *of)
{
	b->size = of->size;
	b->rank = of->rank;
	b->generation = of->generation;
	b->fences = of->fences;
	for (uint32_t r = 0; r < of->size; r++) {
		b->of[r] = of->of[r] ? of->of[r] + 1 : NULL;
		b->bells[r] = of->bells[r];
		b->processes[r] = of->processes[r];
		b->watched[r] = of->watched[r];
		b->seats[r] = of->seats[r];
		b->answered[r] = 0;
	}
	/* Behind all numbers of before, of which members have begun unlike many: the same at all. */
	b->base = b->posted = b->reached = (uint64_t)of->generation << LANE_GENERATION;
	b->freed = b->written;
	b->history = 0;
	b->broken = b->others_broke = false;
}

/* Of the others what is looked at before they post: what lies on their rings has memory by then. */
static int fill_lane(const struct boards *of)
{
	int rc = mapping_fill(of->own + 1, PRESENT, MAPPING_WRITE);

	for (uint32_t r = 0; rc == 0 && r < of->size; r++)
		if (r != of->rank)
			rc = mapping_fill(of->of[r] + 1, offsetof(struct board, ring),
					  MAPPING_READ);
	return rc;
}

int boards_open_lane(struct boards *b, const struct boards *of, bool apart)
{
	int rc = apart ? 0 : fill_lane(of);

	if (rc == 0)
		rc = boards_open(b, of->own + 1, of->size, of->rank);
	if (rc < 0)
		return rc;
	b->lane = 1;
	b->tag = of->tag;
	b->crowded = of->crowded;
	boards_follow(b, of);
	return 0;
}

void boards_close_lane(struct boards *b)
{
	free_arrays(b);
	*b = (struct boards){0};
}

bool boards_reach(struct boards *b, uint64_t number, uint32_t *who)
{
	if (b->reached >= number)
		return true;
	for (uint32_t r = 0; r < b->size; r++)
		if (r != b->rank && !boards_has(b, r, number)) {
			*who = r;
			return false;
		}
	b->reached = number;
	return true;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Of this generation: a word of one before is none, but that its member has left. */
static uint64_t ended_word(const struct boards *b, uint32_t r)
{
	/* Pairs with the release in boards_end. */
	uint64_t word = atomic_load_explicit(&boards_head(b, r)->ended, memory_order_acquire);

	if (LIKELY(!word) || word >> ENDED_GENERATION == b->generation)
		return word;
	return word & ENDED_LEFT;
}

/* Those who are late find it where they look anyway: in the post they need, or as they post. */
static void mark_broken(struct boards *b)
{
	struct post *last = &b->own->posts[b->posted % BOARD_SLOTS];

	b->broken = true;
	/* Pair with the fences in flat_blame and boards_ring: why is seen with them. */
	if (!b->local || b->local->done < b->posted)
		atomic_store_explicit(&last->what, board_load(&last->what) | POST_BROKEN,
				      memory_order_release);
	atomic_store_explicit(&b->own->asleep, ++b->announced << ASLEEP_BITS | ASLEEP_OVER,
			      memory_order_release);
}

static void ring_bell(struct boards *b, uint32_t r)
{
	b->bells_rung++;
	if (b->bells[r] >= 0)
		(void)bell_ring(b->bells[r]);
}

/* In vain is all that is waited for here, of any member. */
static void ring_sleepers(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++) {
		uint64_t asleep = board_load(&b->of[r]->asleep);

		if (r != b->rank && (asleep & ASLEEP_WHO) && (asleep & ASLEEP_WHO) != ASLEEP_OVER)
			boards_ring(b, r, (asleep & ~ASLEEP_WHO) | ASLEEP_ANY);
	}
}

/* Those too that wait for nothing of this group, or for another member, and are awake. */
static void ring_all(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++)
		if (r != b->rank)
			ring_bell(b, r);
}

/* Ranks that may be blamed are below. */
static uint32_t blamed(const struct boards *b)
{
	return b->local ? b->size + b->local->of->size : b->size;
}

void boards_end(struct boards *b, int error, uint32_t culprit, const char *why)
{
	uint64_t word = ended_word(b, b->rank);

	if (word & ENDED_LEFT || (word && error))
		return;
	if (!word && error && culprit < blamed(b))
		word = (uint64_t)(culprit + 1) << ENDED_CULPRIT;
	word |= error ? (uint32_t)-error & ENDED_ERROR : ENDED_LEFT;
	word |= (uint64_t)b->generation << ENDED_GENERATION;
	if (error)
		strncpy(b->own->why, why ? why : "", BOARD_WHY - 1);
	/* Pairs with the acquire in ended_word: all that was posted is seen with it. */
	atomic_store_explicit(&b->own->ended, word, memory_order_release);
	if (error)
		mark_broken(b);
	atomic_thread_fence(memory_order_seq_cst);
	if (!error || why)
		ring_all(b);
	else /* the one whose words they are has rung the others */
		ring_sleepers(b);
}

void boards_end_lane(struct boards *b)
{
	mark_broken(b);
	atomic_thread_fence(memory_order_seq_cst);
	ring_sleepers(b);
}

bool boards_left(const struct boards *b, uint32_t r)
{
	return ended_word(b, r) & ENDED_LEFT;
}

int boards_ended(const struct boards *b, uint32_t r, uint32_t *culprit)
{
	uint64_t word = ended_word(b, r);
	uint32_t error = (uint32_t)(word & ENDED_ERROR);
	uint32_t named = (uint32_t)word >> ENDED_CULPRIT;

	if (LIKELY(!word))
		return 0;
	*culprit = named && named <= blamed(b) ? named - 1 : r;
	if (!error && word & ENDED_LEFT)
		return -SLMPM_ECLOSED;
	return slmpm_error_name((int)error) && error > SLMPM_ERROR_BASE ? -(int)error :
									  -SLMPM_EPROTO;
}

/* Another's words: what is no plain text in them does no harm. */
static bool words_by(const struct boards *b, uint32_t r, char text[BOARD_WHY])
{
	const volatile char *why = boards_head(b, r)->why;
	uint32_t n = 0;

	for (; n + 1 < BOARD_WHY && (text[n] = why[n]); n++)
		if (text[n] < ' ' || text[n] > '~')
			text[n] = '?';
	text[n] = 0;
	return n;
}

/* What goes before TEXT, the words of R, which may name R: of what it lacks itself. */
static const char *whose_words(const struct boards *b, uint32_t r, const char *text,
			       char name[SAID_BY])
{
	(void)snprintf(name, SAID_BY, BOARD_MEMBER, BOARD_MEMBER_OF(b, r));
	if (strstr(text, name))
		return "";
	(void)snprintf(name, SAID_BY, BOARD_MEMBER " says: ", BOARD_MEMBER_OF(b, r));
	return name;
}

int boards_broken(const struct boards *b, uint32_t *culprit)
{
	uint32_t by = BOARD_NONE, named;
	char text[BOARD_WHY] = "", name[SAID_BY];
	int error = 0;

	for (uint32_t r = 0; r < b->size && !text[0]; r++) {
		int rc = r == b->rank ? 0 : boards_ended(b, r, &named);

		if (rc == 0 || (rc == -SLMPM_ECLOSED && named == r))
			continue;
		if (words_by(b, r, text) || by == BOARD_NONE) {
			by = r;
			error = rc;
			*culprit = named;
		}
	}
	if (by == BOARD_NONE)
		return 0;
	if (text[0])
		return error_set(-error, "%s%s", whose_words(b, by, text, name), text);
	return error_set(-error,
			 "group %u: " BOARD_MEMBER " says that it is broken, by " BOARD_MEMBER,
			 b->tag, BOARD_MEMBER_OF(b, by), BOARD_MEMBER_OF(b, *culprit));
}

const char *boards_which(const struct boards *b, char text[BOARD_WHICH])
{
	text[0] = 0;
	if (b->lane && b->doing)
		(void)snprintf(text, BOARD_WHICH, "tag %u, ", b->doing);
	else if (b->lane)
		(void)snprintf(text, BOARD_WHICH, "of tags, ");
	return text;
}

const char *boards_call_name(uint32_t call)
{
	static const char *const names[] = {NULL, "slmpm_group_split", "slmpm_group_alloc"};

	return call < sizeof(names) / sizeof(names[0]) ? names[call] : NULL;
}

const char *boards_kind_name(uint32_t kind)
{
	const uint32_t call = kind >> BOARD_KIND_CALL;

	return call ? boards_call_name(call) : plan_kind_name(kind);
}

const char *boards_name(const struct boards *b, uint64_t number, uint32_t kind)
{
	const enum board_call call = boards_call_of(b, number);

	return call ? boards_call_name(call) : boards_kind_name(kind);
}

int boards_error(const struct boards *b, int error, uint64_t number, uint32_t kind,
		 const char *format, ...)
{
	const uint32_t slot = number % BOARD_SLOTS;
	char text[ERROR_DETAIL], which[BOARD_WHICH];
	const char *name;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (b->local) {
		number = b->local->steps_of[slot].number;
		kind = kind ? b->local->steps_of[slot].kind : 0;
	}
	name = boards_name(b->local ? b->local->of : b, number, kind);
	return error_set(error, "group %u, %soperation %" PRIu64 "%s%s: %s", b->tag,
			 boards_which(b, which), number, name ? ", " : "", name ? name : "", text);
}

/* ---- meetings -------------------------------------------------------------------------------- */

void boards_come(struct boards *b, uint64_t number)
{
	/* Pairs with the acquire in boards_came: what was stored before the meeting is seen after. */
	atomic_store_explicit(&b->own->came, number, memory_order_release);
	boards_wake(b);
}

uint64_t boards_came(const struct boards *b, uint32_t r)
{
	return atomic_load_explicit(&b->of[r]->came, memory_order_acquire);
}

uint32_t boards_missing(const struct boards *b, uint64_t number, uint32_t r)
{
	while (r < b->size && (r == b->rank || boards_came(b, r) >= number))
		r++;
	return r;
}

/* ---- sleep ----------------------------------------------------------------------------------- */

COLD void boards_ring(struct boards *b, uint32_t r, uint64_t asleep)
{
	uint64_t who = asleep & ASLEEP_WHO;

	if (who == ASLEEP_OVER) {
		atomic_thread_fence(memory_order_acquire);
		b->others_broke = true;
		return;
	}
	if (who != ASLEEP_ANY && who != b->rank + ASLEEP_RANK)
		return;
	asleep >>= ASLEEP_BITS;
	if (b->answered[r] == asleep)
		return;
	b->answered[r] = asleep;
	ring_bell(b, r);
	/* One that agrees on who is gone sleeps though it has broken the group. */
	b->others_broke |= (ended_word(b, r) & ENDED_ERROR) != 0;
}

void boards_wake_all(struct boards *b)
{
	/* Pairs with the fence in boards_announce. */
	atomic_thread_fence(memory_order_seq_cst);
	ring_sleepers(b);
}

bool boards_announce(struct boards *b, uint32_t who)
{
	uint64_t word = ++b->announced << ASLEEP_BITS;

	if (b->broken && !b->agrees)
		return false;
	word |= who < b->size ? who + ASLEEP_RANK : ASLEEP_ANY;
	board_store(&b->own->asleep, word);
	/* Pairs with those of boards_wake: it sees the announcement, or this member what was
	 * stored before it. */
	atomic_thread_fence(memory_order_seq_cst);
	return !b->fences;
}

void boards_awake(struct boards *b)
{
	if (!b->broken || b->agrees)
		board_store(&b->own->asleep,
			    ++b->announced << ASLEEP_BITS | (b->broken ? ASLEEP_OVER : 0));
}

/* ---- connections among them ------------------------------------------------------------------ */

static bool pair_is_of(uint64_t word, uint32_t first)
{
	return word >> PAIR_RANK == first + 1;
}

bool boards_pair(struct boards *b, uint32_t r, uint64_t what)
{
	uint32_t first = b->seats[r];
	uint64_t word = what ? (uint64_t)(first + 1) << PAIR_RANK | (what & PAIR_ASKED) : 0;
	uint32_t at = BOARD_PAIRS, lack = BOARD_PAIRS;

	for (uint32_t i = 0; i < BOARD_PAIRS; i++) {
		uint64_t there = board_load(&b->own->pairs[i]);

		if (pair_is_of(there, first)) {
			at = i;
			break;
		}
		if (!there && at == BOARD_PAIRS)
			at = i;
		if (pair_errno(there & PAIR_ASKED))
			lack = i;
	}
	if (at == BOARD_PAIRS && what && !pair_errno(what))
		at = lack;
	if (at < BOARD_PAIRS)
		/* Pairs with the acquire in boards_paired; the bell is rung after it. */
		atomic_store_explicit(&b->own->pairs[at], word, memory_order_release);
	return at < BOARD_PAIRS || !what;
}

uint64_t boards_paired(const struct boards *b, uint32_t r)
{
	for (uint32_t i = 0; i < BOARD_PAIRS; i++) {
		/* Pairs with the release in boards_pair. */
		uint64_t word = atomic_load_explicit(&b->of[r]->pairs[i], memory_order_acquire);

		if (pair_is_of(word, b->seats[b->rank]))
			return word & PAIR_ASKED;
	}
	return PAIR_NONE;
}
