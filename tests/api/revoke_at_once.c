/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * An operation that begins after slmpm_mem_revoke has returned does not succeed, though the peer
 * has heard of nothing: each kind, each way, spawned and connected, while the peer operates as fast
 * as it can. And a revoke that runs out of time has revoked nothing.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/way.h"

#define SIZE   ((size_t)512 << 10)
#define LARGE  ((size_t)256 << 10)
#define ROUNDS 4
#define AFTER  400 /* operations behind the end: more than pass between looks at the peers */

enum { KEY = 1, FLAG, SOURCE, READY, KIND, RESULT };

enum kind {
	PUT,
	PUT_PLAIN,
	GET,
	ADD,
	ADD_TOLD,
	SWAP,
	COMPARE,
	PUTV,
	GETV,
	NOTIFIED,
	ASKED,
	LONG,
	LONG_ASKED,
	LONG_GET_ASKED,
	LONG_COPIED,
	QUEUED,
	KINDS
};

/* ---- the peer -------------------------------------------------------------------------------- */

static slmpm_rmem region, flag;
static slmpm_cq cq;
static slmpm_wq wq;
static unsigned char *source; /* memory that the other side has mapped */
static uint64_t words[2];

static int put(void *from, size_t n, uint32_t flags, slmpm_req *req)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};

	return slmpm_put(region, 0, from, n, &how, req);
}

static int ended(int rc, slmpm_req *req)
{
	struct slmpm_done done;

	if (rc < 0)
		return rc;
	rc = slmpm_wait(req, 1, &done, PATIENCE);
	return rc < 0 ? rc : done.status;
}

static int queued(void)
{
	struct slmpm_iov iov = {words, 8};
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = SLMPM_OP_PUT,
			      .rmem = region,
			      .iov = &iov,
			      .iov_count = 1,
			      .flags = SLMPM_REMOTE};
	struct slmpm_done done;
	int rc = slmpm_post(wq, &wr, 1);

	if (rc != 1)
		return rc;
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	if (done.status < 0)
		OK(slmpm_wq_reset(wq));
	return done.status;
}

static int operate(int kind)
{
	struct slmpm_how notified = {.size = sizeof(notified), .timeout_ms = PATIENCE};
	struct slmpm_how remote = {
		.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};
	struct slmpm_span spans[2] = {{0, 8}, {64, 8}};
	struct slmpm_iov pieces[2] = {{&words[0], 8}, {&words[1], 8}};
	static unsigned char large[LARGE];
	slmpm_req req = {0};

	switch (kind) {
	case PUT: return put(words, 8, SLMPM_REMOTE, NULL);
	case PUT_PLAIN: return slmpm_put(region, 0, words, 8, NULL, NULL);
	case GET: return slmpm_get(region, 0, words, 8, NULL, NULL);
	case ADD: return slmpm_atomic(region, 0, SLMPM_FETCH_ADD, 64, 1, 0, NULL, NULL, NULL);
	case ADD_TOLD:
		return slmpm_atomic(region, 0, SLMPM_FETCH_ADD, 64, 1, 0, words, &notified, NULL);
	case SWAP: return slmpm_atomic(region, 4, SLMPM_SWAP, 32, 1, 0, words, NULL, NULL);
	case COMPARE:
		return slmpm_atomic(region, 8, SLMPM_COMPARE_SWAP, 64, 1, 0, words, NULL, NULL);
	case PUTV: return slmpm_putv(region, spans, 2, pieces, 2, &remote, NULL);
	case GETV: return slmpm_getv(region, spans, 2, pieces, 2, NULL, NULL);
	case NOTIFIED: return put(words, 8, SLMPM_REMOTE | SLMPM_NOTIFY, NULL);
	case ASKED: return ended(put(words, 8, SLMPM_REMOTE, &req), &req);
	case LONG: return put(large, LARGE, SLMPM_REMOTE, NULL);
	case LONG_ASKED: return ended(put(large, LARGE, SLMPM_REMOTE, &req), &req);
	case LONG_GET_ASKED: return ended(slmpm_get(region, 0, large, LARGE, NULL, &req), &req);
	case LONG_COPIED: return put(source, LARGE, SLMPM_REMOTE, NULL);
	default: return queued();
	}
}

/* Whether the call has returned: read by a get, of a region that stays. */
static uint64_t has_returned(void)
{
	uint64_t value = 0;

	OK(slmpm_get(flag, 0, &value, sizeof(value), NULL, NULL));
	return value;
}

