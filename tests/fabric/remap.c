/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* timeout: 60 */
/*
 * Memory is unmapped and other memory mapped at the same address, on both sides, between transfers:
 * on every way each of them reaches the new pages or is refused, and none the old ones, which are
 * watched by another mapping. Where nothing is mapped a direct transfer is refused.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE   (256u << 10)
#define ROUNDS 3
#define OLD    9000 /* seeds of what lies on old pages */

enum { KEY = 1, ORDER, DATA };
enum what { PUT = 1, GET, ADD, PUT_FIFO, SEND, TAKE, RENEW, OPEN, STOP };

struct order {
	uint32_t what;
	uint64_t seed;
};

/* ---- pages that change under an address ------------------------------------------------------ */

struct place {
	unsigned char *at, *old; /* the pages that were there before */
	size_t size;
};

static unsigned char *map_pages(void *at, size_t size, int fd)
{
	void *base =
		mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	CHECK(base != MAP_FAILED, "no %zu bytes", size);
	return base;
}

/* What is left at the address goes on being watched at another. */
static void place_renew(struct place *p, uint64_t seed)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)p->size) == 0, "no pages");
	if (p->old)
		munmap(p->old, p->size);
	p->old = NULL;
	if (p->at) {
		actor_fill(p->at, OLD, p->size);
		p->old = mremap(p->at, 0, p->size, MREMAP_MAYMOVE); /* the same pages again */
		CHECK(p->old != MAP_FAILED, "old pages cannot be watched");
		munmap(p->at, p->size);
	}
	p->at = map_pages(p->at, p->size, fd);
	close(fd);
	actor_fill(p->at, seed, p->size);
}

static void place_unmap(struct place *p)
{
	munmap(p->at, p->size);
}

static void place_check_old(const struct place *p, const char *after)
{
	CHECK(!p->old || actor_filled(p->old, OLD, p->size), "%s reached old pages", after);
}

/* ---- who asks -------------------------------------------------------------------------------- */

static slmpm_rmem open_next(slmpm_peer host)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(host, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(host, &key, &rmem));
	return rmem;
}

/* Without the owner's help. */
static int is_direct(slmpm_rmem rmem)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};

	OK(slmpm_rmem_query(rmem, &info));
	return !strcmp(info.path, "map") || !strcmp(info.path, "attach");
}

/* Bytes of SEED are put, or sent; or they must be what comes. */
static int obey(slmpm_peer host, slmpm_rmem rmem, struct place *own, const struct order *o)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	size_t size = own->size;
	uint64_t old = 0;
	int64_t rc;

	how.flags = o->what == PUT_FIFO ? SLMPM_FIFO : SLMPM_REMOTE;
	if (o->what == PUT || o->what == PUT_FIFO || o->what == SEND)
		actor_fill(own->at, o->seed, size);
	switch (o->what) {
	case PUT: return slmpm_put(rmem, 0, own->at, size, &how, NULL);
	case PUT_FIFO: return slmpm_put(rmem, 0, own->at, size / 16, &how, NULL);
	case ADD: return slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, NULL, NULL);
	case SEND: return slmpm_send(host, DATA, own->at, size, PATIENCE);
	case GET: rc = slmpm_get(rmem, 0, own->at, size, NULL, NULL); break;
	default:
		rc = slmpm_recv(host, DATA, own->at, size, NULL, PATIENCE);
		rc = rc == (int64_t)size ? 0 : rc;
	}
	CHECK(rc || actor_filled(own->at, o->seed, size), "order %u: other bytes came", o->what);
	return (int)rc;
}

static int ask(slmpm_peer host, char **words)
{
	struct place own = {.size = strtoull(words[0], NULL, 10)};
	struct order o = {.what = OPEN};
	slmpm_rmem rmem = {0};

	place_renew(&own, 0);
	while (o.what != STOP) {
		int rc = 0;

		EXPECT(slmpm_recv(host, ORDER, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
		if (o.what == RENEW)
			place_renew(&own, OLD + 1);
		else if (o.what == OPEN)
			rc = is_direct(rmem = open_next(host));
		else if (o.what != STOP)
			rc = obey(host, rmem, &own, &o);
		place_check_old(&own, "who asks");
		OK(slmpm_send(host, ORDER, &rc, sizeof(rc), PATIENCE));
	}
	return 0;
}

static void begin(slmpm_peer peer, uint32_t what, uint64_t seed)
{
	struct order o = {what, seed};

	OK(slmpm_send(peer, ORDER, &o, sizeof(o), PATIENCE));
}

/* What it said in the end. */
static int end(slmpm_peer peer)
{
	int rc;

	EXPECT(slmpm_recv(peer, ORDER, &rc, sizeof(rc), NULL, PATIENCE), sizeof(rc));
	return rc;
}

static int order(slmpm_peer peer, uint32_t what, uint64_t seed)
{
	begin(peer, what, seed);
	return end(peer);
}

/* 1 where PEER reaches it directly. */
static int give(slmpm_mem mem, slmpm_peer peer)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(peer, KEY, &key, sizeof(key), PATIENCE));
	return order(peer, OPEN, 0);
}

