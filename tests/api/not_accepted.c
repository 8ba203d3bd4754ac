/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/*
 * Peers that have connected and nobody has accepted: receives from any peer, holds, probes and
 * requests get nothing of them, and no handler runs; once accepted, all they had sent comes in its
 * order. So many wait as SLMPM_BACKLOG says. Who is not accepted any more is told.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define MESSAGES 40
#define LONG     (3 << 20) /* announced, or fetched */

struct meeting {
	slmpm_ctx ctx;
	slmpm_listener listener;
	char url[360];
	slmpm_peer known[2]; /* a pair that has been accepted */
};

static void meet(struct meeting *m)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	const char *fabric = getenv("SLMPM_FABRIC");

	OK(slmpm_open(&m->ctx, NULL));
	snprintf(m->url, sizeof(m->url), "shm:not-accepted-%d", (int)getpid());
	OK(slmpm_listen(&m->listener, m->ctx,
			fabric && !strcmp(fabric, "tcp") ? "tcp://127.0.0.1:0" : m->url));
	OK(slmpm_listener_query(m->listener, &info));
	if (info.port)
		snprintf(m->url, sizeof(m->url), "%s#%s", info.url, info.secret);
	OK(slmpm_connect(&m->known[0], m->ctx, m->url, PATIENCE));
	OK(slmpm_accept(m->listener, &m->known[1], PATIENCE));
}

/* So that what another had sent before is here, too. */
static void settle(struct meeting *m)
{
	for (int i = 0; i < 3; i++)
		actor_settle(m->known[0], m->known[1]);
	for (int i = 0; i < 200; i++)
		actor_nap(m->ctx);
}

static void send_numbers(slmpm_peer to)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		OK(slmpm_send(to, i % 3, &i, sizeof(i), PATIENCE));
}

static slmpm_req send_long(slmpm_peer to, char *bytes)
{
	const struct slmpm_iov iov = {bytes, LONG};
	slmpm_req req;

	actor_fill(bytes, 1, LONG);
	OK(slmpm_sendv(to, 1, &iov, 1, NULL, &req));
	return req;
}

