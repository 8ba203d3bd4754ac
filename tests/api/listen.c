/* SPDX-License-Identifier: BSD-3-Clause */
/* Unrelated processes meet: names and paths, one listener a name, what was sent before accept. */
#include <fcntl.h>
#include <poll.h>

#include <slmpm.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define MS       5000
#define SECONDS  20
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

static const slmpm_ctx none = {0};
static char folder[] = "/tmp/slmpm-listen-XXXXXX", name[80], path[80];

/* Connects, says a word, is gone before anybody has accepted it. */
static int hit_and_run(void *url)
{
	slmpm_peer peer;

	OK(slmpm_connect(&peer, none, url, MS));
	OK(slmpm_send(peer, 3, "word", 4, MS));
	OK(slmpm_close(peer, MS));
	return 0;
}

static void read_word(slmpm_listener listener)
{
	char text[8];
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, MS));
	CHECK(slmpm_recv(peer, 3, text, sizeof(text), NULL, MS) == 4 && !memcmp(text, "word", 4),
	      "%s", slmpm_error_detail());
	CHECK(slmpm_recv(peer, 3, text, sizeof(text), NULL, MS) == -SLMPM_ECLOSED, "%s",
	      slmpm_error_detail());
	OK(slmpm_close(peer, 0));
}

static void progress_until(slmpm_ctx ctx, pid_t child)
{
	siginfo_t info = {.si_pid = 0};

	for (int i = 0; i < 10 * MS && !info.si_pid; i++) {
		(void)slmpm_progress(ctx);
		CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0,
		      "waitid");
		if (!info.si_pid)
			(void)poll(NULL, 0, 1);
	}
	for (int i = 0; i < 100; i++) /* and its end has been seen here */
		(void)slmpm_progress(ctx);
}

static void sent_before_accept(char *url)
{
	slmpm_listener listener;
	pid_t child;

	OK(slmpm_listen(&listener, none, url));
	/* Accepted while it runs or after, it makes no difference. */
	child = child_start(hit_and_run, url, SECONDS);
	read_word(listener);
	CHECK(child_wait(child) == 0, "child");
	child = child_start(hit_and_run, url, SECONDS);
	progress_until(none, child);
	CHECK(child_wait(child) == 0, "child");
	read_word(listener);
	CHECK(slmpm_accept(listener, &(slmpm_peer){0}, 0) == -SLMPM_EAGAIN, "somebody else");
	OK(slmpm_unlisten(listener));
	CHECK(slmpm_unlisten(listener) == -SLMPM_EHANDLE, "twice");
	CHECK(slmpm_accept(listener, &(slmpm_peer){0}, 0) == -SLMPM_EHANDLE, "stale");
}

static void one_listener(char *url)
{
	slmpm_listener first, second = {0};

	OK(slmpm_listen(&first, none, url));
	CHECK(slmpm_listen(&second, none, url) == -SLMPM_EBUSY, "two at %s", url);
	CHECK(strstr(slmpm_error_detail(), url), "%s", slmpm_error_detail());
	OK(slmpm_unlisten(first));
	OK(slmpm_listen(&second, none, url));
	OK(slmpm_unlisten(second));
	CHECK(slmpm_connect(&(slmpm_peer){0}, none, url, 100) == -SLMPM_ENOENT, "nobody there");
	CHECK(strstr(slmpm_error_detail(), url), "%s", slmpm_error_detail());
}

static int listen_and_die(void *url)
{
	slmpm_listener listener;

	OK(slmpm_listen(&listener, none, url));
	_exit(0); /* as a crash would: the path stays */
}

/* A path left by a crash is used again; a file that is no socket is not touched. */
static void what_stands_at_a_path(void)
{
	slmpm_listener listener;
	struct stat st;
	int fd;

	CHECK(child_run(listen_and_die, path, SECONDS) == 0, "child");
	CHECK(stat(path + 4, &st) == 0 && S_ISSOCK(st.st_mode), "nothing was left");
	CHECK(slmpm_connect(&(slmpm_peer){0}, none, path, 100) == -SLMPM_ENOENT, "a dead one");
	OK(slmpm_listen(&listener, none, path));
	CHECK(stat(path + 4, &st) == 0 && (st.st_mode & 077) == 0, "open to others");
	OK(slmpm_unlisten(listener));
	CHECK(stat(path + 4, &st) != 0, "the path stays");
	fd = open(path + 4, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0, "open");
	close(fd);
	CHECK(slmpm_listen(&listener, none, path) < 0, "in place of a file");
	CHECK(strstr(slmpm_error_detail(), path), "%s", slmpm_error_detail());
	CHECK(stat(path + 4, &st) == 0 && S_ISREG(st.st_mode), "the file is gone");
	CHECK(unlink(path + 4) == 0, "unlink");
}

