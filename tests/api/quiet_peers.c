/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that have nothing are passed by (rests in slmpm/link/progress.c): what one of them sends,
 * or is to be sent, is seen in the next pass all the same, and by a call that does not wait. Each
 * of the two contexts has one end of each pair.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define PAIRS 24
#define TURNS 200
#define LONG  (3 << 20)

static slmpm_ctx ctx;
static slmpm_peer a[PAIRS], b[PAIRS];

static void rest(void)
{
	for (int i = 0; i < 200; i++)
		slmpm_progress(ctx);
}

/* Does a socket of this process have something to read? */
static bool has_come(void)
{
	for (int fd = 3, n; fd < 16 * PAIRS; fd++)
		if (ioctl(fd, SIOCINQ, &n) == 0 && n > 0)
			return true;
	return false;
}

static void one_at_once(int i, int turn)
{
	int out = turn, in = 0;

	OK(slmpm_send(a[i], 0, &out, sizeof(out), 5000));
	for (int64_t until = actor_now_ms() + 5000; !has_come();)
		CHECK(actor_now_ms() < until, "turn %d: nothing has come", turn);
	CHECK(slmpm_recv(b[i], 0, &in, sizeof(in), NULL, 0) == sizeof(in) && in == turn,
	      "turn %d: peer %d has sent, and nothing is there", turn, i);
}

static void many_at_once(int turn)
{
	for (int i = 0; i < PAIRS; i++)
		OK(slmpm_send(b[i], 0, &turn, sizeof(turn), 5000));
	for (int i = 0; i < PAIRS; i++) {
		int in = 0;

		EXPECT(slmpm_recv(a[(i + turn) % PAIRS], 0, &in, sizeof(in), NULL, 5000),
		       (int)sizeof(in));
		EXPECT(in, turn);
	}
}

/* What a call leaves behind moves on with no further one on this peer. */
static void left_behind(int i)
{
	static unsigned char out[LONG], in[LONG];
	struct slmpm_iov from = {out, sizeof(out)}, to = {in, sizeof(in)}, word = {&i, sizeof(i)};
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = 5000};
	slmpm_req req[2];
	int last = -1;

	actor_fill(out, (uint64_t)i, sizeof(out));
	OK(slmpm_sendv(a[i], 0, &from, 1, NULL, &req[0]));
	rest();
	OK(slmpm_recvv(b[i], 0, &to, 1, NULL, &req[1]));
	OK(slmpm_wait(&req[1], 1, NULL, 10000));
	OK(slmpm_wait(&req[0], 1, NULL, 10000));
	CHECK(actor_filled(in, (uint64_t)i, sizeof(in)), "peer %d: other bytes came", i);
	rest();
	OK(slmpm_sendv(a[i], 0, &word, 1, &more, NULL)); /* a burst that has no end */
	rest();
	CHECK(slmpm_recv(b[i], 0, &last, sizeof(last), NULL, 5000) == sizeof(last) && last == i,
	      "peer %d: a burst was left behind", i);
}

static int handled;

static void count(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
	handled++;
}

/* One behind which nothing comes, to who is quiet. */
static void said_more(int i)
{
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = 5000};
	int before = handled;

	rest();
	OK(slmpm_am(a[i], 1, &i, sizeof(i), NULL, 0, &more, NULL));
	for (int k = 0; k < 5; k++)
		rest();
	CHECK(handled != before, "peer %d: an active message was left behind", i);
}

int main(void)
{
	settings_one_link("tcp");
	OK(slmpm_open(&ctx, NULL));
	for (int i = 0; i < PAIRS; i++)
		actor_pair(ctx, &a[i], &b[i]);
	rest();
	for (int turn = 0; turn < TURNS; turn++) {
		one_at_once(turn * 7 % PAIRS, turn);
		if (turn % 20 == 0)
			many_at_once(turn);
		if (turn % 10 == 0)
			rest();
	}
	for (int i = 0; i < PAIRS; i += 5)
		left_behind(i);
	OK(slmpm_am_handler(ctx, 1, count, NULL));
	for (int i = 0; i < PAIRS; i += 5)
		said_more(i);
	OK(slmpm_shut(ctx, 5000));
	return 0;
}
