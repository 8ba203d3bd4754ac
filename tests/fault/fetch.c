/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Large messages that are fetched, when something is in the way: a kernel that refuses, from the
 * beginning or from now on; a receive with less room; deaths and departures amidst a copy; a full
 * ring. Nobody touches a buffer that has been given back.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/nudge.h"
#include "tests/lib/random.h"
#include "tests/lib/refuse.h"
#include "tests/lib/settings.h"

#define LARGE ((size_t)3 << 20)
#define GIVEN ((size_t)192 << 10)

#define HUGE_ONE (8 * LARGE)
#define ROUNDS   8

static unsigned char buffer[LARGE];

static void refuse_call(long call)
{
	const struct refusal r = {.call = call, .error = EPERM};

	CHECK(refuse(&r), "no filter");
}

/* ---- the other side ------------------------------------------------------------------------- */

static int echo(slmpm_peer host, char **words)
{
	int64_t n;

	if (words[0] && !strcmp(words[0], "readv"))
		refuse_call(SYS_process_vm_readv);
	if (words[0] && !strcmp(words[0], "writev"))
		refuse_call(SYS_process_vm_writev);
	while ((n = slmpm_recv(host, 1, buffer, LARGE, NULL, -1)) >= 0)
		if (slmpm_send(host, 1, buffer, (size_t)n, -1) < 0)
			break;
	return 0;
}

/* Sends, or receives, until it is killed. */
static int send_on(slmpm_peer host, char **words)
{
	(void)words;
	while (slmpm_send(host, 1, buffer, LARGE, -1) == 0)
		;
	return 0;
}

static int send_huge(slmpm_peer host, char **words)
{
	unsigned char *all = calloc(1, HUGE_ONE);

	(void)words;
	CHECK(all, "no memory");
	CHECK(slmpm_send(host, 1, all, HUGE_ONE, PATIENCE) != -SLMPM_ETIMEOUT, "no end");
	free(all);
	return 0;
}

/* Does not wait for the end of what it sends, and uses its memory for something else. */
static int leave(slmpm_peer host, char **words)
{
	struct rng rng = {strtoull(words[0], NULL, 10)};
	unsigned char *all = malloc(HUGE_ONE);
	struct slmpm_iov iov = {all, HUGE_ONE};
	struct slmpm_done done;
	slmpm_req req;

	CHECK(all, "no memory");
	actor_fill(all, 1, HUGE_ONE);
	OK(slmpm_sendv(host, 1, &iov, 1, NULL, &req));
	for (uint64_t n = rng_below(&rng, 200); n && !slmpm_test(&req, &done); n--)
		;
	(void)slmpm_close(host, 0);
	memset(all, 0xee, HUGE_ONE);
	nudge_await();
	free(all);
	return 0;
}

static int receive_on(slmpm_peer host, char **words)
{
	(void)words;
	while (slmpm_recv(host, 1, buffer, LARGE, NULL, -1) >= 0)
		;
	return 0;
}

/* ---- refused -------------------------------------------------------------------------------- */

static void there_and_back(slmpm_peer peer, uint64_t seed)
{
	actor_fill(buffer, seed, LARGE);
	OK(slmpm_send(peer, 1, buffer, LARGE, PATIENCE));
	memset(buffer, 0, LARGE);
	EXPECT(slmpm_recv(peer, 1, buffer, LARGE, NULL, PATIENCE), LARGE);
	CHECK(actor_filled(buffer, seed, LARGE), "message %llu came back altered",
	      (unsigned long long)seed);
}

struct refused {
	long here;         /* refused to this side, from the beginning ... */
	const char *there; /* and to the other */
	bool later;        /* ... or when some have been fetched */
};

