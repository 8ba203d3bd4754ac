/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a program that is still open for writing somewhere, for a moment or for good. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

static int role_exit(slmpm_peer host, char **words)
{
	(void)host, (void)words;
	return 0;
}

/* Copies this program; the descriptor stays open for writing. */
static int copy_self(const char *to)
{
	static char buf[1 << 16];
	int in = open(actor_self(), O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	CHECK(in >= 0 && out >= 0, "no copy");
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK(write(out, buf, (size_t)n) == n, "no room");
	close(in);
	return out;
}

/* A child of another thread, which has yet to execute something. */
static int hold(void *arg)
{
	struct timespec t = {0, 60 * 1000000};

	(void)arg;
	nanosleep(&t, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"exit", role_exit}, {NULL, NULL}};
	char path[] = "/tmp/slmpm-busy-XXXXXX", program[PATH_MAX];
	char *words[] = {(char *)(uintptr_t) "exit", NULL};
	slmpm_peer peer;
	pid_t holder;
	int fd;

	actor_begin(argc, argv, roles);
	CHECK(mkdtemp(path), "no folder");
	snprintf(program, sizeof(program), "%s/program", path);
	fd = copy_self(program);
	REFUSED(slmpm_spawn(&peer, program, words, NULL), SLMPM_ESYSTEM, "busy");
	holder = child_start(hold, NULL, 20);
	close(fd);
	OK(slmpm_spawn(&peer, program, words, NULL));
	actor_join(peer, 0);
	EXPECT(child_wait(holder), 0);
	OK(unlink(program));
	OK(rmdir(path));
	return 0;
}
