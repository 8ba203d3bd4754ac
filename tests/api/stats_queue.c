/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues as other processes see them: totals, what each channel waits for and since when,
 * places that are given again, more queues than are shown; and rows whose owner lies.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/lib/actor.h"

#define MAGIC UINT64_C(0x3154534d504d4c53) /* "SLMPMST1", little-endian */
#define ENTRY 64

static slmpm_ctx ctx;
static slmpm_cq cq;
static slmpm_ctr ctr;

static uint64_t now_ns(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0, "no clock");
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* What it shows is brought up to date before it sleeps. */
static void sleep_once(void)
{
	struct slmpm_event event = {.size = sizeof(event)};

	while (slmpm_next_event(ctx, &event, 20) > 0)
		;
}

/* Queues that are shown; *Q: the one of that handle, or all zero. */
static int shown(slmpm_wq wq, struct slmpm_stats_queue *q)
{
	const struct slmpm_stats_page *page;
	struct slmpm_stats_queue one = {.size = 0};
	int n = 0, rc;

	memset(q, 0, sizeof(*q));
	OK(slmpm_stats_attach(getpid(), 0, &page));
	for (uint32_t i = 0; (rc = slmpm_stats_queue(page, i, &one, sizeof(one))) >= 0; i++) {
		n += rc;
		if (rc && one.queue == wq.id)
			*q = one;
	}
	EXPECT(rc, -SLMPM_ENOENT);
	slmpm_stats_detach(page);
	return n;
}

static slmpm_wq create(uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	slmpm_wq wq;

	o.flags = flags;
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	return wq;
}

