/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who scans words without the lock, of which one has changed whenever it looks, and finds nothing
 * in the pass that follows: as of a peer that writes there, or beside threads that call all the
 * time. Its time runs all the same. A wait for room, which shows in no word, does not scan.
 */
#include <unistd.h>

#include "slmpm/endpoint.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define FOR_EVER 20 /* s */
#define WAITS    500

static const _Atomic uint64_t word = 1;
static unsigned noted;

static const _Atomic uint64_t *changed(const struct fabric_link *link, uint64_t *nothing)
{
	(void)link;
	*nothing = 0;
	noted++;
	return &word;
}

static void lacks_room(slmpm_peer to)
{
	void *at;
	int rc;

	while ((rc = slmpm_loan(to, 1, 1024, &at, 0)) == 0)
		OK(slmpm_commit(to, at, 1024, NULL));
	EXPECT(rc, -SLMPM_EAGAIN);
	noted = 0;
	while ((rc = slmpm_loan(to, 1, 1024, &at, 20)) == 0)
		OK(slmpm_commit(to, at, 1024, NULL));
	EXPECT(rc, -SLMPM_ETIMEOUT);
	CHECK(!noted, "it scans");
}

int main(void)
{
	struct slmpm_options o = {
		.size = sizeof(o), .flags = SLMPM_THREADS, .wait = SLMPM_WAIT_SPIN};
	struct endpoint *ends[2];
	const struct fabric *real;
	struct fabric restless;
	slmpm_peer a, b;
	slmpm_ctx handle;
	int64_t begin;

	settings_one_link("shm");
	settings_set("SLMPM_ENGINE", "none");
	OK(slmpm_open(&handle, &o));
	actor_pair(handle, &a, &b);
	ends[0] = endpoint_of(a);
	ends[1] = endpoint_of(b);
	real = ends[0]->link.fabric;
	CHECK(real->awaited, "no word is scanned");
	restless = *real;
	restless.awaited = changed;
	alarm(FOR_EVER);
	for (int i = 0; i < 2; i++)
		ends[i]->link.fabric = &restless;
	/* Where the processor is shared it yields instead. */
	for (int i = 0; i < WAITS && !noted; i++) {
		begin = actor_now_ms();
		EXPECT(slmpm_recv(b, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
		CHECK(actor_now_ms() - begin >= 19, "too early");
	}
	CHECK(noted, "nothing was scanned");
	lacks_room(a);
	for (int i = 0; i < 2; i++)
		ends[i]->link.fabric = real;
	alarm(0);
	OK(slmpm_shut(handle, PATIENCE));
	return 0;
}
