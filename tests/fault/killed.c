/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* timeout: 60 */
/*
 * One side is killed while it does something, as accelerator and as host. The other gets what had
 * been committed, then the definite error within a tenth of a second, and all its resources back.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/settings.h"

#define LONG_MESSAGE ((size_t)4 << 20)
#define HALFWAY      ((size_t)3 << 19)

struct scene {
	const char *name;
	void (*victim)(slmpm_peer survivor);
	void (*survivor)(slmpm_ctx ctx, slmpm_peer victim);
};

static unsigned char buffer[LONG_MESSAGE];

static void expect_message(slmpm_peer peer, size_t n)
{
	memset(buffer, 0, n);
	EXPECT(slmpm_recv(peer, SLMPM_ANY_STREAM, buffer, sizeof(buffer), NULL, PATIENCE), n);
	CHECK(actor_filled(buffer, n, n), "a message of %zu bytes is damaged", n);
}

static int send_filled(slmpm_peer peer, size_t n)
{
	actor_fill(buffer, n, n);
	return slmpm_send(peer, 1, buffer, n, PATIENCE);
}

static int64_t receive_end(slmpm_peer peer)
{
	return slmpm_recv(peer, SLMPM_ANY_STREAM, buffer, sizeof(buffer), NULL, PATIENCE);
}

/* ---- idle ---- */

static void sleep_in_recv(slmpm_peer peer)
{
	(void)slmpm_recv(peer, 1, buffer, 1, NULL, -1);
}

static void await_in_recv(slmpm_ctx ctx, slmpm_peer peer)
{
	struct killer k = death_when_asleep(pid_of(peer));

	(void)ctx;
	EXPECT(slmpm_recv(peer, 1, buffer, 1, NULL, -1), -SLMPM_EDEAD);
	death_in_time(&k);
}

static void await_in_probe(slmpm_ctx ctx, slmpm_peer peer)
{
	struct killer k = death_when_asleep(pid_of(peer));
	struct slmpm_done done;

	(void)ctx;
	EXPECT(slmpm_probe(peer, 1, &done, -1), -SLMPM_EDEAD);
	death_in_time(&k);
}

static void await_request(slmpm_ctx ctx, slmpm_peer peer)
{
	struct slmpm_iov iov = {buffer, sizeof(buffer)};
	slmpm_req request;
	struct slmpm_done done;
	struct killer k;

	(void)ctx;
	OK(slmpm_recvv(peer, 1, &iov, 1, NULL, &request));
	k = death_when_asleep(pid_of(peer));
	EXPECT(slmpm_wait(&request, 1, &done, -1), 0);
	CHECK(done.status == -SLMPM_EDEAD && done.peer.id == peer.id, "status %d", done.status);
	death_in_time(&k);
}

static void await_readable(slmpm_ctx ctx, slmpm_peer peer)
{
	struct killer k = death_when_asleep(pid_of(peer));
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_UP};
	struct pollfd p = {.fd = slmpm_fd(ctx), .events = POLLIN};

	while (info.state != SLMPM_PEER_DEAD) {
		if (slmpm_arm(ctx) == 0)
			CHECK(poll(&p, 1, PATIENCE) == 1, "the descriptor slept through it");
		while (slmpm_progress(ctx) > 0)
			;
		OK(slmpm_peer_query(peer, &info));
	}
	death_in_time(&k);
}

/* ---- in the middle of sending ---- */

static void die_sending(slmpm_peer peer)
{
	for (size_t n = 1; n <= 300; n += 100)
		OK(send_filled(peer, n));
	(void)slmpm_send(peer, 1, death_trap(LONG_MESSAGE, HALFWAY), LONG_MESSAGE, -1);
}

static void lose_half_message(slmpm_ctx ctx, slmpm_peer peer)
{
	(void)ctx;
	for (size_t n = 1; n <= 300; n += 100)
		expect_message(peer, n);
	EXPECT(receive_end(peer), -SLMPM_EDEAD);
}

/* Two that mix: a second thread of the conversation is whole or not there. */
static void die_sending_two(slmpm_peer peer)
{
	struct slmpm_iov iov = {death_trap(LONG_MESSAGE, HALFWAY), LONG_MESSAGE};
	slmpm_req request;

	OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &request));
	OK(send_filled(peer, 77));
	(void)slmpm_wait(&request, 1, NULL, -1);
}

