/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 240 */
/*
 * Who sends to a reader that does not read, until nothing fits any more, and is killed: what a send or a
 * commit has returned for arrives, and nothing behind it. Over shared memory, by one link and by two.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define MOST 30000 /* more than any ring and credit hold */

enum { PLAIN, GATHERED, LENT, MANNERS };
static const char *const manners[] = {"plain", "gathered", "lent"};

static struct shared {
	_Atomic int listening, accepted;
	_Atomic uint64_t sent;
} * shared;

static char url[64];

static size_t length_of(uint64_t i, size_t most)
{
	size_t n = i * 977 % 700;

	return n < most ? n : most;
}

static void await(_Atomic int *flag)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	while (!*flag) {
		CHECK(actor_now_ms() < until, "nobody is there");
		(void)sched_yield();
	}
}

/* ---- who sends ------------------------------------------------------------------------------- */

static int lend(slmpm_peer peer, uint64_t i, size_t n)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = message_imm(i)};
	void *loan;
	int rc = slmpm_loan(peer, 1, n, &loan, 0);

	if (rc < 0)
		return rc;
	actor_fill(loan, i, n);
	return slmpm_commit(peer, loan, n, &how);
}

/* Waits for nothing: 0 it is sent. */
static int send_one(slmpm_peer peer, int manner, uint64_t i, size_t n)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = message_imm(i)};
	unsigned char data[700];
	struct slmpm_iov iov[] = {{data, n / 3}, {data + n / 3, n - n / 3}};

	if (manner == LENT)
		return lend(peer, i, n);
	actor_fill(data, i, n);
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
	most = message_eager(peer) < 700 ? message_eager(peer) : 700;
	await(&shared->accepted);
	for (uint64_t i = 0; !rc && i < MOST; i++) {
		rc = send_one(peer, *manner, i, length_of(i, most));
		if (!rc)
			shared->sent = i + 1;
	}
	CHECK(!rc || rc == -SLMPM_ETIMEOUT, "it is not full: %d, %s", rc, slmpm_error_detail());
	return kill(getpid(), SIGKILL);
}

/* ---- who reads when that is dead ------------------------------------------------------------- */

static int read_all(void *arg)
{
	int *manner = arg;
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;
	size_t most;
	char byte;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = child_start(fill, manner, 60);
	OK(slmpm_listen(&listener, none, url));
	shared->listening = 1;
	OK(slmpm_accept(listener, &peer, PATIENCE));
	most = message_eager(peer) < 700 ? message_eager(peer) : 700;
	shared->accepted = 1;
	EXPECT(child_wait(pid), -SIGKILL);
	CHECK(shared->sent, "nothing was sent");
	for (uint64_t i = 0; i < shared->sent; i++)
		message_take(peer, 1, i, length_of(i, most));
	REFUSED(slmpm_recv(peer, 1, &byte, 1, NULL, PATIENCE), SLMPM_EDEAD, "");
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_unlisten(listener));
	return 0;
}

/* Over TCP what the socket has not taken is lost: "Known gaps" in doc/reliability.md. */
static bool is_near(const struct setting *s)
{
	for (size_t i = 0; i < 6 && s->both[i]; i++)
		if (strstr(s->both[i], "tcp"))
			return false;
	return true;
}

static int body(const struct setting *s)
{
	bool has_links = false;

	if (!is_near(s))
		return 0;
	for (size_t i = 0; i < 6 && s->both[i]; i++)
		has_links |= !strncmp(s->both[i], "SLMPM_LINKS=", 12);
	settings_set("SLMPM_FABRIC", "shm");
	for (int links = 1; links <= (has_links ? 1 : 2); links++) {
		if (!has_links)
			settings_set("SLMPM_LINKS", links == 1 ? "1" : "2");
		for (int manner = PLAIN; manner < MANNERS; manner++)
			CHECK(!child_run(read_all, &manner, 20 * (unsigned)actor_slow()),
			      "%s, %d links", manners[manner], links);
	}
	return 0;
}

int main(void)
{
	shared = child_common(sizeof(*shared));
	snprintf(url, sizeof(url), "shm:full-%d", (int)getpid());
	return settings_each(body, 60);
}
