/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Peers that have ended and nobody has closed: rings and descriptors go, whatever the fabric, the
 * links and the way the peer came and went; what the application still reads or builds stays, until
 * it gives that back.
 */
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define WARM   4
#define ROUNDS 20
#define LENGTH 3000
#define LONG   (512 << 10) /* a loan in an area */
#define EACH   (64 << 10)  /* bytes of the heap that an ended peer may keep */

enum stream { IN_RING, IN_AREA, LATER, ANSWER };

static bool killed; /* the peer does not close */
static char url[64];

/* ---- the peer ------------------------------------------------------------------------------- */

static void say(slmpm_peer host, uint32_t stream, size_t length)
{
	void *data;

	OK(slmpm_loan(host, stream, length, &data, PATIENCE));
	actor_fill(data, stream, length);
	OK(slmpm_commit(host, data, length, NULL));
}

static int talk(slmpm_peer host)
{
	char word[8];

	say(host, IN_RING, LENGTH);
	say(host, IN_AREA, LONG);
	say(host, LATER, LENGTH);
	EXPECT(slmpm_recv(host, ANSWER, word, sizeof(word), NULL, PATIENCE), 1);
	if (word[0] == 'k')
		(void)raise(SIGKILL);
	OK(slmpm_close(host, PATIENCE));
	return 0;
}

static int role_talker(slmpm_peer host, char **words)
{
	(void)words;
	return talk(host);
}

static int call(void *unused)
{
	slmpm_peer host;
	slmpm_ctx ctx;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&host, ctx, url, PATIENCE));
	return talk(host);
}

/* ---- this side ------------------------------------------------------------------------------ */

struct host {
	slmpm_ctx ctx;
	slmpm_listener listener;
	bool spawns;
	pid_t caller;
};

static void host_open(struct host *h, bool spawns)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	const char *fabric = getenv("SLMPM_FABRIC");
	bool tcp = fabric && !strcmp(fabric, "tcp");

	*h = (struct host){.spawns = spawns};
	OK(slmpm_open(&h->ctx, NULL));
	CHECK(slmpm_fd(h->ctx) >= 0, "no descriptor"); /* nor any later that is opened once */
	snprintf(url, sizeof(url), "shm:ended-%d", (int)getpid());
	OK(slmpm_listen(&h->listener, h->ctx, tcp && !spawns ? "tcp://127.0.0.1:0" : url));
	OK(slmpm_listener_query(h->listener, &info));
	if (tcp && !spawns)
		CHECK(snprintf(url, sizeof(url), "%.30s#%.33s", info.url, info.secret) > 0,
		      "no url");
}

static slmpm_peer begin(struct host *h)
{
	const struct slmpm_spawn_options options = {.size = sizeof(options), .ctx = h->ctx};
	slmpm_peer peer;

	if (h->spawns)
		return actor_spawn_with(&options, "talker", NULL, NULL);
	h->caller = child_start(call, NULL, 60);
	OK(slmpm_accept(h->listener, &peer, PATIENCE));
	return peer;
}

static uint32_t state(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.state;
}

/* It is told to end, and has. */
static void end(struct host *h, slmpm_peer peer)
{
	int64_t until = actor_now_ms() + PATIENCE;

	OK(slmpm_send(peer, ANSWER, killed ? "k" : "c", 1, PATIENCE));
	while (state(peer) == SLMPM_PEER_UP) {
		struct slmpm_event event = {.size = sizeof(event)};

		CHECK(actor_now_ms() < until, "the peer has not ended");
		(void)slmpm_next_event(h->ctx, &event, 100);
	}
	EXPECT(state(peer), killed ? SLMPM_PEER_DEAD : SLMPM_PEER_CLOSED);
	if (!h->spawns)
		EXPECT(child_wait(h->caller), killed ? -SIGKILL : 0);
}

