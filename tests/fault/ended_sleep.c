/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that has ended, with more to come from it, does not keep its context awake. */
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/net_pair.h"

#define LARGE    (1 << 20)
#define SLEEP_MS 300

static int64_t processor_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* By a header that cannot be, with the rest of its message behind it. */
static void end_one(struct net *n)
{
	static unsigned char out[LARGE], in[LARGE];
	struct net_pair *p = net_join(n, NULL);
	struct slmpm_iov all = {out, LARGE};
	slmpm_req r;

	net_rule(p, NET_DATA, PROXY_FORTH, (struct proxy_rule){PROXY_CORRUPT, 0, 1});
	OK(slmpm_sendv(p->end[0], 1, &all, 1, NULL, &r));
	EXPECT(slmpm_recv(p->end[1], 1, in, LARGE, NULL, PATIENCE), -SLMPM_EPROTO);
	EXPECT(slmpm_recv(p->end[0], 1, in, LARGE, NULL, PATIENCE), -SLMPM_EDEAD);
	(void)slmpm_wait(&r, 1, NULL, PATIENCE);
}

static void settle(slmpm_ctx ctx)
{
	int64_t end = actor_now_ms() + PATIENCE;
	struct pollfd p = {.fd = slmpm_fd(ctx), .events = POLLIN};

	while (slmpm_arm(ctx) || poll(&p, 1, 50) != 0) {
		CHECK(actor_now_ms() < end, "the descriptor stays readable");
		(void)slmpm_progress(ctx);
	}
}

int main(void)
{
	struct net n;
	int64_t begin;
	char byte;

	setenv("SLMPM_WAIT", "block", 1);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	net_open(&n);
	end_one(&n);
	settle(n.ctx);
	begin = processor_ms();
	EXPECT(slmpm_recv(n.other[0], 1, &byte, 1, NULL, SLEEP_MS), -SLMPM_ETIMEOUT);
	CHECK(processor_ms() - begin < SLEEP_MS / 3, "%d ms of the processor",
	      (int)(processor_ms() - begin));
	net_check_others(&n);
	net_shut(&n);
	return 0;
}
