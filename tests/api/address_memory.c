/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues and memory with handles by address: operations go by the link that their queue or
 * region was made with. To the other calls such a handle is the peer.
 */
#include <signal.h>

#include "tests/api/addressed.h"

/* ---- work queues ---------------------------------------------------------------------------- */

static void post(slmpm_wq wq, struct slmpm_wr wr, uint64_t cookie)
{
	wr.size = sizeof(wr);
	wr.cookie = cookie;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void next(uint64_t cookie, int link, int protocol)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == 0 && done.cookie == cookie && done.peer.id == peer.id,
	      "cookie %llu, status %d in place of %llu", (unsigned long long)done.cookie,
	      done.status, (unsigned long long)cookie);
	CHECK(links_told(&done) == link, "work %llu by link %d, not %d", (unsigned long long)cookie,
	      links_told(&done), link);
	CHECK(done.protocol == protocol, "work %llu by protocol %d, not %d",
	      (unsigned long long)cookie, done.protocol, protocol);
}

/* Each waits for those before it, of another kind; over the link that is not the memory's by
 * request. */
static void work_over(int link)
{
	static unsigned char bytes[1000], back[1000];
	static uint64_t number;
	const struct slmpm_wq_options o = {.size = sizeof(o), .cq = cq};
	const struct slmpm_iov all = {bytes, sizeof(bytes)}, there = {back, sizeof(back)};
	const struct slmpm_wr send = {.op = SLMPM_OP_SEND,
				      .peer = by[link],
				      .iov = &all,
				      .iov_count = 1},
			      put = {.op = SLMPM_OP_PUT,
				     .peer = by[link],
				     .rmem = regions[0],
				     .iov = &all,
				     .iov_count = 1};
	struct slmpm_wr other = send;
	int moves = link ? SLMPM_BY_REQUEST : SLMPM_BY_PUT;
	slmpm_wq wq;

	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	actor_fill(bytes, 4, sizeof(bytes));
	post(wq, put, 1);
	post(wq, send, 2);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_GET,
			       .peer = by[link],
			       .rmem = regions[0],
			       .iov = &there,
			       .iov_count = 1},
	     3);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_AM,
			       .peer = by[link],
			       .stream = ASK,
			       .head = &number,
			       .head_len = sizeof(number)},
	     4);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_ATOMIC,
			       .peer = by[link],
			       .atomic = SLMPM_FETCH_ADD,
			       .bits = 64,
			       .rmem = regions[0],
			       .offset = 2048,
			       .operand = 1,
			       .old = &number},
	     5);
	other.flags = SLMPM_ON_LINK(1 - link);
	post(wq, other, 6);
	next(1, link, moves);
	next(2, link, SLMPM_BY_SMT);
	next(3, link, link ? SLMPM_BY_REQUEST : SLMPM_BY_GET);
	next(4, link, SLMPM_BY_SMT);
	next(5, link, moves);
	next(6, 1 - link, SLMPM_BY_SMT);
	CHECK(actor_filled(back, 4, sizeof(back)), "what was put");
	expect_back(ECHO, 4, sizeof(bytes));
	expect_back(ECHO, 4, sizeof(bytes));
	OK(slmpm_wq_destroy(wq));
}

/* ---- memory --------------------------------------------------------------------------------- */

static void atomics_and_gets(void)
{
	uint64_t old, word;

	for (int i = 0; i < 3; i++) {
		struct slmpm_how how = {.size = sizeof(how)};
		int notified = i == 2 ? 1 : -1; /* directly, which is nobody's choice */
		slmpm_req req;

		OK(slmpm_atomic(regions[i], 4096, SLMPM_FETCH_ADD, 64, 1, 0, &old, &how, &req));
		links_expect(req, notified, "an atomic operation");
		EXPECT(old, i);
		OK(slmpm_get(regions[i], 4096, &word, sizeof(word), &how, &req));
		links_expect(req, notified, "a get");
		EXPECT(word, i + 1);
	}
	OK(slmpm_flush(by[1], PATIENCE));
}

/* Into the target's FIFO: an active message. */
static void fifo_puts(void)
{
	uint64_t word = 0;

	for (uint64_t i = 1; i <= 6; i++) {
		struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_FIFO | SLMPM_REMOTE};
		int link = (int)i % 2, notified = i > 4 ? 1 - link : link;
		slmpm_req req;

		if (i > 4)
			how.flags |= SLMPM_ON_LINK(1 - link);
		OK(slmpm_send(peer, STORE, NULL, 0, PATIENCE));
		OK(slmpm_put(regions[1 + link], 8192, &i, sizeof(i), &how, &req));
		links_expect(req, notified, "a put into a FIFO");
		EXPECT(slmpm_recv(by[link], STORE, NULL, 0, NULL, PATIENCE), 0);
		OK(slmpm_get(regions[0], 8192, &word, sizeof(word), NULL, NULL));
		EXPECT(word, i);
	}
}

