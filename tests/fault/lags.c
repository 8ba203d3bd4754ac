/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 240 */
/*
 * Sockets that take a part of a message and then no more, for nobody reads: that a message has left
 * is told, to a counter or by the return of a send, when it has, neither before nor when what was
 * sent after it has.
 */
#include <netinet/in.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/links.h"
#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define LITTLE 8192  /* bytes that a socket keeps */
#define LENGTH 16000 /* of a message */
#define MOST   200
#define LATER  50  /* messages, more than two sockets keep */
#define STILL  200 /* ms without a message: the sender waits */
#define SHORT  50  /* ms */
#define LINKS  2

static struct shared {
	_Atomic int listening, accepted, may_read, returned, cut;
	_Atomic uint64_t begun, notified;
} * shared;

static char url[64];
static slmpm_ctr later;
static unsigned char data[LENGTH];
static int sockets[2 * LINKS], socket_count; /* of this process */

/* In place of the C library's. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	static const int little = LITTLE;

	if (level == IPPROTO_TCP && name == TCP_NODELAY) {
		(void)syscall(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDBUF, &little,
			      sizeof(little));
		(void)syscall(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVBUF, &little,
			      sizeof(little));
		if (socket_count < 2 * LINKS)
			sockets[socket_count++] = socket;
	}
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}

static void await(_Atomic int *flag)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	while (!*flag) {
		CHECK(actor_now_ms() < until, "nobody is there");
		usleep(500);
	}
}

static int start(slmpm_peer peer, slmpm_ctr ctr)
{
	struct slmpm_how how = {.size = sizeof(how), .ctr = ctr};
	struct slmpm_iov piece = {data, sizeof(data)};

	return slmpm_sendv(peer, 1, &piece, 1, &how, NULL);
}

/* Whoever has heard that the last one is done has room for the next. */
static int lend(slmpm_peer peer, slmpm_ctr ctr)
{
	struct slmpm_how how = {.size = sizeof(how), .ctr = ctr};
	void *loan;

	OK(slmpm_loan(peer, 1, sizeof(data), &loan, PATIENCE));
	return slmpm_commit(peer, loan, sizeof(data), &how);
}

static uint64_t in_flight(slmpm_ctr ctr)
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