static void get_whole_one(slmpm_ctx ctx, slmpm_peer peer)
{
	struct slmpm_iov iov = {buffer + 4096, sizeof(buffer) - 4096};
	slmpm_req request;
	struct slmpm_done done;

	(void)ctx;
	OK(slmpm_recvv(peer, SLMPM_ANY_STREAM, &iov, 1, NULL, &request));
	EXPECT(slmpm_recv(peer, SLMPM_ANY_STREAM, buffer, 77, NULL, PATIENCE), 77);
	CHECK(actor_filled(buffer, 77, 77), "the short message is damaged");
	EXPECT(slmpm_wait(&request, 1, &done, PATIENCE), 0);
	CHECK(done.status == -SLMPM_EDEAD, "the half message: status %d", done.status);
}

static void announce_only(slmpm_peer peer)
{
	(void)slmpm_send(peer, 1, buffer, sizeof(buffer), -1);
}

static void find_announcement_gone(slmpm_ctx ctx, slmpm_peer peer)
{
	struct slmpm_done done;
	struct killer k;

	(void)ctx;
	EXPECT(slmpm_probe(peer, 1, &done, PATIENCE), 1);
	k = death_when_asleep(pid_of(peer));
	EXPECT(slmpm_recv(peer, 2, buffer, 1, NULL, -1), -SLMPM_EDEAD);
	death_in_time(&k);
	EXPECT(slmpm_recv(peer, 1, buffer, sizeof(buffer), NULL, 0), -SLMPM_EDEAD);
}

/* ---- in the middle of receiving ---- */

static void die_receiving(slmpm_peer peer)
{
	(void)slmpm_recv(peer, 1, death_trap(LONG_MESSAGE, HALFWAY), LONG_MESSAGE, NULL, -1);
}

static void fail_to_send(slmpm_ctx ctx, slmpm_peer peer)
{
	(void)ctx;
	EXPECT(send_filled(peer, LONG_MESSAGE), -SLMPM_EDEAD);
}

static void never_read(slmpm_peer peer)
{
	(void)peer;
	for (;;)
		(void)poll(NULL, 0, -1);
}

static void find_no_room(slmpm_ctx ctx, slmpm_peer peer)
{
	struct killer k;
	int rc;

	(void)ctx;
	OK(slmpm_send(peer, 1, buffer, 5000, PATIENCE)); /* it is connected */
	while ((rc = slmpm_send(peer, 1, buffer, 5000, 0)) == 0)
		;
	EXPECT(rc, -SLMPM_EAGAIN);
	k = death_when_asleep(pid_of(peer));
	EXPECT(slmpm_send(peer, 1, buffer, 5000, -1), -SLMPM_EDEAD);
	death_in_time(&k);
}

/* ---- committed, but neither counted nor rung for ---- */

static void commit_in_silence(slmpm_peer peer)
{
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE};

	actor_await_state(pid_of(peer), "S");
	for (size_t n = 200; n <= 400; n += 100) { /* too long to be bundled */
		struct slmpm_iov iov = {buffer, n};

		actor_fill(buffer, n, n);
		OK(slmpm_sendv(peer, 1, &iov, 1, &more, NULL));
	}
	death_now();
}

static void find_committed(slmpm_ctx ctx, slmpm_peer peer)
{
	(void)ctx;
	for (size_t n = 200; n <= 400; n += 100)
		expect_message(peer, n);
	EXPECT(receive_end(peer), -SLMPM_EDEAD);
}

/* Short ones of a burst may wait in their sender; what comes is a beginning of it, whole. */
static void die_in_burst(slmpm_peer peer)
{
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE};

	actor_await_state(pid_of(peer), "S");
	for (size_t n = 0; n < 1000; n++) {
		struct slmpm_iov iov = {buffer, 40};

		actor_fill(buffer, n, 40);
		OK(slmpm_sendv(peer, 1, &iov, 1, &more, NULL));
	}
	death_now();
}

