/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked of a peer that has been started and is not up yet: a managed receive queue, some of
 * its entries enabled, and messages. The peer knows of the queue before the first message comes.
 */
#include <slmpm_queue.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define MESSAGES 3
#define ROUNDS   10

enum { EARLY = 1, BOUND };
enum { REFUSED_ONE = 1 };

static slmpm_cq cq;

static slmpm_wq create(uint32_t flags, slmpm_peer peer)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags, .cq = cq};
	slmpm_wq wq;

	if (flags & SLMPM_WQ_RECEIVE) {
		o.peer = peer;
		o.stream = BOUND;
	}
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	return wq;
}

static void post(slmpm_wq wq, struct slmpm_wr wr, uint64_t *word)
{
	const struct slmpm_iov iov = {word, sizeof(*word)};

	wr.size = sizeof(wr);
	wr.iov = &iov;
	wr.iov_count = 1;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

/* The ends of entries from FIRST on, in any order. */
static void expect(uint64_t first, uint64_t count)
{
	uint64_t ended = 0;
	struct slmpm_done done;

	for (uint64_t i = 0; i < count; i++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(!done.status, "entry %llu: %d", (unsigned long long)done.cookie, done.status);
		ended |= UINT64_C(1) << done.cookie;
	}
	EXPECT(ended, ((UINT64_C(1) << count) - 1) << first);
}

/* ---- the started one ------------------------------------------------------------------------- */

static int role_sends(slmpm_peer host, char **words)
{
	uint64_t word, rest[MESSAGES] = {0, 1, 2};
	slmpm_wq wq;

	(void)words;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	wq = create(0, host);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		EXPECT(slmpm_recv(host, EARLY, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		EXPECT(word, i);
		if (i)
			continue;
		/* As soon as it knows anything. */
		OK(slmpm_send(host, BOUND, &word, sizeof(word), PATIENCE));
		REFUSED(slmpm_send(host, BOUND, &word, sizeof(word), PATIENCE), SLMPM_EDISABLED,
			"disabled");
	}
	actor_tell(host, REFUSED_ONE);
	for (uint64_t i = 1; i < MESSAGES; i++)
		post(wq,
		     (struct slmpm_wr){.op = SLMPM_OP_SEND,
				       .cookie = i,
				       .peer = host,
				       .stream = BOUND,
				       .timeout_ms = -1},
		     &rest[i]);
	expect(1, MESSAGES - 1);
	return 0;
}

/* ---- who starts it --------------------------------------------------------------------------- */

static bool is_connecting(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.state == SLMPM_PEER_CONNECTING;
}

/* True: it was not up when all had been asked for. */
static bool ask_early(void)
{
	slmpm_peer peer = actor_spawn("sends", NULL, NULL);
	slmpm_wq receives = create(SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, peer);
	slmpm_wq wq = create(0, peer);
	uint64_t words[MESSAGES], got[MESSAGES];
	bool early;

	for (uint64_t i = 0; i < MESSAGES; i++) {
		words[i] = i;
		post(receives, (struct slmpm_wr){.op = SLMPM_OP_RECV, .cookie = MESSAGES + i},
		     &got[i]);
		post(wq,
		     (struct slmpm_wr){
			     .op = SLMPM_OP_SEND, .cookie = i, .peer = peer, .stream = EARLY},
		     &words[i]);
	}
	OK(slmpm_wq_enable(receives, 1));
	early = is_connecting(peer);
	expect(0, MESSAGES + 1);
	actor_hear(peer, REFUSED_ONE);
	OK(slmpm_wq_enable(receives, MESSAGES));
	expect(MESSAGES + 1, MESSAGES - 1);
	for (uint64_t i = 0; i < MESSAGES; i++)
		EXPECT(got[i], i);
	actor_join(peer, 0);
	OK(slmpm_wq_destroy(receives));
	OK(slmpm_wq_destroy(wq));
	return early;
}

static int everything(void *fabric)
{
	int early = 0;

	settings_set("SLMPM_FABRIC", fabric);
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	for (int i = 0; i < ROUNDS && early < 2; i++)
		early += ask_early();
	CHECK(early, "it was always up before anything was asked of it");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"sends", role_sends}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(everything, fabrics[i], 25) == 0, "%s: see above", fabrics[i]);
	return 0;
}
