/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A member that breaks the rules of puts to many: it answers twice, and for another, which does not
 * count, nor that another has all of it, or lives; its impossible packets end its connection, those
 * out of place are ignored.
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/deposit/deposit.h"
#include "tests/lib/child.h"
#include "tests/lib/crew.h"
#include "tests/unit/paired.h"

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

#define SPACE  3
#define LEN    5000
#define HONEST 0
#define ORIGIN 1
#define LIAR   2
#define SIZE   3
#define NUMBER 1000

static unsigned char memory[LEN], from[LEN];
static _Atomic int *step; /* common */

static void await_step(int n)
{
	const int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(step) < n && actor_now_ms() < end)
		usleep(500);
	CHECK(atomic_load(step) >= n, "step %d", atomic_load(step));
}

static void progress_until(const struct crew *c, int n)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	unsigned times = 0;

	while (atomic_load(step) < n && actor_now_ms() < end)
		if (!slmpm_progress(c->ctx))
			actor_idle(c->ctx, &times);
	CHECK(atomic_load(step) >= n, "step %d", atomic_load(step));
}

/* ---- packets --------------------------------------------------------------------------------- */

static void post(const struct crew *c, struct endpoint *ep, uint16_t id, const void *head,
		 size_t head_len, const void *data, size_t len)
{
	int rc = -1;

	for (int i = 0; i < 1000 && rc != 1; i++) {
		rc = am_post(ep, 0, wire_route(am_stream(id, head_len), 0),
			     WIRE_FLAG_ACTIVE | WIRE_FLAG_UNCHARGED, head, (uint32_t)head_len, data,
			     (uint32_t)len);
		(void)slmpm_progress(c->ctx);
	}
	EXPECT(rc, 1);
}

static void say(const struct crew *c, struct endpoint *ep, const struct wire_deposit *w,
		uint64_t ranks, uint64_t agreed)
{
	const uint64_t sets[2] = {ranks, agreed};

	post(c, ep, DEPOSIT_WORD, w, sizeof(*w), sets, sizeof(sets));
}

static struct wire_deposit word_of(enum deposit_word word, uint32_t origin, uint64_t number)
{
	return (struct wire_deposit){.number = number,
				     .length = LEN,
				     .origin = origin,
				     .word = (uint16_t)word,
				     .space = SPACE};
}

/* ---- answers that do not count --------------------------------------------------------------- */

static int ready_calls;

static int count_ready(void *arg)
{
	(void)arg;
	ready_calls++;
	return 0;
}

static void origin(const struct crew *c)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_put_spec put = {.size = sizeof(put),
				     .flags = SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE,
				     .space = SPACE,
				     .len = LEN,
				     .from = from,
				     .ready = count_ready};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_cq_create(c->ctx, &put.answers));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	OK(slmpm_put_all(c->group[0], &put, &how, &req));
	progress_until(c, 1);
	for (int i = 0; i < 200; i++)
		(void)slmpm_progress(c->ctx);
	CHECK(!ready_calls, "it begins without the other one");
	EXPECT(slmpm_cq_poll(put.answers, &done, 1), 1);
	CHECK(done.imm == LIAR, "rank %u", done.imm);
	EXPECT(slmpm_cq_poll(put.answers, &done, 1), 0);
	atomic_store(step, 2);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0 && ready_calls == 1, "status %d, %d calls", done.status,
	      ready_calls);
	EXPECT(slmpm_cq_poll(put.answers, &done, 1), 1);
	CHECK(done.imm == HONEST, "rank %u", done.imm);
}

/* The application sleeps at first; its answer is the one that counts. */
static void honest(const struct crew *c)
{
	OK(slmpm_barrier(c->group[0], PATIENCE));
	await_step(2);
	progress_until(c, 2);
	for (int i = 0; !actor_filled(memory, 1, LEN) && i < 10000; i++)
		if (!slmpm_progress(c->ctx))
			usleep(100);
	CHECK(actor_filled(memory, 1, LEN), "not all has come");
}

