/* SPDX-License-Identifier: BSD-3-Clause */
/* What a started program is given: arguments, environment, folder, descriptors; how it ends. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slmpm.h>
#include <slmpm_stats.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/lib/test.h"

#define MS       5000
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

static char self[4096], folder[] = "/tmp/slmpm-spawn-XXXXXX";

/* ---- the program started: answers questions about itself ------------------------------------ */

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -3; /* the folder itself and the two dots */

	CHECK(dir, "no /proc");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static const char *answer(const char *question, int argc, char **argv, char text[4096])
{
	int n = atoi(question + 1);

	switch (*question) {
	case 'a': return n < argc ? argv[n] : "(none)";
	case 'e': return getenv(question + 1) ? getenv(question + 1) : "(unset)";
	case 'c': return getcwd(text, 4096);
	case 'd': snprintf(text, 4096, "%d", open_descriptors()); return text;
	case 'x': exit(n);
	case 'k': raise(n); return "alive";
	default: return "?";
	}
}

/* Does the error say which side is set to which fabric? */
static bool names_fabrics(void)
{
	const char *detail = slmpm_error_detail();

	return strstr(detail, "shm in pid") && strstr(detail, "tcp in pid") &&
	       strstr(detail, "SLMPM_FABRIC");
}

static int accelerator(int argc, char **argv)
{
	char question[256], text[4096];
	slmpm_peer host, again;

	int rc = slmpm_parent(&host);

	if (rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD)
		return 3; /* the host did not want to wait */
	if (rc == -SLMPM_ENOTSUP && names_fabrics())
		return 4;
	OK(slmpm_parent(&host));
	OK(slmpm_parent(&again));
	CHECK(host.id == again.id, "another handle");
	for (;;) {
		int64_t n = slmpm_recv(host, 0, question, sizeof(question) - 1, NULL, -1);
		const char *say;

		if (n == -SLMPM_ECLOSED)
			return 0;
		CHECK(n > 0, "%s", slmpm_error_detail());
		question[n] = 0;
		say = answer(question, argc, argv, text);
		OK(slmpm_send(host, 0, say, strlen(say), -1));
	}
}

/* ---- the host ------------------------------------------------------------------------------- */

static const char *ask(slmpm_peer peer, const char *question)
{
	static char text[4][4096];
	static int turn;
	char *to = text[turn++ % 4];
	int64_t n;

	OK(slmpm_send(peer, 0, question, strlen(question), MS));
	n = slmpm_recv(peer, 0, to, sizeof(text[0]) - 1, NULL, MS);
	CHECK(n >= 0, "%s: %s", question, slmpm_error_detail());
	to[n] = 0;
	return to;
}

static void says(slmpm_peer peer, const char *question, const char *want)
{
	const char *got = ask(peer, question);

	CHECK(!strcmp(got, want), "%s: \"%s\", not \"%s\"", question, got, want);
}

static slmpm_peer start(const char *prog, char *const argv[], struct slmpm_spawn_options *o)
{
	slmpm_peer peer;

	if (o)
		o->size = sizeof(*o);
	CHECK(slmpm_spawn(&peer, prog, argv, o) == 0, "%s: %s", prog, slmpm_error_detail());
	return peer;
}

static void finish(slmpm_peer peer)
{
	int status = -1;

	CHECK(slmpm_join(peer, &status, MS) == 0 && status == 0, "status %x: %s", status,
	      slmpm_error_detail());
}

static void arguments(void)
{
	char *none[] = {NULL}, *odd[] = {"", "two words", "-n", "%e", "\xff\n", NULL};
	slmpm_peer peer = start(self, NULL, NULL);

	says(peer, "a0", self);
	says(peer, "a1", "(none)");
	finish(peer);
	peer = start(self, none, NULL);
	says(peer, "a1", "(none)");
	finish(peer);
	peer = start(self, odd, NULL);
	says(peer, "a0", self);
	for (int i = 0; i < 5; i++) {
		char question[] = {'a', (char)('1' + i), 0};

		says(peer, question, odd[i]);
	}
	says(peer, "a6", "(none)");
	finish(peer);
}

