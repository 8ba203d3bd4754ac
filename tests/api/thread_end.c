/* SPDX-License-Identifier: BSD-3-Clause */
/* The default context of a thread that ends: gone, unless somebody can still know what is in it. */
#include <pthread.h>

#include "tests/lib/actor.h"

#define THREADS 100

static void *idle(void *arg)
{
	slmpm_ctx *ctx = arg;

	OK(slmpm_default(ctx));
	OK(slmpm_progress(*ctx));
	return NULL;
}

static void *hand_over(void *arg)
{
	slmpm_peer *pair = arg;
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	actor_pair(ctx, &pair[0], &pair[1]);
	return NULL;
}

static void in_thread(void *(*body)(void *), void *arg)
{
	pthread_t t;

	OK(pthread_create(&t, NULL, body, arg));
	OK(pthread_join(t, NULL));
}

int main(void)
{
	slmpm_ctx ctx, ended = {0}, last;
	slmpm_peer pair[2];
	int descriptors, mappings;
	char c;

	OK(slmpm_open(&ctx, NULL));
	in_thread(idle, &ended);
	descriptors = actor_descriptors();
	mappings = actor_mappings();
	for (int i = 0; i < THREADS; i++) {
		last = ended;
		in_thread(idle, &ended);
		EXPECT(slmpm_progress(ended), -SLMPM_EHANDLE);
		CHECK(ended.id != last.id, "the same handle twice");
	}
	EXPECT(actor_descriptors(), descriptors);
	EXPECT(actor_mappings(), mappings);

	in_thread(hand_over, pair);
	OK(slmpm_send(pair[0], 1, "x", 1, PATIENCE));
	EXPECT(slmpm_recv(pair[1], 1, &c, 1, NULL, PATIENCE), 1);
	OK(slmpm_close(pair[0], PATIENCE));
	OK(slmpm_close(pair[1], PATIENCE));
	OK(slmpm_shut(ctx, 0));
	return 0;
}
