/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Peers that break no rule and are a nuisance: bells for nothing, messages that never go on,
 * another user's connection. Nobody waits for them longer than told to, and none of it is a
 * violation.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/offence.h"

#define PACKET 8192 /* the longest, as agreed */

static unsigned char bytes[PACKET];
static const char *address;

static int annoy(void *arg)
{
	struct raw_peer p;
	char reason[112];

	(void)arg;
	raw_begin(&p, raw_connect(address));
	raw_steps(&p, RAW_HELLO, RAW_UP);
	for (int i = 0; i < 20000; i++) { /* R12: bells for nothing */
		raw_ring_bell(&p);
		atomic_store(&raw_words(&p)->asleep, LITTLE_64((uint64_t)i));
		if (i % 64 == 0)
			raw_send(&p, 1, bytes, 32);
	}
	raw_send(&p, 2, "over", 4);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "annoyance was called \"%s\"", reason);
	raw_end(&p);
	return 0;
}

/* R11, R12: the honest one gets its turn, and nothing was a violation. */
static void bear(slmpm_listener listener, slmpm_peer honest)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(annoy, NULL, 30);
	int64_t slowest = 0, n = 0;
	unsigned char got[64];
	slmpm_peer peer;
	struct slmpm_done done = {.stream = 1};

	OK(slmpm_accept(listener, &peer, PATIENCE));
	while (done.stream == 1) {
		int64_t begin = actor_now_ms();

		honest_works(honest);
		if (actor_now_ms() - begin > slowest)
			slowest = actor_now_ms() - begin;
		n = slmpm_recv(peer, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE);
		CHECK(n > 0, "bells end in %lld (%s)", (long long)n, slmpm_error_detail());
	}
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "bells: see above");
	CHECK(slowest < 1000 * actor_slow(), "the honest peer waited for %lld ms",
	      (long long)slowest);
	holdings_expect(before, "bells");
}

/* A message that never goes on: announced, and asked for; or begun, and longer than its buffer. */
static int stall(void *arg)
{
	struct raw_peer p;
	char reason[112];

	(void)arg;
	raw_begin(&p, raw_connect(address));
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_post(&p, WIRE_SEND_FIRST, ++p.sent, wire_route(1, 0),
		 wire_extent(100000, WIRE_FLAG_ANNOUNCED), bytes, PACKET);
	raw_post(&p, WIRE_SEND_FIRST, ++p.sent, wire_route(2, 0), 30000, bytes, PACKET);
	raw_ring_bell(&p);
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "a pause was called \"%s\"", reason);
	raw_end(&p);
	return 0;
}

static void wait_no_longer(slmpm_listener listener, slmpm_peer honest)
{
	static unsigned char room[100000];
	struct holdings before = holdings_now();
	pid_t pid = child_start(stall, NULL, 30);
	int64_t begin;
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	begin = actor_now_ms();
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_recv(peer, 1, room, sizeof(room), NULL, 50), -SLMPM_ETIMEOUT);
		honest_works(honest);
	}
	for (int i = 0; i < 2; i++) {
		int64_t rc = slmpm_recv(peer, 2, room, 64, NULL, 50);

		/* Put back whole, or ended with what its buffer takes. */
		CHECK(rc == -SLMPM_ETIMEOUT || rc == -SLMPM_ETRUNC, "%lld: %s", (long long)rc,
		      slmpm_error_detail());
	}
	CHECK(actor_now_ms() - begin < 1000 * actor_slow(), "four deadlines took %lld ms",
	      (long long)(actor_now_ms() - begin));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "a pause: see above");
	holdings_expect(before, "a pause");
}

/* R7: another user does not get in. */
static int come_as_another(void *arg)
{
	unsigned user = getuid(); /* whose number the name has in it */
	char packet[512];
	int fd;

	(void)arg;
	if (setresuid(65534, 65534, 65534) != 0)
		return TEST_SKIPPED;
	fd = raw_connect_as(address, user);
	CHECK(fd >= 0, "the listener is not there");
	CHECK(raw_hear(fd, packet, sizeof(packet), NULL) == 0, "it spoke to another user");
	close(fd);
	return 0;
}

static void refuse_another_user(slmpm_listener listener, slmpm_peer honest)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(come_as_another, NULL, 30);
	siginfo_t info = {0};
	slmpm_peer nobody;
	int rc;

	while (!info.si_pid) {
		EXPECT(slmpm_accept(listener, &nobody, 2), -SLMPM_ETIMEOUT);
		CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0, "waitid");
	}
	honest_works(honest);
	rc = child_wait(pid);
	if (rc == TEST_SKIPPED)
		printf("R7  another user: not tried, needs root\n");
	else
		CHECK(rc == 0, "another user: see above");
	holdings_expect(before, "another user");
}

int main(void)
{
	struct victim v;

	victim_begin(&v, "annoying");
	address = v.address;
	bear(v.listener, v.honest);
	wait_no_longer(v.listener, v.honest);
	refuse_another_user(v.listener, v.honest);
	victim_end(&v);
	return 0;
}
