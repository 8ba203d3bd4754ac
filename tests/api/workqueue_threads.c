/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Threads, and handlers, post to work queues that others cancel, reset, run again, destroy and make
 * anew at any moment: each entry taken is told exactly once, and at the end nothing is left.
 * SLMPM_TEST_SEED repeats a run's choices, SLMPM_TEST_MS lengthens it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/api/workqueue.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define MS      700
#define SLOTS   3
#define POSTERS 2
#define DEPTH   48
#define COOKIES (1u << 20)
#define PLACES  (1u << 16) /* one for each entry under way, and then some */

enum { NOTE = 1, LONG, NEVER }; /* streams */

static _Atomic uint64_t slots[SLOTS];
static _Atomic uint32_t cookies;
static _Atomic uint8_t taken[COOKIES], told[COOKIES], kept[COOKIES];
static _Atomic bool over;
static slmpm_ctr counters[2];
static struct slmpm_iov whole, sink;
static uint64_t places[PLACES];
static uint64_t seed;

static slmpm_wq slot(struct rng *g)
{
	return (slmpm_wq){atomic_load(&slots[rng_below(g, SLOTS)])};
}

/* ---- entries ------------------------------------------------------------------------------- */

static struct slmpm_wr signal_of(uint32_t op, struct rng *g)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = op, .value = rng_below(g, 8)};

	if (rng_one_in(g, 2))
		wr.flags = SLMPM_RELATIVE;
	if (op == SLMPM_OP_ENABLE) {
		wr.wq = slot(g);
		return wr;
	}
	wr.ctr = counters[rng_below(g, 2)];
	if (op == SLMPM_OP_COUNT)
		return wr;
	wr.timeout_ms = (int)rng_below(g, 3);
	if (rng_one_in(g, 3)) {
		wr.ctr.id = 0;
		wr.cq = cq;
		wr.flags = SLMPM_RELATIVE;
	} else if (rng_one_in(g, 2)) {
		wr.ctr.id = 0;
		wr.wq = slot(g);
		wr.index = SLMPM_WQ_POSTED + rng_below(g, 4);
	}
	return wr;
}

static struct slmpm_wr any_entry(uint32_t cookie, struct slmpm_iov *iov, struct rng *g)
{
	uint64_t *place = &places[cookie % PLACES];

	*iov = (struct slmpm_iov){here, 8};
	switch (rng_below(g, 9)) {
	case 0: return message(NOTE, iov, cookie);
	case 1: *iov = whole; return message(LONG, iov, cookie);
	case 2: return one_sided(SLMPM_OP_PUT, 1, iov, cookie);
	case 3: *iov = (struct slmpm_iov){place, 8}; return one_sided(SLMPM_OP_GET, 2, iov, cookie);
	case 4: return add(3, 1, place, cookie);
	case 5: *iov = (struct slmpm_iov){place, 8}; return receive(NEVER, iov, cookie);
	case 6: return signal_of(SLMPM_OP_WAIT, g);
	case 7: return signal_of(rng_one_in(g, 3) ? SLMPM_OP_ENABLE : SLMPM_OP_COUNT, g);
	default:
		return (struct slmpm_wr){
			.size = sizeof(struct slmpm_wr), .op = SLMPM_OP_AM, .peer = a, .stream = 1};
	}
}

/* May it be so, when others interfere? */
static void check_rc(int rc, const char *what)
{
	CHECK(rc >= 0 || rc == -SLMPM_EBUSY || rc == -SLMPM_EINVAL || rc == -SLMPM_EHANDLE ||
		      rc == -SLMPM_EAGAIN || rc == -SLMPM_ECANCELED || rc == -SLMPM_ETIMEOUT ||
		      rc == -SLMPM_ESTATE || rc == -SLMPM_ELIMIT,
	      "%s: %d (%s)", what, rc, slmpm_error_detail());
}

static void post_some(struct rng *g)
{
	uint32_t n = 1 + rng_below(g, 4), first = atomic_fetch_add(&cookies, n);
	struct slmpm_iov iov[4];
	struct slmpm_wr wr[4];
	uint32_t which = rng_below(g, SLOTS);
	int rc;

	if (first + n > COOKIES)
		return;
	for (uint32_t i = 0; i < n; i++) {
		wr[i] = any_entry(first + i, &iov[i], g);
		wr[i].cookie = first + i;
		wr[i].channel = rng_below(g, 3);
		/* The last of the slots has the program that is run again. */
		atomic_store(&kept[first + i], which == SLOTS - 1);
	}
	rc = slmpm_post((slmpm_wq){atomic_load(&slots[which])}, wr, (int)n);
	check_rc(rc, "post");
	for (int i = 0; i < rc; i++)
		atomic_store(&taken[first + (uint32_t)i], 1);
}

/* ---- interference -------------------------------------------------------------------------- */

static void make(uint32_t which, struct rng *g)
{
	static const uint32_t flags[] = {0, SLMPM_WQ_MANAGED, SLMPM_WQ_UNACKNOWLEDGED};
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = DEPTH, .channels = 3, .cq = cq};
	slmpm_wq made;

	o.flags = flags[rng_below(g, 3)] | (which == SLOTS - 1 ? SLMPM_WQ_KEPT : 0);
	OK(slmpm_wq_create(ctx, &o, &made));
	atomic_store(&slots[which], made.id);
}

