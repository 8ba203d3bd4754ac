/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer gets no packet that it did not say it takes; what it requires must be known here. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define MESSAGES 100

struct side {
	char name[48];
	uint64_t offered, required;
};

/* How many packets of this KIND the burst took. */
static int count_packets(struct raw_peer *p, uint8_t kind)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;
	int n = 0;

	for (uint64_t messages = 0; messages < MESSAGES;) {
		int rc = ring_peek(&p->r, &packet);

		CHECK(rc >= 0 && actor_now_ms() < until, "message %d does not come", (int)messages);
		if (!rc) {
			(void)poll(NULL, 0, 1);
			continue;
		}
		n += packet.kind == kind;
		messages += packet.kind == WIRE_BUNDLE ? (packet.length - 24) / 8 : 1;
		ring_release(&p->r, &packet);
	}
	return n;
}

/* 0: bundles came; 1: none. */
static int reader(void *arg)
{
	const struct side *s = arg;
	struct raw_peer p;
	int n;

	raw_begin(&p, raw_connect(s->name));
	p.hello.features = LITTLE_64(s->offered);
	p.hello.required = LITTLE_64(s->required);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	CHECK(LITTLE_64(p.heard.features) & WIRE_FEATURE_BUNDLE, "it offers no bundles");
	n = count_packets(&p, WIRE_BUNDLE);
	raw_end(&p);
	return n ? 0 : 1;
}

/* What active messages a peer that offers these gets. */
static void ask(slmpm_peer peer, uint64_t offered)
{
	slmpm_req req;

	if (offered & WIRE_FEATURE_ACTIVE)
		return;
	EXPECT(slmpm_am(peer, 1, NULL, 0, "x", 1, NULL, NULL), -SLMPM_ENOTSUP);
	EXPECT(slmpm_am(peer, 1, NULL, 0, "x", 1, NULL, &req), -SLMPM_ENOTSUP);
}

/* A burst of short messages to a peer that offers and requires these. */
static int burst(uint64_t offered, uint64_t required)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_MORE};
	struct side s = {.offered = offered, .required = required};
	uint64_t value = 0;
	struct slmpm_iov iov = {&value, sizeof(value)};
	slmpm_ctx none = {0};
	slmpm_listener l;
	slmpm_peer peer;
	char url[64];
	pid_t child;
	int rc;

	snprintf(s.name, sizeof(s.name), "features-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", s.name);
	OK(slmpm_listen(&l, none, url));
	child = child_start(reader, &s, 60);
	OK(slmpm_accept(l, &peer, PATIENCE));
	ask(peer, offered);
	for (int i = 0; i < MESSAGES; i++) {
		how.flags = i < MESSAGES - 1 ? SLMPM_MORE : 0;
		OK(slmpm_sendv(peer, 1, &iov, 1, &how, NULL));
	}
	rc = child_wait(child);
	OK(slmpm_close(peer, 0));
	OK(slmpm_unlisten(l));
	return rc;
}

/* As a spawned program: offers nothing, and waits for a message. */
static int be_plain(void)
{
	struct raw_peer p;

	raw_begin(&p, raw_inherited());
	p.hello.features = 0;
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_await_packet(&p);
	raw_end(&p);
	return 0;
}

/* Sent before anything is known of the peer. */
static void ask_early(void)
{
	char *words[] = {(char[]){"plain"}, NULL};
	struct slmpm_done done;
	slmpm_req asked, sent;
	slmpm_peer peer;
	struct slmpm_iov iov = {(char[]){"x"}, 1};

	OK(slmpm_spawn(&peer, "/proc/self/exe", words, NULL));
	OK(slmpm_am(peer, 1, NULL, 0, "x", 1, NULL, &asked));
	OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &sent));
	EXPECT(slmpm_wait(&asked, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_ENOTSUP);
	EXPECT(slmpm_wait(&sent, 1, &done, PATIENCE), 0);
	EXPECT(done.status, 0);
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
}

int main(int argc, char **argv)
{
	settings_one_link("shm");
	if (argc > 1 && strcmp(argv[1], "plain") == 0)
		return be_plain();
	ask_early();
	EXPECT(burst(WIRE_FEATURE_BUNDLE, 0), 0);
	EXPECT(burst(0, 0), 1);
	EXPECT(burst(~WIRE_FEATURE_BUNDLE, 0), 1);
	EXPECT(burst(~WIRE_FEATURE_ACTIVE, 0), 0);
	EXPECT(burst(WIRE_FEATURES | UINT64_C(1) << 63, WIRE_FEATURES), 0);
	return 0;
}
