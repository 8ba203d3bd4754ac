/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 240 */
/*
 * Sockets that take a part of a message and then no more, for nobody reads: that a message has left is told, to
 * a counter or by the return of a send, when it has, neither before nor when what was sent after it has.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define LITTLE 8192  /* bytes that a socket keeps */
#define LENGTH 16000 /* of a message */
#define MOST   200
#define LATER  50  /* messages, more than two sockets keep */
#define STILL  200 /* ms without a message: the sender waits */
#define SHORT  50  /* ms */

static struct shared {
	_Atomic int listening, accepted, may_read, returned;
	_Atomic uint64_t begun, told;
} * shared;

static char url[64];
static slmpm_ctr later;
static unsigned char data[LENGTH];

/* In place of the C library's. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	static const int little = LITTLE;

	if (level == IPPROTO_TCP && name == TCP_NODELAY) {
		(void)syscall(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDBUF, &little,
			      sizeof(little));
		(void)syscall(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVBUF, &little,
			      sizeof(little));
	}
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}

static void await(_Atomic int *flag)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	while (!*flag) {
		CHECK(actor_now_ms() < until, "nobody is there");
		(void)sched_yield();
	}
}

static int start(slmpm_peer peer, slmpm_ctr ctr)
{
	struct slmpm_how how = {.size = sizeof(how), .ctr = ctr};
	struct slmpm_iov piece = {data, sizeof(data)};

	return slmpm_sendv(peer, 1, &piece, 1, &how, NULL);
}

static uint64_t under_way(slmpm_ctr ctr)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(ctr, &info));
	return info.posted - info.done;
}

static slmpm_peer call_reader(void)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;

	await(&shared->listening);
	OK(slmpm_connect(&peer, none, url, PATIENCE));
	await(&shared->accepted);
	return peer;
}

/* ---- told to a counter ----------------------------------------------------------------------- */

static int count(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_peer peer = call_reader();
	slmpm_ctr ctr;
	int rc = 0;

	(void)arg;
	OK(slmpm_ctr_create(none, &ctr));
	for (int n = 0; n < MOST && !rc; n++) {
		OK(start(peer, ctr));
		rc = slmpm_ctr_wait(ctr, SLMPM_ALL, SHORT);
		CHECK(rc || !under_way(ctr), "message %d is said to be done, and is not", n);
	}
	EXPECT(rc, -SLMPM_ETIMEOUT);
	shared->may_read = 1;
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	EXPECT(under_way(ctr), 0);
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static int read_all(slmpm_peer peer)
{
	int64_t rc;

	while ((rc = slmpm_recv(peer, 1, data, sizeof(data), NULL, PATIENCE)) == sizeof(data))
		;
	EXPECT(rc, -SLMPM_ECLOSED);
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static int read_later(slmpm_peer peer)
{
	await(&shared->may_read);
	return read_all(peer);
}

/* ---- and what is sent after it ----------------------------------------------------------------- */

static void send_more(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	for (int i = 0; i < LATER; i++)
		OK(start(am->peer, later));
	shared->told = shared->begun;
	shared->may_read = 1;
}

static int wait_for_one(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_peer peer = call_reader();

	(void)arg;
	OK(slmpm_ctr_create(none, &later));
	OK(slmpm_am_handler(none, 1, send_more, NULL));
	while (!shared->may_read) {
		CHECK(shared->begun < MOST, "it is never full");
		shared->begun++;
		OK(slmpm_send(peer, 1, data, sizeof(data), PATIENCE));
	}
	CHECK(under_way(later), "it waited for what was sent after it");
	shared->returned = 1;
	OK(slmpm_ctr_wait(later, SLMPM_ALL, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

/* That one, and no more until its send has returned. */
static int read_that_one(slmpm_peer peer)
{
	uint64_t begun = 0;
	int64_t since = actor_now_ms();

	while (!begun || actor_now_ms() - since < STILL * actor_slow()) {
		if (shared->begun != begun)
			since = actor_now_ms();
		begun = shared->begun;
		(void)sched_yield();
	}
	OK(slmpm_am(peer, 1, NULL, 0, "", 1, NULL, NULL));
	await(&shared->may_read);
	for (uint64_t i = 0; i < shared->told; i++)
		EXPECT(slmpm_recv(peer, 1, data, sizeof(data), NULL, PATIENCE), sizeof(data));
	await(&shared->returned);
	return read_all(peer);
}

/* ---- both sides -------------------------------------------------------------------------------- */

static const struct {
	int (*sends)(void *arg), (*reads)(slmpm_peer peer);
} trials[] = {{count, read_later}, {wait_for_one, read_that_one}};

static int both(void *arg)
{
	const size_t *i = arg;
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = child_start(trials[*i].sends, NULL, 60);
	OK(slmpm_listen(&listener, none, url));
	shared->listening = 1;
	OK(slmpm_accept(listener, &peer, PATIENCE));
	shared->accepted = 1;
	OK(trials[*i].reads(peer));
	OK(slmpm_unlisten(listener));
	EXPECT(child_wait(pid), 0);
	return 0;
}

int main(void)
{
	shared = child_common(sizeof(*shared));
	snprintf(url, sizeof(url), "shm:lags-%d", (int)getpid());
	settings_set("SLMPM_FABRIC", "tcp");
	for (int links = 1; links <= 2; links++) {
		settings_set("SLMPM_LINKS", links == 1 ? "1" : "2");
		for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
			CHECK(!child_run(both, &i, 30 * (unsigned)actor_slow()), "%d links, %zu",
			      links, i);
	}
	return 0;
}