static void break_in(struct rng *g)
{
	uint32_t which = rng_below(g, SLOTS);
	slmpm_wq q = {atomic_load(&slots[which])};
	struct slmpm_wq_info info = {.size = sizeof(info)};

	switch (rng_below(g, 8)) {
	case 0: check_rc(slmpm_wq_cancel(q, 0), "cancel all"); break;
	case 1:
		if (slmpm_wq_query(q, &info) == 0)
			check_rc(slmpm_wq_cancel(q, info.posted - rng_below(g, 8)), "cancel");
		break;
	case 2: check_rc(slmpm_wq_reset(q), "reset"); break;
	case 3: check_rc(slmpm_wq_arm(q), "arm"); break;
	case 4: check_rc(slmpm_wq_enable(q, rng_below(g, 100)), "enable"); break;
	case 5: check_rc(slmpm_wq_drain(q, (int)rng_below(g, 2)), "drain"); break;
	default:
		if (atomic_compare_exchange_strong(&slots[which], &q.id, 0)) {
			int rc = slmpm_wq_destroy(q);

			check_rc(rc, "destroy");
			if (rc == 0)
				make(which, g);
			else
				atomic_store(&slots[which], q.id);
		}
	}
}

static void handle(const struct slmpm_am *am, void *arg)
{
	static _Thread_local struct rng g;

	(void)am;
	(void)arg;
	if (!g.state)
		g.state = seed + (uintptr_t)&g;
	if (atomic_load(&over))
		return;
	if (rng_one_in(&g, 2))
		post_some(&g);
	else
		break_in(&g);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *posts(void *arg)
{
	struct rng g = {seed + (uintptr_t)arg};

	while (!atomic_load(&over))
		post_some(&g);
	return NULL;
}

static void *breaks(void *arg)
{
	struct rng g = {seed + (uintptr_t)arg};

	while (!atomic_load(&over)) {
		break_in(&g);
		usleep(rng_below(&g, 200));
	}
	return NULL;
}

static void take_all(void)
{
	struct slmpm_done done[16];

	for (int n; (n = slmpm_cq_poll(cq, done, 16)) > 0;)
		for (int i = 0; i < n; i++) {
			CHECK(done[i].cookie < COOKIES, "cookie %llx",
			      (unsigned long long)done[i].cookie);
			atomic_fetch_add(&told[done[i].cookie], 1);
		}
	while (slmpm_recv(b, NOTE, sink.base, sink.len, NULL, 0) >= 0)
		;
	(void)slmpm_recv(b, LONG, sink.base, sink.len, NULL, 0);
}

/* Nothing is under way any more, whoever names whom. */
static void end_all(void)
{
	int64_t until = actor_now_ms() + PATIENCE;
	uint32_t left = SLOTS;

	while (left) {
		left = SLOTS;
		for (uint32_t i = 0; i < SLOTS; i++)
			check_rc(slmpm_wq_reset((slmpm_wq){atomic_load(&slots[i])}), "last reset");
		for (uint32_t i = 0; i < SLOTS; i++) {
			slmpm_wq q = {atomic_load(&slots[i])};
			int rc = q.id ? slmpm_wq_destroy(q) : 0;

			check_rc(rc, "last destroy");
			left -= rc == 0;
			if (rc == 0)
				atomic_store(&slots[i], 0);
		}
		take_all();
		CHECK(!left || actor_now_ms() < until, "%u queues do not end: %s", left,
		      slmpm_error_detail());
	}
}

static void storm(void)
{
	const char *given = getenv("SLMPM_TEST_MS");
	pthread_t threads[POSTERS + 1];
	struct rng g = {seed};
	int64_t until;

	for (uint32_t i = 0; i < SLOTS; i++)
		make(i, &g);
	for (uintptr_t i = 0; i <= POSTERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, i < POSTERS ? posts : breaks,
				      (void *)(i + 1)),
		      "a thread");
	until = actor_now_ms() + (given ? atoi(given) : MS);
	while (actor_now_ms() < until && atomic_load(&cookies) < COOKIES - 100)
		take_all();
	atomic_store(&over, true);
	for (uint32_t i = 0; i <= POSTERS; i++)
		pthread_join(threads[i], NULL);
	end_all();
}

static int everything(void *fabric)
{
	uint32_t all, n = 0;

	settings_set("SLMPM_FABRIC", fabric);
	begin_in(SLMPM_THREADS, 0, 0);
	OK(slmpm_am_handler(ctx, 1, handle, NULL));
	whole = long_one();
	sink = long_one();
	for (int i = 0; i < 2; i++)
		OK(slmpm_ctr_create(ctx, &counters[i]));
	storm();
	all = atomic_load(&cookies);
	for (uint32_t i = 0; i < all && i < COOKIES; i++) {
		uint8_t is = taken[i], was = told[i];

		n += is;
		CHECK(is == was || (is && was > 1 && kept[i]), "entry %u: taken %u, told %u times",
		      i, is, was);
	}
	printf("%s: %u entries\n", (char *)fabric, n);
	for (int i = 0; i < 2; i++)
		OK(slmpm_ctr_destroy(counters[i]));
	end();
	free(whole.base);
	free(sink.base);
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp"};

	seed = rng_run_seed(5);
	for (int i = 0; i < 4; i++) {
		settings_set("SLMPM_ENGINE", i & 2 ? "thread" : "none");
		settings_run(fabrics[i & 1], everything, fabrics[i & 1]);
	}
	return 0;
}
