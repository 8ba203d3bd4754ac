/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mirror whose ring is full: what changes while a publication goes out in pieces, and messages
 * that wait for room beside changes that are flushed again and again.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE   ((size_t)256 << 10) /* many times the ring */
#define LAST   (SIZE / sizeof(uint64_t) - 1)
#define QUEUED 64
#define TURNS  1000

static slmpm_ctx leads, follows;
static slmpm_peer near, far; /* the follower as the leader sees it; the leader */
static slmpm_mirror leader, follower;
static uint64_t here[SIZE / sizeof(uint64_t)], there[SIZE / sizeof(uint64_t)];
static slmpm_listener listener;

static void *accept_it(void *arg)
{
	(void)arg;
	OK(slmpm_accept(listener, &far, PATIENCE));
	return NULL;
}

/* Each in a context of its own: one moves on while the other does not. */
static void open_both(void)
{
	pthread_t thread;
	char url[64];

	snprintf(url, sizeof(url), "shm:crowded-%d", (int)getpid());
	OK(slmpm_open(&leads, NULL));
	OK(slmpm_open(&follows, NULL));
	OK(slmpm_listen(&listener, follows, url));
	OK(pthread_create(&thread, NULL, accept_it, NULL));
	OK(slmpm_connect(&near, leads, url, PATIENCE));
	OK(pthread_join(thread, NULL));
	OK(slmpm_unlisten(listener));
}

static void mirror(uint32_t track)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = track};
	struct slmpm_mirror_info info = {.size = sizeof(info)};
	int rc = -1;

	OK(slmpm_mirror_create(leads, here, SIZE, &o, &leader));
	OK(slmpm_mirror_create(follows, there, SIZE, NULL, &follower));
	(void)slmpm_mirror_attach(leader, near, 1, SLMPM_MIRROR_LEAD, 0);
	while (rc < 0) {
		(void)slmpm_progress(leads);
		rc = slmpm_mirror_attach(follower, far, 1, SLMPM_MIRROR_FOLLOW, 0);
	}
	do {
		(void)slmpm_progress(leads);
		(void)slmpm_progress(follows);
		OK(slmpm_mirror_query(follower, far, &info));
	} while (info.state != SLMPM_MIRROR_LIVE);
	OK(slmpm_mirror_attach(leader, near, 1, SLMPM_MIRROR_LEAD, PATIENCE));
}

static void settle(void)
{
	while (slmpm_mirror_flush(leader, 0) < 0)
		(void)slmpm_progress(follows);
	while (slmpm_progress(follows) > 0)
		;
	CHECK(memcmp(here, there, SIZE) == 0, "the two differ");
}

static void unmirror(void)
{
	OK(slmpm_mirror_destroy(leader));
	OK(slmpm_mirror_destroy(follower));
	for (int quiet = 0; quiet < 20; quiet++)
		if (slmpm_progress(leads) > 0 || slmpm_progress(follows) > 0)
			quiet = 0;
}

/* What a look has found is not sent yet when it changes, and is as it was when it has been sent: no
 * look finds that. So what is sent is what was found. */
static void undone(void)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	mirror(SLMPM_TRACK_TWIN);
	for (size_t i = 0; i <= LAST; i++)
		here[i] = 1;
	EXPECT(slmpm_mirror_flush(leader, 0), -SLMPM_EAGAIN);
	OK(slmpm_mirror_query(leader, near, &info));
	CHECK(info.waiting >= sizeof(here[0]), "all of it has gone");
	here[LAST] = 2;
	while (info.waiting) {
		(void)slmpm_progress(follows);
		(void)slmpm_progress(leads);
		OK(slmpm_mirror_query(leader, near, &info));
	}
	here[LAST] = 1;
	settle();
	unmirror();
}

/* The first room that there is goes to who waits for it, whatever is flushed meanwhile. */
static void waiting(void)
{
	static unsigned char message[1000];
	const struct slmpm_iov iov = {message, sizeof(message)};
	slmpm_req reqs[QUEUED];
	int came = 0, turns = 0;

	mirror(SLMPM_TRACK_NONE);
	for (int i = 0; i < QUEUED; i++)
		OK(slmpm_sendv(near, 5, &iov, 1, NULL, &reqs[i]));
	EXPECT(slmpm_test(&reqs[QUEUED - 1], NULL), 0);
	for (; came < QUEUED && turns < TURNS; turns++) {
		while (slmpm_recv(far, 5, message, sizeof(message), NULL, 0) >= 0)
			came++;
		OK(slmpm_mirror_store64(leader, &here[0], (uint64_t)turns));
		(void)slmpm_mirror_flush(leader, 0);
	}
	CHECK(came == QUEUED, "%d of %d messages in %d turns", came, QUEUED, turns);
	for (int i = 0; i < QUEUED; i++)
		CHECK(slmpm_wait(reqs, QUEUED, NULL, PATIENCE) >= 0, "message %d", i);
	settle();
	unmirror();
}

int main(void)
{
	settings_one_link("shm");
	setenv("SLMPM_RING_SEGMENTS", "128", 1);
	setenv("SLMPM_PUBLISH", "every", 1);
	open_both();
	undone();
	waiting();
	OK(slmpm_shut(leads, PATIENCE));
	OK(slmpm_shut(follows, PATIENCE));
	return 0;
}
