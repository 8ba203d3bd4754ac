/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random calls between a hub and three leaves, held against a model of what must arrive where.
 * SLMPM_TEST_SEED and SLMPM_TEST_SECONDS say which and for how long.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/lib/hub.h"

#define OPS 1500

static void one_end(void)
{
	size_t at = hub_below(WANTS - 1);
	struct hub_send *s = &hub.sends[hub_below(SENDS)];
	struct hub_hold *h = &hub.holds[hub_below(HELD)];

	if (hub.wants[at].used && hub.take_back && !hub_below(3))
		hub_cancel_receive(at);
	else if (hub.wants[at].used)
		hub_finish_receive(at, false);
	if (s->buf && hub.take_back && !hub_below(6))
		hub_cancel_send(s);
	else if (s->buf)
		hub_finish_send(s, false);
	if (h->data && hub_below(2))
		(hub_below(2) ? hub_look_again : hub_let_go)(h);
}

static void progress_all(void)
{
	for (int i = 0; i <= LEAVES; i++)
		CHECK(slmpm_progress(hub.contexts[i]) >= 0, "%s", slmpm_error_detail());
}

static void finish_all(void)
{
	progress_all();
	for (size_t i = 0; i < WANTS - 1; i++)
		if (hub.wants[i].used)
			hub_finish_receive(i, false);
	for (int i = 0; i < SENDS; i++)
		if (hub.sends[i].buf)
			hub_finish_send(&hub.sends[i], false);
}

/* Is so little under way on the channel that all of it has come by itself? */
static bool is_small(int channel)
{
	const struct mail_channel *c = &hub.channels[channel];
	size_t bytes = 0;

	for (int i = 0; i < SENDS; i++)
		if (hub.sends[i].buf && hub.sends[i].channel == channel)
			return false;
	for (size_t i = c->first; i < c->count; i++)
		bytes += c->mails[i].state == MAIL_LIVE ? c->mails[i].len + 64 : 0;
	return bytes < 50000;
}

/* Nobody waits for what is there. */
static void check_nobody_waits(void)
{
	for (int turn = 0; turn < 100; turn++)
		finish_all();
	for (size_t at = 0; at < WANTS - 1; at++)
		for (int i = 0; i < CHANNELS; i++) {
			const struct mail_channel *c = hub.wants[at].channel;

			if (!hub.wants[at].used || !is_small(i))
				continue;
			if (c == &hub.channels[i] || (!c && i >= LEAVES))
				CHECK(!mail_wanted(&hub.channels[i], hub.wants[at].stream),
				      "a message and a receive for it did not meet");
		}
}

/* Nothing more is sent; all that was comes. */
static void drain(void)
{
	size_t left = 1;

	for (int i = 0; i < CHANNELS; i++)
		for (int turn = 0; hub.loans[i].buf && !hub_settle_loan(i); turn++) {
			CHECK(turn < 100000, "a loan's turn never comes");
			finish_all();
			for (int side = 0; side <= LEAVES; side++)
				hub_receive_now(side);
		}
	for (int i = 0; i < HELD; i++)
		if (hub.holds[i].data)
			hub_let_go(&hub.holds[i]);
	check_nobody_waits();
	for (int turn = 0; left; turn++) {
		CHECK(turn < 200000, "%zu messages or requests never end", left);
		finish_all();
		for (int side = 0; side <= LEAVES; side++)
			hub_receive_now(side);
		left = 0;
		for (int i = 0; i < CHANNELS; i++)
			left += mail_left(&hub.channels[i]);
		for (int i = 0; i < SENDS; i++)
			left += hub.sends[i].buf != NULL;
	}
	for (size_t i = 0; i < WANTS - 1; i++)
		if (hub.wants[i].used) {
			OK(slmpm_cancel(hub.receives[i].req));
			hub_finish_receive(i, true);
		}
}

static void episode(uint64_t seed)
{
	uint32_t receiving = 0;

	hub.rng.state = seed;
	hub_begin();
	for (int i = 0; i < OPS; i++) {
		if (i % 100 == 0) /* now the one side is faster, now the other */
			receiving = 1 + hub_below(5);
		if (hub_below(6) >= receiving)
			hub_send_some((int)hub_below(CHANNELS));
		else
			hub_receive_some((int)hub_below(LEAVES + 1));
		one_end();
		if (!hub_below(3))
			(void)slmpm_progress(hub.contexts[hub_below(LEAVES + 1)]);
	}
	drain();
	hub_end();
}

/* Some happen in every fourth episode only. */
static bool all_tried(void)
{
	return hub.total.truncated && hub.total.canceled && hub.total.timeouts &&
	       hub.total.probed && hub.total.held && hub.total.loaned;
}

int main(void)
{
	const char *seconds = getenv("SLMPM_TEST_SECONDS");
	time_t until = time(NULL) + (seconds ? atol(seconds) : 2);
	uint64_t seed = rng_run_seed(1), episodes = 0;

	CHECK(setenv("SLMPM_ATTACH", "y", 0) == 0, "setenv"); /* large ones are fetched, too */
	hub.scratch = malloc(LONGEST);
	CHECK(hub.scratch, "memory");
	do {
		printf("%#llx ", (unsigned long long)(seed + episodes)); /* repeats it at once */
		episode(seed + episodes++);
	} while (time(NULL) < until || !all_tried());
	printf("\n%llu episodes: %llu sent, %llu received, %llu cut off, %llu taken back, %llu in "
	       "vain, %llu probed, %llu held, %llu loans\n",
	       (unsigned long long)episodes, (unsigned long long)hub.total.sent,
	       (unsigned long long)hub.total.taken, (unsigned long long)hub.total.truncated,
	       (unsigned long long)hub.total.canceled, (unsigned long long)hub.total.timeouts,
	       (unsigned long long)hub.total.probed, (unsigned long long)hub.total.held,
	       (unsigned long long)hub.total.loaned);
	for (int i = 0; i < CHANNELS; i++)
		mail_reset(&hub.channels[i], MAIL_EXACT);
	free(hub.scratch);
	return 0;
}
