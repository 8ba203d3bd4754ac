/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * One peer sends so fast that a receive from it never finds its ring empty, and nothing else is
 * called: active messages of another are handled all the same, and the death of a third is noticed,
 * in bounded time.
 */
#include <signal.h>
#include <slmpm_am.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define BOUND 2000 /* ms; a turn comes every millisecond or so */
#define WORDS 16
#define NEWS  9

static const slmpm_ctx none;
static uint64_t heard;

static void hear(const struct slmpm_am *am, void *arg)
{
	(void)am;
	(void)arg;
	heard++;
}

/* Until nobody wants it any more. */
static int flood(slmpm_peer host, char **words)
{
	uint64_t i = 0;
	int rc;

	(void)words;
	while ((rc = slmpm_send(host, 1, &i, sizeof(i), PATIENCE)) == 0)
		i++;
	CHECK(rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD, "%d: %s", rc, slmpm_error_detail());
	return 0;
}

static int call(slmpm_peer host, char **words)
{
	uint64_t word;

	(void)words;
	EXPECT(slmpm_recv(host, 2, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	for (word = 0; word < WORDS; word++)
		OK(slmpm_am(host, NEWS, &word, sizeof(word), NULL, 0, NULL, NULL));
	EXPECT(slmpm_recv(host, 2, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	return 0;
}

static int die(slmpm_peer host, char **words)
{
	char byte;

	(void)words;
	(void)slmpm_recv(host, 2, &byte, 1, NULL, PATIENCE);
	return raise(SIGKILL);
}

static uint32_t state_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.state;
}

/* Of receives from the flood alone. */
static int64_t listen_until(slmpm_peer flooding, slmpm_peer dying)
{
	int64_t began = actor_now_ms(), until = began + (int64_t)BOUND * actor_slow();
	static unsigned char work[8192]; /* takes longer than a send */
	uint64_t word;

	while (heard < WORDS || (dying.id && state_of(dying) == SLMPM_PEER_UP)) {
		for (int i = 0; i < 1000; i++) {
			EXPECT(slmpm_recv(flooding, 1, &word, sizeof(word), NULL, PATIENCE),
			       sizeof(word));
			actor_fill(work, word, sizeof(work));
		}
		CHECK(actor_now_ms() < until, "%llu of %d words were heard, the third is %s",
		      (unsigned long long)heard, WORDS,
		      state_of(dying) == SLMPM_PEER_UP ? "up" : "dead");
	}
	return actor_now_ms() - began;
}

static int flooded(void *unused)
{
	slmpm_peer flooding = actor_spawn("flood", NULL, NULL);
	slmpm_peer calling = actor_spawn("call", NULL, NULL);
	slmpm_peer dying = actor_spawn("die", NULL, NULL);
	uint64_t word = 0;

	(void)unused;
	OK(slmpm_am_handler(none, NEWS, hear, NULL));
	for (int i = 0; i < 1000; i++) /* it has begun */
		EXPECT(slmpm_recv(flooding, 1, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	OK(slmpm_send(calling, 2, &word, sizeof(word), PATIENCE));
	OK(slmpm_send(dying, 2, &word, 1, PATIENCE));
	printf("all that in %lld ms\n", (long long)listen_until(flooding, dying));
	OK(slmpm_send(calling, 2, &word, sizeof(word), PATIENCE));
	actor_join(calling, 0);
	OK(slmpm_close(flooding, PATIENCE));
	actor_join(flooding, 0);
	EXPECT(slmpm_join(dying, NULL, PATIENCE), 128 + SIGKILL);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"flood", flood}, {"call", call}, {"die", die}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	EXPECT(child_run(flooded, NULL, 30 * (unsigned)actor_slow()), 0);
	return 0;
}