static void liar(const struct crew *c)
{
	const int64_t end = actor_now_ms() + 200;
	struct wire_deposit w = word_of(WORD_ANSWER, ORIGIN, 1);
	struct endpoint *ep;

	OK(slmpm_barrier(c->group[0], PATIENCE));
	ep = link_with(c, ORIGIN);
	/* Its own has gone by then. */
	while (actor_now_ms() < end)
		(void)slmpm_progress(c->ctx);
	for (int i = 0; i < 3; i++)
		say(c, ep, &w, 0, 1u << HONEST | 1u << LIAR);
	w.word = WORD_HAVE;
	say(c, ep, &w, 0, 1u << HONEST | 1u << LIAR);
	w.number = 2;
	w.word = WORD_ANSWER;
	say(c, ep, &w, 0, 1u << HONEST | 1u << LIAR);
	atomic_store(step, 1);
}

static void answers(const struct crew *c, int rank)
{
	actor_fill(from, 1, LEN);
	OK(slmpm_group_space(c->group[0], SPACE, memory, LEN));
	if (rank == ORIGIN)
		origin(c);
	else if (rank == LIAR)
		liar(c);
	else
		honest(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- what another has ------------------------------------------------------------------------ */

#define BIG (4 << 20) /* not in one turn of progress */

static int all_have_agreed(void *arg)
{
	(void)arg;
	atomic_store(step, 1);
	return 0;
}

static void put_to_both(const struct crew *c, const unsigned char *big)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	const struct slmpm_put_spec put = {.size = sizeof(put),
					   .flags = SLMPM_PUT_ALL_DIRECT,
					   .space = SPACE,
					   .len = BIG,
					   .from = big,
					   .ready = all_have_agreed};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_put_all(c->group[0], &put, &how, &req));
	progress_until(c, 2);
	for (int i = 0; i < 200; i++)
		(void)slmpm_progress(c->ctx);
	EXPECT(slmpm_test(&req, &done), 0);
	atomic_store(step, 3);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0, "status %d", done.status);
}

/* It has all of it itself. */
static void speak_for_others(const struct crew *c, const unsigned char *big)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	struct wire_deposit w = word_of(WORD_HAVE, ORIGIN, 1);

	while (!actor_filled(big, 3, BIG) && actor_now_ms() < end)
		(void)slmpm_progress(c->ctx);
	say(c, link_with(c, ORIGIN), &w, 0, 1u << HONEST | 1u << LIAR);
	atomic_store(step, 2);
	progress_until(c, 3);
}

