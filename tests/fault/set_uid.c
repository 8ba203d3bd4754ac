/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A set-uid program, started by another user: it takes none of the SLMPM_* and DACS_* variables
 * that its caller has set, writes to no file of the caller's choice, is nobody's accelerator, and
 * as a server takes in peers of the user that it is, not of the one that called it. The program is
 * a real copy of this one with that bit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_peer.h"

#define NOBODY 65534
#define NAME   "set-uid"
#define KEPT   "this stays as it is\n"

static char folder[64], program[96], file[96];

/* ---- what runs set-uid ----------------------------------------------------------------------- */

static void no_setting_is_taken(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};

	for (int i = 0; slmpm_setting_at(i, &s) == 0; i++)
		CHECK(!strcmp(s.origin, "default") && !strcmp(s.value, s.initial),
		      "SLMPM_%s is \"%s\"", s.name, s.value);
}

/* Who calls it is refused, who has its rights is not. */
static void its_user_counts(slmpm_ctx ctx)
{
	slmpm_listener listener;
	slmpm_peer peer;
	int theirs, ours;

	OK(slmpm_listen(&listener, ctx, "shm:" NAME));
	OK(seteuid(NOBODY));
	theirs = raw_connect_as(NAME, 0);
	OK(seteuid(0));
	CHECK(theirs >= 0, "the name is not that of its user");
	REFUSED(slmpm_accept(listener, &peer, 300), SLMPM_ETIMEOUT, "");
	close(theirs);
	ours = raw_connect_as(NAME, 0);
	CHECK(ours >= 0, "not connected");
	close(ours);
}

static void nobodys_program(void)
{
	slmpm_peer child;

	REFUSED(slmpm_spawn(&child, "set-uid-found", NULL, NULL), SLMPM_ENOENT, "set-uid-found");
}

static int run_set_uid(void)
{
	slmpm_ctx ctx;
	slmpm_peer host, a, b;
	char got[8];

	CHECK(getuid() == NOBODY && geteuid() == 0 && getauxval(AT_SECURE), "not set-uid");
	no_setting_is_taken();
	REFUSED(slmpm_parent(&host), SLMPM_ESTATE, "started");
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_send(a, 1, "traced?", 8, PATIENCE));
	EXPECT(slmpm_recv(b, 1, got, sizeof(got), NULL, PATIENCE), 8);
	its_user_counts(ctx);
	nobodys_program();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- who makes and calls it ------------------------------------------------------------------ */

static void copy_to(const char *path, mode_t mode)
{
	char buffer[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	CHECK(from >= 0 && to >= 0, "no copy at %s", path);
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		CHECK(write(to, buffer, (size_t)n) == n, "writing the copy");
	CHECK(n == 0 && fchmod(to, mode) == 0, "the copy's mode");
	close(from);
	close(to);
}

static int call(void *arg)
{
	char *const argv[] = {program, (char *)(uintptr_t) "set-uid", NULL};
	char trace[128], path[96];

	(void)arg;
	CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0,
	      "another user");
	snprintf(trace, sizeof(trace), "%s", file);
	snprintf(path, sizeof(path), "%s/bin", folder);
	CHECK(setenv("SLMPM_TRACE", trace, 1) == 0 && setenv("SLMPM_LOG_LEVEL", "debug", 1) == 0 &&
		      setenv("SLMPM_FABRIC", "tcp", 1) == 0 && setenv("SLMPM_CHECK", "1", 1) == 0 &&
		      setenv("SLMPM_RUN_DIR", folder, 1) == 0 &&
		      setenv("SLMPM_PARENT", "0:1", 1) == 0 &&
		      setenv("SLMPM_DEATH_PIPE", "0", 1) == 0 &&
		      setenv("SLMPM_NO_SUCH", "1", 1) == 0 && setenv("PATH", path, 1) == 0,
	      "setenv");
	execv(program, argv);
	return 126;
}

static void holds(const char *want)
{
	char got[64] = "";
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && read(fd, got, sizeof(got) - 1) >= 0, "the file");
	CHECK(!strcmp(got, want), "the file holds \"%s\"", got);
	close(fd);
}

static void make(void)
{
	char bin[96], found[128];
	int fd;

	strcpy(folder, "/tmp/slmpm-set-uid-XXXXXX");
	CHECK(mkdtemp(folder) && chmod(folder, 0755) == 0, "a folder");
	snprintf(program, sizeof(program), "%s/program", folder);
	snprintf(file, sizeof(file), "%s/kept", folder);
	snprintf(bin, sizeof(bin), "%s/bin", folder);
	snprintf(found, sizeof(found), "%s/set-uid-found", bin);
	copy_to(program, 04755);
	CHECK(mkdir(bin, 0755) == 0, "a folder");
	copy_to(found, 0755);
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, KEPT, strlen(KEPT)) == (ssize_t)strlen(KEPT), "the file");
	close(fd);
}

static void clean(void)
{
	char path[128];

	(void)unlink(program);
	(void)unlink(file);
	snprintf(path, sizeof(path), "%s/bin/set-uid-found", folder);
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/bin", folder);
	(void)rmdir(path);
	(void)rmdir(folder);
}

int main(int argc, char **argv)
{
	int status;

	if (argc > 1 && !strcmp(argv[1], "set-uid"))
		return run_set_uid();
	if (geteuid() != 0) {
		printf("only root can make a program set-uid and be another user\n");
		return 77;
	}
	make();
	status = child_run(call, NULL, 30);
	if (status == 0)
		holds(KEPT);
	clean();
	EXPECT(status, 0);
	return 0;
}