static void nothing_comes(struct meeting *m)
{
	const void *at;
	uint32_t word;

	settle(m);
	EXPECT(slmpm_recv(slmpm_any(m->ctx), SLMPM_ANY_STREAM, &word, sizeof(word), NULL, 0),
	       -SLMPM_EAGAIN);
	EXPECT(slmpm_hold(slmpm_any(m->ctx), SLMPM_ANY_STREAM, &at, NULL, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_probe(slmpm_any(m->ctx), SLMPM_ANY_STREAM, NULL, 0), 0);
}

/* What the accepted one says comes past the other's. */
static void others_come(struct meeting *m, slmpm_req *posted, uint32_t *word)
{
	const struct slmpm_iov iov = {word, sizeof(*word)};
	struct slmpm_done done;

	EXPECT(slmpm_recvv(slmpm_any(m->ctx), SLMPM_ANY_STREAM, &iov, 1, NULL, posted), 0);
	OK(slmpm_send(m->known[0], 9, "else", 4, PATIENCE));
	EXPECT(slmpm_wait(posted, 1, &done, PATIENCE), 0);
	CHECK(done.peer.id == m->known[1].id && done.stream == 9, "of another peer");
}

static void read_numbers(struct meeting *m, uint32_t first, slmpm_peer from)
{
	for (uint32_t i = first; i < MESSAGES; i++) {
		struct slmpm_done done;
		uint32_t word = MESSAGES;

		EXPECT(slmpm_recv(slmpm_any(m->ctx), SLMPM_ANY_STREAM, &word, sizeof(word), &done,
				  PATIENCE),
		       sizeof(word));
		CHECK(word == i && done.peer.id == from.id, "%u, expected %u", word, i);
	}
}

/* Receives wait already, or do not; behind the numbers comes a long message. */
static void in_order(struct meeting *m, bool waits)
{
	static char out[LONG], in[LONG];
	uint32_t word = MESSAGES, first = 0;
	const struct slmpm_iov iov = {&word, sizeof(word)};
	struct slmpm_done done;
	slmpm_peer caller, peer;
	slmpm_req posted, sent;

	OK(slmpm_connect(&caller, m->ctx, m->url, PATIENCE));
	send_numbers(caller);
	sent = send_long(caller, out);
	nothing_comes(m);
	others_come(m, &posted, &word);
	nothing_comes(m);
	if (waits)
		EXPECT(slmpm_recvv(slmpm_any(m->ctx), SLMPM_ANY_STREAM, &iov, 1, NULL, &posted), 0);
	OK(slmpm_accept(m->listener, &peer, PATIENCE));
	if (waits) {
		EXPECT(slmpm_wait(&posted, 1, &done, PATIENCE), 0);
		CHECK(!word && done.peer.id == peer.id, "not the first");
		first = 1;
	}
	read_numbers(m, first, peer);
	EXPECT(slmpm_recv(slmpm_any(m->ctx), SLMPM_ANY_STREAM, in, LONG, NULL, PATIENCE), LONG);
	CHECK(actor_filled(in, 1, LONG), "the long one is damaged");
	EXPECT(slmpm_wait(&sent, 1, NULL, PATIENCE), 0);
	OK(slmpm_close(caller, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
}

/* Closed before it is accepted: it can be all the same, and read. */
static void gone(struct meeting *m)
{
	slmpm_peer caller, peer;
	uint32_t word;

	OK(slmpm_connect(&caller, m->ctx, m->url, PATIENCE));
	send_numbers(caller);
	OK(slmpm_close(caller, PATIENCE));
	nothing_comes(m);
	OK(slmpm_accept(m->listener, &peer, PATIENCE));
	read_numbers(m, 0, peer);
	EXPECT(slmpm_recv(peer, 0, &word, sizeof(word), NULL, PATIENCE), -SLMPM_ECLOSED);
	OK(slmpm_close(peer, PATIENCE));
}

/* ---- active messages ---- */

static struct {
	uint32_t runs;
	slmpm_peer peer;
} handled;

static void handle(const struct slmpm_am *am, void *arg)
{
	uint32_t number;

	(void)arg;
	EXPECT(am->head_len, sizeof(number));
	memcpy(&number, am->head, sizeof(number));
	CHECK(number == handled.runs, "%u instead of %u", number, handled.runs);
	CHECK(actor_filled(am->data, number, am->data_len), "%u is damaged", number);
	handled.peer = am->peer;
	handled.runs++;
}

static void send_handled(slmpm_peer to, uint32_t first, uint32_t n, size_t size)
{
	static unsigned char bytes[LONG / 16];

	for (uint32_t i = first; i < first + n; i++) {
		actor_fill(bytes, i, size);
		OK(slmpm_am(to, 1, &i, sizeof(i), bytes, size, NULL, NULL));
	}
}

/* Short ones and long ones; none runs before slmpm_accept has returned the peer that it names. */
static void handlers_wait(struct meeting *m, bool closed)
{
	slmpm_peer caller, peer;

	handled.runs = 0;
	OK(slmpm_am_handler(m->ctx, 1, handle, NULL));
	OK(slmpm_connect(&caller, m->ctx, m->url, PATIENCE));
	send_handled(caller, 0, MESSAGES, 8);
	send_handled(caller, MESSAGES, 1, LONG / 16);
	send_handled(caller, MESSAGES + 1, MESSAGES, 0);
	if (closed)
		OK(slmpm_close(caller, PATIENCE));
	nothing_comes(m);
	CHECK(!handled.runs, "%u handlers have run for a stranger", handled.runs);
	OK(slmpm_accept(m->listener, &peer, PATIENCE));
	CHECK(!handled.runs, "%u handlers have run before it is known", handled.runs);
	if (!closed)
		send_handled(caller, 2 * MESSAGES + 1, MESSAGES, 100);
	settle(m);
	CHECK(handled.runs == (closed ? 2u : 3u) * MESSAGES + 1 && handled.peer.id == peer.id,
	      "%u handlers have run", handled.runs);
	if (!closed)
		OK(slmpm_close(caller, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
}

/* The call by which the first message is found. */
enum way { RECEIVED, PROBED, POSTED, IN_BURST, WAYS };

static void find_first(struct meeting *m, enum way way, slmpm_req *posted)
{
	uint32_t words[2] = {MESSAGES, MESSAGES};
	struct slmpm_iov burst[2] = {{words, 4}, {words + 1, 4}};

	switch (way) {
	case PROBED: EXPECT(slmpm_probe(slmpm_any(m->ctx), 1, NULL, PATIENCE), 1); break;
	case POSTED: EXPECT(slmpm_wait(posted, 1, NULL, PATIENCE), 0); break;
	case IN_BURST:
		CHECK(slmpm_recv_burst(slmpm_any(m->ctx), 1, burst, 2, NULL, 0) >= 1, "%s",
		      slmpm_error_detail());
		break;
	default: EXPECT(slmpm_recv(slmpm_any(m->ctx), 1, words, 4, NULL, 0), 4);
	}
}

/* A message sent behind an active message comes when that one's handler has run, also where all of
 * it was here before slmpm_accept, and where the sender has closed. */
static void messages_come_behind_handlers(struct meeting *m, enum way way, bool closed)
{
	uint32_t word;
	const struct slmpm_iov iov = {&word, sizeof(word)};
	slmpm_peer caller, peer;
	slmpm_req posted;

	handled.runs = 0;
	OK(slmpm_connect(&caller, m->ctx, m->url, PATIENCE));
	if (way == POSTED)
		EXPECT(slmpm_recvv(slmpm_any(m->ctx), 1, &iov, 1, NULL, &posted), 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		send_handled(caller, 2 * i, 1, 8);
		send_handled(caller, 2 * i + 1, 1, 8);
		OK(slmpm_send(caller, 1, &i, sizeof(i), PATIENCE));
	}
	if (closed)
		OK(slmpm_close(caller, PATIENCE));
	settle(m);
	OK(slmpm_accept(m->listener, &peer, PATIENCE));
	find_first(m, way, &posted);
	CHECK(handled.runs >= 2, "%u handlers have run before the message behind two, way %d",
	      handled.runs, (int)way);
	while (slmpm_recv(peer, 1, &word, sizeof(word), NULL, closed ? PATIENCE : 0) > 0)
		CHECK(handled.runs >= 2 * word + 2, "%u handlers have run before message %u",
		      handled.runs, word);
	CHECK(handled.runs == 2 * MESSAGES && word == MESSAGES - 1, "%u handlers, message %u",
	      handled.runs, word);
	if (!closed)
		OK(slmpm_close(caller, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
}

/* Nobody keeps for a stranger what it only announces. */
static void long_one_waits(struct meeting *m)
{
	static unsigned char bytes[LONG];
	slmpm_peer caller, peer;
	uint32_t number = 0;
	slmpm_req req;

	handled.runs = 0;
	OK(slmpm_connect(&caller, m->ctx, m->url, PATIENCE));
	actor_fill(bytes, number, LONG);
	OK(slmpm_am(caller, 1, &number, sizeof(number), bytes, LONG, NULL, &req));
	nothing_comes(m);
	EXPECT(slmpm_test(&req, NULL), 0);
	OK(slmpm_accept(m->listener, &peer, PATIENCE));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	send_handled(caller, 1, MESSAGES, 8);
	settle(m);
	EXPECT(handled.runs, MESSAGES + 1);
	OK(slmpm_close(caller, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
}

/* ---- how many ---- */

#define BACKLOG 3

static void check_full(struct meeting *m)
{
	slmpm_peer caller;

	REFUSED(slmpm_connect(&caller, m->ctx, m->url, PATIENCE), SLMPM_ELIMIT, "SLMPM_BACKLOG");
	/* A deadline of its own ends it in the middle of a try. */
	EXPECT(slmpm_connect(&caller, m->ctx, m->url, 100), -SLMPM_ELIMIT);
}

static int crowd(void *arg)
{
	slmpm_peer caller[BACKLOG + 1], peer[BACKLOG + 1];
	struct meeting m;

	settings_one_link(arg);
	OK(setenv("SLMPM_BACKLOG", "3", 1));
	OK(setenv("SLMPM_HANDSHAKE_MS", "1000", 1)); /* so long it asks again */
	meet(&m);
	for (int i = 0; i < BACKLOG; i++)
		OK(slmpm_connect(&caller[i], m.ctx, m.url, PATIENCE));
	check_full(&m);
	OK(slmpm_close(caller[0], PATIENCE)); /* it can still be accepted, and read */
	check_full(&m);
	OK(slmpm_accept(m.listener, &peer[0], PATIENCE));
	OK(slmpm_connect(&caller[0], m.ctx, m.url, PATIENCE));
	check_full(&m);
	for (int i = 1; i < BACKLOG + 1; i++)
		OK(slmpm_accept(m.listener, &peer[i], PATIENCE));
	OK(slmpm_connect(&caller[BACKLOG], m.ctx, m.url, PATIENCE));
	OK(slmpm_shut(m.ctx, PATIENCE));
	return 0;
}

/* Nobody listens any more: who was accepted stays, who was not hears it. */
static void turned_away(struct meeting *m)
{
	slmpm_peer caller;

	OK(slmpm_connect(&caller, m->ctx, m->url, PATIENCE));
	send_numbers(caller);
	settle(m);
	OK(slmpm_unlisten(m->listener));
	REFUSED((int)slmpm_recv(caller, 0, NULL, 0, NULL, PATIENCE), SLMPM_EDEAD,
		"listener was closed");
	nothing_comes(m);
	OK(slmpm_send(m->known[0], 9, "else", 4, PATIENCE));
	EXPECT(slmpm_recv(slmpm_any(m->ctx), 9, &(uint32_t){0}, 4, NULL, PATIENCE), 4);
}

static int play(void *arg)
{
	const char *links = arg;
	struct meeting m;

	settings_one_link(strncmp(links, "tcp", 3) ? "shm" : "tcp");
	if (strchr(links, ','))
		OK(setenv("SLMPM_LINKS", links, 1));
	meet(&m);
	in_order(&m, false);
	in_order(&m, true);
	gone(&m);
	handlers_wait(&m, false);
	handlers_wait(&m, true);
	long_one_waits(&m);
	for (int way = 0; way < WAYS; way++)
		messages_come_behind_handlers(&m, (enum way)way, way % 2);
	turned_away(&m);
	OK(slmpm_shut(m.ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static const char *const links[] = {"shm", "tcp", "shm,tcp", "tcp,tcp"};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		settings_run(links[i], play, links[i]);
	settings_run("a crowd", crowd, "shm");
	settings_run("a crowd over TCP", crowd, "tcp");
	return 0;
}