/* From all who have it. */
static void take_away(slmpm_mem mem, slmpm_peer peer)
{
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* ---- a region of the application's memory, which stays while the pages change ---------------- */

static void store_from_fifo(slmpm_peer peer, struct place *p, uint64_t seed)
{
	struct slmpm_fifo e;

	EXPECT(order(peer, PUT_FIFO, seed), 0);
	OK(slmpm_fifo_take(peer, &e, PATIENCE));
	place_renew(p, seed + 1);
	OK(slmpm_fifo_store(&e, e.mem, e.offset, NULL, NULL));
	CHECK(actor_filled(p->at, seed, p->size / 16), "stored from the FIFO");
	place_check_old(p, "the FIFO");
}

static void reach_anew(slmpm_peer peer, struct place *p, uint64_t seed)
{
	uint64_t word = 41;

	place_renew(p, seed);
	EXPECT(order(peer, RENEW, 0), 0);
	EXPECT(order(peer, GET, seed), 0);
	EXPECT(order(peer, PUT, seed + 1), 0);
	CHECK(actor_filled(p->at, seed + 1, p->size), "what was put is not on the new pages");
	place_check_old(p, "a put");
	place_renew(p, seed);
	memcpy(p->at, &word, sizeof(word));
	EXPECT(order(peer, ADD, 0), 0);
	memcpy(&word, p->at, sizeof(word));
	EXPECT(word, 42);
	place_check_old(p, "an atomic operation");
	store_from_fifo(peer, p, seed + 2);
}

static void registered(slmpm_ctx ctx, slmpm_peer peer, size_t size)
{
	struct place p = {.size = size};
	slmpm_mem mem;
	int direct;

	place_renew(&p, 1);
	OK(slmpm_mem_register(ctx, p.at, size, SLMPM_READ_WRITE, &mem));
	direct = give(mem, peer);
	for (uint64_t i = 1; i <= ROUNDS; i++)
		reach_anew(peer, &p, 10 * i);
	if (direct) {
		place_unmap(&p); /* by request that would be the owner's own fault */
		EXPECT(order(peer, PUT, 7), -SLMPM_EINVAL);
		EXPECT(order(peer, GET, 7), -SLMPM_EINVAL);
		(void)map_pages(p.at, size, memfd_create("pages", MFD_CLOEXEC));
	}
	take_away(mem, peer);
}

/* ---- regions that follow each other at one address ------------------------------------------- */

static slmpm_mem make(slmpm_ctx ctx, struct place *p)
{
	slmpm_mem mem;
	void *base;

	if (!way_current()->registered) {
		OK(slmpm_mem_alloc(ctx, p->size, SLMPM_READ_WRITE, &mem, &base));
		p->at = base;
	} else {
		place_renew(p, 1);
		OK(slmpm_mem_register(ctx, p->at, p->size, SLMPM_READ_WRITE, &mem));
	}
	return mem;
}

static void follow(slmpm_ctx ctx, slmpm_peer peer, size_t size)
{
	struct place p = {.size = size};
	unsigned char *before = NULL;
	int same = 0;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		slmpm_mem mem = make(ctx, &p), next;

		same += p.at == before;
		before = p.at;
		(void)give(mem, peer);
		EXPECT(order(peer, PUT, i), 0);
		CHECK(actor_filled(p.at, i, size), "what was put");
		take_away(mem, peer);
		next = make(ctx, &p);
		same += p.at == before;
		before = p.at;
		actor_fill(p.at, 100 + i, size);
		CHECK(order(peer, PUT, i) < 0 && order(peer, GET, i) < 0 && order(peer, ADD, i) < 0,
		      "a key to the region before opens the next at its address");
		CHECK(actor_filled(p.at, 100 + i, size), "and reaches it");
		place_check_old(&p, "a stale key");
		OK(slmpm_mem_destroy(next, PATIENCE));
	}
	CHECK(same, "no region came to lie where one was before");
}

static int body(const struct way *w)
{
	size_t size = w->slow ? SIZE / 8 : SIZE;
	slmpm_peer peer;
	slmpm_ctx ctx;
	char text[32];

	OK(slmpm_default(&ctx));
	snprintf(text, sizeof(text), "%zu", size);
	peer = actor_spawn("ask", text, NULL);
	if (w->registered)
		registered(ctx, peer, size);
	follow(ctx, peer, size);
	EXPECT(order(peer, STOP, 0), 0);
	actor_join(peer, 0);
	return 0;
}

