/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 160 */
/*
 * Two processes on one processor that look again and again and never wait: who finds nothing gives
 * the processor to the other before long. Looks in vain are counted, not time: whoever keeps the
 * processor makes tens of thousands of them before it is the other's turn.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/one_processor.h"
#include "tests/lib/settings.h"

#define TURNS 50 /* of a batch */
#define TRIES                                                                                      \
	20 /* batches: one has to do, for behind others' computations none yields for a while */
#define MOST 100 /* looks in vain a turn, on average */
#define LAST -1

struct end {
	slmpm_peer peer;
	slmpm_ctx ctx;
	slmpm_req req;
	slmpm_cq cq;
	slmpm_ctr ctr;
	uint64_t received;
	int word;
};

typedef bool look_fn(struct end *e);

static void post(struct end *e, bool queue, bool counter)
{
	struct slmpm_iov to = {&e->word, sizeof(e->word)};
	struct slmpm_how how = {.size = sizeof(how)};

	if (queue)
		how.cq = e->cq;
	if (counter)
		how.ctr = e->ctr;
	OK(slmpm_recvv(e->peer, 0, &to, 1, &how, queue || counter ? NULL : &e->req));
}

static bool by_try(struct end *e)
{
	return slmpm_recv(e->peer, 0, &e->word, sizeof(e->word), NULL, 0) == sizeof(e->word);
}

static bool by_probe(struct end *e)
{
	struct slmpm_done done;

	return slmpm_probe(e->peer, 0, &done, 0) > 0 && by_try(e);
}

static bool by_test(struct end *e)
{
	if (!e->req.id)
		post(e, false, false);
	return slmpm_test(&e->req, NULL) == 1;
}

static bool by_wait(struct end *e)
{
	if (!e->req.id)
		post(e, false, false);
	return slmpm_wait(&e->req, 1, NULL, 0) == 0;
}

static bool by_progress(struct end *e)
{
	if (!e->req.id)
		post(e, false, false);
	return slmpm_progress(e->ctx) > 0 && slmpm_test(&e->req, NULL) == 1;
}

static bool by_queue(struct end *e)
{
	struct slmpm_done done;

	if (!e->received++)
		post(e, true, false);
	if (slmpm_cq_poll(e->cq, &done, 1) != 1)
		return false;
	e->received = 0;
	return true;
}

static bool by_queue_wait(struct end *e)
{
	struct slmpm_done done;

	if (!e->received++)
		post(e, true, false);
	if (slmpm_cq_wait(e->cq, &done, 1, 0) != 1)
		return false;
	e->received = 0;
	return true;
}

static bool by_counter(struct end *e)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(e->ctr, &info));
	if (info.posted == e->received)
		post(e, false, true);
	if (slmpm_ctr_wait(e->ctr, e->received + 1, 0) < 0)
		return false;
	e->received++;
	return true;
}

static const struct kind {
	const char *name;
	look_fn *inspect;
} kinds[] = {
	{"slmpm_recv", by_try},           {"slmpm_probe", by_probe},
	{"slmpm_test", by_test},          {"slmpm_wait", by_wait},
	{"slmpm_progress", by_progress},  {"slmpm_cq_poll", by_queue},
	{"slmpm_cq_wait", by_queue_wait}, {"slmpm_ctr_wait", by_counter},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void set_up(struct end *e, slmpm_ctx ctx, slmpm_peer peer)
{
	*e = (struct end){.peer = peer, .ctx = ctx};
	OK(slmpm_cq_create(ctx, &e->cq));
	OK(slmpm_ctr_create(ctx, &e->ctr));
}

/* Looks in vain until it is there. */
static long look_for(struct end *e, look_fn *inspect)
{
	long vain = 0;

	for (int64_t until = actor_now_ms() + PATIENCE; !inspect(e); vain++)
		CHECK(vain % 1000 || actor_now_ms() < until, "nothing has come");
	return vain;
}

static void say(struct end *e, int word)
{
	OK(slmpm_send(e->peer, 0, &word, sizeof(word), PATIENCE));
}

static int role_answers(slmpm_peer host, char **words)
{
	look_fn *inspect = kinds[atoi(words[0])].inspect;
	struct end e;
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	set_up(&e, ctx, host);
	do {
		(void)look_for(&e, inspect);
		say(&e, e.word);
	} while (e.word != LAST);
	return 0;
}

static void start(struct end *e, slmpm_ctx ctx, size_t kind)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .ctx = ctx};
	char number[12];

	snprintf(number, sizeof(number), "%zu", kind);
	set_up(e, ctx, actor_spawn_with(&o, "answers", number, NULL));
}

