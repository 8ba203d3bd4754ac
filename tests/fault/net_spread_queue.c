/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A queue that is spread over two links over TCP (SLMPM_WQ_SPREAD): both connections carry a fair
 * part, channels keep their order; one of them is reset in the middle, and all that is posted goes
 * by the other, once and whole.
 */
#include <string.h>

#include "tests/lib/net_pair.h"

#define CHANNELS 6u
#define MESSAGES 240u /* of a run */
#define LENGTH   40000u

static struct net net;
static unsigned char bytes[MESSAGES][LENGTH];
static uint32_t posted[CHANNELS], come[CHANNELS];

static void post(slmpm_wq wq, slmpm_peer to, uint32_t i)
{
	uint32_t c = i % CHANNELS;
	struct slmpm_iov whole = {bytes[i], LENGTH - i % 7};
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = SLMPM_OP_SEND,
			      .channel = c,
			      .peer = to,
			      .stream = c,
			      .imm = ++posted[c],
			      .iov = &whole,
			      .iov_count = 1};

	actor_fill(bytes[i], posted[c], whole.len);
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void take(slmpm_peer from)
{
	static unsigned char room[LENGTH];
	struct slmpm_done done;
	int64_t n = slmpm_recv(from, SLMPM_ANY_STREAM, room, LENGTH, &done, PATIENCE);

	CHECK(n > 0 && done.stream < CHANNELS, "%lld bytes on stream %u (%s)", (long long)n,
	      done.stream, slmpm_error_detail());
	CHECK(done.imm == ++come[done.stream], "channel %u: %u instead of %u", done.stream,
	      done.imm, come[done.stream]);
	CHECK(actor_filled(room, done.imm, (size_t)n), "other bytes");
}

/* CUT: of which connection the end comes in the middle; or 0. */
static void run(const struct net_pair *p, slmpm_wq wq, slmpm_cq cq, unsigned cut)
{
	struct slmpm_done done;

	for (uint32_t i = 0; i < MESSAGES; i++)
		post(wq, p->end[0], i);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		if (i == MESSAGES / 4 && cut)
			for (int way = 0; way < PROXY_WAYS; way++)
				proxy_rule(p->first + cut, (enum proxy_way)way,
					   (struct proxy_rule){.fate = PROXY_RESET,
							       .at = PROXY_NOW});
		take(p->end[1]);
	}
	for (uint32_t i = 0; i < MESSAGES; i++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0, "message %u: %d", i, done.status);
	}
}

/* How many of its connections have carried so much since this was asked last. */
static int carried(const struct net_pair *p, uint64_t least)
{
	static uint64_t before[PROXY_CONNECTIONS];
	int n = 0;

	for (unsigned i = NET_DATA; p->first + i < proxy_connections(); i++) {
		uint64_t now = net_passed(p, i, PROXY_FORTH);

		n += now >= before[i] + least;
		before[i] = now;
	}
	return n;
}

static void by_both(const struct net_pair *p, slmpm_wq wq, uint64_t least)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(wq, &info));
	printf("%llu and %llu bytes\n", (unsigned long long)info.by_link[0],
	       (unsigned long long)info.by_link[1]);
	CHECK(info.by_link[0] >= least && info.by_link[1] >= least, "not by both, it says");
	CHECK(carried(p, least) == 2, "not by both");
}

/* Both stand, and have been lost so often. */
static void await_links(const struct net_pair *p, uint32_t losses)
{
	struct slmpm_link_info info = {.size = sizeof(info)};
	uint32_t lost = 0;

	for (uint32_t i = 0; i < 2; i++) {
		do {
			CHECK(slmpm_progress(net.ctx) >= 0, "progress: %s", slmpm_error_detail());
			OK(slmpm_link_query(p->end[0], i, &info));
		} while (info.state != SLMPM_LINK_UP);
		lost += info.lost;
	}
	EXPECT(lost, losses);
	actor_settle(p->end[0], p->end[1]);
}

/* What a PIPE passes on, back to whence it comes. */
static void piped(const struct net_pair *p, slmpm_wq wq, slmpm_cq cq)
{
	static unsigned char rooms[4][LENGTH], back[LENGTH];
	struct slmpm_wq_info before = {.size = sizeof(before)}, after = before;
	struct slmpm_iov buffers[4];
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = SLMPM_OP_PIPE,
			      .peer = p->end[0],
			      .stream = 21,
			      .from = p->end[0],
			      .from_stream = 20,
			      .value = MESSAGES,
			      .iov = buffers,
			      .iov_count = 4};
	struct slmpm_done done;

	for (int i = 0; i < 4; i++)
		buffers[i] = (struct slmpm_iov){rooms[i], LENGTH};
	OK(slmpm_wq_query(wq, &before));
	EXPECT(slmpm_post(wq, &wr, 1), 1);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		actor_fill(bytes[0], i, LENGTH);
		OK(slmpm_send(p->end[1], 20, bytes[0], LENGTH, PATIENCE));
		EXPECT(slmpm_recv(p->end[1], 21, back, LENGTH, NULL, PATIENCE), LENGTH);
		CHECK(actor_filled(back, i, LENGTH), "another message, or damaged");
	}
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == 0 && done.len == MESSAGES, "%d", done.status);
	OK(slmpm_wq_query(wq, &after));
	for (int i = 0; i < 2; i++)
		CHECK(after.by_link[i] - before.by_link[i] >= (uint64_t)MESSAGES * LENGTH / 4,
		      "by link %d: %llu", i,
		      (unsigned long long)(after.by_link[i] - before.by_link[i]));
}

int main(void)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_SPREAD, .depth = MESSAGES};
	const struct net_pair *p;
	slmpm_wq wq;

	setenv("SLMPM_LINKS", "2", 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	net_open(&net);
	p = net_join(&net, NULL);
	await_links(p, 0);
	OK(slmpm_cq_create(net.ctx, &o.cq));
	OK(slmpm_wq_create(net.ctx, &o, &wq));
	run(p, wq, o.cq, 0);
	by_both(p, wq, (uint64_t)MESSAGES * LENGTH / 4);
	run(p, wq, o.cq, net_busiest(p));
	run(p, wq, o.cq, 0);
	await_links(p, 1); /* it is made again */
	(void)carried(p, 0);
	run(p, wq, o.cq, 0);
	EXPECT(carried(p, (uint64_t)MESSAGES * LENGTH / 4), 2);
	piped(p, wq, o.cq);
	net_check_others(&net);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_cq_destroy(o.cq));
	net_part(&net);
	net_shut(&net);
	return 0;
}