static void post(slmpm_wq wq, struct slmpm_wr wr)
{
	wr.size = sizeof(wr);
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void has(const struct slmpm_stats_wait *w, uint32_t channel, uint64_t entry, uint32_t kind,
		uint64_t subject, uint64_t value, uint64_t total)
{
	CHECK(w->channel == channel && w->entry == entry && w->kind == kind &&
		      w->subject == subject && w->value == value && w->total == total,
	      "channel %u, entry %llu, kind %u, subject %llu: %llu of %llu", w->channel,
	      (unsigned long long)w->entry, w->kind, (unsigned long long)w->subject,
	      (unsigned long long)w->total, (unsigned long long)w->value);
}

static void each_kind_is_shown(void)
{
	const struct slmpm_wr count = {.op = SLMPM_OP_COUNT, .ctr = ctr, .value = 2};
	struct slmpm_wr wait = {.op = SLMPM_OP_WAIT, .value = 5};
	slmpm_wq wq = create(0), other = create(SLMPM_WQ_MANAGED);
	struct slmpm_stats_queue q;
	uint64_t before = now_ns(), since;

	post(wq, count);
	wait.channel = 1;
	wait.ctr = ctr;
	post(wq, wait);
	wait.channel = 2;
	wait.ctr.id = 0;
	wait.cq = cq;
	wait.value = 50;
	post(wq, wait);
	wait.value = 5;
	wait.channel = 3;
	wait.cq.id = 0;
	wait.wq = other;
	wait.index = SLMPM_WQ_BEGUN;
	post(wq, wait);
	OK(slmpm_wq_enable(other, 7));
	sleep_once();
	EXPECT(shown(wq, &q), 2);
	CHECK(q.size == sizeof(q) && q.posted == 4 && q.enabled == 4 && q.begun == 4, "totals");
	CHECK(q.done == 1 && !q.failed && q.waiting == 3 && q.wait_count == 3, "totals");
	has(&q.waits[0], 1, 2, SLMPM_SUBJECT_COUNTER, ctr.id, 5, 2);
	has(&q.waits[1], 2, 3, SLMPM_SUBJECT_CQ, cq.id, 50, 1);
	has(&q.waits[2], 3, 4, SLMPM_SUBJECT_WQ, other.id, 5, 0);
	EXPECT(q.waits[2].index, SLMPM_WQ_BEGUN);
	since = q.waits[0].since_ns;
	CHECK(since >= before && since <= now_ns() && q.taken_ns >= since, "since when");
	/* It stays while the total moves on, and another WAIT has a time of its own. */
	post(wq, (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = ctr, .value = 4});
	sleep_once();
	(void)shown(wq, &q);
	has(&q.waits[0], 1, 2, SLMPM_SUBJECT_COUNTER, ctr.id, 5, 4);
	CHECK(q.waits[0].since_ns == since, "it has begun to wait again");
	wait = (struct slmpm_wr){.op = SLMPM_OP_WAIT, .channel = 1, .ctr = ctr, .value = 9};
	post(wq, wait);
	post(wq, (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = ctr, .value = 6});
	sleep_once();
	(void)shown(wq, &q);
	has(&q.waits[0], 1, 6, SLMPM_SUBJECT_COUNTER, ctr.id, 9, 6);
	CHECK(q.waits[0].since_ns > since, "it waits since before it began");
	(void)shown(other, &q);
	CHECK(q.enabled == 7 && q.posted == 0 && q.flags == SLMPM_WQ_MANAGED, "the other one");
	/* One that has failed stops its channel: it waits no more. */
	EXPECT(slmpm_wq_cancel(wq, 6), 0);
	sleep_once();
	(void)shown(wq, &q);
	CHECK(q.status == -SLMPM_ECANCELED && q.first_failed == 6 && q.channel == 1, "its failure");
	CHECK(q.failed == 1 && q.waiting == 2, "%u wait", q.waiting);
	OK(slmpm_wq_destroy(wq));
	EXPECT(shown(wq, &q), 1);
	CHECK(!q.size, "it is shown, though it is gone");
	OK(slmpm_wq_destroy(other));
	EXPECT(shown(other, &q), 0);
}

/* It sleeps sooner than it looks at its links: what it shows is up to date all the same, but where
 * it had no processor until its time was over. */
static void a_short_sleep_is_enough(void)
{
	struct slmpm_event event = {.size = sizeof(event)};
	struct slmpm_stats_queue q;
	slmpm_wq wq = create(0);
	int current = 0;

	for (uint64_t i = 1; i <= 40; i++) {
		post(wq, (struct slmpm_wr){.op = SLMPM_OP_COUNT, .ctr = ctr, .value = 1});
		EXPECT(slmpm_next_event(ctx, &event, 2), 0);
		(void)shown(wq, &q);
		current += q.done == i;
	}
	CHECK(current > 20, "%d of 40 times it was up to date", current);
	OK(slmpm_wq_destroy(wq));
}

/* A send to a disabled receive entry waits for it. */
static void a_send_waits_for_its_receive(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED};
	struct slmpm_wr wr = {.op = SLMPM_OP_SEND, .stream = 5, .timeout_ms = -1};
	struct slmpm_stats_queue q;
	char byte = 1, place;
	struct slmpm_iov piece = {&byte, 1}, to = {&place, 1};
	slmpm_wq wq = create(0), receives;
	slmpm_peer a, b;

	actor_pair(ctx, &a, &b);
	o.cq = cq;
	o.peer = b;
	o.stream = 5;
	OK(slmpm_wq_create(ctx, &o, &receives));
	post(receives, (struct slmpm_wr){.op = SLMPM_OP_RECV, .iov = &to, .iov_count = 1});
	sleep_once();
	wr.peer = a;
	wr.iov = &piece;
	wr.iov_count = 1;
	post(wq, wr);
	sleep_once();
	(void)shown(wq, &q);
	EXPECT(q.wait_count, 1);
	has(&q.waits[0], 0, 1, SLMPM_SUBJECT_RECEIVE, a.id, q.waits[0].total + 1, q.waits[0].total);
	EXPECT(q.waits[0].index, 5);
	OK(slmpm_wq_enable(receives, 1));
	OK(slmpm_wq_drain(wq, PATIENCE));
	OK(slmpm_wq_drain(receives, PATIENCE));
	OK(slmpm_wq_destroy(receives));
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
}

