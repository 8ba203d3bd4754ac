/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that has a right to a region and makes more of it: keeps what it is to give back, writes
 * what it may only read, uses others' keys and yesterday's; and one that knows no regions, or
 * leaves amidst a grant. Our memory is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/fabric.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_region.h"

static const char *address;
static slmpm_ctx ctx;
static slmpm_listener listener;

/* The liar as a peer, with a key to MEM. */
static slmpm_peer take_in(slmpm_mem mem, uint32_t access)
{
	struct slmpm_key key;
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_mem_key(mem, peer, access, &key));
	return peer;
}

/* ---- one that keeps what it has -------------------------------------------------------------- */

/* Its own mapping is writable, and nobody can forbid that: but the region leaves it. */
static int keep(void *arg)
{
	struct raw_peer p;
	volatile char *at;
	char go;

	(void)arg;
	raw_region_come(&p, address);
	at = mmap(NULL, RAW_REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, raw_region.fd, 0);
	CHECK(at != MAP_FAILED, "a writable region cannot be mapped: %s", strerror(errno));
	at[0] = 'k';
	raw_send(&p, 1, "mapped", 6);
	raw_ring_bell(&p);
	raw_await_packet(&p); /* revoked; it does not answer */
	for (;;) {
		struct pollfd end_of = {.fd = p.fd, .events = POLLIN};

		at[1]++; /* and again, while the host looks */
		if (poll(&end_of, 1, 0) == 1 && recv(p.fd, &go, 1, MSG_DONTWAIT) == 0)
			break;
	}
	munmap((void *)(uintptr_t)at, RAW_REGION_SIZE);
	raw_region_leave(&p);
	return 0;
}

static void revoke_from_one_that_keeps(void)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(keep, NULL, 30);
	char got[16], *base, last;
	slmpm_peer peer;
	slmpm_mem mem;

	OK(slmpm_mem_alloc(ctx, RAW_REGION_SIZE, SLMPM_READ_WRITE, &mem, (void **)&base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 6);
	CHECK(base[0] == 'k', "it does reach the region");
	OK(slmpm_mem_revoke(mem, peer, PATIENCE)); /* it is not waited for */
	last = base[1];
	CHECK(base[0] == 'k', "what was there stays");
	for (int64_t until = actor_now_ms() + 50; actor_now_ms() < until;)
		CHECK(((volatile char *)base)[1] == last, "it still writes");
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that keeps: see above");
	holdings_expect(before, "one that keeps");
}

/* It says that it is through, and is not: the next revocation takes that into account. */
static int release_and_keep(void *arg)
{
	struct raw_peer p;
	volatile char *at;
	char reason[112];

	(void)arg;
	raw_region_come(&p, address);
	at = mmap(NULL, RAW_REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, raw_region.fd, 0);
	CHECK(at != MAP_FAILED, "no mapping");
	raw_say_region(&p, WIRE_REGION_ACCEPTED, 0, LITTLE_32(raw_region.granted.key.grant), NULL,
		       0);
	raw_say_region(&p, WIRE_REGION_RELEASED, 0, LITTLE_32(raw_region.granted.key.grant), NULL,
		       0);
	raw_send(&p, 1, "released", 8);
	raw_ring_bell(&p);
	raw_await_packet(&p);
	at[0] = 'k';
	raw_send(&p, 1, "written", 7);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	munmap((void *)(uintptr_t)at, RAW_REGION_SIZE);
	raw_region_leave(&p);
	return 0;
}

static void revoke_after_a_false_release(void)
{
	pid_t pid = child_start(release_and_keep, NULL, 30);
	char got[16], *base;
	slmpm_peer peer;
	slmpm_mem mem;

	OK(slmpm_mem_alloc(ctx, RAW_REGION_SIZE, SLMPM_READ_WRITE, &mem, (void **)&base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 8);
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_send(peer, 1, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 7);
	CHECK(!base[0], "it still writes");
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "a false release: see above");
}

