/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* How a conversation ends: everything sent is read before the end is seen, by whatever call; what
 * could not be sent is told; a process that leaves without a word, or is killed. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define ANY SLMPM_ANY_STREAM

static slmpm_ctx ctx;

static size_t length_of(uint64_t i, size_t eager)
{
	size_t n = i * 977 % 5000;

	return n < eager ? n : eager;
}
#define SENT 20
#define FEW  4 /* short ones that fit the smallest ring */

/* ---- both ends here ------------------------------------------------------------------------- */

static void all_is_read_before_the_end(void)
{
	slmpm_peer a, b;
	size_t eager;
	unsigned char byte;
	slmpm_req req;
	struct slmpm_iov iov = {&byte, 1};
	struct slmpm_done done;
	int rc;

	actor_pair(ctx, &a, &b);
	eager = message_eager(a);
	for (uint64_t i = 0; i < SENT; i++)
		message_send(a, 1, i, length_of(i, eager) / 2, i % 3 ? 0 : SLMPM_MORE);
	message_send(b, 1, 99, 8, 0);
	OK(slmpm_close(a, PATIENCE));
	EXPECT(slmpm_send(a, 1, "x", 1, 0), -SLMPM_EHANDLE);
	/* One for which nothing comes: refused, if the end is known already. */
	rc = (int)slmpm_recvv(b, 2, &iov, 1, NULL, &req);
	CHECK(rc == 0 || rc == -SLMPM_ECLOSED, "a receive with nobody left says %d", rc);
	for (uint64_t i = 0; i < SENT; i++) {
		EXPECT(slmpm_probe(b, ANY, &done, PATIENCE), 1);
		message_take(b, 1, i, length_of(i, eager) / 2);
	}
	if (rc == 0) {
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == -SLMPM_ECLOSED, "a receive with nobody left says %d",
		      done.status);
	}
	for (int i = 0; i < 2; i++) {
		REFUSED(slmpm_recv(b, ANY, &byte, 1, NULL, -1), SLMPM_ECLOSED, "closed");
		REFUSED(slmpm_probe(b, ANY, NULL, -1), SLMPM_ECLOSED, "closed");
		REFUSED(slmpm_hold(b, ANY, &(const void *){NULL}, NULL, -1), SLMPM_ECLOSED,
			"closed");
		REFUSED(slmpm_send(b, 1, "x", 1, -1), SLMPM_ECLOSED, "closed");
		REFUSED(slmpm_loan(b, 1, 8, &(void *){NULL}, -1), SLMPM_ECLOSED, "closed");
	}
	OK(slmpm_close(b, PATIENCE));
	EXPECT(slmpm_close(b, PATIENCE), -SLMPM_EHANDLE);
}

/* Held messages and open loans at the end: the memory stays until it is given back. */
static void held_messages_outlive_the_end(void)
{
	size_t lengths[] = {8, 3000, 20000};

	for (size_t i = 0; i < 3; i++) {
		const void *held;
		slmpm_peer a, b;
		void *loan;

		actor_pair(ctx, &a, &b);
		if (lengths[i] > message_eager(a))
			lengths[i] = message_eager(a);
		message_send(a, 1, 5, lengths[i], 0);
		EXPECT(slmpm_hold(b, 1, &held, NULL, PATIENCE), lengths[i]);
		OK(slmpm_loan(b, 1, lengths[i], &loan, PATIENCE));
		OK(slmpm_close(a, PATIENCE));
		REFUSED(slmpm_recv(b, ANY, NULL, 0, NULL, PATIENCE), SLMPM_ECLOSED, "closed");
		memset(loan, 1, lengths[i]);
		EXPECT(slmpm_commit(b, loan, lengths[i], NULL), -SLMPM_ECLOSED);
		CHECK(actor_filled(held, 5, lengths[i]), "a held message is gone with the peer");
		OK(slmpm_release(b, held));
		OK(slmpm_close(b, PATIENCE));
	}
}

/* What nobody takes cannot be sent: the deadline says so, and the other side sees a clean end. */
static void unread_announcements_end_with_the_deadline(void)
{
	slmpm_peer a, b;
	struct message m;
	size_t n;

	actor_pair(ctx, &a, &b);
	n = 2 * message_eager(a);
	message_send(a, 1, 1, 8, 0);
	message_start(&m, a, 1, 2, n);
	REFUSED(slmpm_close(a, 20), SLMPM_ETIMEOUT, "not everything");
	message_end(&m, -SLMPM_ECLOSED);
	message_take(b, 1, 1, 8);
	REFUSED(slmpm_recv(b, ANY, NULL, 0, NULL, PATIENCE), SLMPM_ECLOSED, "closed");
	OK(slmpm_close(b, PATIENCE));
}