static void environments(void)
{
	char *more[] = {"SPAWN_A=new",        "SPAWN_C=", "SLMPM_PARENT=3:99",
			"SLMPM_DEATH_PIPE=0", "",         NULL};
	char *only[] = {"", NULL};
	struct slmpm_spawn_options add = {.envp = more},
				   clean = {.envp = more, .flags = SLMPM_SPAWN_CLEAN_ENV},
				   bare = {.envp = only, .flags = SLMPM_SPAWN_CLEAN_ENV};
	slmpm_peer peer;
	char fabric[64];

	/* Both sides go over the same. */
	snprintf(fabric, sizeof(fabric), "SLMPM_FABRIC=%s",
		 getenv("SLMPM_FABRIC") ? getenv("SLMPM_FABRIC") : "shm");
	more[4] = only[0] = fabric;
	setenv("SPAWN_A", "old", 1);
	setenv("SPAWN_AB", "longer", 1);
	peer = start(self, NULL, NULL);
	says(peer, "eSPAWN_A", "old");
	finish(peer);
	peer = start(self, NULL, &add);
	says(peer, "eSPAWN_A", "new");
	says(peer, "eSPAWN_AB", "longer");
	says(peer, "eSPAWN_C", "");
	finish(peer);
	peer = start(self, NULL, &clean);
	says(peer, "eSPAWN_A", "new");
	says(peer, "eSPAWN_AB", "(unset)");
	finish(peer);
	peer = start(self, NULL, &bare);
	says(peer, "eSPAWN_A", "(unset)");
	says(peer, "ePATH", "(unset)");
	finish(peer);
}

/* One that is there twice is to the program what it is to this one. */
static void twice_in_environment(void)
{
	extern char **environ;
	char **before = environ, *here[1024] = {"SPAWN_A=first", "SPAWN_A=second"};
	char *given[] = {"SPAWN_B=first", "SPAWN_B=second", NULL};
	struct slmpm_spawn_options o = {.envp = given};
	slmpm_peer peer;
	int n = 2;

	unsetenv("SPAWN_A");
	for (char **at = environ; *at && n < 1023; at++)
		here[n++] = *at;
	environ = here;
	CHECK(!strcmp(getenv("SPAWN_A"), "first"), "the second counts here");
	peer = start(self, NULL, &o);
	says(peer, "eSPAWN_A", "first");
	says(peer, "eSPAWN_B", "first");
	finish(peer);
	environ = before;
}

/* A relative program is meant from here, whatever folder it will run in. */
static void folders(void)
{
	struct slmpm_spawn_options o = {.cwd = folder};
	char path[9000], before[4096], real[4096];
	slmpm_peer peer;

	CHECK(getcwd(before, sizeof(before)) && realpath(folder, real), "here");
	peer = start(self, NULL, NULL);
	says(peer, "c", before);
	finish(peer);
	snprintf(path, sizeof(path), "%s/link", folder);
	CHECK(symlink(self, path) == 0, "symlink");
	CHECK(chdir(folder) == 0, "chdir");
	o.cwd = "/";
	peer = start("./link", NULL, &o);
	says(peer, "c", "/");
	says(peer, "a0", "./link");
	finish(peer);
	/* By PATH, also where that names this folder relatively. */
	for (int i = 0; i < 2; i++) {
		char *old = strdup(getenv("PATH") ? getenv("PATH") : "/bin");

		snprintf(path, sizeof(path), "/no/such:%s:/bin", i ? "." : real);
		setenv("PATH", path, 1);
		peer = start("link", NULL, &o);
		says(peer, "c", "/");
		says(peer, "a0", "link");
		finish(peer);
		setenv("PATH", old, 1);
		free(old);
	}
	CHECK(chdir(before) == 0, "chdir");
	o.cwd = folder;
	peer = start(self, NULL, &o);
	says(peer, "c", real);
	finish(peer);
}

static void wrappers(void)
{
	char *args[] = {"one", "two words", NULL};
	struct slmpm_spawn_options o = {.wrapper = "env  WRAPPED=yes %e first %a last"};
	slmpm_peer peer = start(self, args, &o);

	says(peer, "eWRAPPED", "yes");
	says(peer, "a0", self);
	says(peer, "a1", "first");
	says(peer, "a2", "one");
	says(peer, "a3", "two words");
	says(peer, "a4", "last");
	finish(peer);
	o.wrapper = "";
	peer = start(self, args, &o);
	says(peer, "a1", "one");
	finish(peer);
}

/* As /proc/self/exe it is counted under the name of its file. */
static void own_name(void)
{
	static struct slmpm_totals all[64];
	slmpm_peer peer = start("/proc/self/exe", NULL, NULL);
	int n, at = 0;

	says(peer, "a0", "/proc/self/exe");
	n = slmpm_totals((slmpm_ctx){0}, all, sizeof(*all), 64);
	while (at < n && strcmp(all[at].id, strrchr(self, '/') + 1))
		at++;
	CHECK(at < n, "none of %d is called by the file", n);
	finish(peer);
}