/* Who may only read has nothing to write with. */
static int pry(void *arg)
{
	struct raw_peer p;
	char path[64], reason[112];
	void *at;
	int fd;

	(void)arg;
	raw_region_come(&p, address);
	at = mmap(NULL, RAW_REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, raw_region.fd, 0);
	CHECK(at == MAP_FAILED, "it can be mapped writable");
	at = mmap(NULL, RAW_REGION_SIZE, PROT_READ, MAP_SHARED, raw_region.fd, 0);
	CHECK(at != MAP_FAILED, "it cannot be mapped");
	CHECK(mprotect(at, RAW_REGION_SIZE, PROT_READ | PROT_WRITE) != 0,
	      "it can be made writable");
	CHECK(pwrite(raw_region.fd, "x", 1, 0) < 0, "it can be written as a file");
	CHECK(ftruncate(raw_region.fd, 0) != 0, "it can be cut");
	CHECK(fallocate(raw_region.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0,
	      "a hole");
	CHECK(madvise(at, 4096, MADV_REMOVE) != 0, "a hole by advice");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", raw_region.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		CHECK(pwrite(fd, "x", 1, 0) < 0, "opened again it can be written");
		CHECK(mmap(NULL, RAW_REGION_SIZE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
		      "opened again it can be mapped writable");
		close(fd);
	}
	raw_send(&p, 1, "tried", 5);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	munmap(at, RAW_REGION_SIZE);
	raw_region_leave(&p);
	return 0;
}

static void give_for_reading(void)
{
	pid_t pid = child_start(pry, NULL, 30);
	char got[16], *base;
	slmpm_peer peer;
	slmpm_mem mem;

	OK(slmpm_mem_alloc(ctx, RAW_REGION_SIZE, SLMPM_READ, &mem, (void **)&base));
	memset(base, 7, RAW_REGION_SIZE);
	peer = take_in(mem, SLMPM_READ);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 5);
	for (int i = 0; i < RAW_REGION_SIZE; i++)
		CHECK(base[i] == 7, "byte %d", i);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "for reading: see above");
}

/* ---- keys of others, and of yesterday -------------------------------------------------------- */

static int use_others(void *arg)
{
	const int *pipe_end = arg;
	unsigned char secret[16];
	struct raw_peer p;
	uint32_t id, own;
	char reason[112];

	raw_region_come(&p, address);
	own = LITTLE_32(raw_region.granted.key.grant);
	/* Another peer's key, which it has come by. */
	CHECK(read(*pipe_end, &id, sizeof(id)) == sizeof(id) &&
		      read(*pipe_end, secret, sizeof(secret)) == sizeof(secret),
	      "no key");
	EXPECT(raw_read(&p, id, secret, 0, 1), SLMPM_EACCES);
	EXPECT(raw_read(&p, own, raw_region.granted.key.secret, 0, 1), 0);
	raw_send(&p, 1, "revoke", 6);
	raw_ring_bell(&p);
	raw_await_packet(&p); /* revoked */
	raw_await_packet(&p); /* and told so */
	/* However often: it was a key once, and no guess. */
	for (int i = 0; i < 40; i++)
		EXPECT(raw_read(&p, own, raw_region.granted.key.secret, 0, 1), SLMPM_EACCES);
	raw_say_region(&p, WIRE_REGION_UNMAPPED, 0, own, NULL, 0);
	for (int i = 0; i < 40; i++)
		EXPECT(raw_read(&p, own, raw_region.granted.key.secret, 0, 1), SLMPM_EACCES);
	raw_send(&p, 1, "over", 4);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "stale keys were called \"%s\"", reason);
	raw_region_leave(&p);
	return 0;
}

static void refuse_others_keys(void)
{
	int ends[2];
	struct slmpm_stats stats;
	struct slmpm_key key;
	slmpm_peer peer, a, b;
	slmpm_mem mem;
	char got[16];
	void *base;
	pid_t pid;

	CHECK(pipe(ends) == 0, "pipe");
	pid = child_start(use_others, &ends[0], 30);
	OK(slmpm_mem_alloc(ctx, RAW_REGION_SIZE, SLMPM_READ_WRITE, &mem, &base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	CHECK(write(ends[1], key.bytes + 8, 4) == 4 && write(ends[1], key.bytes + 32, 16) == 16,
	      "the key");
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 6);
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_send(peer, 1, "now", 3, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 4);
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	EXPECT(stats.refused, 81);
	EXPECT(stats.violations, 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	CHECK(child_wait(pid) == 0, "others' keys: see above");
	close(ends[0]);
	close(ends[1]);
}

/* ---- one that knows no regions --------------------------------------------------------------- */

static int know_nothing(void *arg)
{
	struct raw_peer p;
	char reason[112];

	(void)arg;
	raw_region_begin(&p, address, 0);
	raw_send(&p, 1, "up", 2);
	raw_ring_bell(&p);
	raw_await_packet(&p);
	raw_say_grant(&p, raw_grant_of(1), raw_region.own.fd);
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, "granted region"), "the answer was \"%s\"", reason);
	raw_region_leave(&p);
	return 0;
}

static void ask_one_that_knows_nothing(void)
{
	pid_t pid = child_start(know_nothing, NULL, 30);
	struct slmpm_key key;
	slmpm_peer peer;
	slmpm_mem mem;
	char got[16];
	void *base;

	OK(slmpm_mem_alloc(ctx, RAW_REGION_SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 2);
	REFUSED(slmpm_mem_key(mem, peer, SLMPM_READ, &key), SLMPM_ENOTSUP, "does not know");
	REFUSED(slmpm_mem_share(mem, peer, SLMPM_READ, PATIENCE), SLMPM_ENOTSUP, "does not know");
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_send(peer, 1, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), -SLMPM_EPROTO);
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that knows no regions: see above");
}

/* ---- one that sets access words -------------------------------------------------------------- */

#define WORD_AT  (512 + 3)
#define ANYTHING 77 /* what no owner says: as good as a request */