/* One-sided operations in each form of request, by the link of the region's handle, not the usual
 * one. */
static int by_requests(void *form)
{
	static unsigned char bytes[20000];

	CHECK(setenv("SLMPM_RMA", form, 1) == 0 && setenv("SLMPM_LINK", "1", 1) == 0, "setenv");
	spawn();
	find("pci:0000:03:00.0", "ip:127.0.0.1");
	for (int i = 0; i < ROUNDS; i++) {
		const struct slmpm_how how = {.size = sizeof(how)};
		slmpm_req req;
		int link = i % 3 ? i % 3 - 1 : 1;

		OK(slmpm_put(regions[i % 3], 0, bytes, sizeof(bytes), &how, &req));
		links_expect(req, link, form);
		OK(slmpm_get(regions[i % 3], 0, bytes, sizeof(bytes), &how, &req));
		links_expect(req, link, form);
	}
	end();
	return 0;
}

/* As long as the link would be kept several times, and it has much to do: none of it goes by the
 * other. */
static int long_puts(void *form)
{
	static unsigned char bytes[REGION];

	CHECK(setenv("SLMPM_RMA", form, 1) == 0, "setenv");
	spawn();
	find("ip:127.0.0.1", NULL);
	for (int i = 0; i < ROUNDS; i++) {
		const struct slmpm_how how = {.size = sizeof(how)};
		slmpm_req req;

		OK(slmpm_put(regions[1 + i % 2], 0, bytes, sizeof(bytes), &how, &req));
		links_expect(req, i % 2, "a long put");
	}
	end();
	return 0;
}

/* ---- where the peer alone counts ------------------------------------------------------------ */

static void mirrors(void)
{
	static uint64_t words[512];
	slmpm_mirror mirror;

	OK(slmpm_mirror_create((slmpm_ctx){0}, words, sizeof(words), NULL, &mirror));
	OK(slmpm_send(peer, MIRROR, NULL, 0, PATIENCE));
	OK(slmpm_mirror_attach(mirror, by[1], 5, SLMPM_MIRROR_LEAD, PATIENCE));
	OK(slmpm_mirror_store64(mirror, &words[0], 77));
	OK(slmpm_mirror_flush(mirror, PATIENCE));
	EXPECT(slmpm_recv(peer, MIRROR, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_mirror_detach(mirror, by[0]));
	OK(slmpm_mirror_destroy(mirror));
}

static void shares(void)
{
	slmpm_mem mem;
	void *base;

	OK(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ, &mem, &base));
	OK(slmpm_send(peer, TAKE, NULL, 0, PATIENCE));
	OK(slmpm_mem_share(mem, by[1], SLMPM_READ, PATIENCE));
	EXPECT(slmpm_recv(peer, TAKE, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_mem_revoke(mem, by[0], PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static void inspections(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_link_info link = {.size = sizeof(link)};
	struct slmpm_done done;
	const void *held;

	for (uint64_t i = 0; i < 2; i++) {
		unsigned char bytes[100];

		actor_fill(bytes, i, sizeof(bytes));
		OK(slmpm_peer_query(by[i], &info));
		OK(slmpm_link_query(by[i], 1, &link));
		OK(slmpm_link_use(by[i], 0)); /* of what asks for none */
		OK(slmpm_send(peer, ECHO, bytes, sizeof(bytes), PATIENCE));
		EXPECT(slmpm_probe(by[i], ECHO, &done, PATIENCE), 1);
		CHECK(done.peer.id == peer.id, "told with another handle");
		EXPECT(slmpm_hold(by[1 - i], ECHO, &held, &done, PATIENCE), sizeof(bytes));
		CHECK(actor_filled(held, i, sizeof(bytes)) && done.peer.id == peer.id, "held");
		OK(slmpm_release(by[i], held));
	}
}

static int every_call(void *unused)
{
	(void)unused;
	spawn();
	find("pci:0000:03:00.0", "ip:127.0.0.1");
	work_over(0);
	work_over(1);
	atomics_and_gets();
	fifo_puts();
	mirrors();
	shares();
	inspections();
	OK(slmpm_kill(by[0], 0));
	EXPECT(slmpm_join(by[1], NULL, PATIENCE), 128 + SIGKILL);
	return 0;
}

static void play(void)
{
	settings_run("every call", every_call, NULL);
	settings_run("ring", by_requests, "ring");
	settings_run("am", by_requests, "am");
	settings_run("tag", by_requests, "tag");
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,tcp");
	settings_run("ring", long_puts, "ring");
	settings_run("am", long_puts, "am");
	settings_run("tag", long_puts, "tag");
}

int main(int argc, char **argv)
{
	return addressed_main(argc, argv, play);
}