static void find_some_of_burst(slmpm_ctx ctx, slmpm_peer peer)
{
	int64_t rc;
	size_t n = 0;

	(void)ctx;
	while ((rc = receive_end(peer)) == 40) {
		CHECK(actor_filled(buffer, n, 40), "message %zu is another", n);
		n++;
	}
	EXPECT(rc, -SLMPM_EDEAD);
	CHECK(n > 500, "only %zu of 1000 came", n);
}

/* ---- loans ---- */

static void die_with_loans(slmpm_peer peer)
{
	struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART};
	void *area, *at;

	OK(slmpm_loan(peer, 1, LONG_MESSAGE, &area, PATIENCE));
	actor_fill(area, LONG_MESSAGE, LONG_MESSAGE / 2);
	OK(slmpm_commit(peer, area, LONG_MESSAGE / 2, NULL));
	OK(slmpm_loan(peer, 2, LONG_MESSAGE, &area, PATIENCE));
	actor_fill(area, 3, 1000);
	OK(slmpm_commit(peer, area, 1000, &part));
	EXPECT(slmpm_hold(peer, 1, (const void **)&at, NULL, PATIENCE), 5);
	death_now();
}

static void hold_growing(slmpm_ctx ctx, slmpm_peer peer)
{
	const void *whole, *part;
	struct slmpm_done done;

	(void)ctx;
	EXPECT(slmpm_hold(peer, 1, &whole, &done, PATIENCE), LONG_MESSAGE / 2);
	CHECK(done.flags == 0, "half the loan was the whole message");
	EXPECT(slmpm_hold(peer, 2, &part, &done, PATIENCE), 1000);
	CHECK(done.flags == SLMPM_PART, "the loan has an end");
	OK(slmpm_send(peer, 1, "hello", 5, PATIENCE));
	EXPECT(slmpm_more(peer, part, 1000, &done, PATIENCE), -SLMPM_EDEAD);
	CHECK(actor_filled(part, 3, 1000), "the part that came is damaged");
	CHECK(actor_filled(whole, LONG_MESSAGE, LONG_MESSAGE / 2), "the message is damaged");
	OK(slmpm_release(peer, part));
	OK(slmpm_release(peer, whole));
	EXPECT(slmpm_release(peer, whole), -SLMPM_ESTATE);
}

static void die_with_open_loan(slmpm_peer peer)
{
	void *at;

	OK(send_filled(peer, 50));
	OK(slmpm_loan(peer, 1, 1000, &at, PATIENCE));
	memset(at, 0xff, 1000); /* in the survivor's ring */
	death_now();
}

static void never_see_open_loan(slmpm_ctx ctx, slmpm_peer peer)
{
	(void)ctx;
	expect_message(peer, 50);
	EXPECT(receive_end(peer), -SLMPM_EDEAD);
}

/* The survivor has loans open and messages held. */
static void feed_and_wait(slmpm_peer peer)
{
	OK(send_filled(peer, LONG_MESSAGE));
	OK(send_filled(peer, 1000));
	sleep_in_recv(peer);
}

static void lend_to_the_dead(slmpm_ctx ctx, slmpm_peer peer)
{
	const void *one, *two;
	struct killer k;
	void *loan;

	(void)ctx;
	EXPECT(slmpm_hold(peer, 1, &two, NULL, PATIENCE), LONG_MESSAGE);
	EXPECT(slmpm_hold(peer, 1, &one, NULL, PATIENCE), 1000);
	OK(slmpm_loan(peer, 2, LONG_MESSAGE, &loan, PATIENCE));
	k = death_when_asleep(pid_of(peer));
	EXPECT(slmpm_recv(peer, 1, buffer, 1, NULL, -1), -SLMPM_EDEAD);
	death_in_time(&k);
	actor_fill(loan, 1, LONG_MESSAGE); /* its memory is still ours */
	EXPECT(slmpm_commit(peer, loan, LONG_MESSAGE, NULL), -SLMPM_EDEAD);
	CHECK(actor_filled(one, 1000, 1000) && actor_filled(two, LONG_MESSAGE, LONG_MESSAGE),
	      "a held message changed");
	OK(slmpm_release(peer, two)); /* and ONE goes with the peer */
}

