/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitor: figures of a link, and of the job, from inside; what it is asked wrongly. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"

static struct slmpm_monitor inspect(slmpm_peer peer)
{
	struct slmpm_monitor m;

	OK(slmpm_monitor(peer, &m, sizeof(m)));
	EXPECT(m.size, sizeof(m));
	return m;
}

static uint64_t samples_of(const struct slmpm_monitor *m, int protocol)
{
	uint64_t n = 0;

	for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
		for (int w = 0; w < SLMPM_WARMTH; w++)
			n += m->timing[protocol][s][w].samples;
	return n;
}

static void classes_of_sizes(void)
{
	EXPECT(slmpm_size_class(0), 0);
	EXPECT(slmpm_size_class(64), 0);
	EXPECT(slmpm_size_class(65), 1);
	EXPECT(slmpm_size_class(16384), 4);
	EXPECT(slmpm_size_class(4 << 20), 8);
	EXPECT(slmpm_size_class((4 << 20) + 1), 9);
	EXPECT(slmpm_size_class(UINT64_MAX), SLMPM_SIZE_CLASSES - 1);
}

static void counts_messages(slmpm_peer a, slmpm_peer b)
{
	static char text[100000];
	struct slmpm_monitor m;

	for (int i = 0; i < 10; i++) {
		OK(slmpm_send(a, 1, text, 100, PATIENCE));
		EXPECT(slmpm_recv(b, 1, text, sizeof(text), NULL, PATIENCE), 100);
	}
	m = inspect(a);
	EXPECT(m.state, SLMPM_PEER_UP);
	EXPECT(m.sent_messages, 10);
	EXPECT(m.sent_bytes, 1000);
	EXPECT(m.requests[SLMPM_BY_SMT], 10);
	EXPECT(m.request_bytes[SLMPM_BY_SMT], 1000);
	EXPECT(m.received_messages, 0);
	EXPECT(m.queue_depth, 0);
	EXPECT(m.instances, 1);
	CHECK(m.out_segments >= 2 && m.in_segments >= 2, "no rings");
	CHECK(m.taken_ns >= m.since_ns && m.since_ns, "no time");
	EXPECT(inspect(b).received_bytes, 1000);
}

/* What nobody reads fills the ring, then the queue. */
static void shows_what_waits(slmpm_peer a, slmpm_peer b)
{
	enum { LENGTH = 30000, COUNT = 400 }; /* more than twice the room of any link */
	static char from[LENGTH], to[LENGTH];
	slmpm_req sends[COUNT];
	const struct slmpm_iov piece = {from, LENGTH};
	struct slmpm_monitor m;

	for (int i = 0; i < COUNT; i++)
		OK(slmpm_sendv(a, 2, &piece, 1, NULL, &sends[i]));
	m = inspect(a);
	/* Some are announced, perhaps, for the queue's sake. */
	CHECK(m.queue_depth + m.awaiting > COUNT / 2 && m.queue_depth + m.awaiting < COUNT,
	      "%llu queued, %llu announced", (unsigned long long)m.queue_depth,
	      (unsigned long long)m.awaiting);
	CHECK(m.out_unread > 0 && m.out_unread <= m.out_segments, "%llu of %llu unread",
	      (unsigned long long)m.out_unread, (unsigned long long)m.out_segments);
	for (int i = 0; i < COUNT; i++)
		EXPECT(slmpm_recv(b, 2, to, LENGTH, NULL, PATIENCE), LENGTH);
	for (int i = 0; i < COUNT; i++)
		OK(slmpm_wait(&sends[i], 1, NULL, PATIENCE));
	m = inspect(a);
	EXPECT(m.queue_depth, 0);
	EXPECT(m.awaiting, 0);
	CHECK(samples_of(&m, SLMPM_BY_SMT) + samples_of(&m, SLMPM_BY_RGET) >= 5,
	      "%llu and %llu samples", (unsigned long long)samples_of(&m, SLMPM_BY_SMT),
	      (unsigned long long)samples_of(&m, SLMPM_BY_RGET));
}

