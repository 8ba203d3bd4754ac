/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions shared and accepted, taken back from one peer while others go on, and the memory behind
 * them exchanged: nothing that the one does reaches it afterwards, nothing of the others is lost.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/way.h"

#define SIZE 65536
#define GO   7 /* stream */
#define SOON 100

static slmpm_ctx ctx;

static uint64_t acceptors(slmpm_mem mem)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};

	OK(slmpm_mem_query(mem, &info));
	return info.acceptors;
}

static const char *path_of(slmpm_rmem rmem)
{
	static struct slmpm_mem_info info;

	info.size = sizeof(info);
	OK(slmpm_rmem_query(rmem, &info));
	return info.path;
}

static void tell(slmpm_peer peer, int word)
{
	OK(slmpm_send(peer, GO, &word, sizeof(word), PATIENCE));
}

static void hear(slmpm_peer peer, int word)
{
	int heard = 0;

	EXPECT(slmpm_recv(peer, GO, &heard, sizeof(heard), NULL, PATIENCE), sizeof(heard));
	EXPECT(heard, word);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Accepts as many regions as it is told, writes into each, releases them. */
static int role_accept(slmpm_peer host, char **words)
{
	slmpm_rmem rmem[8];
	int n = atoi(words[0]);

	for (int i = 0; i < n; i++) {
		OK(slmpm_mem_accept(host, &rmem[i], PATIENCE));
		OK(slmpm_put(rmem[i], (uint64_t)i, &"abcdefgh"[i], 1, NULL, NULL));
	}
	REFUSED(slmpm_mem_accept(host, &rmem[n], 0), SLMPM_ETIMEOUT, "no region");
	REFUSED(slmpm_mem_accept(host, NULL, 0), SLMPM_EINVAL, "handle");
	tell(host, 1);
	hear(host, 2);
	for (int i = 0; i < n; i++)
		OK(slmpm_mem_release(rmem[i]));
	EXPECT(slmpm_mem_accept(host, &rmem[0], PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static void shared_in_order(void)
{
	slmpm_peer a = actor_spawn("accept", "6", NULL);
	static char memory[3][64];
	slmpm_mem mem[6];
	char *base[6];

	for (int i = 0; i < 6; i++) {
		if (i % 2) {
			base[i] = memory[i / 2];
			OK(slmpm_mem_register(ctx, base[i], 64, SLMPM_READ_WRITE, &mem[i]));
		} else {
			OK(slmpm_mem_alloc(ctx, 64, SLMPM_READ_WRITE, &mem[i], (void **)&base[i]));
		}
		OK(slmpm_mem_share(mem[i], a, i == 3 ? SLMPM_WRITE : SLMPM_READ_WRITE, PATIENCE));
		EXPECT(acceptors(mem[i]), 1);
	}
	hear(a, 1);
	for (int i = 0; i < 6; i++)
		CHECK(base[i][i] == "abcdefgh"[i], "region %d: %d", i, base[i][i]);
	REFUSED(slmpm_mem_destroy(mem[0], 0), SLMPM_ETIMEOUT, "1 acceptors");
	tell(a, 2);
	for (int i = 0; i < 6; i++)
		OK(slmpm_mem_destroy(mem[i], PATIENCE)); /* waits for the release */
	OK(slmpm_close(a, PATIENCE));
	actor_join(a, 0);
}

/* An offer that nobody takes is taken back; what the other side accepts later is not there. */
static void not_accepted(void)
{
	slmpm_peer a, b;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	REFUSED(slmpm_mem_share(mem, b, SLMPM_READ_WRITE, 0), SLMPM_ETIMEOUT, "");
	REFUSED(slmpm_mem_share(mem, b, SLMPM_READ, SOON), SLMPM_ETIMEOUT, "not accepted");
	EXPECT(acceptors(mem), 0);
	actor_settle(a, b);
	REFUSED(slmpm_mem_accept(a, &rmem, 0), SLMPM_ETIMEOUT, "no region");
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
}

static int role_leave(slmpm_peer host, char **words)
{
	slmpm_rmem rmem;

	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	if (words[0][0] == 'k')
		(void)raise(SIGKILL);
	exit(0); /* without releasing */
}

static void acceptor_gone(const char *how)
{
	slmpm_peer a = actor_spawn("leave", how, NULL);
	static char memory[64];
	slmpm_mem mem, foreign;
	void *base;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_register(ctx, memory, 64, SLMPM_READ_WRITE, &foreign));
	OK(slmpm_mem_share(mem, a, SLMPM_READ_WRITE, PATIENCE));
	CHECK(slmpm_mem_share(foreign, a, SLMPM_READ_WRITE, PATIENCE) < 0, "nobody is there");
	OK(slmpm_mem_destroy(foreign, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	(void)slmpm_join(a, NULL, PATIENCE);
}

/* Holds a region, and calls nothing any more until it is killed. */
static int role_idle(slmpm_peer host, char **words)
{
	slmpm_rmem rmem;
	int path;

	(void)words;
	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	path = path_of(rmem)[0];
	OK(slmpm_send(host, GO, &path, sizeof(path), PATIENCE));
	alarm(60);
	pause();
	return 1;
}

/* Memory that can be freed after a close: or it says that it cannot. */
static void closed_while_attached(void)
{
	slmpm_peer idle = actor_spawn("idle", NULL, NULL), a, b;
	static char memory[64];
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;
	int path = 0;

	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_share(mem, idle, SLMPM_READ_WRITE, PATIENCE));
	EXPECT(slmpm_recv(idle, GO, &path, sizeof(path), NULL, PATIENCE), sizeof(path));
	if (path == 'a') {
		REFUSED(slmpm_mem_revoke(mem, idle, SOON), SLMPM_ETIMEOUT, "let go");
		REFUSED(slmpm_mem_destroy(mem, SOON), SLMPM_ETIMEOUT, "released");
		REFUSED(slmpm_close(idle, SOON), SLMPM_ETIMEOUT, "let go");
	}
	OK(slmpm_kill(idle, 0));
	(void)slmpm_join(idle, NULL, PATIENCE);
	/* One that makes progress does let go. */
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_mem_destroy(mem, 0));
}

/* ---- revocation ------------------------------------------------------------------------------ */

/* Puts the next number into its own word until it is told otherwise; says how many were done. */
static int role_writer(slmpm_peer host, char **words)
{
	uint64_t place = (uint64_t)atoi(words[0]) * 64, n = 0, last = 0;
	bool revoked = words[1] && !strcmp(words[1], "revoked");
	slmpm_rmem rmem;
	int rc;

	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	tell(host, 1);
	for (;;) {
		uint64_t next = n + 1;
		struct slmpm_how how = {
			.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};

		rc = slmpm_put(rmem, place, &next, sizeof(next), &how, NULL);
		if (rc < 0)
			break;
		n = next;
		rc = slmpm_get(rmem, place, &last, sizeof(last), NULL, NULL);
		if (rc < 0)
			break;
		CHECK(last == n, "%llu written, %llu read", (unsigned long long)n,
		      (unsigned long long)last);
		if (slmpm_recv(host, GO, &last, sizeof(last), NULL, 0) > 0)
			break;
	}
	if (revoked) {
		CHECK(rc == -SLMPM_EACCES, "%s", slmpm_error_detail());
		CHECK(!strcmp(path_of(rmem), "none"), "%s", path_of(rmem));
		REFUSED(slmpm_get(rmem, 0, &last, 8, NULL, NULL), SLMPM_EACCES, "");
	} else {
		OK(rc);
		CHECK(!strcmp(path_of(rmem), words[1]), "%s, not %s", path_of(rmem), words[1]);
	}
	OK(slmpm_send(host, 1, &n, sizeof(n), PATIENCE));
	OK(slmpm_mem_release(rmem));
	EXPECT(slmpm_recv(host, GO, &last, sizeof(last), NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static uint64_t word(const void *base, int place)
{
	return *(const volatile uint64_t *)(const void *)((const char *)base + place * 64);
}

/* Until it has gone on for a while. */
static void await_progress(const void *base, int place)
{
	uint64_t from = word(base, place);

	for (int64_t end = actor_now_ms() + PATIENCE; word(base, place) < from + 20;) {
		CHECK(actor_now_ms() < end, "the writer stands still");
		(void)slmpm_progress(ctx);
	}
}

static void one_of_two_revoked(bool allocated)
{
	slmpm_peer bad = actor_spawn("writer", "0", "revoked");
	bool by_ring = allocated || !strcmp(way_mapped(), "ring");
	slmpm_peer good = actor_spawn("writer", "1", by_ring ? "ring" : "attach");
	struct slmpm_key key;
	uint64_t n, stopped;
	slmpm_mem mem;
	void *base;

	if (allocated) {
		OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	} else {
		base = calloc(1, SIZE);
		OK(slmpm_mem_register(ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	}
	OK(slmpm_mem_share(mem, bad, SLMPM_READ_WRITE, PATIENCE));
	OK(slmpm_mem_share(mem, good, SLMPM_READ_WRITE, PATIENCE));
	hear(bad, 1);
	hear(good, 1);
	await_progress(base, 0);
	await_progress(base, 1);
	OK(slmpm_mem_revoke(mem, bad, PATIENCE));
	stopped = word(base, 0);
	EXPECT(acceptors(mem), 1);
	await_progress(base, 1); /* the other goes on */
	CHECK(word(base, 0) == stopped, "what was revoked still writes");
	OK(slmpm_mem_revoke(mem, bad, 0)); /* again: nothing to do */
	tell(good, 2);
	EXPECT(slmpm_recv(good, 1, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	CHECK(word(base, 1) == n, "%llu puts were done, %llu are there", (unsigned long long)n,
	      (unsigned long long)word(base, 1));
	EXPECT(slmpm_recv(bad, 1, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	CHECK(n >= stopped && n <= stopped + 1, "%llu were done, %llu are there",
	      (unsigned long long)n, (unsigned long long)stopped);
	/* The region is as good as new: who is given a key now maps it. */
	OK(slmpm_mem_key(mem, bad, SLMPM_READ, &key));
	OK(slmpm_close(bad, PATIENCE));
	OK(slmpm_close(good, PATIENCE));
	actor_join(bad, 0);
	actor_join(good, 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	if (!allocated)
		free(base);
}

/* Both in one context: unopened keys, those of a read-only region, the pages afterwards. */
static void revoked_before_it_was_opened(void)
{
	struct slmpm_key first, second, third;
	slmpm_peer a, b, c, d;
	slmpm_rmem rmem, more;
	unsigned char byte = 0;
	slmpm_mem mem;
	char *base;

	actor_pair(ctx, &a, &b);
	actor_pair(ctx, &c, &d);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &mem, (void **)&base));
	memset(base, 1, SIZE);
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &first));
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &second));
	OK(slmpm_mem_key(mem, d, SLMPM_READ, &third));
	OK(slmpm_mem_open(a, &first, &rmem));
	OK(slmpm_mem_open(c, &third, &more));
	OK(slmpm_mem_revoke(mem, b, PATIENCE));
	actor_settle(a, b);
	REFUSED(slmpm_mem_open(a, &second, &rmem), SLMPM_EACCES, "");
	REFUSED(slmpm_get(rmem, 0, &byte, 1, NULL, NULL), SLMPM_EACCES, "");
	OK(slmpm_mem_release(rmem));
	CHECK(base[0] == 1 && base[SIZE - 1] == 1, "the bytes stay");
	memset(base, 2, SIZE);
	CHECK(!strcmp(path_of(more), "ring"), "%s", path_of(more));
	/* New pages for new keys. */
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &first));
	OK(slmpm_mem_open(a, &first, &rmem));
	CHECK(!strcmp(path_of(rmem), way_mapped()), "%s", path_of(rmem));
	OK(slmpm_get(rmem, SIZE - 1, &byte, 1, NULL, NULL));
	EXPECT(byte, 2);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_release(more));
	actor_settle(a, b);
	actor_settle(c, d);
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_close(c, PATIENCE));
	OK(slmpm_close(d, PATIENCE));
}

/* ---- memory mapped anew ---------------------------------------------------------------------- */

/* What lies at the address now is what is written, never pages that were there before. */
static void mapped_anew(void)
{
	int protection = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned char *at = mmap(NULL, SIZE, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0), byte;
	unsigned char *old = at == MAP_FAILED ? at : mremap(at, 0, SIZE, MREMAP_MAYMOVE);
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = SOON};
	struct slmpm_key key;
	slmpm_peer a, b;
	slmpm_rmem rmem;
	slmpm_mem mem;
	int rc;

	CHECK(at != MAP_FAILED && old != MAP_FAILED, "memory");
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_register(ctx, at, SIZE, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_put(rmem, 5, "x", 1, &how, NULL));
	CHECK(at[5] == 'x' && old[5] == 'x', "one memory, twice");
	if (!strcmp(path_of(rmem), "attach")) { /* by requests it would be this process's fault */
		munmap(at, SIZE);
		rc = slmpm_put(rmem, 5, "y", 1, &how, NULL);
		CHECK(rc < 0, "a put to no memory: %d", rc);
	}
	CHECK(mmap(at, SIZE, protection, private | MAP_FIXED, -1, 0) == at, "the same address");
	OK(slmpm_put(rmem, 5, "z", 1, &how, NULL));
	CHECK(at[5] == 'z' && old[5] == 'x', "old pages were written");
	at[6] = 9;
	OK(slmpm_get(rmem, 6, &byte, 1, NULL, NULL));
	EXPECT(byte, 9);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	munmap(at, SIZE);
	munmap(old, SIZE);
}

/* ---- many keys ------------------------------------------------------------------------------- */

/* As many as go ahead of their keys while the peer does not look: the last opens first. */
static void last_key_first(void)
{
	struct slmpm_key key = {.bytes = {0}};
	slmpm_rmem rmem;
	slmpm_peer a, b;
	slmpm_mem mem;
	void *base;
	int rc;

	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &mem, &base));
	do
		rc = slmpm_mem_key(mem, b, SLMPM_READ, &key);
	while (rc == 0);
	EXPECT(rc, way_maps() ? -SLMPM_EAGAIN : -SLMPM_ELIMIT);
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_mem_release(rmem));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* ---- a key given while its region ends ------------------------------------------------------- */