/* Each side over another fabric: whatever call comes first says so. */
static void other_fabrics(void)
{
	bool tcp = getenv("SLMPM_FABRIC") && !strcmp(getenv("SLMPM_FABRIC"), "tcp");
	char *more[] = {tcp ? "SLMPM_FABRIC=shm" : "SLMPM_FABRIC=tcp", NULL};
	struct slmpm_spawn_options o = {.envp = more};
	slmpm_peer peer;
	int64_t rc;

	for (int i = 0; i < 2; i++) {
		peer = start(self, NULL, &o);
		rc = i ? slmpm_recv(peer, 0, &rc, sizeof(rc), NULL, MS) :
			 slmpm_send(peer, 0, "a0", 2, MS);
		CHECK(rc == -SLMPM_ENOTSUP && names_fabrics(), "%lld: %s", (long long)rc,
		      slmpm_error_detail());
		CHECK(slmpm_send(peer, 0, "a0", 2, MS) == -SLMPM_ENOTSUP && names_fabrics(), "%s",
		      slmpm_error_detail());
		CHECK(slmpm_join(peer, NULL, MS) == 4, "%s", slmpm_error_detail());
	}
}

/* ---- what cannot be started ----------------------------------------------------------------- */

static void write_file(const char *name, const char *text, mode_t mode, char path[256])
{
	FILE *f;

	snprintf(path, 256, "%s/%s", folder, name);
	f = fopen(path, "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, mode) == 0, "%s", path);
}

static void refused(const char *prog, struct slmpm_spawn_options *o, int error, const char *why)
{
	int descriptors = open_descriptors();
	slmpm_peer peer = {4711};

	if (o)
		o->size = sizeof(*o);
	CHECK(slmpm_spawn(&peer, prog, NULL, o) == -error, "%s: %s", prog, slmpm_error_detail());
	CHECK(strstr(slmpm_error_detail(), why), "%s: \"%s\" does not say %s", prog,
	      slmpm_error_detail(), why);
	CHECK(peer.id == 4711, "a handle of nothing");
	CHECK(open_descriptors() == descriptors, "%s: descriptors stay open", prog);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "%s: a process stays", prog);
}

static void not_programs(void)
{
	struct slmpm_spawn_options nowhere = {.cwd = "/no/such"}, wrap = {.wrapper = "nosuch %e"},
				   blank = {.wrapper = "   "}, beyond = {.element = 9999};
	char path[256], longer[3000];

	refused("/no/such/program", NULL, SLMPM_ENOENT, "/no/such/program");
	refused("no-such-program", NULL, SLMPM_ENOENT, "no-such-program");
	refused("./no-such-program", NULL, SLMPM_ENOENT, "no-such-program");
	refused("/dev/null/x", NULL, SLMPM_ENOENT, "/dev/null/x");
	refused(folder, NULL, SLMPM_EACCES, folder);
	write_file("plain", "#!/bin/sh\n", 0644, path);
	refused(path, NULL, SLMPM_EACCES, "plain");
	write_file("garbage", "no program at all\n", 0755, path);
	refused(path, NULL, SLMPM_ENOEXEC, "garbage");
	write_file("script", "#!/no/such/interpreter\n", 0755, path);
	refused(path, NULL, SLMPM_ENOENT, "script");
	refused(self, &nowhere, SLMPM_ENOENT, "/no/such");
	refused(self, &wrap, SLMPM_ENOENT, "nosuch");
	refused(self, &blank, SLMPM_EINVAL, "wrapper");
	refused(self, &beyond, SLMPM_EINVAL, "element 9999");
	/* A name that fits nowhere is not cut down to one that does. */
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	CHECK(slmpm_spawn(&(slmpm_peer){0}, longer, NULL, NULL) < 0, "a long name");
	longer[0] = '.';
	longer[1] = '/';
	CHECK(slmpm_spawn(&(slmpm_peer){0}, longer, NULL, NULL) < 0, "a long path");
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void tells(slmpm_peer peer, const char *what)
{
	OK(slmpm_send(peer, 0, what, strlen(what), MS));
}

static void ends(void)
{
	slmpm_peer peer = start(self, NULL, NULL);
	int status = 0;

	tells(peer, "x7");
	OK(slmpm_join(peer, &status, MS));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x", status);
	CHECK(slmpm_join(peer, &status, 0) == -SLMPM_EHANDLE, "joined twice");
	peer = start(self, NULL, NULL);
	tells(peer, "x9");
	CHECK(slmpm_join(peer, NULL, MS) == 9, "exit code");
	peer = start(self, NULL, NULL);
	tells(peer, "k15");
	CHECK(slmpm_join(peer, NULL, MS) == 128 + SIGTERM, "signal number");
	peer = start(self, NULL, NULL);
	says(peer, "a1", "(none)");
	CHECK(slmpm_kill(peer, -1) == -SLMPM_EINVAL, "a negative grace");
	OK(slmpm_kill(peer, 0));
	OK(slmpm_join(peer, &status, MS));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
	peer = start(self, NULL, NULL);
	says(peer, "a1", "(none)");
	OK(slmpm_kill(peer, 10000));
	OK(slmpm_join(peer, &status, MS));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "status %x", status);
	peer = start(self, NULL, NULL);
	OK(slmpm_close(peer, MS)); /* too early for it */
	CHECK(slmpm_send(peer, 0, "x", 1, 0) == -SLMPM_ECLOSED, "closed");
	OK(slmpm_join(peer, &status, MS));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "status %x", status);
}

