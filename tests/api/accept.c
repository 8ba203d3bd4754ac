/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* Connections that end before they are accepted, and listeners that cannot or do not accept. */
/* timeout: 40 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/lib/actor.h"

static const char *url(const char *what)
{
	static char text[64];

	snprintf(text, sizeof(text), "shm:accept-%s-%d", what, (int)getpid());
	return text;
}

/* ---- gone before it is accepted ---- */

static int role_hasty(slmpm_peer host, char **words)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;

	(void)host;
	OK(slmpm_connect(&peer, none, words[0], PATIENCE));
	OK(slmpm_send(peer, 7, "early", 5, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static void closed_before_accept(void)
{
	slmpm_ctx ctx;
	slmpm_listener l;
	slmpm_peer child, peer;
	char buf[8];

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&l, ctx, url("hasty")));
	child = actor_spawn_with(
		&(struct slmpm_spawn_options){.size = sizeof(struct slmpm_spawn_options),
					      .ctx = ctx},
		"-hasty", url("hasty"), NULL);
	actor_join(child, 0);
	OK(slmpm_accept(l, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 7, buf, sizeof(buf), NULL, PATIENCE), 5);
	CHECK(!memcmp(buf, "early", 5), "another message");
	EXPECT(slmpm_recv(peer, 7, buf, sizeof(buf), NULL, PATIENCE), -SLMPM_ECLOSED);
	OK(slmpm_close(peer, 0));
	OK(slmpm_shut(ctx, 0));
}

/* ---- a listener that does not run ---- */

static struct sockaddr_un address(const char *name, socklen_t *length)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "slmpm/%u/%s",
			 (unsigned)getuid(), name);

	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return sa;
}

static int role_listen(slmpm_peer host, char **words)
{
	slmpm_listener l;
	slmpm_ctx none = {0};

	OK(slmpm_listen(&l, none, words[0]));
	OK(slmpm_send(host, 0, "", 0, PATIENCE));
	(void)slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE);
	return 0;
}

/* Fills the queue of connections nobody has taken; the descriptors stay open. */
static void fill_queue(const char *name)
{
	socklen_t length;
	struct sockaddr_un sa = address(name, &length);

	for (int i = 0;; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0 && i < 1000, "the queue is never full");
		if (connect(fd, (struct sockaddr *)&sa, length) == 0)
			continue;
		CHECK(errno == EAGAIN, "connect: %s", strerror(errno));
		close(fd);
		return;
	}
}

static void full_queue(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_ctx none = {0};
	slmpm_peer child, peer;
	int64_t begin;

	child = actor_spawn("listen", url("full"), NULL);
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_peer_query(child, &info));
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
	fill_queue(url("full") + 4);
	begin = actor_now_ms();
	REFUSED(slmpm_connect(&peer, none, url("full"), 300), SLMPM_ETIMEOUT, "full");
	REFUSED(slmpm_connect(&peer, none, url("full"), 0), SLMPM_EAGAIN, "full");
	CHECK(actor_now_ms() - begin < 300 + 2000, "the deadline was not kept");
	CHECK(actor_now_ms() - begin >= 299, "it did not wait");
	OK(slmpm_kill(child, 0));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

/* ---- a listener out of descriptors ---- */

static int64_t cpu_ms(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static int role_connect(slmpm_peer host, char **words)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;
	int rc;

	OK(slmpm_send(host, 0, "r", 1, PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	rc = slmpm_connect(&peer, none, words[0], 3000);
	if (rc == 0)
		return 0;
	CHECK(rc == -SLMPM_ENOFILE, "connect: %d, %s", rc, slmpm_error_detail());
	return 9;
}

static slmpm_peer connecting_child(void)
{
	slmpm_peer child = actor_spawn("connect", url("files"), NULL);
	char ready;

	EXPECT(slmpm_recv(child, 0, &ready, 1, NULL, PATIENCE), 1);
	return child;
}

static void out_of_descriptors(void)
{
	struct rlimit files, few;
	slmpm_ctx none = {0};
	slmpm_listener l;
	slmpm_peer child, peer;
	int used[64], n = 0;
	int64_t busy;

	OK(slmpm_listen(&l, none, url("files")));
	child = connecting_child();
	OK(getrlimit(RLIMIT_NOFILE, &files));
	few = files;
	few.rlim_cur = (rlim_t)actor_descriptors() + 16;
	OK(setrlimit(RLIMIT_NOFILE, &few));
	while (n < 64 && (used[n] = dup(0)) >= 0)
		n++;
	CHECK(n < 64 && errno == EMFILE, "descriptors do not end: %s", strerror(errno));
	OK(slmpm_send(child, 0, "", 0, PATIENCE));
	busy = cpu_ms();
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, PATIENCE), -SLMPM_EDEAD); /* has left */
	EXPECT(slmpm_accept(l, &peer, 500), -SLMPM_ETIMEOUT);
	CHECK(cpu_ms() - busy < 300, "it took %d ms of processor", (int)(cpu_ms() - busy));
	actor_join(child, 9);
	OK(setrlimit(RLIMIT_NOFILE, &files));
	while (n)
		close(used[--n]);
	child = connecting_child();
	OK(slmpm_send(child, 0, "", 0, PATIENCE));
	OK(slmpm_accept(l, &peer, PATIENCE));
	actor_join(child, 0);
	OK(slmpm_close(peer, PATIENCE)); /* over a network its end may not have been heard of yet */
	OK(slmpm_unlisten(l));
}

static const struct actor roles[] = {
	{"-hasty", role_hasty}, {"listen", role_listen}, {"connect", role_connect}, {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	closed_before_accept();
	full_queue();
	out_of_descriptors();
	return 0;
}