static int be_refused(void *arg)
{
	const struct refused *c = arg;
	struct slmpm_stats s;
	uint64_t fetched;
	slmpm_peer peer;

	if (c->here && !c->later)
		refuse_call(c->here);
	peer = actor_spawn("echo", c->there, NULL);
	for (uint64_t i = 0; i < 4; i++)
		there_and_back(peer, i);
	s = actor_stats(peer);
	if (!c->later && (c->here || c->there))
		CHECK(s.rget_messages == 0, "fetched all the same");
	else if (s.rget_messages == 0)
		printf("attaching does not work here: nothing is fetched\n");
	fetched = s.rget_messages;
	if (c->later) {
		refuse_call(c->here);
		for (uint64_t i = 4; i < 8; i++)
			there_and_back(peer, i);
		s = actor_stats(peer);
		CHECK(c->here != SYS_process_vm_readv || s.violations == 0, "a violation");
	}
	CHECK(s.sent_messages == (c->later ? 8u : 4u) && fetched <= s.sent_messages, "%llu sent",
	      (unsigned long long)s.sent_messages);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static void refusals(void)
{
	static const struct refused cases[] = {
		{0, NULL, false},
		{SYS_process_vm_readv, NULL, false},
		{SYS_process_vm_writev, NULL, false},
		{0, "readv", false},
		{0, "writev", false},
		{SYS_process_vm_readv, NULL, true},
		{SYS_process_vm_writev, NULL, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK(child_run(be_refused, (void *)(uintptr_t)&cases[i], 20) == 0, "case %zu", i);
}

/* ---- cut ------------------------------------------------------------------------------------- */

static int cut(slmpm_peer host, char **words)
{
	(void)words;
	memset(buffer, 0x55, LARGE);
	EXPECT(slmpm_recv(host, 1, buffer, GIVEN, NULL, PATIENCE), -SLMPM_ETRUNC);
	CHECK(actor_filled(buffer, 3, GIVEN), "the front of a message that was cut");
	for (size_t i = GIVEN; i < LARGE; i++)
		CHECK(buffer[i] == 0x55, "byte %zu was written, beyond the room", i);
	return 0;
}

/* Nobody copies what there is no room for, and nobody counts it. */
static int have_less_room(void *unused)
{
	struct slmpm_stats s;
	slmpm_peer peer;

	(void)unused;
	peer = actor_spawn("cut", NULL, NULL);
	actor_fill(buffer, 3, LARGE);
	OK(slmpm_send(peer, 1, buffer, LARGE, PATIENCE));
	s = actor_stats(peer);
	CHECK(s.rget_bytes + s.push_bytes == (s.rget_messages ? GIVEN : 0), "%llu and %llu bytes",
	      (unsigned long long)s.rget_bytes, (unsigned long long)s.push_bytes);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* ---- killed --------------------------------------------------------------------------------- */

static void kill_amidst(const char *role, bool sends)
{
	struct rng rng = {7};

	for (int i = 0; i < 12; i++) {
		slmpm_peer peer = actor_spawn(role, NULL, NULL);
		struct slmpm_peer_info info = {.size = sizeof(info)};
		int64_t rc = 0;
		int status;

		for (uint64_t n = rng_below(&rng, 4); rc >= 0 && n < 1000; n++) {
			if (n == 3) {
				OK(slmpm_peer_query(peer, &info));
				usleep((useconds_t)rng_below(&rng, 300));
				CHECK(kill(info.pid, SIGKILL) == 0, "no kill");
			}
			rc = sends ? slmpm_recv(peer, 1, buffer, LARGE, NULL, PATIENCE) :
				     slmpm_send(peer, 1, buffer, LARGE, PATIENCE);
		}
		CHECK(rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED, "%lld (%s)", (long long)rc,
		      slmpm_error_detail());
		OK(slmpm_join(peer, &status, PATIENCE));
	}
}

/* Closing ends a receive that the other side may be writing into. */
static int close_amidst(void *unused)
{
	struct rng rng = {rng_run_seed(815)};
	unsigned char *all = malloc(HUGE_ONE);
	int amidst = 0;

	(void)unused;
	CHECK(all, "no memory");
	for (int i = 0; i < ROUNDS; i++) {
		slmpm_peer peer = actor_spawn("send huge", NULL, NULL);
		struct slmpm_iov iov = {all, HUGE_ONE};
		struct slmpm_done done = {.len = 0};
		slmpm_req req;

		OK(slmpm_recvv(peer, 1, &iov, 1, NULL, &req));
		while (actor_stats(peer).received_messages == 0)
			(void)slmpm_test(&req, &done);
		for (uint64_t n = rng_below(&rng, 5); n && req.id; n--)
			(void)slmpm_test(&req, &done);
		OK(slmpm_close(peer, PATIENCE));
		memset(all, 0x55, HUGE_ONE);
		actor_join(peer, 0);
		for (size_t at = 0; at < HUGE_ONE; at++)
			CHECK(all[at] == 0x55, "byte %zu was written after the end", at);
		if (req.id)
			EXPECT(slmpm_test(&req, &done), 1);
		amidst += done.status == -SLMPM_ECLOSED;
	}
	printf("closed amidst %d of %d\n", amidst, ROUNDS);
	free(all);
	return 0;
}

/* What was read of memory that its owner uses again is no message. */
static int left_amidst(void *unused)
{
	unsigned char *all = malloc(HUGE_ONE);
	int whole = 0;

	(void)unused;
	CHECK(all, "no memory");
	for (int i = 0; i < ROUNDS; i++) {
		char text[16];
		slmpm_peer peer;
		int64_t n;

		snprintf(text, sizeof(text), "%d", i);
		peer = actor_spawn("leave", text, NULL);
		n = slmpm_recv(peer, 1, all, HUGE_ONE, NULL, PATIENCE);
		CHECK(n == HUGE_ONE || n == -SLMPM_ECLOSED, "%lld (%s)", (long long)n,
		      slmpm_error_detail());
		CHECK(n < 0 || actor_filled(all, 1, HUGE_ONE), "other bytes than were sent");
		whole += n > 0;
		(void)kill(pid_of(peer), NUDGE);
		(void)slmpm_close(peer, PATIENCE);
		actor_join(peer, 0);
	}
	printf("whole when its sender left: %d of %d\n", whole, ROUNDS);
	free(all);
	return 0;
}

/* ---- a ring full of what nobody reads ------------------------------------------------------- */

static int count(slmpm_peer host, char **words)
{
	uint64_t n = 0;

	(void)words;
	while (slmpm_recv(host, 1, buffer, LARGE, NULL, PATIENCE) > 0)
		n++;
	OK(slmpm_send(host, 2, &n, sizeof(n), PATIENCE));
	return 0;
}

/* What waits there is taken back all the same, and never was. */
static int full_ring(void *unused)
{
	slmpm_req reqs[3] = {{0}};
	struct slmpm_iov iov = {buffer, LARGE};
	uint64_t sent = 0, received;
	slmpm_peer peer;

	(void)unused;
	CHECK(setenv("SLMPM_EAGER_CREDIT", "64m", 1) == 0, "setenv");
	peer = actor_spawn("count", NULL, NULL);
	OK(slmpm_send(peer, 1, "up", 2, PATIENCE));
	sent++;
	OK(kill(pid_of(peer), SIGSTOP));
	actor_await_state(pid_of(peer), "T");
	for (int i = 0; i < 3; i++)
		OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &reqs[i]));
	for (size_t n = 8192; n; n /= 2)
		while (slmpm_send(peer, 1, buffer, n, 0) == 0)
			sent++;
	CHECK(sent > 100, "the ring took %d messages", (int)sent);
	for (int i = 0; i < 3; i++) {
		OK(slmpm_cancel(reqs[i]));
		EXPECT(slmpm_wait(&reqs[i], 1, NULL, 0), 0);
	}
	OK(kill(pid_of(peer), SIGCONT));
	OK(slmpm_send(peer, 1, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(peer, 2, &received, sizeof(received), NULL, PATIENCE), sizeof(received));
	CHECK(received == sent, "%d sent, %d received", (int)sent, (int)received);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int deaths(void *arg)
{
	(void)arg;
	kill_amidst("send", true);
	kill_amidst("receive", false);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"echo", echo},           {"send", send_on}, {"receive", receive_on},
		{"send huge", send_huge}, {"cut", cut},      {"leave", leave},
		{"count", count},         {NULL, NULL},
	};

	unsigned slow = (unsigned)actor_slow();

	CHECK(setenv("SLMPM_FETCH", "always", 1) == 0 && setenv("SLMPM_FETCH_MIN", "20k", 1) == 0,
	      "setenv");
	nudge_block();
	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	refusals();
	CHECK(child_run(have_less_room, NULL, 20 * slow) == 0, "see above");
	CHECK(child_run(deaths, NULL, 30) == 0, "see above");
	CHECK(child_run(close_amidst, NULL, 20 * slow) == 0, "see above");
	CHECK(child_run(left_amidst, NULL, 20 * slow) == 0, "see above");
	CHECK(child_run(full_ring, NULL, 20 * slow) == 0, "see above");
	return 0;
}
