/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that listen at many addresses and count what comes to each; entries for those. */
#ifndef TESTS_API_PEER_AT_H
#define TESTS_API_PEER_AT_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define ADDRESSES 1000
#define SERVERS   4
#define EACH      (ADDRESSES / SERVERS)
#define PEERS     64 /* of a server: not yet closed */

struct word {
	uint32_t address, number;
};

static struct world {
	char urls[ADDRESSES][96];
	_Atomic uint32_t got[ADDRESSES]; /* messages of an address, in their order */
	_Atomic uint32_t total, wrong, ready;
	_Atomic uint32_t most[SERVERS]; /* connections at once */
	_Atomic bool late, over;
} * world;

struct server {
	int number, first, count;
	slmpm_ctx ctx;
	slmpm_listener listeners[EACH];
	slmpm_peer peers[PEERS]; /* in the order of their coming */
	int peer_count;
};

static bool by_tcp; /* addresses are of TCP */

static inline void listen_at(struct server *s, int i)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	char url[96];

	if (*world->urls[s->first + i]) /* where another has listened */
		snprintf(url, sizeof(url), "%s", world->urls[s->first + i]);
	else if (by_tcp)
		snprintf(url, sizeof(url), "tcp://127.0.0.1:0");
	else
		snprintf(url, sizeof(url), "shm:at-%d-%d", (int)getppid(), s->first + i);
	OK(slmpm_listen(&s->listeners[i], s->ctx, url));
	OK(slmpm_listener_query(s->listeners[i], &info));
	CHECK(snprintf(world->urls[s->first + i], sizeof(world->urls[0]), "%.40s%s%s", info.url,
		       *info.secret ? "#" : "", info.secret) > 0,
	      "no url");
}

#define ANSWERED UINT32_MAX       /* numbers that have an answer, ... */
#define LATE     (UINT32_MAX - 1) /* ... behind which the server is in no call for a while */

static inline void take_word(slmpm_peer peer, const struct word *w)
{
	if (w->number == LATE) {
		world->late = true;
		usleep(50000);
	}
	if (w->number >= LATE)
		OK(slmpm_send(peer, 1, w, sizeof(*w), PATIENCE));
	else if (w->number == world->got[w->address]) {
		world->got[w->address]++;
		world->total++;
	} else {
		world->wrong++;
	}
}

static inline void take_active(const struct slmpm_am *am, void *arg)
{
	struct word w;

	(void)arg;
	CHECK(am->data_len == sizeof(w), "%zu bytes", am->data_len);
	memcpy(&w, am->data, sizeof(w));
	take_word(am->peer, &w);
}

/* False: it has ended, and all is read. */
static inline bool read_peer(slmpm_peer peer)
{
	struct word w;
	int64_t n;

	while ((n = slmpm_recv(peer, 0, &w, sizeof(w), NULL, 0)) >= 0) {
		CHECK(n == sizeof(w), "%lld bytes", (long long)n);
		take_word(peer, &w);
	}
	return n == -SLMPM_EAGAIN;
}

/* Those that came first are read first: a later one may be of the same address. */
static inline void serve(struct server *s)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	uint32_t up = 0;
	int kept = 0;

	for (int i = 0; i < s->count && s->peer_count < PEERS; i++)
		if (slmpm_accept(s->listeners[i], &s->peers[s->peer_count], 0) == 0)
			s->peer_count++;
	for (int i = 0; i < s->peer_count; i++) {
		OK(slmpm_peer_query(s->peers[i], &info));
		up += info.state == SLMPM_PEER_UP;
	}
	if (up > world->most[s->number])
		world->most[s->number] = up;
	for (int i = 0; i < s->peer_count; i++) {
		if (read_peer(s->peers[i]))
			s->peers[kept++] = s->peers[i];
		else
			OK(slmpm_close(s->peers[i], PATIENCE));
	}
	s->peer_count = kept;
}

static inline int server_run(void *arg)
{
	static struct server s;
	const int *range = arg;

	s.number = range[0];
	s.first = range[1];
	s.count = range[2];
	OK(slmpm_open(&s.ctx, NULL));
	OK(slmpm_am_handler(s.ctx, 1, take_active, NULL));
	for (int i = 0; i < s.count; i++)
		listen_at(&s, i);
	world->ready++;
	while (!world->over) {
		serve(&s);
		usleep((useconds_t)(200 * actor_slow())); /* others need the processor */
	}
	serve(&s);
	OK(slmpm_shut(s.ctx, PATIENCE));
	return 0;
}

/* Server NUMBER, at COUNT addresses from FIRST on: it listens when this returns. */
static inline pid_t server_start(int number, int first, int count)
{
	int range[3] = {number, first, count};
	uint32_t before = world->ready;
	pid_t pid = child_start(server_run, range, 120);

	while (world->ready == before)
		usleep(1000);
	return pid;
}

static inline void await_total(slmpm_ctx ctx, uint32_t total)
{
	int64_t until = actor_now_ms() + PATIENCE * 4;

	while (world->total < total) {
		CHECK(actor_now_ms() < until, "%u of %u messages have come", world->total, total);
		if (ctx.id)
			(void)slmpm_progress(ctx);
		else
			usleep(1000);
	}
}

static inline struct slmpm_wr word_to(slmpm_peer peer, uint32_t channel,
				      const struct slmpm_iov *iov)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_SEND,
				 .channel = channel,
				 .cookie = channel,
				 .peer = peer,
				 .iov = iov,
				 .iov_count = 1};
}

#endif
