/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * A PIPE all of whose buffers are under way: what comes for it stays in the ring for a moment, is
 * kept then, and holds nothing else up for longer.
 */
#include "tests/api/workqueue_pipe.h"

#define TRIES   100 /* beside other programs most see nothing */
#define MOST_US 100 /* in the ring */
#define SHORT   4000

static uint64_t kept(void)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(up, &stats, sizeof(stats)));
	return stats.unexpected;
}

static struct message *sent;
static uint64_t most, count, taken;
static size_t size;

/* So many more, one behind the other, and then there is time for what has been left in the ring.
 * True: there was something left. */
static bool send_some(int n)
{
	uint64_t before = kept();
	bool none;

	for (int i = 0; i < n; i++, count++) {
		CHECK(count < most, "nothing holds up the source");
		message_start(&sent[count], source, IN, count, size);
		(void)slmpm_progress(ctx);
	}
	none = kept() == before;
	for (int i = 0; i < 2; i++) {
		usleep(10 * MOST_US);
		settle();
	}
	return none && kept() > before;
}

static void take_all(void)
{
	for (; taken < count; taken++) {
		(void)message_take(target, OUT, taken, size);
		message_end(&sent[taken], 0);
	}
}

/* The target takes nothing until a message is kept: was it left in the ring before? */
static bool fill(int n)
{
	uint64_t before = kept();
	bool left = false;

	while (kept() == before)
		left = send_some(n);
	return left;
}

static void for_others(void)
{
	char word = 0;

	(void)send_some(1);
	OK(slmpm_send(source, IN + 7, "x", 1, PATIENCE));
	EXPECT(slmpm_recv(up, IN + 7, &word, 1, NULL, PATIENCE), 1);
	CHECK(word == 'x', "what came");
}

static void start(size_t bytes, uint64_t times)
{
	size = bytes;
	most = times * (message_credit() / size + 10);
	count = taken = 0;
	sent = calloc(most, sizeof(*sent));
	CHECK(sent, "out of memory");
	begin(0);
}

static void stays_in_the_ring(void)
{
	int left = 0;

	start(PIECE, 2 * TRIES);
	post(piping(2, PIECE, UINT64_C(1) << 32));
	for (int i = 0; i < TRIES && !left; i++) {
		left = fill(3 + i % 8);
		for_others();
		take_all();
	}
	CHECK(left, "nothing has been left in the ring");
	free(sent);
	OK(slmpm_wq_cancel(wq, 0));
	piped(-SLMPM_ECANCELED, count, down);
	end();
}

/* What the PIPE's own sends wait for comes behind it, on the same link. */
static void goes_back(void)
{
	struct slmpm_wr wr;

	start(SHORT, 2 * TRIES);
	wr = piping(2, SHORT, UINT64_C(1) << 32);
	wr.peer = up;
	target = source;
	post(wr);
	for (int i = 0; i < TRIES; i++) {
		CHECK(!fill(3 + i), "left in the ring");
		take_all();
	}
	free(sent);
	OK(slmpm_wq_cancel(wq, 0));
	piped(-SLMPM_ECANCELED, count, up);
	end();
}

static int everything(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	stays_in_the_ring();
	if (strcmp(fabric, "tcp") != 0) /* nor does it come there at once */
		goes_back();
	return 0;
}

int main(void)
{
	over_both(everything);
	return 0;
}