static void have(const struct crew *c, int rank)
{
	unsigned char *big = calloc(1, BIG);

	CHECK(big, "no memory");
	if (rank == ORIGIN)
		actor_fill(big, 3, BIG);
	OK(slmpm_group_space(c->group[0], SPACE, big, BIG));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == ORIGIN) {
		put_to_both(c, big);
	} else if (rank == LIAR) {
		speak_for_others(c, big);
	} else {
		progress_until(c, 1);
		await_step(3);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	CHECK(actor_filled(big, 3, BIG), "not all has come");
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- packets that are impossible, or out of place -------------------------------------------- */

/* The connection has ended, and can be made again. */
static struct endpoint *ended(const struct crew *c, struct endpoint *ep, const char *what)
{
	const int64_t end = actor_now_ms() + PATIENCE;

	while (ep->state == SLMPM_PEER_UP && actor_now_ms() < end)
		(void)slmpm_progress(c->ctx);
	CHECK(ep->state != SLMPM_PEER_UP, "%s is taken", what);
	return link_with(c, HONEST);
}

#define BAD(change)                                                                                \
	do {                                                                                       \
		w = word_of(WORD_REQUEST, ORIGIN, NUMBER);                                         \
		ranks = 1u << HONEST;                                                              \
		agreed = 0;                                                                        \
		change;                                                                            \
		say(c, ep, &w, ranks, agreed);                                                     \
		ep = ended(c, ep, #change);                                                        \
	} while (0)

/* Behind the sets of a request: odd, no rank, one twice, not all of the line, of another word. */
static struct endpoint *bad_orders(const struct crew *c, struct endpoint *ep)
{
	static const struct {
		uint16_t word, order[2];
		size_t bytes;
	} bad[] = {{WORD_REQUEST, {HONEST}, 1},
		   {WORD_REQUEST, {HONEST, SIZE}, 4},
		   {WORD_REQUEST, {HONEST, HONEST}, 4},
		   {WORD_REQUEST, {LIAR}, 2},
		   {WORD_BEGIN, {HONEST}, 2}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct wire_deposit w =
			word_of((enum deposit_word)bad[i].word, ORIGIN, NUMBER);
		unsigned char data[2 * sizeof(uint64_t) + sizeof(bad[i].order)] = {1u << HONEST};

		memcpy(data + 2 * sizeof(uint64_t), bad[i].order, sizeof(bad[i].order));
		post(c, ep, DEPOSIT_WORD, &w, sizeof(w), data, 2 * sizeof(uint64_t) + bad[i].bytes);
		ep = ended(c, ep, "such an order");
	}
	return ep;
}

static struct endpoint *bad_words(const struct crew *c, struct endpoint *ep)
{
	struct wire_deposit w;
	uint64_t ranks, agreed;

	BAD(w.number = 0);
	BAD(w.word = 0);
	BAD(w.word = WORD_END);
	BAD(w.word = UINT16_MAX);
	BAD(w.flags = 4);
	BAD(w.origin = SIZE);
	BAD(w.origin = UINT32_MAX);
	BAD(w.error = 1000);
	BAD(w.culprit = SIZE);
	BAD(ranks = 1u << SIZE);
	BAD(ranks = UINT64_MAX);
	BAD(ranks |= 1u << ORIGIN);
	BAD(agreed = 1u << ORIGIN);
	BAD(agreed = UINT64_C(1) << 63);
	w = word_of(WORD_REQUEST, ORIGIN, NUMBER);
	post(c, ep, DEPOSIT_WORD, &w, sizeof(w) - 1, &ranks, sizeof(ranks));
	ep = ended(c, ep, "a short head");
	post(c, ep, DEPOSIT_WORD, &w, sizeof(w), &ranks, sizeof(ranks));
	ep = ended(c, ep, "one set of ranks");
	ep = bad_orders(c, ep);
	post(c, ep, DEPOSIT_END, &w, sizeof(w), &ranks, sizeof(ranks));
	return ended(c, ep, "another handler");
}

/* A put of its own, which the honest one has agreed to. */
static void begin(const struct crew *c, struct endpoint *ep, uint64_t number)
{
	struct wire_deposit w = word_of(WORD_REQUEST, LIAR, number);

	say(c, ep, &w, 1u << HONEST, 0);
	w.word = WORD_BEGIN;
	say(c, ep, &w, 1u << HONEST, 1u << HONEST);
}

static struct endpoint *bad_data(const struct crew *c, struct endpoint *ep)
{
	static const struct {
		uint64_t at, len;
		uint16_t flags;
	} bad[] = {{0, 8, 0},
		   {0, 8, 3},
		   {0, 0, DEPOSIT_BIT},
		   {1, 8, DEPOSIT_BIT}, /* a gap */
		   {UINT64_MAX, 8, DEPOSIT_BIT},
		   {UINT64_MAX - 7, 8, DEPOSIT_BIT}};
	const struct wire_deposit_data first = {1999, 0, LIAR, DEPOSIT_BIT, 0, 0};
	const struct wire_deposit_data last = {2000, 0, LIAR, DEPOSIT_BIT, 0, 0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct wire_deposit_data head = {NUMBER + i,   bad[i].at, LIAR,
						       bad[i].flags, 0,         0};

		begin(c, ep, NUMBER + i);
		post(c, ep, DEPOSIT_DATA, &head, sizeof(head), from, bad[i].len);
		ep = ended(c, ep, "such bytes");
	}
	/* The same bytes again. */
	begin(c, ep, 1999);
	post(c, ep, DEPOSIT_DATA, &first, sizeof(first), from, 8);
	post(c, ep, DEPOSIT_DATA, &first, sizeof(first), from, 8);
	ep = ended(c, ep, "a piece twice");
	/* More than was asked for: a put of no bytes. */
	begin(c, ep, 2000);
	post(c, ep, DEPOSIT_DATA, &last, sizeof(last), from, 1000);
	for (int i = 0; i < 5; i++) {
		const struct wire_deposit_data more = {
			2000, (uint64_t)(i + 1) * 1000, LIAR, DEPOSIT_BIT, 0, 0};

		post(c, ep, DEPOSIT_DATA, &more, sizeof(more), from, i == 3 ? 1001 : 1000);
		if (i == 3)
			return ended(c, ep, "a byte more");
	}
	return ep;
}

/* Nothing comes of them. */
static void out_of_place(const struct crew *c, struct endpoint *ep)
{
	const struct wire_deposit_data none = {NUMBER, 0, ORIGIN, DEPOSIT_BIT, 0, 0};

	for (uint16_t word = 1; word < WORD_END; word++) {
		for (uint32_t o = 0; o < SIZE; o++) {
			struct wire_deposit w = word_of((enum deposit_word)word, o, 3000 + word);

			if (word == WORD_REQUEST && o == ORIGIN)
				continue; /* it would be that one's latest */
			say(c, ep, &w, o == HONEST ? 1u << LIAR : 0, 0);
			w.offset = UINT64_MAX;
			say(c, ep, &w, 0, o == HONEST ? 1u << LIAR : 1u << HONEST);
		}
	}
	post(c, ep, DEPOSIT_DATA, &none, sizeof(none), from, 100);
	for (int i = 0; i < 100; i++)
		(void)slmpm_progress(c->ctx);
	CHECK(ep->state == SLMPM_PEER_UP, "the connection has ended");
}

static void packets(const struct crew *c, int rank)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_put_spec put = {.size = sizeof(put), .space = SPACE, .len = LEN, .from = from};
	struct endpoint *ep;

	OK(slmpm_group_space(c->group[0], SPACE, memory, LEN));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == LIAR) {
		ep = bad_words(c, link_with(c, HONEST));
		ep = bad_data(c, ep);
		out_of_place(c, ep);
		atomic_store(step, 1);
	} else {
		progress_until(c, 1);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	actor_fill(from, 2, LEN);
	if (rank == ORIGIN)
		OK(slmpm_put_all(c->group[0], &put, &how, NULL));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	CHECK(rank == ORIGIN || actor_filled(memory, 2, LEN), "not all has come");
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* ---- words that come late, or with others ---------------------------------------------------- */

static int ended_with = 1;

static void note_end(const struct slmpm_deposit *d, int status, void *arg)
{
	(void)d;
	(void)arg;
	ended_with = status;
}

/* The last of a line says that it has not agreed, and not why. */
static void unlike(const struct crew *c, int rank)
{
	static const int32_t target = LIAR;
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_put_spec put = {.size = sizeof(put),
				     .flags = SLMPM_PUT_ALL_FORWARD,
				     .space = SPACE,
				     .len = LEN,
				     .from = from,
				     .rank = &target,
				     .count = 1};
	struct wire_deposit w = word_of(WORD_ANSWER, ORIGIN, 1);
	struct slmpm_done done;
	slmpm_req req;

	if (rank == ORIGIN) {
		(void)link_with(c, LIAR);
		OK(slmpm_put_all(c->group[0], &put, &how, &req));
		atomic_store(step, 1);
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == -SLMPM_EACCES && done.imm == LIAR, "status %d, rank %u",
		      done.status, done.imm);
	} else if (rank == LIAR) {
		struct endpoint *ep = link_with(c, ORIGIN);

		await_step(1);
		say(c, ep, &w, 0, 0);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* A request that is handed on when its put is over: who has agreed learns it. */
static void handed_on_late(const struct crew *c, int rank)
{
	static const int32_t target = LIAR;
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	const struct slmpm_deposits deposits = {.size = sizeof(deposits), .done = note_end};
	struct slmpm_put_spec put = {.size = sizeof(put),
				     .space = SPACE,
				     .len = LEN,
				     .from = from,
				     .rank = &target,
				     .count = 1};
	struct wire_deposit w = word_of(WORD_REQUEST, ORIGIN, 1);
	const int64_t end = actor_now_ms() + PATIENCE;

	OK(slmpm_group_space(c->group[0], SPACE, memory, LEN));
	OK(slmpm_group_deposits(c->group[0], &deposits));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == ORIGIN)
		OK(slmpm_put_all(c->group[0], &put, &how, NULL));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == LIAR)
		say(c, link_with(c, HONEST), &w, 1u << HONEST, 0);
	while (rank == HONEST && ended_with == 1 && actor_now_ms() < end)
		(void)slmpm_progress(c->ctx);
	if (rank == HONEST) {
		EXPECT(ended_with, -SLMPM_ECANCELED);
		OK(slmpm_group_space(c->group[0], SPACE, NULL, 0));
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

#define LOST 3

/* As all have agreed one is lost, before the first is told to begin: the line leaves it out. */
static void lost_at_once(const struct crew *c, int rank)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 3000 * actor_slow()};
	struct slmpm_put_spec put = {.size = sizeof(put),
				     .flags = SLMPM_PUT_ALL_BROADCAST,
				     .space = SPACE,
				     .len = LEN,
				     .from = from};
	struct wire_deposit w = word_of(WORD_LOST, ORIGIN, 1);
	const int64_t end = actor_now_ms() + PATIENCE;
	struct slmpm_done done[4];
	slmpm_req req;
	int n = 0;

	w.error = wire_error(-SLMPM_EDEAD);
	w.culprit = LOST;
	actor_fill(from, 1, LEN);
	OK(slmpm_group_space(c->group[0], SPACE, memory, LEN));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == ORIGIN) {
		(void)link_with(c, HONEST);
		OK(slmpm_barrier(c->group[0], PATIENCE));
		OK(slmpm_cq_create(c->ctx, &put.answers));
		OK(slmpm_put_all(c->group[0], &put, &how, &req));
		while (n < 2 && actor_now_ms() < end)
			n += slmpm_cq_poll(put.answers, done, 4);
		EXPECT(n, 2);
		atomic_store(step, 1);
		await_step(2);
		EXPECT(slmpm_wait(&req, 1, done, PATIENCE), 0);
		CHECK(done->status == -SLMPM_EDEAD && done->imm == LOST, "status %d, rank %u",
		      done->status, done->imm);
		atomic_store(step, 3);
	} else if (rank == HONEST) {
		struct endpoint *ep = link_with(c, ORIGIN);

		OK(slmpm_barrier(c->group[0], PATIENCE));
		await_step(1);
		for (int i = 0; i < 100; i++) /* its answer */
			if (!slmpm_progress(c->ctx))
				usleep(500);
		say(c, ep, &w, 0, 0);
		atomic_store(step, 2);
		progress_until(c, 3);
		CHECK(actor_filled(memory, 1, LEN), "not all has come");
	} else {
		OK(slmpm_barrier(c->group[0], PATIENCE));
		progress_until(c, 3);
	}
	REFUSED(slmpm_barrier(c->group[0], PATIENCE), SLMPM_EDEAD, "rank 3"); /* so it is said */
}