static void a_context_closes_all(void)
{
	unsigned char data[8];
	struct slmpm_done done;
	slmpm_peer a, b;
	slmpm_req req;
	struct slmpm_iov iov = {data, 8};

	actor_pair(ctx, &a, &b);
	message_send(a, 1, 1, 8, 0);
	OK(slmpm_recvv(slmpm_any(ctx), 1, &iov, 1, NULL, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(slmpm_shut(ctx, PATIENCE));
	EXPECT(slmpm_send(a, 1, data, 8, 0), -SLMPM_EHANDLE);
	EXPECT(slmpm_recv(b, 1, data, 8, NULL, 0), -SLMPM_EHANDLE);
}

/* ---- another process ------------------------------------------------------------------------ */

/* Sends so much, then ends in the way that its second word says. */
static int leave(slmpm_peer host, char **words)
{
	uint64_t n = strtoull(words[0], NULL, 10);
	size_t most = n == FEW ? 200 : message_eager(host);

	for (uint64_t i = 0; i < n; i++)
		message_send(host, 1, i, length_of(i, most), i % 4 ? 0 : SLMPM_MORE);
	message_send(host, 1, n, 1, 0);
	switch (*words[1]) {
	case 'c': OK(slmpm_close(host, PATIENCE)); return 0;
	case 'r': return 0;
	case 'x': _exit(3);
	default: kill(getpid(), SIGKILL);
	}
	return 1;
}

/* A process that closes, returns, leaves or is killed: what it sent is there all the same. */
static void what_was_sent_outlives_its_sender(const char *way, int error, int code)
{
	slmpm_peer peer = actor_spawn("leave", "20", way);
	size_t eager;
	int rc;

	EXPECT(slmpm_probe(peer, ANY, NULL, PATIENCE), 1);
	eager = message_eager(peer);
	for (uint64_t i = 0; i < SENT; i++)
		message_take(peer, i % 2 ? 1 : ANY, i, length_of(i, eager));
	message_take(peer, 1, SENT, 1);
	rc = (int)slmpm_recv(peer, ANY, NULL, 0, NULL, -1);
	CHECK(rc == -error, "%s: the end says %d: %s", way, rc, slmpm_error_detail());
	EXPECT(slmpm_join(peer, NULL, PATIENCE), code);
}

/* Everything is there before the first is read, and the process gone. */
static void nobody_is_left(void)
{
	slmpm_peer peer = actor_spawn("leave", "4", "r");
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_stats stats;

	EXPECT(slmpm_probe(peer, ANY, NULL, PATIENCE), 1);
	OK(slmpm_peer_query(peer, &info));
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	if (stats.in_segments > 4) /* else they do not fit, and it waits for us */
		actor_await_state(info.pid, "Z");
	for (uint64_t i = 0; i < FEW; i++)
		message_take(peer, ANY, i, length_of(i, 200));
	message_take(peer, ANY, FEW, 1);
	REFUSED(slmpm_recv(peer, ANY, NULL, 0, NULL, -1), SLMPM_ECLOSED, "");
	actor_join(peer, 0);
}

/* Blocked sends, receives and waits end when the peer does, without any deadline. */
static int die_when_told(slmpm_peer host, char **words)
{
	(void)words;
	message_take(host, 1, 1, 8);
	kill(getpid(), SIGKILL);
	return 1;
}

static void blocked_calls_end_with_the_peer(void)
{
	slmpm_peer peer = actor_spawn("die", NULL, NULL);
	size_t n = (size_t)4 << 20;
	unsigned char *data = calloc(1, n);
	struct slmpm_iov iov = {data, n};
	struct slmpm_done done;
	slmpm_req req;

	CHECK(data, "out of memory");
	OK(slmpm_recvv(peer, 3, &iov, 1, NULL, &req));
	message_send(peer, 1, 1, 8, 0);
	EXPECT(slmpm_send(peer, 2, data, n, -1), -SLMPM_EDEAD);
	EXPECT(slmpm_wait(&req, 1, &done, -1), 0);
	CHECK(done.status == -SLMPM_EDEAD, "a receive from the dead says %d", done.status);
	EXPECT(slmpm_recv(peer, ANY, data, n, NULL, -1), -SLMPM_EDEAD);
	actor_join(peer, 128 + SIGKILL);
	free(data);
}

static int test(const struct setting *s)
{
	(void)s;
	OK(slmpm_open(&ctx, NULL));
	all_is_read_before_the_end();
	held_messages_outlive_the_end();
	unread_announcements_end_with_the_deadline();
	a_context_closes_all();
	what_was_sent_outlives_its_sender("close", SLMPM_ECLOSED, 0);
	what_was_sent_outlives_its_sender("return", SLMPM_ECLOSED, 0);
	what_was_sent_outlives_its_sender("xexit", SLMPM_EDEAD, 3);
	what_was_sent_outlives_its_sender("kill", SLMPM_EDEAD, 128 + SIGKILL);
	nobody_is_left();
	blocked_calls_end_with_the_peer();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"leave", leave}, {"die", die_when_told}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return settings_each(test, 30);
}
