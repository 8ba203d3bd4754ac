/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of this machine at which nobody can listen: a path where a file or a folder lies says
 * so, shm://NAME says how to write it; to who listens and to who connects, and nothing is left or
 * taken away there. What another user may not do there is said, too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

static void refused(const char *url, const char *says)
{
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;

	REFUSED(slmpm_listen(&listener, none, url), SLMPM_EADDRESS, says);
	CHECK(strstr(slmpm_error_detail(), url), "\"%s\"", slmpm_error_detail());
	REFUSED(slmpm_connect(&peer, none, url, 1000), SLMPM_EADDRESS, says);
	CHECK(strstr(slmpm_error_detail(), url), "\"%s\"", slmpm_error_detail());
}

#define NOBODY 65534

static void denied(const char *url, int code, const char *says)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;

	REFUSED(slmpm_connect(&peer, none, url, 1000), code, says);
	CHECK(strstr(slmpm_error_detail(), url), "\"%s\"", slmpm_error_detail());
}

struct place {
	const char *folder, *file;
	char listened[64], opened[64], closed[72];
	_Atomic int *over;
};

static const char *at(const char *path)
{
	static char url[80];

	snprintf(url, sizeof(url), "shm:%s", path);
	return url;
}

/* In a child that becomes another user: what that one may not do there, and why. */
static int as_another_user(void *arg)
{
	const struct place *p = arg;
	slmpm_listener listener;
	char own[80];

	CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0,
	      "another user");
	denied(at(p->file), SLMPM_EADDRESS, "file or folder lies there");
	denied(at(p->listened), SLMPM_EACCES, "may not use this socket of user 0");
	denied(at(p->closed), SLMPM_EACCES, "may not use that folder");
	denied(at(p->opened), SLMPM_EACCES, "refused user 65534");
	snprintf(own, sizeof(own), "shm:%s/own", p->folder);
	REFUSED(slmpm_listen(&listener, (slmpm_ctx){0}, own), SLMPM_EACCES,
		"may not use that folder");
	*p->over = 1;
	return 0;
}

/* A listener takes in no other user, however open the socket is, and gives that one no reason. */
static void deny_another_user(const char *folder, const char *file)
{
	struct place p = {.folder = folder, .file = file, .over = child_common(sizeof(*p.over))};
	slmpm_listener listeners[2];
	slmpm_peer peer;
	char closed[64];
	pid_t child;

	if (geteuid() != 0) {
		printf("  only root can be another user\n");
		return;
	}
	snprintf(p.listened, sizeof(p.listened), "%s/listened", folder);
	snprintf(p.opened, sizeof(p.opened), "%s/opened", folder);
	snprintf(closed, sizeof(closed), "%s/closed", folder);
	snprintf(p.closed, sizeof(p.closed), "%s/socket", closed);
	OK(slmpm_listen(&listeners[0], (slmpm_ctx){0}, at(p.listened)));
	OK(slmpm_listen(&listeners[1], (slmpm_ctx){0}, at(p.opened)));
	CHECK(mkdir(closed, 0700) == 0 && chmod(p.opened, 0666) == 0 && chmod(folder, 0755) == 0,
	      "modes");
	child = child_start(as_another_user, &p, 30);
	for (int i = 0; i < 600 && !*p.over; i++)
		CHECK(slmpm_accept(listeners[1], &peer, 10) == -SLMPM_ETIMEOUT, "taken in");
	CHECK(child_wait(child) == 0, "another user: see above");
	OK(slmpm_unlisten(listeners[0]));
	OK(slmpm_unlisten(listeners[1]));
	CHECK(rmdir(closed) == 0, "something was left there");
}

/* A socket of bytes; and a folder that there is not. */
static void deny_another_type(const char *folder)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	slmpm_listener listener;
	char url[80];

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/bytes", folder);
	CHECK(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 1) == 0, "no socket");
	denied(at(sa.sun_path), SLMPM_EADDRESS, "of another type");
	CHECK(close(fd) == 0 && unlink(sa.sun_path) == 0, "it is gone");
	snprintf(url, sizeof(url), "shm:%s/none/socket", folder);
	REFUSED(slmpm_listen(&listener, (slmpm_ctx){0}, url), SLMPM_ENOENT, "no such folder");
	denied(url, SLMPM_ENOENT, "nobody listens there");
}

int main(void)
{
	char folder[] = "/tmp/shm-paths-XXXXXX", file[64], url[80], word[4] = "";
	int fd;

	CHECK(mkdtemp(folder), "no folder");
	snprintf(file, sizeof(file), "%s/file", folder);
	fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && write(fd, "mine", 4) == 4, "no file");
	snprintf(url, sizeof(url), "shm:%s", file);
	refused(url, "file or folder lies there");
	CHECK(pread(fd, word, 4, 0) == 4 && !memcmp(word, "mine", 4), "the file is another");
	CHECK(access(file, F_OK) == 0, "the file is gone");
	snprintf(url, sizeof(url), "shm:%s", folder);
	refused(url, "file or folder lies there");
	deny_another_user(folder, file);
	deny_another_type(folder);
	refused("shm://work", "write shm:work, or shm:/path");
	refused("shm:///tmp/work", "write shm:/tmp/work, or shm:/path");
	CHECK(unlink(file) == 0 && rmdir(folder) == 0, "something was left there");
	return 0;
}