/* The last of a line claims to speak for the first, which is silent: that one is named as late. */
static void claim(const struct crew *c, int rank)
{
	const struct slmpm_how soon = {.size = sizeof(soon), .timeout_ms = 100 * actor_slow()};
	const struct slmpm_put_spec put = {.size = sizeof(put),
					   .flags = SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE,
					   .space = SPACE,
					   .len = LEN,
					   .from = from};
	struct wire_deposit w = word_of(WORD_ALIVE, 0, 1);
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_group_space(c->group[0], SPACE, memory, LEN));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 0) {
		OK(slmpm_put_all(c->group[0], &put, &soon, &req));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == -SLMPM_ETIMEOUT && done.imm == 1, "status %d, rank %u: %s",
		      done.status, done.imm, slmpm_error_detail());
		atomic_store(step, 1);
	} else if (rank == 1) {
		await_step(1);
	} else {
		struct endpoint *ep = link_with(c, 0);

		while (atomic_load(step) < 1) {
			say(c, ep, &w, 0, 6);
			usleep(5000);
		}
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

static void run(crew_body *body, int members)
{
	const struct crew c = {.members = members, .groups = 1, .body = body};

	atomic_store(step, 0);
	crew_run(&c, 30);
}

int main(void)
{
	if (!sockets_have_cookies())
		test_skip("sockets have no cookies here");
	step = child_common(sizeof(*step));
	run(answers, SIZE);
	run(have, SIZE);
	run(packets, SIZE);
	run(unlike, SIZE);
	run(handed_on_late, SIZE);
	run(lost_at_once, LOST + 1);
	run(claim, SIZE);
	return 0;
}
