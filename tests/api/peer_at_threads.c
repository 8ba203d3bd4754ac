/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * An address is closed, and named again, while other threads post to it: it is closed when no entry
 * names it, and an entry that was taken ends and its message comes. SLMPM_TEST_MS: how long.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/api/peer_at.h"
#include "tests/lib/message.h"
#include "tests/lib/random.h"

#define MS      300
#define POSTERS 2
#define TAKEN   16 /* entries of a poster's under way */

static slmpm_ctx ctx;
static slmpm_cq cq;
static slmpm_wq wq;
static _Atomic uint64_t at; /* the handle of now */
static _Atomic uint32_t posted[POSTERS], ended[POSTERS], gone;
static _Atomic bool over;
static uint64_t seed;

static void post_one(uint32_t channel)
{
	static const struct word word = {0, 0};
	const struct slmpm_iov piece = {(void *)(uintptr_t)&word, sizeof(word)};
	const struct slmpm_wr wr = word_to((slmpm_peer){at}, channel, &piece);
	int rc = slmpm_post(wq, &wr, 1);

	CHECK(rc == 1 || rc == -SLMPM_EHANDLE || rc == -SLMPM_ECLOSED, "post: %s",
	      slmpm_error_detail()); /* it is closed, or is being closed just now */
	if (rc == 1)
		posted[channel]++;
	else
		gone++;
}

static void *poster(void *arg)
{
	uint32_t channel = (uint32_t)(uintptr_t)arg;
	struct rng g = {seed + channel};

	while (!over) {
		if (posted[channel] - ended[channel] < TAKEN)
			post_one(channel);
		if (rng_one_in(&g, 8))
			usleep(rng_below(&g, 200));
		else
			sched_yield();
	}
	return NULL;
}

static void take_ends(void)
{
	struct slmpm_done done;

	while (slmpm_cq_poll(cq, &done, 1) == 1) {
		CHECK(!done.status, "an entry has ended with %s", slmpm_strerror(done.status));
		ended[done.cookie]++;
	}
}

static void name_it(void)
{
	slmpm_peer peer;

	OK(slmpm_peer_at(&peer, ctx, world->urls[0]));
	at = peer.id;
}

/* True: it was closed. */
static bool close_it(void)
{
	int rc = slmpm_close((slmpm_peer){at}, PATIENCE);

	CHECK(rc == 0 || rc == -SLMPM_EBUSY, "close: %s", slmpm_error_detail());
	return rc == 0;
}

static uint32_t sum(const _Atomic uint32_t *of)
{
	uint32_t n = 0;

	for (int i = 0; i < POSTERS; i++)
		n += of[i];
	return n;
}

static void open_all(void)
{
	const struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	struct slmpm_wq_options o = {.size = sizeof(o), .channels = POSTERS};

	OK(slmpm_open(&ctx, &options));
	OK(slmpm_cq_create(ctx, &cq));
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	name_it();
}

static void come_and_go(void)
{
	const char *given = getenv("SLMPM_TEST_MS");
	int64_t until = actor_now_ms() + (given ? atoi(given) : MS);
	pthread_t threads[POSTERS];
	struct rng g = {seed};
	uint32_t closed = 0;

	for (uintptr_t i = 0; i < POSTERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, poster, (void *)i), "no thread");
	while (actor_now_ms() < until || !closed || !sum(posted)) {
		CHECK(actor_now_ms() < until + PATIENCE, "%u closed, %u posted", closed,
		      sum(posted));
		take_ends();
		if (rng_one_in(&g, 64) && close_it()) {
			closed++;
			name_it();
		}
	}
	over = true;
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	OK(slmpm_wq_drain(wq, PATIENCE));
	take_ends();
	EXPECT(sum(ended), sum(posted));
	printf("%u posted, %u refused, %u times closed\n", sum(posted), gone, closed);
}

static int play(void *fabric)
{
	pid_t server;

	world = child_common(sizeof(*world));
	settings_one_link(fabric);
	by_tcp = !strcmp(fabric, "tcp");
	server = server_start(0, 0, 1);
	open_all();
	come_and_go();
	CHECK(close_it(), "%s", slmpm_error_detail());
	for (int64_t until = actor_now_ms() + PATIENCE; world->total + world->wrong < sum(posted);
	     usleep(1000))
		CHECK(actor_now_ms() < until, "%u messages have come, of %u",
		      world->total + world->wrong, sum(posted));
	EXPECT(world->total + world->wrong, sum(posted));
	OK(slmpm_shut(ctx, PATIENCE));
	world->over = true;
	EXPECT(child_wait(server), 0);
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp"};

	seed = rng_run_seed(18);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(play, fabrics[i], 25) == 0, "%s: see above", fabrics[i]);
	return 0;
}
