/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * SIGKILL of one of several peers at any entry of programs that wait for one another: each entry
 * taken is told exactly once and in order; chains that name the dead peer end at that entry, who
 * waits for them fails with the entry to blame, and the others go on to their end.
 */
#define PEERS 3
#include "tests/fault/chain.h"
#include "tests/lib/random.h"

#define CHAINS (2 * PEERS) /* chain I is for peer I % PEERS, and waits for the other such */
#define STEPS  12
#define LENGTH (2 * STEPS) /* entries of a chain: an operation, a wait */
#define KILLS  24
#define LONG   (256 << 10)
#define RECV   UINT64_C(1000) /* cookies: of receives, of who watches */
#define WATCH  UINT64_C(2000)

struct chain {
	slmpm_wq wq;
	uint64_t told, received, failed; /* FAILED: the entry at which it ended, or 0 */
	int status;
	bool flushed; /* of those that had not begun one has been told */
};

static slmpm_ctx ctx;
static struct chain chains[CHAINS];
static uint64_t watched, blamed[CHAINS];
static slmpm_wq watcher;
static slmpm_cq cq;
static unsigned char bytes[LONG], fetched[CHAINS][SIZE];

/* ---- the programs -------------------------------------------------------------------------- */

static struct slmpm_wr operation(uint32_t c, struct slmpm_iov *iov, struct rng *g)
{
	static const uint32_t ops[] = {SLMPM_OP_SEND, SLMPM_OP_PUT, SLMPM_OP_GET, SLMPM_OP_ATOMIC};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = ops[rng_below(g, 4)]};

	*iov = (struct slmpm_iov){wr.op == SLMPM_OP_GET ? fetched[c] : bytes,
				  1 + rng_below(g, SIZE)};
	if (wr.op == SLMPM_OP_SEND && rng_one_in(g, 2))
		iov->len = LONG;
	wr.iov = iov;
	wr.iov_count = wr.op != SLMPM_OP_ATOMIC;
	if (wr.op == SLMPM_OP_SEND) {
		wr.peer = peers[c % PEERS];
		wr.stream = 1;
		return wr;
	}
	wr.rmem = far[c % PEERS];
	wr.atomic = wr.op == SLMPM_OP_ATOMIC ? SLMPM_FETCH_ADD : 0;
	wr.bits = wr.op == SLMPM_OP_ATOMIC ? 64 : 0;
	return wr;
}

static struct slmpm_wr await(uint32_t c, uint64_t value)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_WAIT,
				 .wq = chains[c].wq,
				 .index = SLMPM_WQ_DONE,
				 .value = value};
}

static void post(slmpm_wq wq, struct slmpm_wr wr, uint64_t cookie)
{
	wr.cookie = cookie;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void post_chain(uint32_t c, struct rng *g)
{
	struct slmpm_iov iov;
	struct slmpm_wr watch;

	for (uint32_t s = 0; s < STEPS; s++) {
		post(chains[c].wq, operation(c, &iov, g), (uint64_t)c << 32 | (2 * s + 1));
		post(chains[c].wq, await((c + PEERS) % CHAINS, 2 * s + 1),
		     (uint64_t)c << 32 | (2 * s + 2));
	}
	iov = (struct slmpm_iov){fetched[c], SIZE};
	post(chains[c].wq,
	     (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
			       .op = SLMPM_OP_RECV,
			       .channel = 1,
			       .peer = peers[c % PEERS],
			       .stream = 2,
			       .iov = &iov,
			       .iov_count = 1},
	     (uint64_t)c << 32 | RECV);
	watch = await(c, LENGTH);
	watch.channel = c;
	post(watcher, watch, (uint64_t)c << 32 | WATCH);
}

static void post_all(struct rng *g)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .cq = cq};

	memset(chains, 0, sizeof(chains));
	memset(blamed, 0, sizeof(blamed));
	watched = 0;
	OK(slmpm_wq_create(ctx, &o, &watcher));
	o.flags = SLMPM_WQ_MANAGED;
	for (uint32_t c = 0; c < CHAINS; c++)
		OK(slmpm_wq_create(ctx, &o, &chains[c].wq));
	for (uint32_t c = 0; c < CHAINS; c++)
		post_chain(c, g);
}

/* Up to the UPTO-th entry of each. */
static void enable(uint64_t upto)
{
	for (uint32_t c = 0; c < CHAINS; c++)
		OK(slmpm_wq_enable(chains[c].wq, upto));
}

/* ---- what is told -------------------------------------------------------------------------- */

/* The first that failed; some that had begun, too, may end this way or that; the rest. */
static void take_step(struct chain *c, const struct slmpm_done *d)
{
	const struct chain *other = &chains[((uint64_t)(c - chains) + PEERS) % CHAINS];
	uint64_t number = d->cookie & 0xffffffff;

	CHECK(number == ++c->told, "entry %llu is told as number %llu", (unsigned long long)number,
	      (unsigned long long)c->told);
	if (c->failed && d->status == -SLMPM_ECANCELED) {
		CHECK(d->len == c->failed, "%llu instead of %llu is blamed",
		      (unsigned long long)d->len, (unsigned long long)c->failed);
		c->flushed = true;
		return;
	}
	CHECK(!c->flushed && (!d->status || d->status == -SLMPM_EDEAD),
	      "entry %llu: %d, behind %llu", (unsigned long long)number, d->status,
	      (unsigned long long)c->failed);
	if (!d->status || c->failed)
		return;
	c->failed = number;
	c->status = d->status;
	CHECK(d->op != SLMPM_OP_WAIT || d->len == other->failed || d->len > other->told,
	      "%llu is blamed", (unsigned long long)d->len);
}

