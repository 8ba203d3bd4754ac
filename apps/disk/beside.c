/* SPDX-License-Identifier: BSD-3-Clause */
/* The same file copied by dd, for a figure beside ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/disk/copy.h"

enum { NO_DD = 127 };

/* Where there is no dd: what it does. */
static int plain_loop(const struct copy_options *o, const char *to)
{
	int in = open(o->from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CLOEXEC);
	char *block = malloc(o->block);
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && block && (n = read(in, block, o->block)) > 0)
		if (write(out, block, (size_t)n) != n) {
			n = -1;
			break;
		}
	if (n == 0 && o->sync && fsync(out))
		n = -1;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	free(block);
	return n < 0 ? 1 : 0;
}

static int run_dd(const struct copy_options *o, const char *to)
{
	char in[4200], out[4300], block[24];
	int status;
	pid_t pid;

	snprintf(in, sizeof(in), "if=%s", o->from);
	snprintf(out, sizeof(out), "of=%s", to);
	snprintf(block, sizeof(block), "bs=%u", o->block);
	pid = fork();
	if (pid == 0) {
		execlp("dd", "dd", in, out, block, "status=none",
		       o->sync ? "conv=fdatasync" : (char *)NULL, (char *)NULL);
		_exit(NO_DD);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

void beside_warm(const struct copy_options *o)
{
	int fd = open(o->from, O_RDONLY | O_CLOEXEC);
	char *block = malloc(o->block);

	while (fd >= 0 && block && read(fd, block, o->block) > 0)
		;
	if (fd >= 0)
		close(fd);
	free(block);
}

void beside_run(const struct copy_options *o, double seconds)
{
	char to[4200], rate[32];
	double took;
	int fd, rc;

	snprintf(to, sizeof(to), "%s.dd-XXXXXX", o->to);
	fd = mkostemp(to, O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "disk_copy: no dd beside: %s: %s\n", to, strerror(errno));
		return;
	}
	close(fd);
	took = progress_now();
	rc = run_dd(o, to);
	if (rc == NO_DD) {
		took = progress_now();
		rc = plain_loop(o, to) ? 1 : NO_DD;
	}
	took = progress_now() - took;
	unlink(to);
	if (rc && rc != NO_DD)
		fprintf(stderr, "disk_copy: dd could not copy it\n");
	else
		fprintf(stderr, "%s: %llu bytes in %.3f s, %s; disk_copy is %.2f times as fast\n",
			rc ? "a plain loop (there is no dd)" : "dd", (unsigned long long)o->bytes,
			took, progress_rate(rate, o->bytes, took), took / seconds);
}