/* An entry waits for an address whose process does not answer. */
static void an_entry_waits_for_its_peer(void)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_SEND, .iov_count = 1};
	struct slmpm_stats_queue q;
	char byte = 1, url[64];
	struct slmpm_iov piece = {&byte, 1};
	slmpm_wq wq = create(0);
	slmpm_listener listener;
	slmpm_ctx silent;
	slmpm_peer peer;

	snprintf(url, sizeof(url), "shm:silent-%d", (int)getpid());
	OK(slmpm_open(&silent, NULL));
	OK(slmpm_listen(&listener, silent, url));
	OK(slmpm_peer_at(&wr.peer, ctx, url));
	wr.iov = &piece;
	post(wq, wr);
	sleep_once();
	(void)shown(wq, &q);
	CHECK(q.wait_count == 1 && q.waiting == 1, "%u wait", q.waiting);
	has(&q.waits[0], 0, 1, SLMPM_SUBJECT_PEER, wr.peer.id, 1, 0);
	while (slmpm_accept(listener, &peer, 0) < 0)
		(void)slmpm_progress(ctx);
	OK(slmpm_wq_drain(wq, PATIENCE));
	sleep_once();
	(void)shown(wq, &q);
	EXPECT(q.waiting, 0);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_close(wr.peer, PATIENCE));
	OK(slmpm_shut(silent, PATIENCE));
}

/* Channels beyond those that are shown are counted. */
static void more_than_there_is_room_for(void)
{
	slmpm_wq all[SLMPM_STATS_QUEUES_MAX + 2];
	struct slmpm_wr wait = {.op = SLMPM_OP_WAIT, .ctr = ctr, .value = 1000};
	struct slmpm_stats_queue q;

	for (int i = 0; i < SLMPM_STATS_QUEUES_MAX + 2; i++)
		all[i] = create(0);
	EXPECT(shown(all[SLMPM_STATS_QUEUES_MAX], &q), SLMPM_STATS_QUEUES_MAX);
	CHECK(!q.size, "one that has no place");
	OK(slmpm_wq_destroy(all[3]));
	all[3] = create(0);
	EXPECT(shown(all[3], &q), SLMPM_STATS_QUEUES_MAX);
	CHECK(q.size, "a place is not given again");
	for (uint32_t i = 0; i < 12; i++) {
		wait.channel = i;
		post(all[3], wait);
	}
	sleep_once();
	(void)shown(all[3], &q);
	CHECK(q.waiting == 12 && q.wait_count == SLMPM_STATS_WAITS_MAX, "%u of %u", q.wait_count,
	      q.waiting);
	for (int i = 0; i < SLMPM_STATS_QUEUES_MAX + 2; i++)
		OK(slmpm_wq_destroy(all[i]));
	EXPECT(shown(all[0], &q), 0);
}

/* ---- pages made by hand ---- */

/* Whether it can be mapped, and then how many queues are told, and none of them read beyond it. */
static void owner_lies(uint32_t queues, uint32_t queue_size, size_t room, uint32_t want)
{
	size_t size = sizeof(struct slmpm_stats_page) + SLMPM_STATS_PEERS_MAX * ENTRY + room;
	int fd = memfd_create("slmpm-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;
	const struct slmpm_stats_page *page;
	struct slmpm_stats_queue q;
	struct slmpm_stats_page *own;
	uint32_t n = 0;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "no memory");
	own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(own != MAP_FAILED && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "no page");
	memset(own, 0xff, size);
	*own = (struct slmpm_stats_page){.magic = MAGIC, .version = 2, .peer_size = ENTRY};
	own->queues = queues;
	own->queue_size = queue_size;
	OK(slmpm_stats_attach(getpid(), 0, &page));
	own->queues = own->queue_size = UINT32_MAX;
	for (; (rc = slmpm_stats_queue(page, n, &q, sizeof(q))) >= 0; n++)
		CHECK(q.wait_count <= SLMPM_STATS_WAITS_MAX, "%u waits", q.wait_count);
	EXPECT(n, want);
	slmpm_stats_detach(page);
	munmap(own, size);
	close(fd);
}

int main(void)
{
	owner_lies(0, 0, 0, 0); /* an owner that knows of none */
	owner_lies(3, 24, 3 * (8 + 2 * 24), 3);
	owner_lies(3, 4096, 3 * (8 + 2 * 4096), 3);
	owner_lies(3, 24, 3 * (8 + 2 * 24) - 8, 0);
	owner_lies(1, 20, 4096, 0);
	owner_lies(1, 0, 4096, 0);
	owner_lies(UINT32_MAX, 24, 65536, SLMPM_STATS_QUEUES_MAX);
	owner_lies(1, UINT32_MAX - 7, 4096, 0);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_ctr_create(ctx, &ctr));
	each_kind_is_shown();
	a_short_sleep_is_enough();
	a_send_waits_for_its_receive();
	an_entry_waits_for_its_peer();
	more_than_there_is_room_for();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