static void set_words(struct raw_peer *p, int value)
{
	memset((unsigned char *)p->other.base + 512, value, 3584);
}

/* Its own region, by a word of its choice; then all words there are, again and again. */
static int set_all_words(void *arg)
{
	struct slmpm_key key = {.bytes = {0x53, 0x4c, 0x4b, 0x31, 3, 0, 0, 0, 1}};
	struct raw_peer p;
	struct wire_grant g;
	char reason[112];

	(void)arg;
	raw_region_begin(&p, address, WIRE_FEATURE_MEMORY);
	g = raw_grant_of(1);
	g.access_word = LITTLE_32(WORD_AT - 512);
	memcpy(key.bytes + 16, &g.key.size, 8);
	raw_say_grant(&p, g, raw_region.own.fd);
	raw_send(&p, 1, &key, sizeof(key));
	raw_ring_bell(&p);
	raw_await_packet(&p); /* the region's acceptance */
	set_words(&p, ANYTHING);
	((unsigned char *)p.other.base)[WORD_AT] = FABRIC_ACCESS_REVOKED;
	raw_send(&p, 1, "revoked", 7);
	raw_ring_bell(&p);
	raw_await_packet(&p);
	for (int i = 0; i < 1000000; i++)
		set_words(&p, i);
	raw_hear_end(p.fd, reason);
	raw_region_leave(&p);
	return 0;
}

/* What it does to itself nobody else feels. */
static void obey_words(void)
{
	pid_t pid = child_start(set_all_words, NULL, 30);
	slmpm_peer peer, mine, other;
	slmpm_rmem rmem, good;
	struct slmpm_key key;
	uint64_t value = 5;
	slmpm_mem mem;
	void *base;
	int rc;

	actor_pair(ctx, &mine, &other);
	OK(slmpm_mem_alloc(ctx, RAW_REGION_SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(mine, &key, &good));
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	OK(slmpm_put(rmem, 0, &value, sizeof(value), NULL, NULL));
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), 7);
	REFUSED(slmpm_put(rmem, 0, &value, sizeof(value), NULL, NULL), SLMPM_EACCES, "");
	OK(slmpm_send(peer, 1, "go on", 5, PATIENCE));
	for (int i = 0; i < 3000; i++) {
		struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 0};

		rc = slmpm_put(rmem, 0, &value, sizeof(value), &how, NULL);
		CHECK(!rc || rc == -SLMPM_EACCES || rc == -SLMPM_EAGAIN || rc == -SLMPM_ETIMEOUT,
		      "put: %d (%s)", rc, slmpm_error_detail());
		OK(slmpm_atomic(good, 0, SLMPM_FETCH_ADD, 64, 1, 0, NULL, NULL, NULL));
	}
	EXPECT(*(uint64_t *)base, 3000);
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_close(mine, PATIENCE));
	OK(slmpm_close(other, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that sets access words: see above");
}

/* ---- one that leaves ------------------------------------------------------------------------- */

/* Its last word comes right behind the grant, and both perhaps before they are asked for. */
static int leave(void *arg)
{
	struct slmpm_key key = {.bytes = {0x53, 0x4c, 0x4b, 0x31, 3, 0, 0, 0, 1}};
	struct wire_bye bye = {.reason = "gone for tea"};
	struct raw_peer p;
	struct wire_grant g;
	char reason[112];

	(void)arg;
	raw_region_begin(&p, address, WIRE_FEATURE_MEMORY);
	g = raw_grant_of(1);
	memcpy(key.bytes + 16, &g.key.size, 8);
	raw_send(&p, 1, &key, sizeof(key));
	raw_say_grant(&p, g, raw_region.own.fd);
	raw_say_packet(p.fd, WIRE_BYE, &bye, sizeof(bye), -1);
	(void)shutdown(p.fd, SHUT_WR);
	raw_hear_end(p.fd, reason);
	raw_region_leave(&p);
	return 0;
}

static void hear_the_last_word(void)
{
	pid_t pid = child_start(leave, NULL, 30);
	struct slmpm_key key;
	slmpm_peer peer;
	slmpm_rmem rmem;
	int rc;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	rc = slmpm_mem_open(peer, &key, &rmem);
	CHECK(rc == 0 || rc == -SLMPM_EDEAD || rc == -SLMPM_EACCES, "open: %d (%s)", rc,
	      slmpm_error_detail());
	REFUSED(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), SLMPM_EDEAD,
		"gone for tea");
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that leaves: see above");
}

int main(void)
{
	struct victim v;

	victim_begin(&v, "hostile-region");
	address = v.address;
	ctx = v.ctx;
	listener = v.listener;
	revoke_from_one_that_keeps();
	revoke_after_a_false_release();
	give_for_reading();
	refuse_others_keys();
	ask_one_that_knows_nothing();
	obey_words();
	for (int i = 0; i < 20; i++)
		hear_the_last_word();
	victim_end(&v);
	return 0;
}