static pid_t pid_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

/* A batch of round trips: looks in vain. Those in which others had the processor do not count; -1:
 * all were such. */
static long batch(struct end *e, look_fn *inspect)
{
	pid_t other = pid_of(e->peer);

	for (int64_t until = actor_now_ms() + PATIENCE; actor_now_ms() < until;) {
		struct one_processor p = one_processor_begin(other);
		long vain = 0;

		for (int i = 0; i < TURNS; i++) {
			say(e, i);
			vain += look_for(e, inspect);
			EXPECT(e->word, i);
		}
		if (one_processor_was_ours(&p))
			return vain;
	}
	return -1;
}

static void stop(struct end *e, look_fn *inspect)
{
	say(e, LAST);
	(void)look_for(e, inspect);
	actor_join(e->peer, 0);
}

/* ---- both look ------------------------------------------------------------------------------ */

static int all_kinds(void *arg)
{
	slmpm_ctx ctx;

	(void)arg;
	OK(slmpm_default(&ctx));
	for (size_t k = 0; k < KINDS; k++) {
		long vain = LONG_MAX;
		struct end e;

		start(&e, ctx, k);
		for (int i = 0; i < TRIES && vain > TURNS * MOST; i++)
			vain = batch(&e, kinds[k].inspect);
		stop(&e, kinds[k].inspect);
		if (vain < 0)
			return 77;
		CHECK(vain <= TURNS * MOST, "%s: %ld looks in vain in %d round trips",
		      kinds[k].name, vain, TURNS);
	}
	return 0;
}

/* ---- beside another thread of the context ---------------------------------------------------- */

struct idler {
	slmpm_peer peer;
	atomic_bool stop;
};

/* Asks for what never comes. */
static void *ask_in_vain(void *arg)
{
	struct idler *d = arg;
	int word;

	while (!atomic_load(&d->stop))
		CHECK(slmpm_recv(d->peer, 1, &word, sizeof(word), NULL, 0) < 0, "it has come");
	return NULL;
}

static long blocked_so_far(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_THREAD, &u) == 0, "getrusage");
	return u.ru_nvcsw;
}

/* Who gives the processor away does not keep the context's lock meanwhile: the other would block
 * there each time. */
static int with_threads(void *arg)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	struct idler idler = {.stop = false};
	long before, blocked = LONG_MAX, vain = 0;
	pthread_t thread;
	struct end e;
	slmpm_ctx ctx;

	(void)arg;
	OK(slmpm_open(&ctx, &o));
	start(&e, ctx, 0);
	idler.peer = e.peer;
	CHECK(pthread_create(&thread, NULL, ask_in_vain, &idler) == 0, "thread");
	for (int i = 0; i < TRIES && vain >= 0 && blocked > TURNS / 8; i++) {
		before = blocked_so_far();
		vain = batch(&e, by_try);
		blocked = blocked_so_far() - before;
	}
	atomic_store(&idler.stop, true);
	CHECK(pthread_join(thread, NULL) == 0, "join");
	stop(&e, by_try);
	if (vain < 0)
		return 77;
	CHECK(blocked <= TURNS / 8, "blocked %ld times in %d round trips", blocked, TURNS);
	return 0;
}

static void run(const char *fabric, int (*body)(void *))
{
	int rc;

	settings_set("SLMPM_FABRIC", fabric);
	rc = child_run(body, NULL, 50 * (unsigned)actor_slow());
	if (rc == 77) {
		printf("others compute on the processor all the time\n");
		exit(77);
	}
	CHECK(rc == 0, "%s: see above", fabric);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"answers", role_answers}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	if (!one_processor_bind()) {
		printf("no processor can be chosen here\n");
		return 77;
	}
	run("shm", all_kinds);
	run("tcp", all_kinds);
	run("shm", with_threads);
	run("tcp", with_threads);
	return 0;
}