static void bad_urls(void)
{
	static const char *const bad[] = {
		NULL, "", "shm", "shm:", "tcp:host:1", "SHM:x", " shm:x", "shm:/no/such/folder/x",
		"shm"};
	char longer[200] = "shm:";
	slmpm_listener listener = {7};
	slmpm_peer peer = {7};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = slmpm_listen(&listener, none, bad[i]);

		CHECK(rc == -SLMPM_EADDRESS || rc == -SLMPM_ENOENT, "%s: %d", bad[i], rc);
		CHECK(strstr(slmpm_error_detail(), bad[i] ? bad[i] : "NULL"), "%s: %s", bad[i],
		      slmpm_error_detail());
		rc = slmpm_connect(&peer, none, bad[i], 100);
		CHECK(rc == -SLMPM_EADDRESS || rc == -SLMPM_ENOENT, "%s: %d", bad[i], rc);
	}
	memset(longer + 4, 'x', sizeof(longer) - 5);
	CHECK(slmpm_listen(&listener, none, longer) == -SLMPM_EADDRESS, "long");
	CHECK(slmpm_connect(&peer, none, longer, 100) == -SLMPM_EADDRESS, "long");
	longer[84] = 0; /* the longest there is */
	OK(slmpm_listen(&listener, none, longer));
	OK(slmpm_unlisten(listener));
	CHECK(peer.id == 7, "a handle of nothing");
}

/* A listener that does nothing: connects end at their deadline, however many wait there. */
static void nobody_accepts(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), mute[8];
	slmpm_peer peer;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path + 4);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 2) == 0,
	      "listen");
	for (int i = 0; i < 2; i++) {
		int rc = slmpm_connect(&peer, none, path, 20);

		CHECK(rc == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
		CHECK(strstr(slmpm_error_detail(), path), "%s", slmpm_error_detail());
	}
	for (int i = 0; i < 8; i++) { /* fill its queue */
		mute[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(mute[i], (struct sockaddr *)&sa, sizeof(sa));
	}
	CHECK(slmpm_connect(&peer, none, path, 20) == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	CHECK(slmpm_connect(&peer, none, path, 0) == -SLMPM_EAGAIN, "%s", slmpm_error_detail());
	for (int i = 0; i < 8; i++)
		close(mute[i]);
	close(fd);
	CHECK(unlink(path + 4) == 0, "unlink");
}

/* The listener's context is served by no one else than its owner: both ends in one process. */
static void ends_in_one_process(void)
{
	slmpm_ctx ctx;
	slmpm_peer there;
	slmpm_listener listener;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, name));
	CHECK(slmpm_connect(&there, none, name, 50) == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	OK(slmpm_shut(ctx, 0));
	CHECK(slmpm_accept(listener, &there, 0) == -SLMPM_EHANDLE, "a listener of a shut context");
}

/* With the last listener goes the last who could have sent: nobody waits on. */
static void nobody_can_come(void)
{
	struct slmpm_iov iov = {&(char){0}, 1};
	struct slmpm_done done;
	slmpm_listener one, two;
	slmpm_ctx ctx;
	slmpm_req req;
	char other[96];

	snprintf(other, sizeof(other), "%s-too", name);
	for (int shut = 0; shut < 2; shut++) {
		OK(slmpm_open(&ctx, NULL));
		OK(slmpm_listen(&one, ctx, name));
		OK(slmpm_listen(&two, ctx, other));
		OK(slmpm_recvv(slmpm_any(ctx), 5, &iov, 1, NULL, &req));
		OK(slmpm_unlisten(one));
		CHECK(slmpm_wait(&req, 1, &done, 0) == -SLMPM_EAGAIN, "there is one left");
		if (shut)
			OK(slmpm_shut(ctx, 0));
		else
			OK(slmpm_unlisten(two));
		CHECK(slmpm_wait(&req, 1, &done, -1) == 0 && done.status == -SLMPM_ECLOSED, "%s",
		      slmpm_error_detail());
		if (!shut)
			OK(slmpm_shut(ctx, 0));
	}
}

int main(void)
{
	CHECK(mkdtemp(folder), "mkdtemp");
	alarm(60);
	snprintf(name, sizeof(name), "shm:test-listen-%d", (int)getpid());
	snprintf(path, sizeof(path), "shm:%s/socket", folder);
	sent_before_accept(name);
	sent_before_accept(path);
	one_listener(name);
	one_listener(path);
	what_stands_at_a_path();
	bad_urls();
	nobody_accepts();
	ends_in_one_process();
	nobody_can_come();
	CHECK(rmdir(folder) == 0, "something was left in %s", folder);
	return 0;
}