static const struct scene scenes[] = {
	{"idle, the other in recv", sleep_in_recv, await_in_recv},
	{"idle, the other in probe", sleep_in_recv, await_in_probe},
	{"idle, the other in wait", sleep_in_recv, await_request},
	{"idle, the other in poll", sleep_in_recv, await_readable},
	{"sending a long message", die_sending, lose_half_message},
	{"sending a long and a short one", die_sending_two, get_whole_one},
	{"announced, not begun", announce_only, find_announcement_gone},
	{"receiving a long message", die_receiving, fail_to_send},
	{"not reading, no room left", never_read, find_no_room},
	{"committed in silence", commit_in_silence, find_committed},
	{"in the middle of a burst", die_in_burst, find_some_of_burst},
	{"lending", die_with_loans, hold_growing},
	{"building in place", die_with_open_loan, never_see_open_loan},
	{"lent to", feed_and_wait, lend_to_the_dead},
};
#define SCENES (sizeof(scenes) / sizeof(*scenes))

/* ---- both ways round ---- */

static int play_victim(slmpm_peer host, char **words)
{
	alarm(60); /* should this test itself be killed */
	scenes[atoi(words[0])].victim(host);
	return 3; /* it should be dead */
}

static int play_survivor(slmpm_peer host, char **words)
{
	struct holdings before = holdings_now();
	slmpm_ctx ctx;

	OK(slmpm_parent(&host));
	OK(slmpm_default(&ctx));
	scenes[atoi(words[0])].survivor(ctx, host);
	death_expect(ctx, host, SLMPM_EVENT_DEAD, SLMPM_EDEAD, "process ended");
	OK(slmpm_close(host, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	before.descriptors--; /* the inherited connection */
	holdings_expect(before, "accelerator");
	return 0;
}

static void kill_accelerator(int i)
{
	struct slmpm_spawn_options options = {.size = sizeof(options)};
	struct holdings before, open;
	char number[16];
	slmpm_peer peer;
	slmpm_ctx ctx;

	snprintf(number, sizeof(number), "%d", i);
	before = holdings_now();
	OK(slmpm_open(&ctx, NULL));
	(void)slmpm_fd(ctx); /* with its timer, which stays */
	open = holdings_now();
	options.ctx = ctx;
	peer = actor_spawn_with(&options, "victim", number, NULL);
	scenes[i].survivor(ctx, peer);
	death_expect(ctx, peer, SLMPM_EVENT_DEAD, SLMPM_EDEAD, "killed by signal 9");
	OK(slmpm_close(peer, PATIENCE));
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	EXPECT(slmpm_send(peer, 1, "x", 1, 0), -SLMPM_EHANDLE);
	holdings_expect(open, "host");
	OK(slmpm_shut(ctx, PATIENCE));
	holdings_expect(before, "host, shut");
}

static int play_host(void *arg)
{
	struct slmpm_event up = {.size = sizeof(up)};
	slmpm_ctx ctx = {0};
	int i = *(int *)arg;
	char number[16];
	slmpm_peer peer;

	snprintf(number, sizeof(number), "%d", i);
	peer = actor_spawn("-survivor", number, NULL);
	EXPECT(slmpm_next_event(ctx, &up, PATIENCE), 1);
	scenes[i].victim(peer);
	return 3;
}

/* The orphan is ours: this process adopts it. */
static void kill_host(int i)
{
	pid_t host = child_start(play_host, &i, 60), other;
	int status, orphan = -1;

	CHECK(child_wait(host) == -SIGKILL, "the host is not dead");
	other = wait(&status);
	if (other > 0)
		orphan = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	CHECK(orphan == 0, "%s: the accelerator ended with %d", scenes[i].name, orphan);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"victim", play_victim}, {"-survivor", play_survivor}, {NULL, NULL}};

	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "orphans cannot be adopted");
	for (int i = 0; i < (int)SCENES; i++) {
		int64_t begin = actor_now_ms();

		kill_host(i);
		kill_accelerator(i);
		printf("%-36s %5lld ms\n", scenes[i].name, (long long)(actor_now_ms() - begin));
		fflush(stdout);
	}
	return 0;
}
