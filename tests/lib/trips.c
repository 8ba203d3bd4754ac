/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips, step by step. */
#include "tests/lib/trips.h"

#include "tests/lib/one_processor.h"
#include "tests/lib/step.h"

#define TRIPS 2
#define TRIES 2
#define MOST  20000000

static struct {
	const struct trips *what;
	slmpm_ctx ctx;
	slmpm_peer a, b;
} own;

static void one(slmpm_peer from, slmpm_peer to)
{
	uint64_t word = 1;

	OK(slmpm_send(from, 0, &word, sizeof(word), PATIENCE));
	EXPECT(slmpm_recv(own.what->any ? slmpm_any(own.ctx) : to, 0, &word, sizeof(word), NULL,
			  PATIENCE),
	       sizeof(word));
}

static void run(void *arg)
{
	(void)arg;
	for (int i = 0; i < TRIPS; i++) {
		one(own.a, own.b);
		one(own.b, own.a);
	}
}

static void prepare(void *arg)
{
	own.what = arg;
	OK(slmpm_open(&own.ctx, NULL));
	actor_pair(own.ctx, &own.a, &own.b);
	own.what->beside(own.ctx, own.what->n);
	for (int i = 0; i < 5; i++)
		run(NULL);
}

bool trips_count(const struct trips *t, long *instructions)
{
	struct trips copy = *t;
	const struct step_body body = {.run = run, .arg = &copy, .prepare = prepare};

	/* each step is two changes between tracer and child: a third of the time there */
	(void)one_processor_bind();
	*instructions = MOST;
	for (int i = 0; i < TRIES; i++) {
		long n = step_count(&body, STEP_INSTRUCTION, NULL, MOST);

		if (n < 0)
			return false;
		*instructions = n / TRIPS < *instructions ? n / TRIPS : *instructions;
	}
	return true;
}
