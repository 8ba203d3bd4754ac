/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A large message that is fetched does not keep its process from other things: what one call copies
 * of it is bounded, whoever stands still over there, and a receive can be taken back although the
 * ring to its sender is full.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define LARGE ((size_t)96 << 20)
#define STEP  ((size_t)16 << 20) /* more than one call copies */

static pid_t pid_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

static unsigned char *new_buffer(void)
{
	unsigned char *all = malloc(LARGE);

	CHECK(all, "no memory");
	return all;
}

/* ---- the other side: stops, and goes on when it is continued --------------------------------- */

static int receive_later(slmpm_peer host, char **words)
{
	unsigned char *all = new_buffer();
	struct slmpm_iov iov = {all, LARGE};
	struct slmpm_done done;
	slmpm_req req;

	(void)words;
	OK(slmpm_recvv(host, 1, &iov, 1, NULL, &req));
	OK(slmpm_send(host, 2, "go", 2, PATIENCE));
	while (!actor_stats(host).received_messages)
		CHECK(slmpm_test(&req, &done) >= 0, "%s", slmpm_error_detail());
	if (req.id)
		CHECK(slmpm_test(&req, &done) >= 0, "%s", slmpm_error_detail());
	CHECK(raise(SIGSTOP) == 0, "it does not stop");
	if (req.id)
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.len == LARGE && actor_filled(all, 3, LARGE), "other bytes");
	free(all);
	return 0;
}

static int send_later(slmpm_peer host, char **words)
{
	unsigned char *all = new_buffer();
	struct slmpm_iov iov = {all, LARGE};
	struct slmpm_done done;
	slmpm_req req;

	(void)words;
	actor_fill(all, 3, LARGE);
	OK(slmpm_sendv(host, 1, &iov, 1, NULL, &req));
	CHECK(raise(SIGSTOP) == 0, "it does not stop");
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	free(all);
	return 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int write_in_steps(void *unused)
{
	slmpm_peer peer = actor_spawn("receive later", NULL, NULL);
	unsigned char *all = new_buffer();
	struct slmpm_iov iov = {all, LARGE};
	struct slmpm_done done;
	uint64_t before = 0;
	slmpm_ctx ctx;
	slmpm_req req;
	char go[2];

	(void)unused;
	OK(slmpm_default(&ctx));
	actor_fill(all, 3, LARGE);
	EXPECT(slmpm_recv(peer, 2, go, 2, NULL, PATIENCE), 2);
	OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &req));
	actor_await_state((int)pid_of(peer), "T");
	for (int i = 0; i < 20; i++) {
		uint64_t now;

		CHECK(slmpm_progress(ctx) >= 0, "%s", slmpm_error_detail());
		now = actor_stats(peer).push_bytes;
		CHECK(now - before < STEP, "%llu bytes in one call",
		      (unsigned long long)(now - before));
		before = now;
	}
	printf("%llu MiB written\n", (unsigned long long)before >> 20);
	CHECK(kill(pid_of(peer), SIGCONT) == 0, "it has gone");
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	free(all);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* ---- taken back ------------------------------------------------------------------------------ */