/* Held, or copied. */
static const void *take(slmpm_peer peer, uint32_t stream, int64_t length)
{
	const void *data;

	EXPECT(slmpm_hold(peer, stream, &data, NULL, PATIENCE), length);
	CHECK(actor_filled(data, stream, (size_t)length), "not what was sent");
	return data;
}

static void read_all(slmpm_peer peer)
{
	OK(slmpm_release(peer, take(peer, IN_RING, LENGTH)));
	OK(slmpm_release(peer, take(peer, IN_AREA, LONG)));
	OK(slmpm_release(peer, take(peer, LATER, LENGTH)));
}

static int settled(const struct host *h, int descriptors)
{
	int64_t until = actor_now_ms() + PATIENCE;

	do
		actor_nap(h->ctx);
	while (actor_descriptors() > descriptors && actor_now_ms() < until);
	return actor_descriptors();
}

/* ---- nothing is left but what is said to be ------------------------------------------------- */

static void many(struct host *h)
{
	slmpm_peer peers[WARM + ROUNDS];
	int descriptors = 0, mappings = 0, own = h->spawns ? 1 : 0;
	size_t heap = 0;

	for (int i = 0; i < WARM + ROUNDS; i++) {
		if (i == WARM) {
			actor_nap(h->ctx);
			descriptors = actor_descriptors();
			mappings = actor_mappings();
			heap = mallinfo2().uordblks + mallinfo2().hblkhd;
		}
		peers[i] = begin(h);
		EXPECT(slmpm_probe(peers[i], LATER, NULL, PATIENCE), 1); /* all of it is here */
		if (i % 2) /* before its end, or behind it */
			read_all(peers[i]);
		end(h, peers[i]);
		if (i % 2 == 0)
			read_all(peers[i]);
	}
	descriptors += own * ROUNDS; /* a process's stays until it is joined */
	CHECK(settled(h, descriptors) <= descriptors, "%d descriptors, %d expected",
	      actor_descriptors(), descriptors);
	CHECK(actor_mappings() <= mappings, "%d mappings, %d expected", actor_mappings(), mappings);
	heap = mallinfo2().uordblks + mallinfo2().hblkhd - heap;
	CHECK(heap / ROUNDS < EACH, "%zu bytes of the heap for an ended peer", heap / ROUNDS);
	for (int i = 0; i < WARM + ROUNDS; i++) {
		CHECK(actor_stats(peers[i]).received_messages == 3, "statistics have gone");
		REFUSED(slmpm_send(peers[i], 0, NULL, 0, 0), killed ? SLMPM_EDEAD : SLMPM_ECLOSED,
			"");
		if (h->spawns)
			EXPECT(slmpm_join(peers[i], NULL, PATIENCE), killed ? 128 + SIGKILL : 0);
		else
			OK(slmpm_close(peers[i], PATIENCE));
		EXPECT(slmpm_close(peers[i], 0), -SLMPM_EHANDLE);
	}
}

/* ---- what is held stays --------------------------------------------------------------------- */

#define OTHERS 10000

/* In the same context, closed at one end or at both: handles and places are given away again. */
static void others_come(slmpm_ctx ctx, int count)
{
	for (int i = 0; i < count; i++) {
		slmpm_peer a, b;

		actor_pair(ctx, &a, &b);
		OK(slmpm_send(a, 0, &i, sizeof(i), PATIENCE));
		OK(slmpm_close(a, PATIENCE));
		OK(slmpm_close(b, PATIENCE));
	}
}

static void die(struct host *h, slmpm_peer peer)
{
	int64_t until = actor_now_ms() + PATIENCE;

	if (h->spawns)
		OK(slmpm_kill(peer, 0));
	else
		OK(kill(h->caller, SIGKILL));
	while (state(peer) == SLMPM_PEER_UP) {
		CHECK(actor_now_ms() < until, "the peer has not ended");
		actor_nap(h->ctx);
	}
	EXPECT(state(peer), SLMPM_PEER_DEAD);
	if (!h->spawns)
		EXPECT(child_wait(h->caller), -SIGKILL);
}

