/* SPDX-License-Identifier: BSD-3-Clause */
/* One who listens and holds each talk against its numbers (soak.h). */
#include <slmpm.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/soak.h"

#define GUESTS 256

struct guest {
	slmpm_peer peer; /* .id 0: a free place */
	uint64_t talk;   /* 0: has said nothing yet */
	uint32_t next;   /* message that is to come */
	bool last;       /* has come */
};

static const slmpm_ctx none = {0};
static struct soak_board *board;
static enum soak_fabric fabric;
static struct guest guests[GUESTS];
static unsigned char buf[SOAK_LONG];

static struct guest *guest_of(slmpm_peer peer)
{
	for (int i = 0; i < GUESTS; i++)
		if (guests[i].peer.id == peer.id)
			return &guests[i];
	return NULL;
}

static struct soak_talk *talk_of(const struct guest *g)
{
	return &board->talk[g->talk % SOAK_TALKS];
}

static bool forges(const struct guest *g)
{
	return g->talk && atomic_load(&talk_of(g)->forges);
}

static void take(struct guest *g, size_t n)
{
	struct soak_head head;

	if (forges(g))
		return;
	CHECK(n >= sizeof(head), "a message of %zu bytes", n);
	memcpy(&head, buf, sizeof(head));
	if (!g->talk)
		g->talk = head.talk;
	CHECK(head.talk == g->talk && head.index == g->next,
	      "message %u of talk %llu in place of message %u of talk %llu", head.index,
	      (unsigned long long)head.talk, g->next, (unsigned long long)g->talk);
	CHECK(actor_filled(buf + sizeof(head), soak_seed(&head), n - sizeof(head)),
	      "message %u of talk %llu is damaged", head.index, (unsigned long long)head.talk);
	g->next++;
	g->last = head.flags & SOAK_LAST;
	soak_add(board, SOAK_MESSAGES, 1);
	soak_add(board, SOAK_BYTES, n);
	if (head.flags & SOAK_ANSWER) /* who is gone by then is told by a later call */
		(void)!slmpm_send(g->peer, 2, &head, sizeof(head), SOAK_MS);
}

static bool is_nothing(int64_t n)
{
	return n == -SLMPM_ETIMEOUT || n == -SLMPM_EAGAIN;
}

/* How it ended is how it should have. */
static void judge(const struct guest *g, int64_t end)
{
	if (!g->talk || forges(g))
		return;
	if (end == -SLMPM_ECLOSED) {
		CHECK(g->last, "talk %llu closed after %u messages: %s",
		      (unsigned long long)g->talk, g->next, slmpm_error_detail());
		soak_add(board, SOAK_ENDED, 1);
		return;
	}
	CHECK(end == -SLMPM_EDEAD, "talk %llu: %s", (unsigned long long)g->talk,
	      slmpm_error_detail());
	soak_add(board, SOAK_CUT, 1);
	/* What was sent over a network may be lost with its sender; here nothing is. */
	CHECK(fabric == SOAK_TCP || g->next >= atomic_load(&talk_of(g)->sent),
	      "of talk %llu %u messages had been sent, %u came", (unsigned long long)g->talk,
	      atomic_load(&talk_of(g)->sent), g->next);
}

/* All that has come of it; when it has ended, its place is free. */
static void visit(struct guest *g)
{
	int64_t n;

	while ((n = slmpm_recv(g->peer, 1, buf, sizeof(buf), NULL, 0)) >= 0)
		take(g, (size_t)n);
	if (is_nothing(n))
		return;
	judge(g, n);
	OK(slmpm_close(g->peer, 0));
	memset(g, 0, sizeof(*g));
}

static void welcome(slmpm_listener listener)
{
	slmpm_peer peer;

	while (slmpm_accept(listener, &peer, 0) == 0) {
		struct guest *g = guest_of((slmpm_peer){0});

		CHECK(g, "more than %d guests", GUESTS);
		g->peer = peer;
	}
}

static void forget_events(void)
{
	struct slmpm_event event = {.size = sizeof(event)};

	while (slmpm_next_event(none, &event, 0) == 1)
		;
}

static void listen_there(slmpm_listener *listener)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	struct soak_hub *hub = &board->hub[fabric];
	uint32_t life = atomic_load(&hub->life);
	char url[128];

	if (fabric == SOAK_TCP)
		snprintf(url, sizeof(url), "tcp://127.0.0.1:0");
	else
		snprintf(url, sizeof(url), "shm:soak-%d-%u", (int)getppid(), life);
	OK(slmpm_listen(listener, none, url));
	OK(slmpm_listener_query(*listener, &info));
	snprintf(hub->url, sizeof(hub->url), "%s", info.url);
	atomic_store(&hub->ready, life);
}

/* One message, or a moment without any; false then. */
static bool serve(slmpm_listener listener)
{
	struct slmpm_done done;
	int64_t n = slmpm_recv(slmpm_any(none), 1, buf, sizeof(buf), &done, 5);
	struct guest *g;

	welcome(listener);
	forget_events();
	if (n < 0)
		return false;
	g = guest_of(done.peer);
	CHECK(g, "a message of nobody");
	take(g, (size_t)n);
	return true;
}

int soak_hub(void *arg)
{
	const struct soak_role *role = arg;
	slmpm_listener listener;
	unsigned rounds = 0;
	bool end, busy;
	int before;

	board = role->board;
	fabric = role->fabric;
	listen_there(&listener);
	before = actor_descriptors();
	do {
		end = atomic_load(&board->hubs_end);
		busy = serve(listener);
		if (busy && ++rounds % 64)
			continue;
		for (int i = 0; i < GUESTS; i++)
			if (guests[i].peer.id)
				visit(&guests[i]);
	} while (busy || !end);
	for (int i = 0; i < GUESTS; i++)
		CHECK(!guests[i].peer.id, "talk %llu did not end",
		      (unsigned long long)guests[i].talk);
	CHECK(actor_descriptors() <= before, "%d descriptors instead of %d", actor_descriptors(),
	      before);
	OK(slmpm_unlisten(listener));
	return 0;
}
