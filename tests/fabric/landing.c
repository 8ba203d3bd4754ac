/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload that is landing: a peer is stopped when a part of a packet has come and lies where the
 * rest belongs already. Then whoever owns that memory takes it away, and it is never touched again;
 * nothing else is lost.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"

#define SIZE  ((size_t)24 << 20) /* more than the kernel keeps of a connection */
#define TRIES 40

static slmpm_ctx ctx;
static slmpm_peer peer;
static unsigned char *memory; /* where it lands */
static size_t packet;
static int pid;

/* ---- the peer ------------------------------------------------------------------------------- */

static unsigned char *filled(void)
{
	unsigned char *data = malloc(SIZE);

	CHECK(data, "memory");
	actor_fill(data, 1, SIZE);
	return data;
}

static void await_order(slmpm_peer host)
{
	char order;

	OK(slmpm_send(host, 2, "r", 1, -1));
	EXPECT(slmpm_recv(host, 2, &order, 1, NULL, -1), 1);
}

/* Sends until the host lets go; the host may leave before. */
static int send_it(slmpm_peer host, char **words)
{
	unsigned char *data = filled();

	(void)words;
	await_order(host);
	(void)slmpm_send(host, 1, data, SIZE, -1);
	(void)slmpm_recv(host, 2, data, 1, NULL, -1);
	free(data);
	return 0;
}

static int put_it(slmpm_peer host, char **words)
{
	unsigned char *data = filled();
	struct slmpm_key key;
	slmpm_rmem rmem;
	int rc;

	(void)words;
	EXPECT(slmpm_recv(host, 3, &key, sizeof(key), NULL, -1), sizeof(key));
	OK(slmpm_mem_open(host, &key, &rmem));
	await_order(host);
	rc = slmpm_put(rmem, 0, data, SIZE, NULL, NULL);
	rc = rc == 0 ? slmpm_flush(host, -1) : rc;
	CHECK(rc == -SLMPM_EACCES, "%d: %s", rc, slmpm_error_detail());
	OK(slmpm_send(host, 2, "d", 1, -1));
	free(data);
	return 0;
}

static int give_it(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	char order;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, SIZE, SLMPM_READ_WRITE, &mem, &base));
	actor_fill(base, 1, SIZE);
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 3, &key, sizeof(key), -1));
	await_order(host);
	(void)slmpm_recv(host, 2, &order, 1, NULL, -1);
	return 0;
}

/* ---- the host ------------------------------------------------------------------------------- */

static void begin(const char *role)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED, "memory");
	peer = actor_spawn(role, NULL, NULL);
	OK(slmpm_peer_query(peer, &info));
	pid = info.pid;
}

static void order(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	char ready;

	EXPECT(slmpm_recv(peer, 2, &ready, 1, NULL, PATIENCE), 1);
	OK(slmpm_send(peer, 2, "g", 1, PATIENCE));
	OK(slmpm_peer_query(peer, &info));
	packet = info.packet_max;
}

static void settle(void)
{
	for (int quiet = 0; quiet < 20;)
		quiet = slmpm_progress(ctx) > 0 ? 0 : quiet + 1;
}

/* How far AT has been filled. */
static size_t came(const unsigned char *at)
{
	static const unsigned char zeros[4096];
	size_t n = SIZE;

	while (n && !memcmp(at + n - sizeof(zeros), zeros, sizeof(zeros)))
		n -= sizeof(zeros);
	while (n && !at[n - 1])
		n--;
	return n;
}

/* Stopped, and all that has come lies in memory: up to the middle of a packet? */
static bool stop_within(const unsigned char *at, size_t before)
{
	size_t n;

	actor_await_state(pid, "S");
	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	settle();
	n = at ? came(at) : 1;
	if (n && n < SIZE && (!at || (n + before) % packet))
		return true;
	OK(kill(pid, SIGCONT));
	return false;
}

static void take_away(void)
{
	CHECK(mprotect(memory, SIZE, PROT_NONE) == 0, "mprotect");
}