static int count_each(int (*begin)(slmpm_peer peer, slmpm_ctr ctr))
{
	slmpm_ctx none = {0};
	slmpm_peer peer = call_reader();
	slmpm_ctr ctr;
	int rc = 0;

	OK(slmpm_ctr_create(none, &ctr));
	for (int n = 0; n < MOST && !rc; n++) {
		OK(begin(peer, ctr));
		rc = slmpm_ctr_wait(ctr, SLMPM_ALL, SHORT);
		CHECK(rc || !in_flight(ctr), "message %d is said to be done, and is not", n);
	}
	EXPECT(rc, -SLMPM_ETIMEOUT);
	shared->may_read = 1;
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	EXPECT(in_flight(ctr), 0);
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static int count(void *arg)
{
	(void)arg;
	return count_each(start);
}

static int count_lent(void *arg)
{
	(void)arg;
	return count_each(lend);
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

/* ---- and what is sent after it --------------------------------------------------------------- */

/* Of a handler's one goes as the other. */
static void send_more(const struct slmpm_am *am, void *arg)
{
	const bool *notified = arg;

	for (int i = 0; i < LATER; i++)
		if (*notified)
			OK(start(am->peer, later));
		else
			OK(slmpm_send(am->peer, 1, data, sizeof(data), PATIENCE));
	shared->notified = shared->begun;
	shared->may_read = 1;
}

static int wait_for_one(bool notified)
{
	slmpm_ctx none = {0};
	slmpm_peer peer = call_reader();

	OK(slmpm_ctr_create(none, &later));
	OK(slmpm_am_handler(none, 1, send_more, &notified));
	while (!shared->may_read) {
		CHECK(shared->begun < MOST, "it is never full");
		shared->begun++;
		OK(slmpm_send(peer, 1, data, sizeof(data), PATIENCE));
	}
	if (notified)
		CHECK(in_flight(later), "it waited for what was sent after it");
	else
		EXPECT(slmpm_send(peer, 1, data, sizeof(data), 0), -SLMPM_EAGAIN);
	shared->returned = 1;
	OK(slmpm_ctr_wait(later, SLMPM_ALL, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static int wait_beside_told(void *arg)
{
	(void)arg;
	return wait_for_one(true);
}

static int wait_beside_sent(void *arg)
{
	(void)arg;
	return wait_for_one(false);
}

/* The sender waits, behind a message at least. */
static void await_stillness(void)
{
	uint64_t begun = 0;
	int64_t since = actor_now_ms();

	while (!begun || actor_now_ms() - since < STILL * actor_slow()) {
		if (shared->begun != begun)
			since = actor_now_ms();
		begun = shared->begun;
		usleep(500);
	}
}

/* That one, and no more until its send has returned. */
static int read_that_one(slmpm_peer peer)
{
	await_stillness();
	OK(slmpm_am(peer, 1, NULL, 0, "", 1, NULL, NULL));
	await(&shared->may_read);
	for (uint64_t i = 0; i < shared->notified; i++)
		EXPECT(slmpm_recv(peer, 1, data, sizeof(data), NULL, PATIENCE), sizeof(data));
	await(&shared->returned);
	return read_all(peer);
}

/* ---- by a link that is lost ------------------------------------------------------------------ */

static void cut_fullest(const struct slmpm_am *am, void *arg)
{
	int most = -1, at = -1;

	(void)am;
	(void)arg;
	for (int i = 0; i < socket_count; i++) {
		int unsent = 0;

		if (ioctl(sockets[i], SIOCOUTQ, &unsent) == 0 && unsent > most) {
			most = unsent;
			at = sockets[i];
		}
	}
	CHECK(most > 0 && shutdown(at, SHUT_RDWR) == 0, "nothing is under way");
	shared->cut = 1;
}

static int wait_for_it_again(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_peer peer = call_reader();

	(void)arg;
	OK(slmpm_am_handler(none, 2, cut_fullest, NULL));
	OK(slmpm_send(peer, 0, NULL, 0, PATIENCE)); /* both sides look at their links */
	links_await();
	OK(slmpm_send(peer, 0, NULL, 0, PATIENCE));
	while (!shared->cut) {
		CHECK(shared->begun < MOST, "it is never full");
		shared->begun++;
		OK(slmpm_send(peer, 1, data, sizeof(data), PATIENCE));
	}
	shared->returned = 1;
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static void expect_silence(const _Atomic int *flag)
{
	int64_t until = actor_now_ms() + STILL * actor_slow();

	while (actor_now_ms() < until) {
		CHECK(!*flag, "it has not gone again");
		usleep(500);
	}
}

/* What was in the link that is lost can go again when this side has heard of it, too. */
static int read_what_comes_again(slmpm_peer peer)
{
	OK(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE));
	OK(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE));
	await_stillness();
	OK(slmpm_am(peer, 2, NULL, 0, "", 1, NULL, NULL));
	await(&shared->cut);
	expect_silence(&shared->returned);
	return read_all(peer);
}

/* ---- both sides ------------------------------------------------------------------------------ */

static const struct {
	int (*sends)(void *arg), (*reads)(slmpm_peer peer);
	int links; /* at least */
} trials[] = {
	{count, read_later, 1},
	{count_lent, read_later, 1},
	{wait_beside_told, read_that_one, 1},
	{wait_beside_sent, read_that_one, 1},
	{wait_for_it_again, read_what_comes_again, LINKS},
};

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
	settings_set("SLMPM_LINKS_AFTER", "0");
	for (int links = 1; links <= LINKS; links++) {
		settings_set("SLMPM_LINKS", links == 1 ? "1" : "2");
		for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
			CHECK(links < trials[i].links ||
				      !child_run(both, &i, 30 * (unsigned)actor_slow()),
			      "%d links, %zu", links, i);
	}
	return 0;
}
