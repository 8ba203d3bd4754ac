/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * SIGKILL of the peer amidst work requests of all kinds, some counted there, on every way: each
 * that was taken is told exactly once and in order, whatever its end; nothing is left under way.
 * SLMPM_TEST_KILLS sets another number.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/settings.h"
#include "tests/lib/way.h"

#define KILLS  12
#define SIZE   65536
#define DEPTH  64
#define LATEST 12 /* ms of a storm */

static unsigned char bytes[SIZE];
static unsigned char fetched[DEPTH][SIZE / 2]; /* gets under way at once have a place each */
static uint64_t notified, posted;
static slmpm_cq cq;
static slmpm_rmem rctr;

static void ignore(const struct slmpm_am *am, void *arg)
{
	(void)am;
	(void)arg;
}

/* Has a region and a counter, and takes what comes, until it is killed. */
static int role_target(slmpm_peer host, char **words)
{
	static char data[SIZE];
	slmpm_ctx ctx = {0};
	struct slmpm_key key;
	slmpm_ctr counter;
	slmpm_mem mem;

	(void)words;
	OK(slmpm_am_handler(ctx, 1, ignore, NULL));
	(void)way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 0, &key, sizeof(key), PATIENCE));
	OK(slmpm_ctr_create(ctx, &counter));
	OK(slmpm_ctr_mem(counter, &mem));
	OK(slmpm_mem_share(mem, host, SLMPM_COUNT, PATIENCE));
	for (;;)
		(void)slmpm_recv(host, 1, data, sizeof(data), NULL, PATIENCE);
}

static int post_one(slmpm_wq wq, slmpm_peer child, slmpm_rmem far, struct rng *g)
{
	uint32_t n = 1 + rng_below(g, rng_one_in(g, 8) ? SIZE / 2 : 2000);
	struct slmpm_iov iov = {bytes, n};
	struct slmpm_wr wr = {.size = sizeof(wr), .iov = &iov, .iov_count = 1, .cookie = posted};
	static const uint32_t ops[] = {SLMPM_OP_SEND,   SLMPM_OP_PUT, SLMPM_OP_GET,
				       SLMPM_OP_ATOMIC, SLMPM_OP_AM,  SLMPM_OP_COUNT};
	int rc;

	wr.op = ops[rng_below(g, 6)];
	wr.stream = wr.op == SLMPM_OP_SEND || wr.op == SLMPM_OP_AM;
	if (wr.stream)
		wr.peer = child;
	else if (wr.op != SLMPM_OP_COUNT)
		wr.rmem = far;
	if (wr.op == SLMPM_OP_ATOMIC) {
		wr.iov_count = 0;
		wr.atomic = SLMPM_FETCH_ADD;
		wr.bits = 64;
	}
	if (wr.op == SLMPM_OP_COUNT)
		wr.iov_count = 0;
	if (wr.op == SLMPM_OP_COUNT || rng_one_in(g, 4))
		wr.rctr = rctr;
	if (wr.op == SLMPM_OP_GET)
		iov.base = fetched[posted % DEPTH];
	rc = slmpm_post(wq, &wr, 1);
	posted += rc == 1;
	return rc;
}

static void poll(int clock_ms)
{
	struct slmpm_done done[16];
	int n = clock_ms ? slmpm_cq_wait(cq, done, 16, clock_ms) : slmpm_cq_poll(cq, done, 16);

	CHECK(n >= 0, "%s", slmpm_error_detail());
	for (int i = 0; i < n; i++, notified++)
		CHECK(done[i].cookie == notified &&
			      (done[i].status == 0 || done[i].status == -SLMPM_EDEAD ||
			       done[i].status == -SLMPM_ECANCELED),
		      "cookie %llu instead of %llu, status %d", (unsigned long long)done[i].cookie,
		      (unsigned long long)notified, done[i].status);
}

static void storm(struct rng *g)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = DEPTH};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child = actor_spawn("target", NULL, NULL);
	int64_t until;
	struct slmpm_key key;
	slmpm_rmem far;
	slmpm_wq wq;
	int rc = 0;

	EXPECT(slmpm_recv(child, 0, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(child, &key, &far));
	OK(slmpm_mem_accept(child, &rctr, PATIENCE));
	OK(slmpm_peer_query(child, &info));
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	o.cq = cq;
	o.flags = rng_below(g, 2);
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	notified = posted = 0;
	until = actor_now_ms() + rng_below(g, LATEST);
	while (rc >= 0 || rc == -SLMPM_EAGAIN) {
		if (until && actor_now_ms() >= until) {
			OK(kill(info.pid, SIGKILL));
			until = 0;
		}
		rc = post_one(wq, child, far, g);
		poll(0);
	}
	CHECK(rc == -SLMPM_EDEAD && !until, "posting ended with %d", rc);
	while (notified < posted)
		poll(PATIENCE);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_cq_destroy(cq));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

static int body(const struct way *w)
{
	const char *kills = getenv("SLMPM_TEST_KILLS");
	struct rng rng = {rng_run_seed(7)};

	(void)w;
	for (int i = kills ? atoi(kills) : KILLS; i > 0; i--)
		storm(&rng);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"target", role_target}, {NULL, NULL}};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	return way_each(body, 20);
}