static slmpm_mem ending;
static int refused;

static void give_key(const struct slmpm_am *am, void *arg)
{
	struct slmpm_key key;

	(void)arg;
	refused = slmpm_mem_key(ending, am->peer, SLMPM_READ_WRITE, &key);
	OK(slmpm_am_reply(am, 2, NULL, 0, key.bytes, refused == 0 ? sizeof(key.bytes) : 0));
}

static void try_key(const struct slmpm_am *am, void *arg)
{
	struct slmpm_key *key = arg;

	if (am->data_len == sizeof(*key))
		memcpy(key, am->data, sizeof(*key));
}

/* Asks for a key when the region is about to end, and then uses what it gets. */
static int role_late(slmpm_peer host, char **words)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = SOON};
	struct slmpm_key key = {.bytes = {0}};
	slmpm_rmem rmem;

	(void)words;
	OK(slmpm_am_handler((slmpm_ctx){0}, 2, try_key, &key));
	hear(host, 1);
	OK(slmpm_am(host, 1, NULL, 0, NULL, 0, NULL, NULL));
	hear(host, 2);
	if (slmpm_mem_open(host, &key, &rmem) == 0)
		(void)slmpm_put(rmem, 0, "x", 1, &how, NULL);
	tell(host, 3);
	return 0;
}

