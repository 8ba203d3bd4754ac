/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * Puts and gets that are left to the peer's engine, and end otherwise: a peer that does not come,
 * stops, or dies amidst it; a region that is taken back meanwhile; a request that is cancelled.
 */
#include "tests/api/ask.h"

#include <signal.h>
#include <sys/wait.h>

/* While a message is being built in the ring nothing is said behind it: an operation that nobody
 * comes for is taken back when that has been sent. */
static void beside_a_loan(void)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	struct order o = {READY, 0};
	int64_t until;
	slmpm_req req;
	void *at;

	actor_fill(bytes, 2, SIZE);
	EXPECT(order(BUSY, 1500), BUSY);
	OK(slmpm_put(rmem, 0, bytes, SIZE, &how, &req));
	OK(slmpm_loan(peer, 2, sizeof(o), &at, 0));
	for (until = actor_now_ms() + 100; actor_now_ms() < until;)
		(void)slmpm_progress(ctx);
	memcpy(at, &o, sizeof(o));
	OK(slmpm_commit(peer, at, sizeof(o), NULL));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	EXPECT(slmpm_recv(peer, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
	EXPECT(o.word, READY);
	EXPECT(order(CHECK_FIRST, 2), READY);
}

/* Computes outside of the library: the caller copies, soon; and asks again when it is back. */
static int absent(void *arg)
{
	int64_t began;

	meet(arg);
	if (open_regions()) {
		actor_fill(bytes, 1, SIZE);
		EXPECT(order(BUSY, 1500), BUSY);
		began = actor_now_ms();
		operate(true, bytes, SIZE, true);
		EXPECT(last_reason(SLMPM_BY_PUT), SLMPM_REASON_ABSENT);
		operate(false, bytes, SIZE, false);
		EXPECT(last_reason(SLMPM_BY_GET), SLMPM_REASON_ABSENT);
		CHECK(actor_now_ms() - began < 1000, "it waited");
		EXPECT(order(CHECK_FIRST, 1), READY);
		beside_a_loan();
		both_ways(bytes, 5, true, SLMPM_REASON_ENGINE);
	}
	part(arg);
	return 0;
}

static int pid_of(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

/* Stopped at any moment: each call ends near its deadline, and says what of it; when it goes on,
 * all works. */
static int stopped(void *arg)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 200};
	unsigned char *from;
	int pid;

	meet(arg);
	if (!open_regions()) {
		part(arg);
		return 0;
	}
	from = malloc(LONG);
	CHECK(from, "no memory");
	memset(from, 1, LONG);
	pid = pid_of();
	for (int i = 0; i < 6; i++) {
		int64_t began;
		pid_t stopper;
		int rc;

		stopper = fork();
		if (!stopper) {
			usleep((useconds_t)i * 1500);
			kill(pid, SIGSTOP);
			_exit(0);
		}
		began = actor_now_ms();
		rc = i % 2 ? slmpm_get(rmem, 0, from, LONG, &how, NULL) :
			     slmpm_put(rmem, 0, from, LONG, &how, NULL);
		CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EBUSY, "%d: %s", rc,
		      slmpm_error_detail());
		CHECK(actor_now_ms() - began < 3000 * actor_slow(), "%lld ms",
		      (long long)(actor_now_ms() - began));
		CHECK(waitpid(stopper, NULL, 0) == stopper, "the stopper");
		kill(pid, SIGCONT);
		EXPECT(order(READY, 0), READY);
	}
	free(from);
	both_ways(bytes, 40, true, SLMPM_REASON_ENGINE);
	part(arg);
	return 0;
}

/* Killed at any moment: an error at once. */
static int killed(void *arg)
{
	struct cell c = *(const struct cell *)arg;
	unsigned char *from = malloc(LONG);

	CHECK(from, "no memory");
	memset(from, 1, LONG);
	for (int i = 0; i < 8; i++) {
		slmpm_req req = {0};
		struct slmpm_done done = {.status = 1};
		int rc, pid;

		meet(&c);
		if (!open_regions()) {
			part(&c);
			break;
		}
		pid = pid_of();
		if (i % 2) {
			OK(slmpm_get(rmem, 0, from, LONG, NULL, &req));
			usleep((useconds_t)i * 500);
			kill(pid, SIGKILL);
			EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
			rc = done.status;
		} else {
			pid_t killer = fork();

			if (!killer) {
				usleep((useconds_t)i * 700);
				kill(pid, SIGKILL);
				_exit(0);
			}
			rc = slmpm_put(rmem, 0, from, LONG, NULL, NULL);
			CHECK(waitpid(killer, NULL, 0) == killer, "the killer");
		}
		CHECK(rc == 0 || rc == -SLMPM_EDEAD, "%d: %s", rc, slmpm_error_detail());
		(void)slmpm_join(peer, NULL, PATIENCE);
		OK(slmpm_shut(ctx, PATIENCE));
	}
	free(from);
	return 0;
}

/* Taken back amidst it: nothing of it is written once the owner has it back. */
static int revoked(void *arg)
{
	unsigned char *from = malloc(LONG);
	struct slmpm_done done = {.status = 1};
	slmpm_req req = {0};

	CHECK(from, "no memory");
	memset(from, 1, LONG);
	meet(arg);
	if (open_regions()) {
		struct order o = {REVOKE, 0};

		OK(slmpm_put(rmem, 0, from, LONG, NULL, &req));
		OK(slmpm_send(peer, 2, &o, sizeof(o), PATIENCE));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == 0 || done.status == -SLMPM_EACCES, "status %d", done.status);
		EXPECT(slmpm_recv(peer, 2, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
		REFUSED(slmpm_put(rmem, 0, from, LONG, NULL, NULL), SLMPM_EACCES, "back");
	}
	free(from);
	part(arg);
	return 0;
}

/* A cancelled one leaves the memory alone; so does one whose peer is closed. */
static int cancelled(void *arg)
{
	meet(arg);
	if (open_regions())
		for (int i = 0; i < 40 / actor_slow(); i++) {
			unsigned char *gone = malloc(LONG);
			struct slmpm_done done = {.status = 1};
			slmpm_req req[2];
			int rc;

			CHECK(gone, "no memory");
			OK(slmpm_get(rmem, 0, gone, LONG, NULL, &req[0]));
			OK(slmpm_put(rmem, 0, gone, SIZE, NULL, &req[1]));
			usleep((useconds_t)i * 50);
			rc = slmpm_cancel(req[0]);
			CHECK(rc == 0 || rc == -SLMPM_EBUSY, "cancel: %d", rc);
			EXPECT(slmpm_wait(&req[0], 1, &done, PATIENCE), 0);
			CHECK(done.status == (rc ? 0 : -SLMPM_ECANCELED), "ended with %d",
			      done.status);
			EXPECT(slmpm_wait(&req[1], 1, &done, PATIENCE), 0);
			CHECK(done.status == 0, "the other one ended with %d", done.status);
			free(gone);
		}
	part(arg);
	return 0;
}

static const struct cell spawned = {"an engine there", false, true, false, true};
static const struct cell connected = {"an engine there, connected", false, true, true, true};

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"own", own_spawned}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_one_link(NULL);
	run("a peer that computes", absent, &spawned);
	run("a peer that computes, connected", absent, &connected);
	run("a stopped peer", stopped, &spawned);
	run("a peer that dies", killed, &spawned);
	run("a region that is taken back", revoked, &spawned);
	run("cancelled", cancelled, &spawned);
	return 0;
}
