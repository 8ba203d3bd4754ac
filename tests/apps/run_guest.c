/* SPDX-License-Identifier: BSD-3-Clause */
/* helper: of run_hostile.sh */
/* A program of a job that sends slmpm_run descriptors where it expects none: none stays open
 * there. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ROUNDS 8
#define SLACK  2 /* what it may have opened for itself meanwhile */

static int count_open(pid_t pid)
{
	char path[32];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	for (d = opendir(path); d && readdir(d); n++)
		;
	if (d)
		closedir(d);
	return n;
}

static int visit(void)
{
	const char *path = getenv("SLMPM_JOB");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (path && strlen(path) < sizeof(sa.sun_path))
		strcpy(sa.sun_path, path + (*path == '+'));
	return fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ? fd : -1;
}

static int say(int fd, const char *text)
{
	static const int fds[2] = {0, 1};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(fds))];
	} space = {.room = {0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space.room,
			     .msg_controllen = sizeof(space.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0;
}

int main(void)
{
	int before = count_open(getppid()), now;
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		int fd = visit();

		if (fd < 0 || say(fd, "watch") || say(fd, "")) {
			perror("run_guest");
			return 1;
		}
		if (recv(fd, &byte, 1, 0) != 0) /* it has read both, and left */
			return 1;
		close(fd);
	}
	now = count_open(getppid());
	if (before > 3 && now <= before + SLACK)
		return 0;
	fprintf(stderr, "run_guest: slmpm_run has %d descriptors open, before %d\n", now, before);
	return 1;
}
