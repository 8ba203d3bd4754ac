/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a tcp:// connection on one machine find that out, and leave the network; or stay. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"

#define SECONDS 30
#define NOBODY  65534

static slmpm_ctx ctx;

struct meeting {
	const char *connector, *listener; /* SLMPM_FABRIC */
	unsigned user, host;              /* of who connects, of who listens; 0: the same */
	bool near;
	bool drops; /* who listens is root until it does */
};

#define GUESTS 4
#define URL    400

/* Settings are read once a process, so guests are started first; the address comes by a pipe. */
static struct {
	int pipe[2];
	pid_t pid;
} guests[GUESTS];
static int number; /* of this one */

static int pid_told(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	CHECK(info.state == SLMPM_PEER_UP, "state %u", info.state);
	CHECK(!!strstr(info.name, "127.0.0.1") == !info.pid, "pid %d, \"%s\"", info.pid, info.name);
	return info.pid;
}

static int guest(void *arg)
{
	const struct meeting *m = arg;
	slmpm_peer host;
	char text[8], url[URL];

	setenv("SLMPM_FABRIC", m->connector, 1);
	CHECK(!m->user || setuid(m->user) == 0, "user %u", m->user);
	OK(slmpm_open(&ctx, NULL));
	CHECK(read(guests[number].pipe[0], url, URL) == URL, "no address");
	OK(slmpm_connect(&host, ctx, url, PATIENCE));
	EXPECT(pid_told(host), m->near ? getppid() : 0);
	OK(slmpm_send(host, 0, "hello", 5, PATIENCE));
	EXPECT(slmpm_recv(host, 0, text, sizeof(text), NULL, PATIENCE), 2);
	EXPECT(slmpm_recv(host, 0, text, sizeof(text), NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

/* PEER has come, and nobody else; its secondary links, if it has any, may have, too. */
static void check_events(slmpm_peer peer)
{
	struct slmpm_event event = {.size = sizeof(event)};
	int i = 0;

	while (slmpm_next_event(ctx, &event, 0) == 1) {
		if (event.type == SLMPM_EVENT_LINK_UP || event.type == SLMPM_EVENT_LINK_LOST)
			continue;
		CHECK(!i && event.type == SLMPM_EVENT_UP && event.peer.id == peer.id,
		      "event %u: %s", event.type, event.detail);
		i++;
	}
	EXPECT(i, 1);
}

/* What has been said last lingers in a socket until the context sleeps, where all have heard it: at
 * once, or a little later beside load. */
static void rest(slmpm_listener listener, int most)
{
	int64_t until = actor_now_ms() + PATIENCE;
	slmpm_peer nobody;

	do
		EXPECT(slmpm_accept(listener, &nobody, 10), -SLMPM_ETIMEOUT);
	while (actor_descriptors() > most && actor_now_ms() < until);
}

static void start_guests(struct meeting *m)
{
	for (number = 0; number < GUESTS; number++) {
		CHECK(pipe(guests[number].pipe) == 0, "no pipe");
		guests[number].pid = child_start(guest, m, SECONDS);
	}
}

static void host_one(const struct meeting *m, slmpm_listener listener, const char *url)
{
	struct slmpm_event event = {.size = sizeof(event)};
	pid_t pid = guests[--number].pid;
	slmpm_peer peer;
	char text[8];

	CHECK(write(guests[number].pipe[1], url, URL) == URL, "it has left");
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(pid_told(peer), m->near ? pid : 0);
	EXPECT(slmpm_recv(peer, 0, text, sizeof(text), NULL, PATIENCE), 5);
	OK(slmpm_send(peer, 0, "hi", 2, PATIENCE));
	check_events(peer);
	OK(slmpm_close(peer, PATIENCE));
	EXPECT(slmpm_next_event(ctx, &event, 0), 0);
	CHECK(child_wait(pid) == 0, "the guest: see above");
}

static int meet(void *arg)
{
	struct meeting *m = arg;
	struct slmpm_listener_info info = {.size = sizeof(info)};
	struct holdings before;
	slmpm_listener listener;
	char url[URL];

	start_guests(m);
	setenv("SLMPM_FABRIC", m->listener, 1);
	CHECK(!m->host || m->drops || setuid(m->host) == 0, "user %u", m->host);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, "tcp://127.0.0.1:0"));
	CHECK(!m->host || setuid(m->host) == 0, "user %u", m->host);
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	host_one(m, listener, url);
	rest(listener, INT_MAX);
	before = holdings_now(); /* domains have been opened */
	while (number)
		host_one(m, listener, url);
	rest(listener, before.descriptors);
	holdings_expect(before, "afterwards");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* Both ends in one context. */
static int meet_oneself(void *arg)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_peer a, b;
	char url[URL], text[8];

	(void)arg;
	setenv("SLMPM_FABRIC", "shm", 1);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	OK(slmpm_connect(&a, ctx, url, PATIENCE));
	OK(slmpm_accept(listener, &b, PATIENCE));
	EXPECT(pid_told(a), getpid());
	EXPECT(pid_told(b), getpid());
	OK(slmpm_send(a, 0, "x", 1, PATIENCE));
	EXPECT(slmpm_recv(b, 0, text, sizeof(text), NULL, PATIENCE), 1);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- at the door ---- */

/* A packet socket of this name, or of none, at the door called DOOR; -1: it cannot be made. */
static int knock(const char *door, const char *own)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX}, from = to;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	size_t head = offsetof(struct sockaddr_un, sun_path) + 1;

	CHECK(fd >= 0, "no socket");
	memcpy(to.sun_path + 1, door, strlen(door));
	memcpy(from.sun_path + 1, own, strlen(own));
	CHECK(!*own || bind(fd, (void *)&from, (socklen_t)(head + strlen(own))) == 0, "%s", own);
	if (connect(fd, (void *)&to, (socklen_t)(head + strlen(door))) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool is_ours(int fd)
{
	struct ucred who = {0};
	socklen_t size = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == getpid();
}

/* The name of this process's door, which anybody can read. */
static void find_door(char door[64])
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[256];
	int fd = -1;

	CHECK(f, "/proc/net/unix");
	while (fd < 0 && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "@slmpm-near/");

		if (!at || strchr(at + 12, '/'))
			continue;
		at[strcspn(at, "\n")] = 0;
		snprintf(door, 64, "%.63s", at + 1);
		fd = knock(door, "");
		if (fd >= 0 && !is_ours(fd)) {
			close(fd);
			fd = -1;
		}
	}
	fclose(f);
	CHECK(fd >= 0, "no door");
	close(fd);
}

