/* SPDX-License-Identifier: BSD-3-Clause */
/* Who founds a group, and the others, as processes. */
#include "tests/lib/circle.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define NUMBER 9 /* the stream on which each says which it is */

slmpm_ctx circle_own;

struct role {
	char url[400], apart[400];
	uint64_t far;
	circle_part *part;
	void *arg;
	int i;
	uint32_t flags;
};

static int play(void *arg)
{
	const struct role *r = arg;
	struct slmpm_options options = {.size = sizeof(options), .flags = r->flags};
	slmpm_peer founder;

	OK(slmpm_open(&circle_own, &options));
	OK(slmpm_connect(&founder, circle_own, r->far >> r->i & 1 ? r->apart : r->url, PATIENCE));
	OK(slmpm_send(founder, NUMBER, &r->i, sizeof(r->i), PATIENCE));
	r->part(founder, r->i, r->arg);
	OK(slmpm_shut(circle_own, PATIENCE));
	return 0;
}

static void listen_apart(struct circle *c, char *url, size_t size)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_listen(&c->door, c->ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(c->door, &info));
	snprintf(url, size, "%s#%s", info.url, info.secret);
}

void circle_begin(struct circle *c, int n, circle_part *part, void *arg, unsigned seconds)
{
	struct slmpm_options options = {.size = sizeof(options), .flags = c->flags};
	struct role r = {.part = part, .arg = arg, .flags = c->flags};
	int far = __builtin_popcountll(n < 64 ? c->apart & ((UINT64_C(1) << n) - 1) : c->apart);

	CHECK(n <= CIRCLE_MAX, "%d others", n);
	settings_one_link(c->apart ? "tcp" : "shm");
	snprintf(r.url, sizeof(r.url), "shm:circle-%d", (int)getpid());
	c->n = n;
	OK(slmpm_open(&c->ctx, &options));
	OK(slmpm_listen(&c->listener, c->ctx, r.url));
	r.far = c->apart;
	if (c->apart)
		listen_apart(c, r.apart, sizeof(r.apart));
	for (int i = 0; i < n; i++) {
		r.i = i;
		c->pids[i] = child_start(play, &r, seconds * (unsigned)actor_slow());
	}
	for (int k = 0; k < n; k++) {
		slmpm_peer peer;
		int i;

		OK(slmpm_accept(k < far ? c->door : c->listener, &peer, PATIENCE));
		EXPECT(slmpm_recv(peer, NUMBER, &i, sizeof(i), NULL, PATIENCE), sizeof(i));
		CHECK(i >= 0 && i < n, "number %d", i);
		c->peers[i] = peer;
	}
}

int circle_wait(struct circle *c, int i)
{
	int status = child_wait(c->pids[i]);

	c->pids[i] = 0;
	return status;
}

void circle_end(struct circle *c)
{
	OK(slmpm_shut(c->ctx, PATIENCE));
	for (int i = 0; i < c->n; i++)
		if (c->pids[i])
			EXPECT(circle_wait(c, i), 0);
}

struct slmpm_group_info circle_query(slmpm_group group)
{
	struct slmpm_group_info info = {.size = sizeof(info)};

	OK(slmpm_group_query(group, &info));
	return info;
}

void circle_breaks(slmpm_group group, int status, int culprit)
{
	int64_t end = actor_now_ms() + PATIENCE;
	struct slmpm_group_info info = circle_query(group);

	while (!info.status && actor_now_ms() < end) {
		usleep(1000);
		info = circle_query(group);
	}
	CHECK(info.status == status && info.culprit == culprit,
	      "status %d by %d; expected %d by %d", info.status, info.culprit, status, culprit);
}