static void take(const struct slmpm_done *d)
{
	uint64_t c = d->cookie >> 32, number = d->cookie & 0xffffffff;

	CHECK(c < CHAINS, "cookie %llx", (unsigned long long)d->cookie);
	if (number == WATCH) {
		watched++;
		blamed[c] = d->status ? d->len : 0;
		CHECK(!d->status || d->status == -SLMPM_EDEAD || d->status == -SLMPM_ECANCELED,
		      "who watches has %d", d->status);
	} else if (number == RECV) {
		CHECK(!chains[c].received++, "a receive is told twice");
	} else {
		take_step(&chains[c], d);
	}
}

/* All that is to come: of the chains of peer VICTIM receives, too. */
static bool is_over(uint32_t victim)
{
	for (uint32_t c = 0; c < CHAINS; c++)
		if (chains[c].told < LENGTH || chains[c].received < (c % PEERS == victim))
			return false;
	return watched == CHAINS;
}

static void check(uint32_t victim)
{
	for (uint32_t c = 0; c < CHAINS; c++) {
		struct slmpm_wq_info info = {.size = sizeof(info)};
		const struct chain *chain = &chains[c];

		OK(slmpm_wq_query(chain->wq, &info));
		if (c % PEERS != victim) {
			CHECK(!chain->failed && !blamed[c] && info.done == LENGTH,
			      "chain %u ended at %llu, status %d", c,
			      (unsigned long long)chain->failed, chain->status);
			continue;
		}
		if (!chain->failed) { /* it was killed too late for this one */
			CHECK(info.done == LENGTH && !blamed[c], "chain %u", c);
			continue;
		}
		CHECK(chain->status == -SLMPM_EDEAD && info.first_failed == chain->failed &&
			      blamed[c] == chain->failed && info.done >= chain->failed - 1,
		      "chain %u: ended at %llu with %d, %llu blamed", c,
		      (unsigned long long)chain->failed, chain->status,
		      (unsigned long long)blamed[c]);
		REFUSED(slmpm_wq_drain(chain->wq, PATIENCE), SLMPM_EDEAD, "");
	}
}

static void poll_for(uint32_t victim, int64_t until)
{
	struct slmpm_done done[8];

	while (!is_over(victim)) {
		int n = slmpm_cq_wait(cq, done, 8, 1000);

		for (int i = 0; i < n; i++)
			take(&done[i]);
		CHECK(actor_now_ms() < until,
		      "not all is told: chains %llu %llu %llu %llu %llu "
		      "%llu, %llu watched",
		      (unsigned long long)chains[0].told, (unsigned long long)chains[1].told,
		      (unsigned long long)chains[2].told, (unsigned long long)chains[3].told,
		      (unsigned long long)chains[4].told, (unsigned long long)chains[5].told,
		      (unsigned long long)watched);
	}
}

static void round_of(uint32_t victim, uint64_t at, struct rng *g)
{
	struct slmpm_done extra;

	for (uint32_t p = 0; p < PEERS; p++)
		if (!pids[p])
			start(p);
	post_all(g);
	enable(at);
	for (uint32_t n = rng_below(g, 2) ? rng_below(g, 200) : 0; n; n--)
		(void)slmpm_progress(ctx);
	if (rng_one_in(g, 2))
		enable(UINT64_MAX);
	OK(kill(pids[victim], SIGKILL));
	enable(UINT64_MAX);
	poll_for(victim, actor_now_ms() + PATIENCE / 2);
	check(victim);
	for (uint32_t c = 0; c < CHAINS; c++)
		OK(slmpm_wq_destroy(chains[c].wq));
	OK(slmpm_wq_destroy(watcher));
	while (slmpm_cq_poll(cq, &extra, 1) == 1)
		CHECK((extra.cookie & 0xffffffff) == RECV && extra.status == -SLMPM_ECANCELED,
		      "%llx is told behind the end", (unsigned long long)extra.cookie);
	join(victim, 128 + SIGKILL);
}

static int kills(void *fabric)
{
	const char *given = getenv("SLMPM_TEST_KILLS");
	struct rng rng = {rng_run_seed(11)};
	int n = given ? atoi(given) : KILLS;

	settings_set("SLMPM_FABRIC", fabric);
	OK(slmpm_cq_create(ctx, &cq));
	for (int i = 0; i < n; i++)
		round_of((uint32_t)i % PEERS, (uint64_t)i % (LENGTH + 1), &rng);
	for (uint32_t p = 0; p < PEERS; p++)
		if (pids[p])
			join(p, 0);
	return 0;
}

int main(int argc, char **argv)
{
	return over_both(argc, argv, kills);
}
