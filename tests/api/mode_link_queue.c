/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages leave a link over TCP for its queue: what is long lies in the stream and fills no ring.
 * They come whole and in order, it is come back to when the queue is short, and with a threshold
 * that is never reached none leaves.
 */
#include <signal.h>

#include "tests/lib/links.h"
#include "tests/lib/settings.h"
#include "tests/lib/slow_reader.h"

#define MANY  600 /* of 24 KiB, beyond what sockets and rings hold */
#define QUEUE 8   /* SLMPM_MODE_QUEUE */
#define MOST  18  /* under way in waves, */
#define WAVE  12  /* ... each of so many */

static struct chosen sent[MANY];

/* Queued while the reader is stopped: by the other link, how many, and how often links changed. */
static int send_many(slmpm_peer reader, int pid, int *changes)
{
	struct slmpm_monitor m;
	int left = 0, link = 0, before = 0;
	struct slmpm_done done;

	slow_reader_pause(reader, pid);
	for (int i = 0; i < MANY; i++)
		chosen_post(reader, KIB(24), 0, &sent[i]);
	OK(slmpm_monitor(reader, &m, sizeof(m)));
	CHECK(m.queue_depth > 2 * QUEUE, "%d queued", (int)m.queue_depth);
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < MANY; i++) {
		EXPECT(slmpm_wait(&sent[i].req, 1, &done, PATIENCE), 0);
		OK(done.status);
		link = links_told(&done);
		left += link == 1 && done.reason == SLMPM_REASON_LINK;
		*changes += link != before;
		before = link;
	}
	return left;
}

/* By the first link again: with next to nothing queued. */
static void expect_back(slmpm_peer reader)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_done done;
	struct chosen s;

	do {
		chosen_post(reader, KIB(24), 0, &s);
		EXPECT(slmpm_wait(&s.req, 1, &done, PATIENCE), 0);
		OK(done.status);
		OK(slmpm_peer_mode(reader, &mode));
	} while (links_told(&done) != 0 && actor_now_ms() < until);
	EXPECT(links_told(&done), 0);
}

/* The queue grows beyond the threshold and falls below it, but never to little, again and again. */
static int send_waves(void *nothing)
{
	int pid, changes = 0, before = 0, posted = 0, left = 0, n = 50 * WAVE;
	slmpm_peer reader = slow_reader_begin(&pid);
	struct slmpm_done done;

	(void)nothing;
	links_await();
	for (int i = 0; i < n; i++) {
		if (i % WAVE == 0)
			for (; posted < i + MOST && posted < n; posted++)
				chosen_post(reader, KIB(24), 0, &sent[posted]);
		EXPECT(slmpm_wait(&sent[i].req, 1, &done, PATIENCE), 0);
		OK(done.status);
		changes += links_told(&done) != before;
		before = links_told(&done);
		left += before;
	}
	printf("%d of %d by the other link, %d changes\n", left, n, changes);
	CHECK(left > 0, "none left a link with a long queue");
	CHECK(changes <= 4, "%d changes", changes);
	expect_back(reader);
	slow_reader_end(reader);
	return 0;
}

static int leave_queue(void *never)
{
	int pid, left, changes = 0;
	slmpm_peer reader = slow_reader_begin(&pid);

	links_await();
	left = send_many(reader, pid, &changes);
	if (never)
		CHECK(left == 0, "%d left a link whose queue cannot be too long", left);
	else
		CHECK(left > 0, "none left a link with a long queue");
	printf("%d of %d by the other link, %d changes\n", left, MANY, changes);
	CHECK(changes <= 4, "%d changes", changes);
	expect_back(reader);
	slow_reader_end(reader);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", slow_reader}, {NULL, NULL}};
	static char never[] = "never";

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_set("SLMPM_PACKET_MAX", "16k"); /* a message of one packet stays where it is */
	settings_set("SLMPM_FETCH", "never");
	settings_set("SLMPM_MODE_RING", "101"); /* it is the queue alone */
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,shm");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_MODE_QUEUE", "8");
	settings_run("a long queue", leave_queue, NULL);
	settings_set("SLMPM_LINK", "0"); /* also where it is the default */
	settings_run("a long queue of the default link", leave_queue, NULL);
	settings_set("SLMPM_MODE_LIGHT", "13"); /* one message of the queue */
	settings_set("SLMPM_EAGER_CREDIT", "64k");
	settings_set("SLMPM_EAGER_MAX", "32k");
	settings_run("a queue that grows and falls", send_waves, NULL);
	settings_set("SLMPM_MODE_QUEUE", "1000000");
	settings_run("a queue that is never too long", leave_queue, never);
	return 0;
}