static void end(bool leaves)
{
	(void)kill(pid, SIGCONT);
	if (leaves) {
		OK(slmpm_send(peer, 2, "x", 1, PATIENCE));
		actor_join(peer, 0);
	} else {
		(void)kill(pid, SIGKILL);
		(void)slmpm_join(peer, NULL, PATIENCE);
	}
	munmap(memory, SIZE);
}

static slmpm_req receive(unsigned char *at, size_t n)
{
	struct slmpm_iov iov = {at, n};
	slmpm_req req;

	OK(slmpm_recvv(peer, 1, &iov, 1, NULL, &req));
	return req;
}

static void expect_whole(const unsigned char *at, size_t size)
{
	CHECK(actor_filled(at, 1, size), "it is not whole");
}

static void whole_elsewhere(void)
{
	unsigned char *data = malloc(SIZE);

	CHECK(data, "memory");
	OK(kill(pid, SIGCONT));
	EXPECT(slmpm_recv(peer, 1, data, SIZE, NULL, PATIENCE), SIZE);
	expect_whole(data, SIZE);
	free(data);
}

static int ends_with(slmpm_req *req)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	return done.status;
}

/* A message begins and has its receive; is the peer stopped within a packet of it? */
static bool begin_message(slmpm_req *req)
{
	begin("send");
	order();
	*req = receive(memory, SIZE);
	return stop_within(memory, 0);
}

/* A receive that is canceled. */
static bool cancel(void)
{
	slmpm_req req;

	if (!begin_message(&req)) {
		EXPECT(ends_with(&req), 0);
		expect_whole(memory, SIZE);
		end(true);
		return false;
	}
	OK(slmpm_cancel(req));
	take_away();
	EXPECT(ends_with(&req), -SLMPM_ECANCELED);
	whole_elsewhere();
	end(true);
	return true;
}

/* And one that is late. */
static bool late(void)
{
	bool within;

	begin("send");
	order();
	actor_await_state(pid, "S");
	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	EXPECT(slmpm_recv(peer, 1, memory, SIZE, NULL, 50), -SLMPM_ETIMEOUT);
	within = came(memory) % packet;
	take_away();
	whole_elsewhere();
	end(true);
	return within;
}

/* A message that came unasked gets its receive, of N bytes, in the middle of a packet: how that
 * ends. */
static int end_of_late(size_t n)
{
	slmpm_req req;

	begin("send");
	order();
	(void)stop_within(NULL, 0);
	req = receive(memory, n);
	settle();
	OK(kill(pid, SIGCONT));
	return ends_with(&req);
}

static bool receive_later(void)
{
	EXPECT(end_of_late(SIZE), 0);
	expect_whole(memory, SIZE);
	end(true);
	return true;
}

/* One too short for it. */
static bool receive_a_part(void)
{
	size_t part = SIZE - packet / 2;

	EXPECT(end_of_late(part), -SLMPM_ETRUNC);
	expect_whole(memory, part);
	CHECK(!memory[part], "more than fits");
	end(true);
	return true;
}

/* The memory becomes a mirror's that protects its pages: the kernel may not write there any
 * more. */
static bool tracked(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	slmpm_mirror mirror;
	slmpm_req req;
	bool within = begin_message(&req);

	OK(slmpm_mirror_create(ctx, memory, SIZE, &o, &mirror));
	OK(kill(pid, SIGCONT));
	EXPECT(ends_with(&req), 0);
	expect_whole(memory, SIZE);
	OK(slmpm_mirror_destroy(mirror));
	end(true);
	return within;
}

static bool tracked_by_thread(void)
{
	return tracked(SLMPM_TRACK_FAULT);
}

static bool tracked_by_signal(void)
{
	return tracked(SLMPM_TRACK_SIGNAL);
}

/* The peer dies; or the connection is closed. */
static bool death(void)
{
	slmpm_req req;
	bool within = begin_message(&req);

	OK(kill(pid, SIGKILL));
	CHECK(within ? ends_with(&req) == -SLMPM_EDEAD : ends_with(&req) <= 0, "no error");
	take_away();
	settle();
	end(false);
	return within;
}

