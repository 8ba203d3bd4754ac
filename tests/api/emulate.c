/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages and by tag: which requests go out and are served, by
 * figures; that a long one goes in pieces and ends with the last; that a failure is one
 * operation's; what is given up in the middle; what is taken back while it is under way.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/child.h"

#include "tests/lib/actor.h"

#define SIZE (8u << 20)
#define LONG (3u << 20)

static slmpm_ctx ctx;
static slmpm_peer far, near;
static unsigned char *base, *mine;
static slmpm_mem mem;
static slmpm_rmem rmem;

struct figures {
	uint64_t writes, reads, atomics, served;
};

static struct figures figures(bool tag)
{
	struct slmpm_stats asker, asked;

	OK(slmpm_peer_stats(far, &asker, sizeof(asker)));
	OK(slmpm_peer_stats(near, &asked, sizeof(asked)));
	CHECK(!(tag ? asker.am_writes + asker.am_reads : asker.tag_writes + asker.tag_reads),
	      "the other way was taken");
	return tag ? (struct figures){asker.tag_writes, asker.tag_reads, asker.am_atomics,
				      asked.tag_served + asked.am_served} :
		     (struct figures){asker.am_writes, asker.am_reads, asker.am_atomics,
				      asked.am_served};
}

static void moved(bool tag, struct figures before, struct figures want, const char *what)
{
	struct figures now = figures(tag);

	CHECK(now.writes - before.writes == want.writes && now.reads - before.reads == want.reads &&
		      now.atomics - before.atomics == want.atomics &&
		      now.served - before.served == want.served,
	      "%s: %llu writes, %llu reads, %llu atomics, %llu served", what,
	      (unsigned long long)(now.writes - before.writes),
	      (unsigned long long)(now.reads - before.reads),
	      (unsigned long long)(now.atomics - before.atomics),
	      (unsigned long long)(now.served - before.served));
}

/* Bytes of a packet of LENGTH bytes in all that are a write's, or a read's answer's. */
static uint64_t pieces(uint64_t bytes, uint32_t head)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(far, &info));
	return (bytes + info.packet_max - head - 1) / (info.packet_max - head);
}

static void requests(bool tag)
{
	uint64_t out = tag ? 1 : pieces(LONG, 48), back = tag ? 1 : pieces(LONG, 16), old, word;
	struct figures before = figures(tag);

	actor_fill(mine, 1, LONG);
	OK(slmpm_put(rmem, 5, mine, LONG, NULL, NULL));
	CHECK(actor_filled(base + 5, 1, LONG), "a put of %u bytes", LONG);
	moved(tag, before, (struct figures){out, 0, 0, out}, "a long put");
	before = figures(tag);
	memset(mine, 0, LONG);
	OK(slmpm_get(rmem, 5, mine, LONG, NULL, NULL));
	CHECK(actor_filled(mine, 1, LONG), "a get of %u bytes", LONG);
	moved(tag, before, (struct figures){0, back, 0, back}, "a long get");
	before = figures(tag);
	OK(slmpm_put(rmem, SIZE, NULL, 0, NULL, NULL));
	OK(slmpm_get(rmem, SIZE, NULL, 0, NULL, NULL));
	moved(tag, before, (struct figures){1, 1, 0, 2}, "nothing, at the end");
	before = figures(tag);
	memset(base, 0, 8);
	OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 7, 0, &old, NULL, NULL));
	OK(slmpm_atomic(rmem, 0, SLMPM_COMPARE_SWAP, 64, 9, 7, &old, NULL, NULL));
	memcpy(&word, base, sizeof(word));
	CHECK(old == 7 && word == 9, "%llu, then %llu", (unsigned long long)old,
	      (unsigned long long)word);
	moved(tag, before, (struct figures){0, 0, 2, 2}, "atomic operations");
}

static void queue(uint64_t *now, uint64_t *peak)
{
	struct slmpm_stats owner;

	OK(slmpm_peer_stats(near, &owner, sizeof(owner)));
	*now = owner.rma_queue;
	*peak = owner.rma_queue_peak;
}

/* Long ones by tag wait at the owner: its figures show how many, and none behind their end. */
static void waiting(bool get)
{
	enum { COUNT = 8 };
	uint64_t now, peak, most = 0;
	slmpm_req reqs[COUNT];
	int turns = 0;

	for (int i = 0; i < COUNT; i++)
		OK(get ? slmpm_get(rmem, 0, mine, LONG, NULL, &reqs[i]) :
			 slmpm_put(rmem, 0, mine, LONG, NULL, &reqs[i]));
	do {
		CHECK(slmpm_progress(ctx) >= 0, "%s", slmpm_error_detail());
		queue(&now, &peak);
		most = now > most ? now : most;
		CHECK(now <= peak && peak <= 64, "%llu wait, at most %llu", (unsigned long long)now,
		      (unsigned long long)peak);
	} while (!now && ++turns < 100000);
	for (int i = 0; i < COUNT; i++)
		EXPECT(slmpm_wait(&reqs[i], 1, NULL, PATIENCE), 0);
	queue(&now, &peak);
	CHECK(most > 0 && now == 0 && peak >= most && (!get || peak > 1),
	      "%llu waited, %llu wait, at most %llu", (unsigned long long)most,
	      (unsigned long long)now, (unsigned long long)peak);
}