/* ---- messages that the receiver fetches ------------------------------------------------------ */

static int fetched(void *unused)
{
	struct place p = {.size = SIZE};
	struct slmpm_stats stats;
	slmpm_peer peer;
	char text[32];

	(void)unused;
	setenv("SLMPM_FETCH", "always", 1);
	setenv("SLMPM_FETCH_MIN", "1", 1);
	setenv("SLMPM_EAGER_MAX", "64k", 1); /* longer ones are fetched on a busy machine, too */
	snprintf(text, sizeof(text), "%u", SIZE);
	peer = actor_spawn("ask", text, NULL);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		place_renew(&p, i);
		EXPECT(order(peer, RENEW, 0), 0);
		begin(peer, TAKE, i);
		OK(slmpm_send(peer, DATA, p.at, SIZE, PATIENCE));
		EXPECT(end(peer), 0);
		place_renew(&p, i);
		EXPECT(order(peer, RENEW, 0), 0);
		begin(peer, SEND, 20 + i);
		EXPECT(slmpm_recv(peer, DATA, p.at, SIZE, NULL, PATIENCE), SIZE);
		EXPECT(end(peer), 0);
		CHECK(actor_filled(p.at, 20 + i, SIZE), "what was received");
		place_check_old(&p, "a message");
	}
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	if (!stats.rget_messages)
		printf("no message is fetched on this machine\n");
	EXPECT(order(peer, STOP, 0), 0);
	actor_join(peer, 0);
	return 0;
}

/* ---- puts that the target copies a part of --------------------------------------------------- */

/* Where puts go; looks whenever it is told what must be there. */
static int land(slmpm_peer host, char **words)
{
	slmpm_rmem source = {0};
	struct order o = {0};
	slmpm_ctx ctx;
	slmpm_mem mem;
	int rc = 0;
	void *base;

	(void)words;
	OK(slmpm_default(&ctx));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_WRITE, &mem, &base));
	{
		struct slmpm_key key;

		OK(slmpm_mem_key(mem, host, SLMPM_WRITE, &key));
		OK(slmpm_send(host, KEY, &key, sizeof(key), PATIENCE));
	}
	while (o.what != STOP) {
		EXPECT(slmpm_recv(host, ORDER, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
		if (o.what == OPEN)
			source = open_next(host);
		else if (o.what == RENEW)
			OK(slmpm_mem_release(source));
		else if (o.what == PUT)
			CHECK(actor_filled(base, o.seed, SIZE), "bytes %d did not come whole",
			      (int)o.seed);
		OK(slmpm_send(host, ORDER, &rc, sizeof(rc), PATIENCE));
	}
	return 0;
}

static void put_from(slmpm_peer peer, slmpm_rmem rmem, unsigned char *from, uint64_t seed)
{
	for (uint64_t i = 0; i < 5; i++) {
		actor_fill(from, seed + i, SIZE);
		OK(slmpm_put(rmem, 0, from, SIZE, NULL, NULL));
		EXPECT(order(peer, PUT, seed + i), 0);
	}
}

/* The source is a region that the target maps, and then other memory at its address. */
static int shared(void *unused)
{
	struct slmpm_stats stats;
	slmpm_rmem rmem;
	slmpm_peer peer;
	slmpm_ctx ctx;

	(void)unused;
	setenv("SLMPM_SHARE", "always", 1);
	setenv("SLMPM_SHARE_MIN", "32k", 1);
	setenv("SLMPM_WAIT", "spin", 1);
	OK(slmpm_default(&ctx));
	peer = actor_spawn("land", NULL, NULL);
	rmem = open_next(peer);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct slmpm_key key;
		slmpm_mem source;
		void *from, *anew;

		OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &source, &from));
		OK(slmpm_mem_key(source, peer, SLMPM_READ, &key));
		OK(slmpm_send(peer, KEY, &key, sizeof(key), PATIENCE));
		EXPECT(order(peer, OPEN, 0), 0);
		put_from(peer, rmem, from, 100 * i);
		EXPECT(order(peer, RENEW, 0), 0);
		OK(slmpm_mem_destroy(source, PATIENCE));
		anew = mmap(from, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		CHECK(anew == from, "the address is taken");
		put_from(peer, rmem, from, 100 * i + 50);
		munmap(from, SIZE);
	}
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	if (!stats.shared_puts)
		printf("the target never came in time to copy a part\n");
	EXPECT(order(peer, STOP, 0), 0);
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"ask", ask}, {"land", land}, {NULL, NULL}};
	int failed;

	actor_begin(argc, argv, roles);
	failed = way_each(body, 30);
	failed |= child_run(fetched, NULL, 30 * (unsigned)actor_slow());
	failed |= child_run(shared, NULL, 30 * (unsigned)actor_slow());
	return failed ? 1 : 0;
}