/* SIGTERM ignored: SIGKILL follows when its time is up, in whatever call that is. */
static void grace(void)
{
	struct slmpm_spawn_options o = {.wrapper = "env --ignore-signal=TERM %e"};
	slmpm_peer peer = start(self, NULL, &o);
	int status;

	says(peer, "a1", "(none)");
	OK(slmpm_kill(peer, 50));
	CHECK(slmpm_recv(peer, 0, NULL, 0, NULL, MS) == -SLMPM_EDEAD, "not killed: %s",
	      slmpm_error_detail());
	OK(slmpm_join(peer, &status, MS));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
}

/* Programs that never connect: found out by their end. */
static void unauthenticated(void)
{
	char *ten[] = {"10", NULL};
	slmpm_peer peer = start("true", NULL, NULL);
	int status;

	CHECK(slmpm_recv(peer, 0, NULL, 0, NULL, MS) == -SLMPM_EDEAD, "true connected");
	CHECK(strstr(slmpm_error_detail(), "status 0 before it connected"), "%s",
	      slmpm_error_detail());
	OK(slmpm_join(peer, &status, MS));
	CHECK(status == 0, "status %x", status);
	peer = start("false", NULL, NULL);
	CHECK(slmpm_join(peer, NULL, MS) == 1, "exit code of false");
	peer = start("sleep", ten, NULL);
	CHECK(slmpm_join(peer, &status, 20) == -SLMPM_ETIMEOUT, "sleep ended");
	CHECK(strstr(slmpm_error_detail(), "still runs"), "%s", slmpm_error_detail());
	OK(slmpm_kill(peer, 0));
	while (slmpm_join(peer, &status, 0) == -SLMPM_EAGAIN)
		(void)poll(NULL, 0, 1);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
}

/* A child that is joined at once connects, and sees the end of the stream. */
static void joined_at_once(void)
{
	for (int i = 0; i < 20; i++)
		finish(start(self, NULL, NULL));
}

/* Only the three standard ones, its own of the library, nothing of ours or its siblings'. */
static void descriptors(void)
{
	slmpm_peer one = start(self, NULL, NULL), two;
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), first, second;

	first = atoi(ask(one, "d"));
	two = start(self, NULL, NULL);
	second = atoi(ask(two, "d"));
	CHECK(first == second, "the first has %d descriptors, the second %d", first, second);
	close(file);
	finish(one);
	finish(two);
}

/* The host's end ends those on its parent-death pipe. */
static void death_pipe(void)
{
	struct slmpm_spawn_options o = {.flags = SLMPM_SPAWN_DIE_WITH_HOST};
	int notified[2], status;
	struct pollfd p;
	pid_t host;
	char byte;

	CHECK(pipe(notified) == 0, "pipe");
	host = fork();
	CHECK(host >= 0, "fork");
	if (!host) {
		slmpm_peer peer = start(self, NULL, &o);

		says(peer, "a1", "(none)");
		CHECK(write(notified[1], "x", 1) == 1, "write");
		for (;;)
			pause();
	}
	close(notified[1]);
	CHECK(read(notified[0], &byte, 1) == 1, "no start");
	CHECK(kill(host, SIGKILL) == 0 && waitpid(host, &status, 0) == host, "kill");
	/* The other copy of the pipe is the accelerator's. */
	p = (struct pollfd){.fd = notified[0], .events = POLLIN};
	CHECK(poll(&p, 1, MS) == 1 && read(notified[0], &byte, 1) == 0, "it lives on");
	close(notified[0]);
}

static void remove_files(void)
{
	static const char *const names[] = {"link", "plain", "garbage", "script"};
	char path[256];

	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		CHECK(unlink(path) == 0, "%s", path);
	}
	CHECK(rmdir(folder) == 0, "something else was left in %s", folder);
}

int main(int argc, char **argv)
{
	if (getenv("SLMPM_PARENT"))
		return accelerator(argc, argv);
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 && mkdtemp(folder), "set-up");
	death_pipe(); /* first: its host must have no other library state */
	arguments();
	environments();
	twice_in_environment();
	folders();
	wrappers();
	own_name();
	other_fabrics();
	not_programs();
	ends();
	grace();
	unauthenticated();
	joined_at_once();
	descriptors();
	CHECK(slmpm_parent(&(slmpm_peer){0}) == -SLMPM_ESTATE, "a parent from nowhere");
	remove_files();
	return 0;
}
