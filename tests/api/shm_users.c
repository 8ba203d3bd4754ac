/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who meets at shm:NAME and shm:/path: processes of one user, root being a user like any other;
 * names are each user's own. A listener that has begun as root and is another user's by now takes
 * in that one's, and root's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define A 65533u
#define B 65534u

static const struct meeting {
	uid_t begins, listens, connects; /* the listener's before and now */
	int by_name, by_path;            /* what slmpm_connect returns */
} meetings[] = {
	{0, 0, 0, 0, 0},
	{A, A, A, 0, 0},
	{0, 0, A, -SLMPM_ENOENT, -SLMPM_EACCES},
	{A, A, 0, -SLMPM_ENOENT, -SLMPM_EACCES},
	{A, A, B, -SLMPM_ENOENT, -SLMPM_EACCES},
	{0, A, A, -SLMPM_ENOENT, 0},
	{0, A, B, -SLMPM_ENOENT, -SLMPM_EACCES},
	{0, A, 0, 0, 0},
};

static char url[64];
static _Atomic int *step; /* 1: it listens; 2: the other has tried */
static const struct meeting *now;
static int expected;

static void become(uid_t user)
{
	if (user != geteuid())
		CHECK(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0,
		      "user %u", user);
}

static int listens(void *path)
{
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;

	become(now->begins);
	OK(slmpm_listen(&listener, none, url));
	CHECK(!path || chmod(path, 0666) == 0, "the socket is not to be opened");
	become(now->listens);
	*step = 1;
	if (expected == 0) {
		OK(slmpm_accept(listener, &peer, PATIENCE));
		EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
		OK(slmpm_close(peer, PATIENCE));
	}
	while (*step == 1)
		CHECK(slmpm_accept(listener, &peer, 1) == -SLMPM_ETIMEOUT, "another one");
	return 0; /* the path is perhaps not its own to remove */
}

static int connects(void *arg)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;
	(void)arg;

	become(now->connects);
	EXPECT(slmpm_connect(&peer, none, url, PATIENCE), expected);
	if (expected == -SLMPM_EACCES)
		CHECK(strstr(slmpm_error_detail(),
			     now->begins ? "runs as another user" : "began as root"),
		      "%s", slmpm_error_detail());
	if (expected == 0) {
		OK(slmpm_send(peer, 1, NULL, 0, PATIENCE));
		OK(slmpm_close(peer, PATIENCE));
	}
	return 0;
}

static void meet(const struct meeting *m, char *path)
{
	pid_t listener;

	now = m;
	expected = path ? m->by_path : m->by_name;
	if (path)
		snprintf(url, sizeof(url), "shm:%s", path);
	else
		snprintf(url, sizeof(url), "shm:users-%d", (int)getpid());
	*step = 0;
	listener = child_start(listens, path, 30);
	for (int i = 0; i < 20000 && *step == 0; i++)
		usleep(1000);
	CHECK(child_run(connects, NULL, 30) == 0, "%s, begun as %u, of %u, from %u: see above", url,
	      m->begins, m->listens, m->connects);
	*step = 2;
	CHECK(child_wait(listener) == 0, "%s, begun as %u, of %u: see above", url, m->begins,
	      m->listens);
	if (path)
		(void)unlink(path);
}

int main(void)
{
	char folder[] = "/tmp/shm-users-XXXXXX", path[48];

	if (geteuid() != 0)
		test_skip("only root can be another user");
	step = child_common(sizeof(*step));
	CHECK(mkdtemp(folder) && chmod(folder, 0777) == 0, "no folder");
	snprintf(path, sizeof(path), "%s/socket", folder);
	for (size_t i = 0; i < sizeof(meetings) / sizeof(*meetings); i++) {
		meet(&meetings[i], NULL);
		meet(&meetings[i], path);
	}
	CHECK(rmdir(folder) == 0, "something was left there");
	return 0;
}
