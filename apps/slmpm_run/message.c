/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job's processes say of what they start and how it ended (slmpm/launch/job.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/slmpm_run/collect.h"
#include "apps/slmpm_run/job.h"

static bool take_start(struct job *j, struct collection *output, const char *text, int fds[2])
{
	char host[65], program[304];
	unsigned element;
	int pid;

	if (sscanf(text, "start %u %d %64s %303[^\n]", &element, &pid, host, program) != 4)
		return false;
	(void)job_add(j, element, pid, host, program);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0) {
			(void)collect_add(output, fds[i], i, element, host);
			fds[i] = -1;
		}
	return true;
}

static void close_all(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static bool take_end(struct job *j, const char *text)
{
	struct member *m;
	int pid, status;

	if (sscanf(text, "end %d %d", &pid, &status) != 2 || !(m = job_find(j, pid)))
		return false;
	member_ended(m);
	m->known = status >= 0;
	m->status = status;
	return true;
}

static size_t receive(int fd, char *text, size_t size, int fds[2])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} space;
	struct iovec iov = {.iov_base = text, .iov_len = size - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space.room,
			     .msg_controllen = sizeof(space.room)};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* A packet of no bytes may have some, too. */
	struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c),
		       c->cmsg_len >= CMSG_LEN(2 * sizeof(int)) ? 2 * sizeof(int) : sizeof(int));
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

void message_accept(struct job *j)
{
	int fd = accept4(j->listening, NULL, NULL, SOCK_CLOEXEC);
	int *wider;

	if (fd < 0)
		return;
	for (size_t i = 0; i < j->guest_count; i++)
		if (j->guests[i] < 0) {
			j->guests[i] = fd;
			return;
		}
	wider = realloc(j->guests, (j->guest_count + 1) * sizeof(*wider));
	if (!wider) {
		close(fd);
		return;
	}
	j->guests = wider;
	wider[j->guest_count++] = fd;
}

bool message_take(struct job *j, size_t guest, struct collection *output)
{
	int fds[2] = {-1, -1};
	char text[512];
	bool news = false, stays = false;

	if (receive(j->guests[guest], text, sizeof(text), fds)) {
		if (!strncmp(text, "start ", 6))
			news = take_start(j, output, text, fds);
		else if (!strncmp(text, "end ", 4))
			news = take_end(j, text);
		stays = !strcmp(text, "watch"); /* as long as both sides live */
	}
	close_all(fds);
	if (stays)
		return false;
	close(j->guests[guest]);
	j->guests[guest] = -1;
	return news;
}
