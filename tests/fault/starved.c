/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/* native-only */
/*
 * No memory for messages that nobody has asked for yet: they hold their sender up, and come in
 * order as they are received. Where none is received for long the connection ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/memory_limit.h"
#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define BYTES   (UINT64_C(8) << 20) /* of messages, in all */
#define LONGEST 200000
#define LARGE   (1 << 20)
#define SHORT   300000 /* more than its first packet */
#define SPARE   65536  /* bytes of memory that are left */
#define WHILE   200    /* ms without */
#define DEAD    "300"  /* ms: for so long it is tried */

static const size_t lengths[] = {100, 5000, 60000, LONGEST};

static unsigned char data[LONGEST], large[LARGE];

static uint64_t count_of(size_t length)
{
	return BYTES / length;
}

static int role_flood(slmpm_peer host, char **words)
{
	size_t length = strtoull(words[0], NULL, 10);
	int rc = 0;

	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	for (uint64_t i = 0; !rc && i < count_of(length); i++) {
		actor_fill(data, i, length);
		rc = slmpm_send(host, 1, data, length, PATIENCE);
	}
	if (!rc)
		(void)slmpm_recv(host, 0, NULL, 0, NULL,
				 PATIENCE); /* what it sent may be on its way */
	return 0;
}

static int role_once(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	actor_fill(large, 1, sizeof(large));
	OK(slmpm_send(host, 1, large, sizeof(large), PATIENCE));
	(void)slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE);
	return 0;
}

static slmpm_peer flooding_child(size_t length)
{
	char word[24];
	slmpm_peer child;

	snprintf(word, sizeof(word), "%zu", length);
	child = actor_spawn("flood", word, NULL);
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	memory_limit(SPARE);
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	return child;
}

static uint64_t unexpected(slmpm_peer peer)
{
	struct slmpm_stats s;

	OK(slmpm_peer_stats(peer, &s, sizeof(s)));
	return s.unexpected;
}

/* All of them, though there is memory for a few at a time. */
static int come_in_order(void *arg)
{
	const size_t *length = arg;
	slmpm_peer child = flooding_child(*length);

	EXPECT(slmpm_recv(child, 9, NULL, 0, NULL, WHILE), -SLMPM_ETIMEOUT);
	CHECK(unexpected(child) < count_of(*length), "there was memory for all");
	for (uint64_t i = 0; i < count_of(*length); i++) {
		EXPECT(slmpm_recv(child, 1, data, sizeof(data), NULL, PATIENCE), *length);
		CHECK(actor_filled(data, i, *length), "message %llu", (unsigned long long)i);
	}
	memory_limit(0);
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	actor_join(child, 0);
	return 0;
}

static int end_in_time(void *arg)
{
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_UP};
	int64_t until = actor_now_ms() + PATIENCE;
	slmpm_peer child;

	settings_set("SLMPM_DEAD_MS", DEAD);
	child = flooding_child(*(const size_t *)arg);
	while (info.state == SLMPM_PEER_UP) {
		CHECK(actor_now_ms() < until, "%zu bytes: it is tried for ever",
		      *(const size_t *)arg);
		(void)slmpm_recv(child, 9, NULL, 0, NULL, 10);
		OK(slmpm_peer_query(child, &info));
	}
	memory_limit(0);
	REFUSED(slmpm_send(child, 0, NULL, 0, 0), SLMPM_ENOMEM, "memory");
	OK(slmpm_kill(child, 0));
	(void)slmpm_join(child, NULL, PATIENCE);
	return 0;
}

/* A receive that is too short for it, and taken back meanwhile: its buffer is the caller's
 * again. */
static int taken_back(void *arg)
{
	slmpm_peer child;

	(void)arg;
	settings_one_link("tcp");
	child = actor_spawn("once", NULL, NULL);
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	memory_limit(SPARE);
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(child, 1, large, SHORT, NULL, WHILE), -SLMPM_ETIMEOUT);
	memset(large, 0, sizeof(large));
	memory_limit(0);
	EXPECT(slmpm_recv(child, 1, large, sizeof(large), NULL, PATIENCE), sizeof(large));
	CHECK(actor_filled(large, 1, sizeof(large)), "it was read from where it is not any more");
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	actor_join(child, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"flood", role_flood}, {"once", role_once}, {NULL, NULL}};

	setenv("SLMPM_EAGER_CREDIT", "64m", 0);
	actor_begin(argc, argv, roles);
	EXPECT(child_run(taken_back, NULL, 30), 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t length = lengths[i];

		EXPECT(child_run(come_in_order, &length, 30), 0);
		EXPECT(child_run(end_in_time, &length, 30), 0);
	}
	return 0;
}