/* Who was not invited is shown out, whatever it calls itself. */
static int knock_uninvited(void *arg)
{
	static const char *const names[] = {"",
					    "somebody",
					    "/0000000000000001",
					    "/0",
					    "/0000000000000000",
					    "/ffffffffffffffff",
					    "/-1",
					    "/000000000000000000000001"};
	slmpm_listener listener;
	slmpm_peer nobody;
	char door[64], own[128], said[128];
	ssize_t n;

	(void)arg;
	setenv("SLMPM_FABRIC", "shm", 1);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, "tcp://127.0.0.1:0"));
	find_door(door);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int fd;

		snprintf(own, sizeof(own), "%s%s", names[i][0] == '/' ? door : "", names[i]);
		fd = knock(door, own);
		CHECK(fd >= 0, "\"%s\": the door is shut", own);
		CHECK(send(fd, "let me in", 9, MSG_NOSIGNAL) == 9, "\"%s\"", own);
		do
			EXPECT(slmpm_accept(listener, &nobody, 2), -SLMPM_ETIMEOUT);
		while ((n = recv(fd, said, sizeof(said), MSG_DONTWAIT)) < 0 && errno == EAGAIN);
		CHECK(n <= 0, "\"%s\" was let in", own);
		close(fd);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int look_for_fabric(void *arg)
{
	struct slmpm_fabric_info info = {.size = sizeof(info)};

	(void)arg;
	for (int i = 0; slmpm_fabric_at(i, &info) == 0; i++)
		if (!strcmp(info.name, "tcp") && info.available)
			return 0;
	return TEST_SKIPPED;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};
	static struct meeting meetings[] = {
		{"shm", "shm", 0, 0, true, false},
		{"tcp", "shm", 0, 0, false, false},
		{"shm", "tcp", 0, 0, false, false},
		{"shm", "shm", NOBODY, 0, false, false},
		{"shm", "shm", 0, NOBODY, false, false},
		{"shm", "shm", NOBODY, NOBODY, false, true},
		{"shm", "shm", 0, NOBODY, true, true},
	};

	actor_begin(argc, argv, roles);
	unsetenv("SLMPM_SECRET");
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	if (child_run(look_for_fabric, NULL, SECONDS) == TEST_SKIPPED)
		test_skip("the fabric \"tcp\" cannot be used here");
	for (size_t i = 0; i < sizeof(meetings) / sizeof(*meetings); i++)
		if ((!meetings[i].user && !meetings[i].host) || geteuid() == 0)
			CHECK(child_run(meet, &meetings[i], SECONDS) == 0, "%s to %s: see above",
			      meetings[i].connector, meetings[i].listener);
	CHECK(child_run(knock_uninvited, NULL, SECONDS) == 0, "uninvited: see above");
	CHECK(child_run(meet_oneself, NULL, SECONDS) == 0, "oneself: see above");
	return 0;
}
