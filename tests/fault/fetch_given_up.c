/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Fetched messages whose sends and receives are given up while the other side comes, or is stopped
 * and goes on at any instruction, or while other messages go by another link, of another fabric:
 * none is lost or torn, no call is late, and neither side touches a buffer that has been given
 * back.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/links.h"
#include "tests/lib/nudge.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define LARGE ((size_t)3 << 20)
#define GIVEN ((size_t)192 << 10)
#define TURNS 400

static unsigned char buffer[GIVEN];

/* By the other link, where there are two: what is said of fetching then waits for what it was. */
static void go_elsewhere(slmpm_peer peer, struct rng *rng)
{
	const struct slmpm_how how = {.size = sizeof(how),
				      .flags = SLMPM_ON_LINK(1) | SLMPM_STRICT,
				      .timeout_ms = PATIENCE};
	struct slmpm_iov iov = {"aside", 5};

	int rc;

	if (!strchr(getenv("SLMPM_LINKS"), ',') || !rng_one_in(rng, 3))
		return;
	rc = slmpm_sendv(peer, 4, &iov, 1, &how, NULL);
	CHECK(rc == 0 || rc == -SLMPM_ESTATE, "aside: %d (%s)", rc, slmpm_error_detail());
}

/* Gives up most of its sends; what was given back is overwritten at once. */
static int give_up(slmpm_peer host, char **words)
{
	struct rng rng = {strtoull(words[0], NULL, 10)};
	uint64_t delivered = 0;

	for (uint32_t i = 0; i < TURNS; i++) {
		struct slmpm_how how = {
			.size = sizeof(how), .imm = i, .timeout_ms = (int)rng_below(&rng, 2)};
		struct slmpm_iov iov = {buffer, GIVEN - i};
		int rc;

		actor_fill(buffer, i, GIVEN - i);
		go_elsewhere(host, &rng);
		rc = slmpm_sendv(host, 1, &iov, 1, &how, NULL);
		CHECK(rc == 0 || rc == (how.timeout_ms ? -SLMPM_ETIMEOUT : -SLMPM_EAGAIN),
		      "send: %d (%s)", rc, slmpm_error_detail());
		delivered += rc == 0;
		memset(buffer, 0xee, GIVEN);
	}
	OK(slmpm_send(host, 2, &delivered, sizeof(delivered), PATIENCE));
	/* Until the host closes: a leak checker that is stopped at its work hangs. */
	EXPECT(slmpm_recv(host, 3, buffer, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

/* Nobody touches what has been given back. */
static void own_buffer(struct rng *rng)
{
	memset(buffer, 0x55, GIVEN);
	usleep((useconds_t)rng_below(rng, 100));
	for (size_t i = 0; i < GIVEN; i++)
		CHECK(buffer[i] == 0x55, "byte %zu of a buffer given back was written", i);
}

/* A receive that ends by itself or is taken back, after a little while. One that has gone too far
 * for that still waits for the next message if its sender takes this one back: there may be no next
 * one. */
static bool receive_or_not(slmpm_peer peer, struct rng *rng, int64_t *last)
{
	struct slmpm_iov iov = {buffer, GIVEN};
	struct slmpm_done done = {.len = 0};
	int64_t until = actor_now_ms() + PATIENCE;
	slmpm_req req;
	int rc = 0;

	OK(slmpm_recvv(peer, 1, &iov, 1, NULL, &req));
	go_elsewhere(peer, rng);
	for (uint64_t n = rng_below(rng, 30); n && !rc; n--)
		rc = slmpm_test(&req, &done);
	while (!rc) {
		if (slmpm_cancel(req) == 0)
			own_buffer(rng);
		rc = slmpm_wait(&req, 1, &done, 100) == 0;
		CHECK(rc || actor_now_ms() < until, "neither an end nor a way back");
	}
	if (done.status == -SLMPM_ECANCELED)
		return false;
	EXPECT(done.status, 0);
	CHECK((int64_t)done.imm > *last && done.len == GIVEN - done.imm, "message %u of %llu bytes",
	      done.imm, (unsigned long long)done.len);
	CHECK(actor_filled(buffer, done.imm, done.len), "message %u is not what was sent",
	      done.imm);
	*last = done.imm;
	return true;
}

struct victims {
	pid_t pids[2];
	_Atomic bool spared;
};

/* Stops and continues both sides, at any instruction; leaves none of them stopped. */
static int torment(void *arg)
{
	struct victims *v = arg;
	struct rng rng = {(uint64_t)v->pids[0]};

	while (!v->spared) {
		pid_t pid = v->pids[rng_below(&rng, 2)];
		struct timespec t = {0, (long)rng_below(&rng, 2000000)};

		if (kill(pid, SIGSTOP) < 0)
			return 0;
		(void)nanosleep(&t, NULL);
		if (kill(pid, SIGCONT) < 0)
			return 0;
		t.tv_nsec = (long)rng_below(&rng, 1000000);
		(void)nanosleep(&t, NULL);
	}
	return 0;
}

static void both_give_up(uint64_t seed, bool tormented)
{
	struct victims *v = child_common(sizeof(*v));
	pid_t tormentor = 0;
	struct rng rng = {seed};
	uint64_t delivered, received = 0;
	int64_t last = -1;
	slmpm_peer peer;
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
	peer = actor_spawn("give up", text, NULL);
	v->pids[0] = getpid();
	v->pids[1] = pid_of(peer);
	if (strchr(getenv("SLMPM_LINKS"), ','))
		links_await();
	if (tormented)
		tormentor = child_start(torment, v, 30 * (unsigned)actor_slow());
	while (slmpm_probe(peer, 2, NULL, 0) == 0)
		received += receive_or_not(peer, &rng, &last);
	EXPECT(slmpm_recv(peer, 2, &delivered, sizeof(delivered), NULL, PATIENCE),
	       sizeof(delivered));
	while (slmpm_probe(peer, 1, NULL, 0) == 1)
		received += receive_or_not(peer, &rng, &last);
	CHECK(delivered == received, "%llu were sent, %llu received", (unsigned long long)delivered,
	      (unsigned long long)received);
	CHECK(actor_stats(peer).violations == 0, "a violation");
	printf("%llu of %d messages came through\n", (unsigned long long)received, TURNS);
	v->spared = true; /* killed, it might leave us stopped */
	if (tormentor)
		EXPECT(child_wait(tormentor), 0);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
}

/* Begins to receive and then computes, calling nothing, for a while. */
static int dawdle(slmpm_peer host, char **words)
{
	static unsigned char all[16 * LARGE];
	struct slmpm_iov iov = {all, sizeof(all)};
	struct slmpm_done done;
	slmpm_req req;
	struct slmpm_stats s = {.received_messages = 0};

	(void)words;
	OK(slmpm_recvv(host, 1, &iov, 1, NULL, &req));
	OK(slmpm_send(host, 2, "go", 2, PATIENCE));
	while (!s.received_messages && !slmpm_test(&req, &done))
		OK(slmpm_peer_stats(host, &s, sizeof(s)));
	nudge_await();
	EXPECT(slmpm_recv(host, 3, all, 2, NULL, PATIENCE), 2);
	return 0;
}

/* Not even a message that is half read makes its sender wait for who does not go on reading. */
static int wait_in_vain(void *unused)
{
	unsigned char *all = calloc(16, LARGE);
	slmpm_peer peer;
	int64_t begin;
	char go[2];
	int rc;

	(void)unused;
	CHECK(all, "no memory");
	peer = actor_spawn("dawdle", NULL, NULL);
	EXPECT(slmpm_recv(peer, 2, go, 2, NULL, PATIENCE), 2);
	begin = actor_now_ms();
	rc = slmpm_send(peer, 1, all, 16 * LARGE, 100);
	CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT, "send: %d (%s)", rc, slmpm_error_detail());
	/* Who waited for it would wait for ever: it is nudged below. */
	CHECK(actor_now_ms() - begin < PATIENCE / 2, "it took %lld ms",
	      (long long)(actor_now_ms() - begin));
	OK(kill(pid_of(peer), NUDGE));
	printf("%s after %lld ms\n", rc ? "given up" : "sent", (long long)(actor_now_ms() - begin));
	OK(slmpm_send(peer, 3, "ok", 2, PATIENCE));
	free(all);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* Who only tries to send is not held up for a receive, where the credit covers the message. */
static int try_without_receive(void *unused)
{
	slmpm_peer a, b;
	slmpm_ctx ctx;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	for (uint64_t i = 0; i < 3; i++) {
		actor_fill(buffer, i, GIVEN);
		OK(slmpm_send(a, 1, buffer, GIVEN, 0));
	}
	for (uint64_t i = 0; i < 3; i++) {
		EXPECT(slmpm_recv(b, 1, buffer, GIVEN, NULL, PATIENCE), GIVEN);
		CHECK(actor_filled(buffer, i, GIVEN), "message %llu", (unsigned long long)i);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int some_give_up(void *eager_max)
{
	CHECK(setenv("SLMPM_EAGER_MAX", eager_max, 1) == 0, "setenv");
	for (uint64_t i = 0; i < 3; i++)
		both_give_up(rng_run_seed(4711) + i, false);
	return 0;
}

static int some_are_stopped(void *eager_max)
{
	CHECK(setenv("SLMPM_EAGER_MAX", eager_max, 1) == 0, "setenv");
	both_give_up(rng_run_seed(42), true);
	return 0;
}

static void set_two_links(const char *usual)
{
	CHECK(setenv("SLMPM_LINKS", "shm,tcp", 1) == 0 && setenv("SLMPM_LINK", usual, 1) == 0 &&
		      setenv("SLMPM_LINKS_AFTER", "0", 1) == 0,
	      "setenv");
}

static int some_go_elsewhere(void *eager_max)
{
	CHECK(setenv("SLMPM_EAGER_MAX", eager_max, 1) == 0, "setenv");
	set_two_links("0");
	both_give_up(rng_run_seed(815), false);
	both_give_up(rng_run_seed(816), true);
	return 0;
}

/* Whose sender leaves while this process stands still. */
static int be_left(slmpm_peer host, char **words)
{
	int64_t got;

	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 4, buffer, GIVEN, NULL, PATIENCE), 5);
	got = slmpm_recv(host, 1, buffer, GIVEN, NULL, PATIENCE);
	CHECK(got == -SLMPM_ECLOSED || got == GIVEN, "receive: %lld (%s)", (long long)got,
	      slmpm_error_detail());
	CHECK(got < 0 || actor_filled(buffer, 0, GIVEN), "a message is not what was sent");
	return 0;
}

/* A close without patience leaves no message to be read out of what is used again. */
static int leave_at_once(void *usual)
{
	struct slmpm_how how = {.size = sizeof(how),
				.flags = SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_ON_LINK(0) | SLMPM_STRICT,
				.timeout_ms = -1};
	struct slmpm_iov iov = {buffer, GIVEN}, aside = {"aside", 5};
	int64_t announced;
	slmpm_peer peer;
	slmpm_req req;
	pid_t pid;

	set_two_links(usual);
	CHECK(setenv("SLMPM_EAGER_MAX", "32k", 1) == 0, "setenv");
	actor_fill(buffer, 0, GIVEN);
	peer = actor_spawn_ready("be left");
	links_await();
	pid = pid_of(peer);
	OK(slmpm_sendv(peer, 1, &iov, 1, &how, &req));
	for (announced = actor_now_ms() + 30; actor_now_ms() < announced;)
		CHECK(slmpm_progress((slmpm_ctx){0}) >= 0, "progress");
	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	how.flags = SLMPM_ON_LINK(1) | SLMPM_STRICT;
	OK(slmpm_sendv(peer, 4, &aside, 1, &how, NULL));
	EXPECT(slmpm_close(peer, 0), -SLMPM_ETIMEOUT);
	memset(buffer, 0xee, GIVEN);
	OK(kill(pid, SIGCONT));
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"give up", give_up}, {"dawdle", dawdle}, {"be left", be_left}, {NULL, NULL}};
	unsigned slow = (unsigned)actor_slow();

	nudge_block();
	actor_begin(argc, argv, roles);
	CHECK(setenv("SLMPM_ATTACH", "y", 1) == 0 && setenv("SLMPM_FETCH", "always", 1) == 0 &&
		      setenv("SLMPM_FETCH_MIN", "20k", 1) == 0,
	      "setenv");
	settings_one_link("shm");
	CHECK(child_run(wait_in_vain, NULL, 30) == 0, "see above");
	CHECK(child_run(try_without_receive, NULL, 10) == 0, "see above");
	CHECK(child_run(some_give_up, "256k", 30) == 0, "see above");
	CHECK(child_run(some_give_up, "32k", 30) == 0, "see above");
	CHECK(child_run(some_go_elsewhere, "256k", 30 * slow) == 0, "see above");
	CHECK(child_run(some_go_elsewhere, "32k", 30 * slow) == 0, "see above");
	CHECK(child_run(leave_at_once, "0", 30) == 0, "see above");
	CHECK(child_run(leave_at_once, "1", 30) == 0, "see above");
	CHECK(child_run(some_are_stopped, "256k", 30 * slow) == 0, "see above");
	CHECK(child_run(some_are_stopped, "32k", 30 * slow) == 0, "see above");
	return 0;
}