/* A notification is a request more, behind all answers. */
static void notified(bool tag)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_NOTIFY, .imm = 77, .timeout_ms = PATIENCE};
	struct figures before = figures(tag);
	uint64_t n = tag ? 1 : pieces(LONG, 48);
	struct slmpm_done done;
	slmpm_ctr none = {0};
	slmpm_cq cq;

	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_mem_notify(mem, none, cq));
	OK(slmpm_put(rmem, 100, mine, LONG, &how, NULL));
	moved(tag, before, (struct figures){n, 0, 0, n + 1}, "a notified put");
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.op == SLMPM_OP_NOTIFY && done.imm == 77 && done.cookie == 100 &&
		      done.len == LONG,
	      "at %llu, %llu bytes", (unsigned long long)done.cookie, (unsigned long long)done.len);
	OK(slmpm_mem_notify(mem, none, (slmpm_cq){0}));
	OK(slmpm_cq_destroy(cq));
}

/* Given up at each stage: the buffer is not looked at any more, the next operation is whole. */
static void given_up(bool get)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_span spans[3] = {{0, LONG / 2}, {LONG, LONG / 2}, {2 * LONG, 1000}};
	struct slmpm_iov iov = {mine, LONG + 1000};

	for (int turns = 0; turns < 12; turns++) {
		slmpm_req req;
		int rc;

		actor_fill(mine, 3, LONG + 1000);
		how.timeout_ms = turns / 4;
		rc = get ? slmpm_getv(rmem, spans, 3, &iov, 1, &how, NULL) :
			   slmpm_putv(rmem, spans, 3, &iov, 1, &how, NULL);
		CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT || (rc == -SLMPM_EAGAIN && !how.timeout_ms),
		      "%s", slmpm_error_detail());
		memset(mine, 0x11, LONG + 1000);
		OK(get ? slmpm_getv(rmem, spans, 3, &iov, 1, NULL, &req) :
			 slmpm_putv(rmem, spans, 3, &iov, 1, NULL, &req));
		for (int i = 0; i < turns; i++)
			(void)slmpm_progress(ctx);
		rc = slmpm_cancel(req);
		CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%s", slmpm_error_detail());
		EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
		actor_fill(mine, 4, LONG);
		OK(slmpm_put(rmem, 8, mine, LONG, NULL, NULL));
		memset(mine, 0, LONG);
		OK(slmpm_get(rmem, 8, mine, LONG, NULL, NULL));
		CHECK(actor_filled(mine, 4, LONG), "after one that was given up");
	}
	OK(slmpm_flush(far, PATIENCE));
}

/* Many at once, and the region is taken back: each ends, done or refused, and memory stays. */
static void taken_back(void)
{
	enum { MANY = 20 };
	struct slmpm_done done;
	slmpm_req req[MANY];
	int refused = 0, ended = 0;

	for (int i = 0; i < MANY; i++)
		OK(i % 2 ? slmpm_get(rmem, 0, mine, LONG, NULL, &req[i]) :
			   slmpm_put(rmem, 0, mine, LONG, NULL, &req[i]));
	for (int i = 0; i < 20 && !ended; i++)
		ended = slmpm_test(&req[0], &done); /* the others are under way */
	CHECK(!ended || !done.status, "the first request: %d", done.status);
	OK(slmpm_mem_revoke(mem, near, PATIENCE));
	memset(base, 0x42, SIZE);
	for (int i = ended; i < MANY; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		CHECK(!done.status || done.status == -SLMPM_EACCES, "request %d: %d", i,
		      done.status);
		refused += done.status != 0;
	}
	CHECK(refused, "nothing was under way");
	for (size_t i = 0; i < SIZE; i++)
		CHECK(base[i] == 0x42, "byte %zu was written afterwards", i);
	EXPECT(slmpm_put(rmem, 0, mine, 8, NULL, NULL), -SLMPM_EACCES);
	OK(slmpm_mem_release(rmem));
}

static int one_way(void *arg)
{
	bool tag = !strcmp(arg, "tag");
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;

	setenv("SLMPM_RMA", arg, 1);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &far, &near);
	base = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED, "no memory");
	mine = base + SIZE;
	OK(slmpm_mem_register(ctx, base, SIZE, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, near, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(far, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	CHECK(!strcmp(info.path, arg), "the way is \"%s\"", info.path);
	requests(tag);
	notified(tag);
	if (tag) {
		waiting(false);
		waiting(true);
	}
	given_up(false);
	given_up(true);
	taken_back();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	CHECK(child_run(one_way, (void *)(uintptr_t) "am", 60) == 0, "by active messages");
	CHECK(child_run(one_way, (void *)(uintptr_t) "tag", 60) == 0, "by tag");
	return 0;
}
