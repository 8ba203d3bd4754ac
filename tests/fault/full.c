/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 240 */
/*
 * Who sends to a reader that does not read, until nothing fits any more, and is killed: what a send
 * or a commit has returned for arrives, and nothing behind it. Over shared memory and over TCP, by
 * one link and by two. A socket takes part of a message now and then: one that returns at its
 * deadline, and not before, has perhaps been taken so.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define MOST   30000 /* more than any ring and credit hold */
#define LATE   200   /* ms, of a socket that is full */
#define LITTLE 8192  /* bytes that a socket keeps, so that it is full before the ring */

enum { PLAIN, GATHERED, CALLED, LENT, MANNERS };
static const char *const manners[] = {"plain", "gathered", "called", "lent"};

static struct shared {
	_Atomic int listening, accepted;
	_Atomic uint64_t sent;
	_Atomic bool late; /* and perhaps one more */
} * shared;

static char url[64];
static bool network;

/* In place of the C library's: sockets that hold little of what they have not sent. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	static const int little = LITTLE;

	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		(void)syscall(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDBUF, &little,
			      sizeof(little));
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}

static size_t length_of(uint64_t i, size_t most)
{
	size_t n = i * 977 % 700;

	return n < most ? n : most;
}

/* What is lent fits a packet over TCP, else it is copied behind the back of its commit: "Known gaps" in
 * doc/reliability.md. */
static size_t longest(slmpm_peer peer, int manner)
{
	size_t most = message_eager(peer), packet = message_packet(peer);

	if (manner == LENT && network && packet < most)
		most = packet;
	return most < 700 ? most : 700;
}

static void await(_Atomic int *flag)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	while (!*flag) {
		CHECK(actor_now_ms() < until, "nobody is there");
		usleep(500);
	}
}

/* ---- who sends ------------------------------------------------------------------------------- */

static int lend(slmpm_peer peer, uint64_t i, size_t n)
{
	struct slmpm_how how = {
		.size = sizeof(how),
		.imm = message_imm(i),
		.timeout_ms = network ? LATE : 0,
	};
	void *loan;
	int rc = slmpm_loan(peer, 1, n, &loan, how.timeout_ms);

	if (rc < 0)
		return rc;
	actor_fill(loan, i, n);
	return slmpm_commit(peer, loan, n, &how);
}

/* 0: it is sent. */
static int send_one(slmpm_peer peer, int manner, uint64_t i, size_t n)
{
	struct slmpm_how how = {
		.size = sizeof(how),
		.imm = message_imm(i),
		.timeout_ms = network ? LATE : 0,
	};
	unsigned char data[700];
	struct slmpm_iov iov[] = {{data, n / 3}, {data + n / 3, n - n / 3}};

	if (manner == LENT)
		return lend(peer, i, n);
	actor_fill(data, i, n);
	how.imm = manner == CALLED ? 0 : how.imm;
	if (manner == CALLED)
		return slmpm_am(peer, 1, NULL, 0, data, n, &how, NULL);
	iov[0].len = manner == PLAIN ? n : iov[0].len;
	return slmpm_sendv(peer, 1, iov, manner == PLAIN ? 1 : 2, &how, NULL);
}

static int fill(void *arg)
{
	const int *manner = arg;
	slmpm_ctx none = {0};
	slmpm_peer peer;
	size_t most;
	int rc = 0;

	await(&shared->listening);
	OK(slmpm_connect(&peer, none, url, PATIENCE));
	most = longest(peer, *manner);
	await(&shared->accepted);
	for (uint64_t i = 0; !rc && i < MOST; i++) {
		int64_t began = actor_now_ms();

		rc = send_one(peer, *manner, i, length_of(i, most));
		shared->late = network && !rc && actor_now_ms() - began >= LATE;
		if (shared->late)
			break;
		if (!rc)
			shared->sent = i + 1;
	}
	CHECK(!rc || rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EAGAIN, "it is not full: %d, %s", rc,
	      slmpm_error_detail());
	return kill(getpid(), SIGKILL);
}

/* ---- who reads when that is dead ------------------------------------------------------------- */

static uint64_t called;

static void take_call(const struct slmpm_am *am, void *most)
{
	size_t n = length_of(called, *(const size_t *)most);

	CHECK(am->data_len == n && actor_filled(am->data, called, n),
	      "call %llu: %zu bytes, not %zu", (unsigned long long)called, am->data_len, n);
	called++;
}

/* Nothing is behind what was sent, but one whole message perhaps of which its sender heard late. */
static void expect_end(slmpm_peer peer, size_t most)
{
	unsigned char data[700];
	struct slmpm_done done;
	int64_t n = slmpm_recv(peer, 1, data, sizeof(data), &done, PATIENCE);

	if (shared->late && n >= 0) {
		EXPECT(n, length_of(shared->sent, most));
		message_check(data, &done, shared->sent, (size_t)n);
		n = slmpm_recv(peer, 1, data, sizeof(data), &done, PATIENCE);
	}
	EXPECT(n, -SLMPM_EDEAD);
}

static int read_all(void *arg)
{
	int *manner = arg;
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;
	size_t most;
	pid_t pid;

	shared += *manner;
	memset(shared, 0, sizeof(*shared));
	snprintf(url, sizeof(url), "shm:full-%d", (int)getpid());
	pid = child_start(fill, manner, 60);
	OK(slmpm_listen(&listener, none, url));
	shared->listening = 1;
	OK(slmpm_accept(listener, &peer, PATIENCE));
	most = longest(peer, *manner);
	OK(slmpm_am_handler(none, 1, take_call, &most));
	shared->accepted = 1;
	EXPECT(child_wait(pid), -SIGKILL);
	CHECK(shared->sent, "nothing was sent");
	for (uint64_t i = 0; *manner != CALLED && i < shared->sent; i++)
		message_take(peer, 1, i, length_of(i, most));
	expect_end(peer, most);
	CHECK(*manner != CALLED || called - shared->sent <= shared->late, "%llu calls, not %llu",
	      (unsigned long long)called, (unsigned long long)shared->sent);
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_unlisten(listener));
	return 0;
}

static bool has(const struct setting *s, const char *word)
{
	for (size_t i = 0; i < 6 && s->both[i]; i++)
		if (strstr(s->both[i], word))
			return true;
	return false;
}

/* Side by side: they wait most of their time. */
static void in_each_manner(int end, int links)
{
	int manner[MANNERS];
	pid_t pid[MANNERS];

	for (int i = PLAIN; i < end; i++) {
		manner[i] = i;
		pid[i] = child_start(read_all, &manner[i], 20 * (unsigned)actor_slow());
	}
	for (int i = PLAIN; i < end; i++)
		CHECK(!child_wait(pid[i]), "%s, %d links", manners[i], links);
}

static int body(const struct setting *s)
{
	bool has_links = has(s, "SLMPM_LINKS=");

	network = has(s, "tcp");
	if (!network)
		settings_set("SLMPM_FABRIC", "shm");
	for (int links = 1; links <= (has_links ? 1 : 2); links++) {
		if (!has_links)
			settings_set("SLMPM_LINKS", links == 1 ? "1" : "2");
		/* So it is with checksums. */
		in_each_manner(MANNERS - (network && has(s, "CHECK=1")), links);
	}
	return 0;
}

int main(void)
{
	shared = child_common(MANNERS * sizeof(*shared));
	return settings_each(body, 60);
}