static void key_of_an_ending_region(void)
{
	slmpm_peer peer;
	static char memory[64];
	struct slmpm_key key;

	setenv("SLMPM_RMA", "ring", 1);
	peer = actor_spawn("late", NULL, NULL);
	unsetenv("SLMPM_RMA");
	OK(slmpm_am_handler(ctx, 1, give_key, NULL));
	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &ending));
	refused = 0;
	OK(slmpm_mem_key(ending, peer, SLMPM_READ, &key));
	tell(peer, 1);
	OK(slmpm_mem_destroy(ending, PATIENCE));
	tell(peer, 2);
	hear(peer, 3);
	CHECK(refused == 0 || refused == -SLMPM_EBUSY || refused == -SLMPM_EHANDLE, "%d", refused);
	actor_join(peer, 0);
}

static const struct actor roles[] = {
	{"accept", role_accept}, {"idle", role_idle}, {"leave", role_leave},
	{"writer", role_writer}, {"late", role_late}, {NULL, NULL},
};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	shared_in_order();
	not_accepted();
	acceptor_gone("exit");
	acceptor_gone("kill");
	closed_while_attached();
	revoked_before_it_was_opened();
	mapped_anew();
	last_key_first();
	key_of_an_ending_region();
	one_of_two_revoked(true);
	one_of_two_revoked(false);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
