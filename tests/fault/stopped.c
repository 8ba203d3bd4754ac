/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/*
 * A stopped peer is suspect, never dead: calls end at their deadline and say so, nothing is lost
 * when it goes on, and a listener that is stopped keeps nobody beyond the deadline.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"

#define DEADLINE_MS 150

/* A call ends at its deadline: not before, and not much later. */
#define AT_DEADLINE(call, error, word)                                                             \
	do {                                                                                       \
		int64_t begin_ = actor_now_ms(), took_;                                            \
		REFUSED(call, error, word);                                                        \
		took_ = actor_now_ms() - begin_;                                                   \
		CHECK(took_ >= DEADLINE_MS - 1 && took_ < DEADLINE_MS + 1500 * actor_slow(),       \
		      "%s took %lld ms", #call, (long long)took_);                                 \
	} while (0)

static unsigned char buffer[1 << 20];

/* Numbers come in; those that came, and the sum of the others' bytes, go back at the end. */
static int count(slmpm_peer host, char **words)
{
	uint32_t next = 0;
	int64_t n;

	(void)words;
	alarm(60);
	while ((n = slmpm_recv(host, 1, buffer, sizeof(buffer), NULL, PATIENCE)) > 4) {
		uint32_t number;

		memcpy(&number, buffer, sizeof(number));
		CHECK(number == next, "message %u came as %u", next, number);
		CHECK(actor_filled(buffer + 8, number, (size_t)n - 8), "message %u is damaged",
		      number);
		next++;
	}
	EXPECT(n, 4);
	OK(slmpm_send(host, 2, &next, sizeof(next), PATIENCE));
	EXPECT(slmpm_recv(host, 1, buffer, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static int send_number(slmpm_peer peer, uint32_t number, size_t n)
{
	memset(buffer, 0, 8);
	memcpy(buffer, &number, sizeof(number));
	actor_fill(buffer + 8, number, n - 8);
	return slmpm_send(peer, 1, buffer, n, DEADLINE_MS);
}

static void expect_only(slmpm_ctx ctx, slmpm_peer peer, uint32_t type, int how_many)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_event e = {.size = sizeof(e)};
	int n = 0;

	while (slmpm_next_event(ctx, &e, 0) == 1) {
		CHECK(e.type == type || e.type == SLMPM_EVENT_UP || e.type == SLMPM_EVENT_LINK_UP,
		      "event %u: %s", e.type, e.detail);
		n += e.type == type;
	}
	CHECK(n == how_many, "%d events %u, expected %d", n, type, how_many);
	OK(slmpm_peer_query(peer, &info));
	CHECK(info.state == SLMPM_PEER_UP, "state %u", info.state);
}

static void stop_and_go_on(slmpm_ctx ctx, size_t size)
{
	struct slmpm_spawn_options options = {.size = sizeof(options), .ctx = ctx};
	slmpm_peer peer = actor_spawn_with(&options, "count", NULL, NULL);
	struct slmpm_iov iov = {buffer, 4};
	slmpm_req request;
	uint32_t sent = 0, back;
	int rc;

	OK(send_number(peer, sent++, size));
	expect_only(ctx, peer, SLMPM_EVENT_SUSPECT, 0);
	OK(kill(pid_of(peer), SIGSTOP));
	actor_await_state(pid_of(peer), "T");
	AT_DEADLINE(slmpm_recv(peer, 2, buffer, 8, NULL, DEADLINE_MS), SLMPM_ETIMEOUT, "suspect");
	while ((rc = send_number(peer, sent, size)) == 0)
		sent++;
	EXPECT(rc, -SLMPM_ETIMEOUT);
	AT_DEADLINE(send_number(peer, sent, size), SLMPM_ETIMEOUT, "suspect");
	expect_only(ctx, peer, SLMPM_EVENT_SUSPECT, 1);
	OK(slmpm_recvv(peer, 2, &iov, 1, NULL, &request));
	AT_DEADLINE(slmpm_wait(&request, 1, NULL, DEADLINE_MS), SLMPM_ETIMEOUT, "suspect");
	OK(slmpm_cancel(request));
	EXPECT(slmpm_wait(&request, 1, NULL, 0), 0);

	OK(kill(pid_of(peer), SIGCONT));
	for (int i = 0; i < 50; i++, sent++) {
		while ((rc = send_number(peer, sent, size)) == -SLMPM_ETIMEOUT)
			;
		OK(rc);
	}
	OK(slmpm_send(peer, 1, "stop", 4, PATIENCE));
	EXPECT(slmpm_recv(peer, 2, &back, sizeof(back), NULL, PATIENCE), sizeof(back));
	CHECK(back == sent, "%u of %u messages arrived", back, sent);
	expect_only(ctx, peer, SLMPM_EVENT_SUSPECT, 0);
	OK(slmpm_close(peer, PATIENCE));
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
	printf("%u messages of %zu bytes, all there\n", sent, size);
	while (slmpm_next_event(ctx, &(struct slmpm_event){.size = sizeof(struct slmpm_event)},
				0) == 1)
		;
}

/* Closing and joining end in time as well; and killing still works. */
static void leave_stopped(slmpm_ctx ctx)
{
	struct slmpm_spawn_options options = {.size = sizeof(options), .ctx = ctx};
	struct holdings before = holdings_now();
	slmpm_peer peer = actor_spawn_with(&options, "count", NULL, NULL);

	OK(send_number(peer, 0, 100));
	OK(kill(pid_of(peer), SIGSTOP));
	actor_await_state(pid_of(peer), "T");
	while (send_number(peer, 1, 20000) == 0)
		;
	while (slmpm_send(peer, 1, "full", 4, DEADLINE_MS) == 0)
		; /* to the last segment, or the end of stream would find room */
	AT_DEADLINE(slmpm_close(peer, DEADLINE_MS), SLMPM_ETIMEOUT, "suspect");
	AT_DEADLINE(slmpm_join(peer, NULL, DEADLINE_MS), SLMPM_ETIMEOUT, "still runs");
	OK(slmpm_kill(peer, 0));
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	holdings_expect(before, "a stopped one left");
}

/* ---- a stopped listener ---- */

static char url[64];

static int listen_for_ever(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;
	int64_t n;

	(void)arg;
	OK(slmpm_listen(&listener, none, url));
	while (slmpm_accept(listener, &peer, PATIENCE) == 0) {
		n = slmpm_recv(peer, 1, buffer, 1, NULL, PATIENCE);
		(void)slmpm_close(peer, PATIENCE);
		if (n == 1)
			return 0;
	}
	return 1;
}

static void connect_to_stopped(slmpm_ctx ctx)
{
	struct holdings before;
	slmpm_peer peer;
	pid_t pid;
	int rc;

	snprintf(url, sizeof(url), "shm:stopped-%d", (int)getpid());
	pid = child_start(listen_for_ever, NULL, 50);
	while ((rc = slmpm_connect(&peer, ctx, url, PATIENCE)) == -SLMPM_ENOENT)
		(void)poll(NULL, 0, 1);
	OK(rc);
	OK(slmpm_close(peer, PATIENCE));
	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	before = holdings_now();
	AT_DEADLINE(slmpm_connect(&peer, ctx, url, DEADLINE_MS), SLMPM_ETIMEOUT, "in time");
	for (int i = 0; i < 80; i++) /* its queue is full somewhere on the way */
		REFUSED(slmpm_connect(&peer, ctx, url, 1), SLMPM_ETIMEOUT, "");
	AT_DEADLINE(slmpm_connect(&peer, ctx, url, DEADLINE_MS), SLMPM_ETIMEOUT, "");
	holdings_expect(before, "connecting to a stopped one");
	OK(kill(pid, SIGCONT));
	OK(slmpm_connect(&peer, ctx, url, PATIENCE));
	OK(slmpm_send(peer, 1, "x", 1, PATIENCE));
	CHECK(child_wait(pid) == 0, "the listener did not recover");
	OK(slmpm_close(peer, PATIENCE));
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"count", count}, {NULL, NULL}};
	slmpm_ctx ctx;

	setenv("SLMPM_RING_SEGMENTS", "8192", 1); /* full before the credit is used up */
	actor_begin(argc, argv, roles);
	OK(slmpm_open(&ctx, NULL));
	stop_and_go_on(ctx, 100);
	stop_and_go_on(ctx, 9000);
	stop_and_go_on(ctx, 100000);
	leave_stopped(ctx);
	connect_to_stopped(ctx);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
