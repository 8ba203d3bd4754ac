/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * Another process floods a stream all through: what it is told was taken comes exactly once and in
 * order, what it is told was refused never comes, and a buffer whose entry is disabled stays as it
 * is.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define STREAM  5
#define PLACES  4
#define ROUNDS  2000
#define LONGEST 100000 /* beyond what comes unasked */

struct load {
	uint64_t number;
	unsigned char bytes[LONGEST - 8];
};

static size_t length_of(uint64_t number)
{
	return number % 5 == 4 ? LONGEST : 16 + (number * 7) % 4000;
}

/* Until the host has had enough, which it says. */
static int role_floods(slmpm_peer host, char **words)
{
	static struct load load;
	uint64_t refused = 0, said[2];
	bool ends = false;

	(void)words;
	while (!ends) {
		int rc;

		actor_fill(load.bytes, load.number, length_of(load.number) - 8);
		rc = slmpm_send(host, STREAM, &load, length_of(load.number), PATIENCE);
		CHECK(rc == 0 || rc == -SLMPM_EDISABLED, "%d: %s", rc, slmpm_error_detail());
		load.number += rc == 0;
		refused += rc < 0;
		ends = slmpm_recv(host, 1, NULL, 0, NULL, 0) == 0;
	}
	said[0] = load.number;
	said[1] = refused;
	OK(slmpm_send(host, 2, said, sizeof(said), PATIENCE));
	return slmpm_recv(host, 3, NULL, 0, NULL, PATIENCE) < 0;
}

struct flood {
	slmpm_peer peer;
	slmpm_cq cq;
	slmpm_wq receives;
	uint64_t posted, enabled, taken;
};

static struct load places[PLACES];

static void post_place(struct flood *f)
{
	struct load *place = &places[f->posted % PLACES];
	struct slmpm_iov whole = {place, sizeof(*place)};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_RECV, .iov_count = 1};

	wr.iov = &whole;
	place->number = UINT64_MAX;
	EXPECT(slmpm_post(f->receives, &wr, 1), 1);
	f->posted++;
}

static void enable_more(struct flood *f, uint64_t n)
{
	f->enabled += n;
	OK(slmpm_wq_enable(f->receives, f->enabled));
}

/* The next comes into the next place. */
static void take_one(struct flood *f)
{
	struct load *place = &places[f->taken % PLACES];
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(f->cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == 0 && place->number == f->taken && done.len == length_of(f->taken) &&
		      actor_filled(place->bytes, f->taken, length_of(f->taken) - 8),
	      "status %d, %llu, %llu bytes for %llu", done.status,
	      (unsigned long long)place->number, (unsigned long long)done.len,
	      (unsigned long long)f->taken);
	f->taken++;
}

static void check_untouched(const struct flood *f)
{
	for (uint64_t i = f->enabled; i < f->posted; i++)
		CHECK(places[i % PLACES].number == UINT64_MAX, "entry %llu is disabled",
		      (unsigned long long)i);
}

static int flood(void *fabric)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, .stream = STREAM};
	struct rng rng = {rng_run_seed(35)};
	struct flood f = {.enabled = 0};
	uint64_t said[2];

	settings_set("SLMPM_FABRIC", fabric);
	f.peer = o.peer = actor_spawn("floods", NULL, NULL);
	OK(slmpm_cq_create((slmpm_ctx){0}, &o.cq));
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &f.receives));
	f.cq = o.cq;
	for (int round = 0; round < ROUNDS; round++) {
		while (f.posted - f.taken < PLACES)
			post_place(&f);
		for (uint32_t n = rng_below(&rng, 20); n--;)
			(void)slmpm_progress((slmpm_ctx){0});
		check_untouched(&f);
		enable_more(&f, rng_below(&rng, (uint32_t)(f.posted - f.enabled) + 1));
		for (uint32_t n = rng_below(&rng, (uint32_t)(f.enabled - f.taken) + 1); n--;)
			take_one(&f);
	}
	while (f.taken < f.enabled)
		take_one(&f);
	OK(slmpm_send(f.peer, 1, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(f.peer, 2, said, sizeof(said), NULL, PATIENCE), sizeof(said));
	/* What it sent before it knew of the queue is kept. */
	while (said[0] > f.taken) {
		while (f.posted <= f.taken)
			post_place(&f);
		enable_more(&f, 1);
		take_one(&f);
	}
	CHECK(said[0] == f.taken && said[1], "%llu of %llu, %llu were refused",
	      (unsigned long long)f.taken, (unsigned long long)said[0],
	      (unsigned long long)said[1]);
	OK(slmpm_send(f.peer, 3, NULL, 0, PATIENCE));
	actor_join(f.peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"floods", role_floods}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(flood, fabrics[i], 40) == 0, "%s: see above", fabrics[i]);
	return 0;
}
