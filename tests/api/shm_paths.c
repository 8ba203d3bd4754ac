/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of this machine at which nobody can listen: a path where a file or a folder lies says so, shm://NAME says how
 * to write it; to who listens and to who connects, and nothing is left or taken away there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/actor.h"

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
	refused("shm://work", "write shm:work, or shm:/path");
	refused("shm:///tmp/work", "write shm:/tmp/work, or shm:/path");
	CHECK(unlink(file) == 0 && rmdir(folder) == 0, "something was left there");
	return 0;
}