static int receive_and_call(slmpm_peer host, char **words)
{
	unsigned char *all = new_buffer();

	(void)words;
	OK(slmpm_send(host, 2, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(host, 1, all, LARGE, NULL, PATIENCE), LARGE);
	OK(slmpm_am(host, 1, NULL, 0, NULL, 0, NULL, NULL));
	CHECK(raise(SIGSTOP) == 0, "it does not stop");
	free(all);
	return 0;
}

struct asked {
	slmpm_req req;
	int test, wait, runs;
};

/* Asks for the end of what is just being cancelled. */
static void ask(const struct slmpm_am *am, void *arg)
{
	struct asked *a = arg;
	slmpm_req req = a->req;
	struct slmpm_done done;

	(void)am;
	a->test = slmpm_test(&req, &done);
	a->wait = slmpm_wait(&req, 1, &done, 0);
	a->runs++;
}

static int end_in_a_handler(void *unused)
{
	unsigned char *all = new_buffer();
	struct slmpm_iov iov = {all, LARGE};
	struct asked a = {.runs = 0};
	struct slmpm_done done;
	slmpm_peer peer;
	slmpm_ctx ctx;

	(void)unused;
	OK(slmpm_default(&ctx));
	OK(slmpm_am_handler(ctx, 1, ask, &a));
	peer = actor_spawn("receive and call", NULL, NULL);
	EXPECT(slmpm_recv(peer, 2, all, 2, NULL, PATIENCE), 2);
	OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &a.req));
	actor_await_state((int)pid_of(peer), "T");
	EXPECT(slmpm_cancel(a.req), -SLMPM_EBUSY);
	CHECK(a.runs == 1, "%d calls of the handler", a.runs);
	EXPECT(a.test, 0);
	CHECK(a.wait < 0, "%d", a.wait);
	EXPECT(slmpm_test(&a.req, &done), 1);
	EXPECT(done.status, 0);
	CHECK(kill(pid_of(peer), SIGCONT) == 0, "it has gone");
	free(all);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Two segments each, and none is read: the ring is full before the credit is used up. The last one
 * waits for room. */
static slmpm_req fill_ring(slmpm_peer peer)
{
	static char some[40];
	struct slmpm_iov iov = {some, sizeof(some)};
	struct slmpm_done done;
	slmpm_req req;
	int n = 0;

	do
		OK(slmpm_sendv(peer, 2, &iov, 1, NULL, &req));
	while (slmpm_test(&req, &done) == 1 && ++n);
	CHECK(n < (int)(message_credit() / (sizeof(some) + 64)), "the credit was used up first");
	return req;
}

static void receive_all(slmpm_peer peer, unsigned char *all)
{
	EXPECT(slmpm_recv(peer, 1, all, LARGE, NULL, PATIENCE), LARGE);
	CHECK(actor_filled(all, 3, LARGE), "other bytes");
}

/* With SUMS this side's words are longer than those that have their room in a full ring. */
static int read_in_steps(void *sums)
{
	unsigned char *all = new_buffer();
	struct slmpm_iov iov = {all, LARGE};
	struct slmpm_done done;
	slmpm_peer peer;
	slmpm_req req, waiting;
	slmpm_ctx ctx;

	CHECK(setenv("SLMPM_CHECK", sums ? "1" : "0", 1) == 0, "setenv");
	OK(slmpm_default(&ctx));
	CHECK(unsetenv("SLMPM_CHECK") == 0, "unsetenv");
	peer = actor_spawn("send later", NULL, NULL);
	EXPECT(slmpm_probe(peer, 1, NULL, PATIENCE), 1);
	actor_await_state((int)pid_of(peer), "T");
	memset(all, 0x55, LARGE);
	OK(slmpm_recvv(peer, 1, &iov, 1, NULL, &req));
	EXPECT(slmpm_test(&req, &done), 0);
	waiting = fill_ring(peer);
	EXPECT(slmpm_test(&req, &done), 0);
	for (size_t at = 4 * STEP; at < LARGE; at++)
		CHECK(all[at] == 0x55, "byte %zu was read in three calls", at);
	if (sums)
		OK(slmpm_cancel(req));
	CHECK(kill(pid_of(peer), SIGCONT) == 0, "it has gone");
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	if (done.status == -SLMPM_ECANCELED)
		receive_all(peer, all);
	else
		CHECK(actor_filled(all, 3, LARGE), "other bytes");
	EXPECT(slmpm_wait(&waiting, 1, &done, PATIENCE), 0);
	free(all);
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"receive later", receive_later},
		{"send later", send_later},
		{"receive and call", receive_and_call},
		{NULL, NULL},
	};

	CHECK(setenv("SLMPM_FETCH", "always", 1) == 0, "setenv");
	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	CHECK(child_run(write_in_steps, NULL, 40) == 0, "writing");
	CHECK(child_run(end_in_a_handler, NULL, 40) == 0, "taking back");
	CHECK(child_run(read_in_steps, NULL, 40) == 0, "reading");
	CHECK(child_run(read_in_steps, "sums", 40) == 0, "reading, with checksums");
	return 0;
}
