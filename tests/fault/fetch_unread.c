/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Calls with a deadline whose message is fetched, while the peer, which is stopped, does not read
 * what went by another link: they end, and what is to be of the message is settled when the peer
 * goes on.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/links.h"

#define LENGTH ((size_t)12 << 20)
#define ALONE  ((size_t)16 << 10) /* so short that the receiver reads it alone */
#define SHORT  300 /* messages: more than are taken in before the receiver begins to read */
#define SOON   100 /* ms */

static unsigned char bytes[LENGTH], again[LENGTH];
static slmpm_req aside;
static int asides;

static struct slmpm_how by(int link, int timeout_ms)
{
	return (struct slmpm_how){
		.size = sizeof(struct slmpm_how),
		.flags = SLMPM_ON_LINK(link) | SLMPM_STRICT | (link ? 0 : SLMPM_VIA(SLMPM_BY_RGET)),
		.timeout_ms = timeout_ms,
	};
}

/* Runs within the call that is tested: what is said of fetching waits for this from then on. */
static void go_aside(const struct slmpm_am *am, void *unused)
{
	struct slmpm_how how = by(1, 0);
	struct slmpm_iov iov = {"aside", 5};

	(void)unused;
	OK(slmpm_sendv(am->peer, 4, &iov, 1, &how, &aside));
	asides++;
}

/* The call that is now made ends in time, with RC, although it can neither be taken back nor be
 * done. */
static void expect_busy(int64_t begin, int64_t rc)
{
	int64_t took = actor_now_ms() - begin;

	CHECK(asides == 1, "nothing went by the other link meanwhile");
	CHECK(rc == -SLMPM_EBUSY, "%lld (%s)", (long long)rc, slmpm_error_detail());
	CHECK(took < 1000 + 10 * SOON * actor_slow(), "it took %lld ms", (long long)took);
}

/* Announces, or not, and stands still. */
static int stop(slmpm_peer host, char **words)
{
	struct slmpm_how how = by(0, PATIENCE);
	struct slmpm_iov iov = {bytes, LENGTH};
	bool sends = strcmp(words[0], "sender") == 0;
	slmpm_req req;

	OK(prctl(PR_SET_PDEATHSIG, SIGKILL)); /* a test that fails leaves none behind */
	links_await();
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 2, again, 2, NULL, PATIENCE), 2);
	if (sends) {
		actor_fill(bytes, 1, LENGTH);
		OK(slmpm_sendv(host, 1, &iov, 1, &how, &req));
		for (int i = 0; i < SHORT; i++)
			OK(slmpm_send(host, 5, &i, sizeof(i), PATIENCE));
	}
	OK(slmpm_am(host, 1, NULL, 0, NULL, 0, NULL, NULL));
	OK(kill(getpid(), SIGSTOP));
	EXPECT(slmpm_recv(host, 4, again, 5, NULL, PATIENCE), 5);
	if (sends) {
		OK(slmpm_wait(&req, 1, NULL, PATIENCE));
		return 0;
	}
	/* What was given up comes whole or not; what follows comes. */
	do
		EXPECT(slmpm_recv(host, 1, again, LENGTH, NULL, PATIENCE), LENGTH);
	while (actor_filled(again, 1, LENGTH));
	CHECK(actor_filled(again, 2, LENGTH), "a message is torn");
	return 0;
}

/* A message that needs no word of the receiver's before its end. */
static int send_short(slmpm_peer host, char **words)
{
	struct slmpm_how how = {
		.size = sizeof(how),
		.flags = SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_STRICT,
		.timeout_ms = PATIENCE,
	};
	struct slmpm_iov iov = {bytes, ALONE};

	(void)words;
	links_await();
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 2, again, 2, NULL, PATIENCE), 2);
	actor_fill(bytes, 1, ALONE);
	OK(slmpm_sendv(host, 1, &iov, 1, &how, NULL));
	return 0;
}

static slmpm_peer stopped(const char *role)
{
	slmpm_peer peer;

	peer = actor_spawn("stop", role, NULL);
	OK(slmpm_am_handler((slmpm_ctx){0}, 1, go_aside, NULL));
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	links_await();
	OK(slmpm_send(peer, 2, "go", 2, PATIENCE));
	actor_await_state(pid_of(peer), "T");
	return peer;
}

static void go_on(slmpm_peer peer)
{
	OK(kill(pid_of(peer), SIGCONT));
}

static void part(slmpm_peer peer)
{
	CHECK(actor_stats(peer).violations == 0, "a violation");
	actor_join(peer, 0);
}

static int give_up_sending(void *unused)
{
	slmpm_peer peer = stopped("receiver");
	struct slmpm_how how = by(0, SOON);
	struct slmpm_iov iov = {bytes, LENGTH};
	int64_t begin = actor_now_ms();

	(void)unused;
	actor_fill(bytes, 1, LENGTH);
	actor_fill(again, 2, LENGTH);
	expect_busy(begin, slmpm_sendv(peer, 1, &iov, 1, &how, NULL));
	go_on(peer);
	OK(slmpm_send(peer, 1, again, LENGTH, PATIENCE));
	part(peer);
	return 0;
}

static int give_up_receiving(void *unused)
{
	slmpm_peer peer = stopped("sender");
	int64_t begin = actor_now_ms();

	(void)unused;
	expect_busy(begin, slmpm_recv(peer, 1, bytes, LENGTH, NULL, SOON));
	go_on(peer);
	EXPECT(slmpm_recv(peer, 1, again, LENGTH, NULL, PATIENCE), LENGTH);
	CHECK(actor_filled(again, 1, LENGTH), "a message is torn");
	part(peer);
	return 0;
}

/* Its receiver has sent by the other link last: that end is said all the same. */
static int receive_short(void *unused)
{
	struct slmpm_how how = by(1, PATIENCE);
	struct slmpm_iov iov = {"go", 2};
	slmpm_peer peer = actor_spawn("short", NULL, NULL);

	(void)unused;
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	links_await();
	OK(slmpm_sendv(peer, 2, &iov, 1, &how, NULL));
	EXPECT(slmpm_recv(peer, 1, bytes, ALONE, NULL, PATIENCE), ALONE);
	CHECK(actor_filled(bytes, 1, ALONE), "a message is torn");
	part(peer);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"stop", stop}, {"short", send_short}, {NULL, NULL}};
	pid_t sends, receives, is_short;

	actor_begin(argc, argv, roles);
	setenv("SLMPM_FABRIC", "shm", 1);
	setenv("SLMPM_LINKS", "shm,tcp", 1);
	setenv("SLMPM_LINK", "0", 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	setenv("SLMPM_ATTACH", "y", 1);
	setenv("SLMPM_FETCH", "always", 1);
	sends = child_start(give_up_sending, NULL, 20 * (unsigned)actor_slow());
	receives = child_start(give_up_receiving, NULL, 20 * (unsigned)actor_slow());
	is_short = child_start(receive_short, NULL, 20 * (unsigned)actor_slow());
	CHECK(child_wait(sends) + child_wait(receives) + child_wait(is_short) == 0, "see above");
	return 0;
}
