/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop of the program's own that polls for as long as slmpm_spin says: what each setting makes of
 * that, and that bursts are polled through while an idle loop sleeps.
 */
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define LOOKS  64  /* before the clock is read */
#define BURSTS 400 /* until one is quiet enough: the first, where no others compute */
#define LONG   100 /* messages of a burst */
#define FEW    10  /* sleeps in the quietest burst */

static slmpm_ctx ctx;

static void each_setting_is_kept(const char *wait, const char *spin_us, int want)
{
	int how = -1, yields = 0;

	settings_set("SLMPM_WAIT", wait);
	settings_set("SLMPM_SPIN_US", spin_us);
	OK(slmpm_open(&ctx, NULL));
	for (int i = 0; i < 2 * LOOKS && how != SLMPM_SPIN_SLEEP; i++) {
		how = slmpm_spin(ctx, 0);
		if (how != SLMPM_SPIN_YIELD)
			continue;
		yields++;
		(void)sched_yield();
		how = slmpm_spin(ctx, 0);
		EXPECT(how, SLMPM_SPIN_ON);
	}
	if (want == SLMPM_SPIN_YIELD)
		CHECK(yields, "%s, %s us: no yield", wait, spin_us);
	else
		CHECK(how == want, "%s, %s us: %d", wait, spin_us, how);
	EXPECT(slmpm_spin(ctx, 1), SLMPM_SPIN_ON);
	OK(slmpm_shut(ctx, 0));
	EXPECT(slmpm_spin(ctx, 0), -SLMPM_EHANDLE);
}

static int spins(void *arg)
{
	(void)arg;
	each_setting_is_kept("spin", "0", SLMPM_SPIN_ON);
	return 0;
}

static int blocks(void *arg)
{
	(void)arg;
	each_setting_is_kept("block", "1000000", SLMPM_SPIN_SLEEP);
	return 0;
}

static int sleeps_at_once(void *arg)
{
	(void)arg;
	each_setting_is_kept("adaptive", "0", SLMPM_SPIN_SLEEP);
	return 0;
}

static int yields_on(void *arg)
{
	(void)arg;
	each_setting_is_kept("adaptive", "1000000", SLMPM_SPIN_YIELD);
	return 0;
}

/* ---- bursts --------------------------------------------------------------------------------- */

static int role_answers(slmpm_peer host, char **words)
{
	int word;

	(void)words;
	while (slmpm_recv(host, 0, &word, sizeof(word), NULL, -1) == sizeof(word))
		OK(slmpm_send(host, 0, &word, sizeof(word), PATIENCE));
	return 0;
}

/* The next word of PEER's: how often the loop has slept for it. */
static int loop_until_word(slmpm_peer peer)
{
	struct pollfd p = {.fd = slmpm_fd(ctx), .events = POLLIN};
	int word, slept = 0, how;

	while (slmpm_recv(peer, 0, &word, sizeof(word), NULL, 0) != sizeof(word)) {
		how = slmpm_spin(ctx, 0);
		if (how == SLMPM_SPIN_YIELD) {
			(void)sched_yield();
			how = slmpm_spin(ctx, 0);
		}
		if (how != SLMPM_SPIN_SLEEP || slmpm_arm(ctx))
			continue;
		CHECK(poll(&p, 1, PATIENCE) == 1, "nobody has woken it");
		slept++;
	}
	EXPECT(slmpm_spin(ctx, 1), SLMPM_SPIN_ON);
	return slept;
}

static int bursts(void *arg)
{
	struct slmpm_spawn_options o = {.size = sizeof(o)};
	int least = INT_MAX, slept;
	slmpm_peer peer;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	o.ctx = ctx;
	peer = actor_spawn_with(&o, "answers", NULL, NULL);
	for (int b = 0; b < BURSTS && least > FEW; b++) {
		usleep(2000);
		slept = 0;
		for (int i = 0; i < LONG; i++) {
			OK(slmpm_send(peer, 0, &i, sizeof(i), PATIENCE));
			slept += loop_until_word(peer);
		}
		least = slept < least ? slept : least;
	}
	CHECK(least <= FEW, "slept %d times in %d round trips, at least", least, LONG);
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"answers", role_answers}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_run("spins", spins, NULL);
	settings_run("blocks", blocks, NULL);
	settings_run("sleeps at once", sleeps_at_once, NULL);
	settings_run("yields on", yields_on, NULL);
	settings_run("bursts", bursts, NULL);
	return 0;
}
