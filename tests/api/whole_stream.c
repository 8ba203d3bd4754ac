/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of long messages, which may go whole and without a request: as many as there is credit
 * for, and no more; in order among short ones; and credit is taken where it lies behind other
 * messages, too.
 */
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LONG   ((size_t)64 << 10)
#define CREDIT ((size_t)1 << 20)
#define MOST   (CREDIT / LONG)
#define ROUNDS 20

static unsigned char bytes[LONG], got[LONG];
static uint64_t sent, received, answers;
static slmpm_ctx ctx;
static slmpm_peer a, b;

/* Of each third a byte less: the ring's end is met at many places. */
static size_t length_of(uint64_t number)
{
	return number % 3 ? LONG : LONG - 1 - number % 4096;
}

static int send_next(int timeout_ms)
{
	int rc;

	actor_fill(bytes, sent, length_of(sent));
	rc = slmpm_send(a, 1, bytes, length_of(sent), timeout_ms);
	sent += rc == 0;
	return rc;
}

static void receive_next(void)
{
	EXPECT(slmpm_recv(b, 1, got, LONG, NULL, PATIENCE), (int64_t)length_of(received));
	CHECK(actor_filled(got, received, length_of(received)), "message %d", (int)received);
	received++;
}

static void fill_up(void)
{
	int rc;

	while ((rc = send_next(0)) == 0)
		CHECK(sent - received <= MOST, "%d are out", (int)(sent - received));
	EXPECT(rc, -SLMPM_EAGAIN);
	CHECK(sent - received >= MOST / 2, "%d are out", (int)(sent - received));
}

static void answer(void)
{
	OK(slmpm_send(b, 2, &answers, sizeof(answers), PATIENCE));
	answers++;
}

static void take_answers(void)
{
	static uint64_t next;
	uint64_t number;

	for (; next < answers; next++) {
		EXPECT(slmpm_recv(a, 2, &number, sizeof(number), NULL, PATIENCE), sizeof(number));
		EXPECT(number, next);
	}
}

/* Credit alone, then credit between answers. */
static int streams(void *unused)
{
	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	for (int i = 0; i < ROUNDS; i++) {
		fill_up();
		while (received < sent) {
			if (i % 2 && received % 3 == 0)
				answer();
			receive_next();
		}
		for (size_t k = 0; k < MOST / 2; k++)
			OK(send_next(PATIENCE));
		while (received < sent)
			receive_next();
		take_answers();
		OK(send_next(PATIENCE));
	}
	receive_next();
	EXPECT(slmpm_recv(b, SLMPM_ANY_STREAM, got, LONG, NULL, 0), -SLMPM_EAGAIN);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	settings_one_link("shm");
	settings_set("SLMPM_FETCH", "never");
	settings_run("packets", streams, NULL);
	return 0;
}