static bool closing(void)
{
	slmpm_req req;
	bool within = begin_message(&req);

	(void)slmpm_close(peer, 0);
	CHECK(ends_with(&req) <= 0, "it goes on");
	take_away();
	OK(kill(pid, SIGCONT));
	settle();
	end(false);
	return within;
}

/* A put into a region that is taken back, and its memory with it. */
static bool revocation(void)
{
	struct slmpm_key key;
	slmpm_mem mem;
	bool within;
	char byte;

	begin("put");
	OK(slmpm_mem_register(ctx, memory, SIZE, SLMPM_READ_WRITE, &mem));
	while (slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key) == -SLMPM_EAGAIN)
		;
	OK(slmpm_send(peer, 3, &key, sizeof(key), PATIENCE));
	order();
	within = stop_within(memory, sizeof(uint64_t) * 5); /* its first packet has less */
	if (!within)
		OK(kill(pid, SIGSTOP));
	OK(slmpm_mem_revoke(mem, peer, 0));
	take_away();
	OK(kill(pid, SIGCONT));
	if (within) {
		EXPECT(slmpm_recv(peer, 2, &byte, 1, NULL, PATIENCE), 1);
		actor_join(peer, 0);
	} else {
		(void)kill(pid, SIGKILL);
		(void)slmpm_join(peer, NULL, PATIENCE);
	}
	OK(slmpm_mem_destroy(mem, PATIENCE));
	munmap(memory, SIZE);
	return within;
}

/* A get whose caller does not wait any longer. */
static bool get(void)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_iov iov = {memory, SIZE};
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_req req;
	bool within;

	begin("give");
	EXPECT(slmpm_recv(peer, 3, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	order();
	iov.base = memory;
	OK(slmpm_getv(rmem, &(struct slmpm_span){0, SIZE}, 1, &iov, 1, &how, &req));
	within = stop_within(memory, 0);
	if (within) {
		EXPECT(slmpm_cancel(req), -SLMPM_EBUSY); /* the peer is at work on it */
		OK(kill(pid, SIGCONT));
	}
	EXPECT(ends_with(&req), 0);
	expect_whole(memory, SIZE);
	memset(memory, 0, SIZE);
	how.timeout_ms = 5;
	(void)slmpm_getv(rmem, &(struct slmpm_span){0, SIZE}, 1, &iov, 1, &how, NULL);
	take_away(); /* what still comes goes nowhere */
	OK(slmpm_flush(peer, PATIENCE));
	OK(slmpm_mem_release(rmem));
	end(true);
	return within;
}

/* Until it was in the middle of a packet. */
static void until_within(const char *name, bool (*scene)(void))
{
	int tries = 1;

	while (!scene())
		CHECK(++tries <= TRIES, "%s: never within a packet", name);
	printf("%s: %d\n", name, tries);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"send", send_it}, {"put", put_it}, {"give", give_it}, {NULL, NULL}};

	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_RING_SEGMENTS", "512k", 1);
	setenv("SLMPM_EAGER_MAX", "32m", 1);
	setenv("SLMPM_EAGER_CREDIT", "64m", 1);
	setenv("SLMPM_WAIT", "block", 1);
	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	if (slmpm_mirror_track_works(SLMPM_TRACK_FAULT) == 0)
		until_within("tracked by a thread", tracked_by_thread);
	if (TEST_THREADS_ALONE)
		return 0;
	until_within("cancel", cancel);
	until_within("late", late);
	until_within("receive later", receive_later);
	until_within("receive a part", receive_a_part);
	if (slmpm_mirror_track_works(SLMPM_TRACK_SIGNAL) == 0)
		until_within("tracked by signal", tracked_by_signal);
	until_within("death", death);
	until_within("close", closing);
	until_within("revocation", revocation);
	until_within("get", get);
	return 0;
}