static void measures_what_is_one_sided(slmpm_ctx ctx, slmpm_peer a, slmpm_peer b)
{
	enum { LENGTH = 40000 };
	static char local[LENGTH];
	struct slmpm_key key;
	struct slmpm_monitor m;
	slmpm_mem mem;
	slmpm_rmem rmem;
	void *base;

	OK(slmpm_mem_alloc(ctx, LENGTH, SLMPM_READ | SLMPM_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, b, SLMPM_READ | SLMPM_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	for (int i = 0; i < 3; i++)
		OK(slmpm_put(rmem, 0, local, LENGTH, NULL, NULL));
	for (int i = 0; i < 9000; i++)
		OK(slmpm_get(rmem, 0, local, 100, NULL, NULL));
	m = inspect(a);
	EXPECT(m.requests[SLMPM_BY_PUT] + m.requests[SLMPM_BY_GET] + m.requests[SLMPM_BY_REQUEST],
	       9003);
	if (!m.requests[SLMPM_BY_REQUEST]) { /* within direct reach */
		CHECK(samples_of(&m, SLMPM_BY_PUT) >= 1 && samples_of(&m, SLMPM_BY_GET) >= 1,
		      "%llu puts, %llu gets", (unsigned long long)samples_of(&m, SLMPM_BY_PUT),
		      (unsigned long long)samples_of(&m, SLMPM_BY_GET));
		CHECK(m.timing[SLMPM_BY_GET][1][SLMPM_WARM].samples, "no warm gets");
	} else {
		CHECK(samples_of(&m, SLMPM_BY_REQUEST) == 9003, "%llu requests",
		      (unsigned long long)samples_of(&m, SLMPM_BY_REQUEST));
	}
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* Some of it, for a program that was built with less. */
static void gives_what_there_is_room_for(slmpm_peer a)
{
	struct slmpm_monitor m;

	memset(&m, 0x5a, sizeof(m));
	OK(slmpm_monitor(a, &m, 8));
	EXPECT(m.size, 8);
	EXPECT(m.state, SLMPM_PEER_UP);
	EXPECT(m.pid, 0x5a5a5a5a);
}

static void asks_for_echoes(slmpm_peer a, slmpm_peer b)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_monitor m;
	char word[8] = {0};

	do {
		for (int i = 0; i < 100; i++) {
			OK(slmpm_send(a, 3, word, sizeof(word), PATIENCE));
			EXPECT(slmpm_recv(b, 3, word, sizeof(word), NULL, PATIENCE), sizeof(word));
			(void)slmpm_recv(a, 4, word, sizeof(word), NULL, 0);
		}
		m = inspect(a);
	} while (m.echoes < 2 && actor_now_ms() < until);
	CHECK(m.echoes >= 2 && m.echo_ns && m.echo_least_ns, "no echoes");
	CHECK(m.echo_least_ns <= m.echo_ns, "%u ns at least, %u ns", m.echo_least_ns, m.echo_ns);
}

/* Of the short ones one is timed now and then: how long its call took, and until it was there. That
 * it went another way shows nowhere. */
static void times_short_messages(slmpm_peer a, slmpm_peer b)
{
	enum { LENGTH = 200 };
	int64_t began = actor_now_ms(), until = began + PATIENCE;
	const int size_class = slmpm_size_class(LENGTH);
	struct slmpm_mode before = {.size = sizeof(before)}, after = before;
	struct slmpm_monitor m;
	const struct slmpm_timing *t = m.timing[SLMPM_BY_SMT][size_class];
	char text[LENGTH] = {0};

	OK(slmpm_peer_mode(a, &before));
	do {
		for (int i = 0; i < 100; i++) {
			OK(slmpm_send(a, 5, text, LENGTH, PATIENCE));
			EXPECT(slmpm_recv(b, 5, text, LENGTH, NULL, PATIENCE), LENGTH);
			(void)slmpm_recv(a, 6, text, LENGTH, NULL, 0);
		}
		m = inspect(a);
	} while (t[SLMPM_WARM].samples < 2 && actor_now_ms() < until);
	CHECK(t[SLMPM_WARM].samples >= 2 && t[SLMPM_FRESH].samples == 1, "%llu warm, %llu fresh",
	      (unsigned long long)t[SLMPM_WARM].samples,
	      (unsigned long long)t[SLMPM_FRESH].samples);
	EXPECT(t[SLMPM_WARM].bytes, t[SLMPM_WARM].samples * LENGTH);
	CHECK(t[SLMPM_WARM].busy_ns && t[SLMPM_FRESH].latency_ns, "nothing was measured");
	CHECK(t[SLMPM_FRESH].latency_ns / 1000000 <= actor_now_ms() - began + 1, "%u ns",
	      t[SLMPM_FRESH].latency_ns);
	CHECK(t[SLMPM_WARM].latency_least_ns <= t[SLMPM_WARM].latency_ns, "%u ns at least",
	      t[SLMPM_WARM].latency_least_ns);
	OK(slmpm_peer_mode(a, &after));
	CHECK(!memcmp(&before, &after, sizeof(after)), "a sample was a decision");
}

static void answer(const struct slmpm_am *am, void *count)
{
	uint64_t *n = count;

	OK(slmpm_send(am->peer, 7, n, sizeof(*n),
		      PATIENCE)); /* would be ESTATE, if it had to wait */
	++*n;
}

/* In a handler a send goes at once also where it was to be the one that is timed. */
static void sends_in_handlers(slmpm_ctx ctx, slmpm_peer a, slmpm_peer b)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_monitor before = inspect(b), m;
	uint64_t calls = 0, n;

	OK(slmpm_am_handler(ctx, 1, answer, &calls));
	do {
		for (int i = 0; i < 100; i++) {
			OK(slmpm_am(a, 1, NULL, 0, NULL, 0, NULL, NULL));
			EXPECT(slmpm_recv(a, 7, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
			EXPECT(n + 1, calls);
		}
		m = inspect(b);
	} while (m.echoes < before.echoes + 3 &&
		 actor_now_ms() < until); /* looks have been taken */
	CHECK(m.echoes >= before.echoes + 3, "no echoes");
	OK(slmpm_am_handler(ctx, 1, NULL, NULL));
}

/* A job of one, as it shows it to others; a period ago, for that is when it looked. */
static void shows_its_job(void)
{
	struct slmpm_monitors *monitors;
	struct slmpm_aggregate own, shown;

	OK(slmpm_aggregate(&own, sizeof(own)));
	CHECK(own.job && own.jobs == 1 && own.instances == 1, "job %llx, of %u jobs",
	      (unsigned long long)own.job, own.jobs);
	EXPECT(own.fabrics[0].links, own.links);
	CHECK(own.fabrics[0].echo_ns && own.fabrics[0].latency_ns[SLMPM_BY_SMT], "not measured");
	OK(slmpm_monitors_open(getpid(), &monitors));
	EXPECT(slmpm_monitors_aggregate(monitors, &shown, sizeof(shown)), 1);
	EXPECT(shown.size, sizeof(shown));
	EXPECT(shown.job, own.job);
	EXPECT(shown.instances, 1);
	memset(&shown, 0x5a, sizeof(shown));
	EXPECT(slmpm_monitors_aggregate(monitors, &shown, 8), 1);
	EXPECT(shown.size, 8);
	EXPECT(shown.links, UINT64_C(0x5a5a5a5a5a5a5a5a));
	slmpm_monitors_close(monitors);
}

static void bad_arguments(slmpm_peer a)
{
	struct slmpm_monitors *monitors;
	struct slmpm_aggregate aggregate;
	struct slmpm_monitor m;
	slmpm_peer none = {0};

	REFUSED(slmpm_monitor(none, &m, sizeof(m)), SLMPM_EHANDLE, "");
	REFUSED(slmpm_monitor(a, NULL, sizeof(m)), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_monitor(a, &m, 3), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_monitors_read(NULL, 0, &m, sizeof(m)), SLMPM_EINVAL, "nothing to read");
	REFUSED(slmpm_monitors_aggregate(NULL, &aggregate, sizeof(aggregate)), SLMPM_EINVAL,
		"nothing to read");
	OK(slmpm_monitors_open(getpid(), &monitors));
	REFUSED(slmpm_monitors_aggregate(monitors, NULL, sizeof(aggregate)), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_monitors_aggregate(monitors, &aggregate, 3), SLMPM_EINVAL, ".size");
	slmpm_monitors_close(monitors);
	slmpm_monitors_close(NULL);
	CHECK(!slmpm_protocol_name(-1) && !slmpm_protocol_name(SLMPM_PROTOCOLS), "a name too many");
	CHECK(!strcmp(slmpm_protocol_name(SLMPM_BY_RGET), "rget"), "no name");
}

int main(void)
{
	slmpm_peer a, b;
	slmpm_ctx ctx;

	CHECK(!setenv("SLMPM_MONITOR_MS", "5", 1), "environment");
	classes_of_sizes();
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	counts_messages(a, b);
	bad_arguments(a);
	gives_what_there_is_room_for(a);
	shows_what_waits(a, b);
	measures_what_is_one_sided(ctx, a, b);
	asks_for_echoes(a, b);
	times_short_messages(a, b);
	sends_in_handlers(ctx, a, b);
	shows_its_job();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
