/* SPDX-License-Identifier: BSD-3-Clause */
/* One who connects, talks and leaves, again and again (soak.h). */
#include <poll.h>
#include <slmpm.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/random.h"
#include "tests/lib/soak.h"

#define MESSAGES_MOST 60

struct talker {
	struct soak_board *board;
	struct soak_hub *hub;
	struct soak_talk *talk;
	struct rng random;
	uint32_t life; /* of the hub, when this talk began */
	slmpm_peer peer;
};

static unsigned char buf[SOAK_LONG];

static bool is_orphan(const struct talker *t)
{
	return atomic_load(&t->hub->life) != t->life;
}

/* RC is no failure, or one of a hub that was killed. */
static bool goes_on(const struct talker *t, int64_t rc, const char *what)
{
	if (rc >= 0)
		return true;
	CHECK(is_orphan(t), "%s: %lld: %s", what, (long long)rc, slmpm_error_detail());
	soak_add(t->board, SOAK_ORPHANED, 1);
	return false;
}

static size_t length_of(struct rng *g)
{
	size_t more = rng_one_in(g, 100) ? SOAK_LONG - 64 :
		      rng_one_in(g, 20)  ? 60000 :
		      rng_one_in(g, 4)   ? 3000 :
					   100;

	return sizeof(struct soak_head) + rng_below(g, (uint32_t)more);
}

static bool say(struct talker *t, uint64_t number, uint32_t index, uint32_t flags)
{
	struct soak_head head = {.talk = number, .index = index, .flags = flags}, back;
	size_t n = length_of(&t->random);
	int64_t got;

	memcpy(buf, &head, sizeof(head));
	actor_fill(buf + sizeof(head), soak_seed(&head), n - sizeof(head));
	if (!goes_on(t, slmpm_send(t->peer, 1, buf, n, SOAK_MS), "send"))
		return false;
	atomic_store(&t->talk->sent, index + 1);
	if (!(flags & SOAK_ANSWER))
		return true;
	got = slmpm_recv(t->peer, 2, &back, sizeof(back), NULL, SOAK_MS);
	if (!goes_on(t, got, "answer"))
		return false;
	CHECK(got == sizeof(back) && back.talk == number && back.index == index,
	      "an answer to message %u of talk %llu in place of message %u of talk %llu",
	      back.index, (unsigned long long)back.talk, index, (unsigned long long)number);
	return true;
}

/* Over all that the hub lets this process write: it harms this talk, and nothing else. */
static void forge(struct talker *t)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	char line[512];

	CHECK(maps, "no /proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "memfd:slmpm") || !strstr(line, " rw-s ") ||
		    sscanf(line, "%lx-%lx", &begin, &end) != 2)
			continue;
		for (int i = 0; i < 200; i++) {
			uint64_t at = begin + rng_next(&t->random) % (end - begin) / 8 * 8;

			*(volatile uint64_t *)(uintptr_t)at = rng_one_in(&t->random, 2) ?
								      rng_next(&t->random) :
								      rng_below(&t->random, 256);
		}
	}
	fclose(maps);
	soak_add(t->board, SOAK_FORGED, 1);
	(void)!slmpm_send(t->peer, 1, buf, 100, 10);
	_exit(0);
}

static void talk(struct talker *t)
{
	uint32_t count = 1 + rng_below(&t->random, MESSAGES_MOST);
	bool forges = rng_one_in(&t->random, 40);
	uint64_t number = 1 + atomic_fetch_add(&t->board->talks, 1);

	t->talk = &t->board->talk[number % SOAK_TALKS];
	atomic_store(&t->talk->sent, 0);
	atomic_store(&t->talk->forges, forges);
	atomic_store(&t->talk->number, number);
	if (!goes_on(t, slmpm_connect(&t->peer, (slmpm_ctx){0}, t->hub->url, SOAK_MS), "connect"))
		return;
	for (uint32_t i = 0; i < count; i++) {
		bool last = i == count - 1;
		uint32_t flags = (last ? SOAK_LAST : 0) |
				 (last || !i || rng_one_in(&t->random, 8) ? SOAK_ANSWER : 0);

		if (!say(t, number, i, flags)) {
			OK(slmpm_close(t->peer, 0));
			return;
		}
		if (forges)
			forge(t);
	}
	(void)goes_on(t, slmpm_close(t->peer, SOAK_MS), "close");
}

static bool await_hub(struct talker *t)
{
	do {
		if (atomic_load(&t->board->talkers_end))
			return false;
		t->life = atomic_load(&t->hub->life);
		if (atomic_load(&t->hub->ready) == t->life)
			return true;
		(void)poll(NULL, 0, 1);
	} while (true);
}

int soak_talker(void *arg)
{
	const struct soak_role *role = arg;
	struct talker t = {
		.board = role->board,
		.hub = &role->board->hub[role->fabric],
		.random = {role->seed},
	};

	while (await_hub(&t))
		talk(&t);
	return 0;
}