/* A loan of LOAN bytes is open, and messages are held, when the peer dies; COUNT others come and
 * go. */
static void held(struct host *h, size_t loan, int count)
{
	int before, mappings, own = h->spawns ? 1 : 0;
	const void *in_ring, *area, *later;
	slmpm_peer peer;
	void *data;

	others_come(h->ctx, 1);
	actor_nap(h->ctx);
	before = actor_descriptors();
	mappings = actor_mappings();
	peer = begin(h);
	in_ring = take(peer, IN_RING, LENGTH);
	area = take(peer, IN_AREA, LONG);
	EXPECT(slmpm_probe(peer, LATER, NULL, PATIENCE), 1);
	OK(slmpm_loan(peer, 9, loan, &data, PATIENCE));
	actor_fill(data, 9, loan);
	die(h, peer);
	others_come(h->ctx, count);
	actor_nap(h->ctx);
	memset(data, 1, loan);
	CHECK(actor_filled(in_ring, IN_RING, LENGTH) && actor_filled(area, IN_AREA, LONG),
	      "what is held has changed");
	REFUSED(slmpm_commit(peer, data, loan, NULL), SLMPM_EDEAD, "");
	REFUSED(slmpm_commit(peer, data, loan, NULL), SLMPM_ESTATE, "no such loan");
	later = take(peer, LATER, LENGTH);
	OK(slmpm_release(peer, in_ring));
	OK(slmpm_release(peer, later));
	CHECK(actor_filled(area, IN_AREA, LONG), "what is held has changed");
	OK(slmpm_release(peer, area));
	REFUSED(slmpm_release(peer, area), SLMPM_ESTATE, "no such message");
	CHECK(settled(h, before + own) <= before + own, "%d descriptors, %d expected",
	      actor_descriptors(), before + own);
	CHECK(actor_mappings() <= mappings, "%d mappings, %d expected", actor_mappings(), mappings);
	if (h->spawns)
		EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	else
		OK(slmpm_close(peer, PATIENCE));
	EXPECT(slmpm_release(peer, in_ring), -SLMPM_EHANDLE);
}

/* ---- all of them ---------------------------------------------------------------------------- */

struct kind {
	const char *fabric, *links;
	bool spawns;
};

static int play(void *arg)
{
	const struct kind *k = arg;
	bool plain = !k->links && !strcmp(k->fabric, "shm") && !k->spawns;
	struct host h;

	settings_one_link(k->fabric);
	if (plain) /* they are made by the thousand */
		settings_set("SLMPM_RING_SEGMENTS", "1k");
	if (k->links) {
		OK(setenv("SLMPM_LINKS", k->links, 1));
		OK(setenv("SLMPM_LINKS_AFTER", "0", 1));
	}
	host_open(&h, k->spawns);
	if (k->links) { /* what a context opens but once is open then */
		slmpm_peer a, b;

		actor_pair(h.ctx, &a, &b);
		links_warm(h.ctx, a, b);
	}
	for (int i = 0; i < 2; i++) {
		killed = i;
		many(&h);
	}
	held(&h, LENGTH, 3);
	held(&h, LONG, plain ? OTHERS / actor_slow() : 3);
	OK(slmpm_shut(h.ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"talker", role_talker}, {NULL, NULL}};
	static const char *const links[][2] = {{"shm", NULL},
					       {"tcp", NULL},
					       {"shm", "shm,shm"},
					       {"tcp", "tcp,tcp"},
					       {"shm", "shm,tcp"}};

	actor_begin(argc, argv, roles);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		for (int spawns = 0; spawns < 2; spawns++) {
			struct kind k = {links[i][0], links[i][1], spawns};
			char what[64];

			snprintf(what, sizeof(what), "%s, %s", k.links ? k.links : k.fabric,
				 spawns ? "spawned" : "connected");
			printf("%s\n", what);
			CHECK(child_run(play, &k, 60 * (unsigned)actor_slow()) == 0, "%s", what);
		}
	}
	return 0;
}