/* Each kind that it is told, until it is refused; and often afterwards. */
static void serve(slmpm_peer host)
{
	int32_t kind = 0;

	while (slmpm_recv(host, KIND, &kind, sizeof(kind), NULL, -1) == (int64_t)sizeof(kind)) {
		uint64_t n = 0;
		bool over = false;
		int rc = 0;

		region = way_open(host, KEY);
		OK(operate(kind));
		OK(slmpm_send(host, READY, NULL, 0, PATIENCE));
		while (rc == 0) {
			over = has_returned() == (uint64_t)kind + 1;
			rc = operate(kind);
			n += rc == 0;
			CHECK(rc || !over, "kind %d: done after the end, by \"%s\"", kind,
			      way_path(region));
		}
		CHECK(rc == -SLMPM_EACCES &&
			      strstr(slmpm_error_detail(), "taken the region back") &&
			      strstr(slmpm_error_detail(), ": slmpm_"),
		      "kind %d: %d, %s", kind, rc, slmpm_error_detail());
		while (has_returned() != (uint64_t)kind + 1)
			;
		for (int i = 0; i < AFTER; i++)
			EXPECT(operate(kind), -SLMPM_EACCES);
		OK(slmpm_mem_release(region));
		OK(slmpm_send(host, RESULT, &n, sizeof(n), PATIENCE));
	}
}

static void play(slmpm_peer host)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	slmpm_ctx none = {0};
	slmpm_mem own;
	void *base;

	OK(slmpm_cq_create(none, &cq));
	o.cq = cq;
	OK(slmpm_wq_create(none, &o, &wq));
	flag = way_open(host, FLAG);
	OK(slmpm_mem_alloc(none, LARGE, SLMPM_READ_WRITE, &own, &base));
	source = base;
	way_give(own, host, SOURCE);
	serve(host);
}

static int spawned(slmpm_peer host, char **args)
{
	(void)args;
	play(host);
	return 0;
}

static int connected(slmpm_peer host, char **args)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;

	(void)host;
	OK(slmpm_connect(&peer, none, args[0], PATIENCE));
	play(peer);
	return 0;
}

/* ---- the owner ------------------------------------------------------------------------------- */

static slmpm_ctx ctx;
static _Atomic uint64_t *flag_word;

static void give(slmpm_mem mem, slmpm_peer peer, uint32_t stream, uint32_t access)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, peer, access, &key));
	OK(slmpm_send(peer, stream, &key, sizeof(key), PATIENCE));
}

static void await(slmpm_peer peer, uint64_t most)
{
	for (uint64_t i = 0; i < most; i++)
		(void)slmpm_progress(ctx);
	(void)peer;
}

static void revoke_amidst(slmpm_peer peer, int32_t kind, int round)
{
	slmpm_mem mem;
	uint64_t n = 0, *base = (uint64_t *)(void *)way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);

	atomic_store(flag_word, 0);
	OK(slmpm_send(peer, KIND, &kind, sizeof(kind), PATIENCE));
	give(mem, peer, KEY, SLMPM_READ_WRITE);
	EXPECT(slmpm_recv(peer, READY, NULL, 0, NULL, PATIENCE), 0);
	await(peer, (uint64_t)round * 50);
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	/* Pairs with the acquire behind the peer's get. */
	atomic_store_explicit(flag_word, (uint64_t)kind + 1, memory_order_release);
	EXPECT(slmpm_recv(peer, RESULT, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	n++; /* the first */
	/* Of those that were done one at most had begun before and was lost. */
	if (kind == ADD || kind == ADD_TOLD)
		CHECK(base[0] == n || base[0] == n - 1, "%llu were added, %llu are there",
		      (unsigned long long)n, (unsigned long long)base[0]);
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static int each_kind(const struct way *w, slmpm_peer peer)
{
	struct rng rng = {rng_run_seed((uint64_t)time(NULL))};
	slmpm_mem flags;
	slmpm_rmem read;
	void *base;

	OK(slmpm_mem_alloc(ctx, 4096, SLMPM_READ, &flags, &base));
	flag_word = base;
	give(flags, peer, FLAG, SLMPM_READ);
	read = way_open(peer, SOURCE);
	for (int32_t kind = 0; kind < KINDS; kind++) {
		int chosen = (int)rng_below(&rng, ROUNDS); /* where it is slow */

		if (kind == PUT_PLAIN && !way_is_direct()) /* it wants no answer */
			continue;
		if (w->slow && kind >= LONG && kind <= LONG_COPIED)
			continue;
		for (int round = 0; round < ROUNDS; round++)
			if (actor_slow() == 1 || round == chosen)
				revoke_amidst(peer, kind, round);
	}
	OK(slmpm_mem_release(read));
	return 0;
}

static void by_spawn(const struct way *w)
{
	slmpm_peer peer = actor_spawn("spawned", NULL, NULL);

	each_kind(w, peer);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
}

static void by_connect(const struct way *w)
{
	slmpm_listener listener;
	slmpm_peer peer, child;
	char url[64];

	snprintf(url, sizeof(url), "shm:revoke-at-once-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, url));
	child = actor_spawn("-connected", url, NULL);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	each_kind(w, peer);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(child, 0);
	OK(slmpm_unlisten(listener));
}

static int body(const struct way *w)
{
	setenv("SLMPM_SHARE", "always", 1);
	OK(slmpm_default(&ctx));
	by_spawn(w);
	by_connect(w);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"spawned", spawned}, {"-connected", connected}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return way_each(body, 20);
}
